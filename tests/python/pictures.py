"""PNG files of every kind, written with the standard library alone, and what their values are."""

import itertools
import random
import struct
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # x, y, steps

Rows = List[List[Tuple[int, ...]]]  # of pixels, in the file's own depth


class Picture(NamedTuple):
    name: str
    data: bytes  # the file
    kind: int
    depth: int
    rows: Rows
    palette: Sequence[Tuple[int, int, int]]
    opacity: Sequence[int]  # of the palette's first colours
    clear: Optional[Tuple[int, ...]]  # the colour that is transparent


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(row: Sequence[Tuple[int, ...]], depth: int) -> bytes:
    values = [v for pixel in row for v in pixel]
    if depth == 16:
        return struct.pack(">%dH" % len(values), *values)
    bits = "".join(format(v, "0%db" % depth) for v in values)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def filtered(lines: Sequence[bytes], step: int, rng: random.Random) -> bytes:
    """Each line by one of the four filters that need no search, or by none."""
    out, above = b"", b""
    for line in lines:
        above, how = above or bytes(len(line)), rng.randrange(4)
        left = bytes(step) + line
        guess = [bytes(len(line)), left, above, bytes((a + b) // 2 for a, b in zip(left, above))][how]
        out += bytes([how]) + bytes((v - g) & 255 for v, g in zip(line, guess))
        above = line
    return out


def encoded(kind: int, depth: int, rows: Rows, between: bytes, interlaced: bool, rng: random.Random) -> bytes:
    height, width = len(rows), len(rows[0])
    step = max(CHANNELS[kind] * depth // 8, 1)
    parts = [rows]
    if interlaced:
        parts = [[row[x::dx] for row in rows[y::dy]] for x, y, dx, dy in PASSES]
    pixels = b"".join(filtered([packed(row, depth) for row in part if row], step, rng) for part in parts)
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + between + chunk(b"IDAT", zlib.compress(pixels))
            + chunk(b"IEND", b""))  # fmt: skip


NOTES: Dict[str, bytes] = {
    "plain": b"",
    "gamma-1": chunk(b"gAMA", struct.pack(">I", 100000)),
    "gamma-2.2": chunk(b"gAMA", struct.pack(">I", 45455)),
    "srgb": chunk(b"sRGB", b"\0") + chunk(b"gAMA", struct.pack(">I", 45455)),
    "white-point": chunk(b"cHRM", struct.pack(">8I", 34570, 35850, 70800, 29200, 17000, 79700, 13100, 4600)),
    "profile": chunk(b"iCCP", b"some\0\0" + zlib.compress(b"no profile at all" * 20)),
}


def drawn(kind: int, depth: int, width: int, height: int, rng: random.Random, colours: int) -> Rows:
    top = colours if kind == PALETTE else 1 << depth
    return [
        [tuple(rng.randrange(top) for _ in range(CHANNELS[kind])) for _ in range(width)] for _ in range(height)
    ]


def pictures(width: int, height: int, seed: int) -> Iterator[Picture]:
    """Every kind, depth, note and way of transparency, interlaced and not."""
    rng = random.Random(seed)
    for kind, depths in DEPTHS.items():
        for depth, note, interlaced, clears in itertools.product(depths, NOTES, (False, True), (False, True)):
            if clears and kind in (GREY_ALPHA, RGB_ALPHA):
                continue
            between, palette, opacity, clear = NOTES[note], [], [], None
            if kind == PALETTE:
                palette = [tuple(rng.randrange(256) for _ in range(3)) for _ in range(min(1 << depth, 200))]
                between += chunk(b"PLTE", bytes(v for colour in palette for v in colour))
            rows = drawn(kind, depth, width, height, rng, len(palette))
            if clears and kind == PALETTE:
                opacity = [rng.randrange(256) for _ in range(rng.randrange(1, len(palette) + 1))]
                between += chunk(b"tRNS", bytes(opacity))
            elif clears:
                clear = rows[height // 2][width // 2]
                between += chunk(b"tRNS", struct.pack(">%dH" % len(clear), *clear))
            if note == "plain" and kind != PALETTE:
                between += chunk(b"bKGD", struct.pack(">%dH" % (3 if kind & 2 else 1), *[0] * (3 if kind & 2 else 1)))
                between += chunk(b"sBIT", bytes([min(5, depth)] * CHANNELS[kind]))
            name = "png-%d-%02d-%s-%d-%d" % (kind, depth, note, interlaced, clears)
            data = encoded(kind, depth, rows, between, interlaced, rng)
            yield Picture(name, data, kind, depth, rows, palette, opacity, clear)


def eight_bits(v: int, depth: int) -> int:
    return v >> 8 if depth == 16 else v * 255 // ((1 << depth) - 1)


def values(p: Picture, grey: bool, white: bool) -> List[Tuple[float, ...]]:
    """What the picture shows, pixel by pixel; white: below what is transparent."""
    out = []
    for pixel in itertools.chain.from_iterable(p.rows):
        opacity = 255
        if p.kind == PALETTE:
            opacity = p.opacity[pixel[0]] if pixel[0] < len(p.opacity) else 255
            colour: Sequence[Any] = p.palette[pixel[0]]
        else:
            colour = [eight_bits(v, p.depth) for v in pixel]
            if p.kind in (GREY_ALPHA, RGB_ALPHA):
                *colour, opacity = colour
            elif pixel == p.clear:
                opacity = 0
        if len(colour) == 1:
            colour = list(colour) * 3
        if white:
            colour = [255 - (255 - v) * opacity / 255 for v in colour]
        if grey:
            colour = [0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]]
        out.append(tuple(colour))
    return out
