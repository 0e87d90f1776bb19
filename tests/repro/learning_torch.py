"""learning_torch.py pack|run|rows|auc WORD...: what learning.py wants of PyTorch.

pack OUT IMAGES LABELS DEVICES label|iid [CLASS]: a packed set of IDX files (plain) whose groups are devices, so that both sides deal
alike; with CLASS of that class alone, flat. rows OUT IMAGES LABELS CLASS: all test images for `rivulet eval`. auc SPEC OUTPUTS IMAGES
LABELS CLASS: the area under the ROC curve of these outputs and of SPEC's last model.
run SPEC: a job by hand: the job's layers as modules of torch.nn, plain FedAvg over what each device trained. SPEC is JSON: {"job", "first":
the model to begin with, "last": where the last one goes, "data": {"train", "test"}}; prints {"round", "loss", "accuracy"} a line.
"""
import json
import os
import struct
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from rivulet import data, safetensors  # noqa: E402


# --- data


def idx(path):
    with open(path, "rb") as f:
        (magic,) = struct.unpack(">I", f.read(4))
        shape = struct.unpack(f">{magic & 255}I", f.read(4 * (magic & 255)))
        return numpy.frombuffer(f.read(), numpy.uint8).reshape(shape)


def pack(out, images, labels, devices, split, only=None):
    """Devices' shares are of one size but for one; `label` deals two pieces of the examples by label to each (McMahan et al. 2017)."""
    x, y = idx(images), idx(labels).astype(numpy.int64)
    draw = numpy.random.default_rng(1)
    if only is not None:
        x, y = x.reshape(len(x), -1)[y == int(only)], y[y == int(only)]
    order = draw.permutation(len(x))
    count = int(devices)
    if split == "label":
        pieces = numpy.array_split(order[numpy.argsort(y[order], kind="stable")], 2 * count)
        dealt = draw.permutation(2 * count)
        shares = [numpy.concatenate([pieces[dealt[2 * i]], pieces[dealt[2 * i + 1]]]) for i in range(count)]
    else:
        shares = numpy.array_split(order, count)
    groups = numpy.zeros(len(x), numpy.int64)
    for i, share in enumerate(shares):
        groups[share] = i
    data.save_packed(out, x, y, [str(digit) for digit in range(10)], groups)
    numpy.savez(out + ".npz", x=x, y=y, groups=groups)


def text(path, characters, window, devices):
    """[(x, y)] of each device: stretches of the text, windows one after the other."""
    with open(characters, encoding="ascii") as f:
        numbers = {{"\\n": "\n"}.get(line[:-1], line[:-1]): i for i, line in enumerate(f)}
    with open(path, encoding="ascii") as f:
        tokens = torch.tensor([numbers[c] for c in f.read()])
    out = []
    for i in range(devices):
        t = tokens[len(tokens) * i // devices : len(tokens) * (i + 1) // devices]
        n = (len(t) - 1) // window
        out.append((t[: n * window].view(n, window), t[1 : n * window + 1].view(n, window)))
    return out


def pictures(x, y, shape):
    return torch.from_numpy(x.astype(numpy.float32) / 255).view(-1, *shape), torch.from_numpy(y.astype(numpy.int64))


def load(spec, job):
    """The devices' examples, and those to measure with."""
    about, where = job["data"], spec["data"]
    if "window" in about:
        train = text(where["train"], where["characters"], about["window"], spec["devices"])
        return train, text(where["test"], where["characters"], about["window"], 1)[0]
    packed = numpy.load(where["train"] + ".npz")
    train = [packed["groups"] == i for i in range(spec["devices"])]
    train = [pictures(packed["x"][mine], packed["y"][mine], about["shape"]) for mine in train]
    x, y = idx(where["test"]), idx(where["labels"])
    keep = y >= 0 if about.get("classes") else y == where["only"]
    return train, pictures(x[keep], y[keep], about["shape"])


# --- a job's layers as torch.nn has them: the tensors' names are the same


class Positions(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))

    def forward(self, x):
        return x + self.weight


class Attention(nn.MultiheadAttention):
    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return super().forward(x, x, x, need_weights=False, attn_mask=mask, is_causal=True)[0]


