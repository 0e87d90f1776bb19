#!/bin/sh
# stages: gcc full
# A bad week: 50 devices, three jobs of two owners, a disk that somebody goes on filling, two lost databases, another CA and an old
# backup. Nothing that was acknowledged is lost but what a restore took back, and each message names what to do.
#   FULL=1 BUILD=build/mbedtls tests/e2e/71-bad-week.sh
set -u
umask 077
if [ -z "${WEEK_MOUNTS:-}" ]; then
	WEEK_MOUNTS=no
	unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && WEEK_MOUNTS=yes
	export WEEK_MOUNTS
	[ $WEEK_MOUNTS = no ] || exec unshare -m "$0"
fi
FLEET_NAME=71-bad-week
. tests/e2e/common.sh
[ -n "${FULL:-}" ] || skip "FULL=1 runs it, as .ci/run does"
RESERVE=1048576

d() { "$RIVULETD" --config "$FLEET/rivuletd.conf" "$@"; }
as() { # as OWNER COMMAND...: from elsewhere, with a token alone
	as_token=$FLEET/$1.token
	shift
	HOME=$FLEET/nowhere "$RIVULET" "$@" --url "$URL" --token-file "$as_token"
}
id_of() { pick 'd["device"]' <"$FLEET/$1/device.json"; }
job_is() { curl_admin "/v1/jobs/$1" 2>/dev/null | grep -q "\"state\":\"$2\""; }
rounds() { curl_admin "/v1/jobs/$CHURN" 2>/dev/null | pick 'd["rounds_committed"]' 2>/dev/null || echo 0; }
rounds_past() { [ "$(rounds)" -gt "$1" ]; }
go_on() { # the job commits two more rounds
	go_from=$(rounds)
	within 60 rounds_past $((go_from + 1)) || fleet_fail "$day: no rounds after $go_from: $(curl_admin "/v1/jobs/$CHURN")"
}
reload() {
	reloads=$(grep -c 'reload.done' "$FLEET/rivuletd.log")
	kill -HUP "$DAEMON_PID"
	[ "$(log_lines $((reloads + 1)) "$FLEET/rivuletd.log" 'reload.done')" -gt "$reloads" ] || fleet_fail "$day: no reload"
}

# --- the books: a line "DEVICE JOB ROUND" for each delta
acknowledged() { # what devices hold receipts for
	for home in $RUNNERS; do
		sed -n "s/.* delta\.accepted job=\([0-9a-f]*\) round=\([0-9]*\) .*receipt=verified.*/$(id_of "$home") \1 \2/p" "$FLEET/$home.log"
	done | sort -u
}
known() { # known DIR: what that state, or copy, holds rows of
	python3 -S -E - "$1/rivulet.db" <<-'END'
		import sqlite3, sys
		db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
		for line in sorted("%s %s %d" % (d.hex(), j.hex(), r) for d, j, r in db.execute("SELECT device, job, round FROM accept")):
		    print(line)
	END
}
kept() { # kept LIST: this state has all of it
	known "$FLEET/state" >"$FLEET/rows"
	sort -u "$1" | comm -23 - "$FLEET/rows" >"$FLEET/missing"
	[ ! -s "$FLEET/missing" ] || fleet_fail "$day: $(wc -l <"$FLEET/missing") deltas are lost: $(head -n 3 "$FLEET/missing")"
}
history_of() { # history_of N: the first N rounds of the job
	curl_admin "/v1/jobs/$CHURN/rounds" | pick "'\n'.join('%d %s %s %r' % (r['round'], r['base'], r['model'], r['loss']) for r in d['rounds'] if r['round'] <= $1)"
}
copy_of() { # copy_of NAME: a backup while rounds go on, the keys beside it
	acknowledged >"$FLEET/$1.acknowledged"
	run 0 d backup "$FLEET/$1"
	known "$FLEET/$1" >"$FLEET/$1.known"
	run 0 "$RIVULETD" check "$FLEET/$1"
	comm -23 "$FLEET/$1.acknowledged" "$FLEET/$1.known" >"$FLEET/missing"
	[ ! -s "$FLEET/missing" ] || fleet_fail "$day: the backup misses $(head -n 3 "$FLEET/missing")"
	keep_keys
}
keep_keys() {
	rm -f "$FLEET/safe"
	run 0 d keys export "$FLEET/safe"
}
enrol() { # enrol TOKEN FIRST LAST
	for i in $(seq -w "$2" "$3"); do
		"$RIVULET" join "$URL" --token-file "$FLEET/$1" --name "$i" --home "$FLEET/$i" >>"$FLEET/join.log" 2>&1 || return 1
	done
}
runner() { # runner HOME HAND
	printf '[device]\nthreads = 1\n[data digits]\nformat = glyphs\nhand = %s\ncount = 100\nseed = 1\n' "$2" >>"$FLEET/$1/rivulet.conf"
	fleet_run "$1"
}
job() { # job FILE NAME [SED EXPRESSION]
	glyph_job "$FLEET/$1" "$2" 3 100000
	sed -i "s/3600/3600, \"pick\": \"sample\", \"sample_s\": 0.2/; ${3:-}" "$FLEET/$1"
}
lose_database() {
	fleet_kill KILL "$DAEMON_PID"
	rm "$FLEET"/state/rivulet.db*
	run 78 timeout $((60 * TEST_PATIENCE)) "$RIVULETD" --config "$FLEET/rivuletd.conf"
	says "rivuletd restore DIR" "init --new-database"
}
restore() { # restore DIR: as docs/operators.md has it
	rm -rf "$FLEET/state.lost"
	mv "$FLEET/state" "$FLEET/state.lost" && mkdir -m 750 "$FLEET/state"
	run 0 d keys import "$FLEET/safe"
	run 0 d restore "$1"
	run 0 d check
	fleet_restart
}

