#!/bin/sh
# stages: gcc address
# A trainer that tries everything against the agent whose user it has (tests/tools/hostile_trainer.c): of the agent's nothing is read,
# changed or signalled, and nothing that it leaves stays. Then programs as people have them, which the same confinement lets live.
# Where this runs as root, the agent runs as another user, as under systemd. TORCH=PYTHON names one with PyTorch.
set -u
FLEET_NAME=69-hostile-trainer
. tests/e2e/common.sh
hostile=$(realpath "$BUILD/tests/tools/hostile_trainer" 2>/dev/null) && [ -x "$hostile" ] || skip "needs hostile_trainer"
python=/usr/bin/python3
[ -x $python ] || skip "needs Debian's python3"

place=$(mktemp -d /srv/rivulet.XXXXXX 2>/dev/null || mktemp -d /var/tmp/rivulet.XXXXXX) || exit 1
other=/dev/shm/rivulet-other-$$
fleet_dir
listener=
trap 'fleet_status=$?; rm -rf "$place" $other /dev/shm/rivulet-hostile-$$ /dev/shm/rivulet-hostile-$$.d; kill $listener 2>/dev/null; (exit $fleet_status); fleet_cleanup' EXIT
mkdir "$place/bin" "$place/out"
cp "$hostile" "$place/bin/hostile_trainer"
chmod 755 "$place" "$place/bin"
as_nobody() { # as_nobody PROGRAM: a script that runs it as nobody
	printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups %s "$@"\n' "$(realpath "$1")" >"$place/${1##*/}"
	chmod 755 "$place/${1##*/}"
}
if [ "$(id -u)" = 0 ]; then
	as_nobody "$RIVULETD"
	as_nobody "$RIVULET"
	chown 65534:65534 "$FLEET" "$place/out"
	RIVULETD=$place/rivuletd RIVULET=$place/rivulet
fi

cat >"$place/bin/still.py" <<'END'
"""What programs do that confinement must not break."""
import json, multiprocessing, os, shutil, stat, struct, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory

def worker(n):
    return n * n

def cache():
    """As huggingface_hub has it: blobs, links to them, and moves within the cache."""
    root = os.path.join(os.environ["HOME"], ".cache/hub/models--x")
    for name in ("blobs", "snapshots/1", "refs"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    part = os.path.join(root, "blobs", "abc.incomplete")
    with open(part, "w") as f:
        f.write("weights")
    os.replace(part, os.path.join(root, "blobs", "abc"))
    link = os.path.join(root, "snapshots/1/model")
    if not os.path.lexists(link):
        os.symlink("../../blobs/abc", link)
    assert open(link).read() == "weights"
    # Triton moves from a directory of its own into its parent.
    with tempfile.TemporaryDirectory(dir=root) as d:
        with open(os.path.join(d, "kernel"), "w") as f:
            f.write("code")
        os.replace(os.path.join(d, "kernel"), os.path.join(root, "kernel"))

def files():
    shutil.copy2("base.safetensors", "after.safetensors")
    shutil.copytree(os.path.dirname(json.__file__), "copied")
    os.chmod("task.json", 0o640)
    os.utime("task.json", (1, 1))
    with open("task.json") as f:
        os.fchmod(f.fileno(), 0o640)
        assert stat.S_IMODE(os.fstat(f.fileno()).st_mode) == 0o640
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"x")

def processes():
    os.nice(1)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))
    t = threading.Thread(target=lambda: None)
    t.start()
    t.join()
    with multiprocessing.Pool(2) as pool:
        assert pool.map(worker, range(10)) == [n * n for n in range(10)]
    m = shared_memory.SharedMemory(create=True, size=1 << 20)
    m.buf[0] = 1
    m.close()
    m.unlink()
    assert subprocess.run(["sh", "-c", "ulimit -n; exit 3"], stdout=subprocess.DEVNULL).returncode == 3

def torch_too():
    try:
        import torch
    except ModuleNotFoundError:
        return "no PyTorch"
    from torch.utils.data import DataLoader
    assert sum(int(b.sum()) for b in DataLoader(range(100), batch_size=10, num_workers=2)) == 4950
    layer = torch.nn.Linear(4, 4)
    compiled = torch.compile(layer)
    x = torch.ones(3, 4)
    assert torch.allclose(compiled(x), layer(x), atol=1e-5)
    return "PyTorch %s" % torch.__version__

if __name__ == "__main__":
    cache()
    files()
    # Semaphores and shared memory are files there; in a bare root it is not for everybody.
    if os.access("/dev/shm", os.W_OK):
        processes()
    said = torch_too()
    with open("report.json", "w") as f:
        json.dump({"examples": 40, "steps": 1, "loss": 1.0}, f)
    with open(sys.argv[1], "w") as f:
        f.write(said + "\n")
