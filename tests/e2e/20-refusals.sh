#!/bin/sh
# stages: gcc openssl address
# Every way to send a delta wrongly, and to join wrongly: each is refused with its own problem, costs no body bytes where the
# head alone decides, leaves the open round as it was and nothing in the spool. Then the honest devices finish the job.
#   BUILD=build/mbedtls tests/e2e/20-refusals.sh
set -u
FLEET_NAME=20-refusals
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
command -v curl >/dev/null || { echo "needs curl"; exit 77; }
[ -x "$peer" ] || { echo "needs $peer"; exit 77; }

# The delta has 318,010 numbers: two chunks, the second one short.
elements=318010
body=$((4 * elements + 64))
failed=0
checks=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	checks=$((checks + 1))
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}

round_now() { # "ROUND STATE REPORTS" of the open round
	curl -sS --max-time $((10 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" "http://localhost/v1/jobs/$job" |
		sed -n 's/.*"open":{"round":\([0-9]*\),"state":"\([a-z]*\)","reports":\([0-9]*\),.*/\1 \2 \3/p'
}

spool() { ls "$FLEET/state/spool"; }

# The refusal reaches the device a moment before its part of a file is removed.
unharmed() { # unharmed WHAT
	tries=0
	while [ "$(spool)" != "$spool_want" ] && [ $tries -lt $((40 * TEST_PATIENCE)) ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	say "$1: the spool" "$spool_want" "$(spool)"
	say "$1: the round" "$round_want" "$(round_now)"
}

put() { # put HOME MODE FAULT TASK...
	put_home=$1 put_mode=$2 put_fault=$3
	shift 3
	timeout $((60 * TEST_PATIENCE)) "$peer" put "$FLEET/$put_home" "$PORT" $elements "$put_mode" "$put_fault" "$@"
}

refuse() { # refuse head|body|end STATUS WORD MODE FAULT HOME TASK...: where the fault shows decides how much may be sent
	where=$1 status=$2 word=$3 mode=$4 fault=$5 home=$6
	shift 6
	got=$(put "$home" "$mode" "$fault" "$@")
	case $where-$mode in
	head-wait) say "$fault, waiting" "$status $word 0 closed" "$got" ;;
	body-wait) say "$fault, waiting" "$status $word * closed" "$got" ;;
	end-*) say "$fault, $mode" "$status $word $body open" "$got" ;;
	*-rush) say "$fault, rushing" "$status $word 1[0-9]* closed" "$got" ;;
	esac
	unharmed "$fault, $mode"
}

fleet_start ""
data="
[data digits]
format = glyphs
hand = 1
count = 60
seed = 1"
for name in odd one two; do fleet_join $name "$data"; done
cat >"$FLEET/job.json" <<END
{
  "name": "refusals",
  "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 400}, {"type": "relu"},
    {"type": "linear", "name": "fc2", "out": 10}], "loss": "cross_entropy"},
  "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.1},
  "evaluate": {"by": "devices", "figures": ["top1"]},
  "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
  "round": {"goal": 3, "quorum": 3, "deadline_s": 600},
  "aggregate": {"max_norm": 100, "max_examples": 1000},
  "stop": {"rounds": 3}
}
END
job=$(fleet_admin job submit "$FLEET/job.json") || fleet_fail "the job was not accepted"

# --- round 1: nobody has reported
task=$("$peer" ask "$FLEET/odd" "$PORT") || fleet_fail "the device got no task"
task_one=$("$peer" ask "$FLEET/one" "$PORT") || fleet_fail "another device got no task"
WIRE_OTHER=$FLEET/one
export WIRE_OTHER
round_want="1 open 0" spool_want=
unharmed "at first"

while read -r where status word fault; do
	for mode in wait rush; do
		# shellcheck disable=SC2086 # task is four words
		refuse "$where" "$status" "$word" $mode "$fault" odd $task
	done
