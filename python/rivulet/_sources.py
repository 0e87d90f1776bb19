"""Where tasks come from: a device of this program's own, an agent that started it for good, or one directory."""
import json
import math
import os
import re
import select
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import Error, _files, _library, _state, safetensors
from ._signals import Signals

GO_ON, DEADLINE, CANCEL = range(3)
ROLES = ("train", "average", "frozen", "local")
OPTIMIZERS = ("own", "sgd", "adam", "adamw")
_OPTIMIZER_IDS = (65535, 0, 1, 2)  # of the manifest, in that order
LINE_MAX = 64 << 10
TASK_MAX = 4 << 20
DEADLINE_SHARE = 0.9  # for agents that do not say how many seconds there are
ASK_S = 0.02  # between two questions whether the deadline is near
KINDS = ("train", "evaluate")


class Part(NamedTuple):
    """One tensor of the task in hand."""

    name: str
    type: str  # safetensors' word
    shape: Tuple[int, ...]
    role: str  # one of ROLES
    data: memoryview  # its bytes, to be changed in place

    @property
    def wanted(self) -> bool:
        """Does the work end in this tensor?"""
        return self.role != "frozen"


class Counted(NamedTuple):
    """What figures are means of: sums over what counted."""

    loss_count: float  # what the loss was divided by; 0: nothing counted
    labels: Optional[int]  # that counted; None: the accuracy stands for itself
    right: int  # of these


class Figures(NamedTuple):
    """What a program says of its work, checked."""

    examples: int
    steps: int
    loss: float
    accuracy: float  # NaN if there is none
    partial: bool
    optimizer: str  # one of OPTIMIZERS
    normaliser: float
    evaluate: Optional[Tuple[int, float, float]]  # examples, loss, accuracy
    metrics: List[Tuple[str, float]]
    trained: Optional[Counted] = None
    evaluated: Optional[Counted] = None
    counts: Optional[Dict[str, Any]] = None  # of the evaluation, as its report has them


class Facts(NamedTuple):
    """What a task says, whoever brought it."""

    id: str
    job: str
    model: str
    kind: str
    round: int
    seed: int
    rate: float
    params: Dict[str, Any]
    recipe: Dict[str, Any]
    validation: float
    epochs: int
    steps: int
    seconds: float
    batch: int
    deadline: float  # time.monotonic()
    examples: int  # that are there to train on; 0 if that is not known
    most: int = 0  # that the job lets this device claim; 0 if it may claim all it has


class Hand:
    """A task in hand; the sources below each have their own."""

    facts: Facts
    parts: List[Part]

    def stop(self) -> int:
        """GO_ON, DEADLINE or CANCEL; never blocks."""
        raise NotImplementedError

    def validation(self, examples: Optional[int]) -> Any:
        """A buffer of 32-bit indices."""
        raise NotImplementedError

    def share(self, examples: int) -> Optional[Tuple[Any, Any]]:
        """Two such buffers, what to train and what to evaluate on; None: all of them may be worked on."""
        return None

    def submit(self, figures: Figures, after: Dict[str, Any]) -> Tuple[bool, str]:
        """Ends the task: was the work taken, and what was said. after: values by name for parts, {} if they are in
        place. Error: it is still in hand."""
        raise NotImplementedError

    def give_back(self, reason: str, text: str, seconds: float) -> None:
        raise NotImplementedError

    def variates(self) -> Dict[str, Any]:
        return {}

    def keep(self, state: Any) -> None:
        """For the next task of the job. ValueError: it is nothing that can be kept; Error: "limit", "io"."""
        raise NotImplementedError

    def kept(self) -> _state.Kept:
        raise NotImplementedError

    def has_agent(self) -> bool:
        """Did `rivulet run` start this program?"""
        return False

    def gives_examples(self) -> bool:
        """Did an agent write examples for the task?"""
        return False

    def examples(self) -> "Examples":
        raise Error("only a program that `rivulet run` started is given examples", "state")


class Examples(NamedTuple):
    """numpy arrays, read only. x: float32 [n, features] or [n, channels, height, width], normalised as the recipe
    says; of a text int64 [n, window]. y: classes int64 [n], numbers float32 [n, width]; of a text int64 [n, window]."""

    x: Any
    y: Any
    validation_x: Any  # None without a validation share
    validation_y: Any


class Source:
    """Brings one task after the other."""

    def next(self, wait: float) -> Optional[Hand]:
        """Waits, for ever if `wait` is negative; None: no more will come, or none came in time."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is in hand afterwards. May be called twice."""


