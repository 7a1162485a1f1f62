# load.sh PATH OPTION…: loads one of the pages of server.scm, on a port that nobody listens on.
set -eu
page=$1
shift
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
scruple load "http://127.0.0.1:$port$page" --name guile "$@" --json -- \
    guile --no-auto-compile -c '(load-compiled "server.go")' "$port"
