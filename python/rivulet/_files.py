"""Files that appear whole or not at all."""
import errno
import os
import stat


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
