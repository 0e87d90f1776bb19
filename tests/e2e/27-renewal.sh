#!/bin/sh
# stages: gcc openssl
# Certificates and keys change under devices that work: renewal over several rounds and in a sleep longer than the certificate's life
# in the middle of a training, answers that are spoilt or lost, processes that are killed, deltas signed by the key before, leaving.
#   BUILD=build/mbedtls tests/e2e/27-renewal.sh      FAULTY=PROGRAM  a `rivulet` built with FAULTS=1, killed at its named places
set -u
FLEET_NAME=27-renewal
. tests/e2e/common.sh
# Twice as long as an idle machine needs, for a busy one may keep an agent waiting when it is time to renew; and longer, where each core has
# several processes waiting.
long=$(awk -v cores="$(nproc)" -v slow="$TEST_SLOW" '{ waiting = int($1 / cores) - 1; print slow * (2 + (waiting > 4 ? 4 : waiting > 0 ? waiting : 0)) }' /proc/loadavg)
validity=$((6 * long))
FAULTY=${FAULTY:-build/faults/rivulet}

said() { grep -qE "$2" "$FLEET/$1.log"; }
count() { grep -cE "$2" "$FLEET/$1.log"; }
id_of() { pick 'd["device"]' <"$FLEET/$1/device.json"; }
key_of() { openssl pkey -in "$FLEET/$1/key.pem" -pubout | sha256sum; }
cert_key() { openssl x509 -in "$FLEET/$1/cert.pem" -noout -pubkey | sha256sum; }
whole() { # whole NAME: key and certificate fit, and the coordinator takes them
	[ "$(key_of "$1")" = "$(cert_key "$1")" ] || fleet_fail "$1: key and certificate do not fit"
	"$RIVULET" doctor --home "$FLEET/$1" >"$FLEET/doctor" || fleet_fail "$1: $(cat "$FLEET/doctor")"
	[ ! -e "$FLEET/$1/key.new.pem" ] && [ ! -e "$FLEET/$1/identity.next" ] || fleet_fail "$1: $(ls "$FLEET/$1")"
}
faults() {
	printf '%s\n' "$@" | sed '/^$/d' >"$rules.new"
	mv "$rules.new" "$rules"
	: >"$log"
}
logged() { grep -q "$1" "$log"; }
settings() { sed -i "s/^device_validity = .*/device_validity = $1/" "$FLEET/rivuletd.conf"; }

fleet_start "
[identity]
device_validity = ${validity}s
rotate_every = 0"
glyph_device one 1 60
glyph_device two 2 60
glyph_device loop 3 60

