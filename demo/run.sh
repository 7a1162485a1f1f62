#!/bin/sh
# The main job on real input: three compressors on a 30 MB text, then two versions of one program, one of them changed.
# Usage: demo/run.sh SCRUPLE
set -eu
scruple=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(dirname "$here")/target/demo
mkdir -p "$work"
cd "$work"

if [ ! -s text.txt ]; then
    echo "Making a text of 30 MB from this machine's headers and documents …"
    find /usr/include /usr/share/doc /usr/share/perl /usr/share/common-licenses -type f \
        \( -name '*.h' -o -name 'copyright' -o -name '*.txt' -o -name '*.pm' -o -name '[A-Z]*' \) 2>/dev/null |
        LC_ALL=C sort | xargs -d '\n' cat 2>/dev/null | head -c 30000000 > part.txt || true
    while [ "$(wc -c < part.txt)" -lt 30000000 ]; do cat part.txt part.txt | head -c 30000000 > more.txt; mv more.txt part.txt; done
    mv part.txt text.txt
fi

echo
echo "1. Which compressor is cheapest on $(wc -c < text.txt) bytes of text, and by how much?"
echo "   \$ scruple run -n gzip -n zstd -n xz 'gzip -1 -c text.txt' 'zstd -1 -q -c text.txt' 'xz -0 -c text.txt'"
echo
"$scruple" run --label demo-compressors --store "$work/store.db" -n gzip -n zstd -n xz \
    'gzip -1 -c text.txt' 'zstd -1 -q -c text.txt' 'xz -0 -c text.txt'

cc -O2 -o words-old "$here/words.c"
cc -O2 -DLARGER_BUFFER -o words-new "$here/words.c"
echo
echo "2. Two versions of one program: is the new one faster, and what does it pay for that?"
echo "   \$ scruple run './words-old text.txt' './words-new text.txt'"
echo
"$scruple" run --label demo-versions --store "$work/store.db" './words-old text.txt' './words-new text.txt'

echo
echo "Both runs are kept in target/demo/store.db: \`scruple store list --store target/demo/store.db\` lists them,"
echo "\`scruple show demo-versions --json --store target/demo/store.db\` has every reading."
