"""Tables through `rivulet data pack` beside Python's csv module: quotes, separators and line ends in fields, every line end, marks."""

import csv
import io
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

RIVULET = os.path.join(os.environ.get("BUILD", "build/mbedtls"), "rivulet")
SEED = int(os.environ.get("SEED", "5"))
HEAD = 128
PIECES = ["a", "b", "Zz", "\xe4", '"', '""', ",", ";", "\t", "\n", "\r\n", "\r", "x y", "7", "'"]


class Tables(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def pack(self, data: bytes, *words: str) -> "subprocess.CompletedProcess[str]":
        with open(os.path.join(self.folder, "t.csv"), "wb") as f:
            f.write(data)
        command = [RIVULET, "data", "pack", os.path.join(self.folder, "t.csv"), "-o", os.path.join(self.folder, "t.rvp"), *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def groups(self, rows: int) -> "tuple[list[float], list[int], list[int]]":
        """What the file holds: a number, a label and a group for each row."""
        with open(os.path.join(self.folder, "t.rvp"), "rb") as f:
            data = f.read()[HEAD:]
        values = struct.unpack("<%df" % rows, data[: 4 * rows])
        labels, groups = (struct.unpack("<%dI" % rows, data[4 * k * rows : 4 * (k + 1) * rows]) for k in (1, 2))
        return list(values), list(labels), list(groups)

    def test_beside_pythons(self) -> None:
        rng = random.Random(SEED)
        for _ in range(25):
            rows = rng.randrange(1, 12)
            made = [
                [str(rng.randrange(1000)), "n" + "".join(rng.choices(PIECES, k=rng.randrange(6))) + ".", str(rng.randrange(3))]
                for _ in range(rows)
            ]
            text, end = io.StringIO(), rng.choice(["\n", "\r\n", "\r"])
            writer = csv.writer(
                text,
                delimiter=rng.choice(",;\t"),
                lineterminator=end,
                # Otherwise Python leaves a CR or LF without quotes that is not in `end`.
                quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]) if end == "\r\n" else csv.QUOTE_ALL,
            )
            writer.writerows([["value", "note", "class"]] + made)
            data = text.getvalue().encode()
            read = list(csv.reader(io.StringIO(text.getvalue(), newline=""), writer.dialect))
            self.assertEqual(read[1:], made)
            word = {",": "comma", ";": "semicolon", "\t": "tab"}[writer.dialect.delimiter]
            mark = b"\xef\xbb\xbf" if rng.random() < 0.5 else b""
            done = self.pack(mark + data, "--separator", word, "--columns", "value", "--group", "note")
            self.assertEqual(done.returncode, 0, (done.stderr, data, SEED))
            notes = sorted({row[1].encode() for row in made})
            want = [[float(r[0]) for r in made], [int(r[2]) for r in made], [notes.index(r[1].encode()) for r in made]]
            self.assertEqual(list(self.groups(rows)), want, (data, SEED))

    def test_other_encodings(self) -> None:
        text = "value,class\n1,0\n2,1\n"
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
            done = self.pack(text.encode(encoding))
            self.assertEqual(done.returncode, 6, encoding)
            self.assertIn("t.csv: this is UTF-", done.stderr)
            self.assertIn("iconv -f UTF-", done.stderr)

    def test_names_to_write(self) -> None:
        """Those that a job is told to have are JSON, whatever they are."""
        table, settings, job = (os.path.join(self.folder, name) for name in ("t.csv", "settings", "job.json"))
        with open(table, "w", encoding="utf-8") as f:
            f.write('value,class\n1,"c""at"\n2,back\\slash\n3,\u00e4\n')
        with open(settings, "w", encoding="utf-8") as f:
            f.write("[data d]\nformat = csv\npath = %s\n" % table)
        document = {
            "name": "x",
            "model": {"layers": [{"type": "linear", "out": 3}], "loss": "cross_entropy"},
            "data": {"name": "d", "shape": [1], "classes": 3},
            "local": {"epochs": 1, "batch": 2, "optimizer": {"rate": 0.1}},
            "round": {"goal": 1},
            "stop": {"rounds": 1},
        }
        for classes, code in ((3, 6), (None, 0)):
            if classes is None:
                document["data"]["classes"] = json.loads(done.stderr.partition('want "classes": ')[2])
            with open(job, "w", encoding="utf-8") as f:
                json.dump(document, f)
            command = [RIVULET, "train", job, "--config", settings, "--home", self.folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
            self.assertEqual(done.returncode, code, done.stderr)


if __name__ == "__main__":
    unittest.main()
