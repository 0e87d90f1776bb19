"""Asks every route as everyone who can ask, over TLS, and compares with the table below, which was written by hand. tests/lint compares
its requests and who may with docs/openapi.yaml.

    role_table.py FLEET PORT    the files that tests/e2e/25-roles.sh left in FLEET

Each cell is asked on a connection that resumes the TLS session of the cell before, and again on that one, which stays open; one
cell in four on a fresh connection as well. Ends with what happens to connections and sessions whose identity changes under them. Prints what
differs, then the number of checks; exit status 1 if anything differed.
"""
import base64
import http.client
import json
import re
import socket
import ssl
import subprocess
import sys
import time

FLEET, PORT = sys.argv[1], int(sys.argv[2])
JOB = open(f"{FLEET}/job").read().strip()  # submitted on the coordinator's host, for all devices
ELSEWHERE = open(f"{FLEET}/elsewhere").read().strip()  # likewise, for none of these devices
MODEL = open(f"{FLEET}/model").read().strip()  # JOB's
NONE32, NONE64 = "0" * 32, "0" * 64

# Who may: the status that proves the handler ran, chosen so that nothing changes. N: 401 no-certificate, F: 403 forbidden.
# LARGE announces a body above every limit: only who may leave hears of it, and stays.
COLUMNS = ["anyone", "device", "reader", "submitter", "admin", "reader-token", "submitter-token", "metrics-token"]
TABLE = """
GET /healthz                         | 200 200 200 200 200 200 200 200
GET /readyz                          | 200 200 200 200 200 200 200 200
GET /metrics                         | N F 200 200 200 200 200 200
GET /v1/ca                           | 200 200 200 200 200 200 200 200
POST /v1/join {}                     | 401:bad-token 401:bad-token 401:bad-token 401:bad-token 401:bad-token 400:bad-message 400:bad-message 400:bad-message
POST /v1/renew                       | N 200 200 200 200 N N F
POST /v1/rotate {}                   | N 400:bad-message 400:bad-message 400:bad-message 400:bad-message N N F
POST /v1/leave LARGE                 | N 413:too-large 413:too-large 413:too-large 413:too-large 413:too-large 413:too-large F
GET /v1/status                       | N 200 200 200 200 200 200 F
POST /v1/tasks {}                    | N 400:bad-message F F F F F F
POST /v1/tasks/{none}/abort {}       | N 400:bad-message F F F F F F
POST /v1/tasks/{none}/report EMPTY   | N 400:bad-manifest F F F F F F
PUT /v1/deltas/{none} EMPTY          | N 400:bad-manifest F F F F F F
HEAD /v1/deltas/{none}               | N 404 F F F F F F
PATCH /v1/deltas/{none} EMPTY        | N 400:bad-request F F F F F F
GET /v1/deltas/{none}                | N F 404:not-found 404:not-found 404:not-found 404:not-found 404:not-found F
GET /v1/models/{model}               | N 200 200 200 200 200 200 F
GET /v1/models/{model}/from/{none}   | N 404:no-difference 404:no-difference 404:no-difference 404:no-difference 404:no-difference 404:no-difference F
GET /v1/states/{model}               | N 404:not-found 404:not-found 404:not-found 404:not-found 404:not-found 404:not-found F
PUT /v1/models/bad EMPTY             | N F F 400:bad-request 400:bad-request F 400:bad-request F
GET /v1/changes                      | N F 200 200 200 200 200 F
GET /v1/jobs                         | N 200 200 200 200 200 200 F
GET /v1/jobs/{job}                   | N 200 200 200 200 200 200 F
GET /v1/jobs/{elsewhere}             | N 404:unknown-job 200 200 200 200 200 F
GET /v1/jobs/{job}/document          | N 200 200 200 200 200 200 F
GET /v1/jobs/{elsewhere}/document    | N 404:unknown-job 200 200 200 200 200 F
GET /v1/jobs/{job}/rounds            | N 200 200 200 200 200 200 F
GET /v1/jobs/{elsewhere}/rounds      | N 404:unknown-job 200 200 200 200 200 F
GET /v1/jobs/{job}/rounds/1          | N 200 200 200 200 200 200 F
GET /v1/jobs/{elsewhere}/rounds/1    | N 404:unknown-job 200 200 200 200 200 F
GET /v1/jobs/{job}/rounds/1/record   | N 404:not-found 404:not-found 404:not-found 404:not-found 404:not-found 404:not-found F
GET /v1/jobs/{job}/participation     | N F 200 200 200 200 200 F
GET /v1/audit?limit=1                | N F 200 200 200 200 200 F
POST /v1/jobs {}                     | N F F 422:bad-job 422:bad-job F 422:bad-job F
POST /v1/plan {}                     | N F F 422:bad-job 422:bad-job F 422:bad-job F
POST /v1/jobs/{none}/pause           | N F F 404:unknown-job 404:unknown-job F 404:unknown-job F
POST /v1/jobs/{none}/resume          | N F F 404:unknown-job 404:unknown-job F 404:unknown-job F
POST /v1/jobs/{none}/stop            | N F F 404:unknown-job 404:unknown-job F 404:unknown-job F
POST /v1/jobs/{job}/pause            | N F F F 200 F F F
POST /v1/jobs/{job}/resume           | N F F F 200 F F F
POST /v1/jobs/{none}/set {"share":1} | N F F 404:unknown-job 404:unknown-job F 404:unknown-job F
POST /v1/jobs/{job}/set {}           | N F F F 400:bad-message F F F
DELETE /v1/jobs/{none}               | N F F 404:unknown-job 404:unknown-job F 404:unknown-job F
DELETE /v1/jobs/{elsewhere}          | N F F F 409:wrong-state F F F
DELETE /v1/models/{none}             | N F F 404:not-found 404:not-found F 404:not-found F
GET /v1/find?kind=job&word=nothing   | N F 404:unknown-job 404:unknown-job 404:unknown-job 404:unknown-job 404:unknown-job F
GET /v1/fleet                        | N F 200 200 200 200 200 F
GET /v1/devices                      | N F 200 200 200 200 200 F
GET /v1/devices/device               | N F 200 200 200 200 200 F
POST /v1/devices/nobody/suspend      | N F F F 404:not-found F F F
POST /v1/devices/nobody/resume       | N F F F 404:not-found F F F
POST /v1/devices/nobody/revoke       | N F F F 404:not-found F F F
POST /v1/devices/nobody/set {}       | N F F F 404:not-found F F F
POST /v1/devices/set {}              | N F F F 200 F F F
POST /v1/devices/nobody/erase        | N F F F 404:not-found F F F
POST /v1/devices/nobody/rekey        | N F F F 404:not-found F F F
POST /v1/devices/nobody/rekey/01234567 | N F F F 404:not-found F F F
POST /v1/clock/confirm               | N F F F 200 F F F
GET /v1/tokens                       | N F F F 200 F F F
POST /v1/tokens {"uses":0}           | N F F F 400:bad-message F F F
DELETE /v1/tokens/0000               | N F F F 404:not-found F F F
"""
# Who has an identity that is worth nothing hears this from every route but those for anyone; the exceptions follow.
REFUSED = {
    "expired": "403:expired-certificate",
    "rotated": "403:key-rotated",
    "suspended": "403:device-suspended",
    "revoked": "403:device-revoked",
    "left": "403:device-left",
    "stranger": "403:unknown-device",
    "join-token": "401:bad-token",
    "expired-token": "401:bad-token",
    "revoked-token": "401:bad-token",
    "wrong-token": "401:bad-token",
    "garbage-token": "401:bad-token",
}
EXCEPT = {
    ("expired", "POST /v1/renew"): "200",
    ("suspended", "POST /v1/renew"): "200",
    # For a minute, after the line before.
    ("suspended", "GET /v1/status"): "200",
    ("rotated", "POST /v1/rotate {}"): "400:bad-message",
    # Joining looks at the token itself.
    ("join-token", "POST /v1/join {}"): "400:bad-message",
    ("expired-token", "POST /v1/join {}"): "400:bad-message",
    ("revoked-token", "POST /v1/join {}"): "400:bad-message",
    ("wrong-token", "POST /v1/join {}"): "400:bad-message",
}

