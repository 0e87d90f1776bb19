#!/usr/bin/python3
"""Writes tests/vectors/model/update.vec: local optimizers, step by step, in decimal arithmetic of 50 digits.

The formulas are those of PyTorch 1.13's documentation (torch.optim.SGD, Adam and AdamW, torch.nn.utils.clip_grad_norm_) with
FedProx's pull in the gradient before it is clipped and SCAFFOLD's shift after. Only the standard library is needed; the inputs
are f32 numbers. A case is a sequence of arrays, each a little-endian u32 count and as many f32: the settings in the order of
KEYS, parameters, shift, the gradients of all steps one after another, the parameters after each step."""
import os
import random
import struct
from decimal import Decimal, getcontext

getcontext().prec = 50
KEYS = ("type", "rate", "momentum", "weight_decay", "nesterov", "prox", "clip", "beta1", "beta2", "epsilon", "shifted")
SGD, ADAM, ADAMW = 0, 1, 2
COUNT, STEPS = 7, 5
CASES = (
    dict(rate=0.1),
    dict(rate=0.1, weight_decay=0.01, momentum=0.9),
    dict(rate=0.1, weight_decay=0.01, momentum=0.9, nesterov=1),
    dict(rate=0.1, prox=1.5),
    dict(rate=0.1, prox=0.5, momentum=0.5),
    dict(rate=0.1, clip=1.0),
    dict(rate=0.1, clip=100.0),
    dict(rate=0.1, clip=0.75, prox=0.25, momentum=0.9, weight_decay=0.02, shifted=1),
    dict(type=ADAM, rate=0.01),
    dict(type=ADAM, rate=0.02, beta1=0.8, beta2=0.95, weight_decay=0.1, epsilon=0.001),
    dict(type=ADAMW, rate=0.02, weight_decay=0.1),
    dict(type=ADAMW, rate=0.02, beta1=0.5, beta2=0.75, weight_decay=0.3, clip=1.0, prox=0.5, shifted=1),
)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def exact(values):
    return [Decimal(v) for v in values]


def changed(case, g, w, start, shift):
    if case["prox"]:
        g = [a + case["prox"] * (b - c) for a, b, c in zip(g, w, start)]
    if case["clip"]:
        norm = sum(a * a for a in g).sqrt()
        factor = case["clip"] / (norm + Decimal("1e-6"))
        if factor < 1:
            g = [a * factor for a in g]
    return [a + b for a, b in zip(g, shift)] if case["shifted"] else g


def sgd(case, w, g, state):
    g = [a + case["weight_decay"] * b for a, b in zip(g, w)]
    if case["momentum"]:
        state["v"] = [case["momentum"] * a + b for a, b in zip(state["v"], g)] if "v" in state else list(g)
        g = [a + case["momentum"] * b for a, b in zip(g, state["v"])] if case["nesterov"] else state["v"]
    return [a - case["rate"] * b for a, b in zip(w, g)]


def adam(case, w, g, state):
    if case["type"] == ADAM:
        g = [a + case["weight_decay"] * b for a, b in zip(g, w)]
    else:
        w = [a - case["rate"] * case["weight_decay"] * a for a in w]
    zero = [Decimal(0)] * len(w)
    b1, b2 = case["beta1"], case["beta2"]
    state["t"] = state.get("t", 0) + 1
    state["m"] = [b1 * a + (1 - b1) * b for a, b in zip(state.get("m", zero), g)]
    state["v"] = [b2 * a + (1 - b2) * b * b for a, b in zip(state.get("v", zero), g)]
    m_hat = [a / (1 - b1 ** state["t"]) for a in state["m"]]
    v_hat = [a / (1 - b2 ** state["t"]) for a in state["v"]]
    return [a - case["rate"] * m / (v.sqrt() + case["epsilon"]) for a, m, v in zip(w, m_hat, v_hat)]


def put(out, values):
    out.write(struct.pack("<I%df" % len(values), len(values), *(float(v) for v in values)))


def main():
    rng = random.Random(7)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", "update.vec")
    with open(path, "wb") as out:
        for given in CASES:
            case = dict(type=SGD, momentum=0, weight_decay=0, nesterov=0, prox=0, clip=0, beta1=0.9, beta2=0.999, epsilon=1e-8, shifted=0)
            case.update(given)
            settings = [case[k] for k in KEYS]
            case = {k: Decimal(f32(v)) if k not in ("type", "nesterov", "shifted") else v for k, v in case.items()}
            start, shift = ([f32(rng.uniform(-1, 1)) for _ in range(COUNT)] for _ in range(2))
            gradients = [[f32(rng.gauss(0, 1)) for _ in range(COUNT)] for _ in range(STEPS)]
            w, state, after = exact(start), {}, []
            for g in gradients:
                g = changed(case, exact(g), w, exact(start), exact(shift))
                w = (sgd if case["type"] == SGD else adam)(case, w, g, state)
                after += w
            for values in (settings, start, shift, sum(gradients, []), after):
                put(out, values)


main()
