"""A device made without the program `rivulet`: rivulet.join, and `python -m rivulet join` beside that program."""
import ctypes
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import warnings
from typing import Any, Dict, List, Optional

from fleet import BUILD, PACKAGE, RIVULET, RIVULETD, Fleet, ask

import rivulet
from rivulet import _library

LIBRARY = os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))
SANITIZED = unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
PYTHON = [sys.executable, "-m", "rivulet", "join"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": PACKAGE}


class Layout(unittest.TestCase):
    def test_structs_stay(self) -> None:
        """As tests/unit/test_rivulet.c has them."""
        if ctypes.sizeof(ctypes.c_void_p) == 8:
            self.assertEqual((ctypes.sizeof(_library.JoinOptions), _library.JoinOptions.cancel.offset), (48, 32))
        sizes = (ctypes.sizeof(_library.Joined), _library.Joined.name.offset, _library.Joined.home.offset)
        self.assertEqual(sizes, (6652, 73, 2553))


@SANITIZED
class Join(unittest.TestCase):
    fleet: Fleet
    other: Fleet

    @classmethod
    def setUpClass(cls) -> None:
        cls.fleet, cls.other = Fleet().__enter__(), Fleet()
        cls.addClassCleanup(cls.fleet.__exit__)
        cls.other.__enter__()
        cls.addClassCleanup(cls.other.__exit__)

    def setUp(self) -> None:
        self.home = self.fleet.path(self.id().rsplit(".", 1)[-1])

    def token(self, fleet: Optional[Fleet] = None) -> str:
        with open((fleet or self.fleet).path("token"), encoding="ascii") as f:
            return f.read()

    def both(self, *words: str, said: str = "", keep: bool = False) -> "subprocess.CompletedProcess[str]":
        """What Python's command gives; `rivulet join` gives the same in a home of the same name, with a device of its own."""
        answers: List[Any] = []
        for number, command in enumerate((PYTHON, [RIVULET, "join"])):
            home = self.home + ("", "-program")[number]
            line = [*command, *(word.replace("NAME", "n%d-%s" % (number, os.path.basename(self.home))) for word in words)]
            done = subprocess.run(
                [*line, "--home", home], input=said, capture_output=True, text=True, env=ENVIRONMENT, timeout=120
            )
            device = rivulet_device(home)
            text = [
                re.sub(r"after \d+ ms", "after N ms", t).replace(home, "HOME").replace("n%d-" % number, "n-").replace(device, "ID").replace(device[:16], "ID")
                for t in (done.stdout, done.stderr)
            ]
            if not number:
                first = done
            answers.append([done.returncode, *(text if done.returncode != 2 else [])])
        if "--json" in words and answers[0][0] == 0:
            answers = [[a[0], json.loads(a[1]), a[2]] for a in answers]
        self.assertEqual(answers[0], answers[1])
        return first

    def test_as_the_program_does(self) -> None:
        url, token = self.fleet.url, self.fleet.path("token")
        for code, words, said in (
            (6, [url], ""),
            (6, [url, "--token-file", "-"], ""),
            (6, [url, "--token-file", "-"], "no token"),
            (6, [url, "--token-file", "-"], "rvt1." + "A" * 2000),
            (3, [url, "--token-file", "/nowhere"], ""),
            (6, ["https://a/path", "--token-file", token], ""),
            (5, ["https://localhost:1", "--token-file", token], ""),
            (4, [url, "--token-file", "-"], self.token(self.other)),
            (2, [url, "again", "--token-file", token], ""),
            (2, [url, "--token", token], ""),
            (2, [], ""),
        ):
            with self.subTest(words=words):
                self.assertEqual(self.both(*words, said=said).returncode, code)
        self.assertFalse(os.path.exists(os.path.join(self.home, "device.json")))
        done = self.both(url, "--token-file", token, "--name", "NAME")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^joined https://localhost:\d+ as n0-[a-z_]+ \(role device, device [0-9a-f]{16}\) in /")
        # A repeat needs no token, nor a coordinator that answers.
        self.assertRegex(self.both(url, "--token-file", "/nowhere").stdout, "^already joined ")
        self.assertIs(json.loads(self.both(url, "--json").stdout)["new"], False)
        # Another address of the same coordinator is added, a stranger's is not.
        address = url.replace("localhost", "127.0.0.1")
        self.assertIn("a token is needed: --token-file", self.both(address).stderr)
        found = json.loads(self.both(address, "--token-file", token, "--json").stdout)
        self.assertEqual(found["coordinators"], [url, address])
        self.assertEqual(self.both("https://localhost:1", "--token-file", "-", said=self.token(self.other)).returncode, 4)

    def test_open_token_file(self) -> None:
        """Everybody could have read it: it is told, and used."""
        path = self.fleet.path("open-token")
        shutil.copy(self.fleet.path("token"), path)
        os.chmod(path, 0o644)
        done = self.both(self.fleet.url, "--token-file", path, "--name", "NAME")
        self.assertIn("everybody on this machine can use this token", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_call(self) -> None:
        with self.assertRaises(rivulet.Error) as caught:
            rivulet.join(self.fleet.url, home=self.home)
        self.assertEqual((caught.exception.code, str(caught.exception)), ("not-found", "a token is needed"))
        for token, code in (("rubbish", "invalid"), ("", "invalid"), (self.token(self.other), "denied")):
            with self.assertRaises(rivulet.Error) as caught:
                rivulet.join(self.fleet.url, token, home=self.home)
            self.assertEqual(caught.exception.code, code, str(caught.exception))
        for words in (("a\0b",), ("a", "b\0")):
            with self.assertRaisesRegex(ValueError, "zero byte"):
                rivulet.join(*words, home=self.home)
        joined = rivulet.join(self.fleet.url, self.token(), name="björn", home=self.home)
        self.assertEqual(joined[:1] + joined[2:], ("joined", "björn", "device", [self.fleet.url], self.home))
        device = next(d for d in ask(self.fleet, "/v1/devices")["devices"] if d["name"] == "björn")
        self.assertEqual(device["device"], joined.device)
        self.assertEqual(rivulet.join(self.fleet.url, home=self.home), joined._replace(state="already joined"))
        with self.assertRaises(rivulet.Error) as caught:
            rivulet.join("https://localhost:1", self.token(self.other), home=self.home)
        self.assertEqual(caught.exception.code, "state")

    def test_again(self) -> None:
        """The coordinator forgot the device: it joins with its key, if nobody works in its home."""
        joined = rivulet.join(self.fleet.url, self.token(), name="forgotten", home=self.home)
        self.fleet.end("rivuletd")
        for path in glob.glob(self.fleet.path("state", "rivulet.db*")):
            os.unlink(path)
        config = ["--config", self.fleet.path("rivuletd.conf")]
        token = subprocess.check_output([RIVULETD, *config, "init", "--new-database"], stderr=subprocess.DEVNULL, text=True)
        with open(self.fleet.path("token"), "w", encoding="ascii") as f:
            f.write(token)
        self.fleet.daemon()
        with self.assertRaisesRegex(rivulet.Error, "a token is needed to join again"):
            rivulet.join(self.fleet.url, home=self.home)
        with open(os.path.join(self.home, "lock"), "a", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            line = [*PYTHON, self.fleet.url, "--token-file", self.fleet.path("token"), "--home", self.home]
            done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
            self.assertEqual(done.returncode, 4, done.stderr)
        again = rivulet.join(self.fleet.url, token, home=self.home)
        self.assertEqual((again.state, again.device, again.name), ("joined again", joined.device, "forgotten"))

    def test_name_like_an_id(self) -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rivulet.join(self.fleet.url, self.token(), name="abcdef0", home=self.home)
        self.assertEqual(len(told), 1)
        self.assertIn("looks like an id", str(told[0].message))
        self.assertEqual(told[0].filename, __file__)

    def test_interrupted(self) -> None:
        """Ctrl-C ends it while it waits for a peer that says nothing."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            silent.settimeout(60)
            url = "https://127.0.0.1:%d" % silent.getsockname()[1]
            line = [*PYTHON, url, "--token-file", self.fleet.path("token"), "--home", self.home]
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
            with silent.accept()[0]:
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.communicate(timeout=60), (b"", None))
                self.assertEqual(process.returncode, 130)
                self.assertLess(time.monotonic() - began, 15)

    def test_an_older_library(self) -> None:
        """The rest of the package goes on working with it."""
        real = _library.load()

        class Older:
            rivulet_version = real.rivulet_version

        _library._loaded = Older()  # type: ignore[assignment]
        self.addCleanup(setattr, _library, "_loaded", real)
        with self.assertRaisesRegex(rivulet.Error, "is too old to join: `rivulet join` does that"):
            rivulet.join(self.fleet.url, home=self.home)


def rivulet_device(home: str) -> str:
    """The id of a home; what stands nowhere if it has none."""
    try:
        with open(os.path.join(home, "device.json"), encoding="utf-8") as f:
            facts: Dict[str, Any] = json.load(f)
        return facts["device"]
    except FileNotFoundError:
        return "\0" * 64


if __name__ == "__main__":
    unittest.main()