END
cat >"$place/bin/bound.c" <<'END'
#include <omp.h>
#include <stdio.h>
int
main(void)
{
	int n = 0;
#pragma omp parallel reduction(+ : n)
	n++;
	printf("%d\n", n);
	return n == 2 ? 0 : 1;
}
END
cat >"$place/bin/leave" <<'END'
#!/bin/sh
# leave COMMAND...: a good report, if the command is well. Of several at once, the first leaves it.
"$@" || exit 1
[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exit 0
cp base.safetensors after.safetensors && echo '{"examples": 40, "steps": 1, "loss": 1.0}' >report.json
END
chmod 755 "$place/bin/leave"

job_by() { # job_by TRAINER ROUNDS
	trainer_job "$1" "$2"
	job_done 120
}

fleet_start
[ "$(id -u)" != 0 ] || chown 65534:65534 "$FLEET/token"
glyph_device one 1 40
home=$FLEET/one
cat >>"$home/rivulet.conf" <<-END
	[trainer hostile]
	exec = $place/bin/hostile_trainer $place/target $place/out/results
	write = $place/out
	[trainer still]
	exec = ${TORCH:-$python} $place/bin/still.py $place/out/still
	write = $place/out
	[trainer bound]
	exec = $place/bin/leave $place/bin/bound
	env = OMP_PROC_BIND=close OMP_NUM_THREADS=2
	[trainer ranks]
	exec = mpirun -n 2 --bind-to core --oversubscribe $place/bin/leave true
	env = OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
END
"$RIVULET" doctor --home "$home" --offline >"$FLEET/said"
grep -q 'trainers run in a sandbox, by Landlock' "$FLEET/said" || skip "this kernel has no Landlock"
grep -q 'through seccomp filters' "$FLEET/said" || skip "this kernel has no seccomp filters"
landlock=$(sed -n 's/.*by Landlock \([0-9]*\).*/\1/p' "$FLEET/said")
fleet_run one
agent=$AGENT_PID

# Somebody else's, of the same user.
socket=rivulet-hostile-$$
python3 -S -c "import socket, time
s = socket.socket(socket.AF_UNIX)
s.bind('\\0$socket')
s.listen()
time.sleep(3600)" &
listener=$!
echo other >$other
[ "$(id -u)" != 0 ] || chown 65534:65534 $other
echo "$agent $(ps -o pgid= -p "$agent" | tr -d ' ') $socket $landlock" >"$place/target"
chmod 644 "$place/target"

# What is the agent's, as it is: files with all that can be said of them; its process.
state() {
	for f in . key.pem cert.pem ca.pem device.json rivulet.conf outbox models; do
		stat -c '%n %a %u %g %i' "$home/$f"
	done
	for f in key.pem cert.pem ca.pem device.json rivulet.conf; do
		stat -c '%n %s %y %h' "$home/$f"
		sha256sum "$home/$f"
		python3 -S -c 'import os, sys; print(os.listxattr(sys.argv[1]))' "$home/$f"
	done
	cat "/proc/$agent/limits" "/proc/$agent/oom_score_adj" "/proc/$agent/timerslack_ns" "/proc/$agent/coredump_filter"
	cut -d ' ' -f 4,5,6,18,19,40,41 "/proc/$agent/stat"
	grep -E '^(Name|Cpus_allowed|Mems_allowed|TracerPid|State.*T)' "/proc/$agent/status"
	ionice -p "$agent"
	ls "$home" | grep -vxE 'last|work|trainers|examples|transferred'
}
within 20 test -d "$home/models" || fleet_fail "no models"
state >"$FLEET/before"
job_by hostile 2
state >"$FLEET/after"
cp "$place/out/results" "$FLEET/results" || fleet_fail "no results"
# Before Linux 6.12 signals and abstract sockets are not Landlock's: such attacks are named, and the others count.
[ "$landlock" -ge 6 ] || echo "skipped: signals and abstract sockets, for Landlock is $landlock here"
if grep SUCCEEDED "$FLEET/results"; then
	fleet_fail "a trainer got what it should not"
fi
attacks=$(sed -n 's/ attacks$//p' "$FLEET/results")
[ "$attacks" -ge 60 ] || fleet_fail "$attacks attacks"
cmp -s "$FLEET/before" "$FLEET/after" || fleet_fail "not as it was: $(diff "$FLEET/before" "$FLEET/after")"
[ -z "$(ls -A "$home/work")" ] || fleet_fail "left in work/: $(ls "$home/work")"
# As soon as no other trainer lives on this machine.
within 60 test ! -e /dev/shm/$socket -a ! -e /dev/shm/$socket.d || fleet_fail "left in /dev/shm: $(ls /dev/shm)"
[ "$(cat $other)" = other ] || fleet_fail "another's file in /dev/shm is gone"
! pgrep -f "$place/bin/hostile_trainer" >/dev/null || fleet_fail "a process of the trainer lives on"
echo "ok: $attacks attacks"

job_by still 2
echo "ok: files, caches, processes, shared memory, $(cat "$place/out/still")"
if command -v cc >/dev/null && cc -fopenmp -o "$place/bin/bound" "$place/bin/bound.c" 2>/dev/null; then
	job_by bound 1
	echo "ok: OMP_PROC_BIND=close"
else
	echo "skipped: no compiler with OpenMP here"
fi
if command -v mpirun >/dev/null; then
	job_by ranks 1
	echo "ok: mpirun of two bound processes"
else
	echo "skipped: no mpirun here"
fi
kill -0 "$agent" || fleet_fail "the agent is gone"
fleet_end
