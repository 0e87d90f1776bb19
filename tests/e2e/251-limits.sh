#!/bin/sh
# stages: gcc openssl thread
# Crowds: what one identity may ask and hold open, what happens to those without one when all places are taken, silent handshakes
# by the hundred, and an upload that dawdles; long looks through the audit log, and quotas under twenty requests at once. Devices go on meanwhile.
#   BUILD=build/mbedtls tests/e2e/251-limits.sh
set -u
FLEET_NAME=251-limits
. tests/e2e/common.sh
failed=0

say() { # say WHAT WANT GOT; * in WANT fits anything
	# shellcheck disable=SC2254 # WANT is a pattern
	case $3 in $2) echo "ok: $1"; return ;; esac
	printf 'FAILED: %s\n  want: %s\n  got:  %s\n' "$1" "$2" "$3"
	failed=1
}
ask() { # ask WHO PATH [CURL_OPTION...]: the status; the answer's head is in $FLEET/head
	who=$1 path=$2
	shift 2
	[ "$who" = none ] || set -- --cert "$FLEET/$who/cert.pem" --key "$FLEET/$who/key.pem" "$@"
	curl -sS --max-time $((20 * TEST_PATIENCE)) --cacert "$FLEET/dev/ca.pem" -o "$FLEET/out" -D "$FLEET/head" -w '%{http_code}' "$@" \
		"$URL$path" 2>>"$FLEET/curl.log"
}
limit() { # limit KEY VALUE...: sets them and starts anew
	while [ $# -gt 0 ]; do
		sed -i "s/^$1 = .*/$1 = $2/" "$FLEET/rivuletd.conf"
		shift 2
	done
	fleet_kill TERM "$DAEMON_PID"
	fleet_restart
}
crowd() { # crowd: Python on standard input, with the above
	cat "$FLEET/crowd.py" - >"$FLEET/now.py"
	DAEMON_PID=$DAEMON_PID timeout $((60 * TEST_PATIENCE)) python3 -S -E "$FLEET/now.py" "$PORT" "$FLEET" 2>&1
}

fleet_start "io_threads = 2
[limits]
requests_per_minute = 40
connections_per_device = 3
connections = 10000
handshakes = 256
handshakes_per_address = 64
strangers_cpu = 100
header_timeout = 600
slow_upload_time = 60
owner_jobs = 1000
owner_model_bytes = 256G
owner_bytes_per_day = 50M"
fleet_join dev ""
fleet_join other ""

# What the Python below shares: connections as WHO or as nobody, from an address.
cat >"$FLEET/crowd.py" <<'END'
import os, socket, ssl, sys, time

PORT, HOME = int(sys.argv[1]), sys.argv[2]


def plain(source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", PORT), 20, (source, 0))


def secure(who=None, source="127.0.0.1"):
    c = ssl.create_default_context(cafile=HOME + "/dev/ca.pem")
    c.check_hostname = False
    if who:
        c.load_cert_chain(f"{HOME}/{who}/cert.pem", f"{HOME}/{who}/key.pem")
    return c.wrap_socket(plain(source))


def get(s, path="/v1/status"):
    s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    return answer(s)


def answer(s):
    text = b""
    while b"\r\n\r\n" not in text:
        piece = s.recv(65536)
        if not piece:
            return "closed"
        text += piece
    return text.split()[1].decode()


def is_open(s, patience=0.05):
    s.settimeout(patience)
    try:
        return s.recv(1) != b""
    except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def left_of(crowd, most):
    """How many are open, once it is no more than most, or will not be."""
    end = time.time() + 60
    while True:
        left = sum(is_open(s, 0) for s in crowd)
        if left <= most or time.time() > end:
            return left
        time.sleep(0.1)


def spent():
    """Nanoseconds of processor time of the doors, and of the other threads."""
    took = [0, 0]
    for task in os.scandir("/proc/%s/task" % os.environ["DAEMON_PID"]):
        with open(task.path + "/comm") as f:
            other = f.read() != "door\n"
        with open(task.path + "/schedstat") as f:
            took[other] += int(f.read().split()[0])
    return took
END

# --- requests of one identity
say "so many requests and no more" "200 x 40, 429 x 5" "$(crowd <<'END'
got = []
for i in range(45):
    if i % 9 == 0:
        s = secure("dev")
    got.append(get(s))
    if got[-1] != "200":
        s = secure("dev")
print("200 x %d, 429 x %d" % (got.count("200"), got.count("429")))
END
)"
say "the problem" 429 "$(ask dev /v1/status)"
say "its name" "*too-many-requests*" "$(cat "$FLEET/out")"
wait_s=$(sed -n 's/^Retry-After: \([0-9]*\).$/\1/p' "$FLEET/head")
[ "${wait_s:-0}" -ge 1 ] && [ "$wait_s" -le 61 ] && wait_s=good
say "when to ask again" good "$wait_s"
say "another device is served" 200 "$(ask other /v1/status)"
say "and the administrator" "*" "$(curl_admin /v1/status)"
say "a connection that was told to wait is not read for a second" "429 yes" "$(crowd <<'END'
s = secure("dev")
first = get(s)
start = time.time()
get(s)
print(first, "yes" if time.time() - start > 0.7 else "no, %.3f s" % (time.time() - start))
END
)"
limit requests_per_minute 40
say "refusals count tenfold: 404, then too many" "404 404 404 404 429" "$(crowd <<'END'
s = secure("dev")
print(*[get(s, "/v1/none") for i in range(5)])
END
)"
limit requests_per_minute 40
say "and more if the body was large: of 60 kB three, then too many" "400 400 400 429" "$(crowd <<'END'
for i in range(4):
    s = secure("dev")
    s.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60000)
    print(answer(s), end=" " if i < 3 else "\n")
