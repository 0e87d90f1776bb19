#!/bin/sh
# `make install` puts everything in its place, and a program builds against what it installed, small and without BLAS.
set -eu
BUILD=${BUILD:-build/mbedtls}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
[ -f README.md ] || { echo "no README.md to install"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL

make install BUILD="$BUILD" CRYPTO="${CRYPTO:-mbedtls}" CC="${CC:-cc}" PREFIX=/opt/rivulet DESTDIR="$dir" >"$dir/said" 2>&1 ||
	{ cat "$dir/said"; exit 1; }
root=$dir/opt/rivulet
for f in bin/rivuletd bin/rivulet; do
	[ -x "$root/$f" ] || { echo "$f was not installed"; exit 1; }
	"$root/$f" --version >/dev/null
done
for f in lib/librivulet.a include/rivulet.h lib/pkgconfig/rivulet.pc share/doc/rivulet/README.md share/doc/rivulet/FORMAT.md \
	lib/sysusers.d/rivulet.conf lib/tmpfiles.d/rivulet.conf; do
	[ -s "$root/$f" ] || { echo "$f was not installed"; exit 1; }
done
for unit in rivuletd rivulet; do
	grep -q "^ExecStart=/opt/rivulet/bin/$unit " "$root/lib/systemd/system/$unit.service"
done

# shellcheck disable=SC2046 # flags are words
PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir pkg-config --libs --cflags --static rivulet >"$dir/flags"
sed -i "s,$dir/usr/lib,/usr/lib,g" "$dir/flags"
for source in examples/*.c; do
	# shellcheck disable=SC2046
	${CC:-cc} -std=c11 -D_GNU_SOURCE "$source" -o "$dir/example" $(cat "$dir/flags") || { echo "$source does not build"; exit 1; }
done
# A device computes nothing but its own loop's training: no linear algebra comes along, in whatever the flags name, or the program needs.
grep -Eq 'blas|gfortran|quadmath' "$dir/flags" && { echo "rivulet.pc names BLAS: $(cat "$dir/flags")"; exit 1; }
for program in "$BUILD/examples/own_loop" "$dir/example"; do
	ldd "$program" >"$dir/needs"
	grep libcurl "$dir/needs" >/dev/null || { echo "$program needs no libcurl: is this a device?"; exit 1; }
	grep -E 'blas|gfortran|quadmath' "$dir/needs" && { echo "$program needs that"; exit 1; }
	bytes=$(stat -c %s "$program")
	[ "$bytes" -lt 1600000 ] || { echo "$program has $bytes bytes"; exit 1; }
done
echo "installed $(find "$dir/opt" -type f | wc -l) files"
