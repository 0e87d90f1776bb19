#!/bin/sh
# stages: gcc address
# Old and new get along: the coordinator ignores fields of a message that it does not know, a device those of a newer
# coordinator; an agent that cannot do a job is told why.
set -u
FLEET_NAME=42-old-agent
. tests/e2e/common.sh

fleet_start
glyph_device old 1 100
glyph_job "$FLEET/job.json" old-agent 2 2
job_submit "$FLEET/job.json"

ask() { # ask JSON: POST /v1/tasks as device "old"; the answer is in $FLEET/answer
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/old/ca.pem" --cert "$FLEET/old/cert.pem" --key "$FLEET/old/key.pem" \
		-D "$FLEET/head" -o "$FLEET/answer" --data-binary "$1" "$URL/v1/tasks" || fleet_fail "POST /v1/tasks"
}
says() { # says WHAT EXPRESSION
	pick "$2" <"$FLEET/answer" | grep -qx True || fleet_fail "$1: not so: $2: $(cat "$FLEET/answer")"
}
layers='"layers": ["flatten", "linear", "relu"]'
data='"data": [{"name": "digits", "examples": 100}]'
rest="\"trainers\": [\"builtin\"], \"codecs\": [\"f32\"], $data"

ask "{\"agent\": \"0.1\", \"protocol\": 1, $rest, \"layers\": [\"flatten\", \"linear\"]}"
says "an agent without relu" "d['reason'] == 'old-agent' and d['wait'] > 0"
grep -qi '^Retry-After: [1-9]' "$FLEET/head" || fleet_fail "no Retry-After: $(cat "$FLEET/head")"
curl_admin /v1/devices/old | pick "d['reason'] == 'old-agent'" | grep -qx True || fleet_fail "nobody is told that the agent is old"
ask "{\"agent\": \"0.1\", \"protocol\": 0, $rest, $layers}"
says "a protocol before this one" "d['reason'] == 'old-agent'"
ask "{\"agent\": \"0.1\", \"protocol\": 1, $rest, $layers, \"held_models\": \"no\"}"
says "a known field of the wrong type" "d['type'] == 'urn:rivulet:error:bad-message' and 'held_models' in d['detail']"
ask "{\"agent\": \"9.0\", \"protocol\": 7, \"colour\": \"blue\", \"gpus\": [{\"bytes\": 1e11}], \"trainers\": [\"builtin\", \"quantum\"],
	\"codecs\": [\"zip\", \"f32\"], \"data\": [{\"name\": \"digits\", \"examples\": 100, \"consent\": {\"until\": null}}], $layers}"
says "fields that are not known" "d['kind'] == 'train' and d['job'] == '$JOB' and d['round'] == 1 and len(d['task']) == 32"
curl_admin /v1/devices/old | pick "d['agent'] == '9.0'" | grep -qx True || fleet_fail "the agent's version is not kept"

# What the first version does not know of a recipe it would pass over.
job_submit_keys() { # job_submit_keys NAME LOCAL UPLOAD: a job before the other, as job $JOB
	python3 -S -E - "$FLEET/job.json" "$FLEET/keys.json" "$1" "$2" "$3" <<-'END'
		import json, sys
		job = json.load(open(sys.argv[1]))
		job.update(name=sys.argv[3], priority=1)
		job["local"].update(json.loads(sys.argv[4]))
		job["upload"] = json.loads(sys.argv[5])
		json.dump(job, open(sys.argv[2], "w"))
	END
	job_submit "$FLEET/keys.json"
}
main=$JOB
while read -r name feature keys upload; do
	job_submit_keys "$name" "$keys" "$upload"
	ask "{\"agent\": \"0.1\", \"protocol\": 1, $rest, $layers}"
	says "$name without features" "d.get('job') == '$main'"
	ask "{\"agent\": \"0.2\", \"protocol\": 1, $rest, $layers, \"features\": [\"later\", \"$feature\"]}"
	says "$name with $feature" "d['job'] == '$JOB'"
	curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/stopped" || fleet_fail "stop: $(cat "$FLEET/stopped")"
done <<-'END'
	prox prox {"prox":0.1} {}
	clip clip {"clip_norm":1} {}
	accumulate accumulate {"accumulate":2} {}
	counter random-counter {"random":"counter"} {}
	adam optimizers {"optimizer":{"name":"adam","rate":0.001}} {}
	feedback feedback {} {"codec":"f32","feedback":true}
	variates variates {"control_variates":{"devices":2}} {}
