#!/bin/sh
# stages: gcc address
# The figures people decide by: three devices' counts, added up, are those of the coordinator on the devices' validation shares put
# together; the best model is kept, and, fetched and measured again, has the figure that made it the best.
#   FIGURES_OUT=DIR   leaves there what tests/python/pypi/test_figures.py computes the same from, and measures two classes and numbers, too
set -u
FLEET_NAME=55-figures
. tests/e2e/common.sh
OUT=${FIGURES_OUT:-}

fleet_dir
mkdir "$FLEET/dumped"
# A trainer that changes nothing and leaves its examples: the share for validation follows from the job's seed and the device.
cat >"$FLEET/dump.py" <<END
import json, os, shutil, sys
os.chdir(sys.argv[1])
task = json.load(open("task.json"))
shutil.copy("examples.safetensors", "$FLEET/dumped/%s-%s" % (task["recipe"]["data"]["name"], task["task"]))
shutil.copy("base.safetensors", "after.safetensors")
json.dump({"examples": 1, "steps": 1, "loss": 0.5}, open("report.json", "w"))
END
# Two classes by a noisy line, and a number along another.
python3 -S -E - "$FLEET" <<'END' || fleet_fail "no data"
import random, sys
for device in 1, 2, 3:
    draw = random.Random(device)
    two, line = [open("%s/%s%d.csv" % (sys.argv[1], name, device), "w") for name in ("two", "line")]
    for file, label in (two, "label"), (line, "y"):
        file.write("a,b,c,%s\n" % label)
    for i in range(400):
        x = [draw.uniform(-1, 1) for _ in range(3)]
        two.write("%r,%r,%r,%d\n" % (*x, x[0] - 2 * x[1] + draw.gauss(0, 1) > 0.3))
        line.write("%r,%r,%r,%r\n" % (*x, 5 + x[0] - 2 * x[1] + device * x[2] + draw.gauss(0, 0.3)))
END
fleet_start "
[limits]
owner_model_bytes = 100M
[data joined]
format = idx
images = $FLEET/joined-images
labels = $FLEET/joined-labels"
for i in 1 2 3; do
	glyph_device device$i $i $((40 + 20 * i))
	cat >>"$FLEET/device$i/rivulet.conf" <<-END
		[data two]
		format = csv
		path = $FLEET/two$i.csv
		label = label
		[data line]
		format = csv
		path = $FLEET/line$i.csv
		label = y
		kind = regression
		[trainer dump]
		exec = python3 $FLEET/dump.py
		confine = no
	END
	fleet_run device$i
done

# job NAME BASE CHANGES: BASE with the keys of the object CHANGES put into it
job() {
	python3 -S -E - "$2" "$FLEET/$1.json" "$3" "$1" <<-'END' || fleet_fail "cannot write $1"
		import json, sys
		base, out, changes, name = sys.argv[1:]
		d = json.load(open(base))
		d.update(json.loads(changes), name=name)
		json.dump(d, open(out, "w"))
	END
	job_submit "$FLEET/$1.json"
}
rounds() { curl_admin "/v1/jobs/$JOB/rounds"; }
done_as() { # done_as NAME: the job's rounds and document are in $FLEET/NAME.rounds and .job
	job_done 60
	rounds >"$FLEET/$1.rounds"
	curl_admin "/v1/jobs/$JOB" >"$FLEET/$1.job"
}
true_of() { # true_of FILE EXPRESSION
	pick "$2" <"$FLEET/$1" | grep -qx True || fleet_fail "$1: not so: $2: $(cat "$FLEET/$1")"
}

