#!/bin/sh
# stages: gcc openssl
# curl alone, with the CA file and a device's certificate, reads status, jobs, rounds and models. The model file is read by
# an independent parser, its id is its hash, and PyTorch, where installed, loads it by name and counts as many right answers.
# On MNIST where it is there, else on drawn-up files of the same form.
set -u
FLEET_NAME=40-curl
. tests/e2e/common.sh

fleet_start
if [ -f "$MNIST/t10k-images-idx3-ubyte.gz" ]; then
	train_images=$(realpath "$MNIST/train-images-idx3-ubyte.gz") train_labels=$(realpath "$MNIST/train-labels-idx1-ubyte.gz")
	test_images=$(realpath "$MNIST/t10k-images-idx3-ubyte.gz") test_labels=$(realpath "$MNIST/t10k-labels-idx1-ubyte.gz")
	shards=100
else
	train_images=$FLEET/train-images train_labels=$FLEET/train-labels
	test_images=$FLEET/test-images test_labels=$FLEET/test-labels
	python3 tests/tools/make_idx.py "$train_images" "$train_labels" 1800 2 || fleet_fail "no training data"
	python3 tests/tools/make_idx.py "$test_images" "$test_labels" 1000 3 || fleet_fail "no test data"
	shards=3
fi
fleet_kill TERM "$DAEMON_PID"
cat >>"$FLEET/rivuletd.conf" <<END
[data images]
format = idx
images = $test_images
labels = $test_labels
END
fleet_restart
for i in 1 2; do
	fleet_join "device$i" "
[device]
threads = 1
[data images]
format = idx
images = $train_images
labels = $train_labels
shard = $i/$shards"
	fleet_run "device$i"
done
cat >"$FLEET/job.json" <<END
{"name": "curl", "seed": 3,
 "model": {"layers": [{"type": "conv2d", "name": "conv1", "out": 8, "kernel": 5, "padding": 2}, {"type": "relu"},
                      {"type": "maxpool2d", "kernel": 2}, {"type": "flatten"},
                      {"type": "linear", "name": "fc1", "out": 32}, {"type": "relu"},
                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "images", "shape": [1, 28, 28], "classes": 10},
 "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.05}},
 "round": {"goal": 2, "deadline_s": 3600},
 "evaluate": {"by": "coordinator", "data": "images"},
 "stop": {"rounds": 3}}
END
job_submit "$FLEET/job.json"
job_done 120

get() { # get PATH [OPTION...]: as the device
	get_path=$1
	shift
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/device1/ca.pem" --cert "$FLEET/device1/cert.pem" \
		--key "$FLEET/device1/key.pem" "$@" "$URL$get_path"
}
says() { # says WHAT EXPRESSION: of the JSON that get WHAT gives
	get "$1" >"$FLEET/answer" || fleet_fail "GET $1"
	pick "$2" <"$FLEET/answer" | grep -qx True || fleet_fail "GET $1: not so: $2: $(cat "$FLEET/answer")"
}
says /v1/status "d['ready'] is True and d['devices'] == {'joined': 2, 'active': 2} and d['jobs'] == []"
# Lists show a device the jobs that are not over; of others it asks by their ids.
says /v1/jobs "d['jobs'] == []"
says "/v1/jobs/$JOB" "d['model'] == '$MODEL' and d['rounds_committed'] == 3 and d['document']['local']['batch'] == 10"
says "/v1/jobs/$JOB/rounds" "[r['round'] for r in d['rounds']] == [1, 2, 3] and d['rounds'][2]['model'] == '$MODEL'"
says "/v1/jobs/$JOB/rounds?from=2&limit=1" "[r['round'] for r in d['rounds']] == [2]"
says "/v1/jobs/$JOB/rounds/3" "d['reports'] == 2 and 'devices' not in d"

status() { get "$@" -o /dev/null -w '%{http_code}'; }
[ "$(status /v1/devices)" = 403 ] || fleet_fail "a device may list the devices"
[ "$(curl -sS --cacert "$FLEET/device1/ca.pem" -o "$FLEET/answer" -w '%{http_code}' "$URL/v1/status")" = 401 ] &&
	grep -q urn:rivulet:error:no-certificate "$FLEET/answer" || fleet_fail "no certificate: $(cat "$FLEET/answer")"
curl -sS "$URL/healthz" >/dev/null 2>&1
[ $? -eq 60 ] || fleet_fail "the server certificate is accepted without the CA"

get "/v1/models/$MODEL" -o "$FLEET/model" -D "$FLEET/head" || fleet_fail "no model"
[ "$(sha256sum <"$FLEET/model" | cut -c 1-64)" = "$MODEL" ] || fleet_fail "the file's SHA-256 is not its id"
grep -qi "^ETag: \"$MODEL\"" "$FLEET/head" || fleet_fail "ETag: $(cat "$FLEET/head")"
[ "$(status "/v1/models/$MODEL" -H "If-None-Match: \"$MODEL\"")" = 304 ] || fleet_fail "If-None-Match is ignored"
[ "$(status "/v1/models/$MODEL" -r 1000-1999)" = 206 ] || fleet_fail "Range is ignored"
dd if="$FLEET/model" of="$FLEET/part" bs=1000 skip=1 count=1 2>/dev/null
get "/v1/models/$MODEL" -r 1000-1999 | cmp - "$FLEET/part" || fleet_fail "Range gives other bytes"
base=$(get "/v1/jobs/$JOB/rounds/3" | pick 'd["base"]')
python3 tests/vectors/check_safetensors.py "$FLEET/model" >"$FLEET/table" || fleet_fail "the model file breaks a rule: $(cat "$FLEET/table")"
sed 's/\] .*/]/' "$FLEET/table" >"$FLEET/names"
cat >"$FLEET/expected" <<END
base=$base
job=$JOB
rivulet=1
round=3
conv1.weight F32 [8, 1, 5, 5]
conv1.bias F32 [8]
fc1.weight F32 [32, 1568]
fc1.bias F32 [32]
fc2.weight F32 [10, 32]
fc2.bias F32 [10]
END
cmp -s "$FLEET/expected" "$FLEET/names" || fleet_fail "the model file: $(diff "$FLEET/expected" "$FLEET/names")"

right=$(get "/v1/jobs/$JOB" | pick 'round(d["metric"]["accuracy"] * d["metric"]["examples"])')
examples=$(get "/v1/jobs/$JOB" | pick 'd["metric"]["examples"]')
[ "$right" -gt $((examples / 2)) ] || fleet_fail "only $right of $examples right"
for python in python3 /usr/bin/python3; do
	torch=$($python tests/tools/torch_accuracy.py "$FLEET/model" "$test_images" "$test_labels")
	rc=$?
	[ $rc -eq 77 ] || break
done
case $rc in
0) ;;
77)
	fleet_end
	echo "ok, but no PyTorch here to load the model into"
	exit 0
	;;
*) fleet_fail "PyTorch cannot load the model" ;;
esac
# Sums in another order may turn the answer to an example that lies on the edge: one in 10,000.
[ $((torch - right)) -le 1 ] && [ $((right - torch)) -le 1 ] || fleet_fail "PyTorch: $torch of $examples right, the coordinator: $right"
fleet_end
echo "$right of $examples right, in PyTorch $torch"