END
)"
limit requests_per_minute 40
say "what is taken counts by its length, too" "200 200 200 200 200 429" "$(crowd <<'END'
import json

offer = json.dumps({"agent": "9.9", "protocol": 1, "data": [], "trainers": ["builtin"], "codecs": ["f32"], "layers": [], "memory_bytes": 1,
                    "held_models": [], "time_ms": int(time.time() * 1000), "disk_free_bytes": 1, "machine": "0" * 64, "wait": 0}).encode()
for i in range(6):
    s = secure("dev")
    s.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n" + offer.ljust(60000))
    print(answer(s), end=" " if i < 5 else "\n")
END
)"
limit requests_per_minute 0
say "no limit" "200 x 200" "$(crowd <<'END'
s = secure("dev")
print("200 x", [get(s) for i in range(200)].count("200"))
END
)"

# --- whose time it is: strangers are served by the doors, devices by the threads behind
say "strangers cost the doors' time, a device that of the rooms behind" "0.9 or more, 0.9 or more" "$(crowd <<'END'
def share(before, after, which):
    more = [b - a for a, b in zip(before, after)]
    part = more[which] / max(sum(more), 1)
    return "0.9 or more" if part >= 0.9 else "%.2f of %d ms" % (part, sum(more) / 1e6)


dev = secure("dev")
get(dev)
first = spent()
for i in range(50):
    with secure() as s:
        get(s, "/healthz")
second = spent()
for i in range(800):
    get(dev)
print(share(first, second, 0) + ",", share(second, spent(), 1))
END
)"

# --- and how much of it: a share, even where priorities do not count; a device's handshakes are not a stranger's
limit io_threads 1 strangers_cpu 1
say "handshakes of strangers get their share, those of a device what they need" "less than a tenth, half as many again" "$(crowd <<'END'
def shake(who, until):
    """Handshakes, one after the other, and the door's share of a core meanwhile."""
    count, start, before = 0, time.time(), spent()[0]
    while not until(start, before):
        with secure(who) as s:
            get(s, "/v1/status" if who else "/healthz")
        count += 1
    return count, (spent()[0] - before) / (time.time() - start) / 1e9


shake(None, lambda start, before: spent()[0] - before > 2.6e8 or time.time() > start + 20)
# Both are held up by whoever else has the processors at that moment: one of three is undisturbed.
for _ in range(3):
    crowd, share = shake(None, lambda start, before: time.time() > start + 3)
    fleet, spare = shake("dev", lambda start, before: time.time() > start + 3)
    if share < 0.1 and fleet >= 1.5 * crowd:
        break
