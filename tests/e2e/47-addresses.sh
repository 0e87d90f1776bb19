#!/bin/sh
# stages: gcc
# How a device reaches its coordinator: several addresses, one that is gone, silent or in a stranger's hands; a coordinator that
# moves; IPv6; a name that cannot be resolved for a while; an HTTP proxy.
set -u
FLEET_NAME=47-addresses
. tests/e2e/common.sh
tools=$BUILD/tests/tools

helpers=
ready() { [ -s "$1" ]; }
background() { # background OUT COMMAND...: waits for its first line
	out=$1
	shift
	"$@" >"$out" 2>>"$FLEET/tools.log" &
	FLEET_PIDS="$FLEET_PIDS $!"
	helpers="$helpers $!"
	within 20 ready "$out" || fleet_fail "$1 did not start"
}
tell_relay() { printf '%s\n' "$@" >"$FLEET/relay.control"; }
relay_count() { # relay_count KEY
	rm -f "$FLEET/counts"
	tell_relay "stats $FLEET/counts"
	within 5 ready "$FLEET/counts" || fleet_fail "the relay says nothing"
	sed -n "s/.*$1=\([0-9]*\).*/\1/p" "$FLEET/counts"
}
submit() { # submit NAME ROUNDS [GOAL]
	glyph_job "$FLEET/job.json" "$1" "${3:-1}" "$2"
	job_submit "$FLEET/job.json"
}
urls() { # urls NAME URL...: what its owner set
	name=$1
	shift
	sed -i '/^\[coordinator\]$/,$d' "$FLEET/$name/rivulet.conf"
	echo '[coordinator]' >>"$FLEET/$name/rivulet.conf"
	for url; do
		echo "url = $url" >>"$FLEET/$name/rivulet.conf"
	done
}
said() { grep -q "$2" "$FLEET/$1.log"; }
stop() { fleet_kill TERM "$AGENT_PID"; }

FLEET_NAMES="--name localhost --name 127.0.0.1 --name ::1 --name coordinator.test"
fleet_start
glyph_device dev 1 100
background "$FLEET/relay.out" "$tools/relay" -n 2 -c "$FLEET/relay.control" "127.0.0.1:$PORT"
read -r first second <"$FLEET/relay.out"

# --- joining again adds an address; the coordinator moves to it while a delta is under way
join() { "$RIVULET" join "$1" --token-file "$FLEET/token" --home "$FLEET/dev" >>"$FLEET/join.log" 2>&1 || fleet_fail "join $1"; }
join "https://127.0.0.1:$second"
join "https://127.0.0.1:$second"
python3 -S -E -c 'import json, sys
sys.exit(json.load(open(sys.argv[1]))["coordinators"] != sys.argv[2:])' "$FLEET/dev/device.json" \
	"$URL" "https://127.0.0.1:$second" || fleet_fail "addresses: $(cat "$FLEET/dev/device.json")"
glyph_job "$FLEET/job.json" moves 1 3
sed -i 's/"epochs": 1/"epochs": 3000/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
fleet_run dev
in_outbox() { [ -n "$(find "$FLEET/dev/outbox" -name '*.delta')" ]; }
training() { [ -n "$(find "$FLEET/dev/models" -name '*.safetensors' 2>/dev/null)" ]; }
within 20 training || fleet_fail "no model"
fleet_kill KILL "$DAEMON_PID"
within 60 in_outbox || fleet_fail "no delta was kept"
old=$PORT
sed -i "s/^listen = .*/listen = 127.0.0.1:0/" "$FLEET/rivuletd.conf"
fleet_daemon
[ "$PORT" != "$old" ] || fleet_fail "the coordinator did not move"
tell_relay "all to=127.0.0.1:$PORT"
job_done 90
stop
[ "$(grep -c ' trained ' "$FLEET/dev.log")" -eq 3 ] || fleet_fail "a delta was lost in the move: $(grep -c ' trained ' "$FLEET/dev.log") trainings"
said dev "delta.accepted.* round=1 " || fleet_fail "round 1 was not reported"

# --- an address that accepts and says nothing: the next one after 20 s, and then that one
tell_relay "1 stall=1"
: >"$FLEET/dev.log"
urls dev "https://127.0.0.1:$first" "$URL"
submit silent 2
start=$(date +%s)
fleet_run dev
job_done 60
took=$(($(date +%s) - start))
stop
[ $took -le $((40 * TEST_PATIENCE)) ] || fleet_fail "a silent address cost $took s"
[ "$(relay_count stalled)" -eq 1 ] || fleet_fail "the silent address was tried $(relay_count stalled) times"

