"""What a task keeps for the next one: any nesting of tensors, numbers and texts as one model file, never as code.

Tensors lie in it by name; all else is the JSON text ``__metadata__.state``, where {"$torch": name} or {"$numpy": name}
stands for a tensor, and {"$tuple": [...]}, {"$dict": [[key, value], ...]}, {"$float": "nan"} for what JSON has not.
"""
import json
import math
import struct
import sys
from typing import Any, Dict, Mapping, Optional, Set, Tuple

from . import Error, _files, safetensors

HEADER_MAX = 1 << 20  # of a model file, as an agent reads it
TENSORS_MAX = 4096
_NAME_MAX = 127
_WORDS = ("$torch", "$numpy", "$tuple", "$dict", "$float")


class _Packer:
    def __init__(self) -> None:
        self.tensors: Dict[str, Any] = {}
        self._open: Set[int] = set()  # ids of what is being gone through

    def _name(self, path: str) -> str:
        plain = 0 < len(path) <= _NAME_MAX and path.isascii() and path.isprintable()
        if plain and path not in self.tensors and path != "__metadata__":
            return path
        return "tensor %d" % len(self.tensors)

    def _tensor(self, word: str, value: Any, path: str) -> Dict[str, str]:
        try:
            found = safetensors.Raw(*safetensors.contents(value))
        except (ValueError, TypeError, RuntimeError) as e:
            raise ValueError("%s cannot be kept: %s" % (path or "the state", e)) from None
        name = self._name(path)
        self.tensors[name] = found
        return {word: name}

    def pack(self, value: Any, path: str) -> Any:
        """The value as JSON can have it."""
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor("$torch", value, path)
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._tensor("$numpy", value, path)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if id(value) in self._open:
            raise ValueError("%s cannot be kept: it holds itself" % (path or "the state"))
        self._open.add(id(value))
        out = self._pack_many(value, path)
        self._open.remove(id(value))
        return out

    def _pack_many(self, value: Any, path: str) -> Any:
        def below(key: Any) -> str:
            return "%s.%s" % (path, key) if path else str(key)

        if isinstance(value, Mapping):
            items = [(key, self.pack(v, below(key))) for key, v in value.items()]
            if all(isinstance(key, str) and key not in _WORDS for key, _ in items):
                return dict(items)
            return {"$dict": [[self.pack(key, ""), v] for key, v in items]}
        if isinstance(value, (list, tuple)):
            out = [self.pack(v, below(i)) for i, v in enumerate(value)]
            return {"$tuple": out} if isinstance(value, tuple) else out
        raise ValueError(
            "%s cannot be kept: a %s is no tensor, number, text, list or dict of such"
            % (path or "the state", type(value).__name__)
        )


def pack(state: Any) -> Tuple[Dict[str, safetensors.Raw], Dict[str, str]]:
    """Tensors by name, and metadata. What has a ``state_dict`` is kept as that. ValueError names what cannot be."""
    packer = _Packer()
    if not isinstance(state, Mapping) and callable(getattr(state, "state_dict", None)):
        state = state.state_dict()
    try:
        text = json.dumps(packer.pack(state, ""), allow_nan=False)
    except RecursionError:
        raise ValueError("the state cannot be kept: it is nested too deep") from None
    if len(packer.tensors) > TENSORS_MAX:
        raise ValueError("%d tensors, and at most %d can be kept" % (len(packer.tensors), TENSORS_MAX))
    return packer.tensors, {"state": text}


def dump(state: Any) -> bytes:
    """Such a file's bytes."""
    data = safetensors.dump(*pack(state))
    header = struct.unpack("<Q", data[:8])[0]
    if header > HEADER_MAX:
        raise ValueError("what is no tensor takes %d bytes as JSON, and at most %d can be kept" % (header, HEADER_MAX))
    return data


def write(path: str, state: Any, room: int) -> None:
    """The file, whole or not at all. Error with code "limit": it has more than `room` bytes; "io": the disk's."""
    data = dump(state)
    if len(data) > room:
        text = "a state of %d bytes, and there is room for %d (the device's kept_bytes)" % (len(data), room)
        raise Error(text, "limit")
    try:
        _files.write(path, [data])
    except OSError as e:
        raise Error("what is to be kept cannot be written: %s" % e, "io") from e


def _array(t: safetensors.Tensor, data: memoryview, word: str) -> Any:
    import numpy

    a = numpy.frombuffer(bytearray(data), numpy.dtype(safetensors.TYPES[t.type][1])).reshape(t.shape)
    if word == "$numpy":
        return a
    import torch

    if t.type == "BF16":
        return torch.from_numpy(a.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(a)


def _unpack(value: Any, tensors: Dict[str, Tuple[safetensors.Tensor, memoryview]]) -> Any:
    if isinstance(value, list):
        return [_unpack(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    word = next(iter(value), "")
    if word not in _WORDS:
        return {key: _unpack(v, tensors) for key, v in value.items()}
    inner = value[word]
    if word == "$float":
        return float(inner)
    if word == "$tuple":
        return tuple(_unpack(inner, tensors))
    if word == "$dict":
        return {_unpack(key, tensors): _unpack(v, tensors) for key, v in inner}
    return _array(*tensors[inner], word)


def load(data: Any) -> Any:
    """What `dump` was given, of a file's bytes. Error with code "corrupt": they are none of it."""
    view = memoryview(data)
    try:
        length = struct.unpack("<Q", view[:8])[0]
        body = view[8 + length :]
        tensors, meta = safetensors.parse(bytes(view[8 : 8 + length]), len(body))
        by_name = {t.name: (t, body[t.begin : t.end]) for t in tensors}
        return _unpack(json.loads(meta["state"]), by_name)
    except (ValueError, KeyError, TypeError, struct.error) as e:
        raise Error("what was kept cannot be read: %s: %s" % (type(e).__name__, e), "corrupt") from None


class Kept:
    """What an earlier task of the job kept."""

    def __init__(self, data: Any = None, number: int = 0, model: str = "") -> None:
        self._data, self.round, self.model = data, number, model

    def state(self) -> Any:
        return None if self._data is None else load(self._data)


def of_file(path: Optional[str], task: Mapping[str, Any]) -> Kept:
    """As an agent gives it."""
    if not path:
        return Kept()
    with open(path, "rb") as f:
        return Kept(f.read(), int(task.get("kept_round", 0)), str(task.get("kept_model", "")))


