#!/bin/sh
# stages: gcc full address
# What a coordinator needs is deleted, cut or changed while it runs, one file after the other: it says so once, uses nothing of it, lets
# all else go on, and goes on by itself when the file is back.
#   FULL=1   it waits for most of a minute and a half
[ -n "${FULL:-}" ] || { echo "FULL=1 runs it, as .ci/run does"; exit 77; }
set -u
umask 077
FLEET_NAME=343-running
. tests/e2e/common.sh

fleet_start "reserve = 0
[limits]
retry_after = 1"
for i in 1 2 3; do
	glyph_device device$i $i 100
done
glyph_job "$FLEET/b.json" b 3 50
sed -i 's/"stop"/"select": {"labels": {"site": "nowhere"}}, "stop"/' "$FLEET/b.json"
job_submit "$FLEET/b.json"
B=$JOB
glyph_job "$FLEET/a.json" a 3 50
# A model of some megabytes: what is sent of it does not fit a socket.
sed -i -e 's/"out": 50/"out": 2000/' -e 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}}, "stop"/' "$FLEET/a.json"
job_submit "$FLEET/a.json"
A=$JOB
log=$FLEET/rivuletd.log
state=$FLEET/state
train() { # train DEVICE...
	for device; do
		timeout $((120 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/$device" --rounds 1 2>>"$FLEET/$device.log" || fleet_fail "$what: $device"
	done
}
round_is() { # round_is N REPORTS
	[ "$(curl_admin "/v1/jobs/$A" | pick "(d['open']['round'], d['open']['reports'])" 2>/dev/null)" = "($1, $2)" ]
}
job_is() { # job_is JOB STATE REASON
	curl_admin "/v1/jobs/$1" | pick "d['state'] == '$2' and '$3' in d['reason'] and bool(d['reason']) == ('$2' == 'paused')" | grep -qx True
}
lacking() { [ "$(curl_admin /readyz | pick "d.get('jobs_lacking', 0)")" = "$1" ]; }
reason() { curl_admin /readyz 2>/dev/null | sed -n 's/.*"reason":"\([^"]*\)".*/\1/p'; }
not_ready() { [ -n "$(reason)" ]; }
ready() { curl_admin /readyz 2>/dev/null | grep -q '"status":"ready"'; }
count() { grep -c "$1" "$log"; }
hurt() { # hurt HOW FILE; heal puts it back
	cp -p "$2" "$FLEET/good"
	case $1 in
	gone) rm "$2" ;;
	cut) truncate -s -5000 "$2" ;;
	flipped) python3 -S -E - "$2" <<-'END' ;;
		import os, sys
		st = os.stat(sys.argv[1])
		with open(sys.argv[1], "r+b") as f:
		    f.seek(-9, os.SEEK_END); b = f.read(1)
		    f.seek(-9, os.SEEK_END); f.write(bytes([b[0] ^ 4]))
		os.utime(sys.argv[1], ns=(st.st_atime_ns, st.st_mtime_ns))
	END
	replaced) cp "$FLEET/a.json" "$2.new" && mv "$2.new" "$2" ;;
	folder) rm "$2" && mkdir "$2" ;;
	esac
}
heal() {
	rm -rf "$1"
	cp -p "$FLEET/good" "$1.back" && mv "$1.back" "$1"
}
waits() { # waits WORDS: the job does, once, and nobody else
	within 15 job_is "$A" paused "$1" || fleet_fail "$what: the job does not wait: $(curl_admin "/v1/jobs/$A")"
	lacking 1 || fleet_fail "$what: /readyz: $(curl_admin /readyz)"
	job_is "$B" running "" || fleet_fail "$what: the other job is held up: $(curl_admin "/v1/jobs/$B")"
	[ "$(count "error job.damaged job=$A")" -eq $((said + 1)) ] || fleet_fail "$what: said $(count "error job.damaged job=$A") times"
}
goes_on() {
	within 15 job_is "$A" running "" || fleet_fail "$what: the job does not go on: $(curl_admin "/v1/jobs/$A")"
	lacking 0 || fleet_fail "$what: /readyz: $(curl_admin /readyz)"
	[ "$(count "job.damaged job=$A")" -eq $((said + 1)) ] || fleet_fail "$what: said more than once"
	said=$((said + 1))
}
said=0
what="the first rounds"
train device1 device2 device3
within 30 round_is 2 0 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"

# --- models and optimizer states
for how in gone cut flipped replaced folder; do
	what="the base model is $how"
	base=$(curl_admin "/v1/jobs/$A" | pick "d['model']")
	hurt $how "$state/models/$base"
	# Not one byte of it is sent, also before anybody has noticed.
	curl_admin "/v1/models/$base" -o "$FLEET/got" -w '%{http_code}' >"$FLEET/code" 2>/dev/null && fleet_fail "$what: it was sent: $(cat "$FLEET/code")"
	case $how in gone) waits "model $base is gone" ;; *) waits "model $base is " ;; esac
	heal "$state/models/$base"
	goes_on
	case $how in gone | flipped) ;; *) continue ;; esac
	what="the optimizer state is $how"
	optimizer=$(find "$state/models" -name '*.state')
	hurt $how "$optimizer"
	waits "optimizer state "
	heal "$optimizer"
	goes_on
done

