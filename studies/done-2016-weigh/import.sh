# import.sh NAME: runs a suite under weigh itself and reads its table. weigh ends with an error where a check fails.
set -eu
"./$1-weigh" >"$1.txt" || test -s "$1.txt"
scruple store import --format weigh --label "weigh-$1" "$1.txt" >&2
scruple show "weigh-$1" --json
