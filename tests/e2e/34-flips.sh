#!/bin/sh
# stages: gcc address
# One bit of a coordinator's state flips: `rivuletd check` finds it, or it cannot matter, and a coordinator that is started on it does
# nothing wrong silently. Likewise a value of another kind or length in a row. FLIPS=2000 ODD=0 for all of it, SEED=n for the same ones again.
set -u
umask 077
FLEET_NAME=34-flips
. tests/e2e/common.sh
# Its coordinators must start without a word.
unset RIVULET_KEEP_ANSWERS

fleet_start "reserve = 0
[retention]
keep_deltas = yes
[data digits]
format = glyphs
seed = 1
count = 100"
for i in 1 2 3; do
	glyph_device device$i $i 60
done
small() { # small NAME GOAL ROUNDS EVALUATE
	glyph_job "$FLEET/$1.json" "$1" "$2" "$3"
	python3 -S -E - "$FLEET/$1.json" "$4" <<-'END' || fleet_fail "cannot write the job"
		import json, sys
		d = json.load(open(sys.argv[1]))
		d["model"]["layers"] = [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}]
		d["data"]["validation"] = 0.2
		d["aggregate"] = {"server_optimizer": {"name": "sgd", "momentum": 0.5}}
		d["evaluate"] = json.loads(sys.argv[2])
		d["monitor"] = {"metric": "loss"}
		d["keep"] = {"last": 1, "every": 0, "best": 2}
		json.dump(d, open(sys.argv[1], "w"))
	END
	job_submit "$FLEET/$1.json"
}
train() { # train DEVICE...: one task each
	for device; do
		timeout $((120 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/$device" --rounds 1 2>>"$FLEET/$device.log" || fleet_fail "$device"
	done
}
round_is() { # round_is N REPORTS
	[ "$(curl_admin "/v1/jobs/$JOB" | pick "(d['open']['round'], d['open']['reports'])" 2>/dev/null)" = "($1, $2)" ]
}
small past 3 1 '{"by": "coordinator", "data": "digits"}'
train device1 device2 device3
job_done 60
small present 3 9 '{"by": "devices"}'
for round in 1 2 3; do
	train device1 device2 device3
	within 30 round_is $((round + 1)) 0 || fleet_fail "round $round did not end: $(curl_admin "/v1/jobs/$JOB")"
done
train device1 device2
within 30 round_is 4 2 || fleet_fail "no open round with two deltas: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job set present priority=3 >"$FLEET/out" 2>&1 || fleet_fail "job set: $(cat "$FLEET/out")"
fleet_admin token create --uses 3 --expires 24h >"$FLEET/out" 2>&1 || fleet_fail "token create: $(cat "$FLEET/out")"
fleet_admin token create --access --role reader >"$FLEET/out" 2>&1 || fleet_fail "token create: $(cat "$FLEET/out")"
fleet_join spare ""
fleet_admin device suspend spare >"$FLEET/out" 2>&1 || fleet_fail "device suspend: $(cat "$FLEET/out")"
fleet_kill KILL "$DAEMON_PID"
cp -a "$FLEET/state" "$FLEET/killed"
fleet_restart
fleet_kill TERM "$DAEMON_PID"
mv "$FLEET/state" "$FLEET/stopped"
[ -s "$FLEET/killed/rivulet.db-wal" ] || fleet_fail "the killed coordinator has left no log"
export FLEET CONF="$FLEET/rivuletd.conf" CONF_STATE="$FLEET/state" CONF_SOCK="$FLEET/admin.sock" TEST_PATIENCE
python3 -S -E tests/tools/flips.py "$RIVULETD" "$FLEET/killed" "$FLEET/stopped" >"$FLEET/flips" || fleet_fail "$(cat "$FLEET/flips")"
cat "$FLEET/flips"
python3 -S -E tests/tools/odd_rows.py "$RIVULETD" "$FLEET/stopped" >"$FLEET/odd" || fleet_fail "$(cat "$FLEET/odd")"
cat "$FLEET/odd"
