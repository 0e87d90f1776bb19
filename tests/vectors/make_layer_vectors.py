#!/usr/bin/env python3
"""Writes tests/vectors/layers/*.vec with PyTorch (run by hand, with an environment of tests/python/pypi/run): a network for each type of
layer and each form of loss, its description as jobs have it beside the modules that it stands for.

A file is a u32 length and the job's text, a u32 length and the names of the parameters in a state_dict, then arrays, each a
little-endian u32 count and as many f32: x, labels (or targets), parameters, outputs and mean loss of the network in evaluation, in
training, the gradient of the latter loss (0 for running statistics), the parameters after 3 steps of SGD on the same batch with rate
0.05, momentum 0.9 and weight decay 0.01, and the outputs in evaluation then. PyTorch works in f64, so what differs is ours.
tests/unit/test_layer_vectors.c reads them."""
import json
import os
import struct
import sys
import zlib

import torch
from torch import nn
from torch.nn import functional

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers")
BATCH = 3


class Wrap(nn.Module):
    """What keeps one output of several, or is a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def last_only(module, last):
    module.register_forward_hook(lambda _module, _x, out: out[0][:, -1] if last else out[0])
    return module


def multihead(width, heads, causal, bias):
    module = nn.MultiheadAttention(width, heads, bias=bias, batch_first=True)

    def forward(x):
        steps = x.shape[1]
        mask = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1) if causal else None
        return nn.MultiheadAttention.forward(module, x, x, x, need_weights=False, attn_mask=mask)[0]

    module.forward = forward
    if bias:  # they begin as zeros
        nn.init.normal_(module.in_proj_bias)
        nn.init.normal_(module.out_proj.bias)
    return module


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def rotary(width, heads, causal, bias):
    """As transformers' models/llama has it, with the parameters of nn.MultiheadAttention."""
    module = multihead(width, heads, causal, bias)
    head = width // heads

    def forward(x):
        n, steps, _ = x.shape
        slow = 1.0 / 10000 ** (torch.arange(0, head, 2, dtype=torch.float64) / head)
        angles = torch.outer(torch.arange(steps, dtype=torch.float64), slow)
        angles = torch.cat((angles, angles), -1)
        q, k, v = functional.linear(x, module.in_proj_weight, module.in_proj_bias).chunk(3, -1)
        q, k, v = (t.reshape(n, steps, heads, head).transpose(1, 2) for t in (q, k, v))
        q, k = (t * angles.cos() + rotate_half(t) * angles.sin() for t in (q, k))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return module.out_proj(y.transpose(1, 2).reshape(n, steps, width))

    module.forward = forward
    return module


class Positions(nn.Module):
    def __init__(self, steps, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(steps, width))

    def forward(self, x):
        return x + self.weight


class Lora(nn.Linear):
    """As PEFT adds it, without dropout; all of it trains here."""

    def __init__(self, before, out, bias, rank, alpha):
        super().__init__(before, out, bias)
        self.lora_A = nn.Linear(before, rank, bias=False)
        self.lora_B = nn.Linear(rank, out, bias=False)
        self.scaling = alpha / rank

    def forward(self, x):
        return super().forward(x) + self.lora_B(self.lora_A(x)) * self.scaling


def layer(kind, module, **keys):
    return dict(keys, type=kind), module


def linear(before, out, **keys):
    return layer("linear", nn.Linear(before, out, bias=keys.get("bias", True)), out=out, **keys)


def conv2d(before, out, kernel, **keys):
    known = {key: tuple(v) if isinstance(v, list) else v for key, v in keys.items() if key in ("stride", "padding", "groups", "bias")}
    module = nn.Conv2d(before, out, tuple(kernel) if isinstance(kernel, list) else kernel, **known)
    return layer("conv2d", module, out=out, kernel=kernel, **keys)


def conv1d(before, out, kernel, **keys):
    return layer("conv1d", nn.Conv1d(before, out, kernel, **keys), out=out, kernel=kernel, **keys)


def embedding(vocabulary, out):
    return layer("embedding", nn.Embedding(vocabulary, out), vocabulary=vocabulary, out=out)


def recurrent(kind, before, out, layers=1, output="sequence", bias=True):
    module = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](before, out, layers, bias=bias, batch_first=True)
    return layer(kind, last_only(module, output == "last"), out=out, layers=layers, output=output, bias=bias)


def attention(width, heads, causal=False, bias=True, positions="none"):
    make = rotary if positions == "rotary" else multihead
    return layer("attention", make(width, heads, causal, bias), heads=heads, causal=causal, bias=bias, positions=positions)


def tanh():
    return layer("tanh", nn.Tanh())


