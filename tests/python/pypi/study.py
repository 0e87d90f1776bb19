"""Networks that people bring, for test_convert.py: those that the trainer's speed is measured with, and other ways to write
what they have in them."""

import torch
import torch.nn.functional as F
from torch import nn


def settled(net):
    """As after some training: what norms count and scale by is not 0 and 1."""
    random = torch.Generator().manual_seed(5)
    for module in net.modules():
        if (
            isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm))
            and module.weight is not None
        ):
            with torch.no_grad():
                module.weight.uniform_(0.5, 1.5, generator=random)
                module.bias.uniform_(-0.5, 0.5, generator=random)
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.running_mean.uniform_(-0.5, 0.5, generator=random)
            module.running_var.uniform_(0.5, 2, generator=random)
    return net


def ds_cnn(width=64, blocks=4):
    """Keyword spotting, MLPerf Tiny: [1, 49, 10]."""

    def separable(n):
        return [
            nn.Conv2d(n, n, 3, padding=1, groups=n, bias=False), nn.BatchNorm2d(n), nn.ReLU(),
            nn.Conv2d(n, n, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(),
        ]  # fmt: skip

    first = [
        nn.Conv2d(1, width, (10, 4), (2, 2), (5, 1), bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Dropout(0.2),
    ]
    rest = [layer for _ in range(blocks) for layer in separable(width)]
    return settled(nn.Sequential(*first, *rest, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 12)))


class Inverted(nn.Module):
    def __init__(self, n, m, stride, expand):
        super().__init__()
        hidden = n * expand
        wide = (
            [nn.Conv2d(n, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True)] if expand > 1 else []
        )
        self.conv = nn.Sequential(
            *wide,
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, m, 1, bias=False),
            nn.BatchNorm2d(m),
        )
        self.residual = stride == 1 and n == m

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


def mobilenet_v2_035():
    layers, n = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(inplace=True)], 16
    for expand, m, count, stride in (
        (1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1), (6, 56, 3, 2), (6, 112, 1, 1),
    ):  # fmt: skip
        for i in range(count):
            layers.append(Inverted(n, m, stride if i == 0 else 1, expand))
            n = m
    layers += [nn.Conv2d(n, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(inplace=True)]
    end = [nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 2)]
    return settled(nn.Sequential(*layers, *end))


def autoencoder_640():
    """Anomaly detection, MLPerf Tiny."""
    widths = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    layers = []
    for n, m in zip(widths, widths[1:]):
        layers += [nn.Linear(n, m), nn.BatchNorm1d(m), nn.ReLU()]
    return settled(nn.Sequential(*layers, nn.Linear(128, 640)))