def _evaluated(figures: Figures) -> Dict[str, Any]:
    """An evaluation, as a report has it."""
    words = zip(("examples", "loss", "accuracy"), figures.evaluate or ())
    return {name: value for name, value in words if not math.isnan(value)}


def held_of(examples: int, share: float) -> int:
    """How many of them are for evaluation alone."""
    return max(int(share * examples), 1 if share > 0 and examples > 1 else 0)


def copy_into(part: Part, value: Any) -> None:
    """A numpy array or a torch tensor of the part's shape over its values, converted to its type."""
    import numpy

    torch = sys.modules.get("torch")
    if part.type == "BF16":
        word, _, data = safetensors.contents(value)
        if word != "BF16":
            raise ValueError("tensor %r is BF16, and %s was given" % (part.name, word))
        part.data[:] = data
        return
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
        value = value.cpu().numpy()
    numpy.copyto(safetensors.array(part.data, part.type, part.shape), value, casting="same_kind")


# --- A device of its own


class LibraryHand(Hand):
    def __init__(self, source: "LibrarySource", facts: "_library.TaskFacts") -> None:
        self._source = source
        self._ask_at = 0.0  # time.monotonic(): the library need not be asked before
        self.facts = Facts(
            id=facts.id.decode(),
            job=facts.job.decode(),
            model=facts.model.decode(),
            kind=KINDS[facts.kind],
            round=facts.round,
            seed=facts.seed,
            rate=facts.rate,
            params=json.loads(facts.params),
            recipe=json.loads(facts.recipe),
            validation=facts.validation,
            epochs=facts.epochs,
            steps=facts.steps,
            seconds=facts.seconds,
            batch=facts.batch,
            deadline=time.monotonic() + facts.deadline_s,
            # A set of its own is measured as it is: no share of it is kept apart for evaluation.
            examples=source.count if source.evaluates else source.handle.share_count(source.count, 0),
            most=self._most(source, facts.validation),
        )
        tensors = facts.tensors[: facts.tensor_count]
        first = min((t.bytes for t in tensors), default=0)
        # Kept until the task has ended, for the library works with it until then.
        self._block = source.handle.hold(max((t.bytes + t.size for t in tensors), default=0) - first)
        data = memoryview(self._block).cast("B")
        self.parts = [
            Part(
                t.name.decode(),
                t.type.decode(),
                tuple(t.shape[: t.dims]),
                ROLES[t.role],
                data[t.bytes - first : t.bytes - first + t.size],
            )
            for t in tensors
        ]

    @staticmethod
    def _most(source: "LibrarySource", validation: float) -> int:
        held = held_of(source.count, validation)
        both = ((source.count - held, 0), (held, 1))
        cut = [source.handle.share_count(source.count, kind) for n, kind in both]
        return max((c for c, (n, _) in zip(cut, both) if c < n), default=0)

    def share(self, examples: int) -> Optional[Tuple[Any, Any]]:
        return self._source.handle.share(examples, 0), self._source.handle.share(examples, 1)

    def stop(self) -> int:
        signals, now = self._source.signals, time.monotonic()
        if signals.leaving():
            return CANCEL
        if now < self._ask_at:
            return GO_ON
        self._ask_at = now + ASK_S
        # The library asks back, and an exception of a signal handler would be lost in there.
        with signals.blocking():
            code = self._source.handle.stop_now()
        return GO_ON if code == _library.OK else CANCEL if code == _library.STOPPED else DEADLINE

    def validation(self, examples: Optional[int]) -> Any:
        return self._source.handle.validation(self._source.count if examples is None else examples)

    def keep(self, state: Any) -> None:
        self._source.handle.keep(_state.dump(state))

    def kept(self) -> _state.Kept:
        return _state.Kept(*(self._source.handle.kept() or ()))

    def submit(self, figures: Figures, after: Dict[str, Any]) -> Tuple[bool, str]:
        by_name = {part.name: part for part in self.parts}
        for name, value in after.items():
            copy_into(by_name[name], value)
        words = figures._replace(optimizer=OPTIMIZERS.index(figures.optimizer))._asdict()  # type: ignore[arg-type]
        evaluate, metrics, counts = words.pop("evaluate"), words.pop("metrics"), words.pop("counts")
        handle = self._source.handle
        counted = (words.pop("trained"), words.pop("evaluated"))
        if counts:
            handle.figures(json.dumps({**_evaluated(figures), **_counted(figures.evaluated), **counts}))
        with self._source.signals.blocking():
            for kind, sums in enumerate(counted):
                handle.count(kind, *(sums or ()))
            code = handle.submit(list(words.items()), evaluate, metrics)
            said = handle.error(code) if code != _library.OK else None
            # What is on disk is the library's to send; before that the task is still in hand.
            kept = handle.stop_now() == _library.STATE
        if said and not kept:
            raise said
        return code == _library.OK, str(said or "")

    def give_back(self, reason: str, text: str, seconds: float) -> None:
        with self._source.signals.blocking(seconds):
            self._source.handle.abort(reason, text)


