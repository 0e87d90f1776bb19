"""Sites: the weights of a training that ranks divide are those of one device, by their SHA-256. One list of jobs, each trained by `rivulet train`, then
by worlds of every shape, of threads and, where Open MPI is, of processes of an ordinary user."""

import concurrent.futures
import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import time
import unittest
from typing import Any, Dict, List, Optional, Tuple

from fleet import RIVULET

BUILD = os.path.dirname(RIVULET)
TOOL = os.path.abspath(os.path.join(BUILD, "tests", "tools", "site_cases"))
USERS = ("rivulet-check", "nobody")  # the first is made by .ci/run
LIMIT_S = 60


def conv(name: str, out: int, **more: Any) -> Dict[str, Any]:
    return dict({"type": "conv2d", "name": name, "out": out, "kernel": 3, "padding": 1}, **more)


def linear(out: int, **more: Any) -> Dict[str, Any]:
    return dict({"type": "linear", "out": out}, **more)


RESIDUAL = [conv("c1", 4), {"type": "relu"}, {"type": "maxpool2d", "name": "p", "kernel": 4}, conv("c2", 4),
            {"type": "add", "inputs": ["c2", "p"]}, {"type": "relu"}, {"type": "dropout", "rate": 0.2}, {"type": "flatten"}, linear(24),
            {"type": "tanh"}, linear(10)]
NORMS = [conv("c1", 4), {"type": "batchnorm"}, {"type": "relu"}, {"type": "maxpool2d", "kernel": 4}, conv("c2", 6), {"type": "batchnorm", "name": "n2"},
         {"type": "relu"}, {"type": "flatten"}, linear(10)]
PLAIN = [{"type": "flatten"}, linear(24), {"type": "relu"}, linear(20), {"type": "relu"}, linear(16), {"type": "tanh"}, linear(10)]
GPT = [{"type": "embedding", "name": "e", "vocabulary": 256, "out": 16}, {"type": "positions"}, {"type": "dropout", "name": "d0", "rate": 0.1},
       {"type": "layernorm", "name": "n1"}, {"type": "attention", "name": "a1", "heads": 2, "causal": True},
       {"type": "add", "name": "r1", "inputs": ["a1", "d0"]}, {"type": "layernorm", "name": "n2"}, linear(32, name="m1"), {"type": "gelu"},
       linear(16, name="m2"), {"type": "add", "name": "r2", "inputs": ["m2", "r1"]}, {"type": "layernorm", "name": "n3"},
       linear(256, name="head", weights="e", bias=False)]
MOMENTUM = {"name": "sgd", "rate": 0.05, "momentum": 0.9}
ADAM = {"name": "adam", "rate": 0.003}

# A name says which shapes a job takes part in: replicas want groups, rings want a weight that the ends share, a batch norm is a chain.
Case = Tuple[str, List[Dict[str, Any]], Dict[str, Any], Dict[str, Any], int]


def cases() -> List[Case]:
    """Name, layers, local, parallel, examples. Micro-batches of 2: steps of 6 and 12, whose last one in an epoch has the rest."""
    six = {"micro_batch": 2, "groups": 6}
    found: List[Case] = [("plain", PLAIN, {"batch": 12, "optimizer": MOMENTUM}, {"micro_batch": 2}, 40),
                         ("residual", RESIDUAL, {"batch": 12, "optimizer": ADAM, "clip_norm": 0.5}, six, 41),
                         ("prox", RESIDUAL, {"batch": 12, "optimizer": MOMENTUM, "prox": 0.1, "clip_norm": 1}, six, 30),
                         ("norms", NORMS, {"batch": 12, "optimizer": ADAM}, {"micro_batch": 4}, 40),
                         ("accumulated", PLAIN, {"batch": 2, "accumulate": 6, "optimizer": ADAM}, {}, 40)]
    for rest in (1, 2, 5):
        found.append((f"rest-{rest}-of-6", PLAIN, {"batch": 12, "optimizer": ADAM}, six, 12 + 2 * rest))
    for rest in (5, 7):
        found.append((f"rest-{rest}-of-12", PLAIN, {"batch": 24, "optimizer": MOMENTUM, "clip_norm": 0.5}, six, 24 + 2 * rest - 1))
    found.append(("tied", GPT, {"batch": 12, "optimizer": ADAM, "clip_norm": 0.1}, {"micro_batch": 2}, 0))
    found.append(("text", GPT[:-1] + [linear(256, name="head", bias=False)], {"batch": 12, "optimizer": ADAM}, six, 0))
    found.append(("tied-runs", GPT, {"batch": 12, "optimizer": ADAM, "recompute": "blocks"}, six, 0))
    return found


