"""Operators of the references, in NumPy and float64, written from their definitions.

Everything here is independent of the Rust code. Images are [N, C, H, W] unless a function says otherwise; padding is (top,
bottom, left, right), pairs are (rows, columns). Inputs and weights of any float dtype; results are float64, so that a
comparison measures the error of the tested side alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Array = np.ndarray
Pair = Sequence[int]

# Convolutions are unrolled into matrices in pieces of at most this size.
_PIECE_BYTES = 128 << 20


def f64(x: Array) -> Array:
    return np.asarray(x, dtype=np.float64)


# -- window arithmetic -------------------------------------------------------------------------------------------------


def same_padding(size: Pair, kernel: Pair, strides: Pair) -> tuple[int, int, int, int]:
    """TensorFlow's SAME: ceil(n / s) outputs, the odd element of padding behind."""
    sides = []
    for n, k, s in zip(size, kernel, strides, strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        sides += [total // 2, total - total // 2]
    return tuple(sides)


def floor_size(n: int, k: int, s: int, before: int = 0, after: int = 0, d: int = 1) -> int:
    return (n + before + after - d * (k - 1) - 1) // s + 1


def torch_ceil_size(n: int, k: int, s: int, before: int = 0, after: int = 0, d: int = 1) -> int:
    """Ceiling mode of PyTorch and of trace.json: no window starts in the padding behind the input."""
    out = -(-(n + before + after - d * (k - 1) - 1) // s) + 1
    return out - 1 if (out - 1) * s >= n + before else out


def chainer_size(n: int, k: int, s: int, p: int, cover_all: bool, d: int = 1) -> int:
    """Chainer's rule; with cover_all every element of the padded input is in some window."""
    span = n + 2 * p - d * (k - 1) - 1
    return (span + s - 1) // s + 1 if cover_all else span // s + 1


def windows(x: Array, kernel: Pair, strides: Pair, dilation: Pair, out: Pair) -> Array:
    """A view [N, C, out rows, out columns, kernel rows, kernel columns] of an x that holds every window."""
    n, c, h, w = x.shape
    for size, k, s, d, o in zip((h, w), kernel, strides, dilation, out, strict=True):
        assert (o - 1) * s + (k - 1) * d < size, "a window leaves the padded input"
    sn, sc, sh, sw = x.strides
    shape = (n, c, *out, *kernel)
    steps = (sn, sc, sh * strides[0], sw * strides[1], sh * dilation[0], sw * dilation[1])
    return np.lib.stride_tricks.as_strided(x, shape, steps, writeable=False)


def _pad_to_windows(
    x: Array, kernel: Pair, strides: Pair, padding: Sequence[int], dilation: Pair, out: Pair, value: float
) -> Array:
    """Pads by the stated amounts, and further behind where ceiling mode reaches beyond them."""
    amounts = [(0, 0), (0, 0)]
    for i in range(2):
        before, after = padding[2 * i], padding[2 * i + 1]
        reach = (out[i] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1
        amounts.append((before, max(after, reach - before - x.shape[2 + i])))
    return np.pad(x, amounts, constant_values=value)


# -- convolutions and matrix products ----------------------------------------------------------------------------------


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    strides: Pair = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """Cross-correlation; weight [O, C / groups, rows, columns], bias [O]."""
    n, c, h, w = x.shape
    o, per_group, kh, kw = weight.shape
    assert c == per_group * groups and o % groups == 0, f"{x.shape} does not fit {weight.shape} in {groups} groups"
    out = (
        floor_size(h, kh, strides[0], padding[0], padding[1], dilation[0]),
        floor_size(w, kw, strides[1], padding[2], padding[3], dilation[1]),
    )
    x = _pad_to_windows(f64(x), (kh, kw), strides, padding, dilation, out, 0.0)
    views = windows(x, (kh, kw), strides, dilation, out)
    y = np.empty((n, o, *out))
    inner, o_group = per_group * kh * kw, o // groups
    rows = max(1, _PIECE_BYTES // (8 * inner * out[1]))
    for g in range(groups):
        matrix = f64(weight[g * o_group : (g + 1) * o_group]).reshape(o_group, inner)
        for image in range(n):
            source = views[image, g * per_group : (g + 1) * per_group]
            for top in range(0, out[0], rows):
                piece = source[:, top : top + rows].transpose(0, 3, 4, 1, 2)
                height = piece.shape[3]
                product = matrix @ piece.reshape(inner, height * out[1])
                y[image, g * o_group : (g + 1) * o_group, top : top + height] = product.reshape(o_group, height, out[1])
    return y if bias is None else y + f64(bias).reshape(1, o, 1, 1)


def locally_connected(x: Array, filters: Array) -> Array:
    """Unshared convolution, valid windows, stride 1; filters [O, 1, 1, C, rows, columns, out rows, out columns]."""
    o, _, _, c, kh, kw, oh, ow = filters.shape
    x = f64(x)
    assert x.shape[1:] == (c, oh + kh - 1, ow + kw - 1), f"{x.shape} does not fit filters {filters.shape}"
    y = np.zeros((x.shape[0], o, oh, ow))
    for channel in range(o):
        own = f64(filters[channel, 0, 0])
        for i in range(kh):
            for j in range(kw):
                y[:, channel] += np.einsum("ncpq,cpq->npq", x[:, :, i : i + oh, j : j + ow], own[:, i, j])
    return y


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x W^T + b with weight [out, in], a few rows of W at a time: W may be larger than memory allows twice."""
    x = f64(x)
    y = np.empty((*x.shape[:-1], weight.shape[0]))
    rows = max(1, _PIECE_BYTES // (8 * weight.shape[1]))
    for start in range(0, weight.shape[0], rows):
        y[..., start : start + rows] = x @ f64(weight[start : start + rows]).T
    return y if bias is None else y + f64(bias)


# -- pooling -----------------------------------------------------------------------------------------------------------


def max_pool2d(
    x: Array, kernel: Pair, strides: Pair, out: Pair, padding: Sequence[int] = (0, 0, 0, 0), dilation: Pair = (1, 1)
) -> Array:
    x = _pad_to_windows(f64(x), kernel, strides, padding, dilation, out, -np.inf)
    return windows(x, kernel, strides, dilation, out).max(axis=(4, 5))


def avg_pool2d(
    x: Array,
    kernel: Pair,
    strides: Pair,
    out: Pair,
    padding: Sequence[int] = (0, 0, 0, 0),
    count_include_pad: bool = False,
) -> Array:
    """The divisor is the number of elements inside the input, or inside the input with its stated padding."""
    one = (1, 1)
    counted = np.ones((1, 1, *x.shape[2:]))
    if count_include_pad:
        counted = np.pad(counted, [(0, 0), (0, 0), padding[:2], padding[2:]], constant_values=1.0)
        beyond: Sequence[int] = (0, 0, 0, 0)
    else:
        beyond = padding
    counted = _pad_to_windows(counted, kernel, strides, beyond, one, out, 0.0)
    x = _pad_to_windows(f64(x), kernel, strides, padding, one, out, 0.0)
    total = windows(x, kernel, strides, one, out).sum(axis=(4, 5))
    return total / windows(counted, kernel, strides, one, out).sum(axis=(4, 5))


# -- the rest ----------------------------------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), from the side that cannot overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def hardsigmoid(x: Array) -> Array:
    return np.clip(x + 3, 0, 6) / 6


def hardswish(x: Array) -> Array:
    return x * hardsigmoid(x)


def keep(a: Array, b: Array) -> Array:
    return np.where(b != 0, a, -0.0)


def softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), from the side that cannot overflow."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x: Array, axis: int) -> Array:
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def batch_norm(
    x: Array, gamma: Array | None, beta: Array | None, mean: Array, var: Array, eps: float, axis: int
) -> Array:
    """Inference: the moving statistics are given."""
    shape = [1] * x.ndim
    shape[axis] = -1
    y = (f64(x) - f64(mean).reshape(shape)) / np.sqrt(f64(var).reshape(shape) + eps)
    if gamma is not None:
        y = y * f64(gamma).reshape(shape)
    return y if beta is None else y + f64(beta).reshape(shape)


def lrn(x: Array, depth_radius: int, bias: float, alpha: float, beta: float) -> Array:
    """TensorFlow's: x / (bias + alpha * sum of x^2 over channels c-r … c+r) ^ beta, channels last. Alpha is not divided."""
    square = np.pad(f64(x) ** 2, [(0, 0)] * (x.ndim - 1) + [(depth_radius, depth_radius)])
    c = x.shape[-1]
    total = sum(square[..., i : i + c] for i in range(2 * depth_radius + 1))
    return f64(x) / (bias + alpha * total) ** beta
