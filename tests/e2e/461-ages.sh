#!/bin/sh
# stages: gcc
# What is deleted for its age waits while the coordinator's clock has stepped: at a start, while it runs, over restarts; until the clock is
# right again or an administrator confirms it.
set -u
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=461-ages
. tests/e2e/common.sh
type faketime >/dev/null 2>&1 && [ -z "${SAN:-}" ] || skip "needs faketime, and no sanitizer"
fake= # faketime makes a semaphore by its process's number, which one that was killed may have left
for _ in 1 2 3 4 5; do [ -n "$fake" ] || fake=$(faketime -f +0s sh -c 'echo $LD_PRELOAD' 2>/dev/null); done
[ -n "$fake" ] || skip "faketime does not start"

clock() { echo "$1" >"$FLEET/clock"; }
logged() { tail -n +"$from" "$FLEET/rivuletd.log" | grep -qE "$1"; }
mark() { from=$(($(wc -l <"$FLEET/rivuletd.log") + 1)); }
# await WHAT PATTERN: in the log since the last mark
await() { within 30 logged "$2" || fleet_fail "$1: no $2"; }
kept() { # kept WHAT: retention has looked, and the job is there with its models
	mark
	within 60 logged retention.waits || fleet_fail "$1: retention did not look"
	[ "$(curl_admin /v1/jobs | pick "len(d['jobs'])")" = 1 ] || fleet_fail "$1: the job is gone"
	[ "$(find "$FLEET/state/models" -type f | wc -l)" -eq "$models" ] || fleet_fail "$1: $(ls "$FLEET/state/models")"
	logged "job.deleted" && fleet_fail "$1: something was deleted"
	checks=$((checks + 1))
}
doubt() { curl_admin /v1/status | pick "d['clock']['reason']"; }
want() { # want WHAT WANT GOT
	checks=$((checks + 1))
	[ "$2" = "$3" ] || fleet_fail "$1: want \"$2\", got \"$3\""
}
meta() { # meta KEY: of the stopped coordinator's database
	python3 -S -E - "$FLEET/state/rivulet.db" "$1" <<-'END'
		import sqlite3, sys
		row = sqlite3.connect(sys.argv[1]).execute("SELECT value FROM meta WHERE key = ?", (sys.argv[2],)).fetchone()
		print(row[0] if row else None)
	END
}
start() { # start CLOCK
	clock "$1"
	mark
	fleet_restart
}
stop() { fleet_kill "${1:-TERM}" "$DAEMON_PID"; }
begin() { # begin CLOCK: the state as it was kept
	[ -z "$DAEMON_PID" ] || stop
	rm -rf "$FLEET/state" && cp -a "$FLEET/kept/state" "$FLEET/state"
	start "$1"
}
gone() { [ "$(curl_admin /v1/jobs | pick "len(d['jobs'])")" = 0 ]; }
checks=0

fleet_dir
clock +0s
real=$(realpath "$RIVULETD")
cat >"$FLEET/rivuletd.sh" <<-END
	#!/bin/sh
	export LD_PRELOAD='$fake' FAKETIME_TIMESTAMP_FILE=$FLEET/clock FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1
	exec $real "\$@"
END
chmod +x "$FLEET/rivuletd.sh"
RIVULETD=$FLEET/rivuletd.sh
fleet_start "
log_level = debug
[retention]
ended_jobs = 90d"
glyph_device dev 1 100
glyph_job "$FLEET/job.json" short 1 3
job_submit "$FLEET/job.json"
"$RIVULET" run --home "$FLEET/dev" --rounds 3 2>>"$FLEET/dev.log" || fleet_fail "three rounds"
job_done 60
models=$(find "$FLEET/state/models" -type f | wc -l)
fleet_keep
newest=$(meta clock_newest)
[ "$newest" -gt 0 ] || fleet_fail "no time was stored: $newest"

# --- far in the future at the start: nothing goes, however often it starts, and the newest stored time stays
start +400d
await "at +400 d" 'warn clock.doubted reason=clock-later'
kept "at +400 d"
want "the reason" clock-later "$(doubt)"
fleet_admin job delete --older 30d --yes >"$FLEET/said" 2>&1 && fleet_fail "deleted by hand, by age: $(cat "$FLEET/said")"
grep -q "clock has stepped" "$FLEET/said" || fleet_fail "job delete: $(cat "$FLEET/said")"
fleet_admin status >"$FLEET/said" || fleet_fail "status is not ready: $(cat "$FLEET/said")"
grep -q '^warning: .*days later than the newest time.*rivulet clock confirm' "$FLEET/said" || fleet_fail "status: $(cat "$FLEET/said")"
curl_admin /readyz >"$FLEET/ready" || fleet_fail "readyz: $(cat "$FLEET/ready")"
want "readyz" "ready clock-later" "$(pick "d['status'] + ' ' + d['warning']" <"$FLEET/ready")"
for i in 1 2 3; do
	stop "$([ $i = 2 ] && echo KILL || echo TERM)"
	want "the newest time after start $i" "$newest" "$(meta clock_newest)"
	start +40${i}d
	await "start $i" 'clock.doubted'
