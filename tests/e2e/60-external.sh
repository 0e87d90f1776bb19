#!/bin/sh
# stages: gcc address
# Training loops of others: the example programs in Python as external trainers, the example in C on librivulet, and a
# trainer that fails; a program in place of the built-in trainer.
set -u
FLEET_NAME=60-external
. tests/e2e/common.sh
examples=$(realpath examples)

python_with() { # python_with MODULE: a python3 that has it, by its full path
	for python in python3 /usr/bin/python3; do
		"$python" -c "import $1" 2>/dev/null && "$python" -c 'import sys; print(sys.executable)' && return
	done
	return 1
}
says() { # says PATH EXPRESSION: of what the coordinator answers
	curl_admin "$1" >"$FLEET/answer" || fleet_fail "GET $1"
	pick "$2" <"$FLEET/answer" | grep -qx True || fleet_fail "GET $1: not so: $2: $(cat "$FLEET/answer")"
}
trainer_device() { # trainer_device NAME HAND TRAINER EXEC
	glyph_device "$1" "$2" 300
	printf '[trainer %s]\nexec = %s\n' "$3" "$4" >>"$FLEET/$1/rivulet.conf"
	fleet_run "$1"
}
job_by() { # job_by TRAINER LAYERS [DEVICES]: two devices, three rounds, evaluated on their validation shares
	[ $# -lt 3 ] && select= || select="\"select\": {\"devices\": [$3]},"
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 5, "trainer": "$1", $select
		 "model": {"layers": [$2, {"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 40}, {"type": "relu"},
		                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.2},
		 "local": {"epochs": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1},
		           "schedule": {"type": "step", "every": 1, "gamma": 1e-9, "warmup": 1}},
		 "round": {"goal": 2, "deadline_s": 3600},
		 "evaluate": {"by": "devices"},
		 "stop": {"rounds": 3}}
	END
	job_submit "$FLEET/$1.json"
}
# Two passes over 240 of 300 examples in batches of 10; 60 are held back.
check_job() {
	job_done 120
	says "/v1/jobs/$JOB/rounds" "len(d['rounds']) == 3 and all(r['reports'] == 2 and r['examples'] == 480 and
		r['evaluate']['examples'] == 120 for r in d['rounds']) and d['rounds'][2]['loss'] < d['rounds'][0]['loss'] / 2 and
		d['rounds'][2]['evaluate']['accuracy'] > max(0.5, d['rounds'][0]['evaluate']['accuracy'])"
	# By the schedule the third round moves nothing.
	says "/v1/jobs/$JOB/rounds/3" "all(r['steps'] == 48 and r['accuracy'] > 0.5 and r['norm'] < 1e-4 for r in d['devices'])"
	echo "ok: $1: accuracy $(pick "' '.join('%.3f' % r['accuracy'] for r in d['devices'])" <"$FLEET/answer")"
}

fleet_start
# Its program does not say what it can do.
trainer_device mute 7 builtin "/bin/sh -c 'exec sleep 1000' --"
mute=$AGENT_PID
if python=$(python_with numpy); then
	trainer_device numpy1 1 numpy "$python $examples/trainer_numpy.py"
	# The same program, started once.
	trainer_device numpy2 2 numpy "$python $examples/trainer_numpy.py
persistent = yes"
	job_by numpy '{"type": "relu", "name": "clip"}'
	check_job "trainer_numpy.py"
	[ "$(grep -c trainer.started "$FLEET/numpy2.log")" = 1 ] || fleet_fail "the one that stays was started otherwise than once"
else
	echo "skipped: no numpy here"
fi
if python=$(python_with torch); then
	trainer_device torch1 3 torch "$python $examples/trainer_torch.py"
	trainer_device torch2 4 torch "$python $examples/trainer_torch.py
persistent = yes"
	job_by torch '{"type": "conv2d", "name": "conv1", "out": 4, "kernel": 3, "stride": 2}, {"type": "relu", "name": "bend"}'
	check_job "trainer_torch.py"
else
	echo "skipped: no PyTorch here"
fi