def flatten():
    return layer("flatten", nn.Flatten())


def pooled():
    return layer("global_avgpool", Wrap(lambda x: x.flatten(2).mean(2)))


def multiply(**keys):
    return layer("multiply", Wrap(lambda a, b: a * (b if a.dim() == b.dim() else b.reshape(b.shape + (1,) * (a.dim() - 2)))), **keys)


def concat(dim=1, **keys):
    return layer("concat", Wrap(lambda *x: torch.cat(x, dim)), dim=dim, **keys)


class Net(nn.Module):
    """Layers that read each other by name."""

    def __init__(self, layers):
        super().__init__()
        self.plan, before = [], "input"
        for i, (keys, module) in enumerate(layers):
            name = keys.get("name", "%s%d" % (keys["type"], i + 1))
            self.add_module(name, module)
            self.plan.append((name, keys.get("inputs", [before])))
            before = name

    def forward(self, x):
        values = {"input": x}
        for name, inputs in self.plan:
            values[name] = getattr(self, name)(*(values[i] for i in inputs))
        return values[name]


def activations():
    each = {"relu6": nn.ReLU6(), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "gelu": nn.GELU(), "silu": nn.SiLU(), "hardswish": nn.Hardswish()}
    for kind, module in each.items():
        yield kind, [5], [linear(5, 19), layer(kind, module), linear(19, 3)], {}
    yield "gelu_tanh", [5], [linear(5, 19), layer("gelu", nn.GELU("tanh"), approximate="tanh"), linear(19, 3)], {}


def norms():
    close = [tanh(), flatten(), linear(4 * 5 * 7, 3)]
    for name, module, keys in (
            ("groupnorm", nn.GroupNorm(2, 4), {"groups": 2}),
            ("groupnorm_plain", nn.GroupNorm(4, 4, 1e-3, affine=False), {"groups": 4, "epsilon": 1e-3, "affine": False}),
            ("batchnorm_planes", nn.BatchNorm2d(4), {}),
            ("batchnorm_plain", nn.BatchNorm2d(4, 1e-3, 0.3, affine=False), {"momentum": 0.3, "epsilon": 1e-3, "affine": False})):
        kind = name.split("_")[0]
        yield name, [2, 5, 7], [conv2d(2, 4, 3, padding=1), layer(kind, module, **keys), *close], {"classes": 3}
    yield "batchnorm_flat", [5], [linear(5, 19), layer("batchnorm", nn.BatchNorm1d(19)), tanh(), linear(19, 3)], {}
    yield "batchnorm_series", [5, 21], [layer("batchnorm", nn.BatchNorm1d(5, momentum=0.5), momentum=0.5), conv1d(5, 4, 3), pooled(), linear(4, 3)], {"classes": 3}
    for name, module in (("layernorm", nn.LayerNorm), ("rmsnorm", lambda n: nn.RMSNorm(n, 1e-6))):
        yield name, [5, 7], [linear(7, 19), layer(name, module(19)), tanh(), flatten(), linear(5 * 19, 3)], {"classes": 3}
        yield name + "_flat", [7], [linear(7, 37), layer(name, module(37)), tanh(), linear(37, 3)], {}


def convolutions():
    yield "conv_depthwise", [3, 7, 19], [
        conv2d(3, 5, 1), conv2d(5, 5, 3, padding=1, groups=5), tanh(), conv2d(5, 10, 3, stride=2, padding=1, groups=5), tanh(), pooled(), linear(10, 3)], {"classes": 3}
    yield "conv_grouped", [4, 7, 21], [
        conv2d(4, 4, 1), conv2d(4, 6, [3, 2], stride=[2, 1], padding=[1, 0], groups=2, bias=False), tanh(), pooled(), linear(6, 3)], {"classes": 3}
    yield "conv1d", [5, 37], [
        conv1d(5, 6, 3, padding=1), tanh(), layer("maxpool2d", nn.MaxPool1d(2), kernel=[1, 2]), conv1d(6, 4, 4, stride=2, bias=False), tanh(),
        conv1d(4, 8, 3, stride=2, padding=2, groups=4), pooled(), linear(8, 3)], {"classes": 3}


def joins():
    yield "squeeze_excite", [2, 5, 7], [
        conv2d(2, 4, 3, padding=1, name="a"), pooled(), linear(4, 2), layer("silu", nn.SiLU()), linear(2, 4), layer("sigmoid", nn.Sigmoid(), name="gate"),
        multiply(inputs=["a", "gate"], name="m"), concat(inputs=["m", "a", "input"]), flatten(), linear(350, 3)], {"classes": 3}
    yield "concat", [5, 7], [
        linear(7, 4, name="a"), linear(7, 3, name="b", inputs=["input"]), concat(dim=2, inputs=["a", "b", "a"], name="c"),
        linear(7, 11, name="d", inputs=["input"]), multiply(inputs=["c", "d"], name="m"), concat(inputs=["m", "c"]), linear(11, 3), flatten(),
        linear(30, 3)], {"classes": 3}


