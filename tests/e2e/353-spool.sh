#!/bin/sh
# stages: gcc address thread
# Deltas at rest. A bit of an accepted one flipped while the coordinator is down and while it is up: named, not used. Encrypted: no
# plaintext in the spool, the same model; a wrong key stops the start and loses nothing. In memory: what is lost with the machine is
# dropped and sent again, and devices keep their copies until the round is committed.
#   BUILD=build/mbedtls tests/e2e/353-spool.sh
set -u
FLEET_NAME=353-spool
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
MIB=1048576
elements=318010 leaves=64 # 2 chunks
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}
flip() { # flip FILE OFFSET
	python3 -S -E -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1); f.seek(int(sys.argv[2])); f.write(bytes([b[0] ^ 16]))' "$1" "$2"
}
holds() { # holds FILE OF FROM: yes if FILE holds the 24 bytes of OF from FROM on
	python3 -S -E -c 'import sys
of = open(sys.argv[2], "rb").read()[int(sys.argv[3]):][:24]
print("yes" if of in open(sys.argv[1], "rb").read() else "no")' "$1" "$2" "$3"
}
peer() { # peer DEVICE COMMAND...
	peer_device=$1
	shift
	eval "peer_task=\$task_$peer_device"
	# shellcheck disable=SC2154 # from eval
	python3 -S -E tests/tools/resume_peer.py "$FLEET/$peer_device" "$PORT" "$peer_task" "$FLEET/$peer_device/good" "$@" 2>&1
}
reports() { fleet_admin job show deltas --json | pick 'd["open"]["reports"] if d["open"] else "none"'; }
state() { fleet_admin job show deltas --json | pick 'd["state"] + " " + d["reason"]'; }
is_paused() { case $(state) in "paused "*) ;; *) return 1 ;; esac; }
killed() { # killed [COMMAND...]: kill -9, the command, a new start
	kill -KILL "$DAEMON_PID"
	wait "$DAEMON_PID" 2>/dev/null
	"$@"
	fleet_restart
}
setting() { # setting TEXT: what [spool] says from the next start on
	sed -i '/^\[spool\]$/,$d' "$FLEET/rivuletd.conf"
	printf '[spool]\n%b\n' "$1" >>"$FLEET/rivuletd.conf"
}
logged() { log_lines "${2:-1}" "$FLEET/rivuletd.log" "$1"; } # logged PATTERN [N]: how many lines; waits for N

fleet_start ""
for name in a b; do fleet_join $name ""; done
cat >"$FLEET/job.json" <<-END
	{"name": "deltas",
	 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 400}, {"type": "relu"},
	                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
	 "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
	 "round": {"goal": 2, "quorum": 2, "deadline_s": 3600}, "stop": {"rounds": 1}}
END
job_submit "$FLEET/job.json"
for name in a b; do
	mkdir "$FLEET/$name/good"
	task=$("$peer" ask "$FLEET/$name" "$PORT") || fleet_fail "$name got no task"
	eval "task_$name=\${task%% *}"
	# shellcheck disable=SC2086 # task is four words
	"$peer" put "$FLEET/$name" "$PORT" $elements "save:$FLEET/$name/good" none $task
done
# shellcheck disable=SC2154 # from eval
delta_a=$task_a.delta part_b=$task_b.part
body=$FLEET/a/good/body
head -c 32 /dev/urandom >"$FLEET/key"
head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$FLEET/other_key"
chmod 600 "$FLEET/key" "$FLEET/other_key"
fleet_keep a b

