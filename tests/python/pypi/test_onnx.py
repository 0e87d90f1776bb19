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
    "normalised by row": (
        [2, 5],
        [{"type": "relu"}],
        {"normalise": {"mean": [0.1, -0.2], "std": [0.7, 2]}},
    ),
    "linear on rows": ([4, 6], [{"type": "linear", "out": 5}, {"type": "relu"}], {}),
    "linear on rows without bias": ([4, 6], [{"type": "linear", "out": 5, "bias": False}], {}),
    "flatten rows": ([4, 6], [{"type": "flatten"}, {"type": "linear", "out": 3}], {}),
    "conv2d in groups": ([6, 7, 8], [conv("c", 4, 3, 1, 1, groups=2), conv("d", 4, 3, 2, groups=4)], {}),
    "conv1d": ([3, 11], [{"type": "conv1d", "out": 5, "kernel": 4, "stride": 2, "padding": 3}], {}),
    "conv1d in groups": (
        [4, 11],
        [
            {"type": "conv1d", "out": 6, "kernel": 3, "groups": 2, "bias": False},
            {"type": "batchnorm"},
            {"type": "global_avgpool"},
            {"type": "linear", "out": 3},
        ],
        {},
    ),
    "pools of a signal": (
        [4, 13],
        [
            {"type": "maxpool2d", "kernel": [1, 2]},
            {"type": "avgpool2d", "kernel": [1, 3], "stride": [1, 1], "padding": [0, 1]},
            {"type": "positions"},
        ],
        {},
    ),
    "pools that make planes of a signal": ([4, 6], [{"type": "avgpool2d", "kernel": 2, "stride": 1, "padding": 1}], {}),
    "global_avgpool": ([3, 5, 4], [{"type": "global_avgpool"}], {}),
    "global_avgpool of what is flat": ([3], [{"type": "global_avgpool"}], {}),
    "curves": (
        [3, 5, 4],
        [{"type": t} for t in ("gelu", "silu", "hardswish", "tanh")]
        + [{"type": "gelu", "approximate": "tanh"}, {"type": "sigmoid"}],
        {},
    ),
    "hardswish": ([40], [{"type": "linear", "out": 40}, {"type": "hardswish"}], {}),
    "gelu by tanh": ([40], [{"type": "linear", "out": 40}, {"type": "gelu", "approximate": "tanh"}], {}),
    "relu6": ([40], [{"type": "linear", "out": 40}, {"type": "relu6"}], {}),
    "leaky_relu and elu": (
        [40],
        [
            {"type": "linear", "out": 40},
            {"type": "leaky_relu", "slope": 0.2},
            {"type": "linear", "out": 40},
            {"type": "elu", "alpha": 1.5},
        ],
        {},
    ),
    "scale": ([3, 5, 4], [conv("a", 4, 1), {"type": "scale", "by": -1.5}], {}),
    "dropout2d": ([3, 5, 4], [conv("a", 4, 1), {"type": "dropout2d", "rate": 0.3}, {"type": "elu"}], {}),
    "reverse": ([5, 4], [{"type": "reverse"}, {"type": "lstm", "out": 6}, {"type": "reverse"}], {}),
    "one row by its mean": ([5, 4], [{"type": "pool_steps", "by": "mean"}, {"type": "linear", "out": 3}], {}),
    "one row by the largest": ([5, 4], [{"type": "pool_steps", "by": "max"}, {"type": "linear", "out": 3}], {}),
    "the first row": ([5, 4], [{"type": "pool_steps", "by": "first"}, {"type": "linear", "out": 3}], {}),
    "the last row": ([5, 4], [{"type": "pool_steps", "by": "last"}, {"type": "linear", "out": 3}], {}),
    "two ways": (
        [6],
        [
            {"type": "embedding", "name": "words", "vocabulary": 11, "out": 4},
            {"type": "gru", "name": "there", "out": 5, "output": "last"},
            {"type": "reverse", "inputs": ["words"]},
            {"type": "gru", "name": "back", "out": 5, "output": "last"},
            {"type": "concat", "inputs": ["there", "back"]},
        ],
        {},
    ),
    "groupnorm": ([6, 5, 4], [{"type": "groupnorm", "groups": 3}], {}),
    "groupnorm of a signal": ([6, 5], [{"type": "groupnorm", "groups": 2, "epsilon": 0.01}], {}),
    "groupnorm of what is flat": ([6], [{"type": "groupnorm", "groups": 2}], {}),
    "groupnorm of a picture of one pixel": ([6, 1, 1], [{"type": "groupnorm", "groups": 2}], {}),
    "groupnorm that trains nothing": ([6, 5, 4], [{"type": "groupnorm", "groups": 1, "affine": False}], {}),
    "layernorm": ([9], [{"type": "layernorm"}], {}),
    "layernorm of a picture of one pixel": ([9, 1, 1], [{"type": "layernorm"}], {}),
    "layernorm of rows": ([4, 9], [{"type": "layernorm", "epsilon": 0.01}], {}),
    "layernorm that trains nothing": ([4, 9], [{"type": "layernorm", "affine": False}], {}),
    "rmsnorm": ([9], [{"type": "rmsnorm"}], {}),
    "rmsnorm of rows": ([4, 9], [{"type": "rmsnorm", "epsilon": 0.01}], {}),
    "rmsnorm that trains nothing": ([4, 9], [{"type": "rmsnorm", "affine": False}], {}),
    "batchnorm": ([3, 5, 4], [{"type": "batchnorm", "epsilon": 0.001}], {}),
    "batchnorm of what is flat": ([7], [{"type": "batchnorm"}], {}),
    "batchnorm that trains nothing": ([3, 5], [{"type": "batchnorm", "affine": False}], {}),
    "lstm": ([5, 4], [{"type": "lstm", "out": 6}], {}),
    "lstm of three": ([5, 4], [{"type": "lstm", "out": 6, "layers": 3}, {"type": "linear", "out": 3}], {}),
    "lstm, the last step": ([5, 4], [{"type": "lstm", "out": 6, "layers": 2, "output": "last"}], {}),
    "lstm without bias": ([5, 4], [{"type": "lstm", "out": 6, "bias": False}], {}),
    "gru": ([5, 4], [{"type": "gru", "out": 6}], {}),
    "gru of three": ([5, 4], [{"type": "gru", "out": 6, "layers": 3}, {"type": "linear", "out": 3}], {}),
    "gru, the last step": (
        [5, 4],
        [{"type": "gru", "out": 6, "output": "last", "bias": False}, {"type": "linear", "out": 3}],
        {},
    ),
    "attention": ([5, 8], [{"type": "attention", "heads": 2}], {}),
    "attention that looks back": ([5, 8], [{"type": "attention", "heads": 4, "causal": True, "bias": False}], {}),
    "attention with rotary places": (
        [7, 12],
        [{"type": "attention", "heads": 3, "causal": True, "positions": "rotary"}],
        {},
    ),
    "attention of a signal's channels": (
        [3, 12],
        [
            {"type": "conv1d", "name": "a", "out": 4, "kernel": 3, "padding": 1},
            {"type": "conv1d", "name": "b", "out": 2, "kernel": 1, "inputs": ["input"]},
            {"type": "concat", "inputs": ["a", "b"]},
            {"type": "attention", "heads": 2, "causal": True},
        ],
        {},
    ),
    "tokens": (
        [6],
        [
            {"type": "embedding", "name": "tokens", "vocabulary": 11, "out": 8},
            {"type": "positions", "name": "places"},
            {"type": "layernorm", "name": "n1"},
            {"type": "attention", "name": "heads", "heads": 2, "causal": True},
            {"type": "add", "name": "sum", "inputs": ["places", "heads"]},
            {"type": "layernorm", "name": "n2"},
            {"type": "linear", "name": "wide", "out": 16},
            {"type": "gelu", "name": "curve"},
            {"type": "linear", "name": "narrow", "out": 8},
            {"type": "add", "name": "sum2", "inputs": ["sum", "narrow"]},
            {"type": "linear", "name": "words", "out": 11},
        ],
        {},
    ),
    "linear with lora": ([6], [{"type": "linear", "out": 5, "lora": {"rank": 2, "alpha": 3}}, {"type": "relu"}], {}),
    "linear with lora on rows": (
        [4, 6],
        [{"type": "linear", "out": 5, "bias": False, "lora": {"rank": 3}}, {"type": "tanh"}],
        {},
    ),
    "weights of an earlier layer": (
        [4],
        [
            {"type": "linear", "name": "a", "out": 4},
            {"type": "tanh"},
            {"type": "linear", "out": 4, "weights": "a"},
            {"type": "linear", "out": 4, "weights": "a", "bias": False},
        ],
        {},
    ),
    "tokens and words of one table": (
        [6],
        [
            {"type": "embedding", "name": "tokens", "vocabulary": 11, "out": 8},
            {"type": "linear", "name": "wide", "out": 8, "lora": {"rank": 2}},
            {"type": "linear", "name": "words", "out": 11, "weights": "tokens"},
        ],
        {},
    ),
    "concat": (
        [2, 5, 4],
        [conv("a", 3, 1), conv("b", 4, 1, inputs=["input"]), {"type": "concat", "inputs": ["a", "input", "b"]}],
        {},
    ),
    "concat of flat and not": (
        [4, 1, 1],
        [{"type": "flatten", "name": "f"}, {"type": "concat", "inputs": ["f", "input"]}],
        {},
    ),
    "concat of rows": (
        [4, 6],
        [
            {"type": "linear", "name": "a", "out": 5},
            {"type": "concat", "name": "wide", "dim": 2, "inputs": ["a", "input"]},
            {"type": "concat", "inputs": ["wide", "wide"]},
        ],
        {},
    ),
    "multiply": ([4, 6], [{"type": "sigmoid", "name": "s"}, {"type": "multiply", "inputs": ["input", "s"]}], {}),
    "multiply by one value for each row": (
        [4, 6],
        [{"type": "global_avgpool", "name": "s"}, {"type": "multiply", "inputs": ["input", "s"]}],
        {},
    ),
    "squeeze and excite": (
        [4, 6, 5],
        [
            {"type": "global_avgpool"},
            {"type": "linear", "out": 2},
            {"type": "relu"},
            {"type": "linear", "out": 4},
            {"type": "sigmoid", "name": "s"},
            {"type": "multiply", "inputs": ["input", "s"]},
        ],
        {},
    ),
    "squeeze and excite by convolutions": (
        [4, 6, 5],
        [
            {"type": "avgpool2d", "kernel": [6, 5]},
            conv("a", 2, 1),
            {"type": "relu"},
            conv("b", 4, 1),
            {"type": "sigmoid", "name": "s"},
            {"type": "multiply", "inputs": ["input", "s"]},
        ],
        {},
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
        for name in tensors:
            if name.endswith("running_var"):
                tensors[name] = np.abs(tensors[name]) + np.float32(0.1)
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
            if layers[0]["type"] == "embedding":
                x = self.random.integers(layers[0]["vocabulary"], size=x.shape).astype("<f4")
            tokens = layers[0]["type"] == "embedding"
            self.assertEqual(session.get_inputs()[0].type, "tensor(int64)" if tokens else "tensor(float)")
            (theirs,) = session.run(None, {"input": x.astype("<i8") if tokens else x})
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
        with open("wire/net/net_spec.c") as f:
            text = f.read().split("type_names[] = {", 1)[1].split("};", 1)[0]
        self.assertEqual({line.split('"')[1] for line in text.splitlines() if '"' in line}, tested)


def model_shape(model):
    return [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim][1:]


if __name__ == "__main__":
    unittest.main()
