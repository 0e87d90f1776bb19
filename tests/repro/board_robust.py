"""Rules beside ByzFL's aggregators (PyPI, byzfl 0.0.11) on random inputs, and beside formulas where the two count neighbours
differently: Krum sums the n - f - 2 nearest here (Blanchard et al. 2017) and the n - f - 1 nearest there, so that ours with one hostile
less is theirs. CASES=N inputs (1,000)."""
import os
import subprocess
import sys

import learning
import repro

CASES = os.environ.get("CASES", "1000")
PACKAGE = "byzfl==0.0.11"


def main():
    """(the table, rules that missed); nothing if it is not wanted."""
    if not repro.wanted("robust", True):
        return "", []
    folder = f"{repro.KEPT}/byzfl"
    if not os.path.exists(f"{folder}/byzfl"):
        command = [learning.interpreter(), "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, PACKAGE]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"repro: {PACKAGE} could not be installed")
    command = [learning.interpreter(), "tests/repro/robust_byzfl.py", f"{repro.BUILD}/tests/tools/fold_rule", folder, CASES]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="ascii").stdout.splitlines()
    rows = [line.split("\t") for line in done]
    missed = [row[0] for row in rows if float(row[2]) > 1e-5]
    cells = [[*row, "missed" if row[0] in missed else ""] for row in rows]
    return repro.table(["rule", "inputs", "largest difference, relative", ""], cells), missed
