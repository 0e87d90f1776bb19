#!/bin/sh
# stages: gcc openssl
# Administration from elsewhere: access tokens instead of certificates, what each role may do with the same commands, devices
# listed, picked and shown, suspended, resumed and revoked by name; an administrator's certificate that renews itself.
#   BUILD=build/mbedtls tests/e2e/29-administration.sh
set -u
FLEET_NAME=29-administration
. tests/e2e/common.sh

remote() { # remote TOKEN COMMAND...: as a machine that has only the token
	remote_token=$1
	shift
	HOME=$FLEET/nowhere "$RIVULET" "$@" --url "$URL" --token-file "$FLEET/$remote_token"
}

fleet_start "
[limits]
long_poll = 1
owner_changes_per_hour = 20
[identity]
device_validity = 365d"
run 0 fleet_admin token create --uses 2 --label site=north,kind=gateway -o "$FLEET/north"
FLEET_TOKEN=$FLEET/north
glyph_device one 1 60
FLEET_TOKEN=$FLEET/token
glyph_device two 2 60

# --- tokens
run 0 fleet_admin token create --access --expires 1h -o "$FLEET/reader"
run 0 fleet_admin token create --access --role submitter -o "$FLEET/submitter"
run 0 fleet_admin token create --access --json
id=$(printf '%s' "$SAID" | pick 'd["id"]')
printf '%s' "$SAID" | pick 'd["token"]' >"$FLEET/gone"
run 0 fleet_admin token revoke "$id"
run 2 fleet_admin token create --access --uses 3
run 2 fleet_admin token create --access --label a=b
run 6 fleet_admin token create --access --role admin
run 0 fleet_admin token list
says "^$id +access +reader +- +- .*revoked" "join +device +- +2 +1 .*valid .*site=north,kind=gateway" "access +submitter .*valid"

# --- a token alone: its CA's fingerprint is in it, and a wrong CA is noticed
run 0 remote reader status
says "coordinator 1\.1\.0[+.0-9a-z]* \("
run 0 remote reader device list
says "one +active" "2 devices, 2 active"
run 0 remote reader device list --ca "$FLEET/one/ca.pem"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=other -days 2 -keyout "$FLEET/x.key" -out "$FLEET/x.crt" 2>/dev/null
run 4 remote reader device list --ca "$FLEET/x.crt"
sed 's/.\{64\}$/0000000000000000000000000000000000000000000000000000000000000000/' "$FLEET/reader" >"$FLEET/spoilt"
run 4 remote spoilt status
says "not the one of this token"
run 4 remote gone status
run 4 remote token status # a join token reads nothing
run 6 "$RIVULET" status --token-file "$FLEET/reader"
says "token-file goes with --url"
chmod 644 "$FLEET/reader"
run 0 remote reader status
says "everybody on this machine can use this token"
chmod 640 "$FLEET/reader"
run 0 remote reader status
case $SAID in *everybody*) fleet_fail "warned of a token that others cannot read: $SAID" ;; esac

# --- roles
glyph_job "$FLEET/job.json" first 1 1
run 4 remote reader job submit "$FLEET/job.json"
run 0 remote submitter job submit "$FLEET/job.json"
says "set aggregate.max_norm"
JOB=$(remote reader job list --json | pick 'd["jobs"][0]["job"]')
sed 's/"name": "first"/"name": "named", "aggregate": {"max_norm": 20}, "select": {"devices": ["two"]}/' "$FLEET/job.json" >"$FLEET/named.json"
run 0 remote submitter job submit "$FLEET/named.json"
says "can read its select.devices"
case $SAID in *max_norm*) fleet_fail "warned of a bounded job: $SAID" ;; esac
run 0 remote submitter job stop named
owner=$(remote reader job show first --json | pick 'd["owner"]')
want=$(python3 -S -E -c 'import hashlib, sys; print(hashlib.sha256(b"token" + bytes.fromhex(open(sys.argv[1]).read()[5:21])).hexdigest())' "$FLEET/submitter")
[ "$owner" = "$want" ] || fleet_fail "the job's owner is $owner"
run 0 remote reader job list
says "^$(printf %.12s "$JOB") +first .* $(printf %.12s "$owner")\$"
run 4 remote reader job stop first
run 4 remote submitter device suspend one
run 4 remote submitter token list
"$RIVULET" job show first --follow --json --url "$URL" --token-file "$FLEET/reader" --home "$FLEET/nowhere" >"$FLEET/followed" 2>"$FLEET/follow.log" &
FOLLOW=$!
FLEET_PIDS="$FLEET_PIDS $FOLLOW"
run 0 remote submitter job pause first
within 20 grep -q "is paused" "$FLEET/follow.log" || fleet_fail "a pause is not told: $(cat "$FLEET/follow.log")"
run 0 remote submitter job resume first

