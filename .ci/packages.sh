#!/bin/sh
# Installs the Debian packages that are named and missing, as root or by sudo, and says which. A word COMMAND:PACKAGE
# asks for the package only where the command is missing. Nothing missing: no network is touched.
set -eu
missing=
for word in "$@"; do
    case $word in
    *:*) command -v "${word%%:*}" >/dev/null 2>&1 || missing="$missing ${word#*:}" ;;
    *) dpkg-query -W -f '${Status}' "$word" 2>/dev/null | grep -q 'ok installed' || missing="$missing $word" ;;
    esac
done
if [ -z "$missing" ]; then
    echo "packages: all there"
    exit 0
fi
echo "packages: installing$missing"
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q >/dev/null || echo "packages: the lists could not be updated; trying with those that are there"
# shellcheck disable=SC2086
$as_root apt-get install -y -q --no-install-recommends $missing >/dev/null || {
    echo "packages: cannot install$missing: is there a network, and may you become root?" >&2
    exit 1
}
