"""Data that a job's network cannot learn from is given back as data-mismatch, with what differs, before anything is trained; data that it
can learn from is trained on: texts of few tokens, texts shorter than the owner's window, labels that do not count. One real agent."""

import json
import os
import tempfile
import unittest
from typing import Any, Dict, Tuple

from fleet import Fleet, ask, within

FILES = {
    "ascii": b"\xef\xbb\xbf" + b"The quick brown fox jumps over the lazy dog.\r\n" * 3,
    "umlaut": "Für Elise, für Elise, für Elise.\n".encode() * 3,
    "short": b"to be or not to be",
    "classes": b"\xef\xbb\xbfa,b,y\r\n1,2,0\r\n2,1,1\r\n3,1,2\r\n",
    "two": b"a,b,y\n1,2,0\n2,1,1\n3,1,1\n",
    "ignored": b"a,b,y\n1,2,0\n2,1,1\n3,1,255\n",
    "numbers": b"a,b,y\n1,2,0.5\n2,1,1.5\n3,1,2.5\n",
    "wide": b"a,b,c,y\n1,2,0,1\n2,1,1,0\n3,1,2,1\n",
}
TEXTS = ("ascii", "umlaut", "short")


def text_job(data: str, vocabulary: int, window: int = 8, **about: int) -> Dict[str, Any]:
    layers = [
        {"type": "embedding", "vocabulary": vocabulary, "out": 4},
        {"type": "lstm", "name": "steps", "out": 8, "output": "sequence"},
        {"type": "linear", "name": "out", "out": vocabulary},
    ]
    return job(data, layers, {"window": window, **about})


def table_job(data: str, out: int, loss: str = "cross_entropy", **more: Any) -> Dict[str, Any]:
    about: Dict[str, Any] = {"shape": [2]}
    if loss == "cross_entropy":
        about["classes"] = out
    made = job(data, [{"type": "linear", "out": out}], about)
    made["model"].update(loss=loss, **more)
    return made


def job(data: str, layers: Any, about: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "name": "x",
        "seed": 1,
        "model": {"layers": layers, "loss": "cross_entropy"},
        "data": {"name": data, **about},
        "local": {"epochs": 1, "batch": 2, "optimizer": {"rate": 0.01}},
        "round": {"goal": 1, "deadline_s": 3600},
        "stop": {"rounds": 1},
    }


# name: the job, and what is said of it; "": it is trained.
CASES: Dict[str, Tuple[Dict[str, Any], str]] = {
    "few-tokens": (text_job("ascii", 128), ""),
    "short-text": (text_job("short", 256, 4), ""),
    "windows": (text_job("short", 256, 4, min_examples=4), ""),
    "ignored": (table_job("ignored", 2, ignore_index=255), ""),
    "token": (text_job("umlaut", 128), "the text has token 195, the network takes 128 of them and gives 128"),
    "window": (text_job("short", 256, 18), "data short is no text of more than the 18 tokens of the job's window"),
    "label": (table_job("classes", 2), "data classes has label 2, the job has 2 classes"),
    "ignored-other": (table_job("classes", 2, ignore_index=255), "data classes has label 2, the job has 2 classes"),
    "no-labels": (table_job("numbers", 2), "data numbers has no class labels"),
    "no-targets": (table_job("classes", 1, "mse"), "the data set has no labels, or no targets of the network's width"),
    "targets": (table_job("numbers", 3, "mse"), "the data set has no labels, or no targets of the network's width"),
    "features": (table_job("wide", 2), "data wide has examples of shape [3], the job wants [2]"),
    "not-a-text": (text_job("classes", 256), "data classes is no text of more than the 8 tokens"),
    "a-text": (table_job("ascii", 2), "data ascii has examples of shape [64], the job wants [2]"),
}


class Mismatch(unittest.TestCase):
    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        files = tempfile.TemporaryDirectory()
        cls.addClassCleanup(files.cleanup)
        sets = ""
        for name, data in FILES.items():
            path = os.path.join(files.name, name)
            with open(path, "wb") as f:
                f.write(data)
            more = "" if name in TEXTS else "kind = regression\n" if name == "numbers" else "kind = class\n"
            sets += "[data %s]\nformat = %s\npath = %s\n%s" % (name, "text" if name in TEXTS else "csv", path, more)
        cls.fleet = Fleet(sets).__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        cls.fleet.join("one", "[device]\nthreads = 1\n" + sets)

    def test_each_is_trained_or_said(self) -> None:
        # Those that train first: after some failures in a row a device rests.
        names = {}
        for case, (document, _) in CASES.items():
            names[case] = ask(self.fleet, "/v1/jobs", json.dumps({**document, "name": case}).encode())["job"]
        self.fleet.run("one")
        for case, (_, words) in CASES.items():
            path = "/v1/jobs/" + names[case]
            if not words:
                within(20, case, lambda: ask(self.fleet, path)["state"] == "done")
                continue
            failed = within(20, case, lambda: ask(self.fleet, path)["failures"])[0]
            self.assertEqual(failed["reason"], "data-mismatch", case)
            self.assertIn(words, failed["log"] or self.fleet.log("one"), case)

    def test_set_of_the_coordinator(self) -> None:
        """Found when the job is submitted, and not after each round."""
        for case, (document, words) in CASES.items():
            if not words or "data has" in words or case in ("window", "not-a-text"):
                continue
            text = json.dumps({**document, "name": case, "evaluate": {"by": "coordinator"}}).encode()
            with self.assertRaisesRegex(AssertionError, "data set .* of the coordinator") as refused:
                ask(self.fleet, "/v1/jobs", text)
            if not words.startswith("data "):
                self.assertIn(words.encode(), refused.exception.args[0])


if __name__ == "__main__":
    unittest.main()
