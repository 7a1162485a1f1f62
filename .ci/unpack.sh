#!/bin/sh
# Unpacks a server that tests start themselves into a folder, because installing it would also start it.
# `unpack.sh COMMAND PACKAGE FOLDER`; does nothing if the command is installed already.
set -eu
command=$1 package=$2 folder=$3
for there in /usr/sbin /usr/local/sbin "$folder/usr/sbin"; do
    [ ! -x "$there/$command" ] || exit 0
done
echo "packages: unpacking $package into $folder"
rm -rf "$folder"
mkdir -p "$folder"
(cd "$folder" && apt-get download -q "$package" >/dev/null 2>&1 && for file in ./*.deb; do dpkg -x "$file" .; done) ||
    echo "packages: cannot unpack $package: tests that need $command will be skipped" >&2
