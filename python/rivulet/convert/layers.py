"""The table: what of PyTorch has a counterpart among the built-in layers, and on which conditions.

One builder for each counterpart. It reads an operation's options, whether they are the attributes of a module or the
arguments of a function, and gives the layers of the job document that do the same; what it cannot do it says by
`options.refuse`. Names and inputs of layers are the tracer's business. A layer that the trainer learns gets its builder
here, and its lines in MODULES, FUNCTIONS and METHODS.

Shapes are without the batch: [channels, height, width], or [features].
"""

import math
import operator
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

WINDOW_MAX = 1024  # of kernel, stride and padding
DROPOUT_MAX = 0.999
Layer = Dict[str, Any]
Shape = Sequence[int]


class Options:
    """One operation's options, the shapes of its input and output, and what of it is refused so far."""

    def __init__(self, values: Mapping[str, Any], shape: Shape, output: Shape) -> None:
        self.values, self.shape, self.output = values, list(shape), list(output)
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

    def pair(self, key: str) -> List[int]:
        """Height and width."""
        value = self[key]
        value = list(value) if isinstance(value, (tuple, list)) else [value]
        if not all(isinstance(v, int) and 0 <= v <= WINDOW_MAX for v in value) or len(value) not in (1, 2):
            self.refuse("%s=%r: numbers from 0 to %d are taken" % (key, self[key], WINDOW_MAX))
            return [1, 1]
        return value * 2 if len(value) == 1 else value

    def planes(self) -> bool:
        """Refuses an input that is not [channels, height, width]."""
        if len(self.shape) != 3:
            self.refuse("an example of shape %s: [channels, height, width] is taken" % self.shape)
        return len(self.shape) == 3


def linear(o: Options) -> List[Layer]:
    if len(o.shape) != 1:
        o.refuse("an example of shape %s: only a flat one is taken, put a flatten before it" % o.shape)
    return [{"type": "linear", "out": o["out_features"], "bias": o["bias"] is not None, "init": "torch"}]


