"""librivulet.so.1 by ctypes: its structs, joining, one handle. Nothing else calls C, and this needs no numpy."""
import ctypes
import os
import weakref
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import Error, _bundled

NAME = "librivulet.so.1"
OK, TIMEOUT, STOPPED, INVALID, LIMIT = range(5)
NOTFOUND, CORRUPT = 7, 9
STATE = 12
CANCEL = ctypes.CFUNCTYPE(c_int, c_void_p)
EVENT = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Options(ctypes.Structure):
    _fields_ = [
        ("home", c_char_p),
        ("config", c_char_p),
        ("trainer", c_char_p),
        ("data", c_char_p),
        ("examples", c_uint64),
        ("cancel", CANCEL),
        ("event", EVENT),
        ("context", c_void_p),
        ("kinds", c_uint),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("shape", POINTER(c_uint64)),
        ("dims", c_uint),
        ("count", c_uint64),
        ("data", c_void_p),
        ("trained", c_int),
        ("role", c_int),
        ("type", c_char_p),
        ("bytes", c_void_p),
        ("size", c_uint64),
    ]


class TaskFacts(ctypes.Structure):
    _fields_ = [
        ("id", c_char_p),
        ("job", c_char_p),
        ("model", c_char_p),
        ("round", c_uint64),
        ("seed", c_uint64),
        ("deadline_s", c_double),
        ("params", c_char_p),
        ("recipe", c_char_p),
        ("tensors", POINTER(Tensor)),
        ("tensor_count", c_size_t),
        ("rate", c_double),
        ("kind", c_int),
        ("batch", c_uint32),
        ("validation", c_double),
        ("epochs", c_uint64),
        ("steps", c_uint64),
        ("seconds", c_double),
    ]


class Metric(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_double)]


class Evaluation(ctypes.Structure):
    _fields_ = [("examples", c_uint64), ("loss", c_double), ("accuracy", c_double)]


class Result(ctypes.Structure):
    _fields_ = [
        ("examples", c_uint64),
        ("steps", c_uint64),
        ("loss", c_double),
        ("accuracy", c_double),
        ("partial", c_int),
        ("optimizer", c_int),
        ("normaliser", c_double),
        ("evaluate", Evaluation),
        ("metrics", POINTER(Metric)),
        ("metric_count", c_size_t),
    ]


class JoinOptions(ctypes.Structure):
    _fields_ = [
        ("url", c_char_p),
        ("token", c_char_p),
        ("name", c_char_p),
        ("home", c_char_p),
        ("cancel", CANCEL),
        ("context", c_void_p),
    ]


class Joined(ctypes.Structure):
    _fields_ = [
        ("state", c_int),
        ("url_count", c_uint),
        ("device", c_char * 65),
        ("name", c_char * 64),
        ("role", c_char * 16),
        ("urls", (c_char * 300) * 8),
        ("home", c_char * 4096),
    ]


def abi() -> int:
    """What ``rivulet_abi()`` gives if its structs are those above."""
    value = 0xCBF29CE484222325
    for struct in (Options, Tensor, TaskFacts, Metric, Evaluation, Result):
        words = [ctypes.sizeof(struct)] + [getattr(struct, field[0]).offset for field in struct._fields_]
        for word in words:
            value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


_HANDLE = c_void_p
_UNTOLD = -1.0
_CALLS = [
    ("rivulet_abi", c_uint64, []),
    ("rivulet_version", c_char_p, []),
    ("rivulet_error_name", c_char_p, [c_int]),
    ("rivulet_open", c_int, [POINTER(_HANDLE), POINTER(Options), c_char_p, c_size_t]),
    ("rivulet_close", None, [_HANDLE]),
    ("rivulet_next", c_int, [_HANDLE, c_double, POINTER(POINTER(TaskFacts))]),
    ("rivulet_stop_now", c_int, [_HANDLE]),
    ("rivulet_validation", c_int, [_HANDLE, c_uint64, POINTER(c_uint32), POINTER(c_size_t)]),
    ("rivulet_share", c_int, [_HANDLE, c_uint64, c_int, POINTER(c_uint32), POINTER(c_size_t)]),
    ("rivulet_can", c_int, [_HANDLE, c_char_p]),
    ("rivulet_hold", c_void_p, [_HANDLE]),
    ("rivulet_release", None, [c_void_p]),
    ("rivulet_count", c_int, [_HANDLE, c_int, c_double, c_uint64, c_uint64]),
    ("rivulet_figures", c_int, [_HANDLE, c_char_p]),
    ("rivulet_keep", c_int, [_HANDLE, c_char_p, c_size_t]),
    (
        "rivulet_kept",
        c_int,
        [_HANDLE, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_uint64), POINTER(c_char_p)],
    ),
    ("rivulet_submit", c_int, [_HANDLE, POINTER(Result)]),
    ("rivulet_abort", c_int, [_HANDLE, c_char_p, c_char_p]),
    ("rivulet_why", c_char_p, [_HANDLE]),
    ("rivulet_device", c_char_p, [_HANDLE]),
    ("rivulet_name", c_char_p, [_HANDLE]),
]
_loaded: Optional[ctypes.CDLL] = None
_ADVICE = {
    "named": "RIVULET_LIBRARY names it: let it name the %s of this version, or unset it" % NAME,
    "bundled": "it came with this package: `pip install --force-reinstall --no-deps` with the wheel's file mends it",
    "system": "install it from Rivulet's source tree with `sudo make install && sudo ldconfig`, or as the package "
    "librivulet1, or the wheel that has it inside (`make wheel PLATFORM=1`), or let RIVULET_LIBRARY name its file",
}


