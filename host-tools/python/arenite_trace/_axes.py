"""Functions that are linear along single axes: products of rows and columns with matrices that PyTorch itself computes, and choices of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ._builder import Builder, Unsupported
from ._operators import cut

#: Most pieces that an axis may be cut into.
MOST_PIECES = 4096

Rows = Callable[[torch.Tensor], torch.Tensor]


def _matrix(n: int, row: Rows) -> np.ndarray:
    """Matrix of a linear function of rows of n elements, as PyTorch computes it: [elements of its result, n]."""
    basis = torch.eye(n, dtype=torch.float64)
    return np.ascontiguousarray(row(basis).numpy().T.astype(np.float32))


def mapped(b: Builder, x: str, maps: Sequence[np.ndarray], part: str = "") -> str:
    """The last axes of ``x``, each times its matrix; one that is None stays."""
    shape = list(b.shape(x))
    wanted = [i for i, m in enumerate(maps) if not (m.shape[0] == m.shape[1] and np.array_equal(m, np.eye(len(m))))]
    for i in reversed(wanted):
        along, matrix = len(shape) - len(maps) + i, maps[i]
        shape[along] = matrix.shape[0]
        last, name = i == wanted[0], f".axis{along}"
        if i == len(maps) - 1:
            x = b.emit("linear", [x, b.constant(matrix, f"{name}.weights")], shape=shape, part=part if last else name)
        else:
            x = b.emit("matmul", [b.constant(matrix, f"{name}.weights"), x], shape=shape, part=part if last else name)
    return x


def _square(rows: Rows) -> Rows:
    """A function of images, on rows: each is an image of one row. (PyTorch 2.15 antialiases images of one column wrongly.)"""
    return lambda basis: rows(basis[:, None, None, :])[:, 0, 0]


def resampled(b: Builder, x: str, aten: str, result: Sequence[int], corners: bool, scales: Any) -> str:
    """A product with what PyTorch's function makes of each element of an axis."""
    call: Any = getattr(torch.ops.aten, aten).vec
    maps = []
    for i, (n, m) in enumerate(zip(b.shape(x)[2:], result[2:], strict=True)):
        if aten.endswith("1d"):
            rows: Rows = lambda basis, m=m, i=i: call(basis[:, None], [m] if not scales else None, corners, scales)[:, 0]  # type: ignore[misc]
        else:
            given = [1.0, float(scales[i])] if scales else None
            rows = _square(lambda image, m=m, given=given: call(image, None if given else [1, m], corners, given))  # type: ignore[misc]
        maps.append(_matrix(n, rows))
    return mapped(b, x, maps)


def picked(b: Builder, x: str, aten: str, result: Sequence[int], scales: Any) -> str:
    """The nearest elements, at the places that PyTorch's function takes."""
    call: Any = getattr(torch.ops.aten, aten).vec
    for i, (n, m) in enumerate(zip(b.shape(x)[2:], result[2:], strict=True)):
        places = torch.arange(n, dtype=torch.float64)
        if aten.endswith("1d"):
            found = call(places[None, None], None, [float(scales[i])])[0, 0]
        else:
            found = call(places[None, None, :, None], None, [float(scales[i]), 1.0])[0, 0, :, 0]
        assert len(found) == m
        x = taken(b, x, i + 2, [int(p) for p in found], "" if i == len(result) - 3 else f".axis{i + 2}")
    return x


def average_map(n: int, m: int) -> np.ndarray:
    """Means of windows of several sizes."""
    return _matrix(n, lambda basis: torch.nn.functional.adaptive_avg_pool1d(basis[:, None], m)[:, 0])


def uneven_maximum(b: Builder, x: str, result: Sequence[int]) -> str:
    """Maxima of windows of several sizes: a piece each."""
    axes = [d for d in range(2, len(result)) if b.shape(x)[d] != result[d]]
    for along in axes:
        n, m = b.shape(x)[along], result[along]
        shape = [1 if d == along else k for d, k in enumerate(b.shape(x))]
        pieces = []
        for i in range(m):
            piece = cut(b, x, along, i * n // m, -(-(i + 1) * n // m), part=f".axis{along}.{i}")
            pieces.append(b.emit("max", [piece], {"axes": [along], "keepdims": True}, shape=shape, part=f".axis{along}.max{i}"))
        shape[along] = m
        x = b.emit("concat", pieces, {"axis": along}, shape=shape, part="" if along == axes[-1] else f".axis{along}")
    return x


def taken(b: Builder, x: str, along: int, places: Sequence[int], part: str = "") -> str:
    """These elements of an axis, in as few pieces as their runs allow."""
    n, runs = b.shape(x)[along], []
    for place in places:
        if runs and sum(runs[-1]) == place:
            runs[-1][1] += 1
        else:
            runs.append([place, 1])
    if runs == [[0, n]]:
        return x
    if len(runs) > MOST_PIECES:
        raise Unsupported(f"a choice of {len(runs)} separate pieces", f"choose at most {MOST_PIECES}")
    shape = [len(places) if d == along else k for d, k in enumerate(b.shape(x))]
    pieces = [cut(b, x, along, at, at + count, part=f"{part}.{i}") for i, (at, count) in enumerate(runs)]
    return b.emit("concat", pieces, {"axis": along}, shape=shape, part=part) if len(pieces) > 1 else pieces[0]
