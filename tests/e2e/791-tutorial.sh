#!/bin/sh
# stages: gcc address
# docs/tutorial-1-first-fleet.md: each of its blocks in its order, as root, on a system of its own (/etc, /var/lib, /srv, /run and a network
# that end with the test). A stand-in for systemctl starts what the units say, as their users.
set -eu
BUILD=${BUILD:-build/mbedtls}
PAGE=docs/tutorial-1-first-fleet.md
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "needs the superuser"; exit 77; }
if [ -z "${TUTORIAL_INSIDE:-}" ]; then
	unshare -mn true 2>/dev/null && command -v ip >/dev/null || { echo "needs namespaces and ip"; exit 77; }
	TUTORIAL_INSIDE=$(mktemp -d)
	export TUTORIAL_INSIDE
	rc=0
	unshare -mn "$0" || rc=$?
	rm -rf "$TUTORIAL_INSIDE"
	exit $rc
fi
dir=$TUTORIAL_INSIDE
fail() {
	echo "791-tutorial: failed: $*"
	tail -n 20 "$dir"/*.log 2>/dev/null
	exit 1
}
end() {
	for pid in $(cat "$dir"/*.pid 2>/dev/null); do
		kill "$pid" 2>/dev/null || true
	done
}
trap end EXIT

# --- the system
chmod 755 "$dir"
ip link set lo up
mkdir "$dir/bin" "$dir/etc"
cp "$BUILD/rivulet" "$BUILD/rivuletd" "$dir/bin"
cp -a /etc/. "$dir/etc"
mount --bind "$dir/etc" /etc
for place in /var/lib /srv /run; do
	mount -t tmpfs -o mode=755 none $place
done
echo "127.0.0.1 coord.example localhost" >/etc/hosts
cat >"$dir/bin/systemd-sysusers" <<END
#!/bin/sh
id=64900
sed -n 's/^u \([a-z-]*\) .* \(\/[a-z\/-]*\)$/\1 \2/p' $PWD/systemd/*.sysusers | while read -r name home; do
	id=\$((id + 1))
	grep -q "^\$name:" /etc/passwd && continue
	echo "\$name:x:\$id:\$id::\$home:/usr/sbin/nologin" >>/etc/passwd
	echo "\$name:x:\$id:" >>/etc/group
done
END
cat >"$dir/bin/systemd-tmpfiles" <<END
#!/bin/sh
sed -n 's/ :/ /g; s/^d //p' $PWD/systemd/*.tmpfiles | while read -r path mode user group; do
	install -d -m "\$mode" -o "\$user" -g "\$group" "\$path" || exit 1
done
END
cat >"$dir/bin/systemctl" <<END
#!/bin/sh
# systemctl daemon-reload | enable --now UNIT
[ "\$1" = enable ] || exit 0
unit=$PWD/systemd/\$3.service
user=\$(sed -n 's/^User=//p' \$unit)
run=\$(sed -n 's/^RuntimeDirectory=//p' \$unit)
[ -z "\$run" ] || install -d -o "\$user" -g "\$user" "/run/\$run"
runuser -u "\$user" -- sh -c 'echo \$\$; exec "\$@"' - \$(sed -n 's,^ExecStart=/usr/local/bin/,$dir/bin/,p' \$unit) >"$dir/\$3.pid" 2>"$dir/\$3.log" &
for i in \$(seq 300); do
	grep -qE " (ready|started|task|waiting)" "$dir/\$3.log" && exit 0
	sleep 0.1
done
exit 1
END
chmod 755 "$dir"/bin/*
export PATH="$dir/bin:$PATH"

# --- the blocks, as a reader pastes them
python3 tests/tools/blocks.py split "$PAGE" "$dir"
mkdir "$dir/reader" "$dir/reader/examples"
paste() { # paste FIRST WORD: the next block, which begins so
	block=$dir/block-$next
	next=$((next + 1))
	case $(cat "$block") in "$1"*) ;; *) fail "block $next of $PAGE does not begin with $1: $(head -n 1 "$block")" ;; esac
}
pasted() {
	(cd "$dir/reader" && sh -e "$block") >"$dir/said" 2>&1 || fail "$(cat "$block"): $(cat "$dir/said")"
}
next=0
paste systemd-sysusers
pasted
paste "(umask 077; runuser"
pasted
grep -q "ready" "$dir/said" || fail "rivulet status: $(cat "$dir/said")"
# The data is there before the agent looks for it.
next=3
paste awk
pasted
next=2
paste "runuser -u rivulet-device"
pasted
for i in $(seq 100); do
	rivulet device list >"$dir/said" 2>&1
	! grep -q "gate1 .*no-job" "$dir/said" || break
	[ "$i" -lt 100 ] || fail "device list: $(cat "$dir/said")"
	sleep 0.1
done
rivulet doctor --home /var/lib/rivulet-device >"$dir/said" 2>&1 || fail "doctor: $(cat "$dir/said")"
next=4
paste "{"
python3 -c 'import json, sys
shown, kept = (json.load(open(f)) for f in sys.argv[1:])
sys.exit(shown != kept)' "$block" examples/pumps.json || fail "the job of $PAGE is not examples/pumps.json"
sed 's/"goal": 2/"goal": 1/' "$block" >"$dir/reader/examples/pumps.json"
paste "rivulet train"
pasted
[ -s "$dir/reader/pumps.safetensors" ] || fail "no model"
rivulet job list --all | grep -q 'pumps .*done' || fail "the job is not done: $(rivulet job list)"
paste "from collections"
if python3 -c "import torch, safetensors" 2>/dev/null; then
	(cd "$dir/reader" && python3 "$block") >"$dir/said" 2>&1 || fail "$(cat "$block"): $(cat "$dir/said")"
fi
paste "[data mnist]"
paste "curl --unix-socket"
job=$(curl -sS --unix-socket /run/rivulet/admin.sock http://localhost/v1/jobs | sed 's/.*"job":"\([0-9a-f]*\)".*/\1/')
model=$(sha256sum "$dir/reader/pumps.safetensors" | cut -d ' ' -f 1)
sed -i "s/JOB/$job/; s/MODEL/$model/; s/^curl /curl -sS --fail-with-body /" "$block"
pasted
cmp "$dir/reader/pumps.safetensors" /var/lib/rivulet-device/model.safetensors || fail "another model over HTTP"
[ ! -e "$dir/block-$next" ] || fail "$PAGE has a block that nobody runs: $(cat "$dir/block-$next")"
echo "$next blocks"
