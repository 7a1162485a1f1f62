# Makes a repository of two versions of the tree: its compiler leaves the pass out, then uses it.
set -eu
rm -rf repository
git init -q repository
cp tree.scm guild.sh modules.scm repository
cd repository
git config user.name studies
git config user.email studies@localhost
for version in without with; do
    case $version in without) echo -O2 -Ono-cse ;; with) echo -O2 ;; esac >options
    git add -A
    git commit -q -m "$version the pass"
    git tag "$version"
done
