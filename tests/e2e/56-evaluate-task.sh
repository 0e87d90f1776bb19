#!/bin/sh
# stages: gcc address
# Tasks of kind evaluate: the last model of a job whose devices evaluate gets its figure, also when the coordinator is killed on the
# way; an agent that knows no such tasks gets none; any model may be evaluated like a job's; and so by programs of the owners, one that
# stays and one that is started for each task.
set -u
FLEET_NAME=56-evaluate-task
. tests/e2e/common.sh

of_job() { curl_admin "/v1/jobs/$JOB" | pick "$1"; }
of_rounds() { curl_admin "/v1/jobs/$JOB/rounds" | pick "$1"; }
expect() { # expect WHAT EXPRESSION: of JOB
	[ "$(of_job "$2")" = True ] || fleet_fail "$1: $(curl_admin "/v1/jobs/$JOB")"
}
measured_job() { # measured_job NAME: glyph_job's, evaluated by its devices; as job $JOB
	python3 -S -E - "$FLEET/plain.json" "$FLEET/job.json" "$1" <<-'END'
		import json, sys
		job = json.load(open(sys.argv[1]))
		job["name"] = sys.argv[3]
		job["data"]["validation"] = 0.25
		job["evaluate"] = {"by": "devices"}
		json.dump(job, open(sys.argv[2], "w"))
	END
	job_submit "$FLEET/job.json"
}

fleet_start
for n in 1 2; do
	glyph_device device$n $n 200
done
glyph_job "$FLEET/plain.json" plain 2 2

# --- after the last round the devices evaluate what it made

fleet_run device1
first=$AGENT_PID
fleet_run device2
second=$AGENT_PID
measured_job measured
job_done 60
last='(lambda r: [x["state"] for x in r] == ["committed", "committed", "evaluated"] and r[2]["base"] == r[2]["model"] == r[1]["model"] and
	r[2]["reports"] == 2 and r[2]["examples"] == r[2]["evaluate"]["examples"] == 100 and r[2]["bytes_up"] == 0 and r[2]["loss"] is None)(d["rounds"])'
[ "$(of_rounds "$last")" = True ] || fleet_fail "rounds: $(curl_admin "/v1/jobs/$JOB/rounds")"
expect "the last model has its figure" "d['metric']['round'] == d['rounds_committed'] == 2 and d['metric']['accuracy'] > 0.5 and d['reason'] == 'all rounds done'"
fleet_admin job show measured >"$FLEET/shown" || fleet_fail "job show"
grep -Eq '^metric of +2$' "$FLEET/shown" && grep -Eq '^ *3 +evaluated +2/2 ' "$FLEET/shown" || fleet_fail "job show: $(cat "$FLEET/shown")"
[ "$(log_lines 1 "$FLEET/device1.log" 'info report.accepted .*round=3 .*receipt=verified')" = 1 ] || fleet_fail "no receipt"
trained=$JOB
accuracy=$(of_job "d['metric']['accuracy']")
echo "ok: accuracy of the last model $accuracy"

# --- the same model like that job: the same examples, the same figure; of one device; and of a model of before

fleet_admin job evaluate "$trained" --like measured --wait >"$FLEET/waited" 2>"$FLEET/said" || fleet_fail "job evaluate: $(cat "$FLEET/waited" "$FLEET/said")"
JOB=$(head -n 1 "$FLEET/waited")
expect "like the job" "d['kind'] == 'evaluate' and d['state'] == 'done' and d['reason'] == 'evaluated' and d['metric']['round'] == 0 and
	d['metric']['accuracy'] == $accuracy and d['model'] == '$MODEL' and d['rounds_committed'] == 0"