def document(case: Case) -> Dict[str, Any]:
    name, layers, local, parallel, examples = case
    data = {"name": "digits", "shape": [1, 28, 28], "classes": 10} if examples else {"name": "text", "window": 8}
    return {"name": name, "model": {"layers": layers, "loss": "cross_entropy"}, "data": data,
            "local": dict({"epochs": 2 if examples else 1, "random": "counter"}, **local), "parallel": parallel, "round": {"goal": 1}}


def fits(case: Case, pipeline: int, replicas: int, ring: bool) -> bool:
    name, _, _, parallel, _ = case
    tied = name.startswith("tied")
    return (replicas == 1 or (parallel.get("groups", 1) > 1 and name != "norms")) and ring == (tied and pipeline > 1)


def tensors(path: str) -> str:
    """The SHA-256 of a file's tensors, by name."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(size))
        data = f.read()
    digest = hashlib.sha256()
    for name in sorted(n for n in head if n != "__metadata__"):
        first, end = head[name]["data_offsets"]
        digest.update(name.encode() + data[first:end])
    return digest.hexdigest()


def settle(task: str) -> None:
    """A task's directory that was copied: its files are its own."""
    path = os.path.join(task, "task.json")
    with open(path, encoding="utf-8") as f:
        told = json.load(f)
    for key in ("base", "examples", "local", "variates"):
        if key in told:
            told[key] = os.path.join(task, os.path.basename(told[key]))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(told, f)


def mpirun() -> Optional[str]:
    """Open MPI, if this build has a site's program."""
    return shutil.which("mpirun") if os.path.exists(os.path.join(BUILD, "rivulet-site")) else None


def rank_of(pid: str, task: str) -> Optional[Tuple[int, float]]:
    """A process's rank in the task's world, and MiB of memory that are its own."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as f:
            rank = re.search(r"(?:OMPI_COMM_WORLD_RANK|PMIX_RANK)=(\d+)", f.read())
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            words = f.read().split("\0")
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            own = dict(re.findall(r"(RssAnon|RssShmem):\s+(\d+)", f.read()))
    except OSError:
        return None
    if not rank or not words[0].endswith("rivulet-site") or task not in words or not own:
        return None
    return int(rank.group(1)), sum(int(kib) for kib in own.values()) / 1024


def reserved(site: str) -> int:
    """Bytes beyond 32 MiB that an idle program has reserved: some versions of OpenBLAS take much when they are loaded, and a limit counts that."""
    heard, say = os.pipe()
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", RIVULET_TRAINER_IN=str(heard), RIVULET_TRAINER_OUT="1")
    with subprocess.Popen([site, "run"], pass_fds=(heard,), stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        process.stdout.readline()  # it is ready
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
            found = re.search(r"VmData:\s+(\d+)", f.read())
        os.close(say)
        os.close(heard)
    assert found
    return max(0, int(found.group(1)) * 1024 - (32 << 20))


def watch(words: List[str], environment: Dict[str, str], place: str) -> Tuple[Dict[int, float], str]:
    """Runs a world to its end: each rank's peak, looked at every 20 ms, and what was said."""
    peaks: Dict[int, float] = {}
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said, stderr=said, env=environment, cwd=place) as process:
            while process.poll() is None:
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    found = rank_of(pid, words[-1])
                    if found:
                        peaks[found[0]] = max(peaks.get(found[0], 0), found[1])
                time.sleep(0.02)
        said.seek(0)
        return peaks, said.read()