def sequences():
    yield "embedding", 5, [embedding(9, 7), linear(7, 9)], {}
    yield "positions", 5, [embedding(9, 7), layer("positions", Positions(5, 7)), tanh(), linear(7, 9)], {}
    for kind in ("lstm", "gru"):
        yield kind, 5, [embedding(9, 3), recurrent(kind, 3, 9), linear(9, 4)], {}
        yield kind + "_last", 7, [embedding(9, 3), recurrent(kind, 3, 9, output="last"), linear(9, 4)], {}
        yield kind + "_two", 5, [embedding(9, 7), recurrent(kind, 7, 5, layers=2), linear(5, 4)], {}
        yield kind + "_two_last", 5, [embedding(9, 3), recurrent(kind, 3, 7, layers=2, output="last"), linear(7, 4)], {}
        yield kind + "_plain", [5, 7], [linear(7, 3), recurrent(kind, 3, 6, layers=3, bias=False), flatten(), linear(30, 3)], {"classes": 3}
    for causal in (False, True):
        for bias in (False, True):
            name = "attention" + "_causal" * causal + "_plain" * (not bias)
            yield name, 5, [embedding(9, 6), attention(6, 2, causal, bias), linear(6, 4)], {}
        yield "rotary" + "_causal" * causal, 7, [embedding(9, 12), attention(12, 2, causal, causal, "rotary"), linear(12, 4)], {}
    yield "attention_long", 67, [embedding(9, 6), attention(6, 2, True), linear(6, 4)], {}
    yield "rotary_long", 131, [embedding(9, 4), attention(4, 2, False, True, "rotary"), linear(4, 4)], {}
    add = layer("add", Wrap(lambda a, b: a + b), inputs=["attention3", "p"], name="s")
    yield "transformer", 5, [
        embedding(9, 8), layer("positions", Positions(5, 8), name="p"), attention(8, 2, True), add, layer("layernorm", nn.LayerNorm(8)),
        linear(8, 21), layer("gelu", nn.GELU()), linear(21, 8), layer("add", Wrap(lambda a, b: a + b), inputs=["linear8", "s"]), linear(8, 9)], {}


def shared():
    """Each layer reads what others read, too: their gradients are added."""
    def named(pair, **keys):
        return dict(pair[0], inputs=["a"], **keys), pair[1]

    yield "shared_planes", [2, 5, 7], [
        conv2d(2, 4, 3, padding=1, name="a"), named(layer("groupnorm", nn.GroupNorm(2, 4), groups=2), name="b"),
        named(layer("batchnorm", nn.BatchNorm2d(4)), name="c"), named(conv2d(4, 4, 3, padding=1, groups=4), name="d"),
        named(layer("gelu", nn.GELU()), name="e"), named(layer("relu6", nn.ReLU6()), name="f"), named(conv2d(4, 4, 1), name="g"),
        named(layer("hardswish", nn.Hardswish()), name="h"),
        concat(inputs=["h", "b", "c", "d", "e", "f", "g", "a"]), tanh(), pooled(), linear(32, 3)], {"classes": 3}
    yield "shared_rows", [5, 7], [
        linear(7, 6, name="a"), named(recurrent("lstm", 6, 3), name="b"), named(recurrent("gru", 6, 4), name="c"),
        named(attention(6, 2), name="d"), named(layer("layernorm", nn.LayerNorm(6)), name="e"), named(layer("rmsnorm", nn.RMSNorm(6, 1e-6)), name="f"),
        named(linear(6, 5), name="g"), named(layer("positions", Positions(5, 6)), name="h"),
        concat(2, inputs=["h", "b", "c", "d", "e", "f", "g", "a"]), tanh(), linear(42, 2), flatten(), linear(10, 3)], {"classes": 3}
    yield "shared_curves", [7], [
        linear(7, 19, name="a"), named(layer("sigmoid", nn.Sigmoid()), name="b"), named(tanh(), name="c"), named(layer("silu", nn.SiLU()), name="d"),
        named(layer("batchnorm", nn.BatchNorm1d(19)), name="e"), named(layer("layernorm", nn.LayerNorm(19)), name="f"), named(linear(19, 3), name="g"),
        concat(inputs=["b", "c", "d", "e", "f", "g", "a"]), linear(117, 2)], {}


