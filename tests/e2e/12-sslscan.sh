#!/bin/sh
# stages: gcc openssl address
# What sslscan and `openssl s_client` find of the coordinator's TLS: exactly the versions, ciphers and groups that are meant, no
# renegotiation, no compression, a strong key; key updates do not go on for ever.
#   BUILD=build/mbedtls tests/e2e/12-sslscan.sh
set -u
FLEET_NAME=12-sslscan
. tests/e2e/common.sh
for tool in sslscan openssl; do
	command -v $tool >/dev/null || skip "needs $tool"
done
failed=0

say() { # say WHAT WANT GOT
	[ "$2" = "$3" ] && { echo "ok: $1"; return; }
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}

fleet_start ""
fleet_join dev ""
# Hundreds of handshakes that are meant to fail.
timeout $((60 * TEST_PATIENCE)) sslscan --show-certificate --xml="$FLEET/scan.xml" "127.0.0.1:$PORT" >"$FLEET/scan.log" 2>&1 ||
	fleet_fail "sslscan: $(tail -n 3 "$FLEET/scan.log")"

found() { # found EXPRESSION: Python's, on the element t of the scan
	python3 -S -E -c 'import sys, xml.etree.ElementTree as e
t = e.parse(sys.argv[1]).getroot().find("ssltest")
print(eval(sys.argv[2]))' "$FLEET/scan.xml" "$1"
}
versions=$(found '" ".join(p.get("type") + p.get("version") for p in t.findall("protocol") if p.get("enabled") == "1")')
ciphers=$(found '" ".join(sorted(c.get("sslversion") + ":" + c.get("cipher") for c in t.findall("cipher")))')
groups=$(found '" ".join(sorted({g.get("name").split()[0] for g in t.findall("group")} | {"x" + c.get("curve", "?") for c in t.findall("cipher")}))')
old="TLSv1.2:ECDHE-ECDSA-AES128-GCM-SHA256 TLSv1.2:ECDHE-ECDSA-CHACHA20-POLY1305"
case $(ldd "$RIVULETD") in
*libssl*)
	say "versions" "tls1.2 tls1.3" "$versions"
	say "ciphers" "$old TLSv1.3:TLS_AES_128_GCM_SHA256 TLSv1.3:TLS_CHACHA20_POLY1305_SHA256" "$ciphers"
	;;
*)
	say "versions" "tls1.2" "$versions"
	say "ciphers" "$old" "$ciphers"
	;;
esac
say "groups" "secp256r1 x25519" "$groups"
say "weak ciphers" "" "$(found '" ".join(c.get("cipher") for c in t.findall("cipher") if c.get("strength") not in ("strong", "acceptable"))')"
say "renegotiation" "0 0" "$(found 't.find("renegotiation").get("supported") + " " + t.find("renegotiation").get("secure")')"
say "heartbleed" "" "$(found '" ".join(h.get("sslversion") for h in t.findall("heartbleed") if h.get("vulnerable") != "0")')"
say "compression" "" "$(found '" ".join("yes" for c in t.findall("compression") if c.get("supported") != "0")')"
cert='t.find("certificates/certificate[@type=\"short\"]")'
say "signature" "ecdsa-with-SHA256" "$(found "$cert.find('signature-algorithm').text")"
say "key" "EC prime256v1" "$(found "' '.join($cert.find('pk').get(k) for k in ('type', 'curve_name'))")"
say "expired, self-signed" "false false" "$(found "$cert.find('expired').text + ' ' + $cert.find('self-signed').text")"

# --- by hand: what sslscan does not ask
s_client() { # s_client OPTION...: commands on standard input
	timeout $((30 * TEST_PATIENCE)) openssl s_client -connect "127.0.0.1:$PORT" -CAfile "$FLEET/dev/ca.pem" "$@" 2>&1
}
hands() { # hands OPTION...: how many handshakes of one come to an end
	s_client "$@" </dev/null | grep -cE '^(Server|Peer) Temp Key: '
}
say "a handshake as it should be" 1 "$(hands -tls1_2)"
say "one with a group that is not offered" 0 "$(hands -groups P-384)"
for digest in SHA1 SHA224 SHA512; do
	say "one signed with $digest" 0 "$(hands -tls1_2 -cipher DEFAULT@SECLEVEL=0 -sigalgs ECDSA+$digest)"
done
commands() { # commands LETTER COUNT: s_client takes one per read
	sleep 1
	i=0
	while [ $i -lt "$2" ]; do
		echo "$1" && i=$((i + 1)) && sleep 0.02 || return
	done
	within 10 grep -qi "$3" "$FLEET/heard"
}
: >"$FLEET/heard"
commands R 1 'no renegotiation' | s_client -tls1_2 >"$FLEET/heard"
say "renegotiation asked for" "1" "$(grep -ci 'no renegotiation' "$FLEET/heard")"
case $(ldd "$RIVULETD") in
*libssl*)
	# s_client tells that the coordinator closed by ending; otherwise it would go on until the last of 600.
	start=$(date +%s%N)
	commands K 600 closed | s_client -tls1_3 >"$FLEET/heard"
	sent=$(grep -c KEYUPDATE "$FLEET/heard")
	[ "$sent" -ge 10 ] && [ "$sent" -lt 300 ] && ended=yes || ended="no, after $sent in $((($(date +%s%N) - start) / 1000000)) ms"
	say "key updates are cut off" yes "$ended"
	;;
esac
say "still well" "ok" "$(curl -sS --cacert "$FLEET/dev/ca.pem" "$URL/healthz" | tr -d '\n' | grep -c . | sed 's/1/ok/')"
exit $failed
