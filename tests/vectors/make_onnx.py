#!/usr/bin/env python3
"""Writes tests/vectors/tiny.onnx with ONNX's own library (onnx 1.23 from PyPI): the network of tests/unit/test_onnx.c
as wire/onnx/onnx.h says that it is written. Weight i of all is i / 2."""

import os

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

weights = [("c.weight", [2, 2, 2, 1]), ("c.bias", [2]), ("fc.weight", [2, 2])]
tensors, first = [], 0
for name, shape in weights:
    n = int(np.prod(shape))
    tensors.append(
        numpy_helper.from_array(np.arange(first, first + n, dtype="<f4").reshape(shape) / np.float32(2), name)
    )
    first += n
for name, values in (("/normalise/mean", [0.25, 0.5]), ("/normalise/std", [2, 4])):
    tensors.append(numpy_helper.from_array(np.array(values, "<f4").reshape(2, 1, 1), name))
tensors.append(numpy_helper.from_array(np.array([0, -1, 1, 1], "<i8"), "/planes/shape"))

window = dict(kernel_shape=[2, 1], pads=[1, 0, 1, 0], strides=[1, 2])
pool = dict(kernel_shape=[4, 2], pads=[0, 1, 0, 1], strides=[4, 3])
nodes = [
    helper.make_node("Sub", ["input", "/normalise/mean"], ["/normalise/subtract"], "/normalise/subtract"),
    helper.make_node("Div", ["/normalise/subtract", "/normalise/std"], ["/normalise"], "/normalise"),
    helper.make_node("Conv", ["/normalise", "c.weight", "c.bias"], ["/layer/c"], "c", **window),
    helper.make_node("Relu", ["/layer/c"], ["/layer/r"], "r"),
    helper.make_node("AveragePool", ["/layer/r"], ["/layer/p"], "p", count_include_pad=1, **pool),
    helper.make_node("Flatten", ["/layer/p"], ["/layer/f"], "f"),
    helper.make_node("Identity", ["/layer/f"], ["/layer/d"], "d"),
    helper.make_node("Gemm", ["/layer/d", "fc.weight"], ["/layer/fc"], "fc", transB=1),
    helper.make_node("Flatten", ["/layer/p"], ["/flat/sum0"], "/flat/sum0"),
    helper.make_node("Sum", ["/flat/sum0", "/layer/fc"], ["/layer/sum"], "sum"),
    helper.make_node("Reshape", ["/layer/sum", "/planes/shape"], ["/planes/m0"], "/planes/m0"),
    helper.make_node(
        "MaxPool", ["/planes/m0"], ["output"], "m", kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1]
    ),
]
graph = helper.make_graph(
    nodes,
    "tiny",
    [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 2, 3, 3])],
    [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 2, 1, 1])],
    tensors,
)
model = helper.make_model(graph, producer_name="rivulet", ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
checker.check_model(model, full_check=True)
with open(os.path.join(os.path.dirname(__file__), "tiny.onnx"), "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
