"""Runs the command lines in the blocks of a page, in their order, on the system that tests/e2e/79-pages.sh has made.

A line is run as it stands, by a shell in one directory, and must end with exit code 0. The tables and functions below say what is otherwise:
NOT_COMMANDS are blocks that hold something else, NOT_RUN lines that cannot run here; before() is what must be so before a line, after() what must have
come of it. A line that none of them knows is run. One that they know and the page has no more is a fault, too."""
import json
import os
import re
import shlex
import subprocess
import sys
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

SYSTEM = os.environ["PAGE_SYSTEM"]
TOP = os.getcwd()
HERE = os.path.join(SYSTEM, "reader")
DEVICE = "/var/lib/rivulet-device"
URL = "https://coord.example:7443"
AS_DEVICE = "runuser -u rivulet-device -- "
PATIENCE = float(os.environ.get("TEST_PATIENCE") or 6)

# First words of blocks that hold no commands, and who looks at them.
NOT_COMMANDS = {
    "README.md": {"demo: rivuletd and 5 devices": "what the demo prints"},
    "docs/operators.md": {
        "backend rivulet": "for HAProxy, which tests do without",
        "proxy_cache_path": "for nginx: tests/e2e/45-mirror.sh runs it",
        "[Service]": "a unit: its ExecStart is run",
        "[Unit]": "a unit around a program of the reader's",
    },
}
NOT_RUN = {
    "README.md": {
        "make demo": "installs packages; what it runs is run",
        "make check": "runs this test",
        "apt install ./dist/bookworm/rivuletd_*.deb ./dist/bookworm/rivulet_*.deb": "tests/package/install does",
    },
    "docs/operators.md": {},
}


class Hook(NamedTuple):
    line: str
    nth: int
    run: Callable[[str], None]


words: Dict[str, str] = {"/backup/": "/srv/backup/"}  # of the page: of this system
hooks: Dict[str, Dict[str, List[Hook]]] = {page: {"before": [], "after": []} for page in NOT_RUN}
codes: Dict[str, int] = {}
timeouts: Set[str] = set()


