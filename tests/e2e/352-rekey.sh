#!/bin/sh
# stages: gcc address
# A backup that is older than changes of keys is restored: the real devices go on by themselves with the keys that they have, old ones are
# refused, and where two keys might be right nobody goes on until an administrator says which.
set -u
umask 077
# shellcheck disable=SC2034 # for fleet.sh
FLEET_NAME=352-rekey
. tests/e2e/common.sh
command -v openssl >/dev/null || skip "needs openssl"
checks=0

want() { # want WHAT WANT GOT
	checks=$((checks + 1))
	[ "$2" = "$3" ] || fleet_fail "$1: want \"$2\", got \"$3\""
}
# ask HOME PATH CURL-OPTION...: "STATUS WORD" of a request with that home's certificate
ask() {
	ask_home=$FLEET/$1 ask_path=$2
	shift 2
	ask_status=$(curl -sS --max-time $((60 * TEST_PATIENCE)) -o "$FLEET/body" -w '%{http_code}' --cacert "$FLEET/ca.pem" \
		--cert "$ask_home/cert.pem" --key "$ask_home/key.pem" "$@" "$URL$ask_path") || ask_status=none
	echo "$ask_status $(sed -n 's/.*urn:rivulet:error:\([a-z-]*\)".*/\1/p' "$FLEET/body")"
}
# rotate NAME NUMBER: the home of before is NAME.NUMBER
rotate() {
	cp -a "$FLEET/$1" "$FLEET/$1.$2"
	"$RIVULET" rotate --home "$FLEET/$1" >"$FLEET/out" 2>&1 || fleet_fail "rotate $1: $(cat "$FLEET/out")"
}
show() { curl_admin "/v1/devices/$1" | pick "d[\"$2\"]"; }
who() { curl_admin "/v1/devices/$1" | pick "(d['device'], d['name'], d['labels'], d['role'])"; }
key_of() { # the fingerprint of a home's key
	openssl x509 -in "$FLEET/$1/cert.pem" -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum | cut -d ' ' -f 1
}
d() { "$RIVULETD" --config "$FLEET/rivuletd.conf" "$@"; }
restore() { # restore COPY: with the keys that are there
	fleet_kill "${2:-TERM}" "$DAEMON_PID"
	rm -rf "$FLEET/state/models" "$FLEET/state/spool" "$FLEET/state"/rivulet.db*
	d restore "$FLEET/$1" >"$FLEET/out" 2>&1 || fleet_fail "restore: $(cat "$FLEET/out")"
	: >"$FLEET/rivuletd.log"
	fleet_restart
}
# events EVENT WHO: how many entries of the audit log say so
events() { fleet_admin audit | awk -v event="$1" -v who="$2" 'index($0, event) && index($0, who) { n++ } END { print n + 0 }'; }

fleet_start
names="ann bob cat dan eve fay gus"
for name in $names; do glyph_device $name 1 100; done
cp "$FLEET/ann/ca.pem" "$FLEET/ca.pem"
fleet_admin device set ann bob cat dan --label site=north >/dev/null || fleet_fail "labels"
fleet_admin device suspend dan >/dev/null || fleet_fail "suspend"
rotate fay 0 # before the backup
for name in $names; do who $name; done >"$FLEET/before"
glyph_job "$FLEET/job.json" on 1 100000
sed -i 's/"goal"/"pick": "sample", "sample_s": 0.3, &/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
d backup "$FLEET/copy" >"$FLEET/out" 2>&1 || fleet_fail "backup: $(cat "$FLEET/out")"

# --- after the backup: keys are replaced
fleet_admin device resume dan >/dev/null || fleet_fail "resume"
for name in ann bob dan fay gus; do rotate $name 1; done
rotate cat 1
rotate cat 2
want "before the restore" "403 key-rotated" "$(ask bob.1 /v1/status)"

