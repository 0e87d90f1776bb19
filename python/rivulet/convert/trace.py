"""From a PyTorch network to layers: torch.fx gives the operations, `layers` says what stands for each, `patterns` what
stands for several."""

import contextlib
import inspect
import math
import operator
import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

import torch
from torch import fx, nn

from . import layers, patterns

LAYERS_MAX = 256
NAME_MAX = 63
BATCH = 3  # of the pass that finds the shapes
INPUT = "input"  # what layers call the network's input
PLACE = "_rivulet_place"
NO_GRADIENT = "rivulet_no_gradient"
OURS = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep, "<")


class Problem(NamedTuple):
    """Something that the built-in trainer cannot do. where: "file:line" of the user's source, "" if it is not known."""

    where: str
    what: str

    def __str__(self) -> str:
        return "%s: %s" % (self.where, self.what) if self.where else self.what


class Network(NamedTuple):
    """layers as a job document has them; tensors: name in the job, name in the state_dict; reshaped: shapes of those
    that have another one in the job, by their names there."""

    layers: List[Dict[str, Any]]
    tensors: Dict[str, str]
    problems: List[Problem]
    reshaped: Dict[str, List[int]]


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


class Tracer(fx.Tracer):
    """Operations know the line they stand in, and whether a gradient goes through them."""

    def __init__(self) -> None:
        super().__init__()
        self.record_stack_traces = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return layers.is_lora(m) or super().is_leaf_module(m, module_qualified_name)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(*args, **kwargs)
        node.meta[NO_GRADIENT] = not torch.is_grad_enabled()
        return node


def defaults_of(net: nn.Module) -> Dict[str, Any]:
    """Of what forward takes besides the input. ValueError: there is more that must be given."""
    first, *rest = list(inspect.signature(type(net).forward).parameters.values())[1:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.default is p.empty for p in rest):
        raise ValueError("forward takes more than one input")
    return {p.name: p.default for p in rest}


def graph_of(net: nn.Module, training: bool) -> fx.Graph:
    """As the network runs in training or in evaluation; further arguments of forward have their defaults."""
    tracer = Tracer()
    net.train(training)
    try:
        with torch.enable_grad():
            return tracer.trace(net, concrete_args=defaults_of(net) or None)
    finally:
        net.eval()


def drops(node: fx.Node) -> Any:
    """The argument `training` of functional.dropout."""
    return node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)


def names_of_functions() -> Dict[Any, str]:
    """As people write them."""
    found = {}
    for prefix, holder in (("", operator), ("torch.", torch), ("F.", nn.functional)):
        found.update({id(v): prefix + k for k, v in vars(holder).items() if callable(v) and not k.startswith("_")})
    return found


def shape_of(node: Any, dtype: torch.dtype = torch.float32) -> Optional[List[int]]:
    """Of one example; None for what is no tensor of that type with a batch in front."""
    meta: Any = node.meta.get("tensor_meta") if isinstance(node, fx.Node) else None
    shape = list(getattr(meta, "shape", ()))
    return shape[1:] if len(shape) > 1 and shape[0] == BATCH and meta.dtype == dtype else None


def tokens_of(node: Any) -> Optional[List[int]]:
    return shape_of(node, torch.int64) or shape_of(node, torch.int32)


FUNCTION_NAMES = names_of_functions()


