#!/usr/bin/env python3
"""The alerts of contrib/prometheus, their test, and the board of contrib/grafana.

    alerts.py write RECORDED          prints rules_test.yml, from what record_alerts.sh wrote into that directory
    alerts.py questions               prints the board's as rules, for promtool to parse
    alerts.py check TESTS LIVE...     TESTS has each alert; what rules and board name is in a live /metrics, or a device's file (LIVE),
                                      the headings that the alerts name are in docs/operators.md,
                                      and docs/metrics.md has a line for each

RECORDED holds NAME.prom for each scrape (empty: it failed), NAME.at (the Unix time of it), for a device's file NAME.who (its instance and
job), and `cases`, a line for each case:

    ALERT LABELS SCRAPE... -- SCRAPE... [lasts|goes-on[:MINUTES]]     LABELS: those of the alert, NAME=VALUE,... or -

The alert is quiet while what the first scrapes found lasts, and fires once the last of the second was found for as long as it says (with
`lasts`: and for as long as it looks back, or for MINUTES; with `goes-on` counters rise all that time as they did between the last two
scrapes). Without second ones it never fires. Beside the cases: of each value of a label in ALONE one alert speaks.
"""
import json
import os
import re
import sys

import yaml

RULES, BOARD = "contrib/prometheus/rivulet.rules.yml", "contrib/grafana/rivulet.json"
PAGE, TABLE = "docs/operators.md", "docs/metrics.md"
WHO = {"instance": "coordinator.example:7443", "job": "rivulet"}
UNITS = {"m": 1, "h": 60, "d": 1440}  # minutes
ALONE = {  # metric: values without an alert
    "rivulet_jobs_stuck": ("paused", "not-ready"),  # by hand; rivulet_not_ready has the reason
    "rivulet_not_ready": (),
}
STEP = 5  # minutes between two evaluations of the rules: each costs
SERIES = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
NAME = re.compile(r"\b(?:up|(?:rivulet|process)_[a-z_]+)\b")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def rules():
    return {r["alert"]: r for group in yaml.safe_load(read(RULES))["groups"] for r in group["rules"]}


def minutes(text):
    return sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([mhd])", text))


def looks_back(expr):
    return max([minutes(t) for t in re.findall(r"(?:\[|offset )(\d+[mhd])", expr)], default=0)


def scraped(folder, name):
    path = f"{folder}/{name}.who"
    return dict(zip(("instance", "job"), read(path).split())) if os.path.exists(path) else WHO


def scrape(folder, name):
    """{(metric, labels): value} as Prometheus would have them, and when it was."""
    text, at, who = read(f"{folder}/{name}.prom"), float(read(f"{folder}/{name}.at")), scraped(folder, name)
    found = {("up", tuple(who.items())): "1" if text else "0"}
    for line in text.split("\n"):
        match = SERIES.match(line)
        if match:
            labels = dict(LABEL.findall(match.group(2) or ""), **who)
            found[match.group(1), tuple(labels.items())] = match.group(3)
    return found, at


def value_at(metric, value, at, minute):
    """Times are told from promtool's beginning of time: as far ahead or behind as they were."""
    if value is None:
        return "_"
    if not metric.endswith(("_timestamp_seconds", "start_time_seconds")) or value == "NaN":
        return value
    return f"{float(value) - at + minute * 60:.15g}"


