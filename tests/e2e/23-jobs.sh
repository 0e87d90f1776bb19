#!/bin/sh
# stages: gcc address
# The life of jobs: submission, commands, selection, models from outside with an external trainer, evaluation by devices,
# reload and graceful stop of the coordinator.
#   BUILD=build/mbedtls tests/e2e/23-jobs.sh
set -u
FLEET_NAME=23-jobs
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
for tool in curl python3; do
	command -v $tool >/dev/null || { echo "needs $tool"; exit 77; }
done
[ -x "$peer" ] || { echo "needs $peer"; exit 77; }
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) echo "ok: $1"; return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}
call() { # call METHOD PATH [CURL_OPTION...]: prints the status; the body is in out
	method=$1 path=$2
	shift 2
	curl -sS --max-time $((20 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" -o "$FLEET/out" -w '%{http_code}' -X "$method" "$@" \
		"http://localhost$path"
}
pick() { # pick KEY...: from out
	python3 -S -E -c 'import json, sys
v = json.load(open(sys.argv[1]))
for k in sys.argv[2:]:
    v = v[int(k)] if isinstance(v, list) else v[k]
print(v)' "$FLEET/out" "$@"
}
job() { # job ID KEY...: from GET /v1/jobs/ID
	id=$1
	shift
	call GET "/v1/jobs/$id" >/dev/null
	pick "$@"
}
until_job() { # until_job ID WANT KEY...
	want=$2 tries=0
	id=$1
	shift 2
	until [ "$(job "$id" "$@")" = "$want" ]; do
		[ $tries -lt $((100 * TEST_PATIENCE)) ] || fleet_fail "$* of the job is $(job "$id" "$@"), not $want"
		sleep 0.1
		tries=$((tries + 1))
	done
}
spool() { ls "$FLEET/state/spool"; }
post() { call POST /v1/jobs --data-binary "@$1"; }
wrong() { # wrong WHAT DETAIL SED_SCRIPT: the good document, spoiled
	sed "$3" "$FLEET/good.json" >"$FLEET/wrong.json"
	say "$1" 422 "$(post "$FLEET/wrong.json")"
	say "$1: type" urn:rivulet:error:bad-job "$(pick type)"
	say "$1: names the key" "$2" "$(pick detail)"
}

data="
[data digits]
format = glyphs
hand = 1
count = 60
seed = 1
[trainer plus-one]
exec = python3 PLUS"
fleet_start ""
fleet_admin token create --label site=north -o "$FLEET/token.north" || fleet_fail "no token"
fleet_admin token create --label site=south,size=small -o "$FLEET/token.south" || fleet_fail "no token"
plus=$(echo "$data" | sed "s,PLUS,$FLEET/plus.py,")
FLEET_TOKEN=$FLEET/token.north fleet_join north "$plus"
FLEET_TOKEN=$FLEET/token.south fleet_join south "$plus"

# --- documents
cat >"$FLEET/good.json" <<END
{
  "name": "life",
  "seed": 1,
  "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
  "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
  "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
  "round": {"goal": 2, "quorum": 2, "deadline_s": 600},
  "stop": {"rounds": 3}
}
END
wrong "an unknown key" "round.deadlin_s: unknown key*deadline_s*" 's/"deadline_s"/"deadlin_s"/'
wrong "an unknown key deep inside" "local.optimizer.lr: unknown key*" 's/"rate"/"lr": 1, &/'
wrong "a wrong type" "*round.goal*" 's/"goal": 2/"goal": "two"/'
wrong "a value out of range" "*round.quorum*" 's/"quorum": 2/"quorum": 3/'
wrong "an unknown layer" "*model.layers*" 's/"linear"/"liner"/'
wrong "an unknown rule" "*aggregate.rule*" 's/"stop"/"aggregate": {"rule": {"name": "magic"}}, "stop"/'
wrong "an unknown codec" "*upload.codec*" 's/"stop"/"upload": {"codec": "morse"}, "stop"/'
wrong "a key twice" "*seed*" 's/"seed": 1,/"seed": 1, "seed": 2,/'
wrong "a key missing" "*round*" 's/"round"/"stop"/;$!{/"stop": {"rounds"/d;};s/600},$/600}/'
wrong "an unknown data set of the coordinator" "evaluate.data: *nowhere*" \
	's/"stop"/"evaluate": {"by": "coordinator", "data": "nowhere"}, "stop"/'
wrong "a model that is not there" "*model.init*" \
	's/"loss": "cross_entropy"/&, "init": "0000000000000000000000000000000000000000000000000000000000000000"/'
wrong "no JSON" "*" '1s/{/[/'
call GET /v1/jobs >/dev/null
say "no job yet" "\[\]" "$(pick jobs)"

say "a good document" 201 "$(post "$FLEET/good.json")"
life=$(pick job)
say "its id is the hash of its bytes" "$(sha256sum <"$FLEET/good.json" | cut -c 1-32)" "$life"
say "the same again" 200 "$(post "$FLEET/good.json")"
say "the same id" "$life" "$(pick job)"
sed 's/"seed": 1/"seed": 2/' "$FLEET/good.json" >"$FLEET/second.json"
say "another seed is another job" 201 "$(post "$FLEET/second.json")"
second=$(pick job)
say "its first model differs" different "$([ "$(job "$life" model)" = "$(job "$second" model)" ] && echo same || echo different)"

# --- commands
say "stop" 200 "$(call POST "/v1/jobs/$second/stop")"
say "stopped" stopped "$(pick state)"
for command in stop pause resume; do
	say "$command a stopped job" 409 "$(call POST "/v1/jobs/$second/$command")"
	say "$command a stopped job: type" urn:rivulet:error:wrong-state "$(pick type)"
done
say "an unknown command" 404 "$(call POST "/v1/jobs/$life/explode")"
say "an unknown job" 404 "$(call POST "/v1/jobs/00000000000000000000000000000000/stop")"
say "an unknown job: type" urn:rivulet:error:unknown-job "$(pick type)"

north=$("$peer" ask "$FLEET/north" "$PORT")
south=$("$peer" ask "$FLEET/south" "$PORT")
say "a task of the running job" "* $life 1 *" "$north"
say "pause" 200 "$(call POST "/v1/jobs/$life/pause")"
say "paused" paused "$(pick state)"
say "pause again" 200 "$(call POST "/v1/jobs/$life/pause")"
say "no task while paused" "wait paused" "$("$peer" ask "$FLEET/south" "$PORT")"
# shellcheck disable=SC2086 # a task is four words
{
	say "a delta while paused" "201 receipt *" "$("$peer" put "$FLEET/north" "$PORT" 7850 wait none $north)"
	say "the goal while paused" "201 receipt *" "$("$peer" put "$FLEET/south" "$PORT" 7850 wait none $south)"
}
sleep 0.3
say "the round stays open while paused" "1 2" "$(job "$life" open round) $(job "$life" open reports)"
kill -TERM "$DAEMON_PID"
wait "$DAEMON_PID"
say "SIGTERM" 0 $?
fleet_restart
say "paused still, after a restart" paused "$(job "$life" state)"
say "stopped still, after a restart" stopped "$(job "$second" state)"
say "and the round has its deltas" "1 2" "$(job "$life" open round) $(job "$life" open reports)"
say "resume" 200 "$(call POST "/v1/jobs/$life/resume")"
until_job "$life" 2 round

# --- SIGTERM in an open round, with one of two deltas; then the round goes on
north=$("$peer" ask "$FLEET/north" "$PORT")
# shellcheck disable=SC2086
say "a delta of round 2" "201 receipt *" "$("$peer" put "$FLEET/north" "$PORT" 7850 wait none $north)"
files=$(spool)
kill -TERM "$DAEMON_PID"
wait "$DAEMON_PID"
say "SIGTERM in an open round" 0 $?
fleet_restart
say "the round after SIGTERM" "2 1 2" "$(job "$life" open round) $(job "$life" open reports) $(job "$life" open goal)"
say "its delta after SIGTERM" "${north%% *}.delta" "$(spool)"
say "no other file" "$files" "$(spool)"
say "who has reported gets no task again" "wait reported" "$("$peer" ask "$FLEET/north" "$PORT")"
south=$("$peer" ask "$FLEET/south" "$PORT")
# shellcheck disable=SC2086
say "the other's delta" "201 receipt *" "$("$peer" put "$FLEET/south" "$PORT" 7850 wait none $south)"
until_job "$life" 3 round

# --- stop with a delta in the open round
north=$("$peer" ask "$FLEET/north" "$PORT")
# shellcheck disable=SC2086
say "a delta of round 3" "201 receipt *" "$("$peer" put "$FLEET/north" "$PORT" 7850 wait none $north)"
south=$("$peer" ask "$FLEET/south" "$PORT")
say "stop with a round open" 200 "$(call POST "/v1/jobs/$life/stop")"
# shellcheck disable=SC2086
say "a delta after the stop" "409 stale-round 0 *" "$("$peer" put "$FLEET/south" "$PORT" 7850 wait none $south)"
say "no task after the stop" "wait no-job" "$("$peer" ask "$FLEET/south" "$PORT")"
say "two rounds were committed" 2 "$(job "$life" rounds_committed)"
within 10 spool_empty || say "no file of a stopped job in the spool" "" "$(spool)"

# --- selection
sed 's/"name": "life"/"name": "northern"/;s/"stop"/"select": {"labels": {"site": "north"}}, &/' "$FLEET/good.json" >"$FLEET/north.json"
say "a job by label" 201 "$(post "$FLEET/north.json")"
northern=$(pick job)
say "the device of the label" "* $northern 1 *" "$("$peer" ask "$FLEET/north" "$PORT")"
say "the other device" "wait ineligible" "$("$peer" ask "$FLEET/south" "$PORT")"
say "and why, in device show" "reason *ineligible" "$(fleet_admin device show south | grep ^reason)"
say "how many wait, and why" "devices *1 ready, 1 wait (ineligible 1)" "$(fleet_admin job show northern | grep ^devices)"
say "its labels, in device show" "labels *site*south*" "$(fleet_admin device show south | grep ^labels)"
say "the other device does not see the job" 404 "$(curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/south/ca.pem" \
	--cert "$FLEET/south/cert.pem" --key "$FLEET/south/key.pem" -o /dev/null -w '%{http_code}' "$URL/v1/jobs/$northern")"
call POST "/v1/jobs/$northern/stop" >/dev/null
sed 's/"name": "life"/"name": "both"/;s/"stop"/"select": {"labels": {"site": "south", "size": "large"}}, &/' "$FLEET/good.json" >"$FLEET/both.json"
say "a job by two labels" 201 "$(post "$FLEET/both.json")"
both=$(pick job)
say "one label of two is not enough" "wait ineligible" "$("$peer" ask "$FLEET/south" "$PORT")"
call POST "/v1/jobs/$both/stop" >/dev/null
sed 's/"name": "life"/"name": "named"/;s/"stop"/"select": {"devices": ["south"]}, &/' "$FLEET/good.json" >"$FLEET/named.json"
say "a job by name" 201 "$(post "$FLEET/named.json")"
named=$(pick job)
say "the named device" "* $named 1 *" "$("$peer" ask "$FLEET/south" "$PORT")"
say "a device not named" "wait ineligible" "$("$peer" ask "$FLEET/north" "$PORT")"
call POST "/v1/jobs/$named/stop" >/dev/null

# The share of a job is fixed by job and device: search a seed that parts the two, and predict who gets the task.
chosen=$(python3 -S -E - "$FLEET" <<'END'
import hashlib, json, sys
fleet = sys.argv[1]
ids = {n: bytes.fromhex(json.load(open(f"{fleet}/{n}/device.json"))["device"]) for n in ("north", "south")}
good = json.load(open(f"{fleet}/good.json"))
for seed in range(100):
    text = json.dumps(dict(good, name="half", seed=seed, select={"percent": [0, 50]})).encode()
    job = hashlib.sha256(text).digest()[:16]
    inside = [n for n, i in ids.items() if int.from_bytes(hashlib.sha256(job + i).digest()[:8], "big") / 2.0**64 < 0.5]
    if len(inside) == 1:
        open(f"{fleet}/half.json", "wb").write(text)
        print(inside[0])
        break
END
)
case $chosen in north) left=south ;; *) left=north ;; esac
say "a job for half of the fleet" 201 "$(post "$FLEET/half.json")"
half=$(pick job)
say "the device inside the share" "* $half 1 *" "$("$peer" ask "$FLEET/$chosen" "$PORT")"
say "the device outside the share" "wait ineligible" "$("$peer" ask "$FLEET/$left" "$PORT")"
call POST "/v1/jobs/$half/stop" >/dev/null