# --- what a job is run by, changed beside its document
run 4 remote reader job set first stop.rounds=1
run 2 remote submitter job set first round.over_select=2
says "round.over_select cannot be changed"
run 6 remote submitter job set first round.goal=200000
says "round.goal: can only be lowered, and the document says"
run 2 remote submitter job set first share=0
says "share: must be a whole number from 1 to 1000"
run 4 remote submitter job set first share=3
says "owner-limit|share is 3.* owner_share is 1"
run 6 remote submitter job set first round.concurrency=3
says "belongs to rounds of mode"
run 0 fleet_admin job set first share=3 priority=2 round.deadline_s=300
says "^set +share = 3 \(document: 1\)" "^set +round.deadline_s = 300 "
run 0 remote submitter job set first priority= stop.rounds=1
echo "$SAID" | grep -q priority && fleet_fail "taken back, and shown: $SAID"
run 0 remote submitter job submit "$FLEET/job.json"

# --- who follows a job sees a restart, and goes on
fleet_kill TERM "$DAEMON_PID"
within 20 grep -q "trying again" "$FLEET/follow.log" || fleet_fail "no word of a coordinator that is away"
fleet_restart
within 20 grep -q "answers again" "$FLEET/follow.log" || fleet_fail "no word of a coordinator that is back: $(cat "$FLEET/follow.log")"

# --- devices by state and label, by name and by the beginning of the id
fleet_run one
job_done 60
fleet_kill 0 $FOLLOW
[ "$fleet_ended" -eq 0 ] || fleet_fail "following ended with status $fleet_ended: $(cat "$FLEET/follow.log")"
[ "$(wc -l <"$FLEET/followed")" = 1 ] || fleet_fail "not one line per round: $(cat "$FLEET/followed")"
[ "$(pick 'd["round"], d["state"], d["reports"]' <"$FLEET/followed")" = "(1, 'committed', 1)" ] || fleet_fail "followed: $(cat "$FLEET/followed")"
run 0 remote reader job show first --json
[ "$(printf '%s' "$SAID" | pick 'd["state"], [r["round"] for r in d["rounds"]]')" = "('done', [1])" ] || fleet_fail "shown: $SAID"
[ "$(printf '%s' "$SAID" | pick 'd["rounds"][0]["overrides"], d["overrides"]["share"]')" = "({'share': 3, 'round.deadline_s': 300, 'stop.rounds': 1}, {'value': 3, 'document': 1})" ] ||
	fleet_fail "what was set is not there after a restart: $SAID"
run 4 fleet_admin job set first share=1
says "wrong-state|the job is done"
run 0 remote reader job list
says "^2 jobs are over: rivulet job list --all"
run 0 remote reader job list --json
[ "$(printf '%s' "$SAID" | pick 'd["jobs"]')" = "[]" ] || fleet_fail "jobs that are over in: $SAID"
run 0 remote reader job list --all
says "^$(printf %.12s "$JOB") +first +done"
run 0 remote reader model get "$(printf %.12s "$MODEL")" -o "$FLEET/got"
says "^$MODEL"
run 0 remote reader device list --label site=north
says "^[0-9a-f]{12} +one +active .* site=north,kind~" "1 device, 1 active"
run 0 remote reader device list --label site=south
says "no devices"
run 6 remote reader device list --label site

