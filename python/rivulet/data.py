"""Data files of others made into files that devices read.

``python -m rivulet.data npz FILE.npz -o FOLDER``: each array of an npz as NAME.npy, for ``format = npy``.
``python -m rivulet.data leaf FILE.json... -o OUT``: LEAF's JSON as a packed set whose groups are the users, for
``format = packed`` with ``partition = column``.

The layout of packed sets stands in wire/FORMAT.md. Needs numpy.
"""
import argparse
import contextlib
import hashlib
import json
import os
import struct
import sys
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple

from . import _files
from ._text import utf8

if TYPE_CHECKING:
    import numpy

HEAD = 128
HASH_AT = 96
CLASSES_MAX = 4096
NAMES_MAX = 1 << 20  # bytes


class DataError(Exception):
    """What cannot be converted: a sentence that names the file, or the part of it."""


def save_packed(
    path: str,
    x: "numpy.ndarray[Any, Any]",
    y: "numpy.ndarray[Any, Any]",
    classes: Optional[Sequence[str]] = None,
    groups: "Optional[numpy.ndarray[Any, Any]]" = None,
) -> str:
    """Writes a packed set and returns the SHA-256 of its head, in hex.

    x: [n, features], [n, height, width] or [n, channels, height, width]; uint8 are pixels, all else becomes float32.
    y: [n] of whole numbers are classes from 0; [n] or [n, width] of floating point are targets.
    classes: their names in order. groups: [n], from 0: which examples belong together.

    Raises DataError for shapes that do not fit, values that are not finite, or classes out of range.
    """
    import numpy

    x = numpy.asarray(x)
    if x.ndim < 2 or x.ndim > 4 or x.size == 0:
        raise DataError("x has shape %s: examples have 2 to 4 dimensions, none of them 0" % (x.shape,))
    if x.dtype != numpy.uint8:
        x = _floats("x", x)
    y, labels = _labels(numpy.asarray(y), len(x), classes)
    count = max(int(y.max()) + 1, len(classes or ())) if labels else 0
    parts = [numpy.ascontiguousarray(x).tobytes(), y.tobytes()]
    group_count = 0
    if groups is not None:
        groups = numpy.asarray(groups)
        if groups.shape != (len(x),) or groups.min() < 0:
            raise DataError("groups are one number from 0 for each example")
        group_count = int(groups.max()) + 1
        parts.append(groups.astype("<u4").tobytes())
    names = _names(classes)
    parts.append(names)
    head = _head(x, count, 0 if labels else (y.shape[1] if y.ndim == 2 else 1), group_count, len(names), parts)
    return _write(path, head, parts)


def _floats(what: str, x: "numpy.ndarray[Any, Any]") -> "numpy.ndarray[Any, Any]":
    import numpy

    with numpy.errstate(over="ignore"):
        x = x.astype("<f4")
    if not numpy.isfinite(x).all():
        raise DataError("%s holds a value that is not finite, example %d" % (what, _first_bad(x)))
    return x


def _first_bad(x: "numpy.ndarray[Any, Any]") -> int:
    import numpy

    return int(numpy.argwhere(~numpy.isfinite(x))[0][0]) + 1


def _labels(
    y: "numpy.ndarray[Any, Any]", n: int, classes: Optional[Sequence[str]]
) -> Tuple["numpy.ndarray[Any, Any]", bool]:
    """The bytes that follow the values, and whether they are labels."""
    import numpy

    if y.shape[:1] != (n,):
        raise DataError("%d labels for %d examples" % (len(y), n))
    if not numpy.issubdtype(y.dtype, numpy.integer):
        if y.ndim > 2:
            raise DataError("targets have 1 or 2 dimensions")
        return _floats("y", y), False
    most = len(classes) if classes else CLASSES_MAX
    if y.ndim != 1 or most > CLASSES_MAX or y.min() < 0 or y.max() >= most:
        raise DataError("a label is a whole number from 0 to %d" % (most - 1))
    return y.astype("<u4"), True


