#!/bin/sh
# stages: gcc
# The same keys, job document and data give the same models, to the bit: whatever the order in which devices report and the
# number of threads, when the coordinator or a device is killed in the middle of a round, and with the programs of other
# builds (the other back end, clang) where those have been made.
#   OTHER_BUILDS="DIR..."   which; default: those of build/mbedtls build/openssl build/mbedtls-clang build/openssl-clang;
#                           one that is older than the sources is left out
set -u
FLEET_NAME=30-reproducible
. tests/e2e/common.sh
OTHER_BUILDS=${OTHER_BUILDS:-build/mbedtls build/openssl build/mbedtls-clang build/openssl-clang}
own_rivuletd=$RIVULETD own_rivulet=$RIVULET
devices="device1 device2 device3 device4"
rounds=5

threads() { # threads IO WORKERS: of the coordinator, from its next start
	sed -i "s/^io_threads = .*/io_threads = $1/;s/^worker_threads = .*/worker_threads = $2/" "$FLEET/rivuletd.conf"
}

submit() {
	job_submit "$FLEET/job.json"
	open_base=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
}

order() { # order ROUND: the devices' names by the time they were accepted
	curl_admin "/v1/jobs/$JOB/rounds/$1" | pick "' '.join(r['name'] for r in sorted(d['devices'], key=lambda r: r['accepted_at']))"
}

reports() { # reports ROUND N: does that round, still open, have N?
	[ "$(curl_admin "/v1/jobs/$JOB" | pick "d['open'] and (d['open']['round'], d['open']['reports'])")" = "($1, $2)" ]
}

in_order() { # in_order NAME...: devices that report to round 1 in that order
	sent=0
	for name; do
		fleet_run "$name"
		sent=$((sent + 1))
		[ $sent -eq $# ] || within 60 reports 1 $sent || fleet_fail "$name did not report: $(curl_admin "/v1/jobs/$JOB")"
	done
}

rows() { # rows ROUND: who was accepted and when
	curl_admin "/v1/jobs/$JOB/rounds/$1" | pick "' '.join(sorted('%s=%r' % (r['name'], r['accepted_at']) for r in d['devices']))"
}

same() { # same WHAT: this run's history is the first one's
	job_done 120
	history >"$FLEET/history"
	[ "$(wc -l <"$FLEET/history")" -eq $rounds ] || fleet_fail "$1: not $rounds rounds: $(cat "$FLEET/history")"
	if [ -f "$FLEET/history1" ]; then
		cmp -s "$FLEET/history1" "$FLEET/history" ||
			fleet_fail "$1: differs: $(diff "$FLEET/history1" "$FLEET/history")"
	else
		cp "$FLEET/history" "$FLEET/history1"
	fi
	within 10 spool_empty || fleet_fail "$1: left in the spool: $(ls "$FLEET/state/spool")"
	echo "ok: $1: $MODEL"
}

# kill_coordinator ROUND N: with -9 when N devices of that round, and no more, are durable; they must stay so.
kill_coordinator() {
	within 60 reports "$1" "$2" || fleet_fail "round $1 has not $2 reports: $(curl_admin "/v1/jobs/$JOB")"
	before=$(rows "$1")
	fleet_kill KILL "$DAEMON_PID"
	fleet_restart
	reports "$1" "$2" || fleet_fail "accepted reports are gone: $(curl_admin "/v1/jobs/$JOB")"
	[ "$(rows "$1")" = "$before" ] || fleet_fail "accepted rows changed: '$before' became '$(rows "$1")'"
}

fleet_start "
io_threads = 1
worker_threads = 1
[data digits]
format = glyphs
seed = 1
count = 500"
# device4 trains long enough that something can happen meanwhile.
glyph_device device1 1 100
glyph_device device2 2 200
glyph_device device3 3 300
glyph_device device4 4 3000
glyph_job "$FLEET/job.json" reproducible 4 $rounds
sed -i 's/"epochs": 1/"epochs": 15/
	s/"stop"/"download": {"codec": "int4"}, "aggregate": {"server_optimizer": {"name": "sgd", "rate": 0.9, "momentum": 0.5}},\n "evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
# shellcheck disable=SC2086 # a list
fleet_keep $devices

# shellcheck disable=SC2086
fleet_again $devices
submit
# shellcheck disable=SC2086
in_order $devices
same "one thread, devices in order"
first_order=$(order 1)

threads 3 4
# shellcheck disable=SC2086
fleet_again $devices
submit
in_order device4 device3 device2 device1
same "more threads, devices the other way round"
[ "$first_order/$(order 1)" = "$devices/device4 device3 device2 device1" ] || fleet_fail "the orders of arrival: $first_order, $(order 1)"

# Killed while two devices have reported and two have not been started, and again while device4 is held up.
# shellcheck disable=SC2086
fleet_again $devices
submit
fleet_run device2
fleet_run device1
kill_coordinator 1 2
first_rows=$before
fleet_run device3
fleet_run device4
device4=$AGENT_PID
in_round_2() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"] > 0')" = True ]; }
three_reports() {
	stopped=$(curl_admin "/v1/jobs/$JOB" | pick "d['open']['round'] if d['open'] and d['open']['reports'] == 3 else 0")
	[ "$stopped" -gt 1 ]
}
# A delta of its may have been on its way: then that round ends, and the next one stays.
held_up() { three_reports && sleep 1 && reports "$stopped" 3; }
within 60 in_round_2 || fleet_fail "round 1 was not committed"
kill -STOP "$device4"
within 30 held_up || fleet_fail "device4 could not be held up in a round: $(curl_admin "/v1/jobs/$JOB")"
kill_coordinator "$stopped" 3
kill -CONT "$device4"
same "the coordinator killed in rounds 1 and $stopped"
for row in $first_rows; do
	case " $(rows 1) " in *" $row "*) ;; *) fleet_fail "the row $row of round 1 became one of $(rows 1)" ;; esac
