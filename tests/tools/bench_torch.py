#!/usr/bin/python3
"""bench_torch.py [SECONDS [NAME BATCH]]: the cases of bench_train.c with PyTorch, one thread: forward, loss, backward and
a plain SGD step per batch over tensors that already lie in memory. Exits 77 where PyTorch is missing."""
import resource
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("PyTorch is not installed (python3-torch)")
    sys.exit(77)

EXAMPLES = 640


def two_layers():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


CASES = [(name, make, batch) for name, make in (("2nn", two_layers), ("lenet", lenet), ("cnn", cnn)) for batch in (10, 64)]


def measure(model, batch, seconds, x, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    done, start, at = 0, time.monotonic(), 0
    while time.monotonic() - start < seconds:
        optimizer.zero_grad()
        loss_of(model(x[at:at + batch]), labels[at:at + batch]).backward()
        optimizer.step()
        done += batch
        at = at + batch if at + 2 * batch <= EXAMPLES else 0
    return done / (time.monotonic() - start)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = torch.rand(EXAMPLES, 1, 28, 28)
    labels = torch.randint(0, 10, (EXAMPLES,))
    for name, make, batch in CASES:
        if len(sys.argv) > 3 and (name, str(batch)) != (sys.argv[2], sys.argv[3]):
            continue
        model = make()
        measure(model, batch, seconds / 5, x, labels)
        rate = measure(model, batch, seconds, x, labels)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"torch {name} batch {batch}: {rate:.0f} samples/s, RSS {rss:.1f} MiB", flush=True)


main()
