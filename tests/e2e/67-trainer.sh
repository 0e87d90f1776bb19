#!/bin/sh
# stages: gcc address
# `rivulet trainer` in place of the built-in trainer, started for each task and staying: the same models and figures as inside the agent,
# to the bit, whatever the recipe asks for; partial work, tasks that evaluate, and one that it cannot do.
set -u
FLEET_NAME=67-trainer
. tests/e2e/common.sh

fleet_start
python3 -S -E - "$FLEET/text" <<'END'
import random, sys
draw = random.Random(4)
words = "one two three four five six seven eight nine ten".split()
open(sys.argv[1], "w").write(" ".join(draw.choice(words) for _ in range(1500)))
END
for n in 1 2; do
	fleet_join device$n "
[device]
threads = $n
[data words]
format = text
path = $FLEET/text
seed = 1
shard = $n/2
[data digits]
format = glyphs
hand = $n
count = 80
seed = 1
skew = 0.2"
	cp "$FLEET/device$n/rivulet.conf" "$FLEET/plain$n"
done
program=$(realpath "$RIVULET")
agents() { # agents [MORE SETTINGS]: both, anew, with those
	for pid in $FLEET_PIDS; do
		[ "$pid" = "$DAEMON_PID" ] || fleet_kill TERM "$pid"
	done
	for n in 1 2; do
		{ cat "$FLEET/plain$n" && printf '%s\n' "$1"; } >"$FLEET/device$n/rivulet.conf"
		fleet_run device$n
	done
}
PLANES='"data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.2}, "evaluate": {"by": "devices"}'
CNN='{"type": "conv2d", "name": "conv", "out": 6, "kernel": 3, "stride": 2}, {"type": "batchnorm", "name": "bn"}, {"type": "relu"},
	{"type": "dropout", "rate": 0.2}, {"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}'
submit_as() { # submit_as NAME: each recipe as a job of that name; prints what came of it
	i=0
	while read -r recipe; do
		i=$((i + 1))
		printf '{"name": "%s-%s", "seed": 7, %s, "round": {"goal": 2, "deadline_s": 3600}, "stop": {"rounds": 3}}' "$1" $i "$recipe" >"$FLEET/job.json"
		JOB=$(fleet_admin job submit "$FLEET/job.json" 2>"$FLEET/said") || fleet_fail "job $i: $(cat "$FLEET/said")"
		job_done 60
		fleet_admin model get "$JOB" -o "$FLEET/model" >"$FLEET/said" 2>&1 || fleet_fail "model get: $(cat "$FLEET/said")"
		python3 -S -E -c 'import hashlib, sys
data = open(sys.argv[1], "rb").read()
print(hashlib.sha256(data[8 + int.from_bytes(data[:8], "little"):]).hexdigest())' "$FLEET/model"
		curl_admin "/v1/jobs/$JOB/rounds" | pick "'\n'.join('%d %s %r %r %d %r %r' % (r['round'], r['state'], r['loss'], r['accuracy'], r['examples'], r['evaluate'], r.get('steps')) for r in d['rounds'])"
	done <"$FLEET/recipes"
}
tr -d '\n\t' >"$FLEET/recipes.1" <<END
"model": {"layers": [$CNN], "loss": "cross_entropy"}, $PLANES, "local": {"epochs": 2, "batch": 10, "random": "counter", "clip_norm": 1, "optimizer": {"name": "adam", "rate": 0.01}}
END
tr -d '\n\t' >"$FLEET/recipes.2" <<END
"model": {"preset": "char-lstm", "set": {"hidden": 24, "window": 20}}, "data": {"name": "words", "validation": 0.1}, "evaluate": {"by": "devices"}, "local": {"steps": 7, "batch": 8, "prox": 0.01, "accumulate": 2, "recompute": "blocks", "optimizer": {"name": "sgd", "rate": 0.5, "momentum": 0.9}}
END
tr -d '\n\t' >"$FLEET/recipes.3" <<END
"model": {"layers": [$CNN], "loss": "cross_entropy"}, $PLANES, "tensors": {"conv.*": "frozen", "bn.*": "local"}, "local": {"epochs": 1, "batch": 10, "control_variates": {"devices": 2}, "optimizer": {"name": "sgd", "rate": 0.05}}
END
tr -d '\n\t' >"$FLEET/recipes.4" <<END
"model": {"layers": [$CNN], "loss": "cross_entropy"}, $PLANES, "upload": {"codec": "sparse", "share": 0.1}, "parallel": {"micro_batch": 3, "groups": 2}, "local": {"epochs": 1, "batch": 10, "arithmetic": "fast", "optimizer": {"name": "sgd", "rate": 0.05}}
END
tr -d '\n\t' >"$FLEET/recipes.5" <<END
"model": {"layers": [{"type": "embedding", "name": "e", "vocabulary": 256, "out": 12}, {"type": "linear", "name": "mid", "out": 12,
	"lora": {"rank": 3, "alpha": 6}}, {"type": "tanh"}, {"type": "linear", "name": "out", "out": 256, "weights": "e"}], "loss": "cross_entropy"},
	"data": {"name": "words", "window": 20, "validation": 0.1}, "evaluate": {"by": "devices"},
	"local": {"steps": 7, "batch": 8, "control_variates": {"devices": 2}, "optimizer": {"name": "sgd", "rate": 0.5}}
END
for i in 1 2 3 4 5; do cat "$FLEET/recipes.$i" && echo; done >"$FLEET/recipes"

# A choice of kernels that no measuring would make: agents take what their homes keep, and their programs what they are told.
printf '{"name": "k", "seed": 1, %s, "round": {"goal": 1}}' "$(cat "$FLEET/recipes.4")" >"$FLEET/job.json"
XDG_CACHE_HOME=$FLEET/cache "$RIVULET" train "$FLEET/job.json" --home "$FLEET/device1" >"$FLEET/said" 2>&1 || fleet_fail "train: $(cat "$FLEET/said")"
python3 -S -E - "$FLEET/cache/rivulet/kernels" "$FLEET/kernels" <<'END' || fleet_fail "no choice of kernels was kept"
import hashlib, re, sys
text = open(sys.argv[1]).read()
text = re.sub(r"=(fused|openblas)\b", "=rounded", text[:text.index("sha256 ")])
open(sys.argv[2], "w").write(text + "sha256 " + hashlib.sha256(text.encode()).hexdigest() + "\n")
END
for n in 1 2; do cp "$FLEET/kernels" "$FLEET/device$n/kernels"; done

agents ''
submit_as inside >"$FLEET/inside"
[ "$(wc -l <"$FLEET/inside")" -ge 20 ] || fleet_fail "too few lines: $(cat "$FLEET/inside")"
for how in once persistent; do
	more="
[trainer builtin]
exec = $program trainer
kinds = train,evaluate"
	[ $how = once ] || more="$more
persistent = yes"
	agents "$more"
	submit_as $how >"$FLEET/$how"
	cmp -s "$FLEET/inside" "$FLEET/$how" || fleet_fail "$how: $(diff "$FLEET/inside" "$FLEET/$how")"
	grep -q 'trainer.offer ' "$FLEET/device1.log" || fleet_fail "$how: the program was not asked"
	echo "ok: $how: five recipes, the same bits"
done
for n in 1 2; do cmp -s "$FLEET/kernels" "$FLEET/device$n/kernels" || fleet_fail "device$n made a choice of its own"; done

# --- alone, and what cannot be

run 6 "$RIVULET" trainer
says "it wants a task's directory, or an agent"
mkdir "$FLEET/empty"
run 0 "$RIVULET" trainer "$FLEET/empty"
grep -q '"trainer-failed"' "$FLEET/empty/report.json" || fleet_fail "no reason: $(cat "$FLEET/empty/report.json")"
fleet_end
echo "ok: $CHECKS checks"
