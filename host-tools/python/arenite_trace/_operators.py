"""One converter per ATen call, keyed by the call's name without overload.

A converter gets the :class:`~._builder.Builder` and the call's arguments by their ATen names, tensors as names, and returns the
name of its result (a list of names where the call has several). What it cannot state exactly it refuses with
:class:`Unsupported`; it never approximates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ._builder import Builder, Unsupported
from ._pointwise import BINARY, POINTWISE

Arguments = dict[str, Any]
Converter = Callable[[Builder, Arguments], Any]

CONVERTERS: dict[str, Converter] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = converter
        return converter

    return register


def pair(value: int | Sequence[int]) -> list[int]:
    """ATen shortens [2, 2] to [2] or 2."""
    values = [value] if isinstance(value, int) else list(value)
    return values * 2 if len(values) == 1 else values


def both_sides(padding: Sequence[int]) -> list[int]:
    rows, columns = padding
    return [rows, rows, columns, columns]


def axis(value: int, rank: int) -> int:
    return value + rank if value < 0 else value


# -- convolution and matrix products -----------------------------------------------------------------------------------


@converts("conv2d")
def conv2d(b: Builder, a: Arguments) -> str:
    kernel = b.shape(a["weight"])[2:]
    strides, dilation = pair(a["stride"]), pair(a["dilation"])
    return _convolution(b, a, a["input"], strides, _padding(a["padding"], kernel, dilation), dilation, b.result_shape())


@converts("conv1d")
def conv1d(b: Builder, a: Arguments) -> str:
    """One row of an image: [N, C, L] is [N, C, 1, L]."""
    n, c, length = b.shape(a["input"])
    out, per_group, k = b.shape(a["weight"])[:2] + (b.shape(a["weight"])[-1],)
    dilation = [1, *_one(a["dilation"])]
    padding = a["padding"] if isinstance(a["padding"], str) else [0, *_one(a["padding"])]
    if not b.is_stored(a["weight"]):
        raise Unsupported("conv1d has a weight that is computed", "use a parameter")
    b.reshape_stored(a["weight"], (out, per_group, 1, k))
    image = b.emit("reshape", [a["input"]], {"shape": [-1, c, 1, length]}, shape=(n, c, 1, length), part=".row")
    n, o, l_out = b.result_shape()
    strides = [1, *_one(a["stride"])]
    y = _convolution(
        b, a, image, strides, _padding(padding, (1, k), dilation), dilation, (n, o, 1, l_out), part=".conv2d"
    )
    return b.emit("reshape", [y], {"shape": [-1, o, l_out]})


def _one(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _padding(padding: str | Sequence[int], kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    if not isinstance(padding, str):
        return both_sides(pair(padding))
    if padding == "valid":
        return [0, 0, 0, 0]
    if padding == "same":
        # Stride is 1 here (PyTorch insists); an odd element goes behind, as PyTorch does.
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [total[0] // 2, total[0] - total[0] // 2, total[1] // 2, total[1] - total[1] // 2]
    raise Unsupported(f"padding {padding!r}", "give the padding in numbers")


def _convolution(
    b: Builder,
    a: Arguments,
    x: str,
    strides: list[int],
    padding: list[int],
    dilation: list[int],
    shape: Sequence[int],
    part: str = "",
) -> str:
    b.set_layout(a["weight"], "OIHW")
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": a["groups"], "layout": "NCHW"}
    return b.emit("conv2d", [x, a["weight"], a["bias"]], attrs, shape=shape, part=part)


@converts("linear")
def linear(b: Builder, a: Arguments) -> str:
    if len(b.shape(a["weight"])) != 2:
        raise Unsupported("linear has a weight of rank 1", "use a weight [out, in]")
    b.set_layout(a["weight"], "OI")
    return b.emit("linear", [a["input"], a["weight"], a["bias"]])


# -- pooling -----------------------------------------------------------------------------------------------------------


@converts("max_pool2d")
def max_pool2d(b: Builder, a: Arguments) -> str:
    kernel = pair(a["kernel_size"])
    attrs = {
        "kernel": kernel,
        "strides": pair(a["stride"]) if a["stride"] else kernel,
        "padding": both_sides(pair(a["padding"])),
        "dilation": pair(a["dilation"]),
        "ceil_mode": bool(a["ceil_mode"]),
        "layout": "NCHW",
    }
    return b.emit("max_pool2d", [_image(b, a["self"], "max_pool2d")], attrs)


@converts("max_pool2d_with_indices")
def max_pool2d_with_indices(b: Builder, a: Arguments) -> list[Any]:
    raise Unsupported("max_pool2d gives indices", "call it without return_indices")


@converts("avg_pool2d")
def avg_pool2d(b: Builder, a: Arguments) -> str:
    if a["divisor_override"] is not None:
        raise Unsupported("avg_pool2d has a divisor_override", "scale with a multiplication instead")
    kernel = pair(a["kernel_size"])
    attrs = {
        "kernel": kernel,
        "strides": pair(a["stride"]) if a["stride"] else kernel,
        "padding": both_sides(pair(a["padding"])),
        "ceil_mode": bool(a["ceil_mode"]),
        "count_include_pad": bool(a["count_include_pad"]),
        "layout": "NCHW",
    }
    return b.emit("avg_pool2d", [_image(b, a["self"], "avg_pool2d")], attrs)


@converts("adaptive_avg_pool2d")
def adaptive_avg_pool2d(b: Builder, a: Arguments) -> str:
    """Exact where the output size divides the input size: all windows are then equal."""
    x = _image(b, a["self"], "adaptive_avg_pool2d")
    size, wanted = b.shape(x)[2:], b.result_shape()[2:]
    if list(wanted) == [1, 1]:
        return b.emit("mean", [x], {"axes": [2, 3], "keepdims": True})
    if any(n % k for n, k in zip(size, wanted, strict=True)):
        raise Unsupported(
            f"adaptive_avg_pool2d from {list(size)} to {list(wanted)} has windows of several sizes",
            "choose an output size that divides the input, or use avg_pool2d",
        )
    kernel = [n // k for n, k in zip(size, wanted, strict=True)]
    attrs = {"kernel": kernel, "strides": kernel, "padding": [0, 0, 0, 0], "ceil_mode": False, "layout": "NCHW"}
    return b.emit("avg_pool2d", [x], attrs)


def _image(b: Builder, x: str, op: str) -> str:
    if len(b.shape(x)) != 4:
        raise Unsupported(f"{op} of a tensor of rank {len(b.shape(x))}", "keep the batch axis: [N, C, H, W]")
    return x


# -- element by element ------------------------------------------------------------------------------------------------


@converts("relu")
def relu(b: Builder, a: Arguments) -> str:
    return b.emit("relu", [a["self"]])


@converts("silu")
def silu(b: Builder, a: Arguments) -> str:
    return b.emit("silu", [a["self"]])


def _pointwise(aten: str) -> None:
    """One of the runtime's rows: which, its further arguments say."""

    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        given = {name: value for name, value in a.items() if name != "self"}
        for name, arguments, op in POINTWISE:
            if name == aten and given == arguments:
                return b.emit(op, [a["self"]])
        known = " or ".join(str(arguments) for name, arguments, _ in POINTWISE if name == aten)
        raise Unsupported(f"{aten} with {given}", f"use {known}")


