#!/bin/sh
# stages: gcc address
# Trainers with a user of their own (docs/security.md): agents run as users of this test, rivulet-trainer is one, too, and all of them
# are known in a mount namespace of its own alone, where /var/lib is empty. With Landlock and seccomp (confine = yes) and without, what
# is the agent's cannot be reached; what trainers leave goes, whatever it is; no trainer outlives its agent, however that ends.
set -u
FLEET_NAME=691-trainer-user
. tests/e2e/common.sh
[ "$(id -u)" = 0 ] || skip "needs the superuser"
for tool in unshare setpriv pgrep; do
	command -v $tool >/dev/null || skip "needs $tool"
done
python=/usr/bin/python3
[ -x $python ] || skip "needs Debian's python3"
if [ -z "${TRAINER_USER_INSIDE:-}" ]; then
	unshare -m true 2>/dev/null || skip "needs mount namespaces"
	rm -rf "${FLEET_LINES:-}"
	TRAINER_USER_INSIDE=yes exec unshare -m --propagation private "$0"
fi

place=$(mktemp -d /srv/rivulet.XXXXXX 2>/dev/null || mktemp -d /var/tmp/rivulet.XXXXXX) || exit 1
chmod 755 "$place"
mkdir "$place/bin" "$place/out" "$place/sockets" "$place/etc"
fleet_dir
listener=
trap 'fleet_status=$?; rm -rf "$place" /dev/shm/rivulet-left-$$; kill $listener 2>/dev/null; (exit $fleet_status); fleet_cleanup' EXIT
trainer=$(id -u rivulet-trainer 2>/dev/null) || trainer=64100
group=$(id -g rivulet-trainer 2>/dev/null) || group=64100
one=64101 two=64102
{
	grep -vE '^(rivulet-trainer|rivulet-test-.*):' /etc/passwd
	echo "rivulet-trainer:x:$trainer:$group::/:/usr/sbin/nologin"
	echo "rivulet-test-one:x:$one:$one::/:/usr/sbin/nologin"
	echo "rivulet-test-two:x:$two:$two::/:/usr/sbin/nologin"
} >"$place/etc/passwd"
{
	grep -vE '^(rivulet-trainer|rivulet-test-.*|video):' /etc/group
	printf '%s\n' "rivulet-trainer:x:$group:" "rivulet-test-one:x:$one:" "rivulet-test-two:x:$two:" "video:x:64103:" "rivulet-test-more:x:64104:"
} >"$place/etc/group"
cp "$place/etc/passwd" "$place/etc/passwd.whole"
mount --bind "$place/etc/passwd" /etc/passwd && mount --bind "$place/etc/group" /etc/group && mount -t tmpfs -o mode=755 none /var/lib ||
	skip "needs to mount"
state=/var/lib/rivulet-trainer
mkdir $state
for n in one two; do
	mkdir -m 750 $state/rivulet-test-$n
	eval "chown \$$n:$group $state/rivulet-test-$n"
done

# as NAME USER PROGRAM [RIGHTS]: a script that runs it as that user, in the groups that the drop-in gives; "run" with its capabilities
as() {
	cat >"$place/$1" <<-END
		#!/bin/sh
		set -- $(realpath "$3") "\$@"
		rights=-all
		[ "\$2" != run ] || rights=${4:--all}
		exec setpriv --no-new-privs --reuid=$2 --regid=$2 --groups=${GROUPS_OF:-$group,64103,64104} --inh-caps=\$rights --ambient-caps=\$rights --bounding-set=\$rights "\$@"
	END
	chmod 755 "$place/$1"
}
rights=-all,+setuid,+setgid,+kill
as rivuletd $one "$RIVULETD"
as rivulet $one "$RIVULET" $rights
as rivulet-two $two "$RIVULET" $rights
as rivulet-bare $one "$RIVULET"
GROUPS_OF=64103 as rivulet-alone $one "$RIVULET" $rights
cp "$BUILD/rivulet" "$place/bin/rivulet"
program=$(realpath "$BUILD/rivulet")
RIVULETD=$place/rivuletd RIVULET=$place/rivulet
chown $one:$one "$FLEET"
chmod 711 "$FLEET"
chown "$trainer:$group" "$place/out"
chown $one:$one "$place/sockets"

