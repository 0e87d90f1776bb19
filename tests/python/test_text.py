"""Text files that people write, as the package reads them: marks do not count, other encodings are named."""

import json
import os
import subprocess
import tempfile
import unittest

from fleet import RIVULET, digits_job
from rivulet import Error, _text, _trust, coordinator

DOCUMENT = {"name": "x", "model": {}}
# What editors make of lines and characters: what is read, and what is named.
READ = [("utf-8", "\r"), ("utf-8-sig", "\n"), ("utf-8-sig", "\r\n")]
REFUSED = ["utf-16", "utf-16-be"]


class Text(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.path = os.path.join(holder.name, "file")

    def put(self, data: bytes) -> None:
        with open(self.path, "wb") as f:
            f.write(data)

    def test_encodings(self) -> None:
        for text in ("", "a", "ab", "{}", "f\xfcr", "\u4e2d\u6587"):
            self.assertEqual(_text.utf8(text.encode("utf-8-sig"), "f"), text.encode())
            self.assertEqual(_text.utf8(text.encode(), "f"), text.encode())
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
            with self.assertRaisesRegex(ValueError, r"^f: this is UTF-(16|16LE|16BE|32); UTF-8 is read, which .iconv -f UTF-"):
                _text.utf8("{} \n".encode(encoding), "f")
        for odd in (b"\xff", b"\0\0\0\0", b"a\0bcdefghij", b"ab\0\0cd"):
            self.assertEqual(_text.utf8(odd, "f"), odd)

    def test_job_file(self) -> None:
        text = json.dumps(DOCUMENT, indent=1).replace("\n", "\r\n")
        self.put(text.encode("utf-8-sig"))
        self.assertEqual(coordinator._document(self.path), text.encode())
        self.assertEqual(coordinator._document("\ufeff" + text), text.encode())
        self.put(text.encode("utf-16"))
        with self.assertRaisesRegex(Error, "file: this is UTF-16"):
            coordinator._document(self.path)

    def test_token_file(self) -> None:
        self.put("rvt1\r\n".encode("utf-8-sig"))
        self.assertEqual(_trust.read(self.path, 100).strip(), "rvt1")
        self.put("rvt1\r\n".encode("utf-16"))
        with self.assertRaisesRegex(Error, "file: this is UTF-16"):
            _trust.read(self.path, 100)

    def test_programs(self) -> None:
        """A job file, and settings beside a good one, as each command reads them."""
        job = json.dumps(digits_job("x", 1, 1), indent=1)
        conf = "; caf\u00e9\n[data digits]\nformat = glyphs\nhand = 1\ncount = 20\nseed = 1\n"
        good, home = self.path + ".good", self.path + ".home"
        commands = {
            "print": lambda job, conf: ["job", "submit", job, "--print"],
            "plan": lambda job, conf: ["job", "plan", job, "--devices", "2", "--config", conf],
            "train": lambda job, conf: ["train", job, "--config", conf, "--home", home],
            "simulate": lambda job, conf: ["simulate", job, "--devices", "1", "--config", conf],
        }
        for text in (job, conf):
            with open(good, "w", encoding="utf-8") as f:
                f.write(conf if text == job else job)
            for name, words in commands.items():
                if text == conf and name != "train":
                    continue
                for encoding, end in [*READ, *((e, "\n") for e in REFUSED)]:
                    self.put(text.replace("\n", end).encode(encoding))
                    files = (self.path, good) if text == job else (good, self.path)
                    command = [RIVULET, *words(*files)]
                    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    what = (name, encoding, end, done.stderr)
                    if encoding in REFUSED:
                        self.assertIn(b": this is UTF-", done.stderr, what)
                        self.assertIn(b"/file:", done.stderr, what)
                        self.assertIn(b"iconv -f UTF-", done.stderr, what)
                        self.assertNotEqual(done.returncode, 0, what)
                    else:
                        self.assertEqual(done.returncode, 0, what)
                        if name == "print":
                            self.assertEqual(done.stdout.decode(), text.replace("\n", end))


if __name__ == "__main__":
    unittest.main()
