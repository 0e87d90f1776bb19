#!/usr/bin/env python3
"""bench_lock.py SOCKET RIVULETD_PORT LOAD_PROGRAM TOKEN MODEL JOBS DEVICES READERS ROUNDS PID

What readers of long lists cost those who do rounds: JOBS jobs, one of them with rounds of DEVICES devices (played by bench_round),
and READERS who ask for GET /v1/jobs every READ_EVERY seconds (default 1; 0: again and again) during every second round. Prints how long
rounds took with and without them, and how long the engine's lock was held since the start.
"""
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from admin import Admin

SUBMITTERS = 8
ELEMENTS = 1000


def document(name, model, more):
    """A job for devices elsewhere, unless `more` says otherwise."""
    job = {"name": name, "model": {"init": model}, "trainer": "noop", "data": {"name": "none", "shape": [1]},
           "round": {"goal": 1, "quorum": 1, "deadline_s": 3600}, "select": {"labels": {"site": "elsewhere"}}}
    job.update(more)
    return json.dumps(job)


def submit(path, model, numbers):
    admin = Admin(path)
    for n in numbers:
        admin.call("POST", "/v1/jobs", document(f"other-{n}", model, {}))


class Reader(threading.Thread):
    def __init__(self, path, every):
        super().__init__(daemon=True)
        self.admin, self.every = Admin(path), every
        self.wanted, self.took, self.bytes = threading.Event(), [], 0

    def run(self):
        while True:
            self.wanted.wait()
            start = time.monotonic()
            self.bytes += len(self.admin.call("GET", "/v1/jobs"))
            self.took.append(time.monotonic() - start)
            time.sleep(max(0.0, self.every - self.took[-1]))


def quantile(histogram, q):
    """The upper bound of the bucket that holds it."""
    want, seen = q * histogram["count"], 0
    for bound, count in histogram["buckets"]:
        seen += count
        if seen >= want:
            return bound
    return None


def main():
    path, port, load, token, model = sys.argv[1:6]
    jobs, devices, readers, rounds, pid = (int(a) for a in sys.argv[6:])
    admin, start = Admin(path), time.monotonic()
    work = [threading.Thread(target=submit, args=(path, model, range(i, jobs - 1, SUBMITTERS))) for i in range(SUBMITTERS)]
    for w in work:
        w.start()
    for w in work:
        w.join()
    # The last of all that a device is asked about.
    job = json.loads(admin.call("POST", "/v1/jobs", document("bench", model, {
        "round": {"goal": devices, "quorum": devices, "deadline_s": 3600}, "select": {}})))["job"]
    counted = admin.get("/v1/status")["reports"]["engine"]["jobs"]["running"]
    if counted != jobs:
        sys.exit(f"bench_lock: {counted} jobs run, not {jobs}")
    print(f"{jobs} jobs submitted in {time.monotonic() - start:.1f} s")

    every = float(os.environ.get("READ_EVERY", "1"))
    crowd = [Reader(path, every) for _ in range(readers)]
    for r in crowd:
        r.start()
    program = subprocess.Popen([load, "127.0.0.1", port, token, str(devices), str(ELEMENTS), str(rounds), str(pid)],
                               stdout=subprocess.DEVNULL)
    while program.poll() is None:
        # The first round is the one in which devices connect.
        round_ = admin.get(f"/v1/jobs/{job}")["round"]
        for r in crowd:
            (r.wanted.set if round_ > 1 and round_ % 2 == 0 else r.wanted.clear)()
        time.sleep(0.05)
    if program.returncode != 0:
        sys.exit("bench_lock: the load failed")
    rows = [r for r in admin.get(f"/v1/jobs/{job}/rounds?from=2")["rounds"] if r["state"] == "committed"]
    read = statistics.median(r["seconds"] for r in rows if r["round"] % 2 == 0)
    quiet = statistics.median(r["seconds"] for r in rows if r["round"] % 2 == 1)
    took = [t for r in crowd for t in r.took]
    lock = admin.get("/v1/status")["reports"]["engine"]
    held = lock["lock_held_seconds"]
    print(f"{len(rows)} rounds of {devices} devices: {quiet:.3f} s, {read:.3f} s with {readers} readers: {read / quiet:.2f}x (limit 1.10x)")
    print(f"{len(took)} lists read, {sum(r.bytes for r in crowd) / 1e6 / max(1, len(took)):.2f} MB in {statistics.median(took):.3f} s each")
    print(f"engine's lock: held {held['count']} times, at most {lock['lock_held_cpu_seconds_max'] * 1e3:.3f} ms of processor time "
          f"(limit 1 ms); wall clock p99.9 {quantile(held, 0.999) * 1e3:g} ms, mean {held['sum'] / held['count'] * 1e3:.4f} ms")


main()
