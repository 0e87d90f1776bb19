"""Hugging Face's Trainer and a LoRA adapter by rivulet.transformers: the programs of docs/from-huggingface.md on five devices, of which
one raises in its third task, another is killed and a third hangs. Nothing is downloaded: the base is a small GPT-2 drawn here.
"""
import os
import re
import sys
import tempfile
import textwrap
import unittest
from typing import Any, Dict, List, Optional, Set, Tuple

from fleet import PACKAGE, TOP, Fleet, within

import pages
import torch
import transformers
from rivulet import Coordinator, Error
from rivulet.transformers import Callback, arguments, base_sha256, check_base

NOTES = '''
"""Sequences that count up in steps of the device's own; FAULT says what happens in the fourth pass over them."""
import os
import signal
import time

import torch

torch.set_num_threads(1)
COUNT = 32


class Notes(torch.utils.data.Dataset):
    def __init__(self, n, count, seed, fault=""):
        random = torch.Generator().manual_seed(1000 * n + seed)
        starts = torch.randint(32, (count, 1), generator=random)
        self.rows = (starts + torch.arange(12) * (1 + n % 3)) % 32
        self.fault, self.taken = fault, 0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        self.taken += 1
        if self.taken == 3 * COUNT + 1:  # one of the job that starts them, two of the job
            if self.fault == "raise":
                raise OSError("the notes are gone")
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "hang":
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
                time.sleep(3600)
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def load(n):
    fault = os.environ.get("FAULT", "")
    mark = os.environ.get("FAULT_ONCE", "")
    if mark and os.path.exists(mark):
        fault = ""
    elif mark:
        open(mark, "w").close()
    return Notes(n, COUNT, 1, fault), Notes(n, 16, 2)
'''


def make_base(folder: str) -> None:
    torch.manual_seed(5)
    size = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 32, "n_positions": 16}
    end = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(**size, **end, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)


