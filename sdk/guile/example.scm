;;; The FNV-1a suite: steps that cost about as much as the tare, and loops of a microsecond and a millisecond.

(use-modules (scruple) (srfi srfi-1))

(define (step h octet)
  (logand (* (logxor h octet) 16777619) #xffffffff))

(define (one h x) (step h (logand x 255)))
(define (two h x) (one (one h x) (ash x -8)))
(define (four h x) (two (two h x) (ash x -16)))
(define (eight h x) (four (four h x) x))

(define (many h x steps)
  (if (zero? steps) h (many (one h (+ x steps)) x (1- steps))))

(define (fold-octets x)
  (fold (lambda (i h) (step h (logand (ash x (* -8 i)) 255))) basis '(0 1 2 3)))

(define basis 2166136261)
(define x #xdeadbeef)

(bgroup "fnv"
  (bench "identity" (i x) i)
  (bench "1 step" (i x) #:bytes 1 (one basis i))
  (bench "4 steps" (i x) #:bytes 4
    #:check (lambda (h) (or (= h (fold-octets x)) (format #f "the hash is ~a" h)))
    (four basis i))
  (bench "8 steps" (i x) #:bytes 8 #:threads '(1 2) (eight basis i))
  (bench "us" (i x) #:bytes 25 (many basis i 25))
  (bench "ms" (i x) #:bytes 25000 #:tags '("slow") (many basis i 25000)))

(bench-each "sort/nine numbers" (numbers (list 5 2 9 1 7 3 8 4 6)) #:items 9
  (sort! numbers <))

(for-each (lambda (n)
            (bench "list/iota" (count n) #:params `(("n" . ,n)) #:budgets `(("alloc.bytes" ("max" . ,(* 16 (1+ n)))))
              (iota count)))
          '(0 1 10 100))

(bench-main)