cat >"$place/bin/attack.py" <<'END'
"""attack.py TARGET RESULTS: everything raises that is not for a trainer."""
import ctypes, json, multiprocessing, os, shutil, signal, socket, subprocess, sys, tempfile
target = json.load(open(sys.argv[1]))
results = open(sys.argv[2], "w")
home, agent, spawner = target["home"], target["agent"], os.getppid()
libc = ctypes.CDLL(None, use_errno=True)
attacks = 0

def fails(name, attack):
    global attacks
    attacks += 1
    try:
        said = attack()
    except OSError as e:
        print("%s: failed, %s" % (name, e.strerror), file=results)
    else:
        print("%s: %s" % (name, "void" if said == "void" else "SUCCEEDED %r" % (said,)), file=results)

def call(name, *words):
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def void(attack):
    """Under seccomp it is answered as if it was done: whoever looks says whether it was."""
    attack()
    return "void"

def connect(name):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.path.join(target["sockets"], name))

task, given = os.getcwd(), os.path.dirname(os.path.realpath("base.safetensors"))
work = os.path.dirname(task)
for path in (home, home + "/key.pem", home + "/rivulet.conf", home + "/outbox", home + "/work"):
    fails("open " + path, lambda: os.open(path, os.O_RDONLY))
    fails("list " + path, lambda: os.listdir(path))
    fails("stat below " + path, lambda: os.stat(path + "/none" if path == home else path))
    fails("write " + path, lambda: os.open(path, os.O_WRONLY))
    fails("chmod " + path, lambda: void(lambda: os.chmod(path, 0o777)))
    fails("chown " + path, lambda: void(lambda: os.chown(path, os.getuid(), -1)))
    fails("utime " + path, lambda: void(lambda: os.utime(path)))
    fails("unlink " + path, lambda: os.unlink(path))
    fails("rename " + path, lambda: os.rename(path, "mine"))
    fails("link " + path, lambda: os.link(path, "mine2"))
