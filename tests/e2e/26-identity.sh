#!/bin/sh
# stages: gcc openssl address thread
# The life of an identity, seen from the coordinator: suspended, resumed and revoked while requests run; renewed, rotated, left and
# joined again; what is known of a device, over a restart; whom a refused certificate names in the log; the listener for probes; the
# server certificate's end.
#   BUILD=build/mbedtls tests/e2e/26-identity.sh
set -u
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=26-identity
. tests/e2e/common.sh
command -v openssl >/dev/null || skip "needs openssl"
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
checks=0

want() { # want WHAT WANT GOT
	checks=$((checks + 1))
	[ "$2" = "$3" ] || fleet_fail "$1: want \"$2\", got \"$3\""
}
# ask NAME PATH CURL-OPTION...: "STATUS WORD" of a request with NAME's certificate; the body lies in FLEET/body
ask() {
	ask_home=$FLEET/$1 ask_path=$2
	shift 2
	ask_body=$FLEET/${ASK_BODY:-body}
	ask_status=$(curl -sS --max-time $((60 * TEST_PATIENCE)) -o "$ask_body" -w '%{http_code}' --cacert "$FLEET/ca.pem" --cert "$ask_home/cert.pem" \
		--key "$ask_home/key.pem" "$@" "$URL$ask_path") || ask_status=none
	echo "$ask_status $(sed -n 's/.*urn:rivulet:error:\([a-z-]*\)".*/\1/p' "$ask_body")"
}
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1" 2>/dev/null; }
csr_of() { openssl req -new -key "$1" -subj /CN=x -outform DER | base64 -w 0; }
rotate() { # rotate NAME KEY CURL-OPTION...
	rotate_name=$1 rotate_key=$2
	shift 2
	ask "$rotate_name" /v1/rotate -d "{\"csr\": \"$(csr_of "$rotate_key")\"}" "$@"
}
# What came takes the place of NAME's certificate.
take() {
	pick 'd["certificate"]' <"$FLEET/body" >"$FLEET/$1/cert.pem"
	[ -z "${2:-}" ] || cp "$2" "$FLEET/$1/key.pem"
}
show() { curl_admin "/v1/devices/$1" | pick "d[\"$2\"]"; }
command() { curl_admin "/v1/devices/$1/$2" -X POST -o "$FLEET/body" -w '%{http_code}' 2>/dev/null; }
token() { curl_admin /v1/tokens -d "$1" | pick 'd["token"]'; }
# join TOKEN KEY [-k]: joins with that key
join() {
	join_status=$(curl -sS --max-time 120 -o "$FLEET/body" -w '%{http_code}' --cacert "$FLEET/ca.pem" ${3:-} -H "Authorization: Bearer $1" \
		-d "{\"csr\": \"$(csr_of "$2")\", \"name\": \"joined\"}" "$URL/v1/join")
	echo "$join_status $(sed -n 's/.*urn:rivulet:error:\([a-z-]*\)".*/\1/p' "$FLEET/body")"
}
offer() { # offer TIME_MS MACHINE-DIGIT WAIT
	printf '{"agent": "9.9", "protocol": 1, "data": [], "trainers": ["builtin"], "codecs": ["f32"], "layers": [], "memory_bytes": 1, "held_models": [], "time_ms": %s, "disk_free_bytes": 123456789, "machine": "%s", "wait": %s}' \
		"$1" "$(printf "%064d" 0 | tr 0 "$2")" "$3"
}
now_ms() { date +%s%3N; }
events() { curl_admin "/v1/audit?limit=1000" | pick "len([e for e in d['entries'] if '\"$1\"' in e['body']])"; }

fleet_start "probe_listen = 127.0.0.1:0
[limits]
long_poll = 50
slow_upload_time = 600"
for name in ann bob cat; do fleet_join $name ""; done
cp "$FLEET/ann/ca.pem" "$FLEET/ca.pem"
token '{"role": "submitter"}' >"$FLEET/token.sue"
FLEET_TOKEN=$FLEET/token.sue fleet_join sue ""

