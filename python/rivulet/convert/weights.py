"""Functions of torch.nn.functional that are given their weights: F.linear(x, self.w, self.b) is what an nn.Linear does.

The weights must be parameters of the network as they are. `FUNCTIONS` says which arguments are weights and how to tell
the layer from the others and from the weights' shapes; what a module of torch.nn is built by builds it.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import fx
from torch.nn import functional

from . import layers

REQUIRED = None


class Form(NamedTuple):
    """A function: the module that does the same; its arguments behind the input, in order, with their defaults; those
    that are weights, and what our layer calls them; what builds the layer; options that the weights' shapes tell."""

    module: str
    arguments: Tuple[Tuple[str, Any], ...]
    weights: Dict[str, str]
    build: Callable[[layers.Options], List[layers.Layer]]
    options: Callable[[Dict[str, Any], Dict[str, List[int]]], Dict[str, Any]]


def _linear(given: Dict[str, Any], shapes: Dict[str, List[int]]) -> Dict[str, Any]:
    return {"out_features": shapes["weight"][0]}


def _conv(given: Dict[str, Any], shapes: Dict[str, List[int]]) -> Dict[str, Any]:
    return {"out_channels": shapes["weight"][0], "kernel_size": tuple(shapes["weight"][2:]), "padding_mode": "zeros"}


def _norm(given: Dict[str, Any], shapes: Dict[str, List[int]]) -> Dict[str, Any]:
    affine = "weight" in shapes
    return {"affine": affine, "elementwise_affine": affine, "track_running_stats": True}


def _embedding(given: Dict[str, Any], shapes: Dict[str, List[int]]) -> Dict[str, Any]:
    return {"num_embeddings": shapes["weight"][0], "embedding_dim": shapes["weight"][1]}


_BOTH = {"weight": "weight", "bias": "bias"}
_CONV = (
    ("weight", REQUIRED),
    ("bias", None),
    ("stride", 1),
    ("padding", 0),
    ("dilation", 1),
    ("groups", 1),
)
_BATCH = (
    ("running_mean", REQUIRED),
    ("running_var", REQUIRED),
    ("weight", None),
    ("bias", None),
    ("training", False),
    ("momentum", 0.1),
    ("eps", 1e-5),
)
_LAYER = (("normalized_shape", REQUIRED), ("weight", None), ("bias", None), ("eps", 1e-5))
_TABLE = (
    ("weight", REQUIRED),
    ("padding_idx", None),
    ("max_norm", None),
    ("norm_type", 2.0),
    ("scale_grad_by_freq", False),
    ("sparse", False),
)
_RUNNING = dict(_BOTH, running_mean="running_mean", running_var="running_var")

FUNCTIONS: Dict[Any, Form] = {
    functional.linear: Form("nn.Linear", (("weight", REQUIRED), ("bias", None)), _BOTH, layers.linear, _linear),
    functional.conv2d: Form("nn.Conv2d", _CONV, _BOTH, layers.conv2d, _conv),
    functional.conv1d: Form("nn.Conv1d", _CONV, _BOTH, layers.conv1d, _conv),
    functional.layer_norm: Form("nn.LayerNorm", _LAYER, _BOTH, layers.layernorm, _norm),
    functional.group_norm: Form(
        "nn.GroupNorm",
        (("num_groups", REQUIRED), ("weight", None), ("bias", None), ("eps", 1e-5)),
        _BOTH,
        layers.groupnorm,
        _norm,
    ),
    functional.batch_norm: Form("nn.BatchNorm1d or nn.BatchNorm2d", _BATCH, _RUNNING, layers.batchnorm, _norm),
    functional.embedding: Form("nn.Embedding", _TABLE, {"weight": "weight"}, layers.embedding, _embedding),
}
if hasattr(functional, "rms_norm"):  # since PyTorch 2.4
    FUNCTIONS[functional.rms_norm] = Form(
        "nn.RMSNorm",
        (("normalized_shape", REQUIRED), ("weight", None), ("eps", None)),
        {"weight": "weight"},
        layers.rmsnorm,
        _norm,
    )


def arguments_of(node: fx.Node, form: Form) -> Dict[str, Any]:
    given = dict(form.arguments)
    given.update(zip(given, node.args[1:]))
    given.update({k: v for k, v in node.kwargs.items() if k != "input"})
    return given


def weight_nodes(c: Any, node: fx.Node) -> Optional[Dict[str, fx.Node]]:
    """The weights of a call; None: one is no parameter of the network as it is."""
    form = FUNCTIONS[node.target]
    given, found = arguments_of(node, form), {}
    for name in form.weights:
        if given[name] is None:
            continue
        if (
            not isinstance(given[name], fx.Node)
            or given[name].op != "get_attr"
            or str(given[name].target) not in c.state
        ):
            return None
        found[name] = given[name]
    return found


def find(c: Any, nodes: List[fx.Node]) -> None:
    """Marks weights that such calls read: they are no operations of their own."""
    for node in nodes:
        known = node.op == "call_function" and node.target in FUNCTIONS
        names = c.state if known else c.parameters
        if node.op.startswith("call_") and node.op != "call_module":
            c.done |= {n for n in node.all_input_nodes if n.op == "get_attr" and str(n.target) in names}


def call(c: Any, node: fx.Node, what: str, where: str) -> None:
    form = FUNCTIONS[node.target]
    weights = weight_nodes(c, node)
    given = arguments_of(node, form)
    source = node.args[0] if node.args else node.kwargs.get("input")
    if weights is None or not isinstance(source, fx.Node):
        c.refuse(where, "%s: use %s, which has its weights itself" % (what, form.module))
        return
    names = {name: str(n.target) for name, n in weights.items()}
    values = {name: c.state[theirs] for name, theirs in names.items()}
    if any(v.dtype != torch.float32 for v in values.values()):
        c.refuse(where, "%s: weights are float32, call .float()" % what)
        return
    options = dict(given, **form.options(given, {k: list(v.shape) for k, v in values.items()}))
    options["bias"] = values.get("bias")
    if form.build is layers.batchnorm and not {"running_mean", "running_var"} <= set(values):
        c.refuse(where, "%s: without running statistics it has no counterpart: use %s" % (what, form.module))
        return
    lacks = [k for k in ("weight", "bias") if k not in values]
    norms = (layers.groupnorm, layers.batchnorm, layers.layernorm)
    if len(lacks) == 1 and form.build in (norms if lacks == ["weight"] else norms[:2]):
        c.refuse(where, "%s: weight and bias, or neither, are taken" % what)
        return
    used = {id(c.state_of(theirs)) for theirs in c.tensors.values()}
    lends = {id(p) for p in c.parameters.values() if id(p) in c.lenders} if form.build is layers.linear else set()
    if any(id(c.state_of(theirs)) in used - lends for theirs in names.values()):
        c.refuse(where, "%s: its weights are used before: make two; only F.linear may use an earlier weight" % what)
        return
    before = len(c.layers)
    owner = names.get("weight", node.name).rpartition(".")[0] or names.get("weight", node.name)
    c.build(node, what, where, form.build, options, [source], owner)
    if len(c.layers) == before:
        return
    layer = c.layers[-1]["name"]
    c.tensors.update({"%s.%s" % (layer, form.weights[k]): theirs for k, theirs in names.items()})
    c.zero_bias("weight" in values and "bias" not in values and form.build is layers.layernorm, values.get("weight"))
    if form.build in (layers.linear, layers.embedding):
        c.tie(id(c.state_of(names["weight"])))
