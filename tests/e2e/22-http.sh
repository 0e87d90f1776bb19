#!/bin/sh
# stages: gcc openssl address
# HTTP as it comes from outside, over TLS: raw requests that no client library would send, ranges and entity tags of models,
# and who may do what.
#   BUILD=build/mbedtls tests/e2e/22-http.sh
set -u
FLEET_NAME=22-http
. tests/e2e/common.sh
for tool in curl openssl; do
	command -v $tool >/dev/null || { echo "needs $tool"; exit 77; }
done
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) echo "ok: $1"; return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}

# raw [WHO]: standard input as it stands (printf escapes done) over TLS; prints all that comes until the peer closes
raw() {
	identity=
	[ -n "${1:-}" ] && identity="-cert $FLEET/$1/cert.pem -key $FLEET/$1/key.pem"
	# shellcheck disable=SC2086 # two options
	timeout $((30 * TEST_PATIENCE)) openssl s_client -connect "127.0.0.1:$PORT" -servername localhost -CAfile "$FLEET/dev/ca.pem" -quiet \
		-ign_eof $identity 2>>"$FLEET/s_client.log" | tr -d '\r'
}
# heads: "STATUS[+close]" of each answer, and the word of each problem
heads() {
	sed 's,HTTP/1\.1 [1-5],\n&,g' | awk '/^HTTP\/1\.1 [0-9]/ { if (s != "") printf "%s ", s; s = $2 }
		/^Connection: close$/ { s = s "+close" }
		/urn:rivulet:error:/ { w = $0; sub(/.*urn:rivulet:error:/, "", w); sub(/".*/, "", w); s = s ":" w }
		END { print s }'
}
H='Host: localhost\r\n'
C='Connection: close\r\n'
# one WANT WHAT REQUEST [WHO]: REQUEST is a format, for its escapes
# shellcheck disable=SC2059
one() { say "$2" "$1" "$(printf "$3" | raw "${4:-}" | heads)"; }

fleet_start "[limits]
header_bytes = 8K
json_bytes = 16K
header_timeout = $((5 * TEST_SLOW))"
fleet_join dev ""
fleet_admin token create --role admin -o "$FLEET/token.admin" || fleet_fail "no token"
FLEET_TOKEN=$FLEET/token.admin fleet_join boss ""
cat >"$FLEET/job.json" <<END
{
  "name": "http",
  "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
  "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
  "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
  "round": {"goal": 3}
}
END
job=$(fleet_admin job submit "$FLEET/job.json") || fleet_fail "the job was not accepted"
model=$(fleet_admin job show http --json | sed -n 's/.*"model": *"\([0-9a-f]*\)".*/\1/p' | head -n 1)
task=0123456789abcdef0123456789abcdef

# --- framing
one "200 200+close" "two requests in one write" "GET /healthz HTTP/1.1\r\n${H}\r\nGET /readyz HTTP/1.1\r\n${H}${C}\r\n"
one "200 404:not-found 405:method-not-allowed 200+close" "errors keep the connection" \
	"GET /healthz HTTP/1.1\r\n${H}\r\nGET /none HTTP/1.1\r\n${H}\r\nDELETE /healthz HTTP/1.1\r\n${H}\r\nGET /readyz HTTP/1.1\r\n${H}${C}\r\n"
one "200+close" "what follows Connection: close is not answered" \
	"GET /healthz HTTP/1.1\r\n${H}${C}\r\nGET /healthz HTTP/1.1\r\n${H}${C}\r\n"
one "505+close:version" "HTTP/1.0" "GET /healthz HTTP/1.0\r\n${H}\r\nGET /healthz HTTP/1.0\r\n${H}\r\n"
one "505+close:version" "HTTP/1.0 that asks to go on" "GET /healthz HTTP/1.0\r\n${H}Connection: keep-alive\r\n\r\n"
one "505+close:version" "HTTP/2.0 in plain text" "GET /healthz HTTP/2.0\r\n${H}\r\n"
one "505+close:version" "HTTP/9.9" "GET /healthz HTTP/9.9\r\n${H}\r\n"
one "400+close:bad-request" "no Host" "GET /healthz HTTP/1.1\r\n${C}\r\n"
one "400+close:bad-request" "two Hosts" "GET /healthz HTTP/1.1\r\n${H}${H}\r\n"
one "400+close:bad-request" "a bare line feed" "GET /healthz HTTP/1.1\n${H}\r\n"
one "400+close:bad-request" "a folded line" "GET /healthz HTTP/1.1\r\n${H}X: a\r\n b\r\n\r\n"
one "400+close:bad-request" "a space before the colon" "GET /healthz HTTP/1.1\r\n${H}X : a\r\n\r\n"
one "400+close:bad-request" "an escape in the path" "GET /%%68ealthz HTTP/1.1\r\n${H}\r\n"
one "400+close:bad-request" "a byte above 0x7f in the path" "GET /healthz\377 HTTP/1.1\r\n${H}\r\n"
one "400+close:bad-request" "an absolute form" "GET http://localhost/healthz HTTP/1.1\r\n${H}\r\n"
one "400+close:bad-request" "two lengths" \
	"POST /v1/join HTTP/1.1\r\n${H}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"
one "400+close:bad-request" "a signed length" "POST /v1/join HTTP/1.1\r\n${H}Content-Length: +2\r\n\r\n{}"
one "400+close:bad-request" "nonsense" "\026\003\001\002\r\n\r\n"
one "417+close:expectation-failed" "an unknown expectation" \
	"POST /v1/join HTTP/1.1\r\n${H}Expect: tea\r\nContent-Length: 2\r\n\r\n{}"
long=$(printf '%1100s' '' | tr ' ' a)
one "414+close:path-too-long" "a long path" "GET /$long HTTP/1.1\r\n${H}\r\n"
one "414+close:path-too-long" "a long query" "GET /healthz?$long HTTP/1.1\r\n${H}\r\n"
# The whole header block, larger than the limit, with its end and without.
large=$(printf '%9000s' '' | tr ' ' a)
one "431+close:header-too-large" "a large header" "GET /healthz HTTP/1.1\r\n${H}X: $large\r\n\r\n"
one "431+close:header-too-large" "a header without end" "GET /healthz HTTP/1.1\r\n${H}X: $large"
say "a header that does not come: cut after its time" "" "$(printf 'GET /healthz HTTP/1.1\r\n' | raw | heads)"

# --- bodies
one "411+close:length-required" "no length" "POST /v1/join HTTP/1.1\r\n${H}${C}\r\n"
one "411*:length-required" "no length, PUT" "PUT /v1/deltas/$task HTTP/1.1\r\n${H}${C}\r\n" dev
one "411+close:length-required" "chunked" \
	"POST /v1/join HTTP/1.1\r\n${H}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
one "4??+close:*" "chunked and a length" \
	"POST /v1/join HTTP/1.1\r\n${H}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
one "413+close:too-large" "a join of more than 8 KiB" "POST /v1/join HTTP/1.1\r\n${H}Content-Length: 8193\r\n\r\n$large"
one "401+close:bad-token" "a join of 8 KiB" "POST /v1/join HTTP/1.1\r\n${H}${C}Content-Length: 8192\r\n\r\n$(printf '%8192s' '')"
one "413+close:too-large" "a body for GET" "GET /healthz HTTP/1.1\r\n${H}Content-Length: 9000\r\n\r\n$large"
one "413+close:too-large" "an offer above json_bytes" "POST /v1/tasks HTTP/1.1\r\n${H}Content-Length: 16385\r\n\r\n" dev
one "400+close:bad-message" "an offer that is no JSON" "POST /v1/tasks HTTP/1.1\r\n${H}${C}Content-Length: 2\r\n\r\n{]" dev
one "400+close:bad-message" "an offer nested too deep" "POST /v1/tasks HTTP/1.1\r\n${H}${C}Content-Length: 2000\r\n\r\n$(
	printf '%2000s' '' | tr ' ' '[')" dev
one "400:bad-message 200+close" "a refused message whose body was read keeps the connection" \
	"POST /v1/tasks HTTP/1.1\r\n${H}Content-Length: 2\r\n\r\n{]GET /healthz HTTP/1.1\r\n${H}${C}\r\n" dev

# --- through curl: HEAD, ranges, tags
ask() { # ask WHO FORMAT CURL_OPTION...: prints FORMAT
	who=$1 format=$2
	shift 2
	[ "$who" = none ] || set -- --cert "$FLEET/$who/cert.pem" --key "$FLEET/$who/key.pem" "$@"
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/dev/ca.pem" -o "$FLEET/out" -D "$FLEET/head" -w "$format" "$@" 2>>"$FLEET/curl.log"
}
field() { sed -n "s/^$1: \(.*\)\r\$/\1/Ip" "$FLEET/head"; }
bytes() { # bytes FROM COUNT: of the model, as a hash
	tail -c +$(($1 + 1)) "$FLEET/model" | head -c "$2" | sha256sum
}
url=$URL/v1/models/$model
say "a model" 200 "$(ask dev '%{http_code}' "$url")"
mv "$FLEET/out" "$FLEET/model"
size=$(wc -c <"$FLEET/model" | tr -d ' ')
say "its hash" "$model *" "$(sha256sum <"$FLEET/model")"
say "its tag" "\"$model\"" "$(field etag)"
say "HEAD" "200 0" "$(ask dev '%{http_code} %{size_download}' -I "$url")"
say "HEAD says the length" "$size" "$(field content-length)"
one "200 200+close" "HEAD sends no body" \
	"HEAD /v1/models/$model HTTP/1.1\r\n${H}\r\nGET /healthz HTTP/1.1\r\n${H}${C}\r\n" dev
range() { # range RANGE FROM COUNT
	say "range $1" "206 $3" "$(ask dev '%{http_code} %{size_download}' -H "Range: bytes=$1" "$url")"
	say "range $1: which" "bytes $2-$(($2 + $3 - 1))/$size" "$(field content-range)"
	say "range $1: bytes" "$(bytes "$2" "$3")" "$(sha256sum <"$FLEET/out")"
}
range 0-0 0 1
range 0-99 0 100
range 1000-1999 1000 1000
range 1000- 1000 $((size - 1000))
range -100 $((size - 100)) 100
range $((size - 1))-$((size + 5)) $((size - 1)) 1
for r in "$size-" "$((size + 10))-$((size + 20))" -0; do
	say "range $r" 416 "$(ask dev '%{http_code}' -H "Range: bytes=$r" "$url")"
	say "range $r: of what" "bytes [*]/$size" "$(field content-range)"
done
for r in 0-5,10-20 x-y 5; do
	say "range $r is ignored" "200 $size" "$(ask dev '%{http_code} %{size_download}' -H "Range: bytes=$r" "$url")"
done
say "range in another unit is ignored" "200 $size" "$(ask dev '%{http_code} %{size_download}' -H 'Range: lines=1-2' "$url")"
say "If-None-Match" "304 0" "$(ask dev '%{http_code} %{size_download}' -H "If-None-Match: \"$model\"" "$url")"
say "If-None-Match, weak, of several" "304 0" \
	"$(ask dev '%{http_code} %{size_download}' -H "If-None-Match: \"x\", W/\"$model\"" "$url")"
