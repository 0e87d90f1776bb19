"""A device with a PyTorch loop of its own, on its part of MNIST: torch_loop.py HOME FOLDER PART PARTS.

The same file is a trainer under `rivulet run`; the arguments after HOME say which examples are this device's.
"""
import gzip
import sys

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

import rivulet


class Net(nn.Module):
    """The names of its layers are those of the job's model."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 200), nn.Linear(200, 200), nn.Linear(200, 10)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1))))))


def mnist(folder, part, parts):
    """Every so many-th example of the training set."""

    def read(name, skip):
        with gzip.open("%s/train-%s-ubyte.gz" % (folder, name)) as f:
            return numpy.frombuffer(f.read(), numpy.uint8, offset=skip)

    x = torch.tensor(read("images-idx3", 16).reshape(-1, 1, 28, 28)[part::parts]).float() / 255
    y = torch.tensor(read("labels-idx1", 8)[part::parts]).long()
    return TensorDataset(x, y)


def measured(held):
    """What the net does on the examples that are for evaluation alone; None where the job keeps none."""
    if len(held) == 0:
        return None
    net.eval()
    with torch.no_grad():
        x, y = default_collate(list(held))
        scores = net(x)
    net.train()
    right = (scores.argmax(1) == y).float().mean()
    return {"examples": len(y), "loss": float(loss_of(scores, y)), "accuracy": float(right)}


home, folder, part, parts = sys.argv[1:5]
data = mnist(folder, int(part) - 1, int(parts))
net = Net()
loss_of = nn.CrossEntropyLoss()

for task in rivulet.tasks(trainer="torch", data="mnist", examples=len(data), home=home):
    with task:
        torch.manual_seed(task.seed)
        train, held = task.split(data)
        loader = DataLoader(train, batch_size=task.batch, shuffle=True)
        net.load_state_dict(task.state_dict())
        before = measured(held)
        opt = torch.optim.SGD(net.parameters(), lr=task.lr)
        for x, y in task.batches(loader):
            scores = net(x)
            loss = loss_of(scores, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            task.step(loss, len(y), right=(scores.argmax(1) == y).sum())
        task.submit(net, optimizer=opt, evaluate=before)
