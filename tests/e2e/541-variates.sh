#!/bin/sh
# stages: gcc
# Control variates (SCAFFOLD): the coordinator's is the mean of the devices' own after every round of all of them, to the rounding
# of f32, also with a lossy codec and with devices and coordinator killed with -9 at random moments; the first round is that of
# plain averaging to the bit; rounds fold again to the same bits; a device whose variate is gone says so and stays away. With programs
# of the owners, one started for each task and two that stay, the model settles where averaging would not.
#   SEED=N   repeats the moments of a run, as far as time can be repeated
set -u
FLEET_NAME=541-variates
. tests/e2e/common.sh
SEED=${SEED:-$(date +%s)}
devices="device1 device2 device3"
echo "seed $SEED"

random() { # random N: from 0 to N - 1, in $drawn
	SEED=$(((SEED * 1103515245 + 12345) % 2147483648))
	drawn=$((SEED / 65536 % $1))
}

# variate_job FILE NAME CODEC: all three devices in every round
variate_job() {
	glyph_job "$1" "$2" 3 1000
	sed -i 's/"batch": 10/"batch": 10, "control_variates": {"devices": 3}/
		s/"stop"/"upload": {"codec": "'"$3"'"}, "stop"/' "$1"
}

rounds_are() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" -ge "$1" ]; }

# What a device counts in round R stands in the file that names R. Prints the distance between the coordinator's variate and the
# mean of theirs, over the longest of theirs; fails if a file is missing, or nothing was learned.
distance() {
	python3 -S -E - "$FLEET" "$JOB" "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" $devices <<-'END'
		import array, glob, hashlib, math, os, struct, sys
		fleet, job, counted, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
		own = []
		for name in names:
		    for path in glob.glob(f"{fleet}/{name}/variates/{job}.own") + glob.glob(f"{fleet}/{name}/variates/{job}.next"):
		        data = open(path, "rb").read()
		        magic, zero, r, n = struct.unpack("<4sIQQ", data[:24])
		        assert magic == b"RVV1" and zero == 0 and len(data) == 24 + 4 * n + 32, path
		        assert hashlib.sha256(data[:-32]).digest() == data[-32:], path
		        if r == counted:
		            own.append(array.array("f", data[24:-32]))
		assert len(own) == len(names), f"{len(own)} variates of round {counted}"
		states = glob.glob(f"{fleet}/state/models/*.state")
		assert len(states) == 1, states
		data = open(states[0], "rb").read()
		assert hashlib.sha256(data).hexdigest() == os.path.basename(states[0])[:-6]
		c = array.array("f", data)
		assert len(c) == len(own[0])
		length = max(math.sqrt(sum(x * x for x in o)) for o in own)
		assert length > 1e-3, length
		apart = math.sqrt(sum((x - sum(o) / len(own)) ** 2 for x, *o in zip(c, *own)))
		print(apart / length)
	END
}

# in_step WHAT LIMIT: the job is paused, so nothing moves once a round that was closing is committed
in_step() {
	for try in $(seq 60); do
		apart=$(distance 2>"$FLEET/apart") && python3 -S -E -c "import sys; sys.exit(not $apart < $2)" && break
		[ "$try" -lt 60 ] || fleet_fail "$1: c is off the mean by ${apart:-?}: $(cat "$FLEET/apart")"
		sleep 1
	done
	echo "ok: $1: c is the mean of the devices' variates to $apart"
}

fleet_start "
[retention]
keep_last = 100
keep_deltas = yes"
# A program whose loss is half the squared distance of all weights from I; it makes 2 I steps.
cat >"$FLEET/own.py" <<'END'
import array, json, os, struct, sys

i = int(sys.argv[1])

def read(path):
    with open(path, "rb") as f:
        head = f.read(8)
        head += f.read(struct.unpack("<Q", head)[0])
        return head, json.loads(head[8:]), array.array("f", f.read())