# --- what will not get on is told at once
sed 's/"name": "life"/"name": "alone"/;s/"goal": 2/"goal": 5/;s/"quorum": 2/"quorum": 4/;s/"digits"/"cifar"/' "$FLEET/good.json" >"$FLEET/alone.json"
alone=$(fleet_admin job submit "$FLEET/alone.json" 2>"$FLEET/warnings") || fleet_fail "not taken: $(cat "$FLEET/warnings")"
say "more than the fleet" "rivulet: round.goal is 5, and 2 active devices may work on it: no round can close*" "$(grep goal "$FLEET/warnings")"
say "nobody has the data" 'rivulet: nobody has the data: none of the 2 devices *"cifar" with 1 examples or more' "$(grep data "$FLEET/warnings")"
say "in the answer, too" 200 "$(post "$FLEET/alone.json")"
say "both of them" "round.goal is 5*nobody has the data*" "$(pick warnings 0) $(pick warnings 1)"
call POST "/v1/jobs/$alone/stop" >/dev/null

# --- a model from outside, and a trainer of one's own that adds 1 to every weight
cat >"$FLEET/plus.py" <<'END'
import array, json, struct, sys
data = open("base.safetensors", "rb").read()
at = 8 + struct.unpack("<Q", data[:8])[0]
values = array.array("f", data[at:])
open("after.safetensors", "wb").write(data[:at] + array.array("f", [v + 1 for v in values]).tobytes())
json.dump({"examples": 5, "steps": 1, "loss": 0.5, "accuracy": 0.25, "metrics": {"sum": sum(values)}}, open("report.json", "w"))
END
python3 -S -E - "$FLEET/first.safetensors" <<'END'
import array, json, struct, sys
head = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                   "b": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]}}).encode()
head += b" " * (-len(head) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + array.array("f", [0.5 * i for i in range(9)]).tobytes())
END
first=$(sha256sum <"$FLEET/first.safetensors" | cut -c 1-64)
say "a model under another id" 400 "$(call PUT "/v1/models/$(printf '%064d' 1)" --data-binary "@$FLEET/first.safetensors")"
say "a model under another id: type" urn:rivulet:error:wrong-hash "$(pick type)"
head -c 50 "$FLEET/first.safetensors" >"$FLEET/cut.safetensors"
say "half a model" 400 "$(call PUT "/v1/models/$(sha256sum <"$FLEET/cut.safetensors" | cut -c 1-64)" \
	--data-binary "@$FLEET/cut.safetensors")"
