#!/bin/sh
# stages: gcc openssl address
# The logs of both programs in JSON: every line is an object, without a secret, whatever clients send. Each answer names its request, of which
# the coordinator's log, the agent's, and what `rivulet` prints know; of an upload that was broken off and goes on both logs name the
# request that it began with and the one that goes on, also after a restart of either side. A reload changes the format.
#   BUILD=build/mbedtls tests/e2e/94-logs.sh
set -u
FLEET_NAME=94-logs
TEST_LOG_FORMAT= # of its own
. tests/e2e/common.sh
relay=$BUILD/tests/tools/relay
[ -x "$relay" ] || skip "needs $relay"
MIB=1048576
log=

lines() { # lines FILE EXPRESSION: prints what Python's EXPRESSION gives for each line `d` of which it is not None
	python3 -S -E -c 'import json, sys
for line in open(sys.argv[1]):
    d = json.loads(line)
    found = eval(sys.argv[2])
    if found is not None:
        print(found)' "$1" "$2"
}
have() { # have FILE CONDITION: is there such a line?
	lines "$1" "1 if $2 else None" | grep -q 1
}
id_of() { # the name in the head of an answer
	sed -n 's/^Rivulet-Request: \([0-9a-z-]*\).$/\1/p' "$1"
}
local_get() { # local_get PATH [OPTION...]: SAID is the status, and $FLEET/head the head; a refusal is no failure
	path=$1
	shift
	SAID=$(curl -sS --max-time $((20 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" -D "$FLEET/head" -o "$FLEET/body" -w '%{http_code}' "$@" "http://localhost$path")
}

fleet_start "probe_listen = 127.0.0.1:0
log_format = json"
log=$FLEET/rivuletd.log
have "$log" 'd["event"] == "started" and d["port"] == '"$PORT" || fleet_fail "no start in the log: $(cat "$log")"

# --- every answer has a name of its own; refusals before there is a route, probes and HEAD, too
for path in /v1/status /v1/nowhere '/v1/jobs/%41' /v1/jobs/0123 /v1/audit?limit=x; do
	local_get "$path"
	id=$(id_of "$FLEET/head")
	[ -n "$id" ] || fleet_fail "$path: an answer without a name: $(cat "$FLEET/head")"
	[ "$SAID" = 200 ] || have "$log" 'd.get("request") == "'"$id"'" and d["status"] == '"$SAID" || fleet_fail "$path: $id, $SAID is not in the log"
	echo "$id" >>"$FLEET/ids"
done
within 10 test -s "$FLEET/state/probe_port" || fleet_fail "no port for probes"
for method in GET HEAD POST; do
	curl -sS -X $method ${method#GET} -D "$FLEET/head" -o "$FLEET/body" "http://127.0.0.1:$(cat "$FLEET/state/probe_port")/healthz" --head >/dev/null 2>&1 ||
		curl -sS -X $method -D "$FLEET/head" -o "$FLEET/body" --max-time 5 "http://127.0.0.1:$(cat "$FLEET/state/probe_port")/healthz" 2>/dev/null
	id_of "$FLEET/head" >>"$FLEET/ids"
done
# A head that never becomes one, and one that is too large.
printf 'NONSENSE\r\n\r\n' | timeout 20 python3 -S -E -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); sys.stdout.buffer.write(s.recv(65536))' "$FLEET/admin.sock" >"$FLEET/head"
id_of "$FLEET/head" >>"$FLEET/ids"
local_get /v1/status -H "X: $(printf '%040000d' 0)"
[ "$SAID" = 431 ] || fleet_fail "a head of 40,000 bytes: $SAID"
id_of "$FLEET/head" >>"$FLEET/ids"
[ "$(sort "$FLEET/ids" | uniq -c | awk '$1 == 1' | wc -l)" -eq 10 ] || fleet_fail "names are missing or not of their own: $(cat "$FLEET/ids")"

# --- the route is that of the table, never what was asked; figures of the answer
local_get "/v1/jobs/$(printf '%032d' 0)"
id=$(id_of "$FLEET/head")
said=$(lines "$log" '"%s %s %d %d" % (d["route"], d["status"], d["in"], d["out"]) if d.get("request") == "'"$id"'" else None')
[ "$said" = "/v1/jobs/{} 404 0 $(wc -c <"$FLEET/body")" ] || fleet_fail "a refusal: $said"
local_get /v1/jobs --data-binary '{"name": 1}'
id=$(id_of "$FLEET/head")
said=$(lines "$log" '"%s %s %d %s" % (d["route"], d["status"], d["in"], type(d["ms"]).__name__) if d.get("request") == "'"$id"'" else None')
[ "$said" = "/v1/jobs $SAID 11 int" ] || fleet_fail "a submission: $said"
have "$log" 'd["event"] == "http.response" and d["path"] == "/v1/nowhere" and d["route"] == "none"' || fleet_fail "no route is not none"

# --- whatever people send
hostile='"\	{}$(id)%s<6>'
for name in 'quote"back\slash' 'new
line' "$(printf 'ctl\001\033[31mred')" 'naïve–名前'; do
	fleet_admin token create --name "$name" >/dev/null 2>&1
	fleet_admin job show "$name" >/dev/null 2>&1
	local_get /v1/jobs --data-binary "{\"name\": \"$(printf %s "$name" | tr -d '\n"\\\001\033')\", \"$hostile\": 1}"
	printf 'GET /v1/%s HTTP/1.1\r\nHost: x\r\n\r\n' "$name" | timeout 20 python3 -S -E -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); s.recv(65536)' "$FLEET/admin.sock"
done
local_get "/v1/jobs/$(printf '%01000d' 7)"
have "$log" 'd.get("cut") and d.get("status") == 404' || fleet_fail "a path without room is not left out"
local_get /v1/status -H "Authorization: Bearer $(cat "$FLEET/token")"
curl -sS -o "$FLEET/body" --cacert "$FLEET/state/keys/ca.crt" "https://localhost:$PORT/v1/status" -H "Authorization: Bearer $(cat "$FLEET/token")"

# --- what `rivulet` prints is found in the log
run 3 fleet_admin job show 0123456789abcdef0123456789abcdef
says '\[request [0-9a-f]{8}-[0-9a-f]+\]$'
id=$(printf '%s\n' "$SAID" | sed -n 's/.*\[request \(.*\)\]$/\1/p')
have "$log" 'd.get("request") == "'"$id"'" and d["status"] == 404' || fleet_fail "$SAID is not in the log"

# --- an upload that goes on: cut, then after a restart of the coordinator, then of the agent
glyph_device a 1 60
sed -i 's/^\[device\]/&\nlog_format = json/' "$FLEET/a/rivulet.conf"
mkfifo "$FLEET/control"
"$relay" -c "$FLEET/control" "localhost:$PORT" rate=$((2 * MIB)) >"$FLEET/ports" 2>"$FLEET/relay.err" &
FLEET_PIDS="$FLEET_PIDS $!"
within 5 test -s "$FLEET/ports" || fleet_fail "no relay"
exec 3>"$FLEET/control"
printf '\n[coordinator]\nurl = https://localhost:%s\n' "$(cat "$FLEET/ports")" >>"$FLEET/a/rivulet.conf"
large_job 1
job_submit "$FLEET/job.json"
fleet_run a
resumed() { # resumed N: have both logs said so N times?
	for resumed_log in "$log" "$FLEET/a.log"; do
		[ "$(lines "$resumed_log" '1 if d["event"] == "delta.resumed" else None' | wc -l)" -ge "$1" ] || return 1
	done
}
within 60 uploaded $((2 * MIB)) || fleet_fail "the delta does not come"
echo "all now=1" >&3
within 30 resumed 1 || fleet_fail "the upload does not go on after a cut"
within 30 uploaded $((4 * MIB)) || fleet_fail "the delta does not come after a cut"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
within 60 resumed 2 || fleet_fail "the upload does not go on after a restart of the coordinator"
within 30 uploaded $((7 * MIB)) || fleet_fail "the delta does not come after a restart of the coordinator"
fleet_kill KILL "$AGENT_PID"
fleet_run a
within 60 resumed 3 || fleet_fail "the upload does not go on after a restart of the agent"
echo "all rate=0" >&3
job_done 60
exec 3>&-
accepted() { have "$FLEET/a.log" 'd["event"] == "delta.accepted"'; }
within 20 accepted || fleet_fail "no receipt"
began=$(lines "$log" 'd["began"] if d["event"] == "delta.resumed" else None' | sort -u)
[ -n "$began" ] && [ "$began" = "$(lines "$FLEET/a.log" 'd["began"] if d["event"] in ("delta.resumed", "delta.accepted") else None' | sort -u)" ] ||
	fleet_fail "the logs name other beginnings: $began, $(lines "$FLEET/a.log" 'd.get("began")')"
# The agent knows a request that broke from the 100 Continue before it.
have "$FLEET/a.log" 'd["event"] == "retry" and d.get("request") == "'"$began"'"' || fleet_fail "the broken request is not named: $began"
last=$(lines "$FLEET/a.log" 'd["request"] if d["event"] == "delta.accepted" else None')
have "$log" 'd["event"] == "delta.resumed" and d["request"] == "'"$last"'"' || fleet_fail "the request that went on is not that of the receipt: $last"
[ "${began%-*}" != "${last%-*}" ] || fleet_fail "names of two starts begin alike: $began $last"
have "$FLEET/a.log" 'd["event"] == "task.received" and "request" in d' || fleet_fail "a task without a name"

# --- a reload: all requests, then text again
! have "$log" 'd["event"] == "http.response" and d["level"] == "debug"' || fleet_fail "debug lines at level info"
reloaded() { [ "$(grep -c 'reload.done' "$log")" -ge "$1" ]; }
sed -i 's/^log_format = .*/&\nlog_requests = yes/' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
within 10 reloaded 1 || fleet_fail "no reload"
local_get /v1/devices
id=$(id_of "$FLEET/head")
have "$log" 'd.get("request") == "'"$id"'" and d["level"] == "info" and d["status"] == 200 and d["out"] == '"$(wc -c <"$FLEET/body")" || fleet_fail "no line of $id with log_requests"
local_get /v1/audit
id=$(id_of "$FLEET/head")
within 5 have "$log" 'd.get("request") == "'"$id"'" and d["out"] == '"$(wc -c <"$FLEET/body")" || fleet_fail "no line of a list, $id"
fleet_kill TERM "$AGENT_PID"
python3 -S -E tests/tools/log_lines.py --secrets "$FLEET/token" --secrets "$FLEET/a/key.pem" --secrets "$FLEET/state/keys/ca.key" \
	--secrets "$FLEET/state/keys/server.key" "$log" >"$FLEET/checked" 2>&1 || fleet_fail "$(cat "$FLEET/checked")"
cp "$FLEET/a.log" "$FLEET/rivulet.a.log"
python3 -S -E tests/tools/log_lines.py --secrets "$FLEET/token" --secrets "$FLEET/a/key.pem" "$FLEET/rivulet.a.log" >>"$FLEET/checked" 2>&1 ||
	fleet_fail "$(cat "$FLEET/checked")"
# The check finds what it is there for.
for line in '{"time":"2026-01-01T00:00:00.000Z","level":"info","event":"e","a":1,"a":2}' '{"time":"2026-01-01T00:00:00.000Z","level":"info","event":"e","a":NaN}' \
	'info e a=1' "{\"time\":\"2026-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"e\",\"a\":\"$(cut -c 1-160 "$FLEET/token")\"}"; do
	{ head -n 1 "$log" && echo "$line"; } >"$FLEET/wrong"
	! python3 -S -E tests/tools/log_lines.py "$FLEET/wrong" >/dev/null 2>&1 || fleet_fail "not found: $line"
done
sed -i 's/^log_format = .*/log_format = text/' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
within 10 reloaded 2 || fleet_fail "no reload to text"
grep -qE '^[0-9T:.-]+Z info reload.done config=' "$log" || fleet_fail "not text after a reload"

# --- ends of a start that fails: in JSON once the configuration is read
fleet_kill TERM "$DAEMON_PID"
sed -i 's/^log_format = .*/log_format = json/; s,^state_dir = .*,state_dir = /proc/none,' "$FLEET/rivuletd.conf"
"$RIVULETD" --config "$FLEET/rivuletd.conf" 2>"$FLEET/failed"
have "$FLEET/failed" 'd["event"] == "start.failed" and d["level"] == "error" and "/proc/none" in d["why"]' || fleet_fail "a start that fails: $(cat "$FLEET/failed")"
rm "$FLEET/a/cert.pem"
"$RIVULET" run --home "$FLEET/a" 2>"$FLEET/failed"
have "$FLEET/failed" 'd["event"] == "run.failed" and "cert.pem" in d["reason"]' || fleet_fail "an agent that cannot run: $(cat "$FLEET/failed")"
echo "ok: $(tr '\n' ' ' <"$FLEET/checked")in JSON; upload $began went on as $last"
