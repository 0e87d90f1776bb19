"""docs/tutorial-2-your-model.md as its reader pastes it, in a network of its own. The environment that it makes is the one that runs
this test. What its programs print is compared but for ids, times and figures; of these what the page says of them is."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from fleet import PACKAGE, TOP

PAGE = "docs/tutorial-2-your-model.md"
ENVIRONMENT = """mkdir -p ~/fl/bin
printf '#!/bin/sh\\nPYTHONPATH=%s exec %s "$@"\\n' >~/fl/bin/python
chmod 755 ~/fl/bin/python
"""


class Tutorial(unittest.TestCase):
    def test_page(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            stand_in = os.path.join(folder, "environment")
            with open(stand_in, "w", encoding="utf-8") as f:
                f.write(ENVIRONMENT % (PACKAGE, sys.executable))
            command = ["tests/tools/blocks.py", "run", PAGE, "--network", "--instead", "make wheel", stand_in, "--keep", folder]
            done = subprocess.run([sys.executable, *command], cwd=TOP, capture_output=True, text=True)
            if done.returncode == 77:
                self.skipTest(done.stdout)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            said = ""
            for i in range(len([name for name in os.listdir(folder) if name.startswith("out-")])):
                with open(os.path.join(folder, "out-%d" % i), encoding="utf-8") as f:
                    said += f.read()
        evaluated = [float(v) for v in re.findall(r"^\d accuracy/eval (\S+)", said, re.M)]
        self.assertGreater(evaluated[-1], 0.9)
        self.assertGreater(evaluated[-1], evaluated[0])
        torch = re.search(r"^pump1: loss (\S+), accuracy (\S+)", said, re.M)
        ours = re.search(r"^examples 500  loss (\S+)  accuracy (\S+)", said, re.M)
        self.assertAlmostEqual(float(torch.group(1)), float(ours.group(1)), delta=1e-4)
        self.assertEqual(torch.group(2), ours.group(2))
        self.assertGreater(float(ours.group(2)), 0.9)


if __name__ == "__main__":
    unittest.main()
