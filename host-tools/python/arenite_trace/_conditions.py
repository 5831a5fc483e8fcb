"""Converters of comparisons, choices, remainders and powers. A condition is f32 in the trace: 1 where it holds, else 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._builder import Builder, Unsupported
from ._operators import Arguments, chosen_where, condition, converts, negated, number, rounded_quotient, truncated

#: Calls that give a condition of what is none.
CONDITIONS = (
    "gt ge lt le eq ne logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not __and__ __or__ __xor__ "
    "any all isnan isinf isfinite"
).split()

#: The largest number of f32.
LARGEST = float(np.finfo(np.float32).max)


# -- comparisons -------------------------------------------------------------------------------------------------------


def _comparison(aten: str, op: str, swapped: bool, negative: bool) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        left, right = number(b, a["self"], ".left"), number(b, a["other"], ".right")
        operands = [right, left] if swapped else [left, right]
        y = b.emit(op, operands, shape=b.result_shape(), part=".equal" if negative else "", dtype="f32")
        return negated(b, y) if negative else y


_comparison("lt", "less", swapped=False, negative=False)
_comparison("gt", "less", swapped=True, negative=False)
_comparison("le", "less_or_equal", swapped=False, negative=False)
_comparison("ge", "less_or_equal", swapped=True, negative=False)
_comparison("eq", "equal", swapped=False, negative=False)
_comparison("ne", "equal", swapped=False, negative=True)


def _logical(names: str, op: str) -> None:
    @converts(*names.split())
    def convert(b: Builder, a: Arguments) -> str:
        left, right = condition(b, a["self"], ".left"), condition(b, a["other"], ".right")
        part = ".equal" if op == "equal" else ""
        y = b.emit(op, [left, right], shape=b.result_shape(), part=part)
        return negated(b, y) if op == "equal" else y


_logical("logical_and bitwise_and __and__", "minimum")
_logical("logical_or bitwise_or __or__", "maximum")
_logical("logical_xor bitwise_xor __xor__", "equal")


@converts("logical_not", "bitwise_not")
def logical_not(b: Builder, a: Arguments) -> str:
    return negated(b, condition(b, a["self"]))


def _some(aten: str, op: str) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        rank, dim = len(b.shape(a["self"])), a.get("dim")
        axes = sorted(d % rank for d in ([dim] if isinstance(dim, int) else dim or range(rank)))
        return b.emit(op, [condition(b, a["self"])], {"axes": axes, "keepdims": bool(a.get("keepdim", False))})


_some("any", "max")
_some("all", "min")


@converts("isnan")
def isnan(b: Builder, a: Arguments) -> str:
    return negated(b, b.emit("equal", [a["self"], a["self"]], part=".equal"))


@converts("isinf")
def isinf(b: Builder, a: Arguments) -> str:
    return b.emit("less", [b.scalar(LARGEST), b.emit("abs", [a["self"]], part=".abs")], dtype="f32")


@converts("isfinite")
def isfinite(b: Builder, a: Arguments) -> str:
    return b.emit("less_or_equal", [b.emit("abs", [a["self"]], part=".abs"), b.scalar(LARGEST)])


# -- choices -----------------------------------------------------------------------------------------------------------


@converts("where")
def where(b: Builder, a: Arguments) -> str:
    if "self" not in a or "other" not in a:
        raise Unsupported("where of a condition alone gives indices", "use where(condition, a, b)")
    return chosen_where(b, condition(b, a["condition"]), number(b, a["self"], ".a"), number(b, a["other"], ".b"))


@converts("threshold")
def threshold(b: Builder, a: Arguments) -> str:
    above = b.emit("less", [b.scalar(float(a["threshold"])), a["self"]], part=".above", dtype="f32")
    value = float(a["value"])
    other = b.scalar(value)
    return chosen_where(b, above, a["self"], other)


@converts("rrelu")
def rrelu(b: Builder, a: Arguments) -> str:
    if a.get("training"):
        raise Unsupported("rrelu is in training mode", "use nn.RReLU, or pass training=self.training")
    return b.emit("leaky_relu", [a["self"]], {"negative_slope": (float(a["lower"]) + float(a["upper"])) / 2})


@converts("nan_to_num")
def nan_to_num(b: Builder, a: Arguments) -> str:
    """A comparison with a NaN is false: what is not equal to itself is replaced."""
    x, nan = a["self"], float(a["nan"] or 0)
    same, y = b.emit("equal", [x, x], part=".number"), x
    if a["posinf"] is not None:
        y = chosen_where(b, b.emit("less", [b.scalar(LARGEST), x], part=".above", dtype="f32"), b.scalar(float(a["posinf"])), y)
    if a["neginf"] is not None:
        y = chosen_where(b, b.emit("less", [x, b.scalar(-LARGEST)], part=".below"), b.scalar(float(a["neginf"])), y)
    return chosen_where(b, same, b.emit("clamp", [y], {"min": -LARGEST, "max": LARGEST}, part=".finite"), b.scalar(nan))


# -- remainders --------------------------------------------------------------------------------------------------------


@converts("remainder")
def remainder(b: Builder, a: Arguments) -> str:
    return b.emit("floor_mod", [number(b, a["self"], ".left"), number(b, a["other"], ".right")], dtype="f32")


@converts("fmod")
def fmod(b: Builder, a: Arguments) -> str:
    """The remainder of the magnitudes, with the sign of the first."""
    x, y = number(b, a["self"], ".left"), number(b, a["other"], ".right")
    width = b.emit("abs", [x], shape=b.shape(x), part=".abs")
    other = b.emit("abs", [y], shape=b.shape(y), part=".other")
    rest = b.emit("floor_mod", [width, other], part=".rest")
    return b.emit("mul", [rest, b.emit("sign", [x], shape=b.shape(x), part=".sign")])


@converts("floor_divide")
def floor_divide(b: Builder, a: Arguments) -> str:
    return rounded_quotient(b, number(b, a["self"], ".left"), number(b, a["other"], ".right"), "floor")


@converts("trunc")
def trunc(b: Builder, a: Arguments) -> str:
    return truncated(b, a["self"])


@converts("frac")
def frac(b: Builder, a: Arguments) -> str:
    return b.emit("sub", [a["self"], truncated(b, a["self"], ".whole")])


# -- powers and logarithms ---------------------------------------------------------------------------------------------


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
    return b.emit("power", [number(b, x, ".base"), number(b, exponent, ".exponent")], dtype="f32")


@converts("exp2")
def exp2(b: Builder, a: Arguments) -> str:
    return b.emit("power", [b.scalar(2), a["self"]], dtype="f32")


def _logarithm(aten: str, base: float) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        return b.emit("mul", [b.emit("log", [a["self"]], part=".log"), b.scalar(1 / math.log(base))])


_logarithm("log2", 2)
_logarithm("log10", 10)


@converts("expm1")
def expm1(b: Builder, a: Arguments) -> str:
    """``tanh(x / 2) * (exp(x) + 1)``, which keeps its digits near 0."""
    half = b.emit("mul", [a["self"], b.scalar(0.5)], part=".half")
    more = b.emit("add", [b.emit("exp", [a["self"]], part=".exp"), b.scalar(1)], part=".more")
    return b.emit("mul", [b.emit("tanh", [half], part=".tanh"), more])


@converts("log1p")
def log1p(b: Builder, a: Arguments) -> str:
    """With ``u = 1 + x``, ``log(u) * x / (u - 1)``, and ``x`` where ``u`` is 1: it keeps its digits near 0."""
    x, one = a["self"], b.scalar(1)
    u = b.emit("add", [x, one], part=".more")
    less = b.emit("sub", [u, one], part=".less")
    scaled = b.emit("div", [b.emit("mul", [b.emit("log", [u], part=".log"), x], part=".product"), less], part=".scaled")
    return chosen_where(b, b.emit("equal", [u, one], part=".small"), x, scaled)