# The example in C, in place of an agent.
if [ -x "$BUILD/examples/own_loop" ]; then
	fleet_join own
	"$BUILD/examples/own_loop" "$FLEET/own" >"$FLEET/own.log" 2>&1 &
	own=$!
	FLEET_PIDS="$FLEET_PIDS $own"
	job_submit examples/own_loop.json
	job_done 60
	says "/v1/jobs/$JOB/rounds" "len(d['rounds']) == 5 and all(r['reports'] == 1 and r['examples'] == 500 for r in d['rounds']) and
		d['rounds'][4]['loss'] < d['rounds'][0]['loss'] and d['rounds'][4]['accuracy'] > 0.95"
	fleet_kill KILL "$own"
	echo "ok: own_loop: accuracy $(pick "'%.3f' % d['rounds'][4]['accuracy']" <"$FLEET/answer")"
fi

[ -f "$FLEET/numpy.json" ] || skip "own_loop is fine; the rest needs numpy"

# A program in place of the built-in trainer, beside a device that has the built-in one. No other may help: they could.
program="$(python_with numpy) $examples/trainer_numpy.py"
glyph_device plain 8 300
fleet_run plain -v
glyph_device program 9 300
printf '[trainer builtin]\nexec = %s\n' "$program" >>"$FLEET/program/rivulet.conf"
printf '[trainer absent]\nexec = /no/such\n' >>"$FLEET/program/rivulet.conf"
fleet_run program -v
job_by builtin '{"type": "relu", "name": "clip"}' '"plain", "program"'
check_job "trainer_numpy.py beside the built-in trainer"
says "/v1/jobs/$JOB/rounds/3" "sorted(r['name'] for r in d['devices']) == ['plain', 'program'] and d['aborted'] == 0"
[ "$(log_lines 3 "$FLEET/program.log" 'training trainer=external')" = 3 ] || fleet_fail "the program did not train"
[ "$(log_lines 3 "$FLEET/plain.log" 'training trainer=builtin')" = 3 ] || fleet_fail "the built-in trainer did not train"
grep -q 'trainer.offer trainer=builtin layers=3 features=0' "$FLEET/program.log" || fleet_fail "the agent does not say what its program offers"
grep -q 'error trainer.failed name=absent reason=".*rivulet.conf:[0-9]*: trainer absent.exec: /no/such is not there' "$FLEET/program.log" ||
	fleet_fail "a program that is not there is not told at the start"
! grep -q 'trainer\.offer' "$FLEET/plain.log" || fleet_fail "the built-in trainer was asked"

# Layers that the program does not name are none of this device; without an answer there is no built-in job for it at all.
told() { curl_admin /v1/devices | pick "[r['reason'] for r in d['devices'] if r['name'] == '$1'] == ['$2']" | grep -qx True; }
waits_for() { within 30 told "$1" "$2" || fleet_fail "$1 does not wait for $2: $(curl_admin /v1/devices)"; }
sed 's/"name": "builtin"/"name": "pooled"/;s/"plain", "program"/"program"/;s/"goal": 2/"goal": 1/;s/{"type": "relu", "name": "clip"}/{"type": "avgpool2d", "kernel": 2}/' \
	"$FLEET/builtin.json" >"$FLEET/pooled.json"
job_submit "$FLEET/pooled.json"
waits_for program old-agent
curl_admin "/v1/jobs/$JOB/stop" -X POST >"$FLEET/answer" || fleet_fail "stop: $(cat "$FLEET/answer")"
sed 's/"name": "builtin"/"name": "mute"/;s/"plain", "program"/"mute"/;s/"goal": 2/"goal": 1/;s/"rounds": 3/"rounds": 1/' \
	"$FLEET/builtin.json" >"$FLEET/mute.json"
job_submit "$FLEET/mute.json"
waits_for mute no-trainer
[ "$(log_lines 1 "$FLEET/mute.log" 'warn trainer.offers-nothing trainer=builtin reason="no answer within 10 s"')" = 1 ] ||
	fleet_fail "a program that hangs is told of other than once"
