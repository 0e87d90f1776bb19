"""Files that appear whole or not at all."""
import contextlib
import errno
import os
import stat
from typing import Any, Iterable


def put(part: str, path: str) -> None:
    """Renames a file that was written. OSError: that fails, or `path` is a device or a pipe, which stays: for root a
    rename would put a file in the place of /dev/null."""
    try:
        kind = os.stat(path).st_mode
    except OSError:
        kind = stat.S_IFREG
    of_process = os.path.islink(path) and os.readlink(path).startswith("/proc/")
    if of_process or not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise OSError(errno.EINVAL, "no regular file", path)
    os.replace(part, path)


def write(path: str, pieces: Iterable[Any], durable: bool = False) -> None:
    """Bytes one after the other as a file. OSError: it cannot be written, and nothing of it is left, for on a full disk
    the report that says so wants the room."""
    part = path + ".part"
    try:
        with open(part, "wb") as f:
            for piece in pieces:
                f.write(piece)
            if durable:
                f.flush()
                os.fsync(f.fileno())
        put(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