class Site(unittest.TestCase):
    place: str
    hashes: Dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.place = holder.name
        os.mkdir(os.path.join(cls.place, "tasks"))
        with open(os.path.join(cls.place, "text.bin"), "wb") as f:
            f.write(bytes(97 + i * i % 23 for i in range(8 * 26 + 1)))
        # What an agent lays out for a program stays, once it is trained.
        keep = os.path.join(cls.place, "keep")
        with open(keep, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\ncp -rL "$2" "$1"\nexec {os.path.abspath(RIVULET)} trainer "$2"\n')
        os.chmod(keep, 0o755)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cls.hashes = dict(pool.map(cls.train, cases()))

    @classmethod
    def train(cls, case: Case) -> Tuple[str, str]:
        """By one process; its task's directory is kept."""
        name, _, _, _, examples = case
        job, config, out = (os.path.join(cls.place, name + end) for end in (".json", ".conf", ".safetensors"))
        task = os.path.join(cls.place, "tasks", name)
        with open(job, "w", encoding="utf-8") as f:
            json.dump(document(case), f)
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"[data digits]\nformat = glyphs\nhand = 1\nseed = 1\ncount = {examples or 1}\n")
            f.write(f"[data text]\nformat = text\npath = {cls.place}/text.bin\n" if not examples else "")
        command = [RIVULET, "train", job, "--home", os.path.join(cls.place, "home-" + name), "--config"]
        subprocess.run(command + [config, "--out", out], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        with open(config, "a", encoding="utf-8") as f:
            f.write(f"[trainer builtin]\nexec = {cls.place}/keep {task}\nconfine = no\n")
        subprocess.run(command + [config], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        settle(task)
        return name, tensors(out)

    def shape(self, back: str, pipeline: int, replicas: int, ring: bool, prefix: Tuple[str, ...] = (), place: str = "") -> None:
        """One world, all jobs that it fits."""
        place = place or self.place
        out = os.path.join(place, f"{back}-{pipeline}-{replicas}-{int(ring)}")
        names = [case[0] for case in cases() if fits(case, pipeline, replicas, ring)]
        os.mkdir(out)
        os.chmod(out, 0o777)
        tool = TOOL if place == self.place else os.path.join(place, "site_cases")
        words = [*prefix, tool, back, str(pipeline), str(replicas), str(int(ring)), out]
        done = subprocess.run(words + [os.path.join(place, "tasks", n) for n in names], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False, cwd=place)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(names)
        for name in names:
            after = tensors(os.path.join(out, name, "after.safetensors"))
            self.assertEqual(after, self.hashes[name], f"{name}, {pipeline} x {replicas}{' ring' if ring else ''}, {back}")

    def test_threads(self) -> None:
        shapes = [(p, 1, False) for p in range(1, 6)] + [(1, 2, False), (1, 3, False), (2, 2, False), (2, 3, False)]
        for pipeline, replicas, ring in shapes + [(2, 1, True), (3, 1, True), (4, 1, True), (2, 2, True)]:
            self.shape("local", pipeline, replicas, ring)

    def test_processes(self) -> None:
        program = mpirun()
        if not program:
            self.skipTest("Open MPI is not here")
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        place = holder.name
        shutil.copy(TOOL, place)
        shutil.copytree(os.path.join(self.place, "tasks"), os.path.join(place, "tasks"))
        for name in os.listdir(os.path.join(place, "tasks")):
            settle(os.path.join(place, "tasks", name))
        prefix = (*self.ordinary(place), program, "-n", "4", "--bind-to", "none")
        for pipeline, replicas, ring in [(4, 1, False), (2, 2, False), (4, 1, True)]:
            self.shape("mpi", pipeline, replicas, ring, prefix, place)

    def test_memory(self) -> None:
        """800 MB of training on four ranks that may have 300 MB each, as planned; one alone refuses. Beside that what OpenBLAS reserves and does not use."""
        program = mpirun()
        if not program or os.environ.get("SAN"):
            self.skipTest("Open MPI is not here, or memory is a sanitizer's, too")
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        place = holder.name
        task = os.path.join(place, "task")
        self.large(place, task)
        site = os.path.join(place, "rivulet-site")
        shutil.copy(os.path.join(BUILD, "rivulet-site"), site)
        limit = f"--data={(300 << 20) + reserved(site)}"
        settings = {"env": dict(os.environ, OPENBLAS_NUM_THREADS="1"), "timeout": LIMIT_S, "check": True}
        subprocess.run(["prlimit", limit, site, "run", "--ranks", "1", task], stderr=subprocess.DEVNULL, **settings)
        report = os.path.join(task, "report.json")
        with open(report, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["abort"]["reason"], "out-of-memory")
        os.remove(report)
        words = [*self.ordinary(place), program, "-n", "5", "--bind-to", "none", "prlimit", limit, site, "rank", "--ranks=5", "--threads=1",
                 "--pipeline-parallel=4", task]
        peaks, said = watch(words, dict(os.environ, OPENBLAS_NUM_THREADS="1"), place)
        planned = [float(found) for found in re.findall(r"^ +[0-3]  [0-3] +[0-9]+-[0-9]+ +([0-9.]+)", said, re.MULTILINE)]
        with open(report, encoding="utf-8") as f:
            self.assertEqual(json.load(f).get("steps"), 2, said)
        self.assertEqual(len(planned), 4, said)
        for rank, mib in enumerate(planned):
            # The fifth rank has nothing to do.
            self.assertTrue(0.85 <= peaks[rank] / (mib + peaks[4]) <= 1.15, f"rank {rank}: {peaks} MiB, planned\n{said}")

    def test_time(self) -> None:
        """With a sleep in place of computing, which builds with faults know: a run takes as long as planned, also on ranks of unequal speed."""
        site = os.path.join(os.path.dirname(BUILD), "faults", "rivulet-site")
        if not os.path.exists(site):
            self.skipTest("no build with faults is here")
        task = os.path.join(self.place, "slow")
        environment = dict(os.environ, RIVULET_SITE_PRETEND="0.001 2 2 4", XDG_CACHE_HOME=os.path.join(self.place, "cache"))
        words = ["--ranks=3", "--pipeline-parallel=3", "--threads=1"]
        job = os.path.join(self.place, "plain.json")
        plan = subprocess.run([site, "plan", *words, job], env=environment, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True).stdout
        planned = re.search(r"a step of (\d+) pieces .*: ([0-9.]+) ms", plan)
        assert planned, plan
        best = 1e9
        for n in range(3):
            shutil.copytree(os.path.join(self.place, "tasks", "plain"), task + str(n))
            began = time.monotonic()
            subprocess.run([site, "run", *words, task + str(n)], env=environment, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
            best = min(best, time.monotonic() - began)
        with open(os.path.join(task + "0", "report.json"), encoding="utf-8") as f:
            steps = json.load(f)["steps"]
        # The last step of an epoch has fewer pieces.
        self.assertTrue(0.7 <= best / (steps * float(planned.group(2)) / 1000) <= 1.15, f"{best} s for {steps} steps\n{plan}")

    def large(self, place: str, task: str) -> None:
        """A task with 50 million parameters and Adam, as an agent lays it out."""
        layers = [{"type": "flatten"}] + [linear(2048) for _ in range(13)] + [linear(10)]
        case = ("large", layers, {"batch": 8, "optimizer": ADAM}, {"micro_batch": 2}, 16)
        told, config = dict(document(case), local={"epochs": 1, "batch": 8, "random": "counter", "arithmetic": "exact", "optimizer": ADAM}), os.path.join(place, "conf")
        with open(os.path.join(place, "job.json"), "w", encoding="utf-8") as f:
            json.dump(told, f)
        with open(config, "w", encoding="utf-8") as f:
            f.write("[data digits]\nformat = glyphs\nhand = 1\nseed = 1\ncount = 16\n")
        keep = os.path.join(place, "keep")
        with open(keep, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\ncp -rL "$1" {task}\nexit 1\n')
        os.chmod(keep, 0o755)
        command = [RIVULET, "train", os.path.join(place, "job.json"), "--home", os.path.join(place, "home"), "--config", config, "--exec", keep]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        settle(task)

    def ordinary(self, place: str) -> Tuple[str, ...]:
        """What begins a command of an ordinary user, as which alone Open MPI starts anything; the user's files are in `place`."""
        # What Open MPI itself leaves is no leak of ours.
        settings = ["LSAN_OPTIONS=detect_leaks=0", "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
                    "OMPI_MCA_btl=^tcp", "OMPI_MCA_btl_vader_single_copy_mechanism=none", "OMPI_MCA_btl_sm_single_copy_mechanism=none", f"HOME={place}", f"TMPDIR={place}"]
        if os.geteuid() != 0:
            return ("env", *settings)
        known = {entry.pw_name: entry for entry in pwd.getpwall()}
        user = next((known[name] for name in USERS if name in known), None)
        assert user, "no ordinary user can run Open MPI here"
        for folder, _, files in os.walk(place):
            os.chown(folder, user.pw_uid, user.pw_gid)
            for name in files:
                path = os.path.join(folder, name)
                os.chown(path, user.pw_uid, user.pw_gid)
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | 0o400)
        return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "env", *settings)


if __name__ == "__main__":
    unittest.main()
