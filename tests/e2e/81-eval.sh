#!/bin/sh
# stages: gcc address
# A network alone: rivulet eval gives the outputs that numpy computes from the same weights, and the figures that training reported;
# rivulet model export writes the same network as ONNX, from a coordinator and from files; what does not fit is refused with a reason.
set -u
FLEET_NAME=81-eval
. tests/e2e/common.sh

for python in python3 /usr/bin/python3 none; do "$python" -c 'import numpy' 2>/dev/null && break; done
[ "$python" != none ] || skip "needs numpy"
numpy() {
	PYTHONPATH=tests/python "$python" - "$FLEET" "$@"
}
CHECKS=0

fleet_start
glyph_device device 1 200
glyph_job "$FLEET/job.json" alone 1 1
sed -i 's/"classes": 10}/"classes": 10, "normalise": {"mean": 0.2, "std": 0.5}}/' "$FLEET/job.json"

# --- outputs: those of numpy, for pixels as bytes and as numbers, in batches and printed

run 0 "$RIVULET" train "$FLEET/job.json" --home "$FLEET/device" --epochs 1 --test digits --json -o "$FLEET/model.safetensors"
printf '%s' "$SAID" >"$FLEET/trained"
numpy <<-'END' || fleet_fail "inputs for eval"
	import sys, numpy as np
	from networks import write_tensors
	d, r = sys.argv[1], np.random.default_rng(5)
	pixels = r.integers(0, 256, (150, 1, 28, 28)).astype("u1")
	write_tensors(d + "/pixels", {"x": pixels})
	write_tensors(d + "/flat", {"x": (pixels.reshape(150, -1) / np.float32(255)).astype("<f4")})
	np.save(d + "/bytes.npy", pixels)
	np.save(d + "/wide.npy", (pixels / np.float32(255)).astype("f8"))
	np.save(d + "/shape.npy", pixels[:, :, 1:])
	write_tensors(d + "/two", {"x": pixels, "y": pixels})
	write_tensors(d + "/shape", {"x": pixels[:, :, 1:]})
	write_tensors(d + "/none", {"x": pixels[:0]})
END
for kind in pixels flat bytes.npy wide.npy; do
	run 0 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/$kind" -o "$FLEET/$kind.out"
	says "^150 rows of 10 outputs"
	cmp -s "$FLEET/pixels.out" "$FLEET/$kind.out" || fleet_fail "$kind gives other outputs than pixels as bytes"
done
run 0 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/pixels"
printf '%s\n' "$SAID" >"$FLEET/printed"
run 0 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/flat" --json
printf '%s\n' "$SAID" >"$FLEET/json"

# --- a sequence has the outputs of all its steps

numpy <<-'END' || fleet_fail "a sequence"
	import json, sys, numpy as np
	from networks import job_document, layer_tensors, write_tensors
	d = sys.argv[1]
	layers = [{"type": "embedding", "vocabulary": 9, "out": 3}, {"type": "linear", "out": 9}]
	job = job_document([5], layers, loss="cross_entropy", classes=9)
	with open(d + "/steps.json", "w") as f: json.dump(job, f)
	write_tensors(d + "/steps", {k: np.ones(v, "<f4") for k, v in layer_tensors(job).items()})
	write_tensors(d + "/tokens", {"x": np.arange(10).reshape(2, 5).astype("<f4") % 9})
END
run 0 "$RIVULET" eval "$FLEET/steps.json" --init "$FLEET/steps" --input "$FLEET/tokens" -o "$FLEET/steps.out"
says '^2 rows of 45 outputs'
run 0 "$RIVULET" eval "$FLEET/steps.json" --init "$FLEET/steps" --input "$FLEET/tokens"
[ "$(printf '%s\n' "$SAID" | tr ' ' '\n' | sort -u)" = 4 ] || fleet_fail "outputs of a sequence: $SAID"

# --- figures: those that training gave for the same model