# --- a held request and a running upload are ended at once
offer "$(now_ms)" 1 50 >"$FLEET/offer"
(
	ASK_BODY=body.parked # others are asked meanwhile
	ask ann /v1/tasks -d "@$FLEET/offer" >"$FLEET/parked"
) &
parked=$!
python3 -S -E - "$PORT" "$FLEET" >"$FLEET/upload" 2>&1 <<'END' &
import http.client, socket, ssl, sys, time
context = ssl.create_default_context(cafile=sys.argv[2] + "/ca.pem")
context.load_cert_chain(sys.argv[2] + "/sue/cert.pem", sys.argv[2] + "/sue/key.pem")
sock = context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost")
sock.sendall(b"PUT /v1/models/" + b"0" * 64 + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
sock.sendall(bytes(1000))
sock.settimeout(60)
open(sys.argv[2] + "/uploading", "w").close()
answer = http.client.HTTPResponse(sock)
answer.begin()
print(answer.status, answer.read().decode())
END
upload=$!
within 20 test -e "$FLEET/uploading" || fleet_fail "no upload: $(cat "$FLEET/upload")"
sleep 1
start=$(date +%s)
want "suspend" 200 "$(command ann suspend)"
want "suspend a submitter" 200 "$(command sue suspend)"
wait $parked
wait $upload
want "the held request" "403 device-suspended" "$(cat "$FLEET/parked")"
grep -q '^403 .*device-suspended' "$FLEET/upload" || fleet_fail "the upload was answered $(cat "$FLEET/upload")"
[ $(($(date +%s) - start)) -lt 45 ] || fleet_fail "they were answered late"
want "a new request" "403 device-suspended" "$(ask ann /v1/status)"
want "renew while suspended" "200 " "$(ask ann /v1/renew -X POST)"
want "try that out" "200 " "$(ask ann /v1/status)"
want "nothing else" "403 device-suspended" "$(ask ann /v1/jobs)"
want "not to rotate" "403 device-suspended" "$(ask ann /v1/rotate -d '{}')"
want "not to leave" "403 device-suspended" "$(ask ann /v1/leave -X POST)"
want "suspended twice" 200 "$(command ann suspend)"
want "resume" 200 "$(command ann resume)"
want "resumed" "200 " "$(ask ann /v1/status)"
want "renew" "200 " "$(ask ann /v1/renew -X POST)"
take ann
want "by the renewed certificate" "200 " "$(ask ann /v1/status)"
want "renew with a body" "200 " "$(ask ann /v1/renew -d '{}')"
want "a device that renews on and on is logged once" 1 "$(log_lines 1 "$FLEET/rivuletd.log" 'device\.renewed')"

# --- rotation
id=$(show bob device)
cp -r "$FLEET/bob" "$FLEET/bob1"
new_key "$FLEET/bob2.pem"
new_key "$FLEET/bob3.pem"
want "rotate" "201 " "$(rotate bob "$FLEET/bob2.pem")"
take bob "$FLEET/bob2.pem"
want "the new key" "200 " "$(ask bob /v1/status)"
want "the old key" "403 key-rotated" "$(ask bob1 /v1/status)"
want "the old key renews" "403 key-rotated" "$(ask bob1 /v1/renew -X POST)"
want "the answer was lost: the old key asks again" "200 " "$(rotate bob1 "$FLEET/bob2.pem")"
want "the old key asks for another one" "403 key-rotated" "$(rotate bob1 "$FLEET/bob3.pem")"
want "a key that another device has" "409 key-in-use" "$(rotate cat "$FLEET/bob2.pem")"
want "a key that another device had" "409 key-in-use" "$(rotate cat "$FLEET/bob1/key.pem")"
cp -r "$FLEET/bob" "$FLEET/bob2"
want "rotate again" "201 " "$(rotate bob "$FLEET/bob3.pem")"
take bob "$FLEET/bob3.pem"
want "back to the first key" "409 key-in-use" "$(rotate bob "$FLEET/bob1/key.pem")"
want "the key before the last" "403 key-rotated" "$(rotate bob1 "$FLEET/bob2.pem")"
want "the id" "$id" "$(show bob device)"
many=$(token '{"uses": 20}')
want "an old key joins" "403 key-rotated" "$(join "$many" "$FLEET/bob2.pem")"
want "the first key joins" "403 key-rotated" "$(join "$many" "$FLEET/bob1/key.pem")"
want "the present key joins" "201 " "$(join "$many" "$FLEET/bob3.pem")"
want "and is the same device" "$id" "$(pick 'd["device"]' <"$FLEET/body")"
want "devices" 4 "$(curl_admin /v1/devices | pick 'len(d["devices"])')"

# --- a delta that was signed before the last rotation is taken over a connection with the new key; one of an older key is not
glyph_job "$FLEET/job.json" signed 1 5
job_submit "$FLEET/job.json"
task=$("$peer" ask "$FLEET/bob" "$PORT") || fleet_fail "no task"
put() { # put SIGNER: "STATUS WORD"
	# shellcheck disable=SC2086 # the words of a task
	WIRE_OTHER=$FLEET/$1 timeout $((60 * TEST_PATIENCE)) "$peer" put "$FLEET/bob" "$PORT" 39760 wait other-key $task | cut -d ' ' -f 1,2
}
want "signed by another device" "403 bad-signature" "$(put ann)"
want "signed by the key before the last" "403 bad-signature" "$(put bob1)"
want "signed by the last key" "201 receipt" "$(put bob2)"
curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null

# --- leaving, and coming back
once=$(token '{"labels": {"site": "north"}}')
want "leave" "204 " "$(ask cat /v1/leave -X POST)"
want "left" "403 device-left" "$(ask cat /v1/status)"
want "left: the token it joined with is not enough when spent" "left" "$(show cat state)"
want "an access token admits nobody" "401 bad-token" "$(join "$(token '{"access": true}')" "$FLEET/cat/key.pem")"
want "resume who left" 409 "$(command cat resume)"
id=$(show cat device)
want "joins again" "201 " "$(join "$once" "$FLEET/cat/key.pem")"
want "the same device" "$id" "$(pick 'd["device"]' <"$FLEET/body")"
take cat
want "is back" "200 " "$(ask cat /v1/status)"
want "its labels are the new token's" "{'site': 'north'}" "$(show joined labels)"
want "leave again" "204 " "$(ask cat /v1/leave -d '{}')"
want "the same token, spent" "401 bad-token" "$(join "$once" "$FLEET/cat/key.pem")"
want "revoke" 200 "$(command "$id" revoke)"
want "revoked" "403 device-revoked" "$(ask cat /v1/renew -X POST)"
uses=$(curl_admin /v1/tokens | pick '[t["uses_left"] for t in d["tokens"]]')
joined=$(events device.joined)
want "revoked: joins" "403 device-revoked" "$(join "$many" "$FLEET/cat/key.pem")"
want "which spends no use of the token" "$uses" "$(curl_admin /v1/tokens | pick '[t["uses_left"] for t in d["tokens"]]')"
want "and nobody has joined" "$joined" "$(events device.joined)"
want "revoked for good" 409 "$(command "$id" resume)"
for event in suspended resumed revoked rotated left; do
	[ "$(events device.$event)" -gt 0 ] || fleet_fail "the audit log has no device.$event"
	checks=$((checks + 1))
done

# --- what is known of a device
offer $(($(now_ms) - 7200000)) 1 0 >"$FLEET/offer"
want "an offer" "200 " "$(ask ann /v1/tasks -d "@$FLEET/offer")"
want "one machine" False "$(show ann cloned)"
want "its clock, two hours slow" True "$(curl_admin /v1/devices/ann | pick '-7230 < d["clock_offset_s"] < -7170')"
offer "$(now_ms)" 2 0 >"$FLEET/offer"
want "an offer from another machine" "200 " "$(ask ann /v1/tasks -d "@$FLEET/offer")"
want "and one more" "200 " "$(ask ann /v1/tasks -d "@$FLEET/offer")"
want "two machines" True "$(show ann cloned)"
want "told once" 1 "$(log_lines 1 "$FLEET/rivuletd.log" 'device\.cloned')"
printf '{"reason": "trainer-failed", "log": "line one\\nno such file \\u00e9 end"}' >"$FLEET/abort"
want "an abort of no task" "404 not-found" "$(ask ann "/v1/tasks/$(printf '%032d' 0)/abort" -d "@$FLEET/abort")"
want "leaves no trace" "None 0" "$(show ann last_abort) $(grep -c 'task\.log' "$FLEET/rivuletd.log")"
glyph_job "$FLEET/job.json" given-up 1 1
job_submit "$FLEET/job.json"
python3 -S -E - "$FLEET/offer" <<'END' >"$FLEET/able"
import json, sys
offer = json.load(open(sys.argv[1]))
offer.update(data=[{"name": "digits", "examples": 300}], trainers=["builtin"], codecs=["f32"], layers=["flatten", "linear", "relu"], memory_bytes=1 << 30)
print(json.dumps(offer))
END
want "a task" "200 " "$(ask ann /v1/tasks -d "@$FLEET/able")"
want "an abort of it" "204 " "$(ask ann "/v1/tasks/$(pick 'd["task"]' <"$FLEET/body")/abort" -d "@$FLEET/abort")"
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "job stop"
within 10 grep -q 'task.log .*tail="line one|no such file ?? end"' "$FLEET/rivuletd.log" || fleet_fail "no tail of the log: $(grep task.log "$FLEET/rivuletd.log")"
want "a refusal" "403 forbidden" "$(ask ann /v1/devices)"
curl_admin /v1/devices/ann >"$FLEET/before"
want "what is known" "('9.9', 'trainer-failed', 'forbidden', 123456789, True)" \
	"$(pick 'd["agent"], d["last_abort"]["reason"], d["last_refusal"]["reason"], d["disk_free_bytes"], d["cloned"]' <"$FLEET/before")"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
want "after a restart" "$(pick 'd' <"$FLEET/before")" "$(curl_admin /v1/devices/ann | pick 'd')"
want "the states too" "403 device-revoked" "$(ask cat /v1/status)"
want "and old keys" "403 key-rotated" "$(ask bob2 /v1/status)"

# --- three rotations, then one an hour: each costs a row and an entry for good
for key in bob4 bob5; do new_key "$FLEET/$key.pem"; done
cp -r "$FLEET/bob" "$FLEET/bob3"
want "a third rotation" "201 " "$(rotate bob "$FLEET/bob4.pem")"
want "a key stays while a manifest may be signed with it" "403 key-rotated" "$(ask bob2 /v1/status)"
want "its repeat, by the old key" "200 " "$(rotate bob3 "$FLEET/bob4.pem")"
take bob "$FLEET/bob4.pem"
rotated=$(events device.rotated)
want "a fourth" "429 too-many-requests" "$(rotate bob "$FLEET/bob5.pem" -D "$FLEET/head")"
want "in an hour" True "$(sed -n 's/^[Rr]etry-[Aa]fter: \([0-9]*\).*/3400 < \1 <= 3600/p' "$FLEET/head" | python3 -S -E -c 'print(eval(input()))')"
want "also by the present key again" "200 " "$(rotate bob "$FLEET/bob4.pem")"
want "which changes nothing" "$rotated" "$(events device.rotated)"
FLEET_SAID=$("$RIVULET" rotate --home "$FLEET/bob" 2>&1)
want "the command is told at once" 4 $?
case $FLEET_SAID in *"too-many-requests"*) ;; *) fleet_fail "rotate said: $FLEET_SAID" ;; esac
rm -f "$FLEET/bob/key.new.pem"
new_key "$FLEET/ann2.pem"
want "rotate" "201 " "$(rotate ann "$FLEET/ann2.pem")"
take ann "$FLEET/ann2.pem"
want "a new key was seen on no machine" False "$(show ann cloned)"
cp -r "$FLEET/ann" "$FLEET/ann2"
for key in ann3 ann4; do
	new_key "$FLEET/$key.pem"
	want "rotate" "201 " "$(rotate ann "$FLEET/$key.pem")"
	take ann "$FLEET/$key.pem"
	[ $key = ann4 ] || want "the key before" "403 key-rotated" "$(ask ann2 /v1/status)"
