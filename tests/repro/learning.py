"""Learning beside PyTorch: each row is a job document with rivulet simulate and, by learning_torch.py, the same job by hand in
PyTorch: the same layers, first model, examples of each device, local steps, rounds and plain FedAvg. What differs is what each draws:
batches, and which devices of a round where not all take part. So figures are compared as means over the last measured rounds, and where
these still scatter by more than is judged, over several draws of the first model and all else.

Rows and their public settings: LEAF's and TFF's Shakespeare (embedding 8, two LSTMs of 256, windows of 80, 10 devices a round,
batch 4, SGD with rate 1 on devices and coordinator; google-research/federated: optimization/docs/hyperparameters.md), MLPerf Tiny's
autoencoder, GPT-2's blocks, MNIST with each norm.
"""
import functools
import glob
import json
import os
import subprocess
import sys

import repro

sys.path.insert(0, "python")
import rivulet  # noqa: E402

SHAKESPEARE = os.environ.get("SHAKESPEARE", "../shared/data/shakespeare")
ROUNDS = int(os.environ.get("ROUNDS") or 0)
TORCH = "tests/repro/learning_torch.py"
LETTERS = f"{repro.KEPT}/shakespeare"
MNIST = f"{repro.KEPT}/mnist"
CHARACTERS = 90  # as TFF's; the text has 65


class Row:
    """rounds of `goal` of `devices`; figure: what is compared, within `tolerance`, over the last `last` measurements of `draws` runs; least:
    what it must be at all (of a loss: at most)."""

    def __init__(self, name, model, source, local, rounds, devices=10, goal=10, figure="accuracy", least=None, **more):
        self.name, self.model, self.source, self.local, self.rounds = name, model, source, local, ROUNDS or rounds
        self.devices, self.goal, self.figure, self.least = devices, goal, figure, least
        self.tolerance, self.last = more.get("tolerance", 0.01), more.get("last", 3)
        self.every, self.in_time, self.draws = more.get("every", 2), more.get("in_time", True), more.get("draws", 1)

    def documents(self, draw=0):
        job = {
            "name": "learning-" + self.name,
            "seed": 1 + draw,
            "model": self.model["model"],
            "data": {"name": "train", **self.model["data"]},
            "local": self.local,
            "round": {"goal": self.goal, "pick": "sample"},
            "evaluate": {"by": "coordinator", "data": "train", "every": self.every, "deadline_s": 3600},
            "stop": {"rounds": self.rounds},
        }
        fleet = {"table": f"name,count\ndevice,{self.devices}\n", "settings": self.source.settings(), "split": self.source.key()}
        return job, fleet


# --- data


