;; Counts the instructions of Guile's virtual machine that a program executes, and the calls, by calling context:
;; `counter/guile.c` does that. The main thread of each process counts, and writes one file into this file's folder at its
;; end.

(define-module (scruple count)
  #:use-module (system vm vm)
  #:use-module (system vm debug)
  #:use-module (system base compile)
  #:use-module (srfi srfi-1))

(define folder (getenv "SCRUPLE_COUNTS"))
(define shell (resolve-module '(ice-9 command-line)))

;; The library defines these in this module.
(load-extension (string-append folder "/guile-counter.so") "scruple_init_counter")
(define-syntax-rule (define-loaded name ...)
  (begin (define name (module-ref (current-module) 'name)) ...))
(define-loaded count! describe-by! clear-counts! folds-by-call? append-counts)

;; A procedure: its number, the address of its first instruction, what is known of it.
(define-syntax-rule (define-fields maker (field index) ...)
  (begin (define (maker . values) (list->vector values))
         (define-syntax-rule (field object) (vector-ref object index)) ...))
(define-fields make-procedure (procedure-number 0) (procedure-begin 1) (procedure-info 2))
(define procedures-by-begin (make-hash-table 1000))

;; The number of the procedure to which an instruction belongs, and the address of its first one.
(describe-by!
 (lambda (ip)
   (let* ((info (find-program-debug-info ip))
          (begin (if info (program-debug-info-addr info) 0))
          (known (hashv-create-handle! procedures-by-begin begin #f)))
     (unless (cdr known)
       (set-cdr! known (make-procedure (- (hash-count (const #t) procedures-by-begin) 1) begin info)))
     (cons (procedure-number (cdr known)) begin))))

(define (file-of-process end)
  (string-append folder "/" (number->string (getpid)) end))

(define (mark)
  (close-port (open-output-file (file-of-process ".running"))))

(define (paused thunk)
  (let ((level (vm-trace-level)))
    (dynamic-wind (lambda () (set-vm-trace-level! 0)) thunk (lambda () (set-vm-trace-level! level)))))

(define (module-name file program)
  (define (within directory)
    (let ((beside (string-append directory "/")))
      (and (string-prefix? beside file) (substring file (string-length beside)))))
  (if (string=? file program)
      "__main__"
      (or (any within (cons (dirname program) %load-path)) file)))

(define (hash-text text)
  (fold (lambda (byte value) (logand (* (logxor value byte) #x100000001b3) #xffffffffffffffff))
        #xcbf29ce484222325
        ((@ (rnrs bytevectors) bytevector->u8-list) ((@ (rnrs bytevectors) string->utf8) text))))

;; The digest of what belongs to the interpreter. A digest of 0 means that the text is not known.
(define interpreter 1)

;; The forms of a file; an empty list if it cannot be read.
(define files (make-hash-table))
(define (forms path)
  (let ((known (hash-create-handle! files path #f)))
    (unless (cdr known)
      (set-cdr! known
        (catch #t
          (lambda ()
            (call-with-input-file path
              (lambda (port)
                (set-port-encoding! port "UTF-8")
                (let next ((all '()))
                  (let ((form (read port)))
                    (if (eof-object? form) (reverse all) (next (cons form all))))))))
          (lambda _ '()))))
    (cdr known)))

;; What a form defines; #f if it is no definition.
(define (defined form)
  (and (pair? form) (memq (car form) '(define define* define-public)) (pair? (cdr form))
       (let name ((head (cadr form)))
         (if (pair? head) (name (car head)) head))))

(define (defines-procedure? form)
  (and (defined form)
       (or (pair? (cadr form))
           (and (pair? (cddr form)) (pair? (caddr form)) (memq (car (caddr form)) '(lambda lambda* case-lambda))))))

;; What the form of a file that contains a line defines.
(define (definition-at path line)
  (let next ((all (forms path)) (last #f))
    (if (or (null? all) (> (or (source-property (car all) 'line) 0) line))
        (and last (defined last))
        (next (cdr all) (car all)))))

(define (hash-forms all)
  (if (null? all) 0 (hash-text (object->string all))))

;; A digest of a procedure's text, without the procedure's name.
(define (digest path source)
  (define (skip port line column)
    (unless (and (= (port-line port) line) (= (port-column port) column))
      (if (eof-object? (read-char port)) (error "no such place") (skip port line column))))
  (catch #t
    (lambda ()
      (call-with-input-file path
        (lambda (port)
          (set-port-encoding! port "UTF-8")
          (skip port (source-line source) (source-column source))
          (let* ((form (read port))
                 (names? (and (pair? form) (memq (car form) '(define define* define-public)) (pair? (cdr form))))
                 (bare (cond ((not names?) form)
                             ((pair? (cadr form)) (cons (cdadr form) (cddr form)))
                             (else (cddr form)))))
            (hash-text (object->string bare))))))
    (lambda _ 0)))

(define (context-base info)
  (debug-context-base (program-debug-info-context info)))

(define (path-of file)
  (and file (or (and (file-exists? file) (canonicalize-path file)) (%search-load-path file) file)))

(define (text word)
  (string-map (lambda (c) (if (char<? c #\space) #\space c)) word))

(define (describe procedure top? program)
  (let* ((info (procedure-info procedure))
         (source (and info (find-source-for-addr (procedure-begin procedure))))
         (path (path-of (and source (source-file source))))
         (own (and info (program-debug-info-name info)))
         ;; What is outside the procedures of a module may have run before the counting began.
         (top? (and top? (not own)))
         (within (and path (not top?) (definition-at path (source-line source))))
         (name (cond (top? "(top level)")
                     ((not info) "(built-in procedures)")
                     ((and (symbol? within) (not (eq? own within)))
                      (string-append (symbol->string within) "." (if own (symbol->string own) "(anonymous)")))
                     (else (or own "(anonymous)")))))
    (if (and path (string-prefix? folder path))
        (list "" "(counter)" interpreter)
        (list (if path (module-name path program) "")
              (if (symbol? name) (symbol->string name) name)
              (cond ((and path top?) (hash-forms (remove defines-procedure? (forms path))))
                    (path (digest path source))
                    (info 0)
                    (else interpreter))))))

;; All code of the file of a procedure, as a function that is not called: a changed procedure may be inlined elsewhere.
(define (whole-file first program)
  (let* ((source (find-source-for-addr (procedure-begin first)))
         (path (path-of (and source (source-file source)))))
    (and path (not (string-prefix? folder path)) (not (string-prefix? (%library-dir) path))
         (list (module-name path program) "(whole file)" (hash-forms (forms path))))))

;; The first procedure of each compiled file, which is the code outside the others.
(define (first-procedures procedures)
  (let ((firsts (make-hash-table)))
    (for-each (lambda (procedure)
                (when (procedure-info procedure)
                  (let ((entry (hashv-create-handle! firsts (context-base (procedure-info procedure)) procedure)))
                    (when (< (procedure-begin procedure) (procedure-begin (cdr entry)))
                      (set-cdr! entry procedure)))))
              procedures)
    (hash-map->list (lambda (base procedure) procedure) firsts)))

;; Whether the program has started threads, which are not counted.
(define threads? #f)

(define (write-counts program)
  (let* ((by-number (lambda (one other) (< (procedure-number one) (procedure-number other))))
         (procedures (sort (hash-map->list (lambda (begin procedure) procedure) procedures-by-begin) by-number))
         (firsts (first-procedures procedures)))
    (call-with-output-file (file-of-process ".new")
      (lambda (port)
        (define (line . words)
          (display (string-join words "\t") port)
          (newline port))
        (line (string-join (list "scruple-calls 2" (if threads? "1" "0") (if (folds-by-call?) "1" "0"))))
        (for-each (lambda (words)
                    (line "f" (number->string (caddr words) 16) (text (car words)) (text (cadr words))))
                  (append (map (lambda (procedure) (describe procedure (memq procedure firsts) program)) procedures)
                          (filter-map (lambda (first) (whole-file first program)) firsts))))
      #:encoding "UTF-8")
    (append-counts (file-of-process ".new"))
    (rename-file (file-of-process ".new") (file-of-process ".calls"))
    (delete-file (file-of-process ".running"))))

(define (counted thunk)
  (let ((program (path-of (car (command-line)))))
    (mark)
    (dynamic-wind
      (lambda () (set-vm-trace-level! 1))
      (lambda () (call-with-vm thunk))
      (lambda () (set-vm-trace-level! 0) (write-counts program)))))

(define (wrap module name wrapper)
  (module-set! module name (wrapper (module-ref module name))))

;; Code that Guile interprets has no procedures of its own, so all files are compiled, into the folder of the counts.
(wrap shell 'compile-shell-switches
      (lambda (compile)
        (lambda words
          (let ((form (apply compile words)))
            (set! %compile-fallback-path (string-append folder "/compiled"))
            `((@@ (scruple count) counted)
              (lambda () (set! %load-should-auto-compile #t) ,form))))))
(wrap (resolve-module '(system base compile)) 'compile-file
      (lambda (compile) (lambda words (paused (lambda () (apply compile words))))))
(wrap (resolve-module '(ice-9 threads)) 'call-with-new-thread
      (lambda (start)
        (lambda words
          (set! threads? #t)
          (apply start words))))
(wrap (resolve-module '(guile)) 'primitive-fork
      (lambda (fork)
        (lambda ()
          (let ((child (fork)))
            (when (= child 0) (clear-counts!) (mark))
            child))))

(set-default-vm-engine! 'debug)
(set-vm-engine! 'debug)
(vm-add-next-hook! count!)
