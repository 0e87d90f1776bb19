#!/bin/sh
# stages: gcc
# A device behind a slow link that breaks: its upload of 12 MiB goes on after the link was cut, the coordinator killed and the device
# killed, and so does its download of the model; each byte range travels about once, and the model is that of an undisturbed run.
#   BUILD=build/mbedtls tests/e2e/331-resume-device.sh
set -u
FLEET_NAME=331-resume-device
. tests/e2e/common.sh
relay=$BUILD/tests/tools/relay
[ -x "$relay" ] || skip "needs $relay"
MIB=1048576

fleet_start ""
glyph_device a 1 60
large_job 2
fleet_keep a
fleet_again a
job_submit "$FLEET/job.json"
fleet_run a
job_done 60
want=$MODEL

# --- the same through the link
fleet_again a
mkfifo "$FLEET/control"
"$relay" -c "$FLEET/control" "localhost:$PORT" rate=$((2 * MIB)) >"$FLEET/ports" 2>"$FLEET/relay.log" &
FLEET_PIDS="$FLEET_PIDS $!"
within 5 test -s "$FLEET/ports" || fleet_fail "no relay"
exec 3>"$FLEET/control"
printf '\n[coordinator]\nurl = https://localhost:%s\n' "$(cat "$FLEET/ports")" >>"$FLEET/a/rivulet.conf"
job_submit "$FLEET/job.json"

fetched() { # fetched BYTES: is so much of a model in the device's cache?
	[ "$(find "$FLEET/a/models" -type f -size +"$(($1 / 1024))k" 2>/dev/null | wc -l)" -gt 0 ]
}
# find finds nothing while the file is renamed: the question comes again.
resumed() { # resumed N BYTES: is there an Nth event of an upload that went on, at BYTES or later?
	sed -n 's/.*delta.resumed .*offset=\([0-9]*\).*/\1/p' "$FLEET/a.log" | sed -n "$1p" | grep -q . || return 1
	[ "$(sed -n 's/.*delta.resumed .*offset=\([0-9]*\).*/\1/p' "$FLEET/a.log" | sed -n "$1p")" -ge "$2" ]
}

# The link is so slow that what is seen under way still is when the next thing happens. The download: cut, then a killed coordinator, then a killed device.
fleet_run a
within 20 fetched $((2 * MIB)) || fleet_fail "the model does not come"
echo "all now=1" >&3
within 20 fetched $((4 * MIB)) || fleet_fail "the model does not go on after a cut"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
within 30 fetched $((6 * MIB)) || fleet_fail "the model does not go on after a killed coordinator"
fleet_kill KILL "$AGENT_PID"
fleet_run a
# The upload: the same.
within 60 uploaded $((2 * MIB)) || fleet_fail "the delta does not come"
echo "all now=1" >&3
within 30 resumed 1 $MIB || fleet_fail "the upload did not go on after a cut"
within 30 uploaded $((5 * MIB)) || fleet_fail "the delta does not go on after a cut"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
within 60 resumed 2 $((4 * MIB)) || fleet_fail "the upload did not go on after a killed coordinator"
within 30 uploaded $((8 * MIB)) || fleet_fail "the delta does not go on after a killed coordinator"
fleet_kill KILL "$AGENT_PID"
fleet_run a
within 60 resumed 3 $((7 * MIB)) || fleet_fail "the upload did not go on after a killed device"
# The second round: cut at random the whole time.
echo "all rate=$((4 * MIB)) cut=500-1500 now=1" >&3
job_done 150
[ "$MODEL" = "$want" ] || fleet_fail "the model is $MODEL, undisturbed it was $want"
within 10 spool_empty || fleet_fail "left in the spool: $(ls "$FLEET/state/spool")"
grep -q 'round=1 .*status=201' "$FLEET/a.log" || fleet_fail "no receipt of round 1"
# The last answer may have been cut off, too: then it is asked for again.
receipts() { [ "$(grep -c 'delta.accepted' "$FLEET/a.log")" = 2 ]; }
within 20 receipts || fleet_fail "receipts: $(grep delta.accepted "$FLEET/a.log")"
# What the relay passed on: two models and two deltas of 12 MiB, and what cuts cost.
echo "stats $FLEET/stats" >&3
within 5 test -s "$FLEET/stats" || fleet_fail "no figures of the relay"
exec 3>&-
figure() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" "$FLEET/stats" | head -n 1; }
bytes=$((2 * 4 * 3180010))
[ "$(figure bytes_down)" -lt $((bytes + 3 * MIB)) ] || fleet_fail "two models are $bytes bytes; $(figure bytes_down) went down"
[ "$(figure bytes_up)" -lt $((bytes + 16 * MIB)) ] || fleet_fail "two deltas are $bytes bytes; $(figure bytes_up) went up"
count=$(grep -c 'delta.resumed' "$FLEET/a.log")
fleet_end
echo "ok: model $want; $count uploads went on where they ended; $(tr '\n' ' ' <"$FLEET/stats")"
