#!/usr/bin/env python3
"""same_models.py NAME=COMMAND...: are builds of rivulet the same to the bit? A COMMAND may run it elsewhere
("qemu-aarch64 -L ROOT PROGRAM"). Each simulates four rounds of each job on drawn digits; models and figures of all must be those of the first. Prints the
models; closes with "N passed, N failed"."""
import json
import os
import shlex
import subprocess
import sys
import tempfile

DEVICES = 7
CONFIG = """[data digits]
format = glyphs
seed = 1
count = 100
skew = 0.2
[data test]
format = glyphs
seed = 1
count = 200
"""
PERCEPTRON = [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 50}, {"type": "relu"},
              {"type": "linear", "name": "fc2", "out": 10}]
CONVOLUTIONS = [{"type": "conv2d", "name": "conv1", "out": 8, "kernel": 5}, {"type": "relu"}, {"type": "maxpool2d", "kernel": 2},
                {"type": "dropout", "rate": 0.2}, {"type": "conv2d", "name": "conv2", "out": 8, "kernel": 3, "padding": 1},
                {"type": "relu"}, {"type": "avgpool2d", "kernel": 2}, {"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}]


def local(**members):
    return {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}, **members}


def rule(name, hostile, **members):
    return {"aggregate": {"rule": {"name": name, "hostile": hostile, **members}}}


def server(name, rate, **members):
    return {"server_optimizer": {"name": name, "rate": rate, **members}}


def upload(codec, **members):
    return {"upload": {"codec": codec, **members}}


JOBS = {
    "mean": {},
    "convolutions": {"model": {"layers": CONVOLUTIONS, "loss": "cross_entropy"}},
    "nesterov, clipped": {
        "local": local(optimizer={"name": "sgd", "rate": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 1e-4}, clip_norm=1),
        "aggregate": server("sgd", 0.7, momentum=0.9, nesterov=True)},
    "adam and yogi": {"local": local(optimizer={"name": "adam", "rate": 0.002}), "aggregate": server("yogi", 0.02)},
    "adamw and adam, int8": {
        "local": local(optimizer={"name": "adamw", "rate": 0.002, "weight_decay": 0.01}), "aggregate": server("adam", 0.02),
        **upload("int8")},
    "prox, cosine and adagrad, f16": {
        "local": local(prox=0.1, schedule={"type": "cosine", "period": 4, "floor": 0.1, "warmup": 1}),
        "aggregate": {**server("adagrad", 0.02), "norm_bound": "median"}, **upload("f16")},
    "sparse with feedback": upload("sparse", share=0.05),
    "int4": upload("int4"),
    "sign with feedback": upload("sign", feedback=True),
    "normalised": {"aggregate": {"normalise": True}},
    "control variates": {"local": local(control_variates={"devices": DEVICES}), **upload("int8")},
    "median of buckets, bf16": {**rule("median", 1, bucket=2), **upload("bf16")},
    "trimmed mean of nearest": rule("trimmed_mean", 1, nearest=True),
    "krum": rule("krum", 1, picks=3),
    "bulyan": rule("bulyan", 1),
    "geometric median": rule("geometric_median", 2),
    "geometric median, weighted": rule("geometric_median", 0),
    "centered clipping": rule("centered_clipping", 1, radius=1),
    "download": {"download": {"codec": "int4", "feedback": True}, **rule("median", 0)},
}


def document(members):
    return {"name": "same", "seed": 7, "model": {"layers": PERCEPTRON, "loss": "cross_entropy"},
            "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10}, "local": local(),
            "round": {"goal": DEVICES, "deadline_s": 3600}, "evaluate": {"by": "coordinator", "data": "digits"},
            "stop": {"rounds": 4}, **members}


def rounds(command, job, config):
    """What each round gave; or what went wrong."""
    options = ["--devices", str(DEVICES), "--config", config, "--test", "test", "--threads", "1"]
    done = subprocess.run(shlex.split(command) + ["simulate", job] + options, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        return "status %d: %s" % (done.returncode, done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(name, builds, directory):
    job, config = os.path.join(directory, "job.json"), os.path.join(directory, "fleet.conf")
    for path, content in (job, json.dumps(document(JOBS[name]))), (config, CONFIG):
        with open(path, "w") as f:
            f.write(content)
    results = {build: rounds(command, job, config) for build, command in builds.items()}
    first = next(iter(results.values()))
    if isinstance(first, str) or len({r["model"] for r in first if "model" in r}) != 4:
        print("FAIL %s: no four models: %s" % (name, first))
        return False
    other = [build for build, result in results.items() if result != first]
    for build in other:
        print("FAIL %s: %s gives %s, not %s" % (name, build, results[build], first))
    if not other:
        print("PASS %s: %s" % (name, first[-1]["summary"]["model"]), flush=True)
    return not other


def main():
    builds = dict(a.split("=", 1) for a in sys.argv[1:])
    if len(builds) < 2:
        sys.exit("usage: same_models.py NAME=COMMAND NAME=COMMAND...")
    with tempfile.TemporaryDirectory() as directory:
        passed = sum(compare(name, builds, directory) for name in JOBS)
    print("%s, %d jobs" % (", ".join(builds), len(JOBS)))
    print("%d passed, %d failed" % (passed, len(JOBS) - passed))
    sys.exit(passed != len(JOBS))


main()