done
want "a key that signed nothing is forgotten" "403 unknown-device" "$(ask ann2 /v1/status)"
named() { grep -q "path=/v1/status status=403 .* device=\"\" by=key:[0-9a-f]* why=.unknown-device" "$FLEET/rivuletd.log"; }
within 5 named || fleet_fail "the log does not name the unknown key: $(grep unknown-device "$FLEET/rivuletd.log")"
want "the present one is not" "200 " "$(ask ann /v1/status)"

# --- the listener for probes: plain, on loopback, and nothing behind it
probe=http://127.0.0.1:$(cat "$FLEET/state/probe_port")
code() { curl -sS --max-time 120 -o /dev/null -w '%{http_code}' "$@"; }
want "healthz" 200 "$(code "$probe/healthz")"
want "what check says of its port" "" "$("$RIVULETD" --config "$FLEET/rivuletd.conf" check | grep probe_port)"
want "readyz" 200 "$(code "$probe/readyz")"
for path in /v1/ca /v1/status /v1/devices /v1/tokens /v1/jobs /v1/audit; do want "$path" 404 "$(code "$probe$path")"; done
want "POST" 404 "$(code -d '{}' "$probe/v1/join")"
want "an access token" 404 "$(code -H "Authorization: Bearer $(token '{"access": true}')" "$probe/v1/jobs")"

