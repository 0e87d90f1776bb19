#!/usr/bin/env python3
"""repro.py fedavg|attacks|codecs|asynchronous|learning|boards|sizing: published experiments on the programs' own code, with rivulet simulate.

Each run is kept in build/repro (by job and fleet), so that a command goes on where it ended. README.md says what is run and what
the environment may change: ROWS, FULL, THREADS, KEEP, SPLIT, MNIST, BUILD. Standard library only.
"""
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

BUILD = os.environ.get("BUILD", "build/mbedtls")
MNIST = os.environ.get("MNIST", "../shared/data/mnist")
KEPT = "build/repro"
FULL = bool(os.environ.get("FULL"))
ROWS = os.environ.get("ROWS", "")
THREADS = os.environ.get("THREADS", str(os.cpu_count() or 1))

NN = [
    {"type": "flatten"},
    {"type": "linear", "name": "fc1", "out": 200},
    {"type": "relu"},
    {"type": "linear", "name": "fc2", "out": 200},
    {"type": "relu"},
    {"type": "linear", "name": "fc3", "out": 10},
]
# Glorot's initial weights: with He's, 99 % takes half as many rounds more.
CNN = [
    {"type": "conv2d", "init": "glorot", "name": "conv1", "out": 32, "kernel": 5, "padding": 2},
    {"type": "relu"},
    {"type": "maxpool2d", "kernel": 2},
    {"type": "conv2d", "init": "glorot", "name": "conv2", "out": 64, "kernel": 5, "padding": 2},
    {"type": "relu"},
    {"type": "maxpool2d", "kernel": 2},
    {"type": "flatten"},
    {"type": "linear", "init": "glorot", "name": "fc1", "out": 512},
    {"type": "relu"},
    {"type": "linear", "init": "glorot", "name": "fc2", "out": 10},
]


def job(name, layers, local, goal, stop, /, **more):
    """A job document on MNIST, evaluated by the coordinator on the 10,000 test images. `more` goes into its members."""
    document = {
        "name": name,
        "seed": 1,
        "model": {"layers": layers, "loss": "cross_entropy"},
        "data": {"name": "mnist", "shape": [1, 28, 28], "classes": 10},
        "local": local,
        "round": {"goal": goal, "pick": "sample"},
        "evaluate": {"by": "coordinator", "data": "mnist"},
        "stop": stop,
    }
    for key, value in more.items():
        document[key] = {**document.get(key, {}), **value}
    return document


def settings(split, more=""):
    """What devices' settings say of their data; more: further lines of it."""
    sets = []
    for name, files, lines in (("mnist", "train", f"partition = {split}\n{more}"), ("test", "t10k", "")):
        sets.append(
            f"[data {name}]\nformat = idx\nimages = {KEPT}/mnist/{files}-images-idx3-ubyte\n"
            f"labels = {KEPT}/mnist/{files}-labels-idx1-ubyte\n{lines}"
        )
    return "\n".join(sets)


def fleet(devices, split="iid", hostile=None):
    """A fleet's table in CSV, and what its devices' settings say. hostile: {"count", "attack", "strength"}; the first ones are."""
    bad = hostile or {"count": 0}
    rows = ["name,count,attack,strength"]
    if bad["count"]:
        rows.append(f"hostile,{bad['count']},{bad['attack']},{bad.get('strength', '')}")
    rows.append(f"device,{devices - bad['count']},,")
    return {"table": "\n".join(rows) + "\n", "settings": settings(split), "split": split}


def unpack():
    """Once, not in each of many runs."""
    os.makedirs(f"{KEPT}/mnist", exist_ok=True)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        to = f"{KEPT}/mnist/{name}-ubyte"
        if not os.path.exists(to):
            with gzip.open(f"{MNIST}/{name}-ubyte.gz") as packed, open(to + ".part", "wb") as out:
                shutil.copyfileobj(packed, out)
            os.rename(to + ".part", to)


class Run:
    """What one run printed."""

    def __init__(self, lines, summary):
        self.rounds = lines
        self.summary = summary
        self.status = summary["end"]  # "done", "stuck", "paused", ...

    def curve(self):
        """(round, accuracy) where it was measured."""
        return [(r["round"], r.get("accuracy", 0.0)) for r in self.rounds if "accuracy" in r or "norm" in r and "loss" in r]

    def best(self):
        return max((a for _, a in self.curve()), default=0.0)

    def last(self):
        return self.rounds[-1].get("accuracy", 0.0) if self.rounds and self.status == "done" else 0.0

    def reached(self, target):
        """The first round with that accuracy; None if there is none."""
        return next((n for n, a in self.curve() if a >= target), None)

    def total(self, key):
        return sum(r[key] for r in self.rounds)