def steps(minutes):
    return -(-minutes // STEP) * STEP


def lengths(rule, quiet, firing, lasts):
    """How many minutes each scrape's values last. What lasts is compared with itself, and needs little of before."""
    back = looks_back(rule["expr"])
    hold = steps(minutes(rule["for"])) + 2 * STEP
    before = [steps(((min(back, 180) if lasts else back) + hold) // len(quiet))] * len(quiet)
    return before, [STEP] * (len(firing) - 1) + [hold + (steps(int(lasts.partition(":")[2] or back)) if lasts else 0)] if firing else []


def values_of(scrapes, key, begins, goes_on):
    """One scrape's value for each of so many minutes."""
    for n, ((found, at), (minute, long)) in enumerate(zip(scrapes, begins)):
        value, slope = value_at(key[0], found.get(key), at, minute), 0
        if goes_on and n == len(scrapes) - 1 and key[0].endswith("_total"):
            before, since = scrapes[n - 1]
            slope = round((float(value) - float(before[key])) / (at - since) * 60)
        yield f"_x{long}" if value == "_" else f"{value}+{slope}x{long - 1}" if long > 1 else value


def case(folder, rule, labels, quiet, firing, lasts):
    before, after = lengths(rule, quiet, firing, lasts)
    scrapes = [scrape(folder, name) for name in quiet + firing]
    wanted = set(NAME.findall(rule["expr"]))
    longs = before + after
    begins = [(sum(longs[:n]), long) for n, long in enumerate(longs)]
    minute = sum(longs)
    print("  - interval: 1m\n    input_series:")
    for metric, names in sorted({key for found, _ in scrapes for key in found if key[0] in wanted}):
        told = ",".join(f'{k}="{v}"' for k, v in sorted(names))
        values = values_of(scrapes, (metric, names), begins, lasts.startswith("goes-on"))
        print(f"      - {{series: '{metric}{{{told}}}', values: '{' '.join(values)}'}}")
    print("    alert_rule_test:")
    told = dict(scraped(folder, quiet[0]), **dict(pair.split("=", 1) for pair in labels.split(",") if labels != "-"))
    expect(rule, sum(before) - 1, None)
    if firing:
        expect(rule, minute - 1, told)


def expect(rule, minute, labels):
    print(f"      - eval_time: {minute}m\n        alertname: {rule['alert']}")
    if labels is None:
        print("        exp_alerts: []")
        return
    texts = {k: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m.group(1)], v) for k, v in rule["annotations"].items()}
    print(f"        exp_alerts:\n          - exp_labels: {json.dumps(dict(labels, **rule['labels']))}\n            exp_annotations:")
    for name, text in texts.items():
        print(f"              {name}: {json.dumps(text)}")


def each(folder, metric, silent):
    """All values at once that any scrape has: each of them but the silent ones has one alert."""
    names = [name[:-5] for name in os.listdir(folder) if name.endswith(".prom")]
    words = sorted({names_of[0] for name in names for (m, names_of) in scrape(folder, name)[0] if m == metric})
    minute = max(minutes(rule["for"]) for rule in rules().values()) + 2 * STEP
    print("  - interval: 1m\n    input_series:")
    for label, word in words:
        print(f"      - {{series: '{metric}{{{label}=\"{word}\"}}', values: '1x{minute}'}}")
    print(f"    promql_expr_test:\n      - expr: count by ({words[0][0]}) (ALERTS{{alertstate=\"firing\"}})\n        eval_time: {minute}m")
    print("        exp_samples:")
    for label, word in words:
        if word not in silent:
            print(f"          - {{labels: '{{{label}=\"{word}\"}}', value: 1}}")


def write(folder):
    known = rules()
    print("# Written by tests/tools/record_alerts.sh from scrapes of a coordinator that was driven into each state: not to be edited.")
    print(f"# promtool test rules rules_test.yml\nrule_files: [rivulet.rules.yml]\nevaluation_interval: {STEP}m\ntests:")
    for line in read(f"{folder}/cases").strip().split("\n"):
        alert, labels, *names = line.split(" ")
        lasts = names.pop() if re.match(r"(lasts|goes-on)(:|$)", names[-1]) else ""
        names = names + ([] if "--" in names else ["--"])
        at = names.index("--")
        case(folder, known[alert], labels, names[:at], names[at + 1 :], lasts)
    for metric, silent in ALONE.items():
        each(folder, metric, silent)


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def expressions(node):
    if isinstance(node, dict):
        yield from (v for k, v in node.items() if k in ("expr", "definition") and isinstance(v, str))
        node = list(node.values())
    for child in node if isinstance(node, list) else []:
        yield from expressions(child)


def questions():
    print("groups:\n  - name: board\n    rules:")
    for n, text in enumerate(expressions(json.loads(read(BOARD)))):
        if not text.startswith("label_values("):
            bare = text.replace("$__rate_interval", "5m").replace("$__range", "1h")
            print(f"      - {{record: 'asked:{n}', expr: {json.dumps(bare)}}}")


def check(tests, live):
    known, wrong = rules(), []
    heads, table = anchors(read(PAGE)), read(TABLE).split("\n")
    metrics = set(re.findall(r"^# TYPE (\S+)", "".join(read(path) for path in live), re.M)) | {"up"}
    for name, rule in known.items():
        page, _, anchor = rule["annotations"].get("runbook", "").partition("#")
        if page != PAGE or anchor not in heads:
            wrong.append(f"{RULES}: {name}: no heading {page}#{anchor}")
        row = f"| `{name}` | {rule['annotations']['summary']} | {rule['for']} | [{anchor.replace('-', ' ')}]({page.removeprefix('docs/')}#{anchor}) |"
        if row not in table:
            wrong.append(f"{TABLE}: no line {row}")
    wrong += [f"{TABLE}: {name} is no alert" for name in re.findall(r"^\| `(Rivulet\w+)`", "\n".join(table), re.M) if name not in known]
    fired = {t["alertname"] for test in yaml.safe_load(read(tests))["tests"] for t in test.get("alert_rule_test", ()) if t["exp_alerts"]}
    wrong += [f"{tests}: {name} is never seen to fire" for name in known if name not in fired]
    asked = [(RULES, rule["expr"]) for rule in known.values()]
    asked += [(BOARD, text) for text in expressions(json.loads(read(BOARD)))]
    for path, text in asked:
        bare = re.sub(r"_(bucket|sum|count)\b", "", text)
        wrong += [f"{path}: {name} is in no live /metrics" for name in NAME.findall(bare) if name not in metrics]
    if wrong:
        sys.exit("\n".join(sorted(set(wrong))))
    print(f"{len(known)} alerts, {len(asked) - len(known)} questions of the board")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    elif sys.argv[1:] == ["questions"]:
        questions()
    elif len(sys.argv) > 3 and sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
