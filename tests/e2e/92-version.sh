#!/bin/sh
# stages: gcc address
# Which build a tree makes: from a clone, a changed one, a shallow one, an archive, a copy, and below a repository that is not its own.
set -eu
command -v git >/dev/null || { echo "needs git"; exit 77; }
here=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
g() { git -C "$dir/tree" "$@"; }
is() { # is PLACE TEXT
	said=$(cd "$1" && base/core/version 1.1.0)
	[ "$said" = "$2" ] || { echo "$1 says $said instead of $2"; exit 1; }
}

mkdir -p "$dir/tree/base/core"
cp "$here/base/core/version" "$dir/tree/base/core"
cp "$here/.gitattributes" "$dir/tree"
is "$dir/tree" 1.1.0
git -c init.defaultBranch=main init -q "$dir/tree"
is "$dir/tree" 1.1.0
for i in 1 2 3; do
	echo "$i" >"$dir/tree/file"
	g add -A
	g commit -qm "$i"
done
commit=$(g rev-parse HEAD | cut -c 1-7)
is "$dir/tree" "1.1.0+3.g$commit"
echo new >"$dir/tree/new"
is "$dir/tree" "1.1.0+3.g$commit"
echo 4 >"$dir/tree/file"
is "$dir/tree" "1.1.0+3.g$commit.dirty"
git clone -q --depth 1 "file://$dir/tree" "$dir/shallow"
is "$dir/shallow" "1.1.0+0.g$commit"
g worktree add -q "$dir/beside" HEAD
is "$dir/beside" "1.1.0+3.g$commit"
# Below a repository, and with a variable that names one.
mkdir "$dir/tree/archive" "$dir/tree/copy"
g archive HEAD | tar -x -C "$dir/tree/archive"
is "$dir/tree/archive" "1.1.0+0.g$commit"
cp -r "$here/base" "$dir/tree/copy"
is "$dir/tree/copy" 1.1.0
GIT_DIR=$dir/tree/.git is "$dir/tree/copy" 1.1.0

# The programs say what the tree said when they were built, devices and coordinator alike.
BUILD=${BUILD:-build/mbedtls}
built=$(cat "$BUILD/version")
for program in rivulet rivuletd; do
	"$BUILD/$program" --version | grep -qF "$program $built (protocol" || { echo "$program is not $built: $("$BUILD/$program" --version)"; exit 1; }
done
case $built in 1.1.0 | 1.1.0+[0-9]*) ;; *) echo "no version: $built"; exit 1 ;; esac
echo "$built"
