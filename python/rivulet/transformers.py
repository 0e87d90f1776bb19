"""Hugging Face's Trainer as the training loop of a task, and LoRA by PEFT: the adapter travels, the base stays.

    for task in rivulet.tasks(trainer="lora", data="notes", examples=len(notes)):
        with task:
            rivulet.transformers.check_base(task, "base/")
            rivulet.transformers.load_adapter(net, task.state_dict())
            arguments = TrainingArguments("work", **rivulet.transformers.arguments(task))
            Trainer(net, arguments, train_dataset=notes, callbacks=[rivulet.transformers.Callback(task)]).train()
            task.submit(rivulet.transformers.adapter(net))

This module imports ``transformers``; ``peft`` is wanted by `adapter` and `load_adapter` alone.
"""
import hashlib
import math
import os
import time
from typing import Any, Dict, List, Mapping, Tuple

import transformers

from . import Error
from .task import Stop, Task

_OPTIMIZERS = {"sgd": "sgd", "adam": "adamw_torch", "adamw": "adamw_torch"}
_METRICS_MAX = 64
_NAME_MAX = 63


class Callback(transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Counts for the task what the Trainer does: steps, examples, the mean training loss.

    Stops it when the task's deadline is near, when its seconds are over, or when the program is to end; what is
    submitted then is partial work, but for the seconds. What the Trainer logs goes with `Task.submit` as metrics, of
    each name the last value. One callback is for one task.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._metrics: Dict[str, float] = {}
        self._began = 0.0
        self._early = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._began = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After each optimizer step."""
        if state.global_step >= state.max_steps:
            return
        if self._task.stop_now() != Stop.GO_ON:
            control.should_training_stop = self._early = True
        elif self._task.seconds > 0:
            # As the built-in trainer: within half a step of it.
            took = time.monotonic() - self._began
            control.should_training_stop |= took + 0.5 * took / state.global_step >= self._task.seconds

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        for name, value in (logs or {}).items():
            if isinstance(value, (int, float)) and math.isfinite(value) and 0 < len(name.encode()) <= _NAME_MAX:
                self._metrics.pop(name, None)
                self._metrics[name] = float(value)
        self._loss = (logs or {}).get("train_loss", math.nan)

    def on_train_end(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """The Trainer has logged its ``train_loss``, the mean over all steps, just before."""
        examples, planned = _examples(args, state, train_dataloader)
        optimizer = str(getattr(args.optim, "value", args.optim))
        if self._early:
            examples = max(1, planned * state.global_step // max(1, state.max_steps))
        self._task.note(
            steps=state.global_step,
            examples=examples,
            loss=self._loss,
            partial=self._early,
            optimizer=next((word for word in ("sgd", "adamw") if optimizer.startswith(word)), None),
            metrics=dict(list(self._metrics.items())[-_METRICS_MAX:]),
        )


def _examples(args: Any, state: Any, loader: Any) -> Tuple[int, int]:
    """Different examples that all steps took, and that the planned ones would."""
    step = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
    try:
        size = len(loader.dataset)
    except (AttributeError, TypeError):  # a stream
        size = step * state.max_steps
    return min(size, step * state.global_step), min(size, step * state.max_steps)


def arguments(task: Task) -> Dict[str, Any]:
    """What the job says of the training, in the words of ``TrainingArguments``: rate, batch, epochs or steps,
    optimizer, seed; nothing is saved or sent elsewhere. The rate is the round's, after the job's schedule.

    Optimizer state begins anew each round. A job's momentum is not among them: give the Trainer an optimizer for it.
    """
    local = task.recipe.get("local", {})
    optimizer = local.get("optimizer", {})
    out: Dict[str, Any] = {
        "seed": task.seed & 0x7FFFFFFF,
        "lr_scheduler_type": "constant",
        "max_grad_norm": local.get("clip_norm", 0.0),
        "gradient_accumulation_steps": local.get("accumulate", 1),
        "weight_decay": optimizer.get("weight_decay", 0.0),
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    if task.epochs:
        out["num_train_epochs"] = task.epochs
    else:
        # Where time alone ends the work the callback does.
        out["max_steps"] = task.steps or 10**9
    if task.lr:
        out["learning_rate"] = task.lr
    if task.batch:
        out["per_device_train_batch_size"] = task.batch
    if optimizer.get("name") in _OPTIMIZERS:
        out["optim"] = _OPTIMIZERS[optimizer["name"]]
    for theirs, ours in (("adam_beta1", "beta1"), ("adam_beta2", "beta2"), ("adam_epsilon", "epsilon")):
        if ours in optimizer:
            out[theirs] = optimizer[ours]
    return out


# --- LoRA


def adapter(net: Any) -> Dict[str, Any]:
    """The adapter of a PEFT model by name: what a job begins with, and what a task submits."""
    import peft  # type: ignore[import-not-found,unused-ignore]

    return {name: tensor.detach().float() for name, tensor in peft.get_peft_model_state_dict(net).items()}


def load_adapter(net: Any, tensors: Mapping[str, Any]) -> None:
    """Puts an adapter, as `adapter` gives it, into a PEFT model. Error names what is missing or too much."""
    import peft

    missing, surplus = set(adapter(net)) - set(tensors), set(tensors) - set(adapter(net))
    if missing or surplus:
        raise Error(
            "the adapter is not this network's: missing %s, too much %s" % (sorted(missing)[:4], sorted(surplus)[:4]),
            "invalid",
        )
    peft.set_peft_model_state_dict(net, dict(tensors))


_hashes: Dict[Tuple[Any, ...], str] = {}


def base_sha256(path: str) -> str:
    """The SHA-256 of a base, in hex, for ``params.base_sha256`` of a job: of a file's bytes; of a folder, as
    ``save_pretrained`` writes it, of its ``*.safetensors`` one behind the other in the order of their names. Read again
    when size or time of a file changed."""
    files = _files(path)
    key = tuple((f, os.stat(f).st_size, os.stat(f).st_mtime_ns) for f in files)
    if key not in _hashes:
        digest = hashlib.sha256()
        for name in files:
            with open(name, "rb") as f:
                for chunk in iter(lambda: f.read(1 << 20), b""):
                    digest.update(chunk)
        _hashes.clear()
        _hashes[key] = digest.hexdigest()
    return _hashes[key]


def _files(path: str) -> List[str]:
    if not os.path.isdir(path):
        return [path]
    files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".safetensors")]
    if not files:
        raise Error("%s holds no .safetensors file" % path, "not-found")
    return files


def check_base(task: Task, path: str) -> None:
    """Is the base in `path` the one that the job's ``params.base_sha256`` names? If not, or if it names none, the task
    is given back with the reason ``base-mismatch``, and Error raised."""
    want = task.params.get("base_sha256")
    found = base_sha256(path)
    if want == found:
        return
    wanted = want or "one that it does not name (params.base_sha256)"
    text = "the base in %s is %s; the job wants %s" % (path, found, wanted)
    task.abort("base-mismatch", text)
    raise Error(text, "base-mismatch")
