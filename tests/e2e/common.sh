# common.sh: what the end-to-end tests share, above tests/fleet.sh. Source it from the top of the tree; it needs BUILD.
#
#   curl_admin PATH [CURL OPTION...]   a request over the admin socket
#   pick EXPRESSION                    evaluates Python's EXPRESSION on the JSON document `d` from standard input
#   within SECONDS COMMAND...          repeats the command until it succeeds; 1 when the time, times TEST_PATIENCE, is over
#   log_lines N FILE PATTERN           waits until FILE has N lines like that, or more, and prints how many: what another process
#                                      writes may come a moment after what it did was seen
#   job_submit FILE                    sets JOB to the job's id
#   job_done SECONDS                   waits until JOB is done, fails once it is paused or stopped, and sets MODEL to its last model's id
#   glyph_device NAME HAND COUNT       enrols a device with drawn digits of that hand
#   glyph_job FILE NAME GOAL ROUNDS    writes a small job on them; every device must report
#   spool_empty                        no file is left in the spool
#   fleet_kill SIGNAL PID              ends one process that fleet_run or fleet_daemon started; after TERM it must exit with 0
#   fleet_end                          ends them all so; a test's last words, where leaks and races show
#   fleet_keep DEVICE...               ends the coordinator and keeps its state and those devices' homes; nobody else may run
#   fleet_again DEVICE...              puts back what fleet_keep kept and starts the coordinator on the same port
#   fleet_table DEVICE...              $FLEET/fleet.csv: those devices in that order, for rivulet simulate
#   as_simulated ROUNDS NAME           JOB (of $FLEET/job.json) has the models and figures that rivulet simulate gives for $FLEET/fleet.csv
#                                      and $FLEET/fleet.conf, round by round; [data test] there is what the coordinator measures with
#   mnist_test N                       the first N examples of MNIST's test set: $FLEET/test-images, $FLEET/test-labels
#   mnist_as_simulated                 as_simulated for devices device1, device2, ... that have equal shares of MNIST, with that test set
#   run CODE COMMAND...                runs it; it must end with this exit code. Its output is in SAID; CHECKS counts
#   says TEXT...                       SAID has a line with each of these patterns
#   history                            every committed round of JOB as one line: what must be equal in two runs
# shellcheck shell=sh

BUILD=${BUILD:-build/${CRYPTO:-mbedtls}}
MNIST=${MNIST:-../shared/data/mnist}
# TEST_SLOW: sanitizers slow everything down. It stretches what a test lets happen, such as how long a certificate lives.
case ${SAN:-} in *thread*) TEST_SLOW=${TEST_SLOW:-20} ;; ?*) TEST_SLOW=${TEST_SLOW:-4} ;; *) TEST_SLOW=${TEST_SLOW:-1} ;; esac
# TEST_PATIENCE: what must come may take long on a busy machine, and waiting for what is there costs nothing.
TEST_PATIENCE=${TEST_PATIENCE:-$((TEST_SLOW < 6 ? 4 + 2 * TEST_SLOW : TEST_SLOW))}
FLEET_START_S=$((30 * TEST_PATIENCE))
. tests/fleet.sh

skip() {
	echo "$*"
	exit 77
}
for tool in curl python3; do
	command -v $tool >/dev/null || skip "needs $tool"
done
[ -x "$RIVULETD" ] && [ -x "$RIVULET" ] || skip "needs $RIVULETD and $RIVULET"

