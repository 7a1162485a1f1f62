#!/usr/bin/env bash
# Writes a file as the one comment of a pull request that begins with the same hidden line, with the gh program.
#
#   github-comment.sh OWNER/NAME NUMBER FILE
set -euo pipefail
repository=$1 pull=$2 file=$3
marker=$(head -n 1 "$file")
case $marker in
'<!-- scruple:check:'*' -->') ;;
*)
    echo "$file does not begin with the hidden line of a gate" >&2
    exit 2
    ;;
esac

# Only a comment of a program is changed: anybody can write the line into one of their own.
found=$(gh api --paginate "repos/$repository/issues/$pull/comments?per_page=100" |
    jq -r --arg marker "$marker" '.[] | select(.user.type == "Bot" and (.body | startswith($marker))) | .id' | head -n 1)
if [ -n "$found" ]; then
    gh api --silent --method PATCH "repos/$repository/issues/comments/$found" --field "body=@$file"
else
    gh api --silent --method POST "repos/$repository/issues/$pull/comments" --field "body=@$file"
fi
