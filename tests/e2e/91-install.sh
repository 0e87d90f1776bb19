#!/bin/sh
# stages: gcc address
# `make install` puts everything in its place, and a program builds against what it installed, small and without BLAS.
set -eu
BUILD=${BUILD:-build/mbedtls}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
[ -f README.md ] || { echo "no README.md to install"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL

(umask 077 && make install BUILD="$BUILD" CRYPTO="${CRYPTO:-mbedtls}" CC="${CC:-cc}" PREFIX=/opt/rivulet DESTDIR="$dir") >"$dir/said" 2>&1 ||
	{ cat "$dir/said"; exit 1; }
root=$dir/opt/rivulet
closed=$(find "$root" -mindepth 1 \( -type f ! -perm -o+r -o -type d ! -perm -o+rx \))
[ -z "$closed" ] || { echo "not for everybody: $closed"; exit 1; }
for f in bin/rivuletd bin/rivulet; do
	[ -x "$root/$f" ] || { echo "$f was not installed"; exit 1; }
	"$root/$f" --version | grep -q '(protocol [1-9]' || { echo "$f --version: $("$root/$f" --version)"; exit 1; }
done
# Of a build with MPI there is one program more, and no other links it.
site=''
[ ! -x "$BUILD/rivulet-site" ] || site=rivulet-site
if [ "$site" ]; then
	"$root/bin/rivulet-site" --version | grep -q '^rivulet-site [1-9]' || { echo "rivulet-site was not installed"; exit 1; }
	ldd "$root/bin/rivulet-site" | grep -q 'libmpi[._]' || { echo "rivulet-site links no MPI"; exit 1; }
fi
for f in bin/rivuletd bin/rivulet lib/librivulet.so.1; do
	ldd "$root/$f" >"$dir/needs"
	grep -E 'libmpi|libopen-(pal|rte)|prrte|pmix' "$dir/needs" && { echo "$f needs that"; exit 1; }
done
"$root/bin/rivuletd" --version | grep -q ', schema [1-9]'
for f in lib/librivulet.a lib/librivulet.so lib/librivulet.so.1 include/rivulet.h lib/pkgconfig/rivulet.pc share/doc/rivulet/README.md share/doc/rivulet/examples/pumps.json \
	share/doc/rivuletd/prometheus/rivulet.rules.yml share/doc/rivuletd/prometheus/rules_test.yml share/doc/rivuletd/grafana/rivulet.json \
	lib/sysusers.d/rivuletd.conf lib/tmpfiles.d/rivuletd.conf lib/sysusers.d/rivulet.conf lib/tmpfiles.d/rivulet.conf share/rivulet/trainer-user.conf \
	share/bash-completion/completions/rivulet share/bash-completion/completions/rivuletd share/zsh/site-functions/_rivulet share/zsh/site-functions/_rivuletd; do
	[ -s "$root/$f" ] || { echo "$f was not installed"; exit 1; }
done
for unit in rivuletd rivulet; do
	grep -q "^ExecStart=/opt/rivulet/bin/$unit " "$root/lib/systemd/system/$unit.service"
done
grep -q '^ExecStart=/opt/rivulet/bin/rivulet run ' "$root/share/rivulet/trainer-user.conf"

# A page for each thing that has one, in which every option and every setting of the installed programs stands.
pages=$(cd man && ls ./*.scd | sed 's,^\./,,;s,\.scd$,,' | if [ "$site" ]; then cat; else grep -v '^rivulet-site\.'; fi)
if command -v scdoc >/dev/null; then
	for page in $pages; do
		[ -s "$root/share/man/man${page##*.}/$page" ] || { echo "$page was not installed"; exit 1; }
	done
	for program in rivulet.1 rivuletd.8 ${site:+rivulet-site.1}; do
		name=${program%.*}
		"$root/bin/$name" --print-options >"$dir/table"
		[ "$(wc -l <"$dir/table")" -gt 20 ] || { echo "$name --print-options: $(cat "$dir/table")"; exit 1; }
		awk -F'\t' -v name="$name" -v section="${program##*.}" '
			$1 == "option" { split($2, path, " "); print name "-" path[1] "." section, "\\fB--" $3 "\\fR" }
			$1 == "setting" { print name ".conf.5", "\\fB" $3 "\\fR" }' "$dir/table" | sort -u |
			while read -r page text; do
				page=$root/share/man/man${page##*.}/$page
				[ -f "$page" ] || page=$root/share/man/man${program##*.}/$program
				grep -qF -- "$text" "$page" || { echo "$text is not in ${page##*/}"; exit 1; }
			done || exit 1
	done
	# The date of all pages can be told.
	SOURCE_DATE_EPOCH=1000000000 make install BUILD="$BUILD" CRYPTO="${CRYPTO:-mbedtls}" CC="${CC:-cc}" DESTDIR="$dir/dated" >"$dir/said" 2>&1 ||
		{ cat "$dir/said"; exit 1; }
	for page in $pages; do
		grep -q '^\.TH ".*" ".*" "2001-09-09"' "$dir/dated/usr/local/share/man/man${page##*.}/$page" || { echo "$page has another date"; exit 1; }
	done
	rm -r "$dir/dated"
fi
# Completion of each program is one file, which works without the other program's.
for program in rivulet rivuletd $site; do
	bash -c '. "$1" && complete -p' sh "$root/share/bash-completion/completions/$program" >"$dir/said" 2>&1
	[ "$(cat "$dir/said")" = "complete -F _rivulet $program" ] || { echo "completion of $program: $(cat "$dir/said")"; exit 1; }
	[ "$(head -1 "$root/share/zsh/site-functions/_$program")" = "#compdef $program" ] || { echo "_$program is for another program"; exit 1; }
done
# Without scdoc and MPI all else is installed, and a line says so for each.
mkdir "$dir/bin"
echo "$PATH" | tr : '\n' | while read -r place; do
	if [ -d "$place" ]; then find "$place/" -maxdepth 1 ! -type d ! -name scdoc -exec ln -st "$dir/bin" {} + 2>/dev/null || true; fi
done
PATH=$dir/bin make install BUILD="$BUILD" CRYPTO="${CRYPTO:-mbedtls}" CC="${CC:-cc}" MPI= DESTDIR="$dir/without" >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
[ "$(grep -c 'no manual pages are installed, for scdoc is not here$' "$dir/said")" = 1 ] || { echo "make install without scdoc: $(cat "$dir/said")"; exit 1; }
grep -q '^make: rivulet-site is left out, for mpi.h is not here ' "$dir/said" || { echo "make install without MPI: $(cat "$dir/said")"; exit 1; }
[ -z "$(find "$dir/without" -name '*rivulet-site*')" ] || { echo "without MPI there is: $(find "$dir/without" -name '*rivulet-site*')"; exit 1; }
[ -x "$dir/without/usr/local/bin/rivulet" ] && [ -s "$dir/without/usr/local/share/zsh/site-functions/_rivulet" ] && [ ! -e "$dir/without/usr/local/share/man" ] ||
	{ echo "without scdoc there is: $(find "$dir/without" | head -50)"; exit 1; }
rm -r "$dir/without"

# A compiler that does not know a flag goes without it, and keeps the others.
cat >"$dir/cc" <<'END'
#!/bin/sh
case "$*" in *clash*) echo "unknown flag" >&2; exit 1 ;; esac
exec cc "$@"
END
chmod +x "$dir/cc"
make BUILD="$dir/build" CC="$dir/cc" "$dir/build/hardening" >/dev/null
grep -q -- -fstack-protector-strong "$dir/build/hardening" && ! grep -q clash "$dir/build/hardening" ||
	{ echo "flags were not probed: $(cat "$dir/build/hardening")"; exit 1; }