for pid in (agent, spawner, target["pool"]):
    for sig in (0, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL):
        fails("signal %d to %d" % (sig, pid), lambda: os.kill(pid, sig))
    for name in ("environ", "mem", "maps", "fd/3", "cwd/key.pem", "root" + home + "/key.pem", "stack", "io"):
        fails("read /proc/%d/%s" % (pid, name), lambda: os.read(os.open("/proc/%d/%s" % (pid, name), os.O_RDONLY), 1) or "")
    for name in ("oom_score_adj", "mem", "coredump_filter", "comm", "clear_refs"):
        fails("write /proc/%d/%s" % (pid, name), lambda: os.open("/proc/%d/%s" % (pid, name), os.O_WRONLY))
    fails("list /proc/%d/fd" % pid, lambda: os.listdir("/proc/%d/fd" % pid))
    fails("ptrace %d" % pid, lambda: call("ptrace", 16, pid, 0, 0))
    fails("setpriority %d" % pid, lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    fails("affinity of %d" % pid, lambda: void(lambda: os.sched_setaffinity(pid, {0})))
fails("signal to the agent's group", lambda: os.killpg(os.getpgid(agent), 0))
for name in ("0600", "0700"):
    fails("connect to a socket of mode " + name, lambda: connect(name))
for name, words in (("setuid", (target["uid"],)), ("setgid", (target["uid"],)), ("setuid", (0,)), ("setgid", (0,)), ("seteuid", (target["uid"],)),
        ("setresuid", (-1, target["uid"], -1)), ("setresgid", (-1, target["uid"], -1)), ("setgroups", (0, None)),
        ("setreuid", (-1, target["uid"]))):
    fails("%s%r" % (name, words), lambda: call(name, *words))
fails("a lock on the agent's directory", lambda: os.open(target["place"] + "/new", os.O_CREAT | os.O_WRONLY))
fails("make beside the tasks", lambda: os.mkdir(work + "/mine"))
fails("rename the task", lambda: os.rename(task, work + "/away"))
fails("remove the task", lambda: os.rmdir(task))
fails("chmod the task's directory", lambda: void(lambda: os.chmod(task, 0o777)))
fails("make beside the caches", lambda: os.mkdir(os.path.dirname(os.environ["HOME"]) + "/mine"))
fails("rename the cache", lambda: os.rename(os.environ["HOME"], os.environ["HOME"] + ".away"))
fails("write to the base", lambda: os.open("base.safetensors", os.O_WRONLY))
fails("remove the base", lambda: os.unlink(os.path.join(given, "base.safetensors")))
fails("make beside the base", lambda: os.open(os.path.join(given, "new"), os.O_CREAT | os.O_WRONLY))
fails("remove of another agent", lambda: os.rmdir(os.path.dirname(target["place"]) + "/rivulet-test-two"))
fails("a user's file of a group not for it", lambda: os.open(target["more"], os.O_RDONLY))
print("%d attacks" % attacks, file=results)
results.close()
shutil.copyfile("/proc/self/status", sys.argv[2] + ".status")

# What it needs: a home, files with modes of its own.
assert os.stat(os.environ["HOME"]).st_mode & 0o070 and os.environ["USER"] == "rivulet-trainer"
with open(os.path.join(os.environ["HOME"], "cached"), "a") as f:
    f.write("once more\n")
assert os.environ["TMPDIR"].startswith(os.environ["HOME"]) and not os.listdir(os.environ["TMPDIR"])
# As huggingface_hub has its cache, and Triton its own.
hub = os.path.join(os.environ["HOME"], "hub")
for name in ("blobs", "snapshots/1"):
    os.makedirs(os.path.join(hub, name), exist_ok=True)
open(hub + "/blobs/abc.incomplete", "w").close()
os.replace(hub + "/blobs/abc.incomplete", hub + "/blobs/abc")
if not os.path.lexists(hub + "/snapshots/1/model"):
    os.symlink("../../blobs/abc", hub + "/snapshots/1/model")
open(hub + "/snapshots/1/model").close()
with tempfile.TemporaryDirectory(dir=hub) as d:
    open(d + "/kernel", "w").close()
    os.replace(d + "/kernel", hub + "/kernel")
# Semaphores of processes that work together are files there.
if os.access("/dev/shm", os.W_OK):
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, range(-9, 0)) == list(range(9, 0, -1))
assert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3
shutil.copy2("base.safetensors", "after.safetensors")
fd, name = tempfile.mkstemp(dir=".")
with os.fdopen(fd, "w") as f:
    json.dump({"examples": 40, "steps": 1, "loss": 1.0}, f)
os.replace(name, "report.json")

def leave(where):
    os.makedirs(where + "/closed/inner")
    open(where + "/closed/inner/file", "w").close()
    at = os.open(where, os.O_RDONLY)
    # Landlock looks at all directories above.
    for i in range(3000 if sys.argv[2].endswith("free") else 300):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        if i % 5 == 4:
            os.fchmod(at, 0)
        os.close(at)
        at = below
    inner = os.open(where + "/closed", os.O_RDONLY)
    os.fchmod(inner, 0)
    os.symlink(home, where + "/to-home")
    os.mkfifo(where + "/pipe", 0)

leave(os.path.join(os.environ["TMPDIR"], "left"))
leave("left")
open(target["left"], "w").close()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
END
cat >"$place/bin/stays.py" <<'END'
"""stays.py MARK: never ends by itself, nor when it is asked to."""
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.makedirs("left/closed")
os.chmod("left/closed", 0)
if os.fork() == 0:
    os.setsid()
with open(sys.argv[1], "a") as f:
    f.write("%d\n" % os.getpid())
while True:
    signal.pause()
END
# A trainer that fails is tried again for ever.
done_by() { # done_by TRAINER ROUNDS
	trainer_job "$1" "$2"
	within 60 eval "job_is_done || grep -q task.aborted $FLEET/one.log"
	job_is_done || fleet_fail "$1: $(grep task.aborted "$FLEET/one.log")"
}
none_left() { ! pgrep -f "$place/bin/$1" >/dev/null; }
work_empty() { [ -z "$(ls -A $state/rivulet-test-one/work)" ]; }
stop_job() { curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null; }
status() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" | tr '\t' ' '; }
no_rights() { # no_rights PID
	for set in CapInh CapPrm CapEff CapAmb; do
		[ "$(status "$1" $set)" = 0000000000000000 ] || fleet_fail "process $1: $set is $(status "$1" $set)"
	done
}