what="another file in its place"
hurt gone "$state/models/$base"
waits "model $base is gone"
cp "$FLEET/a.json" "$state/models/$base"
within 15 job_is "$A" paused "model $base is damaged" || fleet_fail "$what: the reason is of before: $(curl_admin "/v1/jobs/$A")"
grep -q "job.stuck job=$A .*model $base is damaged" "$log" || fleet_fail "$what: the log does not say it"
if [ "$(id -u)" -ne 0 ]; then
	chmod 0 "$state/models/$base"
	within 15 job_is "$A" paused "belong to the coordinator" || fleet_fail "$what: who may read it: $(curl_admin "/v1/jobs/$A")"
fi
heal "$state/models/$base"
goes_on

what="a person decides while a file is gone"
hurt gone "$state/models/$base"
waits "model "
curl_admin "/v1/jobs/$A/pause" -X POST >/dev/null || fleet_fail "$what: pause"
job_is "$A" paused "paused by hand" || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
heal "$state/models/$base"
curl_admin "/v1/jobs/$A/resume" -X POST >/dev/null || fleet_fail "$what: resume"
goes_on

# --- a file is cut while it is sent
what="a model that is cut while it is sent"
curl -sS --limit-rate 300k --max-time 5 --unix-socket "$FLEET/admin.sock" "http://localhost/v1/models/$base" -o "$FLEET/got" 2>/dev/null &
slow=$!
arriving() { [ -s "$FLEET/got" ]; }
rm -f "$FLEET/got"
within 10 arriving || fleet_fail "$what: nothing comes"
cp -p "$state/models/$base" "$FLEET/good"
truncate -s 4096 "$state/models/$base"
waits "model "
wait $slow
curl_admin /healthz >/dev/null || fleet_fail "$what: the coordinator is gone: $(tail -n 5 "$log")"
heal "$state/models/$base"
goes_on

# --- accepted deltas: found when the round is folded
round=2
for how in gone cut flipped; do
	what="an accepted delta is $how"
	train device1 device2
	within 30 round_is $round 2 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
	delta=$(find "$state/spool" -name '*.delta' | head -n 1)
	hurt $how "$delta"
	train device3
	waits "delta $(basename "$delta" .delta) is "
	heal "$delta"
	goes_on
	round=$((round + 1))
	within 30 round_is $round 0 || fleet_fail "$what: not folded: $(curl_admin "/v1/jobs/$A")"
done

# --- a coordinator that was started without the file
train device1 device2
within 30 round_is $round 2 || fleet_fail "before the restarts: $(curl_admin "/v1/jobs/$A")"
for file in "models/$(curl_admin "/v1/jobs/$A" | pick "d['model']")" "models/$(find "$state/models" -name '*.state' -printf '%f')" \
	"spool/$(find "$state/spool" -name '*.delta' -printf '%f\n' | head -n 1)"; do
	for how in gone flipped; do
		what="a start while $file is $how"
		fleet_kill TERM "$DAEMON_PID"
		hurt $how "$state/$file"
		fleet_restart
		job_is "$A" paused "" || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
		lacking 1 || fleet_fail "$what: /readyz: $(curl_admin /readyz)"
		heal "$state/$file"
		goes_on
		round_is $round 2 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
	done
done
train device3
round=$((round + 1))
within 30 round_is $round 0 || fleet_fail "after the restarts: not folded: $(curl_admin "/v1/jobs/$A")"

# --- keys: what runs has them in memory
for file in sign.key server.crt; do
	what="keys/$file"
	was=$(count "error keys.damaged") mended=$(count "info keys.mended")
	cp -p "$state/keys/$file" "$FLEET/good"
	case $file in sign.key) rm "$state/keys/$file" ;; *) truncate -s -20 "$state/keys/$file" ;; esac
	[ "$(log_lines 1 "$log" "error keys.damaged.*$file")" -ge 1 ] || fleet_fail "$what: nobody says so"
	heal "$state/keys/$file"
	[ "$(log_lines $((mended + 1)) "$log" "info keys.mended")" -eq $((mended + 1)) ] || fleet_fail "$what: it is back"
	[ "$(count "error keys.damaged")" -eq $((was + 1)) ] || fleet_fail "$what: said more than once"
done

# --- the database: nothing is acknowledged that would be lost
for file in rivulet.db rivulet.db-wal; do
	what="$file is gone"
	mv "$state/$file" "$FLEET/good.db"
	curl_admin /v1/tokens -d '{"role": "reader", "access": true}' >"$FLEET/out" 2>&1 && fleet_fail "$what: a token was made: $(cat "$FLEET/out")"
	within 15 not_ready || fleet_fail "$what: /readyz: $(curl_admin /readyz)"
	mv "$FLEET/good.db" "$state/$file"
	within 15 ready || fleet_fail "$what: not ready again: $(curl_admin /readyz)"
	curl_admin /v1/tokens -d '{"role": "reader", "access": true}' >"$FLEET/out" 2>&1 || fleet_fail "$what: no token afterwards: $(cat "$FLEET/out")"
done
what="a round after all that"
train device1 device2 device3
within 30 round_is $((round + 1)) 0 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
fleet_end
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/out" 2>&1 || fleet_fail "the state afterwards: $(cat "$FLEET/out")"
echo "$said times a job waited for a file and went on by itself"
