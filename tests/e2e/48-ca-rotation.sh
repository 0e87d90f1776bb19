#!/bin/sh
# stages: gcc openssl address
# The CA is replaced while devices work: they renew by themselves, nobody restarts; who did not renew is named and shut out only
# by force; tokens of before stay good in every phase; an interrupted change goes on.
#   BUILD=build/mbedtls tests/e2e/48-ca-rotation.sh
set -u
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=48-ca-rotation
. tests/e2e/common.sh
command -v openssl >/dev/null || skip "needs openssl"
keys=
FAULTY=${FAULTY:-build/faults/rivulet}

rivuletd() { "$RIVULETD" --config "$FLEET/rivuletd.conf" "$@"; }
reload() {
	reloads=$(grep -c 'reload.done' "$FLEET/rivuletd.log")
	kill -HUP "$DAEMON_PID"
	within 20 reloaded || fleet_fail "no reload: $(tail -n 3 "$FLEET/rivuletd.log")"
}
reloaded() { [ "$(grep -c 'reload.done' "$FLEET/rivuletd.log")" -gt "$reloads" ]; }
generation() { curl_admin "/v1/devices/$1" | pick 'd["ca_generation"]'; }
is_generation() { [ "$(generation "$1")" = "$2" ]; }
rounds() { curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]'; }
more_rounds() { [ "$(rounds)" -gt $(($1 + 2)) ]; }
# Does the server's certificate verify for who knows this CA alone?
server_is_of() {
	timeout $((20 * TEST_PATIENCE)) openssl s_client -connect "127.0.0.1:$PORT" -verify_hostname localhost -CAfile "$1" -verify_return_error </dev/null >"$FLEET/s_client" 2>&1 &&
		grep -q 'Verify return code: 0 (ok)' "$FLEET/s_client"
}
behind() { rivuletd ca status | sed -n 's/^not renewed: \([a-z]*\) .*/\1/p' | sort | tr '\n' ' '; }
want() { [ "$2" = "$3" ] || fleet_fail "$1: want \"$2\", got \"$3\""; }

# What a connection that stays open hears: a line per request it is told to make.
hold() {
	python3 -S -E - "$PORT" "$FLEET/$1" "$FLEET/ask" <<-'END' >"$FLEET/held" &
		import http.client, os, socket, ssl, sys, time
		port, home, ask = int(sys.argv[1]), sys.argv[2], sys.argv[3]
		context = ssl.create_default_context(cafile=home + "/ca.pem")
		context.load_cert_chain(home + "/cert.pem", home + "/key.pem")
		sock = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
		for n in range(2):
		    while not os.path.exists(ask + str(n)):
		        time.sleep(0.05)
		    sock.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
		    answer = http.client.HTTPResponse(sock)
		    answer.begin()
		    body = answer.read()
		    print(answer.status, "retired-ca" in body.decode(), flush=True)
	END
	FLEET_PIDS="$FLEET_PIDS $!"
}
held() { [ "$(wc -l <"$FLEET/held")" -ge "$1" ]; }

fleet_start "[limits]
idle_timeout = 600
long_poll = 5"
keys=$FLEET/state/keys
cp "$keys/ca.crt" "$FLEET/ca1.pem"
want "ca status" "generation 1" "$(rivuletd ca status | head -n 1)"
rivuletd ca finish 2>/dev/null && fleet_fail "finished what was not begun"
for name in ann bob; do
	glyph_device $name 1 60
	fleet_run $name
done
glyph_device cat 3 60
glyph_job "$FLEET/job.json" rotation 2 100000
sed -i "s/\"deadline_s\": 3600/\"deadline_s\": 4/" "$FLEET/job.json" # a device that stops holds a place that long
job_submit "$FLEET/job.json"
within 60 more_rounds 0 || fleet_fail "no rounds"

