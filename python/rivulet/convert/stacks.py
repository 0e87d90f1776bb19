"""Modules of PyTorch that become several layers: LSTM and GRU both ways, nn.TransformerEncoder.

Each function of SEVERAL appends its layers itself, and says in `c.values` which of them gives what of the module's
results.
"""

import operator
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import fx, nn
from torch.nn import functional

from . import layers, patterns
from .patterns import Refused, argument, takes


def is_zero(c: Any, given: Any) -> bool:
    """A state that is given, and is what there is without."""
    values = given if isinstance(given, (tuple, list)) else [given]
    found = [c.found.get(v) if isinstance(v, fx.Node) and v in c.constants else v for v in values]
    return all(isinstance(f, torch.Tensor) and not bool(f.any()) for f in found)


class Recurrent:
    """nn.LSTM or nn.GRU: one layer, or one for each layer and direction of it."""

    def __init__(self, c: Any, node: fx.Node, module: Any, o: layers.Options) -> None:
        self.c, self.node, self.module, self.name = c, node, module, str(node.target)
        self.steps = takes(c, node, 0)
        states = takes(c, node, 1)
        c.done |= set(self.steps) | set(states)
        if type(module) is nn.LSTM:
            cells = [u for s in states for u in takes(c, s, 1)]
            states = [u for s in states for u in takes(c, s, 0)]
            c.done |= set(cells) | set(states)
            if any(c.users(cell) for cell in cells):
                o.refuse("nothing here reads its cells")
        self.states = [u for s in states for u in c.users(s)]
        self.whole = [s for s in self.steps if any(not self.is_last(u) and not patterns.is_size(u) for u in c.users(s))]
        self.last = [u for s in self.steps for u in c.users(s) if self.is_last(u)]
        self.top = {u: self.direction(u) for u in self.states}
        if any(k is None for k in self.top.values()):
            o.refuse(
                "of its state, only that of the last layer can be read: h[-1]%s"
                % (", h[-2]" if module.bidirectional else "")
            )

    def is_last(self, node: fx.Node) -> bool:
        return not self.module.bidirectional and patterns.is_last_step(node)

    def direction(self, user: fx.Node) -> Optional[int]:
        """0: forward, 1: back; None: this is no state of the last layer."""
        ways = 2 if self.module.bidirectional else 1
        count = ways * self.module.num_layers
        if user.op == "call_method" and user.target == "squeeze" or user.target is torch.squeeze:
            return 0 if count == 1 and argument(user, 1, "dim") == 0 else None
        key = user.args[1] if user.target is operator.getitem else None
        if isinstance(key, tuple) and len(key) > 0 and all(k == slice(None) for k in key[1:]):
            key = key[0]
        if not isinstance(key, int) or key % count < count - ways:
            return None
        way: int = key % count - (count - ways)
        return way

    def add(self, kind: str, inputs: List[str], **keys: Any) -> str:
        name: str = self.c.append([dict(keys, type=kind)], self.name, inputs)
        return name

    def cell(self, source: str, level: int, way: int, ends: bool) -> str:
        """One layer in one direction."""
        m = self.module
        output = "last" if ends else "sequence"
        name = self.add(m.mode.lower(), [source], out=m.hidden_size, layers=1, bias=bool(m.bias), output=output)
        own = "_l%d%s" % (level, "_reverse" if way else "")
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if m.bias else 2]:
            self.c.tensors["%s.%s_l0" % (name, kind)] = "%s.%s%s" % (self.name, kind, own)
        return name

    def level(self, source: str, level: int, whole: bool) -> Tuple[Optional[str], List[str]]:
        """One layer in all directions: all steps, where they are wanted, and the last state of each direction."""
        ends = [self.cell(source, level, 0, not whole)]
        together: Optional[str] = ends[0] if whole else None
        if self.module.bidirectional:
            ends.append(self.cell(self.add("reverse", [source]), level, 1, not whole))
            if whole:
                together = self.add("concat", [ends[0], self.add("reverse", [ends[1]])], dim=2)
        return together, ends

    def split(self, source: str) -> Tuple[Optional[str], List[str]]:
        m = self.module
        for level in range(m.num_layers):
            top = level + 1 == m.num_layers
            together, ends = self.level(source, level, bool(self.whole) or not top)
            source = together or ""
            if not top and m.dropout > 0:
                source = self.add("dropout", [source], rate=m.dropout)
        return together, ends

    def one(self, source: str) -> Tuple[Optional[str], List[str]]:
        """PyTorch's names are ours."""
        m = self.module
        output = "sequence" if self.whole else "last"
        name = self.add(
            m.mode.lower(), [source], out=m.hidden_size, layers=m.num_layers, bias=bool(m.bias), output=output
        )
        self.c.keep(m, self.name)
        return (name if self.whole else None), [name]

    def write(self, source: str) -> None:
        m = self.module
        single = not m.bidirectional and m.num_layers <= layers.STACK_MAX and (m.num_layers == 1 or not m.dropout)
        together, ends = (self.one if single else self.split)(source)
        for node in self.whole:
            self.c.values[node] = together
        for node, way in list(self.top.items()) + [(node, 0) for node in self.last]:
            assert way is not None
            self.c.done.add(node)
            self.c.values[node] = ends[way] if together is None else self.add("pool_steps", [ends[way]], by="last")


