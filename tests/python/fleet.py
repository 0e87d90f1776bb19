"""A coordinator and devices in a temporary directory, for tests in Python; tests/fleet.sh is the same for scripts.

    with Fleet() as fleet:                        # rivuletd on a free port, ended and removed at the end
        fleet.join("one", "[data digits] ...")    # a device with home fleet.path("one") and those settings
        fleet.run("one")                          # its agent, in the background
        fleet.start("loop", [sys.executable, ...])    # any other program, likewise

BUILD names the build to test (default build/mbedtls). A log that matters goes into the exception of what failed.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Callable, Dict, List, Optional

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("BUILD") or "build/mbedtls")
RIVULETD = os.environ.get("RIVULETD") or os.path.join(BUILD, "rivuletd")
RIVULET = os.environ.get("RIVULET") or os.path.join(BUILD, "rivulet")
PACKAGE = os.path.join(TOP, "python")
# What must come may take long on a busy machine, and waiting for what is there costs nothing.
PATIENCE = float(os.environ.get("TEST_PATIENCE") or 6)

sys.path.insert(0, PACKAGE)


def within(seconds: float, what: str, condition: Callable[[], Any]) -> Any:
    """Repeats the condition until it is true, and returns it; AssertionError after that time, times PATIENCE."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s: not within %g s" % (what, seconds * PATIENCE))
        time.sleep(0.05)


class Fleet:
    """``settings``: more lines of rivuletd.conf, which begin with a section."""

    def __init__(self, settings: str = "") -> None:
        if not (os.access(RIVULETD, os.X_OK) and os.access(RIVULET, os.X_OK)):
            raise unittest.SkipTest("needs %s and %s" % (RIVULETD, RIVULET))
        self.folder = tempfile.mkdtemp(prefix="rivulet.")
        self.socket = self.path("admin.sock")
        self.processes: Dict[str, "subprocess.Popen[bytes]"] = {}
        self._settings = settings
        self.port = 0

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def log(self, name: str) -> str:
        """What a process has said so far."""
        try:
            with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def __enter__(self) -> "Fleet":
        try:
            self._configure("127.0.0.1:0")
            self._call("init", [RIVULETD, "--config", self.path("rivuletd.conf"), "init"], "token")
            self.daemon()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        for name in list(self.processes):
            self.end(name, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        return "https://localhost:%d" % self.port

    def daemon(self) -> None:
        """Starts rivuletd; a second time on the port it had."""
        if self.port:
            self._configure("127.0.0.1:%d" % self.port)
        port = self.path("state", "port")
        if os.path.exists(port):
            os.unlink(port)
        self._start_daemon()
        within(60, "rivuletd starts", lambda: os.path.exists(port) and os.path.getsize(port) or self._check_daemon())
        with open(port, encoding="ascii") as f:
            self.port = int(f.read())

    def join(self, name: str, settings: str = "", token: Optional[str] = None) -> str:
        """Enrols an identity and returns its home."""
        home = self.path(name)
        said = ["--token-file", token or self.path("token"), "--name", name, "--home", home]
        self._call(name, [RIVULET, "join", self.url, *said])
        with open(os.path.join(home, "rivulet.conf"), "a", encoding="utf-8") as f:
            f.write(settings + "\n")
        return home

    def token(self, file: str, *arguments: str) -> str:
        """Makes a token with these options of `rivulet token create` and returns the path of its file."""
        self._call(file, [RIVULET, "token", "create", *arguments, "--socket", self.socket, "-o", self.path(file)])
        return self.path(file)

    def digits(self, name: str, hand: int, count: int) -> None:
        """A device with drawn digits, as glyph_device of tests/e2e/common.sh."""
        digits = "format = glyphs\nhand = %d\ncount = %d\nseed = 1" % (hand, count)
        self.join(name, "[device]\nthreads = 1\n[data digits]\n" + digits)

    def run(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """The agent of an identity that has joined."""
        return self.start(name, [RIVULET, "run", "--home", self.path(name), *arguments])

    def start(self, name: str, command: List[str], **environment: str) -> "subprocess.Popen[bytes]":
        """Any program, its output in NAME.log."""
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": PACKAGE}
        variables.update(environment)
        with open(self.path(name + ".log"), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables)
        self.processes[name] = process
        return process

    def end(self, name: str, how: int = signal.SIGTERM, check: bool = True) -> int:
        """Ends a process that this fleet started. After SIGTERM it must exit with 0, unless `check` is off."""
        process = self.processes.pop(name)
        process.send_signal(how)
        try:
            status = process.wait(20 * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        if check and how == signal.SIGTERM and status != 0:
            raise AssertionError("%s ended with status %d: %s" % (name, status, self.log(name)[-2000:]))
        return status

    def _configure(self, listen: str) -> None:
        with open(self.path("rivuletd.conf"), "w", encoding="utf-8") as f:
            f.write("[server]\nlisten = %s\nstate_dir = %s\n" % (listen, self.path("state")))
            f.write("admin_socket = %s\n%s\n" % (self.socket, self._settings))

    def _start_daemon(self) -> None:
        self.start("rivuletd", [RIVULETD, "--config", self.path("rivuletd.conf")])

    def _check_daemon(self) -> None:
        if self.processes["rivuletd"].poll() is None:
            return
        # Meanwhile the port may be the local end of somebody's connection.
        if not self.port or "is in use by another program" not in self.log("rivuletd")[-300:]:
            raise AssertionError("rivuletd did not start: %s" % self.log("rivuletd")[-2000:])
        time.sleep(0.2)
        self._start_daemon()

    def _call(self, name: str, command: List[str], output: Optional[str] = None) -> None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * PATIENCE)
        if done.returncode != 0:
            raise AssertionError("%s: %s: %s" % (name, " ".join(command), done.stderr.decode(errors="replace")))
        if output:
            with open(self.path(output), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
                f.write(done.stdout)


def ask(fleet: Fleet, path: str, body: Optional[bytes] = None) -> Any:
    """A request over the admin socket and its answer; AssertionError if it is refused."""
    connection = http.client.HTTPConnection("localhost", timeout=20 * PATIENCE)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(fleet.socket)
    connection.request("GET" if body is None else "POST", path, body)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    if answer.status >= 300:
        raise AssertionError(data)
    return json.loads(data)


def digits_job(name: str, goal: int, rounds: int) -> Dict[str, Any]:
    """A small job on drawn digits, as glyph_job of tests/e2e/common.sh."""
    layers = [
        {"type": "flatten"},
        {"type": "linear", "name": "fc1", "out": 50},
        {"type": "relu"},
        {"type": "linear", "name": "fc2", "out": 10},
    ]
    return {
        "name": name,
        "seed": 7,
        "model": {"layers": layers, "loss": "cross_entropy"},
        "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
        "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
        "round": {"goal": goal, "deadline_s": 3600},
        "aggregate": {"max_norm": 20},
        "stop": {"rounds": rounds},
    }
