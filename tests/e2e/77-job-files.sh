#!/bin/sh
# stages: gcc address
# Every command that takes a job file takes every kind of one: with a preset, layers, a model of its own, a program, an evaluation, in
# buffered rounds. And programs that train side by side in the simulator begin with the same model.
set -u
FLEET_NAME=77-job-files
. tests/e2e/common.sh
CHECKS=0

fleet_start "
[data digits]
format = glyphs
seed = 1
count = 50"
glyph_device device 1 60

# The program adds to its weights, and takes its time: the next one begins meanwhile.
cat >"$FLEET/adds.py" <<'END'
import json, os, struct, time
d = os.environ["RIVULET_TASK"]
def read():
    with open(d + "/base.safetensors", "rb") as f:
        return f.read()
base = read()
time.sleep(0.03)
assert read() == base
n = struct.unpack("<Q", base[:8])[0]
floats = struct.unpack("<%df" % ((len(base) - 8 - n) // 4), base[8 + n:])
with open(d + "/after.safetensors", "wb") as f:
    f.write(base[:8 + n] + struct.pack("<%df" % len(floats), *(x + 0.01 for x in floats)))
with open(d + "/report.json", "w") as f:
    json.dump({"examples": 10, "steps": 1, "loss": 1.0}, f)
END
cat >"$FLEET/settings" <<END
[data digits]
format = glyphs
seed = 1
count = 60
[trainer adds]
exec = $(command -v python3) -S -E $FLEET/adds.py
read = $FLEET/adds.py
END
python3 -S -E - "$FLEET" <<'END'
import hashlib, json, struct, sys
d = sys.argv[1]
names = {"fc.weight": [10, 784], "fc.bias": [10]}
header, at = {"__metadata__": {"by": "another program"}}, 0
for name, shape in names.items():
    size = 4 * (shape[0] * (shape[1] if len(shape) > 1 else 1))
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
    at += size
head = json.dumps(header).encode()
head += b" " * (-len(head) % 8)
blob = struct.pack("<Q", len(head)) + head + bytes(at)
with open(d + "/init.safetensors", "wb") as f:
    f.write(blob)
init = hashlib.sha256(blob).hexdigest()
layers = {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"}
job = {
    "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
    "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
    "round": {"goal": 1},
    "stop": {"rounds": 2},
}
kinds = {
    "layers": {"model": layers},
    "preset": {"model": {"preset": "ds-cnn", "set": {"classes": 10, "side": 28, "width": 8}}},
    "init": {"model": {**layers, "init": init}},
    "program": {"model": {"init": init}, "trainer": "adds"},
    "evaluate": {"model": layers, "evaluate": {"by": "coordinator", "data": "digits"}},
    "buffered": {"model": layers, "round": {"goal": 1, "mode": "buffered"}},
}
for kind, more in kinds.items():
    with open("%s/%s.json" % (d, kind), "w") as f:
        json.dump({**job, **more, "name": kind}, f)
END
[ -s "$FLEET/buffered.json" ] || fleet_fail "the job files were not written"
run 0 fleet_admin model put "$FLEET/init.safetensors"

for kind in layers preset init program evaluate buffered; do
	file=$FLEET/$kind.json
	init=
	case $kind in init | program) init="--init $FLEET/init.safetensors" ;; esac
	run 0 fleet_admin job submit "$file" --print
	printf '%s\n' "$SAID" >"$FLEET/$kind.printed"
	run 0 fleet_admin job submit "$file" --print --set seed=7
	says '"seed": 7'
	# shellcheck disable=SC2086
	{
		run 0 "$RIVULET" job plan "$file" --devices 3 --config "$FLEET/settings" $init
		run 0 "$RIVULET" simulate "$file" --devices 3 --config "$FLEET/settings" --test digits --rounds 1 --jobs 2 $init
		says '"reports":1'
		run 0 "$RIVULET" simulate "$file" --devices 3 --config "$FLEET/settings" --timing-only $init
		[ $kind = program ] || run 0 "$RIVULET" train "$file" --config "$FLEET/settings" --home "$FLEET/device" --plan $init
		[ $kind = program ] || run 0 "$RIVULET" train "$file" --config "$FLEET/settings" --home "$FLEET/device" $init -o "$FLEET/trained-$kind.safetensors"
		if [ $kind != program ]; then
			run 0 "$RIVULET" eval "$file" --init "$FLEET/trained-$kind.safetensors" --data digits --config "$FLEET/settings"
			run 0 "$RIVULET" model export "$FLEET/trained-$kind.safetensors" --onnx "$FLEET/$kind.onnx" --job "$file"
		fi
	}
	# One device is enrolled and none has asked yet: the coordinator reads the document and says so, or that none has the data.
	fleet_admin job plan "$file" >"$FLEET/said" 2>&1
	rc=$?
	[ $rc = 0 ] || [ $rc = 4 ] || fleet_fail "$kind: job plan ended with $rc: $(cat "$FLEET/said")"
	fleet_admin job submit "$file" --dry-run >"$FLEET/dry" 2>&1
	rc=$?
	[ $rc = 0 ] || [ $rc = 4 ] || fleet_fail "$kind: job submit --dry-run ended with $rc: $(cat "$FLEET/dry")"
	cmp -s "$FLEET/said" "$FLEET/dry" || fleet_fail "$kind: plan says $(cat "$FLEET/said"), submit --dry-run $(cat "$FLEET/dry")"
	run 0 fleet_admin job submit "$file"
	says '^[0-9a-f]{32}$'
	run 0 fleet_admin job stop "$kind"
	# The grid's only document is refused for what was set in it alone.
	run 1 fleet_admin job sweep "$file" --set stop.rounds=-1
	says 'stop\.rounds: must be'
done
grep -q '"layers"' "$FLEET/preset.printed" || fleet_fail "a preset is sent as it is"
echo "ok: $CHECKS commands on job files"

# Each slot has a file of its own, and what the base is called is its hash: with one program at a time and with several the same comes out.
for kind in program; do
	for n in 1 3; do
		sed 's/"goal": 1/"goal": 6/' "$FLEET/$kind.json" >"$FLEET/wide.json"
		run 0 "$RIVULET" simulate "$FLEET/wide.json" --devices 6 --config "$FLEET/settings" --init "$FLEET/init.safetensors" --jobs $n
		says '"round":2,.*"reports":6'
		printf '%s\n' "$SAID" >"$FLEET/wide.$n"
	done
	cmp -s "$FLEET/wide.1" "$FLEET/wide.3" || fleet_fail "--jobs 3 gives another output than --jobs 1"
done
fleet_end
echo "ok: programs side by side"