# --- and undone. The agent goes on by itself
restore copy
fleet_run bob
round_past() { [ "$(curl_admin "/v1/jobs/$JOB" | pick "d['rounds_committed']")" -ge "$1" ]; }
within 60 round_past 2 || fleet_fail "bob does not go on: $(tail "$FLEET/bob.log")"
grep -qE 'unknown-device|join' "$FLEET/bob.log" && fleet_fail "bob: $(cat "$FLEET/bob.log")"
fleet_kill TERM "$AGENT_PID"
want "the old key" "403 key-rotated" "$(ask bob.1 /v1/status)"
want "the old key renews" "403 key-rotated" "$(ask bob.1 /v1/renew -X POST)"
want "the new key" "200 " "$(ask bob /v1/status)"
want "audited" 1 "$(events device.rotated certificate)"
grep -q 'info device.rotated .*name=bob .*its certificate is newer' "$FLEET/rivuletd.log" || fleet_fail "not in the log"
# A request with a body that has not come yet, and a large one, go on as well.
want "a post" "200 " "$(ask gus /v1/renew -d '{}')"
want "gus's old key" "403 key-rotated" "$(ask gus.1 /v1/status)"

# --- who never changed its key, who did before the backup, and who is suspended in it
want "a key that was not changed" "200 " "$(ask eve /v1/status)"
want "a key from before" "403 key-rotated" "$(ask fay.0 /v1/status)"
want "a newer one" "200 " "$(ask fay /v1/status)"
want "a key from before, still" "403 key-rotated" "$(ask fay.0 /v1/status)"
want "suspended in the backup" "403 device-suspended" "$(ask dan /v1/status)"
want "likewise" "403 device-suspended" "$(ask dan.1 /v1/status)"
fleet_admin device resume dan >/dev/null || fleet_fail "resume"
want "resumed" "200 " "$(ask dan /v1/status)"
want "dan's old key" "403 key-rotated" "$(ask dan.1 /v1/status)"

