#!/bin/sh
# stages: gcc address
# Work by measured speed: devices ten times as fast as others get ten times the steps, and rounds end in about the time that was
# asked for; a device that asks again gets the same steps, also of a coordinator that was killed and would now count otherwise; more
# steps are refused; the steps of a job's record give its models again, bit for bit.
set -u
FLEET_NAME=59-sized
. tests/e2e/common.sh

fleet_dir
mkdir "$FLEET/app"
# A trainer that sleeps for each step. In its cache it leaves what each task asked for, and the third it does not begin before it may.
cat >"$FLEET/app/sleeps.py" <<'END'
import json
import os
import shutil
import sys
import time

words = os.fdopen(int(os.environ["RIVULET_TRAINER_IN"]))
answers = os.fdopen(int(os.environ["RIVULET_TRAINER_OUT"]), "w", 1)
app = os.path.dirname(os.path.abspath(__file__))


def work(directory):
    with open(directory + "/task.json") as f:
        task = json.load(f)
    steps, held = task["steps"], os.path.join(app, "hold%d" % task["round"])
    with open("%s/%s.asked" % (app, os.environ["DEVICE"]), "a") as f:
        print(task["round"], steps, file=f)
    while os.environ["DEVICE"] == "fast" and os.path.exists(held):
        time.sleep(0.02)
    time.sleep(steps * float(os.environ["SECONDS"]))
    shutil.copy(task["base"], directory + "/after.safetensors")
    if os.path.exists(app + "/more"):
        steps += 1
    with open(directory + "/report.json", "w") as f:
        json.dump({"examples": 40, "steps": steps, "loss": 0.5}, f)


print(json.dumps({"ready": True}), file=answers)
for line in words:
    said = json.loads(line)
    if "task" in said:
        work(said["directory"])
        print(json.dumps({"done": said["task"]}), file=answers)
