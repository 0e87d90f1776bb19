# shellcheck shell=bash
# Roots of bare Debian releases, in which packages are tried: read by the scripts beside it. As root, with mmdebstrap and namespaces.
. tests/root.sh
: "${OUT:=build/package}"

package_skip() { # package_skip WHY
	echo "$(basename "$0"): $*" >&2
	exit 77
}
package_fail() { # package_fail WHY: the last lines of what was started come first
	tail -n 15 "$work"/*.log 2>/dev/null
	echo "$(basename "$0") $suite: FAILED: $*" >&2
	exit 1
}

# package_begin NAME SUITE: work, suite, out; a network and mounts of its own, which end with it
package_begin() {
	suite=$2
	out=$OUT/$suite
	root_needs "$1"
	command -v ip >/dev/null || package_skip "needs ip"
	if [ -z "${PACKAGE_INSIDE:-}" ]; then
		root_tarball "$suite"
		PACKAGE_INSIDE=$(mktemp -d)
		chmod 755 "$PACKAGE_INSIDE"
		PACKAGE_NET=/proc/$$/ns/net
		export PACKAGE_INSIDE PACKAGE_NET ROOT_TARBALL
		local rc=0
		unshare -mn --propagation private "$0" "$suite" || rc=$?
		rm -rf --one-file-system "$PACKAGE_INSIDE"
		exit $rc
	fi
	work=$PACKAGE_INSIDE
	set -E
	trap 'package_fail "line $LINENO of ${BASH_SOURCE[0]}"' ERR
	trap package_end EXIT
	ip link set lo up
}
package_end() {
	local file
	for file in "$work"/*.pid; do
		[ ! -f "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
	done
}

# package_root ROOT: a bare release
package_root() {
	mkdir -p "$1"
	tar -C "$1" -xf "$ROOT_TARBALL" --exclude=./dev
	mkdir -p "$1/dev"
	mount --rbind /dev "$1/dev"
	mount -t proc proc "$1/proc"
	cp /etc/resolv.conf "$1/etc/resolv.conf"
	echo "127.0.0.1 localhost coord.example" >"$1/etc/hosts"
}

inside() { # [ONLINE=1] inside ROOT LINE: a shell line there, as somebody who has just logged in; ONLINE: with this machine's network
	${ONLINE:+nsenter --net="$PACKAGE_NET" --} env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		chroot "$1" sh -ec "cd /root; $2"
}

# package_add ROOT PATTERN...: apt installs the newest packages of these names of $from, and what they depend on
package_add() {
	local root=$1 name files=()
	shift
	mkdir -p "$root/root/debs"
	rm -f "$root"/root/debs/*
	for name; do
		files+=("$(find "$from" -maxdepth 1 -name "${name}_*.deb" | sort -V | tail -n 1)")
	done
	cp "${files[@]}" "$root/root/debs"
	ONLINE=1 inside "$root" 'apt-get -qq update; apt-get -y -q --no-install-recommends -o Dpkg::Use-Pty=0 install ./debs/*.deb' >"$work/apt.log" 2>&1 ||
		package_fail "apt does not install ${files[*]}"
	cat "$work/apt.log" >>"$work/apt-all.log"
}

# unit ROOT NAME [PROGRAM...]: what systemd would start, as the unit's user, with the unit's directories
unit() {
	local root=$1 name=$2 file user run
	for file in etc/systemd/system usr/local/lib/systemd/system usr/lib/systemd/system lib/systemd/system; do
		[ ! -f "$root/$file/$name.service" ] || break
	done
	file=$root/$file/$name.service
	user=$(sed -n 's/^User=//p' "$file")
	run=$(sed -n 's/^RuntimeDirectory=//p' "$file")
	[ -z "$run" ] || inside "$root" "install -d -o $user -g $user /run/$run"
	inside "$root" "exec runuser -u $user -- sh -c 'echo \$\$ >/tmp/$name.pid; exec \"\$@\"' - $(sed -n 's/^ExecStart=//p' "$file")" \
		2>>"$work/$(basename "$root")-$name.log" &
	await "$name" grep -qE ' (ready|started|task|waiting)' "$work/$(basename "$root")-$name.log"
	cp "$root/tmp/$name.pid" "$work/$(basename "$root")-$name.pid"
}

# stop ROOT NAME: as systemd would, and forgets what it had said
stop() {
	local pid
	pid=$(cat "$work/$(basename "$1")-$2.pid")
	kill "$pid"
	await "the end of $2" ended "$pid"
	mv "$work/$(basename "$1")-$2.log" "$work/$(basename "$1")-$2.old"
	rm "$work/$(basename "$1")-$2.pid"
}

ended() { # ended PID
	! kill -0 "$1" 2>/dev/null
}
await() { # await WHAT COMMAND...: until it succeeds, a minute at most
	local what=$1 end=$((SECONDS + 60))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || package_fail "waited in vain for $what"
		sleep 0.1
	done
}

# ask ROOT WORDS: of the job "first" as the coordinator has it; words lead inwards ("open reports")
ask() {
	inside "$1" "rivulet job show first --json" | python3 -c '
import json, sys
value = json.load(sys.stdin)
for word in sys.argv[1].split():
    value = (value or {}).get(word)
print(value)' "$2"
}
is() { # is ROOT WORDS VALUE
	[ "$(ask "$1" "$2")" = "$3" ]
}
rounds() { # rounds ROOT COUNT: so many are done, or more
	[ "$(ask "$1" rounds_committed)" -ge "$2" ]
}
keys() { # keys ROOT: what must outlive everything
	(cd "$1/var/lib" && find . -path './rivulet*' \( -name '*.pem' -o -name '*.key' \) ! -path '*/ca-*' | sort | xargs sha256sum)
}

# settings ROOT COUNT: a device's data, so many drawn digits
settings() {
	printf '[data digits]\nformat = glyphs\ncount = %s\nseed = 1\n' "$2" >"$1/var/lib/rivulet-device/rivulet.conf"
}
# submit ROOT [EPOCHS]: a job of two devices and three rounds
submit() {
	cat >"$1/root/first.json" <<END
{"name": "first", "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
 "local": {"epochs": ${2:-1}, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
 "round": {"goal": 2, "quorum": 2, "deadline_s": 900}, "stop": {"rounds": 3}}
END
	inside "$1" 'rivulet job submit first.json' >"$work/submit.log" 2>&1 || package_fail "the job was not accepted: $(cat "$work/submit.log")"
}
# readme HEADING [services]: README's blocks below it, a line each; without "services" the test itself starts what the units say
readme() {
	python3 - "$@" <<'END'
import re, sys
with open("README.md", encoding="utf-8") as f:
    part = f.read().split("\n## " + sys.argv[1] + "\n")[1].split("\n## ")[0]
for block in re.findall(r"^```\n(.*?)^```$", part, re.M | re.S):
    print("; ".join(line for line in block.splitlines() if sys.argv[2:] or not line.startswith("systemctl ")))
END
}
# package_needs PACKAGE...: the libraries that they depend on, by name
package_needs() {
	for name; do
		dpkg-deb -f "$out"/"${name}"_*.deb Depends | tr , '\n' | sed 's/^ *//; s/[ :|(].*//'
	done | sort -u | tr '\n' ' '
}
