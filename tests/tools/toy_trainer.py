#!/usr/bin/env python3
"""An external trainer without a training, which stays for all its tasks: moves every weight some way towards a fixed target.

    toy_trainer.py honest|hostile
    toy_trainer.py distance MODEL    how far its weights are from there

An honest one goes three tenths of the way, with a little noise of its own; a hostile one does another harm each round. All of it
depends on base, task and nothing else. With the standard library alone.
"""
import array
import hashlib
import json
import math
import os
import random
import struct
import sys


def target(i):
    return (i * 37 % 101) / 101 - 0.5


def read(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = f.read(length)
        data = array.array("f")
        data.frombytes(f.read())
    return header, data


def distance(path):
    """Mean distance of a model's weights from the target; infinite if one of them has gone far away."""
    _, w = read(path)
    far = [abs(x - target(i)) for i, x in enumerate(w)]
    return sum(far) / len(far) if max(far) < 5 else math.inf


def honest(w, rng):
    return array.array("f", (x + 0.3 * (target(i) - x) + rng.uniform(-0.01, 0.01) for i, x in enumerate(w)))


def hostile(w, rng, number):
    if number % 4 == 1:  # far the other way
        return array.array("f", (x - 100 * (target(i) - x) for i, x in enumerate(w)))
    if number % 4 == 2:  # as far as floats go
        return array.array("f", (1e30 if i % 3 else -1e30 for i in range(len(w))))
    if number % 4 == 3:  # noise
        return array.array("f", (x + rng.gauss(0, 1000) for x in w))
    return array.array("f", (x - 0.3 * (target(i) - x) for i, x in enumerate(w)))  # hidden: as long as an honest one


def work(role, where):
    with open(where + "/task.json", encoding="utf-8") as f:
        task = json.load(f)
    header, w = read(where + "/base.safetensors")
    # A seed of the task and of this device, which its task id is.
    rng = random.Random(hashlib.sha256(task["task"].encode()).digest())
    after = honest(w, rng) if role == "honest" else hostile(w, rng, task["round"])
    with open(where + "/after.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + after.tobytes())
    with open(where + "/report.json", "w", encoding="utf-8") as f:
        json.dump({"examples": 10, "steps": 1, "loss": 1}, f)


def main():
    if sys.argv[1] == "distance":
        print(distance(sys.argv[2]))
        return
    with os.fdopen(int(os.environ["RIVULET_TRAINER_OUT"]), "w", 1) as answers, os.fdopen(int(os.environ["RIVULET_TRAINER_IN"])) as tasks:
        print(json.dumps({"ready": True}), file=answers)
        for said in map(json.loads, tasks):
            if "task" in said:
                work(sys.argv[1], said["directory"])
                print(json.dumps({"done": said["task"]}), file=answers)


if __name__ == "__main__":
    main()
