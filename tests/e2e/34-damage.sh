#!/bin/sh
# State that is damaged is found, named and never used: by `rivuletd check`, at the start, and when it is needed.
set -u
umask 077
FLEET_NAME=34-damage
. tests/e2e/common.sh
state=

fresh() { # the state as the kill left it
	rm -rf "$FLEET/state"
	cp -a "$FLEET/whole" "$FLEET/state"
	state=$FLEET/state
}

flip() { # flip FILE OFFSET: one bit
	python3 - "$1" "$2" <<-'END'
		import os, sys
		with open(sys.argv[1], "r+b") as f:
		    f.seek(int(sys.argv[2]), os.SEEK_SET if int(sys.argv[2]) >= 0 else os.SEEK_END)
		    at = f.tell(); b = f.read(1); f.seek(at); f.write(bytes([b[0] ^ 4]))
	END
}

check() { # check CODE "KIND:SEVERITY..." [OPTION...]: what is found, besides notes
	check_code=$1 check_kinds=$2
	shift 2
	"$RIVULETD" --config "$FLEET/rivuletd.conf" check --json "$@" >"$FLEET/check.json" 2>"$FLEET/check.err"
	check_rc=$?
	[ $check_rc -eq "$check_code" ] ||
		fleet_fail "$what: check $* ended with $check_rc, not $check_code: $(cat "$FLEET/check.json" "$FLEET/check.err")"
	check_found=$(pick "' '.join(sorted({f['kind'] for f in d['findings'] if f['severity'] != 'note'}))" <"$FLEET/check.json")
	[ "$check_found" = "$check_kinds" ] ||
		fleet_fail "$what: check $* found \"$check_found\", not \"$check_kinds\": $(cat "$FLEET/check.json")"
}

refused() { # refused TEXT: the start fails and says so
	: >"$FLEET/refused"
	timeout $((60 * TEST_PATIENCE)) "$RIVULETD" --config "$FLEET/rivuletd.conf" 2>"$FLEET/refused"
	[ $? -eq 1 ] || fleet_fail "$what: the start did not end with 1: $(cat "$FLEET/refused")"
	grep -q "$1" "$FLEET/refused" || fleet_fail "$what: \"$1\" is not said: $(cat "$FLEET/refused")"
}

aside() { # aside TEXT: the job waits with that reason, the other one goes on
	fleet_restart
	curl_admin "/v1/jobs/$A" | pick "d['state'] == 'paused' and '$1' in d['reason']" | grep -qx True ||
		fleet_fail "$what: the job is not set aside for \"$1\": $(curl_admin "/v1/jobs/$A")"
	curl_admin "/v1/jobs/$B" | pick "d['state']" | grep -qx running ||
		fleet_fail "$what: the other job is held up: $(curl_admin "/v1/jobs/$B")"
	fleet_kill TERM "$DAEMON_PID"
}

# --- a job in its third round with two of three deltas, another one untouched, and a coordinator killed
fleet_start
for i in 1 2 3; do
	glyph_device device$i $i 100