# --- Monday: a fleet
day=Monday
fleet_dir
mkdir -m 700 "$FLEET/state"
[ "$WEEK_MOUNTS" = no ] || mount -t tmpfs -o size=40m,mode=700 none "$FLEET/state" || fleet_fail "mount"
fleet_start "reserve = $RESERVE
[limits]
long_poll = 5
retry_after = 1
[retention]
keep_every = 0"
run 0 fleet_admin token create --uses 25 --label site=north,kind=gw --name-prefix north- -o "$FLEET/north"
run 0 fleet_admin token create --uses 25 --label site=south,kind=gw --name-prefix south- -o "$FLEET/south"
enrol south 26 50 &
half=$!
enrol north 01 25 || fleet_fail "not all have joined"
wait $half || fleet_fail "not all have joined"
run 0 fleet_admin device list --where site=north,kind=gw
says "25 devices, "
run 0 fleet_admin device set --where site=south,kind=gw --label site=west --unlabel kind --dry-run
says "^25 of 25 devices would be changed"
run 0 fleet_admin device set --where site=south,kind=gw --label site=west --unlabel kind
says "^25 of 25 devices changed"
run 0 fleet_admin device set north-25 --label rack=12
run 6 fleet_admin device set --where site=west --name gate
says "for one device, and 25 are site=west"
run 0 fleet_admin device set --where rack=12 --name gate
run 0 fleet_admin device list --where rack=12
says "gate +active" "^1 device,"
RUNNERS="01 02 03 26"
for home in $RUNNERS; do
	runner "$home" "${home#0}"
done
run 0 fleet_admin token create --access --role submitter --owner alice -o "$FLEET/alice.token"
run 0 fleet_admin token create --access --role submitter --owner bob -o "$FLEET/bob.token"
job churn.json churn
job extra.json extra "s/\"seed\": 7/\"seed\": 8/"
job shelf.json shelf "s/\"seed\": 7/\"seed\": 9/"
run 0 as alice job submit "$FLEET/churn.json"
run 0 as alice job submit "$FLEET/extra.json"
run 0 as bob job submit "$FLEET/shelf.json"
CHURN=$(curl_admin /v1/jobs | pick '[j["job"] for j in d["jobs"] if j["name"] == "churn"][0]')
go_on
copy_of oldest
go_on
# What a sweep left behind: 200 jobs that are over.
glyph_job "$FLEET/sweep.json" sweep 3 10
python3 -S -E - "$FLEET" <<-'END' || fleet_fail "no sweep"
	import http.client, json, socket, sys
	c = http.client.HTTPConnection("localhost")
	c.sock = socket.socket(socket.AF_UNIX)
	c.sock.connect(sys.argv[1] + "/admin.sock")
	job = json.load(open(sys.argv[1] + "/sweep.json"))
	job["model"]["layers"][1]["out"] = 1
	job["select"] = {"labels": {"site": "nowhere"}}
	for i in range(200):
	    job["name"] = "sweep-%d" % i
	    job["seed"] = i
	    c.request("POST", "/v1/jobs", json.dumps(job))
	    answer = json.load(c.getresponse())
	    c.request("POST", "/v1/jobs/%s/stop" % answer["job"])
	    if json.load(c.getresponse())["state"] != "stopped":
	        sys.exit(answer)
	json.dump(job, open(sys.argv[1] + "/sweep.json", "w"))