done
# The clock is right: all by itself.
mark
clock +0s
await "right again" 'info clock.believed'
want "no reason" "" "$(doubt)"
logged job.deleted && fleet_fail "deleted by a clock that is right"

# --- it was off for so long: an administrator says so, once
begin +400d
await "off" 'clock.doubted'
kept "off"
run 0 fleet_admin clock confirm
says "the clock is confirmed"
within 40 gone || fleet_fail "the job is still there: $(curl_admin /v1/jobs)"
await "why" 'info job.deleted .*name=short .*why="it ended 9[0-9]+\.[0-9] hours ago: .retention. ended_jobs is 7776000 s"'
[ "$(find "$FLEET/state/models" -type f | wc -l)" -eq 0 ] || fleet_fail "models are left"
run 0 fleet_admin clock confirm
says "the clock was not in doubt"
want "audited once" 1 "$(curl_admin "/v1/audit?limit=1000" | pick "len([e for e in d['entries'] if 'clock.confirmed' in e['body']])")"
stop
[ "$(meta clock_newest)" -gt $((newest + 390 * 86400)) ] || fleet_fail "the confirmed time was not stored"
start +401d
want "a day later" "" "$(doubt)"

# --- a jump while it runs is seen before anything goes; a kill does not make it right, nor does a jump that a start would believe
for jump in +400d +2d -12y; do
	begin +0s
	want "before $jump" "" "$(doubt)"
	mark
	clock $jump
	await "$jump" 'warn clock.doubted reason=clock-stepped'
	kept "$jump"
	stop KILL
	[ "$(meta clock_newest)" -lt $((newest + 3600)) ] || fleet_fail "$jump: the stored time has moved"
	start $jump
	await "$jump, again" 'clock.doubted'
	kept "$jump, again"
	want "$jump, over a restart" clock-stepped "$(doubt)"
	mark
	clock +0s
	await "back from $jump" 'clock.believed'
	stop
	start +0s
	want "after $jump" "" "$(doubt)"
done

# --- a job that ends while the clock is far back has no date to go by, and gets that of the day when it is right
job_submit "$FLEET/job.json" 2>/dev/null || true
sed 's/"short"/"long"/; s/"rounds": 3/"rounds": 1000/' "$FLEET/job.json" >"$FLEET/long.json"
job_submit "$FLEET/long.json"
mark
clock -12y
await "back in time" 'clock.doubted'
fleet_admin job stop "$JOB" >/dev/null || fleet_fail "job stop"
want "no date" None "$(curl_admin "/v1/jobs/$JOB" | pick "d['ended_at']")"
mark
clock +0s
await "right" 'clock.believed'
looked() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['ended_at'] is not None and abs(d['ended_at'] - $(date +%s)) < 600")" = True ]; }
within 40 looked || fleet_fail "no date: $(curl_admin "/v1/jobs/$JOB")"
stop
start +0s
looked || fleet_fail "no date after a restart: $(curl_admin "/v1/jobs/$JOB")"

# --- a day back at the start, and right again; some days off are nothing
begin -1d
await "a day back" 'warn clock.doubted reason=clock-earlier'
kept "a day back"
mark
clock +0s
await "right" 'clock.believed'
begin +6d
want "six days off" "" "$(doubt)"

# --- what was set aside is not removed by a clock that nobody believes, nor by hand
stop
mkdir -p "$FLEET/state/lost"
touch "$FLEET/state/lost/one"
clock +400d
"$RIVULETD" --config "$FLEET/rivuletd.conf" check --delete-lost >"$FLEET/check" 2>&1
[ -e "$FLEET/state/lost/one" ] || fleet_fail "removed: $(cat "$FLEET/check")"
grep -q 'warning clock-doubted' "$FLEET/check" || fleet_fail "not said: $(cat "$FLEET/check")"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check --delete-lost --older 0 >"$FLEET/check" 2>&1
[ ! -e "$FLEET/state/lost/one" ] || fleet_fail "--older 0 has no age to doubt: $(cat "$FLEET/check")"
fleet_end
echo "$checks checks"
