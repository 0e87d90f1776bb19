#!/bin/sh
# stages: gcc address
# A device whose disk is full, read-only or broken: it gives its task back and says why, keeps what it has, goes on running, and works
# again by itself when the cause is gone.
set -u
FLEET_NAME=35-device-disk
. tests/e2e/common.sh
shim=$PWD/$BUILD/tests/shim/faults.so
case ${SAN:-} in ?*) skip "a sanitizer's own calls come before the shim's" ;; esac

fleet_start "
[limits]
long_poll = 2"
rules=$FLEET/rules
: >"$rules"
glyph_device dev 1 100
cat >"$FLEET/rivulet.sh" <<END
#!/bin/sh
export LD_PRELOAD=$shim RIVULET_SHIM=$rules
exec $RIVULET "\$@"
END
chmod +x "$FLEET/rivulet.sh"

faults() { # faults RULE...: from now on
	printf '%s\n' "$@" >"$rules.new"
	mv "$rules.new" "$rules"
	: >"$FLEET/dev.log"
}
# A round that is given back opens again after two seconds.
submit() {
	glyph_job "$FLEET/job.json" "$1" 1 2
	sed -i 's/"deadline_s": 3600/"deadline_s": 2/' "$FLEET/job.json"
	# What the job keeps on the device.
	case $1 in
	residual*) sed -i 's/^ "stop"/ "upload": {"codec": "sign", "feedback": true}, "stop"/' "$FLEET/job.json" ;;
	variates*) sed -i 's/"local": {/"local": {"control_variates": {"devices": 4}, /' "$FLEET/job.json" ;;
	local*) sed -i 's/^ "stop"/ "tensors": {"fc2.*": "local"}, "stop"/' "$FLEET/job.json" ;;
	esac
	job_submit "$FLEET/job.json"
}
agent_log() { grep -q "$1" "$FLEET/dev.log"; }
told() { [ "$(curl_admin /v1/devices/dev | pick 'd["last_abort"] and d["last_abort"]["reason"]')" = "$1" ]; }
seen=
# trouble NAME ABORT_REASON TEXT RULE...
trouble() {
	name=$1 reason=$2 text=$3
	shift 3
	faults "$@"
	submit "$name"
	within 30 agent_log "task.aborted.*reason=$reason.*$text" || fleet_fail "$name: no abort $reason, $text"
	within 10 told "$reason" || fleet_fail "$name: the coordinator does not know: $(curl_admin /v1/devices/dev)"
	kill -0 "$AGENT_PID" || fleet_fail "$name: the agent has ended"
	[ "$(find "$FLEET/dev/outbox" -type f | wc -l)" -eq 0 ] || fleet_fail "$name: left in the outbox: $(ls "$FLEET/dev/outbox")"
	faults ""
	job_done 60
	seen="$seen $name"
}

plain=$RIVULET
RIVULET=$FLEET/rivulet.sh
fleet_run dev
RIVULET=$plain
trouble full-outbox disk-full "No space left" "write ENOSPC $FLEET/dev/outbox"
trouble read-only disk-failed "Read-only" "open EROFS $FLEET/dev"
trouble read-only-outbox disk-failed "Read-only" "open EROFS $FLEET/dev/outbox"
trouble read-only-models disk-failed "Read-only" "open EROFS $FLEET/dev/models"
trouble not-ours disk-failed "Permission denied" "open EACCES $FLEET/dev"
trouble not-our-outbox disk-failed "Permission denied" "open EACCES $FLEET/dev/outbox"
trouble broken disk-failed "Input/output error" "open EIO $FLEET/dev"
trouble no-descriptors disk-failed "Too many open files" "open EMFILE $FLEET/dev/models"
trouble no-rename disk-failed "Read-only" "rename EROFS $FLEET/dev/models"
trouble no-sync disk-failed "Input/output error" "sync EIO $FLEET/dev/outbox"
trouble broken-models disk-failed "io" "write EIO $FLEET/dev/models"
trouble unread-while-made disk-failed "read the delta: Input/output error" "read EIO .temp"
trouble residual-EROFS disk-failed "Read-only" "rename EROFS $FLEET/dev/residual"
trouble residual-ENOSPC disk-full "No space" "write ENOSPC $FLEET/dev/residual"
trouble variates-EACCES disk-failed "Permission" "rename EACCES $FLEET/dev/variates"
trouble variates-EIO disk-failed "Input/output" "sync EIO $FLEET/dev/variates"
trouble full-cache disk-full "on this machine: no-space" "write ENOSPC $FLEET/dev/models"
trouble no-memory out-of-memory "" "memory ENOMEM 300000"

# --- a delta counts whether or not the tensors that stay on the device can be kept
faults "rename EROFS $FLEET/dev/local"
submit local
job_done 60
agent_log "local.failed.*Read-only" || fleet_fail "local: nobody says so"

# --- and doctor names the cause
doctor() { # doctor ERRNO TEXT
	faults "access $1 $FLEET/dev"
	LD_PRELOAD=$shim RIVULET_SHIM=$rules $RIVULET doctor --home "$FLEET/dev" >"$FLEET/said" 2>&1
	[ $? -eq 1 ] && grep -q "$2" "$FLEET/said" || fleet_fail "doctor: $1: $(cat "$FLEET/said")"
}
doctor EROFS "mounted read-only"
grep -q "remount" "$FLEET/said" || fleet_fail "doctor: no advice: $(cat "$FLEET/said")"
doctor EACCES "cannot be written by this user (its owner is"
doctor EIO "Input/output error"

# --- what is in the outbox when the disk cannot be read stays there, and is sent later
unsent() { [ "$(find "$FLEET/dev/outbox" -name '*.delta' | wc -l)" -eq 1 ]; }
faults "read EIO .delta"
submit unread
within 30 unsent || fleet_fail "unread: nothing in the outbox"
sleep 3
unsent || fleet_fail "unread: a delta that could not be read was thrown away: $(cat "$FLEET/dev.log")"
faults ""
job_done 60
trained=$(grep -c "trained job=$JOB round=1" "$FLEET/dev.log")
[ "$trained" -eq 0 ] || fleet_fail "unread: trained again"
fleet_end
echo "the device went on after:$seen unread"
