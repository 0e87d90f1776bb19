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


def output_shape(layer, shape):
    """Of one layer, as [channels, height, width], a flat one as [n, 1, 1]; `shape` is its input's."""
    if layer["type"] == "linear":
        return [layer["out"], 1, 1]
    if layer["type"] == "flatten":
        return [math.prod(shape), 1, 1]
    if layer["type"] in ("conv2d", "maxpool2d", "avgpool2d"):
        kernel = pair(layer, "kernel", None)
        stride = pair(layer, "stride", kernel if "pool" in layer["type"] else 1)
        padding = pair(layer, "padding", 0)
        sides = [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(shape[1:], padding, kernel, stride)]
        return [layer.get("out", shape[0])] + sides
    return shape


def layer_tensors(job):
    """The name and shape of each parameter of a job's layers, in order."""
    shapes = {"input": (list(job["data"]["shape"]) + [1, 1])[:3]}
    tensors, before = {}, "input"
    for i, layer in enumerate(job["model"]["layers"]):
        name = layer.get("name", layer["type"] + str(i + 1))
        shape = shapes[layer.get("inputs", [before])[0]]
        shapes[name], before = output_shape(layer, shape), name
        if "out" in layer:
            window = pair(layer, "kernel", None) if layer["type"] == "conv2d" else []
            tensors[name + ".weight"] = [layer["out"], shape[0]] + window
            if layer.get("bias", True):
                tensors[name + ".bias"] = [layer["out"]]
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