# --- a job that is over goes for good; a list of them only when it was meant
run 4 remote reader job delete first
run 0 remote submitter job delete first --dry-run
says "would go: 2 models" "^1 jobs would go, [1-9]"
for query in dry=0 dry= dry=yes; do
	code=$(curl -sk -o "$FLEET/answer" -w '%{http_code}' -X DELETE -H "Authorization: Bearer $(cat "$FLEET/submitter")" "$URL/v1/jobs/$JOB?$query")
	[ "$code" = 400 ] || fleet_fail "?$query was answered $code: $(cat "$FLEET/answer")"
done
glyph_job "$FLEET/second.json" second 1 1
sed -i s/digits/elsewhere/ "$FLEET/second.json"
run 0 remote submitter job submit "$FLEET/second.json"
run 4 remote submitter job delete second
says "stop it first"
run 0 remote submitter job stop second
run 2 remote submitter job delete --state running --yes
run 6 remote submitter job delete --state done,stopped
says "3 jobs.*--yes"
run 0 remote submitter job delete --name 'sec*' --older 1d --yes
says "^0 jobs deleted"
run 0 remote submitter job delete --owner "$owner" --yes
says "^3 jobs deleted"
run 0 remote reader job list --all
echo "$SAID" | grep -qE " (first|second) " && fleet_fail "deleted jobs in: $SAID"
run 4 remote submitter job submit "$FLEET/job.json"
says "deleted-job|was deleted"

# --- an owner with a name has its jobs whatever token it uses; with a revoked token they stop
run 0 fleet_admin token create --access --role submitter --owner alice -o "$FLEET/alice1"
run 0 fleet_admin token create --access --role submitter --owner alice -o "$FLEET/alice2"
run 2 fleet_admin token create --owner alice
sed -i 's/second/third/' "$FLEET/second.json"
run 0 remote alice1 job submit "$FLEET/second.json"
sed 's/"name": "third"/"name": "vain", "priority": 5/' "$FLEET/second.json" >"$FLEET/vain.json"
run 4 remote alice2 job submit "$FLEET/vain.json"
says "owner-limit|priority is 5.* owner_priority is 0"
run 0 fleet_admin job submit "$FLEET/vain.json"
run 0 fleet_admin job stop vain
run 4 remote submitter job pause third
run 0 remote alice2 job pause third
run 0 remote reader job list
says "third .* alice\$"
run 0 fleet_admin token list
says "submitter +alice .*valid +- +[0-9]+s +127.0.0.1"
run 0 fleet_admin token revoke "$(cut -c6-21 "$FLEET/alice1")" --stop-jobs
says "^1 jobs stopped"
run 4 remote alice1 status
run 0 fleet_admin token create --access --role submitter --owner bob -o "$FLEET/bob"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do
	curl -sk -o "$FLEET/answer" -H "Authorization: Bearer $(cat "$FLEET/bob")" -d '{}' "$URL/v1/jobs"
	grep -q bad-job "$FLEET/answer" || break
done
[ $i -eq 21 ] || fleet_fail "submission $i of 20 in an hour: $(cat "$FLEET/answer")"
run 0 grep "too-many-requests.*owner_changes_per_hour" "$FLEET/answer"
run 0 remote alice2 job delete --owner alice --yes
says "^1 jobs deleted"

