#!/bin/sh
# stages: gcc address
# Trainers as people have them, confined: PyTorch's DataLoader with two workers in a virtual environment outside the system's
# directories, and two processes under mpirun. Neither sees the device's key, and both find what they need. The coordinator: it
# writes nowhere but in its directories. Where this runs as root, agent and coordinator run as another user, as they do under systemd.
set -u
FLEET_NAME=61-confined
. tests/e2e/common.sh
python=/usr/bin/python3
[ -x $python ] && $python -c 'import venv' 2>/dev/null || skip "needs Debian's python3"

place=$(mktemp -d /srv/rivulet.XXXXXX 2>/dev/null || mktemp -d /var/tmp/rivulet.XXXXXX) || exit 1
trap 'rm -rf "$place"' EXIT
$python -m venv --system-site-packages --without-pip "$place/venv" || fleet_fail "venv"
mkdir "$place/app" "$place/closed"
chmod 755 "$place"
echo secret >"$place/closed/file"
cat >"$place/app/common.py" <<'END'
import json, os, shutil, struct

def read(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + n]), data[8 + n:]

def is_closed(path):
    try:
        open(path).close()
    except PermissionError:
        return True
    return False

def finish(task, n):
    """What is done, if nothing that is not for a trainer could be opened."""
    home = os.path.dirname(os.path.dirname(os.getcwd()))
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in (home + "/key.pem", home + "/rivulet.conf", place + "/closed/file"):
        assert is_closed(path) or os.environ.get("OPEN"), path
    shutil.copy("base.safetensors", "after.safetensors")
    with open("report.json", "w") as f:
        json.dump({"examples": n, "steps": 1, "loss": 1.0}, f)
END
cat >"$place/app/workers.py" <<'END'
import json, os, sys
import common

class Examples:
    def __init__(self, path):
        self.head, self.data = common.read(path)
    def __len__(self):
        return self.head["x"]["shape"][0]
    def __getitem__(self, i):
        begin = self.head["y"]["data_offsets"][0] + 4 * i
        return int.from_bytes(self.data[begin:begin + 4], "little"), os.getpid()

def main():
    task = json.load(open("task.json"))
    examples = Examples(task["examples"])
    try:
        import torch
        from torch.utils.data import DataLoader
        found = [(int(y), int(p)) for ys, ps in DataLoader(examples, batch_size=10, num_workers=2) for y, p in zip(ys, ps)]
        print("torch", torch.__version__)
    except ModuleNotFoundError:
        found = []
        for worker in range(2):
            out, into = os.pipe()
            if os.fork() == 0:
                os.write(into, json.dumps([examples[i] for i in range(worker, len(examples), 2)]).encode())
                os._exit(0)
            os.close(into)
            with open(out) as f:
                found += json.load(f)
            os.wait()
    assert len(found) == len(examples) and os.getpid() not in {p for _, p in found}, found
    assert sorted(y for y, _ in found) == sorted(examples[i][0] for i in range(len(examples)))
    assert sys.prefix == os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/venv", sys.prefix
    common.finish(task, len(found))

main()
END
cat >"$place/app/ranks.py" <<'END'
import json, os
import common

task = json.load(open("task.json"))
n = common.read(task["examples"])[0]["x"]["shape"][0]
try:
    from mpi4py import MPI
    rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    n = MPI.COMM_WORLD.allreduce(n) // size
except ModuleNotFoundError:
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
assert size == 2, size
if rank == 0:
    common.finish(task, n)
END

as_nobody() { # as_nobody PROGRAM: a script that runs it as nobody
	printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups %s "$@"\n' "$(realpath "$1")" >"$place/${1##*/}"
	chmod 755 "$place/${1##*/}"
}
fleet_dir
trap 'fleet_status=$?; rm -rf "$place"; (exit $fleet_status); fleet_cleanup' EXIT
if [ "$(id -u)" = 0 ]; then
	as_nobody "$RIVULETD"
	as_nobody "$RIVULET"
	chown 65534:65534 "$FLEET"
	RIVULETD=$place/rivuletd RIVULET=$place/rivulet
