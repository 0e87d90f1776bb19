"""odd_rows.py RIVULETD STATE: puts a value of another kind or length into one column of one row of a copy of a coordinator's database, again
and again, as no disk does, but an attacker who has had it, or a careless person: `rivuletd check` and a start read it to the end and end by
themselves, and check finds what is of another kind. ODD=n trials (0: each column and value), SEED=n, START=n: each nth is also started.
Prints a line; ends with 1 if something crashed, hung, or was missed.
"""
import json, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time

import copied_state

RIVULETD, STATE = sys.argv[1:]
ODD, SEED, START = (int(os.environ.get(*v)) for v in (("ODD", "40"), ("SEED", str(time.time_ns() % 1000000)), ("START", "20")))
PATIENCE = int(os.environ.get("TEST_PATIENCE", "1"))
random.seed(SEED)
work = tempfile.mkdtemp(prefix="odd.", dir=os.environ.get("FLEET"))
source = os.path.join(STATE, "rivulet.db")
VALUES = [None, "", b"", "x", b"\0", -1, 2**63 - 1, -(2**63), 1.5, float("inf"), "9" * 70000, b"\xff" * 70000, "\x1b[31m\xff{}", '{"', "[" * 500,
          b"\0" * 32, b"\0" * 16, b"\0" * 91]


def columns():
    db = sqlite3.connect("file:%s?mode=ro" % source, uri=True)
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name").fetchall():
        count = db.execute("SELECT count(*) FROM %s" % table).fetchone()[0]
        for column in db.execute("PRAGMA table_info(%s)" % table).fetchall() if count else []:
            yield table, column[1], count
    db.close()


def odd(old, value):
    """Bytes of the same kind, but not of the same length, beside those of another."""
    if value == "short":
        return old[:-1] if isinstance(old, (str, bytes)) else value
    return value


def put(path, table, column, row, value):
    """False: the column takes no such value. Checksums stay as they were: nobody counts them who writes past the program."""
    db = sqlite3.connect(path)
    triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    try:
        for name, _ in triggers:
            db.execute("DROP TRIGGER " + name)
        key = "rowid"
        try:
            rowid, old = db.execute("SELECT rowid, %s FROM %s LIMIT 1 OFFSET %d" % (column, table, row)).fetchone()
        except sqlite3.OperationalError:  # WITHOUT ROWID
            key = [c[1] for c in db.execute("PRAGMA table_info(%s)" % table) if c[5]]
            found = db.execute("SELECT %s, %s FROM %s LIMIT 1 OFFSET %d" % (column, ", ".join(key), table, row)).fetchone()
            old, rowid = found[0], found[1:]
        value = odd(old, value)
        if type(old) is type(value) and old == value:
            return False
        where = "rowid = ?" if key == "rowid" else " AND ".join("%s = ?" % k for k in key)
        db.execute("UPDATE %s SET %s = ? WHERE %s" % (table, column, where), (value,) + ((rowid,) if key == "rowid" else tuple(rowid)))
        # A column that is of numbers makes one of a text that looks like one.
        now = db.execute("SELECT %s FROM %s WHERE %s" % (column, table, where), (rowid,) if key == "rowid" else tuple(rowid)).fetchone()
        for _, sql in triggers:
            db.execute(sql)
        db.commit()
        return now is None or now[0] != old or type(now[0]) is not type(old)
    except (sqlite3.IntegrityError, sqlite3.OperationalError):
        return False
    finally:
        db.close()


def copy():
    state = os.path.join(work, "state")
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(STATE, state)
    return state


def check(state):
    p = subprocess.run([RIVULETD, "check", "--json", state], capture_output=True, timeout=60 * PATIENCE)
    assert p.returncode in (0, 3, 4, 7), "check ended with %d: %s" % (p.returncode, p.stderr.decode(errors="replace")[-3000:])
    assert b"\x1b" not in p.stdout + p.stderr, "check printed what steers a terminal"
    return json.loads(p.stdout)["findings"]


def start(state):
    p, _, log = copied_state.launch(RIVULETD, state, work, 5 * PATIENCE)
    if p.poll() is None:
        p.send_signal(signal.SIGTERM)
    code = p.wait(60 * PATIENCE)
    with open(log, "rb") as f:
        text = f.read()
    assert code in (0, 1, 78), "the coordinator ended with %d: %s" % (code, text[-3000:].decode(errors="replace"))
    assert b"\x1b" not in text, "the log has what steers a terminal"


def main():
    before = {(f["kind"], f["where"]) for f in check(copy())}
    trials = [(t, c, n, v) for t, c, n in columns() for v in VALUES + ["short"]]
    random.shuffle(trials)
    done = found = started = 0
    missed = []
    for table, column, count, value in trials:
        if ODD and done >= ODD:
            break
        state = copy()
        row = random.randrange(count)
        if not put(os.path.join(state, "rivulet.db"), table, column, row, value):
            continue
        what = "%s.%s of row %d becomes %.30r" % (table, column, row, value)
        try:
            more = {(f["kind"], f["where"]) for f in check(state)} - before
            if done % START == 0:
                start(state)
                started += 1
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as e:
            print("SEED=%d: %s: %s" % (SEED, what, e))
            return 1
        done += 1
        found += bool(more)
        # When a token was last used, and from where, is lost without harm, and has no checksum.
        if not more and (table, column) not in (("token", "last_used"), ("token", "last_address")):
            missed.append(what)
    print("odd rows: SEED=%d %d values, %d found by check, %d started" % (SEED, done, found, started))
    for what in sorted(missed)[:40]:
        print("  not found: " + what)
    return bool(missed)


code = main()
shutil.rmtree(work, ignore_errors=True)
sys.exit(code)
