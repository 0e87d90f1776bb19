"""`rivulet-site run` on a task's directory: the report and the weights of `rivulet trainer`, or a reason that names what is in the way."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from typing import Any, Dict, List, Optional, Tuple

from fleet import RIVULET
from test_site import NORMS, PLAIN, linear, settle, tensors

SITE = os.path.join(os.path.dirname(RIVULET), "rivulet-site")
LIMIT_S = 60
PIPELINE, REPLICAS, HYBRID = ("--ranks=3", "--pipeline-parallel=3"), ("--ranks=3", "--data-parallel=3"), (
    "--ranks=4", "--pipeline-parallel=2", "--data-parallel=2")
SHAPES = (PIPELINE, REPLICAS, HYBRID)
TEXT = [{"type": "embedding", "name": "e", "vocabulary": 128, "out": 8}, linear(12), {"type": "relu"}, linear(128)]

Answer = Tuple[Dict[str, Any], Optional[str]]


def job(layers: List[Dict[str, Any]], local: Optional[Dict[str, Any]] = None, data: Optional[Dict[str, Any]] = None,
        parallel: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    return {"name": "job", "seed": 3, "model": {"layers": layers, "loss": "cross_entropy"},
            "data": dict({"name": "digits", "shape": [1, 28, 28], "classes": 10}, **(data or {})),
            "local": dict({"epochs": 2, "batch": 12, "random": "counter", "optimizer": {"name": "sgd", "rate": 0.05}}, **(local or {})),
            "parallel": {"micro_batch": 2, "groups": 3} if parallel is None else parallel, "round": {"goal": 1}}


def answer(task: str) -> Answer:
    """What a program left: its report but for times, and the SHA-256 of the tensors."""
    with open(os.path.join(task, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    report.pop("seconds", None)
    path = os.path.join(task, "after.safetensors")
    return report, tensors(path) if os.path.exists(path) else None


@unittest.skipUnless(os.path.exists(SITE), "there is no rivulet-site where Open MPI is not")
class Program(unittest.TestCase):

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.place = holder.name

    def lay(self, document: Dict[str, Any], settings: str = "format = glyphs\nhand = 1\nseed = 1\ncount = 40\n") -> str:
        """A task's directory, as an agent lays it out."""
        task, keep, config, path = (os.path.join(self.place, name) for name in ("task", "keep", "config", "job.json"))
        shutil.rmtree(task, ignore_errors=True)
        with open(keep, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\ncp -rL "$1" {task}\nexit 1\n')
        os.chmod(keep, 0o755)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"[data {document['data']['name']}]\n{settings}[trainer builtin]\nexec = {keep}\nconfine = no\n")
        command = [RIVULET, "train", path, "--home", os.path.join(self.place, "home"), "--config", config]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        self.assertTrue(os.path.isdir(task), done.stdout)
        settle(task)
        return task

    def give(self, task: str, command: List[str], **more: Any) -> Answer:
        """What the program leaves of a copy of the task."""
        own = task + "-given"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(task, own)
        settle(own)
        path = os.path.join(own, "task.json")
        with open(path, encoding="utf-8") as f:
            told = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(told, **more), f)
        done = subprocess.run(command + [own], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return answer(own)

    def same(self, task: str, shapes: Tuple[Tuple[str, ...], ...] = SHAPES, **more: Any) -> Answer:
        alone = self.give(task, [RIVULET, "trainer"], **more)
        for shape in shapes:
            self.assertEqual(self.give(task, [SITE, "run", *shape], **more), alone, shape)
        return alone

    def test_few_examples(self) -> None:
        """Fewer than a step, a run or a piece; steps of one piece are one rank's."""
        for count in (1, 3, 7):
            task = self.lay(job(PLAIN), f"format = glyphs\nhand = 1\nseed = 1\ncount = {count}\n")
            self.assertIsNotNone(self.same(task)[1], count)

    def test_evaluations(self) -> None:
        for layers in (PLAIN, NORMS):
            report, weights = self.same(self.lay(job(layers, data={"validation": 0.4})), kind="evaluate")
            self.assertEqual((report["evaluate"]["examples"], weights), (16, None))

    def test_text(self) -> None:
        """The last stage has no embedding that says that it is one."""
        path = os.path.join(self.place, "text")
        with open(path, "wb") as f:
            f.write(bytes(97 + i * i % 23 for i in range(200)))
        document = job(TEXT)
        document["data"] = {"name": "text", "window": 8}
        self.assertIsNotNone(self.same(self.lay(document, f"format = text\npath = {path}\n"))[1])

    def test_failures(self) -> None:
        """In the middle of an epoch: a value out of the vocabulary, and a loss that is no number."""
        path = os.path.join(self.place, "rows.csv")
        rows = [[i % 50, 3 * i % 50, i * i % 50, i % 3] for i in range(40)]
        rows[11][1] = 77
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(",".join(map(str, row)) + "\n" for row in rows))
        document = job([{"type": "embedding", "name": "e", "vocabulary": 50, "out": 8}, {"type": "flatten"}, linear(12), {"type": "relu"}, linear(3)])
        document["data"] = {"name": "rows", "shape": [3], "classes": 3}
        report, _ = self.same(self.lay(document, f"format = csv\npath = {path}\n"))
        self.assertRegex(report["abort"]["text"], "^step [2-9]: a value is no whole number below 50$")
        wild = job([{"type": "flatten"}, linear(24), linear(20), linear(16), linear(10)], {"epochs": 30, "optimizer": {"name": "sgd", "rate": 3000}})
        report, _ = self.same(self.lay(wild))
        self.assertRegex(report["abort"]["text"], "^the loss is not finite at step [2-9]$")

    def test_long_steps(self) -> None:
        """Steps of which not even 64 are a data set."""
        path = os.path.join(self.place, "job.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(job([linear(2), {"type": "relu"}, linear(10)], {"batch": 1024, "accumulate": 65536}, {"shape": [2]}, {}), f)
        plan = subprocess.run([SITE, "plan", "--ranks", "2", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False,
                              env=dict(os.environ, XDG_CACHE_HOME=self.place))
        self.assertEqual(plan.returncode, 0, plan.stdout)
        self.assertIn("a step of 65536 pieces of 1024 examples", plan.stdout)

    def test_refusals(self) -> None:
        """What ranks cannot do, or not so, is said with the key's name: by the task and by the plan."""
        noisy = [{"type": "flatten"}, linear(8), {"type": "dropout", "rate": 0.2}, linear(10)]
        cases: List[Tuple[str, Dict[str, Any], Tuple[str, ...]]] = [
            ("local.random", job(noisy, {"random": "stream"}), PIPELINE),
            ("local.random", job(PLAIN, {"random": "stream"}, {"augment": {"noise": 0.1}}), PIPELINE),
            ("local.control_variates", job(PLAIN, {"control_variates": {"devices": 2}}), PIPELINE),
            ("parallel.micro_batch", job(PLAIN, parallel={}), PIPELINE),
            ("parallel.groups", job(PLAIN, parallel={"micro_batch": 2}), REPLICAS),
            ("--data-parallel", job(NORMS, parallel={"micro_batch": 4, "groups": 3}), REPLICAS),
            ("--pipeline-parallel", job([{"type": "flatten"}, linear(10)]), PIPELINE),
        ]
        for key, document, shape in cases:
            task = self.lay(document)
            report, weights = self.give(task, [SITE, "run", *shape])
            self.assertEqual((report["abort"]["reason"], weights), ("unsupported", None), report)
            self.assertTrue(report["abort"]["text"].startswith(key + ": "), report)
            plan = subprocess.run([SITE, "plan", *shape, os.path.join(self.place, "job.json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=LIMIT_S, check=False)
            self.assertEqual((plan.returncode, plan.stdout, plan.stderr), (1, "", f"rivulet-site: {report['abort']['text']}\n"))


if __name__ == "__main__":
    unittest.main()