def lora(before, out, rank, alpha, **keys):
    return layer("linear", Lora(before, out, keys.get("bias", True), rank, alpha), out=out, lora={"rank": rank, "alpha": alpha}, **keys)


def tied(of, before, out, name, **keys):
    """Uses the weight of the layer `of`, which is called so."""
    module = nn.Linear(before, out, bias=keys.get("bias", True))
    module.weight = of[1].weight
    return layer("linear", module, out=out, weights=name, **keys)


def adapted():
    yield "lora", [7], [lora(7, 19, 3, 6), tanh(), lora(19, 2, 2, 1, bias=False)], {}
    yield "lora_rows", [5, 7], [lora(7, 19, 4, 8, bias=False), tanh(), lora(19, 2, 1, 0.5), flatten(), linear(10, 3)], {"classes": 3}
    words = embedding(9, 7)
    words[0]["name"] = "e"
    yield "tied_embedding", 5, [words, lora(7, 7, 2, 4), tanh(), tied(words, 7, 9, "e")], {}
    first = linear(6, 6, name="a")
    yield "tied_linear", [6], [first, tanh(), tied(first, 6, 6, "a", bias=False), tanh(), tied(first, 6, 6, "a")], {}


def slopes():
    yield "leaky_relu", [5], [linear(5, 19), layer("leaky_relu", nn.LeakyReLU(0.2), slope=0.2), linear(19, 3)], {}
    yield "leaky_relu_planes", [2, 5, 7], [
        conv2d(2, 4, 3, padding=1), layer("batchnorm", nn.BatchNorm2d(4)), layer("leaky_relu", nn.LeakyReLU()), flatten(), linear(140, 3)], {"classes": 3}
    yield "elu", [5], [linear(5, 19), layer("elu", nn.ELU()), linear(19, 3)], {}
    yield "elu_wide", [5], [linear(5, 19), layer("elu", nn.ELU(2.5), alpha=2.5), linear(19, 3)], {}
    yield "scale", [2, 5, 7], [
        conv2d(2, 4, 3), layer("relu", nn.ReLU()), layer("scale", Wrap(lambda x: x * -2.5), by=-2.5), flatten(), linear(60, 3)], {"classes": 3}
    yield "dropout2d", [2, 5, 7], [conv2d(2, 4, 3), layer("dropout2d", nn.Dropout2d(0), rate=0), layer("elu", nn.ELU()), flatten(), linear(60, 3)], {"classes": 3}


def one_row(by):
    pools = {"mean": lambda x: x.mean(1), "max": lambda x: x.amax(1), "first": lambda x: x[:, 0], "last": lambda x: x[:, -1]}
    return layer("pool_steps", Wrap(pools[by]), by=by)


def steps():
    for by in ("mean", "max", "first", "last"):
        yield "pool_" + by, 7, [embedding(9, 5), recurrent("gru", 5, 6), one_row(by), linear(6, 4)], {}
    turned = [layer("reverse", Wrap(lambda x: x.flip(1)), **keys) for keys in ({"inputs": ["embedding1"]}, {})]
    for kind in ("lstm", "gru"):  # as nn.LSTM and nn.GRU have it with bidirectional=True
        yield kind + "_both_ways", 5, [
            embedding(9, 3), recurrent(kind, 3, 4), turned[0], recurrent(kind, 3, 4), turned[1], concat(2, inputs=["%s2" % kind, "reverse5"]),
            linear(8, 4)], {}
    ways = ("max", "mean", "last", "first")
    named = [(dict(keys, name=by, inputs=["a"]), module) for by, (keys, module) in zip(ways, map(one_row, ways))]
    named_linear = linear(7, 6, name="a")
    yield "pool_shared", [5, 7], [named_linear, *named, concat(1, inputs=list(ways)), linear(24, 3)], {"classes": 3}


def losses():
    weights = [0.5, 1, 2.25]
    for name, keys in (("smoothing", {"label_smoothing": 0.2}), ("ignored", {"ignore_index": -7}), ("class_weights", {"class_weights": weights}),
                       ("label_keys", {"label_smoothing": 0.1, "ignore_index": 1, "class_weights": weights})):
        yield name, [5], [linear(5, 19), tanh(), linear(19, 3)], dict(keys, classes=3)
    yield "ignored_steps", 7, [embedding(9, 5), linear(5, 4)], {"ignore_index": 2}
    yield "bce", [5], [linear(5, 19), tanh(), linear(19, 3)], {"loss": "bce"}
    yield "target_input", [2, 3, 5], [flatten(), linear(30, 7), tanh(), linear(7, 30)], {"loss": "mse", "target": "input"}
    yield "target_input_bce", [17], [linear(17, 7), tanh(), linear(7, 17)], {"loss": "bce", "target": "input"}


