#!/bin/sh
# Builds with plain ghc, without network, into the given or a temporary folder, and checks: conformance, on one thread
# and on several; bytes against the package weigh; names against the package criterion. With ALL=1 the slow maps, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
conformance=${SCRUPLE_CONFORMANCE:-$here/../conformance}
cd "$here"

# compile FOLDER NAME SOURCE [OPTION…]: a program, with the object files in FOLDER.
compile() {
    objects=$1 name=$2 source=$3
    shift 3
    mkdir -p "$out/$name"
    ghc --make -v0 -O -Wall "$@" -outputdir "$objects" "$source" -o "$out/$name/program"
}
# build NAME SOURCE [OPTION…]: a program of its own folder.
build() { compile "$out/$1" "$@"; }
# with_sdk NAME SOURCE [OPTION…]: the same with the modules of the SDK, which are compiled once for all programs. Only
# the main module of the program before is removed: GHC compares times of files, and would take that module for this
# program's.
with_sdk() {
    rm -f "$out"/sdk/Main.*
    compile "$out/sdk" "$@" -isrc
}
has() { ghc-pkg list --global --simple-output "$1" 2>/dev/null | grep -q .; }
# under MODULE NAME: a copy of the example with only its import changed.
under() {
    mkdir -p "$out/$2-real"
    sed "s/^import Scruple\.Criterion\.Types/import Criterion.Types/; s/^import Scruple\.[A-Z][a-z]*$/import $1/" "examples/$2.hs" > "$out/$2-real/$2.hs"
    build "$2-real" "$out/$2-real/$2.hs"
}

echo "== conformance"
with_sdk conformance tests/Conformance.hs -threaded
with_sdk conformance-1 tests/Conformance.hs
for program in conformance conformance-1; do
    python3 "$conformance/run.py" -- "$out/$program/program" > "$out/$program.txt" || { cat "$out/$program.txt"; exit 1; }
    echo "$program: $(tail -n 1 "$out/$program.txt")"
done

# Without optimisation the compiler does not see that a loop only runs when it is executed, and knows no function of
# base.
compile "$out/without" without-optimisation tests/Conformance.hs -isrc -O0
python3 "$conformance/run.py" --only hoisted -- "$out/without-optimisation/program"
python3 tests/compare.py "$conformance" growth "$out/without-optimisation/program"
python3 tests/compare.py "$conformance" tares "$out/conformance/program"
python3 tests/disassembly.py "$out/sdk"
python3 tests/disassembly.py "$out/without"

echo "== weigh"
with_sdk Limits tests/Limits.hs
python3 tests/compare.py "$conformance" limits "$out/Limits/program"
suites=Integers
has store && has cereal && suites="$suites Encodings" || echo "store or cereal is not installed: Encodings left out"
[ "${ALL:-}" = 1 ] && suites="$suites Maps"
if has weigh; then
    for suite in $suites; do
        with_sdk "$suite" "examples/$suite.hs"
        under Weigh "$suite"
        python3 tests/compare.py "$conformance" weigh "$out/$suite-real/program" "$out/$suite/program"
    done
else
    echo "weigh is not installed: not compared"
fi

echo "== criterion"
with_sdk Words examples/Words.hs
if has criterion; then
    under Criterion.Main Words
    python3 tests/compare.py "$conformance" names "$out/Words-real/program" "$out/Words/program"
else
    echo "criterion is not installed: not compared"
fi

echo "== gauge, tasty-bench, criterion's modes"
if has optparse-applicative; then
    with_sdk Others tests/Others.hs
    python3 tests/compare.py "$conformance" tares "$out/Others/program"
else
    echo "skipped: optparse-applicative is not installed"
fi

echo "== the other examples"
with_sdk Fnv examples/Fnv.hs
with_sdk Events examples/Events.hs
with_sdk Queues examples/Queues.hs -threaded
build Messages tests/Messages.hs -rtsopts
python3 tests/compare.py "$conformance" tares "$out/Queues/program"
python3 tests/compare.py "$conformance" queue "$out/Messages/program" "$out/Queues/program"
echo built