# --- ten rounds of two seconds (or more) each, most of which nobody trains, with certificates that live for six times as long, in the agent and in a program of one's own
cat >"$FLEET/job.json" <<END
{"name": "rounds", "seed": 7,
 "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
 "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
 "local": {"seconds": $((5 * long))e-2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
 "round": {"goal": 2, "deadline_s": 3600, "pick": "sample", "sample_s": $((95 * long))e-2}, "stop": {"rounds": 10}}
END
for name in two one; do
	cp "$FLEET/$name/cert.pem" "$FLEET/$name.first"
	fleet_run $name
done
one=$AGENT_PID
job_submit "$FLEET/job.json"
job_done 90
[ "$(curl_admin "/v1/jobs/$JOB/rounds" | pick 'sum(r["state"] == "committed" and r["reports"] == 2 for r in d["rounds"])')" -eq 10 ] ||
	fleet_fail "not all rounds have both reports"
for name in one two; do
	[ "$(count $name 'certificate.renewed cause=due')" -ge 2 ] || fleet_fail "$name: $(grep certificate "$FLEET/$name.log")"
	[ "$(count $name ' started ')" -eq 1 ] || fleet_fail "$name was restarted"
	cmp -s "$FLEET/$name/cert.pem" "$FLEET/$name.first" && fleet_fail "$name: cert.pem is the first one"
done
renewals=$(($(count one 'certificate.renewed') + $(count two 'certificate.renewed')))
[ "$renewals" -lt 60 ] || fleet_fail "$renewals renewals: they come too often"
grep -q 'expired-certificate' "$FLEET/rivuletd.log" && fleet_fail "a certificate was used after its time"

# --- a training in which the device sleeps for longer than its certificate lives: renewed before the delta is sent
sed -i "s/\"name\": \"rounds\"/\"name\": \"long\"/; s/\"seconds\": [^,]*/\"seconds\": $((3 * long))/; s/\"goal\": 2/\"goal\": 1/
	s/\"stop\": {\"rounds\": 10}/\"select\": {\"devices\": [\"one\"]}, \"stop\": {\"rounds\": 1}/" "$FLEET/job.json"
job_submit "$FLEET/job.json"
training() { said one "task.received job=$JOB"; }
within 30 training || fleet_fail "no task: $(tail -n 3 "$FLEET/one.log")"
kill -STOP "$one"
before=$(count one 'certificate.renewed')
job_is_done && fleet_fail "the training was over before the device slept"
sleep $((validity + 1))
kill -CONT "$one"
job_done 60
[ "$(count one 'certificate.renewed')" -gt "$before" ] || fleet_fail "not renewed after a long training"
grep -q 'expired-certificate' "$FLEET/rivuletd.log" && fleet_fail "a delta was sent with an expired certificate"
for name in one two; do said $name 'delta.(refused|dropped)' && fleet_fail "$name lost a delta"; done
for pid in $FLEET_PIDS; do fleet_kill TERM "$pid"; done

# --- librivulet: a loop of one's own renews too, while its request for work is held, and while it was told to wait
loop_renews() { # loop_renews WHEN
	before=$(renewals_of_loop)
	"$BUILD/examples/own_loop" "$FLEET/loop" >"$FLEET/loop.log" 2>&1 &
	loop=$!
	FLEET_PIDS=$loop
	within 30 renewed_twice || fleet_fail "the loop's certificate was not renewed $1: $(cat "$FLEET/loop.log")"
	fleet_kill KILL $loop
}
renewals_of_loop() { grep -c "device.renewed device=$(id_of loop)" "$FLEET/rivuletd.log"; }
renewed_twice() { [ "$(renewals_of_loop)" -ge $((before + 2)) ]; }
# It ends by itself when there was no work for thirty seconds: however slow the machine, it must renew within them.
settings 10s
kill -HUP "$DAEMON_PID"
within 10 grep -q 'reload.done' "$FLEET/rivuletd.log" || fleet_fail "no reload"
loop_renews "while its request was held"
fleet_kill TERM "$DAEMON_PID"
printf '[limits]\nlong_poll = 1\nretry_after = 60\n' >>"$FLEET/rivuletd.conf"
fleet_restart
loop_renews "while it was told to wait"

# --- from here on through a proxy that spoils and loses answers, and with certificates of a year
fleet_kill TERM "$DAEMON_PID"
settings 365d
sed -i '/^\[limits\]/,$d' "$FLEET/rivuletd.conf"
fleet_restart
rules=$FLEET/rules log=$FLEET/requests
faults ""
python3 -S -E tests/tools/faulty_coordinator.py "$FLEET/state" "$FLEET/dev" "$PORT" "$rules" "$log" >"$FLEET/proxy-port" 2>"$FLEET/proxy.log" &
proxy=$!
FLEET_PIDS=$proxy
within 20 test -s "$FLEET/proxy-port" || fleet_fail "the proxy did not start"
URL=https://localhost:$(cat "$FLEET/proxy-port")
glyph_device dev 4 60
dev=$(id_of dev)

# --- a spoilt answer to a renewal changes nothing, and the next one is taken
rm "$FLEET/dev/signer.pem"
cp "$FLEET/dev/cert.pem" "$FLEET/dev.first"
faults "POST /v1/renew spoil 500"
glyph_job "$FLEET/job.json" spoilt 1 1
job_submit "$FLEET/job.json"
fleet_run dev
job_done 60
said dev 'certificate.renew-failed cause=signer' || fleet_fail "nobody is told of a spoilt certificate"
cmp -s "$FLEET/dev/cert.pem" "$FLEET/dev.first" || fleet_fail "a spoilt certificate was taken"
faults ""
mended() { said dev 'certificate.renewed cause=signer'; }
within 60 mended || fleet_fail "the renewal was not tried again"
[ -s "$FLEET/dev/signer.pem" ] || fleet_fail "no signer.pem"

# --- a certificate of another CA, in order by itself: it would lock the device out, so it does not get into the home
mkdir "$FLEET/foreign"
sed "s,$FLEET/,$FLEET/foreign/,; s/^listen = .*/listen = 127.0.0.1:0/" "$FLEET/rivuletd.conf" >"$FLEET/foreign/rivuletd.conf"
"$RIVULETD" --config "$FLEET/foreign/rivuletd.conf" init >"$FLEET/foreign/token" 2>/dev/null || fleet_fail "a second coordinator"
"$RIVULETD" --config "$FLEET/foreign/rivuletd.conf" 2>"$FLEET/foreign/log" &
foreign=$!
FLEET_PIDS="$FLEET_PIDS $foreign"
within 20 test -s "$FLEET/foreign/state/port" || fleet_fail "the second coordinator did not start"
mkdir -m 700 "$FLEET/foreign/dev"
cp -p "$FLEET/dev/key.pem" "$FLEET/foreign/dev/"
"$RIVULET" join "https://localhost:$(cat "$FLEET/foreign/state/port")" --token-file "$FLEET/foreign/token" --home "$FLEET/foreign/dev" \
	>/dev/null || fleet_fail "joining the second coordinator"
fleet_kill TERM $foreign
python3 -S -E -c 'import json, sys
home = sys.argv[1]
doc = json.load(open(home + "/device.json"))
doc.update({name: open(home + "/" + file).read() for name, file in (("certificate", "cert.pem"), ("ca", "ca.pem"), ("signer", "signer.pem"))})
json.dump(doc, sys.stdout)' "$FLEET/foreign/dev" >"$FLEET/foreign.json"
fleet_kill TERM "$AGENT_PID"
rm "$FLEET/dev/signer.pem"
cp "$FLEET/dev/cert.pem" "$FLEET/dev.first"
before=$(count dev 'certificate.renew-failed')
faults "POST /v1/renew 200 file $FLEET/foreign.json"
fleet_run dev
more_failed() { [ "$(count dev 'certificate.renew-failed')" -gt "$before" ]; }
within 30 more_failed || fleet_fail "a strange CA was not noticed"
cmp -s "$FLEET/dev/cert.pem" "$FLEET/dev.first" && [ ! -e "$FLEET/dev/signer.pem" ] || fleet_fail "a strange certificate was taken"
faults ""

# --- a delta waits, signed by a key that is then replaced while the agent runs
faults "PUT /v1/deltas/ 507 no-space"
glyph_job "$FLEET/job.json" waits 1 1
job_submit "$FLEET/job.json"
within 30 logged "PUT /v1/deltas/.* 507" || fleet_fail "no delta was refused"
old=$(key_of dev)
"$RIVULET" rotate --home "$FLEET/dev" >"$FLEET/rotated" || fleet_fail "rotate beside an agent: $(cat "$FLEET/rotated")"
[ "$(key_of dev)" != "$old" ] || fleet_fail "the key is the old one"
fleet_kill TERM "$AGENT_PID"
"$RIVULET" leave --home "$FLEET/dev" 2>"$FLEET/leave"
[ $? -eq 4 ] && grep -q "1 trained deltas wait" "$FLEET/leave" || fleet_fail "leave does not mind the outbox: $(cat "$FLEET/leave")"
# Once more, so that the delta's key is neither the present one nor the one before it; then by an agent started anew.
"$RIVULET" rotate --home "$FLEET/dev" >"$FLEET/rotated" || fleet_fail "rotate: $(cat "$FLEET/rotated")"
faults ""
fleet_run dev
job_done 60
[ "$(log_lines 1 "$FLEET/dev.log" 'delta.accepted.*receipt=verified')" -ge 1 ] || fleet_fail "the delta of an old key was not taken"
said dev 'delta.(dropped|refused)' && fleet_fail "the delta of an old key was lost"
fleet_kill TERM "$AGENT_PID"
whole dev

# --- the answer to a rotation is lost and the command killed: the agent ends it when it is refused, or the command does
sent() { [ -z "$(ls -A "$FLEET/dev/outbox")" ]; }
for who in agent command; do
	faults "POST /v1/rotate lose"
	old=$(key_of dev)
	"$RIVULET" rotate --home "$FLEET/dev" 2>"$FLEET/rotated" &
	pid=$!
	FLEET_PIDS="$FLEET_PIDS $pid"
	within 20 logged "POST /v1/rotate lost" || fleet_fail "no rotation reached the coordinator: $(cat "$FLEET/rotated")"
	fleet_kill KILL $pid
	[ -s "$FLEET/dev/key.new.pem" ] && [ "$(key_of dev)" = "$old" ] || fleet_fail "the new key is lost with the answer"
	faults ""
	if [ $who = agent ]; then
		glyph_job "$FLEET/job.json" after-loss 1 1
		job_submit "$FLEET/job.json"
		fleet_run dev
		job_done 60
		within 20 sent || fleet_fail "left in the outbox: $(ls "$FLEET/dev/outbox")"
		fleet_kill TERM "$AGENT_PID"
		said dev 'key.rotated' || fleet_fail "the agent did not end the rotation"
	else
		"$RIVULET" rotate --home "$FLEET/dev" >"$FLEET/rotated" || fleet_fail "a second rotate: $(cat "$FLEET/rotated")"
	fi
	[ "$(key_of dev)" != "$old" ] || fleet_fail "the key is the old one"
	whole dev
done

# --- killed at each named place of a rotation and of a renewal: it ends at the next try, with one key on both sides
kills=0
if [ -x "$FAULTY" ] && RIVULET_FAULT=rotate.key RIVULET_FAULT_LOG=$FLEET/faults "$FAULTY" --version >/dev/null; then
	for place in rotate.key rotate.ask rotate.answer identity.stage identity.staged identity.json identity.ca identity.signer \
		identity.cert identity.key; do
		old=$(key_of dev)
		RIVULET_FAULT=$place "$FAULTY" rotate --home "$FLEET/dev" >"$FLEET/rotated" 2>&1
		[ $? -eq 137 ] || fleet_fail "$place: not killed there: $(cat "$FLEET/rotated")"
		kills=$((kills + 1))
		"$RIVULET" rotate --home "$FLEET/dev" >"$FLEET/rotated" 2>&1 || fleet_fail "$place: $(cat "$FLEET/rotated")"
		[ "$(key_of dev)" != "$old" ] || fleet_fail "$place: the key is the old one"
		whole dev
		rm "$FLEET/dev/signer.pem"
		case $place in identity.*)
			RIVULET_FAULT=$place timeout $((60 * TEST_PATIENCE)) "$FAULTY" run --home "$FLEET/dev" 2>"$FLEET/killed.log"
			[ $? -eq 137 ] || fleet_fail "renewal, $place: not killed there: $(cat "$FLEET/killed.log")"
			kills=$((kills + 1))
			glyph_job "$FLEET/job.json" "after-$place" 1 1
			job_submit "$FLEET/job.json"
			timeout $((60 * TEST_PATIENCE)) "$RIVULET" run --home "$FLEET/dev" --once 2>"$FLEET/killed.log" ||
				fleet_fail "renewal, $place: $(cat "$FLEET/killed.log")"
			;;
		esac
		[ "$place" = rotate.key ] || [ "$place" = rotate.ask ] || [ "$place" = rotate.answer ] || whole dev
	done