class GroupNormBlock(nn.Module):
    def __init__(self, n, m, stride, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(n, m, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(groups, m)
        self.conv2 = nn.Conv2d(m, m, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(groups, m)
        self.short = None
        if stride > 1 or n != m:
            self.short = nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False), nn.GroupNorm(groups, m))

    def forward(self, x):
        out = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(out + (x if self.short is None else self.short(x)))


class ResNetGN(nn.Module):
    def __init__(self, widths, blocks, groups, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(groups, widths[0])
        layers, n = [], widths[0]
        for i, m in enumerate(widths):
            for k in range(blocks):
                layers.append(GroupNormBlock(n, m, 2 if k == 0 and i > 0 else 1, groups))
                n = m
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(n, classes)

    def forward(self, x):
        x = self.layers(F.relu(self.norm(self.conv(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def resnet20_gn():
    return settled(ResNetGN([16, 32, 64], 3, 8, 10))


def resnet18_gn():
    return settled(ResNetGN([64, 128, 256, 512], 2, 32, 100))


class Gru512(nn.Module):
    """A keyboard's next word."""

    def __init__(self, words=2000, width=96):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.gru = nn.GRU(width, 512, batch_first=True)
        self.back = nn.Linear(512, width)
        self.words = nn.Linear(width, words)

    def forward(self, x):
        x, _ = self.gru(self.embed(x))
        return self.words(self.back(x))


class CharLstm(nn.Module):
    """LEAF's Shakespeare: the character after so many."""

    def __init__(self, characters=90):
        super().__init__()
        self.embed = nn.Embedding(characters, 8)
        self.lstm = nn.LSTM(8, 256, num_layers=2, batch_first=True)
        self.out = nn.Linear(256, characters)

    def forward(self, x):
        out, _ = self.lstm(self.embed(x.long()))
        return self.out(out[:, -1, :])


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (a.view(b, t, self.heads, c // self.heads).transpose(1, 2) for a in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Heads(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Gpt(nn.Module):
    def __init__(self, characters=96, steps=128, width=128, blocks=4, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(characters, width), nn.Embedding(steps, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)

    def forward(self, x):
        places = torch.arange(0, x.size(1), device=x.device)
        x = self.wte(x) + self.wpe(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


# --- other ways


class Encoder(nn.Module):
    """nn.MultiheadAttention with and without a mask, positions as a parameter."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.places = nn.Parameter(torch.randn(1, 12, 16))
        self.one = nn.MultiheadAttention(16, 4, batch_first=True)
        self.two = nn.MultiheadAttention(16, 2, batch_first=True, bias=False)
        self.norm = nn.LayerNorm(16)
        self.register_buffer("mask", torch.ones(12, 12).triu(1).bool(), persistent=False)
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        x = self.places[:, : x.shape[1]] + self.embed(x)
        x = self.norm(x + self.one(x, x, x, need_weights=False)[0])
        y, _ = self.two(x, x, x, attn_mask=self.mask)
        return self.out(F.gelu(x + y, approximate="tanh"))


class Patches(nn.Module):
    """Attention written another way, on rows of numbers; no bias. Positions and a mask that forward makes."""

    def __init__(self):
        super().__init__()
        self.inner, self.places = nn.Linear(6, 8), nn.Embedding(5, 8)
        self.qkv, self.proj = nn.Linear(8, 24, bias=False), nn.Linear(8, 8, bias=False)
        self.out = nn.Linear(40, 3)

    def forward(self, x):
        x = torch.tanh(self.inner(x)) + self.places(torch.arange(5))
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mask = torch.ones(5, 5).tril().bool()
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(b, n, c))
        return self.out(x.flatten(1))


class Signal(nn.Module):
    """[3, 40]"""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 8, 5, stride=2, padding=2)
        self.b = nn.Conv1d(8, 8, 3, padding="same", groups=4, bias=False)
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        x = F.max_pool1d(F.silu(self.a(x)), 2)
        x = torch.cat((F.hardswish(self.norm(self.b(x))), x.sigmoid()), dim=1)
        return self.out(F.avg_pool1d(x, 2).mean(dim=-1))


class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.norm = nn.GroupNorm(2, 8, affine=False)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = self.norm(self.conv(x))
        scale = torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))
        x = scale * x
        x = x * F.relu6(x)
        return self.out(x.mean((2, 3)))


class LastStates(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, batch_first=True)
        self.gru = nn.GRU(7, 6, num_layers=2, batch_first=True, bias=False)
        self.norm = nn.RMSNorm(6, eps=1e-5)
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        x, (h, c) = self.lstm(x)
        _, h = self.gru(x)
        return self.out(self.norm(h[-1]))


class LastHidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, 2, batch_first=True)
        self.out = nn.Linear(7, 2)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.out(h[-1])


class Tied(nn.Module):
    """The last layer has the embedding's weight, and so has one between."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.gru = nn.GRU(6, 6, batch_first=True)
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6, bias=False)
        self.out = nn.Linear(6, 11)
        self.second.weight = self.first.weight
        self.out.weight = self.words.weight

    def forward(self, x):
        x = self.first(self.gru(self.words(x))[0])
        return self.out(self.second(torch.tanh(x)))


def adapted(**more):
    """What PEFT makes of a network; more: of its LoraConfig."""
    import peft

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(12, 9), nn.Linear(9, 4)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))

    config = peft.LoraConfig(**dict({"r": 3, "lora_alpha": 12, "target_modules": ["fc1"]}, **more))
    net = peft.get_peft_model(Two(), config)
    with torch.no_grad():
        net.base_model.model.fc1.lora_B["default"].weight.normal_()
    return net


def adapted_with_dropout():
    return adapted(lora_dropout=0.1)


def adapted_dora():
    return adapted(use_dora=True)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 6)
        self.gru = nn.GRU(6, 4, batch_first=True)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        x, _ = self.gru(self.embed(x))
        return self.out(x[:, -1])
