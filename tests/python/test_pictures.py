"""`rivulet data pack` on PNG files of every kind: the values are those of the file. What is damaged is refused by name. Links lead where
they lead."""

import os
import struct
import subprocess
import tempfile
import unittest

import pictures

RIVULET = os.path.join(os.environ.get("BUILD", "build/mbedtls"), "rivulet")
SEED = int(os.environ.get("SEED", "7"))
HEAD = 128


class Pictures(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        os.makedirs(self.path("set", "a"))

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def put(self, name: str, data: bytes, folder: str = "set/a") -> None:
        os.makedirs(self.path(folder), exist_ok=True)
        with open(self.path(folder, name), "wb") as f:
            f.write(data)

    def pack(self, *words: str, folder: str = "set") -> "subprocess.CompletedProcess[str]":
        command = [RIVULET, "data", "pack", self.path(folder), "-o", self.path("out.rvp"), *words]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")

    def packed(self, *words: str, folder: str = "set") -> bytes:
        done = self.pack(*words, folder=folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("out.rvp"), "rb") as f:
            return f.read()[HEAD:]

    def refused(self, data: bytes, *said: str) -> None:
        self.put("x.png", data)
        done = self.pack()
        self.assertEqual(done.returncode, 6, done.stderr)
        for text in ("set/a/x.png", *said):
            self.assertIn(text, done.stderr)

    def test_every_kind_of_png(self) -> None:
        side = 9
        made = sorted(pictures.pictures(side, side, SEED))
        self.assertGreater(len(made), 250)
        for p in made:
            self.put(p.name, p.data)
        for grey in (False, True):
            for white in (False, True):
                words = (["--grey"] if grey else []) + ([] if white else ["--alpha", "drop"])
                got, channels = self.packed(*words), 1 if grey else 3
                size = channels * side * side
                for n, p in enumerate(made):
                    block = got[n * size : (n + 1) * size]
                    for i, want in enumerate(pictures.values(p, grey, white)):
                        for c in range(channels):
                            seen = block[c * side * side + i]
                            self.assertLessEqual(abs(seen - want[c]), 1, (p.name, grey, white, i, c, seen, want, SEED))

    def test_known_values(self) -> None:
        """128 of 255 in 16 bits, with a linear gamma, red in grey, half black over white: by hand."""
        grey, linear = pictures.GREY, pictures.NOTES["gamma-1"]
        rng = pictures.random.Random(SEED)
        for kind, depth, pixel, note, want in (
            (grey, 16, (128 * 257,), b"", 128),
            (grey, 8, (128,), linear, 128),
            (pictures.RGB, 16, (32768, 32768, 32768), linear, 128),
            (pictures.RGB, 8, (255, 0, 0), b"", 76),
            (pictures.GREY_ALPHA, 8, (100, 128), b"", 177),
        ):
            self.put("x.png", pictures.encoded(kind, depth, [[pixel]], note, False, rng))
            self.assertEqual(self.packed("--grey")[0], want, (kind, depth))

    def test_damaged(self) -> None:
        rng = pictures.random.Random(SEED)
        rows = pictures.drawn(pictures.RGB, 8, 9, 9, rng, 0)
        good = pictures.encoded(pictures.RGB, 8, rows, b"", True, rng)
        for cut in (8, 20, 33, 40, len(good) - 20, len(good) - 12, len(good) - 1):
            self.refused(good[:cut], "PNG: ")
        at = good.index(b"IEND") - 5
        self.refused(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], "PNG: IDAT: CRC error")
        at = good.index(b"IDAT") - 4
        clear = bytearray(pictures.chunk(b"tRNS", bytes(6)))
        clear[8] ^= 1
        self.refused(good[:at] + bytes(clear) + good[at:], "PNG: tRNS: CRC error")
        self.refused(b"RIFF....WEBP", "neither PNG nor JPEG")
        head = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 16, 6, 0, 0, 0)
        self.refused(good[:8] + pictures.chunk(b"IHDR", head), "PNG: ")
        head = struct.pack(">IIBBBBB", 1000000, 70000, 16, 6, 0, 0, 0)
        self.refused(good[:8] + pictures.chunk(b"IHDR", head) + good[33:], "the header claims 1000000 x 70000 pixels")

    def test_bombs_beside_the_pixels(self) -> None:
        """Texts and profiles that unpack to gigabytes are not unpacked."""
        rng = pictures.random.Random(SEED)
        zeros = pictures.zlib.compress(bytes(1 << 24), 9)
        note = b"".join(pictures.chunk(b"zTXt", b"Comment\0\0" + zeros) for _ in range(200))
        note += pictures.chunk(b"iCCP", b"some\0\0" + zeros)
        self.put("x.png", pictures.encoded(pictures.GREY, 8, [[(5,)]], note, False, rng))
        self.assertEqual(self.packed("--grey")[0], 5)

    def test_links(self) -> None:
        rng = pictures.random.Random(SEED)
        for n, folder in enumerate(("elsewhere/one", "elsewhere/class", "set/a")):
            self.put("x.png", pictures.encoded(pictures.GREY, 8, [[(n + 1,)]], b"", False, rng), folder)
        os.symlink(self.path("elsewhere/one/x.png"), self.path("set/a/a-link.png"))
        os.symlink("x.png", self.path("set/a/z-link.png"))
        os.symlink("../elsewhere/class", self.path("set/b"))
        self.assertEqual(list(self.packed("--grey")[:4]), [1, 3, 3, 2])
        os.symlink("set", self.path("link"))
        self.assertEqual(list(self.packed("--grey", folder="link")[:4]), [1, 3, 3, 2])
        os.symlink("nowhere.png", self.path("set/a/broken.png"))
        done = self.pack()
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("set/a/broken.png: a symbolic link to nowhere.png, which is not there", done.stderr)
        os.unlink(self.path("set/a/broken.png"))
        os.symlink("round.png", self.path("set/a/round.png"))
        done = self.pack()
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("set/a/round.png: a symbolic link to round.png: Too many levels of symbolic links", done.stderr)


if __name__ == "__main__":
    unittest.main()
