"""Published boards beside ours: each row with the figure that its authors print. Data is in data/, MNIST where it always is; nothing is
downloaded but ByzFL, as a package.

heart      FLamby's Fed-Heart-Disease (du Terrail et al. 2022): four hospitals, 740 records, logistic regression; accuracy of the pooled
           test rows after 15 rounds of 100 steps. flamby/config_heart_disease.json and results of seeds 42 to 46 at edacf54d.
niid       Flower's baseline niid_bench, rows of MNIST (Li et al. 2021): ten devices, 50 rounds of ten epochs. README.md at 1599d01c.
robust     ByzFL's aggregators as an oracle of rules, on random inputs.
synthetic  FedProx's synthetic data with stragglers (Li et al. 2020): dropping them beside taking what they did.

One seed, and what was run before; FULL=1: all of the board's seeds. ROWS=heart,... runs some.
"""
import os
import subprocess

import board_robust
import board_synthetic
import learning
import repro

HEART = "tests/repro/data/heart"
TOOL = "tests/repro/board_data.py"
SEEDS = range(42, 47)


def tool(*words, **more):
    return subprocess.run([learning.interpreter(), TOOL, *map(str, words)], check=True, **more)


def mean(values):
    return sum(values) / len(values)


def spread(values):
    return max(values) - min(values)


# --- Fed-Heart-Disease

LOGISTIC = {"layers": [{"type": "linear", "name": "fc", "out": 1, "init": "torch"}], "loss": "bce"}


class Heart:
    """One strategy of the board. `published` is the mean over its five seeds."""

    def __init__(self, name, published, rate, server=None, prox=0.0, variates=False, pooled=False):
        self.name, self.published, self.pooled = "heart-" + name, published, pooled
        local = {"steps": 100, "batch": 4, "optimizer": {"name": "sgd", "rate": rate}}
        if prox:
            local["prox"] = prox
        if variates:
            local["control_variates"] = {"devices": 4}
        if pooled:
            local = {"epochs": 50, "batch": 4, "optimizer": {"name": "adam", "rate": rate}}
        self.local, self.aggregate = local, {"server_optimizer": server} if server else {}

    def documents(self, seed):
        devices, rounds = (1, 1) if self.pooled else (4, 15)
        job = {
            "name": "boards-" + self.name,
            "seed": seed,
            "model": LOGISTIC,
            "data": {"name": "train", "shape": [13]},
            "local": self.local,
            "round": {"goal": devices, "pick": "sample", "sample_s": 0},
            "aggregate": self.aggregate,
            "evaluate": {"by": "coordinator", "data": "test", "every": rounds},
            "stop": {"rounds": rounds},
        }
        folder, train = f"{repro.KEPT}/heart", "pooled" if self.pooled else "train"
        split = "" if self.pooled else "partition = column\n"
        settings = f"[data train]\nformat = packed\npath = {folder}/{train}.packed\n{split}[data test]\nformat = packed\npath = {folder}/test.packed\n"
        return job, {"table": f"name,count\nhospital,{devices}\n", "settings": settings, "split": self.name}

    def figure(self, seed):
        """Accuracy of the last model on the pooled test rows."""
        documents = self.documents(seed)
        repro.run(*documents)
        path, rows = repro.path_of(*documents), f"{repro.KEPT}/heart/pooled"
        command = [f"{repro.BUILD}/rivulet", "eval", path + ".job.json", "--init", path + ".safetensors"]
        subprocess.run([*command, "--input", rows + ".rows", "--output", path + ".outputs"], check=True, stdout=subprocess.DEVNULL)
        return float(tool("accuracy", rows + ".npz", path + ".outputs", stdout=subprocess.PIPE).stdout)

    def make(self):
        if not os.path.exists(f"{repro.KEPT}/heart/pooled.rows"):
            os.makedirs(f"{repro.KEPT}/heart", exist_ok=True)
            tool("heart", HEART, f"{repro.KEPT}/heart")

    within = 0.01


def adaptive(name, rate, beta2=0.999):
    betas = {"beta1": 0.9} if name == "adagrad" else {"beta1": 0.9, "beta2": beta2}
    return {"name": name, "rate": rate, "tau": 1e-8, **betas}


HEARTS = [
    Heart("fedavg", 0.748, 0.001),
    Heart("fedprox", 0.748, 0.001, prox=0.01),
    Heart("scaffold", 0.748, 0.001, variates=True),
    Heart("fedadam", 0.779, 0.01, server=adaptive("adam", 0.01)),
    Heart("fedyogi", 0.779, 0.003162, server=adaptive("yogi", 0.01)),
    Heart("fedadagrad", 0.779, 0.003162, server=adaptive("adagrad", 0.316228)),
    Heart("pooled", 0.795, 0.001, pooled=True),
]