run 0 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --data digits --home "$FLEET/device" --json
says '"examples": 200'
printf '%s' "$SAID" >"$FLEET/measured"
same=$("$python" -c 'import json, sys
t, m = (json.load(open(sys.argv[1] + f)) for f in ("/trained", "/measured"))
print(t[-1]["test_loss"] == m["loss"] and t[-1]["test_accuracy"] == m["accuracy"] > 0.3)' "$FLEET")
[ "$same" = True ] || fleet_fail "train and eval differ: $(cat "$FLEET/trained" "$FLEET/measured")"

# --- ONNX: the same network, whether job and model come from a coordinator or from files

job_submit "$FLEET/job.json"
fleet_run device
job_done 60
run 0 fleet_admin model export alone --onnx "$FLEET/fleet.onnx"
run 0 fleet_admin model get alone -o "$FLEET/fleet.safetensors"
run 0 "$RIVULET" model export "$FLEET/fleet.safetensors" --job "$FLEET/job.json" --onnx "$FLEET/file.onnx" --json
says '"file": ".*/file.onnx"'
cmp -s "$FLEET/fleet.onnx" "$FLEET/file.onnx" || fleet_fail "the same model gives different ONNX files"
run 0 fleet_admin model export "$MODEL" --job "$FLEET/job.json" --onnx "$FLEET/id.onnx"
cmp -s "$FLEET/fleet.onnx" "$FLEET/id.onnx" || fleet_fail "a model by its id gives another ONNX file"
run 0 fleet_admin model export alone --round 1 --onnx "$FLEET/round.onnx"
cmp -s "$FLEET/fleet.onnx" "$FLEET/round.onnx" || fleet_fail "the model of the last round gives another ONNX file"
[ ! -e "$FLEET/fleet.onnx.model" ] || fleet_fail "the fetched model was left behind"
run 0 "$RIVULET" model export "$FLEET/model.safetensors" --job "$FLEET/job.json" --onnx "$FLEET/model.onnx"
numpy <<-'END' || fleet_fail "outputs are not those of numpy"
	import json, sys, numpy as np
	from networks import onnx_parts, read_tensors
	d = sys.argv[1]
	x = read_tensors(d + "/flat")["x"]
	w = read_tensors(d + "/model.safetensors")
	h = np.maximum((x - np.float32(0.2)) / np.float32(0.5) @ w["fc1.weight"].T + w["fc1.bias"], 0)
	want = h @ w["fc2.weight"].T + w["fc2.bias"]
	got = read_tensors(d + "/pixels.out")["output"]
	assert got.shape == want.shape == (150, 10)
	assert read_tensors(d + "/steps.out")["output"].shape == (2, 5, 9)
	assert np.abs(got - want).max() < 1e-5 * np.abs(want).max(), np.abs(got - want).max()
	assert np.array_equal(np.loadtxt(d + "/printed", dtype="f4"), got)
	document = json.load(open(d + "/json"))
	assert document["examples"] == 150 and document["outputs"] == 10
	assert np.array_equal(np.array(document["values"], "f4"), got)
	nodes, tensors = onnx_parts(d + "/model.onnx")
	assert [op for op, *_ in nodes] == ["Sub", "Div", "Flatten", "Gemm", "Relu", "Gemm"], nodes
	assert all(a[2][0] == b[1][0] for a, b in zip(nodes, nodes[1:])) and nodes[0][1][0] == "input" and nodes[-1][2] == ["output"]
	assert nodes[3][1][1:] == ["fc1.weight", "fc1.bias"] and nodes[5][1][1:] == ["fc2.weight", "fc2.bias"]
	assert all(np.array_equal(tensors[name], w[name].ravel()) for name in w)
	assert tensors["/normalise/mean"] == np.float32(0.2) and tensors["/normalise/std"] == 0.5
END

# --- refusals

run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/two"
says 'holds 2 tensors; one is wanted'
run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/shape"
says 'the shape \[1, 28, 28\]'
run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/shape.npy"
says 'shape.npy is not a row of examples: the job.s have the shape \[1, 28, 28\]'
head -c 100000 "$FLEET/bytes.npy" >"$FLEET/short.npy"
run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/short.npy"
says 'short.npy: '
run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/none"
says 'has no examples'
run 6 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/flat" --input "$FLEET/flat"
says 'tensor "fc1.weight" is missing'
run 1 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/job.json" --input "$FLEET/flat"
says "job.json: the model file's header is longer"
run 3 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/absent" --input "$FLEET/flat"
run 3 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --data absent --home "$FLEET/device"
says 'no \[data absent\]'
run 2 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors"
run 2 "$RIVULET" eval "$FLEET/job.json" --init "$FLEET/model.safetensors" --input "$FLEET/flat" --data digits
run 2 fleet_admin model export alone
run 2 fleet_admin model export alone --onnx "$FLEET/x.onnx" --best --round 1
run 3 fleet_admin model export alone --onnx "$FLEET/x.onnx" --best
says 'no best model: nothing was measured'
run 6 fleet_admin model export "$FLEET/model.safetensors" --onnx "$FLEET/x.onnx"
says '--job FILE says which network'
run 3 fleet_admin model export nobody --onnx "$FLEET/x.onnx"
run 6 "$RIVULET" model export "$FLEET/flat" --job "$FLEET/job.json" --onnx "$FLEET/x.onnx"
[ ! -e "$FLEET/x.onnx" ] || fleet_fail "a refused export left a file"
fleet_end
echo "81-eval: outputs, figures, ONNX and refusals ($CHECKS checks)"
