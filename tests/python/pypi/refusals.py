"""Networks of which one line has no counterpart among the built-in layers, for test_convert.py."""

# A network for examples of shape [3, 8, 8] in which one thing has no counterpart.
HEAD = """\
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv2d(3, 3, 1)
            self.b = {made}

        def forward(self, x):
            x = self.a(x)
            {done}
            return x
    """
MADE, DONE = 10, 14  # their lines
CASES = [
    # what self.b is, what forward does, line, words
    (
        "nn.InstanceNorm2d(3)",
        "x = self.b(x)",
        MADE,
        r"b \(nn\.InstanceNorm2d\): the built-in trainer has no such layer",
    ),
    ("nn.BatchNorm2d(3, track_running_stats=False)", "x = self.b(x)", MADE, r"track_running_stats=False"),
    ("nn.BatchNorm2d(3, momentum=None)", "x = self.b(x)", MADE, r"momentum=None"),
    ("nn.LayerNorm([3, 8, 8])", "x = self.b(x)", MADE, r"only the last dimension"),
    ("nn.Sequential(nn.ReLU(), nn.Softplus())", "x = self.b(x)", MADE, r"b\.1 \(nn\.Softplus\)"),
    ("nn.Conv2d(3, 3, 3, dilation=2)", "x = self.b(x)", MADE, r"dilation=\(2, 2\)"),
    ("nn.Conv2d(3, 3, 3, padding=1, padding_mode='circular')", "x = self.b(x)", MADE, r"padding_mode='circular'"),
    ("nn.Conv2d(3, 3, 2, padding='same')", "x = self.b(x)", MADE, r"padding='same' with an even kernel"),
    ("nn.ConvTranspose2d(3, 3, 3)", "x = self.b(x)", MADE, r"ConvTranspose2d"),
    ("nn.MaxPool2d(3, ceil_mode=True)", "x = self.b(x)", MADE, r"ceil_mode=True"),
    ("nn.MaxPool2d(2, dilation=2)", "x = self.b(x)", MADE, r"dilation=2"),
    ("nn.MaxPool2d(2, return_indices=True)", "x, _ = self.b(x)", MADE, r"return_indices=True"),
    ("nn.AvgPool2d(3, padding=1, count_include_pad=False)", "x = self.b(x)", MADE, r"count_include_pad=False"),
    ("nn.AvgPool2d(2, divisor_override=3)", "x = self.b(x)", MADE, r"divisor_override=3"),
    ("nn.AdaptiveAvgPool2d(3)", "x = self.b(x)", MADE, r"windows are of different sizes"),
    ("nn.Flatten(2)", "x = self.b(x)", MADE, r"from \[3, 8, 8\] to \[3, 64\]"),
    ("nn.Linear(8, 8)", "x = self.b(x)", MADE, r"put a flatten before it"),
    ("nn.Dropout2d(1.0)", "x = self.b(x)", MADE, r"Dropout2d\): p=1\.0"),
    ("nn.LeakyReLU(-0.1)", "x = self.b(x)", MADE, r"negative_slope=-0\.1"),
    ("nn.PReLU()", "x = self.b(x)", MADE, r"nn\.LeakyReLU has a counterpart"),
    ("nn.Dropout(1.0)", "x = self.b(x)", MADE, r"p=1\.0"),
    ("nn.LogSoftmax(1)", "x = self.b(x)", MADE, r"cross_entropy has the softmax inside"),
    (
        "nn.ReLU(inplace=True)",
        "y = self.b(x); x = x + y",
        MADE + 4,
        r"works in place, and .*:14 reads what was there before",
    ),
    ("nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1))", "x = self.b(x)", MADE, r"ParametrizedConv2d"),
    ("nn.utils.weight_norm(nn.Conv2d(3, 3, 1))", "x = self.b(x)", MADE, r"hooks"),
    ("nn.Parameter(torch.ones(3, 1, 1))", "x = x * self.b", DONE, r"self\.b: weights are used by layers"),
    ("nn.Conv2d(3, 3, 1)", "x = self.b(self.b(x))", DONE, r"used twice: make two"),
    ("nn.Conv2d(3, 3, 1); self.b.weight = self.a.weight", "x = self.b(x)", MADE, r"b\.weight is a\.weight"),
    ("nn.Conv2d(3, 3, 1)", "pass", MADE, r"b\.weight: nothing on the way to the output uses it"),
    ("nn.Conv2d(3, 3, 1).double()", "x = self.b(x.double()).float()", MADE, r"weight is torch\.float64"),
    ("None", "x = torch.exp(x)", DONE, r"torch\.exp: the built-in trainer has nothing like it"),
    ("None", "x = F.selu(x)", DONE, r"F\.selu: nn\.SELU: the built-in trainer has no such layer"),
    ("None", "x = F.instance_norm(x)", DONE, r"F\.instance_norm: nn\.InstanceNorm1d or nn\.InstanceNorm2d .*no such"),
    ("None", "x = F.layer_norm(x, [8], torch.ones(8))", DONE, r"F\.layer_norm: use nn\.LayerNorm"),
    ("None", "x = F.conv2d(x, torch.ones(3, 3, 1, 1))", DONE, r"conv2d: use nn\.Conv2d"),
    ("None", "x = F.group_norm(x, 3, torch.ones(3))", DONE, r"F\.group_norm: use nn\.GroupNorm"),
    ("None", "x = F.batch_norm(x, None, None, training=True)", DONE, r"F\.batch_norm: give training=self\.training"),
    ("None", "x = F.linear(x, torch.ones(4, 8))", DONE, r"linear: use nn\.Linear"),
    ("None", "x = F.pixel_shuffle(x[:, :1], 1)", DONE, r"F\.pixel_shuffle: nn\.PixelShuffle: .* no such"),
    ("None", "x = F.softmax(x, 1)", DONE, r"F\.softmax: leave it off"),
    ("None", "x = x + torch.ones(3, 8, 8)", DONE, r"of numbers|a tensor that forward makes"),
    ("None", "x = x.max(1)[1].float()", DONE, r"places of the largest"),
    ("None", "x = x.sin()", DONE, r"Tensor\.sin"),
    ("None", "x = x * 0", DONE, r"mul: by 0\.0: a number other than 0"),
    ("nn.BatchNorm2d(3, affine=False)", "x = self.b(self.b(x))", DONE, r"used twice: make two"),
    ("None", "x = torch.div(x, 2, rounding_mode='floor')", DONE, r"torch\.div: rounding_mode='floor'"),
    ("None", "x = -x", DONE, r"neg: x \* -1 has a counterpart"),
    ("None", "x = x / x", DONE, r"truediv: only division by a number"),
    ("None", "x = x * x.mean(1, keepdim=True)", DONE, r"shapes that differ"),
    ("None", "x = x.transpose(1, 2)", DONE, r"nothing here changes the order of dimensions"),
    ("None", "x = x[:, -1]", DONE, r"getitem"),
    ("None", "x = x + 1", DONE, r"add: of numbers"),
    ("None", "x = torch.add(x, x, alpha=2)", DONE, r"alpha=2"),
    ("None", "x = x + x.mean((2, 3), keepdim=True)", DONE, r"shapes that differ"),
    ("None", "x = x.mean(1)", DONE, r"a counterpart over height and width"),
    ("None", "x = torch.cat([x, x], 2)", DONE, r"torch\.cat: dim=2"),
    ("None", "x = torch.cat([x] * 9, 1)", DONE, r"of 9: at most 8"),
    ("None", "x = x.reshape(-1, 64)", DONE, r"batch as first dimension"),
    ("None", "x = x.view(x.size(0), 3, 64)", DONE, r"only a flat example"),
    ("None", "x = F.dropout(x, 0.5)", DONE, r"it drops in evaluation, too"),
    ("None", "x = F.dropout(x, 0.5, training=False)", DONE, r"training=False"),
    ("None", "x = F.max_pool2d(x, 2, ceil_mode=True)", DONE, r"F\.max_pool2d: ceil_mode=True"),
    ("None", "x = x if x.sum() > 0 else -x", DONE, r"torch\.fx cannot follow this"),
    ("None", "x = F.relu(x) if self.training else x", 12, r"other things in training than in evaluation"),
    ("None", "x = (x, x)", 12, r"must return one tensor"),
    (
        "nn.Conv2d(3, 3, 1)",
        "\n            with torch.no_grad():\n                x = self.b(x)",
        DONE + 2,
        r"within no_grad",
    ),
]

