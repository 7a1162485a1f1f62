;; Reads SBCL's counters when the image exits. Nothing here may make a program fail.
(ignore-errors
 (let ((before (sb-ext:get-bytes-consed)) (time sb-ext:*gc-run-time*) (count 0) (live 0)
       (folder (directory-namestring *load-truename*)))
   (push (lambda ()
           (incf count)
           (setf live (max live (sb-kernel:dynamic-usage))))
         sb-ext:*after-gc-hooks*)
   (push (lambda ()
           (ignore-errors
            (let ((consed (- (sb-ext:get-bytes-consed) before)))
              (with-open-file (answer (format nil "~asbcl-~d.txt" folder (sb-unix:unix-getpid))
                                      :direction :output :if-exists :supersede)
                (format answer "pid=~d~%version=~a~%consed=~d~%gc_us=~d~%cycles=~d~%live=~d~%"
                        (sb-unix:unix-getpid) (lisp-implementation-version) consed
                        (- sb-ext:*gc-run-time* time) count live)))))
         sb-ext:*exit-hooks*)))