# A directory holds one kind of objects: what would build or link another kind there is told of both.
other=$([ "${CRYPTO:-mbedtls}" = openssl ] && echo mbedtls || echo openssl)
set -- "CRYPTO=$other" "CC=$dir/cc -pipe" SAN=undefined
[ -n "${FAULTS:-}" ] || set -- "$@" FAULTS=1
for word; do
	for goal in all install shims "$dir/build/hardening" "$dir/build/tests/unit/test_hex"; do
		if make BUILD="$dir/build" CC="$dir/cc" "$word" DESTDIR="$dir/mixed" "$goal" >"$dir/said" 2>&1 || [ "$(find "$dir/build" -name '*.[oa]')" ]; then
			echo "$word: $goal is made in the directory of another kind: $(cat "$dir/said")"
			exit 1
		fi
		grep -qE "^make: $dir/build was made with CC=$dir/cc CRYPTO=.*, and this is .*$word.* remove this one\$" "$dir/said" ||
			{ echo "$word: $goal: $(cat "$dir/said")"; exit 1; }
	done
done
make BUILD="$dir/build" CC="$dir/cc" "$dir/build/hardening" "$dir/build/version" >"$dir/said" 2>&1 || { echo "the same again: $(cat "$dir/said")"; exit 1; }
make -s BUILD="$dir/build" "CRYPTO=$other" print-rooms >"$dir/said" 2>&1 || { echo "what builds nothing: $(cat "$dir/said")"; exit 1; }

# Every file that a link of an installed document names was installed.
python3 - "$root/share/doc/rivulet" <<'END' || exit 1
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
for page in root.rglob("*.md"):
    for to in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in to and not (page.parent / to).exists():
            sys.exit("%s names %s, which was not installed" % (page.relative_to(root), to))
END