says "/v1/jobs/$JOB" "d['state'] == 'running' and d['open']['invited'] == 0"
# Settings are read again while the agent runs: a mistake changes nothing, then the program is asked anew.
cp "$FLEET/mute/rivulet.conf" "$FLEET/mute.conf"
echo 'exce = /bin/false' >>"$FLEET/mute/rivulet.conf"
kill -HUP "$mute"
within 20 grep -q 'error reload.failed reason=".*unknown key' "$FLEET/mute.log" || fleet_fail "a mistake in the settings is not told"
sed "s|^exec = .*|exec = $program|" "$FLEET/mute.conf" >"$FLEET/mute/rivulet.conf"
kill -HUP "$mute"
job_done 60
grep -q 'info reload.done' "$FLEET/mute.log" || fleet_fail "the settings were not read again"
kill -0 "$mute" || fleet_fail "the agent ended"
echo "ok: a program in place of the built-in trainer"

# A trainer that fails gives its task back and says why; another device finishes the round.
# How much of its words leaves the device its owner says.
glyph_device broken 5 300
sed -i 's/^\[device\]/&\nsend_log = tail/' "$FLEET/broken/rivulet.conf"
printf 'printf "no \\033[31msuch gadget"; exit 3\n' >"$FLEET/gadget.sh"
printf '[trainer broken]\nexec = /bin/sh %s\n' "$FLEET/gadget.sh" >>"$FLEET/broken/rivulet.conf"
fleet_run broken
sed 's/"name": "numpy"/"name": "broken"/;s/"trainer": "numpy"/"trainer": "broken"/;s/"goal": 2/"goal": 1/;s/"rounds": 3/"rounds": 1/' \
	"$FLEET/numpy.json" >"$FLEET/broken.json"
job_submit "$FLEET/broken.json"
gave_up() { [ "$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick 'd["aborted"]')" -ge "$1" ]; }
within 30 gave_up 1 || fleet_fail "the failed task was not given back: $(curl_admin "/v1/jobs/$JOB/rounds/1")"
within 10 grep -q 'task.aborted.*reason=trainer-failed.*such gadget' "$FLEET/broken.log" || fleet_fail "the trainer's words are lost"
says "/v1/jobs/$JOB" "d['state'] == 'running' and d['open']['round'] == 1 and d['open']['reports'] == 0"
printf 'int("John Smith")\n' >"$FLEET/raises.py"
trainer_device raising 10 broken "python3 $FLEET/raises.py"
within 30 gave_up 2 || fleet_fail "the second one did not give up"
says "/v1/jobs/$JOB" "d['devices']['gave_up'] == {'trainer-failed': 2} and [(f['name'], f['round'], f['reason']) for f in d['failures']] ==
	[('raising', 1, 'trainer-failed'), ('broken', 1, 'trainer-failed')] and d['failures'][0]['log'] == 'ValueError, raises.py line 1' and
	d['failures'][1]['log'].endswith('no ?[31msuch gadget')"
fleet_admin job show broken >"$FLEET/shown" || fleet_fail "job show"
grep -q '^raising gave up round 1: trainer-failed$' "$FLEET/shown" && grep -q '^    ValueError, raises.py line 1$' "$FLEET/shown" ||
	fleet_fail "job show: $(cat "$FLEET/shown")"
grep -q 'John Smith' "$FLEET/raising.log" || fleet_fail "the owner is not told"
! grep -q 'John Smith' "$FLEET/rivuletd.log" || fleet_fail "the message has left the device"
# Neither other readers nor other submitters read it.
for role in reader submitter; do
	fleet_admin token create --access --role $role -o "$FLEET/token.$role" >"$FLEET/answer" || fleet_fail "no token: $(cat "$FLEET/answer")"
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/broken/ca.pem" -H "Authorization: Bearer $(cat "$FLEET/token.$role")" "$URL/v1/jobs/$JOB" |
		pick "'devices' in d and 'failures' not in d" | grep -qx True || fleet_fail "a $role reads the logs"
done
trainer_device whole 6 broken "$(python_with numpy) $examples/trainer_numpy.py"
job_done 60
says "/v1/jobs/$JOB/rounds/1" "[r['name'] for r in d['devices']] == ['whole'] and d['aborted'] == 2"
for name in numpy1 torch1 program mute broken raising whole; do
	[ -z "$(ls -A "$FLEET/$name/work" 2>/dev/null)" ] || fleet_fail "left in work/ of $name: $(ls "$FLEET/$name/work")"
done
fleet_end
echo "ok: a trainer that fails"
