#!/bin/sh
# stages: gcc address
# Which models stay, what status says is used, and whether the forecast of the rest of a job comes true. The device's cache keeps
# to its size.
set -u
FLEET_NAME=342-retention
. tests/e2e/common.sh

fleet_start "
[limits]
long_poll = 1
[retention]
keep_last = 2
keep_every = 5"
glyph_device dev 1 100
printf '[limits]\ncache_bytes = 400K\n' >>"$FLEET/dev/rivulet.conf" # two models of this job
rounds=17

disk() { curl_admin /v1/status | pick "$1"; }
model_of() { curl_admin "/v1/jobs/$JOB/rounds/$1" | pick 'd["model"]'; }

glyph_job "$FLEET/job.json" keep 1 $rounds
sed -i 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}},\n "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
before=$(disk 'd["disk"]["models"]')
forecast=$(disk 'd["forecast"]["jobs"][0]["models"]')
spool=$(disk 'd["forecast"]["jobs"][0]["spool"]')
[ "$(disk 'd["forecast"]["jobs"][0]["rounds_left"]')" = $rounds ] || fleet_fail "$(curl_admin /v1/status)"
[ "$(disk 'd["forecast"]["fits"] and d["disk"]["model_files"] == 1')" = True ] || fleet_fail "$(curl_admin /v1/status)"
payload=$((39760 * 4))
if [ "$spool" -lt $payload ] || [ "$spool" -gt $((payload + 65536)) ]; then
	fleet_fail "the spool's forecast is $spool"
fi

fleet_run dev
job_done 60
cleaned() { [ "$(disk 'd["disk"]["model_files"]')" -eq 6 ]; }
# The first, 5, 10, 15, and the newest two: 16, 17. The state of the last round has served.
within 10 cleaned || fleet_fail "$(ls "$FLEET/state/models"), $(curl_admin /v1/status)"
for n in 5 10 15 16 17; do
	[ -f "$FLEET/state/models/$(model_of $n)" ] || fleet_fail "the model of round $n is gone"
done
[ ! -e "$FLEET/state/models/$(model_of 14)" ] || fleet_fail "the model of round 14 is kept"
after=$(disk 'd["disk"]["models"]')
# It speaks of the worst moment: one model and two states more than there are in the end.
[ $((after - before)) -le "$forecast" ] || fleet_fail "forecast $forecast, taken $((after - before))"
[ $((after - before + 4 * payload)) -ge "$forecast" ] || fleet_fail "forecast $forecast, taken only $((after - before))"
[ "$(disk 'd["forecast"]["bytes"]')" = 0 ] || fleet_fail "a job that is done needs more: $(curl_admin /v1/status)"
spool_gone() { [ "$(disk 'd["disk"]["spool"]')" = 0 ]; }
within 10 spool_gone || fleet_fail "the spool is not empty"
fleet_kill TERM "$AGENT_PID"

# --- the device's cache
[ "$(du -b "$FLEET/dev/models" | cut -f1)" -le $((400 * 1024 + 4096)) ] || fleet_fail "the cache: $(ls -l "$FLEET/dev/models")"
[ "$(find "$FLEET/dev/models" -type f | wc -l)" -eq 2 ] || fleet_fail "the cache: $(ls -l "$FLEET/dev/models")"

# --- a released model outlives what would remove it: uploading it again says that it is wanted
glyph_job "$FLEET/job.json" release 1 12
job_submit "$FLEET/job.json"
"$RIVULET" run --home "$FLEET/dev" --rounds 2 2>>"$FLEET/dev.log" || fleet_fail "two rounds"
first=$(model_of 1)
fleet_admin model get "$first" -o "$FLEET/first.safetensors" >"$FLEET/got" || fleet_fail "model get"
fleet_admin model put "$FLEET/first.safetensors" >"$FLEET/put" || fleet_fail "model put"
fleet_run dev
job_done 60
[ -f "$FLEET/state/models/$first" ] || fleet_fail "the released model is gone"
[ ! -e "$FLEET/state/models/$(model_of 3)" ] || fleet_fail "the model of round 3 is kept"
run 3 fleet_admin model get release --round 3 -o "$FLEET/third"
says "model $(model_of 3 | cut -c 1-12) is no longer kept \\(\\[retention\\], the job's \"keep\"\\)"
run 3 fleet_admin model get "$(model_of 3)" -o "$FLEET/third"
says "no such model: none was here, or it is no longer kept"
run 6 fleet_admin job evaluate "$(model_of 3)" --like release
says "model.init: there is no such model here: upload it; one that a round made is no longer kept"
python3 -E -c 'import sys
sys.path.insert(0, "python")
from rivulet.coordinator import Coordinator
Coordinator(socket=sys.argv[1]).model_file("release", sys.argv[2], round=3)' "$FLEET/admin.sock" "$FLEET/third" 2>"$FLEET/said" && fleet_fail "Python has it"
grep -q "is no longer kept" "$FLEET/said" || fleet_fail "Python says: $(cat "$FLEET/said")"
fleet_kill TERM "$AGENT_PID"