done <<END
head 403 bad-signature unsigned
head 403 bad-signature flipped-signature
head 403 bad-signature changed
head 403 bad-signature other-key
head 404 unknown-job wrong-job
head 409 stale-round older-round
head 409 stale-round newer-round
head 409 wrong-base wrong-base
head 403 wrong-device wrong-device
head 403 wrong-task wrong-task
head 400 wrong-length shorter
head 400 wrong-length longer
head 400 wrong-length payload-short
head 400 wrong-length payload-long
body 400 wrong-root wrong-root
body 400 wrong-root wrong-leaf
body 400 wrong-chunk wrong-chunk
body 400 wrong-chunk wrong-last-chunk
body 400 not-finite nan
body 400 not-finite infinity
end 400 norm-too-large large
head 400 no-examples no-examples
head 400 too-many-examples many-examples
head 400 too-many-examples endless-examples
head 400 unknown-codec codec-f16
head 400 unknown-codec codec-unknown
head 400 unsupported masked
head 400 unsupported second-vector
head 400 unsupported other-kind
head 400 unsupported slice
head 400 bad-manifest reserved-bits
head 400 bad-manifest block
head 400 bad-manifest elements
head 400 bad-manifest no-steps
head 400 bad-manifest magic
head 400 bad-manifest version
head 400 bad-manifest truncated
head 400 bad-manifest extended
head 400 bad-manifest empty
head 400 bad-manifest junk
head 400 bad-manifest no-colons
head 400 bad-manifest no-manifest
head 400 bad-report report-missing
head 400 bad-report report-other
head 400 bad-report report-unannounced
head 400 bad-report report-base64
head 400 bad-report report-junk
head 400 bad-report report-wrong
head 400 bad-report report-counts
head 400 bad-report report-uncounted
END

