"""Converters of matrix products, attention, masks and tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._builder import Builder, Unsupported
from ._operators import Arguments, chosen_where, condition, converts, cut

# Value of a masked score: exp of it less any other score is 0.
MASKED = float(np.finfo(np.float32).min) / 4


@converts("linear")
def linear(b: Builder, a: Arguments) -> str:
    weight, bias = a["weight"], a["bias"]
    if len(b.shape(weight)) != 2:
        raise Unsupported("linear has a weight of rank 1", "use a weight [out, in]")
    if b.is_stored(weight) and (bias is None or b.is_stored(bias)):
        b.set_layout(weight, "OI")
        return b.emit("linear", [a["input"], weight, bias])
    part = "" if bias is None else ".product"
    y = b.emit("matmul", [a["input"], transposed(b, weight)], shape=b.result_shape(), part=part)
    return y if bias is None else b.emit("add", [y, bias])


def transposed(b: Builder, x: str, part: str = ".transposed") -> str:
    """With the last two axes exchanged."""
    shape, perm = list(b.shape(x)), list(range(len(b.shape(x))))
    shape[-2:], perm[-2:] = shape[:-3:-1], perm[:-3:-1]
    return b.emit("transpose", [x], {"perm": perm}, shape=shape, part=part)


@converts("matmul", "bmm", "mm", "mv", "dot")
def matmul(b: Builder, a: Arguments) -> str:
    x = a["self"]
    y = next(a[name] for name in ("other", "mat2", "vec", "tensor") if name in a)
    if not b.result_shape():
        each = b.emit("mul", [x, y], shape=b.shape(x), part=".each")
        return b.emit("sum", [each], {"axes": [0], "keepdims": False})
    return b.emit("matmul", [x, y])


@converts("addmm", "baddbmm", "addmv")
def addmm(b: Builder, a: Arguments) -> str:
    names = ("mat1", "mat2") if "mat1" in a else ("batch1", "batch2") if "batch1" in a else ("mat", "vec")
    y, other = b.emit("matmul", [a[name] for name in names], part=".product"), a["self"]
    if a.get("alpha", 1) != 1:
        y = b.emit("mul", [y, b.scalar(float(a["alpha"]))], part=".alpha")
    if a.get("beta", 1) != 1:
        other = b.emit("mul", [other, b.scalar(float(a["beta"]))], shape=b.shape(other), part=".beta")
    return b.emit("add", [y, other])


@converts("scaled_dot_product_attention")
def attention(b: Builder, a: Arguments) -> str:
    query, key, value = a["query"], a["key"], a["value"]
    if a.get("dropout_p"):
        raise Unsupported("attention with dropout", "set dropout_p=0, or use eval()")
    if a.get("enable_gqa"):
        key, value = (_repeated(b, x, b.shape(query)[-3], part) for x, part in ((key, ".key"), (value, ".value")))
    rows, columns = b.shape(query)[-2], b.shape(key)[-2]
    scale = 1 / math.sqrt(b.shape(query)[-1]) if a.get("scale") is None else float(a["scale"])
    query = b.emit("mul", [query, b.scalar(scale)], shape=b.shape(query), part=".scaled")
    shape = (*b.result_shape()[:-2], rows, columns)
    scores = b.emit("matmul", [query, transposed(b, key, ".keys")], shape=shape, part=".scores")
    mask = a.get("attn_mask")
    if a.get("is_causal"):
        allowed = np.tril(np.ones((rows, columns), dtype=bool))
        mask = b.constant(_additive(allowed), ".mask")
    elif mask is not None and b.dtype(mask) == "bool":
        mask = b.constant(_additive(b.trace.values[mask]), ".mask")
    if mask is not None and mask in b.conditions:
        scores = chosen_where(b, mask, scores, b.scalar(MASKED), shape)
    elif mask is not None:
        scores = b.emit("add", [scores, mask], shape=shape, part=".masked")
    weights = b.emit("softmax", [scores], {"axis": -1}, shape=shape, part=".weights")
    return b.emit("matmul", [weights, value])


def _repeated(b: Builder, x: str, heads: int, part: str) -> str:
    """Each head as often as there are queries for it."""
    shape = b.shape(x)
    if shape[-3] == heads:
        return x
    each = [cut(b, x, len(shape) - 3, i * shape[-3] // heads, i * shape[-3] // heads + 1, part=f"{part}.{i}") for i in range(heads)]
    return b.emit("concat", each, {"axis": len(shape) - 3}, shape=(*shape[:-3], heads, *shape[-2:]), part=part)


def _additive(allowed: np.ndarray) -> np.ndarray:
    if not allowed.any(axis=-1).all():
        raise Unsupported("a row of the mask allows nothing", "allow each row at least one column")
    return np.where(allowed, np.float32(0), np.float32(MASKED)).astype(np.float32)


@converts("masked_fill")
def masked_fill(b: Builder, a: Arguments) -> str:
    """``x * keep + fill``; minus infinity is the lowest number that is finite."""
    value = b.trace.values[a["value"]].item() if isinstance(a["value"], str) else float(a["value"])
    if math.isnan(value) or value == math.inf:
        raise Unsupported(f"masked_fill with {value}", "use a finite number")
    if not b.is_stored(a["mask"]):
        fill = b.scalar(MASKED if value == -math.inf else value)
        return chosen_where(b, condition(b, a["mask"]), fill, a["self"])
    mask = b.trace.values[a["mask"]]
    value = MASKED if value == -math.inf else value
    keep = b.emit("mul", [a["self"], b.constant(np.where(mask, 0, 1).astype(np.float32), ".keep")], part=".kept")
    return b.emit("add", [keep, b.constant(np.where(mask, value, 0).astype(np.float32), ".fill")])


@converts("embedding")
def embedding(b: Builder, a: Arguments) -> str:
    indices, weight = a["indices"], a["weight"]
    if b.dtype(indices) != "i32" or not b.is_stored(weight):
        raise Unsupported("embedding of what is no integer input, or of a computed table", "give int32 or int64 indices")
    return b.emit("embedding", [indices, weight], dtype="f32")


def known_as_array(value: Any) -> np.ndarray:
    """A constant of the program as the trace stores it: integers are int32, minus infinity the lowest finite number."""
    array = value.detach().cpu().contiguous().numpy()
    if array.dtype == np.int64:
        if np.abs(array).max(initial=0) >= 1 << 31:
            raise Unsupported("a constant above 32 bits", "make it float32")
        array = array.astype(np.int32)
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    return np.where(np.isneginf(array), np.float32(MASKED), array) if array.dtype == np.float32 else array
