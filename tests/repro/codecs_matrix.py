"""Codecs: accuracy and bytes, up and down, beside f32: the 2NN on MNIST, 10 devices with equal shares (iid), all in every round."""
import repro
import svg

DEVICES, ROUNDS = 10, 60
# 60 steps a round; the rate falls, so that late rounds differ by the codec and little by chance.
LOCAL = {"steps": 60, "batch": 10, "optimizer": {"name": "sgd", "rate": 0.2}}
LOCAL["schedule"] = {"type": "cosine", "period": ROUNDS, "floor": 0.05}


class Way:
    def __init__(self, name, up=None, down=None, points=None, times=None):
        self.name, self.up, self.down = name, up, down
        self.points, self.times = points, times  # the goal: at most so many points below f32, at so many times fewer bytes up

    def documents(self):
        more = {}
        if self.up:
            more["upload"] = self.up
        if self.down:
            more["download"] = self.down
        stop = {"rounds": ROUNDS}
        name = "codecs-" + self.name.replace(" ", "").replace(",", "-").replace("%", "")
        return repro.job(name, repro.NN, LOCAL, DEVICES, stop, **more), repro.fleet(DEVICES, evaluate_every=2)


WAYS = [
    Way("f32"),
    Way("f16", {"codec": "f16"}),
    Way("bf16", {"codec": "bf16"}),
    Way("int8", {"codec": "int8"}, None, 0.1, 3.7),
    Way("int4", {"codec": "int4"}, None, 0.3, 7),
    Way("sign", {"codec": "sign"}),
    Way("sign, feedback", {"codec": "sign", "feedback": True}),
    Way("sparse 1 %", {"codec": "sparse", "share": 0.01}, None, 0.5, 50),
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
    base = found[0][1]
    if not base:
        return 0
    rows, missed = [], []
    for way, done in found:
        if not done:
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
