#!/bin/sh
# stages: gcc
# Memory before a task: a device that cannot hold a job downloads nothing of it, says so, and is asked again once its offer changes; others
# go on. What a plan says is what devices that train then take: on a small convolution, a residual network, an LSTM and MobileNetV2.
set -u
FLEET_NAME=68-memory
. tests/e2e/common.sh

fleet_start
for n in 1 2; do
	glyph_device device$n $n 60
done
job() { # job NAME WIDTH: of one report a round
	glyph_job "$FLEET/job.json" "$1" 1 "$3"
	sed -i "s/\"out\": 50/\"out\": $2/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
shown() { curl_admin "$1" | pick "$2"; }
cp "$FLEET/device1/rivulet.conf" "$FLEET/plain"

# --- the small one alone: it says no, and nobody has the task
printf '[limits]\nmemory_bytes = 4M\n' >>"$FLEET/device1/rivulet.conf"
fleet_run device1
small=$AGENT_PID
job wide 1500 2
refused() { [ "$(shown "/v1/jobs/$JOB" "len(d['refused'])")" = 1 ]; }
within 30 refused || fleet_fail "device1 did not refuse: $(curl_admin "/v1/jobs/$JOB")"
need=$(shown "/v1/jobs/$JOB" "d['refused'][0]['needed_bytes']")
[ "$(shown "/v1/jobs/$JOB" "'%(name)s %(reason)s %(kind)s %(memory_bytes)d' % d['refused'][0]")" = "device1 out-of-memory train 4194304" ] ||
	fleet_fail "refused: $(curl_admin "/v1/jobs/$JOB")"
# 1,192,510 weights, twice: those that came, and the network's.
[ "$need" -gt $((2 * 4 * 1192510)) ] && [ "$need" -lt $((2 * 4 * 1192510 + 4000000)) ] || fleet_fail "needs $need bytes"
waits() { [ "$(shown "/v1/jobs/$JOB" "d['devices']['waiting'].get('out-of-memory')")" = 1 ]; }
within 30 waits || fleet_fail "it does not wait: $(curl_admin "/v1/jobs/$JOB")"
run 0 fleet_admin job show "$JOB"
says "^refused by device1: out-of-memory, $need bytes for a task and 4194304 there" "1 wait \(out-of-memory 1\)"
run 0 fleet_admin device show device1
says "^refuses the job  *wide: out-of-memory, $need bytes" "^reason  *out-of-memory"
run 0 "$RIVULET" doctor --home "$FLEET/device1"
says "waiting out-of-memory: a task of job $(echo "$JOB" | cut -c1-8) takes $need bytes, and 4194304 are allowed here"
# Asked once, and never again for the same offer, whatever else changes.
given() { grep -c '"event":"task.received"\|event=task.received\|task\.received' "$FLEET/device1.log"; }
first=$(given)
[ "$first" = 1 ] || fleet_fail "device1 had $first tasks"

# --- another one does the job, and only it downloads
fleet_run device2
job_done 60
[ "$(given)" = "$first" ] || fleet_fail "device1 was asked again"
[ -z "$(find "$FLEET/device1" -name '*.safetensors' -o -path '*/models/*' -type f)" ] || fleet_fail "device1 has a model: $(ls -R "$FLEET/device1")"
model=$(shown "/v1/jobs/$JOB" "d['model_bytes']")
[ "$(shown "/v1/jobs/$JOB/rounds" "max(r['bytes_down'] for r in d['rounds'])")" -lt $((model * 3 / 2)) ] ||
	fleet_fail "more than one model went out: $(curl_admin "/v1/jobs/$JOB/rounds")"

# --- a smaller job is no matter to it
glyph_job "$FLEET/job.json" narrow 2 1
job_submit "$FLEET/job.json"
job_done 60

# --- with more memory its offer is another one
glyph_job "$FLEET/job.json" again 2 1
sed -i 's/"out": 50/"out": 1500/; s/"seed": 7/"seed": 8/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
within 30 refused || fleet_fail "device1 did not refuse again"
sed -i 's/^memory_bytes = .*/memory_bytes = 64M/' "$FLEET/device1/rivulet.conf"
kill -HUP "$small"
job_done 60
[ "$(shown "/v1/devices/device1" "len(d['refused'])")" = 0 ] || fleet_fail "still refused: $(curl_admin /v1/devices/device1)"
[ "$(shown "/v1/jobs/$JOB/rounds" "d['rounds'][0]['reports']")" = 2 ] || fleet_fail "not both reported"
for pid in $FLEET_PIDS; do
	fleet_kill TERM "$pid"
done

# --- what is planned is what it takes: the peak of what is anonymous, as the kernel counts it, within 6 MiB
python3 -S -E - "$FLEET" <<'END'
import random, sys
draw = random.Random(5)
def idx(name, *shape):
    size = 1
    for n in shape:
        size *= n
    with open(sys.argv[1] + "/" + name, "wb") as f:
        f.write(bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape) + draw.randbytes(size))
