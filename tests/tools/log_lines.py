#!/usr/bin/env python3
"""log_lines.py [--secrets FILE]... LOG...: is every line of these logs, which rivuletd and the agent wrote with log_format = json, one JSON
object as docs/operators.md says, and without a secret? Prints what is wrong and ends with 1; else how many lines there were.

--secrets FILE: what stands in FILE (a token, a key) must be in no line; of PEM each line of base64. Whatever FILE says, nothing that has the form of a
token, of PEM or of a header that carries one may be there. A log whose program ended before it had read its configuration is text
("rivuletd: ...") from its first line to its last; no other line may be.
"""
import json
import re
import sys

MOST = {"rivuletd": 1024, "rivulet": 4608 + 256}
SECRET = re.compile(r"rvt1-|-----BEGIN|PRIVATE KEY|[Bb]earer \S{20}|[Aa]uthorization: \S+ \S{20}|:[0-9A-Za-z+/]{100,}=*:")
EARLY = re.compile(r"(rivuletd|rivulet): |usage: |\s")
TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z")


def once(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError("a key comes twice")
    return dict(pairs)


def no_number(word):
    raise ValueError(f"{word} is no JSON")


def wrong(line, most):
    """What is wrong with the line, or None."""
    text = re.sub(r"^<[3467]>", "", line.decode("ascii"))
    if len(line) > most:
        return f"has {len(line)} bytes"
    found = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    if not isinstance(found, dict) or list(found)[:3] != ["time", "level", "event"]:
        return "does not begin with time, level and event"
    if not TIME.fullmatch(found["time"]) or found["level"] not in ("error", "warn", "info", "debug"):
        return "has another time or level"
    if not all(isinstance(v, (str, int, float, type(None))) for v in found.values()) or found.get("cut", True) is not True:
        return "has a value that is no string and no number"
    return None


def secrets_of(path):
    with open(path, errors="replace") as f:
        words = [word for word in re.split(r"\s+|-----.*-----", f.read()) if len(word) >= 32]
    # Of a token the secret, too, without what may be known.
    return set(words) | {part for word in words for part in re.findall("[0-9a-f]{64}", word)[:1] if word.startswith("rvt1-")}


def check(path, secrets):
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")
    if lines.pop():
        print(f"{path}: the last line has no end")
    name = "rivulet" if path.rpartition("/")[2].startswith("rivulet.") else "rivuletd"
    early = all(EARLY.match(line.decode(errors="replace")) for line in lines)
    bad = 0
    for number, line in enumerate(lines, 1):
        try:
            said = None if early else wrong(line, MOST[name])
        except ValueError as e:
            said = str(e)
        text = line.decode(errors="replace")
        if SECRET.search(text) or any(secret in text for secret in secrets):
            said = "has a secret"
        if said:
            bad += 1
            print(f"{path}:{number}: {said}: {text[:300]}")
    return len(lines), bad


def main():
    words, secrets = sys.argv[1:], set()
    while words[:1] == ["--secrets"]:
        secrets |= secrets_of(words[1])
        words = words[2:]
    sums = [sum(n) for n in zip(*(check(path, secrets) for path in words))] or [0, 0]
    if sums[1]:
        sys.exit(f"{sums[1]} of {sums[0]} lines are wrong")
    print(f"{sums[0]} lines")


main()
