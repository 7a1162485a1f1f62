;;; guile server.scm PORT: the three pages. `/` says hello, `/headers` answers with a table of the request's headers, made
;;; as HTML for each request, and `/page` with 50 KB that are the same each time.

(use-modules (sxml simple) (web request) (web response) (web server))

(define page (make-string 50000 #\a))

(define (headers request)
  `(html
    (head (title "Headers"))
    (body
     (h1 "Headers")
     (table
      ,@(map (lambda (header)
               `(tr (td ,(symbol->string (car header))) (td ,(object->string (cdr header)))))
             (request-headers request))))))

(define (handler request body)
  (let ((path ((@ (web uri) uri-path) (request-uri request))))
    (cond
     ((string=? path "/headers")
      (values '((content-type . (text/html))) (lambda (port) (sxml->xml (headers request) port))))
     ((string=? path "/page") (values '((content-type . (text/plain))) page))
     (else (values '((content-type . (text/plain))) "Hello, World!")))))

(run-server handler 'http `(#:port ,(string->number (cadr (command-line)))))