for _name in {name for name, _, _ in POINTWISE}:
    _pointwise(_name)


@converts("relu6")
def relu6(b: Builder, a: Arguments) -> str:
    return _clamp(b, a["self"], 0.0, 6.0)


@converts("hardtanh")
def hardtanh(b: Builder, a: Arguments) -> str:
    return _clamp(b, a["self"], a["min_val"], a["max_val"])


@converts("clamp", "clamp_min", "clamp_max")
def clamp(b: Builder, a: Arguments) -> str:
    bounds = [a.get("min"), a.get("max")]
    if any(isinstance(bound, str) for bound in bounds):
        raise Unsupported("clamp has a tensor as a bound", "use maximum and minimum")
    return _clamp(b, a["self"], *bounds)


def _clamp(b: Builder, x: str, low: float | None, high: float | None) -> str:
    low = None if low is None or low == -math.inf else float(low)
    high = None if high is None or high == math.inf else float(high)
    return x if low is None and high is None else b.emit("clamp", [x], {"min": low, "max": high})


@converts("leaky_relu")
def leaky_relu(b: Builder, a: Arguments) -> str:
    return b.emit("leaky_relu", [a["self"]], {"negative_slope": float(a["negative_slope"])})


@converts("prelu", "_prelu_kernel")
def prelu(b: Builder, a: Arguments) -> str:
    return b.emit("prelu", [a["self"], a["weight"]])


