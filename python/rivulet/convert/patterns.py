"""What takes several operations in PyTorch and is one layer here, or gives several results there.

`find` looks at the whole graph before the tracer walks it: attention by F.scaled_dot_product_attention between two
Linear layers, positions that are added to a sequence. Whether views and transpositions put the heads where our layer
has them is tried out with numbers, whichever way it is written.
"""

import operator
from typing import Any, Dict, List, Optional, Set, Tuple

import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional

from . import layers

ATTEND = getattr(functional, "scaled_dot_product_attention", None)
# What moves elements and does not change them.
MOVES = set("view reshape transpose permute contiguous chunk split unbind flatten unflatten swapaxes".split())
MOVE_FUNCTIONS = {operator.getitem} | {getattr(torch, name) for name in MOVES if hasattr(torch, name)}
SIZES = {"size", "dim", "numel"}


class Refused(Exception):
    """Why a pattern is none."""


class Values(ShapeProp):
    """Shapes, and what each operation gave."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.found: Dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.found[n] = super().run_node(n)
        return self.found[n]


def is_size(node: fx.Node) -> bool:
    return (node.op == "call_method" and node.target in SIZES) or node.target is getattr


def constants(graph: fx.Graph) -> Set[fx.Node]:
    """What does not depend on the input, but for its size."""
    depend: Set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" or (not is_size(node) and any(n in depend for n in node.all_input_nodes)):
            depend.add(node)
    return {n for n in graph.nodes if n not in depend}


def moves(node: fx.Node) -> bool:
    return (node.op == "call_method" and node.target in MOVES) or (
        node.op == "call_function" and node.target in MOVE_FUNCTIONS
    )


def argument(node: fx.Node, at: int, name: str, default: Any = None) -> Any:
    return node.args[at] if len(node.args) > at else node.kwargs.get(name, default)


def again(node: Any, known: Dict[fx.Node, Any], values: Dict[fx.Node, Any]) -> Any:
    """What an operation makes of other inputs."""
    if node in known or not moves(node):
        return known.get(node, values.get(node))
    args = fx.node.map_arg(node.args, lambda n: again(n, known, values))
    kwargs = fx.node.map_arg(node.kwargs, lambda n: again(n, known, values))
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


class Attention:
    """A Linear, heads, F.scaled_dot_product_attention, heads again, a Linear."""

    def __init__(self, c: Any, node: fx.Node) -> None:
        self.c, self.node = c, node
        self.inside: Set[fx.Node] = {node}

    def linear(self, node: fx.Node) -> Optional[nn.Linear]:
        module = self.c.modules.get(str(node.target)) if node.op == "call_module" else None
        return module if type(module) is nn.Linear else None

    def root(self, node: Any) -> fx.Node:
        """The Linear that queries, keys or values come from."""
        while isinstance(node, fx.Node) and moves(node):
            self.inside.add(node)
            node = node.args[0]
        if not isinstance(node, fx.Node) or self.linear(node) is None:
            raise Refused("queries, keys and values must be what one nn.Linear gives")
        self.inside.add(node)
        return node

    def end(self) -> fx.Node:
        node = self.node
        while node is self.node or moves(node):
            users = [u for u in node.users if u in self.c.order and not is_size(u)]
            if len(users) != 1:
                raise Refused("an nn.Linear must follow, and nothing else")
            (node,) = users
            self.inside.add(node)
        if self.linear(node) is None:
            raise Refused("an nn.Linear must follow")
        return node

    def heads(self, root: fx.Node, parts: List[Any]) -> int:
        """How many, if they lie where our layer has them."""
        shape = self.c.found[root].shape
        numbers = torch.arange(shape.numel()).reshape(shape)
        given = [again(part, {root: numbers}, self.c.found) for part in parts]
        if given[0].dim() != 4 or len(shape) != 3:
            raise Refused("of shape %s: [batch, heads, steps, width] is taken" % list(given[0].shape))
        heads = given[0].shape[1]
        wanted = numbers.reshape(shape[0], shape[1], 3, heads, -1).permute(2, 0, 3, 1, 4)
        if not all(torch.equal(a, b) for a, b in zip(given, wanted)):
            raise Refused("all queries, then all keys, then all values, each by heads, is what the Linear must give")
        return int(heads)

    def check_end(self, end: fx.Node) -> None:
        shape = self.c.found[self.node].shape
        numbers = torch.arange(shape.numel()).reshape(shape)
        given = again(end.args[0], {self.node: numbers}, self.c.found)
        wanted = numbers.transpose(1, 2).reshape(shape[0], shape[2], -1)
        if given.shape != wanted.shape or not torch.equal(given, wanted):
            raise Refused("the heads must lie side by side in what the last nn.Linear reads")

    def options(self) -> bool:
        """Is it causal?"""
        mask = argument(self.node, 3, "attn_mask")
        if not 0 <= argument(self.node, 4, "dropout_p", 0.0) <= layers.DROPOUT_MAX:
            raise Refused("dropout_p: 0 to %s is taken" % layers.DROPOUT_MAX)
        for key in ("scale", "enable_gqa"):
            if self.node.kwargs.get(key):
                raise Refused("%s=%r has no counterpart" % (key, self.node.kwargs[key]))
        if mask is None:
            return bool(argument(self.node, 5, "is_causal", False))
        return bool(self.c.causal(mask, True))

    def match(self) -> Tuple[fx.Node, fx.Node, Dict[str, Any]]:
        parts = [argument(self.node, i, name) for i, name in enumerate(("query", "key", "value"))]
        roots = {self.root(part) for part in parts}
        if len(roots) != 1:
            raise Refused("one nn.Linear must give queries, keys and values, not %d" % len(roots))
        root, end = roots.pop(), self.end()
        causal, heads = self.options(), self.heads(root, parts)
        self.check_end(end)
        first, last = self.linear(root), self.linear(end)
        assert first is not None and last is not None
        if first.out_features != 3 * first.in_features or (last.in_features, last.out_features) != (
            first.in_features,
            first.in_features,
        ):
            raise Refused("its width must be that of the sequence, before and after")
        if (first.bias is None) != (last.bias is None):
            raise Refused("both nn.Linear or none must have a bias")
        if any(
            u in self.c.order and u not in self.inside and not is_size(u) for n in self.inside - {end} for u in n.users
        ):
            raise Refused("something else reads what lies between")
        layer = {"type": "attention", "heads": heads, "causal": causal, "bias": first.bias is not None}
        return root, end, dict(layer, dropout=argument(self.node, 4, "dropout_p", 0.0))

    def write(self, root: fx.Node, end: fx.Node, layer: Dict[str, Any]) -> None:
        """The layer is called as the module that holds both Linear layers."""
        c, names = self.c, (str(root.target), str(end.target))
        for node, name in ((root, names[0]), (end, names[1])):
            c.check_module(node, c.modules[name], "%s (nn.Linear)" % name, c.place_of(node))
        holder = names[0].rpartition(".")[0] or "attention"
        c.values[end] = c.append([layer], holder, [c.source(root.args[0])])
        ours = c.layers[-1]["name"]
        for name, kinds in zip(names, (("in_proj_weight", "in_proj_bias"), ("out_proj.weight", "out_proj.bias"))):
            for kind, theirs in zip(kinds, ("weight", "bias") if layer["bias"] else ("weight",)):
                c.tensors["%s.%s" % (ours, kind)] = "%s.%s" % (name, theirs)


def moved(c: Any, node: fx.Node) -> Set[fx.Node]:
    """What only moves its elements afterwards."""
    found = {u for u in c.users(node) if moves(u)}
    return found.union(*(moved(c, u) for u in found))


def find_attention(c: Any, node: fx.Node) -> None:
    a = Attention(c, node)
    try:
        root, end, layer = a.match()
        if c.shape(root.args[0]) is None or len(c.shape(root.args[0])) != 2:
            raise Refused("an example must be [steps, width]")
    except Refused as e:
        text = str(e)
        c.planned[node] = lambda: c.refuse(c.place_of(node), "F.scaled_dot_product_attention: %s" % text)
        a.inside |= moved(c, node)
        c.done |= a.inside - {node}
        c.called |= {id(c.modules[str(n.target)]) for n in a.inside if n.op == "call_module"}
        return
    c.done |= a.inside - {end}
    c.planned[end] = lambda: a.write(root, end, layer)


def has_parameters(c: Any, node: fx.Node) -> bool:
    """Does something that trains go into it?"""
    for n in ancestors(node) | {node}:
        if n.op == "get_attr" and str(n.target) in c.parameters:
            return True
        if n.op == "call_module" and any(True for _ in c.modules[str(n.target)].parameters()):
            return True
    return False


def parameter_of(c: Any, node: Any) -> Tuple[str, torch.Tensor]:
    """The name and value of the parameter or buffer that a constant is, as a whole; "": it is none, such as the
    beginning of a table of sines."""
    value = c.found[node]
    if not has_parameters(c, node) and value.dtype == torch.float32:
        path = {n for n in ancestors(node) | {node} if n in c.constants}
        c.done |= path
        c.called |= {id(c.modules.get(str(n.target).rpartition(".")[0])) for n in path if n.op == "get_attr"}
        whole = node.op == "get_attr" and str(node.target) in c.state
        return (str(node.target) if whole else ""), value
    path = {node}
    while moves(node):
        node = node.args[0]
        path.add(node)
    if node.op == "get_attr":
        name = str(node.target)
        p = dict(c.net.named_parameters()).get(name)
        if p is None:
            raise Refused("")
    else:
        module = c.modules.get(str(node.target)) if node.op == "call_module" else None
        if type(module) is not nn.Embedding:
            raise Refused("")
        steps = c.found[node.args[0]]
        if not torch.equal(steps.flatten(), torch.arange(steps.numel())):
            raise Refused("positions must be counted from 0 by 1")
        name, p = "%s.weight" % node.target, module.weight
        path |= {n for n in c.constants if n in ancestors(node)}
        c.check_module(node, module, "%s (nn.Embedding)" % node.target, c.place_of(node))
    if p.numel() != value.numel():
        raise Refused(
            "%s has %d rows: it must have one for each of the %d steps" % (name, p.shape[-2], value.shape[-2])
        )
    c.done |= path
    return name, p


def ancestors(node: fx.Node) -> Set[fx.Node]:
    found, left = set(), [node]
    while left:
        for n in left.pop().all_input_nodes:
            if n not in found:
                found.add(n)
                left.append(n)
    return found


def find_positions(c: Any, node: fx.Node) -> None:
    """x + positions, one row for each step."""
    pair = [argument(node, i, name) for i, name in enumerate(("input", "other"))]
    rows = [n for n in pair if n in c.constants and isinstance(c.found.get(n), torch.Tensor)]
    others = [n for n in pair if isinstance(n, fx.Node) and n not in c.constants]
    if len(rows) != 1 or len(others) != 1 or node.kwargs.get("alpha", 1) != 1:
        return
    shape, value = c.shape(others[0]), c.found[rows[0]]
    if shape is None or len(shape) != 2 or list(value.shape) not in (shape, [1] + shape):
        return
    try:
        name, p = parameter_of(c, rows[0])
    except Refused as e:
        text = str(e)
        if text:
            c.planned[node] = lambda: c.refuse(c.place_of(node), "positions: %s" % text)
            c.done |= {n for n in ancestors(rows[0]) | {rows[0]} if n in c.constants}
            c.called |= {id(c.modules[str(n.target)]) for n in c.done if n.op == "call_module"}
        return

    def write() -> None:
        if name in c.tensors.values() and c.state_of(name).requires_grad:
            c.refuse(c.place_of(node), "positions: %s is used twice: make two" % name)
            return
        wanted = name[: -len(".weight")] if name.endswith(".weight") else name or "positions"
        c.values[node] = c.append([{"type": "positions"}], wanted, [c.source(others[0])])
        ours = c.layers[-1]["name"] + ".weight"
        if not name:
            c.fixed[ours] = p.detach().reshape(p.shape[-2:]).clone()
            return
        c.tensors[ours] = name
        if p.dim() != 2:
            c.reshaped[ours] = list(p.shape[-2:])

    c.planned[node] = write


ADDS = {operator.add, operator.iadd, torch.add}


def mask_of(c: Any, node: fx.Node) -> Any:
    if node.op == "call_function" and ATTEND is not None and node.target is ATTEND:
        return argument(node, 3, "attn_mask")
    module = type(c.modules.get(str(node.target))) if node.op == "call_module" else None
    if module is nn.MultiheadAttention:
        return argument(node, 5, "attn_mask")
    if module is nn.TransformerEncoder:
        return argument(node, 1, "mask")
    return argument(node, 1, "src_mask") if module is nn.TransformerEncoderLayer else None


def mark_state(c: Any, node: fx.Node) -> None:
    """A state that an LSTM or GRU is given, and that hangs on no input, is no operation."""
    module = c.modules.get(str(node.target)) if node.op == "call_module" else None
    if type(module) in (nn.LSTM, nn.GRU):
        for n in node.all_input_nodes[1:]:
            if n in c.constants:
                c.mark_mask(n)


def find(c: Any, nodes: List[fx.Node]) -> None:
    for node in nodes:
        mask = mask_of(c, node)
        if mask in c.constants:
            c.mark_mask(mask)
        mark_state(c, node)
        if node.op == "call_function" and ATTEND is not None and node.target is ATTEND:
            find_attention(c, node)
        elif node.target in ADDS or (node.op == "call_method" and node.target in ("add", "add_")):
            find_positions(c, node)


# --- modules that give several results


def takes(c: Any, node: fx.Node, key: Any) -> List[fx.Node]:
    """The operations that take one result."""
    return [u for u in c.users(node) if u.target is operator.getitem and u.args[1] == key]


def taken(c: Any, node: fx.Node) -> Set[fx.Node]:
    """All operations that take a result out of others."""
    found = {u for u in c.users(node) if u.target is operator.getitem}
    return found.union(*(taken(c, u) | moved(c, u) for u in found))


def is_max(node: fx.Node) -> bool:
    """x.max(dim), which gives a pair."""
    named = node.target is torch.max or (node.op == "call_method" and node.target == "max")
    return named and isinstance(argument(node, 1, "dim"), int)


def is_last_step(node: fx.Node) -> bool:
    """x[:, -1] or x[:, -1, :]"""
    whole = slice(None, None, None)
    return node.target is operator.getitem and node.args[1] in ((whole, -1), (whole, -1, whole))


def causal(value: Any, allowed: bool) -> bool:
    """Whether a mask hides what comes later; allowed: True says that a step is seen. Refused: it is another one."""
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        raise Refused("the mask has no counterpart: one that hides what comes later has")
    value = value.reshape(-1, *value.shape[-2:])
    n = value.shape[-1]
    seen = value == allowed if value.dtype == torch.bool else value == 0
    hidden = ~seen if value.dtype == torch.bool else value <= -1e4
    if len(value) == 1 and torch.equal(seen[0], torch.ones(n, n).tril().bool()) and torch.equal(hidden, ~seen):
        return True
    raise Refused("the mask has no counterpart: one that hides what comes later has")
