#!/bin/sh
# stages: gcc
# Full disk, read-only disk, I/O errors, no memory, no descriptors: the coordinator says so, takes nothing that it cannot keep, loses
# nothing that it has acknowledged, and goes on by itself when the cause is gone.
set -u
# A file system of our own to fill, if this machine lets us.
if [ -z "${DISK_MOUNTS:-}" ]; then
	DISK_MOUNTS=no
	unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && DISK_MOUNTS=yes
	export DISK_MOUNTS
	[ $DISK_MOUNTS = no ] || exec unshare -m "$0"
fi
FLEET_NAME=33-disk
. tests/e2e/common.sh
peer=$BUILD/tests/tools/wire_peer
[ -x "$peer" ] || skip "needs $peer"
shim=$PWD/$BUILD/tests/shim/faults.so
case ${SAN:-} in ?*) shim= ;; esac # a sanitizer's own calls come first

fleet_start "reserve = 2M
[limits]
retry_after = 1"
rules=$FLEET/rules
: >"$rules"
glyph_device dev 1 100
fleet_join hand ""
fleet_join spare ""
fleet_kill TERM "$DAEMON_PID"
cat >"$FLEET/rivuletd.sh" <<END
#!/bin/sh
[ -z "\${FILES:-}" ] || ulimit -n \$FILES
${shim:+export LD_PRELOAD=$shim RIVULET_SHIM=$rules}
exec $RIVULETD "\$@"
END
chmod +x "$FLEET/rivuletd.sh"
RIVULETD=$FLEET/rivuletd.sh
fleet_restart