# --- who did what
run 0 fleet_admin audit --by owner:alice --since 1d
says "job.submitted .*token:[0-9a-f]{16} owner:alice" "job.deleted .*owner:alice"
echo "$SAID" | grep -v owner:alice | grep -q . && [ "$(echo "$SAID" | grep -vc owner:alice)" -eq 1 ] || fleet_fail "others than alice: $SAID"
run 0 remote reader audit --by "token:$(cut -c6-21 "$FLEET/alice2")"
says "job.deleted "
case $SAID in *job.submitted*) fleet_fail "alice's other token did that: $SAID" ;; esac
run 0 remote reader audit --by device:one --json
[ "$(printf '%s' "$SAID" | pick '"device.joined" in d["entries"][0]["body"]')" = True ] || fleet_fail "entries of one: $SAID"
run 0 remote reader audit --by token:0000000000000000
[ "$(echo "$SAID" | wc -l)" -eq 1 ] || fleet_fail "entries of nobody: $SAID"
run 6 remote reader audit --by alice
run 3 remote reader audit --by device:none
run 6 remote reader audit --since soon
[ "$(curl_admin "/v1/audit?since=$(($(date +%s) + 60))" | pick 'len(d["entries"])')" = 0 ] || fleet_fail "entries of the future"
# A word that is misspelt is no other question; devices of any version are not asked what they mean.
curl_admin "/v1/audit?sinc=5" >"$FLEET/answer" 2>/dev/null && fleet_fail "an unknown word: $(cat "$FLEET/answer")"
grep -q 'bad-request.*unknown word ."sinc.".*from limit since by' "$FLEET/answer" || fleet_fail "an unknown word: $(cat "$FLEET/answer")"
for path in /v1/jobs /v1/status /v1/devices /v1/tokens /v1/fleet; do
	curl_admin "$path?stat=x" >"$FLEET/answer" 2>/dev/null && fleet_fail "$path took it: $(cat "$FLEET/answer")"
	grep -q 'unknown word ."stat."' "$FLEET/answer" || fleet_fail "$path: $(cat "$FLEET/answer")"
done
curl -sS --fail --cacert "$FLEET/one/ca.pem" --cert "$FLEET/one/cert.pem" --key "$FLEET/one/key.pem" "$URL/v1/jobs?stat=x" >"$FLEET/answer" ||
	fleet_fail "a device's word: $(cat "$FLEET/answer")"
run 0 fleet_admin device suspend two
says "^[0-9a-f]{64} suspended"
run 0 remote reader device list --state suspended --json
[ "$(printf '%s' "$SAID" | pick '[v["name"] for v in d["devices"]]')" = "['two']" ] || fleet_fail "the suspended ones: $SAID"
run 4 "$RIVULET" rotate --home "$FLEET/two"
says "device-suspended"
run 0 fleet_admin device resume "$(pick 'd["device"][:12]' <"$FLEET/two/device.json")"
run 0 "$RIVULET" rotate --home "$FLEET/two"
run 0 fleet_admin device show one
says "^labels +site=north kind=gateway" "^last_contact +20" "^reports +1"
run 3 fleet_admin device show three
run 0 fleet_admin device revoke two
run 4 fleet_admin device resume two
run 4 "$RIVULET" rotate --home "$FLEET/two"
says "device-revoked"

# --- names: one device each; a token may give one, or its beginning
join_as() { # join_as CODE TOKEN NAME HOME
	run "$1" "$RIVULET" join "$URL" --token-file "$FLEET/$2" --name "$3" --home "$FLEET/$4"
}
run 0 fleet_admin token create --uses 5 --label site=north,rack=1 --name-prefix north- -o "$FLEET/prefix"
run 0 fleet_admin token create --name gw-7 -o "$FLEET/fixed"
run 6 fleet_admin token create --name gw-8 --uses 2
run 6 fleet_admin token create --name gw-8 --name-prefix gw
one=$(pick 'd["device"]' <"$FLEET/one/device.json")
join_as 4 token one n1
says "name-in-use" "$one"
join_as 0 prefix a n1
says "as north-a "
join_as 4 prefix north-a n2
says "name-in-use"
join_as 0 prefix b n2
join_as 0 fixed whatever n3
says "as gw-7 "
join_as 0 prefix two n4 # two was revoked
run 0 fleet_admin token list
says "valid +north-\* " "gw-7 "

