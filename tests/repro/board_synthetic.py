"""FedProx's synthetic data (Li et al. 2020): 30 devices, 10 drawn a round, 20 epochs of batches of 10, rate 0.01, a logistic regression. A
share of the ten are stragglers that have time for 1 to 19 epochs: FedAvg drops them, `partial` takes what they did, FedProx does that
with a proximal term of 1. The paper prints curves and no table, so a row is judged by what it says of them: with stragglers, taking
partial work is not worse than dropping it by more than a point, at the end and in the mean over the rounds.

Each round is a run of its own from the last one's model, since the ten and their epochs are drawn here, the same for all three.
"""
import hashlib
import json
import os
import random
import subprocess

import learning
import repro

ROUNDS, DEVICES, DRAWN, EPOCHS = 200, 30, 10, 20
SETS = {"iid": ("iid", "iid"), "0-0": ("0", "0"), "0.5-0.5": ("0.5", "0.5"), "1-1": ("1", "1")}
WAYS = {"dropped": (True, 0), "partial": (False, 0), "prox": (False, 1)}
SHARES = (0, 50, 90)
IN_TIME = ("1-1",)
JOB = {
    "model": {"layers": [{"type": "linear", "name": "fc", "out": 10, "init": "zero"}], "loss": "cross_entropy"},
    "data": {"name": "train", "shape": [60], "classes": 10},
    "evaluate": {"by": "coordinator", "data": "test"},
    "stop": {"rounds": 1},
}
SETTINGS = """[data train]
format = packed
path = {folder}/train.packed
partition = column
[data test]
format = packed
path = {folder}/test.packed
[trainer builtin]
exec = {here}/tests/repro/straggler {here}/{build}/rivulet
read = {here}
env = EPOCHS={epochs}
"""


def draw(number, share):
    """(those that do all, {device: epochs} of stragglers) of a round; the same for each way."""
    source = random.Random(f"{number} {share}")
    chosen = source.sample(range(1, DEVICES + 1), DRAWN)
    late = chosen[: round(DRAWN * share / 100)]
    return sorted(set(chosen) - set(late)), {device: source.randint(1, EPOCHS - 1) for device in late}


def identity(device):
    return hashlib.sha256(f"simulated device {device}".encode()).hexdigest()


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def one_round(path, folder, number, way, share):
    """Its accuracy and its mean training loss; the model is left at path.model."""
    drops, prox = WAYS[way]
    whole, late = draw(number, share)
    devices = whole if drops else whole + list(late)
    local = {"epochs": EPOCHS, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.01}, **({"prox": prox} if prox else {})}
    job = {"name": "boards-synthetic", "seed": number, **JOB, "local": local}
    job |= {"round": {"goal": len(devices)}, "select": {"devices": [identity(d) for d in devices]}}
    write(path + ".job.json", json.dumps(job))
    here = os.getcwd()
    epochs = ",".join(f"{device}:{n}" for device, n in sorted(late.items()))
    write(path + ".conf", SETTINGS.format(folder=folder, here=here, build=repro.BUILD, epochs=epochs))
    command = [f"{repro.BUILD}/rivulet", "simulate", path + ".job.json", "--fleet", f"{folder}/fleet.csv", "--config", path + ".conf"]
    command += ["--test", "test", "--jobs", repro.THREADS, "--out", path + ".next"]
    command += ["--init", path + ".model"] if number > 1 else []
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="ascii").stdout.splitlines()
    os.rename(path + ".next", path + ".model")
    done = json.loads(lines[0])
    return done["accuracy"], done["train_loss"]


def curve(data, way, share):
    """[(accuracy, training loss)] by round; kept as other runs are."""
    folder = f"{repro.KEPT}/synthetic-{data}"
    path = f"{folder}/{way}-{share}"
    if not os.path.exists(path + ".jsonl"):
        if not os.path.exists(f"{folder}/fleet.csv"):
            os.makedirs(folder, exist_ok=True)
            words = ["tests/repro/board_data.py", "synthetic", folder, *SETS[data], "1"]
            subprocess.run([learning.interpreter(), *words], check=True)
            rows = [f"device{d},{identity(d)}" for d in range(1, DEVICES + 1)]
            write(f"{folder}/fleet.csv", "name,id\n" + "\n".join(rows) + "\n")
        found = [one_round(path, folder, number, way, share) for number in range(1, ROUNDS + 1)]
        write(path + ".jsonl", json.dumps(found))
    with open(path + ".jsonl", encoding="ascii") as f:
        return json.load(f)


def cells(data, share, curves):
    row = [f"synthetic-{data}, {share} % stragglers"]
    for found in curves.values():
        accuracies = [accuracy for accuracy, _ in found]
        row.append(" ".join(f"{accuracies[at - 1]:.3f}" for at in (10, 50, 100, ROUNDS)) + f" ({sum(accuracies) / ROUNDS:.3f})")
    return row


def is_good(share, curves):
    mean = {way: sum(a for a, _ in found) / ROUNDS for way, found in curves.items()}
    last = {way: sum(a for a, _ in found[-10:]) / 10 for way, found in curves.items()}
    return share == 0 or all(max(of["partial"], of["prox"]) > of["dropped"] - 0.01 for of in (mean, last))


def main():
    """(the table, rows that missed); nothing if none is wanted."""
    rows, missed = [], []
    for data in SETS:
        for share in SHARES:
            name = f"synthetic-{data}-{share}"
            if not repro.wanted(name, data in IN_TIME):
                continue
            curves = {way: curve(data, way, share) for way in WAYS if share or way != "partial"}
            curves.setdefault("partial", curves["dropped"])
            good = is_good(share, curves)
            missed += [] if good else [name]
            rows.append(cells(data, share, {way: curves[way] for way in WAYS}) + ["" if good else "missed"])
    head = ["accuracy after 10, 50, 100, 200 rounds (mean of all)", "dropped", "partial work", "partial work, prox 1", ""]
    return repro.table(head, rows) if rows else "", missed
