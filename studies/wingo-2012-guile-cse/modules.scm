;;; modules.scm FOLDER OPTION…: compiles modules of the compiler itself into a folder, in one process, with the options
;;; of `guild compile`. A smoke test takes a small module.

(define modules (if (getenv "SMOKE") '("spec") '("primitives" "effects")))
(define words (cdr (command-line)))
(define folder (car words))

(unless (file-exists? folder) (mkdir folder))
(for-each
 (lambda (module)
   (apply (@ (scripts compile) compile)
          `(,@(cdr words)
            "-o" ,(string-append folder "/" module ".go")
            ,(string-append "/usr/share/guile/3.0/language/tree-il/" module ".scm"))))
 modules)
