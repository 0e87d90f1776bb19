#!/usr/bin/env python3
"""hostile.py: attacks a running coordinator, one attack after another, while its honest devices do rounds; prints a row for each.

usage: hostile.py FLEET PORT PID JOB SECONDS BUILD LOAD

BUILD is the directory of the programs, LOAD the one of the attacker (OpenSSL shakes hands faster). Exit status 1 if a row failed.
"""
import base64
import hashlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import ssl
import statistics
import subprocess
import sys
import threading
import time

from admin import Admin

FLEET, PORT, PID, JOB, SECONDS, BUILD, LOAD = sys.argv[1:8]
PID, SECONDS = int(PID), float(SECONDS)
RATIO_MAX = 2.0
NEWCOMER_EVERY = 0.2  # seconds
NEWCOMER_WAIT = 2.0
NEWCOMER_FAR = 0.1  # seconds until what it says arrives
NEWCOMERS_MIN = 0.1  # of the times that a device connects anew: it tries again
CONNECTIONS = 500  # as tests/hostile configures it
MEMORY_MAX = 96 + CONNECTIONS * 96 // 1024  # MiB: what a coordinator needs, and each connection's TLS and head
LOADER_MAX = 200  # MiB: a program that reads a bomb
QUIET_SHARE = 0.3
OTHERS_MAX = 0.15  # of the machine: if other programs take more, times say nothing about the attack
HOMES = {"nobody": "nobody", "device": "crowd", "submitter": "submitter", "owner": "owner", "reader": "reader", "walker": "walker"}  # of each kind of attacker
HEAD_START = {"hoard": 8}  # seconds in which it takes what it can get
LIES_MAX = 60
WIDE, LARGE, HUGE = 4096, 6000, 240000  # inputs and outputs of a layer: 98 MB, 3.9 GB
FOLD_MEMORY = 400  # MiB more: the large model, its base, what a fold needs
STOP_MAX = 5.0  # seconds from SIGTERM to the end of the coordinator, under an attack by somebody whom it knows
STOPPED_UNDER = ["good-jobs", "unread-lists", "walks", "documents", "folds", "changes", "uploads", "abort-logs"]
DAY_BYTES = 2 << 20  # owner_bytes_per_day, for the attacks that are measured by it
DAY_DEFAULT = 50 << 20
ROTATIONS_MAX = 3  # and then one an hour
LIES = """flipped-signature changed other-key wrong-job older-round newer-round wrong-base wrong-device wrong-task shorter longer
payload-short payload-long wrong-root wrong-leaf wrong-chunk nan infinity large no-examples many-examples endless-examples
codec-unknown masked second-vector other-kind slice reserved-bits block elements no-steps magic version truncated extended empty junk
no-colons no-manifest report-missing report-other report-unannounced report-base64 report-junk report-wrong unsigned""".split()


def ask(path):
    c = Admin(FLEET + "/admin.sock", 20)
    try:
        c.request("GET", path)
        return json.loads(c.getresponse().read())
    finally:
        c.close()


def commits():
    return ask(f"/v1/jobs/{JOB}")["rounds_committed"]


