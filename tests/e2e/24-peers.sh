#!/bin/sh
# What one remote address may cost: handshakes in flight over all I/O threads, and failures without an identity. Devices behind
# the same address go on.
#   BUILD=build/mbedtls tests/e2e/24-peers.sh
set -u
FLEET_NAME=24-peers
. tests/e2e/common.sh
failed=0

say() { # say WHAT WANT GOT
	[ "$2" = "$3" ] && { echo "ok: $1"; return; }
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}
ask() { # ask WHO METHOD PATH [CURL_OPTION...]: the status; the answer is in $FLEET/out, its head in $FLEET/head
	who=$1 method=$2 path=$3
	shift 3
	[ "$who" = none ] || set -- --cert "$FLEET/$who/cert.pem" --key "$FLEET/$who/key.pem" "$@"
	curl -sS --max-time 120 --cacert "$FLEET/dev/ca.pem" -o "$FLEET/out" -D "$FLEET/head" -w '%{http_code}' -X "$method" \
		"$@" "$URL$path" 2>>"$FLEET/curl.log"
}
fail_times() { # fail_times N: a request without a certificate, N times; prints the different statuses
	for _ in $(seq "$1"); do
		ask none GET /v1/status
		echo
	done | sort -u | tr '\n' ' '
}

fleet_start "io_threads = 4
[limits]
handshakes_per_address = 3
failures_per_minute = 10
header_timeout = 600"
fleet_join dev ""

# --- handshakes in flight: silent connections, which spread over the threads
say "silent connections that stay open, of 12" 3 "$(python3 - "$PORT" <<'END'
import socket, sys, time
all = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(12)]
def is_open(s):
    s.setblocking(False)
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
end = time.time() + 60
while time.time() < end and sum(is_open(s) for s in all) > 3:
    time.sleep(0.1)
time.sleep(1)
print(sum(is_open(s) for s in all))
END
)"
served() { [ "$(ask dev GET /v1/status)" = 200 ]; }
within 10 served
say "once they are gone there is room" 200 "$(ask dev GET /v1/status)"

# --- failures: begin anew, without those of the connections above
kill -TERM "$DAEMON_PID"
wait "$DAEMON_PID"
fleet_restart
say "failures up to the limit" "401 " "$(fail_times 10)"
say "and above it" "429 " "$(fail_times 2)"
say "the problem" 1 "$(grep -c '"urn:rivulet:error:too-many-failures"' "$FLEET/out")"
say "when to ask again" 1 "$(grep -ic '^retry-after: 60' "$FLEET/head")"
say "a join waits too" 429 "$(ask none POST /v1/join -H "Authorization: Bearer $(cat "$FLEET/token")" -d '{}')"
for path in /healthz /readyz /v1/ca; do
	say "$path is for everyone" 200 "$(ask none GET $path)"
done
say "a device is served" 200 "$(ask dev GET /v1/status)"
say "a device's mistakes are its own" "400" "$(ask dev POST /v1/tasks -d '{]')"
say "the admin socket is no address" 404 "$(curl -sS --max-time 120 -o "$FLEET/out" -w '%{http_code}' --unix-socket \
	"$FLEET/admin.sock" http://localhost/v1/none)"

# --- a limit of 0, by reload
sed -i 's/^failures_per_minute = .*/failures_per_minute = 0/' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
unlimited() { [ "$(ask none GET /v1/status)" = 401 ]; }
within 10 unlimited
say "no limit" "401 " "$(fail_times 3)"

# --- handshakes that fail count, those of devices do not
sed -i 's/^failures_per_minute = .*/failures_per_minute = 10/' "$FLEET/rivuletd.conf"
kill -TERM "$DAEMON_PID"
wait "$DAEMON_PID"
fleet_restart
for _ in $(seq 15); do
	ask dev GET /v1/status >/dev/null
done
say "handshakes of devices are no failures" "401 " "$(fail_times 1)"
for _ in $(seq 12); do
	curl -sS --max-time 120 -o "$FLEET/out" "$URL/healthz" 2>>"$FLEET/curl.log"
done
say "handshakes that fail are" "429 " "$(fail_times 1)"
say "devices still come in" 200 "$(ask dev GET /v1/status)"
exit $failed
