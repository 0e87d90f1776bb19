#!/usr/bin/env python3
"""Reads a safetensors file by its published rules alone (https://github.com/huggingface/safetensors, "Format") and
prints its metadata and, in file order, each tensor's name, type, shape and sum. Exits 1 if a rule is broken.
Only the standard library; where the safetensors package is installed, its own reader must agree.
"""
import json
import struct
import sys

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
           "U64": "Q", "U32": "I", "U16": "H", "U8": "B", "BOOL": "?"}


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(keys) != len(set(keys)):
        sys.exit("a key is used twice")
    return dict(pairs)


def values(kind, data):
    if kind == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(FORMATS[kind])}{FORMATS[kind]}", data))


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = raw[8:8 + length], raw[8 + length:]
    if len(header) != length or header[:1] != b"{":
        sys.exit("bad header")
    table = json.loads(header.decode(), object_pairs_hook=unique)
    metadata = table.pop("__metadata__", {})
    if not all(isinstance(v, str) for v in metadata.values()):
        sys.exit("metadata is not all strings")
    at, tensors = 0, []
    for name, t in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        if begin != at or end < begin:
            sys.exit(f"{name}: gap or overlap")
        numbers = values(t["dtype"], data[begin:end])
        size = 1
        for n in t["shape"]:
            size *= n
        if size != len(numbers):
            sys.exit(f"{name}: shape and offsets contradict each other")
        tensors.append((name, t["dtype"], t["shape"], sum(numbers)))
        at = end
    if at != len(data):
        sys.exit("data past the last tensor")
    return metadata, tensors


def compare(path, metadata, tensors):
    try:
        from safetensors import safe_open
        import numpy
    except ImportError:
        return
    with safe_open(path, framework="numpy") as f:
        if (f.metadata() or {}) != metadata or set(f.keys()) != {t[0] for t in tensors}:
            sys.exit("the safetensors package reads other names")
        for name, kind, shape, total in tensors:
            if kind == "BF16":
                continue
            x = f.get_tensor(name)
            if list(x.shape) != shape or float(numpy.sum(x, dtype=numpy.float64)) != float(total):
                sys.exit(f"{name}: the safetensors package reads other values")


found = read(sys.argv[1])
compare(sys.argv[1], *found)
for key in sorted(found[0]):
    print(f"{key}={found[0][key]}")
for name, kind, shape, total in found[1]:
    print(f"{name} {kind} {shape} {float(total):.9g}")
