"""Random small networks and data sets, trained by the built-in trainer and by PyTorch: batches whole and in pieces, in groups
of pieces, with labels that are ignored or weighed, last and tiny batches, behind every norm, with every loss and optimizer.
Weights, and what batch norms count, agree to 1e-5, and the number of steps does, too.

CASES=n and SEED=n say how many and which; FULL=1: 5,000. PyTorch's side is in double precision. A case that is ill-conditioned
in single precision is drawn anew: PyTorch's own is further than 2e-6 from that, or a norm meets values that lie close together
far from 0."""

import collections
import copy
import json
import os
import random
import subprocess
import tempfile
import time
import unittest

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from networks import RIVULET
from rivulet import safetensors

CASES = int(os.environ.get("CASES") or (5000 if os.environ.get("FULL") else 200))
SEED = int(os.environ.get("SEED", "1"))
TOLERANCE, CONDITION = 1e-5, 2e-6
FAR = 32  # most that half and a norm's mean are, in deviations
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
TOKENS = "abcdefg"
MASK = (1 << 64) - 1

CONF = """[device]
threads = 1
[data d]
%s
"""


class Prng:
    """base/core/prng.h, for the order of examples."""

    def __init__(self, seed, stream):
        state, both = self.split(seed)
        state, seed = self.split(both ^ stream)
        self.s = []
        for _ in range(4):
            seed, word = self.split(seed)
            self.s.append(word)

    @staticmethod
    def split(state):
        state = z = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return state, z ^ (z >> 31)

    @staticmethod
    def turn(x, k):
        return ((x << k) | (x >> (64 - k))) & MASK

    def next(self):
        s = self.s
        result = (self.turn((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.turn(s[3], 45)
        return result

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            while True:
                v = self.next()
                if v >= (1 << 64) % i:
                    break
            j = v % i
            items[i - 1], items[j] = items[j], items[i - 1]


def training_seed(seed):
    """Of a device of zeros in round 1 (wire/job/training.c)."""
    r = Prng(seed, 1)
    for _ in range(4):
        r = Prng(r.next(), 0)
    return r.next()


class Steps(nn.Module):
    """LSTM and GRU without their state."""

    def __init__(self, kind, width, out, last):
        super().__init__()
        self.add_module("net", kind(width, out, batch_first=True))
        self.last = last

    def forward(self, x):
        y = self.net(x)[0]
        return y[:, -1] if self.last else y


class Drawn:
    """One case: the job, the data, and PyTorch's network."""

    def __init__(self, r):
        self.r = r
        self.layers, self.modules = [], []
        self.batch_norms = []  # (module, values of a channel in an example)
        self.draw_network()
        self.draw_loss()
        self.draw_work()
        self.draw_data()
        self.net = nn.Sequential(*self.modules).double()
        self.settle()

    # The network. A shape is that of one example; two dimensions are steps and width, or channels and length.

    def add(self, layer, module):
        layer["name"] = "l%d" % len(self.layers)
        self.layers.append(layer)
        self.modules.append(module)

    def norm(self, shape):
        r, c = self.r, shape[0]
        area = int(numpy.prod(shape[1:]))
        kinds = ["batch", "batch", "group"]
        if len(shape) > 1:
            kinds.append("instance")
        if len(shape) < 3:
            kinds += ["layer", "rms"]
        kind, affine = r.choice(kinds), r.random() < 0.8
        width = shape[-1]
        if kind == "batch":
            momentum = r.choice([0.1, 0.1, 0.3, 1.0])
            make = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
            module = make(c, momentum=momentum, affine=affine)
            self.batch_norms.append((module, area))
            self.add({"type": "batchnorm", "momentum": momentum, "affine": affine}, module)
        elif kind in ("group", "instance"):
            least = 1 if area > 1 else 2
            groups = c
            if kind == "group" or area == 1:
                groups = r.choice([g for g in range(1, c + 1) if c % g == 0 and c // g >= least])
            module = nn.GroupNorm(groups, c, affine=affine)
            self.add({"type": "groupnorm", "groups": groups, "affine": affine}, module)
        elif kind == "layer":
            self.add({"type": "layernorm", "affine": affine}, nn.LayerNorm(width, elementwise_affine=affine))
        else:
            self.add({"type": "rmsnorm", "affine": affine}, nn.RMSNorm(width, eps=1e-6, elementwise_affine=affine))

    def activate(self):
        kinds = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "silu": nn.SiLU}
        kind = self.r.choice(list(kinds))
        self.add({"type": kind}, kinds[kind]())

    def linear(self, width, out):
        bias = self.r.random() < 0.8
        self.add({"type": "linear", "out": out, "bias": bias}, nn.Linear(width, out, bias=bias))

    def conv(self, shape):
        r = self.r
        c, out = shape[0], r.choice([2, 4])
        groups = 2 if c % 2 == 0 and r.random() < 0.3 else 1
        stride = r.choice([1, 1, 2])
        flat = len(shape) == 2
        module = (nn.Conv1d if flat else nn.Conv2d)(c, out, 3, stride, 1, groups=groups)
        layer = {"type": "conv1d" if flat else "conv2d", "out": out, "kernel": 3, "stride": stride}
        self.add({**layer, "padding": 1, "groups": groups}, module)
        return [out] + [(n - 1) // stride + 1 for n in shape[1:]]

    def draw_network(self):
        r = self.r
        self.form = r.choice(["flat", "flat", "picture", "picture", "signal", "text", "text"])
        self.outputs = r.choice([2, 3, 5])
        self.text_last = False
        if self.form == "text":
            self.draw_text()
            return
        self.shape = {
            "flat": [r.choice([3, 4, 6])],
            "picture": [r.choice([1, 2]), r.choice([3, 4]), 4],
            "signal": [2, r.choice([4, 6])],
        }[self.form]
        shape = list(self.shape)
        if self.form != "flat" and r.random() < 0.2:
            self.norm(shape)
        for _ in range(r.choice([1, 2])):
            if len(shape) > 1:
                shape = self.conv(shape)
            else:
                out = r.choice([4, 6])
                self.linear(shape[0], out)
                shape = [out]
            if r.random() < 0.8:
                self.norm(shape)
            self.activate()
        if len(shape) > 1:
            if r.random() < 0.5:
                self.add({"type": "flatten"}, nn.Flatten())
                shape = [int(numpy.prod(shape))]
            else:
                pool = nn.AdaptiveAvgPool2d(1) if len(shape) == 3 else nn.AdaptiveAvgPool1d(1)
                self.add({"type": "global_avgpool"}, nn.Sequential(pool, nn.Flatten()))
                shape = shape[:1]
                if r.random() < 0.5:
                    self.norm(shape)
        self.linear(shape[0], self.outputs)

    def draw_text(self):
        r = self.r
        self.window, width, self.outputs = r.choice([2, 3, 5]), r.choice([4, 6]), len(TOKENS)
        self.text_last = r.random() < 0.3
        self.add({"type": "embedding", "vocabulary": len(TOKENS), "out": width}, nn.Embedding(len(TOKENS), width))
        if r.random() < 0.5:
            self.norm([self.window, width])
        kind, module = r.choice([("lstm", nn.LSTM), ("gru", nn.GRU)])
        output = "last" if self.text_last else "sequence"
        self.add({"type": kind, "out": 4, "output": output}, Steps(module, width, 4, self.text_last))
        if r.random() < 0.5:
            self.norm([4] if self.text_last else [self.window, 4])
        self.linear(4, len(TOKENS))

    # What is learnt, and how.

    def draw_loss(self):
        r = self.r
        self.loss = "cross_entropy" if self.form == "text" else r.choice(["cross_entropy"] * 4 + ["mse", "bce"])
        self.model = {"layers": self.layers, "loss": self.loss}
        self.ignored, self.weights, self.smoothing = None, None, 0.0
        if self.loss != "cross_entropy":
            return
        if r.random() < 0.5:
            self.model["ignore_index"] = self.ignored = r.randrange(self.outputs)
        if r.random() < 0.4:
            self.weights = [r.choice([0, 0.2, 1, 1, 3, 7.5]) for _ in range(self.outputs)]
            self.weights[r.randrange(self.outputs)] = 1.5
            self.model["class_weights"] = self.weights
        if r.random() < 0.2:
            self.model["label_smoothing"] = self.smoothing = 0.1

    def draw_optimizer(self):
        r = self.r
        o = {"name": r.choice(["sgd", "sgd", "adam", "adamw"]), "rate": r.choice([0.01, 0.05])}
        if r.random() < 0.4:
            o["weight_decay"] = 0.01
        if o["name"] != "sgd":
            o["epsilon"] = r.choice([0.01, 0.1])
        elif r.random() < 0.5:
            o["momentum"] = 0.9
            if r.random() < 0.4:
                o["nesterov"] = True
        return o

    def draw_work(self):
        r = self.r
        self.batch = r.choice([0, 1, 2, 3, 4, 5, 8, 10])
        self.accumulate = r.choice([1, 1, 1, 2, 3]) if self.batch else 1
        self.micro = r.choice([0, 0, 1, 2, 3, 4, 5])
        if self.single() and self.piece() == 1:
            if self.batch == 1:
                self.batch = 2
            self.micro = 0
        self.local = {"batch": self.batch, "accumulate": self.accumulate, "optimizer": self.draw_optimizer()}
        self.parallel = {"micro_batch": self.micro} if self.micro else {}
        if self.batch and self.micro:
            size = min(self.micro, self.batch)
            pieces = -(-self.batch * self.accumulate // size)
            self.parallel["groups"] = r.choice([g for g in (1, 2, 3, 4, 5) if pieces % g == 0])
        if r.random() < 0.2:
            self.local["clip_norm"] = r.choice([0.05, 1.0])
        if r.random() < 0.2:
            self.local["prox"] = 0.5
        if r.random() < 0.3:
            self.local["recompute"] = "blocks"
        if r.random() < 0.5:
            self.local["arithmetic"] = r.choice(["exact", "fast"])
        self.by_epochs = r.random() < 0.5
        self.amount = r.choice([1, 1, 2]) if self.by_epochs else r.choice([1, 1, 2, 4])
        self.local["epochs" if self.by_epochs else "steps"] = self.amount
        self.frozen = self.layers[0]["name"] if r.random() < 0.15 and self.modules[0].state_dict() else None

    def kinds(self):
        """What it has, for the count of cases."""
        norms = {layer["type"] for layer in self.layers if "norm" in layer["type"]}
        has = {
            "pieces": self.piece() != self.batch or self.accumulate > 1,
            "groups": self.parallel.get("groups", 1) > 1,
            "ignored": self.ignored is not None,
            "weighed": self.weights,
            "single": self.single(),
        }
        return [self.form, self.loss, self.local["optimizer"]["name"], *norms] + [k for k in has if has[k]]

    def single(self):
        return any(area == 1 for _, area in self.batch_norms)

    def piece(self):
        """Of a whole piece; 0: all examples."""
        return self.micro if self.micro and (self.batch == 0 or self.micro < self.batch) else self.batch

    def draw_data(self):
        r = self.r
        whole = (self.batch or 4) * self.accumulate
        size = self.piece() or whole
        ends = [size, size + 1, max(1, whole - 1), whole, whole + 1, whole + size + 1, 2 * whole, 2 * whole + 1]
        self.count = r.choice([1, 2, r.randint(1, 25)] + ends)
        if self.single():
            self.count = max(self.count, 2)
        skewed = [0.5 ** r.choice([0, 1, 4]) for _ in range(self.outputs)]
        noise = numpy.random.default_rng(r.getrandbits(32))
        if self.form == "text":
            self.text = r.choices(range(len(TOKENS)), skewed, k=self.count * self.window + 1)
            self.x = torch.tensor(self.text[:-1]).reshape(self.count, self.window)
            self.y = torch.tensor(self.text[1:]).reshape(self.count, self.window)
            if self.text_last:
                self.y = self.y[:, -1]
            return
        self.x = torch.tensor(noise.standard_normal([self.count] + self.shape).astype("f4"))
        if self.loss == "cross_entropy":
            self.y = torch.tensor(r.choices(range(self.outputs), skewed, k=self.count))
        elif self.loss == "mse":
            self.y = torch.tensor(noise.standard_normal([self.count, self.outputs]).astype("f4"))
        else:
            self.y = torch.tensor(noise.random([self.count, self.outputs]).astype("f4"))

    def settle(self):
        """First weights that float32 holds, norms that do something."""
        for module in self.net.modules():
            for name, p in list(module.named_parameters(recurse=False)) + list(module.named_buffers(recurse=False)):
                if not p.is_floating_point():
                    continue
                near_one = name == "running_var" or (name == "weight" and p.dim() == 1)
                scale, level = (0.3, 1.0) if near_one else (0.4, 0.0)
                values = [level + scale * self.r.uniform(-1, 1) for _ in range(p.numel())]
                with torch.no_grad():
                    p.copy_(torch.tensor(values, dtype=torch.float32).reshape(p.shape))

    def weight(self, y):
        """What these examples' labels weigh."""
        if self.loss != "cross_entropy":
            return float(len(y))
        labels = [int(v) for v in y.flatten()]
        return sum((self.weights[v] if self.weights else 1.0) for v in labels if v != self.ignored)

    # The two sides.

    def tensors(self, net):
        state = {("l" + k).replace(".net.", "."): v for k, v in net.state_dict().items()}
        return {k: v.detach().float().contiguous() for k, v in state.items() if v.is_floating_point()}

    def document(self):
        data = {"name": "d"}
        if self.form == "text":
            data["window"] = self.window
        else:
            data["shape"] = self.shape
            if self.loss == "cross_entropy":
                data["classes"] = self.outputs
        job = {"name": "pieces", "seed": 3, "model": self.model, "data": data, "local": self.local}
        job.update({"round": {"goal": 1}, "stop": {"rounds": 1}})
        if self.parallel:
            job["parallel"] = self.parallel
        if self.frozen:
            job["tensors"] = {self.frozen + ".*": "frozen"}
        return job

    def write(self, folder):
        at = lambda name: os.path.join(folder, name)
        if self.form == "text":
            with open(at("text"), "w") as f:
                f.write("".join(TOKENS[t] for t in self.text))
            with open(at("words"), "w") as f:
                f.write("".join(t + "\n" for t in TOKENS))
            section = "format = text\npath = %s\nvocabulary = %s\n" % (at("text"), at("words"))
            section += "window = %d" % self.window
        else:
            numpy.save(at("x.npy"), self.x.numpy())
            numpy.save(at("y.npy"), self.y.numpy() if self.loss != "cross_entropy" else self.y.numpy().astype("i4"))
            section = "format = npy\nx = %s\ny = %s" % (at("x.npy"), at("y.npy"))
            section += "" if self.loss == "cross_entropy" else "\nkind = regression"
        with open(at("conf"), "w") as f:
            f.write(CONF % section)
        with open(at("job.json"), "w") as f:
            json.dump(self.document(), f)
        safetensors.save(at("init"), self.tensors(self.net))

    def rivulet(self, folder):
        """Weights and steps; or why there are none."""
        at = lambda name: os.path.join(folder, name)
        words = [RIVULET, "train", at("job.json"), "--config", at("conf"), "--home", at("none"), "--json"]
        words += ["--init", at("init"), "-o", at("after")]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        if done.returncode:
            return None, done.stderr
        return {k: torch.tensor(v.copy()) for k, v in safetensors.load(at("after")).items()}, json.loads(done.stdout)[0]["steps"]

    def mean_loss(self, net, indices, total, part):
        """Of these examples' labels, over what all of the step's weigh. total None: PyTorch's own mean."""
        x, y = self.x[indices], self.y[indices]
        out, how = net(x if self.form == "text" else x.to(part)), {"reduction": "mean" if total is None else "sum"}
        if self.loss == "cross_entropy":
            how["label_smoothing"] = self.smoothing
            if self.weights:
                how["weight"] = torch.tensor(self.weights, dtype=part)
            if self.ignored is not None:
                how["ignore_index"] = self.ignored
            loss = F.cross_entropy(out.reshape(-1, self.outputs), y.flatten(), **how)
            return loss if total is None else loss / total
        loss = (F.mse_loss if self.loss == "mse" else F.binary_cross_entropy_with_logits)(out, y.to(part), **how)
        return loss if total is None else loss / self.outputs / total

    def optimizer(self, parameters):
        o = dict(self.local["optimizer"])
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o.pop("name")]
        words = {"rate": "lr", "epsilon": "eps"}
        if kind is torch.optim.AdamW:
            o.setdefault("weight_decay", 0)
        return kind(parameters, **{words.get(k, k): v for k, v in o.items()})

    def steps(self):
        """The examples of each step, in its pieces; without end."""
        order, r = list(range(self.count)), Prng(training_seed(3), 0)
        step = min(self.batch or self.count, self.count) * self.accumulate
        size = min(self.piece() or self.count, self.count)
        while True:
            r.shuffle(order)
            taken = []
            for first in range(0, self.count, step):
                end = min(first + step, self.count)
                pieces = [order[i : min(i + size, end)] for i in range(first, end, size)]
                if self.single() and len(pieces[-1]) == 1:
                    pieces.pop()
                if pieces and self.weight(self.y[sum(pieces, [])]) > 0:
                    taken.append(pieces)
            yield taken

    def look(self, module, inputs):
        """How close together what a norm normalises lies, and how far from 0."""
        x = inputs[0].detach().double()
        if isinstance(module, nn.GroupNorm):
            x = x.reshape(len(x) * module.num_groups, -1)
        elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            x = x.transpose(0, 1).flatten(1)
        else:
            x = x.reshape(-1, x.shape[-1])
        mean = x.mean(1).abs()
        rest = x.square().mean(1) if isinstance(module, nn.RMSNorm) else x.var(1, unbiased=False)
        far = (mean + 0.5) / (rest + 1e-5).sqrt()
        self.far = max(self.far, float(far.max()))

    def train(self, part):
        self.far = 0.0
        net = copy.deepcopy(self.net).to(part).train()
        for module in net.modules():
            if isinstance(module, NORMS):
                module.register_forward_pre_hook(self.look)
        if self.frozen:
            first = net[int(self.frozen[1:])]
            for p in first.parameters():
                p.requires_grad_(False)
            if isinstance(first, (nn.BatchNorm1d, nn.BatchNorm2d)):
                first.momentum = 0.0
        moving = [p for p in net.parameters() if p.requires_grad]
        anchors = [p.detach().clone() for p in moving]
        optimizer = self.optimizer(moving)
        done = epochs = 0
        for taken in self.steps():
            for pieces in taken:
                if not self.by_epochs and done == self.amount:
                    break
                examples = sum(pieces, [])
                optimizer.zero_grad()
                if self.batch_norms:
                    total = self.weight(self.y[examples])
                    for piece in pieces:
                        self.mean_loss(net, piece, total, part).backward()
                else:
                    self.mean_loss(net, examples, None, part).backward()
                for p, w in zip(moving, anchors):
                    p.grad = p.grad + self.local.get("prox", 0) * (p.detach() - w)
                if "clip_norm" in self.local:
                    nn.utils.clip_grad_norm_(moving, self.local["clip_norm"])
                optimizer.step()
                done += 1
            epochs += bool(done)
            if epochs == self.amount if self.by_epochs else done == self.amount:
                return net, done


def apart(a, b):
    return max(float(((a[k] - b[k]).abs() / b[k].abs().clamp(min=1)).max()) for k in b)


class Pieces(unittest.TestCase):
    def compare(self, case, about, folder):
        """How far apart the two are; None: the case is ill-conditioned, or nothing counts in it."""
        got, steps = case.rivulet(folder)
        if case.weight(case.y) == 0:
            self.assertIsNone(got, about)
            self.assertIn("no label counts", steps, about)
            self.refused += 1
            return None
        self.assertIsNotNone(got, "%s: %s" % (about, steps))
        net, wanted_steps = case.train(torch.float64)
        wanted, single = case.tensors(net), case.tensors(case.train(torch.float32)[0])
        if apart(single, wanted) > CONDITION or case.far > FAR:
            self.anew += 1
            return None
        self.assertEqual(steps, wanted_steps, about)
        self.assertEqual(set(got), set(wanted), about)
        return apart(got, wanted)

    def test_beside_pytorch(self):
        torch.set_num_threads(1)
        began, cases, worst, kinds, seed = time.monotonic(), 0, 0.0, collections.Counter(), SEED * 1000000
        self.refused = self.anew = 0
        with tempfile.TemporaryDirectory() as folder:
            while cases < CASES:
                seed += 1
                case = Drawn(random.Random(seed))
                case.write(folder)
                about = "case %d: %s, %d examples" % (seed, json.dumps(case.document()), case.count)
                error = self.compare(case, about, folder)
                if error is None:
                    continue
                self.assertLess(error, TOLERANCE, about)
                worst = max(worst, error)
                cases += 1
                kinds.update(case.kinds())
        said = "%d cases from seed %d in %.0f s: at most %.1e apart; %d refused as nothing counts, %d drawn anew; %s"
        print(said % (cases, SEED, time.monotonic() - began, worst, self.refused, self.anew, dict(kinds)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