fleet_admin job evaluate "$trained" --like measured | grep -qx "$JOB" || fleet_fail "the same again is another job"
before=$(curl_admin "/v1/jobs/$trained/rounds/1" | pick "d['model']")
fleet_admin job evaluate "$before" --like measured --goal 1 --name before --wait >"$FLEET/waited" 2>"$FLEET/said" || fleet_fail "job evaluate: $(cat "$FLEET/waited" "$FLEET/said")"
JOB=$(head -n 1 "$FLEET/waited")
expect "a model of before" "d['name'] == 'before' and d['metric']['examples'] == 50 and d['model'] == '$before'"
if fleet_admin job evaluate 00 --like measured >"$FLEET/said" 2>&1 || fleet_admin job evaluate "$trained" >"$FLEET/said" 2>&1; then
	fleet_fail "no such model, or no job: $(cat "$FLEET/said")"
fi
echo "ok: job evaluate"

# --- killed while it evaluates: the report that is there counts, the other one comes

fleet_kill TERM "$second"
fleet_admin job evaluate "$trained" --like measured --name killed >"$FLEET/said" || fleet_fail "job evaluate"
JOB=$(cat "$FLEET/said")
reports() { [ "$(of_job "d['open']['kind'], d['open']['reports']" 2>/dev/null)" = "('evaluate', $1)" ]; }
within 30 reports 1 || fleet_fail "no report: $(curl_admin "/v1/jobs/$JOB")"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
reports 1 || fleet_fail "the report is gone: $(curl_admin "/v1/jobs/$JOB")"
fleet_run device2
second=$AGENT_PID
job_done 60
expect "after a kill" "d['metric']['accuracy'] == $accuracy and d['metric']['examples'] == 100 and d['reason'] == 'evaluated'"
echo "ok: kill -9"

# --- programs of the owners evaluate: all examples are taken for class 3

cat >"$FLEET/own.py" <<'END'
import array, json, os, shutil, struct, sys

def classes(path):
    with open(path, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        begin, end = json.loads(f.read(length))["validation_y"]["data_offsets"]
        f.seek(8 + length + begin)
        return array.array("i", f.read(end - begin))

def work(directory, kind):
    with open(directory + "/task.json") as f:
        task = json.load(f)
    assert task["kind"] == kind
    y = classes(task["examples"])
    seen = [(c, y.count(c)) for c in range(10)]
    report = {"evaluate": {"examples": len(y), "loss": 1.5, "accuracy": y.count(3) / len(y),
                           "classes": [[c, n, len(y) * (c == 3), n * (c == 3)] for c, n in seen if n or c == 3]},
              "metrics": {"stays": int("RIVULET_TRAINER_IN" in os.environ)}}
    if kind == "train":
        report.update(examples=150, steps=1, loss=2)
        shutil.copy(task["base"], directory + "/after.safetensors")
    with open(directory + "/report.json", "w") as f:
        json.dump(report, f)

if "RIVULET_TRAINER_IN" in os.environ:
    answers = os.fdopen(int(os.environ["RIVULET_TRAINER_OUT"]), "w", 1)
    print(json.dumps({"ready": True}), file=answers)
    for said in map(json.loads, os.fdopen(int(os.environ["RIVULET_TRAINER_IN"]))):
        if "task" in said:
            work(said["directory"], said["kind"])
            print(json.dumps({"done": said["task"]}), file=answers)
else:
    with open(sys.argv[1] + "/task.json") as f:
        work(sys.argv[1], json.load(f)["kind"])
END
for n in 3 4; do
	glyph_device device$n $n 200
	printf '[trainer own]\nexec = python3 %s\nkinds = train evaluate\npersistent = %s\n' \
		"$FLEET/own.py" "$([ $n = 3 ] && echo no || echo yes)" >>"$FLEET/device$n/rivulet.conf"
	fleet_run device$n
	owners="${owners:-} $AGENT_PID"
done
python3 -S -E - "$FLEET/plain.json" "$FLEET/job.json" <<-'END'
	import json, sys
	job = json.load(open(sys.argv[1]))
	job.update(name="own", trainer="own", evaluate={"by": "devices", "figures": ["classes"]}, stop={"rounds": 1})
	job["data"]["validation"] = 0.25
	json.dump(job, open(sys.argv[2], "w"))
END
job_submit "$FLEET/job.json"
job_done 60
expect "an owner's program" "d['metric']['round'] == 1 and d['metric']['examples'] == 100 and d['metric']['loss'] == 1.5"
curl_admin "/v1/jobs/$JOB/rounds/2" >"$FLEET/answer" || fleet_fail "no second round: $(curl_admin "/v1/jobs/$JOB/rounds")"
own='(lambda f: d["state"] == "evaluated" and d["reports"] == f["reports"] == 2 and sum(f["support"]) == f["examples"] == 100 and
	f["recall"] == [c == 3 for c in range(10)] and f["precision"][3] == f["support"][3] / 100 == d["evaluate"]["accuracy"] > 0 and
	d["metrics"]["stays"]["mean"] == 0.5)(d["figures"])'