# Where a step of a handshake takes ten times as long (a sanitizer), so does the wait until it is known whose it was.
slow = share * 3 / max(crowd, 1) > 0.005
print("less than a tenth," if share < 0.1 else "%.2f," % share, "half as many again" if fleet >= 1.5 * crowd or slow else "%d and %d" % (crowd, fleet))
END
)"
limit strangers_cpu 20
say "requests of strangers have their share, too, and keep nobody out" "less than four tenths, 5 times 200, a stranger 200" "$(crowd <<'END'
import threading

JOIN = b"POST /v1/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
LARGE = b"GET /v1/ca HTTP/1.1\r\nHost: localhost\r\nX: " + 7000 * b"x" + b"\r\n\r\n"


def shout(s):
    """More requests than will ever be answered."""
    try:
        s.sendall(20 * (JOIN + 14 * LARGE))
    except OSError:
        pass


crowd = [secure(None, "127.0.0.%d" % (2 + i)) for i in range(60)]
for s in crowd:
    threading.Thread(target=shout, args=(s,), daemon=True).start()
time.sleep(1)
start, before = time.time(), spent()[0]
time.sleep(3)
share = (spent()[0] - before) / (time.time() - start) / 1e9
print("less than four tenths," if share < 0.4 else "%.2f," % share, "5 times", *{get(secure("dev")) for i in range(5)}, end=", ")
last = secure(None, "127.0.0.99")
last.settimeout(60)
print("a stranger", get(last, "/healthz"))
sys.stdout.flush()
os._exit(0)
END
)"
limit io_threads 2 strangers_cpu 100

# --- connections of one identity
say "so many connections and no more" "200 200 200 429 closed, then 200" "$(crowd <<'END'
all = [secure("dev") for i in range(4)]
got = [get(s) for s in all]
end = "open" if is_open(all[3], 20) else "closed"
all[0].close()
late, then = time.time() + 60, ""
while then != "200" and time.time() < late:
    time.sleep(0.2)
    then = get(secure("dev"))
print(*got, end + ", then", then)
END
)"

# --- a reader that does not read: a page of the log holds eight large documents, 8 MiB when it is printed whole
for name in reader reader2 submitter submitter2; do
	fleet_admin token create --access --role "${name%2}" -o "$FLEET/$name" >/dev/null || fleet_fail "no token"
done
limit connections_per_device 64
# A sanitizer keeps what was freed for a while.
export MOST=96
[ -z "${SAN:-}" ] || MOST=400
say "answers that nobody reads hold bounded memory" "429, $MOST MiB or less, then 200" "$(crowd <<'END'
import http.client, json, re

