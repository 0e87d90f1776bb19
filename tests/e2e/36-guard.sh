#!/bin/sh
# stages: gcc
# A server's rate that becomes absurd after a few rounds: the metric collapses, and the job's guard goes back to the best model
# with the optimizer state that belongs to it, or pauses or stops the job. Twice the same with kill -9 in between; rivulet verify
# folds all of it again.
set -u
FLEET_NAME=36-guard
. tests/e2e/common.sh

fleet_start "
[retention]
keep_last = 1
keep_every = 0
keep_deltas = yes
[data digits]
format = glyphs
seed = 1
count = 400"
for i in 1 2 3; do glyph_device device$i $i 300; done

# guarded NAME ROUNDS EVALUATE GUARD: three rounds at a good rate, then at ten times that, which makes the loss at least twice as large
guarded() {
	glyph_job "$FLEET/$1.json" "$1" 3 "$2"
	python3 -S -E - "$FLEET/$1.json" "$3" "$4" <<-'END' || fleet_fail "cannot write the job"
		import json, sys
		path, evaluate, guard = sys.argv[1:]
		d = json.load(open(path))
		d["local"]["optimizer"]["rate"] = 0.05
		d["data"]["validation"] = 0.2
		d["aggregate"] = {"server_optimizer": {"rate": 1, "momentum": 0.5, "schedule": {"type": "step", "every": 3, "gamma": 10}}}
		d["evaluate"], d["guard"] = json.loads(evaluate), json.loads(guard)
		json.dump(d, open(path, "w"))
	END
}
rounds() { curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds"; }
of_rounds() { pick "$1" <"$FLEET/rounds"; }
state_is() { [ "$(curl_admin "/v1/jobs/$JOB" 2>/dev/null | pick 'd["state"]' 2>/dev/null)" = "$1" ]; }
ends() { within 120 state_is "$1" || fleet_fail "the job is not $1: $(curl_admin "/v1/jobs/$JOB")"; }
one_state() { [ "$(states)" = 1 ]; }
states() { find "$FLEET/state/models" -name '*.state' | wc -l; }
verify() {
	rm -rf "$FLEET/audit"
	fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
	"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>"$FLEET/verify.err" || fleet_fail "verify: $(cat "$FLEET/verify.err")"
	[ "$(pick 'd["rounds"]["not_folded"]' <"$FLEET/verified")" = 0 ] || fleet_fail "not all rounds were folded again: $(cat "$FLEET/verified")"
}

coordinator='{"by": "coordinator", "data": "digits"}'
guarded back 12 "$coordinator" '{"metric": "loss", "factor": 1.3, "window": 5, "do": "rollback", "times": 1}'
fleet_keep device1 device2 device3

# --- goes back once, then goes back and waits for a person

fleet_again device1 device2 device3
job_submit "$FLEET/back.json"
for i in 1 2 3; do fleet_run device$i; done
ends paused
rounds
# Three good rounds; the fourth is bad, so the fifth starts where the fourth had started; it is bad, too.
of_rounds "(lambda r: [x['round'] for x in r] == [1, 2, 3, 4, 5, 6] and r[3]['base'] == r[2]['model'] and
	r[4]['base'] == r[2]['model'] and r[5]['base'] == r[2]['model'] and r[5]['state'] == 'open' and
	r[4]['model'] != r[3]['model'] and [x['state'] for x in r[:5]] == ['committed'] * 5 and
	r[3]['evaluate']['loss'] > 1.3 * r[2]['evaluate']['loss'] and
	not r[2]['reason'] and r[3]['reason'].startswith('guard: loss ') and r[3]['reason'].endswith('of round 3; back to its model') and
	r[4]['reason'].endswith('back to its model, and paused'))(d['rounds'])" | grep -qx True || fleet_fail "rounds: $(cat "$FLEET/rounds")"