class Conversion:
    """One network on its way."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self.modules = dict(net.named_modules(remove_duplicate=False))
        self.layers: List[Dict[str, Any]] = []
        self.tensors: Dict[str, str] = {}
        self.problems: List[Problem] = []
        self.values: Dict[fx.Node, str] = {}  # the layer whose output a node is
        self.own = {
            n for n, m in self.modules.items() if type(m) in layers.MODULES and any(True for _ in m.parameters())
        }
        self.names: Set[str] = {INPUT}
        self.called: Set[int] = set()  # modules with parameters, and those that are refused
        self.order: Dict[fx.Node, int] = {}
        # Of patterns: what runs in place of a node, nodes that others stand for, results of modules that give several.
        self.planned: Dict[fx.Node, Callable[[], None]] = {}
        self.done: Set[fx.Node] = set()
        self.aliases: Dict[fx.Node, fx.Node] = {}
        self.constants: Set[fx.Node] = set()
        self.found: Dict[fx.Node, Any] = {}  # what operations gave
        self.reshaped: Dict[str, List[int]] = {}
        self.lenders: Dict[int, str] = {}  # parameters that a later layer may use as well, and their layers
        self.shared: Set[str] = set()  # names in the state_dict of what an earlier layer has

    def refuse(self, where: str, what: str) -> None:
        problem = Problem(where, what)
        if problem not in self.problems:
            self.problems.append(problem)

    # --- names

    def name(self, wanted: str) -> str:
        """A name that no other layer has, of the letters that names have. What has weights is called as it is."""
        base = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted)[: NAME_MAX - 4] or "layer"
        name, n = base, 2
        while name in self.names or (name in self.own and name != wanted):
            name, n = "%s_%d" % (base, n), n + 1
        self.names.add(name)
        return name

    def append(self, built: List[Dict[str, Any]], wanted: str, inputs: List[str]) -> str:
        """Adds layers one behind the other; gives the last one's name."""
        for layer in built:
            before = self.layers[-1]["name"] if self.layers else INPUT
            whole = dict(type=layer["type"], name=self.name(wanted), **{k: v for k, v in layer.items() if k != "type"})
            if inputs != [before]:
                whole["inputs"] = inputs
            self.layers.append(whole)
            inputs = [whole["name"]]
        return inputs[0]

    # --- of patterns

    def users(self, node: fx.Node) -> List[fx.Node]:
        """On the way to the output."""
        return [u for u in node.users if u in self.order]

    def shape(self, node: Any) -> Optional[List[int]]:
        return shape_of(node)

    def place_of(self, node: fx.Node) -> str:
        module = self.modules.get(str(node.target)) if node.op == "call_module" else None
        return (module.__dict__.get(PLACE) if module is not None else None) or called_at(node)

    def mark_mask(self, mask: Any) -> None:
        """What makes a mask is done with."""
        self.done |= {n for n in patterns.ancestors(mask) | {mask} if n in self.constants}

    def causal(self, mask: Any, allowed: bool) -> bool:
        """Whether a mask hides what comes later."""
        if mask not in self.constants:
            raise patterns.Refused("a mask that depends on the input has no counterpart")
        return patterns.causal(self.found[mask], allowed)

    def several(self, node: fx.Node, module: nn.Module, what: str, where: str, options: Dict[str, Any]) -> None:
        """A module that gives several results."""
        source = patterns.argument(node, 0, "query" if isinstance(module, nn.MultiheadAttention) else "input")
        shape = shape_of(source)
        if shape is None:
            self.refuse(where, "%s: its input is no float32 tensor with the batch as first dimension" % what)
            return
        o = layers.Options(options, [shape], [])
        built = None
        self.called.update(id(m) for m in module.modules())
        try:
            built = patterns.SEVERAL[type(module)](self, node, module, o)
        except patterns.Refused as e:
            o.refuse(str(e))
        for text in o.refused:
            self.refuse(where, "%s: %s" % (what, text))
        if o.refused:
            self.done |= patterns.taken(self, node)
        elif built:
            self.values[node] = self.append(built, str(node.target), [self.source(source)])
            self.keep(module, str(node.target))

    def source(self, node: fx.Node) -> str:
        """The layer whose output an operation reads."""
        return self.values.get(self.aliases.get(node, node), INPUT)

    def keep(self, module: nn.Module, target: str) -> None:
        """The last layer has the tensors of a module."""
        named = [name for name, _ in module.named_parameters()]
        named += [name for name, b in module.named_buffers() if b.dtype == torch.float32]
        self.tensors.update({"%s.%s" % (self.layers[-1]["name"], name): "%s.%s" % (target, name) for name in named})
        self.called.update(id(m) for m in module.modules())
        if type(module) in (nn.Linear, nn.Embedding):
            self.tie(id(module.weight))

    def keep_lora(self, module: Any, target: str) -> None:
        """PEFT's names have more parts."""
        name, target = self.layers[-1]["name"], target + "."
        (adapter,) = [a for a in module.active_adapters if a in module.lora_A]
        theirs = {"weight": "base_layer.weight", "bias": "base_layer.bias"}
        theirs.update({"lora_%s.weight" % x: "lora_%s.%s.weight" % (x, adapter) for x in "AB"})
        state = module.state_dict()
        self.tensors.update({"%s.%s" % (name, k): target + v for k, v in theirs.items() if v in state})
        self.called.update(id(m) for m in module.modules())
        self.lenders.setdefault(id(module.base_layer.weight), name)

    def tie(self, weight: int) -> None:
        """The last layer uses an earlier one's weight, if that is the same parameter."""
        layer = self.layers[-1]
        if layer["type"] not in ("linear", "embedding"):
            return
        lender = self.lenders.setdefault(weight, layer["name"])
        if lender == layer["name"] or layer["type"] != "linear":
            return
        layer["weights"] = lender
        self.shared.add(self.tensors.pop(layer["name"] + ".weight"))

    # --- operations

    def build(
        self, node: fx.Node, what: str, where: str, entry: Any, options: Dict[str, Any], sources: List[fx.Node]
    ) -> None:
        """The layers for one operation whose counterpart is known."""
        whole = entry in (layers.embedding, layers.identity)  # what whole numbers go through
        shapes = [shape_of(s) or (tokens_of(s) if whole else None) for s in sources]
        output = shape_of(node) or (tokens_of(node) if entry is layers.identity else None)
        fits = all(shape is not None for shape in shapes) and bool(shapes)
        o = layers.Options(options, [shape or [] for shape in shapes] or [[]], output or [])
        known = fits and (output is not None or entry is not layers.flatten)
        built = entry(o) if known else []
        if not o.refused and (not fits or output is None):
            o.refuse("its input or output is no float32 tensor with the batch as first dimension")
        if entry is layers.identity and fits and (shape_of(sources[0]) is None) != (shape_of(node) is None):
            o.refuse("only the network's input can be whole numbers, and only an embedding reads them")
        if entry is layers.embedding and fits and tokens_of(sources[0]) is None:
            o.refuse("an embedding reads the network's input, whole numbers")
        for text in o.refused:
            self.refuse(where, "%s: %s" % (what, text))
        wanted = str(node.target) if node.op == "call_module" else node.name
        if not o.refused:
            self.values[node] = self.append(built, wanted, [self.source(s) for s in sources])

    def in_place(self, node: fx.Node, what: str, source: fx.Node) -> None:
        """What works in place must be the last that reads its input."""
        later = [u for u in source.users if u is not node and self.order.get(u, -1) > self.order[node]]
        if later:
            self.refuse(
                called_at(node),
                "%s: it works in place, and %s reads what was there before" % (what, called_at(later[0]) or later[0]),
            )

    def check_module(self, node: fx.Node, module: nn.Module, what: str, where: str) -> None:
        own = dict(module.named_parameters(recurse=False))
        if own and id(module) in self.called:
            self.refuse(
                called_at(node) or where,
                "%s: it is used twice: make two; an nn.Linear may have an earlier one's weight" % what,
            )
        self.called.add(id(module))
        if any(getattr(module, hooks) for hooks in ("_forward_hooks", "_forward_pre_hooks")):
            self.refuse(where, "%s: hooks (weight_norm and spectral_norm are some) have no counterpart" % what)
        for name, p in own.items():
            if p.dtype != torch.float32:
                self.refuse(where, "%s: %s is %s; weights are float32, call .float()" % (what, name, p.dtype))

    def call_module(self, node: fx.Node) -> None:
        target = str(node.target)
        module = self.modules[target]
        what = "%s (%s%s)" % (target, "" if layers.is_lora(module) else "nn.", type(module).__name__)
        where = module.__dict__.get(PLACE) or called_at(node)
        self.check_module(node, getattr(module, "base_layer") if layers.is_lora(module) else module, what, where)
        build = layers.lora if layers.is_lora(module) else layers.MODULES.get(type(module))
        if build is None:
            self.refuse(where, what + ": " + layers.HINTS.get(type(module), "the built-in trainer has no such layer"))
            return
        sources = [a for a in node.args if isinstance(a, fx.Node)]
        if getattr(module, "inplace", False):
            self.in_place(node, what, sources[0])
        options = {k: v for k, v in vars(module).items() if not k.startswith("_")}
        options.update(bias=getattr(module, "bias", None), training=True, module=module)
        options["in_proj_bias"] = getattr(module, "in_proj_bias", None)
        options["_qkv_same_embed_dim"] = getattr(module, "_qkv_same_embed_dim", None)
        if type(module) in patterns.SEVERAL:
            self.several(node, module, what, where, options)
            return
        before = len(self.layers)
        self.build(node, what, where, build, options, sources)
        if len(self.layers) > before:
            (self.keep_lora if build is layers.lora else self.keep)(module, target)

    def call(self, node: fx.Node, what: str, entry: Optional[layers.Entry]) -> None:
        """A function or a method."""
        where = called_at(node)
        if shape_of(node) is None and "tensor_meta" not in node.meta:
            return  # a size, read to reshape by
        if entry is None:
            self.refuse(where, what + ": " + layers.HINTS.get(node.target, "the built-in trainer has nothing like it"))
            return
        arguments = list(node.args)
        names = ["input", "other"][: entry.tensors] or ["tensors"]
        given = arguments[: len(names)] + [node.kwargs[n] for n in names[len(arguments) :] if n in node.kwargs]
        if entry.tensors == 0 and isinstance(given[0], (list, tuple)):
            given = list(given[0])
        sources = [a for a in given if isinstance(a, fx.Node)]
        if len(sources) != (entry.tensors or len(given)):
            self.refuse(where, "%s: of numbers, it has no counterpart" % what)
            return
        if entry.build is layers.multiply and math.prod(shape_of(sources[0]) or []) < math.prod(
            shape_of(sources[1]) or []
        ):
            sources.reverse()
        options = dict(entry.arguments)
        options.update(zip(options, arguments[len(names) :]))
        options.update({k: v for k, v in node.kwargs.items() if k not in names})
        for key in dict(entry.arguments):
            if isinstance(options[key], fx.Node):
                self.refuse(where, "%s: %s depends on the input" % (what, key))
                return
        if entry.in_place or options.get("inplace"):
            self.in_place(node, what, sources[0])
        self.build(node, what, where, entry.build, options, sources)

    def take(self, node: fx.Node) -> None:
        if node in self.done and node not in self.planned:
            return
        if node.op.startswith("call_") and node.meta[NO_GRADIENT]:
            self.refuse(called_at(node), "%s: within no_grad; freeze weights by requires_grad_(False)" % node.target)
        if node in self.planned:
            self.planned[node]()
        elif node.op == "call_module":
            self.call_module(node)
        elif node.op == "call_function":
            what = FUNCTION_NAMES.get(id(node.target)) or str(getattr(node.target, "__name__", node.target))
            self.call(node, what, layers.FUNCTIONS.get(node.target))
        elif node.op == "call_method":
            self.call(node, "Tensor.%s" % node.target, layers.METHODS.get(str(node.target)))
        elif node.op == "get_attr":
            self.called.add(id(self.modules[str(node.target).rpartition(".")[0]]))
            self.refuse(called_at(node), "self.%s: weights are used by layers of torch.nn alone" % node.target)

    # --- the whole

    def check_rest(self) -> None:
        """What stands in the state_dict and in no layer; what stands in two."""
        seen: Dict[int, str] = {}
        used = set(self.tensors.values())
        for name, p in self.net.named_parameters(remove_duplicate=False):
            owner = self.modules[name.rpartition(".")[0]]
            where = owner.__dict__.get(PLACE, "")
            if name in self.shared:
                continue
            if id(p) in seen and id(owner) in self.called:
                self.refuse(where, "%s is %s: only nn.Linear uses an earlier layer's weight" % (name, seen[id(p)]))
            elif name not in used and id(owner) not in self.called:
                self.refuse(where, "%s: nothing on the way to the output uses it" % name)
            seen.setdefault(id(p), name)
        parameters = {name for name, _ in self.net.named_parameters(remove_duplicate=False)}
        for name in self.net.state_dict():
            owner = self.modules.get(name.rpartition(".")[0], self.net)
            if name not in parameters and id(owner) not in self.called:
                self.refuse(
                    owner.__dict__.get(PLACE, ""),
                    "%s: layers have no buffers; persistent=False keeps it out of the model" % name,
                )

    def same(self, a: fx.Node, b: fx.Node) -> bool:
        """The same operation? Tensors that forward makes have other names each time."""
        if all(n.op == "get_attr" and str(n.target).startswith("_tensor_constant") for n in (a, b)):
            return torch.equal(getattr(self.net, str(a.target)), getattr(self.net, str(b.target)))
        return (a.op, str(a.target)) == (b.op, str(b.target))

    def check_modes(self, train: fx.Graph, evaluation: fx.Graph) -> None:
        """Training and evaluation do the same but for dropout, which is on in one and off in the other."""
        one, two = list(train.nodes), list(evaluation.nodes)
        if len(one) != len(two) or not all(self.same(a, b) for a, b in zip(one, two)):
            self.refuse(forward_at(self.net), "forward does other things in training than in evaluation")
            return
        for a, b in zip(one, two):
            if a.target is nn.functional.dropout and drops(b):
                self.refuse(called_at(a), "dropout: it drops in evaluation, too; give training=self.training")

    def run(self, graph: fx.Graph, shape: Sequence[int], tokens: bool) -> None:
        (output,) = [n for n in graph.nodes if n.op == "output"]
        values = patterns.Values(fx.GraphModule(self.net, graph))
        with torch.no_grad():
            values.propagate(
                torch.zeros(BATCH, *shape, dtype=torch.int64 if tokens else torch.float32),
                *defaults_of(self.net).values(),
            )
        self.found, self.constants = values.found, patterns.constants(graph)
        needed = {output}
        for node in reversed(list(graph.nodes)):
            if node in needed:
                needed.update(node.all_input_nodes)
        nodes = [n for n in graph.nodes if n in needed]
        self.order = {n: i for i, n in enumerate(nodes)}
        patterns.find(self, nodes)
        for node in nodes:
            self.take(node)
        if not isinstance(output.args[0], fx.Node) or shape_of(output.args[0]) is None:
            self.refuse(forward_at(self.net), "forward must return one tensor with the batch as first dimension")
        if not self.problems and not self.tensors:
            self.refuse(forward_at(self.net), "the network has nothing to train")
        if len(self.layers) > LAYERS_MAX:
            self.refuse("", "%d layers; a job has at most %d" % (len(self.layers), LAYERS_MAX))


