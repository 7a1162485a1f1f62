#!/usr/bin/env bash
# One gate in a job of continuous integration. All input is passed in variables, so that no text of a pull request
# becomes part of a script:
#
#   GATE_COMMAND GATE_BASE GATE_BUILD GATE_ARTIFACT GATE_METRICS GATE_LIMITS GATE_MARGIN GATE_NAME   options of `scruple check`
#   GATE_FAIL_ON   exceeded (default), unknown, never
#   GATE_FOLDER    where the results go
#   GATE_SCRUPLE   the program; or GATE_ACTION, a clone of Scruple that is built into GATE_BUILT
set -uo pipefail

case ${GATE_FAIL_ON:-exceeded} in
exceeded | unknown | never) ;;
*)
    echo "fail-on is ‘$GATE_FAIL_ON’: it may be exceeded, unknown or never" >&2
    exit 2
    ;;
esac

scruple=${GATE_SCRUPLE:-}
if [ -z "$scruple" ]; then
    if ! command -v cargo >/dev/null; then
        echo "there is no cargo to build scruple with: install Rust, or name a scruple program" >&2
        exit 2
    fi
    cargo install --quiet --locked --path "$GATE_ACTION/crates/scruple" --root "$GATE_BUILT" || exit 5
    scruple=$GATE_BUILT/bin/scruple
fi

folder=${GATE_FOLDER:-scruple-results}
mkdir -p "$folder" || exit 2

# A job's clone usually has only one commit, which is not the merge base.
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    git fetch --quiet --unshallow origin || echo "the clone is shallow, and the rest cannot be fetched" >&2
fi

words=(check --label "${GATE_NAME:-default}" --store "$folder/store.db" --margin "${GATE_MARGIN:-2%}")
[ -n "${GATE_BASE:-}" ] && words+=(--base "$GATE_BASE")
[ -n "${GATE_BUILD:-}" ] && words+=(--build "$GATE_BUILD")
[ -n "${GATE_ARTIFACT:-}" ] && words+=(--artifact "$GATE_ARTIFACT")
[ -n "${GATE_METRICS:-}" ] && words+=(--gate "$GATE_METRICS")
while IFS= read -r limit; do
    [ -n "$limit" ] && words+=(--limit "$limit")
done <<<"${GATE_LIMITS:-}"
for ending in html md json xml sarif svg; do
    words+=(--export "$folder/scruple.$ending")
done
# One word is split by scruple as a shell would, without a shell.
[ -n "${GATE_COMMAND:-}" ] && words+=(-- "$GATE_COMMAND")

"$scruple" "${words[@]}"
code=$?

# Where nothing was weighed, the steps that follow have no files to take.
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf 'exit-code=%s\n' "$code" >>"$GITHUB_OUTPUT"
    [ -f "$folder/scruple.md" ] && printf 'folder=%s\n' "$folder" >>"$GITHUB_OUTPUT"
fi
[ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$folder/scruple.md" ] && cat "$folder/scruple.md" >>"$GITHUB_STEP_SUMMARY"

case "$code:${GATE_FAIL_ON:-exceeded}" in
0:* | 1:never | 3:never) exit 0 ;;
3:exceeded)
    echo "the gate can't tell, which does not fail this job; its summary says why"
    exit 0
    ;;
*) exit "$code" ;;
esac