fleet_start
chown $one:$one "$FLEET/token"
mkdir -m 700 "$FLEET/one" "$FLEET/two"
chown $one:$one "$FLEET/one"
chown $two:$two "$FLEET/two"
glyph_device one 1 40
home=$FLEET/one
cat >>"$home/rivulet.conf" <<-END
	[trainer bound]
	exec = $python $place/bin/attack.py $place/target $place/out/bound
	write = $place/out
	[trainer free]
	exec = $python $place/bin/attack.py $place/target $place/out/free
	confine = no
	[trainer hostile]
	exec = $place/bin/hostile_trainer $place/target.hostile $place/out/hostile
	write = $place/out
	[trainer stays]
	exec = $python $place/bin/stays.py $place/out/stays
	write = $place/out
	grace_s = 1
	[trainer keeps]
	exec = $place/bin/rivulet trainer
	persistent = yes
	[trainer greedy]
	exec = $python -c "x = b'x' * (300 << 20); import time; time.sleep(60)"
	memory_bytes = 100M
END

# --- what is missing stops it, with what to do
refused() { # refused PROGRAM WORDS
	rc=0
	"$1" run --home "$home" --trainer-user >"$FLEET/said" 2>&1 || rc=$?
	[ $rc = 78 ] && grep -q "$2" "$FLEET/said" && grep -q 'trainer-user.conf' "$FLEET/said" || fleet_fail "$1: $rc, $(cat "$FLEET/said")"
}
refused "$place/rivulet-bare" 'CAP_SETUID, CAP_SETGID and CAP_KILL were not given'
refused "$place/rivulet-alone" "not in the group $group"
refused "$program" "superuser"
grep -v '^rivulet-trainer:' "$place/etc/passwd.whole" >"$place/etc/passwd"
refused "$RIVULET" 'no user rivulet-trainer'
sed "s/^rivulet-trainer:x:$trainer:$group/rivulet-trainer:x:0:0/" "$place/etc/passwd.whole" >"$place/etc/passwd"
refused "$RIVULET" 'superuser'
sed "s/^rivulet-trainer:x:$trainer:$group/rivulet-trainer:x:$one:$group/" "$place/etc/passwd.whole" >"$place/etc/passwd"
refused "$RIVULET" 'user or group of this process'
cat "$place/etc/passwd.whole" >"$place/etc/passwd"
chmod 770 $state/rivulet-test-one
refused "$RIVULET" 'mode 0770'
chmod 750 $state/rivulet-test-one
chown $one:$one $state/rivulet-test-one
refused "$RIVULET" "group $one"
chown $one:$group $state/rivulet-test-one
chmod 777 $state
refused "$RIVULET" 'nobody else may change'
chmod 755 $state
mv $state/rivulet-test-one $state/away
refused "$RIVULET" 'No such file'
ln -s away $state/rivulet-test-one
refused "$RIVULET" "$state/rivulet-test-one"
rm $state/rivulet-test-one
mv $state/away $state/rivulet-test-one
echo "ok: what is missing is named at the start"

chmod 755 "$home"
rc=0
"$RIVULET" run --home "$home" --trainer-user >"$FLEET/said" 2>&1 || rc=$?
[ $rc = 78 ] && grep -q 'chmod 700' "$FLEET/said" || fleet_fail "an open home: $rc, $(cat "$FLEET/said")"
chmod 700 "$home"

