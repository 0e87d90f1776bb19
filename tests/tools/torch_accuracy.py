#!/usr/bin/env python3
"""torch_accuracy.py MODEL IMAGES LABELS: loads a model file by name into the same network in PyTorch and prints how many
of the IDX examples it gets right. Only for the network of tests/e2e/40-curl.sh. Exits 77 without PyTorch.
"""
import gzip
import json
import struct
import sys

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError:
    sys.exit(77)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, padding=2)
        self.fc1 = nn.Linear(8 * 14 * 14, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def load_weights(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    return {
        name: torch.from_numpy(np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]).copy())
        for name, t in header.items()
    }


def load_idx(path):
    with open(path, "rb") as f:
        raw = f.read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    shape = struct.unpack(">%dI" % raw[3], raw[4 : 4 + 4 * raw[3]])
    return np.frombuffer(raw[4 + 4 * raw[3] :], np.uint8).reshape(shape)


net = Net()
net.load_state_dict(load_weights(sys.argv[1]))
x = torch.from_numpy(load_idx(sys.argv[2]).astype(np.float32) / 255)[:, None]
y = torch.from_numpy(load_idx(sys.argv[3]).astype(np.int64))
with torch.no_grad():
    right = sum(int((net(x[i : i + 1000]).argmax(1) == y[i : i + 1000]).sum()) for i in range(0, len(y), 1000))
print(right)
