"""Reference for `trace.json`, versions 1 to 3, written from docs/trace-schema.md. Covers every operator of that document.

Key of a layer: the name of the tensor that the operator writes. Weights: the tensors' names, shapes as the trace states.
States start at zero; :meth:`Reference.run` leaves the new ones in ``self.state``, so that running again is the next run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import ops

Array = np.ndarray


class Reference:
    dialect = "native"

    def __init__(self, text: str) -> None:
        self.trace = json.loads(text)
        assert self.trace["arenite_trace"] in (1, 2, 3), f"version {self.trace['arenite_trace']}"
        self.tensors = self.trace["tensors"]
        self.output = self.trace["outputs"][0]
        self.state = {s["input"]: np.zeros(self.tensors[s["input"]]["shape"]) for s in self.trace.get("state", [])}

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        return {name: (batch, *self.tensors[name]["shape"][1:]) for name in self.trace["inputs"]}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        stored = ("parameter", "constant")
        return {name: tuple(t["shape"]) for name, t in self.tensors.items() if t["role"] in stored}

    def run(self, inputs: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        values: dict[str, Array] = {name: ops.f64(inputs[name]) for name in self.trace["inputs"]}
        values.update(self.state)
        for op in self.trace["ops"]:
            operands = []
            for name in op["inputs"]:
                if name is not None and name not in values:
                    assert self.tensors[name]["role"] in ("parameter", "constant"), f"{op['name']} reads {name} too early"
                    operands.append(self._real(name, weights[name]))
                else:
                    operands.append(None if name is None else values[name])
            (output,) = op["outputs"]
            if op["op"] == "dequantize":
                y = self._real(op["inputs"][0], operands[0])
            elif op["op"] == "quantize":
                y = self._stored(output, operands[0])
            else:
                y = OPERATORS[op["op"]](operands, op.get("attrs", {}))
            values[output] = y
            yield output, y
        self.state = {s["input"]: values[s["output"]] for s in self.trace.get("state", [])}


    def _scale(self, name: str) -> tuple[Array, int] | None:
        """The scale of a tensor of integers, as it broadcasts with it, and its zero point."""
        tensor = self.tensors[name]
        if "quant" not in tensor:
            return None
        quant, shape = tensor["quant"], [1] * len(tensor["shape"])
        scale = np.asarray(quant["scale"], np.float32).astype(np.float64)
        if len(scale) > 1:
            shape[quant.get("axis", 0)] = len(scale)
        return scale.reshape(shape) if len(scale) > 1 else scale[0], quant.get("zero_point", 0)

    def _real(self, name: str, stored: Array) -> Array:
        found = self._scale(name)
        return stored if found is None else (ops.f64(stored) - found[1]) * found[0]

    def _stored(self, name: str, real: Array) -> Array:
        scale, zero = self._scale(name)
        least, most = {"i8": (-128, 127), "u8": (0, 255)}[self.tensors[name]["dtype"]]
        return np.clip(np.rint(real / scale) + zero, least, most)


def _image(a: dict, compute: Callable[[Array], Array], x: Array) -> Array:
    """Runs an NCHW computation on an image of the stated layout."""
    if a.get("layout", "NCHW") == "NCHW":
        return compute(x)
    return compute(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).transpose(0, 2, 3, 1)


def _conv2d(inputs: list, a: dict) -> Array:
    x, weight, bias = [*inputs, None][:3]
    pads, groups = a.get("padding", [0] * 4), a.get("groups", 1)
    strides, dilation = a.get("strides", [1, 1]), a.get("dilation", [1, 1])
    return _image(a, lambda x: ops.conv2d(x, weight, bias, strides, pads, dilation, groups), x)


def _pool_sizes(x: Array, a: dict) -> list[int]:
    size = ops.torch_ceil_size if a.get("ceil_mode") else ops.floor_size
    strides, pads, dilation = a.get("strides", a["kernel"]), a.get("padding", [0] * 4), a.get("dilation", [1, 1])
    return [
        size(x.shape[2 + i], a["kernel"][i], strides[i], pads[2 * i], pads[2 * i + 1], dilation[i]) for i in range(2)
    ]


def _max_pool2d(inputs: list, a: dict) -> Array:
    strides, pads, dilation = a.get("strides", a["kernel"]), a.get("padding", [0] * 4), a.get("dilation", [1, 1])
    return _image(a, lambda x: ops.max_pool2d(x, a["kernel"], strides, _pool_sizes(x, a), pads, dilation), inputs[0])


def _avg_pool2d(inputs: list, a: dict) -> Array:
    strides, pads, include = a.get("strides", a["kernel"]), a.get("padding", [0] * 4), a.get("count_include_pad", True)
    return _image(a, lambda x: ops.avg_pool2d(x, a["kernel"], strides, _pool_sizes(x, a), pads, include), inputs[0])


def _batch_norm(inputs: list, a: dict) -> Array:
    x, *rest = inputs
    return ops.batch_norm(x, *rest, a.get("eps", 1e-5), a.get("axis", 1))


def _prelu(inputs: list, a: dict) -> Array:
    x, slope = inputs
    shape = [1] * x.ndim
    if slope.size > 1:
        shape[1] = -1
    return np.where(x >= 0, x, ops.f64(slope).reshape(shape) * x)


def _clamp(inputs: list, a: dict) -> Array:
    low, high = a.get("min"), a.get("max")
    x = inputs[0] if low is None else np.maximum(inputs[0], low)
    return x if high is None else np.minimum(x, high)


def _flatten(inputs: list, a: dict) -> Array:
    shape = inputs[0].shape
    start, end = a.get("start_axis", 1) % len(shape), a.get("end_axis", -1) % len(shape)
    return inputs[0].reshape(*shape[:start], -1, *shape[end + 1 :])


def _slice(inputs: list, a: dict) -> Array:
    index = [slice(None)] * inputs[0].ndim
    index[a["axis"]] = slice(a.get("start", 0), a.get("stop"), a.get("step", 1))
    return inputs[0][tuple(index)]


def _conv_transpose2d(inputs: list, a: dict) -> Array:
    """Every input element adds its weighted kernel to the output."""
    x, weight, bias = [*inputs, None][:3]
    (sy, sx), (dy, dx) = a.get("strides", [1, 1]), a.get("dilation", [1, 1])
    top, bottom, left, right = a.get("padding", [0] * 4)
    (more_y, more_x), groups = a.get("output_padding", [0, 0]), a.get("groups", 1)
    n, c, h, w = x.shape
    _, per, kh, kw = weight.shape
    full = np.zeros((n, groups * per, (h - 1) * sy + dy * (kh - 1) + 1 + more_y, (w - 1) * sx + dx * (kw - 1) + 1 + more_x))
    for i in range(c):
        first = i // (c // groups) * per
        for r in range(kh):
            for s in range(kw):
                y = full[:, first : first + per, r * dy :, s * dx :]
                y[:, :, : (h - 1) * sy + 1 : sy, : (w - 1) * sx + 1 : sx] += x[:, i : i + 1] * ops.f64(weight[i, :, r, s])[:, None, None]
    y = full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right]
    return y if bias is None else y + ops.f64(bias)[:, None, None]


def _resize_nearest(inputs: list, a: dict) -> Array:
    half = 0.5 if a.get("half_pixel_centers") else 0.0

    def compute(x: Array) -> Array:
        for axis, size in ((2, a["size"][0]), (3, a["size"][1])):
            places = np.floor((np.arange(size) + half) * x.shape[axis] / size).astype(int)
            x = x.take(np.minimum(places, x.shape[axis] - 1), axis=axis)
        return x

    return _image(a, compute, inputs[0])


def _resize_bilinear(inputs: list, a: dict) -> Array:
    def compute(x: Array) -> Array:
        for axis, size in ((2, a["size"][0]), (3, a["size"][1])):
            n = x.shape[axis]
            if a.get("align_corners"):
                places = np.arange(size) * ((n - 1) / (size - 1) if size > 1 else 0.0)
            else:
                places = np.maximum((np.arange(size) + 0.5) * n / size - 0.5, 0)
            low = np.minimum(np.floor(places).astype(int), n - 1)
            part = (places - low).reshape([-1 if d == axis else 1 for d in range(4)])
            x = x.take(low, axis=axis) * (1 - part) + x.take(np.minimum(low + 1, n - 1), axis=axis) * part
        return x

    return _image(a, compute, inputs[0])


def _rfft(inputs: list, a: dict) -> Array:
    x, length = inputs[0], a["length"]
    t, k = np.arange(x.shape[-1]), np.arange(length // 2 + 1)[:, None]
    phase = -2 * np.pi * ((k * t) % length) / length
    pairs = np.stack([x @ np.cos(phase).T, x @ np.sin(phase).T], axis=-1)
    return pairs.reshape(*x.shape[:-1], length + 2)


def _argmax(inputs: list, a: dict) -> Array:
    y = np.argmax(inputs[0], axis=a["axis"])
    return np.expand_dims(y, a["axis"]) if a.get("keepdims") else y


def _unary(function: Callable[[Array], Array]) -> Callable[[list, dict], Array]:
    return lambda inputs, a: function(inputs[0])


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[list, dict], Array]:
    return lambda inputs, a: function(ops.f64(inputs[0]), ops.f64(inputs[1]))


def _pointwise() -> dict[str, Callable[[list, dict], Array]]:
    """The runtime's pointwise operators: the NumPy function that the row names, or, where that is PyTorch's, the one of `ops`."""
    rows = json.loads(Path(__file__).with_name("pointwise.json").read_text())
    functions = {}
    for row in rows:
        op, name = row["trace"], row["oracle"].removeprefix("numpy.")
        function = getattr(ops, op) if "." in name or op == "keep" else getattr(np, name)
        functions[op] = _unary(function) if row["operands"] == 1 else _binary(function)
    return functions


def _reduce(function: Callable[..., Array]) -> Callable[[list, dict], Array]:
    return lambda inputs, a: function(inputs[0], axis=tuple(a["axes"]), keepdims=a.get("keepdims", False))


OPERATORS: dict[str, Callable[[list, dict], Array]] = {
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "matmul": lambda inputs, a: np.matmul(ops.f64(inputs[0]), ops.f64(inputs[1])),
    "embedding": lambda inputs, a: ops.f64(inputs[1])[inputs[0].astype(int)],
    "argmax": _argmax,
    "cast": _unary(ops.f64),
    "rfft": _rfft,
    "resize_nearest": _resize_nearest,
    "resize_bilinear": _resize_bilinear,
    "linear": lambda inputs, a: ops.linear(*inputs),
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": _unary(ops.relu),
    "clamp": _clamp,
    "leaky_relu": lambda i, a: np.where(i[0] >= 0, i[0], a.get("negative_slope", 0.01) * i[0]),
    "prelu": _prelu,
    "silu": _unary(lambda x: x * ops.sigmoid(x)),
    "identity": _unary(lambda x: x),
    "dropout": _unary(lambda x: x),
    "batch_norm": _batch_norm,
    "softmax": lambda inputs, a: ops.softmax(inputs[0], a.get("axis", -1)),
    "log_softmax": lambda inputs, a: ops.log_softmax(inputs[0], a.get("axis", -1)),
    "mean": _reduce(np.mean),
    "sum": _reduce(np.sum),
    "max": _reduce(np.max),
    "min": _reduce(np.min),
    "reshape": lambda inputs, a: inputs[0].reshape(a["shape"]),
    "flatten": _flatten,
    "transpose": lambda inputs, a: inputs[0].transpose(a["perm"]),
    "pad": lambda inputs, a: np.pad(inputs[0], a["padding"], constant_values=a.get("value", 0.0)),
    "concat": lambda inputs, a: np.concatenate([ops.f64(i) for i in inputs], axis=a["axis"]),
    "slice": _slice,
    **_pointwise(),
}
