#!/bin/sh
# stages: gcc openssl address thread
# Three devices, a small job, two rounds: what the coordinator then says of them, and that nothing is left behind.
set -u
FLEET_NAME=11-round
. tests/e2e/common.sh

fleet_start "
[data digits]
format = glyphs
seed = 1
count = 500"
for i in 1 2 3; do
	glyph_device "device$i" $i $((100 * i))
	fleet_run "device$i"
done
glyph_job "$FLEET/job.json" round 3 2
sed -i 's/"stop"/"evaluate": {"by": "coordinator", "data": "digits"}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
[ "$JOB" = "$(sha256sum "$FLEET/job.json" | cut -c 1-32)" ] || fleet_fail "job id $JOB is not the document's hash"
job_done 30

# Parameters: (784 + 1) x 50 + (50 + 1) x 10, as f32; one leaf of 32 bytes is no payload.
bytes=$(((785 * 50 + 51 * 10) * 4))
curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds" || fleet_fail "no rounds: $(cat "$FLEET/rounds")"
pick "[r['round'] for r in d['rounds']] == [1, 2] and
	all(r['state'] == 'committed' and r['reports'] == 3 and r['examples'] == 600 and r['bytes_up'] >= 3 * $bytes
	    for r in d['rounds']) and
	d['rounds'][1]['base'] == d['rounds'][0]['model'] and d['rounds'][1]['model'] == '$MODEL' and
	d['rounds'][1]['loss'] < d['rounds'][0]['loss'] and
	d['rounds'][1]['evaluate']['examples'] == 500 and d['rounds'][1]['evaluate']['accuracy'] > 0.2" <"$FLEET/rounds" |
	grep -qx True || fleet_fail "rounds: $(cat "$FLEET/rounds")"
curl_admin "/v1/jobs/$JOB/rounds/2" >"$FLEET/round"
pick "sorted((r['name'], r['examples'], r['steps'], r['bytes'] >= $bytes) for r in d['devices']) ==
	[('device1', 100, 10, True), ('device2', 200, 20, True), ('device3', 300, 30, True)]" <"$FLEET/round" |
	grep -qx True || fleet_fail "round 2: $(cat "$FLEET/round")"
curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed'] == 2 and d['open'] is None and d['metric']['round'] == 2" |
	grep -qx True || fleet_fail "job: $(curl_admin "/v1/jobs/$JOB")"
[ "$(sha256sum <"$FLEET/state/models/$MODEL" | cut -d ' ' -f 1)" = "$MODEL" ] ||
	fleet_fail "the model's file is not what its id says: $(ls "$FLEET/state/models")"
within 10 spool_empty || fleet_fail "left in the spool: $(ls "$FLEET/state/spool")"
uncounted() { [ "$(curl_admin /v1/status | pick "d['spool']['bytes']")" = 0 ]; }
within 10 uncounted || fleet_fail "the spool counts bytes that are gone"
for i in 1 2 3; do
	sent() { [ -z "$(ls -A "$FLEET/device$i/outbox")" ]; }
	within 10 sent || fleet_fail "left in the outbox of device$i"
done
fleet_end
echo "2 rounds of 3 devices, model $MODEL"
