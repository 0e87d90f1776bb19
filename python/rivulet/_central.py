"""Evaluators: programs that measure a job's models on a set of their own, and train nothing."""
from typing import Any, Callable, Iterator, Mapping, Optional

from . import Error
from . import _sources as sources
from . import task as tasks
from ._signals import Signals


class Evaluation(tasks.Task):
    """A model in hand that is to be measured; ends with `report`."""

    def report(
        self,
        loss: Any = None,
        accuracy: Any = None,
        *,
        metrics: Optional[Mapping[str, Any]] = None,
        examples: Optional[int] = None,
    ) -> bool:
        """Ends the task with the model's figures, numbers or tensors of one element; True: they are the round's.

        Without loss and accuracy they are what `step` counted. accuracy: 0 to 1. metrics: figures of your own, at most
        64, finite. examples: how many the figures are of; without it those that `step` counted or `evaluations` was
        told. A loss that is NaN says that the model gives no numbers, which a guard acts on.

        False: another evaluator was first, the deadline is over, or the coordinator was not reached.
        """
        if loss is None and accuracy is None and self._passed:
            return self.submit(metrics=metrics)
        if loss is None and accuracy is None:
            raise ValueError("nothing was evaluated: give loss or accuracy, or call task.step(loss, n) for each batch")
        if examples is not None and examples < 1:
            raise ValueError("examples is %s, and must be at least 1" % examples)
        count = examples if examples is not None else self._passed or max(1, self._facts.examples)
        # Each may be a tensor that still lies on its device.
        return self.submit(
            metrics=metrics, evaluate={"examples": int(count), "loss": _plain(loss), "accuracy": _plain(accuracy)}
        )


def _plain(value: Any) -> Optional[float]:
    return None if value is None else float(value)


class _Loop(tasks._Loop):
    def open(self) -> sources.Source:
        if sources.has_agent():
            raise Error("an evaluator is a device of its own, and not a program that `rivulet run` starts", "state")
        self.signals.start()
        self.source = self._make(self.signals)
        return self.source


def evaluations(
    trainer: str,
    examples: int = 0,
    *,
    home: Optional[str] = None,
    config: Optional[str] = None,
    rounds: Optional[int] = None,
    wait: float = -1.0,
    stop: Optional[Callable[[], bool]] = None,
) -> Iterator[Evaluation]:
    """Models to be measured on a set that only this program has, one after the other, until SIGTERM or Ctrl-C; for
    ``for task in rivulet.evaluations(trainer): ...; task.report(loss=..., accuracy=...)``.

    They are of jobs whose document has ``"evaluate": {"by": "program", "devices": [...]}`` or ``"labels"``, and names
    this device so. Such a device gets no other tasks. trainer: that of these jobs, "builtin" too. examples: how many
    there are in the set. home, config, rounds, wait, stop: as of `tasks`.
    """

    def make(signals: Signals) -> sources.Source:
        if not trainer:
            raise ValueError("an evaluator says whose models it measures: evaluations(TRAINER)")
        return sources.LibrarySource(home, config, trainer, None, max(0, examples), ("evaluate",), signals)

    return tasks._run(_Loop(make, stop), rounds, wait, Evaluation)
