"""What a task keeps for the next one: as a file, by a device of its own, by programs of an agent.

FULL=1: in a simulation, too, and by an agent that is killed at every step (FAULTY, built with FAULTS=1).
"""
import glob
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List

from fleet import BUILD, PACKAGE, PATIENCE, RIVULET, TOP, Fleet, ask, digits_job, within

import numpy
import rivulet
from rivulet import _state

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))

FULL = bool(os.environ.get("FULL"))
FAULTY = os.environ.get("FAULTY") or os.path.join(TOP, "build", "faults", "rivulet")

# Counts its tasks, and says what it found of the one before: by its round, and in metrics.
SCRIPT = """
import numpy, os, rivulet
for task in rivulet.tasks(trainer="t", data="digits", examples=1, kinds=("train", "evaluate")):
    with task:
        state = task.kept() or {"tasks": 0, "seen": numpy.zeros(3, "f4"), 7: (None,)}
        assert state[7] == (None,)
        if task.kind == "evaluate":
            try:
                task.keep(state)
            except rivulet.Error as e:
                assert e.code == "state", e.code
            # Who writes the file without asking changes nothing, either.
            open(os.path.join(os.environ.get("RIVULET_TASK") or ".", "keep.safetensors"), "wb").write(b"x")
            task.step(1.0, 10)
            task.submit(metrics={"kept": state["tasks"]})
            continue
        assert (task.kept_round, bool(task.kept_model)) == (task.round - 1, task.round > 1)
        for t in task.tensors.values():
            t += 0.001
        task.step(1.0, 10)
        found = {"tasks": state["tasks"], "seen": float(state["seen"].sum())}
        state["tasks"] += 1
        state["seen"] += task.round
        task.keep(state)
        if task.round == 1:
            try:
                task.keep(numpy.zeros(task.params["large"], "f4"))
                raise SystemExit("a state larger than kept_bytes was taken")
            except rivulet.Error as e:
                assert e.code == "limit" and "kept_bytes" in str(e), e
        task.submit(metrics=found)
"""