# Without the packages a build says how to get them.
if make all BUILD="$dir/bare" CC="${CC:-cc} -nostdinc" >"$dir/said" 2>&1 || ! grep -q '"make deps" installs them' "$dir/said"; then
	echo "a build without headers does not say \"make deps\": $(head -5 "$dir/said")"
	exit 1
fi

# What the shared library shows is what rivulet.h declares, and a program may count on it as long as the number in its name stays.
library=$root/lib/librivulet.so.1
nm -D --defined-only "$library" | sed -n 's/.* T //p' | LC_ALL=C sort >"$dir/symbols"
diff tests/vectors/librivulet.symbols "$dir/symbols" || { echo "librivulet.so.1 does not have the symbols of tests/vectors/librivulet.symbols"; exit 1; }
sed -n 's/@@.*//;s/^/ /p' "$dir/symbols" | while read -r name; do
	grep -q "[ *]$name(" "$root/include/rivulet.h" || { echo "rivulet.h does not declare $name"; exit 1; }
done
nm -D --defined-only "$library" | grep -v ' T rivulet_' | grep -v ' A RIVULET_1\(\.1\)\?$' && { echo "librivulet.so.1 shows more than that"; exit 1; }
readelf -d "$library" | grep -q 'SONAME.*\[librivulet.so.1\]' || { echo "librivulet.so.1 has another soname"; exit 1; }

# flags KIND [OPTION]: what pkg-config says to link with the library of that kind.
flags() {
	PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir pkg-config --libs --cflags ${2:+"$2"} rivulet |
		sed "s,$dir/usr/lib,/usr/lib,g;s,-lrivulet,-l:librivulet.$1,"
}
flags a --static >"$dir/flags"
for source in examples/*.c; do
	# shellcheck disable=SC2046 # flags are words
	${CC:-cc} -std=c11 -D_GNU_SOURCE "$source" -o "$dir/example" $(cat "$dir/flags") || { echo "$source does not build"; exit 1; }
	# shellcheck disable=SC2046
	${CC:-cc} -std=c11 -D_GNU_SOURCE "$source" -o "$dir/shared" $(flags so) -lm || { echo "$source does not build with the shared library"; exit 1; }
done
readelf -d "$dir/shared" | grep -q 'NEEDED.*\[librivulet.so.1\]' || { echo "the example does not need librivulet.so.1"; exit 1; }
LD_LIBRARY_PATH=$root/lib "$dir/shared" "$dir/nowhere" 2>&1 | grep -q '^own_loop: .*join' ||
	{ echo "the example does not run with librivulet.so.1: $(LD_LIBRARY_PATH=$root/lib "$dir/shared" "$dir/nowhere" 2>&1)"; exit 1; }
# A device computes nothing but its own loop's training: no linear algebra comes along, in whatever the flags name, or the program needs.
grep -Eq 'blas|gfortran|quadmath' "$dir/flags" && { echo "rivulet.pc names BLAS: $(cat "$dir/flags")"; exit 1; }
for program in "$BUILD/examples/own_loop" "$dir/example" "$library"; do
	ldd "$program" >"$dir/needs"
	grep libcurl "$dir/needs" >/dev/null || { echo "$program needs no libcurl: is this a device?"; exit 1; }
	grep -E 'blas|gfortran|quadmath' "$dir/needs" && { echo "$program needs that"; exit 1; }
	# Without what debuggers want, of which each compiler writes as much as it likes.
	strip -o "$dir/stripped" "$program"
	bytes=$(stat -c %s "$dir/stripped")
	[ "$bytes" -lt 760000 ] || { echo "$program has $bytes bytes"; exit 1; }
done
files=$(find "$dir/opt" -type f | wc -l)

# Libraries and units where a distribution wants them; what was installed goes again, and nothing else does.
places="PREFIX=/usr LIBDIR=/usr/lib/machine UNITDIR=/lib/systemd/system DESTDIR=$dir/other"
echo kept >"$dir/kept"
# shellcheck disable=SC2086 # they are words
make install BUILD="$BUILD" CRYPTO="${CRYPTO:-mbedtls}" CC="${CC:-cc}" $places >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
for f in usr/lib/machine/librivulet.so.1 usr/lib/machine/pkgconfig/rivulet.pc lib/systemd/system/rivuletd.service; do
	[ -s "$dir/other/$f" ] || { echo "$f was not installed"; exit 1; }
done
grep -qx 'libdir=/usr/lib/machine' "$dir/other/usr/lib/machine/pkgconfig/rivulet.pc"
cp "$dir/kept" "$dir/other/usr/lib/machine/kept"
# shellcheck disable=SC2086
make uninstall BUILD="$BUILD" $places >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
left=$(cd "$dir/other" && find . -type f -o -type l)
[ "$left" = ./usr/lib/machine/kept ] || { echo "uninstall left $left"; exit 1; }
echo "installed $files files"