done
glyph_job "$FLEET/a.json" a 3 5
sed -i 's/"stop"/"aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}}, "stop"/' "$FLEET/a.json"
glyph_job "$FLEET/b.json" b 3 5
sed -i 's/"stop"/"select": {"labels": {"site": "nowhere"}}, "stop"/' "$FLEET/b.json"
job_submit "$FLEET/b.json"
B=$JOB
job_submit "$FLEET/a.json"
A=$JOB
round_is() { # round_is N REPORTS
	[ "$(curl_admin "/v1/jobs/$A" | pick "(d['open']['round'], d['open']['reports'])" 2>/dev/null)" = "($1, $2)" ]
}
for round in 1 2; do
	for i in 1 2 3; do
		timeout $((120 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/device$i" --rounds 1 2>>"$FLEET/device$i.log" || fleet_fail "device$i"
	done
	within 30 round_is $((round + 1)) 0 || fleet_fail "round $round did not end: $(curl_admin "/v1/jobs/$A")"
done
for i in 1 2; do
	timeout $((120 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/device$i" --rounds 1 2>>"$FLEET/device$i.log" || fleet_fail "device$i"
done
within 30 round_is 3 2 || fleet_fail "not two deltas in round 3: $(curl_admin "/v1/jobs/$A")"
MODEL=$(curl_admin "/v1/jobs/$A" | pick "d['model']")
what="a running coordinator"
check 0 ""
old=$(curl_admin "/v1/jobs/$A/rounds" | pick "d['rounds'][0]['model']")
fleet_kill KILL "$DAEMON_PID"
cp -a "$FLEET/state" "$FLEET/whole"
optimizer=$(find "$FLEET/state/models" -name '*.state' -printf '%f\n')
delta=$(find "$FLEET/state/spool" -name '*.delta' -printf '%f\n' | head -n 1)

what="a killed coordinator"
fresh
check 0 ""

what="an undisturbed start"
fleet_restart
fleet_kill TERM "$DAEMON_PID"
check 0 ""

# --- models and optimizer states
for how in flip cut gone; do
	damage() {
		case $how in
		flip) flip "$1" -9 ;;
		cut) truncate -s -1 "$1" ;;
		gone) rm "$1" ;;
		esac
	}
	what="the base model: $how"
	fresh
	damage "$state/models/$MODEL"
	kind=model-damaged
	[ $how != gone ] || kind=model-missing
	check 7 $kind
	aside model
	check 7 $kind --repair
	[ ! -e "$state/models/$MODEL" ] || fleet_fail "$what: still in its place"
	[ $how = gone ] || [ -e "$state/damaged/$MODEL.0" ] || fleet_fail "$what: the evidence is gone"
	check 7 model-missing
	cp "$FLEET/whole/models/$MODEL" "$state/models/"
	check 0 ""

	what="an old model: $how"
	fresh
	damage "$state/models/$old"
	kind=model-damaged
	[ $how != gone ] || kind=model-forgotten
	code=7
	[ $how != gone ] || code=4
	check $code $kind
	check 3 model-forgotten --repair
	check 0 ""

	what="the optimizer's state: $how"
	fresh
	damage "$state/models/$optimizer"
	kind="optimizer-damaged"
	[ $how != gone ] || kind="optimizer-missing"
	check 7 $kind
	aside state

	what="an accepted delta: $how"
	fresh
	damage "$state/spool/$delta"
	kind="delta-damaged"
	[ $how != gone ] || kind="delta-missing"
	check 7 $kind
	aside "delta "
	check 7 $kind --repair
	check 7 delta-missing
	check 7 "delta-dropped delta-missing" --repair --drop-damaged-deltas
	grep -q "taken back: device [0-9a-f]*, job $A, round 3" "$FLEET/check.json" ||
		fleet_fail "$what: whose claim is broken is not said: $(cat "$FLEET/check.json")"
	check 0 ""
	python3 - "$state/rivulet.db" <<-'END' || fleet_fail "$what: the audit log does not say it"
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		n = db.execute("SELECT count(*) FROM audit WHERE body LIKE '%delta.lost%rivuletd check%'").fetchone()[0]
		sys.exit(0 if n == 1 else 1)
	END
	fleet_restart
	round_is 3 1 || fleet_fail "$what: $(curl_admin "/v1/jobs/$A")"
	fleet_kill TERM "$DAEMON_PID"
done

what="a kept delta"
fresh
mkdir -m 700 "$state/kept" 2>/dev/null
cp "$state/spool/$delta" "$state/kept/"
check 0 ""
flip "$state/kept/$delta" -9
check 7 kept-damaged
check 7 kept-damaged --repair
check 0 ""

what="files of a newer version"
fresh
python3 - "$state/spool/$delta" <<-'END'
	import sys
	with open(sys.argv[1], "r+b") as f:
	    f.seek(4); f.write(b"\x09")
END
check 0 ""
grep -q delta-unread "$FLEET/check.json" || fleet_fail "$what: a newer delta is not named"
aside "delta "

# --- the database
what="the header of the database"
fresh
rm -f "$state"/rivulet.db-*
flip "$state/rivulet.db" 0
check 7 database-damaged
refused "not a database"

what="a middle page of the database"
fresh
python3 - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
	root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'round'").fetchone()[0]
	page = db.execute("PRAGMA page_size").fetchone()[0]
	db.close()
	with open(sys.argv[1], "r+b") as f:
	    f.seek((root - 1) * page); f.write(bytes(64))
END
check 7 database-damaged
refused "rivulet.db"

what="a damaged log of the database"
fresh
[ "$(stat -c %s "$state/rivulet.db-wal")" -gt 20000 ] || fleet_fail "the log is too short to show anything"
flip "$state/rivulet.db-wal" 9000
check 7 log-damaged
refused "is damaged, and committed changes stand"

what="a newer database"
fresh
python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("PRAGMA user_version = 99"); db.close()' "$state/rivulet.db"
check 7 database-newer
refused "newer"

what="a changed job"
fresh
python3 - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("UPDATE job SET document = replace(document, '0.1', '0.2')")
	db.commit()
END
check 7 job-damaged
refused "document"

what="a missing round, and a row of another delta"
fresh
python3 - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("DELETE FROM accept WHERE round = 2")
	db.execute("DELETE FROM round WHERE round = 2")
	db.execute("UPDATE accept SET manifest = (SELECT manifest FROM accept WHERE round = 1 LIMIT 1) "
	           "WHERE rowid = (SELECT rowid FROM accept WHERE round = 3 LIMIT 1)")
	db.commit()
END
check 7 "file-orphan round-damaged row-damaged"

what="the audit log"
fresh
python3 - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("UPDATE audit SET body = body || ' ' WHERE seq = 3")
	db.commit()
END
check 7 audit-damaged

# --- keys, permissions, leftovers
what="a missing key"
fresh
rm "$state/keys/sign.key"
check 7 key-missing
refused "sign.key"
fresh
rm -r "$state/keys"
check 7 key-missing
refused "copy keys/ back"

what="keys of two coordinators"
fresh
printf '[server]\nstate_dir = %s\n' "$FLEET/other" >"$FLEET/other.conf"
"$RIVULETD" --config "$FLEET/other.conf" init >/dev/null 2>&1
cp "$FLEET/other/keys/ca.crt" "$state/keys/"
check 7 key-mixed
refused "ca.crt"
fresh
cp "$FLEET"/other/keys/* "$state/keys/"
check 7 "audit-damaged key-mixed"

what="permissions"
fresh
chmod 644 "$state/keys/task.key" "$state/rivulet.db"
chmod 755 "$state/models"
check 4 mode-wide
check 3 mode-wide --repair
check 0 ""
[ "$(stat -c %a "$state/models" "$state/rivulet.db" "$state/keys/task.key" | tr '\n' ' ')" = "700 600 600 " ] ||
	fleet_fail "$what: not narrowed"

what="a key that is a link"
fresh
mv "$state/keys/task.key" "$FLEET/outside"
chmod 644 "$FLEET/outside"
ln -s "$FLEET/outside" "$state/keys/task.key"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check --repair >"$FLEET/check.log" 2>&1
[ "$(stat -c %a "$FLEET/outside")" = 644 ] || fleet_fail "$what: what it leads to was changed: $(cat "$FLEET/check.log")"

if [ "$(id -u)" -eq 0 ]; then
	what="a second name of a foreign file"
	fresh
	echo x >"$FLEET/foreign"
	chown 12345 "$FLEET/foreign"
	ln "$FLEET/foreign" "$state/models/foreign"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" check --repair >"$FLEET/check.log" 2>&1
	[ "$(stat -c %u "$FLEET/foreign")" -eq 12345 ] || fleet_fail "$what: it was given away: $(cat "$FLEET/check.log")"
	what="another owner"
	fresh
	chown 12345 "$state/models/$MODEL"
	check 4 owner-wrong
	check 3 owner-wrong --repair
	[ "$(stat -c %u "$state/models/$MODEL")" -eq 0 ] || fleet_fail "$what: not given back"
fi

what="leftovers"
fresh
echo x >"$state/models/tmp.7"
echo x >"$state/models/$(printf %064d 1)"
echo x >"$state/models/$(printf %064d 1).state"
echo x >"$state/spool/$(printf %032d 1).delta"
echo x >"$state/spool/$(printf %032d 1).part"
echo x >"$state/spool/$(printf %032d 1).3.new"
echo x >"$state/port.abcdef"
check 4 "file-orphan file-temporary"
check 3 "file-orphan file-temporary" --repair
check 0 ""
fresh
rm -r "$state/spool"
check 7 "delta-missing directory-missing"

what="repair beside a coordinator"
fresh
fleet_restart
"$RIVULETD" --config "$FLEET/rivuletd.conf" check --repair >"$FLEET/check.json" 2>&1
[ $? -eq 1 ] || fleet_fail "$what is not refused"
fleet_kill TERM "$DAEMON_PID"

what="nothing there"
rm -rf "$FLEET/state"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >/dev/null 2>&1
[ $? -eq 1 ] || fleet_fail "check of nothing did not end with 1"
echo "every damage was found, named, and not used"