curl_admin() {
	curl_path=$1
	shift
	curl -sS --fail-with-body --max-time $((20 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" "$@" "http://localhost$curl_path"
}

pick() {
	# With these three names JSON is Python; the module that reads it takes as long to load as Python itself.
	python3 -S -E -c 'import sys
true, false, null = True, False, None
d = eval(sys.stdin.read())
print(eval("(" + sys.argv[1] + ")"))' "$1"
}

within() {
	within_end=$(($(date +%s) + $1 * TEST_PATIENCE))
	within_tries=0
	shift
	# Who looks keeps the others from coming there: what takes a while is looked at less often.
	until "$@"; do
		[ "$(date +%s)" -lt $within_end ] || return 1
		sleep 0.$((within_tries < 3 ? 2 : 5))
		within_tries=$((within_tries + 1))
	done
}

log_lines() {
	lines_end=$(($(date +%s) + 20 * TEST_PATIENCE))
	until lines_seen=$(grep -cE -- "$3" "$2") && [ "$lines_seen" -ge "$1" ] || [ "$(date +%s)" -ge $lines_end ]; do
		sleep 0.1
	done
	echo "$lines_seen"
}

job_submit() {
	curl_admin /v1/jobs --data-binary "@$1" >"$FLEET/submitted" 2>&1 || fleet_fail "job refused: $(cat "$FLEET/submitted")"
	JOB=$(pick 'd["job"]' <"$FLEET/submitted")
}

# job_in STATE...: JOB is in one of them
job_in() {
	job_seen=$(curl_admin "/v1/jobs/$JOB" 2>/dev/null)
	for job_state; do
		case $job_seen in *"\"state\":\"$job_state\""*) return 0 ;; esac
	done
	return 1
}
job_is_done() { job_in done; }

# A job that waits for a person, or has ended in another way, will not be done.
job_done() {
	within "$1" job_in done paused stopped && job_is_done || fleet_fail "the job is not done, or not within $(($1 * TEST_PATIENCE)) s: $(curl_admin "/v1/jobs/$JOB")"
	MODEL=$(curl_admin "/v1/jobs/$JOB" | pick 'd["model"]')
}

glyph_device() {
	fleet_join "$1" "
[device]
threads = 1
[data digits]
format = glyphs
hand = $2
count = $3
seed = 1
skew = 0.2"
}

glyph_job() {
	cat >"$1" <<-END
		{"name": "$2", "seed": 7,
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 50}, {"type": "relu"},
		                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
		 "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": $3, "deadline_s": 3600},
		 "stop": {"rounds": $4}}
	END
}

large_job() { # large_job ROUNDS: $FLEET/job.json, whose deltas of 12 MB take a while on a slow link
	cat >"$FLEET/job.json" <<-END
		{"name": "large", "seed": 3,
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 4000}, {"type": "relu"},
		                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
		 "local": {"steps": 3, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": $1}}
	END
}
uploaded() { # uploaded BYTES: is so much of a delta in the spool?
	[ "$(find "$FLEET/state/spool" -name '*.part' -size +"$(($1 / 1024))k" 2>/dev/null | wc -l)" -gt 0 ]
}

trainer_job() { # trainer_job TRAINER ROUNDS [NAME]: submits a job that one device trains and evaluates by its program
	cat >"$FLEET/$1.json" <<-END
		{"name": "${3:-$1}", "seed": 5, "trainer": "$1",
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
		 "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": 1, "deadline_s": 3600}, "evaluate": {"by": "devices"}, "stop": {"rounds": $2}}
	END
	job_submit "$FLEET/$1.json"
}

spool_empty() {
	[ -z "$(ls -A "$FLEET/state/spool")" ]
}

fleet_kill() {
	kill "-$1" "$2" 2>/dev/null
	wait "$2" 2>/dev/null
	fleet_ended=$?
	fleet_left=
	for fleet_pid in $FLEET_PIDS; do
		[ "$fleet_pid" = "$2" ] || fleet_left="$fleet_left $fleet_pid"
	done
	FLEET_PIDS=$fleet_left
	[ "$DAEMON_PID" != "$2" ] || DAEMON_PID=
	[ "$1" != TERM ] || [ $fleet_ended -eq 0 ] || fleet_fail "process $2 ended with status $fleet_ended when told to stop"
}

fleet_end() {
	for fleet_pid in $FLEET_PIDS $DAEMON_PID; do
		fleet_kill TERM "$fleet_pid"
	done
}

fleet_keep() {
	fleet_kill TERM "$DAEMON_PID"
	mkdir "$FLEET/kept"
	for fleet_item in state "$@"; do
		cp -a "$FLEET/$fleet_item" "$FLEET/kept/$fleet_item"
	done
}

