"""flips.py RIVULETD STATE... : flips one bit of a copy of a coordinator's state, again and again, and looks whether `rivuletd check`
finds it. What it does not find must not matter: the database says the same in every row, a key or certificate is the same key, a file
is none of what a coordinator needs. FLIPS=n trials, SEED=n, START=n: each nth state is also started, and must either say what is wrong,
or answer as if nothing were. Prints a table; ends with 1 if something was missed.
"""
import base64, collections, hashlib, json, os, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, time

import copied_state
from admin import Admin

RIVULETD, STATES = sys.argv[1], sys.argv[2:]
FLIPS, SEED, START = (int(os.environ.get(*v)) for v in (("FLIPS", "150"), ("SEED", str(time.time_ns() % 1000000)), ("START", "20")))
PATIENCE = int(os.environ.get("TEST_PATIENCE", "1"))
KINDS = "database", "log", "models", "spool", "keys"
random.seed(SEED)
work = tempfile.mkdtemp(prefix="flips.", dir=os.environ.get("FLEET"))


def kind_of(name):
    if name == "rivulet.db":
        return "database"
    if name == "rivulet.db-wal":
        return "log"
    folder = name.split("/")[0]
    return {"models": "models", "spool": "spool", "kept": "spool", "keys": "keys"}.get(folder)


def files(state):
    for folder, _, names in os.walk(state):
        for name in names:
            path = os.path.join(folder, name)
            yield os.path.relpath(path, state), os.path.getsize(path)


