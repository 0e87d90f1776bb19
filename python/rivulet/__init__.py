"""Rivulet: a model trained by a fleet of machines that never share their data.

``rivulet.join(url, token)`` makes a machine a device of a coordinator;
``for task in rivulet.tasks(trainer=..., data=..., examples=...)`` is a device with a training loop of its own;
``rivulet.Coordinator`` asks and orders a coordinator. Reference: docs/python.md.

Importing this costs next to nothing: what a name needs is loaded when it is first used, numpy and torch included.
"""
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._central import Evaluation, evaluations
    from ._joining import Joined, join
    from ._personal import local_model
    from .coordinator import ApiError, Coordinator, frame, scalars
    from .presets import preset
    from .task import Stop, Task, tasks

__version__ = "1.1.0"
__all__ = [
    "ApiError",
    "Coordinator",
    "Error",
    "Evaluation",
    "Joined",
    "Stop",
    "Task",
    "evaluations",
    "frame",
    "join",
    "local_model",
    "preset",
    "scalars",
    "tasks",
]

_HOMES = {
    "tasks": "task",
    "Task": "task",
    "Stop": "task",
    "Evaluation": "_central",
    "evaluations": "_central",
    "Coordinator": "coordinator",
    "ApiError": "coordinator",
    "frame": "coordinator",
    "scalars": "coordinator",
    "join": "_joining",
    "Joined": "_joining",
    "local_model": "_personal",
    "preset": "presets",
}
_MODULES = ("convert", "data", "flower", "lightning", "safetensors", "transformers")


class Error(Exception):
    """What Rivulet cannot do or refuses. ``code`` is a word to decide by: "not-found", "denied", "limit", "io", ...

    The words of a device are those of ``enum rivulet_error`` in rivulet.h; text is for people and may change.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    if name not in _HOMES:
        raise AttributeError("module 'rivulet' has no attribute %r" % name)
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