# --- who only looks whether somebody listens is no failure
handshakes() { curl_admin /v1/status | pick 'd["reports"]["server"]["handshakes_total"]'; }
failures() { curl_admin /v1/status | pick 'd["reports"]["server"]["handshakes_failed_total"]'; }
looked() { [ "$(handshakes)" -ge $((before + 3)) ]; }
before=$(handshakes) failed="$(failures) $(grep -c tls.failed "$FLEET/rivuletd.log")"
python3 -S -E -c "import socket
for i in range(3): socket.create_connection(('127.0.0.1', $PORT)).close()"
within 20 looked || fleet_fail "the connections were not counted"
want "failures after connections without a word" "$failed" "$(failures) $(grep -c tls.failed "$FLEET/rivuletd.log")"

# --- a certificate that is refused names in the log whom it says it is of, and what proves nothing is called so
# dated DAYS: options for a certificate of so many days, negative for one that has run out, which OpenSSL 3.5 makes by its dates alone
dated() {
	if [ "$1" -lt 0 ] && openssl x509 -help 2>&1 | grep -q not_before; then
		echo "-not_before 20200101000000Z -not_after 20200102000000Z"
	else
		echo "-days $1"
	fi
}
# named NAME KEY SUBJECT DAYS SIGNER: $FLEET/NAME asks with a certificate of KEY, by the coordinator's CA or by one of the same name
named() {
	mkdir -p "$FLEET/$1"
	cp "$2" "$FLEET/$1/key.pem"
	[ -e "$FLEET/client-ext" ] || printf 'extendedKeyUsage=clientAuth\nauthorityKeyIdentifier=keyid\n' >"$FLEET/client-ext"
	# shellcheck disable=SC2046 # options
	openssl req -new -utf8 -key "$2" -subj "$3" 2>/dev/null |
		openssl x509 -req -CA "$5.crt" -CAkey "$5.key" -set_serial 7 $(dated "$4") -sha256 -extfile "$FLEET/client-ext" -out "$FLEET/$1/cert.pem" 2>/dev/null ||
		fleet_fail "a certificate for $1"
}
# told WORD...: there is a line, later than those before, with all these words in this order
told() {
	told_words=$(printf '%s.*' "$@")
	tail -n "+$((lines + 1))" "$FLEET/rivuletd.log" | grep -qE -- "$told_words"
}
is_told() { # is_told WHAT WORD...
	told_what=$1
	shift
	within 20 told "$@" || fleet_fail "$told_what: $(tail -n "+$((lines + 1))" "$FLEET/rivuletd.log")"
	checks=$((checks + 1))
	lines=$(wc -l <"$FLEET/rivuletd.log")
}
id=$(show ann device)
short=$(printf %.16s "$id")
ours=$FLEET/state/keys/ca theirs=$FLEET/theirs
new_key "$theirs.key"
openssl req -x509 -new -key "$theirs.key" -subj "$(openssl x509 -in "$ours.crt" -noout -subject -nameopt compat | sed 's/^subject=//')" -days 9 \
	-out "$theirs.crt" 2>/dev/null || fleet_fail "another CA"
