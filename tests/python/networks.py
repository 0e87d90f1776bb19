"""What tests of networks share: job documents around layers, model files, and the built-in network's forward pass."""

import json
import math
import os
import struct
import subprocess

import numpy as np

from fleet import RIVULET

NAMES = {"<f4": "F32", "|u1": "U8", "<f8": "F64", "<f2": "F16"}


def job_document(shape, layers, data=None, loss="mse", classes=None):
    """A whole job around layers, with what a coordinator asks for."""
    about = {"name": "data", "shape": shape}
    if classes:
        about["classes"] = classes
    about.update(data or {})
    return {
        "name": "test",
        "model": {"layers": layers, "loss": loss},
        "data": about,
        "local": {"epochs": 1, "batch": 10, "optimizer": {"rate": 0.1}},
        "round": {"goal": 1},
        "stop": {"rounds": 1},
    }


def write_tensors(path, tensors):
    """A safetensors file of arrays by name."""
    header, at = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": NAMES[a.dtype.str], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(
            struct.pack("<Q", len(text)) + text + b"".join(np.ascontiguousarray(a).tobytes() for a in tensors.values())
        )


def read_tensors(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(length)), f.read()
    header.pop("__metadata__", None)
    types = {name: code for code, name in NAMES.items()}
    return {
        name: np.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
        for name, t in header.items()
    }


def eval_rows(directory, x):
    """The outputs of `rivulet eval` for job.json and model.safetensors in that directory."""
    rows, out = os.path.join(directory, "rows.safetensors"), os.path.join(directory, "outputs.safetensors")
    write_tensors(rows, {"rows": x})
    subprocess.run(
        [
            RIVULET,
            "eval",
            os.path.join(directory, "job.json"),
            "--init",
            os.path.join(directory, "model.safetensors"),
            "--input",
            rows,
            "--output",
            out,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return read_tensors(out)["output"]


def pair(layer, key, default):
    value = layer.get(key, default)
    return [value, value] if isinstance(value, int) else value


def windows(layer, extents, kernel):
    """What a window leaves of extents."""
    stride = pair(layer, "stride", kernel if "pool" in layer["type"] else 1)
    padding = pair(layer, "padding", 0)
    count = len(extents)
    return [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(extents, padding[-count:], kernel[-count:], stride[-count:])]


def output_shape(layer, shapes):
    """Of one layer: [channels, height, width], [rows, width] or [features]; `shapes` are its inputs'."""
    kind, shape = layer["type"], shapes[0]
    if kind == "linear":
        return shape[:1] * (len(shape) == 2) + [layer["out"]]
    if kind == "flatten":
        return [math.prod(shape)]
    if kind == "global_avgpool":
        return shape[:1]
    if kind == "embedding":
        return [shape[0], layer["out"]]
    if kind in ("lstm", "gru"):
        return shape[:1] * (layer.get("output") != "last") + [layer["out"]]
    if kind == "concat":
        at = layer.get("dim", 1) - 1
        return shape[:at] + [sum(s[at] for s in shapes)] + shape[at + 1 :]
    if kind in ("conv2d", "conv1d"):
        extents = (shape + [1, 1])[1:3] if kind == "conv2d" else shape[1:]
        return [layer["out"]] + windows(layer, extents, pair(layer, "kernel", None))
    if kind in ("maxpool2d", "avgpool2d"):
        extents = windows(layer, shape[1:] if len(shape) == 3 else [1, shape[1]], pair(layer, "kernel", None))
        return shape[:1] + (extents[1:] if len(shape) == 2 and extents[0] == 1 else extents)
    return shape


def stacked(layer, width):
    """The tensors of an LSTM or a GRU."""
    out, tensors = layer["out"], {}
    rows = out * (4 if layer["type"] == "lstm" else 3)
    for i in range(layer.get("layers", 1)):
        tensors["weight_ih_l%d" % i] = [rows, width if i == 0 else out]
        tensors["weight_hh_l%d" % i] = [rows, out]
        if layer.get("bias", True):
            tensors["bias_ih_l%d" % i] = tensors["bias_hh_l%d" % i] = [rows]
    return tensors


def tensors_of(layer, shape):
    """Name and shape of each of a layer's own tensors, in order; `shape` is its input's."""
    kind = layer["type"]
    width = shape[-1] if len(shape) == 2 else math.prod(shape)
    scale = {"weight": [shape[0]], "bias": [shape[0]]} if layer.get("affine", True) else {}
    if kind in ("lstm", "gru"):
        return stacked(layer, width)
    if kind == "embedding":
        return {"weight": [layer["vocabulary"], layer["out"]]}
    if kind == "positions":
        return {"weight": shape}
    if kind == "groupnorm":
        return scale
    if kind == "batchnorm":
        return dict(scale, running_mean=[shape[0]], running_var=[shape[0]])
    if kind in ("layernorm", "rmsnorm"):
        return {k: [width] for k in ("weight", "bias")[: 2 if kind == "layernorm" else 1] if scale}
    if kind == "attention":
        names = {"in_proj_weight": 3, "in_proj_bias": 3, "out_proj.weight": 1, "out_proj.bias": 1}
        return {
            k: [n * width, width][: 1 if "bias" in k else 2]
            for k, n in names.items()
            if layer.get("bias", True) or "bias" not in k
        }
    if "out" not in layer:
        return {}
    if kind == "linear":
        weight = [layer["out"], width]
    else:
        kernel = pair(layer, "kernel", None)
        weight = [layer["out"], shape[0] // layer.get("groups", 1)] + kernel[: 2 if kind == "conv2d" else 1]
    tensors = {} if "weights" in layer else {"weight": weight}
    if layer.get("bias", True):
        tensors["bias"] = [layer["out"]]
    if "lora" in layer:
        rank = layer["lora"]["rank"]
        tensors.update({"lora_A.weight": [rank, width], "lora_B.weight": [layer["out"], rank]})
    return tensors


def layer_tensors(job):
    """The name and shape of each parameter of a job's layers, in order."""
    shapes = {"input": list(job["data"]["shape"])}
    tensors, before = {}, "input"
    for i, layer in enumerate(job["model"]["layers"]):
        name = layer.get("name", layer["type"] + str(i + 1))
        inputs = [shapes[n] for n in layer.get("inputs", [before])]
        shapes[name], before = output_shape(layer, inputs), name
        tensors.update({"%s.%s" % (name, k): v for k, v in tensors_of(layer, inputs[0]).items()})
    return tensors


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(data):
    """(number, value) of each field of a message of Protocol Buffers; only whole numbers and bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def onnx_parts(path):
    """The nodes of an ONNX file as (operator, inputs, outputs), and its float tensors by name, flat."""
    with open(path, "rb") as f:
        (graph,) = [value for number, value in _fields(f.read()) if number == 7]
    nodes, tensors = [], {}
    for number, value in _fields(graph):
        parts = list(_fields(value)) if number in (1, 5) else []
        if number == 1:
            texts = [[v.decode() for n, v in parts if n == wanted] for wanted in (4, 1, 2)]
            nodes.append((texts[0][0], texts[1], texts[2]))
        elif number == 5:
            raw = dict(parts)
            tensors[raw[8].decode()] = np.frombuffer(raw[9], "<f4")
    return nodes, tensors
