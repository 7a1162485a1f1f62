# suite.sh SUITE NAME: builds a suite of the Haskell SDK's examples twice: with the SDK as NAME, and, with nothing changed
# but the import, with the package weigh as NAME-weigh.
set -eu
examples=$ROOT/sdk/haskell/examples
mkdir -p "$2.sdk" "$2.weigh"
sed 's/^import Scruple\.Weigh$/import Weigh/' "$examples/$1.hs" >"$2.weigh/$1.hs"
ghc --make -v0 -O -i"$ROOT/sdk/haskell/src" -outputdir "$2.sdk" "$examples/$1.hs" -o "$2"
ghc --make -v0 -O -outputdir "$2.weigh" "$2.weigh/$1.hs" -o "$2-weigh"
