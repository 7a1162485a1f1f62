;;; Declares cases for Scruple to weigh.  Scruple starts the program, asks it for batches over two pipes and does all
;;; sampling and statistics.  This file names the cases, loops, and reads clocks and counters.
;;;
;;;   (use-modules (scruple))
;;;   (bgroup "fnv"
;;;     (bench "one step" (x 7) #:bytes 4 (step x)))
;;;   (bench-main)

(define-module (scruple)
  #:use-module (ice-9 atomic)
  #:use-module (ice-9 exceptions)
  #:use-module (ice-9 format)
  #:use-module (ice-9 match)
  #:use-module (ice-9 rdelim)
  #:use-module (ice-9 textual-ports)
  #:use-module (ice-9 threads)
  #:use-module (rnrs bytevectors)
  #:use-module (srfi srfi-1)
  #:use-module (srfi srfi-9)
  #:use-module (system foreign)
  #:export (bench bench-each bench-skip bgroup bench-main declare-case))

;;; Declaring.

;; (bench NAME (VARIABLE INPUT) OPTION ... BODY ...) declares a case.  INPUT is evaluated outside the timed part, at first
;; use and after each reset; each iteration evaluates BODY with VARIABLE bound to the result.  The binding may be ().
;; Options: #:params '(("n" . 10)), #:bytes N or #:items N (per iteration), #:threads '(1 2), #:group, #:tags '("slow"),
;; #:budgets '(("alloc.bytes" ("max" . 320))), #:fresh? #t, #:max-iterations N, #:time-limit SECONDS,
;; #:teardown (lambda (input) ...), #:check (lambda (result) #t, or a string that says what is wrong), #:digest (lambda
;; (result) a short string for comparing the results of two versions), #:timing "throughput" if iterations must not
;; wait for each other; by default they do if argument and result are one number of the same kind each.
(define-syntax bench
  (lambda (form) (expand form #f)))

;; Like bench, but every iteration has a new input, made before the timed part.
(define-syntax bench-each
  (lambda (form) (expand form #t)))

(eval-when (expand load eval)
  (define (expand form each?)
    (define source
      (match (syntax-source form)
        ((? pair? where)
         (format #f "~a:~a" (basename (or (assq-ref where 'filename) "")) (1+ (assq-ref where 'line))))
        (_ #f)))
    (define (declaration name variable input rest)
      (let next ((rest rest) (options '()))
        (syntax-case rest ()
          ((key value . more) (keyword? (syntax->datum #'key)) (next #'more (cons* #'key #'value options)))
          (body
           #`(declare-case #,name #,each? (lambda () #,input) (lambda (#,variable) . body) #,source #,@options)))))
    (syntax-case form ()
      ((_ name () . rest) (declaration #'name #'ignored #f #'rest))
      ((_ name (variable input) . rest) (declaration #'name #'variable #'input #'rest)))))

;; Puts NAME/ before the names of the cases that the forms declare, and them into this group, also if a slash is in their
;; own names.
(define-syntax-rule (bgroup name form ...)
  (parameterize ((prefix (string-append (prefix) name "/"))) form ...))

(define prefix (make-parameter ""))

(define-record-type <case>
  (make-case spec make body teardown check digest most each? asked input ready? loop)
  case?
  (spec case-spec)
  (make case-make)
  (body case-body)
  (teardown case-teardown)
  (check case-check)
  (digest case-digest)
  (most case-most)
  (each? case-each?)
  (asked case-asked)
  (input case-input set-case-input!)
  (ready? case-ready? set-case-ready?!)
  (loop case-loop set-case-loop!))

(define declared '())
(define cases #())

(define (case-id c) (assoc-ref (case-spec c) "id"))

(define* (declare-case name each? make body source #:key group params bytes items threads budgets tags fresh?
                       (max-iterations (and each? 1000)) time-limit teardown check digest timing)
  (define id (if (null? declared) 0 (1+ (case-id (car declared)))))
  (define spec
    `(("id" . ,id) ("name" . ,(string-append (prefix) name)) ("shape" . ,(if each? "each" "call"))
      ("group" . ,(or group (and (not (string-null? (prefix))) (string-drop-right (prefix) 1))))
      ("params" . ,params) ("threads" . ,(and threads (list->vector threads)))
      ("throughput" . ,(cond (bytes `(("unit" . "bytes") ("amount" . ,bytes)))
                             (items `(("unit" . "items") ("amount" . ,items)))
                             (else #f)))
      ("budgets" . ,budgets) ("tags" . ,(and tags (list->vector tags))) ("fresh" . ,fresh?)
      ("per_iteration_input" . ,each?) ("max_iterations" . ,max-iterations)
      ("time_limit" . ,(and time-limit (inexact->exact (round (* time-limit 1000000000)))))
      ("timing" . ,(if each? "throughput" timing)) ("checked" . ,(and check #t)) ("source" . ,source)))
  (set! declared (cons (make-case (filter cdr spec) make body teardown check digest max-iterations each? timing #f #f #f)
                       declared)))

;;; Measuring.

;; The body is called through a variable, so that the compiler can neither inline, hoist nor drop it.  The tare is the
;; same loop with the identity.
(define (loop n body input)
  (let next ((i 0) (result #f))
    (if (< i n) (next (1+ i) (body input)) result)))

;; For latency each argument is computed from the input and the previous result.  Zero is a variable, so that the
;; compiler does not know it.
(define zero 0)
(define (chain-whole n body input)
  (let next ((i 0) (result 0))
    (if (< i n) (next (1+ i) (body (+ input (logand result zero)))) result)))
(define (chain-real n body input)
  (let ((zero (exact->inexact zero)))
    (let next ((i 0) (result zero))
      (if (< i n) (next (1+ i) (body (+ input (* result zero)))) result))))

;; Chooses a case's loop by its first result: iterations can wait for each other if argument and result are one fixnum
;; each, or one finite inexact real number each.
(define (loop-for c result)
  (define (both? is?) (and (is? (case-input c)) (is? result)))
  (define fixnum? (lambda (x) (and (exact-integer? x) (<= most-negative-fixnum x most-positive-fixnum))))
  (define chain
    (cond ((both? fixnum?) chain-whole)
          ((both? (lambda (x) (and (real? x) (inexact? x) (finite? x)))) chain-real)
          (else #f)))
  (when (and (equal? (case-asked c) "latency") (not chain))
    (error "there is no latency: argument and result must be one fixnum, or one inexact number, each"))
  (if (equal? (case-asked c) "throughput") loop (or chain loop)))

(define (loop-each inputs body)
  (let next ((inputs inputs) (result #f))
    (if (pair? inputs) (next (cdr inputs) (body (car inputs))) result)))

(define (same x) x)
(define sink #f)

;; Guile's own functions do not fit: its real time follows the wall clock, which may be set, and its run time is the
;; process's.
(define clock-gettime
  (pointer->procedure int (dynamic-func "clock_gettime" (dynamic-link)) (list int '*)))
(define CLOCK_MONOTONIC 1)
(define CLOCK_THREAD_CPUTIME_ID 3)

(define (time-of bytes)
  (+ (* (bytevector-s64-native-ref bytes 0) 1000000000) (bytevector-s64-native-ref bytes 8)))

;; One thread's part of a batch: a procedure that runs it and returns start, end and CPU time in a list.
(define (lane c kind n)
  (let* ((body (if (string=? kind "c") (case-body c) same))
         (inputs (and (case-each? c) (map-in-order (lambda (_) ((case-make c))) (iota n))))
         (input (case-input c))
         (stamps (map (lambda (_) (make-bytevector 16)) (iota 4)))
         (around (or (case-loop c) loop))
         (run (if inputs (lambda () (loop-each inputs body)) (lambda () (around n body input)))))
    (match (map bytevector->pointer stamps)
      ((cpu start end used)
       (lambda ()
         (clock-gettime CLOCK_THREAD_CPUTIME_ID cpu)
         (clock-gettime CLOCK_MONOTONIC start)
         (let ((result (run)))
           (clock-gettime CLOCK_MONOTONIC end)
           (clock-gettime CLOCK_THREAD_CPUTIME_ID used)
           (set! sink result)
           (match (map time-of stamps)
             ((cpu start end used) (list start end (- used cpu) result)))))))))

;; A batch on one or several threads; this one is the first, and the others wait at a barrier.
(define (batch c kind n threads)
  (define-values (here calls done told) (apply values (map make-atomic-box '(0 0 0 0))))
  (define-values (cores results waits) (apply values (map (lambda (x) (make-vector threads x)) '(-1 #f #f))))
  (define lanes (map-in-order (lambda (_) (lane c kind n)) (iota threads)))
  (define (run i lane) (vector-set! results i (attempt lane values)))
  (define (note-wait! i) (vector-set! waits i (- (waited-so-far) (or (vector-ref waits i) 0))))
  (for-each (lambda (i lane)
              (call-with-new-thread
               (lambda ()
                 (note-wait! i) (increase! here)
                 (stand calls (rest-for cores i))
                 (run i lane) (increase! done)
                 (note-wait! i) (increase! told))))
            (iota (1- threads) 1) (cdr lanes))
  (await here (1- threads))
  (when (> threads 1) (note-wait! 0))
  (let ((before (gc-stats)))
    (open calls (1- threads) (rest-for cores 0))
    (run 0 (car lanes))
    (await done (1- threads))
    (let* ((after (gc-stats))
           (rise (lambda (key) (- (assq-ref after key) (assq-ref before key))))
           (results (vector->list results)))
      (when (> threads 1) (note-wait! 0) (await told (1- threads)))
      (for-each (match-lambda ((and ('refusal . _) skipped) (raise-exception skipped)) ((? string? why) (error why)) (_ #t))
                results)
      (unless (or (case-loop c) (case-each? c) (string=? kind "t"))
        (set-case-loop! c (loop-for c (fourth (car results)))))
      `(("id" . ,(case-id c)) ("kind" . ,kind) ("iterations" . ,(* n threads))
        ("time.wall" . ,(- (apply max (map second results)) (apply min (map first results))))
        ("time.cpu" . ,(apply + (map third results)))
        ,@(cond ((case-loop c) => (lambda (around) `(("timing" . ,(if (eq? around loop) "throughput" "latency")))))
                (else '()))
        ("alloc.bytes" . ,(rise 'heap-total-allocated)) ("gc.count" . ,(rise 'gc-times))
        ("gc.time" . ,(rise 'gc-time-taken))
        ,@(if (= threads 1)
              (own-thread)
              `(("threads" . ,(list->vector
                               (map (match-lambda*
                                      (((start end cpu _) waited)
                                       `(("iterations" . ,n) ("time.wall" . ,(- end start)) ("time.cpu" . ,cpu)
                                         ,@(if (nan? waited) '() `(("waited" . ,waited))))))
                                    results (vector->list waits))))))))))

;; The kernel's number of this thread, as part of an entry; nothing if the kernel does not tell.
(define (own-thread)
  (match (false-if-exception (string->number (basename (readlink "/proc/thread-self"))))
    (#f '())
    (number `(("thread" . ,number)))))

;; How long this thread was ready but waited for a core so far, in ns; not a number if the kernel does not tell.
(define (waited-so-far)
  (or (false-if-exception (call-with-input-file "/proc/thread-self/schedstat" (lambda (f) (read f) (read f)))) +nan.0))

;; The barrier opens when all threads have a core at the same time, so that none starts late: when all others have answered
;; a call of the first within 5 us.  After 5 ms it opens in any case.  A call is a number and, in its last eight bits, how
;; many threads have answered it; -1 opens the barrier.
(define (open calls others rest)
  (let spin ((call 256) (until (+ (now) 5000000)))
    (unless (or (zero? others) (answered? calls call others) (> (now) until))
      (rest)
      (spin (+ call 256) until)))
  (atomic-box-set! calls -1))

(define (answered? calls call others)
  (atomic-box-set! calls call)
  (let ((late (+ (now) 5000)))
    (let spin ()
      ;; The clock is read after the answers: this thread may have lost its core in between.
      (let* ((all? (eqv? (atomic-box-ref calls) (+ call others))) (in-time? (< (now) late)))
        (cond (all? in-time?) (in-time? (spin)) (else #f))))))

(define (stand calls rest)
  (let spin ((last 0))
    (let ((call (atomic-box-compare-and-swap! calls 0 0)))
      (cond ((eqv? call -1) #t)
            ((= (ash call -8) last) (rest) (spin last))
            ((eqv? (atomic-box-compare-and-swap! calls call (1+ call)) call) (spin (ash call -8)))
            (else (spin last))))))

;; A procedure that thread i calls while it spins.  Every 0.1 ms the thread naps, so that other programs let it run when it
;; is awake.
(define (rest-for cores i)
  (let ((since (now)))
    (leave-taken-core! cores i)
    (lambda ()
      (when (> (- (now) since) 100000)
        (usleep 50)
        (leave-taken-core! cores i)
        (set! since (now))))))

;; Makes thread i leave its core if a thread before it is there: the kernel chooses one of the others.
(define (leave-taken-core! cores i)
  (vector-set! cores i (this-core))
  (let ((before (map (lambda (j) (vector-ref cores j)) (iota i))))
    (when (and (memv (vector-ref cores i) before) (defined? 'setaffinity))
      (let* ((all (getaffinity 0)) (other (bitvector-copy all)))
        (for-each (lambda (core) (when (< -1 core (bitvector-length other)) (bitvector-clear-bit! other core))) before)
        (unless (zero? (bitvector-count other)) (setaffinity 0 other) (setaffinity 0 all))))))

(define this-core
  (let ((found (false-if-exception (dynamic-func "sched_getcpu" (dynamic-link)))))
    (if found (pointer->procedure int found '()) (const -1))))

(define (now)
  (let ((stamp (make-bytevector 16)))
    (clock-gettime CLOCK_MONOTONIC (bytevector->pointer stamp))
    (time-of stamp)))

(define (increase! box)
  (let ((n (atomic-box-ref box)))
    (unless (eq? (atomic-box-compare-and-swap! box n (1+ n)) n) (increase! box))))

;; The compiler could hoist a plain reference out of the loop, but not an exchange of n for itself.
(define (await box n)
  (let spin ((turns 1))
    (unless (eq? (atomic-box-compare-and-swap! box n n) n)
      (when (zero? (logand turns 65535)) (yield))
      (spin (1+ turns)))))

;;; Answering.

;; Answers the host until it sends bye, and does not return.  Without a host it runs scruple on this program.
(define (bench-main)
  (set! cases (list->vector (reverse declared)))
  (refuse-duplicates)
  (call-with-values connect
    (lambda (in out)
      (let next ()
        (match (read-line in 'split)
          ((line . #\newline)
           (when (string=? line "cases")
             (vector-for-each (lambda (c) (write-line `(("case" . ,(case-spec c))) out)) cases))
           (when (string=? line "bye") (release-all))
           (let ((reply (answer line)))
             (write-line (if (child?) (came-back reply) reply) out)
             (force-output out)
             (cond ((child?) (primitive-_exit 1))
                   ((string=? line "bye") (primitive-exit 0))
                   (else (next)))))
          (_ (release-all) (primitive-exit 0)))))))

(define (vector-for-each f v) (for-each f (vector->list v)))

(define (write-line object port)
  (write-json object port)
  (newline port))

;; The current case, for the reply to an exception in it.
(define current #f)

;; Whether this is a child process that a case has forked.  One that comes back from the case must not answer as well.
(define process (getpid))
(define (child?) (not (= (getpid) process)))

(define (ends-child? e) (and (child?) (exception? e) (eq? (exception-kind e) 'quit)))

(define (came-back reply)
  (let ((why (assoc-ref reply "error")))
    `(("error" . ,(format #f "a child that the case forked ~a; it must end in the case, as by primitive-_exit"
                          (if why (string-append "left it with " why) "returned from it")))
      ("kind" . "exception") ("id" . ,(case-id current)) ("fatal" . #t))))

;; If a request cannot be carried out, the code raises a list of refusal and the error reply.
(define (refuse kind why . more)
  (raise-exception `(refusal ("error" . ,why) ("kind" . ,kind) . ,more)))

;; Ends the case that runs, because it cannot run here: Scruple shows it as skipped, with this reason.
(define (bench-skip why)
  (refuse "skipped" why `("id" . ,(case-id current))))

(define (answer line)
  (with-exception-handler
      (match-lambda
        (('refusal . reply) reply)
        ((? ends-child? e) (raise-exception e))
        (e `(("error" . ,(message e)) ("kind" . "exception") ("id" . ,(case-id current)))))
    (lambda ()
      (match (string-split line #\space)
        (("cases") `(("end" . "cases") ("count" . ,(vector-length cases))))
        (("bye") '(("bye" . #t)))
        (("loaded") (loaded))
        (("hello" version) (number version) hello)
        (("block" word . words) (block (cons word words)))
        (("once" id) (set! current (find-case id)) (once current))
        (("reset" id)
         (set! current (find-case id))
         (release current)
         (prepare current)
         `(("reset" . ,(case-id current))))
        (_ (refuse "request" (string-append "unknown request: " line)))))
    #:unwind? #t))

(define (attempt thunk otherwise)
  (define (reason e) (match e (('refusal . _) e) (_ (message e))))
  (with-exception-handler (lambda (e) (if (ends-child? e) (raise-exception e) (otherwise (reason e)))) thunk #:unwind? #t))

(define (message e)
  (string-trim-both
   (call-with-output-string
     (lambda (port)
       (if (and (exception? e) (exception-with-message? e))
           (let ((irritants (if (exception-with-irritants? e) (exception-irritants e) '())))
             (display (attempt-format (exception-message e) irritants) port))
           (print-exception port #f (exception-kind e) (exception-args e)))))))

(define (attempt-format text irritants)
  (or (false-if-exception (apply format #f text irritants))
      (format #f "~a~{ ~s~}" text irritants)))

(define hello
  `(("scruple" . 1) ("sdk" . "scruple-guile 0.1.0") ("language" . "scheme")
    ("runtime" . ,(string-append "guile " (version)))
    ("clocks" . (("time.wall" . (("resolution" . 1))) ("time.cpu" . (("resolution" . 1) ("scope" . "thread")))))
    ("features" . #("threads" "loaded"))
    ("counters" . #((("key" . "alloc.bytes") ("unit" . "bytes") ("quality" . "near")
                     ("granularity" . 4096)
                     ("title" . "allocated, counted by blocks of some 4 KiB"))
                    (("key" . "gc.count") ("unit" . "count") ("quality" . "near"))
                    (("key" . "gc.time") ("unit" . "ns") ("quality" . "near"))))))

(define (number word)
  (if (and (<= 1 (string-length word) 15) (string-every char-set:digit word) (string-every char-set:ascii word))
      (string->number word)
      (refuse "request" (string-append "not a number: " word))))

(define (find-case word)
  (let ((id (number word)))
    (if (< id (vector-length cases))
        (vector-ref cases id)
        (refuse "unknown-case" (string-append "no case " word) `("id" . ,id)))))

(define (prepare c)
  (unless (case-ready? c)
    (unless (case-each? c) (set-case-input! c ((case-make c))))
    (set-case-ready?! c #t)))

(define (release c)
  (when (case-ready? c)
    (set-case-ready?! c #f)
    (when (case-teardown c) ((case-teardown c) (case-input c)))
    (set-case-input! c #f)))

(define (release-all)
  (vector-for-each
   (lambda (c)
     (attempt (lambda () (release c))
              (lambda (why) (format (current-error-port) "~a: teardown: ~a~%" (assoc-ref (case-spec c) "name") why))))
   cases))

(define (once c)
  (prepare c)
  (let* ((result ((case-body c) (if (case-each? c) ((case-make c)) (case-input c))))
         (digest (and (case-digest c) ((case-digest c) result)))
         (verdict (or (not (case-check c)) ((case-check c) result))))
    `(("once" . ,(case-id c)) ("ok" . ,(eq? verdict #t)) ("checked" . ,(and (case-check c) #t))
      ,@(if digest `(("digest" . ,digest)) '())
      ,@(if (eq? verdict #t) '() `(("why" . ,(if (string? verdict) verdict (format #f "the check says ~s" verdict))))))))

(define (block words)
  (let ((batches (map-in-order parse words)))
    (for-each (match-lambda ((c . _) (set! current c) (prepare c))) batches)
    `(("block" . ,(list->vector
                   (map-in-order (match-lambda ((c kind n threads) (set! current c) (batch c kind n threads)))
                                 batches)))
      ("lost" . 0))))

(define (parse word)
  (match (append (string-split word #\:) '("1"))
    ((id (and kind (or "c" "t")) iterations threads . (or () ("1")))
     (let ((c (find-case id))
           (n (number iterations))
           (threads (number threads)))
       (when (or (< n 1) (< threads 1) (and (case-most c) (> n (case-most c))))
         (refuse "request" (string-append "iterations or threads out of bounds: " word) `("id" . ,(case-id c))))
       (list c kind n threads)))
    (_ (refuse "request" (string-append "not a batch: " word)))))

;;; The code that this process has loaded.

;; The files that were loaded by other means than as modules.
(define loaded-files '())
(let ((before %load-hook))
  (set! %load-hook (lambda (file) (set! loaded-files (cons file loaded-files)) (when before (before file)))))

;; Names the files that hold the code: compiled files, which are mapped, and others that are mapped as executable.  It is an
;; error if some code is in none of them: code that was compiled while the program ran, or is interpreted.
(define (loaded)
  (define image (@ (system vm loader) find-mapped-elf-image))
  (define (start-of-code f)
    (and=> (and (program? f) (image (program-code f))) bytevector->pointer))
  (define mapped
    (map (match-lambda ((mode . file) (cons mode (string-join file " "))))
         (filter-map (lambda (line)
                       (match (string-tokenize line)
                         ((_ mode _ _ _ (and file (? (lambda (f) (string-prefix? "/" f)))) . rest) (cons* mode file rest))
                         (_ #f)))
                     (string-split (call-with-input-file "/proc/self/maps" get-string-all #:encoding "UTF-8") #\newline))))
  (define (unique files) (sort (delete-duplicates files) string<?))
  (define (compiled? file) (string-suffix? ".go" file))
  (define compiled (unique (filter compiled? (map cdr mapped))))
  ;; Compiled files lie at the place of the source, or at its place in a folder of the load path, below another folder.
  (define (has-compiled-file? source)
    (let* ((folder (find (lambda (folder) (string-prefix? (string-append folder "/") source)) %load-path))
           (name (cond (folder (string-drop source (string-length folder)))
                       ((string-prefix? "/" source) source)
                       (else (string-append "/" source))))
           (bare (string-drop-right name (string-length ".scm"))))
      (any (lambda (file) (or (string-suffix? (string-append name ".go") file) (string-suffix? (string-append bare ".go") file)))
           compiled)))
  (define (expect-compiled source)
    (when (and source (string-suffix? ".scm" source) (not (has-compiled-file? source)))
      (refuse "unsupported" (string-append source " is interpreted"))))
  (unless (= (length compiled) (length ((@ (system vm loader) all-mapped-elf-images))))
    (refuse "unsupported" "some code was compiled while the program ran"))
  (for-each expect-compiled (append loaded-files (files-of-modules)))
  (vector-for-each
   (lambda (c)
     (when (equal? (start-of-code (case-body c)) (start-of-code primitive-eval))
       (refuse "unsupported" (string-append (assoc-ref (case-spec c) "name") " is interpreted"))))
   cases)
  (let ((executable (filter-map (match-lambda ((mode . file) (and (string-index mode #\x) file))) mapped)))
    `(("loaded" . ,(list->vector (unique (append compiled executable)))))))

(define program? (@ (system vm program) program?))
(define program-code (@ (system vm program) program-code))

(define (files-of-modules)
  (define seen (make-hash-table))
  (let walk ((module (resolve-module '() #f)))
    (unless (hashq-ref seen module)
      (hashq-set! seen module #t)
      (hash-for-each (lambda (_ below) (walk below)) (module-submodules module))))
  (filter-map module-filename (hash-map->list (lambda (module _) module) seen)))

;;; Pipes and processes.

(define (connect)
  (let ((from (getenv "SCRUPLE_BENCH_IN"))
        (to (getenv "SCRUPLE_BENCH_OUT")))
    (unless (or from to) (by-hand))
    (unless (and from to) (leave "only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set"))
    (unsetenv "SCRUPLE_BENCH_IN")
    (unsetenv "SCRUPLE_BENCH_OUT")
    (let* ((in (attempt (lambda () (open-input-file from #:encoding "UTF-8")) leave))
           (out (attempt (lambda () (open-output-file to #:encoding "UTF-8")) leave)))
      (for-each (lambda (port)
                  (set-port-conversion-strategy! port 'substitute)
                  (fcntl port F_SETFD FD_CLOEXEC))
                (list in out))
      (setvbuf out 'block 65536)
      (values in out))))

;; Replaces a program that was started without a host by scruple, which starts it again.
(define (by-hand)
  (let ((itself (string-split (string-trim-right (call-with-input-file "/proc/self/cmdline" get-string-all
                                                   #:encoding "UTF-8")
                                                 #\nul)
                              #\nul)))
    (unless (getenv "SCRUPLE_BENCH_HAND")
      (setenv "SCRUPLE_BENCH_HAND" "1")
      ;; Arguments are encoded by the locale.
      (false-if-exception (setlocale LC_CTYPE "C.UTF-8"))
      (false-if-exception (apply execlp "scruple" "scruple" "bench" "--" itself)))
    (leave (string-append "this is a bench program; run it with: scruple bench -- " (string-join itself " ")))))

(define (refuse-duplicates)
  (let ((seen (make-hash-table)))
    (vector-for-each
     (lambda (c)
       (let* ((name (assoc-ref (case-spec c) "name"))
              (params (or (assoc-ref (case-spec c) "params") '()))
              (key (cons name (sort params (lambda (a b) (string<? (car a) (car b)))))))
         (when (hash-ref seen key) (leave (format #f "two cases are called ~s with the same params" name)))
         (hash-set! seen key #t)))
     cases)))

(define (leave why)
  (format (current-error-port) "~a: ~a~%" (basename (car (command-line))) why)
  (primitive-exit 2))

;; Objects are association lists, arrays are vectors.
(define (write-json value port)
  (match value
    (#t (display "true" port))
    (#f (display "false" port))
    ((? string?) (write-json-string value port))
    ((? symbol?) (write-json-string (symbol->string value) port))
    ((? exact-integer?) (display value port))
    ((? real?) (display (if (finite? value) (exact->inexact value) "null") port))
    ((? vector?)
     (write-parts value "[" "]" write-json port))
    (_
     (write-parts (list->vector value) "{" "}"
                  (lambda (pair port)
                    (write-json (car pair) port)
                    (display ":" port)
                    (write-json (cdr pair) port))
                  port))))

(define (write-parts parts open close write-part port)
  (display open port)
  (let next ((i 0))
    (when (< i (vector-length parts))
      (unless (zero? i) (display "," port))
      (write-part (vector-ref parts i) port)
      (next (1+ i))))
  (display close port))

(define (write-json-string text port)
  (display "\"" port)
  (string-for-each
   (lambda (c)
     (cond ((memv c '(#\" #\\)) (display "\\" port) (display c port))
           ((char<? c #\space) (format port "\\u~4,'0x" (char->integer c)))
           (else (display c port))))
   text)
  (display "\"" port))
