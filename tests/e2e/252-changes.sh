#!/bin/sh
# stages: gcc openssl address
# Those who wait for a change of a job: what is refused, how many may wait, who is woken and who is not, revoked tokens, lost connections, a
# restart; parked devices that no change concerns; commands that wait, beside this coordinator, an older one, and one without places.
#   BUILD=build/mbedtls tests/e2e/252-changes.sh
set -u
FLEET_NAME=252-changes
. tests/e2e/common.sh
parked=200 hands=9

fleet_start "io_threads = 2
[limits]
requests_per_minute = 0
handshakes = 2000
handshakes_per_address = 2000
header_timeout = 600
strangers_cpu = 100"
python3 -S -E - "$FLEET/model.safetensors" <<'END'
import json, struct, sys
head = json.dumps({"w": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}).encode()
head += b" " * (-(len(head) + 8) % 64)
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head + bytes(4000))
END
MODEL=$(fleet_admin model put "$FLEET/model.safetensors" | tail -n 1) || fleet_fail "model put"
export MODEL TEST_PATIENCE
metric() { curl_admin /metrics | awk -v s="rivulet_$1 " 'index($0, s) == 1 { print substr($0, length(s) + 1) }'; }

# --- a device may not wait for what concerns readers
fleet_join one
run 22 curl -sS --fail -o "$FLEET/out" --cacert "$FLEET/one/ca.pem" --cert "$FLEET/one/cert.pem" --key "$FLEET/one/key.pem" "$URL/v1/changes"
says "403"

# --- readers by the hundred; at the end the coordinator stops, and starts again
mkfifo "$FLEET/told" "$FLEET/said"
python3 -E tests/tools/readers.py "$FLEET/admin.sock" localhost "$PORT" "$FLEET/state/keys/ca.crt" <"$FLEET/told" >"$FLEET/said" 2>"$FLEET/readers.log" &
readers=$!
exec 3>"$FLEET/told" 4<"$FLEET/said"
read -r line <&4 || line=
[ "$line" = stop ] || fleet_fail "readers: $(cat "$FLEET/readers.log")"
fleet_kill TERM "$DAEMON_PID"
fleet_restart
echo >&3
read -r line <&4 || line=
wait $readers || fleet_fail "readers: $(cat "$FLEET/readers.log")"
exec 3>&- 4<&-
case $line in "ok "*) CHECKS=$((CHECKS + ${line#ok })) ;; *) fleet_fail "readers said $line" ;; esac

# --- parked devices, of whose ask no change is
fleet_admin token create --uses 1000 -o "$FLEET/many" >/dev/null || fleet_fail "token create"
goal=$((hands + 1))
cat >"$FLEET/job.json" <<END
{"name": "bench", "model": {"init": "$MODEL"}, "trainer": "noop", "data": {"name": "none", "shape": [1]},
 "round": {"goal": $goal, "quorum": $goal, "deadline_s": 3600}}
END
job_submit "$FLEET/job.json"
BENCH_CA=$FLEET/state/keys/ca.crt "$BUILD/tests/tools/bench_changes" devices 127.0.0.1 "$PORT" "$FLEET/many" $parked $hands 1000 \
	<"$FLEET/told" >"$FLEET/said" 2>"$FLEET/devices.log" &
devices=$!
FLEET_PIDS="$FLEET_PIDS $devices"
exec 3>"$FLEET/told" 4<"$FLEET/said"
read -r line <&4 || line=
[ "$line" = parked ] || fleet_fail "devices: $(cat "$FLEET/devices.log")"
all_ask() { [ "$(metric task_asks_total)" -ge $((parked + hands)) ]; }
within 20 all_ask || fleet_fail "not all devices have asked"
asks=$(metric task_asks_total) changes=$(metric job_changes_total)
fleet_admin job show bench --follow --json >"$FLEET/followed" 2>"$FLEET/follow.log" &
follow=$!
FLEET_PIDS="$FLEET_PIDS $follow"
waits() { [ "$(metric change_readers)" -eq "$1" ]; }
within 20 waits 1 || fleet_fail "--follow does not wait"
echo "change $hands 50" >&3
read -r line <&4 || line=
[ "$line" = "changed $hands answered 0" ] || fleet_fail "devices: $line; $(cat "$FLEET/devices.log")"
[ "$(metric job_changes_total)" -ge $((changes + hands)) ] || fleet_fail "$hands deltas are no $hands changes"
[ "$(metric task_asks_total)" -eq "$asks" ] || fleet_fail "for $hands changes $(($(metric task_asks_total) - asks)) asks were run"
# The ring for devices runs each of them.
run 0 fleet_admin job set bench share=2
all_again() { [ "$(metric task_asks_total)" -ge $((asks + parked)) ]; }
within 20 all_again || fleet_fail "a setting woke no device: $(metric task_asks_total), before $asks"
exec 3>&- 4<&-
fleet_kill KILL "$devices"

# --- a command that waits is quiet while nothing happens, and sees a job's end at once
within 20 waits 1 || fleet_fail "--follow does not wait any more"
run 0 fleet_admin job stop bench
ended() { ! kill -0 "$1" 2>/dev/null; }
within 20 ended "$follow" || fleet_fail "--follow goes on behind the end"
fleet_kill KILL "$follow"
log_lines 1 "$FLEET/follow.log" "the job was stopped" >/dev/null

# --- beside an older coordinator, and one without places: as ever
cat >"$FLEET/older.py" <<'END'
import http.server, json, os, socketserver, sys, time
path, log, status, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
looks = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global looks
        with open(log, "a") as f:
            f.write("%.3f %s\n" % (time.time(), self.path))
        code, told = 200, {"rounds": []}
        if self.path.startswith("/v1/changes"):
            code, told = status, {"type": "urn:rivulet:error:" + ("not-found" if status == 404 else "too-many-requests")}
        elif "/rounds" not in self.path:
            looks += 1
            told = {"job": "0" * 32, "name": "x", "state": "done" if looks == last else "running", "reason": "", "stuck": None}
        body = json.dumps(told).encode()
        self.send_response(code)
        if code == 429:
            self.send_header("Retry-After", "5")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def address_string(self):
        return ""
    def log_message(self, *_):
        pass
Server(path, Handler).serve_forever()
END
beside() { # beside STATUS LOOKS: --follow to the end of a job, which the last look sees, with a coordinator that answers /v1/changes so
	rm -f "$FLEET/old.sock" "$FLEET/asked"
	python3 -S -E "$FLEET/older.py" "$FLEET/old.sock" "$FLEET/asked" "$@" &
	old=$!
	FLEET_PIDS="$FLEET_PIDS $old"
	within 10 test -S "$FLEET/old.sock" || fleet_fail "no older coordinator"
	run 0 "$RIVULET" job show 00000000000000000000000000000000 --follow --socket "$FLEET/old.sock"
	fleet_kill KILL "$old"
	looks=$(grep -c ' /v1/jobs/0*$' "$FLEET/asked") waits=$(grep -c changes "$FLEET/asked")
}
beside 404 4
[ "$looks $waits" = "4 1" ] || fleet_fail "an older coordinator was asked: $(cat "$FLEET/asked")"
beside 429 2
[ "$looks $waits" = "2 1" ] || fleet_fail "one without places was asked: $(cat "$FLEET/asked")"
awk '/jobs\/0*$/ { if (n++) exit $1 - at < 2; at = $1 }' "$FLEET/asked" || fleet_fail "one without places was asked too often: $(cat "$FLEET/asked")"

fleet_end
echo "ok: $CHECKS checks; $parked parked devices slept through $hands changes"