def job_of(shape, layers, more):
    keys = ("loss", "target", "label_smoothing", "ignore_index", "class_weights")
    model = {key: more[key] for key in keys if key in more}
    model.setdefault("loss", "cross_entropy" if "classes" in more or isinstance(shape, int) else "mse")
    data = {"name": "d", "shape": shape} if isinstance(shape, list) else {"name": "d", "window": shape}
    if "classes" in more:
        data["classes"] = more["classes"]
    local = {"epochs": 1, "optimizer": {"name": "sgd", "rate": 0.1}}
    return {"model": dict(model, layers=[keys for keys, _ in layers]), "data": data, "local": local}


def example_of(job, net):
    """x and what the loss compares with."""
    model, data = job["model"], job["data"]
    words = model["layers"][0].get("vocabulary")
    if words:
        x = torch.randint(0, words, (BATCH, data["window"]))
    else:
        x = (torch.rand if "bce" in model["loss"] and "target" in model else torch.randn)(BATCH, *data["shape"]).double()
    y = net.eval()(x)
    if "target" in model:
        return x, None
    if model["loss"] == "cross_entropy":
        labels = torch.randint(0, y.shape[-1], y.shape[:-1])
        labels.view(-1)[1] = model.get("ignore_index", labels.view(-1)[1])
        return x, labels
    return x, torch.rand(y.shape) if model["loss"] == "bce" else torch.randn(y.shape)


def loss_of(job, y, x, target):
    model = job["model"]
    if model["loss"] == "cross_entropy":
        weights = torch.tensor(model["class_weights"]).double() if "class_weights" in model else None
        return functional.cross_entropy(y.flatten(0, -2), target.flatten(), weights, ignore_index=model.get("ignore_index", -100),
                                        label_smoothing=model.get("label_smoothing", 0.0))
    target = x if target is None else target
    measure = functional.mse_loss if model["loss"] == "mse" else functional.binary_cross_entropy_with_logits
    return measure(y.flatten(1), target.double().flatten(1))


def put_text(out, text):
    out.write(struct.pack("<I", len(text)) + text.encode())


def put(out, *tensors):
    values = torch.cat([t.detach().reshape(-1).float() for t in tensors]).tolist() if tensors else []
    out.write(struct.pack("<I%df" % len(values), len(values), *values))


def state_of(net):
    """A shared tensor under its first name alone."""
    seen, found = set(), {}
    for name, t in net.state_dict().items():
        if "num_batches" not in name and t.data_ptr() not in seen:
            seen.add(t.data_ptr())
            found[name] = t
    return found


def gradient_of(net):
    gradients = {name: p.grad for name, p in net.named_parameters()}
    return [gradients.get(name, torch.zeros_like(t)) for name, t in state_of(net).items()]


def begin(net):
    """Scales, shifts and running statistics of norms begin as anything but ones and zeros; all numbers as f32 has them."""
    for name, t in state_of(net).items():
        with torch.no_grad():
            if t.dim() == 1 and name.endswith((".weight", ".running_var")):
                t.uniform_(0.5, 1.5)
            elif t.dim() == 1 and "norm" in name:
                t.uniform_(-0.5, 0.5)
            t.copy_(t.float())


def write(name, shape, layers, more):
    job = job_of(shape, layers, more)
    net = Net(layers)
    begin(net)
    net.double()
    x, target = example_of(job, net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    with open(os.path.join(HERE, name + ".vec"), "wb") as out:
        put_text(out, json.dumps(job))
        put_text(out, " ".join(state_of(net)))
        put(out, x)
        put(out, *([] if target is None else [target]))
        put(out, *state_of(net).values())
        y = net.eval()(x)
        put(out, y)
        put(out, loss_of(job, y, x, target))
        net.train()
        for step in range(3):
            optimizer.zero_grad()
            y = net(x)
            loss = loss_of(job, y, x, target)
            loss.backward()
            if step == 0:
                put(out, y)
                put(out, loss)
                put(out, *gradient_of(net))
            optimizer.step()
        put(out, *state_of(net).values())
        put(out, net.eval()(x))


def main():
    os.makedirs(HERE, exist_ok=True)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for group in (activations, norms, convolutions, joins, sequences, shared, adapted, slopes, steps, losses):
        # Modules draw their weights when they are made: a seed for each group, and one for each network's data.
        torch.manual_seed(zlib.crc32(group.__name__.encode()))
        for name, shape, layers, more in group():
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            write(name, shape, layers, more)


main()
