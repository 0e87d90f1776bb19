"""Between a PyTorch network and the job's model: the table of names, and weights that go through it in both directions.

`python -m rivulet.convert` writes the table twice: as `names.json`, and into the metadata of `init.safetensors`. A
model that was trained has no metadata of its own; its table is found beside it, or is given.
"""

import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Union

from .. import safetensors
from .._text import utf8

FILE = "names.json"
KEY = "rivulet.names"  # of the metadata
SHOWN = 4  # names that an error lists


class Table(NamedTuple):
    """names: name in the job, name in the state_dict; same: names in the state_dict of what has another's weight, and
    that one's; fixed: what only the job has; stays: buffers that only the network has."""

    names: Dict[str, str]
    same: Dict[str, str]
    fixed: List[str]
    stays: List[str]

    def text(self) -> str:
        return json.dumps(self._asdict(), indent=1) + "\n"


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def parse(text: Union[str, bytes], where: str) -> Table:
    """ValueError: it is no such table."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not _is_texts(found.get("names")) or not _is_texts(found.get("same", {})):
        raise ValueError("%s is no table of names as rivulet.convert writes it" % where)
    lists = [found.get("fixed", []), found.get("stays", [])]
    if not all(isinstance(some, list) and all(isinstance(name, str) for name in some) for some in lists):
        raise ValueError("%s is no table of names as rivulet.convert writes it" % where)
    return Table(found["names"], found.get("same", {}), *lists)


def table_of(path: str, metadata: Mapping[str, str], given: Optional[str]) -> Optional[Table]:
    """The table that is given, that of the file, or that of the folder in which it lies; None: there is none."""
    if given is None and KEY in metadata:
        return parse(metadata[KEY], path)
    at = os.path.join(os.path.dirname(os.path.abspath(path)), FILE) if given is None else given
    if os.path.isdir(at):
        at = os.path.join(at, FILE)
    if given is None and not os.path.exists(at):
        return None
    with open(at, "rb") as f:
        return parse(utf8(f.read(), at), at)


def _listed(names: Any) -> str:
    names = sorted(names)
    return ", ".join(names[:SHOWN]) + (" and %d more" % (len(names) - SHOWN) if len(names) > SHOWN else "")


_WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}


def base_of(net: Any) -> Any:
    """The network within what torch.compile, the two DataParallel and PEFT put around it."""
    while type(net).__name__ in _WRAPPERS and hasattr(net, _WRAPPERS[type(net).__name__]):
        net = getattr(net, _WRAPPERS[type(net).__name__])
    return net.get_base_model() if hasattr(net, "peft_config") and hasattr(net, "get_base_model") else net


def _ties(net: Any) -> Dict[str, List[str]]:
    """Of each parameter all names that share it."""
    groups: Dict[int, List[str]] = {}
    for name, p in net.named_parameters(remove_duplicate=False):
        groups.setdefault(id(p), []).append(name)
    return {name: group for group in groups.values() for name in group}


def _renamed(path: str, tensors: Dict[str, Any], state: Mapping[str, Any], table: Optional[Table]) -> Dict[str, Any]:
    """The tensors under the network's names: through the table, or as they are called."""
    if table is not None:
        fixed = set(table.fixed)
        if set(tensors) - fixed <= set(table.names):
            return {table.names[name]: t for name, t in tensors.items() if name not in fixed}
    if set(tensors) <= set(state):
        return tensors
    known = set(state) | set(table.names if table else ())
    unknown = _listed(set(tensors) - known) or _listed(set(tensors) - set(state))
    if table is None:
        raise ValueError(
            "%s: the network has no %s; say names=%r of the folder that rivulet.convert wrote" % (path, unknown, FILE)
        )
    raise ValueError("%s: %s: not in the table of names; it is the model of another network" % (path, unknown))


