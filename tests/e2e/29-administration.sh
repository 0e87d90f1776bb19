#!/bin/sh
# Administration from elsewhere: access tokens instead of certificates, what each role may do with the same commands, devices
# listed, picked and shown, suspended, resumed and revoked by name; an administrator's certificate that renews itself.
#   BUILD=build/mbedtls tests/e2e/29-administration.sh
set -u
FLEET_NAME=29-administration
. tests/e2e/common.sh
checks=0

run() { # run CODE COMMAND...: with its output in SAID
	run_want=$1
	shift
	SAID=$("$@" 2>&1)
	run_got=$?
	checks=$((checks + 1))
	[ $run_got -eq "$run_want" ] || fleet_fail "$*: exit code $run_got instead of $run_want: $SAID"
}
says() {
	for text in "$@"; do
		checks=$((checks + 1))
		printf '%s\n' "$SAID" | grep -qE -- "$text" || fleet_fail "no \"$text\" in: $SAID"
	done
}
remote() { # remote TOKEN COMMAND...: as a machine that has only the token
	remote_token=$1
	shift
	HOME=$FLEET/nowhere "$RIVULET" "$@" --url "$URL" --token-file "$FLEET/$remote_token"
}

fleet_start "
[limits]
long_poll = 1
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
says "^$id +access +reader +- +- .*revoked" "join +device +2 +1 .*valid +site=north,kind=gateway" "access +submitter .*valid"

# --- a token alone: its CA's fingerprint is in it, and a wrong CA is noticed
run 0 remote reader status
says "coordinator 1.0"
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

# --- roles
glyph_job "$FLEET/job.json" first 1 1
run 4 remote reader job submit "$FLEET/job.json"
run 0 remote submitter job submit "$FLEET/job.json"
JOB=$(remote reader job list --json | pick 'd["jobs"][0]["job"]')
owner=$(remote reader job show first --json | pick 'd["owner"]')
want=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(b"token" + bytes.fromhex(open(sys.argv[1]).read()[5:21])).hexdigest())' "$FLEET/submitter")
[ "$owner" = "$want" ] || fleet_fail "the job's owner is $owner"
run 0 remote reader job list
says "^$(printf %.12s "$JOB") +first .* $(printf %.12s "$owner")\$"
run 4 remote reader job stop first
run 4 remote submitter device suspend one
run 4 remote submitter token list
run 0 remote submitter job pause first
run 0 remote submitter job resume first

# --- devices by state and label, by name and by the beginning of the id
fleet_run one
job_done 60
run 0 remote reader device list --label site=north
says "^[0-9a-f]{12} +one +active .* site=north,kind~" "1 device, 1 active"
run 0 remote reader device list --label site=south
says "no devices"
run 6 remote reader device list --label site
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
echo "$checks checks"
