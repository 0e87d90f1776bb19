#!/bin/sh
# stages: gcc
# Networks of newer layers over a coordinator and two devices: a text by a preset of LSTMs, which the coordinator measures, and batch
# norms on pictures, whose running statistics are averaged. Both give the models and figures of rivulet simulate, to the bit; verify
# folds them again.
set -u
FLEET_NAME=66-networks
. tests/e2e/common.sh

fleet_dir
python3 -S -E - "$FLEET" <<'END'
import random, sys
words = "the quick brown fox jumps over a lazy dog and then the dog sleeps while a fox runs home".split()
for name, seed, count in (("train", 1, 3000), ("test", 2, 400)):
    draw = random.Random(seed)
    text, at = [], 0
    for _ in range(count):
        text.append(words[at])
        at = (at + draw.choice((1, 1, 1, 2))) % len(words)
    open("%s/%s.txt" % (sys.argv[1], name), "w").write(" ".join(text))
END
test_sets="
[data words]
format = text
path = $FLEET/test.txt
[data digits]
format = glyphs
count = 300
seed = 1"
fleet_start "
[retention]
keep_last = 100
keep_deltas = yes
$test_sets"
for n in 1 2; do
	fleet_join device$n "
[device]
threads = 1
[data words]
format = text
path = $FLEET/train.txt
seed = 1
shard = $n/2
[data digits]
format = glyphs
hand = $n
count = 120
seed = 1
skew = 0.2"
	fleet_run device$n
done
fleet_table device1 device2
check_job() { # check_job NAME SET ROUNDS: $FLEET/job.json runs as it is simulated, and folds again
	JOB=$(fleet_admin job submit "$FLEET/job.json" 2>"$FLEET/said") || fleet_fail "job submit: $(cat "$FLEET/said")"
	job_done 120
	{
		sed -n '/^\[device\]/,$p' "$FLEET/device1/rivulet.conf" | sed '/^shard/d; /^hand/d'
		printf '%s\n' "$test_sets" | sed -n "/^\[data $2\]/,/^\[data/p" | sed "1s/.*/[data test]/; 2,\$ { /^\[data/d }"
	} >"$FLEET/fleet.conf"
	as_simulated "$3" "$1"
}
figure() { curl_admin "/v1/jobs/$JOB/rounds/$1" | pick "d['evaluate']['$2']"; }
better() { # better NAME LOSS: of the last round, than that
	python3 -S -E -c 'import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]))' "$(figure 3 loss)" "$2" ||
		fleet_fail "$1: a loss of $(figure 3 loss) after 3 rounds"
}

# --- a text: every step has a label, the token behind it

cat >"$FLEET/text.json" <<END
{"name": "text", "seed": 3,
 "model": {"preset": "char-lstm", "set": {"hidden": 32, "window": 32}},
 "data": {"name": "words"},
 "local": {"epochs": 1, "batch": 8, "clip_norm": 1, "optimizer": {"name": "sgd", "rate": 2}},
 "round": {"goal": 2, "deadline_s": 3600},
 "evaluate": {"by": "coordinator"},
 "stop": {"rounds": 3}}
END
cp "$FLEET/text.json" "$FLEET/job.json"
check_job text words 3
better text 3.2
[ "$(curl_admin "/v1/jobs/$JOB" | pick "'preset' in str(d)")" = False ] || fleet_fail "the preset was sent"
echo "ok: a loss of $(figure 3 loss) per character, accuracy $(figure 3 accuracy)"

# --- batch norms: what is counted on the way is averaged

