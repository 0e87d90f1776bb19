#!/bin/sh
# stages: gcc openssl address
# What a device does when things go wrong around a delta: a refusal of the device itself costs no work, one of the delta
# does not make it hurry, a receipt must be signed, a delta the coordinator cannot take leaves time for other jobs, a cached
# model is not believed, nor what it says of a job that the owner's list is asked about, a full disk does not run ahead of the delta.
set -u
FLEET_NAME=43-faults
. tests/e2e/common.sh

fleet_start
rules=$FLEET/rules log=$FLEET/requests
: >"$rules"
: >"$log"
python3 -S -E tests/tools/faulty_coordinator.py "$FLEET/state" "$FLEET/dev" "$PORT" "$rules" "$log" >"$FLEET/proxy-port" 2>"$FLEET/proxy.log" &
proxy=$!
FLEET_PIDS="$FLEET_PIDS $proxy"
proxy_ready() { [ -s "$FLEET/proxy-port" ]; }
within 20 proxy_ready || fleet_fail "the proxy did not start"
direct=$URL
URL=https://localhost:$(cat "$FLEET/proxy-port")
glyph_device dev 1 100
URL=$direct

faults() { # faults RULE...: from now on; no request sees half of it
	printf '%s\n' "$@" | sed '/^$/d' >"$rules.new"
	mv "$rules.new" "$rules"
	: >"$log"
}
puts() { # puts STATUS: how many deltas were answered so since the last change of faults
	grep -c "PUT /v1/deltas/.* $1\$" "$log"
}
put_twice() { [ "$(puts "$1")" -ge 2 ]; }
waiting() { find "$FLEET/dev/outbox" -name '*.delta' | wc -l; }
nothing_waits() { [ "$(waiting)" -eq 0 ]; }
submit() { # submit NAME [SED_SCRIPT]: one round, one device
	glyph_job "$FLEET/job.json" "$1" 1 1
	sed -i "${2:-}" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
once() { # one task in the foreground
	timeout $((60 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/dev" --once 2>>"$FLEET/full.log"
}
stop_agent() { fleet_kill TERM "$AGENT_PID"; }

# --- refusals that are about the device: the same delta is taken when the matter is mended
for word in expired-certificate device-suspended unknown-device; do
	faults "PUT /v1/deltas/ 403 $word"
	submit "$word"
	fleet_run dev
	within 30 put_twice 403 || fleet_fail "$word: the delta was sent $(puts 403) times"
	[ "$(waiting)" -eq 1 ] || fleet_fail "$word: $(waiting) deltas wait"
	faults ""
	job_done 60
	within 20 nothing_waits || fleet_fail "$word: a delta stays after its receipt"
	stop_agent
done
grep -q 'delta.accepted.*receipt=verified' "$FLEET/dev.log" || fleet_fail "no receipt was verified"

# --- a receipt with another signature is none
faults "PUT /v1/deltas/ spoil 100"
submit signature
fleet_run dev
within 30 put_twice 201 || fleet_fail "a receipt that does not verify was believed"
[ "$(waiting)" -eq 1 ] || fleet_fail "$(waiting) deltas wait for a good receipt"
grep -q "delta.kept.*signature does not verify" "$FLEET/dev.log" || fleet_fail "nobody is told about the receipt"
faults ""
job_done 60
within 60 nothing_waits || fleet_fail "the good receipt did not end the delta"
stop_agent

# --- a home that joined an older coordinator goes on as before; a newer one mends it
mv "$FLEET/dev/signer.pem" "$FLEET/signer.pem"
faults "PUT /v1/deltas/ spoil 100" "POST /v1/renew 404 not-found"
submit older
fleet_run dev
job_done 60
within 20 nothing_waits || fleet_fail "without signer.pem: a delta stays"
grep -q 'delta.accepted.*receipt=unchecked' "$FLEET/dev.log" || fleet_fail "without signer.pem: the receipt was verified by whom?"
grep -q 'certificate.renew-failed cause=signer' "$FLEET/dev.log" || fleet_fail "nobody asked for the signer's certificate"
stop_agent
faults ""
submit mended
fleet_run dev
job_done 60
grep -q 'certificate.renewed cause=signer' "$FLEET/dev.log" || fleet_fail "the signer's certificate was not brought"
cmp -s "$FLEET/dev/signer.pem" "$FLEET/signer.pem" || fleet_fail "signer.pem is not what joining brought"
stop_agent
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=other -days 2 \
	-keyout "$FLEET/other.key" -out "$FLEET/dev/signer.pem" 2>/dev/null || fleet_fail "openssl req"
"$RIVULET" run --home "$FLEET/dev" --once 2>"$FLEET/other.log"
status=$?
[ $status -eq 78 ] && grep -q "not certified" "$FLEET/other.log" || fleet_fail "a strange signer.pem: $status, $(cat "$FLEET/other.log")"
mv "$FLEET/signer.pem" "$FLEET/dev/signer.pem"

# --- where the owner lets some jobs alone use the data, neither a job's name nor its recipe is the coordinator's to say
cp "$FLEET/dev/rivulet.conf" "$FLEET/open.conf"
echo "allow_jobs = trusted*" >>"$FLEET/dev/rivulet.conf"
faults "POST /v1/tasks swap \"epochs\":1 \"epochs\":3"
submit trusted
curl_admin "/v1/jobs/$JOB/document" | cmp -s - "$FLEET/job.json" || fleet_fail "the document is not what was submitted"
fleet_run dev
job_done 60
grep "trained job=$JOB" "$FLEET/dev.log" | grep -q " steps=10 " || fleet_fail "a recipe that is not the job's: $(grep trained "$FLEET/dev.log" | tail -1)"
echo '{"job": "00000000000000000000000000000000", "name": "trusted"}' >"$FLEET/lie"
faults "GET /v1/jobs/ 200 file $FLEET/lie"
submit other
refused() { grep "task.aborted.*reason=refused" "$FLEET/dev.log" | grep -q "$1"; }
within 20 refused "has another hash" || fleet_fail "a name that the coordinator made up: $(tail -2 "$FLEET/dev.log")"
faults ""
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "stop"
submit another
within 20 refused "does not let this job use data" || fleet_fail "a job of another name: $(tail -2 "$FLEET/dev.log")"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "stop"
stop_agent
cp "$FLEET/open.conf" "$FLEET/dev/rivulet.conf"

# --- a delta that the coordinator cannot take waits while another job is served
faults "PUT /v1/deltas/ 507 no-space first"
submit blocked
blocked=$JOB
fleet_run dev
within 30 put_twice 507 || fleet_fail "no delta was refused with 507"
submit urgent 's/"seed"/"priority": 5, "seed"/'
job_done 60
submit patiently 's/"seed"/"priority": -5, "seed"/'
job_done 60
# The other's goes with its receipt, which may come after its job is done.
one_waits() { [ "$(waiting)" -eq 1 ]; }
within 20 one_waits || fleet_fail "$(waiting) deltas wait for room at the coordinator"
faults ""
JOB=$blocked
job_done 120
within 20 nothing_waits || fleet_fail "a delta stays after there is room again"
stop_agent

# --- a delta refused again and again: the device does not hurry
faults "PUT /v1/deltas/ 400 norm-too-large"
submit patient
fleet_run dev
within 30 put_twice 400 || fleet_fail "no delta was refused"
sleep 6
count=$(puts 400)
[ "$count" -le 20 ] || fleet_fail "$count refused deltas in a few seconds"
# Between two tries: a delta that was kept would end the job below without its model.
within 20 nothing_waits || fleet_fail "a refused delta stays"
stop_agent

# --- a byte of the cached base model changed: it is fetched again
for file in "$FLEET"/dev/models/*.safetensors; do
	python3 -S -E -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-1, 2)
    byte = f.read(1)[0]
    f.seek(-1, 2)
    f.write(bytes([byte ^ 1]))' "$file"
done
faults ""
fleet_run dev
job_done 60
grep -q "model.damaged" "$FLEET/dev.log" || fleet_fail "a spoiled model was not noticed"
base=$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick 'd["base"]')
[ "$(sha256sum <"$FLEET/dev/models/$base.safetensors")" = "$base  -" ] || fleet_fail "the spoiled model stays in the cache"
grep -q "GET /v1/models/$base 200" "$log" || fleet_fail "the model was not fetched again"
stop_agent

# --- the disk is full: the local tensors do not run ahead of a delta that could not be kept
cp "$FLEET/dev/rivulet.conf" "$FLEET/full.conf"
printf '[limits]\noutbox_bytes = 1K\n' >>"$FLEET/dev/rivulet.conf"
own='s/"data"/"tensors": {"fc2.bias": "local"}, "data"/'
submit disk-full "$own"
once && fleet_fail "a delta came out of a full outbox"
grep -q "outbox_bytes is used up" "$FLEET/full.log" || fleet_fail "the outbox was not full"
[ ! -e "$FLEET/dev/local/$JOB.weights" ] || fleet_fail "the local tensors were kept without a delta"
cp "$FLEET/full.conf" "$FLEET/dev/rivulet.conf"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "job stop"
submit room "$own"
once || fleet_fail "a round with local tensors"
job_done 60
[ -s "$FLEET/dev/local/$JOB.weights" ] || fleet_fail "the local tensors were not kept"
rm -r "$FLEET/dev/local"
: >"$FLEET/dev/local"
submit no-local "$own"
once || fleet_fail "a delta is lost with the local tensors"
job_done 60
grep -q "local.failed" "$FLEET/full.log" || fleet_fail "nobody is told that local tensors could not be kept"

fleet_kill KILL "$proxy"
fleet_end
echo "deltas, receipts and models survive their faults; $count refusals in a few seconds"