# shellcheck disable=SC2086
for mode in wait rush; do
	refuse head 403 wrong-task $mode none odd ${task_one%% *} ${task#* }
	"$peer" cert "$FLEET/odd" "$FLEET/none-$mode" none
	refuse head 401 no-certificate $mode none none-$mode $task
	"$peer" cert "$FLEET/odd" "$FLEET/expired-$mode" expired "$FLEET/state"
	refuse head 403 expired-certificate $mode none expired-$mode $task
	"$peer" cert "$FLEET/odd" "$FLEET/unknown-$mode" unknown "$FLEET/state"
	refuse head 403 unknown-device $mode none unknown-$mode $task
done
# A certificate of another CA ends the handshake; under TLS 1.3 a client only learns it from what it reads first.
for kind in stranger self; do
	"$peer" cert "$FLEET/odd" "$FLEET/$kind" $kind
	# shellcheck disable=SC2086
	say "$kind" "000 *" "$(put $kind wait none $task)"
	unharmed $kind
done
say "refused handshakes in the log" 2 "$(log_lines 2 "$FLEET/rivuletd.log" ' tls\.failed ')"

# --- joining
join() { # join WANT TOKEN_FILE FAULT HOME
	mkdir -p "$FLEET/$4" && cp "$FLEET/odd/ca.pem" "$FLEET/$4/"
	say "join, $3, ${2##*/}" "$1" "$("$peer" join "$FLEET/$4" "$PORT" "$2" "$3")"
}
devices() { fleet_admin device list --json | tr '{' '\n' | grep -c '"device":'; }

fleet_admin token create --expires 1s -o "$FLEET/token.expired" || fleet_fail "no token"
fleet_admin token create -o "$FLEET/token.once" || fleet_fail "no token"
fleet_admin token create -o "$FLEET/token.revoked" || fleet_fail "no token"
id=$(sed 's/^rvt1-\([0-9a-f]*\)-.*/\1/' "$FLEET/token.revoked")
fleet_admin token revoke "$id" >/dev/null || fleet_fail "the token could not be revoked"
say "devices at first" 3 "$(devices)"
join "400 bad-csr * open" "$FLEET/token" bad-csr j1
join "400 bad-csr * open" "$FLEET/token" junk-csr j1
join "400 bad-message * open" "$FLEET/token" junk j1
join "401 bad-token * open" "$FLEET/token" no-token j1
join "401 bad-token * open" "$FLEET/token" bad-token j1
join "401 bad-token * open" "$FLEET/token.revoked" none j1
sleep 1.1
join "401 bad-token * open" "$FLEET/token.expired" none j1
say "devices after refused joins" 3 "$(devices)"
join "201 none * open" "$FLEET/token.once" none j2
join "200 none * open" "$FLEET/token.once" none j2
join "401 bad-token * open" "$FLEET/token.once" none j3
say "devices after one that was let in" 4 "$(devices)"
unharmed joining

# --- round 1 again: the odd device reports rightly, and then once more with another delta
# shellcheck disable=SC2086
{
	say "cut" "000 cut * closed" "$(put odd cut none $task)"
	say "a good delta" "201 receipt $body open" "$(put odd wait with-report $task)"
	round_want="1 open 1" spool_want=${task%% *}.delta
	unharmed "a good delta"
	refuse head 409 used-task wait another odd $task
	refuse head 409 used-task rush another odd $task
}

# --- rounds 2 and 3, beside honest devices
fleet_run one
fleet_run two
reports() { # reports ROUND N: waits
	tries=0
	until [ "$(round_now)" = "$1 open $2" ]; do
		[ $tries -lt $((200 * TEST_PATIENCE)) ] || fleet_fail "round $1 did not get $2 reports, but is at: $(round_now)"
		sleep 0.1
		tries=$((tries + 1))
	done
}
# Files of the round before go a moment after its commit.
two_files() { [ "$(spool | wc -l)" -eq 2 ]; }
for round in 2 3; do
	reports $round 2
	within 10 two_files || fleet_fail "the spool of round $round: $(spool)"
	old=$task
	task=$("$peer" ask "$FLEET/odd" "$PORT")
	round_want="$round open 2" spool_want=$(spool)
	say "files of round $round" 2 "$(echo "$spool_want" | grep -c '^[0-9a-f]\{32\}\.delta$')"
	# shellcheck disable=SC2086
	for mode in wait rush; do
		refuse head 409 stale-round $mode older-round odd $task
		refuse head 409 stale-round $mode none odd ${task% * *} $((round - 1)) ${task##* }
		refuse head 409 stale-round $mode nan odd $old
		refuse head 409 wrong-base $mode none odd ${task% *} ${old##* }
		refuse head 403 wrong-task $mode none odd ${old%% *} ${task#* }
		refuse head 403 bad-signature $mode unsigned odd $task
		refuse body 400 wrong-chunk $mode wrong-chunk odd $task
	done
	# shellcheck disable=SC2086
	say "cut in round $round" "000 cut * closed" "$(put odd cut none $task)"
	# shellcheck disable=SC2086
	say "a good delta of round $round" "201 receipt $body open" "$(put odd wait none $task)"
done

tries=0
until fleet_admin job show refusals --json | grep -q '"state": *"done"'; do
	[ $tries -lt $((100 * TEST_PATIENCE)) ] || fleet_fail "the job did not end"
	sleep 0.1
	tries=$((tries + 1))
done
within 10 spool_empty || say "the spool at the end" "" "$(spool)"
rounds=$(curl -sS --max-time $((10 * TEST_PATIENCE)) --unix-socket "$FLEET/admin.sock" "http://localhost/v1/jobs/$job/rounds" |
	tr '{' '\n' | sed -n 's/.*"round":\([0-9]*\),"state":"\([a-z]*\)".*"reports":\([0-9]*\),.*/\1 \2 \3/p' | tr '\n' ';')
say "the rounds" "1 committed 3;2 committed 3;3 committed 3;" "$rounds"
echo "$checks checks"
exit $failed
