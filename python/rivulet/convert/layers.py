"""The table: what of PyTorch has a counterpart among the built-in layers, and on which conditions.

One builder for each counterpart. It reads an operation's options, whether they are the attributes of a module or the
arguments of a function, and gives the layers of the job document that do the same; what it cannot do it says by
`options.refuse`. Names and inputs of layers are the tracer's business. A layer that the trainer learns gets its builder
here, and its lines in MODULES, FUNCTIONS and METHODS.

Shapes are without the batch: [channels, height, width], [rows, width] (steps of a sequence, channels of a signal), or
[features]. What needs more than one operation, and layers that give several results, are the business of `patterns`.
"""

import math
import operator
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

WINDOW_MAX = 1024  # of kernel, stride and padding
JOIN_MAX = 8
STACK_MAX = 4
RANK_MAX = 4096
DROPOUT_MAX = 0.999
SLOPE_MAX = 1000
SCALE_MAX = 1e6
Layer = Dict[str, Any]
Shape = Sequence[int]


class Options:
    """One operation's options, the shapes of its inputs and output, and what of it is refused so far."""

    def __init__(self, values: Mapping[str, Any], shapes: Sequence[Shape], output: Shape) -> None:
        self.values, self.output = values, list(output)
        self.shapes = [list(shape) for shape in shapes]
        self.shape = self.shapes[0]
        self.refused: List[str] = []

    def __getitem__(self, key: str) -> Any:
        return self.values.get(key)

    def refuse(self, text: str) -> None:
        self.refused.append(text)

    def only(self, **wanted: Any) -> None:
        """Each of these options must have this value; (1, 1) is 1."""
        for key, value in wanted.items():
            given = self[key]
            same = all(v == value for v in given) if isinstance(given, (tuple, list)) else given == value
            if not same:
                self.refuse("%s=%r: only %s=%r has a counterpart" % (key, given, key, value))

    def numbers(self, key: str, count: int) -> List[int]:
        """One for each dimension: height and width, or a length."""
        value = self[key]
        value = list(value) if isinstance(value, (tuple, list)) else [value]
        if not all(isinstance(v, int) and 0 <= v <= WINDOW_MAX for v in value) or len(value) not in (1, count):
            self.refuse("%s=%r: numbers from 0 to %d are taken" % (key, self[key], WINDOW_MAX))
            return [1] * count
        return value * count if len(value) == 1 else value

    def takes(self, dims: int) -> bool:
        """Refuses an input of other than so many dimensions."""
        if len(self.shape) != dims:
            words = {2: "[channels, length]", 3: "[channels, height, width]"}[dims]
            self.refuse("an example of shape %s: %s is taken" % (self.shape, words))
        return len(self.shape) == dims

    def last_dimension(self, key: str) -> None:
        """What acts on the last dimension, of a flat example or of rows."""
        given = self[key]
        given = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(self.shape) == 3 or given != self.shape[-1:]:
            self.refuse(
                "an example of shape %s: only the last dimension of a flat example or of rows is taken" % self.shape
            )

    def same_shapes(self) -> None:
        if any(shape != self.shape for shape in self.shapes):
            self.refuse("of %s: shapes that differ have no counterpart" % " and ".join(map(str, self.shapes)))

    def affine(self, given: bool) -> Layer:
        """Of a norm: weight and bias, or neither."""
        return {"epsilon": self["eps"], "affine": given}

    def over(self) -> Any:
        """The dimensions of `dim`, counted from 0 with the batch as the first; None: not all are numbers."""
        rank = len(self.shape) + 1
        dims = list(self["dim"]) if isinstance(self["dim"], (tuple, list)) else [self["dim"]]
        return {d % rank for d in dims} if all(isinstance(d, int) for d in dims) else None


def linear(o: Options) -> List[Layer]:
    if len(o.shape) > 2:
        o.refuse("an example of shape %s: a flat one or rows are taken, put a flatten before it" % o.shape)
    return [{"type": "linear", "out": o["out_features"], "bias": o["bias"] is not None, "init": "torch"}]


