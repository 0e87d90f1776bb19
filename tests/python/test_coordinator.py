"""rivulet.Coordinator against a real rivuletd: every way in, jobs submitted and followed, models checked."""
import csv
import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock
from typing import Any, Dict, List

from fleet import BUILD, PACKAGE, RIVULET, RIVULETD, TOP, Fleet, digits_job, within

try:
    import numpy
except ImportError:
    print("needs numpy")
    sys.exit(77)
import rivulet
from rivulet import ApiError, Coordinator, Error
from rivulet import _initial, _trust, safetensors
from rivulet._changes import Changes


# Something changes whenever somebody waits.
CHANGING = mock.patch("rivulet.coordinator.Changes.wait", lambda self, interval: None)


def initial(shift: float = 0.0) -> Dict[str, Any]:
    rng = numpy.random.default_rng(3)
    shapes = {"fc1.weight": (50, 784), "fc1.bias": (50,), "fc2.weight": (10, 50), "fc2.bias": (10,)}
    return {name: (rng.normal(0, 0.05, shape) + shift).astype("float32") for name, shape in shapes.items()}


# A device of its own whose evaluations last until a file is there.
SLOW = """
import os, sys, time
import rivulet
home, name, flag, go = sys.argv[1:]
for task in rivulet.tasks("slow", name, 10, home=home, kinds=("train", "evaluate")):
    with task:
        if task.kind == "evaluate":
            open(flag, "w").close()
            while not os.path.exists(go) and not task.stop_now():
                time.sleep(0.02)
            task.submit(evaluate={"examples": 4, "loss": 0.5, "accuracy": 0.25})
        else:
            task.step(1.0, 4)
            task.submit(evaluate={"examples": 4, "loss": 2.0, "accuracy": 0.5})
"""


def recorded(block: str, coordinator: Coordinator) -> Dict[int, Dict[str, float]]:
    """What lines of a page log, by step; the packages are stand-ins."""
    logged: Dict[int, Dict[str, float]] = {}

    def log(values: Dict[str, float], step: int) -> None:
        assert step not in logged, step
        logged[step] = dict(values)

    def add(tag: str, value: float, step: int, *_: Any) -> None:
        assert tag not in logged.setdefault(step, {}), (tag, step)
        logged[step][tag] = value

    names = {name: mock.MagicMock() for name in ("mlflow", "wandb", "torch", "torch.utils", "torch.utils.tensorboard")}
    names["mlflow"].log_metrics = log
    names["wandb"].init.return_value.log = log
    names["torch.utils.tensorboard"].SummaryWriter.return_value.__enter__.return_value.add_scalar = add
    with mock.patch.dict(sys.modules, names):
        exec(block, {"coordinator": coordinator, "rivulet": rivulet})
    return logged


class WithFleet(unittest.TestCase):
    fleet: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet = Fleet().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        for n in (1, 2):
            cls.fleet.digits("device%d" % n, n, 60)
            cls.fleet.run("device%d" % n)
        cls.admin = Coordinator(socket=cls.fleet.socket)
        cls.addClassCleanup(cls.admin.close)

    def refused(self, word: str, status: Any, call: Any, *arguments: Any, **named: Any) -> ApiError:
        with self.assertRaises(ApiError) as caught:
            call(*arguments, **named)
        self.assertEqual((caught.exception.type, caught.exception.status), (word, status), caught.exception)
        self.assertEqual(caught.exception.code, word)
        return caught.exception


