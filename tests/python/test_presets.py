"""rivulet.preset: what `rivulet preset` prints, and what it refuses."""
import json
import os
import subprocess
import unittest
import warnings
from typing import Any
from unittest import mock

from fleet import RIVULET, Fleet

import numpy
import rivulet
from rivulet import Coordinator, Error

DEEP: Any = {}
for _ in range(100000):
    DEEP = {"a": DEEP}


class Refusing:
    """A coordinator that takes no job, and any model."""

    where = "nowhere"

    def json(self, method: str, path: str, body: Any = None) -> Any:
        json.loads(body)
        raise Error("the document is wrong", "invalid")

    def exists(self, path: str) -> bool:
        return True


@mock.patch.dict(os.environ, {"RIVULET": RIVULET})
class OddDocuments(unittest.TestCase):
    """Whatever a document is, what is wrong with it is one Error."""

    def refused(self, job: Any, init: Any = None) -> str:
        coordinator = Coordinator(socket="/nowhere")
        coordinator._client = Refusing()  # type: ignore[assignment]
        with self.assertRaises(Error) as caught:
            coordinator.submit(job, init=init)
        self.assertEqual(caught.exception.code, "invalid")
        return str(caught.exception)

    def test_every_part_of_any_kind(self) -> None:
        init = {"w": numpy.zeros(2, "f4")}
        for odd in (None, True, 1, "preset", [], ["preset"], {}, {"preset": 1}):
            for job in (
                {"model": odd},
                {"model": odd, "x": "preset"},
                {"model": {"preset": odd}},
                {"model": {"preset": "gpt", "set": odd}},
                {"model": {"preset": "gpt", "layers": odd}},
                {"model": {"preset": "gpt"}, "data": odd},
                {"model": {"preset": "gpt", "set": {"width": odd}}},
                {"model": {"preset": "gpt", "set": {"name": odd}}},
                {"model": {}, "tensors": odd},
                {"model": {}, "tensors": {"a": odd}},
            ):
                for form in (job, json.dumps(job)):
                    for begins in (None, init):
                        with self.subTest(form=form, init=begins):
                            self.refused(form, begins)
            with self.subTest(init=odd):
                self.refused({"model": {}}, odd if odd not in (None, "preset") else {1: init["w"]})

    def test_what_is_no_document(self) -> None:
        for job, words in (
            (None, "a job is a dict, JSON text or the path of a file, and not a NoneType"),
            (3, "not a int"),
            (["model"], "not a list"),
            (b'{"model": {}}', "not a bytes"),
            ({"a": {1, 2}}, "cannot be written as JSON"),
            ({("a",): 1}, "cannot be written as JSON"),
            (DEEP, "cannot be written as JSON"),
            ('{"preset": ' * 100000, "is no JSON"),
            ('{"preset": ', "is no JSON"),
            ('{"a": "\ud800"}', "is no UTF-8"),
            ({"model": {"preset": "a\0"}}, "embedded null byte"),
            ({"model": {"preset": "gpt", "set": {"name": 3}}}, 'has no setting "name"'),
        ):
            with self.subTest(words=words, kind=type(job).__name__):
                self.assertIn(words, self.refused(job))
        self.assertIn("1 is no name of a tensor", self.refused({"model": {}}, {1: numpy.zeros(2, "f4")}))
        self.assertIn("tensors: must be an object", self.refused({"tensors": 3}, {"a": numpy.zeros(2, "f4")}))

    def test_what_names_no_job(self) -> None:
        for job in (None, 3, {}, {"job": 3}, ["a"]):
            with self.subTest(job=job), self.assertRaisesRegex(Error, "named by its id, its name or a JOB"):
                Coordinator(socket="/nowhere").job(job)  # type: ignore[arg-type]


