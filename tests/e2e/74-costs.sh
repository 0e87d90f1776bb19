#!/bin/sh
# stages: gcc address
# What a submitter's documents cost the others: planning and submitting models of gigabytes takes no memory; what no round could hold is
# refused; a fold of a hundred million parameters, by one device with 25 KB, holds up no other job's rounds; told to end, the
# coordinator breaks off folds, drawing, hashing and evaluations within five seconds, and goes on with them after its next start.
#   FLEET_PARAMETERS=N  of the large model, default 100 million
set -u
FLEET_NAME=74-costs
. tests/e2e/common.sh
PEER=$BUILD/tests/tools/wire_peer
[ -x "$PEER" ] || skip "needs $PEER"
[ -z "${SAN:-}" ] || skip "sanitizers take memory of their own"
RESIDENT=$((256 * 1024)) # KiB that a coordinator may have whatever is planned
MOST=$((3 * 1024 * 1024)) # KiB of addresses, and half of that for folds: a model of 4 GB fits into neither
STOP_S=5

large=${FLEET_PARAMETERS:-100000000}
wide=4096
large=$((large / wide * wide))
layer() { # layer NAME OUTPUTS SEED MORE: a job of one layer of 4096 inputs without a bias, for the device "peer"
	cat <<-END
		{"name": "$1", "seed": $3, "model": {"layers": [{"type": "linear", "name": "fc", "out": $2, "bias": false}], "loss": "mse"},
		 "data": {"name": "wide", "shape": [$wide]}, "local": {"steps": 1, "batch": 1, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "select": {"devices": ["peer"]}, "upload": {"codec": "sparse", "share": 0.001, "feedback": false},
		 "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1000}$4}
	END
}
field() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$DAEMON_PID/status"; }
reset_peak() { echo 5 >"/proc/$DAEMON_PID/clear_refs"; }
code() { # code PATH FILE: the answer's status; its text is in said
	curl -s --max-time 300 -o "$FLEET/said" -w '%{http_code}' --unix-socket "$FLEET/admin.sock" "http://localhost$1" --data-binary "@$2"
}
all() { # all PATH FILE...: the answers of requests at one time
	all_path=$1
	shift
	all_pids=
	for all_file; do
		curl -s --max-time 300 -o /dev/null -w '%{http_code}\n' --unix-socket "$FLEET/admin.sock" "http://localhost$all_path" --data-binary "@$all_file" >"$all_file.code" &
		all_pids="$all_pids $!"
	done
	for all_pid in $all_pids; do wait "$all_pid"; done
	for all_file; do cat "$all_file.code"; done | sort | uniq -c | tr -s ' \n' ' '
}
now_ms() { date +%s%3N; }
# ends_soon WHAT: SIGTERM ends the coordinator within STOP_S, in order
ends_soon() {
	ends_from=$(now_ms)
	kill -TERM "$DAEMON_PID"
	wait "$DAEMON_PID" || fleet_fail "$1: the coordinator ended with $?"
	DAEMON_PID=
	ends_ms=$(($(now_ms) - ends_from))
	echo "SIGTERM during $1: $ends_ms ms"
	[ $ends_ms -le $((STOP_S * 1000 * TEST_SLOW)) ] || fleet_fail "$1: the end took $ends_ms ms"
}
logged() { grep -q -- "$1" "$FLEET/rivuletd.log"; }

# limited N: the coordinator starts again with N KiB of addresses
limited() {
	printf '#!/bin/sh\nulimit -v %s\nexec "%s" "$@"\n' "$1" "$RIVULETD" >"$FLEET/limited"
	chmod +x "$FLEET/limited"
	RIVULETD_WHOLE=$RIVULETD
	RIVULETD=$FLEET/limited
	fleet_restart
	RIVULETD=$RIVULETD_WHOLE
}
committed() { curl_admin "/v1/jobs/$1" | pick "d['rounds_committed']"; }
# report: the peer's next delta of the large job
report() {
	report_task=$(WIRE_DATA=wide "$PEER" ask "$FLEET/peer" "$PORT")
	case $report_task in wait*) return 1 ;; esac
	# shellcheck disable=SC2086 # four words
	"$PEER" put "$FLEET/peer" "$PORT" "sparse:$large" rush none $report_task | grep -q '^201 receipt' || fleet_fail "the delta was refused"
}

fleet_start "
[data heavy]
format = glyphs
count = 20000"
fleet_join peer
for i in 1 2; do glyph_device "device$i" "$i" 50; done

# --- planning and submitting: four at a time, of 4 GB and of a tenth
for i in 1 2 3 4; do
	layer huge 240000 "$i" "" >"$FLEET/huge$i.json"
	layer large $((large / wide)) "$i" "" >"$FLEET/large$i.json"
done
reset_peak
said=$(all /v1/plan "$FLEET/huge1.json" "$FLEET/huge2.json" "$FLEET/huge3.json" "$FLEET/huge4.json")
case $said in " 4 200 " | " 4 422 ") ;; *) fleet_fail "plans: $said" ;; esac
peak=$(field VmHWM)
echo "four plans of 3.9 GB: $said, peak $((peak / 1024)) MiB"
[ "$peak" -lt $RESIDENT ] || fleet_fail "planning took $peak KiB"
reset_peak
said=$(all /v1/jobs "$FLEET/large1.json" "$FLEET/large2.json" "$FLEET/large3.json" "$FLEET/large4.json")
[ "$said" = " 4 201 " ] || fleet_fail "submissions: $said"
peak=$(field VmHWM)
echo "four submissions of $((large / 250000)) MB: peak $((peak / 1024)) MiB"
[ "$peak" -lt $RESIDENT ] || fleet_fail "submitting took $peak KiB"
for i in 2 3 4; do
	JOB=$(sha256sum "$FLEET/large$i.json" | cut -c1-32)
	curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null && curl_admin "/v1/jobs/$JOB" -X DELETE >/dev/null || fleet_fail "the job stays"