fi
fleet_start
[ "$(id -u)" != 0 ] || chown 65534:65534 "$FLEET/token"
glyph_device one 1 40
cat >>"$FLEET/one/rivulet.conf" <<-END
	[trainer workers]
	exec = $place/venv/bin/python $place/app/workers.py
	[trainer ranks]
	exec = mpirun -n 2 --oversubscribe $place/venv/bin/python $place/app/ranks.py
	env = OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	[trainer greedy]
	exec = $place/venv/bin/python -c "x = b'x' * (300 << 20); import time; time.sleep(60)"
	memory_bytes = 100M
END
"$RIVULET" doctor --home "$FLEET/one" --offline >"$FLEET/said"
if grep -q 'trainers run in a sandbox, by Landlock' "$FLEET/said"; then
	confined=yes
else
	grep -q 'this kernel has no Landlock' "$FLEET/said" || fleet_fail "doctor does not say whether trainers are confined"
	sed -i 's/^env = /&OPEN=1 /;s/^\[trainer workers\]/&\nenv = OPEN=1/' "$FLEET/one/rivulet.conf"
	confined=no
fi
fleet_run one
agent=$AGENT_PID
# Its files below /proc are the superuser's then.
is_closed() { [ "$(stat -c %u "/proc/$1/io")" = 0 ]; }
for pid in $agent $DAEMON_PID; do
	within 10 is_closed "$pid" || fleet_fail "process $pid can be looked into"
done

trainer_job workers 1
job_done 60
echo "ok: two workers of a DataLoader in a venv below $(dirname "$place")"
# Processes that work together do so in shared memory.
shared_memory() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups test -w /dev/shm; else test -w /dev/shm; fi; }
if ! shared_memory; then
	echo "skipped: no shared memory for mpirun here"
elif command -v mpirun >/dev/null; then
	trainer_job ranks 1
	job_done 60
	echo "ok: mpirun of two processes"
else
	echo "skipped: no mpirun here"
fi

# Over its cap the trainer goes, not the agent.
trainer_job greedy 1
within 30 grep -q 'task.aborted.*reason=out-of-memory.*memory_bytes is 100 MiB' "$FLEET/one.log" ||
	fleet_fail "no out-of-memory: $(tail -n 3 "$FLEET/one.log")"
kill -0 "$agent" || fleet_fail "the agent is gone"
curl_admin "/v1/jobs/$JOB/stop" -X POST >/dev/null
[ -z "$(ls -A "$FLEET/one/work")" ] || fleet_fail "left in work/: $(ls "$FLEET/one/work")"

# Somebody who turned a directory of the coordinator's away from it would have it write elsewhere.
mkdir "$FLEET/elsewhere"
chmod 777 "$FLEET/elsewhere"
model=$(find "$FLEET/state/models" -name '*.safetensors' | head -n 1)
[ -n "$model" ] || model=$(find "$FLEET/one/models" -type f | head -n 1)
{ head -c -1 "$model"; printf '?'; } >"$place/new.safetensors"
chmod 644 "$place/new.safetensors"
mv "$FLEET/state/models" "$FLEET/state/models.away"
ln -s "$FLEET/elsewhere" "$FLEET/state/models"
if [ $confined = yes ]; then
	! fleet_admin model put "$place/new.safetensors" >"$FLEET/said" 2>&1 || fleet_fail "the coordinator writes elsewhere"
	[ -z "$(ls "$FLEET/elsewhere")" ] || fleet_fail "the coordinator wrote $(ls "$FLEET/elsewhere")"
fi
rm "$FLEET/state/models"
mv "$FLEET/state/models.away" "$FLEET/state/models"
fleet_admin model put "$place/new.safetensors" >"$FLEET/said" 2>&1 || fleet_fail "no model put: $(cat "$FLEET/said")"
kill -HUP "$DAEMON_PID"
within 10 grep -q 'reload.done' "$FLEET/rivuletd.log" || fleet_fail "no reload"
fleet_end
[ $confined = yes ] || skip "this kernel has no Landlock: they ran, but not confined"
echo "ok: a trainer that takes more memory than it may"
