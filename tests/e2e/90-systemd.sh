#!/bin/sh
# stages: gcc address
# The units parse, name options that exist, and rivuletd's exposure stays low.
set -eu
BUILD=${BUILD:-build/mbedtls}
MOST=1.5
command -v systemd-analyze >/dev/null || { echo "needs systemd-analyze"; exit 77; }
systemd-analyze security --help 2>/dev/null | grep -q -- --offline || { echo "needs systemd 250 or later"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# verify wants the programs of ExecStart, so they point at the build.
for unit in systemd/*.service; do
	sed "s,/usr/local/bin,$(realpath "$BUILD")," "$unit" >"$dir/${unit##*/}"
done
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$dir"/*.service >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
# Unknown keys are only warnings.
if grep -E 'rivuletd?\.service' "$dir/said"; then
	exit 1
fi

systemd-analyze security --offline=true systemd/rivuletd.service >"$dir/said"
score=$(sed -n 's/.*exposure level for rivuletd.service: \([0-9.]*\) .*/\1/p' "$dir/said")
awk -v s="$score" -v most=$MOST 'BEGIN { exit !(s != "" && s + 0 > 0 && s + 0 <= most) }' || {
	cat "$dir/said"
	exit 1
}

# Neither leaves its keys in a file, and the coordinator takes a bounded part of the machine.
for line in LimitCORE=0 MemoryMax= TasksMax=; do
	grep -q "^$line" systemd/rivuletd.service || { echo "rivuletd.service: no $line"; exit 1; }
done
grep -qx LimitCORE=0 systemd/rivulet.service || { echo "rivulet.service: no LimitCORE=0"; exit 1; }

# With systemd's own sets alone neither could confine anything.
allowed() { # allowed UNIT: the calls that its filter lets through, sets resolved; what is taken away again does not matter here
	sed -n 's/^SystemCallFilter=\([^~].*\)/\1/p' "systemd/$1" | tr ' ' '\n' >"$dir/words"
	while grep -q '^@' "$dir/words"; do
		for set in $(grep '^@' "$dir/words"); do
			systemd-analyze syscall-filter "$set"
		done | sed -n 's/^  *\([@a-z0-9_-]*\)$/\1/p' >"$dir/more"
		{ grep -v '^@' "$dir/words" || true; cat "$dir/more"; } >"$dir/next"
		mv "$dir/next" "$dir/words"
	done
	cat "$dir/words"
}
for unit in rivulet.service rivuletd.service; do
	allowed $unit >"$dir/calls"
	for call in landlock_create_ruleset landlock_add_rule landlock_restrict_self prctl; do
		grep -qx $call "$dir/calls" || { echo "$unit: $call is refused"; exit 1; }
	done
done
allowed rivulet.service | grep -qx seccomp || { echo "rivulet.service: seccomp is refused"; exit 1; }

# Trainers: a control group each, and a bounded place for shared memory of their own.
grep -qx 'Delegate=memory pids' systemd/rivulet.service && ! grep -q '^ProtectControlGroups=[^n]' systemd/rivulet.service &&
	# Options are handed to mount as they stand: a "%%" would be one of its own, and the agent would not start.
	grep -q '^TemporaryFileSystem=/dev/shm:.*size=[0-9]*%,' systemd/rivulet.service || { echo "rivulet.service: trainers are not bounded"; exit 1; }

# Trainers with a user of their own: three capabilities and no more, calls that they need, a user and directories that are made.
mkdir "$dir/rivulet.service.d"
sed "s,/usr/local/bin,$(realpath "$BUILD")," systemd/trainer-user.conf >"$dir/rivulet.service.d/trainer-user.conf"
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$dir/rivulet.service" >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
if grep -E 'rivulet\.service|trainer-user' "$dir/said"; then
	exit 1
fi
for line in AmbientCapabilities CapabilityBoundingSet; do
	grep -qx "$line=CAP_SETUID CAP_SETGID CAP_KILL" systemd/trainer-user.conf || { echo "trainer-user.conf: $line is another"; exit 1; }
done
allowed rivulet.service >"$dir/calls"
for call in setresuid setresgid setgroups capset fchown fchmod pidfd_open pidfd_send_signal flock; do
	grep -qx $call "$dir/calls" || { echo "rivulet.service: $call is refused"; exit 1; }
done
grep -qx "SupplementaryGroups=$(sed -n 's/^u \(rivulet-trainer\) .*/\1/p' systemd/rivulet.sysusers)" systemd/trainer-user.conf ||
	{ echo "trainer-user.conf: another group than rivulet.sysusers makes"; exit 1; }
grep -qx 'd /var/lib/rivulet-trainer/rivulet-device 0750 rivulet-device rivulet-trainer' systemd/rivulet.tmpfiles &&
	grep -qx 'd /var/lib/rivulet-trainer 0755 root root' systemd/rivulet.tmpfiles &&
	grep -qx 'ReadWritePaths=-/var/lib/rivulet-trainer/rivulet-device' systemd/trainer-user.conf || { echo "rivulet.tmpfiles does not make what trainer-user.conf names"; exit 1; }

# What only a person can mend stops the units: the programs' own number for it.
printf '[server]\nlistn = 1\n' >"$dir/bad.conf"
mkdir "$dir/home"
for command in "rivuletd --config $dir/bad.conf" "rivuletd --config $dir/none.conf" "rivulet run --home $dir/home"; do
	rc=0
	# shellcheck disable=SC2086 # words
	"$BUILD"/$command 2>"$dir/said" || rc=$?
	[ "$rc" -eq 78 ] || { echo "$command: $rc"; cat "$dir/said"; exit 1; }
done
for unit in systemd/*.service; do
	grep -qx RestartPreventExitStatus=78 "$unit" && grep -q '^RequiresMountsFor=/var/lib/' "$unit" || { echo "$unit tries for ever"; exit 1; }
done

# What the units start must be what the programs understand.
"$BUILD/rivuletd" --help >"$dir/said" 2>&1 || true
grep -q -- '--config FILE' "$dir/said"
"$BUILD/rivulet" run --help >"$dir/said" 2>&1 || true
grep -q -- '--home' "$dir/said"

for unit in rivuletd rivulet; do
	user=$(sed -n 's/^User=//p' systemd/$unit.service)
	grep -q "^u $user - " systemd/$unit.sysusers || { echo "$user is not in $unit.sysusers"; exit 1; }
	grep -q "^d /var/lib/$user 07[05]0 $user $user\$" systemd/$unit.tmpfiles || { echo "$unit.tmpfiles does not make $user's directory"; exit 1; }
done
echo "rivuletd.service: exposure $score, at most $MOST"