checks = failures = 0


def say(what, want, got):
    global checks, failures
    checks += 1
    if want != got:
        failures += 1
        print(f"FAILED: {what}\n  want: {want}\n  got:  {got}")


class Who:
    """An identity: a certificate in FLEET/NAME, an access token in FLEET/token.NAME, or neither."""

    def __init__(self, name, home=None, token=None, version=None):
        self.name, self.token, self.session = name, token, None
        self.context = ssl.create_default_context(cafile=f"{FLEET}/ca.pem")
        if version:
            self.context.maximum_version = version
        if home:
            self.context.load_cert_chain(f"{home}/cert.pem", f"{home}/key.pem")

    def connect(self, resume=False):
        raw = socket.create_connection(("127.0.0.1", PORT), timeout=60)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock = self.context.wrap_socket(
            raw, server_hostname="localhost", session=self.session if resume else None)
        return sock

    def ask(self, sock, request):
        verb, path, *body = request.split(" ")
        head = f"{verb} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if self.token:
            head += f"Authorization: Bearer {self.token}\r\n"
        text = ""
        if body == ["LARGE"]:
            head += "Content-Length: 9999999\r\n"
        elif body:
            text = "" if body == ["EMPTY"] else body[0]
            head += f"Content-Length: {len(text)}\r\n"
        sock.sendall((head + "\r\n" + text).encode())
        answer = http.client.HTTPResponse(sock, method=verb)
        answer.begin()
        self.body = answer.read()
        self.session = sock.session
        self.open = not answer.will_close
        if answer.status < 400 or not self.body:
            return str(answer.status)
        return f"{answer.status}:{json.loads(self.body)['type'].rsplit(':', 1)[1]}"