def peak():
    with open(f"/proc/{PID}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) // 1024


def reset_peak():
    with open(f"/proc/{PID}/clear_refs", "w") as f:
        f.write("5")


def cpu():
    with open(f"/proc/{PID}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours():
    """Processor seconds of the fleet's processes and of this program's finished children, the attackers."""
    total = children()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                if FLEET.encode() not in f.read():
                    continue
            with open(f"/proc/{name}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def everybody():
    """Processor seconds of all programs of this machine, and those that its host gave to others."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def aside():
    """The attacker's own work is not the coordinator's: it gives way to everything here."""
    os.nice(19)


def half(start, before):
    """Sleeps until this program's children have used no more than half of the time since `start`."""
    time.sleep(max(0.0, (children() - before) / 0.5 - (time.time() - start)))


class Known:
    """Somebody whom the coordinator knows, by a token or as a device: one connection, from an address of its own."""

    def __init__(self, name, source="127.0.0.68"):
        self.home, self.source, self.connection, self.answers = f"{FLEET}/{name}", source, None, {}
        self.context = ssl.create_default_context(cafile=self.home + "/ca.pem")
        self.context.check_hostname = False
        self.headers = {}
        if os.path.exists(self.home + "/token"):
            with open(self.home + "/token") as f:
                self.headers["Authorization"] = "Bearer " + f.read().strip()
        else:
            self.context.load_cert_chain(self.home + "/cert.pem", self.home + "/key.pem")

    def ask(self, kind, method, path, body=None):
        """The status, 0 without an answer, and what came with it; counted as an answer to requests of this kind."""
        status, value = 0, {}
        try:
            if not self.connection:
                self.connection = http.client.HTTPSConnection("127.0.0.1", int(PORT), timeout=20, context=self.context, source_address=(self.source, 0))
            self.connection.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), self.headers)
            a = self.connection.getresponse()
            text, status = a.read(), a.status
            value = json.loads(text) if text[:1] == b"{" else {}
        except (OSError, http.client.HTTPException, ValueError):
            self.connection = None
        self.answers[f"{kind} {status}"] = self.answers.get(f"{kind} {status}", 0) + 1
        return status, value

    def is_over(self, start, seconds):
        """Is its time over, or the coordinator gone?"""
        return time.time() > start + seconds or any(a.endswith(" 0") for a in self.answers)

    def got(self):
        return ", ".join(f"{n} x {a}" for a, n in sorted(self.answers.items()))


def while_half(until, step):
    """Repeats the step, with no more than half a core of this thread's time."""
    start, used, count = time.time(), time.thread_time(), 0
    while not until(count):
        step(count)
        count += 1
        time.sleep(max(0.0, (time.thread_time() - used) / 0.5 - (time.time() - start)))
    return count


def setting(**keys):
    """The coordinator's limits as the file has them, with these in their place."""
    path = FLEET + "/rivuletd.conf"
    with open(path) as f:
        lines = [line for line in f.read().split("\n") if line.split(" =")[0] not in ("owner_bytes_per_day", "owner_model_bytes", "requests_per_minute")]
    at = lines.index("[limits]") + 1
    lines[at:at] = [f"{key} = {value}" for key, value in keys.items()]
    with open(path, "w") as f:
        f.write("\n".join(lines))
    os.kill(PID, signal.SIGHUP)
    time.sleep(0.3)


def database():
    """Bytes of the database, with what lies in its log."""
    db = sqlite3.connect(f"file:{FLEET}/state/rivulet.db?mode=ro", uri=True, timeout=20)
    try:
        return db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
    finally:
        db.close()


def log_bytes():
    return os.path.getsize(FLEET + "/rivuletd.log")


def children():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


class Newcomer(threading.Thread):
    """A known device, far away, that connects anew, again and again: attackers may not keep it out."""

    def __init__(self):
        super().__init__(daemon=True)
        self.context = ssl.create_default_context(cafile=FLEET + "/newcomer/ca.pem")
        self.context.check_hostname = False
        self.context.load_cert_chain(FLEET + "/newcomer/cert.pem", FLEET + "/newcomer/key.pem")
        self.done, self.took, self.lost = threading.Event(), [], 0

    def connect(self):
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(heard, said)

        def until_done(step):
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    if said.pending:
                        time.sleep(NEWCOMER_FAR)
                        s.sendall(said.read())
                    heard.write(s.recv(65536) or b"") or heard.write_eof()

        try:
            with socket.create_connection(("127.0.0.1", int(PORT)), NEWCOMER_WAIT, ("127.0.0.77", 0)) as s:
                until_done(tls.do_handshake)
                tls.write(f"GET /v1/jobs/{JOB} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                return until_done(lambda: tls.read(12)) == b"HTTP/1.1 200"
        except OSError:
            return False

    def run(self):
        while not self.done.is_set():
            start = time.monotonic()
            if self.connect():
                self.took.append(time.monotonic() - start)
            else:
                self.lost += 1
            self.done.wait(NEWCOMER_EVERY)

    def end(self):
        """One that is still under way counts as lost if it has waited for longer than those before."""
        self.done.set()
        self.join(max(self.took, default=NEWCOMER_WAIT))
        self.lost += self.is_alive()

    def kept_out(self):
        return len(self.took) < NEWCOMERS_MIN * (self.lost + len(self.took))

    def __str__(self):
        median = f"{statistics.median(self.took):.2f} s" if self.took else "-"
        return f"{len(self.took)}/{self.lost + len(self.took)} {median}"


class Watch:
    """Rounds, newcomers, memory and time between entering and leaving."""

    more = 0  # MiB that the coordinator may take beside MEMORY_MAX

    def __enter__(self):
        self.newcomer = Newcomer()
        self.newcomer.start()
        reset_peak()
        self.rounds, self.cpu, self.start = commits(), cpu(), time.time()
        self.database, self.log = database(), log_bytes()
        self.others = everybody() - ours()
        return self

    def __exit__(self, *unused):
        self.seconds = time.time() - self.start
        self.rounds, self.cpu, self.peak = commits() - self.rounds, (cpu() - self.cpu) / self.seconds, peak()
        self.others = (everybody() - ours() - self.others) / self.seconds / os.cpu_count()
        self.database, self.log = database() - self.database, log_bytes() - self.log
        self.newcomer.end()

    def beyond(self, what):
        """Bytes that the database or the log grew by, beyond what as many rounds made in the quiet time before."""
        return getattr(self, what) - getattr(before, what) * self.rounds / max(before.rounds, 1)


quiet = {"rounds": 0, "seconds": 0.0}
before = None  # the quiet time before this attack
failed = busy = 0


def rest(seconds):
    global before
    with Watch() as w:
        # The attackers share the machine with the devices, which they would not do elsewhere: half a core is used for nothing.
        subprocess.run([f"{LOAD}/tests/tools/attacker", "burn", str(seconds)], check=True)
    before = w
    quiet["rounds"] += w.rounds
    quiet["seconds"] += w.seconds


def slowness(w):
    """Times that rounds took longer while w was watched than in quiet times: in all of them, or just before if that was slower."""
    if not w.rounds:
        return float("inf")
    return w.seconds / w.rounds / max(quiet["seconds"] / max(quiet["rounds"], 1), before.seconds / max(before.rounds, 1))


def row(name, offered, got, w, good, why, slow, stopped=0.0):
    global failed, busy
    others = max(before.others, w.others)
    ratio = slowness(w)
    reasons = [why] if not good else []
    if w.rounds == 0 or (ratio > RATIO_MAX and others <= OTHERS_MAX):
        reasons.append("rounds are too slow")
    elif ratio > RATIO_MAX:
        busy += 1
    if w.newcomer.kept_out():
        reasons.append("devices are kept out")
    if w.peak > MEMORY_MAX + w.more:
        reasons.append("too much memory")
    if stopped > STOP_MAX:
        reasons.append("it does not stop")
    failed += bool(reasons)
    verdict = "FAIL: " + ", ".join(reasons) if reasons else "PASS"
    if not reasons and ratio > RATIO_MAX:
        verdict += f" (time not judged: other programs took {others * 100:.0f} % of the machine)"
    if stopped:
        verdict += f" (stopped under it in {stopped:.1f} s)"
    if slow:
        verdict += " (before: " + ", ".join(f"{ratio:.2f}" for ratio in slow) + ")"
    print(f"{name:16s} {w.peak:4d} MiB {w.cpu * 100:4.0f} % {w.rounds:4d} {ratio:6.2f} {str(w.newcomer):>12s}  {verdict}\n    offered: {offered}\n    got:     {got}", flush=True)


def judge(attack, *arguments, stops=("", 0)):
    """One attack after some quiet, and its row. A second of somebody else's work looks like slow rounds: those, if they are all that is
    wrong, are measured again, twice."""
    slow = []
    while True:
        rest(each * QUIET_SHARE)
        name, offered, got, w, good, why = attack(*arguments, each * (1 - QUIET_SHARE))
        if len(slow) == 2 or not good or not w.rounds or w.newcomer.kept_out() or w.peak > MEMORY_MAX + w.more or slowness(w) <= RATIO_MAX:
            return row(name, offered, got, w, good, why, slow, stop_under(name, *stops) if name in STOPPED_UNDER else 0.0)
        slow.append(slowness(w))


def network(name, home, number, seconds):
    early = HEAD_START.get(name, 0)
    p = subprocess.Popen([f"{LOAD}/tests/tools/attacker", name, home, PORT, str(early + seconds), str(number)], stdout=subprocess.PIPE, text=True)
    time.sleep(early)
    with Watch() as w:
        said, _ = p.communicate()
    offered, _, got = said.strip().partition(" | ")
    return (name, offered, got, w, p.returncode == 0, "what must be refused was answered" if p.returncode == 1 else "the attacker failed")


def lies(seconds):
    """A device that signs what is not so, in every field, again and again; each lie at least once, however slow the machine is."""
    peer, home, count, answers, accepted = f"{BUILD}/tests/tools/wire_peer", FLEET + "/liar", 0, {}, 0
    env = dict(os.environ, WIRE_OTHER=FLEET + "/crowd", HTTPS_SOURCE="127.0.0.66")

    def say(*arguments):
        p = subprocess.run([peer, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, preexec_fn=aside)
        return p.stdout.split()

    task = say("ask", home, PORT)
    with Watch() as w:
        start, before = time.time(), children()
        while len(task) == 4 and (time.time() < start + seconds or (count < len(LIES) and time.time() < start + LIES_MAX)):
            half(start, before)
            words = say("put", home, PORT, ELEMENTS, "wait", LIES[count % len(LIES)], *task)
            count += 1
            answers[" ".join(words[:2])] = answers.get(" ".join(words[:2]), 0) + 1
            accepted += words[:1] == ["201"]
    got = ", ".join(f"{n} x {a}" for a, n in sorted(answers.items()))
    why = "a lie was accepted" if accepted else "not every lie was told"
    return ("lies", f"{count / w.seconds:.0f} signed deltas/s, {min(count, len(LIES))} of {len(LIES)} kinds of lies", got or "no task", w, accepted == 0 and count >= len(LIES), why)


class Rotator:
    """A device that asks for another key again and again, by its present one and, once that is another, by those before."""

    def __init__(self):
        self.home, self.keys, self.answers, self.asked = FLEET + "/rotator/", [], {}, 0
        self.keys.append((self.home + "cert.pem", self.home + "key.pem"))

    def request(self):
        """A fresh key, and what asks for its certificate."""
        path = f"{self.home}key-{self.asked}.pem"
        der = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x",
                              "-keyout", path, "-outform", "DER"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, preexec_fn=aside).stdout
        return path, json.dumps({"csr": base64.b64encode(der).decode(), "name": "x"})

    def rotate(self):
        self.asked += 1
        key, body = self.request()
        context = ssl.create_default_context(cafile=self.home + "ca.pem")
        context.check_hostname = False
        context.load_cert_chain(*self.keys[-1 if self.asked % 3 else 0])
        c = http.client.HTTPSConnection("127.0.0.1", int(PORT), timeout=20, context=context, source_address=("127.0.0.67", 0))
        try:
            c.request("POST", "/v1/rotate", body)
            a = c.getresponse()
            answer, text = a.status, a.read()
        except (OSError, http.client.HTTPException):
            answer, text = 0, b""
        finally:
            c.close()
        self.answers[answer] = self.answers.get(answer, 0) + 1
        if answer == 201:
            self.keys.append((key[:-3] + "crt", key))
            with open(self.keys[-1][0], "w") as f:
                f.write(json.loads(text)["certificate"])


def rotations(seconds):
    """A device that changes its key as often as it may, and far more often."""
    r = Rotator()
    with Watch() as w:
        start, before = time.time(), children()
        while time.time() < start + seconds or (r.asked < 2 * ROTATIONS_MAX + 4 and time.time() < start + LIES_MAX):
            half(start, before)
            r.rotate()
    got = ", ".join(f"{n} x {a}" for a, n in sorted(r.answers.items()))
    good = 0 < r.answers.get(201, 0) <= ROTATIONS_MAX and r.answers.get(429, 0) > 0
    return ("rotations", f"{r.asked / w.seconds:.0f} new keys/s", got, w, good, "not three rotations and no more")


def layer(name, outputs, seed, more=None):
    """A job of one layer, for the device "folder" alone."""
    document = {"name": name, "seed": seed, "model": {"layers": [{"type": "linear", "name": "fc", "out": outputs, "bias": False}], "loss": "mse"},
                "data": {"name": "wide", "shape": [WIDE]}, "local": {"steps": 1, "batch": 1, "optimizer": {"name": "sgd", "rate": 0.1}},
                "select": {"devices": ["folder"]}, "upload": {"codec": "sparse", "share": 0.001, "feedback": False},
                "round": {"goal": 1, "deadline_s": 3600}, "stop": {"rounds": 1000}}
    return json.dumps({**document, **(more or {})})


class Builder:
    """Who submits large jobs, by a token of its own; counts the answers."""

    def __init__(self):
        self.context = ssl.create_default_context(cafile=FLEET + "/builder/ca.pem")
        self.context.check_hostname = False
        with open(FLEET + "/builder/token") as f:
            self.token = f.read().strip()
        self.answers = {}

    def ask(self, verb, path, body=None):
        c = http.client.HTTPSConnection("127.0.0.1", int(PORT), timeout=120, context=self.context, source_address=("127.0.0.68", 0))
        try:
            c.request(verb, path, body, {"Authorization": "Bearer " + self.token})
            a = c.getresponse()
            status, text = a.status, a.read()
        except (OSError, http.client.HTTPException):
            status, text = 0, b""
        finally:
            c.close()
        what = f"{path.split('/')[2]} {status}"
        self.answers[what] = self.answers.get(what, 0) + 1
        return status, text

    def remove(self, text):
        job = json.loads(text)["job"]
        self.ask("POST", f"/v1/jobs/{job}/stop")
        until = time.time() + 20
        while self.ask("DELETE", f"/v1/jobs/{job}")[0] == 409 and time.time() < until:
            time.sleep(0.2)  # its last round is being folded

    def __str__(self):
        return ", ".join(f"{n} x {a}" for a, n in sorted(self.answers.items()))


def documents(seconds):
    """A submitter plans and submits models of gigabytes, four documents at a time, and takes back what is accepted."""
    builder, count = Builder(), [0]

    def repeat(number):
        while time.time() < start + seconds:
            count[0] += 1
            seed = int(time.time() * 1000) % 1000000 * 10 + number
            builder.ask("POST", "/v1/plan", layer("huge", HUGE, seed))
            status, text = builder.ask("POST", "/v1/jobs", layer("large", LARGE, seed))
            if status == 201:
                builder.remove(text)

    with Watch() as w:
        start = time.time()
        threads = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    good = builder.answers.get("plan 0", 0) + builder.answers.get("jobs 0", 0) == 0 and builder.answers.get("jobs 201", 0) > 0
    return ("documents", f"{count[0]} plans of 3.9 GB and submissions of 98 MB, four at a time", str(builder), w, good, "requests were not answered, or none was accepted")


def folds(seconds):
    """A submitter with one device of its own has large rounds folded, one after the other."""
    builder, peer, count = Builder(), f"{BUILD}/tests/tools/wire_peer", 0
    rule = {"aggregate": {"rule": {"name": "geometric_median", "hostile": 0, "iterations": 100}}}
    status, text = builder.ask("POST", "/v1/jobs", layer("folds", LARGE, int(time.time()), rule))
    env = dict(os.environ, WIRE_DATA="wide", HTTPS_SOURCE="127.0.0.69")

    def say(*arguments):
        p = subprocess.run([peer, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, preexec_fn=aside)
        return p.stdout.split()

    with Watch() as w:
        w.more = FOLD_MEMORY
        start, before = time.time(), children()
        while status == 201 and time.time() < start + seconds:
            half(start, before)
            task = say("ask", FLEET + "/folder", PORT)
            if len(task) == 4:
                count += say("put", FLEET + "/folder", PORT, f"sparse:{WIDE * LARGE}", "rush", "none", *task)[:1] == ["201"]
            else:
                time.sleep(0.05)
    if status == 201:
        builder.remove(text)
    return ("folds", f"{count} deltas of {WIDE * LARGE} parameters in 6 KB", str(builder), w, count > 0, "no delta was taken")


def bombs(seconds):
    """Data sets whose few bytes unpack to many: a device's and the coordinator's loader."""
    with Watch() as w:
        start, results, good = time.time(), [], True
        for name in ("csv", "idx"):
            p = subprocess.Popen(
                [f"{BUILD}/rivulet", "train", FLEET + "/bomb.json", "--home", FLEET + "/bomb-" + name],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=aside)
            timer = threading.Timer(120, p.kill)
            timer.start()
            said = p.stderr.read()
            # Its own figures: among all children is the coordinator, which was stopped under folds.
            _, status, used = os.wait4(p.pid, 0)
            timer.cancel()
            p.returncode = os.waitstatus_to_exitcode(status)
            most = used.ru_maxrss // 1024
            results.append(f"{name}: exit {p.returncode}, {most} MiB ({said.strip().splitlines()[-1][:70] if said.strip() else ''})")
            good = good and p.returncode not in (0, -9) and most < LOADER_MAX
        c = Admin(FLEET + "/admin.sock", 20)
        with open(FLEET + "/bomb-job.json") as f:
            c.request("POST", "/v1/jobs", f.read())
        a = c.getresponse()
        results.append(f"coordinator: {a.status}")
        a.read()
        time.sleep(max(0.0, seconds - (time.time() - start)))
    return ("gzip-bombs", "2 data sets on a device, 1 on the coordinator", "; ".join(results), w, good, "a loader took it, or too much memory")


def changes(seconds):
    """An owner that changes what it has as often as it may and far more often: documents, overrides, states, models."""
    k, job = Known("changer"), []
    document = {"name": "changed", "select": {"devices": ["crowd"]}, "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
                "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10}, "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}}, "round": {"goal": 1}}

    def step(n):
        if not job:
            job.append("/v1/jobs/" + k.ask("submit", "POST", "/v1/jobs", document)[1].get("job", "0" * 32))
        k.ask("set", "POST", job[0] + "/set", {"stop.rounds": 1000 + n})
        k.ask("the same set", "POST", job[0] + "/set", {"stop.rounds": 1000 + n})
        k.ask("pause", "POST", job[0] + "/pause")
        k.ask("resume", "POST", job[0] + "/resume")
        small = k.ask("submit", "POST", "/v1/jobs", dict(document, name=f"small-{n}", params={"note": "x" * (200000 if n % 20 == 0 else 100)}))[1].get("job")
        if small:
            k.ask("stop", "POST", f"/v1/jobs/{small}/stop")
        # Large ones stay, so that their room is not used again.
        if small and n % 20:
            k.ask("delete", "DELETE", f"/v1/jobs/{small}")
        head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {"n": str(n)}}).encode()
        model = len(head).to_bytes(8, "little") + head + bytes(4)
        path = "/v1/models/" + hashlib.sha256(model).hexdigest()
        if k.ask("upload", "PUT", path, model)[0] == 201:
            k.ask("drop", "DELETE", path)

    setting(owner_bytes_per_day=DAY_BYTES, requests_per_minute=0)
    with Watch() as w:
        start = time.time()
        # Until the day is used up, however slow the machine is.
        count = while_half(lambda n: k.is_over(start, seconds if k.answers.get("set 429") else LIES_MAX), step)
    setting()
    grew = w.beyond("database")
    good = grew <= DAY_BYTES and k.answers.get("set 429", 0) > 0 and not any(k.answers.get(what + " 429") for what in ("pause", "stop", "delete", "drop"))
    offered = f"{count * 8 / w.seconds:.0f} changes/s; the database may grow by {DAY_BYTES >> 10} KiB a day, and grew by {grew / 1024:.0f} KiB beyond rounds: {grew / DAY_BYTES * DAY_DEFAULT / 1e6:.1f} MB a day by default"
    return ("changes", offered, k.got(), w, good, "the database grew too much, or what ends something was refused")