class LibrarySource(Source):
    def __init__(
        self,
        home: Optional[str],
        config: Optional[str],
        trainer: str,
        data: Optional[str],  # None: an evaluator, with a set of its own
        examples: int,
        kinds: Sequence[str],
        signals: Signals,
        figures: bool = False,
    ) -> None:
        self.signals, self.count, self.evaluates = signals, examples, data is None
        bits = sum(1 << KINDS.index(kind) for kind in set(kinds))
        with signals.blocking():
            self.handle = _library.Handle(home, config, trainer, data, examples, bits, signals.cancelled, _tell)
            if data is not None:
                self.handle.can("max-examples")
            if figures:
                self.handle.can("figures")
        self._open = True

    def next(self, wait: float) -> Optional[Hand]:
        with self.signals.blocking():
            code, facts = self.handle.next(wait)
        if code in (_library.TIMEOUT, _library.STOPPED):
            return None
        if facts is None:
            raise self.handle.error(code)
        return LibraryHand(self, facts)

    def close(self) -> None:
        if self._open:
            self._open = False
            self.handle.close()


def _tell(level: int, line: str) -> None:
    """The library's events, to whoever configured logging; without that, warnings and errors go to standard error."""
    import logging

    logging.getLogger("rivulet").log((logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)[level], "%s", line)


# --- A directory that an agent made


def role_of(rules: Dict[str, str], name: str, type: str) -> str:
    """As the coordinator decides: the first pattern that matches, "*" being any run of characters."""
    for pattern, role in rules.items():
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL):
            return role
    return "train" if type == "F32" else "frozen"


