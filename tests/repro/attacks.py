"""Attacks against rules: 25 devices with equal shares of MNIST (iid), 5 of them hostile, a small convolutional network.

Each cell is the test accuracy after the last round; for the backdoor also the share of triggered images of other classes that are
taken for the attackers' class. Lies about the form (NaN, infinity, too short, 2^31 examples) are refused at the upload: those
rounds close with the honest 20.
"""
import os

import repro
import svg

DEVICES, HOSTILE = 25, 5
SPLIT = os.environ.get("SPLIT", "iid")
ROUNDS = 12
NET = [
    {"type": "conv2d", "name": "conv1", "out": 16, "kernel": 5, "stride": 2, "padding": 2},
    {"type": "relu"},
    {"type": "maxpool2d", "kernel": 2},
    {"type": "flatten"},
    {"type": "linear", "name": "fc1", "out": 10},
]
LOCAL = {"steps": 120, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.3}}


def rule(name, **more):
    return {"aggregate": {"rule": {"name": name, "hostile": HOSTILE, **more}}}


RULES = [
    ("mean", {}),
    ("norm bound 2", {"aggregate": {"norm_bound": 2}}),
    ("norm bound median", {"aggregate": {"norm_bound": "median"}}),
    ("median", rule("median")),
    ("trimmed mean", rule("trimmed_mean")),
    ("Krum", rule("krum")),
    ("Multi-Krum", rule("krum", picks=DEVICES - HOSTILE)),
    ("Bulyan", rule("bulyan")),
    ("geometric median", rule("geometric_median")),
    ("centered clipping", rule("centered_clipping", radius=1, iterations=3)),
    ("buckets of 2, median", rule("median", bucket=2)),
    ("NNM, trimmed mean", rule("trimmed_mean", nearest=True)),
]
# Those that are to keep LIMIT under every attack. Not Krum, which takes one delta a round and so learns at the pace of one device,
# with or without attackers; nor a bound on norms alone.
MEANT = (
    "median",
    "trimmed mean",
    "Multi-Krum",
    "Bulyan",
    "geometric median",
    "centered clipping",
    "buckets of 2, median",
    "NNM, trimmed mean",
)
LIMIT = 0.97
# Reports without which a job with this rule is refused: 4 f + 3; 2 f + 1 buckets.
LEAST = {"Bulyan": 4 * HOSTILE + 3, "buckets of 2, median": 4 * HOSTILE + 1}
# Name, the fleet's attack, strength.
ATTACKS = [
    ("none", None, None),
    ("sign flip", "sign", 1),
    ("scaling x 10, sign flipped", "sign", 10),
    ("inner product, 0.5", "ipm", 0.5),
    ("ALIE, z = 0.253", "alie", 0),
    ("label flip", "labels", None),
    ("backdoor x 5", "backdoor", 5),
    ("Gaussian, 0.1 each", "gauss", 0.1),
    ("mimic", "mimic", None),
    ("lies about form", "lies", None),
    ("ALIE, z = 1.5", "alie", 1.5),
    ("inner product, 10", "ipm", 10),
]


def documents(rule_name, rule_keys, attack_name, attack, strength):
    quorum = DEVICES if attack != "lies" else max(DEVICES - HOSTILE, LEAST.get(rule_name, 0))
    picks = rule_keys.get("aggregate", {}).get("rule", {}).get("picks", 0)
    if picks > quorum - HOSTILE:  # Multi-Krum takes n - f at most, and n may be the quorum
        rule_keys = rule("krum", picks=quorum - HOSTILE)
    name = f"attacks-{attack_name}-{rule_name}".replace(" ", "").replace(",", "-").replace("=", "").lower()
    document = repro.job(name[:60], NET, LOCAL, DEVICES, {"rounds": ROUNDS}, round={"quorum": quorum}, **rule_keys)
    hostile = {"count": HOSTILE, "attack": attack or "none"}
    if strength is not None:
        hostile["strength"] = strength
    more = {"hostile": hostile} if attack else {}
    return document, repro.fleet(DEVICES, SPLIT, evaluate_every=ROUNDS, **more)


def cell(done):
    """(value for the colour, text) of one cell."""
    if not done:
        return None, "not run"
    if done.status == 3:
        return None, "held up"
    last = done.rounds[-1]
    accuracy = done.last() if done.status == 0 else 0.0
    text = f"{100 * accuracy:.1f}" if accuracy else "diverged"
    if "backdoor" in last:
        text += f" ({100 * last['backdoor']:.0f})"
    return accuracy, text


def is_miss(value, text):
    """Does a cell that is to keep LIMIT not? A job that never goes on is no resistance; one that was not run says nothing."""
    return text == "held up" or (value is not None and value < LIMIT)


def main():
    cells = []
    for attack in ATTACKS:
        line = []
        for name, keys in RULES:
            done = repro.get(documents(name, keys, *attack), attack[0] + "/" + name)
            line.append(cell(done))
        cells.append(line)
    columns = [name for name, _ in RULES]
    words = repro.table(["attack"] + columns, [[a[0]] + [text for _, text in line] for a, line in zip(ATTACKS, cells)])
    suffix = "" if SPLIT == "iid" else "-label"
    note = "Test accuracy in %; in brackets the backdoor's success. Held up: too few reports were accepted for the rule."
    title = f"MNIST, {DEVICES} devices, {HOSTILE} hostile: accuracy after {ROUNDS} rounds"
    picture = svg.heat_map(title, [a[0] for a in ATTACKS], columns, cells, 0.9, 0.98, note)
    repro.result("repro-attacks" + suffix, words, {"attacks" + suffix: picture})
    missed = [
        f"{attack[0]}/{name} {text}"
        for attack, line in zip(ATTACKS, cells)
        for name, (value, text) in zip(columns, line)
        if name in MEANT and is_miss(value, text)
    ]
    if missed:
        print(f"below {LIMIT:.0%} or held up: " + "; ".join(missed))
    return 1 if missed else 0
