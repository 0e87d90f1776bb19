"""`rivulet job export --tensorboard`: what tensorboard's own reader finds is what the API has, of an export that stays beside a running job,
and again of one that goes on where an earlier one was cut off. Needs tensorboard; the programs are those of $BUILD."""
import json
import os
import subprocess
import unittest
from typing import Any, Dict, List, Tuple

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fleet import RIVULET, Fleet, within

ROUNDS = 6
DATA = "[data digits]\nformat = glyphs\nhand = %d\ncount = 60\nseed = 1\nskew = 0.2"
JOB = {
    "name": "curves", "seed": 7,
    "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
    "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10, "validation": 0.25},
    "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
    "evaluate": {"by": "devices"},
    "round": {"goal": 2, "deadline_s": 3600},
    "stop": {"rounds": ROUNDS},
}  # type: Dict[str, Any]
Points = Dict[str, List[Tuple[int, float, float]]]


def of_api(rounds: List[Dict[str, Any]]) -> Points:
    """tag: (round, its end in Unix seconds, value as a float of 32 bits)."""
    points = {}  # type: Points
    for r in rounds:
        evaluate = r["evaluate"] or {}
        for tag, value in [("loss/train", r["loss"]), ("accuracy/train", r["accuracy"]),
                           ("loss/eval", evaluate.get("loss")), ("accuracy/eval", evaluate.get("accuracy"))]:
            if value is not None:
                points.setdefault(tag, []).append((r["round"], r["closed_at"], float(np.float32(value))))
    return points


def of_tensorboard(directory: str) -> Points:
    reader = EventAccumulator(directory, size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    return {tag: [(e.step, e.wall_time, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


class TestTensorboard(unittest.TestCase):
    def setUp(self) -> None:
        self.fleet = Fleet("[limits]\nlong_poll = 5\nretry_after = 1\n")
        self.addCleanup(self.fleet.__exit__, None, None, None)
        self.fleet.__enter__()
        for n, name in enumerate(("one", "two")):
            self.fleet.join(name, DATA % (n + 1))

    def admin(self, *words: str) -> str:
        return subprocess.run([RIVULET, *words, "--socket", self.fleet.socket], check=True, stdout=subprocess.PIPE, text=True).stdout

    def rounds(self, job: str) -> List[Dict[str, Any]]:
        return json.loads(self.admin("job", "show", job, "--json"))["rounds"]

    def test_beside_a_running_job(self) -> None:
        with open(self.fleet.path("job.json"), "w") as f:
            json.dump(JOB, f)
        job = self.admin("job", "submit", self.fleet.path("job.json")).strip()
        board = self.fleet.path("board")
        directory = os.path.join(board, "curves-" + job[:8])
        command = [RIVULET, "job", "export", "curves", "--tensorboard", board, "--follow", "--socket", self.fleet.socket]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as export:
            within(10, "an event file", lambda: os.path.isdir(directory) and os.listdir(directory))
            self.assertEqual(of_tensorboard(directory), {})
            self.fleet.run("one")
            self.fleet.run("two")
            within(30, "points while the job runs or thereafter", lambda: "loss/train" in of_tensorboard(directory))
            out, err = export.communicate()
        self.assertEqual(export.returncode, 0, err)
        want = of_api(self.rounds(job))
        # The devices measure the model before each round, and the last one in a round of its own.
        self.assertEqual([p[0] for p in want["loss/train"]], list(range(1, ROUNDS + 1)))
        self.assertEqual([p[0] for p in want["loss/eval"]], list(range(1, ROUNDS + 2)))
        self.assertEqual(of_tensorboard(directory), want)

        (name,) = os.listdir(directory)
        os.truncate(os.path.join(directory, name), os.path.getsize(os.path.join(directory, name)) - 7)
        self.assertEqual(len(of_tensorboard(directory)["loss/eval"]), ROUNDS)
        self.admin("job", "export", "curves", "--tensorboard", board)
        self.assertEqual(of_tensorboard(directory), want)


if __name__ == "__main__":
    unittest.main()
