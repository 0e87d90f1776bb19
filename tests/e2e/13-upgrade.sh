#!/bin/sh
# stages: gcc openssl address
# What older versions left: a state directory, with a round open and a delta accepted in it, starts under these programs, its devices
# go on, and the job comes to the models that the old programs came to. A `rivulet` of such a version joins and trains beside ours.
#   OLD=build/402de29/rivulet      old programs; .ci/run builds them. Those that are not there are left out
set -u
FLEET_NAME=13-upgrade
. tests/e2e/common.sh
OLD=${OLD:-build/402de29/rivulet build/5e9c804/rivulet build/eb9b924/rivulet build/8904a80/rivulet}

fleet_dir
tar -xzf tests/vectors/state-402de29.tar.gz -C "$FLEET" || fleet_fail "no vector"
cat >"$FLEET/rivuletd.conf" <<END
[server]
listen = 127.0.0.1:0
state_dir = $FLEET/state
admin_socket = $FLEET/admin.sock
END
# Names were not one device's then.
sql() { python3 -S -E -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()' "$FLEET/state/rivulet.db" "$1"; }
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

# beside PROGRAM: three rounds of a device of that program with one of ours, which begins suspended; of a job that it does not know it is told
# that it is too old
beside() {
	old_name=$(basename "$(dirname "$1")")
	# The vector holds no token.
	fleet_admin token create --uses 2 -o "$FLEET/token" >/dev/null || fleet_fail "no token"
	glyph_device "new-$old_name" 3 100
	fleet_run "new-$old_name"
	fleet_admin token create --suspended --label "version=$old_name" -o "$FLEET/token.$old_name" >/dev/null || fleet_fail "no token"
	ours=$AGENT_PID new=$RIVULET RIVULET=$1
	FLEET_TOKEN=$FLEET/token.$old_name glyph_device "old-$old_name" 4 100
	fleet_run "old-$old_name"
	RIVULET=$new
	within 20 grep -q device-suspended "$FLEET/old-$old_name.log" || fleet_fail "$old_name: it is not suspended"
	fleet_admin device resume --where "version=$old_name" >/dev/null || fleet_fail "resume"
	glyph_job "$FLEET/job.json" "beside-$old_name" 2 3
	job_submit "$FLEET/job.json"
	job_done 120
	curl_admin "/v1/jobs/$JOB/rounds" | pick "[r['reports'] for r in d['rounds']]" | grep -qx '\[2, 2, 2\]' || fleet_fail "$old_name: not all reports"
	fleet_kill TERM "$ours"
	case $old_name in
	8904a80) ;; # it knows each word of the documents of today
	*) refuses layers 's/"relu"/"tanh"/' ;;
	esac
	case $old_name in
	402de29 | 5e9c804) refuses buffered 's/"goal": 2/"mode": "buffered", "goal": 1/' ;;
	esac
	fleet_kill TERM "$AGENT_PID"
}
# refuses WHAT SED: a job with that in it, which the program does not know
refuses() {
	glyph_job "$FLEET/job.json" "$1-$old_name" 2 3
	sed -i "$2" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
	within 20 is_too_old || fleet_fail "$old_name and a job of $1: $(curl_admin /v1/devices)"
	fleet_admin job stop "$JOB" >/dev/null || fleet_fail "job stop"
}
is_too_old() { curl_admin /v1/devices | pick "[x['reason'] for x in d['devices'] if x['name'] == 'old-$old_name']" | grep -qx "\['old-agent'\]"; }
beside=
for program in $OLD; do
	if [ -x "$program" ]; then
		beside "$program"
		beside="$beside $old_name"
	fi
done
fleet_kill TERM "$DAEMON_PID"
"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "check at the end: $(cat "$FLEET/check")"

