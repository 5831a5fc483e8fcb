"""Writes tests/models/onnx_mixed: quantised networks partly in f32, and transposed convolutions of every kind, with what ONNX Runtime makes of them.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime numpy && venv/bin/python tests/oracle/make_onnx_mixed.py [FOLDER COUNT]

The number of a case is its seed. No operand is square. Layers lose channels where the script gives them a bias that no sum reaches. With a folder and a count
it writes so many further networks there, for a search by hand.
"""

import pathlib
import sys

import numpy as np

import make_onnx
from quantised_networks import grid, real, weights

COUNT = 48
I8, U8 = np.int8, np.uint8


def limits(dtype):
    return np.iinfo(dtype).min, np.iinfo(dtype).max


class Maker:
    """A network of a seed. Activations are NCHW or NCW, quantised, by name; `at` is their scale, zero point and type."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed
        self.random = np.random.default_rng(seed)
        self.dtype = [I8, U8][self.pick(2)]

    def pick(self, count):
        return int(self.random.integers(count))

    def any(self, *choices):
        return choices[self.pick(len(choices))]

    def params(self, scale=None, zero=None):
        low, high = limits(self.dtype)
        zero = int(self.random.integers(low + 20, high - 20)) if zero is None else zero
        return np.float32(scale or self.random.uniform(0.02, 0.06)), zero, self.dtype

    def rectified(self):
        return self.params(zero=limits(self.dtype)[0])

    def bias(self, channels, unit, spread=600):
        """Some channels have a bias that no sum of products reaches: they are always at one end of their range."""
        values = self.random.integers(-spread, spread, size=channels).astype(np.int64)
        for channel in range(channels):
            if self.pick(2 if self.seed % 4 == 3 else 3) == 0:
                values[channel] = self.any(-1, -1, 1) * (1 << 22)
        whole = self.n.value(values.astype(np.int32))
        unit = np.broadcast_to(unit, channels).astype(np.float32)
        return self.n.DequantizeLinear(whole, self.n.value(unit), self.n.value(np.zeros(channels, np.int32)), axis=0)

    def conv(self, q, at, shape, depthwise=False):
        """A convolution of dequantised operands; its result is real."""
        n, rank, channels = self.n, len(shape) - 2, shape[1]
        # Kernels take up to 8 channels at a time, and fillers make up for those that go.
        out = channels if depthwise else (12 if self.seed % 4 == 3 else 3) + self.pick(5)
        kernel = [self.any(1, 2, 3) for _ in range(rank)]
        group = channels if depthwise else 1
        w, scales = weights(n, out, channels // group, *kernel, per_channel=bool(self.pick(2)))
        stride = [1 + self.pick(2) for _ in range(rank)]
        pads = [k // 2 for k in kernel] + [(k - 1) // 2 for k in kernel]
        y = n.Conv(real(n, q, *at), w, self.bias(out, scales * at[0]), group=group, strides=stride, pads=pads)
        spatial = [(shape[2 + i] + pads[i] + pads[rank + i] - kernel[i]) // stride[i] + 1 for i in range(rank)]
        return y, [shape[0], out, *spatial]

    def transposed(self, q, at, shape):
        """A transposed convolution: strides, groups, dilations, paddings and output paddings."""
        n, rank, channels = self.n, len(shape) - 2, shape[1]
        group = self.any(1, 1, channels) if channels > 1 else 1
        each = 1 + self.pick(3)
        kernel = [1 + self.pick(3) for _ in range(rank)]
        w, scales = weights(n, channels, each, *kernel, axis=1, per_channel=group == 1 and bool(self.pick(2)))
        stride = [1 + self.pick(3) for _ in range(rank)]
        if max(stride) == 1:
            stride[self.pick(rank)] = 2
        dilation = [1 + self.pick(2) for _ in range(rank)]
        more = [self.pick(s) for s in stride]
        full = [(e - 1) * s + (k - 1) * d + 1 + m for e, s, k, d, m in zip(shape[2:], stride, kernel, dilation, more)]
        before = [self.pick(2) if f > 3 else 0 for f in full]
        behind = [self.pick(2) if f > 3 else 0 for f in full]
        bias = [self.bias(each * group, scales * at[0])] if self.pick(3) else []
        y = n.ConvTranspose(real(n, q, *at), w, *bias, group=group, strides=stride, dilations=dilation, output_padding=more, pads=before + behind)
        return y, [shape[0], each * group, *(f - b - a for f, b, a in zip(full, before, behind))]

    def in_f32(self, y, shape):
        """Steps on reals in front of a rounding."""
        n, one = self.n, lambda value: self.n.value(np.float32(value))
        kinds = [
            lambda: n.Clip(y, one(0), one(6)),
            lambda: n.Min(n.Relu(y), one(2.5)),
            lambda: n.Max(y, one(-0.75)),
            lambda: n.HardSwish(y),
            lambda: n.Div(y, one(1.7)),
            lambda: n.Softplus(y),
            lambda: n.Mul(y, n.Sigmoid(y)),
            lambda: n.Sub(n.Exp(n.Clip(y, one(-3), one(1))), one(0.3)),
            lambda: n.Where(n.Greater(y, one(0.1)), y, n.Mul(y, one(0.3))),
            lambda: n.Pow(n.Abs(y), one(1.5)),
        ]
        return kinds[self.seed // 4 % len(kinds)]()


def build(seed):
    def network(n):
        m = Maker(n, seed)
        one_axis = m.pick(4) == 0
        shape = [1, 2 + m.pick(3), 5 + m.pick(3)] + ([] if one_axis else [4])
        if seed % 4 == 0:
            # Sums of more products, and more of them, so that some are next to where rounding turns.
            shape = [1, 8, 13] + ([] if one_axis else [11])
        # Every input lies on the grid of the network's own first rounding.
        at = m.params(0.04)
        low, high = limits(at[2])
        steps = n.random.integers(low, high + 1, size=shape)
        x = n.input(*shape, values=(steps - at[1]) * np.float64(at[0]))
        q = grid(n, x, *at)
        kind = seed % 4
        layers = {
            # An f32 step between two layers; one behind a transposed convolution; transposed convolutions between conversions alone.
            0: ["conv", "f32", "conv"],
            1: ["conv", "transposed", "f32"],
            2: ["transposed", "relu", "transposed"],
            # Layers between conversions, which lose channels, ahead of an f32 step.
            3: ["conv", "relu", "conv", "relu", "conv", "f32"],
        }[kind]
        y = None
        for position, layer in enumerate(layers):
            if y is not None and layer not in ("f32", "relu"):
                at = m.params()
                q, y = grid(n, y, *at), None
            if layer == "conv":
                y, shape = m.conv(q, at, shape, depthwise=position > 0 and m.pick(3) == 0)
            elif layer == "transposed":
                y, shape = m.transposed(q, at, shape)
            elif layer == "f32":
                y = m.in_f32(y, shape)
            else:
                at = m.rectified()
                q = grid(n, n.Relu(y), *at)
                y = None
        return grid(n, y, *m.params(0.08))

    return network


def main(folder, seeds):
    make_onnx.FOLDER = pathlib.Path(folder)
    for seed in seeds:
        make_onnx.write(f"n{seed:03}_quantised", build(seed), 17)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], range(1000, 1000 + int(sys.argv[2])))
    else:
        main(make_onnx.FOLDER.parent / "onnx_mixed", range(COUNT))