# --- who has which rights
fleet_run one --trainer-user
agent=$AGENT_PID
within 20 grep -q ' started ' "$FLEET/one.log" || fleet_fail "not started"
pool=$(pgrep -P "$agent" | head -n 1)
[ "$(status "$agent" Uid)" = "$one $one $one $one" ] && [ "$(status "$agent" NoNewPrivs)" = 1 ] || fleet_fail "the agent is $(status "$agent" Uid)"
no_rights "$agent"
for pid in $pool $(pgrep -P "$pool"); do
	for set in CapInh:0000000000000000 CapPrm:00000000000000e0 CapEff:00000000000000e0 CapAmb:0000000000000000; do
		[ "$(status "$pid" ${set%:*})" = ${set#*:} ] || fleet_fail "process $pid: ${set%:*} is $(status "$pid" ${set%:*})"
	done
done
"$RIVULET" doctor --home "$home" --offline >"$FLEET/said"
grep -q 'trainers have a user of their own' "$FLEET/said" || fleet_fail "doctor: $(cat "$FLEET/said")"

# --- a hostile trainer
$python -S -c "import os, socket, sys, time
os.setgid($one)
os.setuid($one)
for mode in ('0600', '0700'):
    s = socket.socket(socket.AF_UNIX)
    s.bind('$place/sockets/' + mode)
    os.chmod('$place/sockets/' + mode, int(mode, 8))
    s.listen()
    globals()['s' + mode] = s
time.sleep(3600)" &
listener=$!
within 10 test -S "$place/sockets/0700" || fleet_fail "no sockets"
echo more >"$place/more"
chown 0:64104 "$place/more"
chmod 640 "$place/more"
left=/dev/shm/rivulet-left-$$
[ -k /dev/shm ] || left=$place/out/left
echo "{\"home\": \"$home\", \"agent\": $agent, \"pool\": $pool, \"uid\": $one, \"sockets\": \"$place/sockets\", \"more\": \"$place/more\", \"place\": \"$state/rivulet-test-one\", \"left\": \"$left\"}" >"$place/target"
hostile=
if [ -x "$BUILD/tests/tools/hostile_trainer" ] && grep -q 'through seccomp filters' "$FLEET/said" && grep -q 'in a sandbox, by Landlock' "$FLEET/said"; then
	hostile=hostile
	cp "$BUILD/tests/tools/hostile_trainer" "$place/bin"
	landlock=$(sed -n 's/.*by Landlock \([0-9]*\).*/\1/p' "$FLEET/said")
	echo "$agent $(ps -o pgid= -p "$agent" | tr -d ' ') none $landlock $home" >"$place/target.hostile"
else
	echo "skipped: hostile_trainer, for this kernel has no Landlock or no seccomp filters, or it was not built"
fi
snapshot() {
	for f in . key.pem cert.pem ca.pem device.json rivulet.conf outbox; do
		stat -c '%n %a %u %g %i' "$home/$f"
	done
	for f in key.pem cert.pem ca.pem device.json rivulet.conf; do
		stat -c '%n %s %y %h' "$home/$f"
		sha256sum "$home/$f"
	done
	cat "/proc/$agent/limits" "/proc/$agent/oom_score_adj"
	cut -d ' ' -f 4,5,6,18,19,40,41 "/proc/$agent/stat"
	grep -E '^(Name|Cpus_allowed|TracerPid)' "/proc/$agent/status"
	stat -c '%n %a %u %g %i' $state/rivulet-test-one $state/rivulet-test-one/*
}
snapshot >"$FLEET/before"
for how in free bound $hostile; do
	done_by $how $([ $how = hostile ] && echo 1 || echo 2)
	[ -s "$place/out/$how" ] || fleet_fail "no results of $how"
	! grep SUCCEEDED "$place/out/$how" || fleet_fail "$how: a trainer got what it should not"
	[ "$(sed -n 's/ attacks$//p' "$place/out/$how")" -ge 120 ] || fleet_fail "$how: $(tail -n 1 "$place/out/$how")"
	[ $how != hostile ] || { echo "ok: $(tail -n 1 "$place/out/$how"), $how"; continue; }
	for set in "Uid:$trainer $trainer $trainer $trainer" "Gid:$group $group $group $group" "NoNewPrivs:1" "CapInh:0000000000000000" \
		"CapPrm:0000000000000000" "CapEff:0000000000000000" "CapAmb:0000000000000000" "Groups:64103 "; do
		[ "$(sed -n "s/^${set%%:*}:[[:space:]]*//p" "$place/out/$how.status" | tr '\t' ' ')" = "${set#*:}" ] ||
			fleet_fail "$how: $(grep "^${set%%:*}" "$place/out/$how.status")"
	done
	within 10 work_empty || fleet_fail "left in work/: $(ls $state/rivulet-test-one/work)"
	within 10 none_left attack.py || fleet_fail "a process of the trainer lives on"
	[ "$left" = "$place/out/left" ] || within 60 test ! -e "$left" || fleet_fail "left in /dev/shm"
	[ "$(wc -l <"$state/rivulet-test-one/trainers/$how/cached")" -ge 2 ] || fleet_fail "nothing cached"
	snapshot | grep -v /trainers >"$FLEET/after"
	grep -v /trainers "$FLEET/before" | cmp -s - "$FLEET/after" || fleet_fail "not as it was: $(diff "$FLEET/before" "$FLEET/after")"
	kill -0 "$agent" || fleet_fail "the agent is gone"
	echo "ok: $(tail -n 1 "$place/out/$how"), $how"
done
[ ! -e "$home/trainers" ] && [ ! -e "$home/work" ] || fleet_fail "something of trainers is in the home"

# --- one that stays from task to task, one that takes too much memory
done_by keeps 3
within 10 pgrep -u "$trainer" -f "$place/bin/rivulet trainer" >/dev/null || fleet_fail "it does not stay"
trainer_job greedy 1
within 30 grep -q 'task.aborted.*reason=out-of-memory.*memory_bytes is 100 MiB' "$FLEET/one.log" || fleet_fail "no out-of-memory"
stop_job
echo "ok: one that stays; out of memory"

# --- another agent of the machine, and another of the same user
running() { [ "$(cat "$place/out/stays" 2>/dev/null | wc -l)" -ge "$1" ]; }
trainer_job stays 1 first
within 20 running 2 || fleet_fail "no trainer"
refused "$RIVULET" 'in use'
cp "$FLEET/token" "$FLEET/token.two"
chown $two:$two "$FLEET/token.two"
(RIVULET=$place/rivulet-two FLEET_TOKEN=$FLEET/token.two glyph_device two 2 40) || exit 1
RIVULET=$place/rivulet-two
fleet_run two --trainer-user
RIVULET=$place/rivulet
within 20 grep -q ' started ' "$FLEET/two.log" || fleet_fail "not started"
fleet_kill TERM "$AGENT_PID"
for pid in $(cat "$place/out/stays"); do
	kill -0 "$pid" || fleet_fail "a trainer of another agent was ended"
done
! work_empty || fleet_fail "a directory of another agent was removed"
echo "ok: two agents"

# --- ends
fleet_kill TERM "$agent"
none_left stays.py || fleet_fail "a trainer outlives its agent"
work_empty || fleet_fail "left in work/: $(ls $state/rivulet-test-one/work)"
: >"$place/out/stays"
fleet_run one --trainer-user
within 20 running 2 || fleet_fail "no trainer"
fleet_kill KILL "$AGENT_PID"
within 10 none_left stays.py || fleet_fail "a trainer outlives its agent"
within 10 none_left 'rivulet trainer' || fleet_fail "a trainer outlives its agent"
! work_empty || fleet_fail "nothing was left by a killed agent"
stop_job
fleet_run one --trainer-user
within 20 work_empty || fleet_fail "left in work/ after a start: $(ls $state/rivulet-test-one/work)"
fleet_kill TERM "$AGENT_PID"
: >"$place/out/stays"
printf '[limits]\nseconds_per_round = 1\n' >>"$home/rivulet.conf"
late=$(grep -c 'task.aborted.*reason=deadline' "$FLEET/one.log")
fleet_run one --trainer-user
trainer_job stays 1 second
[ "$(log_lines $((late + 1)) "$FLEET/one.log" 'task.aborted.*reason=deadline')" -gt "$late" ] && running 2 || fleet_fail "no deadline"
stop_job
fleet_end
none_left stays.py || fleet_fail "a trainer outlives its agent"
echo "ok: asked to end, killed, late"