def work(directory):
    with open(directory + "/task.json") as f:
        task = json.load(f)
    (head, at, w), (_, shift_at, shift) = read(task["base"]), read(task["variates"])
    for name, t in shift_at.items():
        if name != "__metadata__":
            n, to, of = (t["data_offsets"][1] - t["data_offsets"][0]) // 4, at[name]["data_offsets"][0] // 4, t["data_offsets"][0] // 4
            for k in range(n):
                for _ in range(2 * i):
                    w[to + k] -= task["rate"] * (w[to + k] - i + shift[of + k])
    with open(directory + "/after.safetensors", "wb") as f:
        f.write(head + w.tobytes())
    with open(directory + "/report.json", "w") as f:
        json.dump({"examples": 100, "steps": 2 * i, "loss": 1, "optimizer": 0}, f)

if "RIVULET_TRAINER_IN" in os.environ:
    answers = os.fdopen(int(os.environ["RIVULET_TRAINER_OUT"]), "w", 1)
    print(json.dumps({"ready": True}), file=answers)
    for said in map(json.loads, os.fdopen(int(os.environ["RIVULET_TRAINER_IN"]))):
        if "task" in said:
            work(said["directory"])
            print(json.dumps({"done": said["task"]}), file=answers)
else:
    work(sys.argv[2])
END
for i in 1 2 3; do
	glyph_device device$i $i $((200 * i))
	printf '[trainer own]\nexec = python3 -S -E %s %d\npersistent = %s\n' "$FLEET/own.py" $i "$([ $i = 1 ] && echo no || echo yes)" >>"$FLEET/device$i/rivulet.conf"
done

# --- the first round, and the mean over some

glyph_job "$FLEET/plain.json" plain 3 2
job_submit "$FLEET/plain.json"
for name in $devices; do
	fleet_run "$name"