class Lora(unittest.TestCase):
    def setUp(self) -> None:
        self.fleet = Fleet().__enter__()
        self.addCleanup(self.fleet.__exit__)
        self.addCleanup(self.devices_end)
        self.base = self.fleet.path("base")
        make_base(self.base)
        # A trainer may reach the folder of its program, but not what lies above its agent's home.
        programs = self.fleet.path("programs")
        os.mkdir(programs)
        self.files = pages.write("from-huggingface.md", programs)
        with open(os.path.join(programs, "notes.py"), "w", encoding="utf-8") as f:
            f.write(NOTES)
        with open(self.files["network.py"], encoding="utf-8") as f:
            text = f.read()
        with open(self.files["network.py"], "w", encoding="utf-8") as f:
            f.write(text.replace('"/srv/base"', repr(self.base)))
        self.failures: Dict[Tuple[str, str], str] = {}
        self.coordinator = Coordinator(socket=self.fleet.socket)
        self.addCleanup(self.coordinator.close)
        sys.path.insert(0, programs)
        self.addCleanup(sys.path.remove, programs)

    def devices_end(self) -> None:
        for name in [name for name in self.fleet.processes if name != "rivuletd"]:
            self.fleet.end(name, check=name.startswith("own"))

    def own(self, name: str, n: int, fault: str = "") -> None:
        """A device of its own."""
        self.fleet.join(name, "[device]\nsend_log = tail\n")
        program = [sys.executable, self.files["device.py"], str(n)]
        self.fleet.start(name, program, RIVULET_HOME=self.fleet.path(name), FAULT=fault)

    def under_agent(self, name: str, n: int, fault: str = "") -> None:
        """A persistent trainer of an agent, which has its fault in its first life alone."""
        env = {"PYTHONPATH": PACKAGE, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        env.update(FAULT=fault, FAULT_ONCE=self.fleet.path("fault", name))
        os.makedirs(self.fleet.path("fault"), exist_ok=True)
        settings = """
            [device]
            send_log = tail
            [data notes]
            format = glyphs
            count = 32
            [trainer lora]
            exec = %s %s %d
            persistent = yes
            share_jobs = yes
            grace_s = 3
            read = %s %s %s
            write = %s
            env = %s
            """ % (
            sys.executable,
            self.files["device.py"],
            n,
            TOP,
            os.path.dirname(os.path.dirname(sys.executable)),
            self.base,
            self.fleet.path("fault"),
            " ".join("%s=%s" % pair for pair in env.items()),
        )
        self.fleet.join(name, textwrap.dedent(settings))
        self.fleet.run(name)

    def given_back(self) -> bool:
        """Notes what devices gave back, as the job shows it (the last of each device) and as the agents log it: what is given
        back after its round was closed without it the coordinator does not count. Have all three that should?"""
        for f in self.coordinator.job("notes")["failures"]:
            self.failures.setdefault((f["name"], f["reason"]), f["log"])
        for name in ("agent3", "agent4"):
            said = r"task\.\w+ .*\breason=(trainer-failed|deadline|timeout)\b"
            for reason in re.findall(said, self.fleet.log(name)):
                self.failures.setdefault((name, reason), "")
        return {"own2", "agent3", "agent4"} <= {name for name, _ in self.failures}

    def submit(self, **changes: str) -> None:
        """Runs job.py with texts changed."""
        with open(self.files["job.py"], encoding="utf-8") as f:
            text = f.read()
        for old, new in changes.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        program = self.files["job.py"].replace("job.py", "changed.py")
        with open(program, "w", encoding="utf-8") as f:
            f.write(text)
        done = self.fleet.start("job", [sys.executable, program], RIVULET_SOCKET=self.fleet.socket)
        self.assertEqual(done.wait(), 0, self.fleet.log("job"))

    def test_faults_and_the_best_model(self) -> None:
        self.own("own0", 0)
        self.under_agent("agent1", 1)
        self.own("own2", 2, "raise")
        self.under_agent("agent3", 3, "kill")
        self.under_agent("agent4", 4, "hang")
        # Five programs that import PyTorch at a time may take long on a busy machine; then they are there.
        warm = {'"quorum": 2': '"quorum": 5', '"deadline_s": 60': '"deadline_s": 3600', '"rounds": 30': '"rounds": 1'}
        self.submit(**{'"name": "notes",\n': '"name": "warm",\n'}, **warm)
        within(60, "all five have begun", lambda: self.coordinator.job("warm")["state"] == "done")
        self.submit(**{'"deadline_s": 60': '"deadline_s": 20', '"rounds": 30': '"rounds": 0'})
        try:
            within(30, "three tasks given back", self.given_back)
        except AssertionError:
            logs = [(name, self.fleet.log(name)[-1500:]) for name in ("own2", "agent3", "agent4")]
            raise AssertionError("%s: %s" % (self.failures, logs)) from None
        at = self.coordinator.job("notes")["round"]
        reason = {name: word for name, word in self.failures}
        self.assertEqual(reason["own2"], "trainer-failed")
        self.assertIn("the notes are gone", self.failures["own2", "trainer-failed"])
        self.assertIn(("agent3", "trainer-failed"), self.failures)
        self.assertIn(reason["agent4"], ("deadline", "timeout", "trainer-failed"))
        # The job has gone on meanwhile, and goes on with who is back.
        everyone = {"own0", "agent1", "own2", "agent3", "agent4"}
        within(30, "rounds with who raised", lambda: self.round_with({"own0", "agent1", "own2"}, at))
        self.coordinator.stop("notes")
        rounds = [r for r in self.coordinator.watch("notes") if r["state"] == "committed"]
        self.assertEqual([r["round"] for r in rounds], list(range(1, len(rounds) + 1)))
        self.assertLess(min(r["evaluate"]["loss"] for r in rounds), rounds[0]["evaluate"]["loss"] - 0.01)
        self.assertIn("train_loss", rounds[-1]["metrics"])
        self.check_best(rounds)
        for name in everyone:
            waiting = os.path.join(self.fleet.path(name), "outbox")
            self.assertEqual([f for f in os.listdir(waiting) if f.endswith(".delta")] if os.path.isdir(waiting) else [], [])

    def round_with(self, names: Set[str], first: int) -> bool:
        rounds = [r for r in self.coordinator.rounds("notes", first) if r["state"] == "committed"]
        devices = [self.coordinator.round("notes", r["round"])["devices"] for r in rounds]
        return any(names <= {d["name"] for d in reports} for reports in devices)

    def check_best(self, rounds: List[Dict[str, Any]]) -> None:
        """The best model, loaded again, gives the figure that was reported."""
        best = self.coordinator.job("notes")["guard"]["best"]
        measured = self.coordinator.round("notes", best["round"] + 1)
        self.assertEqual(measured["base"], best["model"])
        self.assertAlmostEqual(measured["evaluate"]["loss"], best["value"], delta=1e-6)
        import network
        import notes
        from rivulet.transformers import load_adapter

        net, losses = network.make(), []
        load_adapter(net, self.coordinator.model("notes", best=True))
        settings = transformers.TrainingArguments(self.fleet.path("work"), report_to="none", disable_tqdm=True)
        for device in measured["devices"]:
            held_out = notes.load(int(device["name"][-1]))[1]
            losses.append(transformers.Trainer(net, settings, eval_dataset=held_out).evaluate()["eval_loss"])
        print("best: round %d, reported %r, again %r" % (best["round"], best["value"], sum(losses) / len(losses)))
        self.assertAlmostEqual(sum(losses) / len(losses), best["value"], delta=1e-6)
        with open(self.files["best.py"], encoding="utf-8") as f:
            text = f.read().replace('"best")', repr(self.fleet.path("best")) + ")")
        with open(self.files["best.py"], "w", encoding="utf-8") as f:
            f.write(text)
        done = self.fleet.start("best", [sys.executable, self.files["best.py"]], RIVULET_SOCKET=self.fleet.socket)
        self.assertEqual(done.wait(), 0, self.fleet.log("best"))


class FakeTask:
    """As much of a Task as the callback asks."""

    def __init__(self, stop_after: int = 10**9, **facts: Any) -> None:
        self.asked, self.stop_after = 0, stop_after
        self.noted: Dict[str, Any] = {}
        self.aborted: Optional[Tuple[str, str]] = None
        standard: Dict[str, Any] = {"seconds": 0.0, "params": {}, "epochs": 0, "steps": 0, "lr": 0.0, "batch": 0, "seed": 1}
        self.__dict__.update({**standard, "recipe": {}, **facts})

    def stop_now(self) -> int:
        self.asked += 1
        return int(self.asked >= self.stop_after)

    def note(self, **figures: Any) -> None:
        self.noted.update(figures)

    def abort(self, reason: str, text: str) -> None:
        self.aborted = (reason, text)


class Counting(unittest.TestCase):
    """What the callback says of a Trainer's work."""

    def trained(self, task: FakeTask, examples: int = 30, **more: Any) -> Dict[str, Any]:
        torch.manual_seed(1)
        rows = [{"x": torch.ones(2) * i / examples, "labels": torch.tensor([float(i)])} for i in range(examples)]

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.out = torch.nn.Linear(2, 1)

            def forward(self, x: Any, labels: Any) -> Dict[str, Any]:
                return {"loss": ((self.out(x) - labels) ** 2).mean()}

        settings = transformers.TrainingArguments("/nonexistent/work", use_cpu=True, **{**arguments(task), **more})
        transformers.Trainer(Net(), settings, train_dataset=rows, callbacks=[Callback(task)]).train()
        return task.noted

    def test_epochs(self) -> None:
        optimizer = {"name": "sgd", "rate": 0.1}
        noted = self.trained(FakeTask(epochs=2, batch=8, lr=0.1, recipe={"local": {"optimizer": optimizer}}))
        self.assertEqual((noted["steps"], noted["examples"], noted["partial"]), (8, 30, False))
        self.assertEqual(noted["optimizer"], "sgd")
        self.assertEqual(noted["loss"], noted["metrics"]["train_loss"])
        self.assertGreater(noted["loss"], 0)

    def test_steps_and_accumulation(self) -> None:
        noted = self.trained(FakeTask(steps=3, batch=2, recipe={"local": {"accumulate": 2}}))
        self.assertEqual((noted["steps"], noted["examples"], noted["partial"]), (3, 12, False))
        self.assertEqual(noted["optimizer"], "adamw")

    def test_stopped_is_partial_work(self) -> None:
        noted = self.trained(FakeTask(stop_after=3, epochs=3, batch=5), examples=60)
        self.assertEqual((noted["steps"], noted["partial"]), (3, True))
        self.assertEqual(noted["examples"], 60 * 3 // 36)

    def test_seconds_end_it_and_are_not_partial(self) -> None:
        noted = self.trained(FakeTask(seconds=0.2, batch=5))
        self.assertFalse(noted["partial"])
        self.assertGreater(noted["steps"], 0)

    def test_base(self) -> None:
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "a.safetensors"), "wb") as f:
                f.write(b"abc")
            right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            self.assertEqual(base_sha256(d), right)
            check_base(FakeTask(params={"base_sha256": right}), d)
            for params in ({}, {"base_sha256": "0" * 64}):
                task = FakeTask(params=params)
                with self.assertRaisesRegex(Error, "the job wants"):
                    check_base(task, d)
                self.assertEqual(task.aborted and task.aborted[0], "base-mismatch")


if __name__ == "__main__":
    unittest.main()
