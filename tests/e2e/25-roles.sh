#!/bin/sh
# stages: gcc openssl address
# Who may do what: every route as everyone who can ask, over resumed, open and now and then fresh TLS connections, against a table written by
# hand; then identities that change under open connections.
#   BUILD=build/mbedtls tests/e2e/25-roles.sh
set -u
FLEET_NAME=25-roles
. tests/e2e/common.sh
command -v openssl >/dev/null || skip "needs openssl"

reloaded() { [ "$(grep -c 'reload.done' "$FLEET/rivuletd.log")" -ge "$1" ]; }

token() { # token NAME JSON: writes it to token.NAME
	curl_admin /v1/tokens -d "$2" | pick 'd["token"]' >"$FLEET/token.$1" || fleet_fail "no token for $1"
}
join() { # join NAME ROLE
	token "join.$1" "{\"role\": \"$2\"}"
	FLEET_TOKEN=$FLEET/token.join.$1 fleet_join "$1" ""
}
command() { curl_admin "/v1/devices/$1/$2" -X POST >/dev/null || fleet_fail "$2 $1"; }
id_of() { echo "$1" | cut -d- -f2; }

# One device gets a certificate that ends at once.
fleet_start "[limits]
requests_per_minute = 0
[identity]
device_validity = 1s"
join expired device
sed -i 's/^device_validity = .*/device_validity = 30d/' "$FLEET/rivuletd.conf"
kill -HUP "$DAEMON_PID"
within 20 reloaded 1 || fleet_fail "the configuration was not read again"
for name in device rotated suspended revoked left; do join $name device; done
for name in reader submitter admin; do join $name $name; done
join turning reader
cp "$FLEET/device/ca.pem" "$FLEET/ca.pem"

glyph_job "$FLEET/job.json" roles 5 3
job_submit "$FLEET/job.json"
echo "$JOB" >"$FLEET/job"
curl_admin "/v1/jobs/$JOB" | pick 'd["model"]' >"$FLEET/model"
sed 's/"name": "roles"/"name": "elsewhere", "select": {"labels": {"site": "elsewhere"}}/' "$FLEET/job.json" >"$FLEET/elsewhere.json"
job_submit "$FLEET/elsewhere.json"
echo "$JOB" >"$FLEET/elsewhere"

# Identities that are worth nothing, each in its own way.
command suspended suspend
command revoked revoke
rivulet_curl() { # rivulet_curl HOME PATH OPTION...
	home=$FLEET/$1 path=$2
	shift 2
	curl -sS --fail-with-body --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/ca.pem" --cert "$home/cert.pem" --key "$home/key.pem" "$@" "$URL$path"
}
rivulet_curl left /v1/leave -X POST || fleet_fail "leave"
openssl ecparam -name prime256v1 -genkey -noout -out "$FLEET/new.pem" 2>/dev/null
csr=$(openssl req -new -key "$FLEET/new.pem" -subj /CN=x -outform DER | base64 -w 0)
rivulet_curl rotated /v1/rotate -d "{\"csr\": \"$csr\"}" >/dev/null || fleet_fail "rotate"
# A certificate of our own CA for a device that nobody knows.
mkdir "$FLEET/stranger"
openssl ecparam -name prime256v1 -genkey -noout -out "$FLEET/stranger/key.pem" 2>/dev/null
printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n' >"$FLEET/stranger/ext"
openssl req -new -key "$FLEET/stranger/key.pem" -subj "/CN=$(printf '%064d' 0)" |
	openssl x509 -req -CA "$FLEET/state/keys/ca.crt" -CAkey "$FLEET/state/keys/ca.key" -set_serial 7 -days 2 -sha256 \
		-extfile "$FLEET/stranger/ext" -out "$FLEET/stranger/cert.pem" 2>/dev/null || fleet_fail "a stranger's certificate"

token reader-token '{"access": true}'
token submitter-token '{"access": true, "role": "submitter", "expires_s": 3600}'
token metrics-token '{"access": true, "role": "metrics"}'
token join-token '{"role": "reader"}'
token expired-token '{"access": true, "expires_s": 1}'
token revoked-token '{"access": true}'
curl_admin "/v1/tokens/$(id_of "$(cat "$FLEET/token.revoked-token")")" -X DELETE || fleet_fail "revoke a token"
# The right id with another's secret; and no token at all.
awk -F- 'NR == FNR {secret = $3; next} {print $1 "-" $2 "-" secret "-" $4}' "$FLEET/token.submitter-token" "$FLEET/token.reader-token" >"$FLEET/token.wrong-token"
echo garbage >"$FLEET/token.garbage-token"
sleep 1.2

got=$(python3 -S -E tests/tools/role_table.py "$FLEET" "$PORT") || {
	echo "$got" | head -60
	exit 1
}
echo "$got"
# The log tells who changed what, and no token.
grep 'http.response' "$FLEET/rivuletd.log" | grep 'path=/v1/jobs ' | grep 'status=201' | grep -q 'by=token:' ||
	fleet_fail "the log does not tell who submitted a job"
for name in reader-token submitter-token metrics-token join-token; do
	secret=$(cut -d- -f3 "$FLEET/token.$name")
	grep -q "$secret" "$FLEET/rivuletd.log" && fleet_fail "the log tells a secret"
done
fleet_end