def same_padding(o: Options, kernel: List[int]) -> List[int]:
    if any(k % 2 == 0 for k in kernel):
        o.refuse("padding='same' with an even kernel: both sides get the same padding here")
    return [k // 2 for k in kernel]


def conv2d(o: Options) -> List[Layer]:
    o.planes()
    o.only(dilation=1, groups=1, padding_mode="zeros")
    kernel = o.pair("kernel_size")
    words = {"same": same_padding, "valid": lambda o, kernel: [0, 0]}
    padding = words[o["padding"]](o, kernel) if o["padding"] in ("same", "valid") else o.pair("padding")
    return [
        {
            "type": "conv2d",
            "out": o["out_channels"],
            "kernel": kernel,
            "stride": o.pair("stride"),
            "padding": padding,
            "bias": o["bias"] is not None,
            "init": "torch",
        }
    ]


def pool(o: Options, kind: str) -> List[Layer]:
    o.planes()
    o.only(ceil_mode=False)
    kernel = o.pair("kernel_size")
    stride = kernel if o["stride"] in (None, (), []) else o.pair("stride")
    return [{"type": kind, "kernel": kernel, "stride": stride, "padding": o.pair("padding")}]


def maxpool2d(o: Options) -> List[Layer]:
    o.only(dilation=1, return_indices=False)
    return pool(o, "maxpool2d")


def avgpool2d(o: Options) -> List[Layer]:
    o.only(divisor_override=None)
    layers = pool(o, "avgpool2d")
    if any(layers[0]["padding"]):
        o.only(count_include_pad=True)
    return layers


def adaptive_avgpool2d(o: Options) -> List[Layer]:
    """Windows of one size that do not overlap, if the input's extents are multiples of the output's."""
    if not o.planes():
        return []
    kernel = [a // b for a, b in zip(o.shape[1:], o.output[1:])]
    if any(a % b for a, b in zip(o.shape[1:], o.output[1:])):
        o.refuse("from %s to %s: its windows are of different sizes" % (o.shape[1:], o.output[1:]))
    return [] if kernel == [1, 1] else [{"type": "avgpool2d", "kernel": kernel, "stride": kernel, "padding": [0, 0]}]


def mean(o: Options) -> List[Layer]:
    """Over height and width: an average over the whole plane."""
    dims = o["dim"] if isinstance(o["dim"], (tuple, list)) else [o["dim"]]
    o.only(dtype=None)
    if not o.planes():
        return []
    if not all(isinstance(d, int) for d in dims) or {d % 4 for d in dims} != {2, 3}:
        o.refuse("dim=%r: only the mean over height and width has a counterpart" % (o["dim"],))
    layers: List[Layer] = [{"type": "avgpool2d", "kernel": o.shape[1:], "stride": o.shape[1:], "padding": [0, 0]}]
    return layers if o["keepdim"] else layers + [{"type": "flatten"}]


def relu(o: Options) -> List[Layer]:
    return [{"type": "relu"}]


def flatten(o: Options) -> List[Layer]:
    """Also view and reshape, by what comes out."""
    if o.output == o.shape:
        return []
    if o.output != [math.prod(o.shape)]:
        o.refuse("from %s to %s: only a flat example, or the same shape, has a counterpart" % (o.shape, o.output))
    return [{"type": "flatten"}]


def dropout(o: Options) -> List[Layer]:
    if not 0 <= o["p"] <= DROPOUT_MAX:
        o.refuse("p=%r: at most %s is taken" % (o["p"], DROPOUT_MAX))
    if o["training"] is False:
        o.refuse("training=False: it does nothing; give self.training")
    return [{"type": "dropout", "rate": o["p"]}]


def add(o: Options) -> List[Layer]:
    o.only(alpha=1)
    return [{"type": "add"}]


def identity(o: Options) -> List[Layer]:
    return []


class Entry(NamedTuple):
    """A function or method: its builder and its arguments in their order, with their defaults."""

    build: Callable[[Options], List[Layer]]
    arguments: Tuple[Tuple[str, Any], ...] = ()
    tensors: int = 1  # the first so many arguments
    in_place: bool = False


REQUIRED = None
_POOL = (("kernel_size", REQUIRED), ("stride", None), ("padding", 0))
_MAX = Entry(maxpool2d, _POOL + (("dilation", 1), ("ceil_mode", False), ("return_indices", False)))
_AVERAGE = Entry(avgpool2d, _POOL + (("ceil_mode", False), ("count_include_pad", True), ("divisor_override", None)))
_ADAPTIVE = Entry(adaptive_avgpool2d, (("output_size", REQUIRED),))
_MEAN = Entry(mean, (("dim", None), ("keepdim", False), ("dtype", None)))
_RELU, _RELU_ = Entry(relu, (("inplace", False),)), Entry(relu, in_place=True)
_FLATTEN = Entry(flatten, (("start_dim", 0), ("end_dim", -1)))
_DROPOUT = Entry(dropout, (("p", 0.5), ("training", True), ("inplace", False)))
_ADD, _ADD_ = Entry(add, (("alpha", 1),), tensors=2), Entry(add, (("alpha", 1),), tensors=2, in_place=True)
_SHAPE, _SAME = Entry(flatten), Entry(identity)

# By exact type: what derives from one of these may do anything.
MODULES: Dict[type, Callable[[Options], List[Layer]]] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    nn.MaxPool2d: maxpool2d,
    nn.AvgPool2d: avgpool2d,
    nn.AdaptiveAvgPool2d: adaptive_avgpool2d,
    nn.ReLU: relu,
    nn.Flatten: flatten,
    nn.Dropout: dropout,
    nn.Identity: identity,
}

FUNCTIONS: Dict[Any, Entry] = {
    functional.max_pool2d: _MAX,
    torch.max_pool2d: _MAX,
    functional.avg_pool2d: _AVERAGE,
    functional.adaptive_avg_pool2d: _ADAPTIVE,
    functional.relu: _RELU,
    functional.relu_: _RELU_,
    torch.relu: _RELU,
    torch.relu_: _RELU_,
    functional.dropout: _DROPOUT,
    torch.flatten: _FLATTEN,
    torch.reshape: _SHAPE,
    torch.mean: _MEAN,
    torch.add: _ADD,
    operator.add: _ADD,
    operator.iadd: _ADD_,
}

METHODS: Dict[str, Entry] = {
    "relu": _RELU,
    "relu_": _RELU_,
    "flatten": _FLATTEN,
    "view": _SHAPE,
    "reshape": _SHAPE,
    "mean": _MEAN,
    "add": _ADD,
    "add_": _ADD_,
    "contiguous": _SAME,
    "clone": _SAME,
    "float": _SAME,
}

# What people are likely to have, and what to do about it.
_SOFTMAX = "leave it off: the loss cross_entropy has the softmax inside"
_NORM = "the built-in trainer has no such layer, docs/jobs.md#layers says why"
HINTS: Dict[Any, str] = {
    nn.LogSoftmax: _SOFTMAX,
    nn.Softmax: _SOFTMAX,
    functional.log_softmax: _SOFTMAX,
    functional.softmax: _SOFTMAX,
    torch.log_softmax: _SOFTMAX,
    torch.softmax: _SOFTMAX,
    "log_softmax": _SOFTMAX,
    "softmax": _SOFTMAX,
    nn.BatchNorm1d: _NORM,
    nn.BatchNorm2d: _NORM,
}
