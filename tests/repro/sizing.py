"""Work by measured speed (local.target_s) beside the same number of steps for all: does a round spoil what those before it learned?

A small CNN on MNIST, rate 0.05. A device in the middle does STEPS steps of 10 examples in target_s, so that is what all do
without it. A cell is a division of the examples, a spread of speeds and who is asked; its figure is the mean of three seeds (of the job, the
fleet and the division at a time). BEFORE=PROGRAM names an older `rivulet` for a column of its own.
"""
import os

import repro

SEEDS = (1, 2, 3)
STEPS, BATCH, RATE = 200, 10, 0.05
TARGET_S = 2  # a device does 1000 examples in a second
BOUND = 0.02
BEFORE = os.environ.get("BEFORE", "")

NET = [
    {"type": "conv2d", "name": "conv1", "out": 8, "kernel": 5, "stride": 2},
    {"type": "relu"},
    {"type": "conv2d", "name": "conv2", "out": 16, "kernel": 5, "stride": 2},
    {"type": "relu"},
    {"type": "flatten"},
    {"type": "linear", "name": "fc", "out": 10},
]
SPLITS = [("IID", "iid", ""), ("Dirichlet 0.3", "dirichlet", "alpha = 0.3\n"), ("two digits each", "label", "")]
SPREADS = [("none", ()), ("lognormal:0.5", ("--speeds", "lognormal:0.5")), ("lognormal:1.5", ("--speeds", "lognormal:1.5"))]


class Asked:
    """Who is asked: "round", of so many devices, for so many rounds."""

    def __init__(self, name, rounds_of, devices, rounds):
        self.name, self.round, self.devices, self.rounds = name, rounds_of, devices, rounds


ASKED = [
    Asked("10 of 30", {"goal": 10, "pick": "sample"}, 30, 10),
    Asked("all of 10", {"goal": 10, "pick": "sample"}, 10, 6),
    Asked("buffered, 10 of 30", {"goal": 10, "mode": "buffered"}, 30, 6),
]


class Way:
    """A column: what is in "local" and in "aggregate", and the program."""

    def __init__(self, name, local, aggregate=None, program=None):
        self.name, self.local, self.aggregate, self.program = name, local, aggregate or {}, program


SIZED = {"target_s": TARGET_S}
WAYS = [Way("the same steps", {"steps": STEPS})]
if BEFORE:
    WAYS.append(Way("before", SIZED, program=BEFORE))
WAYS += [Way("no bound", SIZED, {"normalise_max": 0}), Way("target_s", SIZED), Way("normalise: false", SIZED, {"normalise": False})]


def documents(split, spread, asked, way, seed):
    local = {**way.local, "batch": BATCH, "optimizer": {"name": "sgd", "rate": RATE}}
    job = repro.job("sizing", NET, local, 1, {"rounds": asked.rounds}, aggregate=way.aggregate)
    job = {**job, "seed": seed, "round": asked.round}
    more = f"{split[2]}seed = {seed}\n"
    fleet = {
        "table": f"name,count,samples_per_s\ndevice,{asked.devices},1000\n",
        "settings": repro.settings(split[1], more),
        "split": f"{split[1]}\n{more}",
        "arguments": [*spread[1], "--seed", str(seed)],
    }
    if way.program:
        fleet["program"] = way.program
        fleet["split"] += "before\n"
    return job, fleet


def curve(cell, way):
    """The mean accuracy of each round; [] if it was not run."""
    split, spread, asked = cell
    name = "/".join([split[0], spread[0], asked.name, way.name])
    runs = [repro.get(documents(*cell, way, seed), name) for seed in SEEDS]
    if not all(runs):
        return []
    return [sum(r.rounds[n].get("accuracy", 0) for r in runs) / len(runs) for n in range(asked.rounds)]


def dip(accuracies):
    """How far the worst round is below the best one before it."""
    return max((max(accuracies[:n]) - a for n, a in enumerate(accuracies) if n), default=0)


def cells():
    for asked in ASKED:
        for spread in SPREADS:
            for split in SPLITS:
                if "mode" not in asked.round or spread is SPREADS[-1]:
                    yield split, spread, asked


def main():
    rows, missed = [], []
    for cell in cells():
        curves = [curve(cell, way) for way in WAYS]
        figures = [f"{100 * c[-1]:.1f} ({100 * max(dip(c), 0):.1f})" if c else "not run" for c in curves]
        by_name = {way.name: c for way, c in zip(WAYS, curves)}
        same, sized = by_name["the same steps"], by_name["target_s"]
        if same and sized and dip(sized) > max(dip(same), 0) + BOUND:
            missed.append(" ".join((cell[0][0], cell[1][0], cell[2].name)))
        rows.append([cell[0][0], cell[1][0], cell[2].name] + figures)
    words = repro.table(["examples", "speeds", "asked", *(way.name for way in WAYS)], rows)
    repro.result("repro-sizing", words, {}, page="simulate")
    for name in missed:
        print(f"missed: {name}")
    return 1 if missed else 0
