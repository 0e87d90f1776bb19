#!/bin/sh
# stages: gcc address
# A year in a minute: 20 devices whose clocks, and whose coordinator's, jump by -12 years, -1, +2 and +400 days, while they run and while they
# start; certificates for a day, which stand for years; two changes of the CA. Within a minute of the clocks being right all
# train again; in the end no key has joined anew, and nothing that was young is gone for its age. What happens when is drawn from SEED.
#   FULL=1 SEED=7 tests/e2e/72-year.sh      FULL=1: more jumps      SPEED=N: both clocks run so many times as fast
# Only programs built with FAULTS=1 have a monotonic clock that can be made faster; libfaketime moves the one on the wall, and TLS's dates.
set -u
FLEET_LOG_LINES=${FLEET_LOG_LINES:-2}
FLEET_NAME=72-year
BUILD=${FAULTS_BUILD:-build/faults}
. tests/e2e/common.sh
SEED=${SEED:-1} SPEED=${SPEED:-10} count=20
fake=
[ -z "${SAN:-}" ] && command -v faketime >/dev/null && fake=$(faketime -f +0s sh -c 'echo $LD_PRELOAD')
[ -n "$fake" ] || skip "needs libfaketime, and a build without sanitizers"
started=$(date +%s)
devices=$(seq -f 'd%02.0f' $count)

# --- clocks
RIVULET_CLOCK_SPEED=$SPEED
FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1
FAKETIME_FORCE_MONOTONIC_FIX=0 # which lets who waits for a condition wait not at all
export RIVULET_CLOCK_SPEED FAKETIME_DONT_FAKE_MONOTONIC FAKETIME_NO_CACHE FAKETIME_FORCE_MONOTONIC_FIX
world=$(date +%s%N)
clock() { # clock NAME SECONDS: off the world's by so much; libfaketime makes faster what passes since a process began, the rest is added
	eval "clock_began=\$began_$1 jump_$1=$2"
	clock_off=$(((clock_began - world) / 1000000 * (SPEED - 1) / 1000 + $2))
	[ $clock_off -lt 0 ] || clock_off=+$clock_off
	echo "${clock_off}s x$SPEED" >"$FLEET/$1.clock.new"
	mv "$FLEET/$1.clock.new" "$FLEET/$1.clock"
}
begins() { # begins NAME: a process that goes by this clock starts now
	eval "began_$1=$(date +%s%N)"
	eval "clock $1 \${jump_$1:-0}"
}
minutes() { # minutes N COMMAND...: repeats it for N of the fast minutes, for longer on a busy machine; TOOK: how many of their seconds
	minutes_most=$(($1 * 60 * TEST_PATIENCE)) minutes_from=$(date +%s%N)
	shift
	until "$@"; do
		TOOK=$((($(date +%s%N) - minutes_from) / 1000000 * SPEED / 1000))
		[ $TOOK -lt $minutes_most ] || return 1
		sleep 0.1
	done
	TOOK=$((($(date +%s%N) - minutes_from) / 1000000 * SPEED / 1000))
}

# --- processes
program=$RIVULETD
start_daemon() {
	begins daemon
	fleet_restart
}
d() { # a command of the coordinator, by its clock
	jump_command=$jump_daemon
	begins command
	env LD_PRELOAD="$fake" FAKETIME_TIMESTAMP_FILE="$FLEET/command.clock" "$program" --config "$FLEET/rivuletd.conf" "$@"
}
agent() { # agent NAME
	begins "$1"
	env LD_PRELOAD="$fake" FAKETIME_TIMESTAMP_FILE="$FLEET/$1.clock" "$RIVULET" run --home "$FLEET/$1" 2>>"$FLEET/$1.log" &
	eval "pid_$1=$!"
	FLEET_PIDS="$FLEET_PIDS $!"
}
restart() { # restart NAME: which ends in one of two ways
	eval "restart_pid=\$pid_$1"
	fleet_kill "$(drawn TERM KILL)" "$restart_pid"
	agent "$1"
}
reload() {
	reloads=$(grep -c 'reload.done' "$FLEET/rivuletd.log")
	kill -HUP "$DAEMON_PID"
	[ "$(log_lines $((reloads + 1)) "$FLEET/rivuletd.log" 'reload.done')" -gt "$reloads" ] || fleet_fail "no reload"
}