glyph_job "$FLEET/base.json" base 3 3
validation='"data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.25}'
figures='"figures": ["classes", "confusion", "top3"]'
job dump "$FLEET/base.json" "{$validation, \"trainer\": \"dump\", \"stop\": {\"rounds\": 1}}"
job_done 60
python3 -S -E - "$FLEET" <<'END' || fleet_fail "nothing dumped"
import glob, json, struct, sys
fleet = sys.argv[1]
images, labels = bytearray(), bytearray()
for path in sorted(glob.glob(fleet + "/dumped/digits-*")):
    with open(path, "rb") as file:
        n = struct.unpack("<Q", file.read(8))[0]
        table, data = json.loads(file.read(n)), file.read()
    part = lambda name: data[slice(*table[name]["data_offsets"])]
    x, y = part("validation_x"), part("validation_y")
    if table["validation_x"]["dtype"] == "F32":
        x = bytes(round(v * 255) for v in struct.unpack("<%df" % (len(x) // 4), x))
    images += x
    labels += bytes(struct.unpack("<%di" % (len(y) // 4), y)) if table["validation_y"]["dtype"] == "I32" else bytes(struct.unpack("<%dq" % (len(y) // 8), y))
assert len(labels) == 60 and len(images) == 784 * len(labels), (len(labels), len(images))
open(fleet + "/joined-images", "wb").write(struct.pack(">IIII", 0x803, len(labels), 28, 28) + images)
open(fleet + "/joined-labels", "wb").write(struct.pack(">II", 0x801, len(labels)) + labels)
END

# --- the same figures: devices measure a round's base, and after the last one its model; the coordinator measures what a round makes

job devices "$FLEET/base.json" "{$validation, \"evaluate\": {\"by\": \"devices\", $figures}, \"keep\": {\"last\": 1, \"every\": 0}}"
done_as devices
JOB_DEVICES=$JOB
job coordinator "$FLEET/base.json" "{$validation, \"evaluate\": {\"by\": \"coordinator\", \"data\": \"joined\", $figures}, \"stop\": {\"rounds\": 3}}"
done_as coordinator
python3 -S -E - "$FLEET" <<'END' || fleet_fail "the figures differ"
import json, sys
devices, coordinator = [[r["figures"] for r in json.load(open("%s/%s.rounds" % (sys.argv[1], name)))["rounds"]] for name in ("devices", "coordinator")]
assert len(devices) == 4 and len(coordinator) == 3, (devices, coordinator)
for mine, theirs in zip(devices[1:], coordinator):
    assert mine["reports"] == 3 and theirs["reports"] == 1 and mine["examples"] == 60
    assert sum(n for _, _, n in mine["confusion"]) == 60 and len(mine["recall"]) == 10
    assert 0 < mine["macro"]["f1"] < 1 and mine["top3"] >= sum(n for t, p, n in mine["confusion"] if t == p) / 60
    assert dict(mine, reports=0) == dict(theirs, reports=0), (mine, theirs)
END
# A label that is ignored is in none of them, whoever counts.
ignores=$(pick '"\"model\": %s" % __import__("json").dumps(dict(d["model"], ignore_index=3))' <"$FLEET/base.json")
job devices-ignore "$FLEET/base.json" "{$ignores, $validation, \"evaluate\": {\"by\": \"devices\", $figures}, \"stop\": {\"rounds\": 1}}"
done_as devices-ignore
job coordinator-ignore "$FLEET/base.json" "{$ignores, $validation, \"evaluate\": {\"by\": \"coordinator\", \"data\": \"joined\", $figures}, \"stop\": {\"rounds\": 1}}"
done_as coordinator-ignore
python3 -S -E - "$FLEET" <<'END' || fleet_fail "the figures differ where a label is ignored"
import json, sys
(_, mine), (theirs,) = [json.load(open("%s/%s-ignore.rounds" % (sys.argv[1], name)))["rounds"] for name in ("devices", "coordinator")]
labels = [n for n in open(sys.argv[1] + "/joined-labels", "rb").read()[8:] if n != 3]
f = mine["figures"]
assert f["reports"] == 3 and f["examples"] == sum(f["support"]) == len(labels) < 60 and f["support"][3] == 0, f
assert f["support"] == [labels.count(i) for i in range(10)] and f["recall"][3] is None, f
assert dict(f, reports=0) == dict(theirs["figures"], reports=0), (f, theirs)
right = sum(n for t, p, n in f["confusion"] if t == p)
assert all(abs(r["evaluate"]["accuracy"] - right / len(labels)) < 1e-12 for r in (mine, theirs)), (mine, theirs)
END
true_of devices.rounds "all(abs(sum(n for t, p, n in r['figures']['confusion'] if t == p) / 60 - r['evaluate']['accuracy']) < 1e-12 for r in d['rounds'])"

# --- the best of what was measured, kept beyond the last one

true_of devices.job "d['monitor'] == {'metric': 'accuracy', 'mode': 'max'}"
true_of devices.rounds "$(pick '"max(r[\"evaluate\"][\"accuracy\"] for r in d[\"rounds\"]) == %r" % d["best"]["value"]' <"$FLEET/devices.job")"
best=$(pick 'd["best"]["model"]' <"$FLEET/devices.job")
fleet_admin model get "$JOB_DEVICES" --best -o "$FLEET/best.safetensors" >"$FLEET/got" || fleet_fail "the best model is not there"
grep -q "^$best " "$FLEET/got" || fleet_fail "not the best model: $(cat "$FLEET/got")"
fleet_admin model get "$JOB_DEVICES" --round 3 -o "$FLEET/last.safetensors" >"$FLEET/got" || fleet_fail "no model of round 3"
run 3 fleet_admin model get "$JOB_DEVICES" --round 9 -o "$FLEET/none"
run 2 fleet_admin model get "$JOB_DEVICES" --round 1 --best -o "$FLEET/none"
init=$(fleet_admin model put "$FLEET/best.safetensors") || fleet_fail "the best model is refused"
job again "$FLEET/base.json" "{$validation, \"evaluate\": {\"by\": \"devices\"}, \"stop\": {\"rounds\": 1}}"
python3 -S -E - "$FLEET" "$init" <<'END' || fleet_fail "cannot write again.json"
import json, sys
d = json.load(open(sys.argv[1] + "/again.json"))
d["model"]["init"], d["name"] = sys.argv[2], "again-best"
json.dump(d, open(sys.argv[1] + "/again.json", "w"))
END
job_done 60
job_submit "$FLEET/again.json"
done_as again
true_of again.rounds "$(pick '"abs(d[\"rounds\"][0][\"evaluate\"][\"accuracy\"] - %r) < 1e-12" % d["best"]["value"]' <"$FLEET/devices.job")"

# --- as people see it, and after a restart

run 0 fleet_admin job show "$JOB_DEVICES" --confusion
says '^best of +accuracy, max' '^macro +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+' '^top3 +[01]' 'TRUE'
before=$(curl_admin "/v1/jobs/$JOB_DEVICES" | pick '(d["monitor"], d["best"])')
kill -9 "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
fleet_restart
[ "$(curl_admin "/v1/jobs/$JOB_DEVICES" | pick '(d["monitor"], d["best"])')" = "$before" ] || fleet_fail "after a restart: $(curl_admin "/v1/jobs/$JOB_DEVICES")"
curl_admin "/v1/jobs/$JOB_DEVICES/rounds" | pick 'd["rounds"][2]["figures"]' >"$FLEET/figures.after"
pick 'd["rounds"][2]["figures"]' <"$FLEET/devices.rounds" | cmp -s - "$FLEET/figures.after" || fleet_fail "figures are lost: $(cat "$FLEET/figures.after")"

# --- what does not fit a report is refused

sed 's/"classes": 10/"classes": 100/; s/"stop"/"evaluate": {"by": "devices", "figures": ["confusion"]}, "stop"/; s/"classes": 100/"classes": 100, "validation": 0.1/' "$FLEET/base.json" >"$FLEET/large.json"
run 6 fleet_admin job submit "$FLEET/large.json"
says 'evaluate.figures: with 100 classes'

if [ -n "$OUT" ]; then
	for name in two line; do
		case $name in
		two) model='"loss": "cross_entropy"' out=2 more='"classes": 2' asked='["classes", "confusion", "auc"]' ;;
		line) model='"loss": "mse"' out=1 more='"min_examples": 1' asked='["regression"]' ;;
		esac
		common="\"data\": {\"name\": \"$name\", \"shape\": [3], \"validation\": 0.25, $more},
			\"model\": {\"layers\": [{\"type\": \"linear\", \"name\": \"fc\", \"out\": $out}], $model}"
		job "dump-$name" "$FLEET/base.json" "{$common, \"trainer\": \"dump\", \"stop\": {\"rounds\": 1}}"
		job_done 60
		job "$name" "$FLEET/base.json" "{$common, \"evaluate\": {\"by\": \"devices\", \"figures\": $asked}, \"keep\": {\"every\": 1}}"
		done_as "$name"
		fleet_admin model get "$JOB" --round 3 -o "$OUT/$name.safetensors" >/dev/null || fleet_fail "no model of $name"
	done
	fleet_admin model get "$JOB_DEVICES" --round 3 -o "$OUT/devices.safetensors" >/dev/null || fleet_fail "no last model"
	cp "$FLEET"/*.rounds "$OUT" && cp -r "$FLEET/dumped" "$OUT" || fleet_fail "cannot write $OUT"
fi
fleet_end
echo "three devices' figures are the coordinator's; the best model has its figure again; $CHECKS checks"
