#!/usr/bin/env python3
"""An external trainer with PyTorch: the network is this program's own, the weights travel by name.

rivulet runs it as `trainer_torch.py DIRECTORY`. It reads task.json there, and the base model and examples that this names, and leaves
after.safetensors and report.json. Put your own network into make_network(): its state_dict must have the names and shapes of the
job's model (a job may start from any state_dict: `rivulet model put`, then "init"). The one here is built from the recipe's layers.
SIGTERM asks it to finish: it saves what it has and calls that partial work. With `persistent = yes` it is started once, without a
directory, and serves all tasks.
"""
import json
import os
import select
import signal
import struct
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch import nn

DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
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
    out = OrderedDict()
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        array = np.frombuffer(data[begin:end], DTYPES[t["dtype"]]).reshape(t["shape"])
        out[name] = torch.from_numpy(array.copy())
    return out


def write_safetensors(path, tensors):
    header, at, parts = {}, 0, []
    names = {np.dtype(code).str: name for name, code in DTYPES.items()}
    for name, t in tensors.items():
        array = np.ascontiguousarray(t.detach().cpu().numpy())
        header[name] = {
            "dtype": names[array.dtype.str],
            "shape": list(t.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
        parts.append(array.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load_examples(task, prefix=""):
    tensors = read_safetensors(task["examples"])
    if prefix + "x" not in tensors:
        return None
    x = tensors[prefix + "x"]
    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    rule = task["recipe"]["data"].get("normalise")
    if rule:
        shape = [-1] + [1] * (x.dim() - 2)
        x = (x - torch.tensor(rule["mean"]).reshape(shape)) / torch.tensor(rule["std"]).reshape(shape)
    return x, tensors[prefix + "y"].long()


def pair(value, default=None):
    """A recipe's pair [height, width], or one number for both."""
    if value is None:
        return default
    return (value, value) if isinstance(value, int) else tuple(value)


def make_layer(layer, weights, name):
    kind = layer["type"]
    bias = layer.get("bias", True)
    if kind == "linear":
        return nn.Linear(weights[name + ".weight"].shape[1], layer["out"], bias=bias)
    if kind == "conv2d":
        return nn.Conv2d(
            weights[name + ".weight"].shape[1],
            layer["out"],
            pair(layer["kernel"]),
            stride=pair(layer.get("stride"), (1, 1)),
            padding=pair(layer.get("padding"), (0, 0)),
            bias=bias,
        )
    if kind in ("maxpool2d", "avgpool2d"):
        pool = nn.MaxPool2d if kind == "maxpool2d" else nn.AvgPool2d
        kernel = pair(layer["kernel"])
        return pool(kernel, stride=pair(layer.get("stride"), kernel), padding=pair(layer.get("padding"), (0, 0)))
    if kind == "dropout":
        return nn.Dropout(layer.get("rate", 0.5))
    return {"relu": nn.ReLU, "flatten": nn.Flatten}[kind]()


def make_network(task, weights):
    """A chain of the recipe's layers; an unnamed layer is called by its type and place, as the coordinator does."""
    parts, before = OrderedDict(), "input"
    for i, layer in enumerate(task["recipe"]["model"]["layers"], 1):
        name = layer.get("name", "%s%d" % (layer["type"], i))
        if layer["type"] == "add" or layer.get("inputs", [before]) != [before]:
            sys.exit("this trainer knows layers in a row only")
        before = name
        parts[name] = make_layer(layer, weights, name)
    return nn.Sequential(parts)


def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        scores = net(x)
        loss = nn.functional.cross_entropy(scores, y).item()
        accuracy = (scores.argmax(1) == y).float().mean().item()
    return {"examples": len(y), "loss": loss, "accuracy": accuracy}


def check(recipe):
    """What it would not do as the job says, it does not do at all."""
    local = recipe["local"]
    for key in ("prox", "clip_norm", "seconds"):
        if local.get(key):
            sys.exit("this trainer knows no local." + key)
    if local.get("accumulate", 1) > 1 or local["optimizer"].get("name", "sgd") != "sgd":
        sys.exit("this trainer knows SGD only, a step per batch")
    if local.get("random", "stream") != "stream":
        sys.exit("this trainer draws as PyTorch does, not by local.random")
    if recipe["model"]["loss"] != "cross_entropy" or recipe.get("tensors"):
        sys.exit("this trainer knows cross-entropy only, and trains every tensor")


def train(task, net, x, y):
    local = task["recipe"]["local"]
    rule = local["optimizer"]
    optimizer = torch.optim.SGD(
        net.parameters(),
        lr=task["rate"],  # of this round: schedule and warm-up are in it
        momentum=rule.get("momentum", 0),
        nesterov=rule.get("nesterov", False),
        weight_decay=rule.get("weight_decay", 0),
    )
    batch = local.get("batch") or len(y)
    per_epoch = -(-len(y) // batch)
    planned = int(local["steps"]) if "steps" in local else int(local.get("epochs", 1)) * per_epoch
    done, loss_sum, right = 0, 0.0, 0.0
    net.train()
    while done < planned and not (done > 0 and told_to_stop(task)):
        if done % per_epoch == 0:
            order = torch.randperm(len(y))
        part = order[done % per_epoch * batch :][:batch]
        scores = net(x[part])
        loss = nn.functional.cross_entropy(scores, y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
        right += (scores.argmax(1) == y[part]).float().mean().item()
        done += 1
    return {
        "examples": max(1, min(len(y), planned * batch) * done // planned),
        "steps": done,
        "loss": loss_sum / done,
        "accuracy": right / done,
        "partial": done < planned,
        "optimizer": 0,
    }


def work(directory):
    os.chdir(directory)
    with open("task.json") as f:
        task = json.load(f)
    check(task["recipe"])
    torch.manual_seed(task["local_seed"])
    if task.get("threads"):
        torch.set_num_threads(task["threads"])
    weights = read_safetensors(task["base"])
    net = make_network(task, weights)
    net.load_state_dict(weights)
    report = {}
    held = load_examples(task, "validation_")
    if held and task["recipe"].get("evaluate", {}).get("by") == "devices":
        report["evaluate"] = evaluate(net, *held)
    report.update(train(task, net, *load_examples(task)))
    write_safetensors("after.safetensors", net.state_dict())
    with open("report.json", "w") as f:
        json.dump(report, f)
    print("loss %.4f, accuracy %.4f" % (report["loss"], report["accuracy"]), flush=True)


def main():
    global agent
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