# --- plain: flipped while down, and while up
fleet_again
spool=$FLEET/state/spool
say "a delivers" "201 receipt -" "$(peer a put end)"
say "plain bytes in the spool" "yes yes" "$(holds "$spool/$delta_a" "$body" 0) $(holds "$spool/$delta_a" "$body" $((leaves + 1000)))"
killed flip "$spool/$delta_a" $((512 + leaves + MIB + 5))
say "flipped while down: the job" "paused *$task_a*chunk 1 of 2*" "$(state)"
say "flipped while down: the log" 1 "$(logged "delta.damaged .*device=.*task=$task_a.*chunk 1 of 2")"
say "flipped while down: b must wait" "503 *" "$(peer b put end)"
killed flip "$spool/$delta_a" $((512 + leaves + MIB + 5))
say "mended: the reports" 1 "$(reports)"
say "b in two pieces" cut "$(peer b put $((leaves + MIB + 17)))"
flip "$spool/$delta_a" $((512 + leaves + 3))
say "b delivers" "201 receipt -" "$(peer b patch $((leaves + MIB)) end)"
within 20 is_paused || say "flipped while up: the job" paused "$(state)"
say "flipped while up: the job" "paused *$task_a*chunk 0 of 2*" "$(state)"
say "flipped while up: the log" 1 "$(logged "delta.damaged .*device=.*task=$task_a.*chunk 0 of 2")"
say "flipped while up: models" 1 "$(find "$FLEET/state/models" -type f | wc -l | tr -d ' ')"
flip "$spool/$delta_a" $((512 + leaves + 3))
fleet_admin job resume deltas >/dev/null || say "resume" 0 1
job_done 30
want=$MODEL

# --- what nobody takes up goes
fleet_again
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
setting "part_time = 10s"
fleet_restart
say "b begins and does not come again" cut "$(peer b put $((leaves + MIB + 17)))"
say "a part has its place" "204 $((leaves + MIB)) 0" "$(peer b head)"
within 40 spool_empty || say "the spool after part_time" "" "$(ls "$spool")"
say "nothing is there any more" 404 "$(peer b head)"

# --- encrypted
fleet_again
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
setting "key_file = $FLEET/key"
fleet_restart
say "encrypted: a delivers" "201 receipt -" "$(peer a put end)"
say "encrypted: b begins" cut "$(peer b put $((leaves + MIB + 17)))"
for at in 0 $leaves $((leaves + 1000)) $((leaves + MIB - 10)) $((leaves + MIB + 100000)); do
	say "encrypted: plaintext of byte $at" no "$(holds "$spool/$delta_a" "$body" "$at")"
done
say "encrypted: plaintext in the part" "no no" \
	"$(holds "$spool/$part_b" "$FLEET/b/good/body" 0) $(holds "$spool/$part_b" "$FLEET/b/good/body" $((leaves + 5000)))"
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
for wrong in "key_file = $FLEET/other_key" "quota = 0" "key_file = $FLEET/rivuletd.conf" "key_file = $FLEET/nothing"; do
	setting "$wrong"
	timeout $((20 * TEST_PATIENCE)) "$RIVULETD" --config "$FLEET/rivuletd.conf" 2>"$FLEET/wrong.log" && say "a start with $wrong" 1 0
	case $wrong in
	*other*) says='*encrypted with the key*the key given is ????????????????*' ;;
	quota*) says='*encrypted with the key*the key given is none*' ;;
	*) says="*${wrong#*= }*" ;;
	esac
	say "a start with $wrong" "$says" "$(cat "$FLEET/wrong.log")"
done
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check.log" 2>&1 && say "check with a wrong key" fails "says 0"
setting "quota = 0"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check.log" 2>&1
say "check without the key" "*delta-unread*" "$(cat "$FLEET/check.log")"
setting "key_file = $FLEET/key"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check.log" 2>&1
say "check with the key" "0 0" "$? $(grep -c delta- "$FLEET/check.log")"
say "what a wrong key leaves" 2 "$(find "$spool" -type f | wc -l | tr -d ' ')"
# The same key, as systemd gives it.
setting ""
mkdir "$FLEET/credentials"
od -An -v -tx1 "$FLEET/key" | tr -d ' \n' >"$FLEET/credentials/rivulet.spool-key"
CREDENTIALS_DIRECTORY=$FLEET/credentials
export CREDENTIALS_DIRECTORY
fleet_restart
unset CREDENTIALS_DIRECTORY
say "encrypted: reports after a restart" 1 "$(reports)"
say "encrypted: b goes on" "201 receipt -" "$(peer b patch $((leaves + MIB)) end)"
job_done 30
say "the model of encrypted deltas" "$want" "$MODEL"