done

# --- the same where it would be the end: 3 GiB of addresses, of which folds may have half
fleet_kill TERM "$DAEMON_PID"
limited $MOST
said=$(all /v1/plan "$FLEET/huge1.json" "$FLEET/huge2.json" "$FLEET/huge3.json" "$FLEET/huge4.json")$(
	all /v1/jobs "$FLEET/huge1.json" "$FLEET/huge2.json" "$FLEET/huge3.json" "$FLEET/huge4.json")
echo "with 3 GiB: $said"
[ "$said" = " 4 422  4 422 " ] || fleet_fail "with 3 GiB: $said"
[ "$(code /v1/plan "$FLEET/huge1.json")" = 422 ] && grep -q 'work_bytes' "$FLEET/said" || fleet_fail "the refusal does not name the limit: $(cat "$FLEET/said")"
kill -0 "$DAEMON_PID" || fleet_fail "the coordinator is gone"
fleet_kill TERM "$DAEMON_PID"
fleet_restart

# --- bounds of a fold
printf '[limits]\nfold_work = 500M\n' >>"$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
within 20 logged 'reload.done' || fleet_fail "no reload"
layer bounded $((large / wide)) 9 "" >"$FLEET/bounded.json"
[ "$(code /v1/jobs "$FLEET/bounded.json")" = 422 ] && grep -q 'fold_work' "$FLEET/said" || fleet_fail "above fold_work: $(cat "$FLEET/said")"
sed -i '/^\[limits\]/,$d' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"

# --- a large fold beside small ones
JOB=$(sha256sum "$FLEET/large1.json" | cut -c1-32)
curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null && curl_admin "/v1/jobs/$JOB" -X DELETE >/dev/null || fleet_fail "the job stays"
layer hostile $((large / wide)) 5 ', "aggregate": {"rule": {"name": "geometric_median", "hostile": 0, "iterations": 100}}' >"$FLEET/hostile.json"
job_submit "$FLEET/hostile.json"
hostile=$JOB
glyph_job "$FLEET/job.json" honest 2 100000
job_submit "$FLEET/job.json"
honest=$JOB
for i in 1 2; do fleet_run "device$i"; done
goes_on() { [ "$(committed "$honest")" -ge "$1" ]; }
within 60 goes_on 5 || fleet_fail "no honest rounds"
report || fleet_fail "the hostile job has no task"
folded() { [ "$(committed "$hostile")" -ge "$1" ]; }
began=$(now_ms) first=$(committed "$honest") most=0 seen=$first at=$(now_ms)
until folded 1; do
	now=$(committed "$honest")
	if [ "$now" -gt "$seen" ]; then seen=$now at=$(now_ms); fi
	waited=$(($(now_ms) - at))
	[ $waited -le $most ] || most=$waited
	[ $(($(now_ms) - began)) -lt $((120000 * TEST_PATIENCE)) ] || fleet_fail "the large round is not folded"
