"""One script under a real `rivulet run`: started once for all its tasks, and once for each."""
import json
import sys
import unittest
from typing import Any, Dict, List

from fleet import PACKAGE, Fleet, ask, digits_job, within

SCRIPT = """
import os
import rivulet
print("a progress bar\\r" * 100)
print('{"done": "nonsense"}')
for task in rivulet.tasks(trainer="t", data="digits", examples=1):
    with task:
        x, y, held_x, held_y = task.examples()
        assert x.shape == (180, 1, 28, 28) and len(held_x) == len(held_y) == 20 and 0 <= x.min() < x.max() <= 1
        for batch in task.batches(range(0, len(x), 10)):
            for t in task.tensors.values():
                t += 0.001
            task.step(1.0, 10)
        task.submit(metrics={"pid": os.getpid()})
"""


class Agent(unittest.TestCase):
    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)

    def rounds(self, device: str, rounds: int, settings: str) -> List[Dict[str, Any]]:
        """A job of so many rounds for that one device, whose trainer is the script."""
        path = self.fleet.path(device + ".py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        self.fleet.digits(device, 1, 200)
        with open(self.fleet.path(device, "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write("[trainer t]\nexec = %s %s\nenv = PYTHONPATH=%s\n" % (sys.executable, path, PACKAGE))
            f.write("read = %s %s\n%s" % (PACKAGE, path, settings))
        self.fleet.run(device, "-v")
        job = digits_job(device, 1, rounds)
        job.update({"trainer": "t", "select": {"devices": [device]}})
        job["data"]["validation"] = 0.1
        name = ask(self.fleet, "/v1/jobs", json.dumps(job).encode())["job"]
        within(30, "the job is done", lambda: ask(self.fleet, "/v1/jobs/" + name)["state"] == "done")
        found = ask(self.fleet, "/v1/jobs/%s/rounds" % name)["rounds"]
        self.assertEqual([r["examples"] for r in found], [180] * rounds)
        return found

    def test_persistent(self) -> None:
        rounds = self.rounds("stays", 3, "persistent = yes\n")
        self.assertEqual(len({r["metrics"]["pid"]["mean"] for r in rounds}), 1)

    def test_once(self) -> None:
        rounds = self.rounds("ends", 2, "")
        self.assertEqual(len({r["metrics"]["pid"]["mean"] for r in rounds}), 2)

    def test_failures(self) -> None:
        """Each is told to its end in the device's log; the coordinator is told the line of the script."""
        path = self.fleet.path("fails.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write("import json, rivulet\nfor task in rivulet.tasks():\n    with task:\n        json.loads('{x')\n")
        self.fleet.digits("fails", 1, 200)
        with open(self.fleet.path("fails", "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write("[trainer t]\nexec = %s %s\nenv = PYTHONPATH=%s\n" % (sys.executable, path, PACKAGE))
            f.write("read = %s\npersistent = yes\nshare_jobs = yes\n" % PACKAGE)
        self.fleet.run("fails")
        jobs = []
        for i in range(3):
            job = digits_job("fails%d" % i, 1, 1)
            job.update({"trainer": "t", "select": {"devices": ["fails"]}, "priority": 9 - i})
            jobs.append(ask(self.fleet, "/v1/jobs", json.dumps(job).encode())["job"])
        for name in jobs:
            failed = within(30, "it fails", lambda: ask(self.fleet, "/v1/jobs/" + name)["failures"])[0]
            self.assertEqual(failed["log"], "json.decoder.JSONDecodeError, fails.py line 4")
        within(30, "it ends", lambda: "trainer.ended" in self.fleet.log("fails"))
        lines = [line for line in self.fleet.log("fails").splitlines() if " task.aborted " in line]
        for line in lines:
            self.assertRegex(line, r'Expecting property name [^"]* \(char 1\) " request=[0-9a-f-]+$')
        # Python writes the last one once more as the program ends: before its log is taken, or behind.
        told = [line.count("Traceback") for line in lines]
        self.assertIn(told, ([1, 1, 1], [1, 1, 2]), lines)
        self.assertEqual(["The third failure in a row: the program ends." in line for line in lines], [False, False, True])


if __name__ == "__main__":
    unittest.main()