def planned(local: Dict[str, Any], examples: int, sized: int = 0) -> Tuple[int, int, float, int]:
    """Epochs, optimizer steps, seconds and batch of a recipe's "local"; as `rivulet_task` has them. `sized`: the steps
    that the task itself says, of a job that leaves them to the coordinator."""
    batch, steps = int(local.get("batch", 10)), sized or int(local.get("steps", 0))
    seconds = float(local.get("seconds", 0))
    epochs = int(local.get("epochs", 0 if steps or seconds else 1))
    step = (min(batch, examples) if batch else examples) * int(local.get("accumulate", 1))
    if epochs and step:
        steps = epochs * -(-examples // step)
    return epochs, steps, seconds, batch


def _counted(sums: Optional[Counted]) -> Dict[str, Any]:
    """For report.json."""
    if sums is None:
        return {}
    labels = {} if sums.labels is None else {"labels": sums.labels, "right": sums.right}
    return {"loss_count": sums.loss_count, **labels}


class DirectoryHand(Hand):
    """finishing: is the agent asking for what there is? done: told when what belongs there stands in the directory."""

    def __init__(
        self,
        directory: str,
        signals: Signals,
        cache: Dict[Any, Examples],
        finishing: Callable[[], bool] = lambda: False,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.directory, self._signals, self._cache = directory, signals, cache
        self._finishing, self._done = finishing, done
        came = time.monotonic()
        with open(self._path("task.json"), "rb") as f:
            text = f.read(TASK_MAX + 1)
        if len(text) > TASK_MAX:
            raise Error("task.json has more than %d bytes" % TASK_MAX, "limit")
        self._task = task = json.loads(text)
        recipe = task["recipe"]
        seconds = float(task.get("seconds", task.get("deadline_s", math.inf) * DEADLINE_SHARE))
        self._until = came + seconds
        examples = self._count("x")
        epochs, steps, budget, batch = planned(recipe.get("local", {}), examples, int(task.get("steps", 0)))
        self.facts = Facts(
            id=task["task"],
            job=task["job"],
            model=task["model"]["id"],
            kind=task.get("kind", "train"),
            round=task["round"],
            seed=task["local_seed"],
            rate=float(task.get("rate", 0)),
            params=recipe.get("params", {}),
            recipe=recipe,
            validation=float(recipe.get("data", {}).get("validation", 0)),
            epochs=epochs,
            steps=steps,
            seconds=budget,
            batch=batch,
            deadline=came + float(task.get("deadline_s", seconds)),
            examples=examples,
            most=int(task.get("max_examples", 0)),
        )
        self.parts = self._load_parts()

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _load_parts(self) -> List[Part]:
        rules = self.facts.recipe.get("tensors", {})
        base = safetensors.File(self._task.get("base") or self._path("base.safetensors"), private=True)
        own: Dict[str, memoryview] = {}
        if self._task.get("local"):
            file = safetensors.File(self._task["local"], private=True)
            own = {t.name: file.bytes(t) for t in file}
        parts = []
        for t in base:
            role = role_of(rules, t.name, t.type)
            data = own.get(t.name, base.bytes(t)) if role == "local" else base.bytes(t)
            parts.append(Part(t.name, t.type, t.shape, role, data))
        return parts

    def _count(self, name: str) -> int:
        path = self._task.get("examples")
        shapes = {t.name: t.shape for t in safetensors.File(path)} if path else {}
        return shapes[name][0] if name in shapes else 0

    def stop(self) -> int:
        if self._finishing() or self._signals.leaving():
            return CANCEL
        return GO_ON if time.monotonic() < self._until else DEADLINE

    def validation(self, examples: Optional[int]) -> Any:
        del examples
        path = self._task.get("validation")
        if not path and self.gives_examples():
            raise Error("the agent has divided the examples: see task.split() or task.examples()", "state")
        if not path:
            return b""
        file = safetensors.File(path)
        return file.bytes(next(iter(file)))

    def share(self, examples: int) -> Optional[Tuple[Any, Any]]:
        path = self._task.get("share")
        if not path:
            return None
        file = safetensors.File(path)
        by_name = {t.name: file.bytes(t) for t in file}
        return by_name["train"], by_name["validation"]

    def submit(self, figures: Figures, after: Dict[str, Any]) -> Tuple[bool, str]:
        report: Dict[str, Any] = {} if self.facts.kind == "evaluate" else self._worked(figures, after)
        if figures.evaluate:
            report["evaluate"] = {**_evaluated(figures), **_counted(figures.evaluated), **(figures.counts or {})}
        if figures.metrics:
            report["metrics"] = dict(figures.metrics)
        self._write_report(report)
        return True, ""

    def _worked(self, figures: Figures, after: Dict[str, Any]) -> Dict[str, Any]:
        """Writes the tensors; what is to be said of them."""
        report: Dict[str, Any] = {
            "examples": figures.examples,
            "steps": figures.steps,
            "loss": figures.loss,
            **({"trained": _counted(figures.trained)} if figures.trained else {}),
            "partial": figures.partial,
            "optimizer": _OPTIMIZER_IDS[OPTIMIZERS.index(figures.optimizer)],
            "normaliser": figures.normaliser or float(figures.steps),
        }
        if not math.isnan(figures.accuracy):
            report["accuracy"] = figures.accuracy
        for part in self.parts:
            if part.name in after:
                copy_into(part, after[part.name])
        changed = {p.name: safetensors.Raw(p.type, p.shape, p.data) for p in self.parts if p.wanted}
        safetensors.save(self._path("after.safetensors"), changed)
        return report

    def give_back(self, reason: str, text: str, seconds: float) -> None:
        self._write_report({"abort": {"reason": reason, "text": text}})

    def _write_report(self, report: Dict[str, Any]) -> None:
        _files.write(self._path("report.json"), [json.dumps(report, allow_nan=False).encode()])
        self._done()

    def variates(self) -> Dict[str, Any]:
        return safetensors.load(self._task["variates"]) if self._task.get("variates") else {}

    def keep(self, state: Any) -> None:
        if "kept_bytes" not in self._task:
            raise Error("the agent that started this program is of an older version: it keeps nothing", "state")
        _state.write(self._path("keep.safetensors"), state, int(self._task["kept_bytes"]))

    def kept(self) -> _state.Kept:
        return _state.of_file(self._task.get("kept"), self._task)

    def has_agent(self) -> bool:
        return True

    def gives_examples(self) -> bool:
        return bool(self._task.get("examples"))

    def examples(self) -> Examples:
        path = self._task.get("examples")
        if not path:
            return super().examples()
        rule = self.facts.recipe.get("data", {}).get("normalise")
        found = os.stat(path)
        # An agent writes a set once: the same file need not be read again for the next task.
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, json.dumps(rule))
        if key not in self._cache:
            self._cache.clear()
            self._cache[key] = read_examples(path, rule)
        return self._cache[key]


def read_examples(path: str, rule: Optional[Dict[str, Any]]) -> Examples:
    """An agent's file of examples; rule: the recipe's "data"."normalise"."""
    import numpy

    def whole(x: Any) -> Any:
        """Classes and tokens, in the type that PyTorch wants of them; numbers as they are."""
        if x is None or x.dtype != numpy.int32:
            return x
        out = x.astype(numpy.int64)
        out.flags.writeable = False
        return out

    def normal(x: Any) -> Any:
        if x is None or x.dtype == numpy.int32:
            return whole(x)
        out = x.astype(numpy.float32)
        if x.dtype == numpy.uint8:
            out /= 255
        if rule:
            shape = [-1] + [1] * (x.ndim - 2)
            out -= numpy.reshape(numpy.float32(rule["mean"]), shape)
            out /= numpy.reshape(numpy.float32(rule["std"]), shape)
        # The next task gets the same arrays; the others are views of a file mapped to be read.
        out.flags.writeable = False
        return out

    tensors = safetensors.load(path)
    x, held_x = (normal(tensors.get(name)) for name in ("x", "validation_x"))
    y, held_y = (whole(tensors.get(name)) for name in ("y", "validation_y"))
    return Examples(x, y, held_x, held_y)


class OnceSource(Source):
    """One directory, and no more."""

    def __init__(self, directory: str, signals: Signals) -> None:
        self._directory: Optional[str] = directory
        self._signals = signals

    def next(self, wait: float) -> Optional[Hand]:
        directory, self._directory = self._directory, None
        return DirectoryHand(directory, self._signals, {}) if directory else None


class PersistentSource(Source):
    """An agent on two descriptors: a line of JSON each way for each task."""

    def __init__(self, come: int, go: int, signals: Signals) -> None:
        self._come, self._go, self._signals = come, go, signals
        for fd in (come, go):
            os.set_inheritable(fd, False)
        self._buffer = b""
        self._ended = False
        self._lines: List[Dict[str, Any]] = []
        self._finish: Optional[str] = None
        self._cache: Dict[Any, Examples] = {}
        self._hand: Optional[str] = None
        self._ready = False

    def _send(self, message: Dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._go, data) :]
        except BrokenPipeError:
            self._ended = True

    def _take(self, seconds: float) -> None:
        """Reads what comes within so long, if anything does."""
        if self._ended or not select.select([self._come], [], [], seconds)[0]:
            return
        data = os.read(self._come, LINE_MAX)
        self._ended = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if max(map(len, lines + [self._buffer])) > LINE_MAX:
            raise Error("the agent's line has more than %d bytes" % LINE_MAX, "limit")
        for line in filter(None, lines):
            message = json.loads(line)
            if "finish" in message:
                self._finish = message["finish"]
            elif "task" in message:
                self._lines.append(message)

    def _finishing(self) -> bool:
        while not self._ended and select.select([self._come], [], [], 0)[0]:
            self._take(0)
        return self._ended or (self._hand is not None and self._finish == self._hand)

    def _done(self) -> None:
        done, self._hand = self._hand, None
        if done:
            self._send({"done": done})

    def next(self, wait: float) -> Optional[Hand]:
        until = time.monotonic() + wait
        if not self._ready:
            self._ready = True
            self._send({"ready": True})
        with self._signals.blocking():
            while not self._lines and not self._ended and not self._signals.cancelled():
                if 0 <= wait and time.monotonic() >= until:
                    return None
                self._take(0.5)
        if not self._lines or self._signals.leaving():
            return None
        message = self._lines.pop(0)
        self._hand = message["task"]
        return DirectoryHand(message["directory"], self._signals, self._cache, self._finishing, self._done)


def has_agent() -> bool:
    """Did `rivulet run` start this program?"""
    return any(os.environ.get(name) for name in ("RIVULET_TRAINER_IN", "RIVULET_TASK"))


def choose(make: Callable[[Signals], Source], signals: Signals) -> Source:
    """How this program was started decides; `make` opens a device of its own."""
    come, go = os.environ.get("RIVULET_TRAINER_IN"), os.environ.get("RIVULET_TRAINER_OUT")
    if come and go:
        return PersistentSource(int(come), int(go), signals)
    directory = os.environ.get("RIVULET_TASK")
    last = sys.argv[-1] if len(sys.argv) > 1 else ""
    if not directory and last and os.path.isfile(os.path.join(last, "task.json")):
        directory = last
    return OnceSource(directory, signals) if directory else make(signals)
