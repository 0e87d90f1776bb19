#!/usr/bin/env python3
"""bundle.py WHEEL DIRECTORY: what auditwheel made, finished on the Debian whose libraries are in it.

Each library must be a file of a package here. Into the dist-info come bundled.tsv (file, package, version, source, its
version) and licenses/: the copyright file of each package, and the licences that these name. The digests of the
libraries are in rivulet/librivulet.sha256. Entries are sorted and carry one date. Prints the path; more than 15 MB
is an error.
"""
import gzip
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from typing import Dict, Iterator, List, Tuple

MOST = 15 * 1000 * 1000
PLACES = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib", "/lib")
LICENCES = "/usr/share/common-licenses/"
LIBRARIES = "rivulet_fl.libs/"
WORDS = (
    "License: Apache-2.0\n",
    "License: Apache-2.0; the libraries in rivulet_fl.libs have licences of their own, which lie in licenses\n",
)
# Of libcom_err that file has only the licence of the tree it comes from; its own stands in its manual.
MANUALS = {"libcom-err2": "/usr/share/doc/comerr-dev/com_err.texi.gz"}
FIELDS = "${Package}\t${Version}\t${source:Package}\t${source:Version}"


def origin(name: str) -> str:
    """The file here that auditwheel copied to such a name: before the first dot it puts some digits of its digest."""
    found = re.fullmatch(r"([^.]+)-([0-9a-f]{8})(\..+)", name)
    if not found:
        sys.exit("bundle.py: %s is not a name that auditwheel gives" % name)
    for folder in PLACES:
        path = os.path.join(folder, found[1] + found[3])
        if os.path.exists(path) and hashlib.sha256(read(path)).hexdigest().startswith(found[2]):
            return path
    sys.exit("bundle.py: %s is of no file of this system" % name)


def package(path: str) -> str:
    """Its package, with the architecture. It may be listed below /lib or below /usr/lib, which are one."""
    short = path[len("/usr") :] if path.startswith("/usr/") else path
    for way in (short, "/usr" + short):
        done = subprocess.run(["dpkg-query", "-S", way], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            return done.stdout.rsplit(": ", 1)[0]
    sys.exit("bundle.py: no package has %s" % path)


def read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def manual(path: str) -> bytes:
    with gzip.open(path) as f:
        return f.read()


def named(texts: List[bytes]) -> Iterator[Tuple[str, bytes]]:
    """The common licences that these texts name."""
    pattern = LICENCES.encode() + rb"([\w.+-]+)"
    for word in sorted({word.decode().rstrip(".") for text in texts for word in re.findall(pattern, text)}):
        if os.path.exists(LICENCES + word):
            yield word, read(LICENCES + word)


def finish(path: str) -> Tuple[str, List[Tuple[str, bytes]]]:
    """The name of the dist-info, and all entries but its RECORD."""
    with zipfile.ZipFile(path) as z:
        files = {name: z.read(name) for name in z.namelist() if not name.endswith("/")}
    info = next(name.split("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    del files[info + "/RECORD"]
    files = {name: data for name, data in files.items() if not name.startswith(info + "/sboms/")}
    meta = files[info + "/METADATA"].decode()
    files[info + "/METADATA"] = meta.replace(*WORDS, 1).encode()
    table, copyrights = "file\tpackage\tversion\tsource\tsource_version\n", {}  # type: str, Dict[str, bytes]
    for name in sorted(name for name in files if name.startswith(LIBRARIES)):
        owner = package(origin(name[len(LIBRARIES) :]))
        row = subprocess.check_output(["dpkg-query", "-W", "-f", FIELDS, owner], text=True)
        table += "%s\t%s\n" % (name, row)
        word = row.split("\t")[0]
        copyrights[word] = read("/usr/share/doc/%s/copyright" % word)
        if word in MANUALS:
            files["%s/licenses/%s/%s" % (info, word, os.path.basename(MANUALS[word])[:-3])] = manual(MANUALS[word])
    files[info + "/bundled.tsv"] = table.encode()
    for word, text in copyrights.items():
        files["%s/licenses/%s/copyright" % (info, word)] = text
    for word, text in named([*copyrights.values(), files[info + "/LICENSE"]]):
        files["%s/licenses/common-licenses/%s" % (info, word)] = text
    sums = ""
    for name in ["rivulet/librivulet.so.1"] + sorted(name for name in files if name.startswith(LIBRARIES)):
        sums += "%s  %s\n" % (hashlib.sha256(files[name]).hexdigest(), os.path.relpath(name, "rivulet"))
    files["rivulet/librivulet.sha256"] = sums.encode()
    return info, sorted(files.items())


def main(path: str, directory: str) -> None:
    import wheel

    info, entries = finish(path)
    out = os.path.join(directory, os.path.basename(path))
    # Compressed by this Debian's zlib alone, so that it is the same each time.
    wheel.pack(out, info, entries, zipfile.ZIP_DEFLATED)
    size = os.path.getsize(out)
    if size > MOST:
        os.unlink(out)
        sys.exit("bundle.py: %s has %d bytes, more than %d" % (out, size, MOST))
    print(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: bundle.py WHEEL DIRECTORY")
    main(*sys.argv[1:])
