#!/bin/sh
# stages: gcc address
# A device with more examples than a job lets it claim works on a drawn share, whoever trains: the agent, a program that is given files, a
# program with data of its own. Submit and plan say whom it concerns. A program that gives no figures is asked for them once.
set -u
FLEET_NAME=73-offers
. tests/e2e/common.sh
fleet_start
cat >"$FLEET/trainer.py" <<'END'
import json, os, sys
sys.path.insert(0, os.environ["PACKAGE"])
from rivulet import safetensors
task = json.load(open("task.json"))
if task.get("examples"):
    shapes = {t.name: t.shape for t in safetensors.File(task["examples"])}
    train, held = shapes["x"][0], shapes["validation_x"][0]
else:
    held = next(iter(safetensors.File(task["validation"]))).shape[0]
    train = int(os.environ["COUNT"]) - held
    if task.get("share"):
        shares = {t.name: t.shape[0] for t in safetensors.File(task["share"])}
        train, held = shares["train"], shares["validation"]
with open("after.safetensors", "wb") as after, open("base.safetensors", "rb") as base:
    after.write(base.read())
json.dump({"examples": train, "steps": 1, "loss": 0.5, "evaluate": {"examples": held, "loss": 0.5}}, open("report.json", "w"))
END
for n in 5 20; do
	awk -v n=$n 'BEGIN { print "a,b,y"; for (i = 0; i < n; i++) printf "%d,%d,%d\n", i, i % 3, i % 2 }' >"$FLEET/d$n.csv"
	fleet_join "d$n" "[data d]
format = csv
path = $FLEET/d$n.csv
[data own]
format = external
path = $FLEET
examples = $n
[trainer count]
exec = env COUNT=$n PACKAGE=$PWD/python python3 -S -E $FLEET/trainer.py
confine = no"
	fleet_run "d$n"
done
# job NAME DATA TRAINER: two rounds of both devices; training shares of 3 and 10, evaluation of 2 and 10
job() {
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 1, "model": {"layers": [{"type": "linear", "name": "fc", "out": 2}], "loss": "cross_entropy"},
		 "data": {"name": "$2", "shape": [2], "classes": 2, "validation": 0.5}, "trainer": "$3", "evaluate": {"by": "devices"},
		 "local": {"epochs": 1, "batch": 5, "optimizer": {"rate": 0.1}}, "round": {"goal": 2, "deadline_s": 60},
		 "aggregate": {"max_examples": 6}, "stop": {"rounds": 2}}
	END
	job_submit "$FLEET/$1.json"
}
heard() { [ "$(curl_admin "/v1/fleet?data=d" | pick 'sum(p["examples"] is not None for p in d["devices"])')" = 2 ]; }
within 20 heard || fleet_fail "nobody asks: $(curl_admin "/v1/fleet?data=d")"
for how in "d builtin" "d count" "own count"; do
	job "$(echo "$how" | tr ' ' -)" $how
	pick "d['warnings']" <"$FLEET/submitted" | grep -q "1 of the 2 devices with the data have more examples of it than aggregate.max_examples (6): each draws" ||
		fleet_fail "$how: submit does not say so: $(cat "$FLEET/submitted")"
	job_done 60
	for round in 1 2; do
		said=$(curl_admin "/v1/jobs/$JOB/rounds/$round" | pick "d['examples'], d['reports']")
		[ "$said" = "(9, 2)" ] || fleet_fail "$how: round $round: $said"
	done
	! grep -q "task.aborted\|delta.refused" "$FLEET"/d*.log || fleet_fail "$how: $(cat "$FLEET"/d*.log)"
	echo "ok: $how"
done
# What is drawn for a round is of no use for the next.
[ -n "$(ls "$FLEET/d5/examples")" ] && [ -z "$(ls "$FLEET/d20/examples" 2>/dev/null)" ] || fleet_fail "kept: $(ls "$FLEET"/d*/examples)"
# Alone it trains on the same ones: round 1 has the same loss.
grep -o "trained job=.* round=1 examples=6 .*" "$FLEET/d20.log" | head -1 | grep -o " loss=[0-9.]*" >"$FLEET/loss"
"$RIVULET" train "$FLEET/d-builtin.json" --home "$FLEET/d20" --json >"$FLEET/alone" || fleet_fail "alone: $(cat "$FLEET/alone")"
[ "$(pick "' loss=%.5g' % d[0]['loss'] if d[0]['examples'] == 6 else d" <"$FLEET/alone")" = "$(cat "$FLEET/loss")" ] ||
	fleet_fail "alone: $(cat "$FLEET/alone") and not $(cat "$FLEET/loss")"
fleet_admin job plan "$FLEET/d-builtin.json" >"$FLEET/plan" 2>&1
grep -q "max_examples is 6: 1 of them draw" "$FLEET/plan" || fleet_fail "the plan does not say so: $(cat "$FLEET/plan")"


# --- figures
sed 's/"name": "d-count"/"name": "figures"/; s/"by": "devices"/"by": "devices", "figures": ["classes"]/; s/"max_examples": 6/"max_examples": 60/' "$FLEET/d-count.json" >"$FLEET/figures.json"
job_submit "$FLEET/figures.json"
waiting() { [ "$(curl_admin "/v1/devices" | pick "sorted(x['reason'] for x in d['devices'])")" = "['no-figures', 'no-figures']" ]; }
within 30 waiting || fleet_fail "not told: $(curl_admin /v1/devices)"
[ "$(grep -c "task.aborted.*reason=no-figures" "$FLEET/d5.log")" = 1 ] || fleet_fail "asked again: $(cat "$FLEET/d5.log")"
[ "$(curl_admin "/v1/jobs/$JOB" | pick "d['devices']['gave_up'] or d['devices']['waiting']")" = "{'no-figures': 2}" ] ||
	fleet_fail "not counted: $(curl_admin "/v1/jobs/$JOB")"
job_submit "$FLEET/figures.json"
pick "d['warnings']" <"$FLEET/submitted" | grep -q "2 of the 2 devices with the trainer .*count.* give none of the figures" ||
	fleet_fail "submit does not say so: $(cat "$FLEET/submitted")"
echo "ok: figures"
fleet_end
