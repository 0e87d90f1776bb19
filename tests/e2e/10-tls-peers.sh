#!/bin/sh
# stages: gcc openssl address
# The TLS of this build against curl and openssl, and against the other back end's build where that has been made.
#   BUILD=build/mbedtls tests/e2e/10-tls-peers.sh       OTHER=PATH names another build's tlspeer
set -u
BUILD=${BUILD:-build/${CRYPTO:-mbedtls}}
peer=$BUILD/tests/tools/tlspeer
case ${CRYPTO:-mbedtls} in openssl) second=mbedtls ;; *) second=openssl ;; esac
OTHER=${OTHER:-build/$second/tests/tools/tlspeer}
for tool in curl openssl; do
	command -v $tool >/dev/null || { echo "needs $tool"; exit 77; }
done
[ -x "$peer" ] || { echo "needs $peer"; exit 77; }

dir=$(mktemp -d) pids=
# shellcheck disable=SC2154 # the loop's own variable
trap 'for p in $pids; do kill "$p" 2>/dev/null; done; rm -rf "$dir"' EXIT
failed=0
say() { # say WANT WHAT GOT: one comparison
	[ "$1" = "$3" ] && { echo "ok: $2"; return; }
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$2" "$1" "$3"
	failed=1
}
start() { # start PROGRAM...: runs it in the background with its output in $out, a file of its own; its first word becomes $port
	out=$(mktemp "$dir/out.XXXXXX")
	"$@" >"$out" 2>>"$dir/err" &
	pids="$pids $!"
	for _ in $(seq 1200); do
		port=$(awk 'NR == 1 { print $1 }' "$out")
		[ -n "$port" ] && return
		sleep 0.05
	done
	echo "FAILED: $1 did not start"; cat "$dir/err"; exit 1
}
lines() { tr '\n' ';'; }
twice() { # twice OPTION...: one curl, two connections
	url=https://localhost:$port/
	curl -sS --max-time 120 --cacert "$dir/ca.pem" "$@" "$url" "$url" 2>>"$dir/err" | lines
}
id() { echo "--cert $dir/$1.pem --key $dir/$1.key"; }

"$peer" init "$dir" || exit 1
start "$peer" serve "$dir"
echo "server: $(cat "$out")"
# shellcheck disable=SC2046 # two options each
{
	say "peer=device resumed=0;peer=device resumed=1;" "curl resumes under TLS 1.2 and keeps its identity" \
		"$(twice --tls-max 1.2 $(id client))"
	say "peer=device resumed=0;peer=device resumed=1;" "curl with its own choice of version" "$(twice $(id client))"
	say "peer=nobody resumed=0;peer=nobody resumed=1;" "curl without a certificate" "$(twice)"
	say "peer=old device resumed=0;peer=old device resumed=1;" "an expired client certificate" "$(twice $(id expired))"
	say "" "a stranger's certificate" "$(twice $(id stranger))"
	say "" "a server as client" "$(twice $(id server))"
}
say "peer=nobody resumed=0;" "curl by address" \
	"$(curl -sS --max-time 120 --cacert "$dir/ca.pem" "https://127.0.0.1:$port/" 2>&1 | lines)"
say 60 "curl with another CA" \
	"$(curl -sS --max-time 120 --cacert "$dir/stranger.pem" "https://localhost:$port/" >/dev/null 2>&1; echo $?)"
say 60 "curl with a name that is not in the certificate" "$(curl -sS --max-time 120 --cacert "$dir/ca.pem" \
	--resolve "other.example:$port:127.0.0.1" "https://other.example:$port/" >/dev/null 2>&1; echo $?)"

s_client() { # s_client OPTION...: prints the cipher and the curve, or nothing
	printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' | timeout 120 openssl s_client -connect "127.0.0.1:$port" \
		-CAfile "$dir/ca.pem" -verify_return_error -x509_strict -ign_eof "$@" 2>&1 |
		sed -n 's/^New, TLSv.*Cipher is //p;s/^.* Temp Key: \([^,]*\), \([^,]*\).*/\1 \2/p' | uniq | lines
}
chacha=ECDHE-ECDSA-CHACHA20-POLY1305 aes=ECDHE-ECDSA-AES128-GCM-SHA256
say "X25519 253 bits;$chacha;" "ChaCha20-Poly1305" "$(s_client -tls1_2 -cipher $chacha)"
say "X25519 253 bits;$aes;" "AES-128-GCM" "$(s_client -tls1_2 -cipher $aes)"
say "" "CBC is refused" "$(s_client -tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0)"
say "" "TLS 1.1 is refused" "$(s_client -tls1_1 -cipher ALL:@SECLEVEL=0)"
say "ECDH prime256v1;$aes;" "P-256" "$(s_client -tls1_2 -groups P-256 -cipher $aes)"
say "" "P-521 is refused" "$(s_client -tls1_2 -groups P-521)"
# Each handshake verifies two certificates of the server's chain.
say "RENEGOTIATING 2" "renegotiation is refused" "$( (echo R; sleep 1) | timeout 120 openssl s_client \
	-connect "127.0.0.1:$port" -CAfile "$dir/ca.pem" -tls1_2 2>&1 |
	awk '/^RENEGOTIATING/ { r = $1 } /verify return:1/ { n++ } END { print r, n }')"

say "peer=device resumed=0 self=0;peer=device resumed=1 self=1;" "our own client" \
	"$("$peer" get "$dir" "$port" localhost client 2>>"$dir/err" | lines)"
say 1 "our own client, another name" "$("$peer" get "$dir" "$port" other.example client >/dev/null 2>&1; echo $?)"
say 1 "our own client, a stranger" "$("$peer" get "$dir" "$port" localhost stranger >/dev/null 2>&1; echo $?)"

for version in -tls1_2 -tls1_3; do
	[ "${CRYPTO:-mbedtls}$version" = mbedtls-tls1_3 ] && continue
	openssl s_server -accept 127.0.0.1:0 -cert "$dir/server.pem" -key "$dir/server.key" -www $version -Verify 1 \
		-CAfile "$dir/ca.pem" >"$dir/www$version" 2>>"$dir/err" &
	pids="$pids $!"
	free=
	for _ in $(seq 1200); do
		free=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$dir/www$version")
		[ -n "$free" ] && break
		sleep 0.05
	done
	got=$("$peer" get "$dir" "$free" localhost client 2>>"$dir/err")
	say 2 "our own client against openssl s_server $version" "$(echo "$got" | grep -c '^<HTML>')"
done

if [ -x "$OTHER" ]; then
	say "peer=device resumed=0 self=0;peer=device resumed=1 self=1;" "the other back end's client" \
		"$("$OTHER" get "$dir" "$port" 127.0.0.1 client 2>>"$dir/err" | lines)"
	start "$OTHER" serve "$dir"
	echo "server: $(cat "$out")"
	say "peer=device resumed=0 self=0;peer=device resumed=1 self=1;" "the other back end's server" \
		"$("$peer" get "$dir" "$port" localhost client 2>>"$dir/err" | lines)"
	say 1 "the other back end's server and a stranger" \
		"$("$peer" get "$dir" "$port" localhost stranger >/dev/null 2>&1; echo $?)"
else
	echo "skipped: no build of the other back end at $OTHER"
fi
[ $failed -eq 0 ] || cat "$dir/err"
exit $failed
