"""`rivulet model export --onnx`: every built-in layer through onnxruntime equals `rivulet eval`, and the bytes are
those that ONNX's own library makes of the same graph. Needs numpy, onnx and onnxruntime; the program is $BUILD/rivulet.
"""

import json
import os
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime

from networks import RIVULET, eval_rows, job_document, layer_tensors, write_tensors

TOLERANCE = 1e-5  # of the largest output


def conv(name, out, kernel, stride=1, padding=0, **more):
    return dict(
        {"type": "conv2d", "name": name, "out": out, "kernel": kernel, "stride": stride, "padding": padding}, **more
    )


# name: (shape of an example, layers, keys of "data")
CASES = {
    "linear": ([6], [{"type": "linear", "out": 5}], {}),
    "linear without bias": ([6], [{"type": "linear", "out": 5, "bias": False}], {}),
    "linear on a picture of one pixel": ([6, 1, 1], [{"type": "linear", "out": 5}], {}),
    "conv2d": ([3, 9, 8], [conv("c", 4, 3)], {}),
    "conv2d without bias": ([3, 9, 8], [conv("c", 4, 3, bias=False)], {}),
    "conv2d with odd windows": ([2, 11, 13], [conv("c", 3, [3, 5], [2, 3], [1, 2])], {}),
    "conv2d padded by more than its kernel": ([1, 4, 5], [conv("c", 2, [2, 1], [1, 2], [3, 0])], {}),
    "conv2d on a flat input": ([6], [conv("c", 4, 1), {"type": "relu"}], {}),
    "maxpool2d": ([3, 8, 6], [{"type": "maxpool2d", "kernel": 2}], {}),
    "maxpool2d with odd windows": (
        [2, 11, 9],
        [{"type": "maxpool2d", "kernel": [3, 4], "stride": [2, 3], "padding": [1, 2]}],
        {},
    ),
    "maxpool2d that overlaps": ([2, 7, 7], [{"type": "maxpool2d", "kernel": 3, "stride": 1, "padding": 1}], {}),
    "avgpool2d": ([3, 8, 6], [{"type": "avgpool2d", "kernel": 2}], {}),
    "avgpool2d with odd windows": (
        [2, 11, 9],
        [{"type": "avgpool2d", "kernel": [3, 4], "stride": [2, 3], "padding": [1, 2]}],
        {},
    ),
    "relu": ([7], [{"type": "relu"}], {}),
    "flatten": ([2, 3, 4], [{"type": "flatten"}], {}),
    "flatten what is flat": ([5], [{"type": "flatten"}, {"type": "linear", "out": 3}], {}),
    "dropout": ([2, 3, 4], [{"type": "dropout", "rate": 0.5}, {"type": "relu"}], {}),
    "add": (
        [2, 5, 5],
        [conv("a", 3, 3, 1, 1), conv("b", 3, 1, inputs=["input"]), {"type": "add", "inputs": ["a", "b"]}],
        {},
    ),
    "add of three and of one twice": (
        [4],
        [
            {"type": "linear", "name": "a", "out": 4},
            {"type": "relu", "name": "r"},
            {"type": "add", "name": "s", "inputs": ["input", "a", "r"]},
            {"type": "add", "inputs": ["s", "s"]},
        ],
        {},
    ),
    "add of flat and not": (
        [4, 1, 1],
        [{"type": "flatten", "name": "f"}, conv("c", 4, 1, inputs=["input"]), {"type": "add", "inputs": ["c", "f"]}],
        {},
    ),
    "normalised by one number": ([2, 3, 3], [{"type": "relu"}], {"normalise": {"mean": 0.1, "std": 0.7}}),
    "normalised by channel": ([2, 3, 3], [{"type": "relu"}], {"normalise": {"mean": [0.1, -0.2], "std": [0.7, 2]}}),
    "normalised by column": (
        [3],
        [{"type": "linear", "out": 2}],
        {"normalise": {"mean": [0.1, -0.2, 1], "std": [0.7, 2, 3]}},
    ),
    "names that look like others": (
        [4],
        [
            {"type": "linear", "name": "output", "out": 4},
            {"type": "relu", "name": "output.weight"},
            {"type": "linear", "name": "a.b.c", "out": 3},
        ],
        {},
    ),
    "residual network": (
        [3, 9, 9],
        [
            conv("in", 4, 3, 1, 1, bias=False),
            {"type": "relu", "name": "a"},
            conv("b1", 4, 3, 1, 1),
            {"type": "relu"},
            conv("b2", 4, 3, 1, 1),
            {"type": "add", "name": "sum", "inputs": ["b2", "a"]},
            {"type": "relu"},
            {"type": "avgpool2d", "kernel": 9},
            {"type": "flatten"},
            {"type": "linear", "name": "fc", "out": 10},
        ],
        {},
    ),
}


class Onnx(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.random = np.random.default_rng(7)

    def tearDown(self):
        self.dir.cleanup()

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def export(self, shape, layers, data):
        job = job_document(shape, layers, data=data)
        with open(self.path("job.json"), "w") as f:
            json.dump(job, f)
        tensors = {name: self.random.normal(size=shape).astype("<f4") for name, shape in layer_tensors(job).items()}
        write_tensors(self.path("model.safetensors"), tensors)
        subprocess.run(
            [
                RIVULET,
                "model",
                "export",
                self.path("model.safetensors"),
                "--job",
                self.path("job.json"),
                "--onnx",
                self.path("net.onnx"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def check(self, shape, layers, data):
        self.export(shape, layers, data)
        with open(self.path("net.onnx"), "rb") as f:
            raw = f.read()
        model = onnx.load_from_string(raw)
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual(model.SerializeToString(), raw)
        session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
        for batch in (1, 5):
            x = self.random.normal(size=[batch] + shape).astype("<f4")
            (theirs,) = session.run(None, {"input": x})
            ours = eval_rows(self.dir.name, x)
            self.assertEqual([batch] + list(model_shape(model)), list(theirs.shape))
            np.testing.assert_allclose(
                ours.reshape(theirs.shape), theirs, rtol=0, atol=TOLERANCE * np.abs(theirs).max()
            )

    def test_every_layer(self):
        for name, (shape, layers, data) in CASES.items():
            with self.subTest(name):
                self.check(shape, layers, data)

    def test_every_type_is_tested(self):
        tested = {layer["type"] for _, layers, _ in CASES.values() for layer in layers}
        with open("wire/job/recipe_layer.c") as f:
            text = f.read().split("type_names[] = {", 1)[1].split("};", 1)[0]
        self.assertEqual({line.split('"')[1] for line in text.splitlines() if '"' in line}, tested)


def model_shape(model):
    return [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim][1:]


if __name__ == "__main__":
    unittest.main()