cat >"$FLEET/job.json" <<END
{"name": "norms", "seed": 3,
 "model": {"layers": [{"type": "conv2d", "name": "conv", "out": 8, "kernel": 3, "stride": 2, "bias": false},
                      {"type": "batchnorm", "name": "bn"}, {"type": "relu6"},
                      {"type": "conv2d", "name": "deep", "out": 8, "kernel": 3, "groups": 8}, {"type": "silu"},
                      {"type": "global_avgpool"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
 "local": {"epochs": 4, "batch": 10, "optimizer": {"name": "adam", "rate": 0.02}},
 "round": {"goal": 2, "deadline_s": 3600},
 "evaluate": {"by": "coordinator"},
 "stop": {"rounds": 3}}
END
check_job norms digits 3
better norms 2.3
run 0 fleet_admin model get "$JOB" -o "$FLEET/norms.safetensors"
python3 -S -E - "$FLEET/norms.safetensors" <<'END' || fleet_fail "running statistics"
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
def tensor(name):
    begin, end = head[name]["data_offsets"]
    return struct.unpack("<%df" % ((end - begin) // 4), data[8 + n + begin:8 + n + end])
assert all(v > 0 and abs(v - 1) > 1e-4 for v in tensor("bn.running_var")) and any(abs(m) > 1e-4 for m in tensor("bn.running_mean"))
END
echo "ok: a loss of $(figure 3 loss), accuracy $(figure 3 accuracy); running statistics moved"

# --- lora: the trained network stays as it is, and narrow matrices that the coordinator draws are trained beside it

base=$MODEL
base_loss=$(figure 3 loss)
cat >"$FLEET/job.json" <<END
{"name": "lora", "seed": 3,
 "model": {"layers": [{"type": "conv2d", "name": "conv", "out": 8, "kernel": 3, "stride": 2, "bias": false},
                      {"type": "batchnorm", "name": "bn"}, {"type": "relu6"},
                      {"type": "conv2d", "name": "deep", "out": 8, "kernel": 3, "groups": 8}, {"type": "silu"},
                      {"type": "global_avgpool"},
                      {"type": "linear", "name": "fc", "out": 10, "lora": {"rank": 2, "alpha": 4}}],
           "loss": "cross_entropy", "init": "$base"},
 "tensors": {"conv.*": "frozen", "bn.*": "frozen", "deep.*": "frozen"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
 "local": {"epochs": 4, "batch": 10, "optimizer": {"name": "adam", "rate": 0.02}},
 "round": {"goal": 2, "deadline_s": 3600},
 "evaluate": {"by": "coordinator"},
 "stop": {"rounds": 3}}
END
JOB=$(fleet_admin job submit "$FLEET/job.json" 2>"$FLEET/said") || fleet_fail "job submit: $(cat "$FLEET/said")"
job_done 120
better lora "$base_loss"
[ "$(curl_admin "/v1/jobs/$JOB" | pick "d['parameters']")" = 36 ] || fleet_fail "more than 2 x 8 and 10 x 2 numbers travel"
run 0 fleet_admin model get "$JOB" -o "$FLEET/lora.safetensors"
python3 -S -E - "$FLEET/norms.safetensors" "$FLEET/lora.safetensors" <<'END' || fleet_fail "tensors of lora"
import json, sys
def read(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}
base, lora = read(sys.argv[1]), read(sys.argv[2])
assert set(lora) - set(base) == {"fc.lora_A.weight", "fc.lora_B.weight"}
assert all(lora[k] == v for k, v in base.items())
assert any(lora["fc.lora_B.weight"])
END
echo "ok: lora: a loss of $(figure 3 loss) from $base_loss"

# --- a GPT whose last layer uses the embedding's weight

cat >"$FLEET/job.json" <<END
{"name": "tied", "seed": 3,
 "model": {"preset": "gpt", "set": {"width": 16, "layers": 1, "heads": 2, "window": 32, "tied": 1}},
 "data": {"name": "words"},
 "local": {"epochs": 1, "batch": 8, "clip_norm": 1, "optimizer": {"name": "sgd", "rate": 0.5, "momentum": 0.9}},
 "round": {"goal": 2, "deadline_s": 3600},
 "evaluate": {"by": "coordinator"},
 "stop": {"rounds": 3}}
END
check_job tied words 3
better tied 4
echo "ok: tied: a loss of $(figure 3 loss) per character"

run 0 fleet_admin verify fetch "$FLEET/mirror"
run 0 "$RIVULET" verify "$FLEET/mirror"
says '12 of 12 rounds|rounds.*12'

# --- what does not fit says so

run 6 "$RIVULET" preset gpt --set width=30
says 'layer "h.0.attn": a width of 30 does not fall into 4 heads'
sed 's/"window": 32/"window": 32, "depth": 2/' "$FLEET/text.json" >"$FLEET/wrong.json"
run 6 fleet_admin job submit "$FLEET/wrong.json"
says 'preset char-lstm has no setting "depth"'
sed 's/"hidden"/"vocabulary": 90, "hidden"/' "$FLEET/text.json" >"$FLEET/small.json"
run 6 "$RIVULET" train --config "$FLEET/device1/rivulet.conf" "$FLEET/small.json"
says 'the text has token 122, the network takes 90 of them and gives 90'
fleet_end
echo "ok: $CHECKS checks"
