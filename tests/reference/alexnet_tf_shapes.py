"""Reference for the TensorFlow step profile: conv, bias, ReLU, LRN and pooling by their scope names.

The rows state shapes alone. A convolution's stride is ceil(in / out) with SAME padding, a pool is 3 x 3, stride 2, VALID;
both are checked against the traced shapes. Within scope number k the order is convK, lrnK, poolK, each where it exists.
LRN: depth_radius 2, bias 2.0, alpha 1e-4, beta 0.75.

Key of a layer: the node's name, `conv1/Conv2D`, `conv1/BiasAdd`, `conv1` (the ReLU), `lrn1/LRN`, `pool1`, in the layout as
traced: NCHW, LRN alone NHWC. Input `Variable` NHWC. Weights: `conv1/weights` [rows, columns, in, out], `conv1/biases`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import ops

LRN = {"depth_radius": 2, "bias": 2.0, "alpha": 1e-4, "beta": 0.75}
POOL_KERNEL, POOL_STRIDES = (3, 3), (2, 2)


class Reference:
    dialect = "tf-shapes"

    def __init__(self, text: str) -> None:
        self.rows: dict[str, list[tuple[int, ...]]] = {}
        for line in text.splitlines():
            name, _, rest = line.partition(", ")
            shapes = re.findall(r"\((\d+(?:x\d+)+)\)", rest)
            self.rows[name] = [tuple(int(n) for n in shape.split("x")) for shape in shapes]
        self.scopes = sorted(int(m.group(1)) for m in map(re.compile(r"conv(\d+)/Conv2D").fullmatch, self.rows) if m)
        last = self.scopes[-1]
        self.output = next(n for n in (f"pool{last}", f"lrn{last}/LRN", f"conv{last}") if n in self.rows)

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        return {"Variable": (batch, *self.rows["Variable"][-1][1:])}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for k in self.scopes:
            shapes[f"conv{k}/weights"] = weight = self.rows[f"conv{k}/weights"][-1]
            shapes[f"conv{k}/biases"] = (weight[3],)
        return shapes

    def run(
        self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        x = ops.f64(inputs["Variable"]).transpose(0, 3, 1, 2)
        for k in self.scopes:
            name = f"conv{k}/Conv2D"
            traced_in, weight, traced_out = self.rows[name]
            kernel, size = weight[:2], x.shape[2:]
            strides = [-(-n // o) for n, o in zip(traced_in[2:], traced_out[2:], strict=True)]
            oihw = weights[f"conv{k}/weights"].transpose(3, 2, 0, 1)
            x = ops.conv2d(x, oihw, None, strides, ops.same_padding(size, kernel, strides))
            yield self.checked(name, x)
            x = x + ops.f64(weights[f"conv{k}/biases"]).reshape(1, -1, 1, 1)
            yield self.checked(f"conv{k}/BiasAdd", x)
            x = ops.relu(x)
            yield self.checked(f"conv{k}", x)
            if f"lrn{k}/LRN" in self.rows:
                y = ops.lrn(x.transpose(0, 2, 3, 1), **LRN)
                yield self.checked(f"lrn{k}/LRN", y)
                x = y.transpose(0, 3, 1, 2)
            if f"pool{k}" in self.rows:
                out = [ops.floor_size(n, 3, 2) for n in x.shape[2:]]
                x = ops.max_pool2d(np.ascontiguousarray(x), POOL_KERNEL, POOL_STRIDES, out)
                yield self.checked(f"pool{k}", x)

    def checked(self, name: str, y: np.ndarray) -> tuple[str, np.ndarray]:
        traced = self.rows[name][-1]
        assert y.shape[1:] == traced[1:], f"{name}: computed {y.shape}, traced {traced}"
        return name, y
