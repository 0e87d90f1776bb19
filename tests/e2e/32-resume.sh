#!/bin/sh
# stages: gcc openssl address thread
# A delta of 12 MiB in pieces: cut at many bytes, coordinator killed in between, bytes flipped on its disk, two transfers at a time,
# another manifest. The offset never goes back, nothing is taken that does not match, and what was complete is sent once.
#   BUILD=build/mbedtls tests/e2e/32-resume.sh
set -u
FLEET_NAME=32-resume
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
MIB=1048576
elements=3180010 leaves=416 # 13 chunks
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}

fleet_start ""
for name in a b c d; do fleet_join $name ""; done
cat >"$FLEET/job.json" <<-END
	{"name": "large",
	 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 4000}, {"type": "relu"},
	                      {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
	 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
	 "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
	 "round": {"goal": 4, "quorum": 4, "deadline_s": 3600}, "stop": {"rounds": 1}}
END
job_submit "$FLEET/job.json"
for name in a b c d; do
	mkdir "$FLEET/$name/good" "$FLEET/$name/other"
	task=$("$peer" ask "$FLEET/$name" "$PORT") || fleet_fail "$name got no task"
	eval "task_$name=\${task%% *}"
	# shellcheck disable=SC2086 # task is four words
	{
		"$peer" put "$FLEET/$name" "$PORT" $elements "save:$FLEET/$name/good" none $task
		"$peer" put "$FLEET/$name" "$PORT" $elements "save:$FLEET/$name/other" another $task
	}
done
end=$(wc -c <"$FLEET/a/good/body" | tr -d ' ')

peer() { # peer DEVICE COMMAND...
	peer_device=$1
	shift
	eval "peer_task=\$task_$peer_device"
	# shellcheck disable=SC2154 # from eval
	python3 -S -E tests/tools/resume_peer.py "$FLEET/$peer_device" "$PORT" "$peer_task" "$FLEET/$peer_device/good" "$@" 2>&1
}
chunk() { # chunk N: offset of the body at which chunk N begins
	echo $((leaves + $1 * MIB))
}
killed() {
	kill -KILL "$DAEMON_PID"
	wait "$DAEMON_PID" 2>/dev/null
	fleet_restart
}
flip() { # flip FILE OFFSET
	python3 -S -E -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1); f.seek(int(sys.argv[2])); f.write(bytes([b[0] ^ 16]))' "$1" "$2"
}

# --- a: cut at many bytes. What does not hold a whole chunk is not worth keeping.
say "nothing yet" 404 "$(peer a head)"
say "PATCH of nothing" "409 wrong-offset 0" "$(peer a patch 0 end)"
for at in 0 1 100 $((leaves - 1)) $leaves $((leaves + 1)) $(($(chunk 1) - 1)); do
	say "PUT cut at $at" cut "$(peer a put "$at")"
	say "after $at bytes" 404 "$(peer a head)"
done
# shellcheck disable=SC2030,SC2154 # for this one question
say "another device's task" 404 "$(task_b=$task_a && peer b head)"
offset=0
for step in "put $(chunk 1)" "patch 1 $(($(chunk 1) + 1))" "patch 1 $(($(chunk 2) - 1))" "patch 1 $(chunk 2)" "kill" \
	"patch 2 $(($(chunk 4) + 77777))" "kill" "patch 4 $(($(chunk 5) + 4))" "patch 5 $(($(chunk 9) - 4))" \
	"patch 8 $(chunk 12)" "kill" "patch 12 end-1" "patch 12 end-100000" "kill"; do
	# shellcheck disable=SC2086 # words of a step
	set -- $step
	case $1 in
	put)
		say "$step" cut "$(peer a put "$2")"
		want=$(chunk 1)
		;;
	patch)
		say "$step" cut "$(peer a patch "$(chunk "$2")" "$3")"
		case $3 in end*) want=$(chunk 12) ;; *) want=$((leaves + (($3 - leaves) / MIB) * MIB)) ;; esac
		;;
	kill) killed ;;
	esac
	say "the offset after $step" "204 $want 0" "$(peer a head)"
	[ "$want" -ge "$offset" ] || say "the offset after $step does not go back" "$offset" "$want"
	offset=$want
done
for at in 0 $((leaves - 1)) "$(chunk 11)" $(($(chunk 12) - 1)) $(($(chunk 12) + 1)); do
	say "PATCH at the wrong byte $at" "409 wrong-offset $(chunk 12)" "$(peer a patch "$at" end)"
