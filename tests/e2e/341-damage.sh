#!/bin/sh
# stages: gcc address
# State that is damaged is found, named and never used: by `rivuletd check`, at the start, and when it is needed.
set -u
umask 077
FLEET_NAME=341-damage
. tests/e2e/common.sh
state=

fresh() { # the state as the kill left it
	rm -rf "$FLEET/state"
	cp -a "$FLEET/whole" "$FLEET/state"
	state=$FLEET/state
}

flip() { # flip FILE OFFSET: one bit
	python3 -S -E - "$1" "$2" <<-'END'
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
	[ $? -eq 78 ] || fleet_fail "$what: the start did not end with 78: $(cat "$FLEET/refused")"
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
fleet_start "reserve = 1M"
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
	python3 -S -E - "$state/rivulet.db" <<-'END' || fleet_fail "$what: the audit log does not say it"
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
python3 -S -E - "$state/spool/$delta" <<-'END'
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

files() { # what a coordinator without its database must not touch
	(cd "$state" && find models spool -type f -exec sha256sum {} + | sort)
}
for how in missing empty; do
	what="the database is $how"
	fresh
	rm -f "$state"/rivulet.db*
	[ $how = missing ] || : >"$state/rivulet.db"
	files >"$FLEET/files"
	check 7 database-missing
	refused "rivuletd restore DIR"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" init >"$FLEET/out" 2>&1 && fleet_fail "$what: init made another"
	grep -q "init --new-database" "$FLEET/out" || fleet_fail "$what: init: $(cat "$FLEET/out")"
	files | cmp -s - "$FLEET/files" || fleet_fail "$what: models or deltas were touched: $(files | diff - "$FLEET/files")"
done

# An older database, as one may be put back by hand: that of the end of round 2, and of the beginning.
what="an older database"
for keep in 2 0; do
	fresh
	python3 -S -E - "$state/rivulet.db" $keep <<-'END'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		keep = int(sys.argv[2])
		job, = db.execute("SELECT id FROM job WHERE document LIKE '%\"name\": \"a\"%'").fetchone()
		db.execute("DELETE FROM accept WHERE job = ? AND round >= ?", (job, keep))
		db.execute("DELETE FROM round WHERE job = ? AND round > ?", (job, keep))
		db.execute("DELETE FROM model WHERE job = ? AND round >= ?", (job, keep or -1))
		db.execute("UPDATE round SET state = 'open', model = zeroblob(32) WHERE job = ? AND round = ?", (job, keep))
		if not keep:
		    db.execute("DELETE FROM job WHERE id = ?", (job,))
		db.commit()
	END
	fleet_restart
	# Models of the rounds that it does not know, the present optimizer's state, and both accepted deltas.
	lost=$(curl_admin /v1/status | pick "d['lost']['files']")
	[ "$lost" -ge $((5 - keep)) ] || fleet_fail "$what ($keep): $lost files in lost/: $(ls "$state/lost")"
	fleet_kill TERM "$DAEMON_PID"
	for file in $(cd "$FLEET/whole" && find models -name "$MODEL*" ! -name '*.diff') "spool/$delta"; do
		cmp -s "$FLEET/whole/$file" "$state/lost/${file#*/}.0" || fleet_fail "$what ($keep): $file is gone: $(ls "$state/lost")"
	done
done

what="a new database"
fresh
rm "$state"/rivulet.db*
: >"$state/rivulet.db-wal"
"$RIVULETD" --config "$FLEET/rivuletd.conf" init --new-database >"$FLEET/token" 2>"$FLEET/init.log" || fleet_fail "$what: $(cat "$FLEET/init.log")"
fleet_restart
for file in $(cd "$FLEET/whole" && find models -type f ! -name '*.diff') $(cd "$FLEET/whole" && find spool -name '*.delta'); do
	cmp -s "$FLEET/whole/$file" "$state/lost/${file#*/}.0" || fleet_fail "$what: $file is gone: $(ls "$state/lost")"
done
"$RIVULET" join "$URL" --token-file "$FLEET/token" --name device1 --home "$FLEET/device1" >"$FLEET/out" 2>&1 || fleet_fail "$what: device1: $(cat "$FLEET/out")"
grep -q "^joined again" "$FLEET/out" || fleet_fail "$what: device1 is not known: $(cat "$FLEET/out")"
curl_admin /v1/status | pick "d['incarnation'] > 1600000000 and d['lost']['bytes'] > 0" | grep -qx True || fleet_fail "$what: $(curl_admin /v1/status)"
fleet_kill TERM "$DAEMON_PID"

what="an interrupted init"
fresh
rm -rf "$FLEET/first"
printf '[server]\nstate_dir = %s\n' "$FLEET/first" >"$FLEET/first.conf"
"$RIVULETD" --config "$FLEET/first.conf" init >/dev/null 2>&1 || fleet_fail "$what: init"
rm "$FLEET/first/rivulet.db"
: >"$FLEET/first/rivulet.db.new"
"$RIVULETD" --config "$FLEET/first.conf" init >"$FLEET/out" 2>&1 || fleet_fail "$what is not finished: $(cat "$FLEET/out")"
"$RIVULETD" --config "$FLEET/first.conf" check >"$FLEET/out" 2>&1
grep -q "0 damaged" "$FLEET/out" || fleet_fail "$what: check: $(cat "$FLEET/out")"
"$RIVULETD" --config "$FLEET/first.conf" init --new-database >"$FLEET/out" 2>&1 && fleet_fail "$what: a sound database was replaced"

what="a middle page of the database"
fresh
python3 -S -E - "$state/rivulet.db" <<-'END'
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
python3 -S -E -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("PRAGMA user_version = 99"); db.close()' "$state/rivulet.db"
check 7 database-newer
refused "newer"

what="a changed job"
fresh
python3 -S -E - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("UPDATE job SET document = replace(document, '0.1', '0.2')")
	db.commit()
END
check 7 job-damaged
refused "document"

what="a missing round, and a row of another delta"
fresh
python3 -S -E - "$state/rivulet.db" <<-'END'
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
python3 -S -E - "$state/rivulet.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("UPDATE audit SET body = body || ' ' WHERE seq = 3")
	db.commit()
END
check 7 audit-damaged

# --- keys, permissions, leftovers
what="a missing key"
for file in sign.key task.key; do
	fresh
	rm "$state/keys/$file"
	check 7 key-missing
	refused "$file is missing: put keys/ back"
done
fresh
rm -r "$state/keys"
check 7 key-missing
refused "put keys/ back"

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
refused "holds another CA than the database.*keys import"
for pair in sign server; do
	fresh
	cp "$FLEET/other/keys/$pair.key" "$FLEET/other/keys/$pair.crt" "$state/keys/"
	refused "$pair.crt is not of the CA there"
done

what="keys in one file"
keys() { # keys TEXT ACTION FILE: it is refused, says so, and touches nothing
	keys_text=$1
	shift
	find "$state" -type f ! -name lock -exec sha256sum {} + | sort >"$FLEET/before"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" keys "$@" >"$FLEET/out" 2>&1 && fleet_fail "$what: $* is not refused: $(cat "$FLEET/out")"
	grep -q -- "$keys_text" "$FLEET/out" || fleet_fail "$what: $*: \"$keys_text\" is not said: $(cat "$FLEET/out")"
	find "$state" -type f ! -name lock -exec sha256sum {} + | sort | cmp -s - "$FLEET/before" || fleet_fail "$what: $* has changed something"
	[ ! -e "$state/keys.unpacked" ] || fleet_fail "$what: $* leaves keys"
}
fresh
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys export "$FLEET/keys.tar" 2>"$FLEET/out" || fleet_fail "$what: $(cat "$FLEET/out")"
[ "$(stat -c %a "$FLEET/keys.tar")" = 600 ] || fleet_fail "$what: others may read it"
keys "is there already" export "$FLEET/keys.tar"
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys check "$FLEET/keys.tar" >"$FLEET/out" 2>&1 || fleet_fail "$what: $(cat "$FLEET/out")"
"$RIVULETD" --config "$FLEET/other.conf" keys export - 2>/dev/null >"$FLEET/other.tar"
keys "other.tar does not fit: it holds another CA" check "$FLEET/other.tar"
keys "other.tar does not fit: it holds another CA" import "$FLEET/other.tar"
head -c 5000 "$FLEET/keys.tar" >"$FLEET/cut.tar"
keys "it is cut short" import "$FLEET/cut.tar"
tar -cf "$FLEET/paths.tar" --format=ustar -C "$FLEET/other" keys
keys "a name that is none" import "$FLEET/paths.tar"
"$RIVULETD" --config "$FLEET/rivuletd.conf" init --name localhost 2>/dev/null
keys "server.crt is there, and is another one: move keys/ away first" import "$FLEET/keys.tar"
rm -r "$state/keys"
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys import - <"$FLEET/keys.tar" >"$FLEET/out" || fleet_fail "$what: import"
diff -r "$FLEET/whole/keys" "$state/keys" >"$FLEET/out" || fleet_fail "$what: other keys came back: $(cat "$FLEET/out")"
check 0 ""
fleet_restart
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys check "$FLEET/keys.tar" >"$FLEET/out" 2>&1 || fleet_fail "$what: beside a coordinator: $(cat "$FLEET/out")"
keys "stop it first" import "$FLEET/keys.tar"
fleet_kill TERM "$DAEMON_PID"

what="a CA that the configuration names"
fresh
ours=$(openssl x509 -in "$state/keys/ca.crt" -outform DER 2>/dev/null | sha256sum | cut -d ' ' -f 1)
cp "$FLEET/rivuletd.conf" "$FLEET/plain.conf"
printf '[identity]\nca = %s\n' "$ours" >>"$FLEET/rivuletd.conf"
fleet_restart
fleet_kill TERM "$DAEMON_PID"
mv "$state/keys" "$FLEET/own"
cp -a "$FLEET/other/keys" "$state/keys"
refused "identity. ca names"
"$RIVULETD" --config "$FLEET/rivuletd.conf" init --name localhost >"$FLEET/out" 2>&1 && fleet_fail "$what: init took another"
rm -r "$state/keys" "$state"/rivulet.db*
"$RIVULETD" --config "$FLEET/rivuletd.conf" init >"$FLEET/out" 2>&1 && fleet_fail "$what: init made another"
grep -q "put keys/ back" "$FLEET/out" || fleet_fail "$what: $(cat "$FLEET/out")"
[ ! -e "$state/keys" ] || fleet_fail "$what: keys were made"
sed -n '/^listen/p' "$FLEET/rivuletd.conf" >"$FLEET/listen"
sed -i "s/^listen.*/$(cat "$FLEET/listen")/" "$FLEET/plain.conf"
mv "$FLEET/plain.conf" "$FLEET/rivuletd.conf"

what="a CA of before its replacement"
fresh
"$RIVULETD" --config "$FLEET/rivuletd.conf" ca rotate >/dev/null && "$RIVULETD" --config "$FLEET/rivuletd.conf" ca finish --force >/dev/null 2>&1 ||
	fleet_fail "$what: no new CA"
fleet_restart
fleet_kill TERM "$DAEMON_PID"
rm -r "$state/keys"
cp -a "$FLEET/whole/keys" "$state/keys"
check 7 key-mixed
refused "database knows a later one.*keys import"
keys "the database knows a later one" check "$FLEET/keys.tar"
"$RIVULETD" --config "$FLEET/rivuletd.conf" backup "$FLEET/later" >/dev/null 2>&1 || fleet_fail "$what: no backup"
rm -r "$state"
"$RIVULETD" --config "$FLEET/rivuletd.conf" keys import "$FLEET/keys.tar" >/dev/null || fleet_fail "$what: no import beside no database"
"$RIVULETD" --config "$FLEET/rivuletd.conf" restore "$FLEET/later" >"$FLEET/out" 2>&1 && fleet_fail "$what: restored"
grep -q "database knows a later one.*keys import" "$FLEET/out" || fleet_fail "$what: restore: $(cat "$FLEET/out")"
[ -z "$(find "$state" -type f ! -name lock ! -path '*/keys/*')" ] || fleet_fail "$what: left of it: $(find "$state")"

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

what="a file that may not be read"
fresh
if [ "$(id -u)" -eq 0 ]; then
	chmod 711 "$FLEET"
	chown -R 12345 "$state"
	chown 0 "$state/models/$MODEL"
	rivuletd=$RIVULETD
	printf '#!/bin/sh\nexec setpriv --reuid=12345 --clear-groups %s "$@"\n' "$rivuletd" >"$FLEET/other-user"
	chmod 755 "$FLEET/other-user"
	chmod 644 "$FLEET/rivuletd.conf"
	RIVULETD=$FLEET/other-user
	kinds="file-closed owner-wrong"
else
	chmod 0 "$state/models/$MODEL"
	kinds=file-closed
fi
check 7 "$kinds"
check 7 "$kinds" --repair
[ -e "$state/models/$MODEL" ] || fleet_fail "$what: it was moved away: $(cat "$FLEET/check.json")"
if [ "$(id -u)" -eq 0 ]; then
	RIVULETD=$rivuletd
	chmod 700 "$FLEET"
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
check 4 file-lost --delete-lost
check 3 file-lost --delete-lost --older 0s
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

# --- what may pass is waited for, said once
what="a port in use, and a disk not mounted"
starts() { # under a service manager
	: >"$FLEET/rivuletd.log"
	rm -f "$state/port"
	NOTIFY_SOCKET=$FLEET/notify "$RIVULETD" --config "$FLEET/rivuletd.conf" 2>>"$FLEET/rivuletd.log" &
	DAEMON_PID=$!
}
waits() { # waits TEXT: for three seconds, and says so once
	within 20 grep -q "start.waits.*$1" "$FLEET/rivuletd.log" || fleet_fail "$what: $(cat "$FLEET/rivuletd.log")"
	sleep 3
	[ "$(grep -c start.waits "$FLEET/rivuletd.log")" -eq 1 ] && [ ! -e "$state/port" ] || fleet_fail "$what: $(cat "$FLEET/rivuletd.log")"
}
fresh
python3 -S -E -c 'import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
print("bound", flush=True)
time.sleep(3600)' "$PORT" >"$FLEET/bound" &
holder=$!
FLEET_PIDS="$FLEET_PIDS $holder"
within 10 test -s "$FLEET/bound" || fleet_fail "the port cannot be held"
timeout $((60 * TEST_PATIENCE)) "$RIVULETD" --config "$FLEET/rivuletd.conf" 2>"$FLEET/refused"
[ $? -eq 1 ] || fleet_fail "$what: at a terminal: $(cat "$FLEET/refused")"
starts
waits "port $PORT of 127.0.0.1 is in use by another program"
fleet_kill KILL "$holder"
within 20 test -s "$state/port" || fleet_fail "$what: the port is free: $(cat "$FLEET/rivuletd.log")"
fleet_kill TERM "$DAEMON_PID"
mv "$state" "$state.away"
mkdir "$state"
starts
waits "is its file system mounted"
[ -z "$(ls -A "$state")" ] || fleet_fail "$what: written below the mount point: $(ls "$state")"
rmdir "$state"
mv "$state.away" "$state"
within 20 test -s "$state/port" || fleet_fail "$what: mounted: $(cat "$FLEET/rivuletd.log")"
fleet_kill TERM "$DAEMON_PID"

what="nothing there"
rm -rf "$FLEET/state"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >/dev/null 2>&1
[ $? -eq 1 ] || fleet_fail "check of nothing did not end with 1"
echo "every damage was found, named, and not used"