faults() { # faults RULE...: from now on
	printf '%s\n' "$@" >"$rules.new"
	mv "$rules.new" "$rules"
}
reason() { curl_admin /readyz 2>/dev/null | sed -n 's/.*"reason":"\([^"]*\)".*/\1/p'; }
not_ready() { [ "$(reason)" = "$1" ]; }
ready() { curl_admin /readyz 2>/dev/null | grep -q '"status":"ready"'; }
logged() { [ "$(log_lines 1 "$FLEET/rivuletd.log" "$1")" -ge 1 ]; }
submit() { # submit NAME [ROUNDS [EPOCHS]]: many epochs for a job that is still at work when it was seen to work
	glyph_job "$FLEET/job.json" "$1" 1 "${2:-2}"
	sed -i "s/\"epochs\": 1/\"epochs\": ${3:-1}/" "$FLEET/job.json"
	job_submit "$FLEET/job.json"
}
start_agent() { fleet_run dev; }
stop_agent() { fleet_kill TERM "$AGENT_PID"; }
accepted() { # what the device was promised is in the rounds
	curl_admin "/v1/jobs/$JOB/rounds" | pick "all(r['reports'] == 1 and r['state'] == 'committed' for r in d['rounds'])" | grep -qx True ||
		fleet_fail "rounds: $(curl_admin "/v1/jobs/$JOB/rounds")"
}
recovers() { # recovers REASON: the fault is gone; nobody helps
	within 15 ready || fleet_fail "$1: not ready again: $(curl_admin /readyz)"
	job_done 60
	accepted
	logged "health.recovered reason=$1" || fleet_fail "$1: the log does not tell that it is over"
	seen="$seen $1"
}
# trouble REASON STATUS WORD RULE...: uploads fail, the device keeps its delta
trouble() {
	expect=$1 status=$2 word=$3
	shift 3
	submit "upload-$expect-$#"
	faults "$@"
	start_agent
	within 30 not_ready "$expect" || fleet_fail "$*: /readyz says $(curl_admin /readyz)"
	within 20 grep -q "retry path=/v1/deltas.*status=$status" "$FLEET/dev.log" || fleet_fail "$*: no $status at the device"
	logged "PUT path=/v1/deltas.*status=$status.*why=\"$word" || fleet_fail "$*: no $word"
	[ "$(find "$FLEET/dev/outbox" -name '*.delta' | wc -l)" -eq 1 ] || fleet_fail "$*: the device has not kept its delta"
	stop_agent
	start_agent
	within 20 grep -q "waiting reason=$expect" "$FLEET/dev.log" || fleet_fail "$*: the device is not told to wait for $expect"
	stop_agent
	faults ""
	: >"$FLEET/dev.log"
	start_agent
	recovers "$expect"
	stop_agent
}
waits_to_fold() {
	curl_admin "/v1/jobs/$JOB" | pick "d['state'] == 'running' and 'waits to be folded' in d['reason'] and d['open']['state'] == 'folding'" | grep -qx True
}
# delayed REASON RULE...: the round is complete and cannot be folded
delayed() {
	expect=$1
	shift
	submit "fold-$expect" 1
	faults "$@"
	start_agent
	within 30 not_ready "$expect" || fleet_fail "$*: /readyz says $(curl_admin /readyz)"
	logged "round.delayed job=$JOB" || fleet_fail "$*: the round was not delayed"
	within 10 waits_to_fold || fleet_fail "$*: $(curl_admin "/v1/jobs/$JOB")"
	logged "job.stuck job=$JOB .*kind=not-ready why=\"$expect: " || fleet_fail "$*: the job does not say that it cannot move"
	fleet_admin status | grep -q "^job fold-$expect cannot move (not-ready): $expect: " || fleet_fail "$*: status: $(fleet_admin status)"
	stop_agent
	faults ""
	recovers "$expect"
	curl_admin "/v1/jobs/$JOB" | pick "d['reason'] == 'all rounds done'" | grep -qx True || fleet_fail "$(curl_admin "/v1/jobs/$JOB")"
}
hold_database() { # until $holder ends
	python3 -S -E -c 'import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(3600)' "$FLEET/state/rivulet.db" >"$FLEET/held" &
	holder=$!
	FLEET_PIDS="$FLEET_PIDS $holder"
	within 10 test -s "$FLEET/held" || fleet_fail "the database cannot be held"
}
answered() { # the status in $FLEET/head, and whether it says when to come again
	retry=no
	grep -q '^Retry-After: [1-9]' "$FLEET/head" && retry=yes
	echo "$(sed -n 's/^HTTP.* \([2-5]..\).*/\1/p' "$FLEET/head" | tail -n 1) $retry"
}
put_by_hand() {
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/hand/ca.pem" --cert "$FLEET/hand/cert.pem" --key "$FLEET/hand/key.pem" -D "$FLEET/head" \
		-o /dev/null -H "Rivulet-Manifest: $(cat "$FLEET/hand/good/manifest")" -T "$FLEET/hand/good/body" "$URL/v1/deltas/${task%% *}"
	answered
}
ticks() { awk '{ print $14 + $15 }' "/proc/$DAEMON_PID/stat"; }
seen=

