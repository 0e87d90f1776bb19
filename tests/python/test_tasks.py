"""A device of its own in Python: tasks of a real coordinator, as rivulet.tasks hands them out."""
import ctypes
import gc
import glob
import json
import os
import shutil
import signal
import sys
import time
import unittest
from typing import Any, Dict, List, Tuple

from fleet import BUILD, PATIENCE, TOP, Fleet, ask, within

import numpy
import rivulet
from rivulet import _library

POINTS = 500
os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))
SANITIZED = unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")


def read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def job(name: str, **changes: Any) -> Dict[str, Any]:
    """examples/own_loop.json under another name."""
    with open(os.path.join(TOP, "examples", "own_loop.json"), encoding="utf-8") as f:
        return {**json.load(f), "name": name, **changes}


class WithFleet(unittest.TestCase):
    """One coordinator and one device, whose home each test opens in turn."""

    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        cls.home = cls.fleet.join("device")

    def submit(self, document: Dict[str, Any]) -> str:
        return self.ask("/v1/jobs", json.dumps(document).encode())["job"]

    def ask(self, path: str, body: Any = None) -> Any:
        return ask(self.fleet, path, body)

    def rounds(self, name: str) -> List[Dict[str, Any]]:
        return self.ask("/v1/jobs/%s/rounds" % name)["rounds"]

    def tasks(self, **how: Any) -> Any:
        return rivulet.tasks("own-loop", "points", POINTS, home=self.home, **how)

    def work(self, task: rivulet.Task, right: int = 1) -> None:
        for _ in range(4):
            task.step(0.25, POINTS // 4, POINTS // 4 * right)


@SANITIZED
class Tasks(WithFleet):
    def test_a_task(self) -> None:
        document = job("a-task", params={"note": "ü"}, local={"epochs": 3, "batch": 8, "optimizer": {"rate": 0.5}})
        document["data"] = {**document["data"], "validation": 0.1}
        document["evaluate"] = {"by": "devices"}
        document["stop"] = {"rounds": 2}
        name = self.submit(document)
        seen: List[Any] = []
        for task in self.tasks(rounds=2):
            with task:
                self.assertEqual((task.job, task.kind, task.round), (name, "train", len(seen) + 1))
                self.assertEqual((task.lr, task.epochs, task.batch, task.seconds), (0.5, 3, 8, 0))
                self.assertEqual(task.steps, 3 * 57)
                self.assertEqual(task.params, {"note": "ü"})
                self.assertEqual(task.recipe["local"]["batch"], 8)
                self.assertEqual(task.roles(), {"fc.weight": "train", "fc.bias": "train"})
                self.assertEqual({n: t.shape for n, t in task.tensors.items()}, {"fc.weight": (2, 2), "fc.bias": (2,)})
                self.assertEqual(task.stop_now(), rivulet.Stop.GO_ON)
                self.assertTrue(0 < task.deadline - time.monotonic() <= 60)
                seen.append((task.seed, task.validation_indices()))
                held = task.validation_indices()
                self.assertEqual((held.dtype, len(held), len(set(held.tolist()))), (numpy.uint32, 50, 50))
                self.assertTrue((numpy.diff(held) > 0).all() and held[-1] < POINTS)
                self.assertEqual(len(task.validation_indices(7)), 1)
                train, kept = task.split(range(1000, 1000 + POINTS))
                self.assertEqual(list(kept), (held + 1000).tolist())
                self.assertEqual(sorted([*train, *kept]), list(range(1000, 1000 + POINTS)))
                with self.assertRaisesRegex(ValueError, "nobody gives this program examples"):
                    task.split()
                task.tensors["fc.bias"][:] = [task.round, -task.round]
                self.work(task)
                taken = task.submit(
                    metrics={"perplexity": 2.5, "b": numpy.float32(1)},
                    evaluate={"examples": 50, "loss": 0.7, "accuracy": 0.5},
                    optimizer="adamw",
                )
                self.assertTrue(taken)
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertEqual(seen[0][1].tolist(), seen[1][1].tolist())
        within(20, "the job is done", lambda: self.ask("/v1/jobs/" + name)["state"] == "done")
        for r in self.rounds(name):
            self.assertEqual((r["examples"], r["loss"], r["accuracy"]), (450, 0.25, 1))
            self.assertEqual(r["metrics"]["perplexity"], {"mean": 2.5, "reports": 1})
            self.assertEqual(r["evaluate"]["accuracy"] if r["evaluate"] else None, 0.5)

    def test_evaluation(self) -> None:
        """The last model of a job whose devices evaluate has its figure by a task of that kind."""
        with self.assertRaisesRegex(ValueError, "kinds are of train, evaluate"):
            next(self.tasks(kinds=("train", "test")))
        name = self.submit(job("evaluated", evaluate={"by": "devices"}, stop={"rounds": 1}))
        kinds = []
        for task in self.tasks(rounds=2, kinds=("train", "evaluate")):
            with task:
                kinds.append(task.kind)
                if task.kind == "train":
                    self.work(task)
                else:
                    self.assertEqual(task.tensors["fc.bias"].tolist(), [0, 0])
                    for n, loss, right in task.batches([(300, 0.5, 240), (100, 0.9, 60)]):
                        task.step(loss, n, right)
                self.assertTrue(task.submit())
        self.assertEqual(kinds, ["train", "evaluate"])
        within(20, "the job is done", lambda: self.ask("/v1/jobs/" + name)["state"] == "done")
        metric = self.ask("/v1/jobs/" + name)["metric"]
        self.assertEqual((metric["examples"], metric["accuracy"]), (400, 0.75))
        self.assertAlmostEqual(metric["loss"], 0.6)

    def test_views_outlive_everything(self) -> None:
        self.submit(job("views", stop={"rounds": 2}))
        released: List[int] = []
        library = _library.load()
        real = library.rivulet_release
        library.rivulet_release = lambda at: (released.append(at), real(at))
        self.addCleanup(setattr, library, "rivulet_release", real)
        kept = []
        for task in self.tasks(rounds=2):
            with task:
                task.tensors["fc.bias"][:] = [task.round, 0]
                kept.append(task.tensors["fc.bias"])
                self.work(task)
                task.submit()
                task.tensors["fc.weight"][:] = 7
        del task
        gc.collect()
        self.assertEqual([view.tolist() for view in kept], [[1, 0], [2, 0]])
        self.assertEqual(released, [])
        part = kept.pop(0)[1:]
        gc.collect()
        self.assertEqual(released, [])
        del part
        kept.clear()
        gc.collect()
        self.assertEqual(len(released), 2)

    def test_wrong_submissions_leave_the_task(self) -> None:
        self.submit(job("wrong", stop={"rounds": 1}))
        weight, bias = numpy.zeros((2, 2), "f4"), numpy.ones(2)
        for task in self.tasks(rounds=1):
            with task:
                with self.assertRaisesRegex(ValueError, "nothing was trained"):
                    task.submit()
                self.work(task)
                for model, says in (
                    ({}, "fc.weight is missing, fc.bias is missing"),
                    ({"fc.weight": weight, "out.bias": bias}, "fc.bias is missing; the job has no out.bias"),
                    ({"fc.weight": weight.reshape(4), "fc.bias": bias}, r"fc.weight has shape \[4\] and not \[2, 2\]"),
                    ({"fc.weight": weight, "fc.bias": 1.0}, r"fc.bias has shape \[\] and not \[2\]"),
                ):
                    with self.assertRaisesRegex(ValueError, says):
                        task.submit(model)
                for how in (
                    {"metrics": {"": 1}},
                    {"metrics": {"a\n": 1}},
                    {"metrics": {str(i): i for i in range(65)}},
                    {"optimizer": "lion"},
                    {"accuracy": 1.5},
                    {"evaluate": {"examples": 1, "loss": 1, "f1": 1}},
                ):
                    with self.assertRaises(ValueError, msg=how):
                        task.submit(**how)
                task.tensors["fc.bias"][:] = float("nan")
                for how in ({}, {"loss": float("inf")}, {"metrics": {"x": float("nan")}}):
                    with self.assertRaises(rivulet.Error) as caught:
                        task.submit(**how)
                    self.assertEqual(caught.exception.code, "numeric")
                    self.assertTrue(how or 'tensor "fc.bias" has a value that is not finite' in str(caught.exception))
                for value in ("x", [1.0], numpy.zeros(2)):
                    with self.assertRaisesRegex(ValueError, "metric 'odd' is no number: it is a "):
                        task.submit(metrics={"fine": 1, "odd": value})
                # Another type is converted, another tensor does no harm.
                self.assertTrue(task.submit({"fc.weight": weight, "fc.bias": bias, "more": bias}))
                for call in (task.submit, task.stop_now, lambda: task.abort("no-data")):
                    with self.assertRaisesRegex(rivulet.Error, "has ended"):
                        call()

    def test_exceptions_are_given_back_and_the_third_leaves(self) -> None:
        # A task that was given back is not handed out again at once: each comes from a job of its own.
        names = [self.submit(job("fails%d" % i, stop={"rounds": 1}, priority=9 - i)) for i in range(4)]
        caught = []
        for task in self.tasks(rounds=1):
            with task:
                self.assertEqual(task.job, names[0])
                raise KeyError("the first")
            caught.append("went on")
        with self.assertRaisesRegex(ValueError, "is missing|nothing was trained"), self.assertLogs("rivulet", "WARNING"):
            for task in self.tasks():
                with task:
                    caught.append(task.job)
                    if task.job == names[1]:
                        continue
                    if task.job == names[2]:
                        raise MemoryError("the second")
                    task.submit({})  # the line that is told is this one
        self.assertEqual(caught, ["went on"] + names[1:])
        # The home is free again, though the exception's traceback holds the loop.
        next(self.tasks(wait=0.1), None)
        for name, reason, says in zip(
            names,
            ("trainer-failed", "trainer-failed", "out-of-memory", "trainer-failed"),
            ("KeyError", "", "MemoryError", "ValueError"),
        ):
            failure = self.ask("/v1/jobs/" + name)["failures"][0]
            self.assertEqual(failure["reason"], reason)
            # The owner's send_log is "reason": no word of what the exception said.
            self.assertRegex(failure["log"], "^%s$" % (says and says + r", test_tasks\.py line \d+"))

    def test_diverging_jobs_do_not_end_the_loop(self) -> None:
        names = [self.submit(job("diverges%d" % i, stop={"rounds": 1}, priority=9 - i)) for i in range(5)]
        good = self.submit(job("converges", stop={"rounds": 1}))
        seen = []
        with self.assertLogs("rivulet", "WARNING"):
            for task in self.tasks(rounds=6):
                with task:
                    seen.append(task.job)
                    self.work(task)
                    task.tensors["fc.bias"][:] = 1 if task.job == good else float("nan")
                    self.assertTrue(task.submit())
        self.assertEqual(seen, names + [good])
        for name in names:
            self.assertEqual(self.ask("/v1/jobs/" + name)["failures"][0]["reason"], "not-finite")
            self.ask("/v1/jobs/%s/stop" % name, b"")

    def test_a_share_of_the_examples(self) -> None:
        document = job("a-share", stop={"rounds": 2}, aggregate={"max_examples": 60})
        document["data"] = {**document["data"], "validation": 0.2}
        document["evaluate"] = {"by": "devices"}
        document["local"] = {"epochs": 1, "batch": 10, "optimizer": {"rate": 0.1}}
        name = self.submit(document)
        seen = []
        for task in self.tasks(rounds=2):
            with task:
                train, held = task.split(range(POINTS))
                kept = task.validation_indices().tolist()
                self.assertEqual((len(train), len(held), len(kept), task.steps), (60, 60, 100, 6))
                self.assertEqual(set(train) & set(kept), set())
                self.assertLessEqual(set(held), set(kept))
                self.assertEqual(list(train), sorted(train))
                seen.append((list(train), list(held)))
                # It went over all of its data, and says so: that is no more than the job lets it claim.
                self.work(task)
                with self.assertRaisesRegex(ValueError, "500 examples, and the job lets a device claim 60"):
                    task.submit(examples=POINTS)
                with self.assertRaisesRegex(ValueError, "61 examples"):
                    task.submit(evaluate={"examples": 61, "loss": 0.5})
                self.assertTrue(task.submit(evaluate={"examples": 60, "loss": 0.5}))
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertEqual(seen[0][1], seen[1][1])
        within(20, "the job is done", lambda: self.ask("/v1/jobs/" + name)["state"] == "done")
        self.assertEqual([r["examples"] for r in self.rounds(name)], [60, 60])

    def test_few_steps_are_not_cut(self) -> None:
        document = job("steps", stop={"rounds": 1}, aggregate={"max_examples": 60})
        document["local"] = {"steps": 6, "batch": 10, "optimizer": {"rate": 0.1}}
        self.submit(document)
        for task in self.tasks(rounds=1):
            with task:
                self.assertEqual(len(task.split(range(POINTS))[0]), POINTS)
                for _ in task.batches([10] * 50):
                    task.step(0.5, 10)
                self.assertTrue(task.submit())

    def test_figures_are_not_asked_of_a_loop(self) -> None:
        document = job("figures", stop={"rounds": 1})
        document["data"] = {**document["data"], "validation": 0.2}
        document["evaluate"] = {"by": "devices", "figures": ["classes"]}
        name = self.submit(document)
        self.assertIsNone(next(self.tasks(wait=1), None))
        self.assertEqual(self.ask("/v1/jobs/" + name)["devices"]["waiting"], {"no-figures": 1})
        again = self.ask("/v1/jobs", json.dumps(document).encode())
        self.assertIn('1 of the 1 devices with the trainer "own-loop" give none of the figures', str(again["warnings"]))
        self.ask("/v1/jobs/%s/stop" % name, b"")


LOOP = """
import logging, sys
import rivulet
logging.basicConfig(level=logging.INFO, format="%(message)s")
for task in rivulet.tasks("own-loop", "points", 500, home=sys.argv[1]):
    with task:
        for n in task.batches([100] * 5):
            task.step(1.0, n)
            print("stepped", flush=True)
            while not task.stop_now():
                pass
        task.submit()
print("left", flush=True)
"""


@SANITIZED
class Signals(WithFleet):
    def start(self) -> Any:
        script, note = self.fleet.path("loop.py"), os.path.join(self.home, "last")
        for path in (self.fleet.path("loop.log"), note):
            if os.path.exists(path):
                os.unlink(path)
        with open(script, "w", encoding="utf-8") as f:
            f.write(LOOP)
        process = self.fleet.start("loop", [sys.executable, script, self.home])
        self.addCleanup(lambda: self.fleet.processes.pop("loop", process).kill())
        within(20, "the device asks for work", lambda: os.path.exists(note))
        return process

    def end(self, process: Any, how: int) -> float:
        """Seconds from the signal to the end."""
        began = time.monotonic()
        self.fleet.end("loop", how, check=False)
        return time.monotonic() - began

    def test_interrupt_in_a_blocking_call(self) -> None:
        for how, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 0)):
            process = self.start()
            took = self.end(process, how)
            self.assertEqual(process.returncode, status, self.fleet.log("loop"))
            # It would hang for the 50 s of a request for work.
            self.assertLess(took, 1.5 * PATIENCE)

    def test_children_of_the_loop_end_as_ever(self) -> None:
        self.submit(job("children", stop={"rounds": 1}))
        for task in self.tasks(rounds=1):
            with task:
                here, there = os.pipe()
                child = os.fork()
                if child == 0:
                    os.write(there, b".")  # Python forgets what came before its fork is over
                    time.sleep(60)
                    os._exit(0)
                os.read(here, 1)
                os.kill(child, signal.SIGTERM)
                self.assertEqual(os.waitpid(child, 0)[1], signal.SIGTERM)
                os.close(here)
                os.close(there)
                self.work(task)
                self.assertTrue(task.submit())

    def test_sigterm_in_the_loop(self) -> None:
        name = self.submit(job("partial", stop={"rounds": 1}))
        process = self.start()
        within(20, "a step", lambda: "stepped" in self.fleet.log("loop"))
        self.end(process, signal.SIGTERM)
        self.assertEqual(process.returncode, 0, self.fleet.log("loop"))
        self.assertTrue(self.fleet.log("loop").endswith("left\n"), self.fleet.log("loop"))
        within(20, "the job is done", lambda: self.ask("/v1/jobs/" + name)["state"] == "done")
        report = self.ask("/v1/jobs/%s/rounds/1" % name)["devices"][0]
        # One of the five batches of the epoch.
        self.assertEqual((report["partial"], report["steps"], report["examples"]), (True, 1, 100))

    def test_interrupt_in_the_loop(self) -> None:
        name = self.submit(job("interrupted", stop={"rounds": 1}))
        process = self.start()
        within(20, "a step", lambda: "stepped" in self.fleet.log("loop"))
        self.end(process, signal.SIGINT)
        self.assertEqual(process.returncode, -signal.SIGINT, self.fleet.log("loop"))
        self.assertEqual(self.ask("/v1/jobs/" + name)["failures"][0]["reason"], "stopped")
        self.ask("/v1/jobs/%s/stop" % name, b"")


