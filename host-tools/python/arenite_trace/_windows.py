"""Converters of what slides a window: convolutions, transposed convolutions, poolings, resizings. A row is an image of one row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._axes import average_map, mapped, picked, resampled, uneven_maximum
from ._builder import Builder, Unsupported
from ._operators import Arguments, converts, cut, reshaped

#: The lowest number of f32.
LOWEST = float(np.finfo(np.float32).min)


def pair(value: int | Sequence[int], rank: int = 2) -> list[int]:
    """ATen shortens [2, 2] to [2] or 2; one number of a row is that of its columns, and ``rank`` is 1."""
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def both_sides(padding: Sequence[int]) -> list[int]:
    rows, columns = padding
    return [rows, rows, columns, columns]


def _row(rank: int, one: int, values: Sequence[int]) -> list[int]:
    """Pair of rows and columns, with ``one`` for the row of a sequence."""
    return [one, *values] if rank == 1 else list(values)


def _image(b: Builder, x: str, op: str, rank: int) -> str:
    """``[N, C, L]`` as ``[N, C, 1, L]``; an image as it is, one without a batch axis with an axis of 1."""
    shape = b.shape(x)
    if len(shape) == rank + 1:
        return reshaped(b, x, (1, shape[0], *(() if rank == 2 else (1,)), *shape[1:]), None, ".batch")
    if len(shape) != rank + 2:
        axes = "[N, C, L]" if rank == 1 else "[N, C, H, W]"
        raise Unsupported(f"{op} of a tensor of rank {len(shape)}", f"keep the batch axis: {axes}")
    return x if rank == 2 else reshaped(b, x, (*shape[:2], 1, shape[2]), part=".row")


def _emit(
    b: Builder, op: str, inputs: Sequence[str | None], attrs: dict[str, Any], rank: int, shape: Sequence[int]
) -> str:
    """The operator on images, and its result in the shape that PyTorch gives it."""
    if len(shape) == rank + 1:
        y = b.emit(op, inputs, attrs, shape=(1, shape[0], *(() if rank == 2 else (1,)), *shape[1:]), part=f".{op}")
        return reshaped(b, y, shape, None)
    if rank == 2:
        return b.emit(op, inputs, attrs, shape=shape)
    y = b.emit(op, inputs, attrs, shape=(*shape[:2], 1, shape[2]), part=f".{op}")
    return reshaped(b, y, shape)


# -- convolution -------------------------------------------------------------------------------------------------------


def _convolution(rank: int) -> None:
    @converts(f"conv{rank}d")
    def convert(b: Builder, a: Arguments) -> str:
        kernel = b.shape(a["weight"])[2:]
        stride, dilation = pair(a["stride"], rank), pair(a["dilation"], rank)
        attrs = {
            "strides": _row(rank, 1, stride),
            "padding": _padding(a["padding"], _row(rank, 1, kernel), _row(rank, 1, dilation), rank),
            "dilation": _row(rank, 1, dilation),
            "groups": a["groups"],
            "layout": "NCHW",
        }
        x = _image(b, a["input"], f"conv{rank}d", rank)
        return _emit(b, "conv2d", [x, _weight(b, a["weight"], "OIHW"), a["bias"]], attrs, rank, b.result_shape())


_convolution(1)
_convolution(2)


def _weight(b: Builder, weight: str, layout: str) -> str:
    if not b.is_stored(weight):
        raise Unsupported("a convolution has a weight that is computed", "use a parameter")
    shape = b.shape(weight)
    if len(shape) == 3:
        b.reshape_stored(weight, (*shape[:2], 1, shape[2]))
    b.set_layout(weight, layout)
    return weight


def _padding(padding: str | Sequence[int], kernel: Sequence[int], dilation: Sequence[int], rank: int) -> list[int]:
    if not isinstance(padding, str):
        return both_sides(_row(rank, 0, pair(padding, rank)))
    if padding == "valid":
        return [0, 0, 0, 0]
    if padding == "same":
        # Stride is 1 here (PyTorch insists); an odd element goes behind, as PyTorch does.
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [total[0] // 2, total[0] - total[0] // 2, total[1] // 2, total[1] - total[1] // 2]
    raise Unsupported(f"padding {padding!r}", "give the padding in numbers")


def _transposed(rank: int) -> None:
    @converts(f"conv_transpose{rank}d")
    def convert(b: Builder, a: Arguments) -> str:
        attrs = {
            "strides": _row(rank, 1, pair(a["stride"], rank)),
            "padding": both_sides(_row(rank, 0, pair(a["padding"], rank))),
            "output_padding": _row(rank, 0, pair(a["output_padding"], rank)),
            "dilation": _row(rank, 1, pair(a["dilation"], rank)),
            "groups": a["groups"],
            "layout": "NCHW",
        }
        x = _image(b, a["input"], f"conv_transpose{rank}d", rank)
        inputs = [x, _weight(b, a["weight"], "IOHW"), a["bias"]]
        return _emit(b, "conv_transpose2d", inputs, attrs, rank, b.result_shape())


_transposed(1)
_transposed(2)


# -- pooling -----------------------------------------------------------------------------------------------------------


def _pooling(kind: str, rank: int) -> None:
    @converts(f"{kind}_pool{rank}d")
    def convert(b: Builder, a: Arguments) -> str:
        op = f"{kind}_pool{rank}d"
        kernel = pair(a["kernel_size"], rank)
        divisor = a.get("divisor_override")
        if divisor is not None and a["ceil_mode"]:
            raise Unsupported(f"{op} has a divisor_override and ceil_mode", "leave one of them out")
        attrs: dict[str, Any] = {
            "kernel": _row(rank, 1, kernel),
            "strides": _row(rank, 1, pair(a["stride"], rank) if a["stride"] else kernel),
            "padding": both_sides(_row(rank, 0, pair(a["padding"], rank))),
        }
        if kind == "max":
            attrs["dilation"] = _row(rank, 1, pair(a["dilation"], rank))
        attrs["ceil_mode"] = bool(a["ceil_mode"])
        if kind == "avg":
            attrs["count_include_pad"] = bool(a["count_include_pad"]) or divisor is not None
        attrs["layout"] = "NCHW"
        x = _image(b, a["self"], op, rank)
        if kind == "max" and attrs["dilation"] != [1, 1]:
            if len(b.result_shape()) != rank + 2:
                raise Unsupported(f"{op} with dilation, of a tensor without a batch axis", "keep the batch axis")
            return _dilated_maximum(b, x, attrs, rank)
        if divisor is None:
            return _emit(b, f"{kind}_pool2d", [x], attrs, rank, b.result_shape())
        more = b.emit("mul", [x, b.scalar(math.prod(kernel) / divisor)], shape=b.shape(x), part=".scaled")
        return _emit(b, f"{kind}_pool2d", [more], attrs, rank, b.result_shape())


def _dilated_maximum(b: Builder, x: str, attrs: dict[str, Any], rank: int) -> str:
    """The larger of slices, along rows and then along columns; padding holds the lowest number."""
    result = b.result_shape()
    counts, before = _row(rank, 1, result[2:]), attrs["padding"][::2]
    spans = list(zip(counts, attrs["kernel"], attrs["strides"], attrs["dilation"], strict=True))
    needed = [(m - 1) * s + d * (k - 1) + 1 for m, k, s, d in spans]
    after = [max(n - size - p, 0) for n, size, p in zip(needed, b.shape(x)[2:], before, strict=True)]
    if any([*before, *after]):
        padding = [[0, 0], [0, 0], [before[0], after[0]], [before[1], after[1]]]
        shape = [n + sum(p) for n, p in zip(b.shape(x), padding, strict=True)]
        x = b.emit("pad", [x], {"padding": padding, "value": LOWEST}, shape=shape, part=".padded")
    for along, (m, k, s, d) in enumerate(spans, 2):
        y = ""
        for i in range(k):
            piece = cut(b, x, along, i * d, i * d + (m - 1) * s + 1, s, part=f".axis{along}.{i}")
            y = b.emit("maximum", [y, piece], shape=b.shape(piece), part=f".axis{along}.max{i}") if y else piece
        x = y
    return reshaped(b, x, result) if rank == 1 else x


for _kind in ("max", "avg"):
    _pooling(_kind, 1)
    _pooling(_kind, 2)


def _volume_pooling(kind: str) -> None:
    """Along the depth, then along rows and columns: their maxima, and their means with the number of elements that each counts."""

    @converts(f"{kind}_pool3d")
    def convert(b: Builder, a: Arguments) -> str:
        x, op, result = a["self"], f"{kind}_pool2d", b.result_shape()
        if len(b.shape(x)) != 5 or a.get("divisor_override") is not None:
            raise Unsupported(f"{kind}_pool3d without a batch axis, or with a divisor", "give [N, C, D, H, W], and no divisor_override")
        n, c, depth, rows, columns = b.shape(x)
        kernel, padding = triple(a["kernel_size"]), triple(a["padding"])
        stride = triple(a["stride"]) if a["stride"] else kernel
        dilation = triple(a.get("dilation", 1))

        def attrs(*axes: int | None) -> dict[str, Any]:
            of = lambda values, one: [one if d is None else values[d] for d in axes]  # noqa: E731
            found: dict[str, Any] = {"kernel": of(kernel, 1), "strides": of(stride, 1), "padding": both_sides(of(padding, 0))}
            if kind == "max":
                found["dilation"] = of(dilation, 1)
            found["ceil_mode"] = bool(a["ceil_mode"])
            if kind == "avg":
                found["count_include_pad"] = bool(a["count_include_pad"])
            return {**found, "layout": "NCHW"}

        if kernel[0] > 1 or stride[0] > 1 or padding[0]:
            last = kernel[1:] + stride[1:] + padding[1:] == [1, 1, 1, 1, 0, 0]
            x = reshaped(b, x, (n, c, depth, rows * columns), part=".lines")
            depth = result[2]
            x = b.emit(op, [x], attrs(0, None), shape=(n, c, depth, rows * columns), part=".depth")
            if last:
                return reshaped(b, x, result)
        x = reshaped(b, x, (n, c * depth, rows, columns), part=".images")
        y = b.emit(op, [x], attrs(1, 2), shape=(n, c * depth, *result[3:]), part=".plane")
        return reshaped(b, y, result)


def triple(value: int | Sequence[int]) -> list[int]:
    return pair(value, 3)


for _kind in ("max", "avg"):
    _volume_pooling(_kind)


@converts("conv3d", "conv_transpose3d")
def conv3d(b: Builder, a: Arguments) -> str:
    what = "Conv3d" if "output_padding" not in a else "ConvTranspose3d"
    raise Unsupported(f"{what}: a convolution over three axes", "use Conv2d on each plane, or take the depth for channels")


@converts("max_pool2d_with_indices", "max_pool1d_with_indices")
def max_pool_with_indices(b: Builder, a: Arguments) -> list[Any]:
    raise Unsupported("max_pool2d gives indices", "call it without return_indices")


def _adaptive(kind: str, rank: int) -> None:
    """Exact where the output size divides the input size: all windows are then equal."""

    @converts(f"adaptive_{kind}_pool{rank}d")
    def convert(b: Builder, a: Arguments) -> Any:
        op, several = f"adaptive_{kind}_pool{rank}d", kind == "max"
        if several and b.is_used(1):
            raise Unsupported(f"{op} gives indices", "call it without return_indices")
        result = b.result_shape(0) if several else b.result_shape()
        y = _even_windows(b, a["self"], op, kind, rank, result)
        return [y, None] if several else y


def _even_windows(b: Builder, x: str, op: str, kind: str, rank: int, result: Sequence[int]) -> str:
    size, wanted = b.shape(x)[2:], list(result[2:])
    if wanted == [1] * rank:
        axes = list(range(2, rank + 2))
        _image_rank(b, x, op, rank)
        return b.emit("mean" if kind == "avg" else "max", [x], {"axes": axes, "keepdims": True}, shape=result)
    if len(size) == rank and any(n % k for n, k in zip(size, wanted, strict=True)):
        if kind == "avg":
            return mapped(b, x, [average_map(n, m) for n, m in zip(size, wanted, strict=True)])
        return uneven_maximum(b, x, result)
    image = _image(b, x, op, rank)
    kernel = _row(rank, 1, [n // k for n, k in zip(size, wanted, strict=True)])
    attrs = {"kernel": kernel, "strides": kernel, "padding": [0, 0, 0, 0], "ceil_mode": False, "layout": "NCHW"}
    return _emit(b, f"{kind}_pool2d", [image], attrs, rank, result)


def _image_rank(b: Builder, x: str, op: str, rank: int) -> None:
    if len(b.shape(x)) != rank + 2:
        raise Unsupported(f"{op} of a tensor of rank {len(b.shape(x))}", "keep the batch axis")


for _kind in ("max", "avg"):
    _adaptive(_kind, 1)
    _adaptive(_kind, 2)


# -- resizing ----------------------------------------------------------------------------------------------------------


def _resizing(aten: str, op: str, rank: int, centers: bool) -> None:
    @converts(aten)
    def convert(b: Builder, a: Arguments) -> str:
        x, result = a["input"] if "input" in a else a["self"], b.result_shape()
        scales = a.get("scale_factors") or a.get("scales")
        if _shifted(b.shape(x)[2:], result[2:], scales) and not a.get("align_corners"):
            if op == "resize_nearest":
                return picked(b, x, aten, result, scales)
            return resampled(b, x, aten, result, False, scales)
        attrs: dict[str, Any] = {"size": _row(rank, 1, result[2:])}
        if op == "resize_nearest":
            attrs["half_pixel_centers"] = centers
        else:
            attrs["align_corners"] = bool(a["align_corners"])
        attrs["layout"] = "NCHW"
        return _emit(b, op, [_image(b, x, aten, rank)], attrs, rank, result)


def _shifted(size: Sequence[int], result: Sequence[int], scales: Any) -> bool:
    """Whether the places are not those of the sizes alone: a factor does not give a whole size."""
    scales = [] if scales is None else [scales] if isinstance(scales, float) else list(scales)
    return any(n * factor != m for n, m, factor in zip(size, result, scales, strict=False))


for _rank in (1, 2):
    _resizing(f"upsample_nearest{_rank}d", "resize_nearest", _rank, centers=False)
    _resizing(f"_upsample_nearest_exact{_rank}d", "resize_nearest", _rank, centers=True)
_resizing("upsample_linear1d", "resize_bilinear", 1, centers=True)
_resizing("upsample_bilinear2d", "resize_bilinear", 2, centers=True)
