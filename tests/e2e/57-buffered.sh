#!/bin/sh
# stages: gcc address
# Rounds by buffers on a real fleet: devices of unlike speed, a coordinator and a device that are killed, an open buffer in a backup. All
# of it is folded again from the records; a delta that is too old is refused before a byte of it is read.
set -u
FLEET_NAME=57-buffered
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"

fleet_start "
[retention]
keep_deltas = yes"
for i in 1 2 3 4; do
	glyph_device "device$i" $i $((60 * i))
done
fleet_join idle ""
cat >"$FLEET/job.json" <<-END
	{"name": "gathered", "seed": 7,
	 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
	 "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
	 "upload": {"codec": ["sparse", "f32"], "share": 0.2}, "download": {"codec": "int8"},
	 "aggregate": {"normalise": true, "server_optimizer": {"name": "sgd", "momentum": 0.5}},
	 "round": {"mode": "buffered", "goal": 2, "concurrency": 4, "max_staleness": 4}, "stop": {"rounds": 40}}
END
job_submit "$FLEET/job.json"
curl_admin "/v1/jobs/$JOB" | pick "d['open']['mode'], d['open']['goal'], d['open']['concurrency'], d['open']['max_staleness']" >"$FLEET/open"
[ "$(cat "$FLEET/open")" = "('buffered', 2, 4, 4)" ] || fleet_fail "the open round: $(cat "$FLEET/open")"

# A task of the first round, which is answered when it is too late.
task=$("$peer" ask "$FLEET/idle" "$PORT") || fleet_fail "idle got no task"
fleet_run device1
committed() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed']")" -ge "$1" ]; }
reports() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['open']['reports']")" -ge 1 ]; }
within 20 reports || fleet_fail "device1 alone gives nothing"
# One device alone does not fill a buffer; it is there after a kill, and in a backup.
fleet_admin job list >/dev/null
"$RIVULETD" --config "$FLEET/rivuletd.conf" backup "$FLEET/backup" >"$FLEET/out" 2>&1 || fleet_fail "backup: $(cat "$FLEET/out")"
ls "$FLEET"/backup/spool/*.delta >/dev/null 2>&1 || find "$FLEET/backup" -name '*.delta' | grep -q . || fleet_fail "the backup has no delta"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
reports || fleet_fail "the delta is gone"
fleet_run device2
fleet_run device3
fleet_run device4
slow=$AGENT_PID
within 30 committed 8 || fleet_fail "no eight rounds"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
fleet_kill KILL "$slow"
fleet_run device4

# shellcheck disable=SC2086 # the task is four words
answer=$("$peer" put "$FLEET/idle" "$PORT" 7850 wait none $task 2>&1)
case $answer in "409 too-stale 0 "*) ;; *) fleet_fail "a delta of round 1: $answer" ;; esac
job_done 60

"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/out" 2>&1 || grep -q "in use" "$FLEET/out" || fleet_fail "check: $(cat "$FLEET/out")"
fleet_admin verify fetch "$FLEET/audit" >"$FLEET/out" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/out")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>&1 || fleet_fail "verify: $(cat "$FLEET/verified")"
[ "$(pick "d['rounds']['folded'], d['rounds']['committed']" <"$FLEET/verified")" = "(40, 40)" ] || fleet_fail "verified: $(cat "$FLEET/verified")"
stale=$(for n in $(seq 40); do curl_admin "/v1/jobs/$JOB/rounds/$n" | pick "sum(r['task_round'] < $n for r in d['devices'])"; done | awk '{ n += $1 } END { print n }')
[ "$stale" -ge 5 ] || fleet_fail "only $stale deltas were late: this shows nothing"
fleet_end
echo "40 buffers, $stale late deltas, folded again; a backup with an open buffer, two kills"