@converts("dropout")
def dropout(b: Builder, a: Arguments) -> str:
    if a["train"]:
        raise Unsupported("dropout is in training mode", "use nn.Dropout, or pass training=self.training")
    return b.emit("dropout", [a["input"]], {"ratio": float(a["p"])})


@converts("clone", "contiguous", "alias", "detach", "lift_fresh_copy", "_to_copy", "to")
def same(b: Builder, a: Arguments) -> Any:
    """Copies within one dtype are no operators of the network."""
    return a.get("self", a.get("input"))


def _binary(aten: str, op: str) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        if a.get("rounding_mode") is not None:
            raise Unsupported(f"{aten} rounds", "divide without rounding_mode")
        left, right = (v if isinstance(v, str) else b.scalar(float(v)) for v in (a["self"], a["other"]))
        alpha = float(a.get("alpha", 1))
        if alpha != 1.0:
            right = b.emit("mul", [right, b.scalar(alpha)], shape=b.shape(right), part=".alpha")
        return b.emit(op, [left, right])


for _name, _, _op in BINARY:
    _binary(_name, _op)


@converts("rsub")
def rsub(b: Builder, a: Arguments) -> str:
    if a.get("alpha", 1) != 1:
        raise Unsupported("rsub has an alpha", "write the multiplication out")
    other = a["other"] if isinstance(a["other"], str) else b.scalar(float(a["other"]))
    return b.emit("sub", [other, a["self"]])


@converts("pow")
def power(b: Builder, a: Arguments) -> str:
    if a.get("exponent") != 2 or not isinstance(a["self"], str):
        raise Unsupported("pow with an exponent other than 2", "write it with mul, sqrt or exp")
    return b.emit("mul", [a["self"], a["self"]])


# -- normalisation -----------------------------------------------------------------------------------------------------


@converts("batch_norm", "_native_batch_norm_legit_no_training")
def batch_norm(b: Builder, a: Arguments) -> Any:
    if a.get("training"):
        raise Unsupported("batch_norm uses the batch's own statistics", "keep track_running_stats=True and use eval()")
    inputs = [a["input"], a["weight"], a["bias"], a["running_mean"], a["running_var"]]
    several = "momentum" in a and "training" not in a
    shape = b.result_shape(0) if several else b.result_shape()
    y = b.emit("batch_norm", inputs, {"eps": float(a["eps"]), "axis": 1}, shape=shape)
    return [y] if several else y


@converts("softmax", "_softmax")
def softmax(b: Builder, a: Arguments) -> str:
    return b.emit("softmax", [a["self"]], {"axis": axis(a["dim"], len(b.shape(a["self"])))})


@converts("log_softmax", "_log_softmax")
def log_softmax(b: Builder, a: Arguments) -> str:
    return b.emit("log_softmax", [a["self"]], {"axis": axis(a["dim"], len(b.shape(a["self"])))})


# -- reductions --------------------------------------------------------------------------------------------------------


def _reduction(aten: str, op: str) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        rank = len(b.shape(a["self"]))
        axes = a.get("dim")
        axes = [axes] if isinstance(axes, int) else list(axes or range(rank))
        attrs = {"axes": sorted(axis(d, rank) for d in axes), "keepdims": bool(a.get("keepdim", False))}
        return b.emit(op, [a["self"]], attrs)


for _name, _op in (("mean", "mean"), ("sum", "sum"), ("amax", "max"), ("amin", "min")):
    _reduction(_name, _op)


