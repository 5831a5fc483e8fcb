"""Generated from the rows of core/src/ops/pointwise.rs and binary.rs:
ATen call, its further arguments, operator of trace.json."""

from typing import Any

POINTWISE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("hardswish", {}, "hardswish"),
    ("sigmoid", {}, "sigmoid"),
    ("tanh", {}, "tanh"),
    ("exp", {}, "exp"),
    ("log", {}, "log"),
    ("sqrt", {}, "sqrt"),
    ("rsqrt", {}, "rsqrt"),
    ("square", {}, "square"),
    ("abs", {}, "abs"),
    ("neg", {}, "neg"),
    ("floor", {}, "floor"),
    ("ceil", {}, "ceil"),
    ("round", {}, "round"),
    ("sign", {}, "sign"),
    ("erf", {}, "erf"),
    ("gelu", {"approximate": "none"}, "gelu"),
    ("gelu", {"approximate": "tanh"}, "gelu_tanh"),
    ("hardsigmoid", {}, "hardsigmoid"),
    ("softplus", {"beta": 1, "threshold": 20}, "softplus"),
    ("sin", {}, "sin"),
    ("cos", {}, "cos"),
)

BINARY: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("add", {}, "add"),
    ("sub", {}, "sub"),
    ("mul", {}, "mul"),
    ("div", {}, "div"),
    ("minimum", {}, "minimum"),
    ("maximum", {}, "maximum"),
)
