#!/bin/sh
# stages: gcc
# Local training as jobs ask for it: every optimizer and way of stepping trains, here and alone; a slow device sends what it has at
# its deadline and counts for what it did; devices of unequal speed end together; FedNova's rounds verify.
set -u
FLEET_NAME=522-local
. tests/e2e/common.sh

MODEL_PART='"model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 50}, {"type": "relu"},
	{"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
	"data": {"name": "digits", "shape": [1, 28, 28], "classes": 10}, "seed": 7'

job() { # job NAME LOCAL GOAL ROUNDS DEADLINE [MORE]
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", $MODEL_PART, "local": $2,
		 "round": {"goal": $3, "deadline_s": $5}, "stop": {"rounds": $4}${6:+, $6}}
	END
}
says() { # says PATH EXPRESSION: of what the coordinator answers
	curl_admin "$1" >"$FLEET/answer" || fleet_fail "GET $1"
	pick "$2" <"$FLEET/answer" | grep -qx True || fleet_fail "GET $1: not so: $2: $(cat "$FLEET/answer")"
}
refused() { # refused JOB REASON
	curl -sS --unix-socket "$FLEET/admin.sock" http://localhost/v1/jobs --data-binary "@$FLEET/$1.json" >"$FLEET/answer"
	grep -q "$2" "$FLEET/answer" || fleet_fail "$1 was not refused with \"$2\": $(cat "$FLEET/answer")"
}

fleet_start "
[retention]
keep_last = 1
keep_every = 0
keep_deltas = yes"
glyph_device small 1 100
glyph_device large 2 300
fleet_run small
fleet_run large

# --- every way of stepping, on devices and alone

ways='sgd {"epochs":2,"batch":10,"optimizer":{"rate":0.1}}
nesterov {"epochs":2,"batch":10,"optimizer":{"rate":0.02,"momentum":0.9,"nesterov":true}}
adam {"epochs":2,"batch":10,"optimizer":{"name":"adam","rate":0.003}}
adamw {"epochs":2,"batch":10,"optimizer":{"name":"adamw","rate":0.003,"weight_decay":0.01}}
prox {"epochs":2,"batch":10,"prox":0.1,"optimizer":{"rate":0.1}}
clip {"epochs":2,"batch":10,"clip_norm":1,"optimizer":{"rate":0.1}}
accumulate {"epochs":2,"batch":5,"accumulate":2,"optimizer":{"rate":0.1}}'
echo "$ways" | while read -r name local; do
	job "$name" "$local" 2 3 3600
	job_submit "$FLEET/$name.json"
	job_done 120
	says "/v1/jobs/$JOB/rounds" "len(d['rounds']) == 3 and all(r['reports'] == 2 and r['examples'] == 400 for r in d['rounds'])
		and d['rounds'][2]['loss'] < 0.6 * d['rounds'][0]['loss']"
	says "/v1/jobs/$JOB/rounds/3" "sorted(r['steps'] for r in d['devices']) == [20, 60] and not any(r['partial'] for r in d['devices'])"
	loss=$(pick "d['loss']" <"$FLEET/answer")
	"$RIVULET" train "$FLEET/$name.json" --home "$FLEET/large" --epochs 6 --json >"$FLEET/alone" 2>"$FLEET/alone.err" ||
		fleet_fail "rivulet train $name: $(cat "$FLEET/alone.err")"
	pick "len(d) == 6 and d[5]['steps'] == 30 and d[5]['loss'] < 0.6 * d[0]['loss']" <"$FLEET/alone" | grep -qx True ||
		fleet_fail "rivulet train $name: $(cat "$FLEET/alone")"
	echo "ok: $name: loss of round 3 is $loss, alone after 6 epochs $(pick "d[5]['loss']" <"$FLEET/alone")"
done || exit 1

# --- FedNova: devices with 10 and 30 steps; the record folds to the same bits

job fednova '{"batch":10,"prox":0.1,"optimizer":{"rate":0.1,"momentum":0.5}}' 2 3 3600 '"aggregate": {"normalise": true}'
job_submit "$FLEET/fednova.json"
job_done 120
says "/v1/jobs/$JOB/rounds" "d['rounds'][2]['loss'] < 0.8 * d['rounds'][0]['loss']"
fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>"$FLEET/verify.err" || fleet_fail "verify: $(cat "$FLEET/verify.err")"
pick "d['rounds']['folded'] == 24 and d['rounds']['not_folded'] == 0" <"$FLEET/verified" | grep -qx True ||
	fleet_fail "not all rounds were folded again: $(cat "$FLEET/verified")"
echo "ok: FedNova's rounds fold again to the same bits"
job robust '{"optimizer":{"rate":0.1}}' 2 1 60 '"aggregate": {"normalise": true, "rule": {"name": "median"}}'
refused robust "aggregate.normalise: goes with the plain mean only"
job nova_adam '{"optimizer":{"name":"adam","rate":0.1}}' 2 1 60 '"aggregate": {"normalise": true}'
refused nova_adam "adam and adamw have no normaliser"
echo "ok: FedNova is refused where it makes no sense"

# --- a deadline: the slow device is far from done