done
say "PATCH without its offset" "400" "$(curl -sS --cacert "$FLEET/a/ca.pem" --cert "$FLEET/a/cert.pem" --key "$FLEET/a/key.pem" \
	-X PATCH -o "$FLEET/out" -w '%{http_code}' -H "Rivulet-Manifest: $(cat "$FLEET/a/good/manifest")" -d x "$URL/v1/deltas/$task_a")"
say "another manifest" "409 wrong-offset 0" "$(MANIFEST=$FLEET/a/other/manifest peer a patch "$(chunk 12)" end)"
say "another device's manifest" "403 wrong-device -" "$(MANIFEST=$FLEET/b/good/manifest peer a patch "$(chunk 12)" end)"
say "the offset stays" "204 $(chunk 12) 0" "$(peer a head)"
say "the last piece" "201 receipt -" "$(peer a patch "$(chunk 12)" end)"
say "what was accepted" "204 $end 1" "$(peer a head)"
say "PATCH of it" "201 receipt -" "$(peer a patch "$(chunk 12)" end)"
say "PUT of it" "201 receipt -" "$(peer a put end)"
killed
say "what was accepted, after a kill" "204 $end 1" "$(peer a head)"

# --- b: bytes flipped on the disk, while the coordinator runs and while it does not. A file's head has 512 bytes.
say "PUT" cut "$(peer b put $(($(chunk 9) + 5)))"
# shellcheck disable=SC2154 # from eval
part=$FLEET/state/spool/$task_b.part
flip "$part" $((512 + $(chunk 6) + 1234))
say "up to the flipped byte" "204 $(chunk 6) 0" "$(peer b head)"
say "the file ends there" $((512 + $(chunk 6))) "$(wc -c <"$part" | tr -d ' ')"
say "PATCH further on" "409 wrong-offset $(chunk 6)" "$(peer b patch "$(chunk 9)" end)"
say "PATCH" cut "$(peer b patch "$(chunk 6)" "$(chunk 8)")"
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
flip "$part" $((512 + $(chunk 3)))
fleet_restart
say "up to the flipped byte, after a kill" "204 $(chunk 3) 0" "$(peer b head)"
flip "$part" $((512 + 40))
say "flipped in the leaves" "204 0 0" "$(peer b head)"
flip "$part" 100
say "flipped in the head" 404 "$(peer b head)"
say "the whole" "201 receipt -" "$(peer b put end)"

# --- c: a body that does not match its leaf is not taken, wherever it begins
say "PUT" cut "$(peer c put $(($(chunk 3) + 5)))"
flip "$FLEET/c/good/body" $(($(chunk 5) + 99))
say "a damaged rest" "400 wrong-chunk -" "$(peer c patch "$(chunk 3)" end)"
flip "$FLEET/c/good/body" $(($(chunk 5) + 99))
say "a refused delta leaves nothing" 404 "$(peer c head)"

# --- c: two transfers at a time: the newer one ends the older one
say "PUT and HEAD" "204 $leaves 503" "$(peer c race 0)"
say "PUT" cut "$(peer c put $(($(chunk 2) + 5)))"
say "PATCH and HEAD" "204 $(chunk 2) 503" "$(peer c race "$(chunk 2)")"
say "the offset after a race" "204 $(chunk 2) 0" "$(peer c head)"
racers=
for i in 1 2 3 4; do
	peer c patch "$(chunk 2)" end >"$FLEET/race.$i" &
	racers="$racers $!"
done
# shellcheck disable=SC2086 # a list of processes
wait $racers
say "answers to four at a time" 4 "$(cat "$FLEET"/race.? | wc -l)"
grep -qv '^201 receipt\|^503 unavailable\|^409 wrong-offset' "$FLEET"/race.? && say "four at a time" "" "$(cat "$FLEET"/race.?)"
case $(peer c head) in
"204 $end 1") ;;
*) say "the rest after four at a time" "201 receipt -" "$(peer c put end)" ;;
esac

# --- d in one piece: the round closes over all four
say "d" "201 receipt -" "$(peer d put end)"
job_done 60
within 10 spool_empty || say "the spool" "" "$(ls "$FLEET/state/spool")"
fleet_end
[ $failed -eq 0 ] && echo "ok: $offset of $end bytes in $((elements * 4 / MIB)) pieces, killed 5 times"
exit $failed