done
job_done 60
model_of() { curl_admin "/v1/jobs/$JOB/rounds/$1" | pick 'd["model"]'; }
plain1=$(model_of 1)
plain2=$(model_of 2)
variate_job "$FLEET/f32.json" variates f32
job_submit "$FLEET/f32.json"
within 90 rounds_are 5 || fleet_fail "no five rounds: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job pause "$JOB" >/dev/null || fleet_fail "pause"
in_step "f32" 5e-6
# The state as HTTP serves it: by ranges, and not to whoever has it.
c=$(basename "$FLEET"/state/models/*.state .state)
served() { curl_admin "/v1/states/$c" -o /dev/null -w '%{http_code} %{size_download}' "$@" 2>/dev/null; }
whole=$(wc -c <"$FLEET/state/models/$c.state")
[ "$(served) $(served -r 4-99) $(served -H "If-None-Match: \"$c\"") $(served -r "$whole-" | cut -c 1-3)" = "200 $whole 206 96 304 0 416" ] ||
	fleet_fail "the state: $(served), $(served -r 4-99), $(served -H "If-None-Match: \"$c\""), $(served -r "$whole-")"
weights() { # weights MODEL: the hash of the data behind the header, which names the job
	curl_admin "/v1/models/$1" -o "$FLEET/weights" && python3 -S -E -c "
import hashlib, sys
d = open('$FLEET/weights', 'rb').read()
print(hashlib.sha256(d[8 + int.from_bytes(d[:8], 'little'):]).hexdigest())"
}
[ "$(weights "$(model_of 1)")" = "$(weights "$plain1")" ] || fleet_fail "the first round is not that of plain averaging"
[ "$(weights "$(model_of 2)")" != "$(weights "$plain2")" ] || fleet_fail "the second round is that of plain averaging"
echo "ok: the first round has the weights of plain averaging"

# --- killed at random moments

fleet_admin job resume "$JOB" >/dev/null || fleet_fail "resume"
fleet_end
fleet_restart
for i in 1 2 3; do
	fleet_run "device$i"
	eval "pid$i=\$AGENT_PID"
done
before=$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')
for kills in 1 2 3 4 5 6 7 8 9 10 11 12; do
	random 700
	sleep "0.$(printf %03d "$drawn")"
	if [ $((kills % 4)) -eq 0 ]; then
		fleet_kill KILL "$DAEMON_PID"
		fleet_restart
		continue
	fi
	random 3
	i=$((drawn + 1))
	eval "fleet_kill KILL \$pid$i"
	fleet_run "device$i"
	eval "pid$i=\$AGENT_PID"
done
within 90 rounds_are $((before + 6)) || fleet_fail "rounds stopped after kills: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job pause "$JOB" >/dev/null || fleet_fail "pause"
in_step "after kills" 5e-6

# --- again from what was kept

fleet_admin verify fetch "$FLEET/audit" >"$FLEET/fetched" 2>&1 || fleet_fail "fetch: $(cat "$FLEET/fetched")"
"$RIVULET" verify "$FLEET/audit" --json >"$FLEET/verified" 2>"$FLEET/verify.err" || fleet_fail "verify: $(cat "$FLEET/verify.err")"
folded=$(pick 'd["rounds"]["folded"]' <"$FLEET/verified")
[ "$folded" -ge 11 ] || fleet_fail "only $folded rounds folded again: $(cat "$FLEET/verified")"
[ "$(pick 'd["rounds"]["not_folded"]' <"$FLEET/verified")" -eq 0 ] || fleet_fail "not all folded: $(cat "$FLEET/verified")"
echo "ok: $folded rounds folded again to the same models and variates"

# --- a variate that is gone

rm -r "$FLEET/device2/variates"
fleet_admin job resume "$JOB" >/dev/null || fleet_fail "resume"
lost() { grep -q "variate-lost" "$FLEET/device2.log"; }
within 60 lost || fleet_fail "device2 did not say that its variate is gone"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "stop"
echo "ok: a device without the variate that counts stays away"

# --- programs of the owners

# Averaging would settle at 2.28: those that make more steps pull harder. The optimum of the mean loss is 2.
fleet_kill TERM "$DAEMON_PID"
fleet_restart
variate_job "$FLEET/own.json" variates-own f32
sed -i 's/"seed": 7,/"seed": 7, "trainer": "own",/; s/{"type": "linear", "name": "fc1", "out": 50}, {"type": "relu"},//' "$FLEET/own.json"
job_submit "$FLEET/own.json"
within 90 rounds_are 25 || fleet_fail "no 25 rounds of owners' programs: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job pause "$JOB" >/dev/null || fleet_fail "pause"
in_step "owners' programs" 5e-6
mean=$(curl_admin "/v1/models/$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')" -o "$FLEET/weights" && python3 -S -E -c "
import array
d = open('$FLEET/weights', 'rb').read()
w = array.array('f', d[8 + int.from_bytes(d[:8], 'little'):])
assert max(w) - min(w) < 0.02, (min(w), max(w))
print(sum(w) / len(w))") && python3 -S -E -c "import sys; sys.exit(not 1.98 < $mean < 2.02)" || fleet_fail "owners' programs settle at ${mean:-many places}"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "stop"
echo "ok: owners' programs settle at $mean"

# --- a lossy codec: a device counts what the coordinator decodes

# A start removes the stopped job's state.
fleet_kill TERM "$DAEMON_PID"
fleet_restart
variate_job "$FLEET/int8.json" variates-int8 int8
job_submit "$FLEET/int8.json"
within 90 rounds_are 4 || fleet_fail "no four rounds with int8: $(curl_admin "/v1/jobs/$JOB")"
fleet_admin job pause "$JOB" >/dev/null || fleet_fail "pause"
in_step "int8" 5e-6

# --- a device that counts is not erased

fleet_admin device revoke device1 >/dev/null || fleet_fail "revoke"
fleet_admin device erase device1 >"$FLEET/erase" 2>&1 && fleet_fail "erased while its variate counts"
grep -q "control variates" "$FLEET/erase" || fleet_fail "erase: $(cat "$FLEET/erase")"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "stop"
fleet_admin device erase device1 >"$FLEET/erase" 2>&1 || fleet_fail "erase after the job: $(cat "$FLEET/erase")"
echo "ok: no device is erased while a job counts its variate"
fleet_end