class Letters:
    """Shakespeare, the roles' lines one role after the other; of each role the last tenth is for the test. A device has a stretch."""

    test = {"train": f"{LETTERS}/train.txt", "test": f"{LETTERS}/test.txt", "characters": f"{LETTERS}/characters"}

    def key(self):
        return "letters"

    def settings(self):
        text = "[data {0}]\nformat = text\npath = {1}/{0}.txt\nvocabulary = {1}/characters\n"
        return text.format("train", LETTERS) + text.format("test", LETTERS)

    def make(self):
        if os.path.exists(f"{LETTERS}/characters"):
            return
        with open(f"{SHAKESPEARE}/input.txt", encoding="ascii") as f:
            text = f.read()
        roles = {}
        for part in text.strip().split("\n\n"):
            role, _, lines = part.partition(":\n")
            if lines:
                roles.setdefault(role, []).append(lines + "\n")
        said = ["".join(lines) for lines in roles.values()]
        os.makedirs(LETTERS, exist_ok=True)
        write(f"{LETTERS}/train.txt", "".join(lines[: len(lines) * 9 // 10] for lines in said))
        write(f"{LETTERS}/test.txt", "".join(lines[len(lines) * 9 // 10 :] for lines in said))
        write(f"{LETTERS}/characters", "".join(c.replace("\n", "\\n") + "\n" for c in sorted(set(text))))


class Digits:
    """MNIST dealt by learning_torch.py, `iid` or by `label`; `only`: one digit, as flat rows, for autoencoders."""

    def __init__(self, split, devices=10, only=None):
        self.split, self.devices, self.only = split, devices, only
        name = f"{MNIST}/{split}-{devices}" + ("" if only is None else f"-{only}")
        self.train, self.one = name + ".packed", name + "-test.packed"
        self.test = {"train": self.train, "test": f"{MNIST}/t10k-images-idx3-ubyte", "labels": f"{MNIST}/t10k-labels-idx1-ubyte"}
        self.test["only"] = only

    def key(self):
        return self.train

    def settings(self):
        test = f"format = idx\nimages = {self.test['test']}\nlabels = {self.test['labels']}\n"
        if self.only is not None:
            test = f"format = packed\npath = {self.one}\n"
        return f"[data train]\nformat = packed\npath = {self.train}\npartition = column\n[data test]\n{test}"

    def make(self):
        for out, files, devices in ((self.train, "train", self.devices), (self.one, "t10k", 1)):
            if not os.path.exists(out + ".npz") and (files == "train" or self.only is not None):
                names = [f"{MNIST}/{files}-{part}-ubyte" for part in ("images-idx3", "labels-idx1")]
                torch("pack", out, *names, devices, self.split, *([] if self.only is None else [self.only]))


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


# --- both sides


@functools.lru_cache(maxsize=None)
def interpreter():
    """PYTHON, or one of those that have PyTorch."""
    known = [os.environ.get("PYTHON", ""), *sorted(glob.glob(os.path.expanduser("~/.cache/rivulet/*/bin/python"))), sys.executable]
    for program in known:
        if os.access(program, os.X_OK) and subprocess.run([program, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return program
    print("repro: no Python with PyTorch: `make python` makes one, PYTHON=PROGRAM names another")
    sys.exit(77)


def torch(*words, **more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([interpreter(), TORCH, *map(str, words)], check=True, env=environment, **more)


def by_hand(row, draw):
    """What PyTorch came to, by round; kept as the other side is."""
    job, fleet = row.documents(draw)
    path = repro.path_of(job, fleet)
    if not os.path.exists(path + ".torch.jsonl"):
        command = [f"{repro.BUILD}/rivulet", "simulate", path + ".job.json", "--fleet", path + ".csv", "--config", path + ".conf"]
        command += ["--timing-only", "--rounds", "1", "--out", path + ".first"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        spec = {"job": job, "devices": row.devices, "first": path + ".first", "last": path + ".torch.safetensors", "data": row.source.test}
        write(path + ".spec", json.dumps(spec))
        with open(path + ".torch.part", "w", encoding="ascii") as out:
            torch("run", path + ".spec", stdout=out)
        os.rename(path + ".torch.part", path + ".torch.jsonl")
    with open(path + ".torch.jsonl", encoding="ascii") as f:
        return [json.loads(line) for line in f]


def area(row, draw):
    """The area under the curve of both last models, by the error of each test image."""
    path = repro.path_of(*row.documents(draw))
    rows, outputs = path + ".rows", path + ".outputs"
    common = [row.source.test["test"], row.source.test["labels"], row.source.only]
    torch("rows", rows, *common)
    command = [f"{repro.BUILD}/rivulet", "eval", path + ".job.json", "--init", path + ".safetensors", "--input", rows, "--output", outputs]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    done = torch("auc", path + ".spec", outputs, *common, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


# --- rows


def cnn(maps, dense):
    """A small one with norms: of pictures, of what is flat."""
    layers = []
    for i, out in enumerate((8, 16)):
        layers += [{"type": "conv2d", "name": f"conv{i + 1}", "out": out, "kernel": 5, "padding": 2}, *maps]
        layers += [{"type": "relu"}, {"type": "maxpool2d", "kernel": 2}]
    layers += [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 64}, *dense, {"type": "relu"}]
    layers += [{"type": "linear", "name": "fc2", "out": 10}]
    return {"model": {"layers": layers, "loss": "cross_entropy"}, "data": {"shape": [1, 28, 28], "classes": 10}}


GROUPS = {"type": "groupnorm", "groups": 4}
NORMS = {
    "batch": cnn([{"type": "batchnorm"}], [{"type": "batchnorm"}]),
    "group": cnn([GROUPS], [GROUPS]),
    "layer": cnn([{**GROUPS, "groups": 1}], [{"type": "layernorm"}]),
    "rms": cnn([], [{"type": "rmsnorm"}]),
}


def local(batch, name, rate, **amount):
    return {**(amount or {"epochs": 1}), "batch": batch, "optimizer": {"name": name, "rate": rate}}


def all_rows():
    lstm = rivulet.preset("char-lstm", vocabulary=CHARACTERS)
    gpt = rivulet.preset("gpt", vocabulary=CHARACTERS, window=64, width=64, layers=2)
    anomaly = rivulet.preset("autoencoder", features=784)
    rows = [
        Row("gpt", gpt, Letters(), local(16, "adam", 0.003, steps=10), 21, figure="loss", every=3, least=2.45, tolerance=0.03),
        Row("lstm", lstm, Letters(), local(4, "sgd", 1.0), 1200, devices=200, every=5, least=0.56, in_time=False),
    ]
    for split in ("iid", "label"):
        for norm, model in NORMS.items():
            rate, rounds, least = (0.1, 8, 0.95) if split == "iid" else (0.05, 16, None)
            rows.append(Row(f"mnist-{norm}-{split}", model, Digits(split), local(10, "sgd", rate, steps=40), rounds, every=1, least=least))
    for digit in (0, 4):
        source = Digits("iid", only=digit)
        rows.append(Row(f"autoencoder-{digit}", anomaly, source, local(32, "adam", 0.001), 25, figure="auc", every=5, least=0.85, last=1, draws=4))
    return rows


def run(row, draw):
    """(ours, PyTorch's) of one draw, and the curves."""
    ours = [r for r in repro.get(row.documents(draw), row.name, row.in_time).rounds if "loss" in r]
    theirs = by_hand(row, draw)
    if row.figure == "auc":
        return area(row, draw), (ours, theirs)
    return [sum(r[row.figure] for r in side[-row.last :]) / len(side[-row.last :]) for side in (ours, theirs)], (ours, theirs)


def figures(row):
    """(ours, PyTorch's) as they are compared, and the curves of the first draw."""
    runs = [run(row, draw) for draw in range(row.draws)]
    if row.draws > 1:
        print(f"{row.name}, {row.figure} by draw: " + ", ".join(f"{ours:.4f} ({theirs:.4f})" for (ours, theirs), _ in runs))
    return [sum(pair[side] for pair, _ in runs) / row.draws for side in (0, 1)], runs[0][1]


def curve(row, ours, theirs):
    """A line for each measured round, at most twelve."""
    pairs = list(zip(ours, theirs))[:: max(1, len(ours) // 12)]
    key = "accuracy" if row.figure == "accuracy" else "loss"
    cells = [[a["round"], f"{a[key]:.4f}", f"{b[key]:.4f}", f"{a[key] - b[key]:+.4f}"] for a, b in pairs]
    return f"{row.name}, {key} by round\n" + repro.table(["round", "ours", "PyTorch", "difference"], cells)


def main():
    os.environ.setdefault("RIVULET", f"{repro.BUILD}/rivulet")
    summary, missed = [], []
    rows = [row for row in all_rows() if repro.wanted(row.name, row.in_time)]
    if any(row.source.test is Letters.test for row in rows) and not os.path.exists(f"{SHAKESPEARE}/input.txt"):
        print(f"repro: no input.txt in {SHAKESPEARE}; SHAKESPEARE=DIRECTORY says where it is, ROWS=mnist does without")
        return 77
    for row in rows:
        row.source.make()
        (ours, theirs), curves = figures(row)
        print(curve(row, *curves) + "\n", flush=True)
        enough = ROUNDS or row.least is None or (ours <= row.least if row.figure == "loss" else ours >= row.least)
        good = abs(ours - theirs) <= row.tolerance and enough
        missed += [] if good else [row.name]
        cells = [row.name, row.rounds, row.figure, f"{ours:.4f}", f"{theirs:.4f}", f"{ours - theirs:+.4f}", f"{row.tolerance:g}"]
        summary.append([*cells, "" if row.least is None else f"{row.least:g}", "" if good else "missed"])
    repro.result("repro-learning", repro.table(["row", "rounds", "figure", "ours", "PyTorch", "difference", "within", "goal", ""], summary), {})
    return 1 if missed else 0
