"""The command: `python -m rivulet.convert FILE.py:NAME --input SHAPE --out DIR`.

Exit codes: 0 written and equal, 1 not, 2 usage.
"""

import argparse
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import traceback
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import safetensors
from . import job, names

EXAMPLES = 8
TOLERANCE = 1e-4  # of the largest output
HERE = os.path.dirname(os.path.abspath(__file__))


class Stop(Exception):
    """Ends the command with exit code 1; the text has been or is to be printed."""


def shape_of(text: str) -> List[int]:
    try:
        shape = [int(n) for n in text.split(",")]
    except ValueError:
        shape = []
    if len(shape) > 3 or not all(1 <= n <= 65536 for n in shape or [0]):
        raise argparse.ArgumentTypeError("%r: FEATURES, STEPS,WIDTH or CHANNELS,HEIGHT,WIDTH, such as 1,28,28" % text)
    return shape


def arguments(given: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m rivulet.convert",
        description=(
            "Writes a PyTorch network as a job of the built-in trainer, with its weights, and compares both. What "
            "has no counterpart there is named by file and line."
        ),
    )
    parser.add_argument(
        "network", metavar="FILE.py:NAME", help="a function or class that makes the network, or the network itself"
    )
    parser.add_argument(
        "--input", type=shape_of, required=True, metavar="SHAPE", help="of one example: 784, or 3,32,32"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where job.json, init.safetensors and README.md go")
    parser.add_argument("--loss", choices=("cross_entropy", "mse", "bce"), default="cross_entropy")
    parser.add_argument("--classes", type=int, metavar="N", help="of cross_entropy (default: the network's outputs)")
    parser.add_argument("--name", help="of the job (default: NAME)")
    parser.add_argument(
        "--data", default="my-data", metavar="NAME", help="the data set on the devices (default: my-data)"
    )
    parser.add_argument(
        "--rivulet", default=os.environ.get("RIVULET", "rivulet"), metavar="PROGRAM", help="to compare with"
    )
    parser.add_argument("--no-compare", action="store_true", help="where that program is not at hand")
    parser.add_argument("--force", action="store_true", help="write over a job.json that is there")
    args = parser.parse_args(given)
    args.path, _, args.attribute = args.network.rpartition(":")
    if not args.path or not args.attribute:
        parser.error("%r is not FILE.py:NAME" % args.network)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,63}", args.name or "x") or not re.fullmatch(
        r"[A-Za-z0-9_.-]{1,63}", args.data
    ):
        parser.error("names are 1 to 63 of A-Z a-z 0-9 _ . -")
    args.name = args.name or re.sub(r"[^A-Za-z0-9_.-]", "_", args.attribute)[:63]
    return args


def theirs(error: BaseException) -> None:
    """Prints an exception as if their file alone had run."""
    tb = error.__traceback__
    while tb is not None and (
        tb.tb_frame.f_code.co_filename.startswith("<frozen")
        or os.path.dirname(os.path.abspath(tb.tb_frame.f_code.co_filename)) == HERE
    ):
        tb = tb.tb_next
    traceback.print_exception(type(error), error, tb)


