#!/usr/bin/env python3
"""make_idx.py IMAGES LABELS COUNT SEED: an IDX data set of 28 x 28 images: ten patterns, shifted by up to two pixels and under noise."""
import random
import struct
import sys

images, labels, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pattern = random.Random(1)
classes = [[pattern.randrange(256) for _ in range(784)] for _ in range(10)]
rng = random.Random(seed)
with open(images, "wb") as x, open(labels, "wb") as y:
    x.write(struct.pack(">IIII", 0x803, count, 28, 28))
    y.write(struct.pack(">II", 0x801, count))
    for _ in range(count):
        label, shift = rng.randrange(10), rng.randrange(3)
        face = classes[label][shift:] + classes[label][:shift]
        x.write(bytes(min(255, max(0, int(v / 2 + rng.gauss(64, 30)))) for v in face))
        y.write(bytes([label]))
