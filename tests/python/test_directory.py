"""Scripts that an agent starts: for one directory, or for good on two descriptors. The agent here is this test."""
import errno
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List, Optional

from fleet import PACKAGE, PATIENCE

import numpy
from rivulet import safetensors
from rivulet import _sources as sources
from rivulet import task as tasks

# One script for every way to be started.
SCRIPT = """
import os, sys
import rivulet
print("noise on standard output", flush=True)
for task in rivulet.tasks(trainer="t", data="d", examples=10, home="/nowhere"):
    with task:
        x, y, held_x, held_y = task.examples()
        assert x.dtype == "float32" and x.shape == (20, 1, 2, 2), x.shape
        if "raise" in task.params:
            raise KeyError("raised on purpose")
        if "errno" in task.params:
            raise OSError(task.params["errno"], os.strerror(task.params["errno"]))
        if "deep" in task.params:
            import json
            json.loads("{" + "x" * task.params["deep"])
        if "long" in task.params:
            raise ValueError("begin " + "x" * 5000 + " end")
        if "leave" in task.params:
            continue
        if "reason" in task.params:
            task.abort(task.params["reason"], "no graphics card")
            continue
        for batch in task.batches(range(0, 20, 5)):
            task.tensors["w"][:] += task.lr
            task.step(2.0, 5, 4)
            if "wait" in task.params:
                print("stepped", flush=True)
                while not task.stop_now():
                    pass
        task.tensors["own"][:] = -1
        task.submit(metrics={"rss": 1.5}, evaluate={"examples": 5, "loss": 0.5}, optimizer="sgd")
print("left", flush=True)
"""


# A pass over batches of 15 and 5, whatever the job's epochs are.
EVALUATE = """
import rivulet
for task in rivulet.tasks():
    with task:
        assert task.kind == "evaluate"
        try:
            task.submit()
        except ValueError as e:
            assert "nothing was evaluated" in str(e)
        for n, loss, right in task.batches([(15, 1.0, 10), (5, 3.0, 0)]):
            task.step(loss, n, right)
        task.submit(metrics={"a": 1})
"""


