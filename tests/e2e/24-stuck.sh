#!/bin/sh
# stages: gcc openssl address
# Jobs that cannot move say so once, with the reason and what to do: in the log, in status, in job show, to who follows a job in the shell
# and in Python. (A full disk: 33-disk.sh.)
#   BUILD=build/mbedtls tests/e2e/24-stuck.sh
set -u
FLEET_NAME=24-stuck
. tests/e2e/common.sh

fleet_start "
[limits]
retry_after = 1
[data test]
format = glyphs
hands = 2
count = 50"
for device in one two; do
	fleet_join $device "
[device]
threads = 1
[data digits]
format = glyphs
hand = 1
count = 40
seed = 1
[trainer broken]
exec = sh -c 'echo the belt is torn >&2; exit 3'
[trainer asleep]
exec = sh -c 'sleep 600'"
done
agents() { # agents: (re)starts them
	for pid in ${agents:-}; do
		fleet_kill TERM "$pid"
	done
	agents=
	for device in one two; do
		fleet_run $device
		agents="$agents $AGENT_PID"
	done
}
agents

started() { grep -qE '^[0-9]{4}-[0-9-]+T[0-9:]+[.][0-9]{3}Z info started ' "$FLEET/one.log"; }
within 20 started || fleet_fail "no line to the millisecond: $(cat "$FLEET/one.log")"

submit() { # submit NAME SED_SCRIPT: a job of both devices; who follows it writes NAME.follow, and NAME.watch in Python
	cat >"$FLEET/job.json" <<-END
		{"name": "$1", "seed": 7,
		 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
		 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
		 "local": {"steps": 1, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": 2, "deadline_s": 3600},
		 "stop": {"rounds": 100000}}
	END
	sed -i "$2" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
	"$RIVULET" job show "$1" --follow --socket "$FLEET/admin.sock" >/dev/null 2>"$FLEET/$1.follow" &
	FLEET_PIDS="$FLEET_PIDS $!"
	FLEET_PIDS="$FLEET_PIDS $!"
	PYTHONPATH=python python3 -S -E -c 'import sys
sys.path.insert(0, "python")
from rivulet.coordinator import Coordinator
for _ in Coordinator(socket=sys.argv[1]).watch(sys.argv[2], interval=0.2):
    pass' "$FLEET/admin.sock" "$1" 2>"$FLEET/$1.watch" &
	FLEET_PIDS="$FLEET_PIDS $!"
}
stuck_kind() { curl_admin "/v1/jobs/$JOB" | pick "(d['stuck'] or {'kind': 'none'})['kind']"; }
is_stuck() { [ "$(stuck_kind)" = "$1" ]; }
said() { within 10 grep -qE -- "$2" "$FLEET/$1" || fleet_fail "$1 says: $(cat "$FLEET/$1"); not: $2"; }
once() { # once FILE PATTERN
	[ "$(grep -cE -- "$2" "$FLEET/$1")" -eq 1 ] || fleet_fail "$1 does not say once \"$2\": $(cat "$FLEET/$1")"
}
# stuck NAME KIND REASON ADVICE [STATE]: everybody says it, once
stuck() {
	within 30 is_stuck "$2" || fleet_fail "$1: stuck is $(stuck_kind), not $2: $(curl_admin "/v1/jobs/$JOB")"
	run 0 fleet_admin job show "$1"
	says "^stuck +$2 since 2.*: .*$3" "^what to do .*$4"
	run 0 fleet_admin status
	says "^job $1 cannot move \\($2\\): .*$3.*; what to do: .*$4"
	said "$1.follow" "the job is ${5:-stuck}: .*$3.*; what to do: .*$4"
	said "$1.watch" "job $1 is ${5:-stuck}: .*$3.*; what to do: .*$4"
	once "$1.follow" "the job is"
	once "$1.watch" "job $1 is"
	once rivuletd.log "warn job.stuck job=$JOB name=$1 kind=$2 .*advice="
}
counted() { # counted JOBS PAUSED KIND...: in status
	curl_admin /v1/status | pick "d['stuck']['jobs'] == $1 and d['stuck']['paused'] == $2 and set(d['stuck']['kinds']) == set('$3'.split())" |
		grep -qx True || fleet_fail "counted: $(curl_admin /v1/status | pick "d['stuck']")"
}
moves() { # moves NAME: it says that it goes on
	within 30 is_stuck none || fleet_fail "$1: still stuck: $(curl_admin "/v1/jobs/$JOB")"
	said "$1.follow" "the job goes on"
	said "$1.watch" "job $1 goes on"
}
stop() { curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null || fleet_fail "cannot stop"; }

# --- devices that lack something, or fail at it
submit nothing 's/"digits"/"cifar"/'
stuck nothing no-data "needs 2 reports, and 0 can come; 2 wait \\(no-data 2\\)" "give devices the data set"
counted 1 0 no-data
stop
submit torn 's/"local"/"trainer": "broken", "local"/; s/3600/5/'
stuck torn gave-up "2 gave up \\(trainer-failed 2\\)" "last words"
counted 1 0 gave-up
opened() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['open']['reopened']")" -ge "$1" ]; }
within 30 opened 2 || fleet_fail "the round is not opened again"
once torn.follow "the job is"
once rivuletd.log "job.stuck job=$JOB"
run 0 fleet_admin job show torn
says "^reopened +[2-9]" "^deadline +2.*Z, [0-9]+ s from now" "^quorum +2" "^one gave up round 1: trainer-failed"
stop
counted 0 0 ""

