#!/bin/sh
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
trouble read-only disk-full "Read-only" "open EROFS $FLEET/dev/outbox"
trouble no-sync disk-full "Input/output error" "sync EIO $FLEET/dev/outbox"
trouble unread-while-made disk-full "read the delta: Input/output error" "read EIO .temp"
trouble full-cache disk-full "no-space" "write ENOSPC $FLEET/dev/models"
trouble no-memory out-of-memory "" "memory ENOMEM 300000"

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
