#!/bin/sh
# stages: gcc
# A backup is taken while rounds run, the coordinator dies with its disk, and the fleet goes on from the copy: the incarnation is
# raised once, seen in receipts and the audit log, and the job ends.
set -u
umask 077
FLEET_NAME=351-backup
. tests/e2e/common.sh

d() { # d ARGUMENTS...: rivuletd with the configuration
	"$RIVULETD" --config "$FLEET/rivuletd.conf" "$@"
}

round_past() { # round_past N
	past=$(curl_admin "/v1/jobs/$JOB" 2>/dev/null | pick "d['rounds_committed']" 2>/dev/null)
	[ "${past:-0}" -ge "$1" ]
}

incarnations() { # of the receipts, in order
	python3 -S -E - "$FLEET/state/rivulet.db" <<-'END'
		import sqlite3, sys
		db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
		print(*sorted({int.from_bytes(r[0][72:80], "little") for r in db.execute("SELECT receipt FROM accept")}))
	END
}

fleet_start
for i in 1 2 3; do
	glyph_device device$i $i 200
done
# Its end is set when all else has been seen.
glyph_job "$FLEET/job.json" backup 3 100000
sed -i 's/"epochs": 1/"epochs": 20/; s/"goal"/"pick": "sample", "sample_s": 0.3, &/
	s/"stop"/"download": {"codec": "int8"}, "aggregate": {"server_optimizer": {"name": "sgd", "momentum": 0.5}}, "stop"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
for i in 1 2 3; do
	fleet_run device$i
done

# --- copies of a running coordinator, round after round
within 60 round_past 2 || fleet_fail "no rounds"
for i in 1 2 3 4 5 6; do
	d backup --json "$FLEET/copy$i" >"$FLEET/backup.json" 2>"$FLEET/backup.err" ||
		fleet_fail "backup $i: $(cat "$FLEET/backup.err")"
	[ -e "$FLEET/copy$i/keys" ] && fleet_fail "keys without being asked"
	"$RIVULETD" check "$FLEET/copy$i" >"$FLEET/check" || fleet_fail "copy $i is not sound: $(cat "$FLEET/check")"
	grep -q "note backup-copy" "$FLEET/check" || fleet_fail "copy $i is not known for a copy: $(cat "$FLEET/check")"
	d check >"$FLEET/check" || fleet_fail "the running state: $(cat "$FLEET/check")"
done
d backup --keys "$FLEET/withkeys" >"$FLEET/out" 2>&1 || fleet_fail "$(cat "$FLEET/out")"
[ "$(stat -c %a "$FLEET/withkeys" "$FLEET/withkeys/keys" "$FLEET/withkeys/keys/ca.key" "$FLEET/withkeys/rivulet.db" | tr '\n' ' ')" = "700 700 600 600 " ] ||
	fleet_fail "a copy can be read by others: $(ls -lR "$FLEET/withkeys")"