def admin(verb, path, body=None):
    """A request over the admin socket."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(f"{FLEET}/admin.sock")
    text = json.dumps(body) if body is not None else ""
    sock.sendall(f"{verb} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode())
    answer = http.client.HTTPResponse(sock, method=verb)
    answer.begin()
    data = answer.read()
    sock.close()
    return answer.status, json.loads(data) if data else None


def want_of(name, request, cells):
    if name in COLUMNS:
        want = cells[COLUMNS.index(name)]
    elif (name, request) in EXCEPT:
        want = EXCEPT[(name, request)]
    else:
        anyone = cells[0]
        want = anyone if anyone != "N" else REFUSED[name]
    want = {"N": "401:no-certificate", "F": "403:forbidden"}.get(want, want)
    return want.split(":")[0] if request.startswith("HEAD ") else want


def rows():
    for line in TABLE.strip().split("\n"):
        request, cells = line.split(" | ")
        yield request.strip(), cells.split()


def table(everyone):
    names = {"job": JOB, "elsewhere": ELSEWHERE, "model": MODEL, "none": NONE32}
    for row, (request, cells) in enumerate(rows()):
        filled = re.sub(r"\{(\w+)\}", lambda m: names[m[1]], request)
        for i, who in enumerate(everyone):
            want = want_of(who.name, request, cells)
            if not who.session or (row + i) % 4 == 0:
                with who.connect() as sock:
                    say(f"{who.name}: {request}", want, who.ask(sock, filled))
            with who.connect(resume=True) as sock:
                say(f"{who.name}: {request}: resumed", True, sock.session_reused)
                say(f"{who.name}: {request}, resumed", want, who.ask(sock, filled))
                if who.open:
                    say(f"{who.name}: {request}, again", want, who.ask(sock, filled))


def rounds_without_devices(people):
    for name in [n for n in COLUMNS[1:] if n != "metrics-token"]:
        who = people[name]
        with who.connect() as sock:
            who.ask(sock, f"GET /v1/jobs/{JOB}/rounds/1")
        say(f"{name}: rows per device in a round", name != "device", "devices" in json.loads(who.body))


def names_of_others(people):
    """What a device reads of a job that names others: its document alone tells whom it selects, and nothing whose it is."""
    device, submitter = people["device"], people["submitter"]
    own = admin("GET", f"/v1/jobs/{JOB}")[1]["document"]
    own.update(name="named", select={"devices": ["device", "expired"]})
    with submitter.connect() as sock:
        say("a job for named devices", "201", submitter.ask(sock, "POST /v1/jobs " + json.dumps(own, separators=(",", ":"))))
    made = json.loads(submitter.body)
    secrets = ["expired", '"select"', '"owner"', made["owner"], admin("GET", "/v1/devices/expired")[1]["device"]]
    job = f"/v1/jobs/{made['job']}"
    with device.connect() as sock:
        for path in "/v1/status", "/v1/jobs", job, f"{job}/rounds", f"{job}/rounds/1":
            say(f"device: GET {path}", "200", device.ask(sock, f"GET {path}"))
            answer = json.loads(device.body)
            if path == job:
                say("the document is the job's", own, answer.pop("document"))
            text = json.dumps(answer)
            say(f"what GET {path} tells a device", [], [s for s in secrets if s in text])
    say("stopped", 200, admin("POST", f"{job}/stop")[0])


def owners(people):
    """Two submitters: each has its own jobs, and only those."""
    one, two, boss = people["submitter"], people["submitter-token"], people["admin"]
    text = json.dumps(admin("GET", f"/v1/jobs/{JOB}")[1]["document"], separators=(",", ":"))
    jobs = {}
    for who in one, two:
        own = json.loads(text)
        own["name"] = f"of-{who.name}"
        with who.connect() as sock:
            say(f"{who.name} submits", "201", who.ask(sock, "POST /v1/jobs " + json.dumps(own, separators=(",", ":"))))
        jobs[who] = json.loads(who.body)["job"]
    for who, other in (one, two), (two, one):
        for command in "pause", "resume":
            with who.connect() as sock:
                say(f"{who.name}: {command} of its own", "200", who.ask(sock, f"POST /v1/jobs/{jobs[who]}/{command}"))
                say(f"{who.name}: {command} of another's", "403:forbidden", who.ask(sock, f"POST /v1/jobs/{jobs[other]}/{command}"))
    with boss.connect() as sock:
        say("admin stops a submitter's job", "200", boss.ask(sock, f"POST /v1/jobs/{jobs[one]}/stop"))
    with two.connect() as sock:
        say("submitter-token stops its own", "200", two.ask(sock, f"POST /v1/jobs/{jobs[two]}/stop"))
    with two.connect() as sock:
        say("submitter-token deletes another's", "403:forbidden", two.ask(sock, f"DELETE /v1/jobs/{jobs[one]}"))
    with one.connect() as sock:
        say("submitter asks what would go", "200", one.ask(sock, f"DELETE /v1/jobs/{jobs[one]}?dry=1"))
    for who, job in jobs.items():
        say(f"owner of the job of {who.name}", True, admin("GET", f"/v1/jobs/{job}")[1]["owner"] is not None)
    own["name"] = f"of-{two.name}"
    with two.connect() as sock:
        say("submitter-token deletes its own", "200", two.ask(sock, f"DELETE /v1/jobs/{jobs[two]}"))
        say("and may not submit it again", "409:deleted-job", two.ask(sock, "POST /v1/jobs " + json.dumps(own, separators=(",", ":"))))


def changes(people):
    """The identity changes while connections are open and sessions can be resumed."""
    who = people["turning"]
    with who.connect() as live:
        say("before: reads", "200", who.ask(live, "GET /v1/devices"))
        say("suspended", 200, admin("POST", "/v1/devices/turning/suspend")[0])
        say("suspended: on the open connection", "403:device-suspended", who.ask(live, "GET /v1/devices"))
        with who.connect(resume=True) as sock:
            say("suspended: a new connection", "403:device-suspended", who.ask(sock, "GET /v1/devices"))
        say("active again", 200, admin("POST", "/v1/devices/turning/resume")[0])
        say("active again: on the open connection", "200", who.ask(live, "GET /v1/devices"))
        with who.connect() as sock:
            say("a reader submits", "403:forbidden", who.ask(sock, "POST /v1/jobs {}"))
        with who.connect() as sock:
            say("leaves", "204", who.ask(sock, "POST /v1/leave"))
        say("left: on the open connection", "403:device-left", who.ask(live, "GET /v1/devices"))
        with who.connect() as sock:
            say("left: a new connection", "403:device-left", who.ask(sock, "GET /v1/devices"))
            old = who.session
        rejoin()
        with who.connect(resume=True) as sock:
            say("joined as submitter: the session of before", True, sock.session_reused)
            say("joined as submitter: resumed", "422:bad-job", who.ask(sock, "POST /v1/jobs {}"))
        say("joined as submitter: on the open connection", "422:bad-job", who.ask(live, "POST /v1/jobs {}"))
        rotate(who)
        say("rotated: on the open connection", "403:key-rotated", who.ask(live, "GET /v1/devices"))
        who.session = old
        with who.connect(resume=True) as sock:
            say("rotated: the session of the old key", True, sock.session_reused)
            say("rotated: resumed by the old key", "403:key-rotated", who.ask(sock, "GET /v1/devices"))
        say("revoked", 200, admin("POST", "/v1/devices/turning/revoke")[0])
        say("revoked: on the open connection", "403:device-revoked", who.ask(live, "GET /v1/devices"))
        with who.connect(resume=True) as sock:
            say("revoked: sessions are forgotten", False, sock.session_reused)
        say("revoked for good", 409, admin("POST", "/v1/devices/turning/resume")[0])
    reader = people["reader-token"]
    with reader.connect() as live:
        say("a token reads", "200", reader.ask(live, "GET /v1/jobs"))
        say("the token is revoked", 204, admin("DELETE", f"/v1/tokens/{reader.token.split('-')[1]}")[0])
        say("the token on the open connection", "401:bad-token", reader.ask(live, "GET /v1/jobs"))
        with reader.connect(resume=True) as sock:
            say("the token on a resumed connection", "401:bad-token", reader.ask(sock, "GET /v1/jobs"))
    body_on_its_way(people["submitter"])


def body_on_its_way(who):
    """A request whose body is still to come was begun by somebody who may do nothing any more."""
    with who.connect() as sock:
        sock.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
        time.sleep(0.5)
        say("suspended while a body comes", 200, admin("POST", "/v1/devices/submitter/suspend")[0])
        try:
            sock.sendall(b"}")
        except OSError:
            pass
        answer = http.client.HTTPResponse(sock, method="POST")
        answer.begin()
        say("what was begun before", 403, answer.status)
    say("active again", 200, admin("POST", "/v1/devices/submitter/resume")[0])


def csr(key, make):
    if make:
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True, capture_output=True)
    der = subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=x", "-outform", "DER"], check=True, capture_output=True)
    return base64.b64encode(der.stdout).decode()


def rejoin():
    before = admin("GET", "/v1/devices/turning")[1]
    token = admin("POST", "/v1/tokens", {"role": "submitter"})[1]["token"]
    plain = Who("joining", token=token)
    with plain.connect() as sock:
        say("joins again", "201", plain.ask(sock, 'POST /v1/join {"csr":"' + csr(f"{FLEET}/turning/key.pem", False) + '"}'))
    device = admin("GET", "/v1/devices/turning")[1]
    say("the same device", (before["device"], "submitter"), (device["device"], device["role"]))


def rotate(who):
    with who.connect() as sock:
        say("rotates", "201", who.ask(sock, 'POST /v1/rotate {"csr":"' + csr(f"{FLEET}/turning/new.pem", True) + '"}'))


def main():
    def read(name):
        return open(f"{FLEET}/token.{name}").read().strip()

    everyone = [Who("anyone")]
    everyone += [Who(n, home=f"{FLEET}/{n}") for n in COLUMNS[1:5] + list(REFUSED)[:6]]
    everyone += [Who(n, token=read(n)) for n in COLUMNS[5:] + list(REFUSED)[6:]]
    table(everyone)
    # The same over TLS 1.2, where the present version is another one: sessions are kept otherwise there.
    with everyone[0].connect() as sock:
        newer = sock.version() != "TLSv1.2"
    if newer:
        v12 = ssl.TLSVersion.TLSv1_2
        table([Who(n, home=f"{FLEET}/{n}", version=v12) for n in COLUMNS[1:5] + list(REFUSED)[:6]])
    people = {w.name: w for w in everyone}
    people["turning"] = Who("turning", home=f"{FLEET}/turning")
    rounds_without_devices(people)
    names_of_others(people)
    owners(people)
    changes(people)
    print(f"{checks} checks")
    return failures > 0


sys.exit(main())