ABORTS = 1000  # several times what the log takes


def abort_logs(seconds):
    """A device that asks for its task and gives it back with a long log, again and again."""
    k = Known("liar")
    offer = {"agent": "1.0", "protocol": 1, "data": [{"name": "digits", "examples": 100}], "trainers": ["builtin"], "codecs": ["f32"],
             "layers": ["linear", "flatten", "relu"], "features": ["figures", "buffered"], "wait": 0}

    def step(n):
        task = k.ask("ask", "POST", "/v1/tasks", offer)[1].get("task")
        if task:
            k.ask("abort", "POST", f"/v1/tasks/{task}/abort", {"reason": "hours", "log": "x" * 2000})

    setting(owner_bytes_per_day=DAY_BYTES // 8, requests_per_minute=0)
    with Watch() as w:
        start = time.time()
        count = while_half(lambda n: k.is_over(start, seconds if n > ABORTS else LIES_MAX), step)
    setting()
    grew, data = w.beyond("log"), w.beyond("database")
    good = grew <= 1.5 * DAY_BYTES // 8 and data <= DAY_BYTES // 8 and k.answers.get("abort 204", 0) > 0
    offered = (f"{count / w.seconds:.0f} tasks/s given back with 2 kB each; the log may grow by {DAY_BYTES >> 13} KiB a day, and grew by {grew / 1024:.0f} KiB beyond rounds, "
               f"the database by {data / 1024:.0f} KiB")
    return ("abort-logs", offered, k.got(), w, good, "log or database grew too much, or nothing was given back")


UPLOAD, FIT, CROWD = 256 << 10, 5, 20


def uploads(seconds):
    """An owner that begins twenty uploads at once, none of which ends before all have begun, where five fit."""
    most, rounds, k = [0], [0], Known("uploader")

    def upload(start, fill, statuses):
        u = Known("uploader", "127.0.0.69")
        head = json.dumps({"w": {"dtype": "F32", "shape": [UPLOAD // 4], "data_offsets": [0, UPLOAD]}}).encode()
        body = len(head).to_bytes(8, "little") + head + fill * (UPLOAD // len(fill))
        name = hashlib.sha256(body).hexdigest()
        begun, status = False, 0
        try:
            with u.context.wrap_socket(socket.create_connection(("127.0.0.1", int(PORT)), 20, (u.source, 0))) as s:
                s.sendall((f"PUT /v1/models/{name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {u.headers['Authorization']}\r\n"
                           f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n").encode())
                status = int(s.recv(4096).split()[1])
                begun = True
                start.wait(20)
                if status == 100:
                    s.sendall(body)
                    status = int(s.recv(4096).split()[1])
        except (OSError, ValueError, IndexError, threading.BrokenBarrierError):
            start.abort()
        statuses.append((status, name))

    def step(n):
        start, statuses = threading.Barrier(CROWD), []
        threads = [threading.Thread(target=upload, args=(start, os.urandom(16), statuses)) for _ in range(CROWD)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        taken = [name for status, name in statuses if status == 201]
        for status, _ in statuses:
            k.answers[f"upload {status}"] = k.answers.get(f"upload {status}", 0) + 1
        most[0], rounds[0] = max(most[0], len(taken)), rounds[0] + bool(taken)
        for name in taken:
            k.ask("drop", "DELETE", "/v1/models/" + name)

    setting(owner_model_bytes=FIT * UPLOAD + UPLOAD // 2, requests_per_minute=0)
    with Watch() as w:
        start = time.time()
        count = while_half(lambda n: k.is_over(start, seconds), step)
    setting()
    return ("uploads", f"{count} times {CROWD} uploads at once of {UPLOAD >> 10} KiB, of which {FIT} fit", f"{most[0]} at most; " + k.got(), w, 0 < most[0] <= FIT,
            "more was taken than fits, or nothing")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def stop_under(name, home, number):
    """Ends the coordinator under the attack once more, and starts it again. Seconds until it was gone."""
    global PID
    if home:
        p = subprocess.Popen([f"{LOAD}/tests/tools/attacker", name, home, PORT, "4", str(number)], stdout=subprocess.DEVNULL)
    else:
        p = threading.Thread(target=scripted[name], args=(4.0,), daemon=True)
        # It finds the coordinator gone in the middle: that is no news.
        threading.excepthook = lambda unused: None
        p.start()
    time.sleep(2)
    start = time.time()
    os.kill(PID, signal.SIGTERM)
    while not is_gone(PID) and time.time() < start + 60:
        time.sleep(0.01)
    took = time.time() - start
    if home:
        p.wait()
    else:
        p.join()
    with open(FLEET + "/rivuletd.log", "a") as log:
        PID = subprocess.Popen([f"{BUILD}/rivuletd", "--config", FLEET + "/rivuletd.conf"], stderr=log).pid
    with open(FLEET + "/pid", "w") as f:
        f.write(str(PID))
    # Until rounds go on, as they do after a pause of the devices.
    end = time.time() + 60
    while time.time() < end:
        try:
            had = commits()
            while commits() < had + 3 and time.time() < end:
                time.sleep(0.05)
            setting()
            break
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.1)
    return took


def elements():
    """Numbers in a delta of the job: what a lying device must get right to be heard."""
    return str(ask(f"/v1/jobs/{JOB}")["parameters"])


ELEMENTS = elements()
listed = subprocess.run([f"{LOAD}/tests/tools/attacker", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
only = os.environ.get("HOSTILE_ONLY", "").split()
attacks = [line.split() for line in listed if line and (not only or line.split()[0] in only)]
scripted = {"lies": lies, "rotations": rotations, "documents": documents, "folds": folds, "gzip-bombs": bombs, "changes": changes, "abort-logs": abort_logs, "uploads": uploads}
scripted = {name: attack for name, attack in scripted.items() if not only or name in only}
each = SECONDS / (len(attacks) + len(scripted))
print(f"hostile: {len(attacks) + len(scripted)} attacks of {each * (1 - QUIET_SHARE):.1f} s, each after {each * QUIET_SHARE:.1f} s of quiet; rounds of honest devices go on")
print(f"hostile: limits: {MEMORY_MAX} MiB for {CONNECTIONS} connections, round time {RATIO_MAX:g} x that of quiet times, when half a core is used for nothing")
print("attack         peak memory   cpu rounds ratio   connected  verdict", flush=True)
with Watch() as still:
    time.sleep(2)
rest(max(2.0, each * QUIET_SHARE))
for number, (name, who) in enumerate(attacks):
    judge(network, name, FLEET + "/" + HOMES[who], number, stops=(FLEET + "/" + HOMES[who], number))
for attack in scripted.values():
    judge(attack)
base = quiet["seconds"] / max(quiet["rounds"], 1)
print(f"hostile: in quiet times {quiet['rounds']} rounds, {base * 1000:.0f} ms each; {still.seconds / max(still.rounds, 1) * 1000:.0f} ms without the half core that is used for nothing")
if busy:
    print(f"hostile: {busy} times were not judged: this machine was busy with something else")
print(f"{len(attacks) + len(scripted) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