def load(path: str, attribute: str) -> Any:
    """Runs their file and what makes the network. Stop: it failed, and was printed."""
    if not os.path.isfile(path):
        raise Stop("%s: no such file" % path)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Stop("%s: no Python file" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    made = getattr(module, attribute, None)
    if made is None:
        raise Stop("%s has no %s" % (path, attribute))
    return made


def network_of(args: argparse.Namespace) -> Tuple[Any, Any, Any]:
    """Their network, examples and what it makes of them. All of their code that fails, fails here."""
    import torch

    from . import tracer

    try:
        with tracer.places():
            made = load(args.path, args.attribute)
            net = made if isinstance(made, torch.nn.Module) or not callable(made) else made()
        if not isinstance(net, torch.nn.Module):
            raise Stop("%s is no torch.nn.Module, and makes none" % args.network)
        net = names.base_of(net)
        if isinstance(net, torch.jit.ScriptModule):
            raise Stop("%s is a scripted module: give the module that it was made from" % args.network)
        refuse_values(args, net)
        net = net.cpu().eval()
    except Stop:
        raise
    except SystemExit:
        raise Stop(
            "%s ends the program where it is loaded: put what runs there behind if __name__ == '__main__'" % args.path
        ) from None
    except Exception as e:
        theirs(e)
        raise Stop("") from None
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return (net,) + examples(args, net)


def refuse_values(args: argparse.Namespace, net: Any) -> None:
    """Stop: its weights are no numbers that a job can begin with."""
    import torch

    for name, value in net.state_dict(keep_vars=True).items():
        # What is lazy is made by the first examples.
        if not isinstance(value, torch.Tensor) or torch.nn.parameter.is_lazy(value):
            continue
        if value.is_meta:
            raise Stop('%s: %s is on the device "meta", without values' % (args.attribute, name))
        # A buffer may be a mask, of which -inf hides.
        weighs = isinstance(value, torch.nn.Parameter) or counts(name)
        if weighs and value.is_floating_point() and not bool(torch.isfinite(value.detach()).all()):
            raise Stop("%s: %s holds a value that is not finite" % (args.attribute, name))


def refuse_run(args: argparse.Namespace, net: Any) -> None:
    """Why a network fails, where that is known. Stop says it."""
    import torch

    from . import tracer

    try:
        tracer.defaults_of(net)
    except ValueError as e:
        raise Stop("%s: %s" % (args.attribute, e)) from None
    others = [(n, p.dtype) for n, p in net.named_parameters() if p.is_floating_point() and p.dtype != torch.float32]
    if others:
        raise Stop("%s: %s is %s; weights are float32, call .float()" % (args.attribute, *others[0]))


def vocabulary_of(net: Any) -> int:
    """Whole numbers below that go into any of its embeddings; 0: it has none."""
    import torch

    return min([m.num_embeddings for m in net.modules() if isinstance(m, torch.nn.Embedding)], default=0)


def examples(args: argparse.Namespace, net: Any) -> Tuple[Any, Any]:
    """Random ones, and what the network makes of them. Tokens where it has an embedding, and takes them."""
    import torch

    from . import tracer

    vocabulary = vocabulary_of(net)
    for count in (tracer.BATCH, EXAMPLES):
        floats = torch.randn(count, *args.input)
        kinds = [torch.randint(vocabulary, (count, *args.input)), floats] if vocabulary else [floats]
        made = [p for p in net.parameters() if not torch.nn.parameter.is_lazy(p)]
        tables = [p.shape[0] for p in made if p.dim() == 2]
        if not vocabulary and tables and len(args.input) == 1:  # F.embedding reads a table of its own
            kinds.append(torch.randint(min(tables), (count, *args.input)))
        failed: Optional[Exception] = None
        for x in kinds:
            try:
                with torch.no_grad():
                    outputs = net(x.clone())  # what works in place must not touch the examples
                if isinstance(outputs, tuple) and all(o is None for o in outputs[1:]):
                    outputs = outputs[0]  # (logits, loss) without a loss
                break
            except Exception as e:
                failed = failed or e
        else:
            assert failed is not None
            refuse_run(args, net)
            theirs(failed)
            raise Stop("%s fails on an input of shape %s" % (args.attribute, list(x.shape))) from None
    args.tokens = not x.is_floating_point()
    return x, outputs


def refuse(problems: Sequence[Any]) -> None:
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise Stop(
            "%d thing%s that the built-in trainer does not do; a trainer of your own can: docs/devices.md"
            % (len(problems), "s" if len(problems) > 1 else "")
        )


def check_outputs(args: argparse.Namespace, outputs: Any, converted: Any) -> None:
    """Do the outputs fit the loss? Sets the number of classes, and whether the network tells what a text says next."""
    args.text_window = False
    if args.loss == "bce" and converted.layers[-1]["type"] == "sigmoid":
        raise Stop("the network ends with a sigmoid: leave it off, the loss bce has the sigmoid inside")
    if args.loss != "cross_entropy":
        args.classes = 0
        return
    if outputs.numel() == len(outputs):
        raise Stop(
            "the network has one output: say --loss mse for a number, --loss bce for yes or no; cross_entropy wants "
            "one output for each class"
        )
    if outputs.dim() not in (2, 3) or outputs.shape[-1] < 2:
        raise Stop(
            "outputs of shape %s: cross_entropy wants one number for each of 2 or more classes, once or for each step; "
            "--loss mse takes any" % list(outputs.shape[1:])
        )
    if args.classes not in (None, outputs.shape[-1]):
        raise Stop("--classes %d, and the network has %d outputs" % (args.classes, outputs.shape[-1]))
    args.classes = outputs.shape[-1]
    words = [layer["vocabulary"] for layer in converted.layers if layer["type"] == "embedding"]
    args.text_window = args.tokens and (outputs.dim() == 3 or args.classes in words)


def counts(name: str) -> bool:
    """Is it what a batch norm counts?"""
    return name.rpartition(".")[2] in ("running_mean", "running_var")


def write(args: argparse.Namespace, net: Any, converted: Any) -> Dict[str, Any]:
    """The files in DIR. ValueError: the job would say too much; OSError: they cannot be written."""
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "job.json")
    if os.path.exists(path) and not args.force:
        raise Stop("%s is there already; --force writes over it" % path)
    state = net.state_dict()
    tensors = {ours: state[name] for ours, name in converted.tensors.items()}
    tensors.update({ours: tensors[ours].reshape(shape) for ours, shape in converted.reshaped.items()})
    tensors.update(converted.fixed)
    trains = {name: p.requires_grad for name, p in net.named_parameters(remove_duplicate=False)}
    trains.update({name: False for ours, name in converted.tensors.items() if name not in trains and not counts(ours)})
    roles = job.roles(converted.tensors, trains, job.bases(converted.layers), sorted(converted.fixed))
    init = os.path.join(args.out, "init.safetensors")
    table = names.Table(converted.tensors, converted.same, sorted(converted.fixed), converted.stays)
    safetensors.save(init, tensors, {names.KEY: table.text()})
    with open(os.path.join(args.out, names.FILE), "w", encoding="utf-8") as f:
        f.write(table.text())
    with open(init, "rb") as f:
        model = hashlib.sha256(f.read()).hexdigest()
    document = job.document(
        args.name,
        converted.layers,
        args.input,
        model,
        args.loss,
        args.classes,
        args.data,
        roles,
        args.text_window,
    )
    renamed = {ours: name for ours, name in converted.tensors.items() if ours != name}
    parameters = sum(t.numel() for t in tensors.values())
    with open(path, "w") as f:
        f.write(job.text(document))
    with open(os.path.join(args.out, "README.md"), "w") as f:
        f.write(job.readme(document, args.network, parameters, renamed, converted.reshaped, args.out))
    count = len(converted.layers)
    print("%s: %d layer%s, %s parameters" % (args.out, count, "" if count == 1 else "s", "{:,}".format(parameters)))
    for name, first in converted.same.items():
        print("%s is %s, and stands in the job once" % (name, first))
    for name in converted.stays:
        if not name.endswith("num_batches_tracked"):
            print("%s stays with the network" % name)
    for ours in converted.fixed:
        print("%s stands in the job alone, and stays as it is" % ours)
    for ours, name in renamed.items():
        shape = ", of shape %s" % converted.reshaped[ours] if ours in converted.reshaped else ""
        print("%s is called %s in the job%s" % (name, ours, shape))
    return document


