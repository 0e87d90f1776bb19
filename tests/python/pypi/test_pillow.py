"""`rivulet data pack` against Pillow: every kind of PNG and JPEG has the values of Image.open(file).convert("RGB") and .convert("L"), within
1, but for what docs/devices.md excepts. Needs Pillow and numpy; the program is $BUILD/rivulet, JPEG files of rare samplings are made
by $BUILD/tests/tools/jpegs."""

import io
import os
import subprocess
import tempfile
import unittest

import numpy
from PIL import Image

import pictures

BUILD = os.environ.get("BUILD", "build/mbedtls")
SEED = int(os.environ.get("SEED", "11"))
SIDE = 37  # neither a multiple of 8 nor even
HEAD = 128
EXIF_TURN = 0x0112


def smooth(rng, channels):
    """Slopes, edges and a little noise: what compression is made for."""
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    out = numpy.stack([rng.integers(256) + x * rng.normal(0, 4) + y * rng.normal(0, 4) for _ in range(channels)], -1)
    out += rng.normal(0, 6, out.shape)
    out[rng.integers(SIDE) :, rng.integers(SIDE) :] += rng.normal(0, 80, channels)
    return numpy.clip(out, 0, 255).astype("u1")


def saved(image, kind="JPEG", **how):
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def jpegs(rng):
    """name, bytes."""
    for n in range(6):
        for progressive in (False, True):
            for quality in (30, 90):
                for sampling in ("4:4:4", "4:2:2", "4:2:0"):
                    image = Image.fromarray(smooth(rng, 3))
                    name = "rgb-%d-%d-%d-%s" % (n, progressive, quality, sampling.replace(":", ""))
                    yield name, saved(image, progressive=progressive, quality=quality, subsampling=sampling)
                grey = Image.fromarray(smooth(rng, 1)[:, :, 0])
                yield "grey-%d-%d-%d" % (n, progressive, quality), saved(grey, progressive=progressive, quality=quality)
                cmyk = saved(Image.fromarray(smooth(rng, 4), "CMYK"), progressive=progressive, quality=quality)
                name = "cmyk-%d-%d-%d" % (n, progressive, quality)
                yield name, cmyk
                at = cmyk.index(b"Adobe")
                yield name + "-no-mark", cmyk[: at - 4] + cmyk[at + 12 :]
                # The same numbers, taken for YCCK.
                yield name + "-ycck", cmyk[: at + 11] + b"\2" + cmyk[at + 12 :]
        kept = saved(Image.fromarray(smooth(rng, 3)), keep_rgb=True)
        yield "keep-rgb-%d" % n, kept
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[EXIF_TURN] = turn
        yield "exif-%d" % turn, saved(Image.fromarray(smooth(rng, 3)), exif=exif)


def pngs(rng):
    """As Pillow writes them."""
    for n in range(4):
        for mode, channels in (("L", 1), ("RGB", 3), ("LA", 2), ("RGBA", 4)):
            data = smooth(rng, channels)
            image = Image.fromarray(data[:, :, 0] if channels == 1 else data, mode)
            yield "pillow-%s-%d.png" % (mode, n), saved(image, "PNG", optimize=bool(n % 2))
        colours = Image.fromarray(smooth(rng, 3)).quantize(2 + 80 * n)
        yield "pillow-P-%d.png" % n, saved(colours, "PNG")
        yield "pillow-1-%d.png" % n, saved(Image.fromarray(smooth(rng, 1)[:, :, 0]).convert("1"), "PNG")
        exif = Image.Exif()
        exif[EXIF_TURN] = n + 3
        yield "pillow-exif-%d.png" % n, saved(Image.fromarray(smooth(rng, 3)), "PNG", exif=exif)


class Pillow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.folder = os.path.join(cls.holder.name, "set")
        os.makedirs(os.path.join(cls.folder, "a"))
        rng = numpy.random.default_rng(SEED)
        drawn = [(p.name, p.data) for p in pictures.pictures(SIDE, SIDE, SEED)]
        for name, data in [*drawn, *jpegs(rng), *pngs(rng)]:
            with open(os.path.join(cls.folder, "a", name), "wb") as f:
                f.write(data)
        subprocess.run([os.path.join(BUILD, "tests/tools/jpegs"), os.path.join(cls.folder, "a"), str(SIDE)], check=True)
        cls.names = sorted(os.listdir(os.path.join(cls.folder, "a")))

    def packed(self, *words):
        out = os.path.join(self.holder.name, "out.rvp")
        command = [os.path.join(BUILD, "rivulet"), "data", "pack", self.folder, "-o", out, *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        channels = 1 if "--grey" in words else 3
        values = numpy.fromfile(out, "u1", offset=HEAD)[: len(self.names) * channels * SIDE * SIDE]
        return values.reshape(len(self.names), channels, SIDE, SIDE)

    def opened(self, name):
        image = Image.open(os.path.join(self.folder, "a", name))
        image.load()
        if image.mode.startswith("I"):  # 16 bits of grey, which convert would clip
            image = Image.fromarray((numpy.asarray(image).astype("u4") >> 8).astype("u1"))
        return image

    def compare(self, got, mode, wanted, what, names):
        worst, equal = 0, 0
        for name, block in zip(names, got):
            want = numpy.asarray(wanted(name).convert(mode)).astype(int).reshape(SIDE, SIDE, -1).transpose(2, 0, 1)
            off = int(numpy.abs(block.astype(int) - want).max())
            self.assertLessEqual(off, 1, (name, what, mode, SEED))
            worst, equal = max(worst, off), equal + (off == 0)
        print("%s, %s: %d pictures, %d equal, largest difference %d" % (what, mode, len(got), equal, worst), flush=True)

    def test_as_convert_has_it(self):
        self.assertGreater(len(self.names), 300)
        self.compare(self.packed("--alpha", "drop"), "RGB", self.opened, "convert", self.names)
        self.compare(self.packed("--alpha", "drop", "--grey"), "L", self.opened, "convert", self.names)

    def test_over_white(self):
        """But where one colour is the transparent one: that of less or more than 8 bits is another in Pillow."""

        def over_white(name):
            image = self.opened(name).convert("RGBA")
            return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)

        kept = [i for i, n in enumerate(self.names) if not (n.startswith(("png-0", "png-2")) and n.endswith("-1"))]
        names = [self.names[i] for i in kept]
        self.compare(self.packed()[kept], "RGB", over_white, "over white", names)
        self.compare(self.packed("--grey")[kept], "L", over_white, "over white", names)

    def test_cut(self):
        """Wherever a file is cut, it is named, and what is wrong with it."""
        folder = os.path.join(self.holder.name, "cut", "a")
        os.makedirs(folder)
        out = os.path.join(self.holder.name, "cut.rvp")
        rng = numpy.random.default_rng(SEED)
        image = Image.fromarray(smooth(rng, 3))
        for name, data in (
            ("x.jpg", saved(image)),
            ("x.jpg", saved(image, progressive=True)),
            ("x.jpg", saved(Image.fromarray(smooth(rng, 4), "CMYK"))),
            ("x.png", saved(image, "PNG")),
        ):
            for cut in [*rng.integers(0, len(data), 12), len(data) - 1, len(data) - 2]:
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data[:cut] or b"x")
                command = [os.path.join(BUILD, "rivulet"), "data", "pack", os.path.dirname(folder), "-o", out]
                done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
                self.assertEqual(done.returncode, 6, (name, cut, SEED))
                self.assertRegex(done.stderr, r"cut/a/%s: (JPEG|PNG|this is neither)" % name)
            os.unlink(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