if [ -n "$shim" ]; then
	trouble disk-full 507 no-space "write ENOSPC $FLEET/state/spool"
	trouble disk-read-only 503 unavailable "open EROFS $FLEET/state/spool" "write EROFS $FLEET/state" "rename EROFS $FLEET/state"
	trouble disk-error 503 unavailable "sync EIO $FLEET/state/spool"
	trouble disk-error 503 unavailable "write EIO rivulet.db-wal" "sync EIO rivulet.db-wal"
	trouble no-descriptors 503 unavailable "open EMFILE $FLEET/state/spool"
	delayed disk-full "write ENOSPC $FLEET/state/models"
	delayed no-memory "memory ENOMEM 100000"
	delayed disk-read-only "open EROFS $FLEET/state/models"
	# Somebody else holds the database: an administrator's own sqlite3, with a transaction that is not ended.
	submit locked 1
	hold_database
	start_agent
	within 30 not_ready store-failed || fleet_fail "locked: /readyz says $(curl_admin /readyz)"
	within 20 grep -q "retry path=/v1/deltas.*status=503" "$FLEET/dev.log" || fleet_fail "locked: no 503 at the device"
	sleep 3
	not_ready store-failed || fleet_fail "locked: ready while the database is held"
	fleet_kill KILL $holder
	recovers store-failed
	stop_agent
	# What the refusal of a whole delta tells: to come again, and when.
	submit answered 1
	mkdir "$FLEET/hand/good"
	task=$("$peer" ask "$FLEET/hand" "$PORT") || fleet_fail "answered: no task"
	# shellcheck disable=SC2086 # task is four words
	"$peer" put "$FLEET/hand" "$PORT" 39760 "save:$FLEET/hand/good" none $task
	# The last of them fails when the delta has its name already: then nobody owns it, and its place in the spool is free again.
	unspooled() { spool_empty && [ "$(curl_admin /v1/status | pick 'd["spool"]["bytes"]')" = 0 ]; }
	for fault in "507 write ENOSPC $FLEET/state/spool" "503 sync EIO $FLEET/state/spool" "503 sync EIO rivulet.db-wal"; do
		faults "${fault#* }"
		answer=$(put_by_hand)
		[ "$answer" = "${fault%% *} yes" ] || fleet_fail "${fault#* }: answered \"$answer\""
		curl_admin /readyz -D "$FLEET/head" >/dev/null 2>&1
		[ "$(answered)" = "503 yes" ] || fleet_fail "${fault#* }: /readyz answered \"$(answered)\""
		faults ""
		within 15 ready || fleet_fail "${fault#* }: not ready again"
		within 10 unspooled || fleet_fail "${fault#* }: left in the spool: $(ls "$FLEET/state/spool"), $(curl_admin /v1/status)"
	done
	# A job and a model whose rows cannot be written leave no file.
	files() { ls "$FLEET/state/models"; }
	files >"$FLEET/files"
	glyph_job "$FLEET/orphan.json" orphan 1 1
	sed -i 's/"seed": 7/"seed": 8/' "$FLEET/orphan.json"
	faults "sync EIO rivulet.db-wal"
	curl_admin /v1/jobs --data-binary "@$FLEET/orphan.json" >"$FLEET/out" 2>&1 && fleet_fail "orphan: $(cat "$FLEET/out")"
	faults ""
	within 15 ready || fleet_fail "orphan: not ready again"
	unchanged() { files | cmp -s - "$FLEET/files"; }
	unchanged || fleet_fail "orphan: left in models: $(files | diff "$FLEET/files" -)"
	cp "$(find "$FLEET/state/models" -type f ! -name '*.*' | head -n 1)" "$FLEET/upload"
	printf x | dd of="$FLEET/upload" bs=1 seek=$(($(stat -c %s "$FLEET/upload") - 4)) conv=notrunc 2>/dev/null
	upload() { curl_admin "/v1/models/$(sha256sum <"$FLEET/upload" | cut -d ' ' -f 1)" -o /dev/null -w '%{http_code}' -T "$FLEET/upload" 2>/dev/null; }
	faults "write ENOSPC rivulet.db-wal"
	[ "$(upload)" = 507 ] || fleet_fail "orphan: an upload was answered $(upload)"
	unchanged || fleet_fail "orphan: an upload left in models: $(files | diff "$FLEET/files" -)"
	faults ""
	within 15 ready || fleet_fail "orphan: not ready again"
	[ "$(upload)" = 201 ] || fleet_fail "an upload is not taken afterwards"
	logged "delta.released task=${task%% *}" || fleet_fail "no delta without a row was there to be released"
	[ "$(put_by_hand)" = "201 no" ] || fleet_fail "answered: $(cat "$FLEET/head")"
	job_done 60
	accepted
	# A round that is not folded for one fault, and folded, but its row not written, for another.
	submit commit 1
	faults "write EIO $FLEET/state/models"
	start_agent
	within 30 not_ready disk-error || fleet_fail "commit: /readyz says $(curl_admin /readyz)"
	within 10 waits_to_fold || fleet_fail "commit: $(curl_admin "/v1/jobs/$JOB")"
	files >"$FLEET/files"
	faults "write ENOSPC rivulet.db-wal"
	logged "round.delayed job=$JOB.*commit" || fleet_fail "commit: the round was not delayed"
	within 10 unchanged || fleet_fail "commit: a fold left in models: $(files | diff "$FLEET/files" -)"
	stop_agent
	faults ""
	recovers disk-full
	# The coordinator has run long enough, or nearly so, to say what share of the time the device was there.
	is_known() { [ "$(curl_admin /v1/fleet | pick 'any(0 < (x["available"] or 0) <= 1 for x in d["devices"])' 2>/dev/null)" = True ]; }
	within 60 is_known || fleet_fail "the fleet: $(curl_admin /v1/fleet)"
	# A restart in between finds the same fault, and its end.
	submit restart 1
	faults "write ENOSPC $FLEET/state/models"
	start_agent
	logged "round.delayed job=$JOB" || fleet_fail "restart: the round was not delayed"
	fleet_kill KILL "$DAEMON_PID"
	fleet_restart
	within 30 not_ready disk-full || fleet_fail "restart: /readyz says $(curl_admin /readyz)"
	faults ""
	recovers disk-full
	stop_agent