def compare(args: argparse.Namespace, x: Any, outputs: Any) -> None:
    """Runs the same examples through `rivulet eval`."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        rows, out = os.path.join(scratch, "rows.safetensors"), os.path.join(scratch, "out.safetensors")
        safetensors.save(rows, {"rows": x.float()})
        command = [
            args.rivulet,
            "eval",
            os.path.join(args.out, "job.json"),
            "--init",
            os.path.join(args.out, "init.safetensors"),
            "--input",
            rows,
            "--output",
            out,
        ]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        except OSError as e:
            raise Stop(
                "not compared: %s: %s; --rivulet PROGRAM says where it is, --no-compare leaves it out"
                % (args.rivulet, e.strerror)
            )
        if done.returncode:
            raise Stop("not compared: %s" % done.stdout.strip())
        ours = torch.from_numpy(safetensors.load(out)["output"].copy()).reshape(outputs.shape)
    error = float((ours - outputs).abs().max() / outputs.abs().max().clamp(min=1e-30))
    if not error <= TOLERANCE:
        raise Stop(
            "the outputs differ by %.2g of the largest one, and at most %g is right: please report this network"
            % (error, TOLERANCE)
        )
    print("equal to %.1e on %d random inputs" % (error, len(x)))


def convert(args: argparse.Namespace) -> None:
    if not all(importlib.util.find_spec(name) for name in ("torch", "numpy")):
        raise Stop("this needs PyTorch and numpy: pip install torch numpy")
    from . import trace

    net, x, outputs = network_of(args)
    converted = trace.convert(net, args.input, args.tokens)
    refuse(converted.problems)
    check_outputs(args, outputs, converted)
    try:
        write(args, net, converted)
    except ValueError as e:
        raise Stop(str(e)) from None
    except OSError as e:
        raise Stop("%s: %s" % (e.filename or args.out, e.strerror)) from None
    if not args.no_compare:
        compare(args, x, outputs)
    print("next: %s" % os.path.join(args.out, "README.md"))


def main(given: Optional[Sequence[str]] = None) -> int:
    args = arguments(given)
    try:
        convert(args)
    except Stop as stop:
        if str(stop):
            print("rivulet.convert: %s" % stop, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
