"""Converters of bicubic and antialiased resizing, of windows that are copied, of sums and products in a row, and of choices by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._axes import resampled, taken
from ._builder import Builder, Unsupported
from ._operators import Arguments, axis, converts, cut, number, reshaped
from ._windows import pair

# -- resizing ----------------------------------------------------------------------------------------------------------


def _interpolated(aten: str, rank: int) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        x, result = a["input"] if "input" in a else a["self"], b.result_shape()
        if len(b.shape(x)) != rank + 2:
            raise Unsupported(f"{aten} of a tensor of rank {len(b.shape(x))}", "keep the batch axis")
        return resampled(b, x, aten, result, bool(a["align_corners"]), a.get("scale_factors"))


for _name in ("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"):
    _interpolated(_name, 2)


# -- sums and products -------------------------------------------------------------------------------------------------


def _running(aten: str, op: str, neutral: float) -> None:
    """In steps that double: each element with the one a distance before it, twice the distance, and so on."""

    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        x, shape = a["self"], b.shape(a["self"])
        if not shape:
            return str(x)
        along = axis(a["dim"], len(shape))
        distance = 1
        while distance < shape[along]:
            before = cut(b, x, along, 0, shape[along] - distance, part=f".before{distance}")
            attrs = {"padding": [[distance if d == along else 0, 0] for d in range(len(shape))], "value": neutral}
            moved = b.emit("pad", [before], attrs, shape=shape, part=f".moved{distance}")
            x = b.emit(op, [x, moved], shape=shape, part="" if 2 * distance >= shape[along] else f".{distance}")
            distance *= 2
        return str(x)


_running("cumsum", "add", 0.0)
_running("cumprod", "mul", 1.0)


@converts("prod")
def prod(b: Builder, a: Arguments) -> str:
    """Halves of the axis are multiplied until one element is left."""
    x, rank = a["self"], len(b.shape(a["self"]))
    dim = a.get("dim")
    if dim is None:
        x, along = reshaped(b, x, (math.prod(b.shape(x)),), None, ".line"), 0
    else:
        along = axis(dim, rank)
    turn = 0
    while (n := b.shape(x)[along]) > 1:
        half, shape = n // 2, list(b.shape(x))
        shape[along] = half
        parts = [cut(b, x, along, i * half, (i + 1) * half, part=f".{turn}.half{i}") for i in range(2)]
        y = b.emit("mul", parts, shape=shape, part=f".{turn}")
        if n % 2:
            shape[along] += 1
            y = b.emit("concat", [y, cut(b, x, along, n - 1, n, part=f".{turn}.odd")], {"axis": along}, shape=shape, part=f".{turn}.all")
        x, turn = y, turn + 1
    # The sum of one element is the element.
    return b.emit("sum", [x], {"axes": [along], "keepdims": bool(a.get("keepdim", False))})


@converts("logsumexp")
def logsumexp(b: Builder, a: Arguments) -> str:
    x, rank = a["self"], len(b.shape(a["self"]))
    axes = sorted(axis(d, rank) for d in ([a["dim"]] if isinstance(a["dim"], int) else a["dim"]))
    kept = tuple(1 if d in axes else n for d, n in enumerate(b.shape(x)))
    largest = b.emit("max", [x], {"axes": axes, "keepdims": True}, shape=kept, part=".largest")
    below = b.emit("sub", [x, largest], shape=b.shape(x), part=".below")
    each = b.emit("exp", [below], shape=b.shape(x), part=".exp")
    keep = bool(a["keepdim"])
    log = b.emit("log", [b.emit("sum", [each], {"axes": axes, "keepdims": keep}, part=".sum")], part=".log")
    if not keep:
        largest = b.emit("max", [x], {"axes": axes, "keepdims": False}, part=".top")
    return b.emit("add", [log, largest])


@converts("bilinear")
def bilinear(b: Builder, a: Arguments) -> str:
    """The weights times the second operand are a matrix for each row of the first."""
    x, y, weight, bias = a["input1"], a["input2"], a["weight"], a["bias"]
    if not b.is_stored(weight):
        raise Unsupported("bilinear has a weight that is computed", "use a parameter")
    outputs, n, m = b.shape(weight)
    lead = b.shape(x)[:-1]
    b.reshape_stored(weight, (outputs * n, m))
    b.set_layout(weight, "OI")
    rows = b.emit("linear", [y, weight], shape=(*lead, outputs * n), part=".rows")
    rows = reshaped(b, rows, (*lead, outputs, n), part=".matrix")
    column = reshaped(b, x, (*lead, n, 1), part=".column")
    product = b.emit("matmul", [rows, column], shape=(*lead, outputs, 1), part=".product")
    result = reshaped(b, product, b.result_shape(), part="" if bias is None else ".sum")
    return result if bias is None else b.emit("add", [result, bias])


@converts("cdist")
def distances(b: Builder, a: Arguments) -> str:
    x, y = a["x1"], a["x2"]
    if a["p"] != 2:
        raise Unsupported(f"cdist with p = {a['p']}", "use p = 2")
    shape, width = b.result_shape(), b.shape(x)[-1]
    left = reshaped(b, x, (*b.shape(x)[:-1], 1, width), part=".left")
    right = reshaped(b, y, (*b.shape(y)[:-2], 1, *b.shape(y)[-2:]), part=".right")
    apart = b.emit("sub", [left, right], shape=(*shape, width), part=".apart")
    square = b.emit("square", [apart], shape=(*shape, width), part=".square")
    return b.emit("sqrt", [b.emit("sum", [square], {"axes": [len(shape)], "keepdims": False}, part=".sum")])


# -- windows that are copied -------------------------------------------------------------------------------------------


@converts("im2col")
def im2col(b: Builder, a: Arguments) -> str:
    """A slice of the padded image for each element of the kernel."""
    x, (n, columns, places) = a["self"], b.result_shape()
    kernel, dilation, padding, stride = (pair(a[name]) for name in ("kernel_size", "dilation", "padding", "stride"))
    c = b.shape(x)[1]
    if any(padding):
        shape = (n, c, *(size + 2 * p for size, p in zip(b.shape(x)[2:], padding, strict=True)))
        attrs = {"padding": [[0, 0], [0, 0], *([p, p] for p in padding)], "value": 0.0}
        x = b.emit("pad", [x], attrs, shape=shape, part=".padded")
    counts = [(size - d * (k - 1) - 1) // s + 1 for size, k, d, s in zip(b.shape(x)[2:], kernel, dilation, stride, strict=True)]
    pieces = []
    for i in range(kernel[0]):
        row = _window(b, x, 2, i * dilation[0], stride[0], counts[0], f".{i}")
        for j in range(kernel[1]):
            piece = _window(b, row, 3, j * dilation[1], stride[1], counts[1], f".{i}.{j}")
            pieces.append(reshaped(b, piece, (n, c, 1, places), part=f".{i}.{j}.flat"))
    shape = (n, c, kernel[0] * kernel[1], places)
    y = b.emit("concat", pieces, {"axis": 2}, shape=shape, part=".windows") if len(pieces) > 1 else pieces[0]
    return reshaped(b, y, (n, columns, places))


def _window(b: Builder, x: str, along: int, start: int, step: int, count: int, part: str) -> str:
    stop = start + (count - 1) * step + 1
    return x if (start, stop, step) == (0, b.shape(x)[along], 1) else cut(b, x, along, start, stop, step, part)


@converts("unfold")
def unfold(b: Builder, a: Arguments) -> str:
    x, size, step = a["self"], a["size"], a["step"]
    along = axis(a["dimension"], len(b.shape(x)))
    count, shape = b.result_shape()[along], b.result_shape()
    batch = 0 if along else None
    pieces = [_window(b, x, along, i, step, count, f".{i}") for i in range(size)]
    pieces = [reshaped(b, piece, (*shape[:-1], 1), batch, f".{i}.column") for i, piece in enumerate(pieces)]
    return b.emit("concat", pieces, {"axis": len(shape) - 1}) if size > 1 else pieces[0]


@converts("col2im")
def col2im(b: Builder, a: Arguments) -> str:
    """A transposed convolution: each element of the kernel has a channel of its own."""
    kernel, dilation, padding, stride = (pair(a[name]) for name in ("kernel_size", "dilation", "padding", "stride"))
    n, columns, _ = b.shape(a["self"])
    each, size = kernel[0] * kernel[1], pair(a["output_size"])
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    counts = [(m + 2 * p - e) // s + 1 for m, p, e, s in zip(size, padding, spans, stride, strict=True)]
    more = [m + 2 * p - e - (k - 1) * s for m, p, e, k, s in zip(size, padding, spans, counts, stride, strict=True)]
    image = reshaped(b, a["self"], (n, columns, *counts), part=".image")
    weights = np.tile(np.eye(each, dtype=np.float32).reshape(each, 1, *kernel), (columns // each, 1, 1, 1))
    attrs = {
        "strides": stride, "padding": [padding[0], padding[0], padding[1], padding[1]], "output_padding": more,
        "dilation": dilation, "groups": columns // each, "layout": "NCHW",
    }  # fmt: skip
    weight = b.constant(weights, ".places")
    b.set_layout(weight, "IOHW")
    return b.emit("conv_transpose2d", [image, weight, None], attrs)


# -- choices by index --------------------------------------------------------------------------------------------------


@converts("flip")
def flip(b: Builder, a: Arguments) -> str:
    x, rank = a["self"], len(b.shape(a["self"]))
    for i, dim in enumerate(a["dims"]):
        along = axis(dim, rank)
        x = taken(b, x, along, range(b.shape(x)[along])[::-1], "" if i == len(a["dims"]) - 1 else f".axis{along}")
    return str(x)


def hot(b: Builder, indices: str, count: int, part: str = ".hot") -> str:
    """1 where the last axis has an index's number, else 0."""
    at = b.shape(indices)
    column = reshaped(b, number(b, indices, ".index"), (*at, 1), part=".column")
    numbers = b.constant(np.arange(count, dtype=np.float32), ".numbers")
    return b.emit("equal", [column, numbers], shape=(*at, count), part=part)


