#!/bin/sh
# record_alerts.sh DIRECTORY [STATE...]: drives a coordinator into the state of each alert of contrib/prometheus/rivulet.rules.yml, with
# devices of its own, and keeps what Prometheus would have scraped there before and in it (tests/tools/alerts.py says how). All of it, and
# the test that is committed (some three minutes; a file system of its own, libfaketime, and `make FAULTS=1 BUILD=build/faults all`):
#
#   BUILD=build/mbedtls tests/tools/record_alerts.sh /tmp/recorded && tests/tools/alerts.py write /tmp/recorded >contrib/prometheus/rules_test.yml
#
# STATE: the functions state_NAME below. Exits 77 where something for a STATE is missing.
set -u
if [ -z "${DISK_MOUNTS:-}" ]; then
	DISK_MOUNTS=no
	unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && DISK_MOUNTS=yes
	export DISK_MOUNTS
	[ $DISK_MOUNTS = no ] || exec unshare -m "$0" "$@"
fi
FLEET_NAME=record-alerts
. tests/e2e/common.sh
[ $# -gt 0 ] || skip "usage: record_alerts.sh DIRECTORY [STATE...]"
RECORDED=$1
shift
mkdir -p "$RECORDED"
: >"$RECORDED/cases"

# --- what is kept

begin() { # begin [EXTRA_CONFIG]: a coordinator, and a token for scrapes
	fleet_start "${1:-}"
	may_scrape
}
may_scrape() {
	curl_admin /v1/tokens -d '{"role": "metrics", "access": true, "expires_s": 31536000}' | pick 'd["token"]' >"$FLEET/metrics.token" || fleet_fail "no token"
}
look() { # look FILE: a scrape over TLS, or an empty file
	curl -sS --fail --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/state/keys/ca.crt" -H "Authorization: Bearer $(cat "$FLEET/metrics.token")" \
		"$URL/metrics" >"$1.new" 2>/dev/null || : >"$1.new"
	mv "$1.new" "$1"
}
keep() { # keep NAME: what is scraped now, as NAME
	date +%s.%N >"$RECORDED/$1.at"
	look "$RECORDED/$1.prom"
}
# keep_when NAME SERIES TEST...: once the value of SERIES is as awk's TEST says of v
keep_when() {
	keep_name=$1 keep_series=$2 keep_test=$3
	within 60 kept || fleet_fail "$keep_name: $keep_series is \"$(value)\", not $keep_test"
}
value() { awk -v s="$keep_series " 'index($0, s) == 1 { print substr($0, length(s) + 1) }' "$RECORDED/$keep_name.prom"; }
kept() {
	keep "$keep_name"
	value | awk "{ v = \$1 + 0; found = \$1 != \"NaN\" && ($keep_test) } END { exit !found }"
}
keep_file() { # keep_file NAME: what node_exporter would find in the device's file
	date +%s.%N >"$RECORDED/$1.at"
	echo gateway-7.example:9100 node >"$RECORDED/$1.who"
	cp "$FLEET/agent.prom" "$RECORDED/$1.prom"
}
alert() { echo "$*" >>"$RECORDED/cases"; }

# --- what is done to it

d() { "$RIVULETD" --config "$FLEET/rivuletd.conf" "$@"; }
stop() { curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null || fleet_fail "cannot stop"; }
submit() { # submit NAME [SED_SCRIPT]: a job for two devices
	glyph_job "$FLEET/job.json" "$1" 2 100000
	sed -i "${2:-}" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
device() { # device NAME: with a trainer that fails and one that sleeps
	glyph_device "$1" 1 40
	cat >>"$FLEET/$1/rivulet.conf" <<-'END'
		[trainer broken]
		exec = sh -c 'exit 3'
		[trainer asleep]
		exec = sh -c 'sleep 600'
	END
}
as_device() { # as_device HOME PATH CURL-OPTION...
	as_home=$1 as_path=$2
	shift 2
	curl -sS --max-time $((20 * TEST_PATIENCE)) -o "$FLEET/answer" --cacert "$FLEET/state/keys/ca.crt" --cert "$as_home/cert.pem" --key "$as_home/key.pem" \
		"$@" "$URL$as_path" 2>/dev/null
}
stuck() { # stuck NAME KIND
	keep_when "$1" "rivulet_jobs_stuck{kind=\"$2\"}" "v > 0"
}
many() { # many N URL: so many requests over one connection or some, with what comes behind
	many_url=$2
	seq "$1" | sed "s,.*,url = \"$many_url\"\noutput = /dev/null," >"$FLEET/many"
	shift 2
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/state/keys/ca.crt" "$@" -K "$FLEET/many" 2>/dev/null
}
# wrapped SHELL_LINE: rivuletd is started behind it from now on
wrapped() {
	wrapped_program=$(realpath "$RIVULETD")
	printf '#!/bin/sh\n%s\nexec %s "$@"\n' "$1" "$wrapped_program" >"$FLEET/rivuletd.sh"
	chmod +x "$FLEET/rivuletd.sh"
	RIVULETD=$FLEET/rivuletd.sh
}
fake_time() { # fake: what to preload; faketime makes a semaphore by its process's number, which one that was killed may have left
	fake=
	for _ in 1 2 3 4 5; do [ -n "$fake" ] || fake=$(faketime -f +0s sh -c 'echo $LD_PRELOAD' 2>/dev/null); done
	[ -n "$fake" ] || skip "needs libfaketime"
}

# --- states

state_down() {
	begin
	keep down.before
	fleet_kill KILL "$DAEMON_PID"
	keep down.gone
	[ ! -s "$RECORDED/down.gone.prom" ] || fleet_fail "it answers"
	alert RivuletDown - down.before -- down.gone
	for n in 1 2 3 4; do
		fleet_restart
		keep down.start$n
		fleet_kill TERM "$DAEMON_PID"
	done
	alert RivuletRestarting - down.before -- down.start1 down.start2 down.start3 down.start4
}

state_devices_missing() {
	begin "[limits]
retry_after = 1"
	glyph_device one 1 40
	keep missing.before
	submit none 's/"stop"/"select": {"labels": {"site": "nowhere"}}, "stop"/'
	stuck missing.none no-devices
	alert RivuletJobNoDevices kind=no-devices missing.before -- missing.none
	stop
	submit rest
	run 0 fleet_admin job pause rest
	stuck missing.paused paused
	for name in JobNoDevices JobHalted JobStuck; do alert Rivulet$name - missing.paused; done
	stop
	submit shut
	fleet_admin device suspend one >/dev/null || fleet_fail "cannot suspend"
	stuck missing.suspended suspended
	alert RivuletJobNoDevices kind=suspended missing.before -- missing.suspended
	stop
	# The model that the next one starts from is away.
	submit lost
	fleet_kill TERM "$DAEMON_PID"
	mkdir "$FLEET/away"
	mv "$FLEET/state/models"/* "$FLEET/away"
	fleet_restart
	keep_when missing.base rivulet_jobs_lacking "v > 0"
	alert RivuletJobBaseMissing kind=set-aside missing.before -- missing.base
	stop
	# And a row: no file is named.
	submit changed
	run 0 fleet_admin job set changed round.deadline_s=7200
	fleet_kill TERM "$DAEMON_PID"
	python3 -S -E -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("UPDATE job_override SET overrides = substr(overrides, 2) WHERE job = ?", (bytes.fromhex(sys.argv[2]),)).rowcount)
db.commit()' "$FLEET/state/rivulet.db" "$JOB" | grep -qx 1 || fleet_fail "no row was damaged"
	fleet_restart
	stuck missing.row set-aside
	grep -q "^rivulet_jobs_lacking 0" "$RECORDED/missing.row.prom" || fleet_fail "a file is named"
	alert RivuletJobBaseMissing kind=set-aside missing.before -- missing.row
	stop
}

state_stuck() {
	begin "[limits]
retry_after = 1
[data test]
format = glyphs
hands = 2
count = 50"
	for name in one two; do
		device $name
		fleet_run $name
	done
	keep stuck.before
	submit nothing 's/"digits"/"cifar"/'
	stuck stuck.data no-data
	alert RivuletJobStuck kind=no-data stuck.before -- stuck.data
	stop
	submit torn 's/"local"/"trainer": "broken", "local"/; s/3600/3/'
	stuck stuck.torn gave-up
	alert RivuletJobGaveUp kind=gave-up stuck.before -- stuck.torn
	keep_when stuck.again "rivulet_job_round_reopened{job_id=\"$JOB\"}" "v >= 3"
	keep_when stuck.again rivulet_rounds_reopened_total "v >= 3"
	alert RivuletRoundOpenedAgain "job_id=$JOB" stuck.before -- stuck.again
	alert RivuletRoundsOpenedAgain - stuck.before -- stuck.again
	alert RivuletTrainerFails reason=trainer-failed stuck.before -- stuck.again
	stop
	submit slow 's/"local"/"trainer": "asleep", "local"/; s/3600/1.5/'
	stuck stuck.slow too-slow
	alert RivuletJobTooSlow kind=too-slow stuck.before -- stuck.slow
	stop
	submit judged 's/"stop"/"evaluate": {"by": "coordinator", "data": "test"}, "stop"/'
	keep_when stuck.judged "rivulet_job_rounds_committed_total{job_id=\"$JOB\"}" "v > 0"
	sed -i '/^\[data test\]/,$d' "$FLEET/rivuletd.conf"
	kill -HUP "$DAEMON_PID"
	stuck stuck.figures no-evaluation
	alert RivuletJobEvaluationMissing kind=no-evaluation stuck.judged -- stuck.figures
	stop
}

state_halted() {
	begin "[data digits]
format = glyphs
seed = 1
count = 400"
	for name in one two; do
		glyph_device $name 1 100
		fleet_run $name
	done
	submit good
	keep_when halted.before "rivulet_job_rounds_committed_total{job_id=\"$JOB\"}" "v > 1"
	stop
	# From the third round on the rate is absurd.
	submit wild "s/\"stop\"/$(tr '\n' ' ' <<-'END'
		"aggregate": {"server_optimizer": {"rate": 1, "schedule": {"type": "step", "every": 2, "gamma": 10}}},
		"evaluate": {"by": "coordinator", "data": "digits"}, "guard": {"metric": "loss", "factor": 1.1, "do": "pause"}, "stop"
	END
	)/"
	stuck halted.job halted
	alert RivuletJobHalted kind=halted halted.before -- halted.job
}

state_stand() {
	begin "[limits]
retry_after = 1"
	for name in one two; do
		device $name
		fleet_run $name
	done
	submit works
	for n in 1 2 3; do
		keep_when stand.round$n "rivulet_job_rounds_committed_total{job_id=\"$JOB\"}" "v >= $n"
	done
	stop
	submit sleeps 's/"local"/"trainer": "asleep", "local"/'
	keep_when stand.asleep 'rivulet_job_round_invited{job_id="'"$JOB"'"}' "v == 2"
	alert RivuletRoundsStand state=running stand.round1 stand.round2 stand.round3 -- stand.asleep lasts
}

state_strangers() {
	command -v openssl >/dev/null || skip "needs openssl"
	begin "[limits]
strangers_cpu = 100"
	glyph_device one 1 40
	keep strangers.before
	many 120 "$URL/v1/devices" --cert "$FLEET/one/cert.pem" --key "$FLEET/one/key.pem"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$FLEET/key.pem" -out "$FLEET/cert.pem" -subj /CN=other -days 9 2>/dev/null
	for _ in $(seq 15); do as_device "$FLEET" /v1/status; done
	keep_when strangers.forbidden 'rivulet_http_refusals_total{error="forbidden"}' "v >= 120"
	alert RivuletRefusalsSpike error=forbidden strangers.before -- strangers.forbidden
	alert RivuletRefusalsSpike error=forbidden strangers.before -- strangers.forbidden goes-on
	many 400 "$URL/v1/status" -H "Authorization: Bearer $(printf '%064d' 7)"
	keep_when strangers.log rivulet_log_lines_skipped_total "v > 100"
	alert RivuletLogSkipping - strangers.before -- strangers.log
	keep_when strangers.ca 'rivulet_tls_handshakes_total{result="other-ca"}' "v >= 15"
	alert RivuletHandshakesRefused result=other-ca strangers.before -- strangers.ca
}

state_descriptors() {
	begin
	for name in one two; do glyph_device $name 1 40; done
	keep descriptors.before
	fleet_kill TERM "$DAEMON_PID"
	wrapped "ulimit -n 128"
	fleet_restart
	python3 -S -E -c 'import socket, ssl, sys, time
held = []
for home in sys.argv[2:]:
    context = ssl.create_default_context(cafile=home + "/ca.pem")
    context.load_cert_chain(home + "/cert.pem", home + "/key.pem")
    for _ in range(45):
        held.append(context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[1]))), server_hostname="localhost"))
print("held", flush=True)
time.sleep(60)' "$PORT" "$FLEET/one" "$FLEET/two" >"$FLEET/held" &
	FLEET_PIDS="$FLEET_PIDS $!"
	within 10 test -s "$FLEET/held" || fleet_fail "no connections"
	keep_when descriptors.few process_open_fds "v > 103"
	alert RivuletDescriptorsLow - descriptors.before -- descriptors.few
}

state_certificates() {
	command -v openssl >/dev/null || skip "needs openssl"
	begin
	keep certificates.before
	keys=$FLEET/state/keys
	openssl req -new -key "$keys/server.key" -subj /CN=localhost -out "$FLEET/server.csr"
	printf 'basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\n' >"$FLEET/ext"
	openssl x509 -req -in "$FLEET/server.csr" -CA "$keys/ca.crt" -CAkey "$keys/ca.key" -set_serial 9 -days 20 -sha256 -extfile "$FLEET/ext" \
		-out "$keys/server.crt" 2>/dev/null || fleet_fail "a server certificate"
	before=$(sed -n 's/^rivulet_certificate_expiry_timestamp_seconds //p' "$RECORDED/certificates.before.prom")
	kill -HUP "$DAEMON_PID"
	keep_when certificates.server rivulet_certificate_expiry_timestamp_seconds "v < $before"
	alert RivuletCertificateEnds - certificates.before -- certificates.server
	# A CA that was made 20 years ago, but for some months.
	fleet_kill TERM "$DAEMON_PID"
	rm -rf "$FLEET/state"
	fake_time
	faketime -f -7200d "$RIVULETD" --config "$FLEET/rivuletd.conf" init >/dev/null 2>&1 || fleet_fail "init in the past"
	d init --name localhost >/dev/null 2>&1 || fleet_fail "init --name"
	fleet_restart
	may_scrape
	keep certificates.ca
	alert RivuletCaEnds - certificates.before -- certificates.ca
}

state_ca() {
	begin
	glyph_device one 1 40
	keep ca.before
	d ca rotate >/dev/null || fleet_fail "ca rotate"
	kill -HUP "$DAEMON_PID"
	keep_when ca.begun rivulet_ca_rotating "v == 1"
	alert RivuletCaChangeUnfinished - ca.before -- ca.begun lasts
	d ca finish --force >/dev/null 2>&1 || fleet_fail "ca finish"
	kill -HUP "$DAEMON_PID"
	keep_when ca.behind rivulet_ca_rotating "v == 0"
	alert RivuletCaChangeUnfinished - ca.before -- ca.begun ca.behind lasts
}

state_clock() {
	fake_time
	fleet_dir
	echo +0s >"$FLEET/clock"
	wrapped "export LD_PRELOAD='$fake' FAKETIME_TIMESTAMP_FILE=$FLEET/clock FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1"
	begin "[identity]
device_validity = 1d"
	glyph_device one 1 40
	keep clock.before
	echo +30d >"$FLEET/clock"
	keep_when clock.stepped 'rivulet_clock_doubted{reason="clock-stepped"}' "v == 1"
	alert RivuletClockDoubted reason=clock-stepped clock.before -- clock.stepped
	for _ in $(seq 12); do as_device "$FLEET/one" /v1/tasks -d '{}'; done
	keep_when clock.locked rivulet_devices_locked_out "v == 1"
	alert RivuletDevicesLockedOut - clock.before -- clock.locked
	keep_when clock.expired 'rivulet_tls_handshakes_total{result="expired"}' "v > 10"
	alert RivuletHandshakesRefused result=expired clock.before -- clock.expired
}

state_contested() {
	begin
	glyph_device one 1 40
	d backup "$FLEET/copy" >/dev/null 2>&1 || fleet_fail "backup"
	cp -a "$FLEET/one" "$FLEET/old"
	"$RIVULET" rotate --home "$FLEET/one" >/dev/null 2>&1 || fleet_fail "rotate"
	keep contested.before
	fleet_kill TERM "$DAEMON_PID"
	rm -rf "$FLEET/state/models" "$FLEET/state/spool" "$FLEET/state"/rivulet.db*
	d restore "$FLEET/copy" >/dev/null 2>&1 || fleet_fail "restore"
	fleet_restart
	may_scrape
	as_device "$FLEET/old" /v1/status
	as_device "$FLEET/one" /v1/status
	keep_when contested.keys rivulet_devices_contested "v == 1"
	alert RivuletDevicesContested - contested.before -- contested.keys
}

state_disk() {
	[ "$DISK_MOUNTS" = yes ] || skip "needs a file system of its own"
	fleet_dir
	mkdir -m 700 "$FLEET/state"
	mount -t tmpfs -o size=40m,mode=700 none "$FLEET/state" || fleet_fail "mount"
	begin "reserve = 2M"
	glyph_device one 1 40
	submit rest 's/"rounds": 100000/"rounds": 9/'
	keep_when disk.before rivulet_disk_forecast_bytes "v > 0"
	keep_when disk.before rivulet_reserve_bytes "v > 2000000"
	submit endless 's/"rounds": 100000/"rounds": 900000000/'
	keep_when disk.forecast rivulet_disk_forecast_bytes "v > 40000000"
	alert RivuletDiskForecast - disk.before -- disk.forecast
	cat /dev/zero >"$FLEET/state/ballast" 2>/dev/null
	keep_when disk.full 'rivulet_not_ready{reason="disk-full"}' "v == 1"
	alert RivuletNotReady reason=disk-full disk.before -- disk.full
	keep_when disk.low rivulet_disk_free_bytes "v < 4000000"
	alert RivuletDiskLow - disk.before -- disk.low
	stop
	keep_when disk.reserve rivulet_reserve_bytes "v < 2097152"
	alert RivuletReserveGone - disk.before -- disk.reserve lasts:1440
	fleet_kill TERM "$DAEMON_PID"
	keep disk.down
	fleet_restart
	keep_when disk.anew rivulet_disk_total_bytes "v > 0"
	alert RivuletReserveGone - disk.down -- disk.anew
	fleet_end
	umount "$FLEET/state"
}

state_spool() {
	begin "[spool]
quota = 330K"
	glyph_device one 1 40
	keep spool.before
	for name in first second; do
		submit $name
		"$RIVULET" run --home "$FLEET/one" --rounds 1 2>>"$FLEET/one.log" || fleet_fail "a round of job $name"
	done
	keep_when spool.full rivulet_spool_bytes "v > 300000"
	alert RivuletSpoolFull - spool.before -- spool.full
}

state_lost() {
	begin
	for name in one two; do
		glyph_device $name 1 40
		fleet_run $name
	done
	submit some
	keep_when lost.before rivulet_rounds_committed_total "v > 2"
	fleet_kill TERM "$DAEMON_PID"
	rm "$FLEET/state"/rivulet.db*
	d init --new-database >/dev/null 2>&1 || fleet_fail "init --new-database"
	fleet_restart
	may_scrape
	keep_when lost.files rivulet_lost_files "v > 0"
	alert RivuletLostFiles - lost.before -- lost.files
}

state_slow() {
	shim=$PWD/$BUILD/tests/shim/faults.so
	[ -f "$shim" ] || skip "needs $shim"
	fleet_dir
	: >"$FLEET/rules"
	wrapped "export LD_PRELOAD=$shim RIVULET_SHIM=$FLEET/rules"
	begin
	keep slow.before
	echo "sync SLOW:1200 rivulet.db" >"$FLEET/rules.new"
	mv "$FLEET/rules.new" "$FLEET/rules"
	for n in 1 2 3 4; do submit slow$n; done
	: >"$FLEET/rules"
	keep slow.disk
	alert RivuletStoreSlow - slow.before -- slow.disk
}

# Two devices, the first of which runs and writes its file.
begin_agents() {
	begin "[limits]
long_poll = 1
retry_after = 1"
	for name in one two; do
		glyph_device $name 1 40
		sed -i "s,^\\[device\\],&\nmetrics_file = $FLEET/agent.prom," "$FLEET/$name/rivulet.conf"
	done
	fleet_run one
	file_when 'waiting{reason="no-job"} 1'
}
file_has() { grep -q "^rivulet_agent_$1" "$FLEET/agent.prom" 2>/dev/null; }
file_when() { within 60 file_has "$1" || fleet_fail "no $1: $(cat "$FLEET/agent.prom")"; }

state_agent() {
	begin_agents
	keep_file agent.before
	fleet_kill TERM "$AGENT_PID"
	rm "$FLEET/agent.prom"
	# Certificates for five days from now on.
	printf '[identity]\ndevice_validity = 5d\n' >>"$FLEET/rivuletd.conf"
	fleet_kill TERM "$DAEMON_PID"
	fleet_restart
	run 0 "$RIVULET" rotate --home "$FLEET/two"
	fleet_run two
	file_when 'certificate_expiry_timestamp_seconds '
	keep_file agent.short
	alert RivuletAgentCertificateEnds - agent.before -- agent.short
}

state_agent_waits() {
	shim=$PWD/$BUILD/tests/shim/faults.so
	[ -f "$shim" ] || skip "needs $shim"
	fleet_dir
	: >"$FLEET/rules"
	wrapped "export LD_PRELOAD=$shim RIVULET_SHIM=$FLEET/rules"
	begin_agents
	keep_file waits.before
	echo "write ENOSPC $FLEET/state/spool" >"$FLEET/rules.new"
	mv "$FLEET/rules.new" "$FLEET/rules"
	submit full 's/"goal": 2/"goal": 1/'
	file_when 'outbox_deltas 1'
	keep_file waits.outbox
	alert RivuletAgentOutboxStuck - waits.before -- waits.outbox lasts
	fleet_kill KILL "$DAEMON_PID"
	file_when 'waiting{reason="unreachable"} 1'
	keep_file waits.away
	alert RivuletAgentSilent - waits.before -- waits.away lasts:30
	fleet_kill TERM "$AGENT_PID"
	rm "$FLEET/agent.prom"
	fleet_run one
	file_when 'waiting{reason="unreachable"} 1'
	keep_file waits.never
	alert RivuletAgentSilent - waits.never
	alert RivuletAgentSilent - waits.before -- waits.never lasts:30
}

# Minutes pass in seconds here: who did not ask for work since is out of contact, and then silent.
state_silent() {
	faults=${FAULTS_BUILD:-build/faults}
	[ -x "$faults/rivuletd" ] || skip "needs $faults"
	RIVULETD=$faults/rivuletd RIVULET=$faults/rivulet
	RIVULET_CLOCK_SPEED=60
	export RIVULET_CLOCK_SPEED
	begin
	for name in one two three; do
		glyph_device $name 1 40
		fleet_run $name
	done
	submit works
	keep_when silent.before 'rivulet_devices_seen' "v == 3"
	keep_when silent.before "rivulet_job_rounds_committed_total{job_id=\"$JOB\"}" "v > 1"
	for pid in $FLEET_PIDS; do
		fleet_kill KILL "$pid"
		[ -e "$RECORDED/silent.fewer.at" ] || keep_when silent.fewer rivulet_devices_seen "v == 2"
	done
	alert RivuletDevicesFalling - silent.before -- silent.fewer
	keep_when silent.few rivulet_devices_seen "v == 0"
	alert RivuletDevicesFalling - silent.before -- silent.few lasts
	keep_when silent.job 'rivulet_jobs_stuck{kind="silent"}' "v > 0"
	alert RivuletJobNoDevices kind=silent silent.before -- silent.job
}

[ $# -gt 0 ] || set -- $(sed -n 's/^state_\([a-z_]*\)() {$/\1/p' "$0")
for state; do
	("state_$state")
	ended=$?
	[ $ended -eq 0 ] || exit $ended
	[ -z "${VERBOSE:-}" ] || echo "$(date +%T) $state" >&2
done