def _names(classes: Optional[Sequence[str]]) -> bytes:
    if not classes:
        return b""
    if any(not name or any(ord(c) < 32 for c in name) for name in classes):
        raise DataError("a class name is empty or has a control character")
    names = "".join(name + "\n" for name in classes).encode()
    if len(names) > NAMES_MAX:
        raise DataError("the class names take more than %d bytes" % NAMES_MAX)
    return names


def _head(
    x: "numpy.ndarray[Any, Any]", classes: int, width: int, groups: int, names: int, parts: List[bytes]
) -> bytes:
    shape = x.shape[1:] if x.ndim == 4 else (1,) + x.shape[1:] if x.ndim == 3 else x.shape[1:] + (1, 1)
    head = b"RVP1" + struct.pack(
        "<HHHH3IQIIIIQQ", 1, HEAD, 0 if x.dtype == "uint8" else 1, 1 if x.ndim == 2 else 3, *shape, len(x),
        classes, width, groups, 0, names, HEAD + sum(map(len, parts))
    )  # fmt: skip
    return head.ljust(HASH_AT, b"\0")


def _write(path: str, head: bytes, parts: List[bytes]) -> str:
    """Under another name first: nothing stands under `path` before all of it does."""
    digest = hashlib.sha256(head)
    for part in parts:
        digest.update(part)
    _files.write(path, [head, digest.digest()] + parts, durable=True)
    return digest.hexdigest()


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What a file that is cut, damaged or of another kind makes of its reader is one sentence that names it."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError("%s: %s" % (path, error.strerror or error)) from error
    except MemoryError:
        raise DataError("%s: there is no memory for what it claims to hold" % path) from None
    except Exception as error:
        # numpy, zipfile, zlib and json each have errors of their own.
        raise DataError(
            "%s: cut short, damaged or of another kind (%s: %s)"
            % (path, type(error).__name__, " ".join(str(error).split())[:200])
        ) from error


def unpack_npz(path: str, folder: str) -> List[str]:
    """Writes each array of an npz to FOLDER/NAME.npy, in C order, and returns the files: all of them, or none.

    Raises DataError for names that are paths, for arrays of objects, and for a file that is cut or no npz.
    """
    import numpy

    made: List[str] = []
    try:
        with _reading(path), open(path, "rb") as file:
            begins = file.read(6)
            if begins == b"\x93NUMPY":
                raise DataError("%s: this is one array and no npz: devices read it as it is" % path)
            if begins[:2] != b"PK":
                raise DataError("%s: this is no npz, which begins as a zip file does" % path)
            file.seek(0)
            with numpy.load(file, allow_pickle=False) as arrays:
                if not arrays.files:
                    raise DataError("%s: no arrays" % path)
                for name in arrays.files:
                    made.append(_unpack_array(arrays, name, path, folder))
    except DataError:
        for array in set(made):
            os.unlink(array)
        raise
    return made


def _unpack_array(arrays: Any, name: str, path: str, folder: str) -> str:
    import numpy

    if os.path.basename(name) != name or not name or name.startswith(".") or "\0" in name:
        raise DataError("%s: an array has a path for a name" % path)
    try:
        array = arrays[name]
    except ValueError as error:
        # What numpy says of both ends in the advice to trust the file.
        if str(error).startswith("Object arrays"):
            raise DataError("%s: array %s holds objects" % (path, name)) from None
        if str(error).startswith("Header info length"):
            raise DataError("%s: array %s has a header that is too long" % (path, name)) from None
        raise
    if not isinstance(array, numpy.ndarray):
        raise DataError("%s: %s is no array" % (path, name))
    out = os.path.join(folder, name + ".npy")
    try:
        os.makedirs(folder, exist_ok=True)
        numpy.save(out, numpy.ascontiguousarray(array), allow_pickle=False)
    except OSError as error:
        if os.path.isfile(out):
            os.unlink(out)
        raise DataError("%s: %s" % (out, error.strerror or error)) from error
    return out


