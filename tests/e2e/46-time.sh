#!/bin/sh
# stages: gcc
# Time and devices: certificates that run out during a job or ran out long ago, clocks that are wrong by hours and by years,
# devices that sleep for several rounds. Nobody is restarted, nothing is lost, and the models are those of a quiet run.
#   LONG=1   also connections that die without a word, which takes three minutes more (a part of it: root and network namespaces)
set -u
FLEET_NAME=46-time
. tests/e2e/common.sh
tools=$BUILD/tests/tools
devices="device1 device2 device3"
rounds=30
done_= began=$(date +%s)

fake= # a process under the thread or address sanitizer does not bear another library before it
[ -z "${SAN:-}" ] && command -v faketime >/dev/null && fake=$(faketime -f +0s sh -c 'echo $LD_PRELOAD')

run_at() { # run_at FILE NAME: an agent whose clock is that of now plus what FILE says ("-5h", "+900d"), also later
	LD_PRELOAD=$fake FAKETIME_TIMESTAMP_FILE=$1 FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
		"$RIVULET" run --home "$FLEET/$2" 2>>"$FLEET/$2.log" &
	AGENT_PID=$!
	FLEET_PIDS="$FLEET_PIDS $AGENT_PID"
}
submit() { # submit NAME GOAL ROUNDS [PAUSE]: with so many seconds between the rounds
	glyph_job "$FLEET/job.json" "$1" "$2" "$3"
	[ -z "${4:-}" ] || sed -i "s/\"goal\"/\"pick\": \"sample\", \"sample_s\": $4, &/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
said() { grep -qE "$2" "$FLEET/$1.log"; }
count() { grep -cE "$2" "$FLEET/$1.log"; }
committed() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" -ge "$1" ]; }
validity() { # from the daemon's next start
	sed -i "s/^device_validity = .*/device_validity = $1/" "$FLEET/rivuletd.conf"
}
same() { # same WHAT: this run's history is the first one's
	history >"$FLEET/history"
	if [ -f "$FLEET/history1" ]; then
		cmp -s "$FLEET/history1" "$FLEET/history" || fleet_fail "$1: differs: $(diff "$FLEET/history1" "$FLEET/history")"
	else
		cp "$FLEET/history" "$FLEET/history1"
	fi
	echo "ok: $1, after $(($(date +%s) - began)) s"
	done_="$done_, $1"
}

fleet_start "
[limits]
retry_after = 1
[identity]
device_validity = 365d"
for i in 1 2 3; do
	glyph_device "device$i" "$i" $((i * i * 300))
done
# shellcheck disable=SC2086 # a list
fleet_keep $devices
again() {
	# shellcheck disable=SC2086
	fleet_again $devices
}

again
submit time 3 $rounds 0.4
for name in $devices; do
	fleet_run "$name"
done
job_done 60
same "quiet"

# --- certificates for 9 seconds: the agents renew them during the job, the coordinator's process stays
validity 9s
again
daemon=$DAEMON_PID
enrol() { "$RIVULET" join "$URL" --token-file "$FLEET/token" --name "$1" --home "$FLEET/$1" >>"$FLEET/join.log" 2>&1 || fleet_fail "join"; }
enrol short
for name in $devices; do
	# What they hold is good for a year: they get one of now.
	rm "$FLEET/$name/cert.pem" "$FLEET/$name/device.json"
	enrol "$name"
	fleet_run "$name"
done
submit time 3 $rounds 0.4
job_done 60
same "renewed in a job"
for name in $devices; do
	renewed() { said "$name" 'certificate.renewed cause=due'; }
	within 20 renewed || fleet_fail "$name: not renewed: $(grep certificate "$FLEET/$name.log")"
	said "$name" 'certificate.renew-failed' && fleet_fail "$name: $(grep certificate "$FLEET/$name.log")"
done
kill -0 "$daemon" || fleet_fail "the coordinator was restarted"
[ "$(count device1 ' started ')" -eq 1 ] || fleet_fail "an agent was restarted"

# --- "short" has slept through the life of its certificate
ended() { ! openssl x509 -in "$FLEET/short/cert.pem" -noout -checkend 0 >/dev/null; }
within 20 ended || fleet_fail "the certificate is still good"
cp "$FLEET/device1/rivulet.conf" "$FLEET/short/rivulet.conf"
fleet_run short
submit late 4 1
job_done 60
said short 'certificate.renewed' || fleet_fail "not renewed: $(cat "$FLEET/short.log")"
done_="$done_, expired before the start"
validity 365d

# --- asleep for several rounds: waiting for work, and with a task in hand
again
glyph_job "$FLEET/job.json" sleep 2 100000
sed -i 's/"goal": 2/&, "over_select": 1.5/; s/"epochs": 1/"epochs": 4/' "$FLEET/job.json"
job_submit "$FLEET/job.json"
for name in $devices; do
	fleet_run "$name"
	eval "pid_$name=\$AGENT_PID"
done
within 30 committed 1 || fleet_fail "no round was committed"
reports_of() { grep -c 'delta.accepted' "$FLEET/$1.log"; }
# Stopped at a random moment of its rounds, which may be any state; twice.
for turn in 1 2; do
	kill -STOP "$pid_device1"
	slept=$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')
	within 60 committed $((slept + 5)) || fleet_fail "the others do not go on without device1"
	before=$(reports_of device1)
	[ $turn -eq 1 ] || fleet_kill KILL "$DAEMON_PID"
	[ $turn -eq 1 ] || fleet_restart
	kill -CONT "$pid_device1"
	more() { [ "$(reports_of device1)" -gt "$before" ]; }
	within 60 more || fleet_fail "device1 does not go on after its sleep: $(tail "$FLEET/device1.log")"
done
[ "$(count device1 ' started ')" -eq 1 ] || fleet_fail "device1 was restarted"
done_="$done_, asleep for 5 rounds"
echo "ok: asleep, after $(($(date +%s) - began)) s"

# --- and when its connection died on both sides meanwhile, without a word
if [ -n "${LONG:-}" ]; then
	again
	"$tools/relay" -c "$FLEET/relay.control" "127.0.0.1:$PORT" end=freeze >"$FLEET/relay.out" 2>"$FLEET/relay.log" &
	relay=$!
	FLEET_PIDS="$FLEET_PIDS $relay"
	listens() { [ -s "$FLEET/relay.out" ]; }
	within 10 listens || fleet_fail "no relay"
	printf '[coordinator]\nurl = https://localhost:%s\n' "$(cat "$FLEET/relay.out")" >>"$FLEET/device3/rivulet.conf"
	fleet_run device3
	sleep 2
	kill -STOP "$AGENT_PID"
	echo "all now=1" >"$FLEET/relay.control"
	sleep 1
	kill -CONT "$AGENT_PID"
	submit frozen 1 1
	start=$(date +%s)
	job_done 120
	done_="$done_, a dead connection ($(($(date +%s) - start)) s)"
fi

# --- a cable that is pulled: nobody acknowledges anything
net=rivulet$$
if [ -n "${LONG:-}" ] && ip netns add $net 2>/dev/null; then
	trap 'fleet_ended=$?; ip netns del $net 2>/dev/null; (exit $fleet_ended); fleet_cleanup' EXIT
	inside="ip netns exec $net"
	ip link add "a$$" type veth peer name "b$$" netns $net && ip addr add 198.18.77.1/24 dev "a$$" && ip link set "a$$" up &&
		$inside ip addr add 198.18.77.2/24 dev "b$$" && $inside ip link set "b$$" up || fleet_fail "no network namespace"
	fleet_end
	sed -i "s/^listen = .*/listen = 0.0.0.0:$PORT/" "$FLEET/rivuletd.conf"
	"$RIVULETD" --config "$FLEET/rivuletd.conf" init --name localhost --name 198.18.77.1 2>>"$FLEET/init.log" || fleet_fail "init"
	fleet_daemon
	printf '[coordinator]\nurl = https://198.18.77.1:%s\n' "$PORT" >>"$FLEET/device2/rivulet.conf"
	$inside "$RIVULET" run --home "$FLEET/device2" 2>>"$FLEET/device2.log" &
	FLEET_PIDS="$FLEET_PIDS $!"
	held() { ss -tn state established | grep -q "198.18.77.1:$PORT "; }
	within 20 held || fleet_fail "device2 did not connect"
	sleep 1
	# What both sides send goes to nobody.
	$inside ip neigh replace 198.18.77.1 lladdr 02:00:00:00:00:01 dev "b$$" nud permanent
	ip neigh replace 198.18.77.2 lladdr 02:00:00:00:00:02 dev "a$$" nud permanent
	start=$(date +%s)
	noticed() { said device2 'unreachable.*timed out'; }
	within 70 noticed || fleet_fail "the dead line was not noticed: $(tail "$FLEET/device2.log")"
	took=$(($(date +%s) - start))
	$inside ip neigh del 198.18.77.1 dev "b$$"
	ip neigh del 198.18.77.2 dev "a$$"
	submit pulled 1 1
	job_done 60
	fleet_end
	ip netns del $net
	done_="$done_, a pulled cable (noticed after $took s)"
fi

# --- clocks wrong by hours: the same models, and it is told; by years: a sentence, and all is well once the clock is
if [ -n "$fake" ]; then
	again
	echo -5h >"$FLEET/slow"
	echo +9h >"$FLEET/fast"
	echo -40h >"$FLEET/slower"
	run_at "$FLEET/slow" device1
	run_at "$FLEET/fast" device2
	run_at "$FLEET/slower" device3
	submit time 3 $rounds 0.4
	job_done 60
	same "wrong by hours"
	said device1 'clock.wrong this_device=slow seconds=(18000|1799.|1800.)' || fleet_fail "device1: $(cat "$FLEET/device1.log")"
	said device2 'clock.wrong this_device=fast seconds=3(2400|239.|240.)' || fleet_fail "device2: $(cat "$FLEET/device2.log")"
	wrong='certificate .*(valid|expired)'
	for offset in -30d +900d; do
		again
		echo "$offset" >"$FLEET/clock"
		run_at "$FLEET/clock" device1
		submit "years${offset#+}" 1 1
		refused() { said device1 "$wrong"; }
		within 20 refused || fleet_fail "$offset: $(cat "$FLEET/device1.log")"
		said device1 "by this device's clock it is 20" || fleet_fail "$offset: nobody speaks of the clock: $(cat "$FLEET/device1.log")"
		said device1 'task.received' && fleet_fail "$offset: a task came"
		echo +0s >"$FLEET/clock"
		job_done 60
	done
	# The whole world 400 days later: certificates of the devices ended 35 days ago.
	fleet_end
	echo +400d >"$FLEET/clock"
	rm -rf "$FLEET/state" && cp -a "$FLEET/kept/state" "$FLEET/state" && rm -rf "$FLEET/device1" && cp -a "$FLEET/kept/device1" "$FLEET/device1"
	: >"$FLEET/device1.log"
	real=$RIVULETD
	cat >"$FLEET/rivuletd.sh" <<-END
		#!/bin/sh
		export LD_PRELOAD='$fake' FAKETIME_TIMESTAMP_FILE=$FLEET/clock FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1
		exec $real "\$@"
	END
	chmod +x "$FLEET/rivuletd.sh"
	RIVULETD=$FLEET/rivuletd.sh
	fleet_restart
	run_at "$FLEET/clock" device1
	submit ancient 1 1
	job_done 60
	said device1 'certificate.renewed cause=expired' || fleet_fail "not renewed: $(cat "$FLEET/device1.log")"
	done_="$done_, by years, expired for 35 days"
else
	done_="$done_ (clocks: skipped without faketime)"
fi
fleet_end
echo "${done_#, }"
