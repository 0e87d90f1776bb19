"""robust_byzfl.py FOLD_RULE FOLDER CASES: rules of tests/tools/fold_rule beside those of byzfl, which is in FOLDER. A line for each rule: its
name, inputs compared, the largest difference relative to the result's norm."""
import importlib.util
import subprocess
import sys
import types

import numpy

SMOOTHING, CLIPS, RADIUS = 1e-6, 3, 2.0


def byzfl(folder, module):
    """A module of the package without the package's own imports, which want plotting libraries."""
    for name in ("byzfl", "byzfl.utils", "byzfl.aggregators"):
        package = types.ModuleType(name)
        package.__path__ = [f"{folder}/{name.replace('.', '/')}"]
        sys.modules.setdefault(name, package)
    spec = importlib.util.find_spec("byzfl.aggregators." + module)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def krum(vectors, hostile, picks):
    """The mean of the `picks` vectors that are nearest to their n - f - 2 nearest neighbours, in float64."""
    x = vectors.astype(numpy.float64)
    distances = numpy.sort(((x[:, None] - x[None]) ** 2).sum(axis=2), axis=1)[:, 1 : len(x) - hostile - 1].sum(axis=1)
    return x[numpy.argsort(distances)[:picks]].mean(axis=0)


def rules(a, pre):
    """name: (what fold_rule is asked: rule, hostile, picks, nearest, iterations), its oracle), of n and f."""
    return {
        "median": (lambda n, f: ("median", f, 1, 0, 1), lambda x, f: a.Median()(x)),
        "trimmed mean": (lambda n, f: ("trimmed_mean", f, 1, 0, 1), lambda x, f: a.TrMean(f)(x)),
        "Krum, their neighbours": (lambda n, f: ("krum", f - 1, 1, 0, 1), lambda x, f: a.Krum(f)(x)),
        "Multi-Krum, n - f picks, their neighbours": (lambda n, f: ("krum", f - 1, n - f, 0, 1), lambda x, f: a.MultiKrum(f)(x)),
        "Krum, our neighbours": (lambda n, f: ("krum", f, 1, 0, 1), lambda x, f: krum(x, f, 1)),
        "Multi-Krum, n - f picks, our neighbours": (lambda n, f: ("krum", f, n - f, 0, 1), lambda x, f: krum(x, f, len(x) - f)),
        "NNM, trimmed mean": (lambda n, f: ("trimmed_mean", f, 1, 1, 1), lambda x, f: a.TrMean(f)(pre.NNM(f)(x))),
        "geometric median, converged": (lambda n, f: ("geometric_median", f, 1, 0, 1000), lambda x, f: a.GeometricMedian(SMOOTHING, 1000)(x)),
        "centered clipping": (lambda n, f: ("centered_clipping", f, 1, 0, CLIPS), lambda x, f: a.CenteredClipping(L=CLIPS, tau=RADIUS)(x)),
    }


def draw_input(draw):
    """(vectors, f) with 2f + 3 <= n: honest ones around a point, some far away."""
    hostile = int(draw.integers(1, 6))
    n, d = int(draw.integers(2 * hostile + 3, 30)), int(draw.integers(3, 200))
    x = draw.normal(draw.normal(0, 1, d), draw.uniform(0.1, 3), (n, d))
    x[: int(draw.integers(0, hostile + 1))] *= draw.uniform(-10, 10)
    return draw.permutation(x).astype(numpy.float32), hostile


def folded(program, question, x):
    rule, hostile, picks, nearest, iterations = question
    line = f"{rule} {hostile} {picks} {nearest} {iterations} {SMOOTHING} {RADIUS} {len(x)} {x.shape[1]}\n"
    program.stdin.write(line.encode() + x.tobytes())
    program.stdin.flush()
    return numpy.frombuffer(program.stdout.read(4 * x.shape[1]), numpy.float32)


def main(tool, folder, cases):
    table = rules(byzfl(folder, "aggregators"), byzfl(folder, "preaggregators"))
    draw, worst, counts = numpy.random.default_rng(1), dict.fromkeys(table, 0.0), dict.fromkeys(table, 0)
    with subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for _ in range(int(cases)):
            x, hostile = draw_input(draw)
            for name, (question, oracle) in table.items():
                ours = folded(program, question(len(x), hostile), x).astype(numpy.float64)
                theirs = numpy.asarray(oracle(x.astype(numpy.float64), hostile))
                worst[name] = max(worst[name], numpy.linalg.norm(ours - theirs) / numpy.linalg.norm(theirs))
                counts[name] += 1
        program.stdin.close()
    for name, difference in worst.items():
        print(name, counts[name], f"{difference:.1e}", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