def recurrent(c: Any, node: fx.Node, module: Any, o: layers.Options) -> None:
    o.only(batch_first=True, proj_size=0)
    given = list(node.args[1:]) + list(node.kwargs.values())
    if not all(g is None or g is node.args[0] or is_zero(c, g) for g in given):
        o.refuse("its state begins with zeros")
    if len(o.shape) != 2:
        o.refuse("an example of shape %s: [steps, width] is taken" % o.shape)
    if module.dropout > layers.DROPOUT_MAX:
        o.refuse("dropout=%r: at most %s is taken" % (module.dropout, layers.DROPOUT_MAX))
    r = Recurrent(c, node, module, o)
    if not o.refused:
        r.write(c.source(node.args[0]))


def multihead(c: Any, node: fx.Node, module: Any, o: layers.Options) -> None:
    (layer,) = layers.attention(o)
    given = [argument(node, i, name) for i, name in enumerate(("query", "key", "value"))]
    if len(set(given)) != 1:
        o.refuse("queries, keys and values must be one sequence")
    if len(o.shape) != 2:
        o.refuse("an example of shape %s: [steps, width] is taken" % o.shape)
    if argument(node, 3, "key_padding_mask") is not None:
        o.refuse("key_padding_mask has no counterpart: cut or fill all examples to one length")
    mask = argument(node, 5, "attn_mask")
    layer["causal"] = mask is not None and c.causal(mask, False)
    outputs = takes(c, node, 0)
    if set(c.users(node)) != set(outputs):
        raise Refused("the weights of its heads have no counterpart")
    c.done |= set(outputs)
    if not o.refused:
        name = c.append([layer], str(node.target), [c.source(given[0])])
        c.keep(module, str(node.target))
        c.values.update({end: name for end in outputs})


