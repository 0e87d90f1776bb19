#!/bin/sh
# stages: gcc
# What a job will cost, said before it is submitted, beside what it then cost: bytes, memory of a device, time, on three jobs. And what
# cannot run.
set -u
FLEET_NAME=65-plan
. tests/e2e/common.sh

ROUNDS=7
fleet_start "
[data digits]
format = glyphs
seed = 1
count = 200"
for i in 1 2 3 4; do
	glyph_device "device$i" $i $((100 * i))
	fleet_run "device$i"
done
agent=${FLEET_PIDS##* }
heard() { [ "$(curl_admin "/v1/fleet?data=digits" | pick "sum(p['examples'] is not None for p in d['devices'])")" = 4 ]; }
within 30 heard || fleet_fail "devices were not heard: $(curl_admin "/v1/fleet?data=digits")"

glyph_job "$FLEET/small.json" small 4 $ROUNDS
sed -i 's/"out": 50/"out": 400/' "$FLEET/small.json"
glyph_job "$FLEET/large.json" large 4 $ROUNDS
sed -i 's/"out": 50/"out": 600/; s/"stop"/"evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/large.json"
cat >"$FLEET/adam.json" <<END
{"name": "adam", "seed": 3,
 "model": {"layers": [{"type": "conv2d", "name": "conv", "out": 32, "kernel": 5, "padding": 2}, {"type": "relu"},
                      {"type": "maxpool2d", "kernel": 2}, {"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 128},
                      {"type": "relu"}, {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10}, "upload": {"codec": "int8"}, "download": {"codec": "int8"},
 "local": {"epochs": 1, "batch": 50, "optimizer": {"name": "adam", "rate": 0.001}},
 "round": {"goal": 4, "deadline_s": 3600}, "stop": {"rounds": $ROUNDS}}
END

# Figures of a plan and of the rounds that came: their ratios must lie within these bounds. Times are those after the third round, which
# are what the second plan knows devices by; a sanitizer's are its own. On a machine that others use, too, the time only has to be of the
# right size: which round they disturb is chance, and whether the moment of most memory is seen.
beside() {
	python3 -S -E - "$FLEET" "$TEST_SLOW" <<'END' || fleet_fail "$1 did not cost what was planned"
import json, os, sys
home, slow = sys.argv[1], float(sys.argv[2])
before, after, rounds = (json.load(open("%s/%s" % (home, f))) for f in ("before", "after", "rounds"))
rounds = rounds["rounds"]
anonymous = int(open(home + "/anonymous").read()) * 1024
late = rounds[3:]
quiet = os.getloadavg()[0] < 1
ratios = {
    "up": (before["bytes"]["job_up"] / sum(r["bytes_up"] for r in rounds), 0.01),
    "down": (before["bytes"]["job_down"] / sum(r["bytes_down"] for r in rounds), 0.01),
    "memory": (before["memory"]["peak"] / anonymous, 0.1 if quiet else 0.25),
    "time": (after["seconds"]["mean"] / (sum(r["seconds"] for r in late) / len(late)), 0.25 if quiet else 0.6),
}
print("  ".join("%s %.3f" % (k, v[0]) for k, v in ratios.items()))
if slow > 1:
    del ratios["time"], ratios["memory"]
sys.exit(any(abs(r - 1) > bound for r, bound in ratios.values()))
END
}

planned() {
	fleet_admin job submit "$1" --dry-run --json >"$FLEET/before" || fleet_fail "no plan of $1: $(cat "$FLEET/before")"
	rm -f "$FLEET/anonymous"
	python3 -S -E tests/tools/anonymous.py "$agent" "$FLEET/anonymous" &
	spy=$!
	job_submit "$1"
	third() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" -ge 3 ]; }
	within 60 third || fleet_fail "no third round"
	fleet_admin job plan "$1" --json >"$FLEET/after" || fleet_fail "no plan of $1 while it runs"
	job_done 100
	kill "$spy" 2>/dev/null
	wait "$spy" 2>/dev/null
	curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds"
	beside "$1"
}
run 0 fleet_admin job plan "$FLEET/small.json"
says "4 of the 4 that the coordinator knows: 4 have the data, 0 were measured" "^time  *not known" "^the job  *34.0 MiB"
[ "$(curl_admin /v1/jobs | pick 'd["jobs"]')" = "[]" ] || fleet_fail "a plan submitted something"
planned "$FLEET/small.json"
planned "$FLEET/large.json"
planned "$FLEET/adam.json"
run 0 fleet_admin job plan "$FLEET/large.json"
says "4 were measured" "speeds as measured in adam .4.; another network" "^a round's time" "^the job's .* for $ROUNDS rounds"

# --- what a device is told alone
cat >"$FLEET/alone.conf" <<END
[data digits]
format = glyphs
count = 100
END
run 0 "$RIVULET" train "$FLEET/adam.json" --config "$FLEET/alone.conf" --plan
says "100 examples, 2 steps, 805,*[0-9]* parameters" "^a device's memory"
printf '[limits]\nmemory_bytes = 4M\n' >>"$FLEET/alone.conf"
run 4 "$RIVULET" train "$FLEET/adam.json" --config "$FLEET/alone.conf" --plan
says "more memory than memory_bytes"
run 4 "$RIVULET" job plan "$FLEET/adam.json" --devices 10 --config "$FLEET/alone.conf"
says "^cannot run:  *memory"
# Devices that are hardly ever there: what keeps the rounds is named.
sed -i '/limits/d; /memory_bytes/d' "$FLEET/alone.conf"
printf 'name,count,available\nrare,4,0.001\n' >"$FLEET/rare.csv"
run 4 "$RIVULET" job plan "$FLEET/small.json" --fleet "$FLEET/rare.csv" --config "$FLEET/alone.conf"
says "^cannot run:  *rounds: round 1 never got its 4 reports: 4 of 4 devices are away in this hour"
# So it is where they are there, and what they send is refused.
printf 'name,count,attack\nliars,4,lies\n' >"$FLEET/liars.csv"
run 1 "$RIVULET" simulate "$FLEET/small.json" --fleet "$FLEET/liars.csv" --config "$FLEET/alone.conf"
says "round 1 never got its 4 reports: [0-9]* deltas were refused, the first as [a-z-]*"
# Those that are away now and then: where one draw of who is there breaks off, another does not.
printf 'name,count,available\noften,4,0.9\n' >"$FLEET/often.csv"
for seed in 1 2 3 4 5 6; do
	sed "s/\"seed\": [0-9]*/\"seed\": $seed/; s/3600/60/" "$FLEET/small.json" >"$FLEET/often.json"
	run 0 "$RIVULET" job plan "$FLEET/often.json" --fleet "$FLEET/often.csv" --config "$FLEET/alone.conf"
	printf '%s\n' "$SAID"
done >"$FLEET/often"
grep -q "^note:  *rounds may wait: in [1-7] of [2-8] draws of who is there round [0-9]* never got its 4 reports" "$FLEET/often" ||
	fleet_fail "no plan says that rounds may wait: $(cat "$FLEET/often")"

# --- what cannot run, and that nothing was submitted by asking
jobs=$(curl_admin /v1/jobs | pick 'len(d["jobs"])')
sed 's/"name": "small"/"name": "many"/; s/"goal": 4/"goal": 5/' "$FLEET/small.json" >"$FLEET/many.json"
run 4 fleet_admin job plan "$FLEET/many.json"
says "^cannot run:  *goal: 4 devices may work on it, and a round wants reports of 5"
sed 's/"name": "digits"/"name": "letters"/' "$FLEET/small.json" >"$FLEET/letters.json"
run 4 fleet_admin job plan "$FLEET/letters.json"
says "^cannot run:  *data: 0 of 4 devices have offered \"letters\""
sed 's/"name": "digits", /"name": "digits", "min_examples": 350, /' "$FLEET/small.json" >"$FLEET/rich.json"
run 4 fleet_admin job submit "$FLEET/rich.json" --dry-run
says "data: 1 of 4 devices"
sed 's/"name": "small"/"name": "few"/; s/"stop"/"select": {"devices": ["device1", "device2"]}, "stop"/' "$FLEET/small.json" >"$FLEET/few.json"
run 4 fleet_admin job plan "$FLEET/few.json"
says "^cannot run:  *goal: 2 devices may work on it"
sed 's/"name": "small"/"name": "none"/; s/"stop"/"select": {"labels": {"site": "nowhere"}}, "stop"/' "$FLEET/small.json" >"$FLEET/none.json"
run 4 fleet_admin job plan "$FLEET/none.json"
says "^cannot run:  *goal: 0 devices may work on it"
# Which devices a share of them is follows from the job's id: the plan's is that of the job.
sed 's/"name": "small"/"name": "part"/; s/"goal": 4/"goal": 1/; s/"stop"/"select": {"percent": [0, 50]}, "stop"/' "$FLEET/small.json" >"$FLEET/part.json"
curl_admin /v1/plan --data-binary "@$FLEET/part.json" >"$FLEET/part" || fleet_fail "no plan: $(cat "$FLEET/part")"
want=$(fleet_table device1 device2 device3 device4 && python3 -S -E - "$FLEET" <<'END'
import csv, hashlib, sys
job = hashlib.sha256(open(sys.argv[1] + "/part.json", "rb").read()).digest()[:16]
ids = [bytes.fromhex(r["id"]) for r in csv.DictReader(open(sys.argv[1] + "/fleet.csv"))]
print(sum(int.from_bytes(hashlib.sha256(job + i).digest()[:8], "big") < 1 << 63 for i in ids))
END
)
[ "$(pick 'd["reach"]["devices"]' <"$FLEET/part")" = "$want" ] || fleet_fail "reach is not $want: $(cat "$FLEET/part")"
sed 's/"name": "small",/"name": "small", "trainer": "mine",/' "$FLEET/small.json" >"$FLEET/mine.json"
run 0 fleet_admin job plan "$FLEET/mine.json"
says "^note:  *nobody has the trainer.* \"mine\""
run 2 fleet_admin job set adam local.epochs=3
says "local.epochs cannot be changed once the job is submitted"
sed 's/"rate": 0.1/"rate": -1/' "$FLEET/small.json" >"$FLEET/wrong.json"
run 6 fleet_admin job plan "$FLEET/wrong.json"
sed 's/"name": "small"/"name": "measured"/; s/"stop"/"evaluate": {"by": "coordinator", "data": "nowhere"}, "stop"/' "$FLEET/small.json" >"$FLEET/nowhere.json"
run 4 fleet_admin job plan "$FLEET/nowhere.json"
says "^cannot run:  *.*nowhere"
[ "$(curl_admin /v1/jobs | pick 'len(d["jobs"])')" = "$jobs" ] || fleet_fail "a plan submitted something"

models=$(find "$FLEET/state/models" -type f | wc -l)
run 0 fleet_admin job plan "$FLEET/mine.json"
[ "$(find "$FLEET/state/models" -type f | wc -l)" = "$models" ] || fleet_fail "a plan left a model"

# --- a job that begins with a model that the coordinator has; and fleets that nobody is asked about
run 4 fleet_admin job submit "$FLEET/small.json" --set name=next --init adam --dry-run
says "^cannot run:  *model.init: tensor \"fc1.weight\""
run 0 fleet_admin job submit "$FLEET/small.json" --set name=next --init small --dry-run
says "318010 parameters"
printf 'name,count,samples_per_s,up_bytes_per_s,down_bytes_per_s,examples\nold,90,100,50000,100000,500\nnew,10,1000,500000,1000000,500\n' >"$FLEET/fleet.csv"
run 0 "$RIVULET" job plan "$FLEET/small.json" --fleet "$FLEET/fleet.csv" --socket /nowhere --json
said_near() { printf '%s\n' "$SAID" | pick "abs($1 - $2) <= $3" | grep -qx True || fleet_fail "$1: $SAID"; }
# 500 examples at 100 a second, and 1.27 MB down and up.
said_near 'd["seconds"]["p50"]' 43.2 0.3
said_near 'd["devices"]["count"]' 100 0
run 3 "$RIVULET" job plan "$FLEET/small.json" --fleet "$FLEET/nowhere.csv"
run 0 "$RIVULET" job plan "$FLEET/small.json" --devices 100
says "speeds assumed, of no device: 1000 examples a second"
says "^devices  *100"
run 2 "$RIVULET" job plan

# --- what a plan calls impossible a submission warns of, in the same words; then fewer reports will do
sed 's/"name": "small"/"name": "rich"/; s/"name": "digits", /"name": "digits", "min_examples": 250, /' "$FLEET/small.json" >"$FLEET/rich.json"
lacks='data: 2 of 4 devices have offered "digits" with 250 examples or more, and a round wants reports of 4'
run 4 fleet_admin job plan "$FLEET/rich.json"
says "^cannot run:  *$lacks"
[ "$(printf '%s\n' "$SAID" | grep -c "$lacks")" -eq 1 ] || fleet_fail "said twice: $SAID"
run 0 fleet_admin job submit "$FLEET/rich.json"
says "^rivulet: $lacks"
job_submit "$FLEET/rich.json"
pick 'd["warnings"][0]' <"$FLEET/submitted" | grep -qxF "$lacks" || fleet_fail "the answer's warnings: $(cat "$FLEET/submitted")"
python3 -E -c 'import sys
sys.path.insert(0, "python")
from rivulet.coordinator import Coordinator
Coordinator(socket=sys.argv[1]).submit(sys.argv[2])' "$FLEET/admin.sock" "$FLEET/rich.json" 2>"$FLEET/warned" || fleet_fail "$(cat "$FLEET/warned")"
grep -qF "UserWarning: $lacks" "$FLEET/warned" || fleet_fail "Python's warnings: $(cat "$FLEET/warned")"
run 6 fleet_admin job set rich round.goal=5
says "round.goal: can only be lowered, and the document says 4"
run 0 fleet_admin job set rich round.goal=2
says "^set +round.goal = 2 \(document: 4\)"
job_done 60
run 0 fleet_admin verify fetch "$FLEET/records"
run 0 "$RIVULET" verify "$FLEET/records"
# No delta is kept here: of bits nothing is said.
says "^folded again: none of [0-9]+ rounds, so nothing is said of their models; not round 1 of job"
case $SAID in *"to the bit"*) fleet_fail "nothing was folded: $SAID" ;; esac
fleet_end
echo "$CHECKS checks"