END
# What an agent of before would train otherwise.
model_job() { # model_job NAME WORDS: the job, changed by these words of Python, as $FLEET/keys.json
	python3 -S -E - "$FLEET/job.json" "$FLEET/keys.json" "$1" "$2" <<-'END'
		import json, sys
		job = json.load(open(sys.argv[1]))
		job.update(name=sys.argv[3], priority=1)
		model, local, norm = job["model"], job["local"], {"type": "batchnorm", "name": "norm"}
		exec(sys.argv[4])
		json.dump(job, open(sys.argv[2], "w"))
	END
}
layers='"layers": ["flatten", "linear", "relu", "batchnorm"]'
while read -r name feature others words; do
	model_job "$name" "$words"
	job_submit "$FLEET/keys.json"
	ask "{\"agent\": \"0.1\", \"protocol\": 1, $rest, $layers, \"features\": $others}"
	says "$name without $feature" "d.get('job') == '$main'"
	ask "{\"agent\": \"0.2\", \"protocol\": 1, $rest, $layers, \"features\": [\"$feature\", ${others#[}}"
	says "$name with $feature" "d['job'] == '$JOB'"
	curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/stopped" || fleet_fail "stop: $(cat "$FLEET/stopped")"
done <<-'END'
	weighted weighted-pieces ["accumulate","networks"] model["ignore_index"] = 3; local["accumulate"] = 2
	shared tied-pieces ["accumulate","adapters","networks"] model["layers"][1:] = [dict(model["layers"][1], out=10, name="a"), {"type": "linear", "out": 10, "name": "b"}, {"type": "linear", "out": 10, "weights": "b"}]; local["accumulate"] = 2
	single batch-norms ["clip"] model["layers"].insert(-1, norm)
	decaying batch-norms ["clip"] model["layers"].insert(0, norm); local["clip_norm"] = 1; local["optimizer"]["weight_decay"] = 0.1
END
model_job few 'model["layers"].insert(-1, norm)'
job_submit "$FLEET/keys.json"
ask "{\"agent\": \"0.2\", \"protocol\": 1, \"trainers\": [\"builtin\"], \"codecs\": [\"f32\"], $layers, \"features\": [\"batch-norms\"], \"data\": [{\"name\": \"digits\", \"examples\": 1}]}"
says "one example where a batch norm needs two" "d.get('job') == '$main'"
curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/stopped" || fleet_fail "stop: $(cat "$FLEET/stopped")"
model_job one 'model["layers"].insert(-1, norm); local["batch"] = 1'
fleet_admin job submit "$FLEET/keys.json" >"$FLEET/said" 2>&1 && fleet_fail "batches of one behind a batch norm are taken"
grep -q 'local.batch: of 1 example batchnorm "norm"' "$FLEET/said" || fleet_fail "submit says: $(cat "$FLEET/said")"
JOB=$main

# A device that joins and works through a coordinator of a later version.
python3 -S -E tests/tools/newer_coordinator.py "$FLEET/state" "$FLEET/late" "$PORT" >"$FLEET/proxy-port" 2>"$FLEET/proxy.log" &
proxy=$!
FLEET_PIDS="$FLEET_PIDS $proxy"
proxy_ready() { [ -s "$FLEET/proxy-port" ]; }
within 20 proxy_ready || fleet_fail "the proxy did not start"
direct=$URL
URL=https://localhost:$(cat "$FLEET/proxy-port")
glyph_device late 3 300
URL=$direct
fleet_run late
fleet_run old
job_done 60
curl_admin "/v1/jobs/$JOB/rounds/2" | pick "sorted((r['name'], r['examples']) for r in d['devices']) == [('late', 300), ('old', 100)]" |
	grep -qx True || fleet_fail "round 2: $(curl_admin "/v1/jobs/$JOB/rounds/2")"
"$RIVULET" status --url "https://localhost:$(cat "$FLEET/proxy-port")" --home "$FLEET/late" >"$FLEET/status.log" 2>&1 || fleet_fail "rivulet status at a newer coordinator: $(cat "$FLEET/status.log")"
fleet_kill KILL "$proxy"
fleet_end
echo "fields of a later version are ignored on both sides"