def is_lora(module: nn.Module) -> bool:
    """A Linear that PEFT has put adapters beside; PEFT need not be there."""
    return (type(module).__module__, type(module).__name__) == ("peft.tuners.lora.layer", "Linear")


def lora(o: Options) -> List[Layer]:
    """The options are those of the Linear beneath, and the module."""
    module = o["module"]
    built = linear(o)
    names = [name for name in module.active_adapters if name in module.lora_A]
    if type(module.base_layer) is not nn.Linear or module.merged or module.disable_adapters or len(names) != 1:
        o.refuse("one adapter of an nn.Linear, active and not merged, has a counterpart")
        return built
    (name,) = names
    if type(module.lora_dropout[name]) is not nn.Identity:
        o.refuse("lora_dropout: only 0 has a counterpart")
    other = name in getattr(module, "lora_variant", {}) or module.use_dora.get(name)
    if other or module.lora_B[name].bias is not None:
        o.refuse("DoRA and other variants, and lora_bias, have no counterpart")
    rank = module.r[name]
    if rank > min(module.in_features, module.out_features, RANK_MAX):
        o.refuse("r=%d: at most the smaller of inputs and outputs is taken, and %d" % (rank, RANK_MAX))
    built[0]["lora"] = {"rank": rank, "alpha": module.scaling[name] * rank}
    return built