# --- chance: each word that is asked for takes the next number of a sequence
chance=$SEED
draw() { # draw N: DRAWN, below N
	chance=$(((chance * 1103515245 + 12345) % 2147483648))
	DRAWN=$((chance / 65536 % $1))
}
drawn() { # drawn WORD...: one of them. In a subshell: what is drawn next is the same unless draw was called
	draw $#
	shift "$DRAWN"
	echo "$1"
}
jump() { # a day or years: JUMP
	draw 4
	case $DRAWN in 0) JUMP=-378432000 ;; 1) JUMP=-86400 ;; 2) JUMP=172800 ;; 3) JUMP=34560000 ;; esac
}

# --- what must be so
accepted() { grep -c 'delta.accepted' "$FLEET"/d[0-9]*.log; }
mark() { accepted >"$FLEET/before"; }
all_trained() { # since the mark
	accepted | awk -F: 'NR == FNR {had[$1] = $2; next} $2 <= had[$1] {exit 1}' "$FLEET/before" -
}
healed() { # healed WHAT
	mark
	minutes 1 all_trained || fleet_fail "seed $SEED: $1: after a minute some do not train: $(
		accepted | awk -F: 'NR == FNR {had[$1] = $2; next} $2 <= had[$1] {print $1}' "$FLEET/before" -) $(fleet_admin device list; fleet_admin status)"
	[ $TOOK -le $slowest ] || slowest=$TOOK
}
slowest=0
identities() {
	curl_admin /v1/devices | pick '"\n".join("%s %s %r" % (v["name"], v["device"], v["joined_at"]) for v in d["devices"])'
	for name in $devices; do openssl pkey -in "$FLEET/$name/key.pem" -pubout | sha256sum; done
}
kept() { for name in $devices; do ls "$FLEET/$name/local" "$FLEET/$name/variates" "$FLEET/$name/residual"; done; }

# --- a fleet
fleet_dir
jump_daemon=0
began_daemon=$world
clock daemon 0
cat >"$FLEET/rivuletd.sh" <<END
#!/bin/sh
export LD_PRELOAD='$fake' FAKETIME_TIMESTAMP_FILE=$FLEET/daemon.clock
exec $program "\$@"
END
chmod +x "$FLEET/rivuletd.sh"
RIVULETD=$FLEET/rivuletd.sh
begins daemon
# Where deletion by age waits for a clock that is right, it is tried, too.
old=
fleet_admin clock --help >/dev/null 2>&1 && old="[retention]
ended_jobs = 90d"
fleet_start "[limits]
long_poll = 5
retry_after = 1
[identity]
device_validity = 1d
$old"
enrol() {
	for name; do
		"$RIVULET" join "$URL" --token-file "$FLEET/token" --name "$name" --home "$FLEET/$name" >>"$FLEET/join.log" 2>&1 || return 1
		printf '[device]\nthreads = 1\n[data digits]\nformat = glyphs\nhand = 1\ncount = 40\nseed = 1\n' >>"$FLEET/$name/rivulet.conf"
		mkdir -p "$FLEET/$name/local" "$FLEET/$name/variates" "$FLEET/$name/residual"
		for file in local/%s.weights variates/%s.own residual/%s.sum; do
			# shellcheck disable=SC2059 # it is a format
			: >"$FLEET/$name/$(printf "$file" 0123456789abcdef0123456789abcdef)"
		done
	done
}
# shellcheck disable=SC2046
enrol $(seq -f 'd%02.0f' 1 10) &
half=$!
# shellcheck disable=SC2046
enrol $(seq -f 'd%02.0f' 11 $count) || fleet_fail "joining"
wait $half || fleet_fail "joining"
glyph_job "$FLEET/job.json" over 2 1
job_submit "$FLEET/job.json"
ended=$JOB
for name in $devices; do agent "$name"; done
minutes 2 job_is_done || fleet_fail "the first job does not end"
glyph_job "$FLEET/job.json" year $count 1000000
sed -i 's/"deadline_s": 3600/"quorum": 5, "deadline_s": 30, "grace_s": 5/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
identities >"$FLEET/identities"
kept >"$FLEET/kept"
healed "at first"

# --- who is locked out is told
locked() {
	curl -sS --cacert "$FLEET/d01/ca.pem" --cert "$FLEET/d01/cert.pem" --key "$FLEET/d01/key.pem" -d '{}' "$URL/v1/tasks" 2>&1 | grep -q 'expired-certificate'
}
for name in $devices; do
	eval "kill -STOP \$pid_$name"
