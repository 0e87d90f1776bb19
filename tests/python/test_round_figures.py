"""What a round says of its devices' training is a sum over what counted, divided by what counted: labels that are ignored count nowhere."""
import json
import os
import subprocess
import sys
import unittest
from typing import Any, Dict

from fleet import BUILD, RIVULET, Fleet, within

import rivulet
from rivulet import Coordinator

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))

# Of 20 examples one counts, of 40 all, of 30 none.
SETS = {
    "few": [(i % 3, i % 2, 2) for i in range(19)] + [(1, 0, 0)],
    "many": [(i % 5, 1, i % 2) for i in range(40)],
    "none": [(i % 5, 1, 2) for i in range(30)],
}
JOB: Dict[str, Any] = {
    "name": "ignores",
    "model": {"layers": [{"type": "linear", "name": "fc", "out": 3}], "loss": "cross_entropy", "ignore_index": 2},
    "data": {"name": "d", "shape": [2], "classes": 3},
    "local": {"epochs": 2, "batch": 8, "optimizer": {"rate": 0}},
    "round": {"goal": 2, "deadline_s": 600},
    "stop": {"rounds": 1},
}
# A device of its own: two batches, of one of which nothing counts.
LOOP = """
import sys
import rivulet
for task in rivulet.tasks("own", "d", 10, home=sys.argv[1], kinds=("train", "evaluate")):
    with task:
        heavy = sys.argv[2] == "heavy"
        if task.kind == "train":
            task.step(2.0 if heavy else 1.0, 4, right=30 if heavy else 1, labels=60 if heavy else 2)
            task.step(float("nan"), 4, right=0, labels=0)
        given = {"examples": 4, "loss": 3.0, "loss_count": 30, "labels": 30, "right": 6}
        task.submit(evaluate=given if heavy else {**given, "loss": 1.0, "loss_count": 10, "labels": 10, "right": 10})
"""


class Rounds(unittest.TestCase):
    def setUp(self) -> None:
        self.fleet = Fleet()
        self.addCleanup(self.fleet.__exit__)
        self.fleet.__enter__()
        self.admin = Coordinator(socket=self.fleet.socket)
        self.addCleanup(self.admin.close)

    def test_ignored_labels(self) -> None:
        for name, rows in SETS.items():
            path = self.fleet.path(name + ".csv")
            with open(path, "w", encoding="ascii") as f:
                f.write("a,b,y\n" + "".join("%d,%d,%d\n" % row for row in rows))
            self.fleet.join(name, "[device]\nthreads = 1\n[data d]\nformat = csv\npath = %s" % path)
        job = self.admin.submit(JOB)
        # Nothing to learn from is no work: the task is given back before it begins.
        self.fleet.run("none")
        failures = within(20, "it gives up", lambda: self.admin.job(job)["failures"])
        self.assertEqual([(f["name"], f["reason"]) for f in failures], [("none", "data-mismatch")])
        self.fleet.run("few")
        self.fleet.run("many")
        list(self.admin.watch(job, interval=0.05))
        told = self.admin.round(job, 1)
        by_name = {d["name"]: d for d in told["devices"]}
        few, many = by_name["few"], by_name["many"]
        self.assertAlmostEqual(told["loss"], (2 * few["loss"] + 80 * many["loss"]) / 82, 6)
        right = round(2 * few["accuracy"]) + round(80 * many["accuracy"])
        self.assertAlmostEqual(told["accuracy"], right / 82, 12)
        # As `rivulet eval` finds it on all of the examples at once: the model has not moved.
        with open(self.fleet.path("all.csv"), "w", encoding="ascii") as f:
            f.write("a,b,y\n" + "".join("%d,%d,%d\n" % row for rows in SETS.values() for row in rows))
        with open(self.fleet.path("all.conf"), "w", encoding="ascii") as f:
            f.write("[data d]\nformat = csv\npath = %s\n" % self.fleet.path("all.csv"))
        with open(self.fleet.path("job.json"), "w", encoding="ascii") as f:
            json.dump(JOB, f)
        model = self.admin.model_file(job, self.fleet.path("model"))
        command = [RIVULET, "eval", self.fleet.path("job.json"), "--init", model, "--data", "d", "--json"]
        command += ["--config", self.fleet.path("all.conf"), "--home", self.fleet.path("nowhere")]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        self.assertAlmostEqual(told["loss"], found["loss"], 6)
        self.assertAlmostEqual(told["accuracy"], found["accuracy"], 12)

    @unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
    def test_programs(self) -> None:
        import numpy

        script = self.fleet.path("loop.py")
        with open(script, "w", encoding="ascii") as f:
            f.write(LOOP)
        document = {**JOB, "name": "own", "trainer": "own", "model": {}, "evaluate": {"by": "devices"}}
        document["data"] = {"name": "d", "validation": 0.5}
        job = self.admin.submit(document, init={"w": numpy.zeros(2, "float32")})
        for name in ("heavy", "light"):
            home = self.fleet.join(name, "[device]\nthreads = 1")
            self.fleet.start(name, [sys.executable, script, home, name], RIVULET_LIBRARY=os.path.join(BUILD, "librivulet.so.1"))
        rounds = list(self.admin.watch(job, interval=0.05))
        self.assertAlmostEqual(rounds[0]["loss"], (60 * 2 + 2 * 1) / 62, 12)
        self.assertAlmostEqual(rounds[0]["accuracy"], 31 / 62, 12)
        for r in rounds:
            self.assertAlmostEqual(r["evaluate"]["loss"], (30 * 3 + 10) / 40, 12)
            self.assertAlmostEqual(r["evaluate"]["accuracy"], 16 / 40, 12)
        self.assertEqual(rounds[-1]["state"], "evaluated")
        # Of a submission that was refused nothing is said with the next.
        home = self.fleet.join("anew", "[device]\nthreads = 1")
        document.update(name="anew", select={"devices": ["anew"]}, round={"goal": 1, "deadline_s": 600})
        job = self.admin.submit(document, init={"w": numpy.zeros(2, "float32")})
        nothing = {"loss_count": 0, "labels": 0, "right": 0}
        for task in rivulet.tasks("own", "d", 10, home=home, rounds=2, kinds=("train", "evaluate")):
            with task:
                work = {} if task.kind == "evaluate" else {"examples": 4, "steps": 1, "loss": 0.5, "accuracy": 0.25}
                if task.kind == "train":
                    with self.assertRaisesRegex(rivulet.Error, "not finite"):
                        bad = {"w": numpy.float32([0, numpy.nan])}
                        task.submit(bad, **{**work, "evaluate": {"examples": 4, "loss": 0, **nothing}, "trained": nothing})
                task.submit({"w": numpy.zeros(2, "f4")}, **work, evaluate={"examples": 4, "loss": 3.0, "accuracy": 0.75})
        first, _ = self.admin.watch(job, interval=0.05)
        self.assertEqual((first["loss"], first["accuracy"]), (0.5, 0.25))
        self.assertEqual((first["evaluate"]["loss"], first["evaluate"]["accuracy"]), (3.0, 0.75))


if __name__ == "__main__":
    unittest.main()
