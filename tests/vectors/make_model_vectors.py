#!/usr/bin/python3
"""Writes tests/vectors/model/*.vec with PyTorch (python3-torch, run by hand: /usr/bin/python3 tests/vectors/make_model_vectors.py).

A file is a sequence of arrays, each a little-endian u32 count and as many f32: x, labels (or targets), parameters, outputs,
the mean loss, the gradient of the mean loss, and the parameters after 3 steps of SGD on the same batch with rate 0.05,
momentum 0.9 and weight decay 0.01. tests/unit/test_net_vectors.c builds the same networks and compares within 2e-5 of the
largest element of an array: both sides sum in f32, in different orders."""
import os
import struct

import torch
from torch import nn

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")


class Residual(nn.Module):
    """An output with three users, one of them through flatten."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 3, 3, padding=1)
        self.conv2 = nn.Conv2d(3, 3, 3, padding=1)
        self.fc1 = nn.Linear(75, 4)
        self.fc2 = nn.Linear(75, 4)

    def forward(self, x):
        a = torch.relu(self.conv1(x))
        b = torch.relu(self.conv2(a) + a)
        return self.fc1(b.flatten(1)) + self.fc2(a.flatten(1))


NETS = {
    "linear": (lambda: nn.Sequential(nn.Linear(37, 19), nn.ReLU(), nn.Dropout(0.0), nn.Linear(19, 3, bias=False)), (37,), 3, "ce"),
    "regression": (lambda: nn.Sequential(nn.Linear(5, 17), nn.ReLU(), nn.Linear(17, 2)), (5,), 2, "mse"),
    "conv_stride": (lambda: nn.Sequential(nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 1)), nn.ReLU(),
                    nn.Conv2d(4, 5, (1, 3), stride=(1, 2), bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(75, 3)), (2, 9, 7), 3, "ce"),
    "pools": (lambda: nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1), nn.ReLU(),
              nn.Conv2d(5, 4, (2, 3), padding=(0, 1)), nn.AvgPool2d((2, 3), stride=(1, 2), padding=(1, 1)),
              nn.Flatten(), nn.Linear(32, 4)), (3, 8, 6), 4, "mse"),
    "maxpool2": (lambda: nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 3, 5), nn.ReLU(),
                 nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 5)), (1, 17, 17), 5, "ce"),
    "residual": (Residual, (2, 5, 5), 4, "ce"),
}


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def put(out, tensor):
    values = tensor.detach().reshape(-1).float().tolist()
    out.write(struct.pack("<I%df" % len(values), len(values), *values))


def main():
    os.makedirs(HERE, exist_ok=True)
    for index, (name, (make, shape, outputs, kind)) in enumerate(sorted(NETS.items())):
        torch.manual_seed(100 + index)
        model, batch = make(), 4
        x = torch.randn(batch, *shape)
        target = torch.randint(0, outputs, (batch,)) if kind == "ce" else torch.randn(batch, outputs)
        loss_of = nn.CrossEntropyLoss() if kind == "ce" else nn.MSELoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
        with open(os.path.join(HERE, name + ".vec"), "wb") as out:
            put(out, x)
            put(out, target)
            put(out, flat(model.parameters()))
            for step in range(3):
                optimizer.zero_grad()
                y = model(x)
                loss = loss_of(y, target)
                loss.backward()
                if step == 0:
                    put(out, y)
                    put(out, loss)
                    put(out, flat(p.grad for p in model.parameters()))
                optimizer.step()
            put(out, flat(model.parameters()))


main()