say "half a model: type" urn:rivulet:error:bad-model "$(pick type)"
say "a model" 201 "$(call PUT "/v1/models/$first" --data-binary "@$FLEET/first.safetensors")"
say "the same model again" 200 "$(call PUT "/v1/models/$first" --data-binary "@$FLEET/first.safetensors")"
say "by rivulet model put" "*$first*" "$(fleet_admin model put "$FLEET/first.safetensors")"
# One whose numbers nobody can train is taken, for who knows what it is for, and its sender is told.
python3 -S -E - "$FLEET/sick.safetensors" "$FLEET/first.safetensors" <<-'END'
	import sys
	data = bytearray(open(sys.argv[2], "rb").read())
	data[-12:-8] = b"\x00\x00\x80\x7f"  # infinity, the first of "b"
	open(sys.argv[1], "wb").write(data)
END
sick=$(sha256sum <"$FLEET/sick.safetensors" | cut -c 1-64)
said='1 tensor holds NaN or infinity, first "b"'
say "a model with infinity" 201 "$(call PUT "/v1/models/$sick" --data-binary "@$FLEET/sick.safetensors")"
say "a model with infinity: what is said" '*1 tensor holds NaN or infinity, first *b*: a job that trains or averages it is refused*' "$(cat "$FLEET/out")"
say "a model with infinity, by rivulet" "*$said*$sick*" "$(fleet_admin model put "$FLEET/sick.safetensors" 2>&1 | tr '\n' ' ')"
say "a sound model, by rivulet" "$first" "$(fleet_admin model put "$FLEET/first.safetensors" 2>&1)"
say "nothing is left of refused models" 0 "$(find "$FLEET/state/models" -name '*tmp*' -o -name '*.part' | wc -l | tr -d ' ')"
cat >"$FLEET/init.json" <<END
{
  "name": "init",
  "model": {"init": "$first"},
  "trainer": "plus-one",
  "data": {"name": "digits"},
  "round": {"goal": 2, "quorum": 2, "deadline_s": 600},
  "stop": {"rounds": 2}
}
END
sed "s/$first/$sick/" "$FLEET/init.json" >"$FLEET/sick.json"
say "a job from one with infinity" 422 "$(post "$FLEET/sick.json")"
say "a job from one with infinity: what is said" '*tensor "b" holds NaN or infinity*' "$(pick detail)"
say "a job from one with infinity, dry" '*tensor "b" holds NaN or infinity*' "$(fleet_admin job submit "$FLEET/sick.json" --dry-run 2>&1)"
sed 's/"trainer"/"tensors": {"b": "frozen"}, "trainer"/; s/"init"/"frozen"/' "$FLEET/sick.json" | sed 's/"model": {"frozen"/"model": {"init"/' >"$FLEET/frozen.json"
say "a job that carries it unchanged" 201 "$(post "$FLEET/frozen.json")"
say "and is stopped" 200 "$(call POST "/v1/jobs/$(pick job)/stop")"
say "a job from it" 201 "$(post "$FLEET/init.json")"
init=$(pick job)
say "its first model is the uploaded one" "$first" "$(pick model)"
fleet_run north
fleet_run south
until_job "$init" "done" state
say "its rounds" 2 "$(job "$init" rounds_committed)"
fleet_admin model get init -o "$FLEET/last.safetensors" >/dev/null || fleet_fail "no model of the job"
say "two rounds added two to every weight" "\[2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0\]" "$(python3 -S -E -c '
import array, struct, sys
d = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", d[:8])[0]
print(array.array("f", d[8 + n:]).tolist())' "$FLEET/last.safetensors")"
call GET "/v1/jobs/$init/rounds/2" >/dev/null
say "examples of its round" 10 "$(pick examples)"
say "loss of its round" 0.5 "$(pick loss)"
# Before the second round the weights are 1, 1.5 ... 5.
say "the trainers' own figure" "27 2" "$(pick metrics sum mean) $(pick metrics sum reports)"
say "in job show" "*2 *sum *27.0000 *2" "$(fleet_admin job show init | grep " sum ")"
call GET "/v1/jobs/$init/rounds/2/record" >/dev/null
say "and nowhere in what is signed" 0 "$(grep -c sum "$FLEET/out")"
say "training and evaluation have keys of their own" "* loss=0.5 accuracy=0.25 evaluate_loss=nan evaluate_accuracy=nan *" \
	"$(grep " round.committed job=$init round=2 " "$FLEET/rivuletd.log")"

