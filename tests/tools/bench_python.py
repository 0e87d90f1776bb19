#!/usr/bin/env python3
"""bench_python.py [ROUNDS]: what a round costs a device in Python beside the same one in C (bench_loop), at 10 million weights.

Rounds of C, of numpy in place and, where torch is there, of a module (load_state_dict, submit) take turns against one coordinator;
medians and quartiles of the seconds from asking for a task to its delta taken, and of the device's processor for it. Run it from the top of the tree after `make all tools`.
"""
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from fleet import BUILD, TOP, Fleet, ask

os.environ.setdefault("RIVULET_LIBRARY", os.path.join(BUILD, "librivulet.so.1"))
INPUTS, OUTPUTS = 1000, 10000
TURN = 5  # rounds
LOOP = """
import sys, time
import rivulet
how, rounds, took, cpu = sys.argv[2], int(sys.argv[3]), time.perf_counter(), time.process_time()
if how == "torch":
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential()
    net.fc = torch.nn.Linear(%d, %d)
for task in rivulet.tasks("loop", "none", 1, home=sys.argv[1], rounds=rounds):
    if how == "numpy":
        for t in task.tensors.values():
            t += 0.001
        task.step(0.0, 1)
        task.submit()
    else:
        net.load_state_dict(task.state_dict())
        with torch.no_grad():
            for p in net.parameters():
                p += 0.001
        task.step(0.0, 1)
        task.submit(net)
    print("%%.4f %%.4f" %% (time.perf_counter() - took, time.process_time() - cpu), flush=True)
    took, cpu = time.perf_counter(), time.process_time()
""" % (INPUTS, OUTPUTS)


def submit(fleet, rounds):
    layers = [{"type": "linear", "name": "fc", "out": OUTPUTS}]
    job = {
        "name": "bench",
        "model": {"layers": layers, "loss": "mse"},
        "trainer": "loop",
        "data": {"name": "none", "shape": [INPUTS], "min_examples": 1},
        "local": {"epochs": 1, "batch": 1, "optimizer": {"name": "sgd", "rate": 0.1}},
        "round": {"goal": 1, "deadline_s": 600},
        "stop": {"rounds": rounds},
    }
    ask(fleet, "/v1/jobs", json.dumps(job).encode())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    kinds = ["c", "numpy"]
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0:
        kinds.append("torch")
    seconds = {kind: [] for kind in kinds}
    with Fleet() as fleet:
        home = fleet.join("device")
        script = fleet.path("loop.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(LOOP)
        turns = -(-rounds // TURN)
        submit(fleet, turns * len(kinds) * (TURN + 1))
        for _ in range(turns):
            for kind in kinds:
                count = str(TURN + 1)
                loop = [os.path.join(BUILD, "tests/tools/bench_loop"), home, count]
                if kind != "c":
                    loop = [sys.executable, script, home, kind, count]
                environment = {**os.environ, "PYTHONPATH": os.path.join(TOP, "python")}
                done = subprocess.run(loop, capture_output=True, text=True, env=environment)
                if done.returncode != 0:
                    sys.exit("%s: %s" % (kind, done.stderr))
                # The first round has the start of the program in it.
                seconds[kind] += [tuple(map(float, line.split())) for line in done.stdout.split("\n")[1:-1]]
    for kind, rows in seconds.items():
        said = []
        for column, name in enumerate(("s", "CPU-s")):
            low, middle, high = statistics.quantiles([row[column] for row in rows], n=4)
            more = 100 * (middle / statistics.median(row[column] for row in seconds["c"]) - 1)
            said.append("%.3f %s (%.3f-%.3f), %+.1f %% of C" % (middle, name, low, high, more))
        print("%-6s %s, %d rounds" % (kind, "; ".join(said), len(rows)))


main()
