"""Buffered rounds beside rounds that wait for all and over-selection: 2NN on MNIST, by the simulator's clock.

A task is TASK examples; lines take no time, nor does a draw (devices that wait are picked at random): what is compared is waiting. Each
figure is the mean of three seeds (of the job, the fleet and the division into shards at a time) and their range. Of slow devices the
accuracy on their own examples stands beside that on everybody's: a fleet's time is quickly won by not hearing them.
"""
import json
import os
import re
import subprocess

import repro

SEEDS = (1, 2, 3)
TASK, BATCH, RATE = 600, 10, 0.1
TARGET = 0.95


class Way:
    """How rounds are made: members of "round", of "aggregate" and of "local"."""

    def __init__(self, name, rounds, aggregate=None, local=None, in_time=True):
        self.name, self.rounds, self.aggregate, self.local, self.in_time = name, rounds, aggregate or {}, local or {}, in_time


def ways(goal, everybody, selected):
    """The three that are compared: `everybody` and `selected` are the goals of rounds, `goal` that of buffers."""
    return [
        Way("all", {"goal": everybody}),
        Way("over-selection 1.3", {"goal": selected, "over_select": 1.3}),
        Way("buffered", {"mode": "buffered", "goal": goal}),
    ]


class Fleet:
    """rows of (name, count, samples_per_s); split, a seed of it for each of SEEDS, and alpha: how the examples are dealt."""

    def __init__(self, name, rows, split="iid", seeds=SEEDS, alpha="", arguments=()):
        self.name, self.rows, self.split, self.seeds, self.alpha, self.arguments = name, rows, split, seeds, alpha, arguments

    def document(self, seed):
        lines = ["name,count,samples_per_s"] + [f"{name},{count},{speed}" for name, count, speed in self.rows]
        more = f"seed = {self.seeds[SEEDS.index(seed)]}\n{self.alpha}"
        return {
            "table": "\n".join(lines) + "\n",
            "settings": repro.settings(self.split, more),
            "split": f"{self.split}\n{more}",
            "arguments": [*self.arguments, "--seed", str(seed)],
        }