new_key "$FLEET/stranger.pem"
escape=$(printf '\033')
lines=$(wc -l <"$FLEET/rivuletd.log")
named expired "$FLEET/ann/key.pem" "/CN=$id" -1 "$ours"
want "an expired certificate" "403 expired-certificate" "$(ask expired /v1/status)"
is_told "an expired certificate" 'http.response' 'status=403' "device=$short" 'expired' 'name=ann'
named other-key "$FLEET/stranger.pem" "/CN=$id" 9 "$ours"
want "a key that the coordinator does not know" "403 unknown-device" "$(ask other-key /v1/status)"
is_told "a key that the coordinator does not know" 'http.response' 'status=403' 'device=""' "claims=$short claims_name=ann$"
named foreign "$FLEET/ann/key.pem" "/CN=$id" 9 "$theirs"
ask foreign /v1/status >"$FLEET/answer" 2>&1
is_told "a certificate of another CA" 'tls.failed' 'peer=127.0.0.1' 'why="the peer.s certificate' "claims=$short claims_name=ann$"
named nobody "$FLEET/stranger.pem" "/CN=$(printf "%064d" 0)" 9 "$theirs"
ask nobody /v1/status >"$FLEET/answer" 2>&1
is_told "an id that nobody has" 'tls.failed' "claims=0000000000000000$"
named called "$FLEET/stranger.pem" "/CN=ann" 9 "$theirs"
ask called /v1/status >"$FLEET/answer" 2>&1
is_told "a device's name as its own" 'tls.failed' 'claims=ann$'
named odd "$FLEET/stranger.pem" "/CN=${escape}[2J x claims_name=ann \"" 9 "$theirs"
ask odd /v1/status >"$FLEET/answer" 2>&1
is_told "what would steer a terminal" 'tls.failed' 'claims="\\x1b\[2J x claims_name=ann \\""$'
grep -q "$escape" "$FLEET/rivuletd.log" && fleet_fail "a control character is in the log"
named odd "$FLEET/stranger.pem" /O=nameless 9 "$theirs"
ask odd /v1/status >"$FLEET/answer" 2>&1
is_told "a certificate without a name" 'tls.failed' 'why="[^"]*"$'

