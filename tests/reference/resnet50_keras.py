"""Reference for Keras ResNets (50, 101, 152) of which only the node names are left.

The names decide which blocks there are and which of them project their shortcut; everything else is Keras's: bottlenecks of
64, 128, 256, 512 filters and four times as many out, stride 2 in `_1_conv` and `_0_conv` of the first block of stages 3 to
5, batch-norm epsilon 1.001e-5, pads of 3 and 1 in front of the stem's convolution and pooling (both zeros, VALID), global
mean, 1000 classes.

Key of a layer: the node's name without the network, `conv1_conv/BiasAdd`, `conv2_block1_out/Relu`, in Keras's layout, NHWC.
Weights: `conv1_conv/kernel` HWIO, `conv1_conv/bias`, `conv1_bn/gamma`, `beta`, `moving_mean`, `moving_variance`,
`predictions/kernel` [in, out].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import ops

EPS = 1.001e-5
CLASSES = 1000
Step = tuple[str, np.ndarray]


class Reference:
    dialect = "keras-order"
    output = "predictions/BiasAdd"

    def __init__(self, text: str) -> None:
        layers = {m.group(1) for m in re.finditer(r"^resnet\d+/([^/\n]+)/", text, re.M)}
        found = [re.fullmatch(r"conv(\d+)_block(\d+)_add", layer) for layer in layers]
        self.blocks = sorted((int(m.group(1)), int(m.group(2))) for m in found if m)
        self.projected = {(s, b) for s, b in self.blocks if f"conv{s}_block{b}_0_conv" in layers}
        assert self.blocks and {"conv1_conv", "predictions"} <= layers, "no Keras ResNet"

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        return {"input": (batch, 224, 224, 3)}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}

        def conv_bn(layer: str, kernel: int, c: int, o: int) -> None:
            shapes[f"{layer}_conv/kernel"] = (kernel, kernel, c, o)
            shapes[f"{layer}_conv/bias"] = (o,)
            for variable in ("gamma", "beta", "moving_mean", "moving_variance"):
                shapes[f"{layer}_bn/{variable}"] = (o,)

        conv_bn("conv1", 7, 3, 64)
        c = 64
        for s, b in self.blocks:
            filters = 64 << (s - 2)
            if (s, b) in self.projected:
                conv_bn(f"conv{s}_block{b}_0", 1, c, 4 * filters)
            conv_bn(f"conv{s}_block{b}_1", 1, c, filters)
            conv_bn(f"conv{s}_block{b}_2", 3, filters, filters)
            conv_bn(f"conv{s}_block{b}_3", 1, filters, 4 * filters)
            c = 4 * filters
        shapes["predictions/kernel"] = (c, CLASSES)
        shapes["predictions/bias"] = (CLASSES,)
        return shapes

    def run(self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]) -> Iterator[Step]:
        for name, nchw in self.nchw(inputs, weights):
            yield name, nchw.transpose(0, 2, 3, 1) if nchw.ndim == 4 else nchw

    def nchw(self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]) -> Iterator[Step]:
        x = ops.f64(inputs["input"]).transpose(0, 3, 1, 2)
        x = _padded(x, 3)
        yield "conv1_pad/Pad", x
        x = yield from _conv_bn(x, "conv1", weights, stride=2)
        x = yield from _relu(x, "conv1_relu")
        x = _padded(x, 1)
        yield "pool1_pad/Pad", x
        x = ops.max_pool2d(x, (3, 3), (2, 2), [ops.floor_size(n, 3, 2) for n in x.shape[2:]])
        yield "pool1_pool/MaxPool", x
        for s, b in self.blocks:
            layer = f"conv{s}_block{b}"
            stride = 2 if b == 1 and s > 2 else 1
            shortcut = x
            if (s, b) in self.projected:
                shortcut = yield from _conv_bn(x, f"{layer}_0", weights, stride)
            x = yield from _conv_bn(x, f"{layer}_1", weights, stride)
            x = yield from _relu(x, f"{layer}_1_relu")
            x = yield from _conv_bn(x, f"{layer}_2", weights, padding=1)
            x = yield from _relu(x, f"{layer}_2_relu")
            x = yield from _conv_bn(x, f"{layer}_3", weights)
            x = shortcut + x
            yield f"{layer}_add/add", x
            x = yield from _relu(x, f"{layer}_out")
        x = x.mean(axis=(2, 3))
        yield "avg_pool/Mean", x
        x = ops.linear(x, weights["predictions/kernel"].T)
        yield "predictions/MatMul", x
        yield self.output, x + ops.f64(weights["predictions/bias"])


def _conv_bn(x: np.ndarray, layer: str, weights: Mapping[str, np.ndarray], stride: int = 1, padding: int = 0):
    conv, bn = f"{layer}_conv", f"{layer}_bn"
    oihw = weights[f"{conv}/kernel"].transpose(3, 2, 0, 1)
    x = ops.conv2d(x, oihw, None, (stride, stride), (padding,) * 4)
    yield f"{conv}/Conv2D", x
    x = x + ops.f64(weights[f"{conv}/bias"]).reshape(1, -1, 1, 1)
    yield f"{conv}/BiasAdd", x
    gamma, beta, mean, var = (weights[f"{bn}/{v}"] for v in ("gamma", "beta", "moving_mean", "moving_variance"))
    x = ops.batch_norm(x, gamma, beta, mean, var, EPS, axis=1)
    yield f"{bn}/FusedBatchNormV3", x
    return x


def _relu(x: np.ndarray, layer: str):
    x = ops.relu(x)
    yield f"{layer}/Relu", x
    return x


def _padded(x: np.ndarray, amount: int) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), (amount, amount), (amount, amount)])