done

# Killed with its delta on its own disk, because the coordinator is held up; what it kept is what it sends. A busy machine
# may let the delta through before the coordinator is held up: then once more.
in_outbox() { [ -n "$(find "$FLEET/device4/outbox" -name '*.delta' 2>/dev/null)" ]; }
kill_device4() {
	# shellcheck disable=SC2086
	fleet_again $devices
	submit
	fleet_run device3
	fleet_run device1
	fleet_run device2
	within 60 reports 1 3 || fleet_fail "round 1 has not 3 reports"
	fleet_run device4
	wait_end=$(($(date +%s) + 60 * TEST_PATIENCE))
	until [ -f "$FLEET/device4/models/$open_base.safetensors" ]; do
		[ "$(date +%s)" -lt $wait_end ] || fleet_fail "device4 fetched no model"
	done
	kill -STOP "$DAEMON_PID"
	kept=0
	while [ $kept -eq 0 ] && ! grep -q 'delta.accepted' "$FLEET/device4.log"; do
		[ "$(date +%s)" -lt $wait_end ] || fleet_fail "device4 made no delta"
		in_outbox && kept=1
	done
	[ $kept -eq 0 ] || fleet_kill KILL "$AGENT_PID"
	kill -CONT "$DAEMON_PID"
	mv "$FLEET/device4.log" "$FLEET/device4-before.log"
	[ $kept -eq 1 ] && ! grep -q 'delta.accepted' "$FLEET/device4-before.log"
}
tries=0
until kill_device4; do
	tries=$((tries + 1))
	[ $tries -lt 10 ] || fleet_fail "device4 could not be killed between training and sending"
done
fleet_run device4
same "a device killed before it could send"
grep -q 'delta.accepted.* round=1 ' "$FLEET/device4.log" || fleet_fail "device4 did not send what it had kept"
grep -q 'trained.* round=1 ' "$FLEET/device4.log" && fleet_fail "device4 trained again instead of sending what it had kept"

found=
for other in $OTHER_BUILDS; do
	[ -x "$other/rivuletd" ] && [ "$(realpath "$other")" != "$(realpath "$BUILD")" ] || continue
	# What was built from other sources may well give other bits.
	if find aggregator base client crypto daemon data model round wire -name '*.[ch]' -newer "$other/rivulet" | grep -q .; then
		echo "skipped: $other is older than the sources"
		continue
	fi
	found=1
	for turn in 1 2; do
		case $turn in
		1) RIVULETD=$other/rivuletd first=$own_rivulet second=$other/rivulet ;;
		2) RIVULETD=$own_rivuletd first=$other/rivulet second=$own_rivulet ;;
		esac
		# shellcheck disable=SC2086
		fleet_again $devices
		RIVULET=$own_rivulet
		submit
		RIVULET=$first
		fleet_run device4
		fleet_run device1
		RIVULET=$second
		fleet_run device3
		fleet_run device2
		RIVULET=$own_rivulet
		same "coordinator of ${RIVULETD%/rivuletd} ($(sed -n 's/.*backend=\("[^"]*"\|[^ ]*\).*/\1/p' "$FLEET/rivuletd.log" | tail -n 1)), devices of both"
	done
done
[ -n "$found" ] || echo "skipped: no build to compare with among $OTHER_BUILDS"
[ "$(cut -d ' ' -f 4 "$FLEET/history1" | sort -u | wc -l)" -eq $rounds ] || fleet_fail "rounds gave the same model"
fleet_end