# --- and the way back, when the second one is gone
tell_relay "1 stall=0"
urls dev "https://127.0.0.1:$second" "https://127.0.0.1:$first"
submit back 1
: >"$FLEET/dev.log"
fleet_run dev
job_done 60
before=$(relay_count connections)
tell_relay "2 drop=3600000 now=1"
submit again 1
job_done 60
stop
[ "$(relay_count connections)" -gt "$before" ] || fleet_fail "the other address was not used"

# --- a captive portal: another CA's certificate is passed over, and alone it only costs time
"$tools/tlspeer" init "$FLEET" || fleet_fail "tlspeer"
background "$FLEET/portal.out" "$tools/tlspeer" serve "$FLEET"
read -r portal rest <"$FLEET/portal.out"
tell_relay "1 to=127.0.0.1:$portal"
urls dev "https://127.0.0.1:$first" "$URL"
submit portal 1
fleet_run dev
job_done 30
stop
urls dev "https://127.0.0.1:$first"
submit alone 1
: >"$FLEET/dev.log"
fleet_run dev
refused() { said dev "certificate"; }
within 20 refused || fleet_fail "the portal's certificate was not noticed: $(cat "$FLEET/dev.log")"
[ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["state"]')" = running ] || fleet_fail "the job is over?"
tell_relay "1 to=127.0.0.1:$PORT"
job_done 60
stop

# --- a proxy, of which the environment tells; a password; a proxy that cannot
background "$FLEET/proxy.out" python3 -S -E tests/tools/connect_proxy.py "$FLEET/proxy.requests" someone:secret
proxy=127.0.0.1:$(cat "$FLEET/proxy.out")
urls dev "$URL"
submit proxy 1
: >"$FLEET/dev.log"
touch "$FLEET/proxy.requests.down"
export https_proxy="http://someone:secret@$proxy" http_proxy="http://127.0.0.1:9"
fleet_run dev
unreachable() { said dev "unreachable"; }
within 20 unreachable || fleet_fail "a proxy that cannot: $(cat "$FLEET/dev.log")"
rm "$FLEET/proxy.requests.down"
job_done 60
said dev ' reachable url=.* away_s=' || fleet_fail "not told that the coordinator was reached again: $(cat "$FLEET/dev.log")"
stop
grep -q "^CONNECT localhost:$PORT HTTP/1.1 200$" "$FLEET/proxy.requests" || fleet_fail "not through the proxy: $(cat "$FLEET/proxy.requests")"
fleet_admin status >/dev/null || fleet_fail "the admin socket was looked for behind the proxy"
unset https_proxy http_proxy

# --- a name that cannot be resolved, then can
urls dev "https://nowhere.invalid:$PORT" "$URL"
submit nowhere 1
fleet_run dev
job_done 60
stop
if unshare -m true 2>/dev/null; then
	cp /etc/hosts "$FLEET/hosts"
	printf 'hosts: files\n' >"$FLEET/nsswitch.conf"
	urls dev "https://coordinator.test:$PORT"
	submit names 1
	: >"$FLEET/dev.log"
	# shellcheck disable=SC2016 # $0 and $@ are the inner shell's
	unshare -m sh -c 'mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@"' \
		"$FLEET" "$RIVULET" run --home "$FLEET/dev" 2>>"$FLEET/dev.log" &
	AGENT_PID=$!
	FLEET_PIDS="$FLEET_PIDS $AGENT_PID"
	unresolved() { said dev "resolve"; }
	within 20 unresolved || fleet_fail "the name was resolved"
	echo "127.0.0.1 coordinator.test" >>"$FLEET/hosts"
	job_done 60
	stop
	names="a name that came back,"
else
	names="(no mount namespaces here),"
fi

# --- IPv6
if python3 -S -E -c 'import socket; socket.create_server(("::1", 0), family=socket.AF_INET6)' 2>/dev/null; then
	fleet_kill TERM "$DAEMON_PID"
	sed -i "s/^listen = .*/listen = [::1]:$PORT/" "$FLEET/rivuletd.conf"
	fleet_daemon
	"$RIVULET" join "https://[::1]:$PORT" --token-file "$FLEET/token" --name six --home "$FLEET/six" >>"$FLEET/join.log" 2>&1 ||
		fleet_fail "join over IPv6"
	cp "$FLEET/dev/rivulet.conf" "$FLEET/six/rivulet.conf"
	sed -i '/^\[coordinator\]$/,$d' "$FLEET/six/rivulet.conf"
	urls dev "https://localhost:$PORT"
	submit six 1 2
	fleet_run six
	fleet_run dev
	job_done 60
	six="IPv6"
else
	six="(no IPv6 here)"
fi
for pid in $helpers; do
	fleet_kill KILL "$pid"
done
fleet_end
echo "moved, silent ($took s), gone, a portal, a proxy, $names $six"
