#!/bin/sh
# Memory before a task: a device that cannot hold a job downloads nothing of it, says so, and is asked again once its offer changes; others
# go on. What a plan says is what devices that train then take: on a small convolution, a residual network, an LSTM and MobileNetV2.
set -u
FLEET_NAME=68-memory
. tests/e2e/common.sh

fleet_start
for n in 1 2; do
	glyph_device device$n $n 60
done
job() { # job NAME WIDTH: of one report a round
	glyph_job "$FLEET/job.json" "$1" 1 "$3"
	sed -i "s/\"out\": 50/\"out\": $2/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
shown() { curl_admin "$1" | pick "$2"; }
cp "$FLEET/device1/rivulet.conf" "$FLEET/plain"

# --- the small one alone: it says no, and nobody has the task
printf '[limits]\nmemory_bytes = 4M\n' >>"$FLEET/device1/rivulet.conf"
fleet_run device1
small=$AGENT_PID
job wide 1500 2
refused() { [ "$(shown "/v1/jobs/$JOB" "len(d['refused'])")" = 1 ]; }
within 30 refused || fleet_fail "device1 did not refuse: $(curl_admin "/v1/jobs/$JOB")"
need=$(shown "/v1/jobs/$JOB" "d['refused'][0]['needed_bytes']")
[ "$(shown "/v1/jobs/$JOB" "'%(name)s %(reason)s %(kind)s %(memory_bytes)d' % d['refused'][0]")" = "device1 out-of-memory train 4194304" ] ||
	fleet_fail "refused: $(curl_admin "/v1/jobs/$JOB")"
# 1,192,510 weights; at the worst, while the delta is made, as they are, as the file has them, and both as vectors.
[ "$need" -gt $((4 * 4 * 1192510)) ] && [ "$need" -lt $((4 * 4 * 1192510 + 4000000)) ] || fleet_fail "needs $need bytes"
waits() { [ "$(shown "/v1/jobs/$JOB" "d['devices']['waiting'].get('out-of-memory')")" = 1 ]; }
within 30 waits || fleet_fail "it does not wait: $(curl_admin "/v1/jobs/$JOB")"
run 0 fleet_admin job show "$JOB"
says "^refused by device1: out-of-memory, $need bytes for a task and 4194304 there" "1 wait \(out-of-memory 1\)"
run 0 fleet_admin device show device1
says "^refuses the job  *wide: out-of-memory, $need bytes" "^reason  *out-of-memory"
run 0 "$RIVULET" doctor --home "$FLEET/device1"
says "waiting out-of-memory: a task of job $(echo "$JOB" | cut -c1-8) takes $need bytes, and 4194304 are allowed here"
# Asked once, and never again for the same offer, whatever else changes.
given() { grep -c '"event":"task.received"\|event=task.received\|task\.received' "$FLEET/device1.log"; }
first=$(given)
[ "$first" = 1 ] || fleet_fail "device1 had $first tasks"

# --- another one does the job, and only it downloads
fleet_run device2
job_done 60
[ "$(given)" = "$first" ] || fleet_fail "device1 was asked again"
[ -z "$(find "$FLEET/device1" -name '*.safetensors' -o -path '*/models/*' -type f)" ] || fleet_fail "device1 has a model: $(ls -R "$FLEET/device1")"
model=$(shown "/v1/jobs/$JOB" "d['model_bytes']")
[ "$(shown "/v1/jobs/$JOB/rounds" "max(r['bytes_down'] for r in d['rounds'])")" -lt $((model * 3 / 2)) ] ||
	fleet_fail "more than one model went out: $(curl_admin "/v1/jobs/$JOB/rounds")"

# --- a smaller job is no matter to it
glyph_job "$FLEET/job.json" narrow 2 1
job_submit "$FLEET/job.json"
job_done 60

# --- with more memory its offer is another one
glyph_job "$FLEET/job.json" again 2 1
sed -i 's/"out": 50/"out": 1500/; s/"seed": 7/"seed": 8/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
within 30 refused || fleet_fail "device1 did not refuse again"
sed -i 's/^memory_bytes = .*/memory_bytes = 64M/' "$FLEET/device1/rivulet.conf"
kill -HUP "$small"
job_done 60
[ "$(shown "/v1/devices/device1" "len(d['refused'])")" = 0 ] || fleet_fail "still refused: $(curl_admin /v1/devices/device1)"
[ "$(shown "/v1/jobs/$JOB/rounds" "d['rounds'][0]['reports']")" = 2 ] || fleet_fail "not both reported"
fleet_kill TERM "$small"
fleet_end
echo "$CHECKS checks"
