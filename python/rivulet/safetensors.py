"""Model files: safetensors, mapped and not read, and written in one pass. Only `load` and `save` need numpy."""
import json
import mmap
import os
import struct
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import _files

HEADER_MAX = 16 << 20
TENSORS_MAX = 65536
DIMS_MAX = 8
ALIGN = 8

# safetensors' words: bytes of an element, numpy's code. numpy has no bfloat16: its 16 bits are shown as they are.
TYPES: Dict[str, Tuple[int, str]] = {
    "F32": (4, "<f4"),
    "F64": (8, "<f8"),
    "F16": (2, "<f2"),
    "BF16": (2, "<u2"),
    "I8": (1, "|i1"),
    "U8": (1, "|u1"),
    "I16": (2, "<i2"),
    "U16": (2, "<u2"),
    "I32": (4, "<i4"),
    "U32": (4, "<u4"),
    "I64": (8, "<i8"),
    "U64": (8, "<u8"),
    "BOOL": (1, "|b1"),
}
_WORDS = {code: word for word, (_, code) in TYPES.items() if word != "BF16"}


class Tensor(NamedTuple):
    """Where one tensor lies in a file's data."""

    name: str
    type: str  # a key of TYPES
    shape: Tuple[int, ...]
    begin: int  # bytes
    end: int


class Raw(NamedTuple):
    """A tensor to be saved, as bytes."""

    type: str
    shape: Tuple[int, ...]
    data: memoryview


def _pairs(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name stands there twice")
    return out


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _tensor(name: str, entry: Any) -> Tensor:
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str) or entry["dtype"] not in TYPES:
        raise ValueError("tensor %r has no type that is known here" % name)
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or len(shape) > DIMS_MAX or not all(map(_is_count, shape)):
        raise ValueError("tensor %r has no proper shape" % name)
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise ValueError("tensor %r has no proper offsets" % name)
    size = TYPES[entry["dtype"]][0]
    for n in shape:
        size *= n
    if offsets[1] - offsets[0] != size:
        raise ValueError("tensor %r has %d bytes and not %d" % (name, offsets[1] - offsets[0], size))
    return Tensor(name, entry["dtype"], tuple(shape), offsets[0], offsets[1])


def parse(header: bytes, size: int) -> Tuple[List[Tensor], Dict[str, str]]:
    """The tensors of a header, in the order of their data, and its metadata. size: bytes of the data that follows.

    ValueError: it is not a header of such a file; what is wrong is named.
    """
    try:
        entries = json.loads(header.decode("utf-8"), object_pairs_hook=_pairs)
    except (UnicodeDecodeError, RecursionError) as e:
        raise ValueError("the header is no JSON: %s" % e) from None
    if not isinstance(entries, dict):
        raise ValueError("the header is no object")
    meta = entries.pop("__metadata__", {})
    if len(entries) > TENSORS_MAX:
        raise ValueError("%d tensors, and at most %d are taken" % (len(entries), TENSORS_MAX))
    tensors = sorted((_tensor(name, entry) for name, entry in entries.items()), key=lambda t: (t.begin, t.end))
    at = 0
    for t in tensors:
        if t.begin != at:
            raise ValueError("tensor %r does not follow the one before it" % t.name)
        at = t.end
    if at != size:
        raise ValueError("the tensors have %d bytes, the file has %d" % (at, size))
    if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
        raise ValueError("__metadata__ is no object of texts")
    return tensors, meta


class File:
    """A model file, mapped. `private`: its bytes may be changed in memory; the file never is."""

    def __init__(self, path: str, private: bool = False) -> None:
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            prefix = f.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
            if length < 2 or length > HEADER_MAX or 8 + length > size:
                raise ValueError("%s is no safetensors file: its header would have %d bytes" % (path, length))
            try:
                self.tensors, self.metadata = parse(f.read(length), size - 8 - length)
            except ValueError as e:
                raise ValueError("%s: %s" % (path, e)) from None
            access = mmap.ACCESS_COPY if private else mmap.ACCESS_READ
            self._data = memoryview(mmap.mmap(f.fileno(), 0, access=access))[8 + length :]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def bytes(self, t: Tensor) -> memoryview:
        """A view of the tensor's bytes; it keeps the mapping alive."""
        return self._data[t.begin : t.end]


def array(data: memoryview, type: str, shape: Tuple[int, ...]) -> Any:
    """A numpy view of a tensor's bytes, of the given shape; bfloat16 as 16-bit unsigned integers."""
    import numpy

    return numpy.frombuffer(data, numpy.dtype(TYPES[type][1])).reshape(shape)


def load(path: str) -> Dict[str, Any]:
    """The tensors of a file by name, in its order: numpy views of the mapped file, read only.

    OSError: it cannot be read; ValueError: it is no safetensors file.
    """
    file = File(path)
    return {t.name: array(file.bytes(t), t.type, t.shape) for t in file}


def contents(value: Any) -> Tuple[str, Tuple[int, ...], memoryview]:
    """Type, shape and bytes of a numpy array, a torch tensor, or what becomes an array. Copies only if it must."""
    import sys

    if isinstance(value, Raw):
        return value
    import numpy

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        if value.dtype == torch.bfloat16:
            raw = value.view(torch.int16).numpy()
            return "BF16", tuple(value.shape), memoryview(raw.reshape(-1)).cast("B")
        value = value.numpy()
    a = numpy.asarray(value)
    shape = a.shape
    a = numpy.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"), copy=False))
    word = _WORDS.get(a.dtype.str)
    if word is None:
        raise ValueError("a model file has no type for %s" % a.dtype)
    return word, shape, memoryview(a.reshape(-1).view(numpy.uint8))


def _pieces(tensors: Mapping[str, Any], metadata: Optional[Mapping[str, str]]) -> List[Any]:
    """What a file is made of, one behind the other."""
    parts = [(name, *contents(value)) for name, value in tensors.items()]
    header: Dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, word, shape, data in parts:
        header[name] = {"dtype": word, "shape": list(shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGN)
    return [struct.pack("<Q", len(text)) + text, *(data for _, _, _, data in parts)]


def dump(tensors: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> bytes:
    """The bytes of the file that `save` writes."""
    return b"".join(_pieces(tensors, metadata))


def save(path: str, tensors: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes numpy arrays or torch tensors by name, in the order given; the file appears whole or not at all.

    ValueError: a type that the format does not have; OSError: it cannot be written.
    """
    _files.write(path, _pieces(tensors, metadata))