idx("small", 40, 3, 32, 32)
idx("large", 16, 3, 96, 96)
for name, n, classes in ("small-labels", 40, 10), ("large-labels", 16, 2):
    with open(sys.argv[1] + "/" + name, "wb") as f:
        f.write(bytes([0, 0, 8, 1]) + n.to_bytes(4, "big") + bytes(i % classes for i in range(n)))
open(sys.argv[1] + "/text", "w").write("".join(draw.choice("abcdefgh \n") for _ in range(4000)))
END
fleet_join device3 "
[data digits]
format = glyphs
count = 100
[data small]
format = idx
images = $FLEET/small
labels = $FLEET/small-labels
[data large]
format = idx
images = $FLEET/large
labels = $FLEET/large-labels
[data text]
format = text
path = $FLEET/text"
LENET='"layers": [{"type": "conv2d", "out": 6, "kernel": 5, "padding": 2}, {"type": "relu"}, {"type": "maxpool2d", "kernel": 2},
	{"type": "conv2d", "out": 16, "kernel": 5}, {"type": "relu"}, {"type": "maxpool2d", "kernel": 2}, {"type": "flatten"},
	{"type": "linear", "out": 120}, {"type": "relu"}, {"type": "linear", "out": 84}, {"type": "relu"}, {"type": "linear", "out": 10}],
	"loss": "cross_entropy"'
takes() { # takes NAME MODEL DATA LOCAL
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 3, "model": {$2}, "data": {$3}, "local": {"epochs": 1, $4},
		 "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1}}
	END
	"$RIVULET" train "$FLEET/$1.json" --home "$FLEET/device3" --plan --json >"$FLEET/plan" || fleet_fail "$1: no plan: $(cat "$FLEET/plan")"
	fleet_run device3 --rounds 1
	rm -f "$FLEET/anonymous"
	python3 -S -E tests/tools/anonymous.py "$AGENT_PID" "$FLEET/anonymous" &
	spy=$!
	JOB=$(fleet_admin job submit "$FLEET/$1.json" 2>"$FLEET/said") || fleet_fail "$1: $(cat "$FLEET/said")"
	wait "$AGENT_PID" || fleet_fail "$1: the agent failed"
	wait "$spy"
	FLEET_PIDS=
	job_done 30
	python3 -S -E - "$FLEET" "$1" "$TEST_SLOW" <<-'END' || fleet_fail "$1 does not take what was planned: $(cat "$FLEET/plan")"
		import json, sys
		plan = json.load(open(sys.argv[1] + "/plan"))["memory"]["peak"] / 2**20
		seen = int(open(sys.argv[1] + "/anonymous").read()) / 1024
		print("%-12s planned %6.1f MiB, seen %6.1f MiB" % (sys.argv[2], plan, seen))
		# A sanitizer's memory is its own.
		sys.exit(abs(plan - seen) > 6 and float(sys.argv[3]) == 1)
	END
	CHECKS=$((CHECKS + 1))
}
SGD='"optimizer": {"name": "sgd", "rate": 0.01}'
ADAM='"optimizer": {"name": "adam", "rate": 0.001}'
takes lenet "$LENET" '"name": "digits", "shape": [1, 28, 28], "classes": 10' "\"batch\": 50, $SGD"
takes resnet20-gn '"preset": "resnet20-gn"' '"name": "small"' "\"batch\": 20, $ADAM"
# With the piece that is proposed it fits.
run 4 "$RIVULET" train "$FLEET/resnet20-gn.json" --home "$FLEET/device3" --plan --memory 24M --json
piece=$(printf '%s\n' "$SAID" | grep -v '^rivulet:' | pick 'd["micro_batch"]["proposed"]') || fleet_fail "no proposal in: $SAID"
takes pieces '"preset": "resnet20-gn"' '"name": "small"' "\"batch\": 20, $ADAM}, \"parallel\": {\"micro_batch\": $piece"
run 0 "$RIVULET" train "$FLEET/pieces.json" --home "$FLEET/device3" --plan --memory 24M
says "^LAYER .*PARAMETERS" "^layer1.0.conv1 .*conv2d" "^the network  *weights 1.0 MiB" "^parallel.micro_batch  *$piece: a task takes 2[0-9.]* MiB of the 24.0 MiB"
run 4 "$RIVULET" train "$FLEET/resnet20-gn.json" --home "$FLEET/device3" --plan --memory 4M
says "^parallel.micro_batch  *none fits into 4.0 MiB: the least that a task takes is"
takes char-lstm '"preset": "char-lstm"' '"name": "text"' "\"batch\": 10, $ADAM"
takes mobilenetv2 '"preset": "mobilenetv2"' '"name": "large"' "\"batch\": 16, $SGD"
fleet_end
echo "$CHECKS checks"
