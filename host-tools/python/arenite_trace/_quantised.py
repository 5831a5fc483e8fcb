"""Converters of what quantised modules consist of: conversions between real numbers and integers.

``torchao`` writes them around float calls (PT2E, also after quantisation-aware training); ``pack`` makes integer operators of what stands between two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._builder import Builder, Unsupported
from ._operators import Arguments, converts
from ._schema import Quant

LIMITS = {"torch.int8": ("i8", -128, 127), "torch.uint8": ("u8", 0, 255), "torch.int32": ("i32", -(2**31), 2**31 - 1)}
NAMESPACE = "quantized_decomposed::"


@converts(NAMESPACE + "quantize_per_tensor")
def quantize(b: Builder, a: Arguments) -> str:
    dtype, least, most = _limits(a)
    if dtype == "i32":
        raise Unsupported("activations of torch.int32", "quantise them to torch.int8 or torch.uint8")
    if (a["quant_min"], a["quant_max"]) != (least, most):
        found = f"{a['quant_min']} to {a['quant_max']}"
        raise Unsupported(f"activations of {found}", f"let the quantizer use all of {least} to {most} (reduce_range=False)")
    name = b.emit("quantize", [a["input"]], dtype=dtype)
    b.set_quant(name, Quant((_number(b, a["scale"]),), int(_number(b, a["zero_point"]))))
    return name


@converts(NAMESPACE + "dequantize_per_tensor")
def dequantize(b: Builder, a: Arguments) -> str:
    return _real(b, a, Quant((_number(b, a["scale"]),), int(_number(b, a["zero_point"]))))


@converts(NAMESPACE + "dequantize_per_channel")
def dequantize_per_channel(b: Builder, a: Arguments) -> str:
    scales, zeros = (_values(b, a[name]) for name in ("scales", "zero_points"))
    assert scales is not None
    if zeros is not None and (zeros != zeros.flat[0]).any():
        raise Unsupported("zero points that differ from channel to channel", "quantise weights symmetrically")
    zero = 0 if zeros is None else int(zeros.flat[0])
    return _real(b, a, Quant(tuple(float(scale) for scale in scales), zero, int(a["axis"])))


def _real(b: Builder, a: Arguments, quant: Quant) -> str:
    _limits(a)
    if str(a.get("out_dtype") or "torch.float32") != "torch.float32":
        raise Unsupported(f"real numbers of {a['out_dtype']}", "keep the network in float32")
    x = a["input"]
    b.set_quant(x, quant)
    # Operators read the real numbers of what is stored.
    return x if b.is_stored(x) else b.emit("dequantize", [x], dtype="f32")


def _limits(a: Arguments) -> tuple[str, int, int]:
    known = LIMITS.get(str(a["dtype"]))
    if known is None:
        raise Unsupported(f"integers of {a['dtype']}", "quantise to torch.int8 or torch.uint8")
    return known


def _values(b: Builder, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    if isinstance(given, str):
        if not b.is_stored(given):
            raise Unsupported("scales that are computed", "use static quantisation, with calibrated scales")
        return b.trace.values[given]
    return np.asarray(given)


def _number(b: Builder, given: Any) -> float:
    values = _values(b, given)
    assert values is not None
    return float(np.float32(values.reshape(-1)[0]))