done
took=$(($(now_ms) - began))
rounds=$(($(committed "$honest") - first))
echo "a fold of $large parameters: $took ms, meanwhile $rounds honest rounds, none of which was waited for for longer than $most ms"
[ $most -lt $((2000 * TEST_SLOW)) ] || fleet_fail "an honest round took $most ms"
[ "$rounds" -ge 2 ] || fleet_fail "$rounds honest rounds while one was folded"

# --- told to end: while a large round is folded
report || fleet_fail "the hostile job has no second task"
sleep 0.3 # of a fold that takes seconds: any moment of it will do
folded 2 && fleet_fail "the fold was over too soon"
ends_soon "a fold"
for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done
FLEET_PIDS=

# --- while the large model is hashed, at the start
rm -f "$FLEET/state/port"
from=$(grep -c ' started ' "$FLEET/rivuletd.log")
"$RIVULETD" --config "$FLEET/rivuletd.conf" 2>>"$FLEET/rivuletd.log" &
DAEMON_PID=$!
reads() { [ "$(field VmRSS)" -gt 65536 ]; }
until reads; do kill -0 "$DAEMON_PID" || fleet_fail "the coordinator did not start"; done
[ "$(grep -c ' started ' "$FLEET/rivuletd.log")" = "$from" ] || fleet_fail "it had started before its model was hashed"
ends_soon "the hash of a model"
[ "$(grep -c ' started ' "$FLEET/rivuletd.log")" = "$from" ] || fleet_fail "it started first"
fleet_restart
within 120 folded 2 || fleet_fail "the round that was broken off is not folded"

# --- while a model is evaluated, by some ten million multiply-adds for each of 20000 examples
cat >"$FLEET/job.json" <<-END
	{"name": "measured", "seed": 7,
	 "model": {"layers": [{"type": "conv2d", "out": 32, "kernel": 5, "padding": 2}, {"type": "relu"}, {"type": "conv2d", "out": 64, "kernel": 5, "padding": 2},
	                      {"type": "relu"}, {"type": "flatten"}, {"type": "linear", "out": 10}], "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10}, "select": {"devices": ["device1"]},
	 "local": {"steps": 1, "batch": 1, "optimizer": {"name": "sgd", "rate": 0.1}},
	 "evaluate": {"by": "coordinator", "data": "heavy", "deadline_s": 3600}, "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1}}
END
curl_admin "/v1/jobs/$honest/stop" -X POST >/dev/null
job_submit "$FLEET/job.json"
fleet_run device1
given() { grep -q "delta.accepted job=$JOB" "$FLEET/device1.log"; }
within 60 given || fleet_fail "device1 has not reported"
sleep 1 # of many seconds
folded_now=$(committed "$JOB")
[ "$folded_now" = 0 ] || fleet_fail "the evaluation was over too soon"
ends_soon "an evaluation"
fleet_restart
curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null || fleet_fail "the measured job does not stop"
for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done
FLEET_PIDS=

# --- while a first model is drawn
layer drawn $((large / wide)) 6 "" >"$FLEET/drawn.json"
code /v1/jobs "$FLEET/drawn.json" >"$FLEET/code" &
curl_pid=$!
draws() { [ -n "$(find "$FLEET/state/models" -name 'tmp.*' -size +1M)" ]; }
until draws; do kill -0 "$curl_pid" || fleet_fail "drawn before it was seen"; done
ends_soon "drawing"
wait "$curl_pid"
fleet_restart
draws && fleet_fail "a part of a model is left"
JOB=$(sha256sum "$FLEET/drawn.json" | cut -c1-32)
curl_admin "/v1/jobs/$JOB" >/dev/null 2>&1 && fleet_fail "a job without a model"
job_submit "$FLEET/drawn.json"
fleet_end