STATUS, MOST = "/proc/%s/status" % os.environ["DAEMON_PID"], int(os.environ["MOST"])
JOB = {"model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
       "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
       "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}}, "round": {"goal": 1}}


class Admin(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(HOME + "/admin.sock")


def memory(key):
    with open(STATUS) as f:
        return int(re.search(key + r":\s+(\d+)", f.read()).group(1)) // 1024


def ask():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20)
    s.connect(("127.0.0.1", PORT))
    c = ssl.create_default_context(cafile=HOME + "/dev/ca.pem")
    c.check_hostname = False
    s = c.wrap_socket(s)
    s.sendall(b"GET /v1/audit HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN)
    return s


with open(HOME + "/reader") as f:
    TOKEN = f.read().strip().encode()
admin = Admin("localhost")
for i in range(8):
    admin.request("POST", "/v1/jobs", json.dumps({"name": "long-%d" % i, **JOB, "params": {"note": "x" * 900000}}))
    a = admin.getresponse()
    text = a.read()
    if a.status != 201:
        print(a.status, text[:200])
with open("/proc/%s/clear_refs" % os.environ["DAEMON_PID"], "w") as f:
    f.write("5")
before, last, now, end = memory("VmRSS"), -1, 0, time.time() + 60
crowd = [ask() for i in range(60)]
# All have been answered, or wait: nothing changes any more.
while last != now and time.time() < end:
    last = now
    time.sleep(0.5)
    now = memory("VmHWM")
first = [answer(s) for s in crowd]
for s in crowd:
    s.close()
then = ""
while then != "200" and time.time() < end:
    time.sleep(0.2)
    then = answer(ask())
print("429" if "429" in first else "all 200", "%d MiB or less" % MOST if now - before <= MOST else "%d MiB" % (now - before), "then " + then, sep=", ")
END
)"

limit requests_per_minute 600
say "a list counts by its length" "200, 8 MiB or more, then 429" "$(crowd <<'END'
def ask():
    s.sendall(b"GET /v1/audit HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN)


with open(HOME + "/reader") as f:
    TOKEN = f.read().strip().encode()
s = secure()
ask()
first, end, size = answer(s), b"", 0
while not end.endswith(b"\r\n0\r\n\r\n"):
    piece = s.recv(65536)
    end, size = (end + piece)[-7:], size + len(piece)
ask()
print(first, "8 MiB or more" if size >= 7000000 else size, "then " + answer(s), sep=", ")
END
)"
limit requests_per_minute 0

# --- a long audit log: entries of another day, copied, with the numbers that they would have
fleet_kill TERM "$DAEMON_PID"
python3 -S -E - "$FLEET/state/rivulet.db" <<'END' || fleet_fail "no long log"
import sqlite3, sys

db = sqlite3.connect(sys.argv[1])
seq, link, body = db.execute("SELECT seq, link, body FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
for n in range(seq + 1, 30001):
    db.execute("INSERT INTO audit (seq, link, body) VALUES (?, ?, ?)", (n, link[:8] + n.to_bytes(8, "little") + link[16:], body))
    said = '{"by":"token:0123456789abcdef owner:%s"}' % ("last" if n == 30000 else "somebody")
    db.execute("INSERT INTO audit_detail (seq, place, salt, data) VALUES (?, 0, zeroblob(32), ?)", (n, said.encode()))
db.commit()
END
fleet_restart
# What the Python below shares: answers with their bodies, as who has a token.
cat >>"$FLEET/crowd.py" <<'END'


def request(s, who, method, path, body=None):
    with open(f"{HOME}/{who}") as f:
        token = f.read().strip()
    length = "" if body is None else "Content-Length: %d\r\n" % len(body)
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{length}\r\n".encode() + (body or b""))
    return reply(s)


def reply(s):
    """Status, head and body of one answer."""
    f = s.makefile("rb")
    status, head, body = f.readline().split()[1].decode(), {}, b""
    while (line := f.readline().strip()):
        name, _, value = line.decode().partition(": ")
        head[name.lower()] = value
    if "chunked" in head.get("transfer-encoding", ""):
        while (size := int(f.readline(), 16)):
            body += f.read(size)
            f.readline()
        f.readline()
    else:
        body = f.read(int(head.get("content-length", 0)))
    return status, head, body


def at_once(count, act):
    """What `count` threads that begin together get, counted."""
    import collections, threading
    got, start = collections.Counter(), threading.Barrier(count)

    def run(i):
        s = secure()
        s.settimeout(60)
        got[act(s, i, start)] += 1

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return ", ".join("%d x %s" % (n, what) for what, n in sorted(got.items()))
END
say "who picks few of many is answered by the page, with where the next begins" "4 pages, the last entry is found" "$(crowd <<'END'
import json

s, at, pages, found = secure(), 1, 0, []
while at:
    status, _, body = request(s, "reader", "GET", f"/v1/audit?by=owner:last&from={at}")
    page = json.loads(body)
    pages, found, before, at = pages + 1, found + page["entries"], at, page["next"]
    if at and not before < at <= before + 10000:
        print("from", before, "on to", at)
print("%d pages, the last entry is found" % pages if [e["seq"] for e in found] == [30000] else found)
END
)"
limit requests_per_minute 599
say "and pays for what was looked at: one page is more than a minute's requests" "200 429, another reader 200" "$(crowd <<'END'
got = [request(secure(), "reader", "GET", path)[0] for path in ("/v1/audit?by=owner:nobody", "/v1/jobs")]
print(*got, end=", another reader ")
print(request(secure(), "reader2", "GET", "/v1/jobs")[0])
END
)"
say "so does who puts a model that is there already, which is read for numbers that are none" "201, 200, then 429" "$(crowd <<'END'
import hashlib, json