def _read_users(path: str) -> Iterator[Tuple[str, List[Any], List[Any]]]:
    """User, x and y of one of LEAF's files."""
    with _reading(path):
        with open(path, "rb") as file:
            data = file.read()
        try:
            data = utf8(data, path)
        except ValueError as error:
            raise DataError(str(error)) from None
        document = json.loads(data)
    try:
        for user in document["users"]:
            own = document["user_data"][user]
            x, y = own["x"], own["y"]
            if not (isinstance(user, str) and isinstance(x, list) and isinstance(y, list)):
                raise TypeError
            yield user, x, y
    except (KeyError, TypeError, IndexError):
        raise DataError("%s: not LEAF's JSON (users, user_data with x and y)" % path) from None


def read_leaf(
    paths: Sequence[str],
) -> Tuple["numpy.ndarray[Any, Any]", "numpy.ndarray[Any, Any]", "numpy.ndarray[Any, Any]", List[str]]:
    """LEAF's JSON: x [n, ...], y [n], the user of each example, and the users' names in their order.

    Raises DataError for a file that is cut or of another form, and where x is not of numbers (texts are for trainers).
    """
    import numpy

    xs: List[Any] = []
    ys: List[Any] = []
    groups: List[int] = []
    users: List[str] = []
    for path in paths:
        for user, x, y in _read_users(path):
            if len(x) != len(y):
                raise DataError("%s: user %d has %d x and %d y" % (path, len(users) + 1, len(x), len(y)))
            xs.extend(x)
            ys.extend(y)
            groups.extend([len(users)] * len(x))
            users.append(user)
    try:
        with numpy.errstate(over="ignore"):  # what is not finite is refused where it is written
            all_x = numpy.array(xs, dtype="<f4")
        all_y = numpy.array(ys)
    except (ValueError, TypeError, OverflowError):
        raise DataError("%s: x is not of numbers, or examples differ in length" % ", ".join(paths)) from None
    if all_x.size == 0 or not numpy.issubdtype(all_y.dtype, numpy.number):
        raise DataError("%s: no examples, or labels that are no numbers" % ", ".join(paths))
    return all_x, all_y, numpy.array(groups, dtype="<u4"), users


def _leaf(paths: Sequence[str], out: str, shape: Optional[str]) -> None:
    x, y, groups, users = read_leaf(paths)
    if shape:
        try:
            x = x.reshape((len(x),) + tuple(int(part) for part in shape.split(",")))
        except ValueError:
            raise DataError("--shape %s is not that of %d values" % (shape, x[0].size)) from None
    try:
        digest = save_packed(out, x.reshape(len(x), -1) if x.ndim == 1 else x, y, groups=groups)
    except DataError as error:
        raise DataError("%s: %s" % (", ".join(paths), error)) from None
    print("%d examples of %d users\nsha256 %s" % (len(x), len(users), digest))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m rivulet.data", description="Data files for devices.")
    commands = parser.add_subparsers(dest="command", required=True)
    npz = commands.add_parser("npz", help="each array of an npz as npy")
    npz.add_argument("file")
    npz.add_argument("-o", "--out", required=True, metavar="FOLDER")
    leaf = commands.add_parser("leaf", help="LEAF's JSON as a packed set whose groups are the users")
    leaf.add_argument("file", nargs="+")
    leaf.add_argument("-o", "--out", required=True, metavar="FILE")
    leaf.add_argument("--shape", help="of an example: 28,28 or 3,32,32 (default: as it is in the file)")
    given = parser.parse_args(arguments)
    try:
        if given.command == "npz":
            print("\n".join(unpack_npz(given.file, given.out)))
        else:
            _leaf(given.file, given.out, given.shape)
    except OSError as error:
        print("rivulet.data: %s: %s" % (given.out, error.strerror or error), file=sys.stderr)
        return 1
    except (DataError, ValueError, ImportError, MemoryError) as error:
        print("rivulet.data: %s" % (" ".join(str(error).split()) or "there is not enough memory"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