def error_at(error: BaseException) -> str:
    """The innermost line of the user's source that an exception came through."""
    tb, where = error.__traceback__, ""
    while tb is not None:
        if is_theirs(tb.tb_frame.f_code.co_filename):
            where = place(tb.tb_frame.f_code.co_filename, tb.tb_lineno)
        tb = tb.tb_next
    return where


def convert(net: nn.Module, shape: Sequence[int], tokens: bool = False) -> Network:
    """The layers that do what `net` does with examples of that shape, whole numbers if they are tokens, or all that has
    no counterpart.

    The network must run: its own errors are raised as they are.
    """
    alone = type(net) in layers.MODULES
    if alone:
        net = nn.Sequential(net)
    c = Conversion(net)
    graphs: List[fx.Graph] = []
    try:
        graphs = [graph_of(net, True), graph_of(net, False)]
    except Exception as e:  # of torch.fx: what it cannot follow, such as a branch on a value
        c.refuse(error_at(e) or forward_at(net), "torch.fx cannot follow this: %s" % str(e).splitlines()[0])
    if graphs:
        c.check_modes(*graphs)
        c.run(graphs[0], shape, tokens)
        c.check_rest()
    tensors = {ours: name.partition(".")[2] for ours, name in c.tensors.items()} if alone else c.tensors
    return Network(c.layers, tensors, c.problems, c.reshaped)
