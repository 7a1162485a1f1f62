#!/bin/sh
# Installs the named Debian packages that are missing, as root or by sudo, and prints their names. An argument
# COMMAND:PACKAGE installs the package only if the command is missing. Without missing packages it needs no network.
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
