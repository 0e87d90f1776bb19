"""Jobs that a program of a named evaluator measures on a set of its own: `rivulet.evaluations`, and whatever may go wrong."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import signal
import sqlite3
import ssl
import struct
import subprocess
import sys
import unittest
from typing import Any, Dict, Iterator, List

from fleet import BUILD, RIVULET, RIVULETD, Fleet, ask, digits_job, within

import numpy
import rivulet
from rivulet import safetensors

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))
SANITIZED = unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")

# A trainer that moves its one number up by 1 in a round, on a device with one example.
LOOP = """
import sys, rivulet
for task in rivulet.tasks("counter", "numbers", 1, home=sys.argv[1]):
    with task:
        task.tensors["w"][:] += 1
        task.step(1.0, 1)
        task.submit(metrics={"distance": 7.0, "of_training": 5.0})
"""
# Its central set is what the number should be: 3. After that the model is bad, and from 90 on no number.
EVALUATOR = """
import sys, rivulet
for task in rivulet.evaluations("counter", examples=50, home=sys.argv[1]):
    with task:
        w = float(task.tensors["w"][0])
        print("model", w, "of round", task.round, "recipe", sorted(task.recipe), flush=True)
        if w >= 90:
            task.report(loss=float("nan"))
        else:
            for wrong in (dict(examples=0, loss=1.0), dict(examples=-3, loss=1.0), dict(examples=5)):
                try:
                    task.report(**wrong)
                    raise SystemExit("%s was taken" % wrong)
                except ValueError as e:
                    assert "at least 1" in str(e) or "nothing was evaluated" in str(e), e
            taken = task.report(loss=abs(w - 3), accuracy=max(0, 1 - abs(w - 3) / 10), metrics={"distance": abs(w - 3)})
            print("taken", taken, flush=True)
