"""Codecs: accuracy and bytes, up and down, beside f32: the 2NN on MNIST, 10 devices with equal shares (iid), all in every round."""
import repro
import svg

DEVICES, ROUNDS, LONG = 10, 60, 150


class Way:
    def __init__(self, name, up=None, down=None, points=None, times=None, rounds=ROUNDS):
        self.name, self.up, self.down, self.rounds = name, up, down, rounds
        self.points, self.times = points, times  # the goal: at most so many points below f32, at so many times fewer bytes up

    def documents(self):
        more = {"evaluate": {"every": 2}}
        if self.up:
            more["upload"] = self.up
        if self.down:
            more["download"] = self.down
        # 60 steps a round; the rate falls, so that late rounds differ by the codec and little by chance.
        local = {"steps": 60, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.2}}
        local["schedule"] = {"type": "cosine", "period": self.rounds, "floor": 0.05}
        stop = {"rounds": self.rounds}
        name = "codecs-" + self.name.replace(" ", "").replace(",", "-").replace("%", "")
        return repro.job(name, repro.NN, local, DEVICES, stop, **more), repro.fleet(DEVICES)


WAYS = [
    Way("f32"),
    Way("f16", {"codec": "f16"}),
    Way("bf16", {"codec": "bf16"}),
    Way("int8", {"codec": "int8"}, None, 0.1, 3.7),
    Way("int4", {"codec": "int4"}, None, 0.3, 7),
    Way("sign", {"codec": "sign"}),
    Way("sign, feedback", {"codec": "sign", "feedback": True}),
    Way("sparse 2 %", {"codec": "sparse", "share": 0.02}),
    Way("sparse 1 %", {"codec": "sparse", "share": 0.01}),
    # What is held back arrives late: it takes more rounds, in which f32 gets better too.
    Way("f32, 150 rounds", rounds=LONG),
    Way("sparse 1 %, 150 rounds", {"codec": "sparse", "share": 0.01}, None, 0.5, 50, LONG),
    Way("f32, down int8", None, {"codec": "int8"}),
    Way("f32, down int4", None, {"codec": "int4", "feedback": True}),
    Way("int8, down int8", {"codec": "int8"}, {"codec": "int8"}),
    Way("int4, down int4", {"codec": "int4"}, {"codec": "int4", "feedback": True}),
    Way("sparse 1 %, down int4", {"codec": "sparse", "share": 0.01}, {"codec": "int4", "feedback": True}),
]
LAST = 5  # the accuracy is the mean over so many last rounds: single ones differ by chance


def level(done):
    last = [a for _, a in done.curve()[-LAST:]]
    return sum(last) / len(last)


def main():
    found = [(way, repro.get(way.documents(), way.name)) for way in WAYS]
    bases = {way.rounds: done for way, done in found if way.name.startswith("f32") and not way.down}
    rows, missed = [], []
    for way, done in found:
        base = bases[way.rounds]
        if not done or not base:
            rows.append([way.name] + ["not run"] + [""] * 7)
            continue
        points = 100 * (level(done) - level(base))
        up, down = done.total("bytes_up"), done.total("bytes_down")
        fewer = base.total("bytes_up") / up
        goal = f"{way.points} at {way.times}" if way.points else ""
        if way.points and (points < -way.points or fewer < way.times):
            missed.append(way.name)
        rows.append(
            [way.name, f"{100 * level(done):.2f}", f"{points:+.2f}", f"{100 * done.best():.2f}", f"{up / 1e6:.1f}", f"{fewer:.1f}"]
            + [f"{down / 1e6:.1f}", f"{base.total('bytes_down') / down:.1f}", goal]
        )
    words = repro.table(["codec", "accuracy %", "to f32, points", "best %", "MB up", "times fewer", "MB down", "times fewer", "goal"], rows)
    series = [(way.name, done.curve()) for way, done in found if done]
    picture = svg.curves("MNIST, 2NN, 10 devices: codecs", "round", "accuracy", series, (0.92, 0.99), 0.01)
    repro.result("repro-codecs", words, {"codecs": picture})
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed else 0
