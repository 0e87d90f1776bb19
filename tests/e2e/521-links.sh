#!/bin/sh
# stages: gcc links
# The clock of rivulet simulate is that of a fleet: devices in network namespaces, each behind a line of a set rate, take as long for
# rounds and buffers, within a tenth, as the simulator says for a table of those rates and for how long training takes.
#   FULL=1 tests/e2e/521-links.sh
set -u
FLEET_NAME=521-links
. tests/e2e/common.sh
[ -n "${FULL:-}" ] || skip "FULL=1 runs it, as .ci/run does: it goes by the clock"
[ "$(id -u)" = 0 ] || skip "needs root for network namespaces"
for tool in ip tc; do
	command -v $tool >/dev/null || skip "needs $tool (iproute2)"
done
here=rvl$$
spaces=$here
scripts=$(mktemp -d)
spaces_down() { # keeps the exit status for fleet_cleanup
	spaces_status=$?
	for space in $spaces; do
		ip netns del "$space" 2>/dev/null
	done
	rm -rf "$scripts"
	return $spaces_status
}
trap spaces_down EXIT

# rate NAMESPACE INTERFACE BYTES: what goes out there has so many bytes a second, each packet's 66 bytes of headers aside
rate() {
	ip netns exec "$1" tc qdisc add dev "$2" root tbf rate $(($3 * 8 * 1514 / 1448))bit burst 16kb latency 200ms 2>/dev/null ||
		skip "no token bucket (tc tbf) in this kernel"
}
# line N UP DOWN: a namespace with a device's line to the coordinator's, 10.78.N.1 there, 10.78.N.2 here
line() {
	ip netns add "$here-$1" 2>/dev/null || skip "network namespaces are not permitted here"
	spaces="$spaces $here-$1"
	ip link add "rv$1" netns "$here" type veth peer name line netns "$here-$1" 2>/dev/null &&
		ip -n "$here" addr add "10.78.$1.1/24" dev "rv$1" && ip -n "$here" link set "rv$1" up &&
		ip -n "$here-$1" addr add "10.78.$1.2/24" dev line && ip -n "$here-$1" link set line up ||
		skip "no wires between network namespaces here"
	rate "$here-$1" line "$2"
	rate "$here" "rv$1" "$3"
}
within_space() { # within_space NAMESPACE PROGRAM: a script that runs PROGRAM there; prints its path
	printf '#!/bin/sh\nexec ip netns exec %s "%s" "$@"\n' "$1" "$(realpath "$2")" >"$scripts/$1-${2##*/}"
	chmod +x "$scripts/$1-${2##*/}"
	echo "$scripts/$1-${2##*/}"
}

# name,samples_per_s,up_bytes_per_s,down_bytes_per_s; a task is 100 examples and 628,000 bytes each way
training_s=1
cat >"$scripts/fleet.csv" <<END
name,samples_per_s,up_bytes_per_s,down_bytes_per_s
slow,100,250000,500000
middle,100,400000,1000000
fast,100,1000000,2000000
END
ip netns add "$here" 2>/dev/null && ip -n "$here" link set lo up || skip "network namespaces are not permitted here"
plain_rivulet=$RIVULET
RIVULETD=$(within_space "$here" "$RIVULETD")
FLEET_LISTEN=0.0.0.0:0
FLEET_NAMES="--name 10.78.1.1 --name 10.78.2.1 --name 10.78.3.1"
fleet_start
trap 'spaces_down; fleet_cleanup' EXIT
cat >"$FLEET/sleeps" <<END
sleep $training_s
cp base.safetensors after.safetensors
echo '{"examples": 100, "steps": 10, "loss": 1}' >report.json
END
number=0
while IFS=, read -r name _ up down; do
	[ "$name" != name ] || continue
	number=$((number + 1))
	line $number "$up" "$down"
	URL=https://10.78.$number.1:$PORT
	RIVULET=$(within_space "$here-$number" "$plain_rivulet")
	fleet_join "$name" "
[data noise]
format = external
path = /dev/null
examples = 100
[trainer sleeps]
exec = /bin/sh $FLEET/sleeps"
	fleet_run "$name"
done <"$scripts/fleet.csv"
RIVULET=$plain_rivulet

# takes NAME ROUNDS ROUND: a job with these members of "round"; its rounds take what they take when simulated
takes() {
	cat >"$FLEET/job.json" <<-END
		{"name": "$1", "trainer": "sleeps",
		 "model": {"layers": [{"type": "linear", "name": "fc1", "out": 200}], "loss": "cross_entropy"},
		 "data": {"name": "noise", "shape": [784], "classes": 200},
		 "local": {"steps": 10, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {$3, "deadline_s": 3600},
		 "stop": {"rounds": $2}}
	END
	job_submit "$FLEET/job.json"
	job_done 120
	real=$(curl_admin "/v1/jobs/$JOB/rounds" | pick "max(r['closed_at'] for r in d['rounds']) - min(r['opened_at'] for r in d['rounds'])")
	"$RIVULET" simulate "$FLEET/job.json" --fleet "$scripts/fleet.csv" --timing-only >"$FLEET/lines" || fleet_fail "$1: simulate: $?"
	simulated=$(tail -n 1 "$FLEET/lines" | pick 'd["summary"]["time"]')
	echo "$1: $(pick "'%.2f s, simulated %.2f s: %+.1f %%' % ($real, $simulated, 100 * ($simulated / $real - 1))" <"$FLEET/submitted")"
	pick "abs($simulated / $real - 1) <= 0.1" <"$FLEET/submitted" | grep -qx True || fleet_fail "$1: more than a tenth between them"
}
takes rounds 3 '"goal": 3'
takes buffers 6 '"mode": "buffered", "goal": 2, "concurrency": 3'
fleet_end
