#!/bin/sh
# What version 402de29 left: its state directory, with a round open and a delta accepted in it, starts under these programs, its devices
# go on, and the job comes to the models that the old programs came to. A `rivulet` of that version joins and trains beside ours.
#   OLD=build/402de29/rivulet      the old program; .ci/run builds it. Without it that part is left out
set -u
FLEET_NAME=13-upgrade
. tests/e2e/common.sh
OLD=${OLD:-build/402de29/rivulet}

fleet_dir
tar -xzf tests/vectors/state-402de29.tar.gz -C "$FLEET" || fleet_fail "no vector"
cat >"$FLEET/rivuletd.conf" <<END
[server]
listen = 127.0.0.1:0
state_dir = $FLEET/state
admin_socket = $FLEET/admin.sock
END
# Names were not one device's then.
sql() { python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()' "$FLEET/state/rivulet.db" "$1"; }
sql "UPDATE device SET name = 'device1' WHERE name = 'device2'" || fleet_fail "no second device1"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check before the start: $(cat "$FLEET/check")"
fleet_daemon
[ "$(curl_admin /v1/devices | pick 'sorted(d["name"] for d in d["devices"])[:2]')" = "['device1', 'device1-2']" ] || fleet_fail "names: $(curl_admin /v1/devices)"
[ "$(curl_admin "/v1/audit?limit=1000" | pick "len([e for e in d['entries'] if '\"device.changed\"' in e['body']])")" = 1 ] || fleet_fail "the new name is not audited"
JOB=$(head -n 1 "$FLEET/expected")
tail -n +2 "$FLEET/expected" >"$FLEET/history1"
curl_admin "/v1/jobs/$JOB" | pick "(d['open']['round'], d['open']['reports'])" | grep -qx "(2, 1)" ||
	fleet_fail "the open round is not as it was left: $(curl_admin "/v1/jobs/$JOB")"
for name in device1 device2; do
	printf '[coordinator]\nurl = %s\n' "$URL" >>"$FLEET/$name/rivulet.conf"
	fleet_run $name
done
job_done 120
history >"$FLEET/history"
cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "differs: $(diff "$FLEET/history1" "$FLEET/history")"
curl_admin "/v1/jobs/$JOB" | pick "d['kind'] == 'train'" | grep -qx True || fleet_fail "its kind: $(curl_admin "/v1/jobs/$JOB")"
within 10 spool_empty || fleet_fail "left in the spool: $(ls "$FLEET/state/spool")"
for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done

old="without the old rivulet"
if [ -x "$OLD" ]; then
	# The vector holds no token.
	fleet_admin token create --uses 2 -o "$FLEET/token" >/dev/null || fleet_fail "no token"
	glyph_device new 3 100
	fleet_run new
	new=$RIVULET RIVULET=$OLD
	glyph_device old 4 100
	fleet_run old
	RIVULET=$new
	glyph_job "$FLEET/job.json" old-and-new 2 3
	job_submit "$FLEET/job.json"
	job_done 120
	curl_admin "/v1/jobs/$JOB/rounds" | pick "[r['reports'] for r in d['rounds']]" | grep -qx '\[2, 2, 2\]' || fleet_fail "not all reports"
	old="the old rivulet trained three rounds"
fi
fleet_kill TERM "$DAEMON_PID"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check at the end: $(cat "$FLEET/check")"

# What 955543f left: a job that is over and one in its second round, both measured by devices. Their figures of then are theirs, and the
# best model is that of what is measured from now on: older ones may be gone.
first=$FLEET
FLEET=$FLEET/second
mkdir "$FLEET" && tar -xzf tests/vectors/state-955543f.tar.gz -C "$FLEET" || fleet_fail "no second vector"
sed "s|$first|$FLEET|" "$first/rivuletd.conf" >"$FLEET/rivuletd.conf"
fleet_daemon
JOB=$(head -n 1 "$FLEET/expected")
tail -n +2 "$FLEET/expected" >"$FLEET/history1"
curl_admin /v1/jobs | pick "sorted((j['name'], j['monitor'] and j['monitor']['metric'], j['best']) for j in d['jobs'])" |
	grep -qx "\[('open', 'accuracy', None), ('over', None, None)\]" || fleet_fail "jobs: $(curl_admin /v1/jobs)"
for name in device1 device2; do
	printf '[coordinator]\nurl = %s\n' "$URL" >>"$FLEET/$name/rivulet.conf"
	fleet_run $name
done
job_done 120
# One more row than those programs made: the last model's figure.
history | grep -v '^[0-9]* evaluated' >"$FLEET/history"
cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "differs: $(diff "$FLEET/history1" "$FLEET/history")"
curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds"
curl_admin "/v1/jobs/$JOB" | pick "d['best']" >"$FLEET/best"
pick "max(({'round': r['round'] - 1, 'model': r['base'], 'value': r['evaluate']['accuracy']} for r in d['rounds'][1:]), key=lambda b: b['value'])" \
	<"$FLEET/rounds" | cmp -s - "$FLEET/best" || fleet_fail "the best is $(cat "$FLEET/best") of $(cat "$FLEET/rounds")"
fleet_end
FLEET=$first
echo "the open round and two more as 402de29 would have done them; $old"
