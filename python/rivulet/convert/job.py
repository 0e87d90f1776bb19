"""The job document of a converted network, and the page that says what is left to fill in."""

import json
from typing import Any, Dict, List, Sequence, Set

ROLES_MAX = 64


def roles(
    tensors: Dict[str, str], trains: Dict[str, bool], bases: Set[str], fixed: Sequence[str] = ()
) -> Dict[str, str]:
    """`tensors` of the job: what does not ask for a gradient is frozen, by whole layers where it can be.

    tensors: name in the job, name in the state_dict; trains: by the latter; bases: those of the job that are frozen
    where nothing is said; fixed: those that only the job has. ValueError: more patterns than a job has.
    """
    own = {name: theirs for name, theirs in tensors.items() if theirs in trains}  # not those that batch norms count
    counted = set(tensors) - set(own)
    said = {name: "train" for name in sorted(bases & set(own)) if trains[own[name]]}
    own = {name: theirs for name, theirs in own.items() if name not in bases}
    layers = {name.rpartition(".")[0] for name in own}
    still = [x for x in layers if not any(trains[t] for name, t in own.items() if name.startswith(x + "."))]
    # A batch norm counts in training, whether its weights train or not; the first pattern that fits wins.
    first = {"*.running_*": "average"} if any(n.startswith(x + ".") for n in counted for x in still) else {}
    found = dict(first, **said, **{x + ".*": "frozen" for x in sorted(still)})
    found.update(
        {n: "frozen" for n, t in own.items() if not trains[t] and not any(n.startswith(x + ".") for x in still)}
    )
    found.update({name: "frozen" for name in fixed})
    if len(found) > ROLES_MAX:
        raise ValueError("%d layers or biases do not train; a job says so of at most %d" % (len(found), ROLES_MAX))
    return found


def bases(layers: List[Dict[str, Any]]) -> Set[str]:
    """The tensors beside lora."""
    return {"%s.%s" % (layer["name"], k) for layer in layers if "lora" in layer for k in ("weight", "bias")}


# What a layer has where nothing is said.
DEFAULTS = {
    "slope": 0.01,
    "alpha": 1.0,
    "dropout": 0,
    "bias": True,
    "padding": 0,
    "affine": True,
    "approximate": "none",
    "layers": 1,
    "output": "sequence",
    "causal": False,
    "dim": 1,
    "momentum": 0.1,
}


def default(layer: Dict[str, Any], key: str, short: Dict[str, Any]) -> Any:
    """Of one key, where it depends on the layer."""
    if key == "stride":
        return 1 if layer["type"].startswith("conv") else short.get("kernel")
    if key == "groups" and layer["type"].startswith("conv"):
        return 1
    if key == "epsilon":
        return 1e-6 if layer["type"] == "rmsnorm" else 1e-5
    return DEFAULTS.get(key)


def compact(layer: Dict[str, Any]) -> Dict[str, Any]:
    """The same layer as people write it: one number for a square, no defaults."""
    short = {k: v[0] if isinstance(v, list) and k != "inputs" and v[0] == v[1] else v for k, v in layer.items()}
    return {k: v for k, v in short.items() if default(layer, k, short) != v}


def document(
    name: str,
    layers: List[Dict[str, Any]],
    shape: Sequence[int],
    init: str,
    loss: str,
    classes: int,
    data: str,
    tensors: Dict[str, str],
    text_window: bool,
) -> Dict[str, Any]:
    """A whole job: a coordinator takes it as it is, once the model `init` is there. text_window: an example is a
    stretch of a text, and what is to be told is the token after it, or after each of its own."""
    about: Dict[str, Any] = {"name": data}
    about.update({"window": shape[0]} if text_window else {"shape": list(shape)})
    if loss == "cross_entropy" and not text_window:
        about["classes"] = classes
    about["validation"] = 0.1
    job: Dict[str, Any] = {
        "name": name,
        "seed": 1,
        "model": {"layers": [compact(layer) for layer in layers], "loss": loss, "init": init},
    }
    if tensors:
        job["tensors"] = tensors
    local: Dict[str, Any] = {"epochs": 1, "batch": 32, "optimizer": {"name": "sgd", "rate": 0.01, "momentum": 0.9}}
    if any(layer["type"].startswith("dropout") or layer.get("dropout") for layer in layers):
        local["random"] = "counter"
    job.update(
        {
            "data": about,
            "local": local,
            "round": {"goal": 2, "deadline_s": 600},
            "evaluate": {"by": "devices"},
            "stop": {"rounds": 20},
        }
    )
    return job


def text(job: Dict[str, Any]) -> str:
    """JSON with one layer a line."""
    layers = ",\n".join("      " + json.dumps(layer) for layer in job["model"]["layers"])
    lines = []
    for key, value in job.items():
        if key == "model":
            rest = "".join(", " + json.dumps({k: v})[1:-1] for k, v in value.items() if k != "layers")
            lines.append('  "model": {"layers": [\n%s\n    ]%s}' % (layers, rest))
        else:
            lines.append("  %s: %s" % (json.dumps(key), json.dumps(value)))
    return "{\n%s\n}\n" % ",\n".join(lines)


README = """# {name}

Made by `python -m rivulet.convert` from {source}: {layers} layers, {parameters:,} parameters.

| file | what |
|---|---|
| `job.json` | the job document: the layers, and the values below |
| `init.safetensors` | the weights that the network had; its id stands in `job.json` as `model.init` |
| `names.json` | what each tensor of the model is called in the network's `state_dict` |

Change in `job.json` what is yours:

| key | stands there | what it should be |
|---|---|---|
| `name` | `{name}` | what you call the job |
| `data.name` | `{data}` | the `[data NAME]` of the devices |
| `data.normalise` | none | `{{"mean": [...], "std": [...]}}` as in `transforms.Normalize`; pixels are value / 255 |
| `local.optimizer` | sgd, rate 0.01, momentum 0.9 | your training's; `adam` and `adamw`, too |
| `local.batch`, `local.epochs` | 32, 1 | your training's; epochs are those of one round |
| `round.goal` | 2 | how many devices' work makes a round |
| `stop.rounds` | 20 | when it is over |

Every key: docs/jobs.md. Then:

```
rivulet train job.json --init init.safetensors --epochs 3   # here alone, with a [data {data}] in the settings
rivulet model put init.safetensors                          # prints the id that model.init has
rivulet job submit job.json
```

A model that comes back (`rivulet model get {name} -o model.safetensors`) goes into your network by its names:

```
import rivulet.convert

rivulet.convert.load(net, "model.safetensors")
```

Beside `names.json` that is all; elsewhere say `names="{folder}"`. It sets all of the network, shared weights and
running statistics too. The other way goes
`rivulet.convert.save(net, "next.safetensors", like="init.safetensors")`.{names}
"""


def readme(
    job: Dict[str, Any],
    source: str,
    parameters: int,
    renamed: Dict[str, str],
    reshaped: Dict[str, List[int]],
    folder: str,
) -> str:
    names = ""
    if renamed:
        names = "\n\nThese names differ:\n\n| in the state_dict | in the model |\n|---|---|\n"
        shapes = {ours: ", of shape %s" % shape for ours, shape in reshaped.items()}
        names += "\n".join("| `%s` | `%s`%s |" % (theirs, o, shapes.get(o, "")) for o, theirs in renamed.items())
    return README.format(
        name=job["name"],
        source=source,
        layers=len(job["model"]["layers"]),
        parameters=parameters,
        data=job["data"]["name"],
        names=names,
        folder=folder,
    )