find "$FLEET/withkeys/models" -name '*.diff' | grep -q . || fleet_fail "the copy has no differences"
"$RIVULETD" check "$FLEET/withkeys" >"$FLEET/check" || fleet_fail "the copy with keys: $(cat "$FLEET/check")"
d backup "$FLEET/withkeys" >"$FLEET/out" 2>&1 && fleet_fail "a backup into a directory that is not empty"
grep -q "is not empty" "$FLEET/out" || fleet_fail "$(cat "$FLEET/out")"
d backup "$FLEET/state/copy" >"$FLEET/out" 2>&1 && fleet_fail "a backup into the state directory"
[ -e "$FLEET/state/backup.links" ] && fleet_fail "links are left"
copied=$(pick "d['incarnation']" <"$FLEET/backup.json")
[ "$copied" = 1 ] || fleet_fail "incarnation $copied"
at=$(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed']")
within 60 round_past $((at + 2)) || fleet_fail "rounds stand still"

# --- the disk dies; only the keys were kept elsewhere
d keys export "$FLEET/safe" 2>"$FLEET/out" || fleet_fail "keys export: $(cat "$FLEET/out")"
d keys check "$FLEET/safe" >"$FLEET/out" 2>&1 || fleet_fail "keys check: $(cat "$FLEET/out")"
fleet_kill KILL "$DAEMON_PID"
rm -rf "$FLEET/state"

# a copy that is damaged does not become a state
cp -a "$FLEET/copy6" "$FLEET/bad"
bad=$(find "$FLEET/bad/models" -type f | head -n 1)
truncate -s -1 "$bad"
"$RIVULETD" check "$FLEET/bad" >"$FLEET/check"
[ $? -eq 7 ] || fleet_fail "a damaged copy passes: $(cat "$FLEET/check")"
grep -q "damage copy-differs" "$FLEET/check" || fleet_fail "$(cat "$FLEET/check")"
d restore "$FLEET/bad" >"$FLEET/out" 2>&1 && fleet_fail "a damaged copy was restored"
grep -q "is not as it was copied" "$FLEET/out" || fleet_fail "$(cat "$FLEET/out")"
[ -z "$(find "$FLEET/state" -type f ! -name lock)" ] || fleet_fail "left of it: $(find "$FLEET/state")"
rm "$FLEET/bad/MANIFEST.json"
d restore "$FLEET/bad" >"$FLEET/out" 2>&1 && fleet_fail "half a copy was restored"

d restore "$FLEET/copy6" >"$FLEET/out" 2>&1 || fleet_fail "$(cat "$FLEET/out")"
grep -q "keys/ca.key is missing" "$FLEET/out" || fleet_fail "what is missing is not said: $(cat "$FLEET/out")"
d restore "$FLEET/copy6" >"$FLEET/out" 2>&1 && fleet_fail "restored over a state"
d >"$FLEET/out" 2>&1
[ $? -eq 78 ] || fleet_fail "it starts without keys"
grep -q "ca.crt is missing: put keys/ back .*keys import" "$FLEET/out" || fleet_fail "$(cat "$FLEET/out")"
d init >"$FLEET/out" 2>&1 && fleet_fail "init made a second CA"
d keys import "$FLEET/safe" >"$FLEET/out" 2>&1 || fleet_fail "keys import: $(cat "$FLEET/out")"
fleet_restart
second=$(curl_admin /v1/status | pick "d['incarnation']")
[ "$second" -gt 1 ] && grep -q "warn incarnation.raised incarnation=$second " "$FLEET/rivuletd.log" || fleet_fail "the incarnation was not raised"
[ ! -e "$FLEET/state/MANIFEST.json" ] || fleet_fail "the copy's list stays"
back=$(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed']")
[ "$back" -le "$at" ] || fleet_fail "the copy of round $at or before is at round $back"
within 120 round_past $((back + 2)) || fleet_fail "devices do not go on"

# once, not at every start
fleet_kill KILL "$DAEMON_PID"
fleet_restart
curl_admin /v1/status | pick "d['incarnation']" | grep -qx "$second" || fleet_fail "raised again"
fleet_admin job pause "$JOB" >/dev/null || fleet_fail "job pause"
rounds=$(($(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed']") + 3))
fleet_admin job set "$JOB" stop.rounds=$rounds >/dev/null || fleet_fail "job set"
fleet_admin job resume "$JOB" >/dev/null || fleet_fail "job resume"
job_done 240
[ "$(incarnations)" = "1 $second" ] || fleet_fail "receipts of incarnations $(incarnations)"
curl_admin "/v1/jobs/$JOB/rounds" | pick "[r['round'] for r in d['rounds']] == list(range(1, $rounds + 1))" | grep -qx True ||
	fleet_fail "$(curl_admin "/v1/jobs/$JOB/rounds")"
fleet_end
python3 -S -E - "$FLEET/state/rivulet.db" <<-'END' || fleet_fail "the audit log does not say it once"
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	n = db.execute("SELECT count(*) FROM audit WHERE body LIKE '%coordinator.restored%'").fetchone()[0]
	sys.exit(0 if n == 1 else 1)
END
d check >"$FLEET/check" || fleet_fail "after all: $(cat "$FLEET/check")"

# a copy with keys is a state directory as it stands, and another life than the one that was restored from such a copy before
rm -rf "$FLEET/state"
mv "$FLEET/withkeys" "$FLEET/state"
fleet_restart
curl_admin /v1/status | pick "d['incarnation'] > $second" | grep -qx True || fleet_fail "a moved copy: $(curl_admin /v1/status)"
fleet_end
echo "7 copies of a running coordinator were sound; from one at round $back, of a state at $at, the fleet went on as incarnation $second"
