#!/usr/bin/env python3
"""bench_changes.py SOCKET RIVULETD_PORT LOAD_FOLDER TOKEN MODEL PARKED READERS DEVICES ELEMENTS ROUNDS PID CREATE_TOKEN...

What those who wait for a change of a job (GET /v1/changes) cost. First PARKED devices whose request for a task is parked, and 4 changes
a second: how often a device's ask is run for one. Then rounds of DEVICES devices, without and with READERS who wait, and who ask for
GET /v1/jobs when told: seven pairs of ROUNDS rounds each, in turns, and how soon a reader knows of a new round. CREATE_TOKEN: a command
that prints an access token.
"""
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from admin import Admin

PAIRS = 7
OF_ONE = 8
FLOOR_MS = 400  # between two questions of one reader
CHANGES, EVERY_MS = 80, 250


class Load:
    """A load program that is told by lines what to do."""

    def __init__(self, words):
        self.program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hear()

    def hear(self):
        line = self.program.stdout.readline().split()
        if not line:
            sys.exit("bench_changes: the load failed")
        return line

    def tell(self, line):
        self.program.stdin.write(line + "\n")
        self.program.stdin.flush()
        return self.hear()

    def end(self):
        self.program.stdin.close()
        self.program.wait()


def document(name, model, goal):
    return json.dumps({"name": name, "model": {"init": model}, "trainer": "noop", "data": {"name": "none", "shape": [1]},
                       "round": {"goal": goal, "quorum": goal, "deadline_s": 3600}})


def processor(pid):
    """Seconds of a process's threads, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


def park(admin, words, parked, elements, pid):
    start = time.monotonic()
    load = Load(words + [str(parked), str(CHANGES), str(elements)])
    while admin.metrics()["rivulet_task_asks_total"] < parked + CHANGES:
        time.sleep(0.1)
    print(f"{parked} devices have joined and wait after {time.monotonic() - start:.0f} s", flush=True)
    before, spent, began = admin.metrics(), processor(pid), time.monotonic()
    answered = load.tell(f"change {CHANGES} {EVERY_MS}")
    after = admin.metrics()
    changes, asks = (int(after[name] - before[name]) for name in ("rivulet_job_changes_total", "rivulet_task_asks_total"))
    took = time.monotonic() - began
    print(f"{changes} changes in {took:.1f} s: a device's ask was run {asks} times (limit 0), {answered[3]} parked requests were "
          f"answered; rivuletd used {(processor(pid) - spent) / took * 100:.1f} % of a processor")
    load.end()
    return asks == 0 and changes >= CHANGES and answered[3] == "0"


class Rounds(threading.Thread):
    """Notes when a job's rounds end, by the wait that is measured here, and what the coordinator's process had used by then."""

    def __init__(self, path, job, pid, load):
        super().__init__(daemon=True)
        self.admin, self.job, self.pid, self.load = Admin(path), job, pid, load
        self.ends, self.more = [], threading.Condition()

    def run(self):
        change, last = 0, 0
        while True:
            change = self.admin.get(f"/v1/changes?after={change}&wait=50")["change"]
            number = self.admin.get(f"/v1/jobs/{self.job}")["round"]
            with self.more:
                if number != last:
                    self.ends.append((number, processor(self.pid)))
                    self.more.notify()
            last = number
            time.sleep(0.02)

    def await_end(self, count):
        with self.more:
            while not self.more.wait_for(lambda: len(self.ends) >= count, 5):
                if self.load.poll() is not None:
                    sys.exit("bench_changes: the load has ended")
            return self.ends[count - 1]


def segment(rounds, seconds, first, count):
    """CPU seconds of each round and the median wall time of `count` rounds behind the first, in which the readers come or go."""
    begin, end = rounds.await_end(first), rounds.await_end(first + count)
    walls = [seconds(number) for number in range(begin[0], end[0])]
    return (end[1] - begin[1]) / (end[0] - begin[0]), statistics.median(walls)


def compare(name, segments, limit):
    """Even segments are without readers, odd ones with them."""
    without, with_ = segments[::2], segments[1::2]
    ratios = [b / statistics.mean((a, c)) for a, b, c in zip(without, with_, without[1:])]
    spread = (max(without) - min(without)) / statistics.median(without)
    more = statistics.median(ratios) - 1
    print(f"{name}: {statistics.median(without):.4f} without, {statistics.median(with_):.4f} with: {more * 100:+.1f} % "
          f"(median of {len(ratios)} pairs; without against without {spread * 100:.1f} %, limit {max(limit, spread) * 100:.1f} %)")
    return more <= max(limit, spread)


def read(admin, path, words, model, tokens, readers, devices, elements, rounds_each, pid):
    job = json.loads(admin.call("POST", "/v1/jobs", document("bench", model, devices)))["job"]
    crowd = Load(words[:1] + ["readers"] + words[2:4] + [tokens, str(readers), str(OF_ONE), str(FLOOR_MS)])
    segments, heard = [], []
    count = 2 * PAIRS + 1
    program = subprocess.Popen([os.path.join(os.path.dirname(words[0]), "bench_round"), *words[2:5], str(devices), str(elements),
                                str(count * (rounds_each + 2) + 2), str(pid)], stdout=subprocess.DEVNULL)
    watch = Rounds(path, job, pid, program)
    watch.start()

    def seconds(number):
        return admin.get(f"/v1/jobs/{job}/rounds/{number}")["seconds"]

    at = 3  # devices connect in the first round
    for i in range(count):
        watch.await_end(at)
        crowd.tell("on" if i % 2 else "off")
        at = len(watch.ends) + 1
        segments.append(segment(watch, seconds, at, rounds_each))
        at += rounds_each
        if i % 2:
            heard.append(crowd.tell("tell"))
    program.terminate()
    program.wait()
    crowd.end()
    for line in heard:
        print("readers: " + " ".join(line))
    print(f"{PAIRS} pairs of {rounds_each} rounds of {devices} devices x {elements} parameters, {readers} readers:")
    cpu = compare("CPU seconds a round", [s[0] for s in segments], 0.02)
    wall = compare("median seconds of a round", [s[1] for s in segments], 0.02)
    most = max(float(line[-1]) for line in heard)
    print(f"a reader knew of a new round after {most:.3f} s at most (limit 0.5 s)")
    return cpu and wall and most <= 0.5


def main():
    path, port, folder, token, model, tokens = sys.argv[1:7]
    parked, readers, devices, elements, rounds_each, pid = (int(a) for a in sys.argv[7:13])
    admin = Admin(path)
    words = [os.path.join(folder, "bench_changes"), "devices", "127.0.0.1", port, token]
    good = True
    if parked:
        job = json.loads(admin.call("POST", "/v1/jobs", document("hands", model, CHANGES + 1)))["job"]
        good = park(admin, words, parked, elements, pid)
        admin.call("POST", f"/v1/jobs/{job}/stop")
    if readers:
        good = read(admin, path, words, model, tokens, readers, devices, elements, rounds_each, pid) and good
    sys.exit(0 if good else 1)


main()