def path_of(job_document, fleet_document):
    text = json.dumps([job_document, fleet_document["table"], fleet_document["split"], *fleet_document.get("arguments", [])])
    return f"{KEPT}/{job_document['name']}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def read(path):
    """A finished run, or None."""
    try:
        with open(path + ".jsonl", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
    except FileNotFoundError:
        return None
    return Run(lines[:-1], lines[-1]["summary"])


def run(job_document, fleet_document):
    """Does a run, unless it was done before. The same documents give the same figures on every machine."""
    path = path_of(job_document, fleet_document)
    done = read(path)
    if done:
        return done
    os.makedirs(KEPT, exist_ok=True)
    files = {".job.json": json.dumps(job_document, indent=1), ".csv": fleet_document["table"], ".conf": fleet_document["settings"]}
    for ending, text in files.items():
        with open(path + ending, "w", encoding="utf-8") as f:
            f.write(text)
    began = time.monotonic()
    with open(path + ".part", "w", encoding="utf-8") as out:
        program = fleet_document.get("program", f"{BUILD}/rivulet")
        command = [program, "simulate", path + ".job.json", "--fleet", path + ".csv", "--config", path + ".conf"]
        command += ["--test", "test", "--threads", THREADS, "--out", path + ".safetensors", *fleet_document.get("arguments", [])]
        status = subprocess.run(command, stdout=out, check=False).returncode
    with open(path + ".part", encoding="utf-8") as f:
        if "summary" not in f.read():
            sys.exit(f"repro: {' '.join(command)} ended with status {status}")
    os.rename(path + ".part", path + ".jsonl")
    done = read(path)
    print(f"  {job_document['name']}: {len(done.rounds)} rounds, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done


def wanted(name, in_time):
    """Is this row to be run? ROWS names some (parts of names, by commas); else those that fit in the time, or all with FULL."""
    if ROWS:
        return any(part in name for part in ROWS.split(","))
    return in_time or FULL


def get(documents, name, in_time=True):
    """The run if it is wanted; else what was kept of it, or None."""
    return run(*documents) if wanted(name, in_time) else read(path_of(*documents))


def table(head, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
    return f"{os.cpu_count()} cores of {model}"


def result(part, words, pictures, page="results"):
    """Prints the table; it and the pictures are left in build/repro or, with KEEP=1, in docs/."""
    print(words)
    folder = "docs" if os.environ.get("KEEP") else KEPT
    for name, picture in pictures.items():
        with open(f"{folder}/repro-{name}.svg", "w", encoding="utf-8") as f:
            f.write(picture)
        print(f"wrote {folder}/repro-{name}.svg")
    if not os.environ.get("KEEP"):
        return
    begin, end = f"<!-- {part}: make {part} KEEP=1 -->\n", f"<!-- end of {part} -->\n"
    with open(f"docs/{page}.md", encoding="utf-8") as f:
        before, rest = f.read().split(begin)
        after = rest.split(end)[1]
    images = "\n".join(f"![{name}](repro-{name}.svg)" for name in pictures)
    body = "\n\n".join(filter(None, [f"Printed on {time.strftime('%Y-%m-%d')} on {machine()}.", words, images])) + "\n"
    with open(f"docs/{page}.md", "w", encoding="utf-8") as f:
        f.write(before + begin + "\n" + body + "\n" + end + after)
    print(f"wrote docs/{page}.md")


def main():
    import asynchronous
    import attacks
    import boards
    import codecs_matrix
    import fedavg
    import learning
    import sizing

    parts = {"fedavg": fedavg.main, "attacks": attacks.main, "codecs": codecs_matrix.main, "asynchronous": asynchronous.main}
    parts |= {"learning": learning.main, "boards": boards.main, "sizing": sizing.main}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        sys.exit(__doc__)
    if not os.path.exists(f"{MNIST}/train-images-idx3-ubyte.gz"):
        print(f"repro: no MNIST files in {MNIST}; MNIST=DIRECTORY says where they are")
        sys.exit(77)
    unpack()
    sys.exit(parts[sys.argv[1]]())


if __name__ == "__main__":
    sys.modules["repro"] = sys.modules["__main__"]
    main()
