#!/bin/sh
# stages: gcc full
# MNIST with the FedAvg paper's CNN (1,663,370 parameters) on 10 devices of 6000 examples each, iid: 98.5 % test accuracy.
# About 120,000 examples are trained, at 1000 or more a second and core: minutes. Without FULL=1 two short rounds, which must
# give the models of rivulet simulate.
#   FULL=1 TARGET=0.985 ROUNDS=12 STEPS=300 BATCH=10 RATE=0.1 MOMENTUM=0 SEED=1
set -u
FLEET_NAME=51-mnist-cnn
. tests/e2e/common.sh
[ -f "$MNIST/train-images-idx3-ubyte.gz" ] || skip "no MNIST files in $MNIST"
case ${SAN:-} in ?*) skip "takes too long with sanitizers" ;; esac
rounds=${ROUNDS:-12} devices=10 tested=10000 steps=${STEPS:-300} target=${TARGET:-0.985}
stop=", \"target\": {\"accuracy\": $target}"
if [ -z "${FULL:-}" ]; then
	rounds=2 tested=300 steps=5 stop=
fi

fleet_dir
mnist_test $tested
fleet_start "
[data mnist]
format = idx
images = $FLEET/test-images
labels = $FLEET/test-labels"

# Unpacked once, not by each device.
for part in images-idx3 labels-idx1; do
	gzip -dc "$MNIST/train-$part-ubyte.gz" >"$FLEET/train-$part" || fleet_fail "cannot unpack MNIST"
done
i=1
while [ $i -le $devices ]; do
	fleet_join "device$i" "
[device]
threads = 1
[data mnist]
format = idx
images = $FLEET/train-images-idx3
labels = $FLEET/train-labels-idx1
seed = ${SEED:-1}
shard = $i/$devices"
	fleet_run "device$i"
	i=$((i + 1))
done
cat >"$FLEET/job.json" <<END
{"name": "mnist-cnn", "seed": ${SEED:-1},
 "model": {"layers": [{"type": "conv2d", "name": "conv1", "out": 32, "kernel": 5, "padding": 2}, {"type": "relu"},
                      {"type": "maxpool2d", "kernel": 2},
                      {"type": "conv2d", "name": "conv2", "out": 64, "kernel": 5, "padding": 2}, {"type": "relu"},
                      {"type": "maxpool2d", "kernel": 2}, {"type": "flatten"},
                      {"type": "linear", "name": "fc1", "out": 512}, {"type": "relu"},
                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "mnist", "shape": [1, 28, 28], "classes": 10, "min_examples": 6000},
 "local": {"steps": $steps, "batch": ${BATCH:-10}, "optimizer": {"name": "sgd", "rate": ${RATE:-0.1}, "momentum": ${MOMENTUM:-0}}},
 "round": {"goal": $devices, "deadline_s": 1800},
 "evaluate": {"by": "coordinator", "data": "mnist"},
 "stop": {"rounds": $rounds$stop}}
END
start=$(date +%s)
job_submit "$FLEET/job.json"
job_done 1800
took=$(($(date +%s) - start))
if [ -z "${FULL:-}" ]; then
	mnist_as_simulated
	fleet_end
	echo "two rounds of $devices devices as simulated, $took s; FULL=1 for 98.5 %"
	exit 0
fi
curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds"
pick "'\\n'.join('round %d: accuracy %.4f, %.1f s' % (r['round'], r['evaluate']['accuracy'], r['seconds']) for r in d['rounds'])" <"$FLEET/rounds"
peak() { awk '$1 == "VmHWM:" { if ($2 > n) n = $2 } END { printf "%.1f", n / 1024 }' "$@"; }
agents=
for pid in $FLEET_PIDS; do
	[ -r "/proc/$pid/status" ] || fleet_fail "agent $pid has ended"
	agents="$agents /proc/$pid/status"
done
# shellcheck disable=SC2086 # a list
echo "memory: at most $(peak $agents) MiB per device, $(peak "/proc/$DAEMON_PID/status") MiB the coordinator"
pick "d['model_bytes'] // 4 >= 1663370" <"$FLEET/submitted" | grep -qx True || fleet_fail "another network than the paper's"
pick "all(r['reports'] == $devices for r in d['rounds'])" <"$FLEET/rounds" | grep -qx True || fleet_fail "a round without all reports"
pick "d['rounds'][-1]['evaluate']['examples'] == 10000 and d['rounds'][-1]['evaluate']['accuracy'] >= $target" <"$FLEET/rounds" |
	grep -qx True || fleet_fail "$target not reached in $rounds rounds ($took s)"
fleet_end
echo "$target of the test set in round $(pick "len(d['rounds'])" <"$FLEET/rounds"), $took s"
