"""From a PyTorch network to layers: torch.fx gives the operations, `layers` says what stands for each, `patterns` what
stands for several."""

import contextlib
import inspect
import io
import math
import operator
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

import torch
from torch import fx, nn

from . import layers, patterns, stacks, weights
from .tracer import BATCH, MODES, NO_GRADIENT, PLACE, called_at, defaults_of, forward_at, graph_of, is_theirs, place

LAYERS_MAX = 256
NAME_MAX = 63
INPUT = "input"  # what layers call the network's input


class Problem(NamedTuple):
    """Something that the built-in trainer cannot do. where: "file:line" of the user's source, "" if it is not known."""

    where: str
    what: str

    def __str__(self) -> str:
        return "%s: %s" % (self.where, self.what) if self.where else self.what


class Network(NamedTuple):
    """layers as a job document has them; tensors: name in the job, name in the state_dict; reshaped: shapes of those
    that have another one in the job, by their names there; fixed: tensors that only the job has, and that stay as they
    are; same: parameters that share another's weight, by their names in the state_dict; stays: what the job lacks."""

    layers: List[Dict[str, Any]]
    tensors: Dict[str, str]
    problems: List[Problem]
    reshaped: Dict[str, List[int]]
    fixed: Dict[str, torch.Tensor]
    same: Dict[str, str]
    stays: List[str]


ALIASES = {"axis": "dim", "keepdims": "keepdim"}  # numpy's words, which PyTorch takes as well
DROPOUTS = (nn.functional.dropout, nn.functional.dropout1d, nn.functional.dropout2d)


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
    return shape[1:] if shape and shape[0] == BATCH and meta.dtype == dtype else None


def tokens_of(node: Any) -> Optional[List[int]]:
    found = shape_of(node, torch.int64)
    return shape_of(node, torch.int32) if found is None else found


FUNCTION_NAMES = names_of_functions()