glyph_device slow 3 20000
fleet_run slow
job deadline '{"epochs":400,"batch":10,"optimizer":{"rate":0.01}}' 2 1 $((8 * TEST_SLOW)) '"select": {"devices": ["small", "slow"]}'
job_submit "$FLEET/deadline.json"
job_done 60
says "/v1/jobs/$JOB/rounds/1" "{r['name']: r['partial'] for r in d['devices']} == {'small': False, 'slow': True}"
says "/v1/jobs/$JOB/rounds/1" "all(r['examples'] == (100 if r['name'] == 'small' else max(1, 20000 * r['steps'] // 800000)) for r in d['devices'])
	and d['reopened'] == 0"
echo "ok: at its deadline a slow device sent $(pick "['%d of 800000 steps, as %d of 20000 examples' % (r['steps'], r['examples'])
	for r in d['devices'] if r['name'] == 'slow'][0]" <"$FLEET/answer")"

# --- unequal devices end together: one of two has the processor for a tenth of the time

glyph_device even 4 200
glyph_device halting 5 200
fleet_run even
fleet_run halting
halting=$AGENT_PID
(while kill -STOP "$halting" 2>/dev/null && sleep 0.9; do
	kill -CONT "$halting" && sleep 0.1
done) &
brake=$! # ends by itself with the agent
job together '{"seconds":4,"batch":10,"optimizer":{"rate":0.001}}' 2 1 3600 '"select": {"devices": ["even", "halting"]}'
job_submit "$FLEET/together.json"
job_done 60
kill "$brake"
kill -CONT "$halting"
says "/v1/jobs/$JOB/rounds/1" "len(d['devices']) == 2 and not any(r['partial'] for r in d['devices'])"
pick "(lambda r: r['even']['steps'] > 1.2 * r['halting']['steps'] and abs(r['even']['accepted_at'] - r['halting']['accepted_at']) < 8 * $TEST_SLOW)(
	{r['name']: r for r in d['devices']})" <"$FLEET/answer" | grep -qx True || fleet_fail "they did not end together: $(cat "$FLEET/answer")"
echo "ok: steps and time of arrival: $(pick "', '.join('%s %d at %s' % (r['name'], r['steps'], r['accepted_at']) for r in d['devices'])" <"$FLEET/answer")"

# --- alone as in a fleet: what a coordinator would not take is no success, and the validation share is held back and rated

mkdir "$FLEET/solo"
cat >"$FLEET/liar" <<-END
	cd "\$1" && cp base.safetensors after.safetensors && echo '{"examples": 1, "steps": 1, "loss": 1, "accuracy": 1.5}' >report.json
END
printf '[data digits]\nformat = glyphs\ncount = 100\n[trainer liar]\nexec = /bin/sh %s\n' "$FLEET/liar" >"$FLEET/solo/rivulet.conf"
alone_fails() { # alone_fails JOB MESSAGE
	! "$RIVULET" train "$FLEET/$1.json" --home "$FLEET/solo" >"$FLEET/alone" 2>&1 || fleet_fail "rivulet train takes $1: $(cat "$FLEET/alone")"
	grep -q "$2" "$FLEET/alone" || fleet_fail "rivulet train $1 does not say \"$2\": $(cat "$FLEET/alone")"
}
printf '[trainer painter]\nexec = /bin/sh %s\n' "$FLEET/painter" >>"$FLEET/solo/rivulet.conf"
printf 'printf "painted \\033[2J\\nred\\n"; exit 1\n' >"$FLEET/painter"
job alone '{"optimizer":{"rate":0.1}}' 1 1 60
sed 's/"shape": \[1, 28, 28\]/"shape": [28, 28, 1]/' "$FLEET/alone.json" >"$FLEET/turned.json"
alone_fails turned 'shape \[1, 28, 28\], the job wants \[28, 28, 1\]'
sed 's/"seed": 7/"tensors": {"fc9.*": "frozen"}, &/' "$FLEET/alone.json" >"$FLEET/pattern.json"
alone_fails pattern '"fc9.\*" fits no tensor'
sed 's/"seed": 7/"trainer": "liar", &/' "$FLEET/alone.json" >"$FLEET/lie.json"
alone_fails lie 'accuracy is 1.5'
sed 's/"seed": 7/"trainer": "painter", &/' "$FLEET/alone.json" >"$FLEET/paint.json"
alone_fails paint '^painted ?\[2J$' # what a trainer says does not steer the terminal
sed 's/"classes": 10/&, "validation": 0.2/' "$FLEET/alone.json" >"$FLEET/held.json"
"$RIVULET" train "$FLEET/held.json" --home "$FLEET/solo" --json >"$FLEET/alone" 2>&1 || fleet_fail "rivulet train: $(cat "$FLEET/alone")"
pick "d[0]['examples'] == 80 and d[0]['validation_loss'] > 0 and 0 <= d[0]['validation_accuracy'] <= 1" <"$FLEET/alone" | grep -qx True ||
	fleet_fail "rivulet train does not rate the validation share: $(cat "$FLEET/alone")"
echo "ok: alone as in a fleet"
fleet_end