def documents(fleet, way, seed, stop, examples=TASK, every=1):
    local = way.local or {"steps": examples // BATCH}
    local = {**local, "batch": BATCH, "optimizer": {"name": "sgd", "rate": RATE}}
    name = re.sub("[ :=]", "", f"asynchronous-{fleet.name}-{way.name}").replace(",", "-")
    document = repro.job(name[:60], repro.NN, local, 1, stop, evaluate={"every": every}, aggregate=way.aggregate)
    return {**document, "seed": seed, "round": way.rounds}, fleet.document(seed)


def runs(fleet, way, stop_of, **more):
    """One of each seed; None if one is not there."""
    name = f"{fleet.name}/{way.name}"
    found = [repro.get(documents(fleet, way, seed, stop_of(way), **more), name, way.in_time) for seed in SEEDS]
    return found if all(found) else None


def mean(values):
    return sum(values) / len(values)


def spread(values, form="{:.1f}"):
    """Mean and range in words."""
    if not values or None in values:
        return "not reached" if values else "not run"
    return f"{form.format(mean(values))} ({form.format(min(values))} to {form.format(max(values))})"


# --- how long until the target

LOGNORMAL = ("--speeds", "lognormal:1")
FLEETS = [
    (Fleet("10 devices, lognormal 1", [("device", 10, TASK)], arguments=LOGNORMAL), ways(5, 10, 8), (2, 1)),
    (
        Fleet("100 devices, lognormal 1", [("device", 100, TASK)], arguments=LOGNORMAL),
        ways(10, 10, 10) + [Way("buffered, concurrency 13", {"mode": "buffered", "goal": 10, "concurrency": 13})],
        (2, 1),
    ),
    (Fleet("10 of 100, 200, 400 s", [("a", 4, TASK / 100), ("b", 3, TASK / 200), ("c", 3, TASK / 400)]), ways(5, 10, 8), (1.7, 0)),
]


def times():
    """The table's rows, and what missed its goal: times as fast as waiting for all, and as over-selection."""
    rows, missed = [], []
    for fleet, compared, goals in FLEETS:
        found = [runs(fleet, way, lambda _: {"rounds": 400, "target": {"accuracy": TARGET}}) for way in compared]
        seconds = [[r.summary.get("time_to_target") for r in f] if f else [] for f in found]
        for way, f, s in zip(compared, found, seconds):
            gains = [[a / b for a, b in zip(base, s)] if base and s and None not in base + s else [] for base in seconds[:2]]
            reports = [r.summary["reports"] for r in f] if f else []
            rows.append([fleet.name, way.name, spread(s), spread(reports, "{:.0f}")] + [f"{mean(g):.2f}" if g else "" for g in gains])
            if way.name.startswith("buffered") and any(g and mean(g) < goal for g, goal in zip(gains, goals)):
                missed.append(f"{fleet.name}/{way.name}")
    return rows, missed


# --- what it costs where nobody is late

REPORTS = 600


def equal():
    fleet = Fleet("10 equal devices", [("device", 10, TASK)])
    compared = [ways(5, 10, 8)[0], ways(5, 10, 8)[2]]
    found = [runs(fleet, way, lambda w: {"rounds": REPORTS // w.rounds["goal"]}, every=10) for way in compared]
    accuracy = [[100 * r.last() for r in f] if f else [] for f in found]
    late = [mean([r.summary["staleness"]["mean"] for r in f]) if f else 0 for f in found]
    rows = [[w.name, spread(a, "{:.2f}"), f"{s:.2f}"] for w, a, s in zip(compared, accuracy, late)]
    bad = accuracy[0] and accuracy[1] and mean(accuracy[1]) < mean(accuracy[0]) - 0.3
    return rows, ["10 equal devices"] if bad else []


# --- who is heard where a tenth is ten times slower

SHORT = TASK // 2
ROUNDS = 50
SLOW_ROWS = [("slow", 10, SHORT / 10), ("device", 90, SHORT)]
SLOW_FLEETS = [
    (Fleet("Dirichlet 0.5", SLOW_ROWS, "dirichlet", alpha="alpha = 0.5\n"), 10, 10),
    (Fleet("two digits each", SLOW_ROWS, "label"), 10, 10),
    # These seeds give nearly all of one digit to the last of ten devices: what it is not asked, nobody knows.
    (Fleet("a digit of its own", [("device", 9, SHORT), ("slow", 1, SHORT / 10)], "label", seeds=(1, 2, 29)), 5, 8),
]


def slow_ways(goal, selected):
    over = {"goal": selected, "over_select": 1.3}
    buffered = {"mode": "buffered", "goal": goal}
    few = {**buffered, "concurrency": goal}
    sized = {"target_s": 1, "min_steps": 3, "max_steps": 300}
    unbounded = {"normalise": True, "normalise_max": 0}
    gentle = {"staleness": {"weight": "constant"}, "server_optimizer": {"name": "sgd", "rate": 0.5}}
    return [
        Way("all", {"goal": 10}),
        Way("over-selection 1.3", over),
        Way("over-selection 1.3, late: next", {**over, "late": "next"}),
        Way("buffered", buffered),
        Way("buffered, inverse", buffered, {"staleness": {"weight": "inverse"}}, in_time=False),
        Way("buffered, constant", buffered, {"staleness": {"weight": "constant"}}, in_time=False),
        Way("buffered, constant, rate 0.5", buffered, gentle, in_time=False),
        Way("buffered, constant, concurrency = goal", few, {"staleness": {"weight": "constant"}}),
        Way("buffered, divide: weights", buffered, {"staleness": {"divide": "weights"}}, in_time=False),
        Way("buffered, local.target_s", buffered, local=sized),
        Way("buffered, local.target_s, normalise", buffered, {"normalise": True}, local=sized, in_time=False),
        Way("buffered, local.target_s, normalise_max: 0", buffered, unbounded, local=sized, in_time=False),
    ]


def measured(documents_of_run, shard):
    """(examples, right ones) of the run's last model on this shard of the training data, or on all of it."""
    path = repro.path_of(*documents_of_run)
    words = documents_of_run[1]["settings"].replace("[data test]", f"shard = {shard}\n[data test]")
    with open(path + ".eval.conf", "w", encoding="utf-8") as f:
        f.write(words)
    command = [f"{repro.BUILD}/rivulet", "eval", path + ".job.json", "--init", path + ".safetensors", "--data", "mnist"]
    said = subprocess.run(command + ["--config", path + ".eval.conf", "--json"], stdout=subprocess.PIPE, check=True).stdout
    figures = json.loads(said)
    return figures["examples"], figures["examples"] * figures["accuracy"]


def heard(fleet, documents_of_run):
    """Accuracy in % on the slow devices' examples, and on everybody's. Kept beside the run."""
    kept = repro.path_of(*documents_of_run) + ".heard.json"
    if not os.path.exists(kept):
        first, shards = 1, []
        for name, count, _ in fleet.rows:
            shards += range(first, first + count) if name == "slow" else ()
            first += count
        parts = [measured(documents_of_run, f"{shard}/{first - 1}") for shard in shards]
        everything = measured(documents_of_run, "1/1")
        both = [100 * sum(right for _, right in p) / sum(n for n, _ in p) for p in (parts, [everything])]
        with open(kept, "w", encoding="utf-8") as f:
            json.dump(both, f)
    with open(kept, encoding="utf-8") as f:
        return json.load(f)


def slow_row(fleet, way):
    def stop_of(w):
        return {"rounds": ROUNDS * 10 // w.rounds["goal"]}

    found = runs(fleet, way, stop_of, examples=SHORT, every=10)
    if not found:
        return [fleet.name, way.name, "not run"] + [""] * 5 if way.in_time else None
    figures = [heard(fleet, documents(fleet, way, seed, stop_of(way), examples=SHORT, every=10)) for seed in SEEDS]
    shares = [r.summary["participation"]["by_speed"] for r in found]
    return [
        fleet.name,
        way.name,
        spread([r.summary["time"] for r in found], "{:.0f}"),
        spread([100 * r.last() for r in found]),
        spread([slow for slow, _ in figures]),
        spread([slow - everybody for slow, everybody in figures], "{:+.1f}"),
        f"{mean([s[0] / mean(s) for s in shares]):.2f}",
    ]


def main():
    rows, missed = times()
    head = ["fleet", "rounds", f"seconds to {TARGET:.0%}", "reports", "times as fast as all", "as over-selection"]
    words = [repro.table(head, rows)]
    rows, more = equal()
    missed += more
    words.append(repro.table([f"10 equal devices, {REPORTS} reports", "accuracy %", "staleness"], rows))
    head = ["digits", "rounds", f"seconds for {ROUNDS * 10} reports", "test %", "slow %", "slow less all", "slow share"]
    slow = [slow_row(f, way) for f, goal, selected in SLOW_FLEETS for way in slow_ways(goal, selected)]
    words.append(repro.table(head, [row for row in slow if row]))
    repro.result("repro-asynchronous", "\n\n".join(words), {})
    if missed:
        print("missed: " + "; ".join(missed))
    return 1 if missed else 0
