"""A personal model: the job's, with the head that the device keeps for itself; what is said on the way there."""
import glob
import json
import os
import shutil
import subprocess
import unittest
from typing import Any, Dict, List
from unittest import mock

from fleet import PATIENCE, RIVULET, Fleet, ask, digits_job, within

import numpy
import rivulet
from rivulet import safetensors


class Personal(unittest.TestCase):
    fleet: Fleet
    home: str
    job: str
    document: Dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet("[data digits]\nformat = glyphs\nseed = 1\ncount = 100").__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        cls.fleet.digits("one", 1, 100)
        cls.fleet.run("one")
        cls.home = cls.fleet.path("one")
        cls.document = {**digits_job("personal", 1, 3), "tensors": {"fc2.*": "local"}}
        cls.answer = ask(cls.fleet, "/v1/jobs", json.dumps(cls.document).encode())
        cls.job = cls.answer["job"]
        within(30, "the job is done", lambda: ask(cls.fleet, "/v1/jobs/" + cls.job)["state"] == "done")
        # What makes the local file is written behind the delta.
        within(10, "the local tensors", lambda: glob.glob(cls.home + "/local/*.weights"))
        cls.fleet.end("one")

    def run_it(self, *words: str, code: int = 0) -> str:
        done = subprocess.run([RIVULET, *words], capture_output=True, text=True, timeout=20 * PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def local(self, *words: str, code: int = 0) -> str:
        if "--home" not in words:
            words = (*words, "--home", self.home)
        return self.run_it("model", "local", *words, "-o", self.fleet.path("out.safetensors"), code=code)

    def models(self) -> Dict[int, str]:
        """The job's models that the device holds, by round."""
        found = {}
        for path in glob.glob(self.home + "/models/*.safetensors"):
            found[int(safetensors.File(path).metadata.get("round", -1))] = path
        return found

    def own(self) -> numpy.ndarray:
        with open(self.home + "/local/%s.weights" % self.job, "rb") as f:
            return numpy.frombuffer(f.read()[16:-32], "f4")

    def check(self, found: Dict[str, Any], base: str) -> None:
        wanted = safetensors.load(base)
        self.assertEqual(list(found), list(wanted))
        for name in ("fc1.weight", "fc1.bias"):
            self.assertEqual(found[name].tobytes(), wanted[name].tobytes())
        own = numpy.concatenate([found[name].reshape(-1) for name in found if name.startswith("fc2.")])
        self.assertEqual(own.tobytes(), self.own().tobytes())
        self.assertFalse((found["fc2.weight"] == wanted["fc2.weight"]).all())

    def test_lifecycle(self) -> None:
        newest = max(self.models())
        base = self.models()[newest]
        for word in (self.job, self.job[:6], "personal"):
            told = json.loads(self.local(word, "--json"))
            self.check(safetensors.load(self.fleet.path("out.safetensors")), base)
            self.assertEqual((told["job"], told["round"], told["tensors"]), (self.job, newest, 2))
            self.assertEqual((told["base"], told["bytes"]), (os.path.basename(base)[:64], 510 * 4))
        meta = safetensors.File(self.fleet.path("out.safetensors")).metadata
        self.assertEqual((meta["job"], meta["base"], meta["round"]), (self.job, told["base"], str(newest)))
        self.assertRegex(self.local("personal"), r"the model of round \d of job %s, with 2 tensors" % self.job[:12])
        self.assertIn("fc2.weight", self.run_it("model", "inspect", self.fleet.path("out.safetensors")))
        older = self.models()[min(self.models())]
        self.local(self.job, "--base", older)
        self.check(safetensors.load(self.fleet.path("out.safetensors")), older)
        with mock.patch.dict(os.environ, RIVULET=RIVULET):
            self.check(rivulet.local_model("personal", self.home), base)
            with self.assertRaisesRegex(rivulet.Error, 'is called "another"') as caught:
                rivulet.local_model("another", self.home)
            self.assertEqual(caught.exception.code, "not-found")

    def test_without_a_coordinator(self) -> None:
        away = self.fleet.path("away")
        shutil.copytree(self.home, away)
        path = self.fleet.path("job.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self.document, f)
        with open(away + "/device.json", encoding="utf-8") as f:
            identity = f.read()
        with open(away + "/device.json", "w", encoding="utf-8") as f:
            f.write(identity.replace(str(self.fleet.port), "1"))
        self.assertIn("--job FILE", self.local("personal", "--home", away, code=5))
        for word in ("personal", self.job[:8]):
            self.local(word, "--home", away, "--job", path)
            self.check(safetensors.load(self.fleet.path("out.safetensors")), self.models()[max(self.models())])
        # Beside another job's tensors the document's hash says which are meant: that of what is submitted, without a mark.
        shutil.copy(glob.glob(away + "/local/*.weights")[0], away + "/local/%032d.weights" % 0)
        with open(path, "w", encoding="utf-8-sig") as f:
            json.dump(self.document, f)
        self.local("personal", "--home", away, "--job", path)
        self.check(safetensors.load(self.fleet.path("out.safetensors")), self.models()[max(self.models())])
        shutil.rmtree(away + "/models")
        self.assertIn("--base FILE gives one", self.local("personal", "--home", away, "--job", path, code=3))
        shutil.rmtree(away + "/local")
        self.assertIn('role "local"', self.local("personal", "--home", away, "--job", path, code=3))

    def test_what_is_wrong(self) -> None:
        self.assertIn("wants -o FILE", self.run_it("model", "local", "x", "--home", self.home, code=2))
        other = self.fleet.path("other.safetensors")
        safetensors.save(other, {"fc1.weight": numpy.zeros(3, "f4"), "fc2.weight": numpy.zeros(4, "f4")})
        self.assertIn("it is of another job", self.local(self.job, "--base", other, code=6))
        self.assertIn("short", self.local(self.job, "--base", os.devnull, code=6))
        self.assertIn(__file__, self.local(self.job, "--base", __file__, code=1))
        pipe = self.fleet.path("pipe")
        os.mkfifo(pipe)
        self.assertIn("pipe is no regular file", self.run_it("model", "local", self.job, "--home", self.home, "-o", pipe, code=6))
        self.assertEqual([os.path.basename(p) for p in glob.glob(pipe + "*")], ["pipe"])
        self.assertFalse(glob.glob(self.fleet.path("out.safetensors.part")))

    def test_files_by_what_they_are(self) -> None:
        path = self.home + "/local/%s.weights" % self.job
        told = self.run_it("model", "inspect", path)
        for words in ("kind     local: ", "job      " + self.job, "holds    2040 bytes", "rivulet model local JOB -o FILE"):
            self.assertIn(words, told)
        damaged = self.fleet.path("damaged")
        with open(path, "rb") as f:
            data = f.read()
        with open(damaged, "wb") as f:
            f.write(data[:-1] + b"\0")
        self.assertIn("damaged  its hash is wrong", self.run_it("model", "inspect", damaged))
        with open(damaged, "wb") as f:
            f.write(data[:-1])
        self.assertIn("is a damaged file of a device's", self.run_it("model", "inspect", damaged, code=7))
        for start, words in ((b"RVO1", "a device's outbox"), (b"RVP1", "rivulet data show"), (b"\x80\2", "a pickle"), (b"PK\3\4", "zip")):
            with open(damaged, "wb") as f:
                f.write(start + bytes(100))
            self.assertIn(words, self.run_it("model", "inspect", damaged, code=6))

    def test_a_head_that_nobody_trains(self) -> None:
        """Said by who submits, plans and simulates; not where devices evaluate."""
        words = 'tensors of role "local" are trained and kept on devices alone'
        path, config = self.fleet.path("warned.json"), self.fleet.path("warned.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[data digits]\nformat = glyphs\ncount = 20\nseed = 1\n")
        for by, said in (("coordinator", True), ("devices", False)):
            document = {**self.document, "name": "warned-" + by, "evaluate": {"by": by}}
            document["data"] = {**self.document["data"], "validation": 0.2}
            with open(path, "w", encoding="utf-8") as f:
                json.dump(document, f)
            commands: List[List[str]] = [
                ["job", "submit", path, "--socket", self.fleet.socket],
                ["job", "submit", path, "--socket", self.fleet.socket, "--dry-run"],
                ["job", "plan", path, "--socket", self.fleet.socket],
                ["job", "plan", path, "--devices", "2", "--config", config],
                ["simulate", path, "--devices", "2", "--config", config, "--rounds", "1"],
            ]
            for command in commands:
                done = subprocess.run([RIVULET, *command], capture_output=True, text=True, timeout=20 * PATIENCE)
                self.assertEqual((words in done.stdout + done.stderr, done.returncode), (said, 0), (command, done))


if __name__ == "__main__":
    unittest.main()