END

# --- Tuesday: somebody fills the disk
day=Tuesday
if [ "$WEEK_MOUNTS" = yes ]; then
	(while :; do cat /dev/zero >>"$FLEET/state/ballast" 2>/dev/null || sleep 0.01; done) &
	filler=$!
	FLEET_PIDS="$FLEET_PIDS $filler"
	full() { curl_admin /readyz 2>/dev/null | grep -q '"reason":"disk-full"'; }
	ready() { curl_admin /readyz 2>/dev/null | grep -q '"status":"ready"'; }
	within 30 full || fleet_fail "$day: /readyz says $(curl_admin /readyz)"
	SAID=$(fleet_admin status 2>&1)
	says "not ready: disk-full" "stop and delete jobs"
	job late.json late "s/\"seed\": 7/\"seed\": 10/"
	run 5 as alice job submit "$FLEET/late.json"
	says "no-space" "stop and delete jobs"
	within 30 grep -qE "waiting reason=disk-full|status=507" "$FLEET/01.log" || fleet_fail "$day: devices do not say why they wait"
fi
run 0 as alice job stop extra
run 0 fleet_admin device revoke north-03
within 30 grep -q "device-revoked" "$FLEET/03.log" || fleet_fail "$day: the device goes on: $(tail -n 3 "$FLEET/03.log")"
curl_admin "/v1/devices/$(id_of 03)" | pick 'd["state"]' | grep -qx revoked || fleet_fail "$day: not revoked"
if [ "$WEEK_MOUNTS" = yes ]; then
	full || fleet_fail "$day: ready while the disk is full"
	fleet_kill KILL "$filler"
	rm "$FLEET/state/ballast"
	within 15 ready || fleet_fail "$day: not ready again: $(curl_admin /readyz)"
fi
go_on
acknowledged >"$FLEET/list"
kept "$FLEET/list"

# --- Wednesday: bob goes, and what a sweep left
day=Wednesday
run 0 fleet_admin token revoke "$(cut -c6-21 "$FLEET/bob.token")" --stop-jobs
says "^1 jobs stopped"
run 4 as bob job list
says "bad-token" "revoked"
run 6 fleet_admin job delete --state stopped --name 'sweep-*'
says "200 jobs" "--yes"
run 0 fleet_admin job delete --state stopped --name 'sweep-*' --dry-run
says "^200 jobs would go"
run 0 fleet_admin job delete --state stopped --name 'sweep-*' --yes
says "^200 jobs deleted"
run 4 fleet_admin job submit "$FLEET/sweep.json"
says "was deleted"
if [ "$WEEK_MOUNTS" = yes ]; then # from here on a directory that can be moved
	fleet_kill TERM "$DAEMON_PID"
	cp -a "$FLEET/state" "$FLEET/state.disk"
	umount "$FLEET/state" && rmdir "$FLEET/state" && mv "$FLEET/state.disk" "$FLEET/state"
	fleet_restart
fi
go_on
copy_of newer
go_on

# --- Thursday: the database is gone
day=Thursday
lose_database
restore "$FLEET/newer"
kept "$FLEET/newer.known"
curl_admin /v1/devices | pick "[v['state'] for v in d['devices'] if v['name'] == 'north-03']" | grep -q revoked || fleet_fail "$day: the revoked device is back"
run 4 as bob job list
run 4 fleet_admin job submit "$FLEET/sweep.json"
job_is "$CHURN" running || fleet_fail "$day: the job does not run"
go_on
second=$(curl_admin /v1/status | pick 'd["incarnation"]')

