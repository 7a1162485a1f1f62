;; Procedures that call themselves and each other. The tests replace the texts between @ by numbers.
(define (work n)
  (let next ((i 0) (s n)) (if (< i n) (next (1+ i) (modulo (+ (* s 31) i) 65537)) s)))

;; A tree, of which each inner element is evaluated through dispatch.
(define (leaf x) (+ 0 (work @LEAF@)))
(define (binary x)
  (do ((i 0 (1+ i))) ((= i @AGAIN@)) (evaluate (car x)))
  (+ (evaluate (car x)) (evaluate (cdr x))))
(define (dispatch x)
  (work 4)
  (+ 0 (if x (binary x) (leaf x))))
(define (evaluate x) (+ 0 (dispatch x)))
(define (make depth) (and (> depth 0) (cons (make (1- depth)) (make (1- depth)))))

;; The outer call evaluates a set, which is dear; those of compare evaluate one element each.
(define (attribute i) (+ 0 (work (+ 5 (modulo i 3)))))
(define (compare i) (> (if (> @DIRECT@ 0) (attribute i) (step 0 i)) 7))
(define (choose n) (do ((i 0 (1+ i))) ((= i n) n) (compare i)))
(define (step number i)
  (case number
    ((0) (+ (attribute i) (work 2)))
    ((1) (do ((j 0 (1+ j))) ((= j 30)) (work 20)) (+ 0 (choose 20)))
    (else (+ (step (1- number) i) (work 9)))))

(define numbers (list->vector (map (lambda (i) (if (< i 60) i (- 180 i))) (iota 120))))
(define (partition low high pivot)
  (let up ((low low) (high high))
    (cond ((> low high) low)
          ((< (vector-ref numbers low) pivot) (up (1+ low) high))
          ((> (vector-ref numbers high) pivot) (up low (1- high)))
          (else (let ((one (vector-ref numbers low)))
                  (vector-set! numbers low (vector-ref numbers high))
                  (vector-set! numbers high one)
                  (up (1+ low) (1- high)))))))
(define (sort low high)
  (when (< low high)
    (let ((middle (partition low high (vector-ref numbers (+ low (quotient (- high low) @PIVOT@))))))
      (sort low (1- middle))
      (sort middle high)
      #t)))

(define (even n) (work 3) (not (not (or (= n 0) (odd (1- n))))))
(define (odd n) (work 2) (not (not (and (> n 0) (even (1- n))))))
(define (ask) (not (even @DEPTH@)))

;; The assignments keep Guile from inlining.
(set! work work) (set! leaf leaf) (set! binary binary) (set! dispatch dispatch) (set! evaluate evaluate) (set! make make)
(set! attribute attribute) (set! compare compare) (set! choose choose) (set! step step)
(set! partition partition) (set! sort sort) (set! even even) (set! odd odd) (set! ask ask)
(evaluate (make 5))
(step 3 0)
(sort 0 119)
(do ((i 0 (1+ i))) ((= i 3)) (ask))