def own_loop() -> Any:
    """The points and the training of examples/own_loop.c, operation by operation."""
    c, m, f = ctypes.CDLL(None), ctypes.CDLL("libm.so.6"), numpy.float32
    m.expf.restype, m.expf.argtypes = ctypes.c_float, [ctypes.c_float]
    m.log.restype, m.log.argtypes = ctypes.c_double, [ctypes.c_double]
    c.srand(1)
    points = numpy.array([f(c.rand()) / f(2147483647) * f(2) - f(1) for _ in range(2 * POINTS)], "f4")
    points = points.reshape(POINTS, 2)

    def train(weight: Any, bias: Any, rate: Any) -> Dict[str, float]:
        figures = {"loss": 0.0, "accuracy": 0.0}
        for x in points:
            right = int(x[0] + x[1] > 0)
            score = bias[1] - bias[0]
            for k in range(2):
                score += (weight[1][k] - weight[0][k]) * x[k]
            p = f(1) / (f(1) + f(m.expf(-score)))
            by = rate * (p - f(right))
            figures["loss"] -= m.log(float(p if right else f(1) - p) + 1e-9) / POINTS
            figures["accuracy"] += 1.0 / POINTS if (p > 0.5) == right else 0
            for side in range(2):
                bias[side] += by
                weight[side] += by * x
                by = -by
        return figures

    return train


