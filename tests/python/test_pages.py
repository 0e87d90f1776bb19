"""docs/jobs.md and docs/devices.md: every block is run as a reader would, or submitted as what it is a part of. A block that nobody runs
fails. Of jobs.md also what stands in a line and is a member of a job."""
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import unittest
import zlib
from typing import Any, Dict, List

from fleet import BUILD, PACKAGE, PATIENCE, RIVULET, TOP, Fleet, within

import numpy
from rivulet import safetensors

Job = Dict[str, Any]


class Page:
    """The blocks of docs/NAME, in their order; `take` gives the next one that begins with these words."""

    def __init__(self, name: str) -> None:
        self.name = name
        with open(os.path.join(TOP, "docs", name), encoding="utf-8") as f:
            self.text = f.read()
        fence = re.compile(r"^( *)```\w*\n(.*?)^\1```$", re.M | re.S)
        self.blocks: List[str] = [text for _, text in fence.findall(self.text)]
        self.prose = fence.sub("", self.text)

    def take(self, begins: str) -> str:
        for i, block in enumerate(self.blocks):
            if block.startswith(begins):
                return self.blocks.pop(i)
        raise AssertionError("%s: no block begins with %s" % (self.name, begins))


class Reader(Fleet):
    """A fleet beside which somebody types: `rivulet` is found, and the coordinator."""

    def environment(self, **more: str) -> Dict[str, str]:
        if not os.path.exists(self.path("python3")):
            os.symlink(sys.executable, self.path("python3"))
        path = os.path.abspath(BUILD) + os.pathsep + self.folder + os.pathsep + os.environ["PATH"]
        return {**os.environ, "PATH": path, "PYTHONPATH": PACKAGE, "HOME": self.folder, "RIVULET_SOCKET": self.socket, **more}

    def write(self, name: str, text: str) -> str:
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def paste(self, block: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", block], cwd=self.folder, env=self.environment(), timeout=20 * PATIENCE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if done.returncode:
            raise AssertionError("exit code %d of\n%s\n%s" % (done.returncode, block, done.stdout))
        return done.stdout

    def idle(self, count: int) -> None:
        """Waits until so many devices have asked for work."""
        within(20, "devices ask for work", lambda: self.paste("rivulet device list").count("no-job") >= count)

    def settled(self, settings: str) -> None:
        """These settings, and the files and programs that they name, are good. When the device works, and how trainers are confined, is this
        machine's affair."""
        path = self.write("settings.conf", settings)
        said = subprocess.run(
            [RIVULET, "doctor", "--offline", "--json", "--home", self.path("one"), "--config", path],
            env=self.environment(), stdout=subprocess.PIPE, text=True,
        ).stdout
        looked = [f for f in json.loads(said)["findings"] if f["check"] in ("settings", "data", "trainer")]
        bad = [f for f in looked if f["level"] in ("warning", "fault")]
        if bad:
            raise AssertionError("%s\n%s" % (settings, bad))


def member(text: str) -> Job:
    """"KEY": VALUE, ..., as a page shows a part of a document."""
    value: Job = json.loads(text if text.startswith("{") else "{%s}" % text)
    return value


class Jobs(unittest.TestCase):
    fleet: Reader
    first: Job

    @classmethod
    def setUpClass(cls) -> None:
        cls.page = Page("jobs.md")
        cls.fleet = Reader().__enter__()
        cls.addClassCleanup(cls.fleet.__exit__)
        first = cls.page.take('{\n  "name": "digits"')
        cls.first = json.loads(first)
        cls.fleet.write("digits.json", first)
        cls.fleet.write("digits.conf", cls.page.take("[data digits]"))

    def submit(self, name: str, more: Job) -> None:
        document = {**self.first, "name": name, **more}
        if "evaluate" not in more and "validation" not in document["data"]:
            del document["evaluate"]
        self.fleet.paste("rivulet job submit %s" % self.fleet.write(name + ".json", json.dumps(document)))

    def test_all(self) -> None:
        self.a_first_job()
        self.waiting()
        self.changing()
        self.members()
        self.networks()
        self.assertEqual(self.page.blocks, [])
        self.lines()

    def a_first_job(self) -> None:
        for name in ("one", "two"):
            with open(self.fleet.path("digits.conf"), encoding="utf-8") as f:
                self.fleet.join(name, f.read())
            self.fleet.run(name)
        self.fleet.idle(2)
        self.fleet.paste(self.page.take("rivulet train digits.json"))
        self.assertGreater(os.path.getsize(self.fleet.path("digits.safetensors")), 4 * 784 * 50)
        self.assertIn("done", self.fleet.paste("rivulet job show digits"))

    def waiting(self) -> None:
        self.page.take("devices    31 ready, 12 wait (no-data 10, old-agent 2), 7 gave up (out-of-memory 7)\n")
        self.submit("waits", {"data": {**self.first["data"], "name": "nobody"}})
        line = r"(?m)^devices    0 ready, 2 wait \(no-data 2\)$"
        within(20, "both wait", lambda: re.search(line, self.fleet.paste("rivulet job show waits")))
        for name in ("one", "two"):
            self.fleet.end(name)

    def changing(self) -> None:
        self.submit("pumps", {"data": {**self.first["data"], "name": "nobody"}})
        self.fleet.paste(self.page.take("rivulet job set pumps share=3"))
        self.assertRegex(self.fleet.paste("rivulet job show pumps"), r"set +priority")

    def members(self) -> None:
        self.fleet.join("central", token=self.fleet.token("named", "--name", "central"))
        self.submit("program", member(self.page.take('"evaluate": {"by": "program"')))
        self.submit("more", member(self.page.take('{\n  "tensors"')))
        self.submit("preset", member(self.page.take('"model": {"preset": "char-lstm"')))
        self.submit("text", member(self.page.take('"model": {"layers": [\n    {"type": "embedding"')))

    def networks(self) -> None:
        tokens = {"name": "letters", "window": 64}
        head = {"type": "linear", "out": 256}

        def network(name: str, layers: List[Job]) -> None:
            self.submit(name, {"data": tokens, "model": {"layers": layers, "loss": "cross_entropy"}})

        residual = json.loads("[%s]" % self.page.take('{"type": "layernorm"'))
        network("residual", [{"type": "embedding", "vocabulary": 256, "out": 64}, *residual, head])
        both = json.loads("[%s]" % self.page.take('{"type": "gru", "name": "there"'))
        network("both", [{"type": "embedding", "name": "words", "vocabulary": 256, "out": 32}, *both, head])
        shared = json.loads("[%s]" % self.page.take('{"type": "embedding", "name": "wte"'))
        network("shared", shared)

        base = {"wte.weight": (256, 64), "fc1.weight": (64, 64), "fc1.bias": (64,)}
        safetensors.save(self.fleet.path("base.safetensors"), {n: numpy.zeros(s, "f4") for n, s in base.items()})
        init = self.fleet.paste("rivulet model put base.safetensors").split()[0]
        adapter = self.page.take('"model": {"init": "3f2a...", "layers": [...]}')
        adapter = adapter.replace("3f2a...", init).replace("[...]", json.dumps(shared))
        job = member(adapter)
        job["model"]["loss"] = "cross_entropy"
        self.submit("adapter", {"data": tokens, **job})

    def lines(self) -> None:
        """Members of a document in a line: `"monitor": {...}`."""
        spans = re.findall(r"`((?:\"(?:round|local|evaluate|monitor|keep|aggregate|tensors)\": )\{[^`]*\})`", self.page.prose)
        self.assertGreaterEqual(len(spans), 6)
        for i, span in enumerate(spans):
            more = member(span)
            if "local" in more:
                more["local"].setdefault("optimizer", {"rate": 0.1})
            self.submit("line%d" % i, more)
        own = self.span(r"\{\"target\": .*?\}\}")
        self.submit("target", {"stop": own, "monitor": {"metric": "metrics.perplexity", "mode": "min"}})
        late = self.span(r"\"staleness\": .*?\}")
        self.submit("late", {"round": {"mode": "buffered", "goal": 10}, "aggregate": late})

    def span(self, pattern: str) -> Job:
        found = re.search("`(%s)`" % pattern, self.page.prose)
        assert found, pattern
        return member(found.group(1))


class Devices(unittest.TestCase):
    def test_all(self) -> None:
        page = Page("devices.md")
        with Reader() as self.fleet:
            self.fleet.join("one")
            self.a_first_device(page.take("rivulet join https://HOST:7443"))
            self.settings(page)
            self.packing(page.take("rivulet data pack FOLDER"))
            self.a_trainer_that_stays(page.take("import json, os\n"))
            self.an_offer(page.take('{"kinds": ["train"]'))
        self.assertEqual(page.blocks, [])

    def a_first_device(self, block: str) -> None:
        rows = "".join("%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(40))
        table = self.fleet.write("pumps.csv", "temperature,vibration,state\n" + rows)
        block = block.replace("https://HOST:7443", self.fleet.url).replace("/srv/pumps.csv", table).replace("rivulet run", "exec rivulet run")
        self.fleet.start("gate1", ["sh", "-e", "-c", "cd %s\n%s" % (self.fleet.folder, block)], **self.fleet.environment())
        within(20, "the device asks for work", lambda: re.search("gate1 .*no-job", self.fleet.paste("rivulet device list")))
        self.assertNotRegex(self.fleet.log("gate1"), "fault|warning")
        job = {
            "name": "pumps",
            "model": {"layers": [{"type": "linear", "out": 2}], "loss": "cross_entropy"},
            "data": {"name": "pumps", "shape": [2], "classes": 2},
            "local": {"optimizer": {"rate": 0.001}},
            "round": {"goal": 1},
            "stop": {"rounds": 1},
        }
        self.fleet.write("pumps.json", json.dumps(job))
        self.fleet.paste("rivulet job submit pumps.json && rivulet job show pumps --follow && rivulet job list --all | grep 'pumps .*done'")
        self.fleet.end("gate1")

    def settings(self, page: Page) -> None:
        pixels = bytes(range(200)) + bytes(28 * 28 * 200 - 200)
        files = {
            "train-images-idx3-ubyte.gz": struct.pack(">IIII", 0x803, 200, 28, 28) + pixels,
            "train-labels-idx1-ubyte.gz": struct.pack(">II", 0x801, 200) + bytes(i % 10 for i in range(200)),
        }
        for name, data in files.items():
            with gzip.open(self.fleet.path(name), "wb") as f:
                f.write(data)
        self.fleet.settled(page.take("[coordinator]").replace("/data/", self.fleet.folder + "/"))
        free = self.fleet.write("lab-is-free", "#!/bin/sh\nexit 0\n")
        os.chmod(free, 0o755)
        self.fleet.settled(page.take("[eligibility]").replace("/usr/local/bin/lab-is-free", free))
        trainers = page.take("[trainer torch]").replace("/srv/venv/bin/python", sys.executable)
        mpirun = self.fleet.write("mpirun", "#!/bin/sh\n")
        os.chmod(mpirun, 0o755)
        for name in ("train.py", "ranks.py"):
            trainers = trainers.replace("/srv/train/" + name, self.fleet.write(name, ""))
        self.fleet.settled(trainers.replace("/data/pretrained", self.fleet.folder).replace("mpirun", mpirun))

    def packing(self, block: str) -> None:
        for name, grey in (("cat", 9), ("dog", 200)):
            os.makedirs(self.fleet.path("FOLDER", name))
            with open(self.fleet.path("FOLDER", name, "1.png"), "wb") as f:
                f.write(png(grey))
        self.fleet.write("TABLE.csv", "a,b,y\n1,2,0\n3,4,1\n")
        numpy.savez(self.fleet.path("FILE.npz"), x=numpy.zeros((2, 3), "f4"), y=numpy.zeros(2, "u1"))
        users = {"ann": {"x": [[0.5, 1.0]], "y": [1]}, "bob": {"x": [[0.0, 2.0]], "y": [0]}}
        self.fleet.write("FILE.json", json.dumps({"users": list(users), "num_samples": [1, 1], "user_data": users}))
        said = self.fleet.paste(block)
        self.assertIn("2", said)
        self.assertTrue(os.path.exists(self.fleet.path("FOLDER", "x.npy")))
        self.fleet.paste("rivulet data show OUT")

    def a_trainer_that_stays(self, block: str) -> None:
        train = """
import shutil
def train(directory):
    shutil.copy(directory + "/base.safetensors", directory + "/after.safetensors")
    with open(directory + "/report.json", "w") as f:
        json.dump({"examples": 5, "steps": 1, "loss": 0.5}, f)
"""
        program = self.fleet.write("stays.py", train + block)
        self.fleet.join(
            "stays",
            "[data digits]\nformat = glyphs\ncount = 20\n[trainer stays]\nexec = %s -S -E %s\npersistent = yes\nread = %s\n"
            % (sys.executable, program, program),
        )
        self.fleet.run("stays")
        job = {
            "name": "stays",
            "trainer": "stays",
            "model": {"layers": [{"type": "flatten"}, {"type": "linear", "out": 10}], "loss": "cross_entropy"},
            "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
            "round": {"goal": 1},
            "stop": {"rounds": 2},
        }
        self.fleet.write("stays.json", json.dumps(job))
        self.fleet.paste("rivulet job submit stays.json && rivulet job show stays --follow && rivulet job list --all | grep 'stays .*done'")
        self.assertEqual(self.fleet.log("stays").count("trainer.started"), 1)
        self.fleet.end("stays")

    def an_offer(self, block: str) -> None:
        program = self.fleet.write("offers", "#!/bin/sh\ncat <<END\n%sEND\n" % block)
        os.chmod(program, 0o755)
        self.fleet.settled("[data digits]\nformat = glyphs\n[trainer builtin]\nexec = %s\n" % program)


def png(grey: int) -> bytes:
    """2 x 2 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = bytes([0, grey, grey]) * 2
    head = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


if __name__ == "__main__":
    unittest.main()
