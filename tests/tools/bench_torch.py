#!/usr/bin/python3
"""bench_torch.py [SECONDS [NAME BATCH]]: the cases of bench_train.c with PyTorch, THREADS threads (default 1): forward, loss, backward and
a plain SGD step per batch over tensors that already lie in memory. Exits 77 where PyTorch is missing."""
import os
import resource
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    print("PyTorch is not installed (python3-torch)")
    sys.exit(77)

EXAMPLES = 128


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


def pool_and_flatten():
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def ds_cnn():
    parts = [nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU(True), nn.Dropout(0.0)]
    for _ in range(4):
        parts += [nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU(True)]
        parts += [nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU(True)]
    return nn.Sequential(*parts, pool_and_flatten(), nn.Linear(64, 12))


class Residual(nn.Module):
    def __init__(self, body, way=None, after=None):
        super().__init__()
        self.body, self.way, self.after = body, way, after

    def forward(self, x):
        y = self.body(x) + (self.way(x) if self.way else x)
        return self.after(y) if self.after else y


def conv_norm(inputs, outputs, kernel, stride=1, groups=1, relu=True):
    parts = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return parts + [nn.ReLU6(True)] if relu else parts


def mobilenet():
    def scaled(channels):
        whole = max(8, int(channels * 0.35 + 4) // 8 * 8)
        return whole + 8 if whole < 0.9 * channels * 0.35 else whole

    channels = scaled(32)
    parts = conv_norm(3, channels, 3, 2)
    for times, out, repeat, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeat):
            hidden, outputs, step = channels * times, scaled(out), stride if i == 0 else 1
            body = (conv_norm(channels, hidden, 1) if times > 1 else []) + conv_norm(hidden, hidden, 3, step, hidden)
            body = nn.Sequential(*body, *conv_norm(hidden, outputs, 1, relu=False))
            parts.append(Residual(body) if step == 1 and channels == outputs else body)
            channels = outputs
    return nn.Sequential(*parts, *conv_norm(channels, 1280, 1), pool_and_flatten(), nn.Linear(1280, 2))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
        parts = []
        for a, b in zip(widths, widths[1:]):
            parts += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(True)]
        self.body = nn.Sequential(*parts, nn.Linear(128, 640))

    def forward(self, x):
        return self.body(x)


def resnet(widths, blocks):
    def norm(channels):
        return nn.GroupNorm(2, channels)

    channels = widths[0]
    parts = [nn.Conv2d(3, channels, 3, padding=1, bias=False), norm(channels), nn.ReLU(True)]
    for at, width in enumerate(widths):
        for i in range(blocks):
            stride = 2 if at > 0 and i == 0 else 1
            body = nn.Sequential(nn.Conv2d(channels, width, 3, stride, 1, bias=False), norm(width), nn.ReLU(True),
                                 nn.Conv2d(width, width, 3, padding=1, bias=False), norm(width))
            way = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), norm(width)) if stride > 1 else None
            parts.append(Residual(body, way, nn.ReLU(True)))
            channels = width
    return nn.Sequential(*parts, pool_and_flatten(), nn.Linear(channels, 10))


class Recurrent(nn.Module):
    def __init__(self, words, width, body, *head):
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(words, width), body, nn.Sequential(*head)

    def forward(self, x):
        return self.head(self.body(self.embedding(x))[0])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        n, steps, width = x.shape
        q, k, v = (t.view(n, steps, self.heads, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(width, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, steps, width))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, words=65, steps=128, width=128, layers=4, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(steps, width))
        self.body = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width), nn.Linear(width, words, bias=False))

    def forward(self, x):
        return self.body(self.wte(x) + self.wpe)


# name, network, shape of an example, classes (0: its own input is the target), of texts the words
CASES = [
    ("2nn", two_layers, (1, 28, 28), 10, 0),
    ("lenet", lenet, (1, 28, 28), 10, 0),
    ("cnn", cnn, (1, 28, 28), 10, 0),
    ("dscnn", ds_cnn, (1, 49, 10), 12, 0),
    ("mbv2", mobilenet, (3, 96, 96), 2, 0),
    ("ae", Autoencoder, (640,), 0, 0),
    ("resnet20", lambda: resnet((16, 32, 64), 3), (3, 32, 32), 10, 0),
    ("gru", lambda: Recurrent(10004, 96, nn.GRU(96, 512, batch_first=True), nn.Linear(512, 96), nn.Linear(96, 10004)), (20,), 10004, 10004),
    ("lstm", lambda: Recurrent(90, 8, nn.LSTM(8, 256, 2, batch_first=True), nn.Linear(256, 90)), (80,), 90, 90),
    ("gpt", Gpt, (128,), 65, 65),
    ("resnet18", lambda: resnet((64, 128, 256, 512), 2), (3, 32, 32), 10, 0),
]


def data(shape, classes, words):
    if words:
        return torch.randint(0, words, (EXAMPLES,) + shape), torch.randint(0, classes, (EXAMPLES,) + shape)
    x = torch.rand((EXAMPLES,) + shape)
    return x, torch.randint(0, classes, (EXAMPLES,)) if classes else x


def measure(model, batch, seconds, x, y, classes):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done, start, at = 0, time.monotonic(), 0
    while time.monotonic() - start < seconds:
        out, want = model(x[at:at + batch]), y[at:at + batch]
        loss = functional.cross_entropy(out.reshape(-1, classes), want.reshape(-1)) if classes else functional.mse_loss(out, want)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += batch
        at = at + batch if at + 2 * batch <= EXAMPLES else 0
    return done / (time.monotonic() - start)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    torch.manual_seed(1)
    for name, make, shape, classes, words in CASES:
        for batch in (10, 64):
            if len(sys.argv) > 3 and (name, str(batch)) != (sys.argv[2], sys.argv[3]):
                continue
            x, y = data(shape, classes, words)
            model = make()
            measure(model, batch, seconds / 5, x, y, classes)
            rate = measure(model, batch, seconds, x, y, classes)
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"torch {name} batch {batch}: {rate:.{2 if rate < 100 else 0}f} samples/s, RSS {rss:.1f} MiB", flush=True)


main()