"""


@SANITIZED
class Central(unittest.TestCase):
    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        for name in ("a", "b", "quiet"):
            cls.fleet.join(name)
        cls.fleet.join("rater", token=cls.fleet.token("labelled", "--label", "rates=yes"))
        with rivulet_model(cls.fleet, 0.0) as path:
            cls.init = cls.upload(path)
        for name in ("a", "b"):
            cls.fleet.start(name, [sys.executable, "-c", LOOP, cls.fleet.path(name)])

    @classmethod
    def upload(cls, path: str) -> str:
        said = subprocess.run(
            [RIVULET, "model", "put", path, "--socket", cls.fleet.socket], check=True, capture_output=True
        )
        return said.stdout.decode().split()[0]

    def document(self, name: str, evaluate: Dict[str, Any], **changes: Any) -> Dict[str, Any]:
        return {
            "name": name,
            "model": {"init": self.init},
            "trainer": "counter",
            "data": {"name": "numbers", "classes": 2},
            "round": {"goal": 2, "deadline_s": 3600},
            "stop": {"rounds": 3},
            **changes,
            "evaluate": {"by": "program", **evaluate},
        }

    def submit(self, document: Dict[str, Any]) -> Dict[str, Any]:
        return self.ask("/v1/jobs", json.dumps(document).encode())

    def ask(self, path: str, body: Any = None) -> Any:
        return ask(self.fleet, path, body)

    def rounds(self, name: str) -> List[Dict[str, Any]]:
        return self.ask("/v1/jobs/%s/rounds" % name)["rounds"]

    def done(self, name: str) -> Dict[str, Any]:
        return within(
            20, "the job is over", lambda: self.ask("/v1/jobs/" + name)["state"] in ("done", "stopped") or None
        ) and self.ask("/v1/jobs/" + name)

    def run_evaluator(self, name: str) -> None:
        self.fleet.start(name, [sys.executable, "-c", EVALUATOR, self.fleet.path(name)])
        self.addCleanup(lambda: name in self.fleet.processes and self.fleet.end(name))

    def tool(self, *arguments: str) -> str:
        done = subprocess.run([RIVULET, *arguments, "--socket", self.fleet.socket], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.decode() + done.stderr.decode()

    def test_figures_of_every_model(self) -> None:
        self.run_evaluator("rater")
        name = self.submit(
            self.document(
                "figures",
                {"labels": {"rates": "yes"}},
                # What devices keep apart of their data is no matter of a central set.
                data={"name": "numbers", "classes": 2, "validation": 0.2},
                stop={"rounds": 5, "target": {"accuracy": 0.99}},
            )
        )["job"]
        job = self.done(name)
        self.assertEqual((job["state"], job["reason"]), ("done", "target reached"))
        rounds = self.rounds(name)
        self.assertEqual([r["evaluate"]["loss"] for r in rounds], [2, 1, 0])
        self.assertEqual([r["evaluate"]["examples"] for r in rounds], [50, 50, 50])
        self.assertTrue(all(r["reports"] == 2 for r in rounds), rounds)
        self.assertEqual((job["metric"]["round"], job["metric"]["accuracy"], job["best"]["round"]), (3, 1, 3))
        # What the evaluator calls so takes the place of what trainers do.
        self.assertEqual(rounds[0]["metrics"]["distance"], {"mean": 2, "reports": 1})
        self.assertEqual(rounds[0]["metrics"]["of_training"], {"mean": 5, "reports": 2})
        log = self.fleet.log("rater")
        self.assertIn("model 3.0 of round 3", log)
        # Neither trainers nor evaluators are told who evaluates: agents from before would refuse the word.
        self.assertNotIn("'evaluate'", log)
        # Devices measure any of its models like others: who its evaluators are is no matter of that.
        said = json.loads(self.tool("job", "evaluate", name, "--like", name, "--name", "like", "--json"))
        like = self.ask("/v1/jobs/" + said["job"])
        self.assertEqual(like["document"]["evaluate"], {"by": "devices"})
        self.ask("/v1/jobs/%s/stop" % said["job"], b"")

    def test_z_the_records_verify(self) -> None:
        """What the tests before left: the whole chain, with the evaluators' signatures, and the rounds' figures."""
        folder = self.fleet.path("verified")
        self.tool("verify", "fetch", folder)
        done = subprocess.run([RIVULET, "verify", folder], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        with open(os.path.join(folder, "bodies.jsonl"), encoding="utf-8") as f:
            self.assertIn("model.evaluated", f.read())

    def test_z_check_proves_the_reports(self) -> None:
        """What the tests before left is sound, and no column of a report can be another than what its evaluator and the coordinator signed."""
        self.run_evaluator("rater")
        job = self.submit(self.document("checked", {"devices": ["rater"]}, stop={"rounds": 1}))["job"]
        self.done(job)
        self.fleet.end("rivuletd")
        self.addCleanup(self.fleet.daemon)
        copy = self.fleet.path("checked")
        shutil.copytree(self.fleet.path("state"), copy)
        where = "job %s round 1 evaluation" % job
        self.assertEqual(self.found(copy), [])
        db = sqlite3.connect(os.path.join(copy, "rivulet.db"))
        other = db.execute("SELECT id FROM device WHERE name = 'quiet'").fetchone()[0]
        row = [bytes.fromhex(job)]
        was = db.execute("SELECT manifest, receipt, report FROM evaluation WHERE job = ?", row).fetchone()
        db.execute("CREATE TEMP TABLE kept AS SELECT * FROM evaluation WHERE job = ?", row)
        for column, value, says in (
            ("manifest", was[0][:-1] + bytes([was[0][-1] ^ 1]), "not signed by its device"),
            ("manifest", was[0][:112] + b"\7" + was[0][113:], "not for its manifest"),
            ("receipt", was[1][:-1] + bytes([was[1][-1] ^ 1]), "not signed by this coordinator's key"),
            ("report", was[2].replace("evaluate", "evaluatE"), "not the one that its manifest signs"),
            ("task", b"\7" * 16, "of another job, round, device or task"),
            ("device", other, "of another job, round, device or task"),
            ("round", 7, "of another job, round, device or task"),
        ):
            self.assertEqual(db.execute("UPDATE evaluation SET %s = ? WHERE job = ?" % column, [value] + row).rowcount, 1)
            db.commit()
            found = self.found(copy)
            self.assertEqual([f["kind"] for f in found], ["row-damaged"], (column, found))
            self.assertIn(says, found[0]["what"], column)
            self.assertEqual(found[0]["where"].replace("round 7", "round 1"), where)
            db.execute("DELETE FROM evaluation WHERE job = ?", row)
            db.execute("INSERT INTO evaluation SELECT * FROM kept")
            db.commit()
        db.close()

    def found(self, state: str) -> List[Dict[str, Any]]:
        """What `rivuletd check` finds there, notes left out."""
        done = subprocess.run([RIVULETD, "check", "--json", state], capture_output=True, timeout=120)
        self.assertIn(done.returncode, (0, 7), done)
        return [f for f in json.loads(done.stdout)["findings"] if f["severity"] != "note"]

    def test_reached_by_its_own_metric_and_the_guard(self) -> None:
        """The best model, the target and the guard go by what the evaluator says, also by a name of its own."""
        self.run_evaluator("rater")
        monitor = {"metric": "metrics.distance", "mode": "min"}
        name = self.submit(
            self.document(
                "guarded",
                {"labels": {"rates": "yes"}},
                monitor=monitor,
                guard={"metric": "metrics.distance", "factor": 1.5, "rounds": 2, "do": "stop"},
                stop={"rounds": 9},
            )
        )["job"]
        job = self.done(name)
        # 2, 1, 0, 1, 2: what is bad after 0 twice is a collapse, and the best is the last model then.
        self.assertEqual((job["state"], job["rounds_committed"], job["best"]["round"]), ("stopped", 5, 3), job)
        self.assertEqual(job["model"], self.rounds(name)[2]["model"])
        self.assertIn("guard: distance", job["reason"])
        name = self.submit(
            self.document(
                "own-target",
                {"devices": ["rater"]},
                monitor=monitor,
                stop={"rounds": 9, "target": {"metrics.distance": 1}},
            )
        )["job"]
        job = self.done(name)
        self.assertEqual((job["reason"], job["rounds_committed"]), ("target reached", 2), job)

    def test_a_model_without_numbers(self) -> None:
        self.run_evaluator("rater")
        with rivulet_model(self.fleet, 88.0) as path:
            init = self.upload(path)
        name = self.submit(
            self.document(
                "diverges",
                {"devices": ["rater"]},
                model={"init": init},
                guard={"metric": "loss", "factor": 100, "do": "stop"},
                stop={"rounds": 9},
            )
        )["job"]
        job = self.done(name)
        figures = [r["evaluate"] for r in self.rounds(name)]
        self.assertEqual((job["state"], len(figures)), ("stopped", 2), job)
        self.assertEqual((figures[1]["loss"], figures[1]["accuracy"]), (None, 0))

    def test_every_second_round_of_a_buffer(self) -> None:
        self.run_evaluator("rater")
        name = self.submit(
            self.document(
                "buffered",
                {"devices": ["rater"], "every": 2},
                round={"mode": "buffered", "goal": 1, "concurrency": 2, "deadline_s": 3600},
                stop={"rounds": 5},
            )
        )["job"]
        self.done(name)
        known = [r["evaluate"] is not None for r in self.rounds(name)]
        self.assertEqual(known, [False, True, False, True, True])

    def test_nobody_evaluates(self) -> None:
        """The round waits until evaluate.deadline_s and no longer; who is missing is said before, meanwhile and afterwards."""
        said = self.submit(
            self.document("absent", {"devices": ["nobody"], "deadline_s": 0.2}, stop={"rounds": 1})
        )
        self.assertIn("no device that has joined is nobody", " ".join(said["warnings"]))
        job = self.done(said["job"])
        self.assertEqual((job["state"], job["reason"]), ("done", "all rounds done"))
        self.assertEqual([r["evaluate"] for r in self.rounds(said["job"])], [None])
        said = self.submit(
            self.document("silent", {"devices": ["quiet"], "deadline_s": 3600}, stop={"rounds": 1})
        )
        self.assertIn('evaluator "quiet" did not ask for work lately', " ".join(said["warnings"]))
        name = said["job"]
        within(20, "it waits", lambda: (self.ask("/v1/jobs/" + name)["open"] or {})["state"] == "evaluating")
        stuck = within(20, "that is said", lambda: self.ask("/v1/jobs/" + name)["stuck"])
        self.assertEqual(stuck["kind"], "no-evaluation")
        self.assertIn('evaluator "quiet"', stuck["reason"])
        self.assertRegex(self.tool("job", "show", name), "waits for +the report of an evaluator")
        # A stop ends the wait at once.
        self.ask("/v1/jobs/%s/stop" % name, b"")
        within(20, "it is over", lambda: self.ask("/v1/jobs/" + name)["open"] is None)

    def test_killed_while_it_waits(self) -> None:
        """After a start the model is there again, and what was reported before it is not asked for again."""
        name = self.submit(
            self.document("killed", {"labels": {"rates": "yes"}, "deadline_s": 3600}, stop={"rounds": 1})
        )["job"]
        waits = lambda: (self.ask("/v1/jobs/" + name)["open"] or {})["state"] == "evaluating"
        within(20, "it waits", waits)
        self.fleet.end("rivuletd", signal.SIGKILL)
        self.fleet.daemon()
        within(20, "it waits again", waits)
        self.fleet.end("rivuletd")
        self.fleet.daemon()
        within(20, "it waits again", waits)
        self.run_evaluator("rater")
        job = self.done(name)
        self.assertEqual((job["state"], job["metric"]["loss"]), ("done", 2))

    def test_who_may_report(self) -> None:
        """A device that trains gets no such task, and its report is refused; an evaluator trains nothing; the second report does not count."""
        document = self.document(
            "hostile", {"labels": {"rates": "yes"}, "deadline_s": 3600}, round={"goal": 1, "deadline_s": 3600}
        )
        document["stop"] = {"rounds": 1}
        name = self.submit(document)["job"]
        within(20, "it waits", lambda: (self.ask("/v1/jobs/" + name)["open"] or {})["state"] == "evaluating")
        # With its own certificate and key, and whatever task.
        status, problem = self.report("a", name, 1, task=b"\7" * 16)
        self.assertEqual((status, problem["type"].rpartition(":")[2]), (403, "wrong-task"), problem)
        self.assertIn("none of the job's evaluators", problem["detail"])
        status, problem = self.report("rater", name, 1, task=b"\7" * 16)
        self.assertEqual((status, problem["detail"]), (403, "the task is not this device's in this round"))
        offer = {"protocol": 1, "trainers": ["counter"], "evaluators": ["counter"], "data": [{"name": "numbers", "examples": 1}]}
        offer["features"] = ["evaluate-program", "evaluate-task"]
        self.assertTrue(self.post("a", "/v1/tasks", json.dumps(offer).encode())[1]["wait"])
        # A trainer's program on the evaluator's home is told to wait: it is never asked to train.
        idle = json.loads(json.dumps(document))
        idle.update(name="idle", round={"goal": 3, "deadline_s": 3600})
        idle = self.submit(idle)["job"]
        offer["features"] = ["evaluate-task"]
        self.assertTrue(self.post("rater", "/v1/tasks", json.dumps(offer).encode())[1]["wait"])
        self.ask("/v1/jobs/%s/stop" % idle, b"")
        offer["features"] = ["evaluate-program"]
        task = self.post("rater", "/v1/tasks", json.dumps(offer).encode())[1]
        self.assertEqual((task["kind"], task["job"], "evaluate" in task["recipe"]), ("evaluate", name, False), task)
        # A model that no row has yet is there for the evaluator alone.
        self.assertEqual(self.post("rater", "/v1/models/" + task["model"]["id"], None)[0], 200)
        self.assertEqual(self.post("a", "/v1/models/" + task["model"]["id"], None)[0], 404)
        status, problem = self.report("rater", name, 1, task=bytes.fromhex(task["task"]), base="11" * 32)
        self.assertEqual((status, problem["type"].rpartition(":")[2]), (409, "wrong-base"), problem)
        self.run_evaluator("rater")
        job = self.done(name)
        self.assertEqual(job["metric"]["loss"], 2)
        status, problem = self.report("rater", name, 1, task=bytes.fromhex(task["task"]), base=task["model"]["id"])
        self.assertEqual(status, 409, problem)

    def post(self, device: str, path: str, body: Any, **headers: str) -> Any:
        """As the device, whose home has its certificate and key."""
        home = self.fleet.path(device)
        context = ssl.create_default_context(cafile=os.path.join(home, "ca.pem"))
        context.load_cert_chain(os.path.join(home, "cert.pem"), os.path.join(home, "key.pem"))
        connection = http.client.HTTPSConnection("localhost", self.fleet.port, timeout=60, context=context)
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data[:1] == b"{" else data

    def report(self, device: str, job: str, round: int, task: bytes, base: str = "00" * 32) -> Any:
        """The device's report of perfect figures, with all but a signature."""
        text = b'{"evaluate":{"examples":1,"loss":0,"accuracy":1}}'
        with open(os.path.join(self.fleet.path(device), "device.json"), encoding="utf-8") as f:
            own = json.load(f)["device"]
        manifest = b"RVD1" + struct.pack("<HH", 1, 320) + bytes.fromhex(job) + struct.pack("<Q", round)
        manifest += bytes.fromhex(base) + bytes.fromhex(own) + task + struct.pack("<Q", 1)
        manifest += bytes(60) + struct.pack("<I", 0x108) + bytes(40) + hashlib.sha256(text).digest() + b"\1" * 64
        return self.post(
            device,
            "/v1/tasks/%s/report" % task.hex(),
            b"",
            **{
                "Rivulet-Manifest": ":%s:" % base64.b64encode(manifest).decode(),
                "Rivulet-Report": ":%s:" % base64.b64encode(text).decode(),
            }
        )

    def test_documents(self) -> None:
        """What is wrong is said at the submission."""
        for evaluate, says in (
            ({}, 'needs "devices" or "labels"'),
            ({"devices": []}, "must not be empty"),
            ({"devices": ["x"], "labels": {"a": "b"}}, "only one of"),
            ({"devices": ["x"], "data": "y"}, "evaluate.data: not with"),
            ({"devices": ["x"], "figures": ["classes"]}, "evaluate.figures: not with"),
            ({"devices": ["x"], "device": "y"}, "evaluate.device: unknown key"),
            ({"by": "devices", "labels": {"a": "b"}}, "evaluate.labels: belongs to"),
            ({"by": "none"}, "coordinator"),
        ):
            with self.assertRaisesRegex(AssertionError, says.replace(".", "[.]").replace('"', '.{1,3}')):
                self.submit(self.document("wrong", evaluate))
        with self.assertRaisesRegex(AssertionError, 'by.*devices'):
            self.submit({**self.document("wrong", {"devices": ["x"]}, stop={}), "kind": "evaluate"})

    def test_simulated(self) -> None:
        """Without evaluators: that is said, and what would end by their figures alone is refused."""
        config, file = self.fleet.path("simulated.conf"), self.fleet.path("simulated.json")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[data digits]\nformat = glyphs\nhand = 1\ncount = 20\nseed = 1\n")
        document = {**digits_job("simulated", 1, 1), "evaluate": {"by": "program", "devices": ["central"]}}
        for changes, more, status, says, figure in (
            ({}, [], 0, "its rounds have no figures", None),
            ({}, ["--test", "digits"], 0, "the built-in network on --test digits", float),
            ({"stop": {"target": {"accuracy": 0.9}}}, [], 6, "no target is reached", None),
        ):
            with open(file, "w", encoding="utf-8") as f:
                json.dump({**document, **changes}, f)
            command = [RIVULET, "simulate", file, "--devices", "2", "--config", config, *more]
            done = subprocess.run(command, capture_output=True, timeout=120)
            self.assertIn(says, done.stderr.decode())
            self.assertEqual(done.returncode, status, done)
            if status == 0:
                line = json.loads(done.stdout.split(b"\n")[0])
                self.assertEqual(isinstance(line.get("accuracy"), float), figure is float, line)

    def test_arguments(self) -> None:
        with self.assertRaisesRegex(ValueError, "says whose models"):
            next(rivulet.evaluations("", home=self.fleet.path("rater")))
        os.environ["RIVULET_TASK"] = self.fleet.folder
        self.addCleanup(os.environ.pop, "RIVULET_TASK")
        with self.assertRaisesRegex(rivulet.Error, "a device of its own"):
            next(rivulet.evaluations("counter", home=self.fleet.path("rater")))


@contextlib.contextmanager
def rivulet_model(fleet: Fleet, value: float) -> Iterator[str]:
    """A file of a network that only programs know."""
    path = fleet.path("model%g" % value)
    safetensors.save(path, {"w": numpy.array([value, 0], numpy.float32)})
    yield path


if __name__ == "__main__":
    unittest.main()