class Conversion:
    """One network on its way."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self.modules = dict(net.named_modules(remove_duplicate=False))
        self.state = net.state_dict()
        self.parameters = dict(net.named_parameters(remove_duplicate=False))
        self.fixed: Dict[str, torch.Tensor] = {}  # tensors of the job that are none of the network's
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
        # Of patterns: what runs in place of a node, nodes that others stand for.
        self.planned: Dict[fx.Node, Callable[[], None]] = {}
        self.done: Set[fx.Node] = set()
        self.views: Dict[fx.Node, fx.Node] = {}  # of a view that another view reads: what they look at
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
        """A module that becomes several layers, or gives several results."""
        source = node.args[0] if node.args else None
        shape = shape_of(source)
        if shape is None:
            self.refuse(where, "%s: its input is no float32 tensor with the batch as first dimension" % what)
            return
        o = layers.Options(options, [shape], [])
        self.called.update(id(m) for m in module.modules())
        try:
            stacks.SEVERAL[type(module)](self, node, module, o)
        except patterns.Refused as e:
            o.refuse(str(e))
        for text in o.refused:
            self.refuse(where, "%s: %s" % (what, text))
        if o.refused:
            self.done |= patterns.taken(self, node)

    def source(self, node: fx.Node) -> str:
        """The layer whose output an operation reads."""
        return self.values.get(node, INPUT)

    def keep(self, module: nn.Module, target: str) -> None:
        """The last layer has the tensors of a module."""
        named = [name for name, _ in module.named_parameters()]
        named += [name for name, b in module.named_buffers() if b.dtype == torch.float32]
        self.tensors.update({"%s.%s" % (self.layers[-1]["name"], name): "%s.%s" % (target, name) for name in named})
        self.called.update(id(m) for m in module.modules())
        if type(module) in (nn.Linear, nn.Embedding):
            self.tie(id(module.weight))
        if type(module) is nn.LayerNorm:
            self.zero_bias(module.weight is not None and module.bias is None, module.weight)

    def zero_bias(self, lacks: bool, weight: Any) -> None:
        """A norm that trains has a bias here: where PyTorch's has none it stays zero."""
        if lacks:
            self.fixed[self.layers[-1]["name"] + ".bias"] = torch.zeros_like(weight.detach())

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
        self,
        node: fx.Node,
        what: str,
        where: str,
        entry: Any,
        options: Dict[str, Any],
        sources: List[fx.Node],
        wanted: str = "",
    ) -> None:
        """The layers for one operation whose counterpart is known. wanted: their name."""
        whole = entry in (layers.embedding, layers.identity)  # what whole numbers go through
        sources = [self.views.get(s, s) for s in sources]
        shapes = [tokens_of(s) if whole and shape_of(s) is None else shape_of(s) for s in sources]
        output = tokens_of(node) if entry is layers.identity and shape_of(node) is None else shape_of(node)
        if entry is layers.flatten and self.moves_on(node):
            self.values[node], self.views[node] = self.source(sources[0]), sources[0]
            return
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
        if entry is layers.flatten and o.refused and sources[0].op == "placeholder" and output is not None:
            shape = ",".join(map(str, output))
            o.refused = ["give the examples that shape, --input %s, and leave it off" % shape]
        for text in o.refused:
            self.refuse(where, "%s: %s" % (what, text))
        wanted = wanted or (str(node.target) if node.op == "call_module" else node.name)
        if not o.refused:
            self.values[node] = self.append(built, wanted, [self.source(s) for s in sources])

    def moves_on(self, node: fx.Node) -> bool:
        """Only other views read this view, which is neither flat nor what there was: the last of them counts."""

        def views(n: fx.Node) -> bool:
            entry = layers.METHODS.get(str(n.target)) if n.op == "call_method" else layers.FUNCTIONS.get(n.target)
            return entry is not None and entry.build is layers.flatten

        shape, users = shape_of(node), self.users(node)
        return bool(users) and shape is not None and len(shape) > 1 and all(map(views, users))

    def options_of(self, module: nn.Module) -> Dict[str, Any]:
        """What a module was made with."""
        options = {k: v for k, v in vars(module).items() if not k.startswith("_")}
        options.update(bias=getattr(module, "bias", None), training=True, module=module)
        options["in_proj_bias"] = getattr(module, "in_proj_bias", None)
        options["_qkv_same_embed_dim"] = getattr(module, "_qkv_same_embed_dim", None)
        return options

    def in_place(self, node: fx.Node, what: str, source: fx.Node) -> None:
        """What works in place must be the last that reads its input."""
        later = [u for u in source.users if u is not node and self.order.get(u, -1) > self.order[node]]
        if later:
            self.refuse(
                called_at(node),
                "%s: it works in place, and %s reads what was there before" % (what, called_at(later[0]) or later[0]),
            )

    def check_module(self, node: fx.Node, module: nn.Module, what: str, where: str) -> None:
        own = dict(module.named_parameters(recurse=type(module) in stacks.SEVERAL))
        if (own or any(True for _ in module.buffers())) and id(module) in self.called:
            self.refuse(
                called_at(node) or where,
                "%s: it is used twice: make two; an nn.Linear may have an earlier one's weight" % what,
            )
        self.called.add(id(module))
        inside = module.modules() if type(module) in stacks.SEVERAL else [module]
        if any(getattr(m, hooks) for m in inside for hooks in ("_forward_hooks", "_forward_pre_hooks")):
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
            self.called.update(id(m) for m in module.modules())
            self.done |= patterns.taken(self, node)
            self.refuse(where, what + ": " + layers.HINTS.get(type(module), "the built-in trainer has no such layer"))
            return
        sources = [a for a in node.args if isinstance(a, fx.Node)]
        if getattr(module, "inplace", False):
            self.in_place(node, what, sources[0])
        options = self.options_of(module)
        if type(module) in stacks.SEVERAL:
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
        if patterns.is_max(node) and self.largest(node, where, what):
            return
        if node.op == "call_function" and node.target in weights.FUNCTIONS:
            weights.call(self, node, what, where)
            return
        if any(n.op == "get_attr" and str(n.target) in self.parameters for n in node.all_input_nodes):
            self.own_weights(node, what, where)
            return
        if entry is None or (entry.build is layers.take_step and shape_of(node.args[0]) is None):
            self.refuse(where, what + ": " + layers.hint(node.target))
            return
        arguments = list(node.args)
        names = ["input", "other"][: entry.tensors] or ["tensors"]
        given = arguments[: len(names)] + [node.kwargs[n] for n in names[len(arguments) :] if n in node.kwargs]
        if entry.tensors == 0 and isinstance(given[0], (list, tuple)):
            given = list(given[0])
        sources = [a for a in given if isinstance(a, fx.Node)]
        options = dict(entry.arguments)
        options.update(zip(options, arguments[len(names) :]))
        options.update({ALIASES.get(k, k): v for k, v in node.kwargs.items() if k not in names})
        more = sorted(set(options) - set(dict(entry.arguments)))
        if more and entry.build not in (layers.flatten, layers.identity):
            self.refuse(where, "%s: %s=%r has no counterpart" % (what, more[0], options[more[0]]))
            return
        by = layers.factor(entry, given)
        if by is not None and len(sources) == 1:
            if entry.in_place:
                self.in_place(node, what, sources[0])
            self.build(node, what, where, layers.scale, {"by": by}, sources)
            return
        if len(sources) != (entry.tensors or len(given)):
            self.refuse(where, "%s: of numbers, it has no counterpart; weights before it can hold a factor" % what)
            return
        if entry.build is layers.multiply and math.prod(shape_of(sources[0]) or []) < math.prod(
            shape_of(sources[1]) or []
        ):
            sources.reverse()
        for key in dict(entry.arguments):
            if isinstance(options[key], fx.Node):
                self.refuse(where, "%s: %s depends on the input" % (what, key))
                return
        if entry.in_place or options.get("inplace"):
            self.in_place(node, what, sources[0])
        self.build(node, what, where, entry.build, options, sources)

    def own_weights(self, node: fx.Node, what: str, where: str) -> None:
        """A parameter that another operation than those of `weights` reads."""
        names = [str(n.target) for n in node.all_input_nodes if n.op == "get_attr"]
        self.called.update(id(self.modules.get(name.rpartition(".")[0])) for name in names)
        hint = "weights are used by layers of torch.nn, such as nn.Linear, and by F.linear and the like"
        for name in names:
            self.refuse(where, "self.%s: %s, not by %s" % (name, hint, what))

    def largest(self, node: fx.Node, where: str, what: str) -> bool:
        """x.max(dim) gives values and places: of the values amax says the same."""
        values = [u for u in self.users(node) if u.target is operator.getitem and u.args[1] == 0]
        values += [u for u in self.users(node) if u.target is getattr and u.args[1] == "values"]
        if set(values) != set(self.users(node)):
            self.refuse(where, "%s: the places of the largest have no counterpart, its values, x.amax(dim), do" % what)
            self.done |= set(self.users(node))
            return True
        options = {"dim": patterns.argument(node, 1, "dim"), "keepdim": patterns.argument(node, 2, "keepdim", False)}
        self.done |= set(values)
        if values:
            self.build(values[0], what, where, layers.amax, options, node.all_input_nodes[:1])
        self.values.update({v: self.values.get(values[0], INPUT) for v in values})
        return True

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
            self.called.add(id(self.modules.get(str(node.target).rpartition(".")[0])))
            if str(node.target).startswith("_tensor_constant"):
                self.refuse(
                    called_at(node), "a tensor that forward makes has no counterpart, but for masks and positions"
                )
                return
            self.refuse(
                called_at(node),
                "self.%s: weights are used by layers of torch.nn, such as nn.Linear, and by F.linear and the like"
                % node.target,
            )

    # --- the whole

    def check_hooks(self) -> None:
        """Of the network itself, and those that change gradients; other modules with forward hooks are seen where they
        are called."""
        for name, m in self.modules.items():
            own = (m._forward_hooks, m._forward_pre_hooks) if m is self.net else ()
            if any((*own, m._backward_hooks, m._backward_pre_hooks)):
                self.refuse(m.__dict__.get(PLACE, ""), "%s: hooks have no counterpart" % (name or "the network"))
        for name, p in self.parameters.items():
            if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
                owner = self.modules[name.rpartition(".")[0]]
                self.refuse(owner.__dict__.get(PLACE, ""), "%s: hooks have no counterpart" % name)

    def check_rest(self) -> None:
        """What stands in the state_dict and in no layer; what stands in two."""
        seen: Dict[int, str] = {}
        owners: Dict[int, nn.Module] = {}
        used = set(self.tensors.values())
        for name, p in self.net.named_parameters(remove_duplicate=False):
            owner = self.modules[name.rpartition(".")[0]]
            where = owner.__dict__.get(PLACE, "")
            if name in self.shared or owners.get(id(p)) is owner:  # a second name of one module
                continue
            owners.setdefault(id(p), owner)
            if id(p) in seen and id(owner) in self.called:
                self.refuse(where, "%s is %s: only nn.Linear uses an earlier layer's weight" % (name, seen[id(p)]))
            elif name not in used and id(owner) not in self.called:
                self.refuse(where, "%s: nothing on the way to the output uses it" % name)
            seen.setdefault(id(p), name)

    def same(self, a: fx.Node, b: fx.Node) -> bool:
        """The same operation? Tensors that forward makes have other names each time."""
        if all(n.op == "get_attr" and str(n.target).startswith("_tensor_constant") for n in (a, b)):
            return torch.equal(getattr(self.net, str(a.target)), getattr(self.net, str(b.target)))
        return (a.op, str(a.target)) == (b.op, str(b.target))

    def state_of(self, name: str) -> Any:
        """The parameter or buffer itself."""
        return self.parameters[name] if name in self.parameters else self.state.get(name)

    def first_name(self, p: torch.Tensor) -> str:
        """The name of a parameter that a layer has, or else its first one."""
        names = [name for name, other in self.parameters.items() if other is p]
        return next((name for name in names if name in self.tensors.values()), names[0])

    def check_sizes(self, one: fx.Graph, other: fx.Graph) -> None:
        """Code that asks for the size of the batch does the same with any."""

        def words(graph: fx.Graph) -> List[str]:
            return [n.op + " " + re.sub(r"^_tensor_constant\d+$", "constant", str(n.target)) for n in graph.nodes]

        if words(one) != words(other):
            self.refuse(
                forward_at(self.net), "torch.fx cannot follow this: forward does other things with another batch size"
            )

    def check_modes(self, train: fx.Graph, evaluation: fx.Graph) -> None:
        """Training and evaluation do the same but for dropout, which is on in one and off in the other."""
        one, two = list(train.nodes), list(evaluation.nodes)
        if len(one) != len(two) or not all(self.same(a, b) for a, b in zip(one, two)):
            self.refuse(forward_at(self.net), "forward does other things in training than in evaluation")
            return
        for a, b in zip(one, two):
            if False in a.meta.get(MODES, ()) or True in b.meta.get(MODES, ()):
                module = self.modules[str(a.target)]
                self.refuse(
                    self.place_of(a),
                    "%s (nn.%s): it is not in training when the network is, and in evaluation when it is: that has no "
                    "counterpart" % (a.target, type(module).__name__),
                )
            if a.target in DROPOUTS and drops(b):
                self.refuse(called_at(a), "dropout: it drops in evaluation, too; give training=self.training")
            if a.target is nn.functional.batch_norm and [self.trains(n) for n in (a, b)] != [True, False]:
                self.refuse(called_at(a), "F.batch_norm: give training=self.training, or use nn.BatchNorm2d")
            if a.target is patterns.ATTEND and patterns.argument(b, 4, "dropout_p", 0.0) != 0:
                self.refuse(called_at(a), "F.scaled_dot_product_attention: it drops in evaluation, too")

    @staticmethod
    def trains(node: fx.Node) -> Any:
        """The argument `training` of functional.batch_norm."""
        return weights.arguments_of(node, weights.FUNCTIONS[node.target])["training"]

    def by_place(self, node: fx.Node) -> None:
        """What a module reads stands first, without its name."""
        if node.op != "call_module" or node.args:
            return
        name = list(inspect.signature(type(self.modules[str(node.target)]).forward).parameters)[1]
        if name in node.kwargs:
            node.args = (node.kwargs[name],)
            node.kwargs = {k: v for k, v in node.kwargs.items() if k != name}

    def run(self, graph: fx.Graph, shape: Sequence[int], tokens: bool) -> bool:
        """False: torch.fx cannot follow it."""
        (output,) = [n for n in graph.nodes if n.op == "output"]
        values = patterns.Values(fx.GraphModule(self.net, graph))
        try:
            with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()):  # where it shows its own stack
                values.propagate(example_of(BATCH, shape, tokens), *defaults_of(self.net).values())
        except Exception as e:
            self.refuse(forward_at(self.net), "torch.fx cannot follow this: %s" % first_line(e.__cause__ or e))
            return False
        self.found, self.constants = values.found, patterns.constants(graph)
        needed = {output}
        for node in reversed(list(graph.nodes)):
            if node in needed:
                needed.update(node.all_input_nodes)
        nodes = [n for n in graph.nodes if n in needed]
        self.order = {n: i for i, n in enumerate(nodes)}
        for node in nodes:
            self.by_place(node)
        weights.find(self, nodes)
        patterns.find(self, nodes)
        for node in nodes:
            self.take(node)
        result = result_of(output)
        if not isinstance(result, fx.Node) or shape_of(result) is None:
            self.refuse(forward_at(self.net), "forward must return one tensor with the batch as first dimension")
        elif not self.problems and self.layers and self.source(result) != self.layers[-1]["name"]:
            self.refuse(forward_at(self.net), "forward must return what its last operation gives")
        own = [self.parameters[name] for name in self.tensors.values() if name in self.parameters]
        if not self.problems and not any(p.requires_grad for p in own):
            self.refuse(forward_at(self.net), "the network has nothing to train")
        if len(self.layers) > LAYERS_MAX:
            self.refuse("", "%d layers; a job has at most %d" % (len(self.layers), LAYERS_MAX))
        return True


