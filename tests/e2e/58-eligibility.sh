#!/bin/sh
# The owner's rules: a laptop that is unplugged while it trains hands in what it has, or gives the task back where that is too little,
# and says why; a delta that would go over a modem waits until the link is another one. Sensors are files below $FLEET.
set -u
FLEET_NAME=58-eligibility
. tests/e2e/common.sh

# machine NAME: a laptop on mains, whose link is a cable
machine() {
	root=$FLEET/$1.machine
	mkdir -p "$root/sys/class/power_supply/AC" "$root/sys/class/power_supply/BAT0" "$root/sys/class/net/eth0" "$root/sys/class/net/wwan0" "$root/proc/net"
	echo Mains >"$root/sys/class/power_supply/AC/type"
	echo Battery >"$root/sys/class/power_supply/BAT0/type"
	echo 80 >"$root/sys/class/power_supply/BAT0/capacity"
	echo DEVTYPE=wwan >"$root/sys/class/net/wwan0/uevent"
	: >"$root/sys/class/net/eth0/uevent"
	plug "$1" 1
	route "$1" eth0
}
# plug NAME 0|1
plug() {
	[ "$2" = 1 ] && state=Charging || state=Discharging
	echo "$state" >"$FLEET/$1.machine/sys/class/power_supply/BAT0/status"
	echo "$2" >"$FLEET/$1.machine/sys/class/power_supply/AC/online"
}
# route NAME INTERFACE
route() {
	printf 'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n%s\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\n' "$2" >"$FLEET/$1.machine/proc/net/route"
}
# device NAME RULES: one whose trainer takes a second for each of 100 steps, and ends when it is told to
device() {
	machine "$1"
	fleet_join "$1" "
[eligibility]
$2
[data numbers]
format = external
path = /dev/null
examples = 100
[trainer slow]
exec = /bin/sh $FLEET/slow
grace_s = 2"
	RIVULET_SENSORS_ROOT=$FLEET/$1.machine
	export RIVULET_SENSORS_ROOT
	fleet_run "$1"
	unset RIVULET_SENSORS_ROOT
}
# Steps are half seconds of sleep; the file of weights goes back as it came.
slow() {
	cat >"$FLEET/slow" <<-'END'
		cd "$1" || exit 1
		steps=0 stop=
		trap 'stop=1' TERM
		until [ "$stop" ] || [ $steps -ge PLANNED ]; do
			sleep 0.5
			steps=$((steps + 1))
		done
		cp base.safetensors after.safetensors
		chmod u+w after.safetensors
		echo "{\"examples\": 10, \"steps\": $steps, \"loss\": 1}" >report.json
	END
	sed -i "s/PLANNED/$1/" "$FLEET/slow"
}
# job NAME STEPS
job() {
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "trainer": "slow",
		 "model": {"layers": [{"type": "linear", "name": "fc1", "out": 2}], "loss": "cross_entropy"},
		 "data": {"name": "numbers", "shape": [3], "classes": 2},
		 "local": {"steps": $2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": 1, "deadline_s": 3600},
		 "stop": {"rounds": 1}}
	END
	job_submit "$FLEET/$1.json"
}
logged() { # logged NAME PATTERN
	grep -qE -- "$2" "$FLEET/$1.log"
}
listed() { # listed REASON NAME
	fleet_admin device list --reason "$1" --json | grep -q "\"name\":\"$2\""
}
since() { # since SECOND LIMIT WHAT
	CHECKS=$((CHECKS + 1))
	[ $(($(date +%s) - $1)) -le $(($2 * TEST_SLOW)) ] || fleet_fail "$3: after $(($(date +%s) - $1)) s"
}

fleet_start "
[tasks]
retry_after = 1s"
slow 1000
job long 20
device laptop "power = mains"
within 20 logged laptop task.received || fleet_fail "on mains it does not work"

# Half a second for a step: after five seconds there is a tenth of 20, and more.
sleep 2
plug laptop 0
unplugged=$(date +%s)
within 15 logged laptop "training.stopped reason=on-battery" || fleet_fail "it trains on battery"
since $unplugged 15 "training was not ended in time"
job_done 10
run 0 fleet_admin job show --json long
[ "$(printf '%s' "$SAID" | grep -c '"partial":1')" = 1 ] || curl_admin "/v1/jobs/$JOB/rounds/1" >&2
within 5 listed on-battery laptop || fleet_fail "nobody is told that it is on battery"
since $unplugged 20 "the reason was not to be seen in time"
run 0 fleet_admin device list --reason hours
says "no devices"
fleet_end
echo "ok: $CHECKS checks"
