"""One task in hand, and the loop over them: the part of the package that a training script meets."""
import enum
import math
import sys
import time
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import Error, safetensors
from . import _counts as counts
from . import _failure as failure
from . import _optimizer as optimizers
from . import _parts as parts
from . import _sources as sources
from ._signals import Signals

FAILURES_MAX = 3  # in a row
GIVE_BACK_S = 1.0  # a program that was told to end does not wait longer for the coordinator
METRICS_MAX = 64


class Stop(enum.IntEnum):
    """Whether to go on with a task. False in a condition means: go on."""

    GO_ON = sources.GO_ON
    DEADLINE = sources.DEADLINE  # what time is left is needed for sending
    CANCEL = sources.CANCEL  # this program, or the agent that started it, is to end


class Task:
    """A task in hand: the model to begin with, what the job wants done with it, and its end.

    Used as ``with task: ...``. An exception in there gives the task back with the last lines of its traceback, and the
    loop goes on; so does leaving without `submit`. Not for several threads at a time.
    """

    def __init__(self, hand: sources.Hand, loop: "_Loop") -> None:
        self._hand: Optional[sources.Hand] = hand
        self._loop = loop
        self._facts = hand.facts
        self._parts: "OrderedDict[str, sources.Part]" = OrderedDict((p.name, p) for p in hand.parts)
        self._tensors: Optional[Dict[str, Any]] = None
        self._loss: Any = 0.0  # a sum, as the next three
        self._weight: Any = 0.0
        self._right: Any = None
        self._labels: Any = 0
        self._calls = 0  # of step
        self._passed = 0  # examples that all steps took, the same one counted again
        self._size: Optional[int] = None  # different examples there are
        self._planned = 0  # batches
        self._partial = False
        self._examples: Any = None
        self._noted: Dict[str, Any] = {}  # arguments of submit
        self._validation: Any = None
        self._kept: Any = None
        self._counter: Optional[counts.Counter] = None
        self._optimizer: Any = None

    def __repr__(self) -> str:
        return "<rivulet.Task %s of job %s, round %d>" % (self.id[:8], self.job[:8], self.round)

    # --- What is asked

    @property
    def id(self) -> str:
        """In hex, as the coordinator's logs have it."""
        return self._facts.id

    @property
    def job(self) -> str:
        """The job's id in hex."""
        return self._facts.job

    @property
    def model(self) -> str:
        """SHA-256 of the model that this task begins with, in hex."""
        return self._facts.model

    @property
    def kind(self) -> str:
        """ "train", or "evaluate": measure the model, which comes to those who offer it (`kinds` of `tasks`)."""
        return self._facts.kind

    @property
    def round(self) -> int:
        """From 1."""
        return self._facts.round

    @property
    def seed(self) -> int:
        """Of this device's work in this round: derive all randomness from it (``torch.manual_seed(task.seed)``)."""
        return self._facts.seed

    @property
    def lr(self) -> float:
        """The learning rate of this round: the job's, after its schedule; 0 if it gives none."""
        return self._facts.rate

    @property
    def params(self) -> Dict[str, Any]:
        """The job's "params"."""
        return self._facts.params

    @property
    def recipe(self) -> Dict[str, Any]:
        """The job's model, tensors, trainer, params, data, local, evaluate and upload, as they were submitted."""
        return self._facts.recipe

    @property
    def epochs(self) -> int:
        """Passes over the data that the job plans; 0 if it plans otherwise."""
        return self._facts.epochs

    @property
    def steps(self) -> int:
        """Optimizer steps that the job plans for this device's examples; 0 if that is not known."""
        return self._facts.steps

    @property
    def seconds(self) -> float:
        """Training ends after about so long, which is no partial work; 0: not because of the time."""
        return self._facts.seconds

    @property
    def batch(self) -> int:
        """Examples of one batch; 0: all of them."""
        return self._facts.batch

    @property
    def deadline(self) -> float:
        """``time.monotonic()`` by which the coordinator wants to have the work; `stop_now` says when to end for it."""
        return self._facts.deadline

    @property
    def tensors(self) -> Dict[str, Any]:
        """The model by name, in its order: numpy views of the memory that is submitted, no copies. bfloat16 as 16-bit
        unsigned integers. They stay valid as long as they live, but what is written after `submit` goes nowhere."""
        if self._tensors is None:
            self._tensors = {p.name: safetensors.array(p.data, p.type, p.shape) for p in self._parts.values()}
        return self._tensors

    def state_dict(self) -> "OrderedDict[str, Any]":
        """The model as torch tensors by name, in its order, for ``load_state_dict``, which copies them. They share the
        memory of `tensors`: a change in place is a change of what is submitted."""
        import torch

        return OrderedDict((p.name, _torch_view(torch, p)) for p in self._parts.values())

    def roles(self) -> Dict[str, str]:
        """ "train", "average", "frozen" or "local" by tensor."""
        return {p.name: p.role for p in self._parts.values()}

    def validation_indices(self, examples: Optional[int] = None) -> Any:
        """Which of `examples` (default: the count given to `tasks`) are for evaluation alone: a sorted numpy array of
        uint32, the same in every round of a job. For data that only this program holds: Error where the agent divides
        it, `split` does both."""
        import numpy

        if self._validation is None or examples is not None:
            indices = numpy.frombuffer(self._in_hand().validation(examples), numpy.uint32)
            if examples is not None:
                return indices
            self._validation = indices
        return self._validation

    def variates(self) -> Dict[str, Any]:
        """Of a job with control variates: what is to be added to every gradient, numpy views by tensor; {} of others.
        Such jobs come to programs that an agent started, and want plain SGD: ``submit(..., optimizer="sgd")``."""
        return self._in_hand().variates()

    def examples(self) -> sources.Examples:
        """The examples that the agent gives a program it started, as numpy arrays: x, y, validation_x, validation_y.
        x is float32 [n, *shape], normalised as the recipe says. All are read only, for the next task gets the same.
        Error in a program that is a device of its own: `split` serves both."""
        if self._examples is None:
            self._examples = self._in_hand().examples()
        return self._examples

    def split(self, data: Any = None) -> Tuple[Sequence[Any], Sequence[Any]]:
        """What to train on, and what is for evaluation alone (empty where the job keeps no validation share): two
        sequences that a PyTorch DataLoader takes, however the program was started. They are of the agent's examples,
        pairs of numpy x and y, where it gives some; else of `data`, which has a length and is indexed, and is divided
        alike in every round of a job. ValueError: there are neither, or less data than the agent counts."""
        hand = self._in_hand()
        if hand.gives_examples():
            return parts.of_agent(self.examples())
        if data is None:
            raise ValueError("nobody gives this program examples: split(data) divides its own")
        return parts.of_data(data, hand)

    # --- The work

    def optimizer(self, params: Any) -> Any:
        """The job's `local.optimizer` as a torch optimizer whose steps are those of the built-in trainer: SGD with
        momentum, nesterov and weight decay, Adam or AdamW, at the round's rate (`lr`); `local.clip_norm`, `local.prox`
        and control variates act on the gradients before each step. Its state begins anew, as the built-in trainer's
        does; `keep` and ``load_state_dict(task.kept())`` carry it on.

        params: a module, of which what the job freezes is left out, or what torch's optimizers take. `submit` says
        which optimizer it was, and with momentum or prox its `normaliser`, unless it is told. ValueError: the recipe
        asks for what torch has not, or gives no rate.
        """
        local = self.recipe.get("local", {})
        self._optimizer = optimizers.make(params, local, self.lr, self)
        return self._optimizer

    def stop_now(self) -> Stop:
        """To be asked between two steps by who does not use `batches`. Costs microseconds."""
        return Stop(self._in_hand().stop())

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of the task's work: its epochs or steps over `loader`, anything that can be gone through again.

        Ends early when the deadline is near or this program is to end, after one batch at least; what is submitted
        then is partial work. Of a task that evaluates it is one pass. ValueError: the loader is empty.
        """
        accumulate = int(self.recipe.get("local", {}).get("accumulate", 1))
        self._size, per_pass = _size_of(loader), _length_of(loader)
        self._planned = self.epochs * per_pass if self.epochs else self.steps * accumulate
        self._partial = True
        began, done, passes = time.monotonic(), 0, 0
        while True:
            before = done
            for batch in loader:
                if done and self.stop_now():
                    return
                yield batch
                done += 1
                if self._is_done(done, began, accumulate):
                    self._partial = False
                    return
            if done == before:
                raise ValueError("the loader has no batches")
            passes += 1
            if passes == self.epochs or self.kind == "evaluate":
                self._partial = False
                return

    def _is_done(self, done: int, began: float, accumulate: int) -> bool:
        """After a batch. Of time: as the built-in trainer, within half a step of it."""
        if self.kind == "evaluate":
            return False
        if not self.epochs and self.steps and done >= self.steps * accumulate:
            return True
        took = time.monotonic() - began
        return self.seconds > 0 and took + 0.5 * took / done >= self.seconds

    def step(self, loss: Any, n: int, right: Any = None, labels: Any = None, weight: Any = None) -> None:
        """Counts one batch of `n` examples, with its mean loss before the step and how many of its labels were `right`.

        labels: how many labels count, where that is not one for each example: the tokens of a text, or those that
        are not ignored. weight: what the mean loss was divided by, if not by these: the weights of their classes. All
        may be numbers or tensors of one element, which stay on their device until `submit`. A batch in which nothing
        counts has no loss: what is given (PyTorch gives NaN) is left out.
        """
        labels = n if labels is None else _whole(labels)
        weight = labels if weight is None else _detached(weight)
        self._loss = self._loss + _weighed(_detached(loss), weight)
        self._weight = self._weight + weight
        if right is not None:
            self._right = _whole(right) + (0 if self._right is None else self._right)
            self._labels = self._labels + labels
        self._calls += 1
        self._passed += int(n)

    def count(self, y_true: Any, y_pred: Any) -> None:
        """Counts examples of the evaluation for what the job's `evaluate.figures` asks for: with the task's own model,
        before training, or in a task that evaluates. Torch tensors, numpy arrays or lists, a batch or all at once.

        y_true: classes from 0, [n], of which the job's `model.ignore_index` is left out; of a regression numbers, [n]
        or [n, outputs]. y_pred: scores, [n, classes], such as the network's outputs or probabilities; or classes, [n],
        which is enough for "classes" and "confusion"; of a regression predictions. `submit` sends the counts, and of
        classes examples and accuracy, where it is given none.

        ValueError: a class that there is not, or shapes that do not fit. Error with code "no-figures": what was asked
        for takes scores; left to itself, that gives the task back, and this program is not offered such jobs again.
        """
        self._in_hand()
        if self._counter is None:
            self._counter = counts.Counter(self.recipe)
        self._counter.add(y_true, y_pred)

    def note(self, **figures: Any) -> None:
        """Figures for `submit`, by its names, which it takes where it is given none; metrics add up. For adapters to
        training loops that are not the user's own."""
        metrics = {**self._noted.get("metrics", {}), **figures.get("metrics", {})}
        self._noted.update({name: value for name, value in figures.items() if value is not None}, metrics=metrics)

    # --- What it leaves for the next

    def keep(self, state: Any) -> None:
        """Keeps something of this device's own for its next task of the job: an optimizer, or any nesting of dicts,
        lists, tuples, numbers, texts, torch tensors and numpy arrays. In force once this task's delta is accepted, and
        gone with one that is refused or a task that is given back. Called again, the last one counts.

        ValueError: what cannot be kept is named; Error with code "limit": more than the device's kept_bytes leaves room
        for; "io": it cannot be written. The task and what was kept before are as they were then, so `submit` sends the
        work all the same. Code "state": the task evaluates.
        """
        hand = self._in_hand()
        if self.kind == "evaluate":
            raise Error("a task that evaluates keeps nothing", "state")
        hand.keep(state)

    def kept(self) -> Any:
        """What is in force for this job on this device: what `keep` was given in the last task of it whose delta was
        accepted, as a copy of the caller's own; of what has a ``state_dict`` that. None: nothing is."""
        return self._kept_state().state()

    @property
    def kept_model(self) -> str:
        """The `model` of the task that kept it; "" if nothing is in force."""
        return self._kept_state().model

    @property
    def kept_round(self) -> int:
        """The round of that task; 0 if nothing is in force."""
        return self._kept_state().round

    def _kept_state(self) -> Any:
        if self._kept is None:
            self._kept = self._in_hand().kept()
        return self._kept

    # --- Its end

    def submit(
        self,
        model: Any = None,
        *,
        metrics: Optional[Mapping[str, Any]] = None,
        loss: Any = None,
        accuracy: Any = None,
        examples: Optional[int] = None,
        steps: Optional[int] = None,
        partial: Optional[bool] = None,
        evaluate: Union[Mapping[str, Any], Tuple[int, float, float], None] = None,
        optimizer: Any = None,
        normaliser: float = 0.0,
        trained: Optional[Mapping[str, Any]] = None,
    ) -> bool:
        """Ends the task with what was trained, and waits until the coordinator has it. True: it was taken.

        model: a torch module, or tensors by name (torch or numpy); None: `tensors` were changed in place. Every tensor
        whose role is not "frozen" must be there, others may be. metrics: figures of your own, at most 64. evaluate:
        what the model of the task did on the validation share before training: {"examples": n, "loss": x,
        "accuracy": x}, and what these are means of, where that is not the examples: "loss_count", "labels", "right",
        as in `trained`, which says it of the training: {"loss_count": what the loss is divided by, "labels": how many
        count, "right": how many of these}. optimizer: "sgd", "adam", "adamw" or a torch optimizer. The other figures
        come from `step` unless they are given.

        False: the coordinator does not want it (too late), or was not reached: then it is kept on disk and sent later.
        ValueError: a tensor is missing or has another shape, or a figure cannot be; Error with code "numeric": a
        weight or figure is not finite. The task is then still in hand.
        """
        hand = self._in_hand()
        figures = self._figures(
            metrics=metrics,
            loss=loss,
            accuracy=accuracy,
            examples=examples,
            steps=steps,
            partial=partial,
            evaluate=evaluate,
            optimizer=optimizer,
            normaliser=normaliser,
            trained=trained,
        )
        values = {} if model is None or self.kind == "evaluate" else self._values(model)
        taken, said = hand.submit(figures, values)
        self._hand = None
        if not taken:
            what = "report" if self.kind == "evaluate" else "delta"
            _log().warning("task %s: the %s was not taken: %s", self.id, what, said)
        return taken

    def abort(self, reason: str, text: str = "") -> None:
        """Gives the task back. reason: a word, [a-z-]{1,32}, such as "no-data" or "out-of-memory"; text: what a person
        should read of it, of which the device's setting send_log decides what is sent."""
        self._give_back(reason, text, math.inf)

    def _give_back(self, reason: str, text: str, seconds: float) -> None:
        hand = self._in_hand()
        self._hand = None
        hand.give_back(reason, text[-failure.TEXT_MAX :], seconds)

    def _forget(self) -> None:
        """The next model needs the memory of this one, as far as nobody looks at it."""
        self._tensors, self._examples, self._kept = {}, None, None
        self._parts.clear()

    def _in_hand(self) -> sources.Hand:
        if self._hand is None:
            raise Error("the task has ended", "state")
        return self._hand

    def _measured(self, given: Any, metrics: List[Tuple[str, float]]) -> sources.Figures:
        """Of a task that evaluates: what `step` counted, unless it is given."""
        counted = _sums(given)
        if given is None and self._passed:
            counted = self._counted_sums()
            given = (self._allowed(self._passed), self._mean_loss(), self._accuracy())
        evaluate = _evaluation(given) or self._evaluated_by_count()
        if not evaluate or evaluate[0] < 1:
            raise ValueError("nothing was evaluated: call task.step(loss, n) for each batch, or give evaluate=")
        counted = self._counted_with(evaluate, counted)
        asked = self._counts_of(evaluate, counted)
        figures = sources.Figures(evaluate[0], 1, 0.0, 0.0, False, "own", 0.0, evaluate, metrics, None, counted, asked)
        _check(figures, self._facts.most)
        return figures

    def _figures(self, **given: Any) -> sources.Figures:
        own = {**self._noted.get("metrics", {}), **(given["metrics"] or {})}
        noted = {n: v for n, v in self._noted.items() if given[n] is None}
        if "examples" in noted:
            noted["examples"] = self._allowed(int(noted["examples"]))
        given = {**given, **noted}
        metrics = [(str(name), _metric(name, value)) for name, value in own.items()]
        if self.kind == "evaluate":
            return self._measured(given["evaluate"], metrics)
        calls = self._calls
        accumulate = int(self.recipe.get("local", {}).get("accumulate", 1))
        steps = -(-calls // accumulate) if given["steps"] is None else int(given["steps"])
        examples = self._allowed(self._counted()) if given["examples"] is None else int(given["examples"])
        loss = self._mean_loss() if given["loss"] is None and calls else _number(given["loss"])
        accuracy = self._accuracy() if given["accuracy"] is None else _number(given["accuracy"])
        counted = _sums(given.get("trained"))
        if counted is None and calls:
            counted = self._counted_sums()
            counted = counted if given["accuracy"] is None else counted._replace(labels=None)
        if counted and not counted.loss_count:
            loss = 0.0
        if counted and counted.labels is not None and given.get("trained"):
            accuracy = counted.right / counted.labels if counted.labels else math.nan
        evaluate = _evaluation(given["evaluate"]) or self._evaluated_by_count()
        evaluated = self._counted_with(evaluate, _sums(given["evaluate"]))
        figures = sources.Figures(
            examples=examples,
            steps=steps,
            loss=loss,
            accuracy=accuracy,
            partial=self._partial if given["partial"] is None else bool(given["partial"]),
            optimizer=_optimizer_word(given["optimizer"] or self._optimizer),
            normaliser=float(given["normaliser"]) or self._normaliser(steps),
            evaluate=evaluate,
            metrics=metrics,
            trained=counted,
            evaluated=evaluated,
            counts=self._counts_of(evaluate, evaluated),
        )
        _check(figures, self._facts.most)
        return figures

    def _counted_sums(self) -> sources.Counted:
        """Of all steps. What is right in part is no count: the accuracy then stands for itself."""
        right, weight = _number(self._right), _number(self._weight)
        if right != right or right % 1:
            return sources.Counted(weight, None, 0)
        return sources.Counted(weight, int(_number(self._labels)), int(right))

    def _accuracy(self) -> float:
        labels = _number(self._labels)
        return _number(self._right) / labels if labels else math.nan

    def _mean_loss(self) -> float:
        weight = _number(self._weight)
        return _number(self._loss) / weight if weight else math.nan

    def _evaluated_by_count(self) -> Optional[Tuple[int, float, float]]:
        """What `count` alone says."""
        c = self._counter
        return (c.examples, math.nan, c.right / c.labels) if c and c.classes and c.labels else None

    def _counted_with(self, evaluate: Any, told: Optional[sources.Counted]) -> Optional[sources.Counted]:
        """What that evaluation is of; `count` knows which labels do not count, unless it is told."""
        c = self._counter
        if not (evaluate and c and c.classes) or (told and told.labels is not None):
            return told
        if c.examples != evaluate[0] or c.labels == c.examples:
            return told
        if c.labels and abs(evaluate[2] - c.right / c.labels) > 1e-5:  # none is NaN
            if not c.figures:
                return told
            text = "task.count counted %d of %d labels as right, and the evaluation's accuracy is %g"
            raise ValueError(text % (c.right, c.labels, evaluate[2]))
        return sources.Counted(told.loss_count if told else c.weight, c.labels, c.right)

    def _counts_of(
        self, evaluate: Optional[Tuple[int, float, float]], told: Optional[sources.Counted]
    ) -> Optional[Dict[str, Any]]:
        """What the job asks for beside that evaluation; None: nothing."""
        c = self._counter or counts.Counter(self.recipe)
        if evaluate is None or evaluate[0] < 1 or not c.figures or all(map(math.isnan, evaluate[1:])):
            if (c.labels if c.classes else c.examples) and c.figures:
                raise ValueError("task.count counted, and no evaluation goes with it: give evaluate= with its loss")
            return None
        if not c.examples:
            text = "the job asks for evaluate.figures (%s), and task.count counted nothing" % ", ".join(c.figures)
            raise Error(text, counts.NO_FIGURES)
        if c.classes and told and told.labels is not None:
            if c.labels != told.labels:
                raise ValueError("task.count counted %d labels, and the evaluation is of %d" % (c.labels, told.labels))
        elif (c.labels if c.classes else c.examples) != evaluate[0]:
            text = "task.count counted %d examples, and the evaluation is of %d" % (c.labels or c.examples, evaluate[0])
            raise ValueError(text + (": give its labels and right" if c.classes else ""))
        return c.members()

    def _normaliser(self, steps: int) -> float:
        if self._optimizer is None:
            return 0.0
        return optimizers.normaliser(self.recipe.get("local", {}), self.lr, steps)

    def _allowed(self, examples: int) -> int:
        """What was counted, and not said: no more than the job lets a device claim, whatever it worked on."""
        return min(examples, self._facts.most) if self._facts.most else examples

    def _counted(self) -> int:
        """Different examples that the work took; of partial work the share of those of all of it that was done."""
        if not self._calls:
            return 0
        size = self._size or self._facts.examples or self._passed
        if not self._partial or not self._planned:
            return min(self._passed, size)
        whole = min(size, self._planned * self._passed // self._calls)
        return max(1, min(size, whole * self._calls // self._planned))

    def _values(self, model: Any) -> Dict[str, Any]:
        """Of the tensors that end the work, by name. ValueError names all that is wrong."""
        given = model.state_dict() if hasattr(model, "state_dict") else model
        wrong, values = [], {}
        for part in self._parts.values():
            if not part.wanted:
                continue
            value = given.get(part.name)
            shape = tuple(getattr(value, "shape", ()))
            if value is None:
                wrong.append("%s is missing" % part.name)
            elif shape != part.shape:
                wrong.append("%s has shape %s and not %s" % (part.name, list(shape), list(part.shape)))
            values[part.name] = value
        if wrong:
            more = ", and %d more" % (len(wrong) - 8) if len(wrong) > 8 else ""
            others = [str(name) for name in given if name not in self._parts]
            if others:
                more += "; the job has no %s" % ", ".join(others[:8]) + (" ..." if len(others) > 8 else "")
            raise ValueError("the model that was submitted is not the job's: %s%s" % (", ".join(wrong[:8]), more))
        return values

    def __enter__(self) -> "Task":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return self._loop.left(self, error)


class _Loop:
    """What outlives a task: its source, the signals, and how often in a row something failed."""

    def __init__(self, make: Callable[[Signals], sources.Source], stop: Optional[Callable[[], bool]]) -> None:
        self._make = make
        self.signals = Signals(stop)
        self.source: Optional[sources.Source] = None
        self.failures = 0

    def open(self) -> sources.Source:
        self.signals.start()
        self.source = sources.choose(self._make, self.signals)
        return self.source

    def close(self) -> None:
        source, self.source = self.source, None
        if source:
            source.close()
        self.signals.end()

    def left(self, task: Task, error: Optional[BaseException]) -> bool:
        """The end of a task's ``with``: is its exception dealt with?"""
        if error is None and task._hand is None:
            self.failures = 0
            return False
        if isinstance(error, Exception) or error is None:
            # A model that diverges is its job's fault, which the device lets rest: many such jobs do not end a program.
            self.failures += not failure.diverges(error)
            leave = self.failures == FAILURES_MAX
            reason, text = failure.reason_of(error, last=leave)
            self._tell(task, error, text.rstrip().rpartition("\n")[2], leave)
        else:
            leave, (reason, text) = True, ("stopped", "%s ended the program" % type(error).__name__)
        try:
            if task._hand is not None:
                task._give_back(reason, text, GIVE_BACK_S if leave else math.inf)
        except Error as e:
            _log().warning("task %s could not be given back: %s", task.id, e)
        finally:
            if leave:
                self.close()
        if error is None and leave:
            raise Error("%d tasks in a row failed; the last was left without submit or abort" % FAILURES_MAX, "state")
        return not leave

    def _tell(self, task: Task, error: Optional[BaseException], says: str, leave: bool) -> None:
        """Whoever leaves has the traceback from Python, and an agent puts what it is given back with into its log."""
        if leave:
            _log().error("task %s: %d failures in a row, and the loop ends; the last: %s", task.id, FAILURES_MAX, says)
        elif error is not None:
            whole = None if task._hand is not None and task._hand.has_agent() else error
            _log().error("task %s is given back: %s", task.id, says, exc_info=whole)


def tasks(
    trainer: str = "",
    data: str = "",
    examples: int = 0,
    *,
    home: Optional[str] = None,
    config: Optional[str] = None,
    rounds: Optional[int] = None,
    wait: float = -1.0,
    stop: Optional[Callable[[], bool]] = None,
    kinds: Sequence[str] = ("train",),
    figures: bool = False,
) -> Iterator[Task]:
    """The tasks of this device, one after the other, until SIGTERM or Ctrl-C; for ``for task in rivulet.tasks(...)``.

    How the program was started decides where they come from: from the coordinators that the device in `home` has
    joined (then `trainer`, `data` and `examples`, the count there is of them, say what is offered); from the agent that
    started it as a persistent trainer; or there is one, in the directory that an agent started it for. The other
    arguments are for the first of the three: home and config as in rivulet.h.

    rounds: leave after so many tasks; wait: leave when none comes for so many seconds; stop: asked about once a second,
    leave when it is true; kinds: of tasks, "train" and "evaluate"; figures: this program counts (`Task.count`) what
    jobs may ask for by `evaluate.figures`, and so is offered such jobs. A program that an agent started has its
    settings for that: [trainer NAME] kinds.

    Error: the library is absent, the home has not joined, the coordinator does not accept this device, ...
    """

    def make(signals: Signals) -> sources.Source:
        if not trainer or not data or examples < 1:
            raise ValueError("a device of its own says what it offers: tasks(trainer=..., data=..., examples=...)")
        if not kinds or not set(kinds) <= set(sources.KINDS):
            raise ValueError("kinds are of %s" % ", ".join(sources.KINDS))
        return sources.LibrarySource(home, config, trainer, data, examples, kinds, signals, figures)

    return _run(_Loop(make, stop), rounds, wait)


def _run(loop: _Loop, rounds: Optional[int], wait: float, kind: Callable[..., Any] = Task) -> Iterator[Any]:
    try:
        source = loop.open()
        while rounds is None or rounds > 0:
            hand = source.next(wait)
            if hand is None:
                return
            task = kind(hand, loop)
            del hand
            yield task
            # Without `with`, or with it left out: what is not submitted is given back all the same.
            if task._hand is not None:
                loop.left(task, None)
            task._forget()
            del task
            rounds = None if rounds is None else rounds - 1
            if loop.signals.leaving():
                return
    finally:
        loop.close()


# --- Figures


def _log() -> Any:
    import logging

    return logging.getLogger("rivulet")


def _detached(value: Any) -> Any:
    """A tensor without its graph, as float: adding it up then holds no memory and loses no figures."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().float()
    return float(value)


def _whole(value: Any) -> Any:
    """A tensor of a count, likewise; its sum stays exact."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach() if value.is_floating_point() else value.detach().long()
    return value


def _weighed(loss: Any, weight: Any) -> Any:
    """A batch's share of the sum: a mean of nothing is no number, and none of it."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(weight, torch.Tensor):
        weight = weight.float()
        return torch.where(weight > 0, loss * weight, torch.zeros_like(weight))
    return loss * weight if weight else 0.0


def _sums(given: Any) -> Optional[sources.Counted]:
    """Of `trained`, or of what `evaluate` says beside its figures."""
    if not isinstance(given, Mapping) or given.get("loss_count") is None:
        return None
    labels = given.get("labels")
    out = sources.Counted(
        float(given["loss_count"]), None if labels is None else int(labels), int(given.get("right") or 0)
    )
    if not (0 <= out.loss_count < math.inf) or not 0 <= out.right <= (out.labels or 0):
        raise ValueError("%g in the loss, and %d right of %s labels cannot be" % (out[0], out[2], out[1]))
    return out


def _number(value: Any) -> float:
    """NaN for None."""
    return math.nan if value is None else float(value)


def _metric(name: Any, value: Any) -> float:
    try:
        return _number(value)
    except (TypeError, ValueError, RuntimeError):  # the last is of a tensor of several elements
        raise ValueError("metric %r is no number: it is a %s" % (name, type(value).__name__)) from None


def _optimizer_word(optimizer: Any) -> str:
    if optimizer is None:
        return "own"
    word = optimizer.lower() if isinstance(optimizer, str) else type(optimizer).__name__.lower()
    if word in sources.OPTIMIZERS:
        return word
    if isinstance(optimizer, str):
        raise ValueError("optimizer is one of %s" % ", ".join(sources.OPTIMIZERS))
    return "own"


def _evaluation(given: Any) -> Optional[Tuple[int, float, float]]:
    if given is None:
        return None
    if isinstance(given, Mapping):
        unknown = set(given) - {"examples", "loss", "accuracy", "loss_count", "labels", "right"}
        if unknown:
            raise ValueError("evaluate has examples, loss and accuracy, and no %s" % ", ".join(sorted(unknown)))
        given = (given.get("examples", 0), given.get("loss"), given.get("accuracy"))
    examples, loss, accuracy = given
    return int(examples), _number(loss), _number(accuracy)


def _check(figures: sources.Figures, most: int) -> None:
    claims = max(figures.examples, figures.evaluate[0] if figures.evaluate else 0)
    if most and claims > most:
        raise ValueError(
            "%d examples, and the job lets a device claim %d (aggregate.max_examples): task.split() gives so many"
            % (claims, most)
        )
    if figures.examples < 1 or figures.steps < 1:
        raise ValueError("nothing was trained: call task.step(loss, n) for each batch, or give examples and steps")
    for name in ("loss", "accuracy", "normaliser"):
        value = getattr(figures, name)
        if math.isinf(value) or (math.isnan(value) and name != "accuracy"):
            raise Error("%s is not finite: it is %g" % (name, value), "numeric")
    for name, value in (("accuracy", figures.accuracy), ("evaluate's accuracy", (figures.evaluate or (0, 0, 0))[2])):
        if value < 0 or value > 1:
            raise ValueError("%s is %g, and must be from 0 to 1" % (name, value))
    if figures.evaluate and math.isinf(figures.evaluate[1]):
        raise Error("evaluate's loss is not finite", "numeric")
    if len(figures.metrics) > METRICS_MAX:
        raise ValueError("%d metrics, and at most %d are taken" % (len(figures.metrics), METRICS_MAX))
    for name, value in figures.metrics:
        if not 0 < len(name.encode()) < 64 or any(ord(c) < 32 or ord(c) == 127 for c in name):
            raise ValueError("a metric's name has 1 to 63 bytes and no control characters: %r" % name)
        if not math.isfinite(value):
            raise Error("metric %r is not finite" % name, "numeric")


def _length_of(loader: Iterable[Any]) -> int:
    """Batches of one pass; 0 if that is not known."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except TypeError:
        return 0


def _size_of(loader: Iterable[Any]) -> Optional[int]:
    """Different examples that a PyTorch loader goes through; None if it does not say."""
    for name in ("sampler", "dataset"):
        try:
            return len(getattr(loader, name))
        except (AttributeError, TypeError):
            continue
    return None


_TORCH = {
    "F32": "float32",
    "F64": "float64",
    "F16": "float16",
    "BF16": "bfloat16",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "BOOL": "bool",
}


def _torch_view(torch: Any, part: sources.Part) -> Any:
    dtype = getattr(torch, _TORCH[part.type], None)
    if dtype is None:
        raise Error("this PyTorch has no type for tensor %r, which is %s" % (part.name, part.type), "invalid")
    if part.data.nbytes == 0:
        return torch.empty(part.shape, dtype=dtype)
    data = part.data
    # A foreign file's tensors need not be aligned; those are copies then, and only frozen ones can be such.
    if safetensors.array(data, part.type, part.shape).ctypes.data % safetensors.TYPES[part.type][0]:
        data = memoryview(bytearray(data))
    return torch.frombuffer(data, dtype=dtype).reshape(part.shape)
