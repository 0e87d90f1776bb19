#!/bin/sh
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