# --- names and labels, changed for one device and for all with some labels
run 0 fleet_admin device set --where site=north,rack=1 --label site=south --unlabel rack --dry-run --json
[ "$(printf '%s' "$SAID" | pick 'd["changed"], d["dry_run"], len(d["devices"])')" = "(3, True, 3)" ] || fleet_fail "a dry run: $SAID"
run 0 fleet_admin device list --where rack=1
says "^3 devices"
run 0 fleet_admin device set --where site=north,rack=1 --label site=south --unlabel rack
says "3 of 3 devices changed"
run 0 fleet_admin device set north-a north-b --label site=south --unlabel rack --json
[ "$(printf '%s' "$SAID" | pick 'd["changed"], d["devices"][0]["labels"]')" = "(0, {'site': 'south'})" ] || fleet_fail "nothing to change: $SAID"
run 0 fleet_admin device set --where site=nowhere --label a=b --json
[ "$(printf '%s' "$SAID" | pick 'd["changed"]')" = 0 ] || fleet_fail "nobody to change: $SAID"
run 4 fleet_admin device set north-a --name north-b
says "name-in-use" "$(pick 'd["device"]' <"$FLEET/n2/device.json")"
run 0 fleet_admin device set north-a --name gate
run 3 fleet_admin device set north-a --label a=b
run 2 fleet_admin device set gate
run 6 fleet_admin device set --where site=south --name x
says "for one device, and [0-9]+ are site=south"
run 2 fleet_admin device revoke --where ""
run 2 fleet_admin device suspend gate --where site=south
# All together or none.
run 4 fleet_admin device set gate "$(pick 'd["device"]' <"$FLEET/two/device.json")" --label a=b
says "revoked"
run 0 fleet_admin device list --where a=b
says "no devices"
run 0 fleet_admin device show gate
says "^role +device" "^labels +site=south"
[ "$(curl_admin "/v1/audit?limit=1000" | pick "len([e for e in d['entries'] if '\"device.changed\"' in e['body']])")" = 4 ] || fleet_fail "changes are not audited"
# It counts from the next ask, also of one who waits for work.
glyph_job "$FLEET/job.json" southern 1 1
sed -i 's/"round"/"select": {"labels": {"site": "south"}, "devices": ["one"]}, "round"/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
run 0 fleet_admin device set one --label site=south
job_done 60
for verb in suspend resume revoke; do
	run 0 fleet_admin device $verb --where site=south,kind=gateway --dry-run
	run 0 fleet_admin device $verb --where site=south,kind=gateway
	[ $verb = resume ] || says "1 of 1 devices changed"
	run 0 fleet_admin device $verb --where site=south,kind=gateway --json
	[ "$(printf '%s' "$SAID" | pick 'd["changed"]')" = 0 ] || fleet_fail "$verb twice: $SAID"
done

# --- an administrator's certificate renews itself: before it expires, and after
sed -i "s/^device_validity = .*/device_validity = $((20 * TEST_SLOW))s/" "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
[ "$(log_lines 1 "$FLEET/rivuletd.log" 'reload\.done')" -ge 1 ] || fleet_fail "no reload"
run 0 fleet_admin token create --role admin -o "$FLEET/admin.token"
run 0 "$RIVULET" join "$URL" --token-file "$FLEET/admin.token" --home "$FLEET/admin" --name boss
cp "$FLEET/admin/cert.pem" "$FLEET/admin.first"
run 0 "$RIVULET" token list --url "$URL" --home "$FLEET/admin"
cmp -s "$FLEET/admin/cert.pem" "$FLEET/admin.first" || fleet_fail "renewed at once"
expired() { ! openssl x509 -in "$FLEET/admin/cert.pem" -noout -checkend 0 >/dev/null; }
within 60 expired || fleet_fail "the certificate does not expire"
run 0 "$RIVULET" token list --url "$URL" --home "$FLEET/admin"
cmp -s "$FLEET/admin/cert.pem" "$FLEET/admin.first" && fleet_fail "not renewed"
run 0 fleet_admin device list
says "boss +active,admin"
fleet_end
echo "$CHECKS checks"