class Ways(WithFleet):
    """In by socket, certificate and token; what is not who it should be is refused."""

    def test_audit(self) -> None:
        every = list(self.admin.audit())
        self.assertEqual([entry["seq"] for entry in every], list(range(1, len(every) + 1)))
        self.assertEqual([entry["seq"] for entry in self.admin.audit(first=3)], list(range(3, len(every) + 1)))
        self.assertEqual(list(self.admin.audit(by="owner:nobody")), [])
        # Pages without entries are not the end, unless an older coordinator says nothing of a next one.
        for pages in (
            [{"entries": [], "next": 5}, {"entries": [], "next": 7}, {"entries": [{"seq": 8}], "next": None}],
            [{"entries": [{"seq": 8}]}, {"entries": []}],
        ):
            with mock.patch.object(self.admin, "request", side_effect=pages) as asked:
                self.assertEqual(list(self.admin.audit(by="owner:alice", since=9)), [{"seq": 8}])
            self.assertEqual(asked.call_count, len(pages))
            self.assertEqual(asked.call_args_list[0][0], ("GET", "/v1/audit?from=1&since=9&by=owner:alice"))

    def test_told_to_wait(self) -> None:
        """Who reads waits a little, a few times; who changes something is told."""
        busy = ApiError("busy", "too-many-requests", 429, retry_after=0.0)
        long = ApiError("busy", "too-many-requests", 429, retry_after=3600.0)
        client = self.admin._client
        for method, failures, calls in (("GET", [busy, busy], 3), ("GET", [busy, long], 2), ("GET", [busy] * 99, 30), ("POST", [busy], 1)):
            with mock.patch.object(client, "_ask", side_effect=[*failures, None]) as asked, mock.patch.object(client, "_body", return_value=b"{}"):
                if calls == 3:
                    self.assertEqual(client.json(method, "/v1/jobs"), {})
                else:
                    self.refused("too-many-requests", 429, client.json, method, "/v1/jobs")
            self.assertEqual(asked.call_count, calls)

    def test_certificate(self) -> None:
        home = self.fleet.join("boss", token=self.fleet.token("boss.token", "--role", "admin"))
        with Coordinator(self.fleet.url, home=home) as c:
            self.assertTrue(c.status()["ready"])
            token = c.request("POST", "/v1/tokens", {"uses": 1})
            self.assertIsNone(c.request("DELETE", "/v1/tokens/" + token["id"]))
        with Coordinator(home=home) as c:  # the address that the home knows
            self.assertEqual(c.device("boss")["role"], "admin")
        with Coordinator("https://127.0.0.1:1", home=home) as c:
            self.refused("unreachable", None, c.status)

    def test_home_of_a_device_is_no_administrator(self) -> None:
        with Coordinator(self.fleet.url, home=self.fleet.path("device1")) as c:
            e = self.refused("forbidden", 403, c.devices)
            self.assertIn("forbidden, 403", str(e))
            self.assertIsInstance(e, Error)

    def test_certificate_that_wants_renewal_is_told(self) -> None:
        home = self.fleet.join("old", token=self.fleet.token("old.token", "--role", "reader"))
        with open(os.path.join(home, "device.json"), encoding="utf-8") as f:
            device = json.load(f)
        device["renew_after"] = 1000
        with open(os.path.join(home, "device.json"), "w", encoding="utf-8") as f:
            json.dump(device, f)
        with self.assertWarnsRegex(UserWarning, "wants renewal.*rivulet status --url"):
            Coordinator(home=home).close()

    def test_token(self) -> None:
        path = self.fleet.token("reader", "--access", "--expires", "1h")
        with Coordinator(self.fleet.url, token_file=path) as c:
            names = {d["name"] for d in c.devices("active")}
            self.assertTrue({"device1", "device2"} <= names, names)
            self.assertEqual([], c.devices(where={"ort": "Köln & Bonn, hier=da"}))
            self.assertTrue({"device1", "device2"} <= {d["name"] for d in c.devices(silent_s=0)})
            self.assertEqual([], c.devices("active", silent_s=10**6, agent="0.9", reason="no-job"))
            self.refused("bad-request", 400, c.devices, agent="")
            self.refused("forbidden", 403, c.submit, digits_job("no", 1, 1))
        ca = self.fleet.path("device1", "ca.pem")
        with Coordinator("localhost:%d" % self.fleet.port, token_file=path, ca=ca) as c:
            self.assertTrue(c.status()["ready"])
        with self.assertRaisesRegex(Error, "goes with a url"):
            Coordinator(token_file=path)

    def test_token_that_an_editor_saved(self) -> None:
        """With a byte order mark and CRLF a token is what it was; in UTF-16 the file is named."""
        admin, device = self.fleet.token("plain", "--access"), self.fleet.token("plain.device")
        for encoding in ("utf-8-sig", "utf-16"):
            saved = []
            for file in (admin, device):
                with open(file, encoding="ascii") as f:
                    text = f.read().strip() + "\r\n"
                saved.append(file + "." + encoding)
                with open(saved[-1], "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
                    out.write(text.encode(encoding))
            show = [RIVULET, "status", "--url", self.fleet.url, "--token-file", saved[0]]
            join = [RIVULET, "join", self.fleet.url, "--token-file", saved[1], "--home", self.fleet.path("edited-" + encoding)]
            said = [subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") for c in (show, join)]
            if encoding == "utf-8-sig":
                self.assertEqual([s.returncode for s in said], [0, 0], [s.stderr for s in said])
                with Coordinator(self.fleet.url, token_file=saved[0]) as c:
                    self.assertTrue(c.status()["ready"])
                continue
            for s, file in zip(said, saved):
                self.assertNotEqual(s.returncode, 0)
                self.assertIn(file + ": this is UTF-16", s.stderr)
            with self.assertRaisesRegex(Error, "this is UTF-16"):
                Coordinator(self.fleet.url, token_file=saved[0])

    def test_token_of_another_coordinator(self) -> None:
        with open(self.fleet.token("spoilt", "--access"), encoding="ascii") as f:
            text = f.read().strip()
        with open(self.fleet.path("spoilt"), "w", encoding="ascii") as f:
            f.write(text[:-64] + "0" * 64)
        with self.assertRaisesRegex(Error, "not the one of this token"):
            Coordinator(self.fleet.url, token_file=self.fleet.path("spoilt"))
        with self.assertRaisesRegex(Error, "holds no token"):
            Coordinator(self.fleet.url, token_file=self.fleet.path("rivuletd.conf"))

    def test_wrong_certificate(self) -> None:
        key, crt = self.fleet.path("x.key"), self.fleet.path("x.crt")
        made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        made += ["-subj", "/CN=x", "-days", "2", "-keyout", key, "-out", crt]
        subprocess.run(made, check=True, capture_output=True)
        with Coordinator(self.fleet.url, token_file=self.fleet.token("t2", "--access"), ca=crt) as c:
            self.refused("bad-certificate", None, c.status)
        # The right CA, and a name of this machine that is not in the certificate.
        ca = self.fleet.path("device1", "ca.pem")
        with Coordinator("127.1:%d" % self.fleet.port, token_file=self.fleet.path("t2"), ca=ca) as c:
            self.refused("bad-certificate", None, c.status)

    def test_addresses(self) -> None:
        for text, want in {
            "host": ("host", 7443),
            "host:1": ("host", 1),
            "https://h-1.example:8443/": ("h-1.example", 8443),
            "https://[::1]:5": ("::1", 5),
        }.items():
            self.assertEqual(_trust.address(text), want)
        for text in ("http://host", "https://me@host", "host:0", "host:65536", "https://host/path", "", "a b", "h:7x"):
            with self.assertRaises(Error, msg=text):
                _trust.address(text)


class Rotation(unittest.TestCase):
    def test_tokens_of_before_and_after_another_ca(self) -> None:
        with Fleet() as fleet:
            tokens = [fleet.token("before", "--access")]
            for step in ("rotate", "finish"):
                fleet.end("rivuletd")
                command = [RIVULETD, "--config", fleet.path("rivuletd.conf"), "ca", step]
                subprocess.run(command, check=True, capture_output=True)
                fleet.port = 0  # any will do
                fleet.daemon()
                tokens.append(fleet.token("after-" + step, "--access"))
                for token in tokens:
                    with Coordinator(fleet.url, token_file=token) as c:
                        self.assertTrue(c.status()["ready"], (step, token))


class Jobs(WithFleet):
    """A job from its initial weights to its last model."""

    def test_a_job(self) -> None:
        weights = initial()
        with open(self.fleet.path("job.json"), "w", encoding="utf-8") as f:
            json.dump(digits_job("whole", 2, 3), f)
        job = self.admin.submit(self.fleet.path("job.json"), init=weights)
        rounds = list(self.admin.watch("whole"))
        self.assertEqual([(r["round"], r["state"]) for r in rounds], [(n, "committed") for n in (1, 2, 3)])
        self.assertEqual(self.admin.job(job["job"][:10])["state"], "done")
        self.assertEqual(self.admin.jobs(all=True)[0]["job"], job["job"])
        self.assertNotIn(job["job"], [j["job"] for j in self.admin.jobs()])
        self.assertEqual(self.admin.rounds(job, 2, 2), [rounds[1]])
        self.assertEqual({d["name"] for d in self.admin.round(job, 1)["devices"]}, {"device1", "device2"})
        # The job began with these weights, moved them, and each model is the file with its hash.
        document = self.admin.job(job)["document"]
        self.assertNotIn("tensors", document)
        last, first = self.admin.model(job), self.admin.model(job, round=1)
        self.assertEqual({n: a.shape for n, a in last.items()}, {n: a.shape for n, a in weights.items()})
        self.assertTrue(0 < abs(first["fc1.weight"] - weights["fc1.weight"]).max() < 1)
        self.assertTrue(abs(last["fc1.weight"] - first["fc1.weight"]).max() > 0)
        last["fc1.weight"] += 1  # the caller's own
        path = self.admin.model_file(job, self.fleet.path("last.safetensors"))
        with open(path, "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), self.admin.model_id(job))
        self.refused("not-found", None, self.admin.model, job, best=True)
        self.refused("not-found", 404, self.admin.model, job, round=9)
        # Once more is the same job, and the weights are there already.
        with self.assertRaisesRegex(Error, 'job whole exists, done since 20.*same job, and nothing is done again; another "seed"') as e:
            self.admin.submit(self.fleet.path("job.json"), init=weights)
        self.assertEqual(e.exception.code, "exists")
        again = self.admin.submit(self.fleet.path("job.json"), init=weights, again=True)
        self.assertEqual((again["job"], again["exists"]), (job["job"], True))
        self.assertFalse(job["exists"])

    def test_submitted_again(self) -> None:
        """What is over and what runs: the command says on standard error that it is the same job."""
        path = self.fleet.path("again.json")
        command = [RIVULET, "job", "submit", path, "--socket", self.fleet.socket]
        for rounds, said in ((1, "exists, done since 20"), (0, "exists, running since 20")):
            document = {**digits_job("again%d" % rounds, 2, rounds), "priority": 1}
            with open(path, "w", encoding="utf-8") as f:
                json.dump(document, f)
            job = self.admin.submit(path)
            if rounds:
                list(self.admin.watch(job))
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            self.assertEqual(done.stdout.strip(), job["job"])
            self.assertIn(said, done.stderr)
            self.assertEqual("nothing is done again" in done.stderr, rounds == 1)
        with self.assertLogs("rivulet", "WARNING") as logs:
            self.assertEqual(self.admin.submit(path)["job"], job["job"])
        self.assertIn("exists, running since", logs.output[0])
        self.admin.pause(job)
        self.assertIn("exists, paused: the same", subprocess.run(command, check=True, capture_output=True, text=True).stderr)
        with self.assertLogs("rivulet", "WARNING") as logs:
            self.admin.submit(path)
        self.assertIn("exists, paused: the same", logs.output[0])
        self.admin.stop(job)
        with self.assertRaisesRegex(Error, "exists, stopped since"):
            self.admin.submit(path)

    def test_first_models_stay_what_they_were(self) -> None:
        folder = os.path.join(TOP, "tests", "vectors", "first")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".safetensors"):
                self.admin.upload(os.path.join(folder, name))
        with open(os.path.join(folder, "ids"), encoding="utf-8") as f:
            lines = [line.split() for line in f]
        self.assertGreaterEqual(len(lines), 12)
        for name, model, size in lines:
            job = self.admin.submit(os.path.join(folder, name + ".json"))
            self.assertEqual((self.admin.model_id(job), job["model_bytes"]), (model, int(size)), name)
            self.admin.stop(job)

    def test_first_models_that_nobody_can_train(self) -> None:
        weights = initial(0.03)
        weights["fc2.bias"][0] = float("nan")
        path = self.fleet.path("sick.safetensors")
        safetensors.save(path, weights)
        with self.assertWarnsRegex(UserWarning, '1 tensor holds NaN or infinity, first "fc2.bias"'):
            model = self.admin.upload(path)
        document = digits_job("sick", 2, 1)
        document["model"]["init"] = model
        with self.assertRaisesRegex(Error, 'tensor "fc2.bias" holds NaN or infinity'):
            self.admin.submit(document)

    def test_frozen_tensors_stay(self) -> None:
        document = digits_job("frozen", 2, 1)
        document["tensors"] = {"fc1.*": "frozen"}
        weights = initial(0.01)
        job = self.admin.submit(document, init=weights)
        list(self.admin.watch(job))
        last = self.admin.model(job, torch=False)
        self.assertEqual(last["fc1.weight"].tobytes(), weights["fc1.weight"].tobytes())
        self.assertNotEqual(last["fc2.weight"].tobytes(), weights["fc2.weight"].tobytes())

    def test_watch_over_a_restart(self) -> None:
        job = self.admin.submit({**digits_job("restart", 2, 6), "priority": 1})
        seen: List[int] = []
        with self.assertLogs("rivulet", "WARNING") as logs:
            for r in self.admin.watch(job, interval=0.05):
                seen.append(r["round"])
                if r["round"] == 1:
                    self.fleet.end("rivuletd")
                    timer = threading.Timer(0.5, self.fleet.daemon)
                    timer.start()
        timer.join()
        self.assertEqual(seen, [1, 2, 3, 4, 5, 6])
        self.assertIn("trying again until it answers", logs.output[0])
        self.assertIn("answers again", logs.output[-1])

    def test_recipes_of_the_page(self) -> None:
        """docs/python-admin.md: the few lines of each log every round, and last what `rivulet job show` says."""
        with open(os.path.join(TOP, "docs", "python-admin.md"), encoding="utf-8") as f:
            pattern = r"^```python\n((?:import (?:mlflow|wandb)|from torch)\b.*?)^```$"
            blocks = re.findall(pattern, f.read(), re.DOTALL | re.MULTILINE)
        self.assertEqual(len(blocks), 3)
        document = {**digits_job("mnist", 2, 2), "priority": 2, "evaluate": {"by": "devices"}}
        document["data"]["validation"] = 0.25
        self.admin.submit(document)
        every = []
        for block in blocks:
            logged = recorded(block, self.admin)
            self.assertEqual(list(logged), [1, 2, 3], block)
            self.assertTrue(all(isinstance(v, float) for values in logged.values() for v in values.values()), logged)
            every.append(logged)
        self.assertEqual(every[0], every[1])
        self.assertEqual(every[0], every[2])
        shown = self.show("mnist")
        self.assertEqual({"loss/eval": shown["metric"]["loss"], "accuracy/eval": shown["metric"]["accuracy"]}, every[0][3])
        for r in shown["rounds"]:
            self.assertEqual(every[0][r["round"]], rivulet.scalars(r))
        # What is of the evaluation stands under its own words, also of the round that trains nothing.
        command = [RIVULET, "job", "show", "mnist", "--follow", "--socket", self.fleet.socket]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertEqual(re.split("  +", lines[0])[2:6], ["loss", "accuracy", "eval loss", "eval acc"])
        for line, values in zip(lines[1:], every[0].values()):
            figures = [values.get(tag) for tag in ("loss/train", "accuracy/train", "loss/eval", "accuracy/eval")]
            self.assertEqual(line.split()[2:6], ["-" if v is None else "%.4f" % v for v in figures])
        # The same tags and values as the table of `job export`.
        command = [RIVULET, "job", "export", "mnist", "--csv", "-", "--socket", self.fleet.socket]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        for row in csv.DictReader(lines):
            table = {tag: float(value) for tag, value in row.items() if "/" in tag and value}
            self.assertEqual(table, every[0][int(row["round"])])

    def readers(self) -> int:
        """How many wait for a change."""
        text = io.BytesIO()
        self.admin._client.download("/metrics", text)
        return int(re.findall(rb"^rivulet_change_readers (\d+)$", text.getvalue(), re.MULTILINE)[0])

    def show(self, job: str) -> Dict[str, Any]:
        """What `rivulet job show` says."""
        command = [RIVULET, "job", "show", job, "--json", "--socket", self.fleet.socket]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def test_watch_waits_for_an_evaluation(self) -> None:
        """One that lasts for many looks: the round that evaluates comes once, with its figure, and not before."""
        states = ["committed", "evaluating", "evaluating", "evaluating", "evaluated"]
        rows = [{"round": 1, "state": "committed", "evaluate": None}, {"round": 2, "state": "", "evaluate": None}]

        def rounds(_: str, first: int) -> List[Dict[str, Any]]:
            state = states.pop(0)
            last = {**rows[1], "state": state, "evaluate": {"loss": 1.0} if state == "evaluated" else None}
            return [r for r in ([rows[0]] if state == "committed" else [rows[0], last]) if r["round"] >= first]

        def job(_: str) -> Dict[str, Any]:
            return {"job": "0" * 32, "name": "x", "state": "done" if len(states) == 1 else "running", "stuck": None}

        with mock.patch.object(self.admin, "rounds", rounds), mock.patch.object(self.admin, "job", job), CHANGING:
            seen = list(self.admin.watch("0" * 32, interval=0))
        self.assertEqual([(r["round"], r["state"]) for r in seen], [(1, "committed"), (2, "evaluated")])
        self.assertEqual(seen[1]["evaluate"], {"loss": 1.0})

    def test_watch_keeps_the_order(self) -> None:
        """A round that is over waits for one before it that is still evaluated."""
        states = ["evaluating", "evaluating", "evaluated"]

        def rounds(_: str, first: int) -> List[Dict[str, Any]]:
            rows = [{"round": 1, "state": states.pop(0)}, {"round": 2, "state": "committed"}]
            return [r for r in rows if r["round"] >= first]

        def job(_: str) -> Dict[str, Any]:
            return {"job": "0" * 32, "name": "x", "state": "done" if len(states) == 1 else "running", "stuck": None}

        with mock.patch.object(self.admin, "rounds", rounds), mock.patch.object(self.admin, "job", job), CHANGING:
            seen = list(self.admin.watch("0" * 32, interval=0))
        self.assertEqual([(r["round"], r["state"]) for r in seen], [(1, "evaluated"), (2, "committed")])

    @unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
    def test_watch_of_what_ends_while_it_evaluates(self) -> None:
        """Its evaluation is slow, the coordinator restarts meanwhile, and in the end the job is stopped or has its figure."""
        for stopped in (True, False):
            name = "slow-%d" % stopped
            flag, go = self.fleet.path(name + ".flag"), self.fleet.path(name + ".go")
            with open(self.fleet.path("loop.py"), "w", encoding="utf-8") as f:
                f.write(SLOW)
            home = self.fleet.join(name, "[device]\nthreads = 1")
            document = {
                "name": name,
                "trainer": "slow",
                "data": {"name": name, "validation": 0.5},
                "local": {"epochs": 1, "optimizer": {"rate": 0.1}},
                "round": {"goal": 1, "deadline_s": 600},
                "evaluate": {"by": "devices"},
                "stop": {"rounds": 1},
            }
            job = self.admin.submit(document, init={"w": numpy.zeros(2, "float32")})
            loop = [sys.executable, self.fleet.path("loop.py"), home, name, flag, go]
            self.fleet.start("loop", loop, RIVULET_LIBRARY=os.path.join(BUILD, "librivulet.so.1"))
            seen: List[Dict[str, Any]] = []
            other = Coordinator(socket=self.fleet.socket)
            watched = threading.Thread(
                target=lambda c, to: to.extend(c.watch(job["job"], interval=0.01)), args=(other, seen), daemon=True
            )
            watched.start()
            within(30, "it evaluates", lambda: os.path.exists(flag))
            # Nothing changes, and nobody asks.
            within(10, "it waits", lambda: self.readers() == 1)
            with mock.patch.object(other, "rounds", side_effect=AssertionError("looked at")):
                time.sleep(1)
            self.assertEqual(self.admin.rounds(job)[-1]["state"], "evaluating")
            if stopped:
                self.admin.stop(job)
            else:
                self.fleet.end("rivuletd")
                self.fleet.daemon()
            with open(go, "w", encoding="ascii"):
                pass
            watched.join(60)
            self.assertFalse(watched.is_alive())
            other.close()
            self.fleet.end("loop")
            if stopped:
                self.assertEqual([r["round"] for r in seen], [1])
                continue
            self.assertEqual([(r["round"], r["state"]) for r in seen], [(1, "committed"), (2, "evaluated")])
            shown = self.show(job["job"])["metric"]
            self.assertEqual({name: seen[-1]["evaluate"][name] for name in ("loss", "accuracy")}, {"loss": 0.5, "accuracy": 0.25})
            self.assertEqual(shown["loss"], 0.5)

    def test_changes(self) -> None:
        job = self.admin.submit(json.dumps(digits_job("paused", 3, 0)))
        self.assertEqual(self.admin.pause("paused")["state"], "paused")
        self.assertEqual(self.admin.resume(job)["state"], "running")
        self.assertEqual(self.admin.stop(job["job"])["state"], "stopped")
        self.refused("wrong-state", 409, self.admin.pause, "paused")
        self.refused("not-found", None, self.admin.pause, "nobody")
        self.assertEqual(list(self.admin.watch(job)), [])

    def test_what_is_refused_says_why(self) -> None:
        wrong = digits_job("wrong", 2, 1)
        del wrong["local"]["optimizer"]["rate"]
        self.assertIn("local.optimizer.rate", self.refused("bad-job", 422, self.admin.submit, wrong).detail)
        with self.assertWarnsRegex(UserWarning, "goal"):
            job = self.admin.submit(digits_job("many", 50, 1))
        self.admin.stop(job)
        with self.assertRaisesRegex(Error, "no JSON"):
            self.admin.submit("{", init=initial())
        with self.assertRaises(FileNotFoundError):
            self.admin.submit(self.fleet.path("none.json"))


class Answers(unittest.TestCase):
    """What a coordinator should never say, and connections that break."""

    def setUp(self) -> None:
        answers = self.answers = []  # type: List[bytes]

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.wfile.write(answers.pop(0))
                self.wfile.flush()
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        from rivulet import _http

        class Plain(_http.Client):
            def _connect(self) -> Any:
                return _http.http.client.HTTPConnection(*self._addresses[0], timeout=self.timeout)

        self.client = Plain(addresses=[self.server.server_address], timeout=20)  # type: ignore[list-item]
        self.addCleanup(self.client.close)

    def ask(self, *answers: bytes) -> Any:
        self.answers[:] = answers
        return self.client.json("GET", "/x")

    def test_kept_connection_that_was_closed(self) -> None:
        good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        for _ in range(3):
            self.assertEqual(self.ask(good), {})

    def test_cut_off(self) -> None:
        good = b"HTTP/1.1 200 OK\r\n"
        chunk = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
        for answer in (good + b"Content-Length: 9\r\n\r\n{}", good + chunk, b""):
            with self.assertRaises(ApiError) as caught:
                self.ask(answer, answer)
            self.assertEqual(caught.exception.type, "unreachable")
            self.client.close()

    def test_no_json(self) -> None:
        for body in (b"<html>", b"\xff", b"[" * 200000):
            with self.assertRaises(ApiError) as caught:
                self.ask(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertEqual(caught.exception.type, "bad-answer")
            self.client.close()

    def test_changes(self) -> None:
        """What waits for a change goes on with one that tells, is quiet for a while without a place, and gives up with one that does not."""

        def answer(status: str, body: bytes, more: bytes = b"") -> bytes:
            return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status.encode(), more, len(body), body)

        paths: List[str] = []
        changes = Changes(self.client)
        self.addCleanup(changes.close)

        def ask(method: str, path: str, patient: bool = True) -> Any:
            paths.append(path)
            return self.client.json(method, path, patient=patient)

        def wait(*answers: bytes) -> List[float]:
            self.answers[:] = answers
            with mock.patch.object(changes._client, "json", ask), mock.patch("rivulet._changes.time.sleep") as sleep:
                changes.wait(0.25)
            return [call.args[0] for call in sleep.call_args_list]

        self.assertEqual(wait(answer("200 OK", b'{"change": 7}')), [0.25])
        self.assertEqual(wait(answer("200 OK", b'{"change": 9}')), [0.25])
        self.assertEqual(wait(answer("429 Full", b"{}", b"Retry-After: 5\r\n")), [0.25, 2.0])
        self.assertEqual(wait(b"", b""), [0.25])  # it is away: the next look finds that, too
        self.assertEqual(wait(answer("404 Not Found", b"{}")), [0.25])
        self.assertEqual(wait(), [0.25])
        asked = ["after=0&wait=10", "after=7&wait=10"] + 3 * ["after=9&wait=10"]
        self.assertEqual(paths, ["/v1/changes?" + query for query in asked])
        changes.forget()
        wait(answer("200 OK", b"[]"))
        wait()
        self.assertEqual(paths[5:], ["/v1/changes?after=0&wait=10"])

    def test_problems(self) -> None:
        told = b'{"type": "urn:rivulet:error:overloaded", "detail": "later"}'
        for body, word in ((told, "overloaded"), (b"[]", "http"), (b"?", "http")):
            with self.assertRaises(ApiError) as caught:
                self.ask(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            e = caught.exception
            self.assertEqual((e.type, e.status, e.retry_after, e.passing), (word, 503, 7.0, True))
            self.client.close()

    def test_redirections_are_not_followed(self) -> None:
        with self.assertRaises(ApiError) as caught:
            self.ask(b"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(caught.exception.status, 302)


class Roles(unittest.TestCase):
    """Which patterns say what happens to which tensor."""

    def said(self, roles: Dict[str, str], given: Any = None) -> Dict[str, str]:
        tensors = {n: numpy.zeros(1, "int64" if n.endswith("tracked") else "float32") for n in roles}
        out = _initial.patterns(tensors, roles, given or {})
        for name, role in roles.items():
            fitting = [r for p, r in out.items() if _initial.fits(p, name)]
            standard = "frozen" if name.endswith("tracked") else "train"
            if not any(_initial.fits(p, name) for p in given or {}):
                self.assertEqual((fitting + [standard])[0], role, (name, out))
        for pattern in out:
            self.assertTrue(any(_initial.fits(pattern, name) for name in roles) or pattern in (given or {}), pattern)
        return out

    def test_patterns(self) -> None:
        self.assertEqual(self.said({"a.weight": "train", "a.bias": "train"}), {})
        self.assertEqual(self.said({"a.weight": "frozen", "b.weight": "train"}), {"a.*": "frozen"})
        kinds = {"weight": "train", "running_mean": "average", "running_var": "average"}
        kinds["num_batches_tracked"] = "frozen"
        norms = {"bn%d.%s" % (i, name): role for i in range(80) for name, role in kinds.items()}
        self.assertEqual(self.said(norms), {"*.running_mean": "average", "*.running_var": "average"})
        frozen = ("q.weight", "q.bias", "norm.weight")
        base = {"model.layers.%d.%s" % (i, n): "frozen" for i in range(90) for n in frozen}
        adapters = {"model.layers.%d.q.lora_%s.weight" % (i, n): "train" for i in range(90) for n in "AB"}
        self.assertLessEqual(len(self.said({**base, **adapters, "head.weight": "train"})), 4)
        self.assertEqual(self.said({"a.x": "frozen", "b.x": "train"}, {"a.*": "average"}), {"a.*": "average"})
        self.assertEqual(self.said({"a*b": "frozen", "c": "train"}), {"a*b": "frozen"})

    def test_too_many(self) -> None:
        roles = {"t%d" % i: ("train", "frozen")[i % 2] for i in range(200)}
        with self.assertRaisesRegex(Error, "give `tensors` in the job"):
            self.said(roles)

    def test_mappings(self) -> None:
        kinds = {"module.a": "float64", "module.n": "int64", "module.h": "float16"}
        state = {name: numpy.ones(2, kind) for name, kind in kinds.items()}
        tensors, roles = _initial.of(state, False)
        self.assertEqual(roles, {"a": "train", "n": "frozen", "h": "train"})
        self.assertEqual([str(t.dtype) for t in tensors.values()], ["float32", "int64", "float32"])
        with self.assertRaisesRegex(Error, "no tensor"):
            _initial.of({"n": numpy.ones(2, "int64")}, False)
        with self.assertRaisesRegex(Error, "init is a torch module"):
            _initial.of([1], False)


class Imports(unittest.TestCase):
    def test_standard_library_alone(self) -> None:
        code = """import rivulet, sys
rivulet.Coordinator(socket='/nowhere')
print([name for name in ('numpy', 'torch', 'ctypes', 'pandas') if name in sys.modules])"""
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        self.assertEqual(done.stdout.decode().strip(), "[]")


if __name__ == "__main__":
    unittest.main()