@SANITIZED
class SameBytes(unittest.TestCase):
    """The delta of examples/own_loop.c, and that of the same numbers from Python: two lives of one device."""

    def test_delta(self) -> None:
        with Fleet() as fleet:
            home = fleet.join("device")
            # The round waits for a second device, so the delta stays where it was received.
            document = job("same", round={"goal": 2, "deadline_s": 3600})
            name = ask(fleet, "/v1/jobs", json.dumps(document).encode())["job"]
            kept = [fleet.path("state"), home]
            fleet.end("rivuletd")
            for folder in kept:
                shutil.copytree(folder, folder + ".kept")
            fleet.daemon()
            fleet.start("own_loop", [os.path.join(BUILD, "examples", "own_loop"), home])
            from_c = self.delta(fleet, name)
            fleet.end("own_loop", check=False)
            fleet.end("rivuletd")
            for folder in kept:
                shutil.rmtree(folder)
                os.rename(folder + ".kept", folder)
            fleet.daemon()
            train = own_loop()
            for task in rivulet.tasks("own-loop", "points", POINTS, home=home, rounds=1):
                with task:
                    weight, bias = task.tensors.values()
                    figures = train(weight, bias, numpy.float32(task.lr))
                    self.assertTrue(task.submit(examples=POINTS, steps=POINTS, **figures))
            from_python = self.delta(fleet, name)
        (a, body), (b, same) = from_c, from_python
        self.assertEqual((len(a), len(body) > 24, body == same), (320, True, True))
        self.assertEqual(a[:192], b[:192])  # between these is the time,
        self.assertEqual(a[200:256], b[200:256])
        self.assertNotEqual(a[256:], b[256:])  # and here a signature, which is random

    def delta(self, fleet: Fleet, name: str) -> Tuple[bytes, bytes]:
        """Manifest and body of the one in the spool, as FORMAT.md has them."""
        within(20, "a delta", lambda: ask(fleet, "/v1/jobs/%s/rounds" % name)["rounds"][-1]["reports"] == 1)
        files = [p for p in glob.glob(fleet.path("state", "spool", "**"), recursive=True) if os.path.isfile(p)]
        self.assertEqual(len(files), 1)
        data = read(files[0])
        at = data.index(b"RVD1")
        return data[at : at + 320], data[512:]


if __name__ == "__main__":
    unittest.main()
