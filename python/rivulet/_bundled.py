"""librivulet.so.1 and what it links, where the package brings them: in a wheel for one platform."""
import hashlib
import os
from typing import Iterator, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(_HERE, "librivulet.so.1")
# Lines as sha256sum writes and checks them, of the library and all that lies in ../rivulet_fl.libs.
SUMS = os.path.join(_HERE, "librivulet.sha256")
_BLOCK = 1 << 20  # bytes


def present() -> bool:
    """Is there a library, or was there one?"""
    return os.path.lexists(LIBRARY) or os.path.lexists(SUMS)


def check() -> None:
    """OSError: a file is not what the wheel had. One that is cut would end the process when it is mapped, wordless."""
    for digest, name in _sums():
        try:
            found = _digest(os.path.join(_HERE, name))
        except OSError as e:
            raise OSError("%s: %s" % (os.path.basename(name), e.strerror)) from None
        if found != digest:
            raise OSError("%s is damaged" % os.path.basename(name))


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def _sums() -> Iterator[Tuple[str, str]]:
    # A library that somebody put here by hand has none.
    if not os.path.lexists(SUMS):
        return
    with open(SUMS, encoding="ascii", errors="replace") as f:
        lines = f.read().splitlines()
    for line in lines or [""]:
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise OSError("%s is damaged" % os.path.basename(SUMS))
        yield digest, name