def copy(state, to, changed, link):
    """All files, where `link` is those that nobody writes to as second names."""
    for name, _ in files(state):
        target = os.path.join(to, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if link and name != changed and not name.startswith("rivulet.db"):
            os.link(os.path.join(state, name), target)
        elif not name.endswith("-shm"):
            shutil.copy2(os.path.join(state, name), target)


def flip(path, bit):
    with open(path, "r+b") as f:
        f.seek(bit // 8)
        byte = f.read(1)[0]
        f.seek(bit // 8)
        f.write(bytes([byte ^ 1 << bit % 8]))


def check(state):
    p = subprocess.run([RIVULETD, "check", "--json", state], capture_output=True)
    if p.returncode not in (0, 3, 4, 7):
        return None, "check ended with %d: %s" % (p.returncode, p.stderr.decode(errors="replace"))
    kinds = sorted({f["kind"] for f in json.loads(p.stdout)["findings"] if f["where"] not in quiet})
    return p.returncode, kinds


def rows(path):
    """What the database says, by SQLite's own reading; the log counts."""
    db = sqlite3.connect(path)
    db.text_factory = bytes
    told = [db.execute("PRAGMA " + p).fetchone() for p in ("user_version", "application_id", "journal_mode")]
    for name, sql in db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall():
        told.append((name, sql))
    for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall():
        if name == b"seen":
            continue
        columns = [c[1] for c in db.execute("PRAGMA table_info(%s)" % name.decode())]
        # When a token was last used is lost without harm, and has no checksum.
        columns = [c.decode() for c in columns if c not in (b"last_used", b"last_address")]
        told += sorted(db.execute("SELECT %s FROM %s" % (", ".join(columns), name.decode())), key=repr)
    db.execute("BEGIN IMMEDIATE")
    db.close()
    return told


def der(path):
    """The bytes of a PEM file, as its readers take them; of another file, all."""
    with open(path, "rb") as f:
        data = f.read()
    m = re.search(rb"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", data, re.S)
    if not m:
        return data
    # Of a key (RFC 5915) the number is all; its public half is in the certificate, and was compared.
    data = base64.b64decode(m.group(2))
    return data[7:39] if b"PRIVATE" in m.group(1) else data


def harmless(state, was, said, name):
    """Why a flip that was not found cannot matter; None if it can."""
    kind = kind_of(name)
    try:
        if kind in ("database", "log"):
            return "no row has changed" if rows(os.path.join(state, "rivulet.db")) == said else None
        if kind == "keys":
            return "the same key" if der(os.path.join(state, name)) == der(os.path.join(was, name)) else None
    except (sqlite3.Error, ValueError):
        return None
    if name.endswith(".part"):
        return "a part is hashed when it is taken up"
    return None


# --- a coordinator on it

VOLATILE = {"deadline_at", "last_contact", "last_seen", "last_used", "last_address", "reason", "deadline", "deadline_s", "age_s", "seconds", "opened_at",
            "agent", "offline_s", "clock_offset", "disk_free", "refused", "refused_at", "aborted", "aborted_at", "machine", "online",
            "state_since", "forecast", "waiting", "reopened", "warnings", "heard", "cloned", "silent", "expires", "left"}


def plain(v):
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items() if k not in VOLATILE}
    return [plain(x) for x in v] if isinstance(v, list) else v


def differences(a, b, at=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for k in sorted(set(a) | set(b)):
            yield from differences(a.get(k), b.get(k), "%s.%s" % (at, k))
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, "%s[%d]" % (at, i))
    elif a != b:
        yield "%s: %.60r, not %.60r" % (at, b, a)


def ask(path, what):
    c = Admin(path, 20 * PATIENCE)
    try:
        c.request("GET", what)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def answers(sock):
    told = {}
    for what in "/v1/devices", "/v1/tokens", "/v1/jobs":
        status, body = ask(sock, what)
        told[what] = (status, plain(json.loads(body)))
    for job in jobs:
        for what in "/v1/jobs/" + job, "/v1/jobs/%s/rounds" % job:
            status, body = ask(sock, what)
            told[what] = (status, plain(json.loads(body)))
    for model in models:
        status, body = ask(sock, "/v1/models/" + model)
        sound = hashlib.sha256(body).hexdigest() == model
        assert status != 200 or sound, "model %s was sent with other bytes" % model
        told[model] = status
    status, body = ask(sock, "/readyz")
    return told, status == 200


def start(state):
    """(answers, whether something was said of what is wrong)"""
    told, ready = None, True
    end = time.monotonic() + 30 * PATIENCE
    p, sock, log = copied_state.launch(RIVULETD, state, work, 30 * PATIENCE)
    try:
        while time.monotonic() < end and p.poll() is None and told is None:
            try:
                told, ready = answers(sock)
            except (ConnectionError, FileNotFoundError):
                time.sleep(0.02)
    finally:
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
        code = p.wait(60 * PATIENCE)
        if os.path.exists(sock):
            os.unlink(sock)
    with open(log, errors="replace") as f:
        text = f.read()
    loud = bool(re.search(r"^\S* ?(<[0-4]>)?(warn|error|critical) ", text, re.M) or re.search(r"(^|\n)(<[0-4]>|\S+ (warn|error) )", text))
    assert code in (0, 78, 1), "the coordinator ended with %d: %s" % (code, text[-2000:])
    return told, loud or not ready or (told is None and len(text) > 0)


def fresh(state, changed, link):
    to = os.path.join(work, "state")
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to, mode=0o700)
    copy(state, to, changed, link)
    return to


def main():
    global jobs, models, quiet
    found = collections.Counter()
    passed = collections.Counter()
    trials = collections.Counter()
    missed, wrong = [], []
    plans, base, said, told_rows, written = {}, {}, {}, {}, {}
    quiet = set()
    for state in STATES:
        to = fresh(state, None, False)
        code, kinds = check(to)
        assert code == 0, "an untouched state: %s %s" % (code, kinds)
        base[state] = kinds
        plans[state] = [(name, size) for name, size in files(state) if kind_of(name) and size > 0]
        with open(os.path.join(state, "rivulet.db"), "rb") as f:
            written[state] = [i for i, byte in enumerate(f.read()) if byte]
        db = sqlite3.connect(os.path.join(to, "rivulet.db"))
        jobs = [j.hex() for (j,) in db.execute("SELECT id FROM job ORDER BY created_at")]
        models = [m.hex() for (m,) in db.execute("SELECT id FROM model ORDER BY id")]
        db.close()
        told_rows[state] = rows(os.path.join(to, "rivulet.db"))
        to = fresh(state, None, False)
        said[state] = start(to)
        assert said[state][0] and not said[state][1], "an untouched state does not start silently"
    started = 0
    for trial in range(FLIPS):
        state = random.choice(STATES)
        kind = random.choice(sorted({kind_of(n) for n, _ in plans[state]}))
        some = [(n, s) for n, s in plans[state] if kind_of(n) == kind]
        name, size = random.choices(some, weights=[s for _, s in some])[0] if kind != "keys" else random.choice(some)
        bit = random.randrange(size * 8)
        # Most of a small database is empty pages: of two flips one is where there is something.
        if kind == "database" and random.random() < 0.5:
            bit = random.choice(written[state]) * 8 + bit % 8
        what = "%s bit %d of %s" % (os.path.basename(state), bit, name)
        to = fresh(state, name, True)
        flip(os.path.join(to, name), bit)
        trials[kind] += 1
        code, kinds = check(to)
        if code is None:
            missed.append(what + ": " + kinds)
            continue
        news = [k for k in kinds if k not in base[state]]
        if news:
            found[kind, code] += 1
        else:
            why = harmless(to, state, told_rows[state], name)
            if why:
                passed[kind, why] += 1
            else:
                missed.append(what)
        if trial % START == START - 1:
            to = fresh(state, name, False)
            flip(os.path.join(to, name), bit)
            started += 1
            try:
                told, loud = start(to)
            except (AssertionError, ValueError) as e:
                wrong.append("%s (%s): %s" % (what, news, e))
                continue
            if not loud and told != said[state][0]:
                differs = list(differences(said[state][0], told))[:5] if told else "no answer"
                wrong.append("%s (%s): silently other answers: %s" % (what, news, differs))
    print("%d flips, seed %d" % (FLIPS, SEED))
    for kind in KINDS:
        if trials[kind]:
            codes = ", ".join("%d with exit code %d" % (n, c) for (k, c), n in sorted(found.items()) if k == kind)
            others = ", ".join("%d: %s" % (n, w) for (k, w), n in sorted(passed.items()) if k == kind)
            print("%-9s %5d flips; found %s%s" % (kind, trials[kind], codes or "none", "; not found " + others if others else ""))
    print("%d coordinators started on them" % started)
    for line in missed:
        print("missed: " + line)
    for line in wrong:
        print("wrong: " + line)
    return 1 if missed or wrong else 0


try:
    sys.exit(main())
finally:
    shutil.rmtree(work, ignore_errors=True)