# old_tokens VERSION: those that it made do what they did. Nobody who joins with one begins suspended.
old_tokens() {
	wants="[('admin', False), ('device', False), ('device', False), ('reader', False), ('reader', True), ('submitter', False), ('submitter', True)]"
	[ "$(curl_admin /v1/tokens | pick "sorted((t['role'], t['access']) for t in d['tokens'] if not t['suspended'])")" = "$wants" ] ||
		fleet_fail "$1: tokens: $(curl_admin /v1/tokens)"
	for role in device reader submitter admin; do
		FLEET_TOKEN=$FLEET/token.$role fleet_join "new-$role"
		[ "$(curl_admin "/v1/devices/new-$role" | pick "(d['role'], d['state'])")" = "('$role', 'active')" ] || fleet_fail "$1: a token of $role"
	done
	for role in reader submitter; do
		curl -sS --cacert "$FLEET/device1/ca.pem" -H "Authorization: Bearer $(cat "$FLEET/access.$role")" "$URL/v1/status" | pick "d['you']['role']" |
			grep -qx $role || fleet_fail "$1: an access token of $role"
	done
}

# measured VERSION BEST: what that version left: a job that is over and one in its second round, both measured by devices. Where it knew no best
# models (BEST is 1), that is the best of what is measured from now on: older ones may be gone.
# These took the training loss as the mean of batches, the last of which is small here: models and evaluations are to the bit.
without_loss() { awk '{ $5 = "-"; print }'; }
first=$FLEET
measured() {
	FLEET=$first/$1
	mkdir "$FLEET" && tar -xzf "tests/vectors/state-$1.tar.gz" -C "$FLEET" || fleet_fail "no vector of $1"
	sed "s|$first|$FLEET|" "$first/rivuletd.conf" >"$FLEET/rivuletd.conf"
	fleet_daemon
	JOB=$(head -n 1 "$FLEET/expected")
	tail -n +2 "$FLEET/expected" | without_loss >"$FLEET/history1"
	[ ! -e "$FLEET/token.device" ] || old_tokens "$1"
	curl_admin /v1/jobs | pick "sorted((j['name'], j['monitor'] and j['monitor']['metric'], j['best'] and j['best']['round']) for j in d['jobs'])" |
		grep -qx "$3" || fleet_fail "$1: jobs: $(curl_admin /v1/jobs)"
	for name in device1 device2; do
		printf '[coordinator]\nurl = %s\n' "$URL" >>"$FLEET/$name/rivulet.conf"
		fleet_run $name
	done
	job_done 120
	# Some made no row for the last model's figure.
	history | grep -v '^[0-9]* evaluated' | without_loss >"$FLEET/history"
	cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "$1 differs: $(diff "$FLEET/history1" "$FLEET/history")"
	curl_admin "/v1/jobs/$JOB/rounds" >"$FLEET/rounds"
	curl_admin "/v1/jobs/$JOB" | pick "d['best']" >"$FLEET/best"
	pick "max(({'round': r['round'] - 1, 'model': r['base'], 'value': r['evaluate']['accuracy']} for r in d['rounds'][$2:]), key=lambda b: b['value'])" \
		<"$FLEET/rounds" | cmp -s - "$FLEET/best" || fleet_fail "$1: the best is $(cat "$FLEET/best") of $(cat "$FLEET/rounds")"
	for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done
	[ -z "$DAEMON_PID" ] || fleet_kill TERM "$DAEMON_PID"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" check >"$FLEET/check" 2>&1 || fleet_fail "$1: check: $(cat "$FLEET/check")"
}
measured 955543f 1 "\[('open', 'accuracy', None), ('over', None, None)\]"
measured 5e9c804 0 "\[('open', 'accuracy', 0), ('over', 'accuracy', [012])\]"
measured eb9b924 0 "\[('open', 'accuracy', 0), ('over', 'accuracy', [012])\]"
measured 8904a80 0 "\[('open', 'accuracy', 0), ('over', 'accuracy', [012])\]"
measured e388788 0 "\[('open', 'accuracy', 0), ('over', 'accuracy', [012])\]"
FLEET=$first
fleet_end
echo "states of 402de29, 955543f, 5e9c804, eb9b924, 8904a80 and e388788 as those would have done them;${beside:- without} old agents beside ours"
