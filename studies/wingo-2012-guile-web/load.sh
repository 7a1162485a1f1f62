# load.sh PATH OPTION…: loads one of the pages of server.scm, on a port on which no process listens. The generator asks for a
# real-time priority, so that it is not late on a busy machine.
set -eu
page=$1
shift
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
scruple load --priority "http://127.0.0.1:$port$page" --name guile "$@" --json -- \
    guile --no-auto-compile -c '(load-compiled "server.go")' "$port"