class Encoder:
    """nn.TransformerEncoderLayer, as PyTorch's own forward has it."""

    def __init__(self, c: Any, module: Any, target: str, causal: bool, steps: int) -> None:
        self.c, self.module, self.target = c, module, target
        self.causal, self.shape = causal, [steps, module.linear2.out_features]

    def options(self, module: Any) -> layers.Options:
        return layers.Options(self.c.options_of(module), [self.shape], self.shape)

    def own(self, name: str, source: str, **keys: Any) -> str:
        """The layer of a module of it."""
        module, target = getattr(self.module, name), "%s.%s" % (self.target, name)
        o = self.options(module)
        built = layers.MODULES[type(module)](o)
        if o.refused:
            raise Refused("%s: %s" % (name, o.refused[0]))
        end: str = self.c.append([dict(built[0], **keys)], target, [source])
        self.c.keep(module, target)
        return end

    def drop(self, name: str, source: str) -> str:
        return self.own(name, source) if getattr(self.module, name).p > 0 else source

    def bend(self, source: str) -> str:
        activation = self.module.activation
        o = self.options(activation) if isinstance(activation, nn.Module) else None
        if activation in (functional.relu, functional.gelu, torch.relu):
            kind = "gelu" if activation is functional.gelu else "relu"
            built: List[layers.Layer] = [{"type": kind, "approximate": "none"} if kind == "gelu" else {"type": kind}]
        elif o is not None and type(activation) in layers.ACTIVATIONS:
            built = layers.MODULES[type(activation)](o)
        else:
            raise Refused("activation=%r: relu, gelu and modules such as nn.SiLU() have a counterpart" % (activation,))
        end: str = self.c.append(built, self.target + ".activation", [source])
        return end

    def add(self, a: str, b: str) -> str:
        end: str = self.c.append([{"type": "add"}], self.target + ".add", [a, b])
        return end

    def attend(self, source: str) -> str:
        return self.drop("dropout1", self.own("self_attn", source, causal=self.causal))

    def feed(self, source: str) -> str:
        return self.drop("dropout2", self.own("linear2", self.drop("dropout", self.bend(self.own("linear1", source)))))

    def write(self, source: str) -> str:
        if self.module.norm_first:
            source = self.add(source, self.attend(self.own("norm1", source)))
            return self.add(source, self.feed(self.own("norm2", source)))
        source = self.own("norm1", self.add(source, self.attend(source)))
        return self.own("norm2", self.add(source, self.feed(source)))


def encoder(c: Any, node: fx.Node, module: Any, o: layers.Options) -> None:
    """nn.TransformerEncoder, or one layer of it."""
    if len(o.shape) != 2:
        raise Refused("an example of shape %s: [steps, width] is taken" % o.shape)
    one = isinstance(module, nn.TransformerEncoderLayer)
    if argument(node, 2, "src_key_padding_mask") is not None:
        raise Refused("src_key_padding_mask has no counterpart: cut or fill all examples to one length")
    mask = argument(node, 1, "src_mask" if one else "mask")
    causal = mask is not None and c.causal(mask, False)
    if mask is None and node.kwargs.get("is_causal"):
        raise Refused("is_causal=True is a hint beside a mask: give the mask, too")
    target, source = str(node.target), c.source(argument(node, 0, "src"))
    blocks = [(module, target)] if one else [(m, "%s.layers.%d" % (target, i)) for i, m in enumerate(module.layers)]
    for block, name in blocks:
        if type(block) is not nn.TransformerEncoderLayer:
            raise Refused("a %s in it has no counterpart" % type(block).__name__)
        if not block.self_attn.batch_first:
            raise Refused("batch_first=False: only batch_first=True has a counterpart")
        source = Encoder(c, block, name, causal, o.shape[0]).write(source)
    if not one and module.norm is not None:
        if type(module.norm) not in (nn.LayerNorm, getattr(nn, "RMSNorm", nn.LayerNorm)):
            raise Refused("norm=%s has no counterpart" % type(module.norm).__name__)
        last = layers.MODULES[type(module.norm)](layers.Options(c.options_of(module.norm), [o.shape], o.shape))
        source = c.append(last, target + ".norm", [source])
        c.keep(module.norm, target + ".norm")
    c.values[node] = source


SEVERAL: Dict[type, Callable[[Any, fx.Node, Any, layers.Options], None]] = {
    nn.LSTM: recurrent,
    nn.GRU: recurrent,
    nn.MultiheadAttention: multihead,
    nn.TransformerEncoderLayer: encoder,
    nn.TransformerEncoder: encoder,
}