# --- the server certificate ends soon, and is made anew under a running device
fleet_run bob
agent=$AGENT_PID
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n' >"$FLEET/ext"
openssl req -new -key "$FLEET/state/keys/server.key" -subj /CN=localhost -out "$FLEET/server.csr"
certify() { # certify DAYS [COMMAND...]
	certify_days=$1
	shift
	"$@" openssl x509 -req -in "$FLEET/server.csr" -CA "$FLEET/state/keys/ca.crt" -CAkey "$FLEET/state/keys/ca.key" -set_serial 9 \
		-days "$certify_days" -sha256 -extfile "$FLEET/ext" -out "$FLEET/state/keys/server.crt" 2>/dev/null || fleet_fail "a server certificate"
}
certify 20
grep -q certificate.ends "$FLEET/rivuletd.log" && fleet_fail "warned of a certificate that is good for years"
kill -HUP "$DAEMON_PID"
within 20 grep -q 'warn certificate.ends days=\(19\|20\)' "$FLEET/rivuletd.log" || fleet_fail "no warning: $(grep certificate "$FLEET/rivuletd.log")"
want "status tells" True "$(curl_admin /v1/status | pick 'd["certificate_ends"] - __import__("time").time() < 21 * 86400')"
# With one that nobody accepts it is not ready, and who joins all the same spends no token and becomes no device.
readiness() { curl_admin /readyz 2>/dev/null | pick 'd.get("reason", "ready")'; }
not_ready() { [ "$(readiness)" = "$1" ]; }
token '{"role": "device", "uses": 3}' >"$FLEET/token.late"
new_key "$FLEET/late.pem"
late() { # late REASON
	kill -HUP "$DAEMON_PID"
	within 20 not_ready "$1" || fleet_fail "$1: $(curl_admin /readyz)"
	want "$1: join" "503 unavailable" "$(join "$(cat "$FLEET/token.late")" "$FLEET/late.pem" -k)"
	want "$1: uses left" True "$(curl_admin /v1/tokens | pick 'any(t["uses"] == 3 and t["uses_left"] == 3 for t in d["tokens"])')"
	want "$1: devices" False "$(curl_admin /v1/devices | pick 'any(e["name"] == "joined" and e["state"] == "active" for e in d["devices"])')"
}
certify 0
sleep 2
late certificate-expired
if type faketime >/dev/null 2>&1; then # command is a function here
	certify 20 faketime -f +5d
	late clock-behind
fi
want "warnings of probes" 0 "$(grep -c 'warn http.response.*path=/readyz' "$FLEET/rivuletd.log")"
"$RIVULETD" --config "$FLEET/rivuletd.conf" init --name localhost --name 127.0.0.1 2>/dev/null || fleet_fail "init --name"
kill -HUP "$DAEMON_PID"
anew() { [ "$(curl_admin /v1/status | pick 'd["certificate_ends"] - __import__("time").time() > 800 * 86400')" = True ]; }
within 20 anew || fleet_fail "the new certificate is not in use"
want "a device asks on" "200 " "$(ask ann /v1/status)"
kill -0 "$agent" || fleet_fail "the agent ended"
fleet_end
echo "$checks checks"
