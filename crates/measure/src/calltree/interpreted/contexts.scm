;; The calling contexts of a program, and the procedure that is called for each instruction. It alone has to be fast, so
;; only this file is compiled with optimisations, which take most of the time until the program begins.

(define-module (scruple contexts)
  #:use-module (system vm frame)
  #:use-module (system vm debug)
  #:export (all-contexts count! root procedures-by-begin
            procedure-number procedure-begin procedure-info
            context-cost context-calls context-recursive context-procedure context-parent))

;; Procedures and contexts are vectors, which are compiled in less time than records, and of which a field can be increased.
(define-syntax-rule (define-fields maker (field index) ...)
  (begin (define (maker . values) (list->vector values))
         (define-syntax-rule (field object) (vector-ref object index)) ...))

;; A procedure: its number, the address of its first instruction, what is known of it.
(define-fields make-procedure (procedure-number 0) (procedure-begin 1) (procedure-info 2))
(define procedures-by-begin (make-hash-table 1000))
(define procedures-by-ip (make-hash-table 10000))

(define-fields make-context
  (context-cost 0) (context-calls 1) (context-recursive 2) (context-procedure 3) (context-children 4)
  (context-parent 5))
(define root (make-context 0 1 0 #f (make-hash-table) #f))
(define contexts '())
;; All contexts, the latest first. Guile 3.0.8 takes an exported variable for a constant though it is set.
(define (all-contexts) contexts)

(define-syntax-rule (increase! context index)
  (vector-set! context index (+ 1 (vector-ref context index))))

;; The frames that are executing, the innermost first: pairs of an address and a context.
(define stack '())

(define (procedure-of ip)
  (let ((entry (hashv-create-handle! procedures-by-ip ip #f)))
    (or (cdr entry)
        (let* ((info (find-program-debug-info ip))
               (begin (if info (program-debug-info-addr info) 0))
               (known (hashv-create-handle! procedures-by-begin begin #f)))
          (unless (cdr known)
            (set-cdr! known (make-procedure (hash-count (const #t) procedures-by-begin) begin info)))
          (set-cdr! entry (cdr known))
          (cdr known)))))

(define (enter! parent procedure)
  (let* ((entry (hashv-create-handle! (context-children parent) (procedure-begin procedure) #f)))
    (unless (cdr entry)
      (set-cdr! entry
                (let look ((above parent))
                  (cond ((eq? above root)
                         (let ((new (make-context 0 0 0 procedure (make-hash-table 7) parent)))
                           (set! contexts (cons new contexts))
                           new))
                        ((eq? (context-procedure above) procedure) above)
                        (else (look (context-parent above)))))))
    (cdr entry)))

;; A tail call replaces the procedure of a frame, and is a call by the procedure that was there. After a jump out of
;; procedures, or into a continuation, the frames that no longer exist are left, and the executing one is entered
;; without a call.
;; Collections are disabled here. With them, programs fail with values of a wrong type just after calls, presumably
;; because the collector does not see the values that a call has just returned.
(define (count! frame)
  (gc-disable)
  (let* ((ip (frame-instruction-pointer frame))
         (address (frame-address frame))
         (procedure (procedure-of ip))
         (begins? (= ip (procedure-begin procedure))))
    (let leave ()
      (when (and (pair? stack) (> (caar stack) address))
        (set! stack (cdr stack))
        (leave)))
    (when (or (null? stack) (not (= (caar stack) address)) begins?
              (not (eq? (context-procedure (cdar stack)) procedure)))
      (let* ((parent (if (pair? stack) (cdar stack) root))
             (context (enter! parent procedure)))
        (when (and (pair? stack) (= (caar stack) address))
          (set! stack (cdr stack)))
        (when begins?
          (if (eq? (context-parent context) parent) (increase! context 1) (increase! context 2)))
        (set! stack (acons address context stack))))
    (increase! (cdar stack) 0))
  (gc-enable))