# --- begin
rivuletd ca rotate >/dev/null || fleet_fail "ca rotate"
rivuletd ca rotate 2>/dev/null && fleet_fail "a second ca rotate"
reload
within 60 is_generation ann 2 || fleet_fail "ann did not renew"
within 60 is_generation bob 2 || fleet_fail "bob did not renew"
want "cat, who does not run" 1 "$(generation cat)"
server_is_of "$FLEET/ca1.pem" || fleet_fail "the server is not of the old CA while it is replaced"
# Each device knows where it stands.
run 4 "$RIVULET" doctor --home "$FLEET/cat"
says 'WARNING *ca .*not yet under the new one' 'start the agent before "rivuletd ca finish"'
run 0 "$RIVULET" doctor --home "$FLEET/ann"
says 'ok *ca .*is under the new one'
# Who tried its new certificate out, and died before that was on its disk, has not renewed.
if [ -x "$FAULTY" ]; then
	glyph_device fay 6 60
	RIVULET_FAULT=identity.stage timeout $((60 * TEST_PATIENCE)) "$FAULTY" run --home "$FLEET/fay" 2>"$FLEET/fay.log"
	[ $? -eq 137 ] || fleet_fail "fay was not killed while it renewed: $(cat "$FLEET/fay.log")"
	grep -q 'device.renewed.*name=fay' "$FLEET/rivuletd.log" || fleet_fail "fay did not ask for a certificate"
	want "fay, who has lost its new certificate" 1 "$(generation fay)"
	fleet_run fay
	within 60 is_generation fay 2 || fleet_fail "fay did not renew"
	fleet_kill TERM "$AGENT_PID"
fi
# A token of before, in this phase.
glyph_device dan 4 60
hold cat
: >"$FLEET/ask0"
within 20 held 1 || fleet_fail "no answer on the open connection"
reload
want "behind" "cat dan " "$(behind)"
want "not_renewed" "{'generation': 1, 'rotating': True, 'not_renewed': 2}" "$(curl_admin /v1/status | pick 'd["ca"]')"
run 0 fleet_admin status
says '^the CA is being replaced: 2 devices have not renewed.*ca status.*ca finish'
rivuletd ca finish 2>"$FLEET/refused" && fleet_fail "finished although two devices have not renewed"
grep -q '2 devices have not renewed' "$FLEET/refused" || fleet_fail "does not say who: $(cat "$FLEET/refused")"
curl -sS --max-time 120 --cacert "$FLEET/dan/ca.pem" --cert "$FLEET/dan/cert.pem" --key "$FLEET/dan/key.pem" -d '{"protocol": 1}' "$URL/v1/tasks" >"$FLEET/told"
want "a device without work is told to renew, too" True "$(pick 'd["renew"] and "wait" in d' <"$FLEET/told")"
# Who comes back in time renews.
fleet_run dan
within 60 is_generation dan 2 || fleet_fail "dan did not renew"
fleet_kill TERM "$AGENT_PID"
reload

# --- finish
before=$(rounds)
rivuletd ca finish --force >/dev/null 2>&1 || fleet_fail "ca finish --force"
cp "$keys/ca.crt" "$FLEET/ca2.pem"
cmp -s "$FLEET/ca1.pem" "$FLEET/ca2.pem" && fleet_fail "the CA is the old one"
[ -e "$keys/ca-2.key" ] && fleet_fail "ca-2.key is left"
reload
run 0 fleet_admin status
says '^warning: 1 device is of a CA that was replaced, and must join again'
want "shut out" "cat " "$(rivuletd ca status | sed -n 's/^shut out: \([a-z]*\) .*/\1/p' | tr '\n' ' ')"
server_is_of "$FLEET/ca2.pem" || fleet_fail "the server is not of the new CA: $(cat "$FLEET/s_client")"
server_is_of "$FLEET/ca1.pem" || fleet_fail "who knows the old CA alone cannot follow: $(cat "$FLEET/s_client")"
: >"$FLEET/ask1"
within 20 held 2 || fleet_fail "no second answer on the open connection"
want "the open connection of a device that has not renewed" "200 False;403 True;" "$(tr '\n' ';' <"$FLEET/held")"
curl -sS --max-time 120 --cacert "$FLEET/ca2.pem" --cert "$FLEET/cat/cert.pem" --key "$FLEET/cat/key.pem" "$URL/v1/status" >/dev/null 2>&1 &&
	fleet_fail "a certificate of the old CA is good still"