# The same for examples of shape [6, 8], steps of a sequence; self.a is an nn.Linear.
ROWS_DONE, ATTENDED = 15, 25
ROWS_CASES = [
    ("nn.LSTM(8, 4)", "x, _ = self.b(x)", MADE, r"batch_first=False"),
    ("nn.GRU(8, 4, batch_first=True, bidirectional=True)", "_, h = self.b(x); x = h.sum(0)", MADE, r"h\[-1\], h\[-2\]"),
    ("nn.LSTM(8, 4, batch_first=True, proj_size=2)", "x, _ = self.b(x)", MADE, r"proj_size=2"),
    ("nn.LSTM(8, 4, 2, batch_first=True, dropout=1.0)", "x, _ = self.b(x)", MADE, r"dropout=1\.0"),
    ("nn.LSTM(8, 4, 5, batch_first=True)", "_, (h, _) = self.b(x); x = h[1]", MADE, r"only that of the last layer"),
    (
        "nn.LSTM(8, 8, batch_first=True)",
        "y, _ = self.b(x); x = x + y[:, -1:]",
        ROWS_DONE,
        r"shapes that differ|getitem",
    ),
    (
        "nn.GRU(8, 8, batch_first=True)",
        "y, h = self.b(x); x = y[:, 2] + h[-1]",
        ROWS_DONE,
        r"getitem: only x\[:, 0\] and x\[:, -1\]",
    ),
    ("nn.LSTM(8, 4, batch_first=True)", "_, (_, c) = self.b(x); x = c[-1]", MADE, r"nothing here reads its cells"),
    ("nn.GRU(8, 4, batch_first=True)", "x, _ = self.b(x, torch.ones(1, x.size(0), 4))", MADE, r"begins with zeros"),
    ("nn.Embedding(9, 8)", "x = self.b(x.abs().long()[:, :, 0])", ROWS_DONE, r"Tensor\.long: only the network's input"),
    ("nn.Embedding(9, 8)", "x = x + self.b(torch.arange(6))", ROWS_DONE, r"b\.weight has 9 rows"),
    ("nn.Embedding(6, 8)", "x = x + self.b(torch.arange(6).flip(0))", ROWS_DONE, r"counted from 0 by 1"),
    ("nn.MultiheadAttention(8, 2)", "x, _ = self.b(x, x, x)", MADE, r"batch_first=False"),
    ("nn.MultiheadAttention(8, 2, batch_first=True, dropout=1.0)", "x, _ = self.b(x, x, x)", MADE, r"dropout=1\.0"),
    ("nn.MultiheadAttention(8, 2, batch_first=True)", "x, _ = self.b(x, x, x.relu())", MADE, r"must be one sequence"),
    ("nn.MultiheadAttention(8, 2, batch_first=True)", "_, x = self.b(x, x, x)", MADE, r"weights of its heads"),
    (
        "nn.MultiheadAttention(8, 2, batch_first=True)",
        "x, _ = self.b(x, x, x, attn_mask=torch.ones(6, 6).tril(1) == 0)",
        MADE,
        r"the mask has no counterpart",
    ),
    ("nn.Linear(8, 24)", "x = self.c(attend(self.b(x), 'dropout'))", ATTENDED, r"it drops in evaluation, too"),
    ("nn.TransformerEncoderLayer(8, 2, 16)", "x = self.b(x)", MADE, r"batch_first=False: only batch_first=True"),
    (
        "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
        "x = self.b(self.b(x))",
        ROWS_DONE,
        r"used twice: make two",
    ),
    (
        "nn.Linear(8, 8)",
        "x = F.linear(self.b(x), self.b.weight, self.b.bias)",
        ROWS_DONE,
        r"F?\.?linear: its weights are used before",
    ),
    (
        "nn.TransformerEncoderLayer(8, 2, 16, activation=F.selu, batch_first=True)",
        "x = self.b(x)",
        MADE,
        r"relu, gelu and modules",
    ),
    (
        "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
        "x = self.b(x, src_key_padding_mask=torch.zeros(x.size(0), 6).bool())",
        MADE,
        r"src_key_padding_mask has no counterpart",
    ),
    ("nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)", "x = self.b(x, x)", MADE, r"nn\.TransformerEncoder"),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)",
        "x = self.b(x, is_causal=True)",
        MADE,
        r"give the mask, too",
    ),
    ("nn.Parameter(torch.ones(6, 8))", "x = (x + self.b).relu() + self.b", ROWS_DONE, r"positions: b is used twice: make two"),
    ("nn.Parameter(torch.ones(8))", "x = F.layer_norm(x, (8,), None, self.b)", ROWS_DONE, r"weight and bias, or neither"),
    ("nn.Linear(8, 24)", "x = self.c(attend(self.b(x), 'by heads'))", ATTENDED, r"all queries, then all keys"),
    ("nn.Linear(8, 24)", "x = attend(self.b(x), '')", ATTENDED, r"an nn\.Linear must follow"),
    ("nn.Linear(8, 24)", "x = self.c(attend(torch.relu(self.b(x)), ''))", ATTENDED, r"what one nn\.Linear gives"),
    ("nn.Linear(8, 24, bias=False)", "x = self.c(attend(self.b(x), ''))", ATTENDED, r"both nn\.Linear or none"),
    ("nn.Linear(8, 24)", "x = self.c(attend(self.b(x), 'mixed'))", ATTENDED, r"heads must lie side by side"),
    ("nn.RNN(8, 4, batch_first=True)", "_, h = self.b(x); x = h[-1]", MADE, r"nn\.RNN\): nn\.GRU and nn\.LSTM"),
    ("nn.Parameter(torch.ones(8, 3))", "x = x @ self.b", ROWS_DONE, r"self\.b: .*such as nn\.Linear.*, not by matmul"),
    (
        "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
        "x = self.b(x, src_mask=torch.ones(6, 6).tril(1) == 0)",
        MADE,
        r"the mask has no counterpart",
    ),
    ("None", "x = x @ x.transpose(1, 2)", ROWS_DONE, r"write it with nn\.MultiheadAttention"),
]
ROWS_HEAD = """\
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)
            self.b = {made}
            self.c = nn.Linear(8, 8)

        def forward(self, x):
            x = self.a(x)
            {done}
            return x


    def attend(qkv, kind):
        batch, steps, _ = qkv.shape
        if kind == "by heads":
            q, k, v = qkv.view(batch, steps, 2, 3, 4).permute(3, 0, 2, 1, 4)
        else:
            q, k, v = qkv.view(batch, steps, 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if kind == "dropout" else 0.0)
        return (x if kind == "mixed" else x.transpose(1, 2)).reshape(batch, steps, 8)
    """
