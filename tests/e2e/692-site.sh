#!/bin/sh
# stages: gcc address
# A device whose tasks are done by a site's ranks, threads of `rivulet-site run` in the sandbox of trainers, beside two that train
# themselves: five rounds have the audit log of the same fleet without it, but for times.
set -u
FLEET_NAME=692-site
. tests/e2e/common.sh
site=$BUILD/rivulet-site
[ -x "$site" ] || skip "needs $site, which is built where Open MPI is"
site="$(realpath "$site") run --ranks 3 --pipeline-parallel 3"
devices="device1 device2 device3"
rounds=5

fleet_start
hand=0
for name in $devices; do
	hand=$((hand + 1))
	glyph_device "$name" $hand $((40 + hand))
done
cat >"$FLEET/job.json" <<-END
	{"name": "site", "seed": 7,
	 "model": {"layers": [{"type": "conv2d", "name": "conv", "out": 4, "kernel": 3, "stride": 2}, {"type": "relu"}, {"type": "flatten"},
	                      {"type": "dropout", "rate": 0.2}, {"type": "linear", "name": "fc1", "out": 24}, {"type": "tanh"},
	                      {"type": "linear", "name": "fc2", "out": 16}, {"type": "relu"}, {"type": "linear", "name": "fc3", "out": 10}],
	           "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.2},
	 "local": {"epochs": 2, "batch": 12, "random": "counter", "clip_norm": 1, "optimizer": {"name": "adam", "rate": 0.01}},
	 "parallel": {"micro_batch": 2, "groups": 3},
	 "round": {"goal": 3, "deadline_s": 3600}, "evaluate": {"by": "devices"}, "stop": {"rounds": $rounds}}
END
# shellcheck disable=SC2086 # a list
fleet_keep $devices

# What differs between two runs of one fleet: a task's id and whatever is drawn from it, times, and what covers these.
records() { # records NAME: the job by those agents; what the audit log and the coordinator say of its rounds goes to $FLEET/NAME
	for name in $devices; do
		fleet_run "$name" -v
	done
	job_submit "$FLEET/job.json"
	job_done 60
	fleet_admin verify fetch "$FLEET/audit.$1" >"$FLEET/said" 2>&1 || fleet_fail "$1: $(cat "$FLEET/said")"
	"$RIVULET" verify "$FLEET/audit.$1" >"$FLEET/said" 2>&1 || fleet_fail "$1: $(cat "$FLEET/said")"
	n=0
	while [ $n -le $rounds ]; do
		n=$((n + 1))
		curl_admin "/v1/jobs/$JOB/rounds/$n" || fleet_fail "$1: round $n"
	done >"$FLEET/rounds"
	python3 -S -E - "$FLEET/audit.$1" "$FLEET/rounds" >"$FLEET/$1" <<'END' || fleet_fail "$1: the records cannot be read"
import base64, json, sys

TIMES = ("opened_at", "closed_at", "accepted_at", "seconds")

def lasting(value):
    if isinstance(value, list):
        return [lasting(v) for v in value]
    if isinstance(value, dict):
        return {k: lasting(v) for k, v in value.items() if k not in TIMES}
    return value

ended = set()
for number, line in enumerate(open(sys.argv[1] + "/bodies.jsonl"), 1):
    body = json.loads(line)
    body["details"] = len(body.get("details", []))
    if body["event"].startswith("round."):
        ended.add(number)
    print(json.dumps(body))
for line in open(sys.argv[1] + "/details.jsonl"):
    detail = json.loads(line)
    if detail["seq"] not in ended:
        continue
    manifest = bytearray(base64.b64decode(detail["data"]))
    assert manifest[:4] == b"RVD1" and len(manifest) == 320
    # The task's id, the time, the codec's seed, the report's hash and the signature.
    for first, end in (96, 112), (192, 200), (216, 320):
        manifest[first:end] = bytes(end - first)
    print(detail["seq"], detail["place"], manifest.hex())
for line in open(sys.argv[2]):
    print(json.dumps(lasting(json.loads(line))))
END
	[ "$(grep -c '"event": "round.committed"' "$FLEET/$1")" = $rounds ] && grep -q '"event": "round.evaluated"' "$FLEET/$1" ||
		fleet_fail "$1: not all rounds: $(cat "$FLEET/$1")"
}
by() { # by DEVICE TRAINER: who did its tasks
	[ "$(log_lines $((rounds + 1)) "$FLEET/$1.log" "training trainer=$2")" = $((rounds + 1)) ] || fleet_fail "$1: its tasks were not done by trainer=$2"
}

# shellcheck disable=SC2086
fleet_again $devices
records inside
for name in $devices; do by "$name" builtin; done

# shellcheck disable=SC2086
fleet_again $devices
"$BUILD/rivulet-site" plan --ranks 3 --pipeline-parallel 3 "$FLEET/job.json" >"$FLEET/said" 2>&1 && grep -q '^3 of 3 ranks: 3 stages x 1 replicas' "$FLEET/said" ||
	fleet_fail "three ranks do not divide the job: $(cat "$FLEET/said")"
printf '[trainer builtin]\nexec = %s\nkinds = train evaluate\n' "$site" >>"$FLEET/device2/rivulet.conf"
records site
by device2 external
by device1 builtin
cmp -s "$FLEET/inside" "$FLEET/site" || fleet_fail "differs: $(diff "$FLEET/inside" "$FLEET/site")"
fleet_end
echo "ok: $rounds rounds beside a site: $MODEL"