# --- in memory
ram=/dev/shm
[ -w $ram ] || ram=$FLEET
ram=$ram/rivulet-spool.$$
# An agent beside this test tidies up what nobody has open.
mkdir -m 700 "$ram" && exec 9<"$ram"
ram=$ram/spool
ram_cleanup() {
	ram_status=$?
	rm -rf "${ram%/spool}"
	(exit $ram_status)
	fleet_cleanup
}
trap ram_cleanup EXIT
fleet_again
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
setting "mode = memory\npath = $ram"
fleet_restart
receipt() { # receipt DEVICE: status of PUT, and what it says of the spool
	eval "receipt_task=\$task_$1"
	# shellcheck disable=SC2154 # from eval
	curl -sS --cacert "$FLEET/$1/ca.pem" --cert "$FLEET/$1/cert.pem" --key "$FLEET/$1/key.pem" -D "$FLEET/head" -o /dev/null \
		-H "Rivulet-Manifest: $(cat "$FLEET/$1/good/manifest")" -T "$FLEET/$1/good/body" "$URL/v1/deltas/$receipt_task"
	echo "$(sed -n 's/^HTTP.* \(20[01]\|4..\|5..\).*/\1/p' "$FLEET/head") $(sed -n 's/^Rivulet-Spool: \([a-z]*\).*/\1/p' "$FLEET/head")"
}
say "memory: a delivers" "201 memory" "$(receipt a)"
say "memory: again" "201 memory" "$(receipt a)"
say "memory: where it lies" "$delta_a" "$(ls "$ram")"
killed true
say "memory: a killed coordinator loses nothing" 1 "$(reports)"
killed rm -rf "$ram"
say "memory: a lost spool" 0 "$(reports)"
say "memory: the log" 1 "$(logged 'spool.lost deltas=1')"
say "memory: a sends again" "201 memory" "$(receipt a)"
killed flip "$ram/$delta_a" $((512 + leaves + 7))
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check.log" 2>&1
say "check beside a spool elsewhere" 0 $?
say "memory: a damaged delta is lost, too" "0 2" "$(reports) $(logged 'spool.lost deltas=1' 2)"
say "memory: a sends once more" "201 memory" "$(receipt a)"
say "memory: in the audit log" 2 "$(curl_admin '/v1/audit' | grep -o 'delta.lost' | wc -l | tr -d ' ')"
say "memory: b delivers" "201 memory" "$(receipt b)"
job_done 30
say "the model of deltas in memory" "$want" "$MODEL"
say "memory: after the commit" "201 " "$(receipt a)"
ram_empty() { [ -z "$(ls "$ram")" ]; }
within 10 ram_empty || say "memory: the spool after the commit" "" "$(ls "$ram")"
fleet_end

# --- in memory, with devices: each keeps its delta until the round is committed
rm -rf "$FLEET/state" "$FLEET/a" "$FLEET/b"
say "init" 0 "$("$RIVULETD" --config "$FLEET/rivuletd.conf" init >"$FLEET/token" 2>>"$FLEET/init.log"; echo $?)"
fleet_restart
glyph_device d 1 60
glyph_device e 2 60
glyph_job "$FLEET/job.json" deltas 2 1
job_submit "$FLEET/job.json"
fleet_run d
reported() { [ "$(reports)" = "$1" ]; }
within 20 reported 1 || say "memory: d reports" 1 "$(reports)"
within 10 grep -q delta.held "$FLEET/d.log" || say "memory: d is told" 1 0
say "memory: d keeps it" 1 "$(find "$FLEET/d/outbox" -name '*.delta' | wc -l | tr -d ' ')"
killed rm -rf "$ram"
within 40 reported 1 || say "memory: d reports again" 1 "$(reports)"
fleet_run e
job_done 60
kept() { find "$FLEET/d/outbox" "$FLEET/e/outbox" -name '*.delta' | wc -l | tr -d ' '; }
none_kept() { [ "$(kept)" = 0 ]; }
within 60 none_kept || say "memory: kept after the commit" 0 "$(kept)"
say "memory: d trained once" 1 "$(grep -c ' trained ' "$FLEET/d.log")"
fleet_end
[ $failed -eq 0 ] && echo "ok: model $want three times"
exit $failed
