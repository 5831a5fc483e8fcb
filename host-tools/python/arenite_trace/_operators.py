"""One converter per ATen call, keyed by the call's name without overload.

A converter gets the :class:`~._builder.Builder` and the call's arguments by their ATen names, tensors as names, and returns the
name of its result (a list of names where the call has several). A converter refuses with
:class:`Unsupported` what it cannot state exactly; it never approximates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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


def axis(value: int, rank: int) -> int:
    return value + rank if value < 0 else value


def number(b: Builder, x: Any, part: str = "") -> str:
    """An operand as f32: numbers become constants, conditions and integers their values."""
    if not isinstance(x, str):
        return b.scalar(float(x))
    dtype = b.dtype(x)
    if dtype == "f32":
        return x
    if b.is_stored(x):
        return b.constant(b.trace.values[x].astype(np.float32), f"{part}.number")
    if dtype == "i32":
        return b.emit("cast", [x], shape=b.shape(x), part=f"{part}.number", dtype="f32")
    raise Unsupported(f"{b.call} of {dtype}", "make it float32 before")


def condition(b: Builder, x: str, part: str = "") -> str:
    """An operand as a condition."""
    if x in b.conditions or b.dtype(x) == "bool":
        return number(b, x, part)
    zero = b.emit("equal", [number(b, x, part), b.scalar(0)], shape=b.shape(x), part=f"{part}.zero")
    return negated(b, zero, f"{part}.truth")


def negated(b: Builder, x: str, part: str = "") -> str:
    if b.is_stored(x):
        return b.constant((1 - b.trace.values[x]).astype(np.float32), f"{part}.not")
    return b.emit("sub", [b.scalar(1), x], shape=b.shape(x), part=part)


def chosen_where(b: Builder, holds: str, a: str, other: str, shape: Sequence[int] | None = None) -> str:
    """``a`` where the condition holds, else ``other``. A product would make NaN of an infinity that is not taken."""
    shape = b.result_shape() if shape is None else tuple(shape)
    wide = lambda *names: np.broadcast_shapes(*(b.shape(name) for name in names))  # noqa: E731
    if b.is_zero(other):
        taken = b.emit("keep", [a, holds], shape=wide(a, holds), part=".taken")
        return b.emit("add", [taken, b.scalar(0)] if b.shape(taken) == shape else [taken, other], shape=shape)
    fails = negated(b, holds, ".fails")
    if b.is_zero(a):
        left = b.emit("keep", [other, fails], shape=wide(other, fails), part=".left")
        return b.emit("add", [left, b.scalar(0)] if b.shape(left) == shape else [left, a], shape=shape)
    taken = b.emit("keep", [a, holds], shape=wide(a, holds), part=".taken")
    left = b.emit("keep", [other, fails], shape=wide(other, fails), part=".left")
    return b.emit("add", [taken, left], shape=shape)


def rounded_quotient(b: Builder, x: str, y: str, mode: str) -> str:
    """As PyTorch: downwards by way of the remainder, towards zero by way of the quotient."""
    if mode == "trunc":
        return truncated(b, b.emit("div", [x, y], part=".quotient"))
    rest = b.emit("floor_mod", [x, y], part=".rest")
    whole = b.emit("sub", [x, rest], part=".whole")
    return b.emit("round", [b.emit("div", [whole, y], part=".quotient")])


def truncated(b: Builder, x: str, part: str = "") -> str:
    shape = b.shape(x)
    width = b.emit("floor", [b.emit("abs", [x], shape=shape, part=f"{part}.abs")], shape=shape, part=f"{part}.floor")
    return b.emit("mul", [width, b.emit("sign", [x], shape=shape, part=f"{part}.sign")], shape=shape, part=part)


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
    if not any(isinstance(bound, str) for bound in bounds):
        return _clamp(b, a["self"], *bounds)
    low, high = (None if bound is None else number(b, bound) for bound in bounds)
    x = a["self"] if low is None else b.emit("maximum", [a["self"], low], part="" if high is None else ".low")
    return x if high is None else b.emit("minimum", [x, high])


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
    """Copies within one dtype are no operators of the network; conditions are f32 as they are, integers become it."""
    x, (before, after) = a.get("self", a.get("input")), b.dtypes()
    if after == "bool" != before:
        return condition(b, x)
    return number(b, x) if after == "f32" else x


def _binary(aten: str, op: str) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        left, right = (number(b, v, part) for v, part in ((a["self"], ".left"), (a["other"], ".right")))
        if a.get("rounding_mode") is not None:
            return rounded_quotient(b, left, right, str(a["rounding_mode"]))
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


@converts("reciprocal")
def reciprocal(b: Builder, a: Arguments) -> str:
    return b.emit("div", [b.scalar(1), a["self"]])


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


def _largest(aten: str, op: str) -> None:
    """The largest or smallest value along an axis, or of all, and its index where something reads it."""

    @converts(aten)
    def convert(b: Builder, a: Arguments) -> Any:
        if isinstance(a.get("other"), str):
            return b.emit(f"{op}imum", [a["self"], a["other"]])
        if a.get("dim") is None:
            return b.emit(op, [a["self"]], {"axes": list(range(len(b.shape(a["self"])))), "keepdims": False})
        along, keep = axis(a["dim"], len(b.shape(a["self"]))), bool(a["keepdim"])
        value = b.emit(op, [a["self"]], {"axes": [along], "keepdims": keep}, shape=b.result_shape(0))
        if not b.is_used(1):
            return [value, None]
        x = a["self"] if op == "max" else b.emit("neg", [a["self"]], shape=b.shape(a["self"]), part=".neg")
        at = b.emit("argmax", [x], {"axis": along, "keepdims": keep}, shape=b.result_shape(1), part=".index", dtype="i32")
        return [value, at]


_largest("max", "max")
_largest("min", "min")


def _place(aten: str, sign: int) -> None:
    """The first of equals; an index is an int32."""

    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        x = a["self"] if sign > 0 else b.emit("neg", [a["self"]], shape=b.shape(a["self"]), part=".neg")
        if a["dim"] is None:
            x, along = reshaped(b, x, (math.prod(b.shape(x)),), None, ".line"), 0
        else:
            along = axis(a["dim"], len(b.shape(x)))
        return b.emit("argmax", [x], {"axis": along, "keepdims": bool(a["keepdim"])}, dtype="i32")


_place("argmax", 1)
_place("argmin", -1)


@converts("var", "std")
def variance(b: Builder, a: Arguments) -> str:
    return _variance(b, a, b.result_shape(), b.call == "std")


def _variance(b: Builder, a: Arguments, shape: Sequence[int], root: bool) -> str:
    rank = len(b.shape(a["self"]))
    given = a.get("dim")
    axes = sorted(axis(d, rank) for d in ([given] if isinstance(given, int) else given or range(rank)))
    count = math.prod(b.shape(a["self"])[d] for d in axes)
    correction = a.get("correction", 1 if a.get("unbiased", True) else 0)
    correction = 1 if correction is None else correction
    if count <= correction:
        raise Unsupported(f"a variance of {count} elements with correction {correction}", "take it over more elements")
    kept = tuple(1 if d in axes else n for d, n in enumerate(b.shape(a["self"])))
    mean = b.emit("mean", [a["self"]], {"axes": axes, "keepdims": True}, shape=kept, part=".mean")
    centred = b.emit("sub", [a["self"], mean], shape=b.shape(a["self"]), part=".centred")
    square = b.emit("square", [centred], shape=b.shape(centred), part=".square")
    attrs = {"axes": axes, "keepdims": bool(a.get("keepdim", False))}
    y = b.emit("mean", [square], attrs, shape=shape, part=".biased" if correction or root else "")
    if correction:
        y = b.emit("mul", [y, b.scalar(count / (count - correction))], shape=shape, part=".variance" if root else "")
    return b.emit("sqrt", [y], shape=shape) if root else y


@converts("var_mean", "std_mean")
def variance_and_mean(b: Builder, a: Arguments) -> list[Any]:
    rank = len(b.shape(a["self"]))
    given = a.get("dim")
    axes = sorted(axis(d, rank) for d in ([given] if isinstance(given, int) else given or range(rank)))
    mean = b.emit("mean", [a["self"]], {"axes": axes, "keepdims": bool(a.get("keepdim"))}, shape=b.result_shape(1), part=".of")
    return [_variance(b, a, b.result_shape(0), b.call == "std_mean"), mean]


@converts("linalg_vector_norm")
def vector_norm(b: Builder, a: Arguments) -> str:
    rank, order, shape = len(b.shape(a["self"])), float(a["ord"]), b.shape(a["self"])
    axes = sorted(axis(d, rank) for d in (a["dim"] or range(rank)))
    attrs = {"axes": axes, "keepdims": bool(a["keepdim"])}
    each = b.emit("square" if order == 2 else "abs", [a["self"]], shape=shape, part=".each")
    if math.isinf(order):
        return b.emit("max" if order > 0 else "min", [each], attrs)
    if order == 0:
        raise Unsupported("a norm of order 0", "count with (x != 0).float().sum()")
    if order not in (1, 2):
        each = b.emit("power", [each, b.scalar(order)], shape=shape, part=".power")
    y = b.emit("sum", [each], attrs, part="" if order == 1 else ".sum")
    return y if order == 1 else b.emit("sqrt", [y]) if order == 2 else b.emit("power", [y, b.scalar(1 / order)])


# -- shape and place ---------------------------------------------------------------------------------------------------


@converts("view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "unflatten")
def reshape(b: Builder, a: Arguments) -> str:
    return reshaped(b, a["self"], b.result_shape(), b.batch_axis(b.result_shape()))


def reshaped(b: Builder, x: str, shape: Sequence[int], batch: int | None = 0, part: str = "") -> str:
    """``x`` in another shape, whose axis ``batch`` is left open: the trace then holds for any batch."""
    if tuple(shape) == b.shape(x):
        return x
    if not shape:
        raise Unsupported("reshape to a scalar", "keep an axis of 1")
    attr = list(shape)
    if batch is not None and not b.is_stored(x):
        attr[batch] = -1
    return b.emit("reshape", [x], {"shape": attr}, shape=shape, part=part)


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
    return cut(b, a["self"], along, start, stop, step)


@converts("select")
def select(b: Builder, a: Arguments) -> str:
    shape = b.shape(a["self"])
    along = axis(a["dim"], len(shape))
    if isinstance(a["index"], str):
        raise Unsupported("an element at a computed index", "use index_select, or a table that is a parameter")
    start = axis(a["index"], shape[along])
    return chosen(b, a["self"], along, start, b.result_shape(), b.batch_axis(b.result_shape()))


def chosen(
    b: Builder, x: str, along: int, index: int, shape: Sequence[int], batch: int | None = 0, part: str = ""
) -> str:
    """One index of an axis, which disappears."""
    return reshaped(b, cut(b, x, along, index, index + 1, part=f"{part}.slice"), shape, batch, part)


@converts("unbind")
def unbind(b: Builder, a: Arguments) -> list[str]:
    along = axis(a["dim"], len(b.shape(a["self"])))
    shape = b.result_shape(0)
    batch = 0 if along else None
    return [chosen(b, a["self"], along, i, shape, batch, part=f".{i}") for i in range(b.result_count())]


@converts("split", "split_with_sizes", "chunk")
def split(b: Builder, a: Arguments) -> list[str]:
    along = axis(a["dim"], len(b.shape(a["self"])))
    parts, start = [], 0
    for i in range(b.result_count()):
        length = b.result_shape(i)[along]
        parts.append(cut(b, a["self"], along, start, start + length, part=f".{i}"))
        start += length
    return parts


def cut(b: Builder, x: str, along: int, start: int, stop: int, step: int = 1, part: str = "") -> str:
    """The indices from ``start`` to before ``stop`` of one axis."""
    shape = list(b.shape(x))
    shape[along] = -(-(stop - start) // step)
    if shape[along] <= 0:
        raise Unsupported("a slice without elements", "drop it")
    return b.emit("slice", [x], {"axis": along, "start": start, "stop": stop, "step": step}, shape=shape, part=part)