@converts("one_hot")
def one_hot(b: Builder, a: Arguments) -> str:
    return hot(b, a["self"], b.result_shape()[-1], "")


def _rows(b: Builder, x: str, indices: str, along: int) -> str:
    """Rows of a table at computed indices."""
    shape = b.shape(x)
    if not b.is_stored(x) and (along or len(shape) != 2):
        raise Unsupported(f"{b.call} of a computed tensor at computed indices", "index rows of a matrix, a parameter, or by constants")
    if b.dtype(indices) != "i32":
        raise Unsupported(f"{b.call} at indices of {b.dtype(indices)}", "give int32 or int64 indices")
    if not b.is_stored(x):
        return b.emit("matmul", [hot(b, indices, shape[0]), x], shape=(*b.shape(indices), shape[1]))
    rest = shape[:along] + shape[along + 1 :]
    table = np.moveaxis(b.trace.values[x], along, 0).reshape(shape[along], -1)
    if table.shape != shape:
        role = b.trace.tensors[x].role
        x = b.store(b.unique(f"{x}.rows"), np.ascontiguousarray(table))
        b.trace.tensors[x].role = role
    at = b.shape(indices)
    rows = b.emit("embedding", [indices, x], shape=(*at, math.prod(rest)), part=".rows", dtype="f32")
    y = reshaped(b, rows, (*at, *rest), part=".wide" if along else "")
    if not along:
        return y
    # The axes before the chosen one come first again.
    perm = [*range(len(at), len(at) + along), *range(len(at)), *range(len(at) + along, len(at) + len(rest))]
    return b.emit("transpose", [y], {"perm": perm}, shape=[b.shape(y)[d] for d in perm])