@mock.patch.dict(os.environ, {"RIVULET": RIVULET})
class Presets(unittest.TestCase):
    def printed(self, *words: str) -> Any:
        return json.loads(subprocess.run([RIVULET, "preset", *words], capture_output=True, check=True).stdout)

    def test_as_the_command(self) -> None:
        self.assertEqual(rivulet.preset("gpt"), self.printed("gpt"))
        made = rivulet.preset("char-lstm", vocabulary=90, hidden=32, last=1)
        self.assertEqual(made, self.printed("char-lstm", "-s", "vocabulary=90", "-s", "hidden=32", "-s", "last=1"))
        self.assertEqual(made["data"], {"window": 80})
        lstm = {"type": "lstm", "name": "lstm", "out": 32, "layers": 2, "output": "last"}
        self.assertEqual(made["model"]["layers"][1], lstm)

    def test_what_is_refused(self) -> None:
        for name, settings, words in (
            ("nothing", {}, 'no preset is called "nothing"'),
            ("gpt", {"hidden": 3}, 'has no setting "hidden"'),
            ("gpt", {"width": 0}, "width must be a whole number from 1"),
            ("gpt", {"width": -1}, "KEY=NUMBER"),
            ("gpt", {"width": 1.5}, "a whole number, not 1.5"),
            ("gpt", {"width": True}, "a whole number, not True"),
            ("--help", {}, "no name of a preset"),
            ("", {}, "no name of a preset"),
        ):
            with self.subTest(name=name, settings=settings), self.assertRaises(Error) as caught:
                rivulet.preset(name, **settings)  # type: ignore[arg-type]
            self.assertEqual(caught.exception.code, "invalid")
            self.assertIn(words, str(caught.exception))
            self.assertNotIn("rivulet: ", str(caught.exception))

    def test_without_the_program(self) -> None:
        with mock.patch.dict(os.environ, {"RIVULET": "/nowhere/rivulet"}), self.assertRaises(Error) as caught:
            rivulet.preset("gpt")
        self.assertEqual(caught.exception.code, "not-found")
        self.assertIn("/nowhere/rivulet: No such file", str(caught.exception))

    def test_a_coordinator_takes_it(self) -> None:
        job = rivulet.preset("autoencoder", features=12, width=4, narrow=2)
        job["data"]["name"] = "readings"
        job.update(name="anomalies", local={"optimizer": {"rate": 0.1}}, round={"goal": 1}, stop={"rounds": 1})
        with Fleet() as fleet, Coordinator(socket=fleet.socket) as coordinator:
            with warnings.catch_warnings(record=True):  # that no device is there
                document = coordinator.job(coordinator.submit(job))["document"]
        self.assertEqual(document["model"], job["model"])

    def test_a_job_file_names_one(self) -> None:
        job = {
            "name": "spoken",
            "model": {"preset": "ds-cnn", "set": {"classes": 4, "side": 12, "width": 8}, "loss": "cross_entropy"},
            "data": {"name": "words", "classes": 4},
            "local": {"optimizer": {"rate": 0.1}},
            "round": {"goal": 1},
            "stop": {"rounds": 1},
        }
        with Fleet() as fleet, Coordinator(socket=fleet.socket) as coordinator:
            path = fleet.path("spoken.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(job, f)
            told = subprocess.run([RIVULET, "job", "submit", path, "--print"], capture_output=True, check=True).stdout
            for form in (job, json.dumps(job), path):
                with self.subTest(form=form), warnings.catch_warnings(record=True):  # that no device is there
                    self.assertEqual(coordinator.job(coordinator.submit(form))["document"], json.loads(told))
            for model, words in (
                ({"preset": "nothing"}, 'no preset is called "nothing"'),
                ({"preset": "gpt", "layers": []}, 'either "preset" or "layers"'),
                ({"preset": "gpt", "set": 3}, "model.set: must be an object"),
                ({"preset": 3}, "no name of a preset"),
            ):
                with self.subTest(model=model), self.assertRaises(Error) as caught:
                    coordinator.submit({**job, "model": model})
                self.assertIn(words, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