good=$(of_rounds 'd["rounds"][2]["model"]')
curl_admin "/v1/jobs/$JOB" | pick "d['model'] == '$good' and d['guard']['best']['model'] == '$good' and d['guard']['best']['round'] == 3 and
	d['guard']['base_round'] == 3 and d['reason'].startswith('guard: ')" | grep -qx True || fleet_fail "job: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job show "$JOB" >"$FLEET/shown"
grep -q "guard: loss" "$FLEET/shown" || fleet_fail "job show does not tell: $(cat "$FLEET/shown")"
[ "$(log_lines 2 "$FLEET/rivuletd.log" "warn guard job=$JOB round=[45] why=\"guard: loss")" = 2 ] || fleet_fail "the log does not tell it, or not once each"
[ -f "$FLEET/state/models/$good" ] || fleet_fail "the good model is gone"
within 10 one_state || fleet_fail "not the good model's state alone: $(ls "$FLEET/state/models")"
[ "$(curl_admin /v1/status | pick 'd["jobs"][0]["guard"]["best"]["round"]')" = 3 ] || fleet_fail "status does not tell"
fleet_admin job resume "$JOB" >/dev/null || fleet_fail "job resume"
# Once more back (it may again), once more paused.
resumed() { rounds && of_rounds "len(d['rounds'])" | grep -qx 8 && state_is paused; }
within 120 resumed || fleet_fail "after resuming: $(cat "$FLEET/rounds")"
history >"$FLEET/history1"
[ "$(wc -l <"$FLEET/history1")" = 8 ] || fleet_fail "not 8 rounds: $(cat "$FLEET/history1")"
verify
[ "$(pick 'd["rounds"]["folded"]' <"$FLEET/verified")" = 7 ] || fleet_fail "folded again: $(cat "$FLEET/verified")"
"$RIVULETD" --config "$FLEET/rivuletd.conf" backup "$FLEET/copy" >"$FLEET/backup" 2>&1 || fleet_fail "backup: $(cat "$FLEET/backup")"
[ -f "$FLEET/copy/models/$good" ] || fleet_fail "the backup lacks the good model"
[ "$(find "$FLEET/copy/models" -name '*.state' | wc -l)" -ge 1 ] || fleet_fail "the backup lacks the good model's state"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check: $(cat "$FLEET/check")"
"$RIVULET" verify "$FLEET/audit" --without device3 -o "$FLEET/clean" >"$FLEET/without" 2>&1 || fleet_fail "--without: $(cat "$FLEET/without")"
echo "ok: went back, paused, went back again; 7 rounds fold to the same bits"

# --- the same with kills: when the bad round is folded, when it was committed, when it was cleaned up

fleet_again device1 device2 device3
job_submit "$FLEET/back.json"
for i in 1 2 3; do fleet_run device$i; done
kills=0 resumed=
until rounds 2>/dev/null && of_rounds "len(d['rounds']) == 8" | grep -qx True && state_is paused; do
	[ $kills -lt 60 ] || fleet_fail "does not end: $(cat "$FLEET/rounds")"
	fleet_kill KILL "$DAEMON_PID"
	kills=$((kills + 1))
	fleet_restart
	sleep 0.$((kills * 37 % 3))5
	# On a busy machine a round may need more than that.
	[ $kills -lt 15 ] || sleep $((kills / 15))
	if [ -z "$resumed" ] && state_is paused; then
		fleet_kill KILL "$DAEMON_PID"
		fleet_restart
		state_is paused || fleet_fail "a restart forgot the pause"
		fleet_admin job resume "$JOB" >/dev/null || fleet_fail "job resume"
		resumed=1
	fi
done
[ $kills -ge 2 ] || fleet_fail "it was over after $kills kills, which shows little"
history >"$FLEET/history2"
cmp -s "$FLEET/history1" "$FLEET/history2" || fleet_fail "differs: $(diff "$FLEET/history1" "$FLEET/history2")"
curl_admin "/v1/jobs/$JOB" | pick "d['guard']['best']['round'], d['guard']['base_round'], d['model'] == '$good'" | grep -qxF "(3, 3, True)" ||
	fleet_fail "after restarts: $(curl_admin "/v1/jobs/$JOB")"
