"""Reference for Chainer graph dumps: forward records by rank, up to the loss.

Key of a layer: `buffer` and the id of the buffer that the record writes, `buffer52`. Arrays are in Chainer's own layout,
NCHW. Weights: the buffer's name, `/predictor/conv1_1/W`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import ops


@dataclass
class Record:
    inputs: list[int]
    output: int
    kind: str
    attrs: dict


class Reference:
    dialect = "chainer"

    def __init__(self, text: str) -> None:
        lines = iter(text.splitlines())
        buffers, records = map(int, next(lines).split())
        self.bytes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        for _ in range(buffers):
            number, size, name = next(lines).split(maxsplit=2)
            self.bytes[int(number)] = int(size)
            self.names[int(number)] = name
        forward = []
        for _ in range(records):
            direction = next(lines).strip()
            n_in, n_out = map(int, next(lines).split())
            inputs = [int(next(lines).split()[0]) for _ in range(n_in)]
            outputs = [int(next(lines)) for _ in range(n_out)]
            kind, attrs = next(lines).strip(), json.loads(next(lines))
            if direction == "forward" and kind != "SoftmaxCrossEntropy":
                (output,) = outputs
                forward.append(Record(inputs, output, kind, attrs))
        self.forward = sorted(forward, key=lambda r: r.attrs["rank"])
        self.output = f"buffer{self.forward[-1].output}"
        self.image = self.forward[0].inputs[0]
        (reshape,) = [r for r in self.forward if r.kind == "Reshape"]
        self.batch = reshape.attrs["shape"][0]

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        """Three channels and a square: the trace states no more than the bytes."""
        pixels = self.bytes[self.image] // 4 // self.batch // 3
        side = round(pixels**0.5)
        assert side * side == pixels, "the image is not a square of three channels: give --input"
        return {self.names[self.image]: (batch, 3, side, side)}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Shapes from byte sizes: kernels are square, a channel count is a bias length."""
        shapes: dict[str, tuple[int, ...]] = {}
        channels = {self.image: 3}
        for r in self.forward:
            channels[r.output] = channels[r.inputs[0]]
            if len(r.inputs) == 3:
                x, weight, bias = r.inputs
                out = self.bytes[bias] // 4
                rest = self.bytes[weight] // 4 // out
                if r.kind == "LinearFunction":
                    shapes[self.names[weight]] = (out, rest)
                else:
                    per_group = channels[x] // r.attrs["groups"]
                    side = round((rest // per_group) ** 0.5)
                    assert side * side * per_group == rest, f"{self.names[weight]}: no square kernel fits"
                    shapes[self.names[weight]] = (out, per_group, side, side)
                shapes[self.names[bias]] = (out,)
                channels[r.output] = out
        return shapes

    def run(
        self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        values = {self.image: ops.f64(inputs[self.names[self.image]])}
        last = {number: step for step, r in enumerate(self.forward) for number in r.inputs}
        for step, r in enumerate(self.forward):
            stored = [weights[self.names[i]] for i in r.inputs[1:]]
            values[r.output] = y = apply(r, values[r.inputs[0]], stored)
            yield f"buffer{r.output}", y
            for number in r.inputs:
                if last[number] == step:
                    values.pop(number, None)


def apply(r: Record, x: np.ndarray, stored: list[np.ndarray]) -> np.ndarray:
    a = r.attrs
    if r.kind == "Convolution2DFunction":
        pads = (a["ph"], a["ph"], a["pw"], a["pw"])
        assert not a["cover_all"], "a convolution with cover_all"
        return ops.conv2d(x, stored[0], stored[1], (a["sy"], a["sx"]), pads, (a["dy"], a["dx"]), a["groups"])
    if r.kind in ("MaxPooling2D", "AveragePooling2D"):
        kernel, strides, pads = (a["kh"], a["kw"]), (a["sy"], a["sx"]), (a["ph"], a["ph"], a["pw"], a["pw"])
        cover = a["cover_all"]
        sizes = zip(x.shape[2:], kernel, strides, pads[::2], strict=True)
        out = [ops.chainer_size(n, k, s, p, cover) for n, k, s, p in sizes]
        if r.kind == "MaxPooling2D":
            return ops.max_pool2d(x, kernel, strides, out, pads)
        return ops.avg_pool2d(x, kernel, strides, out, pads, count_include_pad=True)
    if r.kind == "ReLU":
        return ops.relu(x)
    if r.kind == "Dropout":
        return x
    if r.kind == "Reshape":
        return x.reshape(x.shape[0], *a["shape"][1:])
    if r.kind == "LinearFunction":
        return ops.linear(x.reshape(x.shape[0], -1), *stored)
    raise ValueError(f"rank {a['rank']}: no reference for {r.kind}")
