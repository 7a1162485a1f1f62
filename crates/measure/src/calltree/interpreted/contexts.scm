;; The calling contexts of a program, and the procedure that is called for each instruction. It alone has to be fast, so
;; only this file is compiled with optimisations, which take most of the time until the program begins.

(define-module (scruple contexts)
  #:use-module (system vm frame)
  #:use-module (system vm debug)
  #:export (all-contexts count! root procedures-by-begin
            procedure-number procedure-begin procedure-info
            context-cost context-procedure context-edges context-parent most-by-call))

;; Procedures and contexts are vectors, which are compiled in less time than records, and of which a field can be increased.
(define-syntax-rule (define-fields maker (field index) ...)
  (begin (define (maker . values) (list->vector values))
         (define-syntax-rule (field object) (vector-ref object index)) ...))

;; A procedure: its number, the address of its first instruction, what is known of it.
(define-fields make-procedure (procedure-number 0) (procedure-begin 1) (procedure-info 2))
(define procedures-by-begin (make-hash-table 1000))
(define procedures-by-ip (make-hash-table 10000))

;; An edge is a pair of the context to which it leads and its calls.
(define-fields make-context (context-cost 0) (context-procedure 1) (context-edges 2) (context-parent 3))
(define root (make-context 0 #f (make-hash-table) #f))
(define contexts '())
(define context-count 0)
;; With more contexts than this, recursion leads back to the procedure's context, whoever calls it: procedures that call
;; each other have as many paths as there are orders of their calls.
(define most-by-call 100000)
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

;; The edge from a context to a procedure.
(define (edge-to parent procedure)
  (let* ((entry (hashv-create-handle! (context-edges parent) (procedure-begin procedure) #f)))
    (unless (cdr entry)
      (set-cdr! entry (cons (destination parent procedure) 0)))
    (cdr entry)))

;; The context to which a new edge leads. A recursive call leads back to a context that the same procedure has called, so
;; that its cost is apart from that of the outer call.
(define (destination parent procedure)
  (let look ((above parent))
    (cond ((eq? above root)
           (let ((new (make-context 0 procedure (make-hash-table 7) parent)))
             (set! contexts (cons new contexts))
             (set! context-count (+ 1 context-count))
             new))
          ((and (eq? (context-procedure above) procedure)
                (or (eq? (context-procedure (context-parent above)) (context-procedure parent))
                    (>= context-count most-by-call)))
           above)
          (else (look (context-parent above))))))

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
             (edge (edge-to parent procedure)))
        (when (and (pair? stack) (= (caar stack) address))
          (set! stack (cdr stack)))
        (when begins?
          (set-cdr! edge (+ 1 (cdr edge))))
        (set! stack (acons address (car edge) stack))))
    (increase! (cdar stack) 0))
  (gc-enable))