# --- the old key was used: nobody goes on, also when the coordinator is killed in between
want "the old key is used" "200 " "$(ask ann.1 /v1/status)"
used() { # the row of ann says so
	[ "$(python3 -S -E -c 'import sqlite3, sys
print(sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute("SELECT claim FROM device WHERE name = ?", ("ann",)).fetchone()[0])' \
		"$FLEET/state/rivulet.db")" = used ]
}
within 20 used || fleet_fail "no row says that the old key is used"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
want "then the new one" "403 device-suspended" "$(ask ann /v1/status)"
want "and the old one" "403 device-suspended" "$(ask ann.1 /v1/status)"
grep -q 'error device.contested .*name=ann .*after the backup.s was used.*rekey' "$FLEET/rivuletd.log" || fleet_fail "no alarm"
want "audited" 1 "$(events device.suspended coordinator)"
want "status" 1 "$(curl_admin /v1/status | pick "d['contested']")"
fleet_admin status | grep -q '^warning: 1 suspended device is claimed by several keys.*device rekey' || fleet_fail "status: $(fleet_admin status)"
run 0 fleet_admin device list --contested
says "ann .*suspended.*CONTESTED" "^1 device"
run 0 fleet_admin device show ann
says "claims .*$(key_of ann)" "^key  *$(key_of ann.1)" "rivulet device rekey"
fleet_admin device resume ann >"$FLEET/out" 2>&1 && fleet_fail "a contested device was resumed"
grep -q "rivulet device rekey" "$FLEET/out" || fleet_fail "$(cat "$FLEET/out")"
run 0 fleet_admin device rekey ann
says "active, its key is $(key_of ann)"
want "ann goes on" "200 " "$(ask ann /v1/status)"
want "the old key does not" "403 key-rotated" "$(ask ann.1 /v1/status)"
want "audited" 1 "$(events device.rotated uid:)"
fleet_admin device rekey ann >"$FLEET/out" 2>&1 && fleet_fail "rekeyed again"
fleet_admin device rekey bob >"$FLEET/out" 2>&1 && fleet_fail "rekeyed without a claim"

# --- two keys are newer than the backup's, whoever comes first
want "the one between" "200 " "$(ask cat.2 /v1/status)"
want "the last" "403 device-suspended" "$(ask cat /v1/status)"
want "the one between, then" "403 device-suspended" "$(ask cat.2 /v1/status)"
want "the backup's" "403 key-rotated" "$(ask cat.1 /v1/status | sed 's/device-suspended/key-rotated/')"
fleet_admin device rekey cat >"$FLEET/out" 2>&1 && fleet_fail "which of two keys was not asked"
fleet_admin device rekey cat --key 0123456789abcdef >"$FLEET/out" 2>&1 && fleet_fail "a key that nobody has shown"
fleet_admin device rekey cat --key 01 >"$FLEET/out" 2>&1 && fleet_fail "two digits"
run 0 fleet_admin device rekey cat --key "$(key_of cat | cut -c 1-16)"
want "the last, decided" "200 " "$(ask cat /v1/status)"
want "the one between, decided" "403 key-rotated" "$(ask cat.2 /v1/status)"
want "the backup's, decided" "403 key-rotated" "$(ask cat.1 /v1/status)"
fleet_kill KILL "$DAEMON_PID"
fleet_restart
want "after a restart" "200 " "$(ask cat /v1/status)"
want "after a restart" "403 key-rotated" "$(ask cat.2 /v1/status)"
for name in $names; do who $name; done >"$FLEET/after"
cmp -s "$FLEET/before" "$FLEET/after" || fleet_fail "id, name or labels: $(diff "$FLEET/before" "$FLEET/after")"

# --- changes of key since the restore leave nothing that looks newer than the backup
rotate eve 1
rotate eve 2
rotate eve 3
want "eve's first" "403 key-rotated" "$(ask eve.1 /v1/status)"
want "eve's second" "403 key-rotated" "$(ask eve.2 /v1/status)"
want "eve" "200 " "$(ask eve /v1/status)"

# --- the same backup again, and the one after that: each time anew
restore copy KILL
want "a second restore" "200 " "$(ask bob /v1/status)"
want "and the old key" "403 key-rotated" "$(ask bob.1 /v1/status)"
# What eve had in the second life is newer than the backup, too; what she has shown of it decides.
want "eve's newest" "200 " "$(ask eve /v1/status)"
want "eve's backed up one" "403 key-rotated" "$(ask eve.1 /v1/status)"

# --- a backup of an older version does not say how old its keys are
d backup --keys "$FLEET/keyed" >"$FLEET/out" 2>&1 || fleet_fail "backup: $(cat "$FLEET/out")"
rotate fay 2
fleet_kill TERM "$DAEMON_PID"
rm -rf "$FLEET/state"
mv "$FLEET/keyed" "$FLEET/state"
python3 -S -E -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE device SET key_at = 0")
db.commit()' "$FLEET/state/rivulet.db"
: >"$FLEET/rivuletd.log"
fleet_restart
want "of an unknown age" "403 device-suspended" "$(ask fay /v1/status)"
grep -q 'error device.contested .*nobody knows how old' "$FLEET/rivuletd.log" || fleet_fail "no alarm"
run 0 fleet_admin device rekey fay
want "fay" "200 " "$(ask fay /v1/status)"
d check >"$FLEET/out" 2>&1 || fleet_fail "check: $(cat "$FLEET/out")"

# --- an old backup: nobody knows when it was restored before the clock is confirmed, and both keys wait for that
fake=
[ -n "${SAN:-}" ] || ! type faketime >/dev/null 2>&1 || for _ in 1 2 3 4 5; do
	[ -n "$fake" ] || fake=$(faketime -f +0s sh -c 'echo $LD_PRELOAD' 2>/dev/null)
done
if [ -n "$fake" ]; then
	real=$(realpath "$RIVULETD")
	printf "#!/bin/sh\nLD_PRELOAD='%s' FAKETIME=+10d FAKETIME_DONT_FAKE_MONOTONIC=1 exec %s \"\$@\"\n" "$fake" "$real" >"$FLEET/rivuletd.sh"
	chmod +x "$FLEET/rivuletd.sh"
	RIVULETD=$FLEET/rivuletd.sh
	restore copy
	want "the clock is doubted" clock-later "$(curl_admin /v1/status | pick "d['clock']['reason']")"
	want "a newer key waits" "503 unavailable" "$(ask bob /v1/status)"
	want "the old one, too" "503 unavailable" "$(ask bob.1 /v1/status)"
	want "no other device's" "200 " "$(ask eve.1 /v1/status)"
	run 0 fleet_admin clock confirm
	want "confirmed" "200 " "$(ask bob /v1/status)"
	want "confirmed, the old one" "403 key-rotated" "$(ask bob.1 /v1/status)"
fi
fleet_end
echo "$checks checks"
