"""wheel_device.py HOME: a device in Python with numpy alone, of jobs as examples/own_loop.json; it leaves when none comes. Then prints
the shared libraries that this process has of Rivulet, libcurl and OpenSSL."""
import hashlib
import ssl
import sys

import numpy
import rivulet

POINTS = 500
generator = numpy.random.default_rng(1)
x = generator.uniform(-1, 1, (POINTS, 2)).astype("f4")
y = (x.sum(1) > 0).astype(int)


def train(task):
    """A line between two kinds of points, by logistic regression."""
    weight, bias = task.tensors["fc.weight"], task.tensors["fc.bias"]
    for _ in range(20):
        scores = x @ weight.T + bias
        p = numpy.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -numpy.log(p[numpy.arange(POINTS), y]).mean()
        error = (p - numpy.eye(2)[y]) / POINTS
        weight -= error.T @ x
        bias -= error.sum(0)
        task.step(float(loss), POINTS, int((p.argmax(1) == y).sum()))


for task in rivulet.tasks("own-loop", "points", POINTS, home=sys.argv[1], rounds=3, wait=60):
    with task:
        train(task)
        task.submit()
# Python's own TLS, beside the library's in one process.
ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
hashlib.sha512(b"").digest()
with open("/proc/self/maps", encoding="utf-8") as f:
    loaded = {line.split()[-1] for line in f if ".so" in line}
print("\n".join(sorted(p for p in loaded if any(word in p for word in ("librivulet", "libcurl", "libssl", "libmbedtls")))))
