"""rivulet.data: what it writes is what `rivulet data` and the loaders read."""
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy

from rivulet import data

RIVULET = os.path.join(os.environ.get("BUILD", "build/mbedtls"), "rivulet")


class Packed(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def show(self, name: str) -> dict:
        text = subprocess.run([RIVULET, "data", "show", "--json", self.path(name)], check=True, stdout=subprocess.PIPE).stdout
        return json.loads(text)

    def test_shapes(self) -> None:
        for shape, want, dtype, kind in [
            ((4, 6), [6], "f8", "f32"),
            ((4, 2, 3), [1, 2, 3], "u1", "u8"),
            ((4, 3, 2, 2), [3, 2, 2], "f4", "f32"),
        ]:
            x = numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)
            digest = data.save_packed(self.path("set"), x, numpy.array([0, 1, 1, 0]), ["cat", "dog"], numpy.array([0, 0, 2, 1]))
            seen = self.show("set")
            self.assertEqual((seen["shape"], seen["type"], seen["examples"]), (want, kind, 4))
            self.assertEqual((seen["names"], seen["groups"], seen["sha256"]), (["cat", "dog"], 3, digest))

    def test_targets(self) -> None:
        data.save_packed(self.path("set"), numpy.zeros((3, 2), "u1"), numpy.array([[1.5, 2], [0, 1], [2, 3]]))
        self.assertEqual(self.show("set")["targets"], 2)

    def test_refused(self) -> None:
        x = numpy.zeros((2, 2))
        for case in [
            (numpy.zeros(3), numpy.array([0, 1, 0])),
            (x, numpy.array([0])),
            (x, numpy.array([0, -1])),
            (x, numpy.array([0, 4096])),
            (x, numpy.array([0.5, float("nan")])),
            (numpy.array([[1, 2], [3, float("inf")]]), numpy.array([0, 1])),
            (numpy.array([[1, 2], [3, 1e300]]), numpy.array([0, 1])),
            (x, numpy.array([0, 2]), ["a", "b"]),
            (x, numpy.array([0, 1]), ["a", "b\n"]),
            (x, numpy.array([0, 1]), None, numpy.array([0])),
        ]:
            with self.assertRaises(data.DataError):
                data.save_packed(self.path("set"), *case)
        self.assertEqual(os.listdir(self.folder), [])

    def test_leaf(self) -> None:
        document = {"users": ["ann", "bob"], "num_samples": [2, 1],
                    "user_data": {"ann": {"x": [[1, 2, 3, 4], [5, 6, 7, 8]], "y": [0, 2]}, "bob": {"x": [[9, 9, 9, 9]], "y": [1]}}}
        with open(self.path("leaf.json"), "w") as file:
            json.dump(document, file)
        with open(os.devnull, "w") as quiet:
            out, sys.stdout = sys.stdout, quiet
            try:
                status = data.main(["leaf", self.path("leaf.json"), "-o", self.path("set"), "--shape", "2,2"])
            finally:
                sys.stdout = out
        self.assertEqual(status, 0)
        seen = self.show("set")
        self.assertEqual((seen["groups"], seen["shape"], seen["classes"], seen["examples"]), (2, [1, 2, 2], 3, 3))
        del document["user_data"]["bob"]["y"]
        with open(self.path("leaf.json"), "w") as file:
            json.dump(document, file)
        with self.assertRaisesRegex(data.DataError, "not LEAF"):
            data.read_leaf([self.path("leaf.json")])

    def refused(self, *words: str) -> str:
        """The one line that the command says, after which nothing is left."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = data.main([*words, "-o", self.path("out")])
        self.assertEqual(status, 1, words)
        line = said.getvalue()
        self.assertEqual((line.count("\n"), line[-1:]), (1, "\n"), line)
        self.assertNotIn("Traceback", line)
        self.assertFalse(os.path.isdir(self.path("out")) and os.listdir(self.path("out")))
        self.assertFalse(os.path.isfile(self.path("out")))
        return line

    def put(self, name: str, text: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(text)
        return self.path(name)

    def test_foreign_files(self) -> None:
        members = io.BytesIO()
        with zipfile.ZipFile(members, "w") as made:
            made.writestr("notes.txt", "no array")
        huge = io.BytesIO()
        with zipfile.ZipFile(huge, "w") as made:
            made.writestr("x.npy", b"\x93NUMPY\1\0v\0" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 50,), }".replace(b"1 << 50", b"1125899906842624").ljust(117) + b"\n")
        array = io.BytesIO()
        numpy.save(array, numpy.arange(3))
        foreign = [b"", b"x", b"PK\3\4", b"\x89PNG\r\n\x1a\n" + bytes(50), b"{}", b"[1, 2]", b"null", b'"text"', b"\x80\4K\1.",
                   b"[" * 100000, b'{"users": 5}', b'{"users": ["a"], "user_data": []}', b'{"users": [["a"]], "user_data": {}}',
                   b'{"users": ["a"], "user_data": {"a": {"x": 5, "y": 5}}}', b'{"users": ["a"], "user_data": {"a": {"x": [[1], [2, 3]], "y": [0, 1]}}}',
                   b'{"users": ["a"], "user_data": {"a": {"x": [{}], "y": [0]}}}', b'{"users": ["a"], "user_data": {"a": {"x": [[1e999]], "y": [0]}}}',
                   b'{"users": ["a"], "user_data": {"a": {"x": [[1]], "y": [1' + b"0" * 30 + b"]}}}", b'{"users": [], "user_data": {}}',
                   '{"users": []}'.encode("utf-16"), b"\xff\xff\xff", members.getvalue(), huge.getvalue(), array.getvalue()]  # fmt: skip
        for n, text in enumerate(foreign):
            path = self.put("f%d" % n, text)
            self.assertIn(path, self.refused("npz", path))
            self.assertIn(path, self.refused("leaf", path))
        self.assertIn("not finite", self.refused("leaf", self.path("f16")))
        large = self.put("large", b'{"users": ["a"], "user_data": {"a": {"x": [[1e39]], "y": [0]}}}')
        self.assertIn("not finite", self.refused("leaf", large))
        for text in (b"words\n", gzip.compress(array.getvalue())):
            self.assertIn("this is no npz, which begins as a zip file does", self.refused("npz", self.put("words", text)))
        long = io.BytesIO()
        with zipfile.ZipFile(long, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("x.npy", b"\x93NUMPY\2\0" + (20000).to_bytes(4, "little") + b" " * 20000)
        self.assertIn("array x has a header that is too long", self.refused("npz", self.put("long", long.getvalue())))
        self.assertIn("iconv -f UTF-16", self.refused("leaf", self.put("wide", '{"users": []}'.encode("utf-16"))))
        for command in ("npz", "leaf"):
            self.assertIn("No such file", self.refused(command, self.path("nowhere")))
            self.assertIn("directory", self.refused(command, self.folder))

    def test_cut_files(self) -> None:
        whole = io.BytesIO()
        numpy.savez_compressed(whole, x=numpy.arange(600.0).reshape(2, 300), y=numpy.array([0, 1]))
        document = {"users": ["ann"], "user_data": {"ann": {"x": [[1, 2], [3, 4]], "y": [0, 1]}}}
        for command, text in (("npz", whole.getvalue()), ("leaf", json.dumps(document).encode())):
            for cut in list(range(0, len(text) - 1, max(len(text) // 40, 1))) + [len(text) - 1]:
                self.assertIn("/cut: ", self.refused(command, self.put("cut", text[:cut])))
        text = bytearray(whole.getvalue())
        for at in range(60, len(text), 97):
            text[at] ^= 0x55
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                data.main(["npz", self.put("bent", text), "-o", self.path("other")])
            text[at] ^= 0x55

    def test_mark(self) -> None:
        document = b'\xef\xbb\xbf{"users": ["ann"], "user_data": {"ann": {"x": [[1, 2], [3, 4]], "y": [0, 1]}}}\r\n'
        x, y, groups, users = data.read_leaf([self.put("leaf", document)])
        self.assertEqual((x.tolist(), y.tolist(), users), ([[1, 2], [3, 4]], [0, 1], ["ann"]))

    def test_npz(self) -> None:
        """A column-major array comes out in C order, and an array of objects is refused."""
        x = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
        numpy.savez(self.path("a.npz"), x=x, y=numpy.array([0, 1]))
        made = data.unpack_npz(self.path("a.npz"), self.path("out"))
        self.assertEqual(sorted(map(os.path.basename, made)), ["x.npy", "y.npy"])
        self.assertTrue(numpy.load(self.path("out/x.npy")).flags.c_contiguous)
        with open(self.path("data.conf"), "w") as file:
            file.write("[data d]\nformat = npy\nx = %s\ny = %s\n" % (self.path("out/x.npy"), self.path("out/y.npy")))
        with open(self.path("job.json"), "w") as file:
            json.dump({"name": "d", "seed": 1, "model": {"layers": [{"type": "linear", "out": 2}], "loss": "cross_entropy"},
                       "data": {"name": "d", "shape": [3], "classes": 2}, "local": {"epochs": 1, "batch": 1, "optimizer": {"rate": 0.1}},
                       "round": {"goal": 1, "deadline_s": 60}, "stop": {"rounds": 1}}, file)  # fmt: skip
        subprocess.run([RIVULET, "train", self.path("job.json"), "--config", self.path("data.conf"), "--home", self.path("home")],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        numpy.savez(self.path("b.npz"), x=numpy.array([{}], dtype=object))
        with self.assertRaisesRegex(data.DataError, "objects"):
            data.unpack_npz(self.path("b.npz"), self.path("out"))


if __name__ == "__main__":
    unittest.main()
