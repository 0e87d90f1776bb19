"""Well-known networks as a job's layers: those of `rivulet preset`, which the program itself writes."""
import json
import os
import subprocess
from typing import Any, Dict, Mapping

from . import Error

__all__ = ["preset"]


def preset(name: str, **settings: int) -> Dict[str, Any]:
    """What a job document has to say of a network that people know by name: ``{"model": {"layers", "loss", ...},
    "data": {"shape", "classes"} or {"window"}}``; settings and their defaults are those that `rivulet preset` lists.

    It is written by the program ``rivulet``, or the one that the variable RIVULET names. Error: there is none
    ("not-found"), it knows no such preset, or a setting is not the preset's or is out of range ("invalid").
    """
    return _made(name, settings)


def _made(name: Any, settings: Mapping[str, Any]) -> Dict[str, Any]:
    if not isinstance(name, str) or not name or name.startswith("-"):
        raise Error("%r is no name of a preset" % (name,), "invalid")
    program = os.environ.get("RIVULET") or "rivulet"
    command = [program, "preset", name]
    for key, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise Error("the setting %s of a preset is a whole number, not %r" % (key, value), "invalid")
        command += ["--set", "%s=%d" % (key, value)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    except OSError as e:
        raise Error("%s: %s; RIVULET=PROGRAM says where it is" % (program, e.strerror), "not-found") from None
    except ValueError as e:  # a name that no program can be given
        raise Error("preset %r: %s" % (name, e), "invalid") from None
    if done.returncode != 0:
        said = done.stderr.strip()
        raise Error(said[len("rivulet: ") :] if said.startswith("rivulet: ") else said, "invalid")
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def expand(document: Mapping[str, Any]) -> Dict[str, Any]:
    """The document with layers in the place of its model's ``preset`` and ``set``, as the commands read it."""
    model = dict(document["model"])
    if "layers" in model:
        raise Error('model: either "preset" or "layers"', "invalid")
    settings = model.pop("set", {})
    if not isinstance(settings, Mapping):
        raise Error("model.set: must be an object of numbers", "invalid")
    made = _made(model.pop("preset"), settings)
    whole = {**document, "model": {**made["model"], **model}}
    if isinstance(document.get("data"), Mapping):
        whole["data"] = {**made["data"], **document["data"]}
    return whole