SIZE = 64 << 20
head = json.dumps({"w": {"dtype": "F32", "shape": [SIZE // 4], "data_offsets": [0, SIZE]}}).encode()
body = len(head).to_bytes(8, "little") + head + bytes(SIZE)
with open(HOME + "/submitter") as f:
    token = f.read().strip()


def put():
    s = secure()
    s.settimeout(60)
    s.sendall((f"PUT /v1/models/{hashlib.sha256(body).hexdigest()} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
               f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n").encode())
    status = answer(s)
    if status == "100":
        s.sendall(body)
        status = answer(s)
    s.close()
    return status


got = [put() for _ in range(40)]
print(got[0], got[1], "then " + got[-1], sep=", ")
END
)"
for model in $(cd "$FLEET/state/models" && find . -type f -size +60M | cut -c3-); do
	fleet_admin model delete "$model" >/dev/null || fleet_fail "the large model stays"
done
limit requests_per_minute 0
say "one such look of an identity at a time, whoever else looks" "1 x 200, 19 x 429 1, 200" "$(crowd <<'END'
def look(s, i, start):
    start.wait()
    status, head, _ = request(s, "reader", "GET", "/v1/audit?by=owner:nobody")
    return status + (" " + head["retry-after"] if status == "429" else "")


# A page takes a while. Where threads come late to find it busy, all ask again.
for _ in range(20):
    got = at_once(20, look)
    if got == "1 x 200, 19 x 429 1":
        break
print(got + ",", request(secure(), "reader2", "GET", "/v1/audit?by=owner:nobody")[0])
END
)"
say "the command line follows all pages" "owner:last" "$("$RIVULET" audit --by owner:last --url "$URL" --token-file "$FLEET/reader" --ca "$FLEET/dev/ca.pem" 2>&1 | sed -n 's/.*\(owner:last\).*/\1/p')"

# --- quotas under twenty requests at once
limit owner_jobs 5 owner_model_bytes 5500K
say "jobs of one owner" "5 x 201, 15 x 409" "$(crowd <<'END'
import json

JOB = {"model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out": 10}], "loss": "cross_entropy"},
       "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
       "local": {"epochs": 1, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}}, "round": {"goal": 1}}


def submit(s, i, start):
    start.wait()
    return request(s, "submitter", "POST", "/v1/jobs", json.dumps({"name": "job-%d" % i, **JOB}).encode())[0]


print(at_once(20, submit))
END
)"
say "models of another owner: those that begin, not those that end" "5 x 201, 15 x 409" "$(crowd <<'END'
import hashlib, json

SIZE = 1 << 20