class File(unittest.TestCase):
    def back(self, state: Any) -> Any:
        return _state.load(_state.dump(state))

    def test_what_json_has_and_has_not(self) -> None:
        for state in (
            None,
            True,
            {"state": {0: {"step": 3, "m": None}, 1: {}}, "param_groups": [{"betas": (0.9, 0.999), "params": [0, 1]}]},
            [1, 2.5, -0.0, 10**30, "ü\\0\\n", [[]], {"$float": 1, "b": {"$dict": 2}}, {(1, "a"): {None: False}}],
            {"$numpy": "a", 1.5: "b"},
        ):
            found = self.back(state)
            self.assertEqual((found, repr(found)), (state, repr(state)))
        nan, more = self.back([math.nan, (math.inf, -math.inf)])
        self.assertTrue(math.isnan(nan))
        self.assertEqual(more, (math.inf, -math.inf))

    def test_arrays(self) -> None:
        arrays = {
            "a": numpy.arange(6, dtype="f4").reshape(2, 3)[:, ::2],
            "b": [numpy.bool_(True), numpy.float64(0.1), numpy.zeros((0, 2), "i8")],
            3: numpy.array(7, ">u2"),
            "x" * 200: numpy.int8(-1),
            "ü\\n": numpy.float16(0.5),
        }
        found = self.back(arrays)
        self.assertEqual(list(found), list(arrays))
        for key, at in ((k, i) for k in arrays for i in range(3 if k == "b" else 1)):
            was, now = ((d[key][at] if key == "b" else d[key]) for d in (arrays, found))
            self.assertEqual((now.shape, now.dtype), (was.shape, was.dtype.newbyteorder("=")))
            self.assertEqual(now.tolist(), was.tolist())
            self.assertTrue(now.flags.writeable)
        tensors, _ = _state.pack(arrays)
        self.assertEqual(set(tensors), {"a", "b.0", "b.1", "b.2", "3", "tensor 5", "tensor 6"})

    def test_refused(self) -> None:
        round_and_round: List[Any] = []
        round_and_round.append(round_and_round)
        deep: List[Any] = []
        for _ in range(5000):
            deep = [deep]
        for state, words in (
            ({"a": [1, b"x"]}, "a.1 cannot be kept: a bytes is no tensor"),
            ({"a": {1, 2}}, "a cannot be kept: a set"),
            (print, "the state cannot be kept: a builtin_function_or_method"),
            ({"b": numpy.zeros(2, "c8")}, "b cannot be kept: a model file has no type for complex64"),
            ({"b": numpy.array([{}])}, "b cannot be kept: a model file has no type"),
            (round_and_round, "0 cannot be kept: it holds itself"),
            (deep, "nested too deep"),
            ([numpy.int8(0)] * 4097, "4097 tensors, and at most 4096"),
            ("x" * (1 << 20), "1048.* bytes as JSON, and at most 1048576"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                _state.dump(state)
        for data in (b"", b"x" * 7, b"\2\0\0\0\0\0\0\0{}", _state.dump([1])[:-1], b"\x80\x04\x95pickle."):
            with self.assertRaises(rivulet.Error) as caught:
                _state.load(data)
            self.assertEqual(caught.exception.code, "corrupt")

    def test_no_room(self) -> None:
        """A disk that is full costs the state alone: the task goes on, and what was written of it is gone."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keep.safetensors")
            _state.write(path, 1, 1 << 20)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
            try:
                with self.assertRaisesRegex(rivulet.Error, "cannot be written: .*File too large") as caught:
                    _state.write(path, numpy.zeros(1 << 16, "f4"), 1 << 20)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual((caught.exception.code, os.listdir(folder)), ("io", ["keep.safetensors"]))
            with open(path, "rb") as f:
                self.assertEqual(_state.load(f.read()), 1)

    def test_what_cannot_be_written(self) -> None:
        """Is an Error like any other, so that a loop that catches those loses no training."""
        with tempfile.TemporaryDirectory() as folder:
            for path, code in ((os.path.join(folder, "none", "keep"), "io"), (folder, "io"), (os.path.join(folder, "keep"), "limit")):
                with self.subTest(path=path), self.assertRaises(rivulet.Error) as caught:
                    _state.write(path, [1], 10 if code == "limit" else 1000)
                self.assertEqual(caught.exception.code, code)
            self.assertEqual(glob.glob(folder + "*.part") + os.listdir(folder), [])


class WithFleet(unittest.TestCase):
    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)

    def done(self, name: str) -> List[Dict[str, Any]]:
        within(30, "the job is done", lambda: ask(self.fleet, "/v1/jobs/" + name)["state"] == "done")
        return ask(self.fleet, "/v1/jobs/%s/rounds" % name)["rounds"]

    def script(self, name: str) -> str:
        path = self.fleet.path(name + ".py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        return path

    def job(self, name: str, rounds: int) -> Dict[str, Any]:
        job = digits_job(name, 1, rounds)
        job.update({"trainer": "t", "params": {"large": 4096}, "select": {"devices": [name]}})
        return job


@unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
class Loop(WithFleet):
    def test_lifecycle(self) -> None:
        """Kept with what is accepted, gone with what is given back, as it was where nothing is kept."""
        home = self.fleet.join("loop", "[limits]\nkept_bytes = 8K")
        with open(os.path.join(TOP, "examples", "own_loop.json"), encoding="utf-8") as f:
            job = {**json.load(f), "stop": {"rounds": 4}}
        name = ask(self.fleet, "/v1/jobs", json.dumps(job).encode())["job"]
        found, models = [], []

        def loop(rounds: int) -> Any:
            return rivulet.tasks("own-loop", "points", 500, home=home, rounds=rounds)

        for task in loop(2):
            with task:
                found.append((task.kept(), task.kept_round, task.kept_model))
                models.append(task.model)
                task.step(1.0, 10)
                with self.assertRaisesRegex(ValueError, "a cannot be kept"):
                    task.keep({"a": object()})
                task.keep("never mind")
                task.keep({"round": task.round})
                for _ in range(2):
                    with self.assertRaises(rivulet.Error) as caught:
                        task.keep(numpy.zeros(4096, "f4"))
                    self.assertEqual(caught.exception.code, "limit")
                self.assertEqual(task.kept(), found[-1][0])
                self.assertTrue(task.submit())
        for task in loop(1):
            with task:
                task.keep({"round": "given back"})
                task.abort("stopped")
        for task in loop(1):
            with task:
                found.append((task.kept(), task.kept_round, task.kept_model))
                task.step(1.0, 10)
                self.assertTrue(task.submit())
        for task in loop(1):
            with task:
                found.append((task.kept(), task.kept_round, task.kept_model))
                task.keep({"round": task.round})
                task.abort("stopped")
        self.assertEqual(found[0], (None, 0, ""))
        self.assertEqual(found[1:], [({"round": n}, n, models[n - 1]) for n in (1, 2, 2)])
        self.assertEqual([os.path.basename(p) for p in glob.glob(home + "/kept/*")], [name + ".state"])


class Programs(WithFleet):
    def rounds(self, device: str, settings: str) -> List[Dict[str, Any]]:
        self.fleet.digits(device, 1, 200)
        path = self.script(device)
        with open(self.fleet.path(device, "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write("[limits]\nkept_bytes = 16K\n[trainer t]\nkinds = train, evaluate\nexec = %s %s\n" % (sys.executable, path))
            f.write("env = PYTHONPATH=%s\nread = %s %s\n%s" % (PACKAGE, PACKAGE, path, settings))
        self.fleet.run(device, "-v")
        job = self.job(device, 3)
        job["evaluate"] = {"by": "devices"}
        name = ask(self.fleet, "/v1/jobs", json.dumps(job).encode())["job"]
        rounds = self.done(name)
        self.assertEqual([r["metrics"]["tasks"]["mean"] for r in rounds[:3]], [0, 1, 2], self.fleet.log(device))
        self.assertEqual([r["metrics"]["seen"]["mean"] for r in rounds[:3]], [0, 3, 9])
        self.assertEqual(rounds[3]["metrics"]["kept"]["mean"], 3)  # of the task that evaluated the last model
        self.assertNotIn("kept.lost", self.fleet.log(device))
        self.fleet.end(device)
        home = self.fleet.path(device)
        self.assertEqual([os.path.basename(p) for p in glob.glob(home + "/kept/*")], [name + ".state"])
        return rounds

    def test_once(self) -> None:
        self.rounds("once", "")
        home = self.fleet.path("once")
        told = subprocess.run([RIVULET, "doctor", "--home", home], capture_output=True, check=False, text=True)
        self.assertRegex(told.stdout, "kept .*programs keep 0.0 MiB between their tasks; kept_bytes allows 0.0 MiB")
        subprocess.run([RIVULET, "leave", "--home", home, "--yes"], capture_output=True, check=True, timeout=20 * PATIENCE)
        self.assertFalse(os.path.exists(home + "/kept"))

    def test_persistent(self) -> None:
        self.rounds("stays", "persistent = yes\n")

    @unittest.skipUnless(FULL, "FULL=1")
    @unittest.skipUnless(os.access(FAULTY, os.X_OK), "no build with FAULTS=1 (FAULTY=PROGRAM)")
    def test_killed(self) -> None:
        """A device that is killed at every step of it: each task finds what the last accepted one kept."""
        places = ["state.kept", "client.delta", "outbox.written", "client.kept", "client.receipt", "state.accepted"]
        places += ["outbox.remove", "outbox.removed"]
        self.fleet.digits("killed", 1, 200)
        path, home = self.script("killed"), self.fleet.path("killed")
        with open(self.fleet.path("killed", "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write("[limits]\nkept_bytes = 16K\n[trainer t]\nexec = %s %s\n" % (sys.executable, path))
            f.write("env = PYTHONPATH=%s\nread = %s %s\n" % (PACKAGE, PACKAGE, path))
        rounds = len(places) + 2
        name = ask(self.fleet, "/v1/jobs", json.dumps(self.job("killed", rounds)).encode())["job"]
        for place in places:
            command = [FAULTY, "run", "--home", home, "--rounds", "1"]
            with open(self.fleet.path("killed.log"), "ab") as log:
                done = subprocess.run(
                    command, stderr=log, env={**os.environ, "RIVULET_FAULT": place}, timeout=60 * PATIENCE, check=False
                )
            self.assertEqual(done.returncode, -9, place + self.fleet.log("killed")[-2000:])
        self.fleet.run("killed")
        found = self.done(name)
        self.assertEqual([r["metrics"]["tasks"]["mean"] for r in found], list(range(rounds)))
        self.assertEqual([os.path.basename(p) for p in glob.glob(home + "/kept/*")], [name + ".state"])
        self.assertNotIn("kept.lost", self.fleet.log("killed"))

    def test_what_no_program_of_ours_writes(self) -> None:
        """The work counts, and the log says what is wrong; what was in force stays."""
        self.fleet.digits("wrong", 1, 200)
        path = self.fleet.path("wrong.sh")
        with open(path, "w", encoding="utf-8") as f:
            f.write(
                'cd "$1"; cp base.safetensors after.safetensors\n'
                'case $(sed -n \'s/^.*"round": *\\([0-9]*\\).*/\\1/p\' task.json | head -n 1) in\n'
                "1) printf '\\2\\0\\0\\0\\0\\0\\0\\0{}' >keep.safetensors ;;\n2) echo pickle >keep.safetensors ;;\n"
                "3) ln -s /etc/passwd keep.safetensors ;;\n4) head -c 600000 /dev/zero >keep.safetensors ;;\n"
                "5) mkfifo keep.safetensors ;;\nesac\n"
                "[ ! -e kept.safetensors ] || printf '\\2\\0\\0\\0\\0\\0\\0\\0{}' | cmp -s - kept.safetensors || exit 1\n"
                'echo \'{"examples": 10, "steps": 1, "loss": 1.0}\' >report.json\n'
            )
        with open(self.fleet.path("wrong", "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write("[limits]\nkept_bytes = 500K\n[trainer t]\nexec = sh %s\nread = %s\n" % (path, path))
        self.fleet.run("wrong", "-v")
        name = ask(self.fleet, "/v1/jobs", json.dumps(self.job("wrong", 6)).encode())["job"]
        self.assertEqual(len(self.done(name)), 6)
        lost = [line for line in self.fleet.log("wrong").splitlines() if " kept.lost " in line]
        self.assertEqual(len(lost), 4, lost)
        for line, words in zip(lost, ("no safetensors file", "keep.safetensors", "kept_bytes is 512000", "keep.safetensors")):
            self.assertIn(words, line)

    @unittest.skipUnless(FULL, "FULL=1")
    def test_simulated(self) -> None:
        """Each device of a simulation has its own, whichever place it trains in."""
        with open(self.fleet.path("simulate.json"), "w", encoding="utf-8") as f:
            job = {**digits_job("simulated", 2, 3), "trainer": "t", "params": {"large": 4096}}
            json.dump(job, f)
        with open(self.fleet.path("simulate.conf"), "w", encoding="utf-8") as f:
            f.write("[limits]\nkept_bytes = 16K\n[data digits]\nformat = glyphs\ncount = 60\nseed = 1\n[trainer t]\n")
            f.write("exec = %s %s\n" % (sys.executable, self.script("simulated")))
            f.write("env = PYTHONPATH=%s\nread = %s %s\n" % (PACKAGE, PACKAGE, self.fleet.path("simulated.py")))
        command = [RIVULET, "simulate", self.fleet.path("simulate.json"), "--config", self.fleet.path("simulate.conf")]
        command += ["--devices", "2", "--seed", "1", "--jobs", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