# -- shape and place ---------------------------------------------------------------------------------------------------


@converts("view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "unflatten")
def reshape(b: Builder, a: Arguments) -> str:
    return _reshape(b, a["self"], b.result_shape())


def _reshape(b: Builder, x: str, shape: Sequence[int], part: str = "") -> str:
    if tuple(shape) == b.shape(x):
        return x
    # Row-major order keeps the batch in the first axis: leave that one open, and the trace holds for any batch.
    open_shape = [-1, *shape[1:]] if shape and not b.is_stored(x) else list(shape)
    if not open_shape:
        raise Unsupported("reshape to a scalar", "keep an axis of 1")
    return b.emit("reshape", [x], {"shape": open_shape}, shape=shape, part=part)


@converts("flatten")
def flatten(b: Builder, a: Arguments) -> str:
    rank = len(b.shape(a["self"]))
    attrs = {"start_axis": axis(a["start_dim"], rank), "end_axis": axis(a["end_dim"], rank)}
    return b.emit("flatten", [a["self"]], attrs)


@converts("permute")
def permute(b: Builder, a: Arguments) -> str:
    rank = len(b.shape(a["self"]))
    return b.emit("transpose", [a["self"]], {"perm": [axis(d, rank) for d in a["dims"]]})


@converts("transpose")
def transpose(b: Builder, a: Arguments) -> str:
    perm = list(range(len(b.shape(a["self"]))))
    first, second = axis(a["dim0"], len(perm)), axis(a["dim1"], len(perm))
    perm[first], perm[second] = second, first
    return b.emit("transpose", [a["self"]], {"perm": perm})


@converts("pad", "constant_pad_nd")
def pad(b: Builder, a: Arguments) -> str:
    if a.get("mode", "constant") != "constant":
        raise Unsupported(f"pad in {a['mode']} mode", "pad with a constant")
    amounts = list(a["pad"])
    if any(amount < 0 for amount in amounts):
        raise Unsupported("pad with a negative amount", "use a slice to crop")
    # PyTorch lists the last axis first.
    padding = [[0, 0] for _ in b.shape(a["self"])]
    for i in range(len(amounts) // 2):
        padding[-1 - i] = [amounts[2 * i], amounts[2 * i + 1]]
    return b.emit("pad", [a["self"]], {"padding": padding, "value": float(a.get("value") or 0)})


@converts("cat")
def concat(b: Builder, a: Arguments) -> str:
    return b.emit("concat", a["tensors"], {"axis": axis(a["dim"], len(b.result_shape()))})


@converts("slice")
def slice_(b: Builder, a: Arguments) -> str:
    shape = b.shape(a["self"])
    along = axis(a["dim"], len(shape))
    start, stop, step = slice(a["start"], a["end"], a["step"]).indices(shape[along])
    if (start, stop, step) == (0, shape[along], 1):
        return str(a["self"])
    return _slice(b, a["self"], along, start, stop, step)


@converts("select")
def select(b: Builder, a: Arguments) -> str:
    shape = b.shape(a["self"])
    along = axis(a["dim"], len(shape))
    start = axis(a["index"], shape[along])
    one = _slice(b, a["self"], along, start, start + 1, 1, part=".slice")
    return _reshape(b, one, b.result_shape())


@converts("split", "split_with_sizes", "chunk")
def split(b: Builder, a: Arguments) -> list[str]:
    along = axis(a["dim"], len(b.shape(a["self"])))
    parts, start = [], 0
    for i in range(b.result_count()):
        length = b.result_shape(i)[along]
        parts.append(_slice(b, a["self"], along, start, start + length, 1, part=f".{i}"))
        start += length
    return parts


def _slice(b: Builder, x: str, along: int, start: int, stop: int, step: int, part: str = "") -> str:
    shape = list(b.shape(x))
    shape[along] = -(-(stop - start) // step)
    if shape[along] <= 0:
        raise Unsupported("a slice without elements", "drop it")
    return b.emit("slice", [x], {"axis": along, "start": start, "stop": stop, "step": step}, shape=shape, part=part)