def upload(s, i, start):
    head = json.dumps({"w": {"dtype": "F32", "shape": [SIZE // 4], "data_offsets": [0, SIZE]}}).encode()
    body = len(head).to_bytes(8, "little") + head + bytes([i]) * SIZE
    with open(HOME + "/submitter2") as f:
        token = f.read().strip()
    start.wait()
    s.sendall((f"PUT /v1/models/{hashlib.sha256(body).hexdigest()} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
               f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n").encode())
    status = answer(s)
    if status != "100":
        start.wait()
        return status
    # Nobody ends before all have begun.
    start.wait()
    s.sendall(body)
    return answer(s)


print(at_once(20, upload))
END
)"
fleet_admin token create --uses 3 -o "$FLEET/join" >/dev/null || fleet_fail "no token"
say "a token that may be used three times" "3 x 201, 17 x 401" "$(crowd <<'END'
import base64, json, subprocess

CSRS = [base64.b64encode(subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x",
        "-keyout", "/dev/null", "-outform", "DER"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout).decode() for i in range(20)]


def join(s, i, start):
    start.wait()
    return request(s, "join", "POST", "/v1/join", json.dumps({"csr": CSRS[i], "name": "crowd-%d" % i}).encode())[0]


print(at_once(20, join))
END
)"

# --- what one owner writes in a day
limit owner_bytes_per_day 60K
say "set, repeated, and pause and stop above the limit; after a restart the same" "some 200, 429, again 200, pause 200, resume 429, stop 200" "$(crowd <<'END'
import json

s = secure()
jobs = [j for j in json.loads(request(s, "submitter", "GET", "/v1/jobs")[2])["jobs"] if j["name"].startswith("job-")]
job, got = "/v1/jobs/" + jobs[0]["job"], []
while not got or got[-1] == "200":
    said = json.dumps({"stop.rounds": 1000 + len(got)}).encode()
    got.append(request(s, "submitter", "POST", job + "/set", said)[0])
s = secure()
again = request(s, "submitter", "POST", job + "/set", json.dumps({"stop.rounds": 1000 + len(got) - 2}).encode())[0]
print("some 200," if 4 <= got.count("200") <= 40 else got, got[-1] + ", again", again + ", pause", request(s, "submitter", "POST", job + "/pause")[0] + ", resume",
      request(s, "submitter", "POST", job + "/resume")[0], end="")
print(", stop", request(secure(), "submitter", "POST", job + "/stop")[0])
END
)"
limit owner_bytes_per_day 60K
say "a restart forgets nothing of it" 429 "$(crowd <<'END'
import json

s = secure()
jobs = [j for j in json.loads(request(s, "submitter", "GET", "/v1/jobs")[2])["jobs"] if j["name"].startswith("job-") and j["state"] == "running"]
print(request(s, "submitter", "POST", "/v1/jobs/%s/set" % jobs[0]["job"], b'{"stop.rounds": 77}')[0])
END
)"
limit owner_bytes_per_day 50M owner_jobs 1000 owner_model_bytes 256G

# --- all places taken by people without an identity: the oldest of them makes room
limit connections 30
say "idle strangers make room, devices stay" "200 30 strangers or fewer, 200 200" "$(crowd <<'END'
dev = secure("dev")
first = get(dev)
crowd = []
for i in range(60):
    try:
        s = secure(None, "127.0.0.%d" % (2 + i % 8))
        get(s, "/healthz")
        crowd.append(s)
    except OSError:
        pass
left = left_of(crowd, 30)
print(first, "30 strangers or fewer," if left <= 30 and len(crowd) >= 55 else "%d of %d" % (left, len(crowd)), get(dev), get(secure("other")))
END
)"

say "devices have taken all places: one more is closed, the administrator gets in" "30 x 200, closed, 200" "$(crowd <<'END'
crowd = [secure("dev") for i in range(30)]
got = [get(s) for s in crowd]
try:
    more = get(secure("other"))
except OSError:
    more = "closed"
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
try:
    s.connect(HOME + "/admin.sock")
    admin = get(s)
except OSError:
    admin = "closed"
print("%d x 200" % got.count("200"), more, admin, sep=", ")
END
)"

# --- silent handshakes from one address, on all threads, and from many: all of the budget
limit connections 10000
say "silent handshakes of one address are half of them all" "128, another address 200" "$(crowd <<'END'
crowd = [plain() for i in range(200)]
left = left_of(crowd, 128)
print("%d, another address" % left, get(secure("dev", "127.0.0.2")))
END
)"
say "silent handshakes take nobody's place" "200 within the budget" "$(crowd <<'END'
crowd = [plain("127.0.0.%d" % (2 + i % 30)) for i in range(1000)]
left = left_of(crowd, 256)
got = get(secure("dev"))
print(got, "within the budget" if left <= 256 else left)
END
)"
limit header_timeout 1
say "and are closed when their time is over" "0 of 50" "$(crowd <<'END'
crowd = [plain("127.0.0.2") for i in range(50)]
print(left_of(crowd, 0), "of 50")
END
)"

# --- an upload that dawdles
limit header_timeout 60 slow_upload_time 2
say "a slow body is cut" "cut" "$(crowd <<'END'
s = secure("dev")
s.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
start, end = time.time(), "sent all"
for i in range(600):
    if not is_open(s):
        end = "cut"
        break
    try:
        s.sendall(b" ")
    except OSError:
        end = "cut"
        break
    time.sleep(0.2)
print(end if time.time() - start > 1.5 else "at once")
END
)"
say "nothing of all this is an error" 0 "$(grep -c ' error ' "$FLEET/rivuletd.log")"
fleet_end
exit $failed
