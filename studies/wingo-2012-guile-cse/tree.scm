;;; A binary tree as a pattern matcher leaves it: accessors whose checks are the same again and again, which is what
;;; eliminating common subexpressions is for. The argument is the depth; the sum of the leaves is printed.

(use-modules (srfi srfi-9))

(define-record-type <branch> (make-branch left right weight) branch?
  (left branch-left) (right branch-right) (weight branch-weight))

(define (build depth n)
  (if (zero? depth)
      n
      (make-branch (build (1- depth) (* 2 n)) (build (1- depth) (1+ (* 2 n))) depth)))

(define (total tree)
  (cond
   ((and (branch? tree) (branch? (branch-left tree)) (branch? (branch-right tree)))
    (+ (total (branch-left tree)) (total (branch-right tree))))
   ((and (branch? tree) (branch? (branch-left tree)))
    (+ (total (branch-left tree)) (branch-right tree)))
   ((branch? tree) (+ (total (branch-left tree)) (total (branch-right tree))))
   (else tree)))

(define tree (build (string->number (cadr (command-line))) 1))
(display (let again ((n 20) (sum 0)) (if (zero? n) sum (again (1- n) (+ sum (total tree))))))
(newline)