fleet_again() {
	fleet_end
	for fleet_item in state "$@"; do
		rm -rf "${FLEET:?}/$fleet_item"
		cp -a "$FLEET/kept/$fleet_item" "$FLEET/$fleet_item"
		: >"$FLEET/$fleet_item.log"
	done
	fleet_restart
}

fleet_table() {
	curl_admin /v1/devices | python3 -S -E -c 'import json, sys
ids = {d["name"]: d["device"] for d in json.load(sys.stdin)["devices"]}
print("name,id", *("%s,%s" % (name, ids[name]) for name in sys.argv[1:]), sep="\n")' "$@" >"$FLEET/fleet.csv" || fleet_fail "not all of these are devices: $*"
}

as_simulated() {
	curl_admin "/v1/jobs/$JOB/rounds" |
		pick "'\n'.join('%d %s %r %r' % (r['round'], r['model'], r['evaluate']['accuracy'], r['evaluate']['loss']) for r in d['rounds'])" >"$FLEET/real"
	"$RIVULET" simulate "$FLEET/job.json" --fleet "$FLEET/fleet.csv" --config "$FLEET/fleet.conf" --test test --threads 2 --out "$FLEET/last" \
		>"$FLEET/lines" || fleet_fail "$2: simulate ended with status $?"
	python3 -S -E -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    if "summary" not in r:
        print(r["round"], r["model"], repr(r["accuracy"]), repr(r["loss"]))' <"$FLEET/lines" >"$FLEET/simulated"
	[ "$(wc -l <"$FLEET/real")" -eq "$1" ] || fleet_fail "$2: not $1 rounds: $(cat "$FLEET/real")"
	cmp -s "$FLEET/real" "$FLEET/simulated" || fleet_fail "$2: differs: $(diff "$FLEET/real" "$FLEET/simulated")"
	[ "$(sha256sum <"$FLEET/last" | cut -d ' ' -f 1)" = "$MODEL" ] || fleet_fail "$2: the file written is not the model"
}

mnist_test() {
	python3 -S -E -c 'import gzip, sys
mnist, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for name, head in ("images", 16), ("labels", 8):
    with gzip.open("%s/t10k-%s-idx%d-ubyte.gz" % (mnist, name, 3 if name == "images" else 1)) as f:
        bytes = f.read()
    size = (len(bytes) - head) // int.from_bytes(bytes[4:8], "big")
    with open("%s/test-%s" % (out, name), "wb") as f:
        f.write(bytes[:4] + count.to_bytes(4, "big") + bytes[8:head + count * size])' "$MNIST" "$FLEET" "$1" || fleet_fail "no test set"
}

mnist_as_simulated() {
	# shellcheck disable=SC2046 # a name each
	fleet_table $(seq -f 'device%.0f' "$devices")
	cat >"$FLEET/fleet.conf" <<-END
		[data mnist]
		format = idx
		images = $(realpath "$MNIST")/train-images-idx3-ubyte.gz
		labels = $(realpath "$MNIST")/train-labels-idx1-ubyte.gz
		seed = ${SEED:-1}
		[data test]
		format = idx
		images = $FLEET/test-images
		labels = $FLEET/test-labels
	END
	as_simulated "$rounds" "$FLEET_NAME"
}

CHECKS=0
run() {
	run_want=$1
	shift
	SAID=$("$@" 2>&1)
	run_got=$?
	CHECKS=$((CHECKS + 1))
	[ $run_got -eq "$run_want" ] || fleet_fail "$*: exit code $run_got instead of $run_want: $SAID"
}

says() {
	for says_text in "$@"; do
		CHECKS=$((CHECKS + 1))
		printf '%s\n' "$SAID" | grep -qE -- "$says_text" || fleet_fail "no \"$says_text\" in: $SAID"
	done
}

history() {
	curl_admin "/v1/jobs/$JOB/rounds" |
		pick "'\n'.join('%d %s %s %s %r %r' % (r['round'], r['state'], r['base'], r['model'], r['loss'], r['evaluate']) for r in d['rounds'] if r['state'] != 'evaluated')"
}
