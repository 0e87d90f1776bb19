"""A device without the program `rivulet` joins a coordinator: ``rivulet.join``, and ``python -m rivulet join``."""
import argparse
import json
import os
import stat
import sys
from typing import List, NamedTuple, Optional, Tuple

from . import Error, _library
from ._signals import Signals
from ._text import utf8

_STATES = ("joined", "already joined", "joined again")
_TOKEN_MAX = 1023  # bytes, as the program reads
# Exit codes are those of `rivulet join`.
_FAILED, _SETTINGS = 1, 6
_EXITS = {"not-found": 3, "denied": 4, "state": 4, "unreachable": 5, "invalid": _SETTINGS, "corrupt": 7, "stopped": 130}


class Joined(NamedTuple):
    """A home that is a device of a coordinator."""

    state: str  # "joined", "already joined", or "joined again"
    device: str  # its id, in hex
    name: str  # what the coordinator calls it
    role: str
    coordinators: List[str]  # addresses
    home: str


def join(
    url: str, token: Optional[str] = None, *, name: Optional[str] = None, home: Optional[str] = None
) -> Joined:
    """Makes this machine a device of a coordinator, as `rivulet join` does.

    token: as `rivulet token create` printed it; needed the first time.
    name: what people call the device (default: host name).
    home: where identity, models and deltas are kept (default: that of `rivulet.tasks`).

    A second time it does nothing, unless the coordinator does not know the device any more: then it joins again with
    its key. The token tells who the coordinator is; no CA of this system is asked.

    Error.code: "not-found": a token is needed; "denied": it is of another coordinator, expired, used or revoked;
    "state": the home has joined another coordinator; "invalid", "unreachable" and others.
    """
    joined, remark = _join(url, token, name, home)
    if remark:
        import warnings

        warnings.warn(remark, stacklevel=2)
    return joined


def _join(url: str, token: Optional[str], name: Optional[str], home: Optional[str]) -> Tuple[Joined, str]:
    for word in (url, token, name, home):
        if word is not None and "\0" in word:
            raise ValueError("a zero byte in %r" % word[:40])
    signals = Signals()
    with signals.blocking():
        out, remark = _library.join(url, token, name, home, signals.cancelled)
    words = [bytes(out.urls[i]).split(b"\0")[0].decode() for i in range(out.url_count)]
    name, role = out.name.decode("utf-8", "replace"), out.role.decode()
    return Joined(_STATES[out.state], out.device.decode(), name, role, words, os.fsdecode(out.home)), remark


def _read_token(path: str) -> str:
    """ValueError, OSError: it cannot be read."""
    if path == "-":
        data = sys.stdin.buffer.read(_TOKEN_MAX)
        if not data:
            raise ValueError("no token on standard input")
    else:
        with open(path, "rb") as f:
            data = f.read(_TOKEN_MAX + 1)
            if stat.S_ISREG(os.fstat(f.fileno()).st_mode) and os.fstat(f.fileno()).st_mode & stat.S_IRWXO:
                text = "%s: everybody on this machine can use this token: chmod o= %s, and make a new one"
                _say(text % (path, path))
        if len(data) > _TOKEN_MAX:
            raise ValueError("%s is longer than %d bytes" % (path, _TOKEN_MAX))
    return utf8(data, path).decode("utf-8", "replace").replace("\0", "?")


def _say(text: str) -> None:
    print("rivulet: " + text, file=sys.stderr)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m rivulet", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="join", required=True)
    about = "Makes this machine a device of a coordinator. A second time it does nothing, unless the "
    about += "coordinator does not know the device any more: then it joins again with its key."
    one = commands.add_parser("join", allow_abbrev=False, help="become a device", description=about)
    one.add_argument("url", metavar="URL", help="https://HOST:PORT, or HOST")
    one.add_argument("--token-file", metavar="FILE", help="where the join token is; - for standard input")
    one.add_argument("--name", metavar="NAME", help="what people call this device (default: host name)")
    one.add_argument("--home", metavar="DIR", help="where identity, models and deltas are kept")
    one.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _run(words: argparse.Namespace) -> Joined:
    _library.load()
    # Without the token first: where the home has joined its file may be gone.
    try:
        joined, remark = _join(words.url, None, words.name, words.home)
    except Error as e:
        if e.code != "not-found":
            raise
        if not words.token_file:
            raise Error("%s: --token-file FILE, or - for standard input" % e, "invalid") from None
        joined, remark = _join(words.url, _read_token(words.token_file), words.name, words.home)
    if remark:
        _say(remark)
    return joined


def main(arguments: Optional[List[str]] = None) -> int:
    words = _arguments().parse_args(arguments)
    try:
        joined = _run(words)
    except Error as e:
        _say(str(e))
        return _EXITS.get(e.code, _FAILED)
    except OSError as e:
        _say("open %s: %s" % (e.filename, e.strerror) if e.filename else str(e))
        return _EXITS["not-found"] if isinstance(e, FileNotFoundError) else _FAILED
    except ValueError as e:
        _say(str(e))
        return _SETTINGS
    except KeyboardInterrupt:
        return _EXITS["stopped"]
    if words.json:
        facts = {"device": joined.device, "name": joined.name, "role": joined.role, "home": joined.home}
        print(json.dumps({**facts, "new": joined.state != _STATES[1], "coordinators": joined.coordinators}))
    else:
        text = "%s %s as %s (role %s, device %.16s) in %s"
        print(text % (joined.state, joined.coordinators[0], joined.name, joined.role, joined.device, joined.home))
    return 0