# --- evaluation by the devices, on the share they keep for it
sed 's/"name": "life"/"name": "judged"/;s/"classes": 10/&, "validation": 0.2/;s/"stop"/"evaluate": {"by": "devices"}, &/' \
	"$FLEET/good.json" >"$FLEET/judged.json"
say "a job that devices evaluate" 201 "$(post "$FLEET/judged.json")"
judged=$(pick job)
until_job "$judged" "done" state
call GET "/v1/jobs/$judged/rounds" >/dev/null
say "the first round's metric: examples" 24 "$(pick rounds 0 evaluate examples)"
say "the first round's metric: accuracy" "0*" "$(pick rounds 0 evaluate accuracy)"
say "the first round's metric: loss, of an untrained model" "[12].*" "$(pick rounds 0 evaluate loss)"
say "both figures are logged" "* loss=[12]* evaluate_loss=[12]* evaluate_accuracy=0* *" \
	"$(grep " round.committed job=$judged round=1 " "$FLEET/rivuletd.log")"
say "the job's metric is that of the last model, evaluated after the last round" "3 24" "$(job "$judged" metric round) $(job "$judged" metric examples)"

# --- reload
logged() { # logged N PATTERN: waits for N such lines
	tries=0
	until [ "$(grep -c "$2" "$FLEET/rivuletd.log")" -ge "$1" ]; do
		[ $tries -lt $((50 * TEST_PATIENCE)) ] || return 1
		sleep 0.1
		tries=$((tries + 1))
	done
}
call GET /healthz >/dev/null
say "no debug lines at first" 0 "$(grep -c ' debug ' "$FLEET/rivuletd.log")"
cp "$FLEET/rivuletd.conf" "$FLEET/kept.conf"
sed -i 's/^\[server\]/&\nlog_level = debug/' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
logged 1 ' reload.done ' || fleet_fail "SIGHUP was not logged"
call GET /healthz >/dev/null
say "debug lines after a reload" 0 "$(logged 1 ' debug .*path=/healthz'; echo $?)"
printf '[server]\nlog_level = error\nlog_levle = info\n' >"$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
logged 1 ' error reload.failed ' || fleet_fail "a bad file was not logged"
say "a bad file: file, line and key" "*rivuletd.conf:3: \[server\] log_levle: unknown key*" \
	"$(grep ' reload.failed ' "$FLEET/rivuletd.log")"
