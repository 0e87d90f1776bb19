"""board_data.py heart|niid|synthetic|accuracy WORD...: the data of published boards, as packed sets whose groups are devices.

heart FILES OUT: FLamby's Fed-Heart-Disease out of the four centres' files in FILES: OUT/train.packed (groups: centres) and test.npz, each
centre normalised by its own training rows; OUT/pooled.packed and pooled.npz, normalised by all training rows.
niid IMAGES LABELS OUT dirichlet|labels SEED: MNIST dealt to ten devices as NIID-Bench deals it (Li et al. 2021).
synthetic OUT ALPHA BETA SEED: FedProx's synthetic data of thirty devices (Li et al. 2020); ALPHA "iid": one model for all.
accuracy TEST.npz OUTPUTS: the share of rows on whose side of 0 the network's one output lies.
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
from rivulet import data, safetensors  # noqa: E402

CENTRES = ("cleveland", "hungarian", "switzerland", "va")
DEVICES = 10


def rows_for_network(out, x):
    safetensors.save(out, {"rows": numpy.ascontiguousarray(x, numpy.float32)})


# --- Fed-Heart-Disease


def centre(path):
    """(features with columns 2 and 6 last, their two codes, labels) of one file."""
    table = numpy.genfromtxt(path, delimiter=",", missing_values="?")
    table = numpy.delete(table, [10, 11, 12], axis=1)
    table = table[~numpy.isnan(table).any(axis=1)]
    plain = numpy.delete(table, [2, 6, 10], axis=1)
    return plain, table[:, [2, 6]], (table[:, -1] > 0).astype(numpy.int64)


def dummies(codes):
    """A column for each level of each code but the first."""
    columns = []
    for code in codes.T:
        columns += [(code == level) for level in numpy.unique(code)[1:]]
    return numpy.stack(columns, axis=1).astype(numpy.float64)


def split(labels):
    """Which rows are for training; scikit-learn's draw, as the board's."""
    from sklearn.model_selection import train_test_split

    enough = all((labels == value).sum() > 2 for value in numpy.unique(labels))
    drawn, _ = train_test_split(
        numpy.arange(len(labels)), train_size=0.66, test_size=1 - 0.66, random_state=43, stratify=labels if enough else None
    )
    chosen = numpy.zeros(len(labels), bool)
    chosen[drawn] = True
    return chosen


def normalised(x, reference):
    return ((x - reference.mean(axis=0)) / (reference.std(axis=0, ddof=1) + 1e-9)).astype(numpy.float32)


def heart(files, out):
    parts = [centre(f"{files}/processed.{name}.data") for name in CENTRES]
    x = numpy.hstack([numpy.vstack([p[0] for p in parts]), dummies(numpy.vstack([p[1] for p in parts]))])
    y = numpy.concatenate([p[2] for p in parts])
    groups = numpy.repeat(numpy.arange(len(parts)), [len(p[2]) for p in parts])
    train = numpy.concatenate([split(p[2]) for p in parts])
    own = numpy.zeros_like(x, numpy.float32)
    for i in range(len(parts)):
        own[groups == i] = normalised(x[groups == i], x[(groups == i) & train])
    pooled = normalised(x, x[train])
    targets = y.astype(numpy.float32)
    data.save_packed(f"{out}/train.packed", own[train], targets[train], groups=groups[train])
    data.save_packed(f"{out}/pooled.packed", pooled[train], targets[train])
    data.save_packed(f"{out}/test.packed", own[~train], targets[~train])
    for name, values in (("test", own), ("pooled", pooled)):
        numpy.savez(f"{out}/{name}.npz", y=y[~train])
        rows_for_network(f"{out}/{name}.rows", values[~train])
    print(f"heart: {len(x)} rows, {x.shape[1]} features, {train.sum()} for training")


def accuracy(test, outputs):
    labels = numpy.load(test)["y"]
    got = next(iter(safetensors.load(outputs).values())).reshape(-1)
    print(((got > 0) == (labels > 0)).mean())


# --- NIID-Bench on MNIST


def by_dirichlet(draw, labels, alpha=0.5, least=10):
    """Each class in shares of Dirichlet(alpha); a device that has its tenth of all gets no more; drawn anew while one has fewer than least."""
    while True:
        shares = [[] for _ in range(DEVICES)]
        for value in numpy.unique(labels):
            members = draw.permutation(numpy.flatnonzero(labels == value))
            weights = draw.dirichlet(numpy.full(DEVICES, alpha))
            weights *= [sum(map(len, share)) < len(labels) / DEVICES for share in shares]
            cuts = (numpy.cumsum(weights / weights.sum()) * len(members)).astype(int)[:-1]
            for share, part in zip(shares, numpy.split(members, cuts)):
                share.append(part)
        if min(sum(map(len, share)) for share in shares) >= least:
            return [numpy.concatenate(share) for share in shares]


def by_labels(draw, labels, each=2):
    """Device i has class i and others at random, `each` in all; who shares a class shares it equally."""
    classes = numpy.unique(labels)
    has = []
    for i in range(DEVICES):
        others = draw.choice(numpy.delete(numpy.arange(len(classes)), i % len(classes)), each - 1, replace=False)
        has.append({i % len(classes), *others.tolist()})
    shares = [[] for _ in range(DEVICES)]
    for k, value in enumerate(classes):
        owners = [i for i in range(DEVICES) if k in has[i]]
        members = draw.permutation(numpy.flatnonzero(labels == value))
        for i, part in zip(owners, numpy.array_split(members, len(owners))):
            shares[i].append(part)
    return [numpy.concatenate(share) for share in shares]


def niid(images, labels, out, way, seed):
    from learning_torch import idx

    x, y = idx(images), idx(labels).astype(numpy.int64)
    draw = numpy.random.default_rng(int(seed))
    groups = numpy.zeros(len(y), numpy.int64)
    for i, share in enumerate(by_dirichlet(draw, y) if way == "dirichlet" else by_labels(draw, y)):
        groups[share] = i
    data.save_packed(out, x, y, [str(digit) for digit in range(10)], groups)


# --- FedProx's synthetic data


def synthetic(out, alpha, beta, seed):
    devices, features, classes = 30, 60, 10
    draw = numpy.random.default_rng(int(seed))
    iid = alpha == "iid"
    counts = draw.lognormal(4, 2, devices).astype(int) + 50
    model = draw.normal(0, 0 if iid else float(alpha), devices)
    place = draw.normal(0, 0 if iid else float(beta), devices)
    spread = numpy.arange(1, features + 1) ** -0.6  # deviations: variances j^-1.2
    shared = draw.normal(0, 1, (features, classes)), draw.normal(0, 1, classes)
    sets = {"train": ([], [], []), "test": ([], [], [])}
    for i, count in enumerate(counts):
        centre_of = numpy.zeros(features) if iid else draw.normal(place[i], 1, features)
        weights, bias = shared if iid else (draw.normal(model[i], 1, (features, classes)), draw.normal(model[i], 1, classes))
        x = draw.normal(centre_of, spread, (count, features))
        y = (x @ weights + bias).argmax(axis=1)
        cut = int(0.9 * count)
        for name, part in (("train", slice(0, cut)), ("test", slice(cut, None))):
            for values, more in zip(sets[name], (x[part], y[part], numpy.full(len(y[part]), i))):
                values.append(more)
    for name, (x, y, groups) in sets.items():
        whole = numpy.vstack(x).astype(numpy.float32), numpy.concatenate(y), [str(c) for c in range(classes)]
        data.save_packed(f"{out}/{name}.packed", *whole, groups=numpy.concatenate(groups) if name == "train" else None)


if __name__ == "__main__":
    {"heart": heart, "niid": niid, "synthetic": synthetic, "accuracy": accuracy}[sys.argv[1]](*sys.argv[2:])
