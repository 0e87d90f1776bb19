#!/bin/sh
# stages: gcc openssl address
# GET /metrics beside a training, a buffered, a paused and a finished job: its format, who may read it and where, and that what it counts is
# what happened. What docs/metrics.md names is there, and what is there it names.
#   BUILD=build/mbedtls tests/e2e/242-metrics.sh
set -u
FLEET_NAME=242-metrics
. tests/e2e/common.sh

metrics() { curl_admin /metrics >"$FLEET/metrics"; }
# value SERIES: as /metrics has it
value() { awk -v s="$1 " 'index($0, s) == 1 { print substr($0, length(s) + 1) }' "$FLEET/metrics"; }
# want SERIES VALUE
want() {
	[ "$(value "$1")" = "$2" ] || fleet_fail "$1 is \"$(value "$1")\", not $2"
}
some() { [ "$(value "$1" | cut -d. -f1)" -gt 0 ] 2>/dev/null || fleet_fail "$1 is \"$(value "$1")\""; }
at_least() { metrics && [ "$(value "$1")" -ge "$2" ] 2>/dev/null; }

fleet_start "probe_listen = 127.0.0.1:0"
PROBE=http://127.0.0.1:$(cat "$FLEET/state/probe_port")
# What is counted is there with 0 before anything happened.
metrics || fleet_fail "no /metrics"
for series in 'rivulet_jobs{state="running"}' 'rivulet_jobs_stuck{kind="no-devices"}' 'rivulet_tasks_aborted_total{reason="trainer-failed"}' \
	'rivulet_http_refusals_total{error="bad-token"}' 'rivulet_deltas_total{codec="int8"}' 'rivulet_tls_handshakes_total{result="other-ca"}' \
	'rivulet_not_ready{reason="disk-full"}' 'rivulet_clock_doubted{reason="clock-stepped"}' 'rivulet_round_seconds_bucket{le="13107.2"}' \
	'rivulet_http_responses_total{route="PUT /v1/deltas/{}",class="2xx"}' 'rivulet_metrics_jobs_omitted'; do
	want "$series" 0
done
want rivulet_ready 1

glyph_device ann 1 60
glyph_device ben 2 60
glyph_job "$FLEET/done.json" finished 2 2
job_submit "$FLEET/done.json"
DONE=$JOB
glyph_job "$FLEET/paused.json" paused 2 9
job_submit "$FLEET/paused.json"
PAUSED=$JOB
curl_admin "/v1/jobs/$PAUSED/pause" -X POST >/dev/null || fleet_fail pause
fleet_run ann
fleet_run ben
JOB=$DONE
job_done 60
sed 's/"round": {/"round": {"mode": "buffered", /; s/"name": "paused"/"name": "buffered"/; s/"rounds": 9/"rounds": 100000/' "$FLEET/paused.json" >"$FLEET/buffered.json"
job_submit "$FLEET/buffered.json"
BUFFERED=$JOB
sed 's/"name": "paused"/"name": "training"/; s/"rounds": 9/"rounds": 100000/' "$FLEET/paused.json" >"$FLEET/training.json"
job_submit "$FLEET/training.json"
TRAINING=$JOB
within 60 at_least "rivulet_job_rounds_committed_total{job_id=\"$TRAINING\"}" 1 || fleet_fail "no round of the training job in /metrics"
within 60 at_least "rivulet_job_rounds_committed_total{job_id=\"$BUFFERED\"}" 1 || fleet_fail "no round of the buffered job in /metrics"

# The disk is looked at by another thread.
within 30 at_least rivulet_disk_free_bytes 1 || fleet_fail "rivulet_disk_free_bytes is $(value rivulet_disk_free_bytes)"
want "rivulet_job_state{job_id=\"$DONE\",state=\"done\"}" 1
want "rivulet_job_state{job_id=\"$DONE\",state=\"running\"}" 0
want "rivulet_job_rounds_committed_total{job_id=\"$DONE\"}" 2
want "rivulet_job_state{job_id=\"$PAUSED\",state=\"paused\"}" 1
want "rivulet_job_stuck{job_id=\"$PAUSED\"}" 0
want 'rivulet_jobs{state="running"}' 2
want 'rivulet_jobs_stuck{kind="paused"}' 1
want 'rivulet_devices{state="active"}' 2
want rivulet_devices_seen 2
some 'rivulet_deltas_total{codec="f32"}'
some 'rivulet_delta_staleness_rounds_count'
some 'rivulet_report_delay_seconds_count'
some 'rivulet_round_seconds_count'
some 'rivulet_downloads_total{source="whole"}'
some 'rivulet_http_responses_total{route="PUT /v1/deltas/{}",class="2xx"}'
some 'rivulet_tls_handshakes_total{result="full"}'
some process_resident_memory_bytes
some process_open_fds
grep -q '^rivulet_job_info{job_id="'"$DONE"'",name="finished"} 1$' "$FLEET/metrics" ||
	fleet_fail "the job's name: $(grep "rivulet_job_info{job_id=\"$DONE" "$FLEET/metrics")"
