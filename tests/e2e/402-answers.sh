#!/bin/sh
# stages: gcc openssl address
# What the coordinator answers and no other test asks for; make check compares all answers with docs/openapi.yaml. A delta whose base a
# guard gave up; one without a normaliser; figures of two classes and of numbers, from a device's counts; a device's name; whom a job with an
# evaluator reaches; a job that waits for its model on a coordinator that is not ready.
#   BUILD=build/mbedtls tests/e2e/402-answers.sh
set -u
FLEET_NAME=402-answers
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
CHECKS=0

want() { # want WHAT WANT GOT
	CHECKS=$((CHECKS + 1))
	[ "$2" = "$3" ] || fleet_fail "$1: want $2, got $3"
}
# job NAME MEMBERS: submits one that is trained on pictures by whoever asks
job() {
	printf '{"name": "%s", "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}}, %s}\n' "$1" "$2" >"$FLEET/$1.json"
	job_submit "$FLEET/$1.json"
}
layer() { # layer OUT LOSS
	printf '"model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": %s}], "loss": "%s"}' "$1" "$2"
}
pictures='"name": "digits", "shape": [1, 28, 28]'
ask() { "$peer" ask "$FLEET/$1" "$PORT" || fleet_fail "$1 got no task"; }
put() { # put DEVICE ELEMENTS FAULT TASK: what became of it
	# shellcheck disable=SC2086 # the task is four words
	"$peer" put "$FLEET/$1" "$PORT" "$2" wait "$3" $4 | cut -d " " -f 1,2
}
round_is() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" = "$1" ]; }

fleet_start ""
for name in one two; do fleet_join $name ""; done

# --- a guard goes back to round 1's model, and what started from round 2's is of no more use
job branch "$(layer 10 cross_entropy), \"data\": {$pictures, \"classes\": 10}, \"round\": {\"goal\": 1, \"over_select\": 2, \"late\": \"next\", \"deadline_s\": 3600},
	\"monitor\": {\"metric\": \"metrics.probe\", \"mode\": \"max\"}, \"guard\": {\"metric\": \"metrics.probe\", \"drop\": 0.5, \"do\": \"rollback\"},
	\"stop\": {\"rounds\": 9}"
for round in 1 2; do
	want "round $round" "201 receipt" "$(put one 7850 better "$(ask one)")"
	within 20 round_is $round || fleet_fail "round $round is not over"
done
lost=$(ask two)
want "a bad round" "201 receipt" "$(put one 7850 with-report "$(ask one)")"
within 20 round_is 3 || fleet_fail "round 3 is not over"
want "a delta of a base that was given up" "409 stale-base" "$(put two 7850 none "$lost")"
curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null || fleet_fail "stop"

# --- figures from counts
evaluated='"round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1}, "evaluate": {"by": "devices", "figures"'
job two "$(layer 2 cross_entropy), \"data\": {$pictures, \"classes\": 2, \"validation\": 0.1}, $evaluated: [\"auc\"]}"
want "with bins" "201 receipt" "$(put one 1570 auc "$(ask one)")"
job_done 20
want "auc" 1 "$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick 'd["figures"]["auc"]')"
job line "$(layer 1 mse), \"data\": {$pictures, \"validation\": 0.1}, $evaluated: [\"regression\"]}"
want "with sums" "201 receipt" "$(put one 785 regression "$(ask one)")"
job_done 20
want "mae" 1 "$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick 'd["figures"]["mae"]')"

job normalised "$(layer 10 cross_entropy), \"data\": {$pictures, \"classes\": 10}, \"aggregate\": {\"normalise\": true},
	\"round\": {\"goal\": 1, \"deadline_s\": 3600}, \"stop\": {\"rounds\": 1}"
want "no normaliser" "400 no-normaliser" "$(put one 7850 no-normaliser "$(ask one)")"

# --- its model is gone, then the database
lacking() { [ "$(curl_admin /readyz | pick 'd["status"], d.get("jobs_lacking", 0)')" = "$1" ]; }
state=$FLEET/state model=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
mv "$state/models/$model" "$FLEET/model"
curl_admin "/v1/models/$model" >"$FLEET/out" 2>&1 && fleet_fail "a model that is gone: $(wc -c <"$FLEET/out") bytes"
within 15 lacking "('ready', 1)" || fleet_fail "no job waits: $(curl_admin /readyz)"
mv "$state/rivulet.db" "$FLEET/rivulet.db"
curl_admin /v1/tokens -d '{}' >"$FLEET/out" 2>&1 && fleet_fail "a token without a database: $(cat "$FLEET/out")"
within 15 lacking "('not ready', 1)" || fleet_fail "ready without a database: $(curl_admin /readyz)"
mv "$FLEET/rivulet.db" "$state/rivulet.db"
mv "$FLEET/model" "$state/models/$model"
within 30 lacking "('ready', 0)" || fleet_fail "not ready again: $(curl_admin /readyz)"

# --- whom a job reaches that a program evaluates
sed 's/"by": "devices", "figures": \["regression"\]/"by": "program", "devices": ["two"]/; s/"line"/"judged"/' "$FLEET/line.json" >"$FLEET/judged.json"
want "evaluators" "(1, 0)" "$(curl_admin /v1/plan --data-binary "@$FLEET/judged.json" | pick 'd["reach"]["evaluators"], d["reach"]["evaluators_ready"]')"

# --- a name that looks like an id
curl_admin /v1/devices/two/set -d '{"name": "abcdef01"}' >"$FLEET/set" || fleet_fail "set: $(cat "$FLEET/set")"
want "another name" "('abcdef01', True, True)" "$(pick 'd["name"], d["changed"], "looks like an id" in d["warning"]' <"$FLEET/set")"
fleet_end
echo "$CHECKS checks"