class Agent(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.script = self.path("script.py")
        with open(self.script, "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        rng = numpy.random.default_rng(5)
        self.x = rng.integers(0, 255, (20, 1, 2, 2), "u1")
        examples = {
            "x": self.x,
            "y": numpy.arange(20, dtype="i4"),
            "validation_x": self.x[:5],
            "validation_y": numpy.arange(5, dtype="i4"),
        }
        safetensors.save(self.path("examples"), examples)

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def task(self, name: str, local: Any = None, more: Optional[Dict[str, Any]] = None, **params: Any) -> str:
        """A directory as the agent makes it; its id is the name."""
        directory = self.path(name)
        os.mkdir(directory)
        base = {"w": numpy.zeros((2, 3), "f4"), "own": numpy.ones(2, "f4"), "steps": numpy.int64(7)}
        safetensors.save(os.path.join(directory, "base.safetensors"), base)
        recipe = {
            "tensors": {"own": "local"},
            "params": params,
            "data": {"name": "d", "validation": 0.2, "normalise": {"mean": [0.5], "std": [0.25]}},
            "local": {"epochs": 2, "batch": 5, **(local or {})},
        }
        task = {
            "kind": "train",
            "task": name,
            "job": "j" * 32,
            "round": 3,
            "model": {"id": "m" * 64, "bytes": 1},
            "recipe": recipe,
            "seed": 1,
            "local_seed": 17,
            "rate": 0.5,
            "deadline_s": 100,
            "seconds": 90,
            "examples": self.path("examples"),
            **(more or {}),
        }
        with open(os.path.join(directory, "task.json"), "w", encoding="utf-8") as f:
            json.dump(task, f)
        return directory

    def report(self, name: str) -> Dict[str, Any]:
        with open(self.path(name, "report.json"), encoding="utf-8") as f:
            return json.load(f)

    def environment(self, **more: str) -> Dict[str, str]:
        # No library is needed here, and none is there.
        return {**os.environ, "PYTHONPATH": PACKAGE, "RIVULET_LIBRARY": "/nowhere", **more}

    def done(self, name: str, steps: int = 8, partial: bool = False) -> None:
        report = self.report(name)
        self.assertEqual((report["steps"], report["partial"], report["loss"]), (steps, partial, 2))
        self.assertEqual((report["optimizer"], report["normaliser"], report["accuracy"]), (0, steps, 0.8))
        self.assertEqual(report["evaluate"], {"examples": 5, "loss": 0.5})
        self.assertEqual(report["metrics"], {"rss": 1.5})
        after = safetensors.load(self.path(name, "after.safetensors"))
        self.assertEqual(list(after), ["w", "own"])
        self.assertEqual(set(after["w"].ravel().tolist()), {steps * 0.5})
        self.assertEqual(after["own"].tolist(), [-1, -1])
        base = safetensors.load(self.path(name, "base.safetensors"))
        self.assertEqual((base["w"].sum(), base["own"].sum()), (0, 2))


class Once(Agent):
    def run_script(self, *arguments: str, **environment: str) -> str:
        command = [sys.executable, self.script, *arguments]
        done = subprocess.run(command, env=self.environment(**environment), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith("left\n"), done.stdout)
        return done.stderr

    def test_last_argument(self) -> None:
        self.run_script(self.task("one"))
        self.done("one")
        self.assertEqual(self.report("one")["examples"], 20)

    def test_environment(self) -> None:
        self.run_script(RIVULET_TASK=self.task("one", {"epochs": 1}))
        self.done("one", 4)

    def test_steps_are_fewer_examples(self) -> None:
        directory = self.task("one")
        with open(os.path.join(directory, "task.json"), "r+", encoding="utf-8") as f:
            task = json.load(f)
            task["recipe"]["local"] = {"steps": 3, "batch": 5}
            f.seek(0)
            f.truncate()
            json.dump(task, f)
        self.run_script(directory)
        self.done("one", 3)
        self.assertEqual(self.report("one")["examples"], 15)

    def test_given_back(self) -> None:
        said = self.run_script(self.task("raises", **{"raise": 1}))
        abort = self.report("raises")["abort"]
        self.assertEqual(abort["reason"], "trainer-failed")
        self.assertTrue(abort["text"].endswith("KeyError: 'raised on purpose'\n"), abort)
        self.assertIn("raised on purpose", said)
        for number, word in ((errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full"), (errno.ENOENT, "trainer-failed")):
            name = "errno-%d" % number
            self.run_script(self.task(name, errno=number))
            self.assertEqual(self.report(name)["abort"]["reason"], word)
        self.run_script(self.task("leaves", leave=1))
        self.assertEqual(self.report("leaves")["abort"]["reason"], "trainer-failed")
        self.run_script(self.task("aborts", reason="no-gpu"))
        self.assertEqual(self.report("aborts"), {"abort": {"reason": "no-gpu", "text": "no graphics card"}})
        self.assertFalse(os.path.exists(self.path("aborts", "after.safetensors")))

    def test_what_is_told(self) -> None:
        """The owner's line, the innermost one, and the end of the message; and once."""
        said = self.run_script(self.task("deep", deep=10))
        text = self.report("deep")["abort"]["text"]
        lines = text.splitlines()
        self.assertRegex(lines[1], r'^  File ".*script\.py", line \d+, in <module>$')
        self.assertIn("  [2 of libraries]", lines)
        self.assertRegex(text, r'decoder\.py", line \d+, in raw_decode')
        self.assertTrue(lines[-1].startswith("json.decoder.JSONDecodeError: Expecting property name"), text)
        self.assertNotIn("Traceback", said)
        self.run_script(self.task("long", long=1))
        text = self.report("long")["abort"]["text"]
        self.assertRegex(text, r'(?s)script\.py", line \d+.*\nValueError: begin x+ \[\.\.\.\] x+ end\n$')

    def test_evaluation(self) -> None:
        with open(self.script, "w", encoding="utf-8") as f:
            f.write(EVALUATE)
        done = subprocess.run(
            [sys.executable, self.script, self.task("one", more={"kind": "evaluate"})],
            env=self.environment(),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        evaluate = {"examples": 20, "loss": (1 * 15 + 3 * 5) / 20, "accuracy": 0.5}
        evaluate.update(loss_count=20, labels=20, right=10)
        self.assertEqual(self.report("one"), {"evaluate": evaluate, "metrics": {"a": 1}})
        self.assertFalse(os.path.exists(self.path("one", "after.safetensors")))

    def test_files_elsewhere(self) -> None:
        directory = self.task("one", more={n: self.path(n) for n in ("base", "local", "variates")})
        safetensors.save(self.path("variates"), {"w": numpy.full((2, 3), 0.5, "f4")})
        os.rename(os.path.join(directory, "base.safetensors"), self.path("base"))
        os.chmod(self.path("base"), 0o400)
        os.symlink(self.path("base"), os.path.join(directory, "base.safetensors"))
        safetensors.save(self.path("local"), {"own": numpy.full(2, 9, "f4")})
        hand = sources.DirectoryHand(directory, sources.Signals(), {})
        self.assertEqual(hand.variates()["w"].tolist(), [[0.5] * 3] * 2)
        parts = {p.name: (p.role, safetensors.array(p.data, p.type, p.shape).ravel()[:1].tolist()) for p in hand.parts}
        self.assertEqual(parts, {"w": ("train", [0]), "own": ("local", [9]), "steps": ("frozen", [7])})

    def test_sigterm_is_partial_work(self) -> None:
        command = [sys.executable, self.script, self.task("one", wait=1)]
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        for line in process.stdout:
            if line == "stepped\n":
                process.send_signal(signal.SIGTERM)
                break
        self.assertIn("left", process.stdout.read())
        self.assertEqual(process.wait(), 0)
        self.done("one", 1, True)
        # One step of the eight that two passes over 20 examples take.
        self.assertEqual(self.report("one")["examples"], 2)

    def test_deadline(self) -> None:
        self.run_script(self.task("one", more={"seconds": 0}))
        self.done("one", 1, True)

    def test_seconds_are_no_partial_work(self) -> None:
        directory = self.task("one", {"seconds": 1e-6})
        self.run_script(directory)
        self.done("one", 1, False)


class Persistent(Agent):
    def start(self) -> None:
        come, self.go = os.pipe()
        self.come, go = os.pipe()
        env = self.environment(RIVULET_TRAINER_IN=str(come), RIVULET_TRAINER_OUT=str(go))
        with open(self.path("log"), "wb") as log:
            command = [sys.executable, self.script]
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log, pass_fds=(come, go))
        os.close(come)
        os.close(go)
        self.lines: List[Any] = []
        self.buffer = b""
        self.addCleanup(self.stop)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.come, self.go):
            if fd >= 0:
                os.close(fd)

    def say(self, *messages: Dict[str, Any]) -> None:
        os.write(self.go, b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def hear(self) -> Any:
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.come], [], [], 20 * PATIENCE)
            data = os.read(self.come, 65536) if ready else b""
            if not data:
                self.fail("nothing was said: %s" % self.log())
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def log(self) -> str:
        with open(self.path("log"), encoding="utf-8") as f:
            return f.read()

    def ended(self) -> None:
        self.assertEqual(self.process.wait(20 * PATIENCE), 0, self.log())
        self.assertIn("left\n", self.log())

    def give(self, name: str, **how: Any) -> None:
        self.say({"task": name, "kind": "train", "directory": self.task(name, **how), "unknown": [1]})

    def test_tasks_one_after_the_other(self) -> None:
        self.start()
        self.assertEqual(self.hear(), {"ready": True})
        hows = {"one": {}, "two": {"reason": "no-gpu"}, "three": {"raise": 1}, "four": {"local": {"epochs": 1}}}
        for name, how in hows.items():
            self.give(name, **how)
            self.assertEqual(self.hear(), {"done": name})
        self.done("one")
        self.assertEqual(self.report("two")["abort"]["reason"], "no-gpu")
        self.assertEqual(self.report("three")["abort"]["reason"], "trainer-failed")
        self.done("four", 4)
        os.close(self.go)
        self.go = -1
        self.ended()

    def test_finish_is_partial_and_stays(self) -> None:
        self.start()
        self.hear()
        self.give("one", wait=1)
        self.say({"finish": "another"}, {"nonsense": 1}, {"finish": "one"})
        self.assertEqual(self.hear(), {"done": "one"})
        self.done("one", 1, True)
        self.give("two")
        self.assertEqual(self.hear(), {"done": "two"})
        self.done("two")

    def test_sigterm(self) -> None:
        self.start()
        self.hear()
        self.give("one", wait=1)
        while "stepped" not in self.log():
            select.select([], [], [], 0.02)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.hear(), {"done": "one"})
        self.done("one", 1, True)
        self.ended()

    def test_sigterm_while_waiting(self) -> None:
        self.start()
        self.hear()
        self.process.send_signal(signal.SIGTERM)
        self.ended()

    def test_end_of_file_in_a_task(self) -> None:
        self.start()
        self.hear()
        self.give("one", wait=1)
        os.close(self.go)
        self.go = -1
        self.assertEqual(self.hear(), {"done": "one"})
        self.done("one", 1, True)
        self.ended()

    def test_third_failure_leaves(self) -> None:
        self.start()
        self.hear()
        for name in ("one", "two", "three"):
            self.give(name, **{"raise": 1})
            self.assertEqual(self.hear(), {"done": name})
        self.assertEqual(self.process.wait(20 * PATIENCE), 1)
        self.assertIn("KeyError: 'raised on purpose'", self.log())
        self.assertIn("3 failures in a row, and the loop ends; the last: KeyError: 'raised on purpose'", self.log())
        self.assertEqual(self.log().count("Traceback"), 1)
        self.assertNotIn("left\n", self.log())
        first, last = (self.report(name)["abort"]["text"] for name in ("one", "three"))
        self.assertEqual(last, "The third failure in a row: the program ends.\n" + first)

    def test_a_line_without_end(self) -> None:
        self.start()
        self.hear()
        with self.assertRaises(OSError):
            while True:
                os.write(self.go, b"x" * 65536)
        self.assertEqual(self.process.wait(20 * PATIENCE), 1)
        self.assertIn("has more than 65536 bytes", self.log())


class Parts(Agent):
    def test_examples(self) -> None:
        got = sources.read_examples(self.path("examples"), {"mean": [0.5], "std": [0.25]})
        numpy.testing.assert_allclose(got.x, (self.x / 255 - 0.5) / 0.25, rtol=1e-6, atol=1e-6)
        numpy.testing.assert_array_equal(got.validation_x, got.x[:5])
        self.assertEqual(got.y.tolist(), list(range(20)))
        safetensors.save(self.path("plain"), {"x": numpy.full((3, 2), 2, "f4")})
        got = sources.read_examples(self.path("plain"), None)
        self.assertEqual((got.x.sum(), got.y, got.validation_x), (12, None, None))

    def test_types(self) -> None:
        """Those that PyTorch's losses and embeddings take."""
        tokens = numpy.array([[1, 2], [3, 4]], "i4")
        for x, y, types in (
            (self.x, numpy.arange(20, dtype="i4"), ("float32", "int64")),
            (tokens.astype("f4"), numpy.ones((2, 3), "f4"), ("float32", "float32")),
            (tokens, tokens + 1, ("int64", "int64")),
        ):
            safetensors.save(self.path("typed"), {"x": x, "y": y, "validation_x": x[:1], "validation_y": y[:1]})
            got = sources.read_examples(self.path("typed"), None)
            self.assertEqual((got.x.dtype, got.y.dtype), types)
            self.assertEqual((got.validation_x.dtype, got.validation_y.dtype), types)
            self.assertEqual([a.flags.writeable for a in got], [False] * 4)

    def test_examples_are_read_only(self) -> None:
        # What one task did to them the next one would learn from.
        for array in sources.read_examples(self.path("examples"), {"mean": [0.5], "std": [0.25]}):
            with self.assertRaises(ValueError):
                array[0] = 1

    def test_examples_are_read_once(self) -> None:
        cache: Dict[Any, Any] = {}
        hands = [sources.DirectoryHand(self.task(name), sources.Signals(), cache) for name in ("one", "two")]
        self.assertIs(hands[0].examples(), hands[1].examples())

    def split(self, name: str, data: Any = None, **more: Any) -> Any:
        hand = sources.DirectoryHand(self.task(name, more=more), sources.Signals(), {})
        return tasks.Task(hand, None).split(data)  # type: ignore[arg-type]

    def test_split(self) -> None:
        train, held = self.split("agent", range(7))
        self.assertEqual((len(train), len(held), [int(y) for _, y in held]), (20, 5, [0, 1, 2, 3, 4]))
        numpy.testing.assert_allclose(train[3][0], (self.x[3] / 255 - 0.5) / 0.25, rtol=1e-6, atol=1e-6)
        train[3][0][:] = 0  # a copy: the next task has it as it was
        self.assertNotEqual(train[3][0].max(), 0)
        safetensors.save(self.path("few"), {"x": self.x, "y": numpy.arange(20, dtype="i4")})
        self.assertEqual([list(part) for part in self.split("none", examples=self.path("few"))[1:]], [[]])

    def test_split_of_external_data(self) -> None:
        safetensors.save(self.path("indices"), {"indices": numpy.array([1, 4], "u4")})
        more = {"examples": None, "validation": self.path("indices")}
        train, held = self.split("own", "abcde", **more)
        self.assertEqual((list(train), list(held)), (["a", "c", "d"], ["b", "e"]))
        train, held = self.split("all", "abcde", examples=None)
        self.assertEqual((list(train), list(held)), (list("abcde"), []))
        with self.assertRaisesRegex(ValueError, "example 4 is for evaluation, and there are 3"):
            self.split("short", "abc", **more)

    def test_split_of_a_share(self) -> None:
        safetensors.save(
            self.path("share"), {"train": numpy.array([0, 3], "u4"), "validation": numpy.array([4], "u4")}
        )
        safetensors.save(self.path("indices"), {"indices": numpy.array([1, 4], "u4")})
        more = {"examples": None, "validation": self.path("indices"), "share": self.path("share"), "max_examples": 2}
        train, held = self.split("cut", "abcde", **more)
        self.assertEqual((list(train), list(held)), (["a", "d"], ["e"]))
        with self.assertRaisesRegex(ValueError, "example 3 is to train on, and there are 3"):
            self.split("few", "abc", **more)

    def test_roles(self) -> None:
        rules = {"bn*.running_*": "average", "*.bias": "frozen", "a[0]": "local"}
        for name, type, role in (
            ("bn1.running_mean", "F32", "average"),
            ("bn1.weight", "F32", "train"),
            ("x.y.bias", "F32", "frozen"),
            ("a[0]", "F32", "local"),
            ("a0", "F32", "train"),
            ("count", "I64", "frozen"),
        ):
            self.assertEqual(sources.role_of(rules, name, type), role, name)

    def test_plans(self) -> None:
        # As test_training.c: what the C side plans.
        for local, steps in (
            ({"epochs": 3, "batch": 10}, 33),
            ({"epochs": 3, "batch": 10, "accumulate": 4}, 9),
            ({"epochs": 3, "batch": 0}, 3),
            ({"epochs": 3, "batch": 500}, 3),
            ({"steps": 7}, 7),
            ({"seconds": 1}, 0),
            ({}, 11),
        ):
            self.assertEqual(sources.planned(local, 101)[1], steps, local)
        sized = {"target_s": 30, "min_steps": 20, "batch": 10}
        self.assertEqual(sources.planned(sized, 101, 77)[:2], (0, 77))


if __name__ == "__main__":
    unittest.main()
