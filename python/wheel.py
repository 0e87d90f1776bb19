#!/usr/bin/env python3
"""wheel.py VERSION DIRECTORY [LIBRARY]: the package as rivulet_fl-VERSION-py3-none-any.whl, by the standard library.

With LIBRARY, librivulet.so.1, that lies in it, and the wheel is one of this machine's Linux; platform_wheel makes of it
one for others. The same sources give the same bytes: entries are sorted and carry one date. Prints the path.
"""
import base64
import hashlib
import os
import platform
import sys
import zipfile
from typing import Iterator, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can hold
MODE = 0o100644 << 16
METADATA = """Metadata-Version: 2.1
Name: rivulet-fl
Version: %s
Summary: Federated learning with Rivulet: a device's training loop, and the coordinator's API
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

%s"""
WHEEL = """Wheel-Version: 1.0
Generator: rivulet python/wheel.py
Root-Is-Purelib: %s
Tag: py3-none-%s
"""


def modules() -> Iterator[Tuple[str, bytes]]:
    for folder, folders, names in os.walk(os.path.join(HERE, "rivulet")):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".py", ".typed")):
                with open(path, "rb") as f:
                    yield os.path.relpath(path, HERE), f.read()


def record(entries: List[Tuple[str, bytes]], name: str) -> bytes:
    """The RECORD of these files, which is called `name`."""
    lines = ""
    for path, data in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    return (lines + name + ",,\n").encode()


def pack(path: str, info: str, entries: List[Tuple[str, bytes]], method: int) -> None:
    """A wheel of these files and their RECORD; info: the name of its dist-info."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with zipfile.ZipFile(path + ".part", "w") as z:
        for name, data in entries + [(info + "/RECORD", record(entries, info + "/RECORD"))]:
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = MODE
            entry.create_system = 3
            z.writestr(entry, data, method)
    os.replace(path + ".part", path)


def write(version: str, directory: str, library: Optional[str] = None) -> str:
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    with open(os.path.join(HERE, "..", "LICENSE"), "rb") as g:
        licence = g.read()
    info = "rivulet_fl-%s.dist-info" % version
    tag = "linux_" + platform.machine() if library else "any"
    entries = sorted(modules())
    if library:
        with open(library, "rb") as h:
            entries += [("rivulet/librivulet.so.1", h.read())]
    entries += [(info + "/METADATA", (METADATA % (version, readme)).encode())]
    entries += [(info + "/WHEEL", (WHEEL % ("false" if library else "true", tag)).encode())]
    entries += [(info + "/LICENSE", licence)]
    path = os.path.join(directory, "rivulet_fl-%s-py3-none-%s.whl" % (version, tag))
    # Stored: what a compressor makes of it may change with its version.
    pack(path, info, entries, zipfile.ZIP_STORED)
    return path


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: wheel.py VERSION DIRECTORY [LIBRARY]")
    print(write(*sys.argv[1:]))
