;; N conses of 16 bytes, the last 10,000 kept alive.
(defun run (n)
  (declare (fixnum n) (optimize speed))
  (let ((ring (make-array 10000)))
    (dotimes (i n) (setf (svref ring (mod i 10000)) (cons i i)))
    (print (car (svref ring 7)))))
(run (parse-integer (car (last sb-ext:*posix-argv*))))
(terpri)
