#!/usr/bin/env python3
"""An external trainer with numpy alone: softmax regression or a multi-layer perceptron.

rivulet runs it as `trainer_numpy.py DIRECTORY`. It reads task.json there, and the base model and examples that this names, and leaves
after.safetensors and report.json. It trains rows of flatten, linear and relu layers with softmax cross-entropy at the end, by plain
SGD. SIGTERM asks it to finish: it saves what it has and calls that partial work. `trainer_numpy.py --offer` says what it can do, so
that it may stand in for the built-in trainer as well ([trainer builtin]). With `persistent = yes` it is started once, without a
directory, and serves all tasks.
"""
import json
import os
import select
import signal
import struct
import sys

import numpy as np

DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
LAYERS = ["flatten", "linear", "relu"]
stopping = False
agent = None


def on_term(signum, frame):
    global stopping
    stopping = True


class Agent:
    """Of a trainer that stays ([trainer NAME] persistent = yes): lines of JSON over two descriptors."""

    def __init__(self):
        self.words = int(os.environ["RIVULET_TRAINER_IN"])
        self.answers = int(os.environ["RIVULET_TRAINER_OUT"])
        self.held = b""

    def say(self, **words):
        os.write(self.answers, json.dumps(words).encode() + b"\n")

    def hear(self, wait=True):
        """The next line; {} if there is none yet, None if there will be no more."""
        while b"\n" not in self.held:
            if not wait and not select.select([self.words], [], [], 0)[0]:
                return {}
            piece = os.read(self.words, 65536)
            if not piece:
                return None
            self.held += piece
        line, _, self.held = self.held.partition(b"\n")
        return json.loads(line)


def told_to_stop(task):
    """By SIGTERM, or by the agent if this trainer stays."""
    said = agent.hear(wait=False) if agent else {}
    return stopping or said is None or said.get("finish") == task["task"]


def read_safetensors(path):
    """Tensors by name, in the order of the file."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    out = {}
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        out[name] = np.frombuffer(data[begin:end], DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def write_safetensors(path, tensors):
    header, at = {}, 0
    names = {np.dtype(code).str: name for name, code in DTYPES.items()}
    for name, t in tensors.items():
        header[name] = {"dtype": names[t.dtype.str], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(np.ascontiguousarray(t).tobytes())


def load_examples(task, prefix=""):
    """x [n, features] as the recipe normalises it, y [n]; None if the file has no such part."""
    tensors = read_safetensors(task["examples"])
    if prefix + "x" not in tensors:
        return None
    x = tensors[prefix + "x"]
    x = x.astype(np.float32) / 255 if x.dtype == np.uint8 else x.astype(np.float32)
    rule = task["recipe"]["data"].get("normalise")
    if rule:
        shape = [-1] + [1] * (x.ndim - 2)
        x = (x - np.reshape(rule["mean"], shape)) / np.reshape(rule["std"], shape)
    return x.reshape(len(x), -1).astype(np.float32), tensors[prefix + "y"]


def chain(recipe, tensors):
    """The recipe's layers in a row: (weight, bias or None) of a linear one, None for a ReLU."""
    out, before = [], "input"
    for i, layer in enumerate(recipe["model"]["layers"], 1):
        if layer["type"] not in LAYERS or layer.get("inputs", [before]) != [before]:
            sys.exit("this trainer knows rows of %s only" % ", ".join(LAYERS))
        before = layer.get("name", "%s%d" % (layer["type"], i))
        if layer["type"] == "linear":
            out.append((tensors[before + ".weight"], tensors.get(before + ".bias")))
        elif layer["type"] == "relu":
            out.append(None)
    return out


def forward(layers, x):
    """The input of every layer, and the scores."""
    inputs = []
    for layer in layers:
        inputs.append(x)
        if layer is None:
            x = np.maximum(x, 0)
        else:
            weight, bias = layer
            x = x @ weight.T if bias is None else x @ weight.T + bias
    return inputs, x


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def measure(layers, x, y):
    p = softmax(forward(layers, x)[1])
    loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
    return float(loss), float((p.argmax(axis=1) == y).mean())


