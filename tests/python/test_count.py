"""task.count: the figures of a loop are those of the built-in trainer and of the textbook."""
import hashlib
import http.client
import json
import os
import socket
import sys
import unittest
from typing import Any, Dict, List

from fleet import BUILD, PACKAGE, PATIENCE, Fleet, ask, within

import numpy
import rivulet
from rivulet import _counts, safetensors

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))
EXAMPLES = 120


def counter(figures: List[str], classes: Any = 3) -> _counts.Counter:
    data = {"classes": classes} if classes else {}
    return _counts.Counter({"evaluate": {"by": "devices", "figures": figures}, "data": data})


class Words(unittest.TestCase):
    """Small cases by hand."""

    def test_classes(self) -> None:
        c = counter(["classes", "confusion"], ["a", "b", "c"])
        c.add([0, 1, 1], numpy.array([0, 1, 2]))
        c.add((2, numpy.int8(2)), [[0.1, 0.2, 0.7], numpy.float32([5, 5, 5])])
        self.assertEqual((c.examples, c.right), (5, 3))
        self.assertEqual(c.members(), {
            "classes": [[0, 1, 2, 1], [1, 2, 1, 1], [2, 2, 2, 1]],
            "confusion": [[0, 0, 1], [1, 1, 1], [1, 2, 1], [2, 0, 1], [2, 2, 1]],
        })

    def test_top_and_ties(self) -> None:
        c = counter(["top1", "top2"])
        c.add([0, 1, 2, 2], [[1, 1, 1], [1, 1, 1], [1, 1, 1], [0, 3, 2.5]])
        self.assertEqual(c.members(), {"top": [[1, 1], [2, 3]]})

    def test_auc(self) -> None:
        c = counter(["auc"], 2)
        c.add([1, 1, 0, 0], [[0, 0], [0, 1e9], [0, -1e9], [0.75, 0.25]])
        self.assertEqual(c.members(), {"auc": {"positive": [[128, 1], [255, 1]], "negative": [[0, 1], [85, 1]]}})

    def test_regression(self) -> None:
        c = counter(["regression"], 0)
        c.add([[1, 2]], numpy.float32([[0, 4]]))
        c.add([[-1, 0.5]], [[-1, 0.25]])
        self.assertEqual(c.members(), {"regression": {
            "values": 4, "absolute": 3.25, "squares": 5.0625, "sum": 2.5, "sum_squares": 6.25}})
        c = counter(["regression"], 0)
        c.add([1.0, 2.0], [[1.0], [3.0]])
        self.assertEqual(c.members()["regression"]["values"], 2)

    def test_ignored(self) -> None:
        c = _counts.Counter({
            "evaluate": {"figures": ["classes"]},
            "data": {"classes": 3},
            "model": {"ignore_index": -100, "class_weights": [1, 2, 4]},
        })
        c.add(numpy.array([[0], [-100], [2]]), [0, 1, 1])
        self.assertEqual((c.examples, c.labels, c.right, c.weight), (3, 2, 1, 5))
        self.assertEqual(c.members(), {"classes": [[0, 1, 1, 1], [1, 0, 1, 0], [2, 1, 0, 0]]})

    def test_all_or_none(self) -> None:
        """What an error was raised for is not counted in part."""
        c = counter(["regression"], 0)
        c.add([1.0], [2.0])
        before = c.members()
        for found in ([[5.0], [1.0, 2.0]], [5.0, float("nan")]):
            with self.assertRaises((ValueError, rivulet.Error)):
                c.add([1.0, 2.0], found)
            self.assertEqual((c.members(), c.examples), (before, 1))

    def test_nothing(self) -> None:
        c = counter([])
        c.add([], [])
        self.assertEqual((c.members(), c.examples), ({}, 0))

    def test_refused(self) -> None:
        for figures, classes, truth, found, words in (
            ([], 3, [3], [0], "y_true holds 3, which is none of the classes 0 to 2"),
            ([], 3, [0], [-1], "y_pred holds -1"),
            ([], 3, [0.5], [0], "y_true holds 0.5"),
            ([], 3, [10**400], [0], "y_true holds 10"),
            ([], 3, [float("inf")], [0], "y_true holds inf"),
            ([], 3, [0, 1], [0], "y_true has 2 examples, and y_pred 1"),
            ([], 2, [0, 1], [0.2, 0.7], r"one float each: .* \[n, 2\]; a probability p of class 1 is \[1 - p, p\]"),
            ([], 3, [0], [[1, 2]], r"scores are not \[n, 3\]"),
            ([], 3, [0, 1], [[1, 2, 3], 1], r"scores are not \[n, 3\]"),
            ([], 3, ["a"], [0], "y_true holds a str"),
            ([], 3, 1, [0], "y_true is one number"),
            ([], 0, [[1, 2]], [[1, 2, 3]], "not both"),
            ([], 0, [[[1]]], [[[1]]], "not both"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                counter(figures, classes).add(truth, found)
        for figures, classes, truth, found, code in (
            (["top2"], 3, [0], [0], "no-figures"),
            (["auc"], 2, [0], [0], "no-figures"),
            (["classes"], 3, [0], [[0, 1, float("nan")]], "numeric"),
            (["regression"], 0, [0], [float("inf")], "numeric"),
            (["regression"], 0, [0], [10**400], "numeric"),
        ):
            with self.assertRaises(rivulet.Error) as caught:
                counter(figures, classes).add(truth, found)
            self.assertEqual(caught.exception.code, code)


@unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
class Figures(unittest.TestCase):
    """A loop, the built-in trainer and the definitions, on the same model and examples."""

    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)

    def model(self, outputs: int) -> None:
        rng = numpy.random.default_rng(outputs)
        self.weight = rng.normal(size=(outputs, 4)).astype("f4")
        data = safetensors.dump({"fc.weight": self.weight, "fc.bias": numpy.zeros(outputs, "f4")})
        self.init = hashlib.sha256(data).hexdigest()
        connection = http.client.HTTPConnection("localhost", timeout=20 * PATIENCE)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.fleet.socket)
        connection.request("PUT", "/v1/models/" + self.init, data)
        self.assertIn(connection.getresponse().status, (200, 201))
        connection.close()
        self.x = rng.normal(size=(EXAMPLES, 4)).astype("f4")
        noisy = self.x @ self.weight.T + rng.normal(size=(EXAMPLES, outputs))
        self.y = noisy.argmax(1) if outputs > 1 else noisy[:, 0].astype("f4")

    ignored: Any = None  # a class

    def job(self, name: str, outputs: int, figures: List[str], trainer: str) -> Dict[str, Any]:
        data: Dict[str, Any] = {"name": "rows", "shape": [4]}
        if outputs > 1:
            data["classes"] = outputs
        return {
            "name": name,
            "kind": "evaluate",
            "model": {
                "layers": [{"type": "linear", "name": "fc", "out": outputs}],
                "loss": "cross_entropy" if outputs > 1 else "mse",
                "init": self.init,
                **({} if self.ignored is None else {"ignore_index": self.ignored}),
            },
            "trainer": trainer,
            "data": data,
            "local": {"optimizer": {"rate": 1}},
            "evaluate": {"by": "devices", "figures": figures},
            "round": {"goal": 1},
            "select": {"devices": ["loop" if trainer == "loop" else "built-in-%d" % outputs]},
        }

    def submit(self, document: Dict[str, Any]) -> str:
        return ask(self.fleet, "/v1/jobs", json.dumps(document).encode())["job"]

    def figures(self, job: str) -> Dict[str, Any]:
        within(30, "the job is done", lambda: ask(self.fleet, "/v1/jobs/" + job)["state"] == "done")
        return ask(self.fleet, "/v1/jobs/%s/rounds/1" % job)["figures"]

    def both(self, outputs: int, words: List[str]) -> Dict[str, Any]:
        """The figures of a loop, which are those of the built-in trainer."""
        self.model(outputs)
        name = "built-in-%d" % outputs
        for file, values in (("x.npy", self.x), ("y.npy", self.y.astype("i4") if outputs > 1 else self.y)):
            numpy.save(self.fleet.path("%d%s" % (outputs, file)), values)
        kind = "" if outputs > 1 else "kind = regression\n"
        self.fleet.join(name, "[data rows]\nformat = npy\nx = %s\ny = %s\n%s" % (
            self.fleet.path("%dx.npy" % outputs), self.fleet.path("%dy.npy" % outputs), kind))
        self.fleet.run(name)
        own = self.submit(self.job("own%d" % outputs, outputs, words, "builtin"))
        loop = self.submit(self.job("loop%d" % outputs, outputs, words, "loop"))
        for task in rivulet.tasks("loop", "rows", EXAMPLES, home=self.home(), rounds=1, kinds=["evaluate"], figures=True):
            with task:
                scores = self.x @ task.tensors["fc.weight"].T
                task.count(self.y[:50], scores[:50])
                task.count(self.y[50:], scores[50:].tolist())
                if outputs > 1:
                    task.submit()
                    continue
                with self.assertRaisesRegex(ValueError, "give evaluate= with its loss|nothing was evaluated"):
                    task.submit()
                loss = float(((scores[:, 0] - self.y) ** 2).mean())
                with self.assertRaisesRegex(ValueError, "counted 120 examples, and the evaluation is of 119"):
                    task.submit(evaluate={"examples": EXAMPLES - 1, "loss": loss})
                task.submit(evaluate={"examples": EXAMPLES, "loss": loss})
        found, wanted = self.figures(loop), self.figures(own)
        self.scores = self.x @ self.weight.T
        self.same(found, wanted)
        return found

    def same(self, found: Any, wanted: Any) -> None:
        if isinstance(wanted, dict):
            self.assertEqual(set(found), set(wanted))
            for key in wanted:
                self.same(found[key], wanted[key])
        elif isinstance(wanted, list):
            self.assertEqual(len(found), len(wanted))
            for pair in zip(found, wanted):
                self.same(*pair)
        elif isinstance(wanted, float):
            self.assertAlmostEqual(found, wanted, 5)
        else:
            self.assertEqual(found, wanted)

    def home(self) -> str:
        home = self.fleet.path("loop")
        return home if os.path.exists(home) else self.fleet.join("loop")

    def test_classes(self) -> None:
        found = self.both(5, ["classes", "confusion", "top1", "top3"])
        taken = self.scores.argmax(1)
        matrix = numpy.zeros((5, 5), int)
        for pair in zip(self.y, taken):
            matrix[pair] += 1
        self.assertEqual(found["confusion"], [[i, j, int(matrix[i, j])] for i, j in zip(*matrix.nonzero())])
        recall, precision = matrix.diagonal() / matrix.sum(1), matrix.diagonal() / matrix.sum(0)
        self.same(found["recall"], recall.tolist())
        self.same(found["precision"], precision.tolist())
        self.same(found["f1"], (2 * recall * precision / (recall + precision)).tolist())
        order = numpy.argsort(-self.scores, axis=1, kind="stable")
        for k in (1, 3):
            self.assertAlmostEqual(found["top%d" % k], (order[:, :k] == self.y[:, None]).any(1).mean())

    def test_ignored(self) -> None:
        """A label that is `ignore_index` is in none of them; a loop may leave it out, too."""
        self.ignored = 1
        words = ["classes", "confusion", "top1", "top3"]
        found = self.both(4, words)
        counts = self.y != 1
        right = self.scores.argmax(1)[counts] == self.y[counts]
        self.assertEqual((found["examples"], found["recall"][1]), (counts.sum(), None))
        self.assertEqual(found["support"], [int((self.y == i).sum()) if i != 1 else 0 for i in range(4)])
        self.assertAlmostEqual(found["top1"], right.mean())
        loss = {"examples": EXAMPLES, "loss": 0.5, "loss_count": float(counts.sum())}
        told = {**loss, "labels": int(counts.sum()), "right": int(right.sum())}

        def step(task: Any) -> None:
            task.step(0.5, EXAMPLES, told["right"], told["labels"])
            task.submit()

        for name, act in (("told", lambda task: task.submit(evaluate=told)), ("stepped", step)):
            job = self.submit(self.job(name, 4, words, "loop"))
            for task in rivulet.tasks("loop", "rows", EXAMPLES, home=self.home(), rounds=1, kinds=["evaluate"], figures=True):
                with task:
                    task.count(self.y[counts], (self.x @ task.tensors["fc.weight"].T)[counts])
                    with self.assertRaisesRegex(ValueError, "the evaluation is of %d" % (counts.sum() - 1)):
                        task.submit(evaluate={**told, "labels": told["labels"] - 1})
                    act(task)
            self.same(self.figures(job), found)
            rated = ask(self.fleet, "/v1/jobs/%s/rounds/1" % job)["evaluate"]
            self.assertAlmostEqual(rated["accuracy"], right.mean())
            self.assertEqual((rated["examples"], rated["loss"]), (EXAMPLES, 0.5))
        self.same(self.by_agent(words), found)

    def by_agent(self, words: List[str]) -> Dict[str, Any]:
        """The figures of a program that an agent started, of all labels that it was given."""
        script = self.fleet.path("counts.py")
        with open(script, "w", encoding="ascii") as f:
            f.write(
                "import rivulet\n"
                "for task in rivulet.tasks():\n"
                "    with task:\n"
                "        given = task.examples()\n"
                "        task.count(given.y, given.x @ task.tensors['fc.weight'].T)\n"
                "        task.submit(evaluate={'examples': len(given.y), 'loss': 0.5})\n"
            )
        set_of = "[data rows]\nformat = npy\nx = %s\ny = %s\n" % (self.fleet.path("4x.npy"), self.fleet.path("4y.npy"))
        program = "[trainer loop]\nexec = %s %s\nkinds = evaluate\nenv = PYTHONPATH=%s\nread = %s %s\n" % (
            sys.executable, script, PACKAGE, PACKAGE, script)
        self.fleet.join("by-agent", set_of + program)
        self.fleet.run("by-agent")
        return self.figures(self.submit({**self.job("by-agent", 4, words, "loop"), "select": {"devices": ["by-agent"]}}))

    def test_two(self) -> None:
        found = self.both(2, ["auc"])
        z = self.scores[:, 1] - self.scores[:, 0]
        above = z[self.y == 1][:, None] - z[self.y == 0][None]
        self.assertAlmostEqual(found["auc"], ((above > 0) + 0.5 * (above == 0)).mean(), delta=0.005)

    def test_numbers(self) -> None:
        found = self.both(1, ["regression"])
        e = self.scores[:, 0] - self.y
        self.assertAlmostEqual(found["mae"], abs(e).mean(), 5)
        self.assertAlmostEqual(found["r2"], 1 - (e**2).sum() / ((self.y - self.y.mean()) ** 2).sum(), 5)

    @unittest.skipUnless(os.environ.get("FULL"), "FULL=1: it waits for tasks that do not come")
    def test_too_little(self) -> None:
        """Who says nothing of figures is not offered such a job; who finds that it cannot give them is not offered it again."""
        self.model(5)
        job = self.submit(self.job("little", 5, ["top3"], "loop"))

        def reason() -> Any:
            return ask(self.fleet, "/v1/jobs/" + job)["failures"]

        self.assertEqual(list(rivulet.tasks("loop", "rows", EXAMPLES, home=self.home(), wait=1, kinds=["evaluate"])), [])
        self.assertEqual(reason(), [])
        given = 0
        loop = rivulet.tasks("loop", "rows", EXAMPLES, home=self.home(), wait=2, kinds=["evaluate"], figures=True)
        for task in loop:
            with task:
                given += 1
                with self.assertRaisesRegex(rivulet.Error, "task.count counted nothing"):
                    task.submit(evaluate={"examples": EXAMPLES, "accuracy": 0.5})
                task.count(self.y, self.y)
        self.assertEqual(given, 1)
        self.assertEqual({f["reason"] for f in reason()}, {"no-figures"})


if __name__ == "__main__":
    unittest.main()