# --- orphans of a crash go at the start
touch "$FLEET/state/models/tmp.99" "$FLEET/state/spool/00112233445566778899aabbccddeeff.part"
cp "$FLEET/first.safetensors" "$FLEET/state/models/$(printf x | sha256sum | cut -d' ' -f1)"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
[ "$(disk 'd["disk"]["model_files"]')" -eq "$(curl_admin /v1/status | pick '6 + 1 + 5')" ] ||
	fleet_fail "left over: $(ls "$FLEET/state/models" "$FLEET/state/spool")"
spool_empty || fleet_fail "left over: $(ls "$FLEET/state/spool")"

# --- a job that will not fit: a warning in status and in the log
sed 's/"rounds": 12/"rounds": 900000000/; s/"release"/"endless"/' "$FLEET/job.json" >"$FLEET/endless.json"
job_submit "$FLEET/endless.json"
[ "$(disk 'd["forecast"]["fits"]')" = False ] || fleet_fail "it fits: $(curl_admin /v1/status)"
fleet_admin status | grep -q "^warning: job endless alone needs" || fleet_fail "$(fleet_admin status)"
warned() { grep -q "warn disk.forecast need=" "$FLEET/rivuletd.log"; }
within 30 warned || fleet_fail "no warning in the log"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "job stop"
fits() { grep -q "info disk.fits" "$FLEET/rivuletd.log"; }
within 30 fits || fleet_fail "the log does not tell that it fits again"
# Nobody but readers is told: the device has the same route.
curl -sS --cacert "$FLEET/dev/ca.pem" --cert "$FLEET/dev/cert.pem" --key "$FLEET/dev/key.pem" "$URL/v1/status" | pick '"disk" in d' | grep -qx False ||
	fleet_fail "a device is told what the disk holds"

# --- the quota holds tasks back, and the device is told why
fleet_kill TERM "$DAEMON_PID"
printf '[spool]\nquota = 330K\n' >>"$FLEET/rivuletd.conf" # two deltas
fleet_restart
glyph_job "$FLEET/quota.json" above 3 1
curl_admin /v1/jobs --data-binary "@$FLEET/quota.json" >"$FLEET/refused" 2>/dev/null && fleet_fail "a goal above the quota was taken"
for name in one two; do
	glyph_job "$FLEET/quota.json" $name 2 1
	job_submit "$FLEET/quota.json"
	eval "$name=\$JOB"
	"$RIVULET" run --home "$FLEET/dev" --rounds 1 2>>"$FLEET/dev.log" || fleet_fail "a round of job $name"
done
glyph_job "$FLEET/quota.json" three 1 1
sed -i 's/"seed"/"priority": 5, "seed"/' "$FLEET/quota.json"
job_submit "$FLEET/quota.json"
fleet_run dev
within 20 grep -q "waiting reason=spool-full" "$FLEET/dev.log" || fleet_fail "the device does not wait for room in the spool"
spool_full() { curl_admin /readyz 2>/dev/null | grep -q '"status":"not ready","reason":"spool-full"'; }
within 10 spool_full || fleet_fail "/readyz does not tell that the spool is full: $(curl_admin /readyz 2>/dev/null)"
fleet_admin status >"$FLEET/said"
[ $? -eq 1 ] && grep -q "not ready: spool-full" "$FLEET/said" || fleet_fail "nor does status: $(cat "$FLEET/said")"
# shellcheck disable=SC2154 # set by eval
fleet_admin job stop "$one" >/dev/null || fleet_fail "job stop"
job_done 60
ready() { curl_admin /readyz 2>/dev/null | grep -q '"status":"ready"'; }
within 10 ready || fleet_fail "there is room in the spool, and yet: $(curl_admin /readyz 2>/dev/null)"
fleet_end
echo "models of $rounds rounds: 6 stay; forecast $forecast bytes, $((after - before)) taken; the cache keeps two; what will not fit is said"
