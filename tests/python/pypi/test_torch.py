"""PyTorch's side of the package: examples/torch_loop.py on MNIST, and tensors of every kind between torch and a task.

FULL=1: five devices to 97 %, as docs/from-pytorch.md has it.
"""
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections import OrderedDict
from typing import Any, Dict

from fleet import PACKAGE, PATIENCE, RIVULET, TOP, Fleet, ask, within

import numpy
import pages
import torch
from rivulet import Error, safetensors
from rivulet import _sources as sources
from rivulet import task as tasks

MNIST = os.environ.get("MNIST") or os.path.join(TOP, "..", "shared", "data", "mnist")
FULL = bool(os.environ.get("FULL"))
DEVICES, ROUNDS, TESTED = (5, 20, 10000) if FULL else (2, 2, 1000)


def test_set(folder: str) -> str:
    """The section of the coordinator's data: the first examples of the test set."""
    for name, skip in (("images-idx3", 16), ("labels-idx1", 8)):
        with gzip.open(os.path.join(MNIST, "t10k-%s-ubyte.gz" % name)) as f:
            data = f.read()
        size = (len(data) - skip) // int.from_bytes(data[4:8], "big")
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data[:4] + TESTED.to_bytes(4, "big") + data[8 : skip + TESTED * size])
    return "[data mnist]\nformat = idx\nimages = %s/images-idx3\nlabels = %s/labels-idx1" % (folder, folder)