def fail(text: str) -> None:
    print("79-pages: failed: " + text)
    for name in ("rivuletd", "rivulet"):
        path = "%s/units/%s.log" % (SYSTEM, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                print("--- %s:\n%s" % (name, "".join(f.readlines()[-12:])))
    sys.exit(1)


def sh(line: str, code: Optional[int] = 0) -> str:
    """Runs a line; what it says on both outputs. With None any exit code will do."""
    with open(os.path.join(SYSTEM, "said"), "w+", encoding="utf-8", errors="replace") as said:
        try:
            done = subprocess.run(["sh", "-ec", line], cwd=HERE, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=60 * PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            fail("%s: not within %g s" % (line, 60 * PATIENCE))
        said.seek(0)
        text = said.read()
    if code is not None and done.returncode != code:
        fail("%s: exit code %d, not %d: %s" % (line, done.returncode, code, text))
    return text


def within(what: str, condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20 * PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail("%s: not within %g s" % (what, 20 * PATIENCE))
        time.sleep(0.1)


def hook(page: str, when: str, line: str, nth: int) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    def add(f: Callable[[str], None]) -> Callable[[str], None]:
        hooks[page][when].append(Hook(line, nth, f))
        return f

    return add


def says(page: str, line: str, *patterns: str, nth: int = 1) -> None:
    def look(text: str) -> None:
        for pattern in patterns:
            if not re.search(pattern, text, re.M):
                fail("%s does not say %s: %s" % (line, pattern, text))

    hooks[page]["after"].append(Hook(line, nth, look))


# --- what lines need


def show(job: str) -> Dict[str, object]:
    return json.loads(sh("rivulet job show --json " + job))


def join(name: str, home: str, *labels: str) -> None:
    sh("rivulet token create %s -o other.token" % " ".join("--label " + label for label in labels))
    sh("rivulet join %s --token-file other.token --name %s --home %s" % (URL, name, home))
    sh("rm other.token")


def submit(name: str, rounds: int) -> str:
    """Gives the fleet a job, and waits for its second round."""
    document = {
        "name": name,
        "model": {"layers": [{"type": "flatten"}, {"type": "linear", "name": "fc", "out": 10}], "loss": "cross_entropy"},
        "data": {"name": "digits", "shape": [1, 28, 28], "classes": 10},
        "local": {"steps": 2, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.1}},
        "round": {"goal": 1, "deadline_s": 3600, "pick": "sample", "sample_s": 0.1},
        "stop": {"rounds": rounds},
    }
    with open(os.path.join(HERE, "job.json"), "w", encoding="utf-8") as f:
        json.dump(document, f)
    job = sh("rivulet job submit job.json 2>/dev/null").split()[0]
    within("two rounds of " + name, lambda: int(str(show(job)["rounds_committed"])) >= 2)
    return job


def device_id(name: str) -> str:
    return str(json.loads(sh("rivulet device show --json " + name))["device"])


def agent_waits(name: str) -> None:
    within(name + " waits for a job", lambda: re.search(name + r" .*\bno-job\b", sh("rivulet device list")))


def configure(text: str) -> None:
    sh("printf '%%s\\n' %s >>/etc/rivulet/rivuletd.conf; systemctl reload rivuletd" % shlex.quote(text))


# --- README.md

PAGE = "README.md"


@hook(PAGE, "after", "make demo", 1)
def _demo(_: str) -> None:
    build = os.path.join(TOP, os.environ.get("BUILD") or "build/mbedtls")
    text = sh("cd %s && BUILD=%s DEMO_DEVICES=2 DEMO_ROUNDS=2 DEMO_TARGET=0.1 tests/demo" % (shlex.quote(TOP), shlex.quote(build)))
    if "demo: ok: accuracy" not in text:
        fail("tests/demo: " + text)


JOIN = AS_DEVICE + "rivulet join https://coord.example:7443 --token-file - --name gate1 --home /var/lib/rivulet-device <token"
says(PAGE, JOIN, "joined .* as gate1")
hook(PAGE, "after", "systemctl enable --now rivulet", 1)(lambda _: agent_waits("gate1"))

# --- docs/operators.md, from above to below

PAGE = "docs/operators.md"

INIT = "(umask 077; runuser -u rivulet -- rivuletd init --name coord.example --name 192.0.2.7 >token)"
# A device looks again soon.
hook(PAGE, "before", INIT, 1)(lambda _: sh("printf '[limits]\\nlong_poll = 1\\nretry_after = 1\\n' >/etc/rivulet/rivuletd.conf") and None)
says(PAGE, "rivulet status", ", ready$")


@hook(PAGE, "after", "rivulet token list", 1)
def _token(text: str) -> None:
    words["ID"] = re.findall(r"^([0-9a-f]+) .*north-", text, re.M)[0]


says(PAGE, "rivulet join https://coord.example:7443 --token-file admin.token --home ~/.rivulet", "role admin")


@hook(PAGE, "before", "rivulet device list --where site=north --reason no-job", 1)
def _fleet(_: str) -> None:
    sh("rivulet token create --label site=north,kind=gateway -o pump.token")
    sh(AS_DEVICE + "rivulet join %s --token-file - --name pump-1 --home %s <pump.token" % (URL, DEVICE))
    sh("printf '[data digits]\\nformat = glyphs\\ncount = 60\\n' >%s/rivulet.conf; cp %s/ca.pem ." % (DEVICE, DEVICE))
    sh("systemctl start rivulet")
    agent_waits("pump-1")
    join("gw-7", "/home/gw-7", "rack=11")
    join("gw-8", "/home/gw-8")


says(PAGE, "rivulet device list --where site=north --reason no-job", "pump-1", "^1 device")
says(PAGE, "rivulet device set --where site=north,kind=gateway --label site=south --dry-run", "^1 of 1 device.* would be changed")
hook(PAGE, "before", "rivulet device set --where rack=12 --name gate", 1)(lambda _: sh("rivulet device set gate --name gw-7 --label rack=12") and None)
says(PAGE, "openssl s_client -connect coord.example:7443 </dev/null 2>/dev/null | openssl x509 -noout -dates -ext subjectAltName", "DNS:coord.example, IP.*:192.0.2.7")


@hook(PAGE, "before", "runuser -u rivulet -- rivuletd ca rotate", 1)
def _slept_through_it(_: str) -> None:
    join("gateway-7", "/home/gateway-7")


@hook(PAGE, "before", "runuser -u rivulet -- rivuletd ca finish", 1)
def _all_have_renewed(_: str) -> None:
    sh("rivulet device revoke gateway-7")
    sh("rivulet rotate --home ~/.rivulet")
    sh("rivulet status --url %s --home ~/.rivulet" % URL)
    within("all have renewed", lambda: json.loads(sh("rivulet status --json"))["ca"]["not_renewed"] == 0)
    within("and the database says so", lambda: "pump-1" not in sh("runuser -u rivulet -- rivuletd ca status", None))


says(PAGE, AS_DEVICE + "rivulet rotate --home /var/lib/rivulet-device", "new key")


@hook(PAGE, "before", AS_DEVICE + "rivulet join https://coord.example:7443 --token-file - --home /var/lib/rivulet-device <token", 1)
def _is_shut_out(_: str) -> None:
    # A token bears one change of the CA, and this is the second.
    sh("rivulet token create --uses 9 -o new.token; mv new.token token")
    sh(AS_DEVICE + "rivulet join %s --token-file - --name pump-2 --home %s <token" % (URL, DEVICE))
    sh("runuser -u rivulet -- rivuletd ca rotate; systemctl reload rivuletd")
    sh("runuser -u rivulet -- rivuletd ca finish --force; systemctl reload rivuletd")


says(PAGE, AS_DEVICE + "rivulet join https://coord.example:7443 --token-file - --home /var/lib/rivulet-device <token", "joined again")


@hook(PAGE, "before", "curl --cacert ca.pem https://coord.example:7443/healthz", 1)
def _has_a_job(_: str) -> None:
    sh("cp %s/ca.pem ." % DEVICE)
    words["JOB"] = submit("watched", 100000)


timeouts |= {"rivulet status --watch", "rivulet job show JOB --watch", "rivulet job show JOB --follow"}


@hook(PAGE, "before", "journalctl -u rivuletd | grep -w 'request=cd1f9d79-11'", 1)
def _has_a_name(_: str) -> None:
    words["cd1f9d79-11"] = sh("journalctl -u rivuletd | sed -n 's/.* http.response .* request=\\([0-9a-f-]*\\) .*/\\1/p' | tail -n 1").strip()


@hook(PAGE, "before", "journalctl -u rivuletd | grep 'device=7a90dd44875b0740'", 1)
def _has_been_refused(_: str) -> None:
    words["7a90dd44875b0740"] = device_id("pump-2")[:16]
    sh("rivulet device suspend pump-2")
    within("a refusal", lambda: "device-suspended" in sh("journalctl -u rivuletd"))
    sh("rivulet device resume pump-2")
    sh("curl -sk --cert /home/gateway-7/cert.pem --key /home/gateway-7/key.pem %s/v1/status" % URL, None)


@hook(PAGE, "before", "install -o rivulet -g rivulet -m 600 /backup/rivulet-2026-11-21/models/ID /var/lib/rivulet/models/ID", 1)
def _is_lost(_: str) -> None:
    sh("systemctl stop rivulet; runuser -u rivulet -- rivuletd backup /srv/backup/rivulet-2026-11-21")
    words["ID"] = str(show(words["JOB"])["model"])
    sh("rm /var/lib/rivulet/models/" + words["ID"])
    within("the job waits", lambda: show(words["JOB"])["state"] == "paused")


@hook(PAGE, "before", "rivulet job show JOB", 1)
def _goes_on(_: str) -> None:
    within("the job goes on", lambda: show(words["JOB"])["state"] == "running")


says(PAGE, "rivulet job show JOB", "^state +running")


@hook(PAGE, "before", "rivulet job stop JOB", 1)
def _was_a_round(_: str) -> None:
    sh("rm -r /srv/backup/rivulet-2026-11-21; systemctl start rivulet")
    words.update({"FILE": "job.json", "NEW": "another", "N": str(show(words["JOB"])["rounds_committed"])})


hook(PAGE, "after", "rivulet job delete JOB", 1)(lambda _: sh("rivulet job stop another") and None)
says(PAGE, "rivulet join https://coord.example:7443 --token-file mirror.token --name mirror-site1 --home /var/lib/rivulet-mirror", "role reader")


@hook(PAGE, "before", "runuser -u rivulet -- rivuletd backup /backup/rivulet-$(date +%F)", 1)
def _has_a_device_more(_: str) -> None:
    join("gw-7", "/home/gw-7.now")


@hook(PAGE, "after", "runuser -u rivulet -- rivuletd backup /backup/rivulet-$(date +%F)", 1)
def _was_of_that_day(_: str) -> None:
    sh("mv /srv/backup/rivulet-20* /srv/backup/rivulet-2026-11-21")


@hook(PAGE, "before", "systemctl stop rivuletd", 1)
def _has_another_key(_: str) -> None:
    sh("cp -a /home/gw-7.now /home/gw-7.stolen; rivulet rotate --home /home/gw-7.now")


@hook(PAGE, "after", "systemctl start rivuletd", 1)
def _is_contested(_: str) -> None:
    sh("rivulet status --url %s --home /home/gw-7.stolen" % URL)
    sh("rivulet status --url %s --home /home/gw-7.now" % URL, None)
    within("gw-7 is contested", lambda: "gw-7" in sh("rivulet device list --contested"))


@hook(PAGE, "after", "rivulet device show gw-7", 1)
def _claims(text: str) -> None:
    words["623e2870b285"] = str(json.loads(sh("rivulet device show --json gw-7"))["claims"][0]["key"])[:12]


hook(PAGE, "after", "rivulet device rekey gw-7 --key 623e2870b285", 1)(lambda _: sh("rivulet status --url %s --home /home/gw-7.now" % URL) and None)


@hook(PAGE, "before", "runuser -u rivulet -- rivuletd init --new-database", 1)
def _has_no_database(_: str) -> None:
    sh("systemctl stop rivulet; systemctl stop rivuletd; rm /var/lib/rivulet/rivulet.db*")


@hook(PAGE, "after", "runuser -u rivulet -- rivuletd init --new-database", 1)
def _prints_a_token(text: str) -> None:
    with open(os.path.join(HERE, "token"), "w", encoding="utf-8") as f:
        f.write(re.findall(r"^\S{60,}$", text, re.M)[0] + "\n")


@hook(PAGE, "after", "systemctl start rivuletd", 2)
def _joins_again(_: str) -> None:
    sh(AS_DEVICE + "rivulet join %s --token-file - --home %s <token" % (URL, DEVICE))


codes.update({"rivuletd check": 4, "rivuletd check --delete-lost --older 30d": 4})
says(PAGE, "rivuletd check", "^warning file-lost ")


@hook(PAGE, "before", "systemctl stop rivuletd && runuser -u rivulet -- rivuletd check", 1)
def _is_tidy(_: str) -> None:
    sh("rivuletd check --delete-lost --older 0", 3)
    sh("cp -a /srv/backup/rivulet-2026-11-21 /srv/backup/rivulet")


hook(PAGE, "before", "runuser -u rivulet -- rivuletd check", 2)(lambda _: sh("systemctl start rivuletd") and None)


@hook(PAGE, "before", "rivulet verify fetch /srv/audit", 1)
def _keeps_deltas(_: str) -> None:
    configure("[retention]\nkeep_deltas = yes")
    sh("systemctl start rivulet; rivulet device set pump-2 --name gateway-7")
    words["JOB"] = submit("proven", 8)
    within("the job is done", lambda: show(words["JOB"])["state"] == "done")
    sh("systemctl stop rivulet")


says(PAGE, "rivulet verify /srv/audit", "folded again")
says(PAGE, "rivulet verify /srv/audit --ca ca.pem --json", '"ok": *true')
says(PAGE, "rivulet verify fetch /srv/audit && rivulet verify /srv/audit --without gateway-7 -o /srv/clean", "")
says(PAGE, "curl --unix-socket /run/rivulet/admin.sock http://localhost/v1/jobs/JOB/rounds/7/record", "model")


# --- the page


def blocks_of(page: str) -> List[List[str]]:
    """The lines of each block of no language, or of the shell's; one that goes on with a backslash whole."""
    with open(page, encoding="utf-8") as f:
        found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", f.read(), re.M | re.S)
    return [re.sub(r"\\\n", "", text).split("\n")[:-1] for language, text in found if language in ("", "sh")]


def run_unit(lines: List[str]) -> None:
    """What a service manager would run for it."""
    unit = dict(line.split("=", 1) for line in lines if "=" in line)
    command = unit["ExecStart"].replace("%%", "%").replace("$$", "$").replace("/backup/", words["/backup/"])
    sh("runuser -u %s -- %s" % (unit["User"], command))


def here(line: str) -> str:
    for word, of_ours in words.items():
        line = re.sub(r"(?<![\w.-])%s%s" % (re.escape(word), r"(?![\w-])" if word[-1].isalnum() else ""), lambda _, to=of_ours: to, line)
    if "{" in line:
        fail("braces in " + line)
    return line


def run_line(page: str, line: str, seen: Dict[str, int], used: Set[Tuple[str, str, int]]) -> None:
    seen[line] = seen.get(line, 0) + 1
    text = ""
    for when in ("before", "after"):
        for h in hooks[page][when]:
            if (h.line, h.nth) == (line, seen[line]):
                used.add((when, h.line, h.nth))
                h.run(text)
        if when == "before" and line not in NOT_RUN[page]:
            command = here(line)
            # --watch ends with Ctrl-C, which is no failure.
            text = sh("timeout -s INT 2 " + command, None) if line in timeouts else sh(command, codes.get(line, 0))
            if line in timeouts and not text:
                fail(line + " says nothing")


def main(page: str) -> None:
    os.environ["HOME"] = "/home/admin"
    sh("mkdir -p /home/admin; chown rivulet /srv/backup")
    seen: Dict[str, int] = {}
    used: Set[Tuple[str, str, int]] = set()
    firsts = set()
    for lines in blocks_of(page):
        other = [first for first in NOT_COMMANDS[page] if lines[0].strip().startswith(first)]
        firsts.update(other)
        if other == ["[Service]"]:
            run_unit(lines)
        for line in [] if other else lines:
            command = re.sub(r"(^|\s+)#.*", "", line.strip())
            if command:
                run_line(page, command, seen, used)
    for what, left in (
        ("a block", set(NOT_COMMANDS[page]) - firsts),
        ("a line that is not run", set(NOT_RUN[page]) - set(seen)),
        ("a line", {(when, h.line, h.nth) for when in hooks[page] for h in hooks[page][when]} - used),
    ):
        if left:
            fail("this test knows %s that %s no longer has: %s" % (what, page, left))
    print("%s: %d lines, of which %d are not run" % (page, sum(seen.values()), len(NOT_RUN[page])))


if __name__ == "__main__":
    main(sys.argv[1])