verify
fleet_kill TERM "$DAEMON_PID"
fleet_restart
within 10 one_state || fleet_fail "states left: $(ls "$FLEET/state/models")"
echo "ok: the same rounds after $kills kills"

# --- evaluation on devices: what they measure is the base; the bad model is measured one round later

# On the devices' own data a model gets worse less fast: it is further on when the rate grows.
guarded devices 6 '{"by": "devices"}' '{"metric": "loss", "factor": 1.3, "do": "rollback"}'
sed -i 's/"rate": 0.05/"rate": 0.2/' "$FLEET/devices.json"
job_submit "$FLEET/devices.json"
job_done 120
rounds
of_rounds "(lambda r: r[4]['base'] == r[3]['model'] and r[4]['reason'].startswith('guard: loss ') and r[4]['evaluate']['loss'] > 1.3 * r[3]['evaluate']['loss'] and
	r[5]['base'] == r[2]['model'] and not r[3]['reason'])(d['rounds'])" | grep -qx True || fleet_fail "on devices: $(cat "$FLEET/rounds")"
# The last model is evaluated after the last round, on which the guard has no say.
[ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["metric"]["round"]')" = 6 ] || fleet_fail "the metric is not of the last model: $(curl_admin "/v1/jobs/$JOB")"
of_rounds "d['rounds'][6]['state'] == 'evaluated' and d['rounds'][6]['base'] == d['rounds'][5]['model'] and not d['rounds'][6]['reason']" | grep -qx True ||
	fleet_fail "no evaluation: $(cat "$FLEET/rounds")"
verify
echo "ok: on devices"

# --- the same in buffers: a base is measured by the deltas of several, and what was made since is given up

guarded buffers 12 '{"by": "devices"}' '{"metric": "loss", "factor": 1.3, "window": 32, "do": "rollback", "times": 1000}'
sed -i 's/"rate": 0.05/"rate": 0.2/' "$FLEET/buffers.json"
python3 -S -E - "$FLEET/buffers.json" <<'END' || fleet_fail "cannot write the job"
import json, sys
d = json.load(open(sys.argv[1]))
d["round"] = {"mode": "buffered", "goal": 2, "concurrency": 3}
json.dump(d, open(sys.argv[1], "w"))
END
job_submit "$FLEET/buffers.json"
job_done 120
rounds
of_rounds "(lambda r: any(x['reason'].startswith('guard: loss ') and y['base'] != x['model'] for x, y in zip(r, r[1:])) and
	all(y['base'] in [z['base'] for z in r[:x['round']]] for x, y in zip(r, r[1:]) if y['base'] != x['model']))(d['rounds'])" | grep -qx True ||
	fleet_fail "buffers: $(cat "$FLEET/rounds")"
verify
grep -q '"measured":' "$FLEET/audit/bodies.jsonl" || fleet_fail "no record says which base was measured"
echo "ok: in buffers"

# --- a rate that grows until the weights are finite and the loss is no number: back from there, too, and the devices see nothing of it

guarded overflow 26 "$coordinator" '{"metric": "loss", "factor": 2, "window": 32, "do": "rollback", "times": 1000}'
sed -i 's/"every": 3/"every": 1/' "$FLEET/overflow.json"
job_submit "$FLEET/overflow.json"
job_done 240
rounds
of_rounds "(lambda r: len(r) == 26 and any(x['evaluate']['loss'] is None for x in r) and
	all(x['evaluate']['accuracy'] == 0 and x['reason'].startswith('guard: loss ') for x in r if x['evaluate']['loss'] is None) and
	all(y['base'] != x['model'] for x, y in zip(r, r[1:]) if x['evaluate']['loss'] is None))(d['rounds'])" | grep -qx True ||
	fleet_fail "a loss that is no number: $(cat "$FLEET/rounds")"
verify
echo "ok: a loss that is no number"

# --- the same where the devices would have to measure it: they give up, and that is a bad round