fi

# --- few descriptors: connections above them are refused or wait, and nothing spins
fleet_kill TERM "$DAEMON_PID"
FILES=64
export FILES
fleet_restart
unset FILES
python3 -S -E - "$PORT" "$DAEMON_PID" <<'END' || fleet_fail "few descriptors"
import os, socket, sys, time
port, pid = int(sys.argv[1]), sys.argv[2]
ticks = lambda: sum(int(n) for n in open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13])
held = []
for _ in range(200):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", port))
    held.append(s)
time.sleep(0.5)
before = ticks()
time.sleep(3)
used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
print(f"200 connections, 64 descriptors: {used:.2f} s of processor time in 3 s")
sys.exit(used > 0.3)
END
submit descriptors
start_agent
job_done 60
accepted
stop_agent
if [ -n "$shim" ]; then
	# None at all: the listener rests.
	faults "accept EMFILE *"
	used=$(ticks)
	curl -sS --max-time 3 --unix-socket "$FLEET/admin.sock" http://localhost/readyz >/dev/null 2>&1 && fleet_fail "accepted without a descriptor"
	used=$((($(ticks) - used) * 100 / $(getconf CLK_TCK)))
	[ $used -lt 20 ] || fleet_fail "$used hundredths of a second of processor time in 3 s without descriptors"
	faults ""
	within 15 ready || fleet_fail "accept: not ready again"
	lines=$(grep -c "accept.failed" "$FLEET/rivuletd.log")
	[ "$lines" -lt 10 ] || fleet_fail "$lines lines in the log while nothing could be accepted"
	logged 'health.failed reason=no-descriptors' || fleet_fail "accept: nobody was told"
fi

