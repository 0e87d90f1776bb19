"""torch.fx over a network whose input's shape is known: sizes are numbers, operations know the line they stand in."""

import contextlib
import inspect
import os
import re
import sys
from typing import Any, Dict, Iterator, Sequence

import torch
from torch import fx, nn

from . import layers

BATCH = 3  # of the pass that finds the shapes
PLACE = "_rivulet_place"
NO_GRADIENT = "rivulet_no_gradient"
MODES = "rivulet_modes"
OURS = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep, "<")


def place(path: str, line: int) -> str:
    short = os.path.relpath(path)
    return "%s:%d" % (path if short.startswith(os.pardir) else short, line)


def is_theirs(path: str) -> bool:
    return not path.startswith(OURS)


@contextlib.contextmanager
def places() -> Iterator[None]:
    """Modules that are made meanwhile know the line of the user's source that made them."""
    init = nn.Module.__init__

    def remember(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and not is_theirs(frame.f_code.co_filename):
            frame = frame.f_back
        self.__dict__[PLACE] = place(frame.f_code.co_filename, frame.f_lineno)
        init(self, *args, **kwargs)

    nn.Module.__init__ = remember  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__init__ = init  # type: ignore[method-assign]


def called_at(node: fx.Node) -> str:
    """The innermost line of the user's source on the way to an operation."""
    found = re.findall(r'File "(.+?)", line (\d+)', node.stack_trace or "")
    theirs = [(path, int(line)) for path, line in found if is_theirs(path)]
    return place(*theirs[-1]) if theirs else ""


def forward_at(net: nn.Module) -> str:
    code = getattr(type(net).forward, "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if code and is_theirs(code.co_filename) else ""


class Sized(fx.Proxy):
    """A value on its way, with the sizes that it has: code that asks for them gets numbers."""

    def tensor(self, asked: str) -> torch.Tensor:
        found = self.tracer.value(self.node)  # type: ignore[attr-defined]
        if not isinstance(found, torch.Tensor):
            raise AttributeError("%s has no %s" % (type(found).__name__, asked))
        return found

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "device", "dtype", "ndim"):
            found = self.tracer.value(self.node)  # type: ignore[attr-defined]
            if isinstance(found, torch.Tensor):
                return getattr(found, name)
        return super().__getattr__(name)

    def size(self, dim: Any = None) -> Any:
        return self.tensor("size").size() if dim is None else self.tensor("size").size(dim)

    def dim(self) -> int:
        return self.tensor("dim").dim()

    def numel(self) -> int:
        return self.tensor("numel").numel()

    def is_floating_point(self) -> bool:
        return self.tensor("is_floating_point").is_floating_point()

    def __len__(self) -> int:
        return len(self.tensor("len"))


class Tracer(fx.Tracer):
    """Operations know the line they stand in, whether a gradient goes through them, and what they make of zeros."""

    def __init__(self, example: torch.Tensor, defaults: Dict[str, Any]) -> None:
        super().__init__()
        self.record_stack_traces = True
        self.example, self.defaults = example, defaults
        self.found: Dict[fx.Node, Any] = {}
        self.running = False  # an operation, for what it gives: nothing of it is traced

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        return forward(*args, **kwargs) if self.running else super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        return attr_val if self.running else super().getattr(attr, attr_val, parameter_proxy_cache)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return layers.is_lora(m) or super().is_leaf_module(m, module_qualified_name)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return Sized(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(*args, **kwargs)
        node.meta[NO_GRADIENT] = not torch.is_grad_enabled()
        if node.op == "call_module":
            inside = self.root.get_submodule(str(node.target)).modules()
            node.meta[MODES] = {m.training for m in inside if has_modes(m)}
        return node

    def value(self, node: fx.Node) -> Any:
        """What an operation gives; modules as they are in evaluation."""
        for n in self.graph.nodes:
            if n not in self.found:
                self.running = True
                try:
                    with torch.no_grad():
                        self.found[n] = self.run(n)
                finally:
                    self.running = False
            if n is node:
                break
        return self.found[node]

    def run(self, node: fx.Node) -> Any:
        args = fx.node.map_arg(node.args, lambda n: self.found[n])
        kwargs = fx.node.map_arg(node.kwargs, lambda n: self.found[n])
        if node.op == "placeholder":
            inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
            return [self.example, *self.defaults.values()][inputs.index(node)]
        if node.op == "get_attr":
            found: Any = self.root
            for part in str(node.target).split("."):
                found = getattr(found, part)
            return found
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        if node.op == "call_function":
            return node.target(*args, **kwargs)  # type: ignore[operator]
        module = self.root.get_submodule(str(node.target))
        training = module.training
        module.eval()
        try:
            return module(*args, **kwargs)
        finally:
            module.train(training)


def has_modes(module: nn.Module) -> bool:
    """Does it do other things in training than in evaluation?"""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    rate = getattr(module, "dropout", 0)
    return isinstance(module, nn.modules.batchnorm._NormBase) or (isinstance(rate, (int, float)) and rate > 0)


def defaults_of(net: nn.Module) -> Dict[str, Any]:
    """Of what forward takes besides the input. ValueError: it takes none, or there is more that must be given."""
    given = list(inspect.signature(type(net).forward).parameters.values())[1:]
    wild = [p.name for p in given if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not given or given[0].name in wild:
        raise ValueError("forward must name its input, as forward(self, x) does")
    more = [p.name for p in given[1:] if p.name in wild or p.default is p.empty]
    if more:
        raise ValueError("forward takes more than one input (%s): the others need defaults" % ", ".join(more))
    return {p.name: p.default for p in given[1:]}


def graph_of(net: nn.Module, training: bool, example: torch.Tensor) -> fx.Graph:
    """As the network runs in training or in evaluation; further arguments of forward have their defaults."""
    tracer = Tracer(example, defaults_of(net))
    net.train(training)
    try:
        with torch.enable_grad():
            return tracer.trace(net, concrete_args=defaults_of(net) or None)
    finally:
        net.eval()
