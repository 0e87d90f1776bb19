"""Networks as people bring them who have not read what there is here, for test_convert.py and test_convert_back.py."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Regressor(nn.Module):
    """One number for a row of a table."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(13, 32), nn.LeakyReLU(), nn.BatchNorm1d(32), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class TextClassifier(nn.Module):
    """The last states of both directions, side by side."""

    def __init__(self, words=50, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(words, 12)
        self.gru = nn.GRU(12, 10, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(20, classes)

    def forward(self, tokens):
        out, hidden = self.gru(self.embedding(tokens))
        return self.fc(self.dropout(torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)))


class BiLstm(nn.Module):
    """All steps of both directions, the last step, and a state that begins with zeros."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 1, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        zeros = torch.zeros(2, x.size(0), 8).to(x.device)
        out, _ = self.lstm(x, (zeros, zeros))
        return self.fc(out[:, -1, :])


class DeepLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=5, batch_first=True, dropout=0.1)
        self.fc = nn.Linear(6, 1)

    def forward(self, x):
        _, (h, _) = self.lstm(x.unsqueeze(-1).squeeze(-1))
        return self.fc(h[-1])


class Pooled(nn.Module):
    """A GRU's only state, the largest of its steps and their mean."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 6, batch_first=True)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        out, h = self.gru(x)
        return self.fc(torch.cat([h.squeeze(0), out.max(dim=1)[0], out.mean(dim=1), out[:, 0]], 1))


class PositionalEncoding(nn.Module):
    def __init__(self, width, longest=100):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        slow = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        pe = torch.zeros(1, longest, width)
        pe[0, :, 0::2] = torch.sin(position * slow)
        pe[0, :, 1::2] = torch.cos(position * slow)
        self.register_buffer("pe", pe)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class SmallEncoder(nn.Module):
    """PyTorch's own encoder over words, and the mean of its rows."""

    def __init__(self, words=40, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.pos = PositionalEncoding(width)
        layer = nn.TransformerEncoderLayer(width, 4, dim_feedforward=24, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.pos(self.embed(x) * math.sqrt(16))
        return self.head(self.encoder(x).mean(dim=1))


class CausalEncoder(nn.Module):
    """Norms first, GELU, a causal mask and a last norm; of each step."""

    def __init__(self, words=256, width=16, longest=12):
        super().__init__()
        self.tok = nn.Embedding(words, width)
        self.pos = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, 0.1, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, idx):
        b, t = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(t, device=idx.device))
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.blocks(x, mask=mask, is_causal=True))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 16, 4, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(16, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


class DropCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 8, 3, padding=1)
        self.drop, self.p = nn.Dropout2d(0.25), 0.1
        self.act = nn.ELU(1.5)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.elu(self.conv1(x)), 2)
        x = F.dropout2d(self.drop(self.act(self.conv2(x))), self.p, self.training)
        return self.fc(self.pool(F.leaky_relu(x, 0.1)).squeeze(-1).squeeze(-1))


class LayerNorm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.drop = heads, 0.1
        self.ln_1, self.ln_2 = LayerNorm(width, False), nn.LayerNorm(width, bias=False)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(self.ln_1(x)).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, None, self.drop if self.training else 0, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    """Sizes that are asked for, a loss that is not, and one table for words and scores."""

    def __init__(self, words=256, width=16, longest=10):
        super().__init__()
        self.longest = longest
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.ln_f = LayerNorm(width, True)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.longest, "too long"
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        logits, loss = self.lm_head(self.ln_f(x)), None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


class Functions(nn.Module):
    """Weights of its own, and functions."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(6, 2, 3, 3) / 4)
        self.shift = nn.Parameter(torch.zeros(6))
        self.scale = nn.Parameter(torch.ones(6))
        self.level = nn.Parameter(torch.zeros(6))
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("spread", torch.ones(6))
        self.w = nn.Parameter(torch.randn(4, 96) / 10)
        self.b = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        x = F.conv2d(x, self.filter, self.shift, stride=2, padding=1)
        x = F.batch_norm(x, self.mean, self.spread, self.scale, self.level, self.training)
        x = F.group_norm(F.leaky_relu(x), 2)
        return F.linear(x.flatten(1), self.w, bias=self.b)


class Corners(nn.Module):
    """Buffers as weights, a norm that counts and does not train, a module of two names, inputs by name."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.register_buffer("mix", torch.randn(4, 4))
        self.register_buffer("rows", torch.randn(6, 4))
        self.register_buffer("later", torch.full((6, 6), float("-inf")).triu(1))
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.BatchNorm1d(6).requires_grad_(False)
        self.act = nn.ReLU(inplace=True)
        self.body = nn.Sequential(nn.Linear(4, 4))
        self.head = self.body[0]
        self.rnn = nn.GRU(4, 3, batch_first=True)
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        x = self.norm(F.linear(self.first(input=x), self.mix) + self.rows)
        x = self.attend(key=x, query=x, value=x, need_weights=False, attn_mask=self.later)[0]
        x, _ = self.rnn(input=self.body(self.act(input=x)))
        return self.last(x.mean(axis=1))[:, 0]


class OneTable(nn.Module):
    """A table that is read by functions alone."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(256, 8))
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        x = F.embedding(x, self.table)
        return F.linear(F.rms_norm(self.norm(x), (8,)).amax(dim=1), self.table)


def quiet(make):
    """The same without dropout."""

    def made():
        net = make()
        for module in net.modules():
            for key in ("p", "dropout", "drop"):
                if isinstance(getattr(module, key, None), float):
                    setattr(module, key, 0.0)
        return net

    return made


QuietTextClassifier, QuietDeepLstm, QuietSmallEncoder = quiet(TextClassifier), quiet(DeepLstm), quiet(SmallEncoder)
QuietCausalEncoder, QuietDropCnn, QuietNanoGpt = quiet(CausalEncoder), quiet(DropCnn), quiet(NanoGpt)

# Of those above: shape, loss, types of layers.
NETWORKS = {
    "Regressor": ("13", "mse", "batchnorm leaky_relu linear"),
    "QuietTextClassifier": ("9", "cross_entropy", "concat dropout embedding gru linear reverse"),
    "BiLstm": ("7,6", "cross_entropy", "concat linear lstm pool_steps reverse"),
    "QuietDeepLstm": ("7,5", "mse", "linear lstm"),
    "Pooled": ("7,5", "cross_entropy", "concat gru linear pool_steps"),
    "QuietSmallEncoder": (
        "9",
        "cross_entropy",
        "add attention embedding layernorm linear pool_steps positions relu scale",
    ),
    "QuietCausalEncoder": ("12", "cross_entropy", "add attention embedding gelu layernorm linear positions"),
    "Discriminator": ("1,16,16", "bce", "batchnorm conv2d flatten leaky_relu"),
    "QuietDropCnn": ("3,8,8", "cross_entropy", "avgpool2d conv2d dropout2d elu flatten leaky_relu linear maxpool2d"),
    "QuietNanoGpt": ("10", "cross_entropy", "add attention dropout embedding gelu layernorm linear positions"),
    "Functions": ("2,7,7", "cross_entropy", "batchnorm conv2d flatten groupnorm leaky_relu linear"),
    "Corners": ("6,5", "mse", "attention batchnorm gru linear pool_steps positions relu"),
    "OneTable": ("6", "cross_entropy", "embedding layernorm linear pool_steps rmsnorm"),
}