def same_padding(o: Options, kernel: List[int]) -> List[int]:
    if any(k % 2 == 0 for k in kernel):
        o.refuse("padding='same' with an even kernel: both sides get the same padding here")
    return [k // 2 for k in kernel]


def convolution(o: Options, dims: int) -> Layer:
    """dims: 1 or 2."""
    o.takes(dims + 1)
    o.only(dilation=1, padding_mode="zeros")
    kernel = o.numbers("kernel_size", dims)
    if o["padding"] == "same":
        padding = same_padding(o, kernel)
    else:
        padding = [0] * dims if o["padding"] == "valid" else o.numbers("padding", dims)
    return {
        "type": "conv%dd" % dims,
        "out": o["out_channels"],
        "kernel": kernel,
        "stride": o.numbers("stride", dims),
        "padding": padding,
        "groups": o["groups"],
        "bias": o["bias"] is not None,
        "init": "torch",
    }


def conv2d(o: Options) -> List[Layer]:
    return [convolution(o, 2)]


def conv1d(o: Options) -> List[Layer]:
    layer = convolution(o, 1)
    return [{k: v[0] if isinstance(v, list) else v for k, v in layer.items()}]


def pool(o: Options, kind: str, dims: int) -> List[Layer]:
    """A signal's window has height 1."""
    o.takes(dims + 1)
    o.only(ceil_mode=False)
    kernel = o.numbers("kernel_size", dims)
    stride = kernel if o["stride"] in (None, (), []) else o.numbers("stride", dims)
    padding = o.numbers("padding", dims)
    if dims == 1:
        kernel, stride, padding = [1] + kernel, [1] + stride, [0] + padding
    return [{"type": kind, "kernel": kernel, "stride": stride, "padding": padding}]


def maxpool2d(o: Options, dims: int = 2) -> List[Layer]:
    o.only(dilation=1, return_indices=False)
    return pool(o, "maxpool2d", dims)


def avgpool2d(o: Options, dims: int = 2) -> List[Layer]:
    o.only(divisor_override=None)
    layers = pool(o, "avgpool2d", dims)
    if any(layers[0]["padding"]):
        o.only(count_include_pad=True)
    return layers


def maxpool1d(o: Options) -> List[Layer]:
    return maxpool2d(o, 1)


def avgpool1d(o: Options) -> List[Layer]:
    return avgpool2d(o, 1)


def adaptive_avgpool2d(o: Options, dims: int = 2, kind: str = "avgpool2d") -> List[Layer]:
    """Windows of one size that do not overlap, if the input's extents are multiples of the output's."""
    if not o.takes(dims + 1):
        return []
    extents = list(zip(o.shape[1:], o.output[1:]))
    kernel = [1] * (2 - dims) + [a // b for a, b in extents]
    if any(a % b for a, b in extents):
        o.refuse("from %s to %s: its windows are of different sizes" % (o.shape[1:], o.output[1:]))
    return [] if kernel == [1, 1] else [{"type": kind, "kernel": kernel, "stride": kernel, "padding": [0, 0]}]


def adaptive_avgpool1d(o: Options) -> List[Layer]:
    return adaptive_avgpool2d(o, 1)


def adaptive_maxpool2d(o: Options, dims: int = 2) -> List[Layer]:
    o.only(return_indices=False)
    return adaptive_avgpool2d(o, dims, "maxpool2d")


def adaptive_maxpool1d(o: Options) -> List[Layer]:
    return adaptive_maxpool2d(o, 1)


def reduce(o: Options, by: str) -> List[Layer]:
    """Over the steps of a sequence, over height and width, or over a signal's length. by: mean or max."""
    rank, dims = len(o.shape) + 1, o.over()
    if rank == 3 and dims == {1} and not o["keepdim"]:
        return [{"type": "pool_steps", "by": by}]
    if rank < 3 or dims != set(range(2, rank)):
        o.refuse(
            "dim=%r of [batch, %s]: it has a counterpart over height and width, over the steps of a sequence (dim=1, "
            "without keepdim) and over a signal's length (dim=2)" % (o["dim"], ", ".join(map(str, o.shape)))
        )
        return []
    if not o["keepdim"] and rank == 3 and by == "mean":
        return [{"type": "global_avgpool"}]
    kernel = [1] * (4 - rank) + o.shape[1:]
    kind = "avgpool2d" if by == "mean" else "maxpool2d"
    if max(kernel) > WINDOW_MAX:
        o.refuse("over %s: a window of at most %d is taken" % (o.shape[1:], WINDOW_MAX))
    layers: List[Layer] = [{"type": kind, "kernel": kernel, "stride": kernel, "padding": [0, 0]}]
    return layers if o["keepdim"] else layers + [{"type": "flatten"}]


def mean(o: Options) -> List[Layer]:
    o.only(dtype=None)
    return reduce(o, "mean")


def amax(o: Options) -> List[Layer]:
    return reduce(o, "max")


def take_step(o: Options) -> List[Layer]:
    """x[:, 0] or x[:, -1] of a sequence, the row of one step."""
    index, whole = o["index"], slice(None)
    index = list(index) if isinstance(index, tuple) else [index]
    while len(index) > 2 and index[-1] == whole:
        index.pop()
    steps = o.shape[0] if len(o.shape) == 2 else 0
    if o.shape == [1] and index in ([whole, 0], [whole, -1]):
        return []  # one output, which is flat already
    if len(index) != 2 or index[0] != whole or not steps or index[1] not in (0, -1, steps - 1):
        o.refuse("only x[:, 0] and x[:, -1] of [batch, steps, width], the first and the last step, have a counterpart")
        return []
    return [{"type": "pool_steps", "by": "first" if index[1] == 0 else "last"}]


def simple(kind: str) -> Callable[[Options], List[Layer]]:
    """A layer without options."""
    return lambda o: [{"type": kind}]


relu, relu6, sigmoid, tanh = simple("relu"), simple("relu6"), simple("sigmoid"), simple("tanh")
silu, hardswish = simple("silu"), simple("hardswish")


def gelu(o: Options) -> List[Layer]:
    return [{"type": "gelu", "approximate": o["approximate"]}]


def leaky(o: Options) -> List[Layer]:
    if not 0 <= o["negative_slope"] <= SLOPE_MAX:
        o.refuse("negative_slope=%r: 0 to %d is taken" % (o["negative_slope"], SLOPE_MAX))
    return [{"type": "leaky_relu", "slope": o["negative_slope"]}]


def elu(o: Options) -> List[Layer]:
    if not 0 <= o["alpha"] <= SLOPE_MAX:
        o.refuse("alpha=%r: 0 to %d is taken" % (o["alpha"], SLOPE_MAX))
    return [{"type": "elu", "alpha": o["alpha"]}]


def groupnorm(o: Options) -> List[Layer]:
    return [dict({"type": "groupnorm", "groups": o["num_groups"]}, **o.affine(o["affine"]))]


def layernorm(o: Options) -> List[Layer]:
    o.last_dimension("normalized_shape")
    return [dict({"type": "layernorm"}, **o.affine(o["elementwise_affine"]))]


def rmsnorm(o: Options) -> List[Layer]:
    o.last_dimension("normalized_shape")
    epsilon = torch.finfo(torch.float32).eps if o["eps"] is None else o["eps"]
    return [{"type": "rmsnorm", "epsilon": epsilon, "affine": o["elementwise_affine"]}]


def batchnorm(o: Options) -> List[Layer]:
    o.only(track_running_stats=True)
    if o["momentum"] is None:
        o.refuse("momentum=None: a number is taken")
    return [dict({"type": "batchnorm", "momentum": o["momentum"]}, **o.affine(o["affine"]))]


def embedding(o: Options) -> List[Layer]:
    o.only(padding_idx=None, max_norm=None, scale_grad_by_freq=False, sparse=False)
    return [{"type": "embedding", "vocabulary": o["num_embeddings"], "out": o["embedding_dim"]}]


def attention(o: Options) -> List[Layer]:
    """nn.MultiheadAttention; whether it is causal is found out by its mask."""
    o.only(batch_first=True, bias_k=None, bias_v=None, add_zero_attn=False, _qkv_same_embed_dim=True)
    if not 0 <= o["dropout"] <= DROPOUT_MAX:
        o.refuse("dropout=%r: at most %s is taken" % (o["dropout"], DROPOUT_MAX))
    bias = o["in_proj_bias"] is not None
    return [{"type": "attention", "heads": o["num_heads"], "bias": bias, "dropout": o["dropout"]}]


def flatten(o: Options) -> List[Layer]:
    """Also view, reshape, squeeze and unsqueeze, by what comes out. One number is flat, whether it is [1] or []."""
    if o.output == o.shape or len(o.output) + len(o.shape) == 1:
        return []
    if o.output not in ([math.prod(o.shape)], []):
        o.refuse("from %s to %s: only a flat example, or the same shape, has a counterpart" % (o.shape, o.output))
    return [{"type": "flatten"}]


def dropout(o: Options, kind: str = "dropout") -> List[Layer]:
    if not 0 <= o["p"] <= DROPOUT_MAX:
        o.refuse("p=%r: at most %s is taken" % (o["p"], DROPOUT_MAX))
    if o["training"] is False:
        o.refuse("training=False: it does nothing; give self.training")
    return [{"type": kind, "rate": o["p"]}]


def dropout2d(o: Options) -> List[Layer]:
    """Of whole channels."""
    if len(o.shape) < 2:
        o.refuse("an example of shape %s has no channels" % o.shape)
    return dropout(o, "dropout2d")


def add(o: Options) -> List[Layer]:
    o.only(alpha=1)
    o.same_shapes()
    return [{"type": "add"}]


def multiply(o: Options) -> List[Layer]:
    """The second input may be one value for each channel; so may the first, which the tracer puts second."""
    if o.shapes[1] != o.shape[:1] + [1, 1] or len(o.shape) != 3:
        o.same_shapes()
    return [{"type": "multiply"}]


def scale(o: Options) -> List[Layer]:
    """Times a number, or divided by one."""
    if not 0 < abs(o["by"]) <= SCALE_MAX:
        o.refuse("by %r: a number other than 0 is taken, of at most %g" % (o["by"], SCALE_MAX))
    return [] if o["by"] == 1 else [{"type": "scale", "by": o["by"]}]


def divide(o: Options) -> List[Layer]:
    o.refuse("only division by a number has a counterpart")
    return []


def concat(o: Options) -> List[Layer]:
    rank = len(o.shape) + 1
    dim = o["dim"] % rank if isinstance(o["dim"], int) else 0
    if dim == 0 or dim > (2 if rank == 3 else 1):
        o.refuse("dim=%r: only channels or features, and the width of rows, have a counterpart" % (o["dim"],))
    if len(o.shapes) > JOIN_MAX:
        o.refuse("of %d: at most %d are taken" % (len(o.shapes), JOIN_MAX))
    return [] if len(o.shapes) == 1 else [{"type": "concat", "dim": dim}]


def identity(o: Options) -> List[Layer]:
    return []


class Entry(NamedTuple):
    """A function or method: its builder and its arguments in their order, with their defaults."""

    build: Callable[[Options], List[Layer]]
    arguments: Tuple[Tuple[str, Any], ...] = ()
    tensors: int = 1  # the first so many arguments; 0: a list, the first
    in_place: bool = False


REQUIRED = None
_POOL = (("kernel_size", REQUIRED), ("stride", None), ("padding", 0))
_MAX = Entry(maxpool2d, _POOL + (("dilation", 1), ("ceil_mode", False), ("return_indices", False)))
_AVERAGE = Entry(avgpool2d, _POOL + (("ceil_mode", False), ("count_include_pad", True), ("divisor_override", None)))
_MAX1 = _MAX._replace(build=maxpool1d)
_AVERAGE1 = Entry(avgpool1d, _POOL + (("ceil_mode", False), ("count_include_pad", True)))
_ADAPTIVE1 = Entry(adaptive_avgpool1d, (("output_size", REQUIRED),))
_ADAPTIVE = Entry(adaptive_avgpool2d, (("output_size", REQUIRED),))
_ADAPTIVE_MAX = Entry(adaptive_maxpool2d, (("output_size", REQUIRED), ("return_indices", False)))
_MEAN = Entry(mean, (("dim", None), ("keepdim", False), ("dtype", None)))
_RELU, _RELU_ = Entry(relu, (("inplace", False),)), Entry(relu, in_place=True)
_CURVES = {
    kind: Entry(simple(kind), (("inplace", False),)) for kind in ("relu6", "sigmoid", "tanh", "silu", "hardswish")
}
_CURVES_ = {kind: Entry(simple(kind), in_place=True) for kind in ("relu6", "sigmoid", "tanh")}
_GELU = Entry(gelu, (("approximate", "none"),))
_MULTIPLY, _MULTIPLY_ = Entry(multiply, tensors=2), Entry(multiply, tensors=2, in_place=True)
_DIVIDE = Entry(divide, tensors=2)
_CONCAT = Entry(concat, (("dim", 0),), tensors=0)
_FLATTEN = Entry(flatten, (("start_dim", 0), ("end_dim", -1)))
_DROPOUT = Entry(dropout, (("p", 0.5), ("training", True), ("inplace", False)))
_DROPOUT2D = _DROPOUT._replace(build=dropout2d)
_LEAKY = Entry(leaky, (("negative_slope", 0.01), ("inplace", False)))
_ELU = Entry(elu, (("alpha", 1.0), ("inplace", False)))
_AMAX = Entry(amax, (("dim", None), ("keepdim", False)))
_STEP = Entry(take_step, (("index", REQUIRED),))
_ADD, _ADD_ = Entry(add, (("alpha", 1),), tensors=2), Entry(add, (("alpha", 1),), tensors=2, in_place=True)
_SHAPE, _SAME = Entry(flatten), Entry(identity)


def factor(entry: Entry, given: Sequence[Any]) -> Any:
    """The number that a product or quotient is with; None: there is none."""
    if entry.build not in (multiply, divide) or len(given) != 2:
        return None
    number = [isinstance(g, (int, float)) and not isinstance(g, bool) for g in given]
    if entry.build is divide:
        return 1.0 / given[1] if number[1] and given[1] != 0 else None
    return float(given[number.index(True)]) if any(number) else None


# By exact type: what derives from one of these may do anything.
MODULES: Dict[type, Callable[[Options], List[Layer]]] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    nn.Conv1d: conv1d,
    nn.MaxPool2d: maxpool2d,
    nn.MaxPool1d: maxpool1d,
    nn.AvgPool2d: avgpool2d,
    nn.AvgPool1d: avgpool1d,
    nn.AdaptiveAvgPool2d: adaptive_avgpool2d,
    nn.AdaptiveAvgPool1d: adaptive_avgpool1d,
    nn.AdaptiveMaxPool2d: adaptive_maxpool2d,
    nn.AdaptiveMaxPool1d: adaptive_maxpool1d,
    nn.ReLU: relu,
    nn.ReLU6: relu6,
    nn.Sigmoid: sigmoid,
    nn.Tanh: tanh,
    nn.GELU: gelu,
    nn.SiLU: silu,
    nn.Hardswish: hardswish,
    nn.GroupNorm: groupnorm,
    nn.LayerNorm: layernorm,
    nn.BatchNorm1d: batchnorm,
    nn.BatchNorm2d: batchnorm,
    nn.Embedding: embedding,
    nn.LSTM: identity,
    nn.GRU: identity,
    nn.MultiheadAttention: attention,
    nn.Flatten: flatten,
    nn.LeakyReLU: leaky,
    nn.ELU: elu,
    nn.Dropout: dropout,
    nn.Dropout1d: dropout2d,
    nn.Dropout2d: dropout2d,
    nn.TransformerEncoderLayer: attention,
    nn.TransformerEncoder: attention,
    nn.Identity: identity,
}
if hasattr(nn, "RMSNorm"):  # since PyTorch 2.4
    MODULES[nn.RMSNorm] = rmsnorm

ACTIVATIONS = {nn.ReLU, nn.ReLU6, nn.Sigmoid, nn.Tanh, nn.GELU, nn.SiLU, nn.Hardswish, nn.LeakyReLU, nn.ELU}

FUNCTIONS: Dict[Any, Entry] = {
    functional.max_pool2d: _MAX,
    torch.max_pool2d: _MAX,
    functional.avg_pool2d: _AVERAGE,
    functional.adaptive_avg_pool2d: _ADAPTIVE,
    functional.relu: _RELU,
    functional.relu_: _RELU_,
    torch.relu: _RELU,
    torch.relu_: _RELU_,
    functional.max_pool1d: _MAX1,
    torch.max_pool1d: _MAX1,
    functional.avg_pool1d: _AVERAGE1,
    functional.adaptive_avg_pool1d: _ADAPTIVE1,
    functional.adaptive_max_pool2d: _ADAPTIVE_MAX,
    functional.adaptive_max_pool1d: _ADAPTIVE_MAX._replace(build=adaptive_maxpool1d),
    functional.relu6: _CURVES["relu6"],
    functional.sigmoid: _CURVES["sigmoid"],
    torch.sigmoid: _CURVES["sigmoid"],
    torch.sigmoid_: _CURVES_["sigmoid"],
    functional.tanh: _CURVES["tanh"],
    torch.tanh: _CURVES["tanh"],
    torch.tanh_: _CURVES_["tanh"],
    functional.silu: _CURVES["silu"],
    functional.hardswish: _CURVES["hardswish"],
    functional.gelu: _GELU,
    torch.cat: _CONCAT,
    torch.concat: _CONCAT,
    torch.mul: _MULTIPLY,
    operator.mul: _MULTIPLY,
    operator.imul: _MULTIPLY_,
    operator.truediv: _DIVIDE,
    torch.div: _DIVIDE,
    functional.leaky_relu: _LEAKY,
    functional.leaky_relu_: _LEAKY._replace(in_place=True),
    functional.elu: _ELU,
    functional.elu_: _ELU._replace(in_place=True),
    functional.dropout: _DROPOUT,
    functional.dropout1d: _DROPOUT2D,
    functional.dropout2d: _DROPOUT2D,
    torch.flatten: _FLATTEN,
    torch.reshape: _SHAPE,
    torch.squeeze: _SHAPE,
    torch.unsqueeze: _SHAPE,
    torch.mean: _MEAN,
    torch.amax: _AMAX,
    operator.getitem: _STEP,
    torch.add: _ADD,
    operator.add: _ADD,
    operator.iadd: _ADD_,
}

METHODS: Dict[str, Entry] = {
    "relu": _RELU,
    "relu_": _RELU_,
    "sigmoid": _CURVES["sigmoid"],
    "sigmoid_": _CURVES_["sigmoid"],
    "tanh": _CURVES["tanh"],
    "tanh_": _CURVES_["tanh"],
    "mul": _MULTIPLY,
    "mul_": _MULTIPLY_,
    "div": _DIVIDE,
    "flatten": _FLATTEN,
    "view": _SHAPE,
    "reshape": _SHAPE,
    "squeeze": _SHAPE,
    "unsqueeze": _SHAPE,
    "mean": _MEAN,
    "amax": _AMAX,
    "add": _ADD,
    "add_": _ADD_,
    "contiguous": _SAME,
    "clone": _SAME,
    "float": _SAME,
    "long": _SAME,
    "int": _SAME,
}

# What people are likely to have, and what to do about it.
_SOFTMAX = "leave it off: the loss cross_entropy has the softmax inside"
_TURN = "nothing here changes the order of dimensions, but for the heads of an attention"
_ENCODER = "nn.TransformerEncoder(Layer) has a counterpart, of a language model with a causal mask"
_NUMBERS = "of numbers, it has no counterpart; x * x has"
_NEGATIVE = "x * -1 has a counterpart"
_MINUS = "a + b * -1 has a counterpart, of two tensors"
_PARTS = "write it with nn.MultiheadAttention, or F.scaled_dot_product_attention: docs/convert.md"
HINTS: Dict[Any, str] = {
    nn.LogSoftmax: _SOFTMAX,
    nn.Softmax: _SOFTMAX,
    functional.log_softmax: _SOFTMAX,
    functional.softmax: _SOFTMAX,
    torch.log_softmax: _SOFTMAX,
    torch.softmax: _SOFTMAX,
    "log_softmax": _SOFTMAX,
    "softmax": _SOFTMAX,
    torch.transpose: _TURN,
    torch.permute: _TURN,
    "transpose": _TURN,
    "permute": _TURN,
    torch.matmul: _PARTS,
    operator.matmul: _PARTS,
    nn.Transformer: _ENCODER,
    nn.TransformerDecoder: _ENCODER,
    nn.TransformerDecoderLayer: _ENCODER,
    nn.RNN: "nn.GRU and nn.LSTM have a counterpart",
    nn.PReLU: "nn.LeakyReLU has a counterpart, its slope does not train",
    operator.neg: _NEGATIVE,
    torch.neg: _NEGATIVE,
    "neg": _NEGATIVE,
    operator.sub: _MINUS,
    torch.sub: _MINUS,
    "sub": _MINUS,
    operator.pow: _NUMBERS,
    torch.pow: _NUMBERS,
    "float_power": _NUMBERS,
    "pow": _NUMBERS,
}


def modules_of(name: str) -> List[str]:
    """The modules of torch.nn that do what a function of torch.nn.functional does: of batch_norm, BatchNorm1d, too."""
    wanted = name.strip("_").replace("_", "").lower()
    found = [k for k, v in vars(nn).items() if isinstance(v, type) and re.sub(r"[123]d$", "", k).lower() == wanted]
    return found or [k for k, v in vars(nn).items() if isinstance(v, type) and k.lower() == wanted]


def hint(function: Any) -> str:
    """What to write in place of a function that has no counterpart as it is called."""
    if function in HINTS:
        return HINTS[function]
    name = str(getattr(function, "__name__", function))
    names = modules_of(name)
    names = {"multi_head_attention_forward": ["MultiheadAttention"]}.get(name, names)
    known = [k for k in names if getattr(nn, k) in MODULES]
    if known:
        return "use %s" % " or ".join("nn." + k for k in known)
    if names:
        return "%s: the built-in trainer has no such layer" % " or ".join("nn." + k for k in names)
    return "the built-in trainer has nothing like it"
