"""Writes the network of a reference trace as ONNX: the reference runs once, with operators that note what is asked of them instead of computing it.

    python tests/reference/onnx_graph.py TRACE --weights W.safetensors -o NETWORK.onnx

Wants `onnx` and `safetensors`. The trace's layers keep their names. Layers that are not shared between places (the rects dialect) have no operator in ONNX.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import reference


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, array):
        self.count += 1
        name = f"constant_{self.count}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, kind, operands, shape, **attributes):
        self.count += 1
        name = f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, [self.named(x) for x in operands], [name], name=name, **attributes))
        return Symbol(self, name, tuple(int(n) for n in shape))

    def named(self, x):
        return x.name if isinstance(x, Symbol) else self.constant(x if np.asarray(x).dtype == np.int64 else np.asarray(x, np.float32))


class Symbol:
    """A tensor that is not computed."""

    # NumPy leaves sums with its arrays to this class.
    __array_ufunc__ = None

    def __init__(self, graph, name, shape):
        self.graph, self.name, self.shape, self.ndim = graph, name, shape, len(shape)
        # The tensor that a last transposition took it from.
        self.plain = self

    def transpose(self, *axes):
        turned = self.graph.add("Transpose", [self], [self.shape[a] for a in axes], perm=axes)
        turned.plain = self
        return turned

    def reshape(self, *shape):
        rest = int(np.prod(self.shape)) // int(np.prod([n for n in shape if n != -1]))
        shape = [rest if n == -1 else n for n in shape]
        return self.graph.add("Reshape", [self, np.array(shape, np.int64)], shape)

    def mean(self, axis):
        assert tuple(axis) == (2, 3)
        pooled = self.graph.add("GlobalAveragePool", [self], (*self.shape[:2], 1, 1))
        return pooled.reshape(*self.shape[:2])

    def __add__(self, other):
        return self.graph.add("Add", [self, other], np.broadcast_shapes(self.shape, np.shape(other)))

    __radd__ = __add__


class Ops:
    """The operators of `ops.py` that four of the traces have."""

    def __init__(self, real):
        self.same_padding, self.floor_size, self.chainer_size = real.same_padding, real.floor_size, real.chainer_size

    def f64(self, x):
        return x if isinstance(x, Symbol) else np.asarray(x, np.float32)

    def conv2d(self, x, weight, bias, strides, padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
        extents = [
            (n + before + after - d * (k - 1) - 1) // s + 1
            for n, k, s, d, before, after in zip(x.shape[2:], weight.shape[2:], strides, dilation, padding[::2], padding[1::2])
        ]
        operands = [x, weight] if bias is None else [x, weight, bias]
        return x.graph.add("Conv", operands, (x.shape[0], weight.shape[0], *extents), strides=list(strides), dilations=list(dilation),
                           pads=_pads(padding), group=groups)

    def linear(self, x, weight, bias=None):
        operands = [x, weight] if bias is None else [x, weight, bias]
        return x.graph.add("Gemm", operands, (x.shape[0], weight.shape[0]), transB=1)

    def relu(self, x):
        return x.graph.add("Relu", [x], x.shape)

    def max_pool2d(self, x, kernel, strides, out, padding=(0, 0, 0, 0)):
        return self._pool("MaxPool", x, kernel, strides, out, padding)

    def avg_pool2d(self, x, kernel, strides, out, padding=(0, 0, 0, 0), count_include_pad=False):
        return self._pool("AveragePool", x, kernel, strides, out, padding, count_include_pad=int(count_include_pad))

    def _pool(self, kind, x, kernel, strides, out, padding, **attributes):
        padding = list(padding)
        for axis in range(2):
            reach = (out[axis] - 1) * strides[axis] + kernel[axis]
            missing = reach - padding[2 * axis] - x.shape[2 + axis]
            assert kind == "MaxPool" or missing <= padding[2 * axis + 1], "an average over less than its window"
            padding[2 * axis + 1] = max(padding[2 * axis + 1], missing)
        return x.graph.add(kind, [x], (*x.shape[:2], *out), kernel_shape=list(kernel), strides=list(strides), pads=_pads(padding), **attributes)

    def batch_norm(self, x, gamma, beta, mean, var, eps, axis):
        assert axis == 1
        one = np.ones(x.shape[1], np.float32)
        operands = [x, one if gamma is None else gamma, 0 * one if beta is None else beta, mean, var]
        return x.graph.add("BatchNormalization", operands, x.shape, epsilon=eps)

    def lrn(self, x, depth_radius, bias, alpha, beta):
        # ONNX's is NCHW, and its alpha is divided by the window.
        size = 2 * depth_radius + 1
        y = x.transpose(0, 3, 1, 2)
        y = x.graph.add("LRN", [y], y.shape, size=size, bias=float(bias), alpha=float(alpha * size), beta=float(beta))
        return y.transpose(0, 2, 3, 1)


class Numpy:
    """Functions of NumPy that the references call."""

    def __getattr__(self, name):
        return getattr(np, name)

    def pad(self, x, amounts):
        pads = [before for before, _ in amounts] + [after for _, after in amounts]
        shape = [n + before + after for n, (before, after) in zip(x.shape, amounts)]
        return x.graph.add("Pad", [x, np.array(pads, np.int64)], shape)

    def ascontiguousarray(self, x):
        return x

    def max(self, x, axis, keepdims):
        return self._reduced("ReduceMax", x, axis, keepdims)

    def sum(self, x, axis, keepdims):
        return self._reduced("ReduceSum", x, axis, keepdims)

    def _reduced(self, kind, x, axis, keepdims):
        shape = [1 if at == axis % x.ndim else n for at, n in enumerate(x.shape)]
        assert keepdims
        if kind == "ReduceSum":
            return x.graph.add(kind, [x, np.array([axis], np.int64)], shape, keepdims=1)
        return x.graph.add(kind, [x], shape, axes=[axis], keepdims=1)


def _pads(padding):
    return [padding[0], padding[2], padding[1], padding[3]]


def _binary(kind):
    def apply(a, b):
        graph = (a if isinstance(a, Symbol) else b).graph
        return graph.add(kind, [a, b], np.broadcast_shapes(np.shape(a), np.shape(b)))

    return apply


def write(trace: Path, weights: Path, output: Path) -> list[str]:
    """Writes the network without a last softmax; of each layer the trace's name and the tensor's, which may have its axes in another order."""
    text = trace.read_text(encoding="utf-8")
    dialect = reference.recognise(text)
    module = importlib.import_module(reference.MODULES[dialect])
    module.ops, module.np = Ops(module.ops), Numpy()
    if dialect == "megengine":
        names = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "TRUE_DIV": "Div"}
        module.ELEMWISE = {mode: _binary(kind) for mode, kind in names.items()}
        module.ELEMWISE["EXP"] = lambda x: x.graph.add("Exp", [x], x.shape)
        module.ELEMWISE["RELU"] = module.ops.relu
        module.ELEMWISE["FUSE_ADD_RELU"] = lambda a, b: module.ops.relu(_binary("Add")(a, b))
    network = module.Reference(text)
    graph = Graph()
    (name, shape), = network.input_shapes(1).items()
    entered = Symbol(graph, "input", shape)
    stored = reference.Weights(weights)
    layers = {}
    for key, value in network.run({name: entered}, stored):
        # References whose own layout is NCHW turn what they yield, which nothing reads.
        layers[key] = value.plain
    keys = list(layers)
    # Behind the last layer with weights stands at most a softmax, in pieces.
    last = max(at for at, key in enumerate(keys) if any(layers[key].name in node.output and node.op_type in ("Gemm", "Add", "Conv", "MaxPool")
                                                        for node in graph.nodes))
    keys = keys[: last + 1]
    outputs = [layers[keys[-1]]]
    needed, kept = {outputs[0].name}, []
    for node in reversed(graph.nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    kept.reverse()
    value = lambda symbol: helper.make_tensor_value_info(symbol.name, onnx.TensorProto.FLOAT, list(symbol.shape))
    constants = [constant for constant in graph.constants if constant.name in needed]
    made = helper.make_graph(kept, dialect, [value(entered)], [value(symbol) for symbol in outputs], constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, output)
    return [f"{key}\t{layers[key].name}" for key in keys]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("-o", type=Path, required=True)
    options = parser.parse_args()
    print("\n".join(write(options.trace, options.weights, options.o)))


if __name__ == "__main__":
    sys.exit(main())
