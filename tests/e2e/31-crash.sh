#!/bin/sh
# stages: gcc openssl thread
# The coordinator, and now and then a device, is killed with -9 at random moments of a job, also while it starts: the job
# still ends with the models of an undisturbed run, each round committed once, nothing left behind.
#   SEED=N   repeats the moments of a run, as far as time can be repeated
#   EPOCHS=N   of a round, where a step takes longer than elsewhere (default 10)
set -u
FLEET_NAME=31-crash
. tests/e2e/common.sh
SEED=${SEED:-$(date +%s)}
devices="device1 device2 device3 device4"
rounds=10
echo "seed $SEED"

random() { # random N: from 0 to N - 1, in $drawn
	SEED=$(((SEED * 1103515245 + 12345) % 2147483648))
	drawn=$((SEED / 65536 % $1))
}

fleet_start "
[data digits]
format = glyphs
seed = 1
count = 500"
glyph_device device1 1 200
glyph_device device2 2 400
glyph_device device3 3 600
glyph_device device4 4 3000
glyph_job "$FLEET/job.json" crash 4 $rounds
sed -i 's/"epochs": 1/"epochs": '"${EPOCHS:-10}"'/
	s/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}},\n "evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
# shellcheck disable=SC2086 # a list
fleet_keep $devices

# shellcheck disable=SC2086
fleet_again $devices
job_submit "$FLEET/job.json"
start=$(date +%s%N)
for name in $devices; do
	fleet_run "$name"
done
job_done 120
span=$((($(date +%s%N) - start) / 5000000)) # ms, of which a kill comes every half on the mean
history >"$FLEET/history1"
undisturbed=$MODEL

# shellcheck disable=SC2086
fleet_again $devices
job_submit "$FLEET/job.json"
for i in 1 2 3 4; do
	fleet_run "device$i"
	eval "pid$i=\$AGENT_PID"
done
kills=0 started=0 agents=0
# The first run may have been slowed down by other work and this one not: no more than two rounds without a kill.
two_rounds() { curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed'] >= 2 * ($kills + 1)" | grep -qx True; }
moment() {
	moment_end=$(($(date +%s%N) + drawn * 1000000))
	until [ "$(date +%s%N)" -ge $moment_end ] || two_rounds; do
		sleep 0.02
	done
}
while ! job_is_done; do
	random $span
	moment
	job_is_done && break
	[ $kills -lt 12 ] || { job_done 120; break; }
	if [ $((kills % 3)) -eq 2 ]; then
		random 4
		i=$((drawn + 1))
		eval "fleet_kill KILL \$pid$i"
		fleet_run "device$i"
		eval "pid$i=\$AGENT_PID"
		agents=$((agents + 1))
	fi
	fleet_kill KILL "$DAEMON_PID"
	kills=$((kills + 1))
	random 200
	if [ $((kills % 2)) -eq 0 ]; then
		"$RIVULETD" --config "$FLEET/rivuletd.conf" 2>>"$FLEET/rivuletd.log" &
		DAEMON_PID=$!
		sleep 0.$(printf %03d "$drawn")
		fleet_kill KILL "$DAEMON_PID"
		started=$((started + 1))
	fi
	fleet_restart
done
job_done 120
[ $kills -ge 3 ] || fleet_fail "the job was over after $kills kills, which shows little"
history >"$FLEET/history"
cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "differs: $(diff "$FLEET/history1" "$FLEET/history")"
[ "$MODEL" = "$undisturbed" ] || fleet_fail "the last model is $MODEL, not $undisturbed"
curl_admin "/v1/jobs/$JOB/rounds" |
	pick "[r['round'] for r in d['rounds']] == list(range(1, $rounds + 1)) and
	all(r['state'] == 'committed' and r['reports'] == 4 for r in d['rounds']) and
	all(a['model'] == b['base'] for a, b in zip(d['rounds'], d['rounds'][1:]))" | grep -qx True ||
	fleet_fail "rounds: $(curl_admin "/v1/jobs/$JOB/rounds")"
curl_admin /v1/devices | pick "[r['reports'] for r in d['devices']] == [$rounds] * 4" | grep -qx True ||
	fleet_fail "not $rounds reports per device: $(curl_admin /v1/devices)"
within 10 spool_empty || fleet_fail "left in the spool: $(ls "$FLEET/state/spool")"
[ "$(curl_admin /v1/status | pick "d['spool']['bytes']")" = 0 ] || fleet_fail "the spool counts bytes that are gone"
left=$(find "$FLEET/state" "$FLEET"/device? -name '*.tmp*' -o -name '*.part')
[ -z "$left" ] || fleet_fail "left behind: $left"
fleet_end
[ ! -e "$FLEET/state/lost" ] || fleet_fail "a crash left what was set aside: $(ls "$FLEET/state/lost")"
echo "the same $rounds rounds after $kills kills of the coordinator, $started while it started, and $agents of a device"