done
clock daemon 34560000
minutes 1 locked || fleet_fail "a certificate of a day is good after 400 days"
# An ask from before that is answered now is heard of: it counts as let in once more.
out() { locked && fleet_admin device list | grep -q "d01 .*locked-out .*expired-certif" && fleet_admin status | grep -q "active devices* .*locked out"; }
minutes 1 out || fleet_fail "nobody is told who is locked out"
run 0 fleet_admin device list
says "d01 .*locked-out .*expired-certif" "[0-9] LOCKED OUT: their certificates are refused"
run 0 fleet_admin status
says "[0-9] active (device is|devices are) locked out.*is the coordinator's clock right"
for name in $devices; do
	eval "kill -CONT \$pid_$name"
done
clock daemon 0
healed "after a look at who is locked out"

# --- the year
turn() { # turn SIDE: its clocks jump, some of its processes start anew meanwhile, and then they are right
	turn_names=
	draw 3
	turn_restart=$DRAWN
	case $1 in coordinator | both)
		jump
		turn_told="$turn_told coordinator $JUMP"
		clock daemon "$JUMP"
		if [ "$turn_restart" -eq 1 ]; then
			fleet_kill "$(drawn TERM KILL)" "$DAEMON_PID"
			start_daemon
			turn_told="$turn_told (restarted)"
		fi
		;;
	esac
	case $1 in devices | both)
		jump
		for name in $devices; do
			draw 2
			[ "$DRAWN" -eq 0 ] || turn_names="$turn_names $name"
		done
		turn_told="$turn_told devices$turn_names $JUMP"
		for name in $turn_names; do
			clock "$name" "$JUMP"
			[ "$turn_restart" -ne 1 ] || restart "$name"
		done
		;;
	esac
	draw 3
	sleep $((1 + DRAWN))
	for name in $turn_names; do
		clock "$name" 0
		[ "$turn_restart" -ne 2 ] || restart "$name"
	done
	clock daemon 0
	if [ "$turn_restart" -eq 2 ] && [ "$1" != devices ]; then
		fleet_kill "$(drawn TERM KILL)" "$DAEMON_PID"
		start_daemon
	fi
}
all_renewed() { d ca status | grep -q '^0 devices have not renewed'; }
change=0
for n in $(seq "${TURNS:-$([ -n "${FULL:-}" ] && echo 12 || echo 5)}"); do
	turn_told="turn $n:"
	# The CA is changed over two turns, of which the first finds it half done.
	if [ $change -lt 4 ] && [ $((change % 2)) -eq 0 ]; then
		d ca rotate >/dev/null || fleet_fail "ca rotate"
		reload
		change=$((change + 1))
		turn_told="$turn_told ca rotate,"
	fi
	draw 3
	case $DRAWN in 0) turn coordinator ;; 1) turn devices ;; 2) turn both ;; esac
	healed "$turn_told"
	if [ $((change % 2)) -eq 1 ]; then
		minutes 2 all_renewed || fleet_fail "seed $SEED: $turn_told: not under the next CA: $(d ca status)"
		d ca rotate >/dev/null 2>&1 && fleet_fail "a second change begins before the first is over"
		d ca finish >/dev/null 2>"$FLEET/finish" || fleet_fail "seed $SEED: ca finish: $(cat "$FLEET/finish")"
		reload
		change=$((change + 1))
		healed "$turn_told and another CA"
	fi
	echo "$turn_told: ${TOOK} s" >>"$FLEET/turns"
done

# --- in the end
[ "$(d ca status | sed -n 's/^generation //p')" = 3 ] || fleet_fail "not two changes of the CA: $(d ca status)"
identities | cmp -s - "$FLEET/identities" || fleet_fail "seed $SEED: somebody is another: $(identities | diff - "$FLEET/identities")"
kept | cmp -s - "$FLEET/kept" || fleet_fail "seed $SEED: deleted for its age: $(kept | diff - "$FLEET/kept")"
[ -z "$old" ] || curl_admin "/v1/jobs/$ended" >/dev/null || fleet_fail "seed $SEED: a young job was deleted for its age"
well() { env LD_PRELOAD="$fake" FAKETIME_TIMESTAMP_FILE="$FLEET/look.clock" "$RIVULET" doctor --home "$FLEET/$name" >"$FLEET/doctor"; }
for name in d01 d10 d20; do
	begins look
	minutes 1 well || fleet_fail "seed $SEED: $name: $(cat "$FLEET/doctor")"
done
[ -z "${VERBOSE:-}" ] || cat "$FLEET/turns" >&2
fleet_end
echo "seed $SEED: $count devices, $n jumps and two changes of the CA in $(($(date +%s) - started)) s; all back within $slowest s at $SPEED times the speed"
