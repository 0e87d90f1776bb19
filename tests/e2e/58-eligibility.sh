#!/bin/sh
# stages: gcc address
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
# device NAME STEPS RULES: one whose trainer takes half a second for each of so many steps, ends when it is told to, and moves nothing
device() {
	machine "$1"
	fleet_join "$1" "
[eligibility]
$3
[data $1]
format = external
path = /dev/null
examples = 100
[trainer slow]
exec = /bin/sh $FLEET/slow $2
grace_s = 2"
	RIVULET_SENSORS_ROOT=$FLEET/$1.machine
	export RIVULET_SENSORS_ROOT
	fleet_run "$1"
	unset RIVULET_SENSORS_ROOT
}
# job NAME STEPS [ROUNDS]
job() {
	cat >"$FLEET/$1.json" <<-END
		{"name": "$1", "trainer": "slow",
		 "model": {"layers": [{"type": "linear", "name": "fc1", "out": 2}], "loss": "cross_entropy"},
		 "data": {"name": "$1", "shape": [3], "classes": 2},
		 "local": {"steps": $2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
		 "round": {"goal": 1, "deadline_s": 3600},
		 "stop": {"rounds": ${3:-1}}}
	END
	job_submit "$FLEET/$1.json"
}
logged() { # logged NAME PATTERN
	grep -qE -- "$2" "$FLEET/$1.log"
}
listed() { # listed REASON NAME
	fleet_admin device list --reason "$1" | grep -q " $2 "
}
since() { # since SECOND LIMIT WHAT
	CHECKS=$((CHECKS + 1))
	[ $(($(date +%s) - $1)) -le $(($2 * TEST_SLOW)) ] || fleet_fail "$3: after $(($(date +%s) - $1)) s"
}
steps() { # steps JOB: of the one delta of its round, and whether that is partial work
	curl_admin "/v1/jobs/$1/rounds/1" | pick "'%d %s' % (d['devices'][0]['steps'], d['devices'][0]['partial'])"
}

fleet_start "
[limits]
retry_after = 1"
cat >"$FLEET/slow" <<-'END'
	cd "$2" || exit 1
	steps=0 stop=
	trap 'stop=1' TERM
	until [ "$stop" ] || [ $steps -ge $1 ]; do
		sleep 0.5
		steps=$((steps + 1))
	done
	cat base.safetensors >after.safetensors
	echo "{\"examples\": 10, \"steps\": $steps, \"loss\": 1}" >report.json
END
job laptop 100
laptop=$JOB
job away 1000
away=$JOB
job modem 4
modem=$JOB
job capped 1 10
capped=$JOB
device laptop 100 "power = mains"
device away 1000 "power = mains"
device modem 4 "metered = pause"
device capped 1 "download_per_day = 1K"
capped_pid=$AGENT_PID
printf 'echo lab-in-use\nexit 1\n' >"$FLEET/check"
device lab 1 "check = /bin/sh $FLEET/check"
for name in laptop away modem; do
	within 20 logged $name task.received || fleet_fail "$name does not work"
done
route modem wwan0

# A delta that may not go is none that is lost.
within 10 logged modem "delta.waits .*reason=metered" || fleet_fail "the delta went over a modem"
within 5 listed metered modem || fleet_fail "nobody is told of the modem"
[ -n "$(ls "$FLEET/modem/outbox")" ] || fleet_fail "the delta that waits is not there"
job_state=$(curl_admin "/v1/jobs/$modem" | pick 'd["state"]')
[ "$job_state" = running ] || fleet_fail "the modem's job is $job_state"
route modem eth0

# Four models are more than a day has bytes for, and a new start of the agent makes no new day; midnight does.
within 20 listed data-cap capped || fleet_fail "a day has no end of bytes"
used=$(cat "$FLEET/capped/transferred")
rounds=$(curl_admin "/v1/jobs/$capped" | pick 'd["round"]')
fleet_kill TERM $capped_pid
RIVULET_SENSORS_ROOT=$FLEET/capped.machine fleet_run capped
within 10 log_lines 2 "$FLEET/capped.log" "unready reason=data-cap" >/dev/null || fleet_fail "a new start makes a new day"
[ "$(cat "$FLEET/capped/transferred")" = "$used" ] || fleet_fail "the day's bytes: $used, then $(cat "$FLEET/capped/transferred")"
fleet_kill TERM $AGENT_PID
sed -i 's/^[0-9]*/20200101/' "$FLEET/capped/transferred"
RIVULET_SENSORS_ROOT=$FLEET/capped.machine fleet_run capped
went_on() { [ "$(curl_admin "/v1/jobs/$capped" | pick 'd["round"]')" -gt "$rounds" ]; }
within 10 went_on || fleet_fail "the next day is like the last: $used"

# What the owner's program says, in its own word; job show knows it as what it is.
within 10 listed lab-in-use lab || fleet_fail "nobody is told what the owner's program says"
run 0 fleet_admin job show away
says "devices .*check 1"

# Half a second for a step: in six seconds there is a tenth of 100, not of 1000.
until [ "$(($(date +%s) - $(stat -c %Y "$FLEET/slow")))" -ge 7 ]; do sleep 0.5; done
plug laptop 0
plug away 0
unplugged=$(date +%s)
for name in laptop away; do
	within 15 logged $name "training.stopped reason=on-battery" || fleet_fail "$name trains on battery"
	since $unplugged 15 "training was not ended in time"
	within 5 listed on-battery $name || fleet_fail "nobody is told that $name is on battery"
	since $unplugged 20 "the reason was not to be seen in time"
done
JOB=$laptop
job_done 10
done_steps=$(steps "$laptop")
case $done_steps in
[1-9][0-9]" True") ;;
*) fleet_fail "partial work: $done_steps" ;;
esac
logged away "task.aborted .*reason=on-battery" || fleet_fail "too little work was not given back"
run 0 fleet_admin job show away
says "on-battery"
run 0 fleet_admin device list --reason hours
says "no devices"
run 0 "$RIVULET" device list --help
says "reason WORD"

doctor() { # doctor NAME: what the sensors say, beside the agent
	SAID=$(RIVULET_SENSORS_ROOT=$FLEET/$1.machine "$RIVULET" doctor --offline --home "$FLEET/$1")
}
doctor away
says "^ok *power *battery \(BAT0\), charge 80 %" "^note *eligibility *the device rests now: on-battery: BAT0 discharges"
doctor modem
says "^ok *link *eth0: not metered, by its kind" "^ok *eligibility *by its owner's rules the device may work now"

# Plugged in again it goes on, and what waited has gone.
plug away 1
within 15 logged away "ready after=on-battery" || fleet_fail "it does not come back"
within 15 log_lines 2 "$FLEET/away.log" task.received >/dev/null || fleet_fail "it gets no task again"
JOB=$modem
job_done 15
[ "$(steps "$modem")" = "4 False" ] || fleet_fail "the delta that waited: $(steps "$modem")"
fleet_end
echo "ok: $CHECKS checks; on battery after $done_steps"
