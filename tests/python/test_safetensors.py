"""rivulet.safetensors: what is written is read again, and no file from outside gets further than its header."""
import json
import os
import resource
import stat
import struct
import tempfile
import unittest
from typing import Any

import fleet  # noqa: F401 puts the package on the path
import numpy
from rivulet import safetensors

GOOD = {
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "U8", "shape": [], "data_offsets": [24, 25]},
}


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "model")

    def write(self, header: Any, data: bytes = b"", length: int = -1) -> None:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        with open(self.path, "wb") as f:
            f.write(struct.pack("<Q", len(text) if length < 0 else length) + text + data)

    def refused(self, says: str) -> None:
        with self.assertRaisesRegex(ValueError, says):
            safetensors.load(self.path)

    def test_round_trip(self) -> None:
        rng = numpy.random.default_rng(1)
        tensors = {
            "z.weight": rng.normal(size=(3, 4)).astype("f4"),
            "a.bias": numpy.arange(5, dtype="i8"),
            "scalar": numpy.float64(2.5),
            "empty": numpy.zeros((0, 7), "f2"),
            "flag": numpy.array([True, False]),
            "turned": numpy.arange(6, dtype=">u2").reshape(2, 3).T,
        }
        safetensors.save(self.path, tensors, {"job": "x"})
        again = safetensors.load(self.path)
        self.assertEqual(list(again), list(tensors))
        for name, value in tensors.items():
            numpy.testing.assert_array_equal(again[name], value)
            self.assertEqual(again[name].shape, value.shape)
        self.assertEqual(safetensors.File(self.path).metadata, {"job": "x"})
        self.assertEqual(os.listdir(self.folder.name), ["model"])
        with self.assertRaises(ValueError):
            again["z.weight"][0] = 1

    def test_devices_stay(self) -> None:
        os.mkfifo(self.path)
        with self.assertRaisesRegex(OSError, "no regular file"):
            safetensors.save(self.path, {"a": numpy.ones(3, "f4")})
        self.assertEqual(os.listdir(self.folder.name), ["model"])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path).st_mode))

    def test_no_room(self) -> None:
        """Nothing is left of a file that could not be written: on a full disk the task's report wants that room."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            with self.assertRaises(OSError):
                safetensors.save(self.path, {"w": numpy.zeros(1 << 16, "f4")})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_private(self) -> None:
        safetensors.save(self.path, {"a": numpy.ones(3, "f4")})
        file = safetensors.File(self.path, private=True)
        view = safetensors.array(file.bytes(file.tensors[0]), "F32", (3,))
        view[:] = 7
        del file
        self.assertEqual(view.tolist(), [7, 7, 7])
        self.assertEqual(safetensors.load(self.path)["a"].tolist(), [1, 1, 1])

    def test_good_header(self) -> None:
        self.write(GOOD, bytes(25))
        self.assertEqual(list(safetensors.load(self.path)), ["a", "b"])

    def test_wrong_files(self) -> None:
        for data in (b"", b"\0" * 7, struct.pack("<Q", 0), struct.pack("<Q", 1 << 62), struct.pack("<Q", 100) + b"{}"):
            with open(self.path, "wb") as f:
                f.write(data)
            self.refused("no safetensors file")
        self.write(GOOD, bytes(24))
        self.refused("have 25 bytes, the file has 24")
        self.write(b"[1]", b"")
        self.refused("no object")
        self.write(b"{nonsense", b"")
        self.refused("model: ")
        self.write(b"\xff\xfe{}", b"")
        self.refused("no JSON")
        self.write(b"[" * 100000, b"")
        self.refused("no JSON")
        one = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
        self.write(b"{" + one + b"," + one + b"}", b"1")
        self.refused("twice")

    def test_wrong_tensors(self) -> None:
        for change, says in (
            ({"dtype": "F99"}, "no type"),
            ({"dtype": ["F32"]}, "no type"),
            ({"shape": [2, -3]}, "shape"),
            ({"shape": [2, True]}, "shape"),
            ({"shape": [1] * 9}, "shape"),
            ({"shape": [1 << 40, 1 << 40]}, "24 bytes and not"),
            ({"shape": [2, 2]}, "24 bytes and not 16"),
            ({"shape": None}, "shape"),
            ({"data_offsets": [0, 24, 25]}, "offsets"),
            ({"data_offsets": [24, 0]}, "bytes and not"),
            ({"data_offsets": [8, 32]}, "does not follow"),
            ({"data_offsets": [0.0, 24.0]}, "offsets"),
        ):
            with self.subTest(change):
                self.write({**GOOD, "a": {**GOOD["a"], **change}}, bytes(25))
                self.refused(says)
        self.write({**GOOD, "__metadata__": {"a": 1}}, bytes(25))
        self.refused("__metadata__")
        none = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
        self.write({"t%d" % i: none for i in range(safetensors.TENSORS_MAX + 1)})
        self.refused("at most")

    def test_no_such_type(self) -> None:
        with self.assertRaisesRegex(ValueError, "complex"):
            safetensors.save(self.path, {"a": numpy.ones(2, "c8")})
        self.assertFalse(os.path.exists(self.path))


if __name__ == "__main__":
    unittest.main()