def find() -> Tuple[str, str]:
    """Which library is used, and whose it is: "named" by RIVULET_LIBRARY, "bundled", or of the "system"."""
    named = os.environ.get("RIVULET_LIBRARY")
    if named:
        return named, "named"
    if _bundled.present():
        return _bundled.LIBRARY, "bundled"
    return NAME, "system"


def _open(path: str, kind: str) -> ctypes.CDLL:
    if kind == "bundled":
        _bundled.check()
    library = ctypes.CDLL(path)
    for name, result, arguments in _CALLS:
        call = getattr(library, name)
        call.restype, call.argtypes = result, arguments
    return library


def load() -> ctypes.CDLL:
    """The library: the one that RIVULET_LIBRARY names, that of the package, or the system's.

    Error: it is absent, damaged, or of another version; the next of them is not tried then.
    """
    global _loaded
    if _loaded is not None:
        return _loaded
    path, kind = find()
    try:
        library = _open(path, kind)
    except (OSError, AttributeError) as e:
        raise Error("%s cannot be used (%s): %s" % (path, e, _ADVICE[kind]), "not-found") from None
    if library.rivulet_abi() != abi():
        version = library.rivulet_version().decode()
        text = "%s is version %s, this package is made for another: %s"
        raise Error(text % (path, version, _ADVICE[kind]), "state")
    _loaded = library
    return library


def join(
    url: str, token: Optional[str], name: Optional[str], home: Optional[str], cancel: Callable[[], bool]
) -> Tuple[Joined, str]:
    """What rivulet_join gives, and what its user should know. An older library goes on working, without this."""
    library = load()
    try:
        call = library.rivulet_join
    except AttributeError:
        raise Error("%s is too old to join: `rivulet join` does that" % find()[0], "state") from None
    call.restype, call.argtypes = c_int, [POINTER(Joined), POINTER(JoinOptions), c_char_p, c_size_t]
    words = [None if word is None else word.encode() for word in (url, token, name)]
    stop = CANCEL(lambda _: int(cancel()))
    options = JoinOptions(*words, _text(home), stop)
    joined, why = Joined(), ctypes.create_string_buffer(512)
    code = call(byref(joined), byref(options), why, len(why))
    text = why.value.decode("utf-8", "replace")
    if code != OK:
        word = library.rivulet_error_name(code).decode()
        raise Error(text or word, word)
    return joined, text


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else os.fsencode(value)


