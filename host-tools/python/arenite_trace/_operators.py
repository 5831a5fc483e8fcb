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


def axis(value: int, rank: int) -> int:
    return value + rank if value < 0 else value


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
    x, exponent = a["self"], a["exponent"]
    functions = {0.5: "sqrt", -0.5: "rsqrt", 1: "identity", 2: "square"}
    if isinstance(x, str) and not isinstance(exponent, str):
        if exponent in functions:
            return b.emit(functions[exponent], [x])
        if exponent == -1:
            return b.emit("div", [b.scalar(1), x], shape=b.shape(x), dtype="f32")
        if exponent in (3, 4):
            square = b.emit("square", [x], part=".square")
            return b.emit("mul", [square, x if exponent == 3 else square])
    raise Unsupported(f"pow with the exponent {exponent}", "write it with mul, sqrt or exp")


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
    """The largest or smallest value along an axis, or of all; an index beside it is refused where it is read."""

    @converts(aten)
    def convert(b: Builder, a: Arguments) -> Any:
        if isinstance(a.get("other"), str):
            return b.emit(f"{op}imum", [a["self"], a["other"]])
        if a.get("dim") is None:
            raise Unsupported(f"{aten} of a whole tensor", f"state the axes: torch.a{op}(x, dim=...)")
        if b.is_used(1):
            raise Unsupported(f"{aten} gives values and indices", f"take torch.a{op} for the values, argmax for the index")
        attrs = {"axes": [axis(a["dim"], len(b.shape(a["self"])))], "keepdims": bool(a["keepdim"])}
        return [b.emit(op, [a["self"]], attrs, shape=b.result_shape(0)), None]


_largest("max", "max")
_largest("min", "min")


@converts("argmax")
def argmax(b: Builder, a: Arguments) -> str:
    """The first of equals; an index is an int32."""
    x = a["self"]
    if a["dim"] is None:
        raise Unsupported("argmax over all axes", "flatten first, and state the axis")
    along = axis(a["dim"], len(b.shape(x)))
    return b.emit("argmax", [x], {"axis": along, "keepdims": bool(a["keepdim"])}, dtype="i32")


@converts("var", "std")
def variance(b: Builder, a: Arguments) -> str:
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
    root = b.call == "std"
    attrs = {"axes": axes, "keepdims": bool(a.get("keepdim", False))}
    y = b.emit("mean", [square], attrs, part=".biased" if correction or root else "")
    if correction:
        y = b.emit("mul", [y, b.scalar(count / (count - correction))], part=".variance" if root else "")
    return b.emit("sqrt", [y]) if root else y


@converts("linalg_vector_norm")
def vector_norm(b: Builder, a: Arguments) -> str:
    rank = len(b.shape(a["self"]))
    if a["ord"] not in (1, 2):
        raise Unsupported(f"a norm of order {a['ord']}", "use 1 or 2")
    axes = sorted(axis(d, rank) for d in (a["dim"] or range(rank)))
    attrs = {"axes": axes, "keepdims": bool(a["keepdim"])}
    each = b.emit("abs" if a["ord"] == 1 else "square", [a["self"]], shape=b.shape(a["self"]), part=".each")
    y = b.emit("sum", [each], attrs, part="" if a["ord"] == 1 else ".sum")
    return y if a["ord"] == 1 else b.emit("sqrt", [y])


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