def result_of(output: fx.Node) -> Any:
    """What forward returns; of a pair such as (logits, loss) without a loss, the first."""
    given = output.args[0]
    first, *rest = given if isinstance(given, tuple) else (given,)
    return first if all(r is None for r in rest) else given


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def example_of(count: int, shape: Sequence[int], tokens: bool) -> torch.Tensor:
    """What a network is followed with: zeros, or tokens that are no padding."""
    return torch.ones(count, *shape, dtype=torch.int64) if tokens else torch.zeros(count, *shape)


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
    buffers = {name: b.clone() for name, b in net.named_buffers()}
    try:
        graphs = [graph_of(net, training, example_of(BATCH, shape, tokens)) for training in (True, False)]
        other = graph_of(net, False, example_of(BATCH + 1, shape, tokens))
    except Exception as e:  # of torch.fx: what it cannot follow, such as a branch on a value
        c.refuse(error_at(e) or forward_at(net), "torch.fx cannot follow this: %s" % first_line(e))
    if graphs:
        c.check_modes(*graphs)
        c.check_sizes(graphs[1], other)
        c.check_hooks()
        if c.run(graphs[0], shape, tokens):
            c.check_rest()
    with torch.no_grad():
        for name, b in net.named_buffers():  # a function that works on statistics has moved them
            b.copy_(buffers[name])
    tensors = {ours: name.partition(".")[2] for ours, name in c.tensors.items()} if alone else c.tensors
    same = {name: c.first_name(p) for name, p in c.parameters.items()}
    same = {name: first for name, first in same.items() if name != first and name not in c.tensors.values()}
    # Tables and counters: what of them counts is in the operations.
    stays = [name for name in c.state if name not in c.parameters and name not in c.tensors.values()]
    if alone:
        stays = [name.partition(".")[2] for name in stays]
        same = {name.partition(".")[2]: first.partition(".")[2] for name, first in same.items()}
    return Network(c.layers, tensors, c.problems, c.reshaped, c.fixed, same, stays)