class Handle:
    """An open device. One thread at a time; calls block as rivulet.h says, without the GIL."""

    def __init__(
        self,
        home: Optional[str],
        config: Optional[str],
        trainer: str,
        data: Optional[str],
        examples: int,
        kinds: int,
        cancel: Callable[[], bool],
        event: Callable[[int, str], None],
    ) -> None:
        self.library = load()
        self._at = _HANDLE()
        # Kept, for C holds only their addresses.
        self._calls = (
            CANCEL(lambda _: int(cancel())),
            EVENT(lambda _, level, line: event(level, line.decode("utf-8", "replace"))),
        )
        name = data.encode() if data else None
        options = Options(_text(home), _text(config), trainer.encode(), name, examples, *self._calls)
        options.kinds = kinds
        why = ctypes.create_string_buffer(512)
        code = self.library.rivulet_open(byref(self._at), byref(options), why, len(why))
        if code != OK:
            raise self.error(code, why.value.decode("utf-8", "replace"))

    def error(self, code: int, text: Optional[str] = None) -> Error:
        """What a call gave, as an exception."""
        if text is None:
            text = self.library.rivulet_why(self._at).decode("utf-8", "replace")
        word = self.library.rivulet_error_name(code).decode()
        return Error(text or word, word)

    def next(self, timeout: float) -> Tuple[int, Optional[TaskFacts]]:
        facts = POINTER(TaskFacts)()
        code = self.library.rivulet_next(self._at, timeout, byref(facts))
        return code, facts.contents if code == OK else None

    def stop_now(self) -> int:
        return self.library.rivulet_stop_now(self._at)

    def validation(self, examples: int) -> Any:
        """Indices as a ctypes array of 32-bit unsigned integers."""
        room = c_size_t(0)
        code = self.library.rivulet_validation(self._at, examples, None, byref(room))
        out = (c_uint32 * room.value)() if code == LIMIT and examples < 1 << 32 else (c_uint32 * 0)()
        if len(out):
            code = self.library.rivulet_validation(self._at, examples, out, byref(room))
        if code != OK:
            raise self.error(code)
        return out

    def share_count(self, examples: int, kind: int) -> int:
        """How many of `examples` the task in hand works on; kind: 0 to train on, 1 to evaluate on."""
        room = c_size_t(0)
        code = self.library.rivulet_share(self._at, examples, kind, None, byref(room))
        if code not in (OK, LIMIT):
            raise self.error(code)
        return room.value

    def share(self, examples: int, kind: int) -> Any:
        """Which these are, as `validation`."""
        count = self.share_count(examples, kind) if examples < 1 << 32 else 0
        room, out = c_size_t(count), (c_uint32 * count)()
        code = self.library.rivulet_share(self._at, examples, kind, out, byref(room)) if count else OK
        if code != OK:
            raise self.error(code)
        return out

    def can(self, feature: str) -> None:
        """Says that this program does what a feature asks of it."""
        code = self.library.rivulet_can(self._at, feature.encode())
        if code != OK:
            raise self.error(code)

    def figures(self, evaluate: str) -> None:
        """The counts of the task's evaluation."""
        code = self.library.rivulet_figures(self._at, evaluate.encode())
        if code != OK:
            raise self.error(code)

    def keep(self, data: bytes) -> None:
        """Keeps a model file's bytes for the next task of the job."""
        code = self.library.rivulet_keep(self._at, data, len(data))
        if code != OK:
            raise self.error(code)

    def kept(self) -> Optional[Tuple[bytes, int, str]]:
        """Such bytes, the round of the task that kept them, and the model that it began with; None: there are none."""
        data, size, number, model = c_void_p(), c_size_t(), c_uint64(), c_char_p()
        code = self.library.rivulet_kept(self._at, byref(data), byref(size), byref(number), byref(model))
        if code in (NOTFOUND, CORRUPT):  # of what is lost the library has told
            return None
        if code != OK:
            raise self.error(code)
        return ctypes.string_at(data, size.value), number.value, (model.value or b"").decode()

    def hold(self, size: int) -> Any:
        """The memory of the task's tensors as a ctypes array of `size` bytes, released when the last view of it dies.

        The caller keeps the array until the task has ended.
        """
        at = self.library.rivulet_hold(self._at)
        if not at:
            return (c_char * 0)()
        block = (c_char * size).from_address(at)
        weakref.finalize(block, self.library.rivulet_release, at).atexit = False
        return block

    def submit(
        self,
        figures: Sequence[Tuple[str, Any]],
        evaluate: Optional[Tuple[int, float, float]],
        metrics: List[Tuple[str, float]],
    ) -> int:
        result = Result(**dict(figures))
        if evaluate:
            result.evaluate = Evaluation(*evaluate)
        result.metrics = (Metric * len(metrics))(*[Metric(name.encode(), value) for name, value in metrics])
        result.metric_count = len(metrics)
        return self.library.rivulet_submit(self._at, byref(result))

    def count(self, kind: int, loss_count: float = _UNTOLD, labels: Optional[int] = None, right: int = 0) -> None:
        """What the figures of the task in hand are means of; kind: 0 of its training, 1 of its evaluation. Alone:
        what was said before is taken back."""
        uncounted = (1 << 64) - 1
        code = self.library.rivulet_count(
            self._at, kind, loss_count, uncounted if labels is None else labels, right
        )
        if code != OK:
            raise self.error(code)

    def abort(self, reason: str, log: str) -> int:
        text = log.encode("utf-8", "replace").replace(b"\0", b"?")
        return self.library.rivulet_abort(self._at, reason.encode(), text)

    @property
    def device(self) -> str:
        return self.library.rivulet_device(self._at).decode()

    @property
    def name(self) -> str:
        return self.library.rivulet_name(self._at).decode()

    def close(self) -> None:
        at, self._at = self._at, _HANDLE()
        self.library.rivulet_close(at)
