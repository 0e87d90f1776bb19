#!/bin/sh
# stages: gcc
# Six devices, each behind a bad link of its own: late, slow, cut every second or two in every way a connection can end, with
# wrong bytes and with bytes that come twice. A model takes longer to pass than a connection lives. The job ends with the models
# of an undisturbed run; nothing is trained twice, and of what has passed once little passes again.
#   SEED=N      repeats the links' accidents, as far as time can be repeated
#   ROUNDS=N    of the job; default 2. COUNT=N devices; default 6. CUT=MIN-MAX, RATE=N as for the relay
#   FREEZE=1    adds links that forget connections without a word, which takes minutes
set -u
FLEET_NAME=44-broken-links
. tests/e2e/common.sh
SEED=${SEED:-$(date +%s)}
rounds=${ROUNDS:-2}
count=${COUNT:-6}
devices=
i=0
while [ $i -lt $count ]; do
	i=$((i + 1))
	devices="$devices device$i"
done
echo "seed $SEED"

run_all() {
	for name in $devices; do
		fleet_run "$name"
	done
}
relay_tell() { printf '%s\n' "$*" >"$FLEET/relay.control"; }

fleet_start
for i in $(seq $count); do
	glyph_device "device$i" "$i" 50
done
# 1,033,510 parameters, 4.1 MB: two seconds of a link.
glyph_job "$FLEET/job.json" links $count "$rounds"
sed -i 's/"out": 50/"out": 1300/; s/"rate": 0.1/"rate": 0.01/; s/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}},\n "stop"/' "$FLEET/job.json"
# shellcheck disable=SC2086 # a list
fleet_keep $devices

# shellcheck disable=SC2086
fleet_again $devices
job_submit "$FLEET/job.json"
start=$(date +%s)
run_all
job_done 120
# A machine that is busy with other things gets slower links that live longer: as much passes while a connection lives.
stretch=$((1 + ($(date +%s) - start) / 20))
cut=${CUT:-$((500 * stretch))-$((2000 * stretch))}
rate=${RATE:-$((2000000 / stretch))}
history >"$FLEET/history1"
undisturbed=$MODEL

# shellcheck disable=SC2086
fleet_again $devices
"$BUILD/tests/tools/relay" -s "$SEED" -n $count -c "$FLEET/relay.control" "127.0.0.1:$PORT" delay=20 "rate=$rate" "cut=$cut" \
	>"$FLEET/relay.out" 2>"$FLEET/relay.log" &
relay=$!
FLEET_PIDS="$FLEET_PIDS $relay"
ports() { [ -s "$FLEET/relay.out" ]; }
within 10 ports || fleet_fail "the relay did not start"
i=0
for port in $(head -n 1 "$FLEET/relay.out"); do
	i=$((i + 1))
	printf '[coordinator]\nurl = https://localhost:%s\n' "$port" >>"$FLEET/device$i/rivulet.conf"
	case $((i % 4)) in 0) end=rst ;; 1) end=fin ;; 2) end=up ;; 3) end=down ;; esac
	case $((i % 5)) in 0) more=corrupt=4000000 ;; 1) more=repeat=4000000 ;; *) more= ;; esac
	[ -z "${FREEZE:-}" ] || [ $((i % 7)) -ne 0 ] || end="freeze cut=5000-9000"
	relay_tell "$i end=$end${more:+ $more}"
done
job_submit "$FLEET/job.json"
start=$(date +%s)
run_all
job_done "${WITHIN:-${FREEZE:+1}300}"
took=$(($(date +%s) - start))
[ $stretch -eq 1 ] || echo "links $stretch times slower: the undisturbed run took long"
history >"$FLEET/history"
cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "differs: $(diff "$FLEET/history1" "$FLEET/history")"
[ "$MODEL" = "$undisturbed" ] || fleet_fail "the last model is $MODEL, not $undisturbed"
within 10 spool_empty || fleet_fail "left in the spool: $(ls "$FLEET/state/spool")"
fleet_end
tail -n 1 "$FLEET/relay.out"
counted() { # counted KEY: from the relay's last words
	sed -n "\$s/.*$1=\([0-9]*\).*/\1/p" "$FLEET/relay.out"
}
logs() { # logs PATTERN: lines in all devices' logs
	cat "$FLEET"/device*.log | grep -cE "$1"
}
cuts=$(($(counted rst) + $(counted fin) + $(counted " up") + $(counted " down") + $(counted freeze)))
[ $cuts -ge $((count * rounds * 2)) ] || fleet_fail "only $cuts connections were cut"
deltas=$((count * rounds))
[ "$(logs ' trained ')" -eq $deltas ] || fleet_fail "$(logs ' trained ') trainings for $deltas deltas"
downloads=$(logs 'model\.fetched .*from=coordinator at=[1-9]') uploads=$(logs 'delta\.resumed .*offset=[1-9]')
[ "$downloads" -ge $((deltas / 2)) ] || fleet_fail "only $downloads downloads went on where they broke"
[ "$uploads" -ge $((deltas / 2)) ] || fleet_fail "only $uploads times an upload went on where it broke"
# Downloads go on at the byte, uploads at the last whole MiB.
down=$(counted bytes_down) up=$(counted bytes_up) net=$((deltas * 4134040))
[ $((down * 10)) -le $((net * 12)) ] || fleet_fail "$down bytes came down for $net"
[ $((up * 10)) -le $((net * 25)) ] || fleet_fail "$up bytes went up for $net"
echo "$rounds rounds of $count devices in $took s, $cuts cuts, $(counted corrupted) wrong and $(counted repeated) repeated pieces;" \
	"$downloads downloads and $uploads uploads went on: $((down * 100 / net)) % and $((up * 100 / net)) % of the bytes"