class Recurrent(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


def module(layer, shape):
    """shape: of one example of its input."""
    kind, out = layer["type"], layer.get("out")
    if kind == "conv2d":
        return nn.Conv2d(shape[0], out, layer["kernel"], layer.get("stride", 1), layer.get("padding", 0))
    if kind == "batchnorm":
        return nn.BatchNorm2d(shape[0]) if len(shape) == 3 else nn.BatchNorm1d(shape[0])
    return {
        "linear": lambda: nn.Linear(shape[-1], out, layer.get("bias", True)),
        "embedding": lambda: nn.Embedding(layer["vocabulary"], out),
        "lstm": lambda: Recurrent(shape[-1], out, layer.get("layers", 1), batch_first=True),
        "attention": lambda: Attention(shape[-1], layer["heads"], batch_first=True),
        "positions": lambda: Positions(shape),
        "groupnorm": lambda: nn.GroupNorm(layer["groups"], shape[0]),
        "layernorm": lambda: nn.LayerNorm(shape[-1]),
        "rmsnorm": lambda: nn.RMSNorm(shape[-1], eps=1e-6),
        "maxpool2d": lambda: nn.MaxPool2d(layer["kernel"]),
        "relu": nn.ReLU,
        "gelu": lambda: nn.GELU(approximate=layer.get("approximate", "none")),
        "flatten": nn.Flatten,
        "add": nn.Identity,
    }[kind]()


class Network(nn.Module):
    def __init__(self, layers, example):
        super().__init__()
        self.layers, self.parts = layers, nn.ModuleList()
        with torch.no_grad():
            self.forward(example, lambda layer, x: self.parts.append(module(layer, list(x.shape[1:]))))

    def forward(self, x, before=None):
        outputs, last = {"input": x}, "input"
        for i, layer in enumerate(self.layers):
            inputs = [outputs[name] for name in layer.get("inputs", [last])]
            if before:
                before(layer, inputs[0])
            last = layer.get("name", f"{layer['type']}{i + 1}")
            outputs[last] = sum(inputs[1:], self.parts[i](inputs[0]))
        return outputs[last]

    def named(self):
        """The tensors that travel, by the job's names."""
        for i, (layer, part) in enumerate(zip(self.layers, self.parts)):
            for name, tensor in part.state_dict(keep_vars=True).items():
                if tensor.is_floating_point():
                    yield f"{layer.get('name', layer['type'] + str(i + 1))}.{name}", tensor.detach()


# --- a job


def loss_of(job, net, x, y):
    out = net(x)
    if job["model"]["loss"] == "mse":
        return functional.mse_loss(out, x), 0
    out, y = out.reshape(-1, out.shape[-1]), y.flatten()
    return functional.cross_entropy(out, y), (out.argmax(1) == y).float().mean().item()


def train(job, net, x, y):
    """A device's work of a round."""
    local = job["local"]
    made = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[local["optimizer"]["name"]]
    optimizer = made(net.parameters(), local["optimizer"]["rate"])
    batches = [b for _ in range(local.get("epochs", 1)) for b in torch.randperm(len(x)).split(local["batch"])]
    net.train()
    for batch in batches[: local.get("steps")]:
        optimizer.zero_grad()
        loss_of(job, net, x[batch], y[batch])[0].backward()
        optimizer.step()
    return sum(map(len, batches[: local.get("steps")]))


def measure(job, net, x, y):
    net.eval()
    figures = [(*loss_of(job, net, x[i : i + 250], y[i : i + 250]), len(x[i : i + 250])) for i in range(0, len(x), 250)]
    total = sum(n for _, _, n in figures)
    return [sum(figure[k] * figure[2] for figure in figures) / total for k in (0, 1)]


def run(path):
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    job = spec["job"]
    devices, test = load(spec, job)
    torch.manual_seed(1 + job["seed"])
    net = Network(job["model"]["layers"], devices[0][0][:2])
    first = safetensors.load(spec["first"])
    model = {name: torch.tensor(first[name]) for name, _ in net.named()}
    assert len(first) == len(model)
    every = job["evaluate"].get("every", 1)
    for number in range(1, job["stop"]["rounds"] + 1):
        sums, weight = {name: torch.zeros_like(value) for name, value in model.items()}, 0
        for i in torch.randperm(len(devices))[: job["round"]["goal"]]:
            for name, value in net.named():
                value.copy_(model[name])
            examples = train(job, net, *devices[i])
            weight += examples
            for name, value in net.named():
                sums[name] += examples * value
        model = {name: value / weight for name, value in sums.items()}
        if number % every == 0 or number == job["stop"]["rounds"]:
            for name, value in net.named():
                value.copy_(model[name])
            with torch.no_grad():
                loss, accuracy = measure(job, net, *test)
            print(json.dumps({"round": number, "loss": float(loss), "accuracy": accuracy}), flush=True)
    safetensors.save(spec["last"], model)


# --- anomalies


def flat(images, labels, normal):
    """All test images as rows, and which are no anomalies."""
    return pictures(idx(images), idx(labels), [784])[0], torch.from_numpy(idx(labels) == int(normal))


def rows(out, *where):
    safetensors.save(out, {"rows": flat(*where)[0]})


def area(x, outputs, normal):
    """Under the ROC curve, by the mean squared error: the share of pairs in the right order (Hanley and McNeil 1982)."""
    error = (outputs - x).square().mean(1)
    ordered = error[normal].sort().values
    below = torch.searchsorted(ordered, error[~normal]).double()
    upto = torch.searchsorted(ordered, error[~normal], right=True).double()
    return ((below + upto) / 2).mean().item() / len(ordered)


def auc(path, outputs, *where):
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    x, normal = flat(*where)
    net = Network(spec["job"]["model"]["layers"], x[:2]).eval()
    last = safetensors.load(spec["last"])
    for name, value in net.named():
        value.copy_(torch.tensor(last[name]))
    with torch.no_grad():
        theirs = net(x)
    print(json.dumps([area(x, torch.tensor(safetensors.load(outputs)["output"]), normal), area(x, theirs, normal)]))


if __name__ == "__main__":
    {"pack": pack, "run": run, "rows": rows, "auc": auc}[sys.argv[1]](*sys.argv[2:])
