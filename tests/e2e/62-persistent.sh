#!/bin/sh
# stages: gcc address
# Trainers that stay: Python starts once for twenty rounds, whatever it prints, and its examples are written once; another job gets
# another process; one that is killed, one that hangs and one that gives its task back leave the job going on.
set -u
FLEET_NAME=62-persistent
. tests/e2e/common.sh

fleet_dir
mkdir "$FLEET/app"
# In its cache it leaves: the number of each process, and where the examples of each task were.
cat >"$FLEET/app/stays.py" <<'END'
import json
import os
import shutil
import signal
import sys
import time

words = os.fdopen(int(os.environ["RIVULET_TRAINER_IN"]))
answers = os.fdopen(int(os.environ["RIVULET_TRAINER_OUT"]), "w", 1)
app = os.path.dirname(os.path.abspath(__file__))


def note(name, what):
    with open(os.path.join(os.environ["HOME"], name), "a") as f:
        print(what, file=f)


def behave(task):
    """The part of the device in the second job; False: the task is given back."""
    device, at = os.environ["DEVICE"], task["round"]
    if device == "one":
        while not os.path.exists("%s/go%d" % (app, at)):
            time.sleep(0.02)
    elif device == "two" and at == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    elif device == "three":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    return device != "two" or at != 2


def work(directory):
    with open(directory + "/task.json") as f:
        task = json.load(f)
    note("examples", os.stat(task["examples"]).st_ino)
    assert os.path.samefile(task["base"], directory + "/base.safetensors")
    sys.stdout.write("x" * 1000000)
    sys.stderr.write("".join("\r%3d%%|%-10s|" % (i, "#" * (i // 10)) for i in range(0, 101, 5)))
    shutil.copy(task["base"], directory + "/after.safetensors")
    report = {"examples": 40, "steps": 4, "loss": 0.5}
    if task["recipe"]["params"]["act"] and not behave(task):
        report = {"abort": {"reason": "gpu-lost", "text": "it fell off the bus"}}
    with open(directory + "/report.json", "w") as f:
        json.dump(report, f)


note("starts", os.getpid())
print(json.dumps({"ready": True}), file=answers)
for line in words:
    said = json.loads(line)
    if "task" in said:
        work(said["directory"])
        print(json.dumps({"done": said["task"]}), file=answers)
END
job() { # job NAME ACT ROUNDS ROUND DEVICES
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "seed": 5, "trainer": "stays", "params": {"act": $2}, "select": {"devices": [$5]},
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.2},
		 "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {$4, "deadline_s": 3600}, "stop": {"rounds": $3}}
	END
	job_submit "$FLEET/$1.json"
}
device() { # device NAME
	glyph_device "$1" 1 50
	printf '[trainer stays]\nexec = %s %s/app/stays.py\npersistent = yes\ngrace_s = 0.1\nenv = DEVICE=%s\n' \
		"$python" "$FLEET" "$1" >>"$FLEET/$1/rivulet.conf"
}
kept() { cat "$FLEET/$1/trainers/stays/$2"; }

fleet_start
python=$(python3 -S -E -c 'import sys; print(sys.executable)')
device one
fleet_run one
one=$AGENT_PID
job steady false 20 '"goal": 1' '"one"'
job_done 60
[ "$(kept one starts | wc -l)" = 1 ] || fleet_fail "twenty rounds started it $(kept one starts | wc -l) times"
[ "$(kept one examples | wc -l)" = 20 ] && [ "$(kept one examples | uniq | wc -l)" = 1 ] || fleet_fail "examples: $(kept one examples)"
[ "$(ls "$FLEET/one/examples" | wc -l)" = 1 ] || fleet_fail "examples are kept more than once"
[ "$(stat -c %i:%a "$FLEET"/one/examples/*)" = "$(kept one examples | head -n 1):400" ] || fleet_fail "the examples are a copy"
echo "ok: 20 rounds, one start"

device two
fleet_run two
device three
sed -i 's/^\[device\]/[limits]\nseconds_per_round = 1\n&/' "$FLEET/three/rivulet.conf"
fleet_run three
job acts true 3 '"goal": 3, "quorum": 1, "grace_s": 0.1' '"one", "two", "three"'
go() { # go ROUND DEVICE PATTERN: device one may finish that round once the other's log has such a line
	[ "$(log_lines 1 "$FLEET/$2.log" "$3")" -ge 1 ] || fleet_fail "no \"$3\" in the log of $2"
}
go 1 two 'task.aborted.*reason=trainer-failed.*ended by signal 9'
go 1 three 'task.aborted.*reason=deadline'
touch "$FLEET/app/go1"
go 2 two 'task.aborted.*reason=gpu-lost.*it fell off the bus'
touch "$FLEET/app/go2"
go 3 two 'trained.*round=3'
touch "$FLEET/app/go3"
job_done 60
curl_admin "/v1/jobs/$JOB" >"$FLEET/answer"
pick "('two', 2, 'gpu-lost') in [(f['name'], f['round'], f['reason']) for f in d['failures']]" <"$FLEET/answer" | grep -qx True ||
	fleet_fail "the trainer's own word is lost: $(cat "$FLEET/answer")"
[ "$(kept one starts | wc -l)" = 2 ] || fleet_fail "another job did not start it anew: $(kept one starts)"
[ "$(kept two starts | wc -l)" = 2 ] || fleet_fail "after a crash and a task given back: $(kept two starts | wc -l) starts"
[ "$(kept one examples | uniq | wc -l)" = 1 ] || fleet_fail "examples: $(kept one examples)"
echo "ok: killed, hanging and giving back"

# Settings that are read again, time without a task and the agent's end leave no process and no directory.
is_gone() { ! kill -0 "$1" 2>/dev/null; }
echo 'idle_exit_s = 0.2' >>"$FLEET/one/rivulet.conf"
kill -HUP "$one"
within 10 is_gone "$(kept one starts | tail -n 1)" || fleet_fail "a reload leaves the program"
job last false 1 '"goal": 1' '"one"'
job_done 60
[ "$(kept one starts | wc -l)" = 3 ] || fleet_fail "after a reload: $(kept one starts)"
within 10 is_gone "$(kept one starts | tail -n 1)" || fleet_fail "it does not leave when it is idle"
fleet_end
for name in one two three; do
	for pid in $(kept $name starts); do
		is_gone "$pid" || fleet_fail "process $pid of $name is left"
	done
	[ -z "$(ls -A "$FLEET/$name/work" 2>/dev/null)" ] || fleet_fail "left in work/ of $name: $(ls "$FLEET/$name/work")"
done
echo "ok: nothing is left"