def step(layers, x, y, rate):
    """One step of SGD in place; loss and accuracy before it."""
    inputs, scores = forward(layers, x)
    p = softmax(scores)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
    accuracy = (p.argmax(axis=1) == y).mean()
    p[np.arange(len(y)), y] -= 1
    grad = p / len(y)
    for layer, x in zip(reversed(layers), reversed(inputs)):
        if layer is None:
            grad = grad * (x > 0)
            continue
        weight, bias = layer
        before = grad @ weight
        weight -= rate * (grad.T @ x)
        if bias is not None:
            bias -= rate * grad.sum(axis=0)
        grad = before
    return float(loss), float(accuracy)


def check(recipe):
    """What it would not do as the job says, it does not do at all."""
    local = recipe["local"]
    for key in ("prox", "clip_norm", "seconds"):
        if local.get(key):
            sys.exit("this trainer knows no local." + key)
    for key in ("momentum", "weight_decay"):
        if local["optimizer"].get(key):
            sys.exit("this trainer knows no local.optimizer." + key)
    if local.get("accumulate", 1) > 1 or local["optimizer"].get("name", "sgd") != "sgd":
        sys.exit("this trainer knows plain SGD only")
    if recipe["model"]["loss"] != "cross_entropy" or recipe.get("tensors"):
        sys.exit("this trainer knows cross-entropy only, and trains every tensor")


def train(task, layers, x, y):
    local = task["recipe"]["local"]
    batch = local.get("batch") or len(y)
    rate = task["rate"]  # of this round: schedule and warm-up are in it
    rng = np.random.default_rng(task["local_seed"])
    per_epoch = -(-len(y) // batch)
    planned = int(local["steps"]) if "steps" in local else int(local.get("epochs", 1)) * per_epoch
    done, loss, accuracy = 0, 0.0, 0.0
    while done < planned and not (done > 0 and told_to_stop(task)):
        if done % per_epoch == 0:
            order = rng.permutation(len(y))
        part = order[done % per_epoch * batch :][:batch]
        figures = step(layers, x[part], y[part], rate)
        loss += figures[0]
        accuracy += figures[1]
        done += 1
    return {
        "examples": max(1, min(len(y), planned * batch) * done // planned),
        "steps": done,
        "loss": loss / done,
        "accuracy": accuracy / done,
        "partial": done < planned,
        "optimizer": 0,
    }


def work(directory):
    os.chdir(directory)
    with open("task.json") as f:
        task = json.load(f)
    tensors = {name: np.array(t) for name, t in read_safetensors(task["base"]).items()}
    check(task["recipe"])
    layers = chain(task["recipe"], tensors)
    x, y = load_examples(task)
    report = {}
    held = load_examples(task, "validation_")
    if held and task["recipe"].get("evaluate", {}).get("by") == "devices":
        loss, accuracy = measure(layers, *held)
        report["evaluate"] = {"examples": len(held[1]), "loss": loss, "accuracy": accuracy}
    report.update(train(task, layers, x, y))
    write_safetensors("after.safetensors", tensors)
    with open("report.json", "w") as f:
        json.dump(report, f)
    print("loss %.4f, accuracy %.4f" % (report["loss"], report["accuracy"]), flush=True)


def main():
    global agent
    if sys.argv[1:] == ["--offer"]:
        json.dump({"kinds": ["train"], "layers": LAYERS, "threads": len(os.sched_getaffinity(0))}, sys.stdout)
        return
    signal.signal(signal.SIGTERM, on_term)
    if "RIVULET_TRAINER_IN" not in os.environ:
        work(os.environ.get("RIVULET_TASK") or sys.argv[1])
        return
    agent = Agent()
    agent.say(ready=True)
    said = agent.hear()
    while said is not None:
        if "task" in said:
            work(said["directory"])
            agent.say(done=said["task"])
        said = None if stopping else agent.hear()


if __name__ == "__main__":
    main()
