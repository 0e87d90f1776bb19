"""Lightning's Trainer as the training loop of a task.

    for task in rivulet.tasks(trainer="mine", data="scans", examples=len(scans)):
        with task:
            net.load_state_dict(task.state_dict())
            net.task = task
            callback = rivulet.lightning.Callback(task)
            Trainer(**rivulet.lightning.arguments(task), callbacks=[callback]).fit(net, DataLoader(scans, task.batch))
            task.submit(net)

In ``configure_optimizers`` of the module, ``return self.task.optimizer(self)`` is the job's own. This module imports
``lightning``, or ``pytorch_lightning`` where that is what there is.
"""
import logging
import math
import time
from typing import Any, Dict, Tuple

try:
    from lightning.pytorch import Callback as _Base
except ImportError:
    from pytorch_lightning import Callback as _Base  # type: ignore[no-redef,import-not-found,unused-ignore]

from . import Error
from .task import Stop, Task

_METRICS_MAX, _NAME_MAX = 64, 63
_log = logging.getLogger("rivulet")


class Callback(_Base):  # type: ignore[misc,valid-type,unused-ignore]
    """Counts for the task what the Trainer does: steps, examples, the mean training loss.

    Stops it when the task's deadline is near, when its seconds are over, or when the program is to end; what is
    submitted then is partial work, but for the seconds. Numbers that the module logs (``self.log``) go with
    `Task.submit` as metrics, of each name the last value. With `keep`, the first optimizer's state goes on from task to
    task (`Task.keep`); if it cannot, the log says why, and the work counts. One callback is for one task.
    """

    def __init__(self, task: Task, keep: bool = False) -> None:
        super().__init__()
        self.task = task
        self._keep = keep
        self._began = 0.0
        self._early = False
        self._loss: Any = 0.0  # a sum over examples,
        self._weight = 0  # so many
        self._passed = self._size = 0
        self._first = 0  # steps before this fit

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._began = time.monotonic()
        self._first = trainer.global_step
        self._size = _size(trainer.train_dataloader)
        state = self.task.kept() if self._keep else None
        if state is not None and trainer.optimizers:
            try:
                trainer.optimizers[0].load_state_dict(state)
            except (ValueError, KeyError, TypeError) as e:
                _log.warning("%r: the optimizer starts at zero, as its kept state does not fit: %s", self.task, e)
            # A schedule over rounds is the job's: its rate, and not the one that was kept.
            for group in trainer.optimizers[0].param_groups if self.task.lr else ():
                group["lr"] = self.task.lr

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After each batch, of which several may make a step."""
        loss, n = outputs.get("loss") if isinstance(outputs, dict) else outputs, _count(batch)
        if loss is not None:
            # Lightning has divided it by the batches of a step.
            self._loss = self._loss + loss.detach().float() * (n * trainer.accumulate_grad_batches)
            self._weight += n
        self._passed += n
        if self.task.stop_now() != Stop.GO_ON:
            # A fit that ends here by itself did all of its work.
            self._early = not _is_done(trainer)
            trainer.should_stop = True
        elif self.task.seconds > 0 and trainer.global_step > self._first:
            # As the built-in trainer: within half a step of it.
            took = time.monotonic() - self._began
            if took + 0.5 * took / (trainer.global_step - self._first) >= self.task.seconds:
                trainer.should_stop = True

    def on_train_end(self, trainer: Any, module: Any) -> None:
        steps = trainer.global_step - self._first
        size = min(self._size or self._passed, self._passed)
        optimizer = type(trainer.optimizers[0]).__name__.lower() if trainer.optimizers else ""
        if self._early and self._size and trainer.estimated_stepping_batches < math.inf:
            planned = max(1, int(trainer.estimated_stepping_batches))
            size = max(1, min(self._size, self._passed * planned // max(1, steps)) * steps // planned)
        self.task.note(
            steps=steps,
            examples=size,
            loss=float(self._loss) / self._weight if self._weight else None,
            trained={"loss_count": self._weight} if self._weight else None,
            partial=self._early,
            optimizer=optimizer if optimizer in ("sgd", "adam", "adamw") else None,
            metrics=_metrics(trainer.callback_metrics),
        )
        if self._keep and trainer.optimizers:
            try:
                self.task.keep(trainer.optimizers[0])
            except (Error, ValueError) as e:
                _log.warning("%r: the optimizer is not kept: %s", self.task, e)


def _is_done(trainer: Any) -> bool:
    return trainer.global_step >= trainer.estimated_stepping_batches


def _count(batch: Any) -> int:
    """Examples of a batch: the length of its first tensor."""
    while isinstance(batch, (list, tuple, dict)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return len(batch) if getattr(batch, "ndim", 0) else 1


def _size(loader: Any) -> int:
    """Different examples; 0: nobody knows."""
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError):  # a stream, or several loaders
        return 0


def _metrics(logged: Any) -> Dict[str, float]:
    found: Dict[str, float] = {}
    for name, value in logged.items():
        if 0 < len(name.encode()) <= _NAME_MAX and math.isfinite(float(value)):
            found[name] = float(value)
    return dict(list(found.items())[-_METRICS_MAX:])


def arguments(task: Task) -> Dict[str, Any]:
    """What the job says of the training, in the words of ``Trainer``: epochs or steps, and accumulation; nothing is
    saved or logged elsewhere. Rate and optimizer are `Task.optimizer`'s, which shortens gradients, too."""
    local = task.recipe.get("local", {})
    limit: Tuple[str, int] = ("max_epochs", task.epochs) if task.epochs else ("max_steps", task.steps or 10**9)
    out: Dict[str, Any] = {
        "accumulate_grad_batches": local.get("accumulate", 1),
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    out[limit[0]] = limit[1]
    if limit[0] == "max_steps":
        out["max_epochs"] = -1
    return out