@converts("index_select", "index")
def index(b: Builder, a: Arguments) -> str:
    x, rank = a["self"], len(b.shape(a["self"]))
    given = {axis(a["dim"], rank): a["index"]} if "dim" in a else {d: i for d, i in enumerate(a["indices"]) if i is not None}
    if not given:
        return str(x)
    dims = sorted(given)
    if not all(b.is_stored(i) for i in given.values()):
        if len(dims) > 1:
            raise Unsupported(f"{b.call} by {len(dims)} computed indices", "choose one axis after the other")
        return _rows(b, x, given[dims[0]], dims[0])
    values = np.broadcast_arrays(*(b.trace.values[given[d]] for d in dims))
    if any(v.dtype == np.bool_ for v in values):
        raise Unsupported("index by a mask", "use constant indices: a mask's result has no fixed shape")
    if dims != list(range(dims[0], dims[-1] + 1)):
        raise Unsupported("index of axes that are not side by side", "choose one axis after the other")
    sizes = b.shape(x)[dims[0] : dims[-1] + 1]
    places = np.ravel_multi_index([np.where(v < 0, v + n, v) for v, n in zip(values, sizes, strict=True)], sizes).ravel()
    shape = b.shape(x)
    joined = reshaped(b, x, (*shape[: dims[0]], math.prod(sizes), *shape[dims[-1] + 1 :]), 0 if dims[0] else None, ".joined")
    y = taken(b, joined, dims[0], [int(p) for p in places], ".taken")
    return reshaped(b, y, b.result_shape(), 0 if dims[0] else None)


@converts("topk")
def topk(b: Builder, a: Arguments) -> list[Any]:
    """The largest or smallest one."""
    x, along = a["self"], axis(a["dim"], len(b.shape(a["self"])))
    if a["k"] != 1:
        raise Unsupported(f"topk of {a['k']}", "use k = 1, or choose in the application")
    value = b.emit("max" if a["largest"] else "min", [x], {"axes": [along], "keepdims": True}, shape=b.result_shape(0))
    if not b.is_used(1):
        return [value, None]
    line = x if a["largest"] else b.emit("neg", [x], shape=b.shape(x), part=".neg")
    at = b.emit("argmax", [line], {"axis": along, "keepdims": True}, shape=b.result_shape(1), part=".index", dtype="i32")
    return [value, at]