say "If-None-Match of another" "200 $size" "$(ask dev '%{http_code} %{size_download}' -H 'If-None-Match: "x"' "$url")"

# --- who may do what
may() { # may WHO METHOD PATH STATUS WORD [CURL_OPTION...]
	who=$1 method=$2 path=$3 status=$4 word=$5
	shift 5
	say "$who: $method $path" "$status" "$(ask "$who" '%{http_code}' -X "$method" "$@" "$URL$path")"
	[ -z "$word" ] || say "$who: $method $path: problem" "*\"urn:rivulet:error:$word\"*" "$(cat "$FLEET/out")"
}
may none GET /healthz 200 ""
may none GET /readyz 200 ""
may none GET /v1/ca 200 ""
cmp -s "$FLEET/out" "$FLEET/dev/ca.pem" || say "the CA as it was joined" same different
may dev GET /v1/status 200 ""
may dev GET /v1/jobs 200 ""
may dev GET "/v1/jobs/$job" 200 ""
may dev GET "/v1/jobs/$job/rounds" 200 ""
may dev GET "/v1/jobs/$job/rounds/1" 200 ""
say "a device sees no rows of devices" 0 "$(grep -c '"devices"' "$FLEET/out")"
may boss GET "/v1/jobs/$job/rounds/1" 200 ""
say "an administrator sees rows of devices" 1 "$(grep -c '"devices"' "$FLEET/out")"
may boss GET /v1/devices 200 ""
may boss GET /v1/tokens 200 ""
may boss POST /v1/tasks 403 forbidden -d '{}'
may boss GET /v1/none 404 not-found
may boss GET "/v1/jobs/00000000000000000000000000000000" 404 unknown-job
may boss GET "/v1/jobs/zz" 404 unknown-job
may boss GET "/v1/jobs/$job/rounds/99" 404 not-found
may boss GET "/v1/models/$job" 404 not-found
may boss PATCH /v1/status 405 method-not-allowed
may boss OPTIONS /v1/status 405 method-not-allowed
for what in "GET /v1/devices" "GET /v1/devices/dev" "GET /v1/tokens" "DELETE /v1/tokens/0123456789abcdef" \
	"POST /v1/jobs" "POST /v1/tokens" "POST /v1/jobs/$job/pause" "POST /v1/jobs/$job/resume" "POST /v1/jobs/$job/stop" \
	"PUT /v1/models/$model"; do
	# shellcheck disable=SC2086 # two words
	{
		may dev $what 403 forbidden -d '{}'
		may none $what 401 no-certificate -d '{}'
	}
done
for what in "GET /v1/status" "GET /v1/jobs" "GET /v1/jobs/$job/rounds" "GET /v1/models/$model" "POST /v1/tasks" \
	"POST /v1/tasks/$task/abort" "PUT /v1/deltas/$task"; do
	# shellcheck disable=SC2086
	may none $what 401 no-certificate -d '{}'
done
say "the job was not touched" 1 "$(fleet_admin job show http --json | grep -c '"state": *"running"')"
say "refusals of http are no errors in the log" 0 "$(grep -c ' error ' "$FLEET/rivuletd.log")"
exit $failed
