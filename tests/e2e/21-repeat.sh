#!/bin/sh
# stages: gcc openssl address
# The same delta again gets the same receipt, byte for byte: at once, after a restart, after its round was committed, from two
# connections at a time; and a connection's next request works after an answer that came before the body.
#   BUILD=build/mbedtls tests/e2e/21-repeat.sh
set -u
FLEET_NAME=21-repeat
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
transport=$BUILD/tests/tools/transport_peer
command -v curl >/dev/null || { echo "needs curl"; exit 77; }
for tool in "$peer" "$transport"; do
	[ -x "$tool" ] || { echo "needs $tool"; exit 77; }
done
elements=318010
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) echo "ok: $1" ; return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}

fleet_start ""
for name in a b c; do fleet_join $name ""; done
cat >"$FLEET/job.json" <<END
{
  "name": "repeat",
  "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 400}, {"type": "relu"},
    {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
  "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
  "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
  "round": {"goal": 3, "quorum": 3, "deadline_s": 600},
  "stop": {"rounds": 2}
}
END
job=$(fleet_admin job submit "$FLEET/job.json") || fleet_fail "the job was not accepted"
for name in a b c; do
	mkdir "$FLEET/$name/good" "$FLEET/$name/other"
	task=$("$peer" ask "$FLEET/$name" "$PORT") || fleet_fail "$name got no task"
	eval "task_$name=\$task"
	# shellcheck disable=SC2086 # task is four words
	{
		"$peer" put "$FLEET/$name" "$PORT" $elements "save:$FLEET/$name/good" none $task
		"$peer" put "$FLEET/$name" "$PORT" $elements "save:$FLEET/$name/other" another $task
	}
done
# shellcheck disable=SC2154 # task_a and its like come from eval
id_a=${task_a%% *} id_b=${task_b%% *}

put() { # put DEVICE KIND OUT ID [CURL_OPTION...]: prints "STATUS CONNECTIONS_MADE BYTES_SENT"
	device=$1 kind=$2 out=$3 id=$4
	shift 4
	curl -sS --max-time $((60 * TEST_PATIENCE)) --cacert "$FLEET/$device/ca.pem" --cert "$FLEET/$device/cert.pem" \
		--key "$FLEET/$device/key.pem" -H "Rivulet-Manifest: $(cat "$FLEET/$device/$kind/manifest")" \
		-T "$FLEET/$device/$kind/body" -o "$FLEET/$out" -w '%{http_code} %{num_connects} %{size_upload}\n' \
		--expect100-timeout 30 "$URL/v1/deltas/$id" "$@"
}
get() { # the options of another request in the same curl, which prints "STATUS:CONNECTIONS_MADE;"
	echo --next -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/a/ca.pem" --cert "$FLEET/a/cert.pem" --key "$FLEET/a/key.pem" \
		-o "$FLEET/status.json" -w '%{http_code}:%{num_connects};' "$URL/v1/status"
}
same() { # same WHAT FILE: a receipt like the first
	say "$1: length" 160 "$(wc -c <"$FLEET/$2" | tr -d ' ')"
	if cmp -s "$FLEET/receipt1" "$FLEET/$2"; then say "$1: bytes" same same; else say "$1: bytes" same different; fi
}
body=$((4 * elements + 64))
lines() { tr '\n' ';'; }

# --- at once, over curl
# shellcheck disable=SC2046
{
	say "the delta, then another request" "201 1 $body;200:0;" "$(put a good receipt1 "$id_a" $(get) | lines)"
	say "again, then another request: no body bytes" "201 1 0;200:1;" "$(put a good receipt2 "$id_a" $(get) | lines)"
	same "the second receipt" receipt2
	say "again without asking first" "201 1 *;200:1;" "$(put a good receipt3 "$id_a" -H Expect: $(get) | lines)"
	same "the third receipt" receipt3
	say "another delta of the task, then another request" "409 1 0;200:1;" "$(put a other refused "$id_a" $(get) | lines)"
	say "its problem" "*urn:rivulet:error:used-task*" "$(cat "$FLEET/refused")"
	say "a task that is not there, then another request" "403 1 0;200:1;" \
		"$(put a good refused ffffffffffffffffffffffffffffffff $(get) | lines)"
}
say "the receipt begins with its magic" RVR1 "$(head -c 4 "$FLEET/receipt1")"

# --- one handle of the client's own transport: the delta, again, under another manifest, again; a GET after each
"$transport" "$FLEET/b" "$URL" "$id_b" "$FLEET/b/good/manifest" "$FLEET/b/good/body" "$FLEET/b/other/manifest" >"$FLEET/handle" ||
	fleet_fail "the transport's handle stopped working"
say "one handle: statuses" "PUT 201;GET 200;PUT 201;GET 200;PUT 409;GET 200;PUT 201;GET 200;" \
	"$(cut -d ' ' -f 1,2 "$FLEET/handle" | lines)"
say "one handle: the receipt is one" 1 "$(grep '^PUT 201' "$FLEET/handle" | sort -u | wc -l | tr -d ' ')"

# --- after a restart, the round still open: the accepted deltas are there too
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
fleet_restart
say "after kill -9" "201 1 0" "$(put a good receipt4 "$id_a")"
same "the receipt after kill -9" receipt4
say "reports after kill -9" 2 "$(fleet_admin job show repeat --json | sed -n 's/.*"reports": *\([0-9]*\).*/\1/p' | head -n 1)"

# --- two connections that end their body together: the newer transfer ends the older one, or finds it complete and gets
# its receipt; this is the round's last report
# shellcheck disable=SC2086,SC2154
say "two at a time" "*201 receipt $body open;*" \
	"$("$peer" put "$FLEET/c" "$PORT" $elements twice none $task_c | lines)"

# --- after its round was committed, and after a restart of that
tries=0
until fleet_admin job show repeat --json | grep -q '"rounds_committed": *1'; do
	[ $tries -lt $((100 * TEST_PATIENCE)) ] || fleet_fail "the round was not committed"
	sleep 0.1
	tries=$((tries + 1))
done
say "after the commit" "201 1 0" "$(put a good receipt5 "$id_a")"
same "the receipt after the commit" receipt5
say "another delta after the commit" "409 1 0" "$(put a other refused "$id_a")"
say "its problem after the commit" "*urn:rivulet:error:stale-round*" "$(cat "$FLEET/refused")"
kill -TERM "$DAEMON_PID"
wait "$DAEMON_PID"
say "the end on SIGTERM" 0 $?
fleet_restart
say "after the commit and a restart" "201 1 0" "$(put a good receipt6 "$id_a")"
same "the receipt after the commit and a restart" receipt6
say "the spool" "" "$(ls "$FLEET/state/spool")"
say "reports of round 1" 3 "$(curl -sS --max-time $((10 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" \
	"http://localhost/v1/jobs/$job/rounds/1" | sed -n 's/.*"reports":\([0-9]*\).*/\1/p')"
exit $failed