END
python=$(python3 -S -E -c 'import sys; print(sys.executable)')
sleeper() { # sleeper NAME SECONDS
	glyph_device "$1" 1 50
	printf '[trainer sleeps]\nexec = %s %s/app/sleeps.py\npersistent = yes\nconfine = no\ngrace_s = 0.1\nenv = DEVICE=%s SECONDS=%s\n' \
		"$python" "$FLEET" "$1" "$2" >>"$FLEET/$1/rivulet.conf"
	fleet_run "$1"
}
job() { # job NAME DEVICES GOAL ROUNDS LOCAL
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 5, $5, "select": {"devices": [$2]},
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
		 "round": {"goal": $3, "deadline_s": 3600}, "stop": {"rounds": $4}}
	END
	job_submit "$FLEET/$1.json"
}
round_is() { curl_admin "/v1/jobs/$JOB" | pick "d['round'] == $1" | grep -qx True; }
asked() { [ -f "$FLEET/app/$1.asked" ] && [ "$(wc -l <"$FLEET/app/$1.asked")" -ge "$2" ]; }
steps_of() { # steps_of NAME ROUND: as the coordinator has it
	curl_admin "/v1/jobs/$JOB/rounds/$2" | pick "[r['steps'] for r in d['devices'] if r['name'] == '$1'][0]"
}
query() { python3 -S -E -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    for row in db.execute(sys.argv[2]):
        print(*row)' "$FLEET/state/rivulet.db" "$1"; }

fleet_start
sized='"local": {"target_s": 1, "min_steps": 5, "max_steps": 2000, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}}'

# Ten times as fast, ten times the work. (A machine that has other things to do makes both slower.)
touch "$FLEET/app/hold5"
sleeper fast 0.008
fast=$AGENT_PID
sleeper slow 0.08
fleet_join absent
job sleepers '"fast", "slow", "absent"' 2 5 "\"trainer\": \"sleeps\", $sized"
within 60 round_is 5 || fleet_fail "round 5 did not begin"
within 20 asked fast 5 || fleet_fail "the fast device was not asked in round 5"
[ "$(head -n 1 "$FLEET/app/fast.asked")" = "1 5" ] || fleet_fail "without a history it is not min_steps"
curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/answer"
shortest=$(pick "min(r['closed_at'] - r['opened_at'] for r in d['rounds'] if 2 < r['round'] < 5)" <"$FLEET/answer")
python3 -S -E -c 'import sys
fast, slow, shortest = map(float, sys.argv[1:])
sys.exit(not (4 * slow < fast < 14 * slow and shortest <= 1.3))' "$(steps_of fast 4)" "$(steps_of slow 4)" "$shortest" ||
	fleet_fail "round 4: $(steps_of fast 4) and $(steps_of slow 4) steps, a round of $shortest s"
echo "ok: $(steps_of fast 4) and $(steps_of slow 4) steps; the shortest of rounds 3 and 4 took $shortest s of 1"

# Who took part, by speed, and who is in no model; the fleet as it was seen.
run 0 fleet_admin job show "$JOB"
says 'SPEED DECILE +DEVICES +REPORTS' '^ +5 +1 +4 ' '^ +10 +1 +4 ' 'in no model yet: 1 of the devices that the job selects: absent$'
run 0 fleet_admin device profile
says '^name,count,samples_per_s,up_bytes_per_s,down_bytes_per_s,latency_s,available,failure$' '^absent,1,,,,,,$' '^slow,1,[0-9.]+,[0-9.e+]*,,,[0-9.]*,0$'
curl_admin /v1/fleet >"$FLEET/answer" || fleet_fail "GET /v1/fleet"
pick "(lambda of: 300 < of['fast'] < 1300 and 30 < of['slow'] < 130)({r['name']: r['samples_per_s'] for r in d['devices']})" <"$FLEET/answer" |
	grep -qx True || fleet_fail "examples a second: $(cat "$FLEET/answer")"
echo "ok: participation and profile"

# The row is there before the task: what is counted otherwise after it went out changes nothing.
was=$(tail -n 1 "$FLEET/app/fast.asked")
fleet_kill KILL "$fast"
fleet_kill KILL "$DAEMON_PID"
[ "5 $(query "SELECT steps FROM sized JOIN device ON device.id = sized.device WHERE name = 'fast' AND round = 5")" = "$was" ] ||
	fleet_fail "the steps are not in the database"
[ "$(query "SELECT count(*) FROM sized WHERE round < 5")" = 0 ] || fleet_fail "steps of rounds that are over"
query "UPDATE speed SET seconds = seconds * 3"
fleet_restart
fleet_run fast
within 20 asked fast 6 || fleet_fail "the fast device did not ask again"
[ "$(tail -n 1 "$FLEET/app/fast.asked")" = "$was" ] || fleet_fail "asked for $was, and again for $(tail -n 1 "$FLEET/app/fast.asked")"
echo "ok: the same steps after kill -9: $was"

# One more than the task gave is no work of this task.
touch "$FLEET/app/more"
rm "$FLEET/app/hold5"
within 30 grep -q too-many-steps "$FLEET/fast.log" || fleet_fail "more steps than the task gave are not refused"
curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/answer" || fleet_fail "stop: $(cat "$FLEET/answer")"
[ "$(query "SELECT count(*) FROM sized")" = 0 ] || fleet_fail "steps of a job that is over"
fleet_end
echo "ok: too many steps are refused"

# The steps of a record, given again. What the clock says is not in the bits.
fleet_daemon
glyph_device trains 2 200
job record '"trains"' 1 3 "\"local\": {\"target_s\": 0.2, \"batch\": 10, \"optimizer\": {\"name\": \"sgd\", \"rate\": 0.1}}"
fleet_keep trains
fleet_again trains
fleet_run trains
job_done 60
history >"$FLEET/history1"
given=$(for round in 1 2 3; do echo "$round $(steps_of trains $round)"; done)
[ "$(echo "$given" | sort -u -k 2 | wc -l)" -ge 2 ] || fleet_fail "each round had the same steps: $given"
fleet_again trains
fleet_kill KILL "$DAEMON_PID"
echo "$given" | while read -r round steps; do
	query "INSERT INTO sized (job, round, device, steps) SELECT job.id, $round, device.id, $steps FROM job, device WHERE job.document LIKE '%\"record\"%' AND device.name = 'trains'"
done
fleet_restart
fleet_run trains
job_done 60
history >"$FLEET/history2"
cmp -s "$FLEET/history1" "$FLEET/history2" || fleet_fail "not the same models: $(diff "$FLEET/history1" "$FLEET/history2")"
fleet_end
echo "ok: three rounds again from the steps of their record: $(echo "$given" | tr '\n' ' ')"