# --- niid_bench

LENET = [
    {"type": "conv2d", "init": "torch", "name": "conv1", "out": 6, "kernel": 5},
    {"type": "relu"},
    {"type": "maxpool2d", "kernel": 2},
    {"type": "conv2d", "init": "torch", "name": "conv2", "out": 16, "kernel": 5},
    {"type": "relu"},
    {"type": "maxpool2d", "kernel": 2},
    {"type": "flatten"},
    {"type": "linear", "init": "torch", "name": "fc1", "out": 120},
    {"type": "relu"},
    {"type": "linear", "init": "torch", "name": "fc2", "out": 84},
    {"type": "relu"},
    {"type": "linear", "init": "torch", "name": "fc3", "out": 10},
]


class Niid:
    def __init__(self, way, name, published, prox=0.0, normalise=False):
        self.way, self.name, self.published = way, f"niid-{way}-{name}", published
        self.prox, self.normalise = prox, normalise

    within = 0.01

    def packed(self, seed):
        return f"{repro.KEPT}/mnist/niid-{self.way}-{seed}.packed"

    def make(self):
        for seed in SEEDS:
            if not os.path.exists(self.packed(seed)):
                files = [f"{repro.KEPT}/mnist/train-{part}-ubyte" for part in ("images-idx3", "labels-idx1")]
                tool("niid", *files, self.packed(seed), self.way, seed)

    def documents(self, seed):
        local = {
            "epochs": 10,
            "batch": 64,
            "optimizer": {"name": "sgd", "rate": 0.01, "momentum": 0.9, "weight_decay": 1e-5},
            "arithmetic": "fast",
        }
        if self.prox:
            local["prox"] = self.prox
        aggregate = {"normalise": True, "normalise_max": 0} if self.normalise else {}
        more = {"seed": seed, "aggregate": aggregate, "evaluate": {"every": 5}}
        document = repro.job("boards-" + self.name, LENET, local, 10, {"rounds": 50}, **{k: v for k, v in more.items() if k != "seed"})
        document["seed"] = seed
        fleet = repro.fleet(10, "column")
        train = f"[data mnist]\nformat = packed\npath = {self.packed(seed)}\npartition = column\n"
        fleet["settings"] = train + "[data test]" + fleet["settings"].split("[data test]")[1]
        return document, {**fleet, "split": f"{self.way}-{seed}"}

    def figure(self, seed):
        return repro.run(*self.documents(seed)).last()


NIIDS = [
    Niid("dirichlet", "fedavg", 0.989),
    Niid("dirichlet", "fedprox", 0.990, prox=0.01),
    Niid("dirichlet", "fednova", 0.988, normalise=True),
    Niid("labels", "fedavg", 0.966),
    Niid("labels", "fedprox", 0.967, prox=0.01),
    Niid("labels", "fednova", 0.965, normalise=True),
]


def seeds_of(row):
    """The first, and with FULL all; what was run before is printed too."""
    seeds = SEEDS if isinstance(row, Heart) else SEEDS[:3]
    return [seed for seed in seeds if repro.FULL or seed == seeds[0] or repro.read(repro.path_of(*row.documents(seed)))]


def board(rows):
    """(cells, those that missed): the mean of the seeds, within a point of the published one or the seeds' own spread."""
    cells, missed = [], []
    for row in rows:
        if not repro.wanted(row.name, True):
            continue
        row.make()
        found = [row.figure(seed) for seed in seeds_of(row)]
        difference = mean(found) - row.published
        good = abs(difference) <= max(row.within, spread(found)) + 0.0005  # published figures have three digits
        missed += [] if good else [row.name]
        by_seed = " ".join(f"{value:.3f}" for value in found)
        cells.append([row.name, f"{row.published:.3f}", f"{mean(found):.3f}", f"{difference:+.3f}", by_seed, "" if good else "missed"])
    return cells, missed


def main():
    cells, missed = board(HEARTS + NIIDS)
    words = [repro.table(["row", "published", "ours", "difference", "by seed", ""], cells)] if cells else []
    for part in (board_robust, board_synthetic):
        text, more = part.main()
        words += [text] if text else []
        missed += more
    repro.result("repro-boards", "\n\n".join(words), {})
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed else 0