! grep -qE '(job|instance)="|"(ann|ben)"' "$FLEET/metrics" || fleet_fail "a label or a name that must not be there"
if command -v promtool >/dev/null; then
	promtool check metrics <"$FLEET/metrics" >"$FLEET/promtool" 2>&1 && [ ! -s "$FLEET/promtool" ] || fleet_fail "promtool: $(cat "$FLEET/promtool")"
fi

# Who may read: readers and the role metrics, which may read nothing else.
token() { curl_admin /v1/tokens -d "{\"role\": \"$1\", \"access\": true}" | pick 'd["token"]'; }
cp "$FLEET/ann/ca.pem" "$FLEET/ca.pem"
ask() { # ask TOKEN PATH: the status
	curl -sS -o "$FLEET/answer" -w '%{http_code}' --max-time 20 --cacert "$FLEET/ca.pem" -H "Authorization: Bearer $1" "$URL$2"
}
METRICS=$(token metrics) READER=$(token reader)
[ "$(ask "$METRICS" /metrics)" = 200 ] || fleet_fail "the role metrics: $(cat "$FLEET/answer")"
[ "$(ask "$METRICS" /readyz)" = 200 ] || fleet_fail "the role metrics and /readyz: $(cat "$FLEET/answer")"
for path in /v1/status /v1/jobs "/v1/jobs/$DONE" /v1/devices /v1/audit /v1/fleet /v1/tokens; do
	[ "$(ask "$METRICS" "$path")" = 403 ] || fleet_fail "the role metrics at $path: $(cat "$FLEET/answer")"
done
[ "$(ask "$READER" /metrics)" = 200 ] || fleet_fail "a reader: $(cat "$FLEET/answer")"
[ "$(curl -sS -o /dev/null -w '%{http_code}' --cacert "$FLEET/ca.pem" --cert "$FLEET/ann/cert.pem" --key "$FLEET/ann/key.pem" "$URL/metrics")" = 403 ] ||
	fleet_fail "a device may read /metrics"

# On the probe listener only if the operator says so.
probe() { curl -sS -o "$FLEET/answer" -w '%{http_code}' --max-time 20 "$PROBE/metrics"; }
[ "$(probe)" = 404 ] || fleet_fail "the probe listener has /metrics: $(cat "$FLEET/answer")"
printf '[metrics]\nplain = yes\n' >>"$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
plain() { [ "$(probe)" = 200 ]; }
within 20 plain || fleet_fail "plain = yes: $(cat "$FLEET/answer")"
grep -q '^rivulet_ready 1$' "$FLEET/answer" || fleet_fail "the probe listener's /metrics"
[ "$(curl -sS -o /dev/null -w '%{http_code}' "$PROBE/v1/status")" = 404 ] || fleet_fail "the probe listener has more"

# Names in the docs and names in the world.
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$FLEET/metrics" | sort >"$FLEET/live"
grep -oE '^\| `(rivulet|process)_[a-z_]+' docs/metrics.md | tr -d '|` ' | grep -v '^rivulet_agent_' | sort >"$FLEET/told"
diff "$FLEET/live" "$FLEET/told" >"$FLEET/diff" || fleet_fail "docs/metrics.md (>) and /metrics (<) differ: $(cat "$FLEET/diff")"

# /v1/status has the same figures under its old names.
curl_admin /v1/status | pick '"%d %d" % (d["reports"]["registry"]["active"], d["reports"]["engine"]["jobs"]["paused"])' >"$FLEET/old"
[ "$(cat "$FLEET/old")" = "2 1" ] || fleet_fail "reports of /v1/status: $(cat "$FLEET/old")"
echo "metrics: $(wc -l <"$FLEET/live") metrics, $(grep -vc '^#' "$FLEET/metrics") series, $(wc -c <"$FLEET/metrics") bytes"
fleet_end
