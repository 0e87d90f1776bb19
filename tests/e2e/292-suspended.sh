#!/bin/sh
# stages: gcc openssl address
# Devices that begin suspended: they get no task, ask seldom, renew their certificates, and train once they are resumed.
#   BUILD=build/mbedtls tests/e2e/292-suspended.sh
set -u
FLEET_NAME=292-suspended
. tests/e2e/common.sh
COUNT=20

fleet_start "[limits]
retry_after_suspended = 1
[identity]
device_validity = 30d"
run 2 fleet_admin token create --access --suspended
run 0 fleet_admin token create --suspended --uses $COUNT --label site=new -o "$FLEET/new"
run 0 fleet_admin token list
says "join,suspended +device"
FLEET_TOKEN=$FLEET/new
joined=$(date +%s)
for i in $(seq $COUNT); do
	glyph_device "device$i" "$i" 20
	fleet_run "device$i"
done
glyph_job "$FLEET/job.json" begin $COUNT 1
job_submit "$FLEET/job.json"
states() { curl_admin /v1/devices | pick 'sorted(set(x["state"] for x in d["devices"]))'; }
[ "$(states)" = "['suspended']" ] || fleet_fail "they did not begin suspended: $(curl_admin /v1/devices)"
[ "$(log_lines $COUNT "$FLEET/rivuletd.log" 'device\.joined .*state=suspended')" = $COUNT ] || fleet_fail "the log does not say so"
[ "$(curl_admin "/v1/audit?limit=1000" | pick "len([e for e in d['entries'] if '\"device.joined\"' in e['body'] and '\"suspended\":true' in e['body']])")" = $COUNT ] ||
	fleet_fail "the audit log does not say so"

# Each asks, and none more often than it may; none gets a task.
all_refused() { for i in $(seq $COUNT); do grep -q 'device-suspended' "$FLEET/device$i.log" || return 1; done; }
within 30 all_refused || fleet_fail "not all asked"
sleep $((4 * TEST_SLOW))
passed=$(($(date +%s) - joined))
for i in $(seq $COUNT); do
	asked=$(grep -c 'device-suspended' "$FLEET/device$i.log")
	[ "$asked" -le $((passed + 1)) ] || fleet_fail "device$i asked $asked times in $passed s"
done
[ "$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick "(d['invited'], d['reports'])")" = "(0, 0)" ] || fleet_fail "somebody has a task: $(curl_admin "/v1/jobs/$JOB/rounds/1")"
refusal=$(curl -sS -D - -o /dev/null --cacert "$FLEET/device1/ca.pem" --cert "$FLEET/device1/cert.pem" --key "$FLEET/device1/key.pem" "$URL/v1/jobs")
echo "$refusal" | grep -qi '^retry-after: 1' || fleet_fail "no Retry-After: $refusal"

# All at once.
run 0 fleet_admin device resume --where site=new --dry-run
says "$COUNT of $COUNT devices would be changed"
[ "$(states)" = "['suspended']" ] || fleet_fail "a dry run changed something"
run 0 fleet_admin device resume --where site=new
says "$COUNT of $COUNT devices changed"
job_done 60
[ "$(curl_admin "/v1/jobs/$JOB/rounds/1" | pick "d['reports']")" = $COUNT ] || fleet_fail "not all trained"
for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done
FLEET_PIDS=

# Who has joined and lost the answer joins again by the same token, and is what it was; no other token ends a suspension.
again() { rm -f "$FLEET/$1/device.json" "$FLEET/$1/cert.pem" && "$RIVULET" join "$URL" --token-file "$FLEET/$2" --home "$FLEET/$1" --name "$1"; }
state() { curl_admin "/v1/devices/$1" | pick 'd["state"]'; }
run 0 fleet_admin token create --suspended -o "$FLEET/one"
FLEET_TOKEN=$FLEET/one fleet_join lost
run 0 again lost one
[ "$(state lost)" = suspended ] || fleet_fail "lost is $(state lost)"
run 0 fleet_admin token create --uses 9 -o "$FLEET/plain"
run 0 fleet_admin token create --suspended --uses 9 -o "$FLEET/other"
for token in plain other; do
	run 4 again lost $token
	says "device-suspended"
done
[ "$(state lost)" = suspended ] || fleet_fail "an ordinary token made lost $(state lost)"
# One that is active stays so; one that left begins as its new token says.
run 0 again device1 other
[ "$(state device1)" = active ] || fleet_fail "device1 is $(state device1)"
run 0 "$RIVULET" leave --home "$FLEET/device2"
run 0 "$RIVULET" join "$URL" --token-file "$FLEET/other" --home "$FLEET/device2" --name device2
[ "$(state device2)" = suspended ] || fleet_fail "device2 came back $(state device2)"
run 0 "$RIVULET" join "$URL" --token-file "$FLEET/one" --home "$FLEET/lost"
[ "$(state lost)" = suspended ] || fleet_fail "lost is $(state lost)"

# A certificate is renewed meanwhile, before its end and after: nobody joins anew.
life=$((4 * TEST_SLOW))
sed -i "s/^device_validity = .*/device_validity = ${life}s/" "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
within 20 grep -q 'reload.done' "$FLEET/rivuletd.log" || fleet_fail "not reloaded"
run 0 fleet_admin token create --suspended --label site=short -o "$FLEET/short.token"
FLEET_TOKEN=$FLEET/short.token
glyph_device short 77 20
fleet_run short
renewals() { [ "$(grep -c 'certificate.renewed' "$FLEET/short.log")" -ge "$1" ]; }
within $((4 * life)) renewals 2 || fleet_fail "no renewal while suspended"
fleet_kill TERM "$AGENT_PID"
sleep $((life + 1))
: >"$FLEET/short.log"
fleet_run short
within 30 renewals 1 || fleet_fail "no renewal of a certificate that is over"
[ "$(state short)" = suspended ] || fleet_fail "short is $(state short)"
sed 's/"name": "begin"/"name": "short", "select": {"labels": {"site": "short"}}/; s/"goal": [0-9]*/"goal": 1/' "$FLEET/job.json" >"$FLEET/short.json"
job_submit "$FLEET/short.json"
run 0 fleet_admin device resume --where site=short
job_done 60
fleet_end
echo "$COUNT devices began suspended and trained once resumed; $CHECKS commands"
