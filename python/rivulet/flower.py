"""Flower's client apps, as they are, on a Rivulet fleet. Flower (``flwr``) must be installed; its server is not.

    rivulet.flower.run(app, data="cifar10", examples=5000, node_config={"partition-id": 0, "num-partitions": 10})

What becomes what:

- The job's tensors are the ``ArrayRecord`` "arrays" of the message, under the names of the ``state_dict``; the reply's
  are submitted.
- ``context.run_config``: what is given here, then the job's ``params``. The ``ConfigRecord`` "config": the same
  ``params``, with "lr" (the rate of this round, after the job's schedule) and "server-round".
- Of the reply's metrics, "num-examples" is the examples trained on, "train_loss" (or "loss") the loss, "num-steps" the
  optimizer steps if it is there; every number is sent under its name.
- Where the job has ``"evaluate": {"by": "devices"}``, ``@app.evaluate`` rates the round's base model before the
  training: "num-examples", "eval_loss" (or "loss"), "eval_acc" (or "eval_accuracy", "accuracy").
- An exception, or a reply with an error, gives the task back with its text; the next task comes.
"""
import functools
import math
import time
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple, Union

from . import Error
from .task import Task, tasks

# Answers a message of a kind ("train", "evaluate") with arrays and metrics.
Client = Callable[[str, Task, Any], Tuple[Mapping[str, Any], Dict[str, float]]]
Scalars = Mapping[str, Union[bool, int, float, str]]
_LOSS = {"train": ("train_loss", "train-loss", "loss"), "evaluate": ("eval_loss", "eval-loss", "loss")}
_ACCURACY = {
    "train": ("train_acc", "train_accuracy", "accuracy"),
    "evaluate": ("eval_acc", "eval_accuracy", "accuracy"),
}
_EXAMPLES = ("num-examples", "num_examples")


def run(
    app: Any,
    *,
    data: str,
    examples: int,
    trainer: str = "flower",
    node_config: Optional[Scalars] = None,
    run_config: Optional[Scalars] = None,
    **more: Any,
) -> None:
    """Works on tasks with a Flower app until SIGTERM or Ctrl-C.

    app: a ``ClientApp``, a ``NumPyClient``, or a ``client_fn(context)`` that makes one. data, examples, trainer: what
    this device offers, and more (home, config, rounds, wait, stop): as `rivulet.tasks`. node_config, run_config: as
    Flower's, for the context. The context of a job lives as long as this process. A Flower function is not
    interrupted at a deadline: the job's ``round.deadline_s`` must leave it the time. It also evaluates a job's last
    model (``kinds`` without "evaluate": it does not).
    """
    client = _client_of(app)
    more.setdefault("kinds", ("train", "evaluate"))
    contexts: Dict[str, Any] = {}
    for task in tasks(trainer, data, examples, **more):
        with task:
            if task.job not in contexts:
                contexts[task.job] = _context(task, node_config or {}, run_config or {})
            _work(client, task, contexts[task.job])


def _work(client: Client, task: Task, context: Any) -> None:
    evaluation = None
    if (task.recipe.get("evaluate") or {}).get("by") == "devices" or task.kind == "evaluate":
        evaluation = _evaluation(task, client("evaluate", task, context)[1])
    if task.kind == "evaluate":
        task.submit(evaluate=evaluation)
        return
    arrays, metrics = client("train", task, context)
    steps = metrics.get("num-steps") or task.steps or 1
    task.submit(
        _by_name(task, arrays),
        examples=task._allowed(int(_first(metrics, _EXAMPLES, "num-examples of the reply to train"))),
        steps=int(steps),
        loss=next((metrics[name] for name in _LOSS["train"] if name in metrics), 0.0),
        accuracy=next((metrics[name] for name in _ACCURACY["train"] if name in metrics), None),
        metrics={name: value for name, value in metrics.items() if name not in _EXAMPLES and math.isfinite(value)},
        evaluate=evaluation,
    )


def _evaluation(task: Any, metrics: Mapping[str, float]) -> Dict[str, Any]:
    out = {
        "examples": task._allowed(int(_first(metrics, _EXAMPLES, "num-examples of the reply to evaluate"))),
        "loss": _first(metrics, _LOSS["evaluate"], "eval_loss"),
    }
    accuracy = next((metrics[name] for name in _ACCURACY["evaluate"] if name in metrics), None)
    return out if accuracy is None else {**out, "accuracy": accuracy}


def _first(metrics: Mapping[str, float], names: Tuple[str, ...], what: str) -> float:
    for name in names:
        if name in metrics:
            return metrics[name]
    raise Error("the app's metrics have no %s; they have %s" % (what, sorted(metrics)), "invalid")


