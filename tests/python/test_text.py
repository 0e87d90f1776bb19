"""Text files that people write, as the package reads them: marks do not count, other encodings are named."""

import json
import os
import tempfile
import unittest

from rivulet import Error, _text, _trust, coordinator

DOCUMENT = {"name": "x", "model": {}}


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


if __name__ == "__main__":
    unittest.main()