guarded none 26 '{"by": "devices"}' '{"metric": "loss", "factor": 2, "window": 32, "do": "rollback", "times": 1000}'
# Where only some of them find none, the deadline ends the round.
sed -i 's/"every": 3/"every": 1/;s/"deadline_s": 3600/"deadline_s": 20/' "$FLEET/none.json"
job_submit "$FLEET/none.json"
job_done 240
rounds
of_rounds "(lambda r: any(x['state'] == 'failed' for x in r) and
	all(x['reason'][:-10] == 'the loss of its base was not finite on' and (x['evaluate']['loss'] is None or x['reports'] == 2) and
		x['reports'] + int(x['reason'][-9]) == 3 and x['base'] == x['model'] for x in r if x['state'] == 'failed') and
	all(y['base'] != x['base'] for x, y in zip(r, r[1:]) if x['state'] == 'failed'))(d['rounds'])" | grep -qx True ||
	fleet_fail "a loss that is no number on devices: $(cat "$FLEET/rounds")"
verify
python3 -S -E - "$FLEET/audit/bodies.jsonl" <<'END' || fleet_fail "the records do not tell why it went back"
import json, sys
said = [json.loads(x) for x in open(sys.argv[1]) if "round.failed" in x]
sys.exit(not any(x.get("evaluate", {}).get("loss", 0) is None and x["guard"]["do"] == "rollback" for x in said))
END
"$RIVULET" verify "$FLEET/audit" --without device3 --json >"$FLEET/without" 2>&1 || fleet_fail "--without: $(cat "$FLEET/without")"
# A round that nobody could begin moves no model, with or without a device.
pick 'not any("could not be folded" in x.get("why", "") for x in d["touched"])' <"$FLEET/without" | grep -qx True || fleet_fail "--without: $(cat "$FLEET/without")"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check: $(cat "$FLEET/check")"
echo "ok: a loss that is no number on devices"

# --- stop, pause, and the last round of all

guarded stop 12 "$coordinator" '{"metric": "loss", "factor": 1.3, "do": "stop"}'
job_submit "$FLEET/stop.json"
ends stopped
rounds
of_rounds "len(d['rounds']) == 4 and d['rounds'][3]['reason'].endswith('the job is stopped')" | grep -qx True || fleet_fail "stop: $(cat "$FLEET/rounds")"
fleet_admin model get "$(curl_admin "/v1/jobs/$JOB" | pick 'd["guard"]["best"]["model"]')" -o "$FLEET/best" >/dev/null ||
	fleet_fail "the best model of a stopped job is gone"
best=$(of_rounds 'd["rounds"][2]["model"]')
[ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')" = "$best" ] || fleet_fail "a stopped job does not end with its best model: $(curl_admin "/v1/jobs/$JOB")"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
[ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')" = "$best" ] || fleet_fail "after a restart a stopped job has another model"
guarded pause 12 "$coordinator" '{"metric": "loss", "factor": 1.3, "do": "pause"}'
job_submit "$FLEET/pause.json"
ends paused
rounds
of_rounds "len(d['rounds']) == 5 and d['rounds'][4]['base'] == d['rounds'][3]['model']" | grep -qx True || fleet_fail "pause: $(cat "$FLEET/rounds")"
fleet_admin job stop "$JOB" >/dev/null
guarded last 4 "$coordinator" '{"metric": "loss", "factor": 1.3, "do": "rollback"}'
job_submit "$FLEET/last.json"
job_done 120
rounds
[ "$MODEL" = "$(of_rounds 'd["rounds"][2]["model"]')" ] || fleet_fail "the job ends with the bad model: $(curl_admin "/v1/jobs/$JOB")"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
[ "$MODEL" = "$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')" ] || fleet_fail "after a restart it ends with another: $(curl_admin "/v1/jobs/$JOB")"
# The first job is still paused; the others are over.
within 10 one_state || fleet_fail "states left of jobs that are over: $(ls "$FLEET/state/models")"
verify
fleet_end
echo "ok: stop, pause, last round"