pick "$own" <"$FLEET/answer" | grep -qx True || fleet_fail "an owner's program: $(cat "$FLEET/answer")"
fleet_admin job evaluate "$JOB" --like own --wait >"$FLEET/waited" 2>"$FLEET/said" || fleet_fail "job evaluate: $(cat "$FLEET/waited" "$FLEET/said")"
accuracy=$(pick "d['evaluate']['accuracy']" <"$FLEET/answer")
JOB=$(head -n 1 "$FLEET/waited")
expect "like an owner's program" "d['reason'] == 'evaluated' and d['metric']['accuracy'] == $accuracy"
for pid in $owners; do fleet_kill TERM "$pid"; done
echo "ok: owners' programs"

# --- an agent from before, alone: its job ends without the figure and says so

fleet_kill TERM "$first"
fleet_kill TERM "$second"
python3 -S -E tests/tools/newer_coordinator.py "$FLEET/state" "$FLEET/device1" "$PORT" evaluate-task >"$FLEET/proxy-port" 2>"$FLEET/proxy.log" &
FLEET_PIDS="$FLEET_PIDS $!"
proxy=$!
proxy_ready() { [ -s "$FLEET/proxy-port" ]; }
within 20 proxy_ready || fleet_fail "the proxy did not start"
printf '[coordinator]\nurl = https://localhost:%s\n' "$(cat "$FLEET/proxy-port")" >>"$FLEET/device1/rivulet.conf"
sed -i 's/"goal": 2/"goal": 1/' "$FLEET/plain.json"
fleet_run device1
measured_job old
job_done 60
expect "an old agent alone" "d['reason'] == 'all rounds done; its last model has no figure: fewer devices than the quorum evaluate' and
	d['metric']['round'] == 1 and d['round'] == 2"
fleet_kill TERM "$AGENT_PID"
fleet_kill KILL "$proxy"
echo "ok: an old agent"

# --- what they are told, and what is refused

request() { # request DEVICE METHOD PATH [CURL OPTION...]
	request_home=$FLEET/$1
	request_method=$2
	request_path=$3
	shift 3
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$request_home/ca.pem" --cert "$request_home/cert.pem" --key "$request_home/key.pem" \
		-X "$request_method" -o "$FLEET/answer" -w '%{http_code}' "$@" "$URL$request_path"
}
ask() { # ask DEVICE [KEYS]
	request "$1" POST /v1/tasks --data-binary "{\"agent\": \"0.1\", \"protocol\": 1, \"trainers\": [\"builtin\"], \"codecs\": [\"f32\"],
		\"data\": [{\"name\": \"digits\", \"examples\": 200}], \"layers\": [\"flatten\", \"linear\", \"relu\"]${2:-}}" >/dev/null || fleet_fail "POST /v1/tasks"
}
fleet_admin job evaluate "$trained" --like measured --goal 1 --name late >"$FLEET/said" || fleet_fail "job evaluate"
JOB=$(cat "$FLEET/said")
ask device1
pick "d['reason']" <"$FLEET/answer" | grep -qx old-agent || fleet_fail "an old agent is told: $(cat "$FLEET/answer")"
ask device1 ', "features": ["evaluate-task"]'
pick "d['reason']" <"$FLEET/answer" | grep -qx no-trainer || fleet_fail "one whose trainer only trains is told: $(cat "$FLEET/answer")"
ask device1 ', "features": ["evaluate-task"], "evaluators": ["builtin"]'
pick "d['kind'] == 'evaluate' and d['round'] == 1" <"$FLEET/answer" | grep -qx True || fleet_fail "no task: $(cat "$FLEET/answer")"
task=$(pick "d['task']" <"$FLEET/answer")
cp "$FLEET/answer" "$FLEET/answer.task"

