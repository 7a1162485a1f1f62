;; Hides Guile's own module of this name, which every program that Guile runs loads first, and makes Guile count.
;; Interpreted, the counter would be slow, so it is compiled first.

(let* ((name "/ice-9/command-line")
       (folder (dirname (dirname (current-filename))))
       (other (lambda (paths end)
                (let look ((paths paths))
                  (cond ((null? paths) #f)
                        ((string=? (car paths) folder) (look (cdr paths)))
                        ((file-exists? (string-append (car paths) name end)) (string-append (car paths) name end))
                        (else (look (cdr paths)))))))
       (compiled (other %load-compiled-path ".go")))
  (if compiled (load-compiled compiled) (primitive-load (other %load-path ".scm")))
  (let ((counter (string-append folder "/" (number->string (getpid)) ".go")))
    ((@ (system base compile) compile-file) (string-append folder "/count.scm") #:output-file counter
     ;; Without CPS, Guile translates each expression by itself, which takes less time.
     #:opts '(#:cps? #f))
    (load-compiled counter)
    (delete-file counter)))