def _left(state: Mapping[str, Any], found: Set[str], table: Optional[Table]) -> Set[str]:
    """What of the network is in no model: not what a batch norm counts, nor tables that it was made with."""
    stays = set(table.stays) | set(table.same) if table else set()
    return {n for n in set(state) - found - stays if not n.endswith("num_batches_tracked")}


def _tensor(file: safetensors.File, t: safetensors.Tensor) -> Any:
    import torch

    array = safetensors.array(file.bytes(t), t.type, t.shape).copy()
    if t.type == "BF16":
        return torch.from_numpy(array.view("<i2")).view(torch.bfloat16)
    return torch.from_numpy(array)


def _fit(name: str, tensor: Any, like: Any) -> Any:
    """In the network's shape: ours may lack dimensions of 1."""
    ours, theirs = [n for n in tensor.shape if n != 1], [n for n in like.shape if n != 1]
    if ours != theirs:
        raise ValueError("%s is %s in the file and %s in the network" % (name, list(tensor.shape), list(like.shape)))
    return tensor.reshape(like.shape).to(like.dtype)


def load(net: Any, file: Union[str, "os.PathLike[str]"], names: Optional[str] = None) -> Any:
    """Puts a model file into the PyTorch network that it came from, and returns the network.

    The file's tensors may be called as in the job or as in the network's state_dict. Weights that layers share are set
    together, running statistics of norms too. names: names.json, or the folder it lies in; without, it is looked for
    in the file and beside it. All of the network must be there and all of the file must have a place: ValueError names
    what has none. OSError: a file cannot be read.
    """
    path = os.fspath(file)
    opened = safetensors.File(path)
    table = table_of(path, opened.metadata, names)
    net = base_of(net)
    state, ties = net.state_dict(), _ties(net)
    found = _renamed(path, {t.name: _tensor(opened, t) for t in opened}, state, table)
    for other, first in (table.same if table else {}).items():
        if first in found:
            found.setdefault(other, found[first])
    for name in list(found):
        for other in ties.get(name, []):
            found.setdefault(other, found[name])
    foreign = set(found) - set(state)
    if foreign:
        raise ValueError("%s: the network has no %s" % (path, _listed(foreign)))
    missing = _left(state, set(found), table)
    if missing:
        raise ValueError("%s: it lacks %s of the network" % (path, _listed(missing)))
    net.load_state_dict(dict(state, **{name: _fit(name, t, state[name]) for name, t in found.items()}), strict=True)
    return net


def save(
    net: Any,
    file: Union[str, "os.PathLike[str]"],
    like: Union[str, "os.PathLike[str]"],
    names: Optional[str] = None,
) -> None:
    """Writes the network's weights as the model of a job: names and shapes are those of `like`, a model of that job,
    such as init.safetensors. ValueError: they do not fit each other."""
    example = os.fspath(like)
    opened = safetensors.File(example)
    table = table_of(example, opened.metadata, names)
    net = base_of(net)
    state, ties = net.state_dict(), _ties(net)
    out: Dict[str, Any] = {}
    for t in opened:
        if table is not None and t.name in table.fixed:
            out[t.name] = _tensor(opened, t)
            continue
        theirs = table.names.get(t.name, t.name) if table is not None else t.name
        if theirs not in state:
            raise ValueError("%s: the network has no %s" % (example, theirs))
        value = state[theirs].detach().cpu()
        if [n for n in value.shape if n != 1] != [n for n in t.shape if n != 1]:
            raise ValueError(
                "%s is %s in %s and %s in the network" % (theirs, list(t.shape), example, list(value.shape))
            )
        out[t.name] = value.reshape(t.shape).to(_tensor(opened, t).dtype)
    written = {table.names.get(name, name) if table is not None else name for name in out}
    left = _left(state, {other for name in written for other in ties.get(name, [name])}, table)
    if left:
        raise ValueError("%s: it lacks %s of the network" % (example, _listed(left)))
    safetensors.save(os.fspath(file), out, {KEY: table.text()} if table is not None else None)