# What is no evaluation does not come that way, nor an evaluation another.
[ "$(request device1 POST "/v1/tasks/$task/report" -d '')" = 400 ] || fleet_fail "without a manifest: $(cat "$FLEET/answer")"
grep -q bad-manifest "$FLEET/answer" || fleet_fail "without a manifest: $(cat "$FLEET/answer")"
manifest() { # manifest KIND: unsigned, of the task, as a header
	python3 -S -E - "$FLEET/answer.task" "$1" "$2" <<-'END'
		import base64, json, struct, sys
		t, kind, device = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
		h = bytes.fromhex
		m = b"RVD1" + struct.pack("<HH", 1, 320) + h(t["job"]) + struct.pack("<Q", t["round"]) + h(t["model"]["id"]) + h(device) + h(t["task"])
		m += struct.pack("<Q", 10) + (struct.pack("<QQQ", 1, 4, 16) + b"\1" * 32 if kind == 0 else b"\0" * 56) + struct.pack("<HH", 0, 0)
		m += struct.pack("<I", 8 | kind << 8) + b"\0" * 40 + b"\2" * 32 + b"\0" * 64
		print("Rivulet-Manifest: :%s:" % base64.b64encode(m).decode())
	END
}
id=$(curl_admin /v1/devices/device1 | pick "d['device']")
refused() { # refused WORD STATUS
	grep -q "urn:rivulet:error:$1" "$FLEET/answer" || fleet_fail "not $1: $2 $(cat "$FLEET/answer")"
}
refused wrong-kind "$(request device1 POST "/v1/tasks/$task/report" -d '' -H "$(manifest 0 "$id")")"
refused wrong-kind "$(request device1 PUT "/v1/deltas/$task" -d '' -H "$(manifest 1 "$id")")"
refused wrong-device "$(request device1 POST "/v1/tasks/$task/report" -d '' -H "$(manifest 1 "$(printf '%064d' 0)")")"
refused bad-report "$(request device1 POST "/v1/tasks/$task/report" -d '' -H "$(manifest 1 "$id")")"
refused method-not-allowed "$(request device1 PUT "/v1/tasks/$task/report" -d '' -H "$(manifest 1 "$id")")"
# With that the task was given back.
ask device1 ', "features": ["evaluate-task"], "evaluators": ["builtin"]'
pick "d['reason']" <"$FLEET/answer" | grep -qx aborted || fleet_fail "after a refusal: $(cat "$FLEET/answer")"
curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/answer" || fleet_fail "stop: $(cat "$FLEET/answer")"
echo "ok: refusals"

# --- what an auditor has to say

rm -rf "$FLEET/audit"
"$RIVULET" verify fetch "$FLEET/audit" --socket "$FLEET/admin.sock" >"$FLEET/verified" 2>&1 && "$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>&1 ||
	fleet_fail "verify: $(cat "$FLEET/verified")"
pick "d['rounds']['evaluated'] == 6" <"$FLEET/verified" | grep -qx True || fleet_fail "verify: $(cat "$FLEET/verified")"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check: $(cat "$FLEET/check")"
fleet_end
echo "ok: verify, check"
