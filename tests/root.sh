#!/usr/bin/env bash
# root.sh: bare Debian systems for what must not depend on what is installed here. Sourced, from the top of the tree; needs root,
# mmdebstrap and unshare. Mirrors, proxies and pip's index are those of this machine.

# root_needs NAME: exits with 77 and the reason where there can be none.
root_needs() {
	[ "$(id -u)" -eq 0 ] || { echo "$1: needs root" >&2; exit 77; }
	command -v mmdebstrap >/dev/null || { echo "$1: needs mmdebstrap (apt-get install mmdebstrap)" >&2; exit 77; }
	unshare --mount true 2>/dev/null || { echo "$1: needs mount namespaces" >&2; exit 77; }
}

# root_sources SUITE: lines of a sources.list.
root_sources() {
	local all mirror security
	all=$(awk '/^URIs:/ { print $2 } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /:\//) { print $i; break } }' \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -i debian)
	mirror=$(echo "$all" | grep -v security | head -n 1)
	security=$(echo "$all" | grep security | head -n 1)
	echo "deb ${mirror:-http://deb.debian.org/debian} $1 main"
	echo "deb ${mirror:-http://deb.debian.org/debian} $1-updates main"
	echo "deb ${security:-http://deb.debian.org/debian-security} $1-security main"
}

# root_tarball SUITE PACKAGE...: a fresh system, kept for a day in build/roots. Sets ROOT_TARBALL.
root_tarball() {
	local suite=$1 tarball packages file options=()
	shift
	packages=$(printf '%s,' "$@")
	tarball=build/roots/$suite-$(root_sources "$suite" | cat - <(echo "$packages") | sha256sum | cut -c 1-12).tar
	if [ -z "$(find "$tarball" -mmin -1440 2>/dev/null)" ]; then
		mkdir -p build/roots
		for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
			[ ! -f "$file" ] || options+=("--aptopt=$file")
		done
		root_sources "$suite" | mmdebstrap --quiet --variant=minbase --format=tar --include="ca-certificates,${packages%,}" \
			"${options[@]}" "$suite" "$tarball.part" - >"$tarball.log" 2>&1 || { tail "$tarball.log" >&2; return 1; }
		mv "$tarball.part" "$tarball"
	fi
	ROOT_TARBALL=$PWD/$tarball
}

# root_unpack SUITE DIR PACKAGE...: such a system in DIR
root_unpack() {
	local suite=$1 dir=$2 file
	shift 2
	root_tarball "$suite" "$@" || return 1
	mkdir -p "$dir"
	tar -C "$dir" -xf "$ROOT_TARBALL"
	cp -L /etc/resolv.conf /etc/hosts "$dir/etc/" 2>/dev/null || true
	[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$dir/etc/"
	file=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
	[ ! -f "$file" ] || cp -L "$file" "$dir/etc/pip.pem"
}

# root_run DIR COMMAND: a line of shell in it, with this machine's network and devices. Mounts end with it.
root_run() {
	local words=()
	mapfile -t words < <(env | grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|(http|https|no)_proxy|(HTTP|HTTPS|NO)_PROXY)=')
	# shellcheck disable=SC2016 # expanded within
	unshare --mount --propagation private sh -ec 'dir=$1 line=$2; shift 2
		mount -t proc proc "$dir/proc"
		mount --rbind /dev "$dir/dev"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PIP_CERT=/etc/pip.pem "$@" chroot "$dir" sh -ec "$line"' \
		sh "$1" "$2" "${words[@]}"
}
