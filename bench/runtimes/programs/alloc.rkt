#lang racket/base
; N pairs of 16 bytes, the last 10,000 kept alive.
(define (run n)
  (let ([ring (make-vector 10000 #f)])
    (let loop ([i 0])
      (if (< i n)
          (begin (vector-set! ring (remainder i 10000) (cons i i)) (loop (+ i 1)))
          (displayln (car (vector-ref ring 7)))))))
(run (string->number (vector-ref (current-command-line-arguments) 0)))
