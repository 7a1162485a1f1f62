;; Hashes words in Guile. planted.py replaces the text between @.
(use-modules (rnrs bytevectors))

(define (@HASH@ start word)
  (let next ((round 0) (start start))
    (if (< round @ROUNDS@)
        (next (1+ round) (modulo (+ (* start 31) word) 16777619))
        start)))

(define (parse word)
  (let next ((time 0) (word word))
    (if (< time @TIMES@)
        (let ((hashed (@HASH@ word word)))
          @EXTRA@
          (next (1+ time) hashed))
        word)))

;; Guile would inline procedures that nobody can change.
(set! @HASH@ @HASH@)
(set! parse parse)

(define count (if (> (length (command-line)) 1) (string->number (cadr (command-line))) 2000))
(let next ((number 0) (total 0))
  (if (< number count)
      (next (1+ number) (logxor total (parse number)))
      (begin (display (= total 1)) (newline))))