# --- a real file system that is full
if [ "$DISK_MOUNTS" = yes ]; then
	fleet_kill TERM "$DAEMON_PID"
	mv "$FLEET/state" "$FLEET/state.disk"
	mkdir -m 700 "$FLEET/state"
	mount -t tmpfs -o size=24m,mode=700 none "$FLEET/state" || fleet_fail "mount"
	cp -a "$FLEET/state.disk/." "$FLEET/state"
	fleet_restart
	token=$(curl_admin /v1/tokens -d '{"role": "reader", "access": true}' | pick 'd["id"]')
	sed 's/"stop"/"select": {"labels": {"site": "nowhere"}}, "stop"/' "$FLEET/job.json" >"$FLEET/victim.json"
	sed -i '1s/"name": "[^"]*"/"name": "victim"/' "$FLEET/victim.json"
	job_submit "$FLEET/victim.json"
	victim=$JOB
	submit tmpfs 12 150
	start_agent
	reserve() { curl_admin /v1/status | pick 'd["disk"]["reserve"]'; }
	reserved() { [ "$(reserve)" -eq 2097152 ]; }
	within 10 reserved || fleet_fail "tmpfs: no reserve: $(curl_admin /v1/status)"
	some_rounds() { [ "$(curl_admin "/v1/jobs/$JOB" | pick 'd["rounds_committed"]')" -ge 2 ]; }
	within 30 some_rounds || fleet_fail "tmpfs: no rounds"
	cat /dev/zero >"$FLEET/state/ballast" 2>/dev/null
	within 30 not_ready disk-full || fleet_fail "tmpfs: /readyz says $(curl_admin /readyz)"
	sleep 2
	not_ready disk-full || fleet_fail "tmpfs: ready on a full disk"
	free() { curl_admin /metrics | awk '$1 == "rivulet_disk_free_bytes" { exit !($2 < 2097152) }'; }
	within 20 free || fleet_fail "tmpfs: the disk is full, and /metrics has of before: $(curl_admin /metrics | grep '^rivulet_disk')"
	# Somebody goes on filling it, and it can still be administered.
	(while :; do cat /dev/zero >>"$FLEET/state/ballast" 2>/dev/null; sleep 0.01; done) &
	filler=$!
	FLEET_PIDS="$FLEET_PIDS $filler"
	models() { find "$FLEET/state/models" -type f | wc -l; }
	for command in "token revoke $token" "job pause $victim" "job stop $victim" "job delete $victim" "device suspend spare" "device revoke spare"; do
		# shellcheck disable=SC2086 # words
		fleet_admin $command >"$FLEET/out" 2>&1 || fleet_fail "$command on a full disk: $(cat "$FLEET/out")"
	done
	curl_admin /v1/tokens | pick "any(t['id'] == '$token' and t['revoked'] for t in d['tokens'])" | grep -qx True || fleet_fail "tmpfs: the token is not revoked"
	curl_admin /v1/devices/spare | pick "d['state']" | grep -qx revoked || fleet_fail "tmpfs: the device is not revoked"
	curl_admin "/v1/jobs/$victim" >"$FLEET/out" 2>&1 && fleet_fail "tmpfs: the job is not deleted: $(cat "$FLEET/out")"
	was=$(models)
	[ "$was" -gt 3 ] || fleet_fail "tmpfs: only $was models to begin with"
	printf '[retention]\nkeep_last = 1\nkeep_every = 0\n' >>"$FLEET/rivuletd.conf"
	kill -HUP "$DAEMON_PID"
	fewer() { [ "$(models)" -lt "$was" ]; }
	within 10 fewer || fleet_fail "tmpfs: a smaller [retention] frees nothing"
	[ "$(reserve)" -lt 2097152 ] || fleet_fail "tmpfs: the reserve was not used: $(curl_admin /v1/status)"
	fleet_kill KILL "$filler"
	# Its last cat goes on until the disk is full once more.
	sleep 1
	: >"$FLEET/state/ballast"
	recovers disk-full
	within 10 reserved || fleet_fail "tmpfs: the reserve was not made again: $(curl_admin /v1/status)"
	stop_agent
	# Full again, and killed: it starts by itself once there is room.
	submit again 12 150
	start_agent
	within 30 some_rounds || fleet_fail "tmpfs: no rounds"
	cat /dev/zero >"$FLEET/state/ballast" 2>/dev/null
	fleet_kill KILL "$DAEMON_PID"
	: >"$FLEET/state/ballast"
	fleet_restart
	job_done 60
	accepted
	stop_agent
	fleet_kill TERM "$DAEMON_PID"
	umount "$FLEET/state"
else
	seen="$seen (no file system of our own here)"
fi
fleet_end
echo "gone and come back:$seen"