class OneRound(unittest.TestCase):
    """The script of docs/from-pytorch.md: what it says that one round and many give."""

    def after(self, steps: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            script = pages.write("from-pytorch.md", folder)["one_round.py"]
            paths = os.pathsep.join([os.path.dirname(os.path.abspath(RIVULET)), os.environ["PATH"]])
            done = subprocess.run(
                [sys.executable, script, str(steps)],
                cwd=folder,
                env={**os.environ, "PATH": paths, "PYTHONPATH": PACKAGE},
                stdout=subprocess.PIPE,
                check=True,
            )
        return float(done.stdout.split()[-1])

    def test_beside_torch(self) -> None:
        one, five, fifty = (self.after(n) for n in (1, 5, 50))
        self.assertLess(one, 1e-6)
        self.assertLess(five, 1e-5)
        self.assertGreater(fifty, one)


class Readme(unittest.TestCase):
    def test_loop(self) -> None:
        """The loop that the README shows, with a network and data around it."""
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
            loop = re.findall(r"^```python\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE)[0]
        before = """
import rivulet, torch
from collections import OrderedDict
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
x = torch.randn(64, 4)
data = TensorDataset(x, (x[:, 0] > 0).long())
net = torch.nn.Sequential(OrderedDict(fc=torch.nn.Linear(4, 2)))
loss_of = torch.nn.CrossEntropyLoss()
"""
        local = {"epochs": 2, "batch": 8, "optimizer": {"name": "sgd", "rate": 0.5}}
        job = {
            "name": "readme",
            "model": {"layers": [{"type": "linear", "name": "fc", "out": 2}], "loss": "cross_entropy"},
            "trainer": "torch",
            "data": {"name": "scans", "shape": [4], "classes": 2},
            "local": local,
            "round": {"goal": 1, "deadline_s": 60},
            "stop": {"rounds": 3},
        }
        with Fleet() as fleet:
            home = fleet.join("one")
            fleet.start("one", [sys.executable, "-c", before + loop], RIVULET_HOME=home)
            name = ask(fleet, "/v1/jobs", json.dumps(job).encode())["job"]
            within(60, "the job ends", lambda: ask(fleet, "/v1/jobs/" + name)["state"] == "done")
            rounds = ask(fleet, "/v1/jobs/%s/rounds" % name)["rounds"]
        self.assertEqual([r["reports"] for r in rounds], [1, 1, 1])
        self.assertLess(rounds[2]["loss"], rounds[0]["loss"])


@unittest.skipUnless(os.path.exists(os.path.join(MNIST, "train-images-idx3-ubyte.gz")), "no MNIST files")
class Loop(unittest.TestCase):
    def test_mnist(self) -> None:
        data = tempfile.TemporaryDirectory()
        self.addCleanup(data.cleanup)
        with open(os.path.join(TOP, "examples", "torch-loop.json"), encoding="utf-8") as f:
            job: Dict[str, Any] = json.load(f)
        job["round"]["goal"], job["stop"]["rounds"] = DEVICES, ROUNDS
        if not FULL:
            job["local"] = {**job["local"], "steps": 100}
            del job["local"]["epochs"], job["stop"]["target"]
        with Fleet(test_set(data.name)) as fleet:
            script = os.path.join(TOP, "examples", "torch_loop.py")
            parts = str(DEVICES if FULL else 20)
            for i in range(1, DEVICES + 1):
                home = fleet.join("device%d" % i)
                fleet.start("device%d" % i, [sys.executable, script, home, MNIST, str(i), parts])
            began = time.monotonic()
            name = ask(fleet, "/v1/jobs", json.dumps(job).encode())["job"]
            within(600 / PATIENCE, "the job ends", lambda: ask(fleet, "/v1/jobs/" + name)["state"] == "done")
            took = time.monotonic() - began
            rounds = ask(fleet, "/v1/jobs/%s/rounds" % name)["rounds"]
            reports = ask(fleet, "/v1/jobs/%s/rounds/1" % name)["devices"]
            for i in range(1, DEVICES + 1):
                self.assertEqual(fleet.end("device%d" % i, signal.SIGTERM), 0)
        accuracy = [r["evaluate"]["accuracy"] for r in rounds]
        print("%d devices, %d rounds, %.0f s: accuracy %s" % (DEVICES, len(rounds), took, accuracy))
        self.assertEqual(len(reports), DEVICES)
        for r in reports:
            self.assertFalse(r["partial"])
            self.assertTrue(0 < r["loss"] < 3 and 0.1 < r["accuracy"] <= 1)
            self.assertEqual((r["steps"], r["examples"]), (375, 12000) if FULL else (100, 3000))
        self.assertGreaterEqual(accuracy[-1], 0.97 if FULL else 0.75)


    def test_under_the_agent(self) -> None:
        """The same script, of a job with a validation share, once started by an agent and once by itself."""
        for way in ("agent", "alone"):
            with self.subTest(way), Fleet() as fleet:
                script = [sys.executable, os.path.join(TOP, "examples", "torch_loop.py"), fleet.path("one"), MNIST, "1", "20"]
                files = [os.path.join(MNIST, "train-%s-ubyte.gz" % name) for name in ("images-idx3", "labels-idx1")]
                settings = "[data mnist]\nformat = idx\nimages = %s\nlabels = %s\nshard = 1/20\n" % tuple(files)
                settings += "[trainer torch]\nexec = %s\nenv = PYTHONPATH=%s\n" % (" ".join(script), PACKAGE)
                settings += "confine = no\npersistent = yes\n"
                fleet.join("one", settings if way == "agent" else "")
                fleet.run("one") if way == "agent" else fleet.start("one", script)
                with open(os.path.join(TOP, "examples", "torch-loop.json"), encoding="utf-8") as f:
                    job: Dict[str, Any] = json.load(f)
                job.update({"evaluate": {"by": "devices"}, "stop": {"rounds": 2}})
                job["round"]["goal"], job["data"]["validation"] = 1, 0.1
                name = ask(fleet, "/v1/jobs", json.dumps(job).encode())["job"]
                within(60, "the job ends", lambda: ask(fleet, "/v1/jobs/" + name)["state"] == "done")
                rounds = ask(fleet, "/v1/jobs/%s/rounds" % name)["rounds"]
                self.assertEqual([r["examples"] for r in rounds], [2700, 2700], fleet.log("one"))
                self.assertEqual(rounds[0]["evaluate"]["examples"], 300)
                self.assertGreater(rounds[1]["evaluate"]["accuracy"], rounds[0]["evaluate"]["accuracy"])


class Hand(sources.Hand):
    """A task without anybody behind it."""

    def __init__(self, tensors: Dict[str, Any], roles: Dict[str, str] = {}) -> None:
        self.parts = []
        self.after: Dict[str, Any] = {}
        for name, value in tensors.items():
            word, shape, data = safetensors.contents(value)
            role = sources.role_of(roles, name, word)
            self.parts.append(sources.Part(name, word, shape, role, memoryview(bytearray(data))))
        self.facts = sources.Facts(*[""] * 4, 1, 1, 0.1, {}, {}, 0, 1, 4, 0, 1, 1e9, 0)
        self.answers = iter(())

    def stop(self) -> int:
        return next(self.answers, 0)

    def submit(self, figures: sources.Figures, after: Dict[str, Any]) -> Any:
        self.figures = figures
        for part in self.parts:
            if part.name in after:
                sources.copy_into(part, after[part.name])
        return True, ""

    def values(self, name: str) -> Any:
        part = next(p for p in self.parts if p.name == name)
        return safetensors.array(part.data, part.type, part.shape)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)


class Tensors(unittest.TestCase):
    def test_a_module_there_and_back(self) -> None:
        torch.manual_seed(1)
        net, other = Net(), Net()
        hand = Hand(net.state_dict(), {"norm.running_*": "average"})
        task = tasks.Task(hand, None)  # type: ignore[arg-type]
        state = task.state_dict()
        self.assertIsInstance(state, OrderedDict)
        self.assertEqual(list(state), list(net.state_dict()))
        other.load_state_dict(state)
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(other.state_dict()[name], value) and state[name].dtype == value.dtype)
        self.assertEqual(task.roles()["norm.num_batches_tracked"], "frozen")
        self.assertEqual(task.roles()["norm.running_mean"], "average")
        # They are the task's memory, and load_state_dict has copied them.
        state["fc.bias"].fill_(5)
        self.assertEqual(task.tensors["fc.bias"].tolist(), [5, 5])
        self.assertFalse((other.fc.bias == 5).any())
        with torch.no_grad():
            other.fc.weight.fill_(7)
            other.norm.running_mean.fill_(0.5)
            other.norm.num_batches_tracked.fill_(99)
        task.step(torch.tensor(0.5, requires_grad=True), 8)
        task.submit(other, optimizer=torch.optim.AdamW(other.parameters()))
        self.assertTrue((hand.values("fc.weight") == 7).all() and (hand.values("norm.running_mean") == 0.5).all())
        self.assertEqual(hand.values("norm.num_batches_tracked"), 0)
        self.assertEqual((hand.figures.optimizer, hand.figures.loss), ("adamw", 0.5))

    def test_types(self) -> None:
        values = torch.tensor([[1.5, -2.0], [0.0, 3.0]])
        kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16]
        kinds += [torch.int32, torch.int64, torch.bool]
        tensors = {str(kind): values.abs().to(kind) for kind in kinds}
        tensors["scalar"], tensors["none"] = torch.tensor(4.0), torch.zeros(0, 3)
        state = tasks.Task(Hand(tensors), None).state_dict()  # type: ignore[arg-type]
        for name, value in tensors.items():
            self.assertEqual((state[name].dtype, state[name].shape), (value.dtype, value.shape))
            self.assertTrue(torch.equal(state[name], value), name)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            safetensors.save(path, {**tensors, "turned": values.T})
            again = {t.name: t.type for t in safetensors.File(path)}
            self.assertEqual(again["torch.bfloat16"], "BF16")
            numpy.testing.assert_array_equal(safetensors.load(path)["turned"], values.T.numpy())

    def test_half_precision_is_submitted_as_float(self) -> None:
        hand = Hand({"w": torch.zeros(2)})
        task = tasks.Task(hand, None)  # type: ignore[arg-type]
        task.step(torch.tensor(1.0, dtype=torch.bfloat16), 1)
        task.submit({"w": torch.tensor([1.5, 2.5], dtype=torch.bfloat16)})
        self.assertEqual(hand.values("w").tolist(), [1.5, 2.5])

    def test_losses_stay_tensors_until_the_end(self) -> None:
        task = tasks.Task(Hand({"w": torch.zeros(2)}), None)  # type: ignore[arg-type]
        for i in range(4):
            loss = torch.tensor(float(i), requires_grad=True) * 2
            task.step(loss, 10, torch.tensor(i))
        self.assertIsInstance(task._loss, torch.Tensor)
        self.assertFalse(task._loss.requires_grad)
        given = dict.fromkeys("metrics loss accuracy examples steps partial evaluate optimizer".split())
        figures = task._figures(**given, normaliser=0)
        self.assertEqual((figures.loss, figures.accuracy, figures.steps, figures.examples), (3, 0.15, 4, 40))
        # A batch in which nothing counts has no loss, as PyTorch says it; one by the weights of its labels.
        task.step(torch.tensor(float("nan")), 10, torch.tensor(0), labels=torch.tensor(0))
        task.step(torch.tensor(9.0), 10, torch.tensor(1), labels=torch.tensor(2), weight=torch.tensor(10.0))
        figures = task._figures(**given, normaliser=0)
        self.assertEqual((figures.loss, figures.accuracy, figures.examples), ((40 * 3 + 10 * 9) / 50, 7 / 42, 60))
        self.assertEqual(figures.trained, (50, 42, 7))
        task.step(torch.tensor(float("nan")), 1)
        with self.assertRaises(Error):
            task.submit()

    def test_a_loader(self) -> None:
        data = torch.utils.data.TensorDataset(torch.zeros(10, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=4)
        hand = Hand({"w": torch.zeros(2)})
        hand.facts = hand.facts._replace(epochs=3, steps=9)
        for stop, done, examples in (([], 9, 10), ([0, 0, 1], 3, 3), ([2], 1, 1)):
            task, hand.answers = tasks.Task(hand, None), iter(stop)  # type: ignore[arg-type]
            for (x,) in task.batches(loader):
                task.step(1.0, len(x))
            task.submit()
            self.assertEqual((hand.figures.steps, hand.figures.examples), (done, examples))
            self.assertEqual(hand.figures.partial, bool(stop))
        # The program breaks off by itself.
        task = tasks.Task(hand, None)  # type: ignore[arg-type]
        for (x,) in task.batches(loader):
            task.step(1.0, len(x))
            break
        task.submit()
        self.assertTrue(hand.figures.partial)
        with self.assertRaisesRegex(ValueError, "no batches"):
            list(tasks.Task(hand, None).batches([]))  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
