"""The package as a whole: what importing it loads, what is said without the library, and the wheel."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

from fleet import BUILD, PACKAGE, TOP

LIBRARY = os.path.join(BUILD, "librivulet.so.1")


def python(code: str, *flags: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    variables = {**os.environ, "PYTHONPATH": PACKAGE, **environment}
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, env=variables)


def version() -> str:
    with open(os.path.join(TOP, "base", "core", "version.h"), encoding="utf-8") as f:
        return next(line.split('"')[1] for line in f if line.startswith("#define VERSION_RELEASE"))


class Package(unittest.TestCase):
    def test_import_is_cheap(self) -> None:
        # Before and after, for the interpreter has modules of its own loaded.
        code = "import sys, typing; a = set(sys.modules); import rivulet; print(sorted(set(sys.modules) - a))"
        self.assertEqual(python(code).stdout, "['rivulet']\n")
        heavy = "'numpy', 'torch', 'logging', 'asyncio'"
        code = "import rivulet, sys; rivulet.tasks; print([m for m in (%s) if m in sys.modules])" % heavy
        self.assertEqual(python(code).stdout, "[]\n")

    def test_names(self) -> None:
        said = python("import rivulet\nprint(rivulet.__version__, rivulet.Stop.GO_ON == 0)\nrivulet.nothing")
        self.assertEqual(said.stdout, version() + " True\n")
        self.assertIn("has no attribute 'nothing'", said.stderr)
        # As the pages name them, without an import of their own.
        said = python("import rivulet\nprint(rivulet.safetensors.save.__name__, rivulet.data.__name__)")
        self.assertEqual(said.stdout, "save rivulet.data\n", said.stderr)

    def test_without_the_library(self) -> None:
        code = "import rivulet\ntry: next(iter(rivulet.tasks('a', 'b', 1)))\nexcept rivulet.Error as e: print(e.code, e)"
        said = python(code, RIVULET_LIBRARY="/nowhere/librivulet.so.1").stdout
        self.assertIn("not-found /nowhere/librivulet.so.1 cannot be used", said)
        self.assertIn("RIVULET_LIBRARY names it", said)
        self.assertEqual(said.count("\n"), 1)
        # A library of another kind is no better.
        self.assertIn("rivulet_abi", python(code, RIVULET_LIBRARY="libm.so.6").stdout)

    @unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
    def test_library_of_another_layout(self) -> None:
        code = "from rivulet import _library, Error\n"
        self.assertEqual(python(code + "_library.load()", RIVULET_LIBRARY=LIBRARY).stderr, "")
        code += "_library.abi = lambda: 1\ntry: _library.load()\nexcept Error as e: print(e.code, e)"
        said = python(code, RIVULET_LIBRARY=LIBRARY).stdout
        self.assertIn("state %s is version %s" % (LIBRARY, version()), said)

    def test_arguments(self) -> None:
        code = "import rivulet\nnext(iter(rivulet.tasks(%s)))"
        for arguments in ("", "'a', 'b'", "'a', 'b', 0", "data='b', examples=3"):
            self.assertIn("ValueError: a device of its own says", python(code % arguments).stderr)


LOAD = """import ctypes, os, rivulet
from rivulet import _library
%s
try: _library.load()
except rivulet.Error as e: print(e.code, e)
else: print("loaded", sorted({l.split()[-1] for l in open("/proc/self/maps") if "librivulet" in l}))
"""


@unittest.skipIf(os.environ.get("SAN"), "a sanitized library cannot be loaded into python3")
class Library(unittest.TestCase):
    """Which library is loaded: in a copy of the package, as a wheel lays it out."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.package = os.path.join(self.folder, "site", "rivulet")
        shutil.copytree(os.path.join(PACKAGE, "rivulet"), self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.own = os.path.join(self.package, "librivulet.so.1")
        self.sums = os.path.join(self.package, "librivulet.sha256")
        self.other = os.path.join(self.folder, "site", "rivulet_fl.libs", "liblinked.so.1")

    def bundle(self) -> None:
        os.makedirs(os.path.dirname(self.other), exist_ok=True)
        for path in (self.own, self.other):
            shutil.copy(LIBRARY, path)
        with open(self.sums, "w", encoding="ascii") as f:
            for path in (self.own, self.other):
                with open(path, "rb") as g:
                    digest = hashlib.sha256(g.read()).hexdigest()
                f.write("%s  %s\n" % (digest, os.path.relpath(path, self.package)))

    def load(self, before: str = "", **environment: str) -> str:
        variables = {k: v for k, v in os.environ.items() if k != "RIVULET_LIBRARY"}
        variables.update(environment, PYTHONPATH=os.path.dirname(self.package))
        done = subprocess.run([sys.executable, "-c", LOAD % before], capture_output=True, text=True, env=variables)
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 1), done.stdout)
        return done.stdout.strip()

    def test_order(self) -> None:
        system = "_library.NAME = %r" % LIBRARY
        self.assertEqual(self.load(system), "loaded %s" % [LIBRARY])
        self.bundle()
        self.assertEqual(self.load(system), "loaded %s" % [self.own])
        named = os.path.join(self.folder, "librivulet.so")
        shutil.copy(LIBRARY, named)
        self.assertEqual(self.load(system, RIVULET_LIBRARY=named), "loaded %s" % [named])
        self.assertEqual(self.load(system, RIVULET_LIBRARY=""), "loaded %s" % [self.own])
        # Without digests, as somebody who puts one there leaves it.
        os.unlink(self.sums)
        os.unlink(self.other)
        self.assertEqual(self.load(system), "loaded %s" % [self.own])

    def test_none(self) -> None:
        said = self.load("_library.NAME = 'librivulet-none.so.1'")
        self.assertRegex(said, "^not-found librivulet-none.so.1 cannot be used .*sudo make install.*make wheel PLATFORM=1")

    def check(self) -> str:
        """What is wrong with the files, in this process."""
        from rivulet import _bundled

        with mock.patch.multiple(_bundled, _HERE=self.package, LIBRARY=self.own, SUMS=self.sums):
            self.assertTrue(_bundled.present())
            try:
                _bundled.check()
            except OSError as e:
                return str(e)
        return ""

    def test_damaged(self) -> None:
        """What is wrong is not replaced by the system's, and is loaded if RIVULET_LIBRARY says so."""
        self.bundle()
        self.assertEqual(self.check(), "")
        size = os.path.getsize(self.own)
        for path in (self.own, self.other):
            name = os.path.basename(path)
            for cut in (0, 100, size // 2, size - 1):
                self.bundle()
                os.truncate(path, cut)
                self.assertEqual(self.check(), name + " is damaged")
            self.bundle()
            with open(path, "r+b") as f:
                f.seek(size // 2)
                f.write(b"\xff\x00\xff")
            self.assertEqual(self.check(), name + " is damaged")
            os.unlink(path)
            self.assertEqual(self.check(), name + ": No such file or directory")
        for text in ("", "rubbish\n", "\xff" * 80):
            self.bundle()
            with open(self.sums, "w", encoding="latin-1") as g:
                g.write(text)
            self.assertEqual(self.check(), "librivulet.sha256 is damaged")
        self.bundle()
        with open(self.other, "ab") as h:
            h.write(b"of mine")
        said = self.load("_library.NAME = %r" % LIBRARY)
        self.assertIn("%s cannot be used (liblinked.so.1 is damaged): " % self.own, said)
        self.assertIn("pip install --force-reinstall", said)
        self.assertEqual(self.load(RIVULET_LIBRARY=self.own), "loaded %s" % [self.own])

    def test_of_another_version(self) -> None:
        for prepare, advice in ((lambda: None, "sudo make install"), (self.bundle, "--force-reinstall")):
            prepare()
            said = self.load("_library.NAME = %r; _library.abi = lambda: 1" % LIBRARY)
            self.assertRegex(said, "^state .*librivulet.so.1 is version .*, this package is made for another: .*" + advice)


class Documents(unittest.TestCase):
    def test_the_loop_of_the_docs_is_the_one_that_is_tested(self) -> None:
        with open(os.path.join(TOP, "docs", "from-pytorch.md"), encoding="utf-8") as f:
            snippets = [part.split("```")[0] for part in f.read().split("```python\n")[1:]]
        with open(os.path.join(TOP, "examples", "torch_loop.py"), encoding="utf-8") as f:
            script = f.read()
        of_devices = [snippet for snippet in snippets if "Coordinator(" not in snippet and "one_round.py" not in snippet]
        self.assertEqual(len(of_devices), 2)
        for snippet in of_devices:
            self.assertIn(snippet, script)


class Wheel(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, name: str) -> str:
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "python", "wheel.py"), version(), os.path.join(self.folder, name)],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def test_bytes(self) -> None:
        first, second = self.make("first"), self.make("second")
        with open(first, "rb") as a, open(second, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual(os.path.basename(first), "rivulet_fl-%s-py3-none-any.whl" % version())

    def test_record(self) -> None:
        with zipfile.ZipFile(self.make("it")) as z:
            names, info = z.namelist(), "rivulet_fl-%s.dist-info/" % version()
            rows = [line.split(",") for line in z.read(info + "RECORD").decode().splitlines()]
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                data = z.read(name)
                right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), ("sha256=" + right, len(data)))
            self.assertEqual(rows[-1], [info + "RECORD", "", ""])
            for name in ("rivulet/__init__.py", "rivulet/py.typed", info + "WHEEL"):
                self.assertIn(name, names)
            meta = z.read(info + "METADATA").decode()
            self.assertIn("\nName: rivulet-fl\nVersion: %s\n" % version(), meta)

    def test_with_a_library(self) -> None:
        library = os.path.join(self.folder, "any")
        with open(library, "wb") as f:
            f.write(b"\x7fELF")
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "python", "wheel.py"), version(), self.folder, library],
            capture_output=True,
            text=True,
            check=True,
        )
        path, tag = done.stdout.strip(), "py3-none-linux_" + os.uname().machine
        self.assertEqual(os.path.basename(path), "rivulet_fl-%s-%s.whl" % (version(), tag))
        with zipfile.ZipFile(path) as z:
            self.assertEqual(z.read("rivulet/librivulet.so.1"), b"\x7fELF")
            wheel = z.read("rivulet_fl-%s.dist-info/WHEEL" % version()).decode()
            self.assertIn("\nRoot-Is-Purelib: false\nTag: %s\n" % tag, wheel)
            self.assertIsNone(z.testzip())
        with zipfile.ZipFile(self.make("pure")) as z:
            wheel = z.read("rivulet_fl-%s.dist-info/WHEEL" % version()).decode()
            self.assertIn("\nRoot-Is-Purelib: true\nTag: py3-none-any\n", wheel)
            self.assertNotIn("rivulet/librivulet.so.1", z.namelist())

    def test_it_works(self) -> None:
        path = self.make("it")
        said = python("import rivulet.task as t; print(t.__file__)", "-I", "-S")  # nothing of this tree
        self.assertIn("No module named 'rivulet'", said.stderr)
        code = "import sys; sys.path.insert(0, %r); import rivulet.task as t; print(t.__file__)" % path
        said = python(code, "-I", "-S")
        self.assertEqual(said.stdout, path + "/rivulet/task.py\n")
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("no pip")
        into = os.path.join(self.folder, "into")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        command = [*pip, "install", "--no-index", "--target", into, path]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(into, "rivulet", "py.typed")))


if __name__ == "__main__":
    unittest.main()