fi
[ "$(id_of dev)" = "$dev" ] || fleet_fail "the device has another id"
[ "$(curl_admin "/v1/devices/$dev" | pick 'd["state"]')" = active ] || fleet_fail "the coordinator lost the device"

# --- leaving: not without an answer, and then for good; afterwards the home joins again
kill -STOP "$proxy"
fleet_kill TERM "$DAEMON_PID"
kill -CONT "$proxy"
"$RIVULET" leave --home "$FLEET/dev" >/dev/null 2>&1 && fleet_fail "left without an answer"
whole_key=$(key_of dev)
fleet_restart
[ "$(key_of dev)" = "$whole_key" ] || fleet_fail "the key is gone without an answer"
# What jobs keep between rounds, and deltas that wait, were made from this device's data; more than are sent in one go.
mkdir -p "$FLEET/dev/residual" "$FLEET/dev/variates" "$FLEET/dev/kept"
for file in residual/a.sum residual/b.change variates/a.own variates/a.next kept/a.state; do echo made >"$FLEET/dev/$file"; done
for i in $(seq 300); do echo made >"$FLEET/dev/outbox/$(printf %032x "$i").delta"; done
# A delta of the jobs above may still wait.
"$RIVULET" leave --home "$FLEET/dev" --yes >"$FLEET/leave" || fleet_fail "leave: $(cat "$FLEET/leave")"
[ ! -e "$FLEET/dev/key.pem" ] && [ ! -e "$FLEET/dev/cert.pem" ] && [ ! -e "$FLEET/dev/device.json" ] || fleet_fail "left behind: $(ls "$FLEET/dev")"
for made in outbox residual variates kept; do
	[ ! -e "$FLEET/dev/$made" ] || fleet_fail "left behind: $(ls "$FLEET/dev" "$FLEET/dev/$made")"
done
[ "$(curl_admin "/v1/devices/$dev" | pick 'd["state"]')" = left ] || fleet_fail "the coordinator was not told"
rm "$FLEET/dev/rivulet.conf"
glyph_device dev 4 60
whole dev
fleet_kill KILL "$proxy"
fleet_end
echo "$renewals renewals in 11 rounds; 2 lost answers, $kills kills by name"
