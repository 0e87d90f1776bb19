#!/usr/bin/env python3
"""large_trainer.py: a program for models of any size, with the standard library alone and one block in memory.

    make FILE MIB           a model of so many MiB: tensors of up to 1 GiB, the last one as an owner's own ("own")
    DIRECTORY               as an external trainer: each weight gets another bit in its fraction, and report.json says so
    same BASE AFTER SHARE   ends with 0 if AFTER is what a training of BASE gives, with at least this share of its weights changed and
                            each of the others as it was
"""
import json
import random
import struct
import sys

BLOCK = 1 << 20
FLIP = int.from_bytes(b"\0\0\x40\0" * (BLOCK // 4), "little")  # the upper bit of a fraction: half of the number's power of two


def head(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(length)), 8 + length


def make(path, mib):
    tensors, at = {}, 0
    sizes = [1024] * (mib // 1024) + [mib % 1024] * (mib % 1024 > 0)
    for i, size in enumerate(sizes):
        tensors["w%d" % i] = {"dtype": "F32", "shape": [size, BLOCK // 4], "data_offsets": [at << 20, (at + size) << 20]}
        at += size
    tensors["own"] = {"dtype": "F32", "shape": [1, BLOCK // 4], "data_offsets": [at << 20, (at + 1) << 20]}
    text = json.dumps(tensors).encode()
    text += b" " * (-(len(text) + 8) % 64)
    rng = random.Random(mib)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        # From 2^-8 to 2^4, so that some changes are larger than others; a few blocks in turn.
        blocks = [struct.pack("<%df" % (BLOCK // 4), *(2.0 ** rng.randrange(-8, 4) for _ in range(BLOCK // 4))) for _ in range(3)]
        for i in range(at + 1):
            f.write(blocks[i % 3])


def flip(block):
    return (int.from_bytes(block, "little") ^ (FLIP & ((1 << 8 * len(block)) - 1))).to_bytes(len(block), "little")


def train(directory):
    with open(directory + "/task.json", encoding="utf-8") as f:
        task = json.load(f)
    _, begin = head(task["base"])
    # Local tensors are those that the round before left, and what is added to gradients is read, not used.
    for extra in ("local", "variates"):
        if extra in task:
            head(task[extra])
    with open(task["base"], "rb") as f, open(directory + "/after.safetensors", "wb") as out:
        out.write(f.read(begin))
        while block := f.read(BLOCK):
            out.write(flip(block))
    with open(directory + "/report.json", "w", encoding="utf-8") as f:
        json.dump({"examples": 10, "steps": 1, "loss": 1, "optimizer": 0}, f)


def same(base, after, share):
    tensors, begin = head(base)
    own = tensors["own"]["data_offsets"][0]
    changed = whole = 0
    _, other = head(after)
    with open(base, "rb") as f, open(after, "rb") as g:
        f.seek(begin)
        g.seek(other)
        for at in range(0, own, BLOCK):
            old, new = f.read(BLOCK), g.read(BLOCK)
            whole += len(old) // 4
            if new == flip(old):
                changed += len(old) // 4
            elif new != old:
                want = flip(old)
                for i in range(0, len(old), 4):
                    if new[i:i + 4] == want[i:i + 4]:
                        changed += 1
                    elif new[i:i + 4] != old[i:i + 4]:
                        sys.exit("%s: byte %d is neither old nor new" % (after, at + i))
    if changed < share * whole:
        sys.exit("%s: %d of %d weights have changed" % (after, changed, whole))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "same":
        same(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        train(sys.argv[1])