cp "$FLEET/kept.conf" "$FLEET/rivuletd.conf"
mkdir -p "$FLEET/rivuletd.conf.d"
echo '[limits]' >"$FLEET/rivuletd.conf.d/10-fine.conf"
say "a file beside it is fine" "*the configuration is valid" "$("$BUILD/rivuletd" --config "$FLEET/rivuletd.conf" --check-config 2>&1)"
printf '[limits]\nlong_pol = 3\n' >"$FLEET/rivuletd.conf.d/20-bad.conf"
say "a mistake in a file beside it" "*rivuletd.conf.d/20-bad.conf:2: \[limits\] long_pol: unknown key (did you mean long_poll?)*" \
	"$("$BUILD/rivuletd" --config "$FLEET/rivuletd.conf" --check-config 2>&1)"
rm "$FLEET"/rivuletd.conf.d/[12]0-*.conf
say "fewer descriptors than connections" "*warning: \[limits\] connections is 10000, and this process may have 500 descriptors: raise LimitNOFILE*" \
	"$(ulimit -n 500; "$BUILD/rivuletd" --config "$FLEET/rivuletd.conf" --check-config 2>&1)"
# What can be read is tried: every finding with its place, and another coordinator's port among them.
cat >"$FLEET/tried.conf" <<END
[server]
listen = 127.0.0.1:$PORT
state_dir = $FLEET/token/state
admin_socket = $FLEET/none/admin.sock
[spool]
key_file = $FLEET/none
[data a]
format = csv
label = y
path = $FLEET
END
tried() { "$BUILD/rivuletd" --config "$FLEET/tried.conf" --check-config 2>"$FLEET/tried"; }
say "what is tried" "*: 5 findings?78" "$(tried; echo $?)"
while read -r line what; do
	say "line $line" "1" "$(grep -c "tried.conf:$line: $what" "$FLEET/tried")"
