#!/bin/sh
# stages: gcc openssl address
# A device on a second host, played by two network namespaces: one holds the coordinator, the other a device that reaches
# it by address alone, over the wire between the two.
set -u
FLEET_NAME=41-second-host
. tests/e2e/common.sh
[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
command -v ip >/dev/null || skip "needs ip (iproute2)"
here=rv$$a there=rv$$b
scripts=$(mktemp -d)
ns_down() { # keeps the exit status for fleet_cleanup
	ns_status=$?
	ip netns del $there 2>/dev/null
	ip netns del $here 2>/dev/null
	rm -rf "$scripts"
	return $ns_status
}
trap ns_down EXIT
ip netns add $here 2>/dev/null && ip netns add $there 2>/dev/null &&
	ip link add $here netns $here type veth peer name $there netns $there 2>/dev/null ||
	skip "network namespaces are not permitted here"
for side in "$here 10.77.0.1" "$there 10.77.0.2"; do
	ns=${side% *}
	ip -n "$ns" addr add "${side#* }/24" dev "$ns" && ip -n "$ns" link set "$ns" up && ip -n "$ns" link set lo up ||
		skip "addresses cannot be set in a namespace here"
done
ip -n $here addr add 10.77.0.3/24 dev $here

within_ns() { # within_ns NAMESPACE PROGRAM: a script that runs PROGRAM there; prints its path
	printf '#!/bin/sh\nexec ip netns exec %s "%s" "$@"\n' "$1" "$(realpath "$2")" >"$scripts/$1-${2##*/}"
	chmod +x "$scripts/$1-${2##*/}"
	echo "$scripts/$1-${2##*/}"
}
local_rivulet=$(within_ns $here "$RIVULET")
remote_rivulet=$(within_ns $there "$RIVULET")
RIVULETD=$(within_ns $here "$RIVULETD")
FLEET_LISTEN=10.77.0.1:0
FLEET_NAMES="--name 10.77.0.1"
fleet_start
trap 'ns_down; fleet_cleanup' EXIT
URL=https://10.77.0.1:$PORT

RIVULET=$local_rivulet
glyph_device near 1 200
fleet_run near
RIVULET=$remote_rivulet
glyph_device far 2 300
fleet_run far
glyph_job "$FLEET/job.json" hosts 2 3
job_submit "$FLEET/job.json"
job_done 60
curl_admin "/v1/jobs/$JOB/rounds/3" | pick "sorted((r['name'], r['examples']) for r in d['devices']) == [('far', 300), ('near', 200)]" |
	grep -qx True || fleet_fail "round 3: $(curl_admin "/v1/jobs/$JOB/rounds/3")"
grep -q 'device.joined.*name=far .*peer=10.77.0.2' "$FLEET/rivuletd.log" || fleet_fail "far did not come from its own host"
grep -q 'delta.accepted.* round=3 ' "$FLEET/far.log" || fleet_fail "far did not report to round 3"

# The second host has no other way in, and an address that the certificate does not name is refused.
ip netns exec $there curl -sS --max-time 60 --cacert "$FLEET/far/ca.pem" "https://10.77.0.1:$PORT/healthz" >/dev/null ||
	fleet_fail "curl on the second host"
ip netns exec $there curl -sS --max-time 5 -k "https://localhost:$PORT/healthz" >/dev/null 2>&1 && fleet_fail "the hosts share loopback"
if "$remote_rivulet" join "https://10.77.0.3:$PORT" --token-file "$FLEET/token" --name wrong --home "$FLEET/wrong" >"$FLEET/wrong.log" 2>&1; then
	fleet_fail "joined by an address that is not in the certificate"
fi
fleet_end
echo "a device at 10.77.0.2 took part in 3 rounds at 10.77.0.1"
