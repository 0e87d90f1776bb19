#!/bin/sh
# stages: gcc
# `upload.codec: sparse` with error feedback on real devices: bytes, what feedback is worth, a list of codecs, `rivulet verify`. A
# device that is killed at every step of keeping and adding its residual makes the same models as one that was left alone.
#   FAULTY=PROGRAM  a `rivulet` built with FAULTS=1, killed at its named places; without it, kills come at any time
set -u
FLEET_NAME=54-sparse
. tests/e2e/common.sh
FAULTY=${FAULTY:-build/faults/rivulet}

fleet_start "
[retention]
keep_deltas = yes
[data digits]
format = glyphs
seed = 1
count = 500"
for i in 1 2 3; do glyph_device "device$i" "$i" 300; done

job() { # job NAME UPLOAD ROUNDS
	glyph_job "$FLEET/$1.json" "$1" 3 "$3"
	sed -i "s/\"stop\"/\"evaluate\": {\"by\": \"coordinator\"}, \"upload\": $2, \"stop\"/" "$FLEET/$1.json"
}
up() { curl_admin "/v1/jobs/$JOB/rounds" | pick "sum(r['bytes_up'] for r in d['rounds'])"; }
accuracy() { curl_admin "/v1/jobs/$JOB/rounds" | pick "[r['evaluate']['accuracy'] for r in d['rounds'] if r.get('evaluate')][-1]"; }
ratio() { python3 -S -E -c 'import sys; a, b, op, c = sys.argv[1:]; print("%.3f" % (float(a) / float(b))); sys.exit(not eval("float(a) / float(b) %s float(c)" % op))' "$@"; }
refused() { # refused NAME UPLOAD MORE WORDS
	job "$1" "$2" 1
	sed -i "s/\"stop\"/$3, \"stop\"/" "$FLEET/$1.json"
	fleet_admin job submit "$FLEET/$1.json" >"$FLEET/refusal" 2>&1 && fleet_fail "$1 was taken"
	grep -q "$4" "$FLEET/refusal" || fleet_fail "$1: $(cat "$FLEET/refusal")"
}

job killed '{"codec": "sparse", "share": 0.05}' 12
fleet_keep device1 device2 device3

# --- what does not go together
fleet_again device1 device2 device3
refused median '{"codec": ["int8", "sparse"]}' '"aggregate": {"rule": {"name": "median"}}' "median cannot work with codec sparse"
refused share '{"codec": "int8", "share": 0.1}' '"priority": 0' "belongs to codec sparse"

# --- the first of the list that is offered
job list '{"codec": ["sparse", "int8"]}' 2
job_submit "$FLEET/list.json"
offer() { # offer CODECS: what device1 is told
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/device1/ca.pem" --cert "$FLEET/device1/cert.pem" --key "$FLEET/device1/key.pem" -d "{\"protocol\": 1, \"agent\": \"1\",
		\"data\": [{\"name\": \"digits\", \"examples\": 300}], \"trainers\": [\"builtin\"], \"layers\": [\"flatten\", \"linear\", \"relu\"], \"codecs\": [$1], \"features\": [\"feedback\"]}" "$URL/v1/tasks"
}
[ "$(offer '"f32", "f16"' | pick 'd["reason"]')" = no-codec ] || fleet_fail "a device without the codecs: $(offer '"f32"')"
[ "$(offer '"f32", "int8"' | pick 'd["recipe"]["upload"]["codec"]')" = int8 ] || fleet_fail "a device without sparse: $(offer '"int8"')"
[ "$(offer '"int8", "sparse"' | pick 'd["recipe"]["upload"]["codec"]')" = sparse ] || fleet_fail "a device with both: $(offer '"int8", "sparse"')"
echo "ok: a task names the first of the job's codecs that the device offers"

for i in 1 2 3; do fleet_run "device$i"; done
job_done 120

# --- bytes, and what feedback is worth
up_whole=0 up_fed=0 accuracy_whole=0 accuracy_fed=0 accuracy_starved=0
for row in 'whole {"codec":"f32"}' 'fed {"codec":"sparse","share":0.01}' 'starved {"codec":"sparse","share":0.01,"feedback":false}' 'signs {"codec":"sign","feedback":true}'; do
	name=${row%% *}
	job "$name" "${row#* }" 20
	job_submit "$FLEET/$name.json"
	job_done 240
	eval "up_$name=$(up) accuracy_$name=$(accuracy)"
	eval "echo \"ok: $name: \$up_$name bytes up in 20 rounds, accuracy \$accuracy_$name\""
done
ratio "$up_whole" "$up_fed" '>=' 100 >/dev/null || fleet_fail "1 % took $up_fed bytes, f32 $up_whole"
ratio "$accuracy_fed" "$accuracy_whole" '>=' 0.95 >/dev/null || fleet_fail "accuracy $accuracy_fed with feedback, $accuracy_whole with f32"
ratio "$accuracy_fed" "$accuracy_starved" '>' 1 >/dev/null || fleet_fail "accuracy $accuracy_fed with feedback, $accuracy_starved without"
no_change() { [ "$(find "$FLEET/device1/residual" -name '*.change' | wc -l)" = 0 ]; }
within 10 no_change || fleet_fail "changes are left: $(ls "$FLEET/device1/residual")"
echo "ok: $(ratio "$up_whole" "$up_fed" '>' 0) times fewer bytes"

# --- folded again, from the deltas alone
fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>&1 || fleet_fail "verify: $(cat "$FLEET/verified")"
[ "$(pick '(d["rounds"]["folded"], d["rounds"]["not_folded"])' <"$FLEET/verified")" = "(82, 0)" ] || fleet_fail "verify: $(cat "$FLEET/verified")"
echo "ok: rivulet verify folds 82 rounds again"

# --- left alone
job_submit "$FLEET/killed.json"
job_done 240
history >"$FLEET/history1"
fleet_end

# --- killed at each step
fleet_again device1 device2 device3
job_submit "$FLEET/killed.json"
fleet_run device2
fleet_run device3
places="residual.kept client.delta outbox.written client.kept client.receipt residual.added residual.gone outbox.remove outbox.removed"
kills=0
if [ -x "$FAULTY" ] && "$FAULTY" --version >/dev/null; then
	for place in $places; do
		RIVULET_FAULT=$place timeout $((60 * TEST_PATIENCE)) "$FAULTY" run --home "$FLEET/device1" --rounds 1 2>>"$FLEET/device1.log"
		[ $? -eq 137 ] || fleet_fail "not killed at $place"
		kills=$((kills + 1))
	done
else
	while [ $kills -lt 9 ]; do
		fleet_run device1
		sleep "0.$((kills + 1))"
		fleet_kill KILL "$AGENT_PID"
		kills=$((kills + 1))
	done
fi
fleet_run device1
job_done 240
history >"$FLEET/history2"
cmp -s "$FLEET/history1" "$FLEET/history2" || fleet_fail "killed, it makes other models: $(diff "$FLEET/history1" "$FLEET/history2")"
echo "ok: killed $kills times, the same models"
fleet_end
