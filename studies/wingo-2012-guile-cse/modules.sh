# modules.sh FOLDER OPTION…: compiles modules of the compiler itself into a folder. A smoke test takes a small one.
set -eu
folder=$1
shift
modules="primitives effects"
[ -z "${SMOKE:-}" ] || modules=debug
mkdir -p "$folder"
for module in $modules; do
    sh "$(dirname "$0")/guild.sh" "$@" -o "$folder/$module.go" "/usr/share/guile/3.0/language/tree-il/$module.scm"
done