# --- Friday: again, and there is no backup
day=Friday
lose_database
(cd "$FLEET/state" && find models spool -type f ! -name '*.part' ! -name '*.diff' ! -name 'tmp.*' -exec sha256sum {} +) >"$FLEET/files"
d init --new-database >"$FLEET/token" 2>"$FLEET/init.log" || fleet_fail "$day: $(cat "$FLEET/init.log")"
fleet_restart
while read -r hash file; do
	[ "$(sha256sum <"$FLEET/state/lost/${file#*/}.0" | cut -d ' ' -f 1)" = "$hash" ] || fleet_fail "$day: $file is gone: $(ls "$FLEET/state/lost")"
done <"$FLEET/files"
SAID=$(fleet_admin status 2>&1)
says "lie in lost/.*rivuletd check"
run 4 d check
says "file-lost"
third=$(curl_admin /v1/status | pick 'd["incarnation"]')
[ "$third" -gt "$second" ] || fleet_fail "$day: incarnation $third after $second"
for home in 01 02 26; do
	within 30 grep -q "unknown-device" "$FLEET/$home.log" || fleet_fail "$day: $home is not told: $(tail -n 3 "$FLEET/$home.log")"
done
# The agents stop, their devices join again with a token and their keys, and go on.
again() { # again TOKEN HOME...
	again_token=$1
	shift
	for home in "$@"; do
		was=$(id_of "$home")
		run 0 "$RIVULET" join "$URL" --token-file "$again_token" --home "$FLEET/$home"
		says "^joined again .*$(printf %.16s "$was")"
		run 0 "$RIVULET" join "$URL" --token-file "$FLEET/nowhere" --home "$FLEET/$home"
		says "^already joined"
	done
}
run 4 "$RIVULET" doctor --home "$FLEET/01"
says "does not know this device" "join again with a token"
run 4 "$RIVULET" join "$URL" --token-file "$FLEET/token" --home "$FLEET/01"
says "stop the agent first"
for pid in $FLEET_PIDS; do
	fleet_kill TERM "$pid"
done
RUNNERS="01 02 26"
again "$FLEET/token" $RUNNERS 04
for home in $RUNNERS; do
	fleet_run "$home"
done
run 0 fleet_admin token create --access --role submitter --owner alice -o "$FLEET/alice.token"
run 0 as alice job submit "$FLEET/churn.json"
acknowledged >"$FLEET/list"
go_on

# --- Saturday: another CA
day=Saturday
run 0 d ca rotate
says "reload rivuletd now"
reload
renewed() { d ca status | grep -q "^1 devices have not renewed"; }
for i in 1 2 3 4 5 6; do
	within 5 renewed && break
	reload # what devices did is in the database then
done
run 0 d ca status
says "not renewed: north-04" "^1 devices have not renewed"
run 1 d ca finish
says "ca status.*names them" "--force shuts them out"
run 0 d ca finish --force
says "reload rivuletd" "fingerprint, for \[identity\] ca"
reload
go_on
keep_keys
again "$FLEET/token" 04

# --- Sunday: the oldest backup, under the CA of now
day=Sunday
fourth=$(curl_admin /v1/status | pick 'd["incarnation"]')
fleet_kill TERM "$DAEMON_PID"
restore "$FLEET/oldest"
kept "$FLEET/oldest.known"
fifth=$(curl_admin /v1/status | pick 'd["incarnation"]')
[ "$fifth" -gt "$fourth" ] || fleet_fail "$day: incarnation $fifth after $fourth"
curl_admin /v1/devices | pick "[v['state'] for v in d['devices'] if v['device'] == '$(id_of 03)']" | grep -q active || fleet_fail "$day: the revocation was after the backup"
run 0 fleet_admin device revoke north-03
go_on
kept "$FLEET/oldest.known"
# A device that has slept all week has a certificate of the old CA.
run 4 "$RIVULET" doctor --home "$FLEET/05"
says "whose CA it does not know" "join again"
again "$FLEET/north" 05
run 0 fleet_admin verify fetch "$FLEET/audit"
run 0 "$RIVULET" verify "$FLEET/audit" --ca "$FLEET/state/keys/ca.crt"
[ -z "$(ls "$FLEET/state/lost" 2>/dev/null)" ] || fleet_fail "$day: in lost/: $(ls "$FLEET/state/lost")"
fleet_end
run 0 d check
says "0 damaged"
echo "$CHECKS checks; $(known "$FLEET/state" | wc -l) deltas at the end, $(wc -l <"$FLEET/oldest.known") of them of the oldest backup"
