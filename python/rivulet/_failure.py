"""Why a task is given back: a word, and what a person should read of an exception."""
import errno
import os
import sysconfig
import traceback
from typing import List, Optional, Tuple

from . import Error

TEXT_MAX = 2000  # characters that go with a task given back
MESSAGE_MAX = 1000  # of these for the exception's message
LAST = "The third failure in a row: the program ends.\n"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PLACES = tuple(os.path.join(sysconfig.get_paths()[name], "") for name in ("stdlib", "platstdlib"))


def _is_own(path: str) -> bool:
    """Is it of the owner's program: neither of Python, nor installed, nor of this package?"""
    if path.startswith(("<frozen", _PACKAGE) + _PLACES):
        return False
    return not {"site-packages", "dist-packages"} & set(path.split(os.sep))


def _told(frames: List[traceback.FrameSummary]) -> List[str]:
    """The owner's frames, and the innermost one: what lies between would leave no room for them."""
    lines, between = ["Traceback (most recent call last):\n"], 0
    for i, frame in enumerate(frames):
        if not _is_own(frame.filename) and i < len(frames) - 1:
            between += 1
            continue
        if between:
            lines.append("  [%d of libraries]\n" % between)
        between = 0
        lines += traceback.format_list([frame])
    return lines


def _shortened(text: str) -> str:
    if len(text) <= MESSAGE_MAX:
        return text
    return text[: MESSAGE_MAX // 2] + " [...] " + text[-MESSAGE_MAX // 2 :]


def _text_of(error: BaseException) -> str:
    frames = list(traceback.extract_tb(error.__traceback__))
    # A person looks for the line of their own that led here, not for ours.
    while len(frames) > 1 and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    return "".join(_told(frames)) + _shortened("".join(traceback.format_exception_only(type(error), error)))


def diverges(error: Optional[BaseException]) -> bool:
    """Is it that a weight or figure is not finite?"""
    return isinstance(error, Error) and error.code == "numeric"


def reason_of(error: Optional[BaseException], last: bool = False) -> Tuple[str, str]:
    """The word for giving a task back, and what a person should read of it; last: the program does not go on."""
    first = LAST if last else ""
    if error is None:
        return "trainer-failed", first + "the task was left without submit or abort"
    text = first + _text_of(error)[len(first) - TEXT_MAX :]
    if diverges(error):
        return "not-finite", text
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "out-of-memory", text
    if isinstance(error, Error) and error.code == "no-figures":
        return error.code, text
    if isinstance(error, Error) and error.code == "io":
        return "disk-full" if any(os.strerror(n) in str(error) for n in _FULL) else "disk-failed", text
    if isinstance(error, OSError) and error.errno in _FULL:
        return "disk-full", text
    return "trainer-failed", text
