"""readers.py SOCKET HOST PORT CA: those who wait for changes of jobs (GET /v1/changes), for tests/e2e/252-changes.sh. Prints what holds, and
fails at what does not."""
import http.client
import json
import os
import socket
import ssl
import sys
import time

path, host, port, ca = sys.argv[1:5]
patience = float(os.environ.get("TEST_PATIENCE", "4"))
context = ssl.create_default_context(cafile=ca)
checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"readers.py: {what}")


def within(seconds, what, holds):
    until = time.monotonic() + seconds * patience
    while not holds():
        check(time.monotonic() < until, what)
        time.sleep(0.02)


class Reader:
    """A connection with one request at a time. token None: the admin socket."""

    def __init__(self, token=None):
        self.token = token
        if token is None:
            self.http = http.client.HTTPConnection("localhost", timeout=60 * patience)
            self.http.sock = socket.socket(socket.AF_UNIX)
            self.http.sock.settimeout(60 * patience)
            self.http.sock.connect(path)
        else:
            self.http = http.client.HTTPSConnection(host, int(port), timeout=60 * patience, context=context)
            self.http.connect()

    def send(self, target, verb="GET", body=None):
        self.http.request(verb, target, body, {"Authorization": "Bearer " + self.token} if self.token else {})
        return self

    def hear(self):
        answer = self.http.getresponse()
        data = answer.read()
        self.after = answer.getheader("Retry-After")
        return answer.status, json.loads(data) if data else None

    def ask(self, target, verb="GET", body=None):
        return self.send(target, verb, body).hear()

    def wait(self, after, seconds=40):
        return self.send("/v1/changes?after=%d&wait=%d" % (after, seconds))

    def close(self):
        self.http.close()


admin = Reader()


def token():
    status, made = admin.ask("/v1/tokens", "POST", json.dumps({"access": True, "expires_s": 3600}))
    check(status == 201, made)
    return made


# As many as may wait, 8 each, beside those of the socket.
tokens = [token()["token"] for _ in range((256 - 32) // 8)]


def metric(name):
    lines = admin.send("/metrics").http.getresponse().read().decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"rivulet_{name} "))


def counter():
    status, told = admin.ask("/v1/changes")
    check(status == 200, told)
    return told["change"]


def park(whose, count, after):
    return [Reader(whose).wait(after) for _ in range(count)]


def parked(count):
    within(20, f"{count} readers do not wait: {metric('change_readers')}", lambda: metric("change_readers") == count)


def change():
    """A job comes. Returns its id."""
    number = metric("job_changes_total")
    job = {"name": f"job-{number}", "trainer": "none", "model": {"init": os.environ["MODEL"]}, "data": {"name": "nowhere", "shape": [1]},
           "round": {"goal": 1, "deadline_s": 3600}}
    status, told = admin.ask("/v1/jobs", "POST", json.dumps(job))
    check(status == 201, told)
    return told["job"]


def requests():
    """Both directions, limits of `wait`, and what is refused."""
    now = counter()
    check(abs(now - time.time() * 1000) < 3600e3 * patience, f"the counter is no time of this start: {now}")
    for after in (0, now - 1, now + 1, 2**64 - 1):
        check(admin.wait(after).hear() == (200, {"change": now}), f"after={after} is no answer at once")
    begun = time.monotonic()
    check(admin.wait(now, 1).hear() == (200, {"change": now}), "nothing has changed")
    check(time.monotonic() - begun > 0.9, "it did not wait")
    check(admin.wait(now, 0).hear() == (200, {"change": now}), "wait=0 waits")
    for query in ("after=x", "after=-1", "wait=", "wait=1.5", "after=1&before=2"):
        check(admin.ask("/v1/changes?" + query)[0] == 400, f"{query} is taken")
    stranger = Reader(tokens[0])
    stranger.token = "no-token"
    check(stranger.wait(now).hear()[0] == 401, "a stranger may wait")
    # Far above 50 it waits all the same; nobody stays to see how long.
    far = Reader(tokens[0]).wait(now, 10**9)
    parked(1)
    far.close()
    parked(0)


def everybody_hears():
    """Of one change, all who wait; whoever waits with the newest counter hears of the next."""
    now = counter()
    readers = [r for t in tokens[:5] for r in park(t, 8, now)] + park(None, 32, now)
    parked(72)
    change()
    answers = [r.hear() for r in readers]
    check(all(status == 200 and told["change"] > now for status, told in answers), answers)
    parked(0)
    for r in readers:
        r.close()


def places():
    """8 of one identity, 32 of the socket, 256 in all; a place is free when its connection ends or its answer is there."""
    now, refused = counter(), metric("change_readers_refused_total")
    eight = park(tokens[0], 8, now)
    parked(8)
    ninth = Reader(tokens[0])
    check(ninth.wait(now).hear()[0] == 429 and ninth.after == "5", f"a ninth waits, or is told {ninth.after}")
    eight[3].close()
    parked(7)
    ninth.close()
    tenth = Reader(tokens[0]).wait(now)
    parked(8)
    local = park(None, 32, now)
    parked(40)
    more = Reader()
    check(more.wait(now).hear()[0] == 429, "33 wait over the socket")
    more.close()
    crowd = [r for t in tokens[1:] for r in park(t, 8, now)]
    parked(256)
    last = Reader(tokens[-1])
    check(last.wait(now).hear()[0] == 429, "257 wait")
    check(metric("change_readers_refused_total") == refused + 3, "not three were refused")
    # Who asks otherwise is served all the same.
    check(Reader(tokens[0]).ask("/v1/jobs")[0] == 200, "no list of jobs")
    everybody = eight[:3] + eight[4:] + [tenth] + local + crowd
    change()
    check(all(r.hear()[0] == 200 for r in everybody), "not all were told")
    parked(0)
    for r in everybody:
        r.close()


def revoked():
    """A token that is revoked while its readers wait: they are refused at once, the others wait on."""
    made, now = token(), counter()
    gone, others = park(made["token"], 3, now), park(tokens[0], 2, now)
    parked(5)
    check(admin.ask("/v1/tokens/" + made["id"], "DELETE")[0] == 204, "the token stays")
    check([r.hear()[0] for r in gone] == [401] * 3, "revoked, and not refused")
    parked(2)
    change()
    check(all(r.hear()[0] == 200 for r in others), "the others were not told")
    for r in gone + others:
        r.close()


def stopped():
    """At the coordinator's end those who wait are answered; what they know is another's number after the start."""
    now = counter()
    readers = park(tokens[0], 4, now) + park(None, 4, now)
    parked(8)
    print("stop", flush=True)
    check(all(r.hear() == (200, {"change": now}) for r in readers), "not all were answered")
    sys.stdin.readline()
    again = Reader()
    status, told = again.wait(now).hear()
    check(status == 200 and told["change"] != now, "a restart is not seen")


for part in (requests, everybody_hears, places, revoked, stopped):
    part()
print(f"ok {checks}", flush=True)
