"""What a job begins with: the tensors of a network, and what happens to each of them in the job (its role)."""
import re
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from . import Error

PATTERNS_MAX = 64
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_WRAPPERS = ("module.", "_orig_mod.")


def of(init: Any, whole: bool) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Tensors and roles, by name, of a torch module, or of a mapping from names to torch tensors or numpy arrays.

    A module's parameters are ``train`` where they require a gradient and ``frozen`` where not, its floating buffers
    ``average``, all else ``frozen``. Of a mapping (a ``state_dict``) floats are ``train``: it does not tell what is a
    buffer. What travels becomes 32-bit floats; ``whole``: all floats do, for a job with layers. The names lose what
    DataParallel and torch.compile put before.
    """
    entries = _entries(init)
    tensors: Dict[str, Any] = {}
    roles: Dict[str, str] = {}
    for name, value, role in entries:
        kind = str(value.dtype).rpartition(".")[2]
        if kind in _FLOATS and kind != "float32" and (whole or role != "frozen"):
            value = value.float() if hasattr(value, "float") else value.astype("float32")
        tensors[name], roles[name] = value, role
    if "train" not in roles.values():
        raise Error("no tensor of the initial model is to be trained", "invalid")
    return tensors, roles


def _entries(init: Any) -> Iterator[Tuple[str, Any, str]]:
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(init, torch.nn.Module)
    if not is_module and not isinstance(init, Mapping):
        raise Error("init is a torch module, a state_dict, or the path of a safetensors file", "invalid")
    state = init.state_dict(keep_vars=True) if is_module else init
    wrong = [name for name in state if not isinstance(name, str)]
    if wrong:
        raise Error("init: %r is no name of a tensor, which is a text" % (wrong[0],), "invalid")
    prefix = _wrapper(list(state))
    for name, value in state.items():
        if not hasattr(value, "dtype"):
            continue  # get_extra_state()
        floating = str(value.dtype).rpartition(".")[2] in _FLOATS
        trains = value.requires_grad if is_module and isinstance(value, torch.nn.Parameter) else not is_module
        averages = is_module and not isinstance(value, torch.nn.Parameter)
        role = "train" if floating and trains else "average" if floating and averages else "frozen"
        yield name[len(prefix) :], value, role


def _wrapper(names: List[str]) -> str:
    prefix = ""
    while names and any(all(name.startswith(prefix + w) for name in names) for w in _WRAPPERS):
        prefix = next(prefix + w for w in _WRAPPERS if names[0].startswith(prefix + w))
    return prefix


def fits(pattern: str, name: str) -> bool:
    """Does the pattern of a job, in which ``*`` stands for any run of characters, fit a tensor's name?"""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def patterns(tensors: Mapping[str, Any], roles: Mapping[str, str], given: Mapping[str, str]) -> Dict[str, str]:
    """The job's ``tensors``: what was given, then as few patterns as say the roles of names that fit none of those."""
    left = {name: role for name, role in roles.items() if not any(fits(p, name) for p in given)}
    standard = {n: "train" if str(tensors[n].dtype).rpartition(".")[2] == "float32" else "frozen" for n in left}
    ways = [_cover(left, {n: r for n, r in left.items() if r != standard[n]}, None)]
    if "frozen" in left.values():
        ways.append(_cover(left, {n: r for n, r in left.items() if r != "frozen"}, "frozen"))
    best = min(ways, key=len)
    if len(given) + len(best) > PATTERNS_MAX:
        raise Error(
            "%d patterns would say what happens to which tensor, and a job has %d at most: give `tensors` in the job"
            % (len(given) + len(best), PATTERNS_MAX),
            "limit",
        )
    return {**given, **best}


def _cover(roles: Mapping[str, str], wanted: Mapping[str, str], rest: Optional[str]) -> Dict[str, str]:
    out: Dict[str, str] = {}
    for name, role in wanted.items():
        if not any(fits(pattern, name) for pattern in out):
            out[_widest(name, role, roles)] = role
    if rest:
        out["*"] = rest
    return out


def _widest(name: str, role: str, roles: Mapping[str, str]) -> str:
    """The pattern that fits most names besides this one and none of another role."""
    parts = name.split(".")
    candidates = [name, re.sub(r"(?<=\.)\d+(?=\.)", "*", name)]
    candidates += [".".join(parts[:n]) + ".*" for n in range(1, len(parts))]
    candidates += ["*." + ".".join(parts[n:]) for n in range(1, len(parts))]
    candidates += ["*.%s.*" % part for part in parts[1:-1] if not part.isdigit()]

    def covered(pattern: str) -> int:
        reached = [roles[n] for n in roles if fits(pattern, n)]
        return len(reached) if len(pattern) <= 127 and set(reached) == {role} else 0

    return max(candidates, key=lambda pattern: (covered(pattern), -len(pattern)))

