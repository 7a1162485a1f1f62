#!/usr/bin/env bash
# Writes a file as the one comment of a pull or merge request that begins with the same hidden line.
#
#   comment.sh github FILE    with GATE_TOKEN, GATE_REPOSITORY (OWNER/NAME), GATE_PULL, GITHUB_API_URL
#   comment.sh gitlab FILE    with SCRUPLE_TOKEN and the variables of a GitLab job
set -euo pipefail
forge=$1 file=$2
marker=$(head -n 1 "$file")
case $marker in
'<!-- scruple:check:'*' -->') ;;
*)
    echo "$file does not begin with the hidden line of a gate" >&2
    exit 2
    ;;
esac

# The token stays out of the list of processes.
ask() { curl --silent --show-error --fail --config <(printf 'header = "%s"\n' "$header") "$@"; }

# Only a comment that was written with such a token is changed: anybody can write the line into one of their own.
case $forge in
github)
    header="Authorization: Bearer $GATE_TOKEN"
    api="${GITHUB_API_URL:-https://api.github.com}/repos/$GATE_REPOSITORY/issues"
    comments="$api/$GATE_PULL/comments" one="$api/comments" change=PATCH
    own='.user.type == "Bot"' me=null
    ;;
gitlab)
    header="PRIVATE-TOKEN: $SCRUPLE_TOKEN"
    comments="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
    one=$comments change=PUT
    own='.author.id == $me' me=$(ask "$CI_API_V4_URL/user" | jq .id)
    ;;
*)
    echo "‘$forge’ is neither github nor gitlab" >&2
    exit 2
    ;;
esac

found='' page=1
while [ -n "$page" ] && [ -z "$found" ]; do
    answer=$(ask "$comments?per_page=100&page=$page")
    found=$(jq -r --arg marker "$marker" --argjson me "$me" \
        "first(.[] | select($own and (.body | startswith(\$marker))) | .id) // empty" <<<"$answer")
    [ "$(jq length <<<"$answer")" -eq 100 ] && page=$((page + 1)) || page=''
done
# A forge refuses a longer text.
body=$(jq --raw-input --slurp '{body: .[0:65000]}' "$file")
send=(--header 'Content-Type: application/json' --data @- --output /dev/null)
if [ -n "$found" ]; then
    ask --request "$change" "${send[@]}" "$one/$found" <<<"$body"
else
    ask --request POST "${send[@]}" "$comments" <<<"$body"
fi