done <<'END'
2 \[server\] listen: port [0-9]* of 127.0.0.1 is in use
3 \[server\] state_dir: look at .*: Not a directory
4 \[server\] admin_socket: write in .*/none: No such file
6 \[spool\] key_file: open .*/none: No such file
10 \[data a\] path: is no file
END
sed -i 's,^path = .*,path = "/x.csv",; s/^listen.*/&0/' "$FLEET/tried.conf"
say "what cannot be read" "*: 2 findings?78" "$(tried; echo $?)"
say "quotes" "*tried.conf:10: \[data a\] path: \"/x.csv\" stands in quotes: leave them out" "$(cat "$FLEET/tried")"
lines=$(grep -c ' debug .*path=/healthz' "$FLEET/rivuletd.log")
call GET /healthz >/dev/null
say "a bad file changes nothing" 0 "$(logged $((lines + 1)) ' debug .*path=/healthz'; echo $?)"
cp "$FLEET/kept.conf" "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
logged 2 ' reload.done ' || fleet_fail "the second reload was not logged"
lines=$(grep -c ' debug ' "$FLEET/rivuletd.log")
say "still there after three reloads" 200 "$(call GET /readyz)"
sleep 0.2
say "no debug lines after going back" "$lines" "$(grep -c ' debug ' "$FLEET/rivuletd.log")"
exit $failed