def _by_name(task: Task, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """A reply made of a plain list has numbers for names: then the order of the job's tensors counts."""
    names = list(task.tensors)
    if len(arrays) == len(names) and not set(arrays) & set(names):
        return dict(zip(names, arrays.values()))
    return arrays


# --- Flower's side


def _client_of(app: Any) -> Client:
    from flwr.client import NumPyClient
    from flwr.clientapp import ClientApp

    if isinstance(app, NumPyClient):
        return functools.partial(_ask_numpy, app)
    if isinstance(app, ClientApp):
        made_of_client_fn = getattr(app, "_call", None) is not None
        return functools.partial(_ask_legacy if made_of_client_fn else _ask_app, app)
    if callable(app):
        return _client_of(ClientApp(client_fn=app))
    raise Error("a ClientApp, a NumPyClient or a client_fn is wanted, and not %r" % type(app).__name__, "invalid")


def _context(task: Task, node_config: Scalars, run_config: Scalars) -> Any:
    from flwr.app import Context, RecordDict

    return Context(
        run_id=int(task.job[:15], 16),
        node_id=1,
        node_config=dict(node_config),
        state=RecordDict(),
        run_config={**run_config, **_scalars(task.params)},
    )


def _scalars(params: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if isinstance(value, (bool, int, float, str))}


def _config(task: Task) -> Dict[str, Any]:
    return {"server-round": task.round, "lr": task.lr, **_scalars(task.params)}


def _message(kind: str, task: Task, records: Mapping[str, Any]) -> Any:
    from flwr.app import Message, Metadata, RecordDict

    metadata = Metadata(
        run_id=int(task.job[:15], 16),
        message_id=task.id,
        src_node_id=0,
        dst_node_id=1,
        reply_to_message_id="",
        group_id=str(task.round),
        created_at=time.time(),
        ttl=max(60.0, task.deadline - time.monotonic() + 60.0),
        message_type=kind,
    )
    return Message(content=RecordDict(dict(records)), metadata=metadata)


def _records(task: Task) -> Tuple[Any, Any]:
    from collections import OrderedDict

    from flwr.app import Array, ArrayRecord, ConfigRecord

    # Copies: the app may change what it got, and the task's own memory is what is submitted.
    arrays = OrderedDict((name, Array(array.copy())) for name, array in task.tensors.items())
    return ArrayRecord(arrays), ConfigRecord(_config(task))


def _ask_app(app: Any, kind: str, task: Task, context: Any) -> Tuple[Mapping[str, Any], Dict[str, float]]:
    arrays, config = _records(task)
    reply = _answer(app(_message(kind, task, {"arrays": arrays, "config": config}), context))
    found = {name: array.numpy() for record in reply.array_records.values() for name, array in record.items()}
    return found, _numbers(pair for record in reply.metric_records.values() for pair in record.items())


def _ask_legacy(app: Any, kind: str, task: Task, context: Any) -> Tuple[Mapping[str, Any], Dict[str, float]]:
    """A ClientApp that was made of a client_fn speaks in Flower's older records."""
    from flwr.app import ConfigRecord

    name = {"train": "fitins", "evaluate": "evaluateins"}[kind]
    arrays, _ = _records(task)
    records = {name + ".parameters": arrays, name + ".config": ConfigRecord(_config(task))}
    reply = _answer(app(_message(kind, task, records), context))
    found = {key: array.numpy() for record in reply.array_records.values() for key, array in record.items()}
    status = next((r for key, r in reply.config_records.items() if key.endswith(".status")), {"code": 0})
    if status["code"] != 0:
        said = (status["code"], status.get("message"))
        raise Error("the client answered with status %s: %s" % said, "trainer-failed")
    records = {**reply.config_records, **reply.metric_records}
    return found, _numbers(pair for key in records if not key.endswith(".status") for pair in records[key].items())


def _answer(reply: Any) -> Any:
    if reply.has_error():
        raise Error("the app answered with error %s: %s" % (reply.error.code, reply.error.reason), "trainer-failed")
    return reply.content


def _ask_numpy(app: Any, kind: str, task: Task, context: Any) -> Tuple[Mapping[str, Any], Dict[str, float]]:
    parameters = [array.copy() for array in task.tensors.values()]
    if kind == "train":
        arrays, examples, metrics = app.fit(parameters, _config(task))
        return dict(zip(map(str, range(len(arrays))), arrays)), _numbers([("num-examples", examples), *metrics.items()])
    loss, examples, metrics = app.evaluate(parameters, _config(task))
    return {}, _numbers([*metrics.items(), ("num-examples", examples), ("loss", loss)])


def _numbers(pairs: Iterable[Tuple[str, Any]]) -> Dict[str, float]:
    """Of metrics those that are one number."""
    out = {}
    for name, value in pairs:
        if not isinstance(value, (str, bytes, list, tuple)) and getattr(value, "ndim", 0) == 0:
            out[str(name)] = float(value)
    return out
