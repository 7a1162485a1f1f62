# guild.sh OPTION…: what `guild compile OPTION…` does, which Debian has in a package of its own.
exec guile --no-auto-compile -c '(apply (@ (scripts compile) compile) (cdr (command-line)))' "$@"