claimed() { grep 'tls.failed' "$FLEET/rivuletd.log" | grep -q "claims=$(printf %.16s "$(pick 'd["device"]' <"$FLEET/cat/device.json")") claims_name=cat$"; }
within 20 claimed || fleet_fail "the log does not say who was refused: $(grep 'tls.failed' "$FLEET/rivuletd.log")"
# Those who run go on, the same processes; who renewed and slept comes back.
within 60 more_rounds "$before" || fleet_fail "no rounds after the change"
grep -c 'certificate.renewed' "$FLEET/ann.log" "$FLEET/bob.log" >"$FLEET/renewed"
fleet_run dan
within 60 grep -q 'delta' "$FLEET/dan.log" || within 20 grep -q 'task' "$FLEET/dan.log" || fleet_fail "dan, who renewed, is not let in"
# A token of before the change, and one of after it.
glyph_device eve 5 60
[ "$(grep -c BEGIN "$FLEET/eve/ca.pem")" = 2 ] || fleet_fail "eve does not hold the old CA and what it said of the new one"
curl_admin /v1/tokens -d '{}' | pick 'd["token"]' >"$FLEET/token.new"
FLEET_TOKEN=$FLEET/token.new glyph_device fay 6 60
for name in eve fay; do
	curl -sS --fail --max-time 120 --cacert "$FLEET/$name/ca.pem" --cert "$FLEET/$name/cert.pem" --key "$FLEET/$name/key.pem" "$URL/v1/status" >/dev/null ||
		fleet_fail "$name cannot ask"
	want "$name" 2 "$(generation $name)"
done
# Who was shut out joins again with its key, and is the same device.
old=$(curl_admin /v1/devices/cat | pick 'd["device"]')
rm "$FLEET/cat/cert.pem" "$FLEET/cat/device.json"
fleet_join cat ""
want "cat" "$old" "$(curl_admin /v1/devices/cat | pick 'd["device"]')"

# --- a change that is interrupted between its two files, and a restart
rivuletd ca rotate >/dev/null || fleet_fail "a second rotation"
cp "$keys/ca.key" "$FLEET/ca2.key"
cp "$keys/ca-3.key" "$FLEET/ca3.key"
rivuletd ca finish --force >/dev/null 2>&1 || fleet_fail "a second finish"
cp "$FLEET/ca2.key" "$keys/ca.key"
cp "$FLEET/ca3.key" "$keys/ca-3.key"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
want "the interrupted change" "generation 3" "$(rivuletd ca status | head -n 1)"
rivuletd ca finish >/dev/null || fleet_fail "finish does not go on"
[ -e "$keys/ca-3.key" ] && fleet_fail "ca-3.key is left"
[ "$(openssl pkey -in "$keys/ca.key" -pubout)" = "$(openssl x509 -in "$keys/ca.crt" -noout -pubkey)" ] || fleet_fail "ca.key is not the CA's"
rivuletd check >"$FLEET/check" || fleet_fail "check: $(cat "$FLEET/check")"
# The audit log says which CA there was when; one signing key goes through all of them, now with a certificate of the third.
fleet_admin verify fetch "$FLEET/audit" >/dev/null || fleet_fail "fetching the audit log"
"$RIVULET" verify "$FLEET/audit" --ca "$keys/ca.crt" >"$FLEET/verified" 2>&1 || fleet_fail "the audit log: $(cat "$FLEET/verified")"
"$RIVULET" verify "$FLEET/audit" --ca "$FLEET/ca2.pem" >"$FLEET/verified" 2>&1 && fleet_fail "the audit log verifies with the CA before"
cat "$FLEET/ca2.pem" "$keys/ca.crt" >"$FLEET/both.pem" # as a device has them
"$RIVULET" verify "$FLEET/audit" --ca "$FLEET/both.pem" >"$FLEET/verified" 2>&1 || fleet_fail "the audit log, with two CAs: $(cat "$FLEET/verified")"
{ echo "before"; cat "$FLEET/both.pem"; echo "behind"; } >"$FLEET/words.pem"
"$RIVULET" verify "$FLEET/audit" --ca "$FLEET/words.pem" >"$FLEET/verified" 2>&1 || fleet_fail "the audit log, with words around CAs: $(cat "$FLEET/verified")"
grep -q '"event":"ca.changed",.*"generation":2,"rotating":false' "$FLEET/audit/bodies.jsonl" || fleet_fail "the log does not tell of the CA's change"
fleet_end
sed "s,^$FLEET/\(.*\).log:\(.*\),\1 renewed \2 times," "$FLEET/renewed" | tr '\n' ' '
