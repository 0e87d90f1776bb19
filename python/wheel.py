#!/usr/bin/env python3
"""wheel.py VERSION DIRECTORY: the package as rivulet_fl-VERSION-py3-none-any.whl, by the standard library alone.

The same sources give the same bytes: entries are sorted and carry one date. Prints the path.
"""
import base64
import hashlib
import os
import sys
import zipfile
from typing import Iterator, Tuple

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
Root-Is-Purelib: true
Tag: py3-none-any
"""


def modules() -> Iterator[Tuple[str, bytes]]:
    for folder, folders, names in os.walk(os.path.join(HERE, "rivulet")):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".py", ".typed")):
                with open(path, "rb") as f:
                    yield os.path.relpath(path, HERE), f.read()


def write(version: str, directory: str) -> str:
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    with open(os.path.join(HERE, "..", "LICENSE"), "rb") as g:
        licence = g.read()
    info = "rivulet_fl-%s.dist-info" % version
    entries = sorted(modules())
    entries += [(info + "/METADATA", (METADATA % (version, readme)).encode())]
    entries += [(info + "/WHEEL", WHEEL.encode()), (info + "/LICENSE", licence)]
    record = ""
    for name, data in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    record += info + "/RECORD,,\n"
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "rivulet_fl-%s-py3-none-any.whl" % version)
    with zipfile.ZipFile(path + ".part", "w") as z:
        for name, data in entries + [(info + "/RECORD", record.encode())]:
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = MODE
            entry.create_system = 3
            # Stored: what a compressor makes of it may change with its version.
            z.writestr(entry, data, zipfile.ZIP_STORED)
    os.replace(path + ".part", path)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: wheel.py VERSION DIRECTORY")
    print(write(*sys.argv[1:]))
