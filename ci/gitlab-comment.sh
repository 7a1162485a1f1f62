#!/usr/bin/env bash
# Writes a file as the one note of a merge request that begins with the same hidden line.
#
#   gitlab-comment.sh FILE     with SCRUPLE_TOKEN and the variables of a GitLab job
set -euo pipefail
file=$1
marker=$(head -n 1 "$file")
case $marker in
'<!-- scruple:check:'*' -->') ;;
*)
    echo "$file does not begin with the hidden line of a gate" >&2
    exit 2
    ;;
esac
notes="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
# The token stays out of the list of processes.
ask() { curl --silent --show-error --fail --config <(printf 'header = "PRIVATE-TOKEN: %s"\n' "$SCRUPLE_TOKEN") "$@"; }

me=$(ask "$CI_API_V4_URL/user" | jq .id)
found='' page=1
while [ -n "$page" ] && [ -z "$found" ]; do
    answer=$(ask "$notes?per_page=100&page=$page")
    found=$(jq -r --arg marker "$marker" --argjson me "$me" \
        '.[] | select(.author.id == $me and (.body | startswith($marker))) | .id' <<<"$answer" | head -n 1)
    [ "$(jq length <<<"$answer")" -eq 100 ] && page=$((page + 1)) || page=''
done
if [ -n "$found" ]; then
    ask --request PUT "$notes/$found" --data-urlencode "body@$file" >/dev/null
else
    ask --request POST "$notes" --data-urlencode "body@$file" >/dev/null
fi