# --- too slow for the deadline
submit slow 's/"local"/"trainer": "asleep", "local"/; s/3600/1.5/'
stuck slow too-slow "(opened again 3 times with 0 of 2 reports; 2 tasks were not answered within 1.5 s|gave up \\(deadline)" "longer round.deadline_s"
run 0 fleet_admin job set slow round.deadline_s=3600
works() { fleet_admin job show slow | grep -qE "^works +(one|two), got its task [0-9]+ s ago"; }
within 20 works || fleet_fail "job show does not say who works: $(fleet_admin job show slow)"
stop

# --- paused by hand: the whole reason, not in the number of those that need somebody
submit rest 's/"steps": 1,/"steps": 2,/'
run 0 fleet_admin job pause rest
stuck rest paused "paused by hand" "job resume" paused
counted 0 1 paused
run 0 fleet_admin job resume rest
moves rest
stop

# --- the devices' owners, and an administrator
sed -i 's/^threads = 1/&\n[eligibility]\ncheck = false/' "$FLEET/one/rivulet.conf" "$FLEET/two/rivulet.conf"
agents
submit owned ""
stuck owned owner-limits "needs 2 reports, and 0 can come; 2 (wait|gave up) \\(check 2\\)" "owners"
sed -i '/^\[eligibility\]/d; /^check = false/d' "$FLEET/one/rivulet.conf" "$FLEET/two/rivulet.conf"
agents
moves owned
stop
submit shut ""
fleet_admin device suspend one two >/dev/null || fleet_fail "cannot suspend"
stuck shut suspended "[01] can come; 2 are suspended" "device resume"
fleet_admin device resume one two >/dev/null || fleet_fail "cannot resume"
moves shut
stop

# --- what the coordinator itself lacks: its evaluation's data, and a model
submit judged 's/"stop"/"evaluate": {"by": "coordinator", "data": "test"}, "stop"/'
within 20 job_in running
sed -i '/^\[data test\]/,$d' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
stuck judged no-evaluation 'the coordinator has no data set "test"' "evaluate.data"
fleet_kill TERM "$DAEMON_PID"
sqlite="import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute('SELECT lower(hex(base)) FROM round WHERE state = ? ORDER BY opened_at DESC', ('open',)).fetchone()[0])"
base=$(python3 -c "$sqlite" "$FLEET/state/rivulet.db") || fleet_fail "no base"
mv "$FLEET/state/models/$base" "$FLEET/kept"
fleet_restart
within 30 is_stuck set-aside || fleet_fail "without its model: $(curl_admin "/v1/jobs/$JOB")"
run 0 fleet_admin status
says "^job judged cannot move \\(set-aside\\): .*model $(echo "$base" | cut -c 1-8).*No such file.*; what to do: put back"
within 20 grep -qE "the job is paused: model .*put back" "$FLEET/judged.follow" || fleet_fail "follow: $(cat "$FLEET/judged.follow")"
counted 1 0 set-aside
# The file is back: the job goes on, and is counted no more.
mv "$FLEET/kept" "$FLEET/state/models/$base"
mended() { curl_admin /v1/status | pick "'set-aside' not in d['stuck']['kinds'] and all(j['state'] == 'running' for j in d['jobs'] if j['name'] == 'judged')" | grep -qx True; }
within 60 mended || fleet_fail "with its model again: $(curl_admin "/v1/jobs/$JOB")"
echo "$FLEET_NAME: $CHECKS checks"
