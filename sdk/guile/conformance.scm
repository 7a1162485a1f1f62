;;; The example cases that every SDK declares for sdk/conformance.

(use-modules (scruple) (ice-9 format) (ice-9 match) (rnrs bytevectors))

(define (linear h)
  (let next ((i 0) (h h))
    (if (< i 1000) (next (1+ i) (logand (* (logxor h i) 16777619) #xffffffff)) h)))

(define (deliberate)
  (error "a deliberate error:" 'this))

(define (use input)
  (when (vector-ref input 0) (error "the input was used already"))
  (vector-set! input 0 #t))

(define (spin)
  (spin))

(define setups 0)

(define (declare)
  (bench "identity" (x 7) x)
  (bench "linear" (x 7) (linear x))
  (bench "alloc/known" (n 4096) #:params '(("bytes" . 4096)) (make-bytevector n))
  (bench "throws" () (deliberate))
  (bench "skips" () (bench-skip "no such device"))
  (bench "forks" () (let ((child (primitive-fork))) (unless (zero? child) (waitpid child))))
  (bench "forks and exits" () (let ((child (primitive-fork))) (if (zero? child) (exit 3) (waitpid child))))
  (bench "hangs/idle" () (while #t (sleep 1000)))
  (bench "hangs/busy" () (spin))
  (bench "threads/two" (x 7) #:threads '(1 2) (linear x))
  (bench-each "input/per-iteration" (input (vector #f)) #:max-iterations 100 (use input))
  (bench "setup/counted" (n (begin (set! setups (1+ setups)) setups))
    #:check (lambda (n) #t) #:digest number->string
    n)
  (bench "setup/throws" (x (deliberate)) x)
  (bench "check/passes" (x 7) #:check (lambda (x) #t) #:digest (lambda (x) "cafe") x)
  (bench "check/fails" (x 7) #:check (lambda (x) "deliberate") x)
  (bench "prints" () (display "printed by a case\n") (force-output))
  (for-each (lambda (n)
              (bench "growth" (count n) #:params `(("n" . ,n))
                (let next ((i 0)) (when (< i count) (next (1+ i))))))
            '(0 1 2 3 10 100))
  (bench "budgets" (x 7)
    #:budgets '(("time.wall" ("max" . 1000000)) ("alloc.bytes" ("max" . "+5%") ("against" . "baseline")))
    x)
  (bench "fields" (x 7) #:group "another group" #:tags '("slow" "two words") #:bytes 4096 #:fresh? #t #:time-limit 5
    x)
  (bgroup "names"
    (for-each (lambda (name) (bench name (x 7) x))
              '("\"quoted\" and \\backslash" "tab\ttab" "grün λ 東京 🐎" "a//b/c"))))

(match (command-line)
  ((_ "many")
   (for-each (lambda (i) (bench (format #f "many/~5,'0d" i) (x i) #:params `(("index" . ,i)) x))
             (iota 10000)))
  (_ (declare)))
(bench-main)
