"""Converters of normalisations by the data's own statistics, and of activations that are several operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ._builder import Builder, Unsupported
from ._operators import Arguments, axis, chosen_where, converts, cut, number, reshaped
from ._pointwise import POINTWISE

# log(1 + exp(x)): the row whose slope and threshold are arguments.
SMOOTH_CALL, SMOOTH = next((aten, op) for aten, arguments, op in POINTWISE if "threshold" in arguments)


def _standard(b: Builder, x: str, axes: Sequence[int], eps: float, last: str, centre: bool = True) -> str:
    """``(x - mean) / sqrt(variance + eps)`` over ``axes``; ``last`` is the part of the last operator's name."""
    shape = b.shape(x)
    kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
    over = {"axes": list(axes), "keepdims": True}
    centred = x
    if centre:
        mean = b.emit("mean", [x], over, shape=kept, part=".mean")
        centred = b.emit("sub", [x, mean], shape=shape, part=".centred")
    square = b.emit("square", [centred], shape=shape, part=".square")
    spread = b.emit("mean", [square], over, shape=kept, part=".variance")
    spread = b.emit("add", [spread, b.scalar(eps)], shape=kept, part=".eps")
    factor = b.emit("rsqrt", [spread], shape=kept, part=".factor")
    return b.emit("mul", [centred, factor], shape=shape, part=last)


def _scaled(b: Builder, x: str, weight: str | None, bias: str | None) -> str:
    y = x if weight is None else b.emit("mul", [x, weight], shape=b.shape(x), part="" if bias is None else ".scaled")
    return y if bias is None else b.emit("add", [y, bias], shape=b.shape(x))


def _by_channel(b: Builder, parameter: str | None, rank: int) -> str | None:
    """A value for each channel, aligned for broadcasting with ``[N, C, …]``."""
    if parameter is None:
        return None
    shape = (b.shape(parameter)[0],) + (1,) * (rank - 2)
    if b.is_stored(parameter):
        b.reshape_stored(parameter, shape)
        return parameter
    return reshaped(b, parameter, shape, None, ".wide")


@converts("layer_norm")
def layer_norm(b: Builder, a: Arguments) -> str:
    x, rank = a["input"], len(b.shape(a["input"]))
    axes = range(rank - len(a["normalized_shape"]), rank)
    plain = a["weight"] is None and a["bias"] is None
    y = _standard(b, x, axes, float(a["eps"]), "" if plain else ".standard")
    return _scaled(b, y, a["weight"], a["bias"])


@converts("rms_norm")
def rms_norm(b: Builder, a: Arguments) -> str:
    x, rank = a["input"], len(b.shape(a["input"]))
    axes = range(rank - len(a["normalized_shape"]), rank)
    eps = float(np.finfo(np.float32).eps) if a["eps"] is None else float(a["eps"])
    y = _standard(b, x, axes, eps, "" if a["weight"] is None else ".standard", centre=False)
    return _scaled(b, y, a["weight"], None)


@converts("group_norm")
def group_norm(b: Builder, a: Arguments) -> str:
    shape, groups = b.shape(a["input"]), a["num_groups"]
    rows = reshaped(b, a["input"], (shape[0], groups, math.prod(shape[1:]) // groups), part=".groups")
    y = _standard(b, rows, [2], float(a["eps"]), ".standard")
    plain = a["weight"] is None and a["bias"] is None
    y = reshaped(b, y, shape, part="" if plain else ".channels")
    return _scaled(b, y, _by_channel(b, a["weight"], len(shape)), _by_channel(b, a["bias"], len(shape)))


@converts("instance_norm")
def instance_norm(b: Builder, a: Arguments) -> str:
    shape = b.shape(a["input"])
    weight, bias = (_by_channel(b, a[name], len(shape)) for name in ("weight", "bias"))
    if a["use_input_stats"]:
        plain = weight is None and bias is None
        y = _standard(b, a["input"], range(2, len(shape)), float(a["eps"]), "" if plain else ".standard")
        return _scaled(b, y, weight, bias)
    inputs = [a["input"], a["weight"], a["bias"], a["running_mean"], a["running_var"]]
    if weight is not None:
        raise Unsupported("instance_norm with stored statistics and weights", "use BatchNorm: it computes the same")
    return b.emit("batch_norm", inputs, {"eps": float(a["eps"]), "axis": 1})


# -- activations -------------------------------------------------------------------------------------------------------


def _exponential(b: Builder, x: str, alpha: float, width: float, scale: float) -> str:
    """``scale * (max(x, 0) + alpha * (exp(min(x, 0) * width) - 1))``"""
    shape = b.shape(x)
    low = b.emit("clamp", [x], {"min": None, "max": 0.0}, shape=shape, part=".low")
    if width != 1:
        low = b.emit("mul", [low, b.scalar(width)], shape=shape, part=".wide")
    low = b.emit("exp", [low], shape=shape, part=".exp")
    low = b.emit("sub", [low, b.scalar(1)], shape=shape, part=".less")
    if alpha != 1:
        low = b.emit("mul", [low, b.scalar(alpha)], shape=shape, part=".alpha")
    high = b.emit("relu", [x], shape=shape, part=".high")
    y = b.emit("add", [high, low], shape=shape, part="" if scale == 1 else ".sum")
    return y if scale == 1 else b.emit("mul", [y, b.scalar(scale)], shape=shape)


@converts("elu")
def elu(b: Builder, a: Arguments) -> str:
    return _exponential(b, a["self"], float(a["alpha"]), float(a["input_scale"]), float(a["scale"]))


@converts("selu")
def selu(b: Builder, a: Arguments) -> str:
    return _exponential(b, a["self"], 1.6732632423543772, 1.0, 1.0507009873554805)


@converts("celu")
def celu(b: Builder, a: Arguments) -> str:
    alpha = float(a["alpha"])
    return _exponential(b, a["self"], alpha, 1 / alpha, 1.0)


@converts(SMOOTH_CALL)
def smooth_ramp(b: Builder, a: Arguments) -> str:
    """``log(1 + exp(beta * x)) / beta``; above the threshold ``x`` itself, which from 17 on is the same number of f32."""
    x, beta, threshold = a["self"], float(a["beta"]), float(a["threshold"])
    wide = x if beta == 1 else b.emit("mul", [x, b.scalar(beta)], part=".wide")
    plain = threshold >= 17
    smooth = b.emit(SMOOTH, [wide], part="" if plain and beta == 1 else f".{SMOOTH}")
    y = smooth if beta == 1 else b.emit("div", [smooth, b.scalar(beta)], part="" if plain else ".narrow")
    return y if plain else chosen_where(b, b.emit("less", [b.scalar(threshold), wide], part=".above", dtype="f32"), x, y)


@converts("round")
def rounded(b: Builder, a: Arguments) -> str:
    factor = 10.0 ** a.get("decimals", 0)
    if factor == 1:
        return b.emit("round", [a["self"]])
    wide = b.emit("mul", [a["self"], b.scalar(factor)], part=".wide")
    return b.emit("div", [b.emit("round", [wide], part=".round"), b.scalar(factor)])


@converts("slice_scatter", "select_scatter")
def scattered(b: Builder, a: Arguments) -> str:
    """A slice that is written: what is before it, the new elements, and what is behind."""
    x, source, shape = number(b, a["self"]), number(b, a["src"]), b.shape(a["self"])
    along = axis(a["dim"], len(shape))
    if "index" in a:
        start = axis(a["index"], shape[along])
        stop, step = start + 1, 1
    else:
        start, stop, step = slice(a["start"], a["end"], a["step"]).indices(shape[along])
    if step != 1:
        raise Unsupported(f"writing every {step}th element", "write with torch.where and a constant mask")
    if (start, stop) == (0, shape[along]) and "index" not in a:
        return source
    stored = b.trace.values[source] if b.is_stored(source) else None
    if stored is not None and (stored == stored.flat[0]).all():
        # One value, whatever the batch.
        mask = np.zeros([shape[along] if d == along else 1 for d in range(len(shape))], np.float32)
        np.moveaxis(mask, along, 0)[start:stop] = 1
        return chosen_where(b, b.constant(mask, ".mask"), b.scalar(float(stored.flat[0])), x)
    if "index" in a:
        source = reshaped(b, source, (*shape[:along], 1, *shape[along + 1 :]), None if not along else 0, ".slice")
    parts = [source]
    if start > 0:
        parts.insert(0, cut(b, x, along, 0, start, part=".before"))
    if stop < shape[along]:
        parts.append(cut(b, x, along, stop, shape[along], part=".behind"))
    return b.emit("concat", parts, {"axis": along}, shape=shape)


@converts("full_like", "zeros_like", "ones_like", "fill", "copy")
def full_like(b: Builder, a: Arguments) -> str:
    """A constant of a tensor's shape; a copy into one is what is copied."""
    if "src" in a:
        source = number(b, a["src"])
        return source if b.shape(source) == b.result_shape() else expand(b, {"self": source})
    value = {"zeros_like": 0.0, "ones_like": 1.0}.get(b.call)
    value = a.get("fill_value", a.get("value")) if value is None else value
    if isinstance(value, str):
        return expand(b, {"self": number(b, value)})
    return b.constant(np.full(b.result_shape(), float(value), np.float32), "")


@converts("mish")
def mish(b: Builder, a: Arguments) -> str:
    x = a["self"]
    soft = b.emit(SMOOTH, [x], shape=b.shape(x), part=f".{SMOOTH}")
    return b.emit("mul", [x, b.emit("tanh", [soft], shape=b.shape(x), part=".tanh")])


@converts("log_sigmoid")
def log_sigmoid(b: Builder, a: Arguments) -> str:
    low = b.emit("neg", [a["self"]], part=".neg")
    return b.emit("neg", [b.emit(SMOOTH, [low], part=f".{SMOOTH}")])


@converts("glu")
def glu(b: Builder, a: Arguments) -> str:
    along = axis(a["dim"], len(b.shape(a["self"])))
    half = b.result_shape()[along]
    value, gate = (cut(b, a["self"], along, i * half, (i + 1) * half, part=f".{i}") for i in range(2))
    return b.emit("mul", [value, b.emit("sigmoid", [gate], shape=b.shape(gate), part=".sigmoid")])


# -- rearranging -------------------------------------------------------------------------------------------------------


def _regrouped(b: Builder, x: str, inner: Sequence[int], perm: Sequence[int]) -> str:
    """``[N, …]`` seen as ``[N, *inner]``, with axes exchanged, in the result's shape."""
    wide = reshaped(b, x, (b.shape(x)[0], *inner), part=".split")
    moved = b.emit("transpose", [wide], {"perm": list(perm)}, shape=[b.shape(wide)[d] for d in perm], part=".moved")
    return reshaped(b, moved, b.result_shape())


def _four(b: Builder, x: str, op: str) -> tuple[int, int, int]:
    if len(b.shape(x)) != 4:
        raise Unsupported(f"{op} of a tensor of rank {len(b.shape(x))}", "keep the batch axis: [N, C, H, W]")
    c, h, w = b.shape(x)[1:]
    return c, h, w


@converts("pixel_shuffle")
def pixel_shuffle(b: Builder, a: Arguments) -> str:
    r = a["upscale_factor"]
    c, h, w = _four(b, a["self"], "pixel_shuffle")
    return _regrouped(b, a["self"], (c // r // r, r, r, h, w), (0, 1, 4, 2, 5, 3))


@converts("pixel_unshuffle")
def pixel_unshuffle(b: Builder, a: Arguments) -> str:
    r = a["downscale_factor"]
    c, h, w = _four(b, a["self"], "pixel_unshuffle")
    return _regrouped(b, a["self"], (c, h // r, r, w // r, r), (0, 1, 3, 5, 2, 4))


@converts("channel_shuffle")
def channel_shuffle(b: Builder, a: Arguments) -> str:
    shape, groups = b.shape(a["self"]), a["groups"]
    rest = math.prod(shape[2:])
    return _regrouped(b, a["self"], (groups, shape[1] // groups, rest), (0, 2, 1, 3))


@converts("stack")
def stack(b: Builder, a: Arguments) -> str:
    shape = b.result_shape()
    along = axis(a["dim"], len(shape))
    one = (*shape[:along], 1, *shape[along + 1 :])
    batch = b.batch_axis(shape)
    parts = [reshaped(b, x, one, batch, f".{i}") for i, x in enumerate(a["tensors"])]
    return b.emit("concat", parts, {"axis": along}) if len(parts) > 1 else parts[0]


@converts("repeat", "tile")
def repeat(b: Builder, a: Arguments) -> str:
    x, times = a["self"], list(a.get("repeats") or a.get("dims") or [])
    more = len(times) - len(b.shape(x))
    if more < 0:
        raise Unsupported("repeat with fewer axes than the tensor", "state one number for each axis")
    if more:
        x = reshaped(b, x, (1,) * more + b.shape(x), None if b.batch_axis(b.shape(x)) is None else more, ".wide")
    for along, count in enumerate(times):
        if count > 1:
            shape = [n * (count if d == along else 1) for d, n in enumerate(b.shape(x))]
            x = b.emit("concat", [x] * count, {"axis": along}, shape=shape, part=f".{along}")
    return str(x)


@converts("expand", "expand_as", "broadcast_to")
def expand(b: Builder, a: Arguments) -> str:
    """Repeated by a product with ones."""
    x, shape = a["self"], b.result_shape()
    if shape == b.shape(x):
        return str(x)
    old = (1,) * (len(shape) - len(b.shape(x))) + b.shape(x)
    ones = np.ones([n if n != m else 1 for n, m in zip(shape, old, strict=True)], dtype=np.float32)
    return b.emit("mul", [x, b.constant(ones, ".ones")])


@converts("roll")
def roll(b: Builder, a: Arguments) -> str:
    x, shape = a["self"], b.shape(a["self"])
    if not a["dims"]:
        line = reshaped(b, x, (math.prod(shape),), None, ".line")
        at = -a["shifts"][0] % math.prod(shape)
        parts = [cut(b, line, 0, at, math.prod(shape), part=".end"), *([cut(b, line, 0, 0, at, part=".start")] if at else [])]
        return reshaped(b, b.emit("concat", parts, {"axis": 0}, shape=b.shape(line), part=".rolled"), shape, None)
    for shift, dim in zip(a["shifts"], a["dims"], strict=True):
        along = axis(dim, len(shape))
        at = -shift % shape[along]
        if at:
            parts = [cut(b, x, along, at, shape[along], part=f".{along}.end")]
            parts.append(cut(b, x, along, 0, at, part=f".{along}.start"))
            x = b.emit("concat", parts, {"axis": along}, shape=shape, part=f".{along}")
    return str(x)


def mirrored(b: Builder, x: str, padding: Sequence[tuple[int, int]], mode: str) -> str:
    """Padding by elements of the tensor itself: each piece is a slice."""
    for along, (before, after) in enumerate(padding):
        n = b.shape(x)[along]
        if not before and not after:
            continue
        if mode == "circular":
            runs = [(n - before, n), (0, n), (0, after)]
        else:
            first = range(before, 0, -1) if mode == "reflect" else [0] * before
            last = range(n - 2, n - 2 - after, -1) if mode == "reflect" else [n - 1] * after
            runs = [*((i, i + 1) for i in first), (0, n), *((i, i + 1) for i in last)]
        runs = [run for run in runs if run[0] < run[1]]
        parts = [x if run == (0, n) else cut(b, x, along, *run, part=f".{along}.piece") for run in runs]
        shape = [m + (before + after if d == along else 0) for d, m in enumerate(b.shape(x))]
        x = b.emit("concat", parts, {"axis": along}, shape=shape, part=f".{along}")
    return x


@converts("pad", "constant_pad_nd")
def pad(b: Builder, a: Arguments) -> str:
    mode, amounts = a.get("mode", "constant"), list(a["pad"])
    # PyTorch lists the last axis first.
    padding = [[0, 0] for _ in b.shape(a["self"])]
    for i in range(len(amounts) // 2):
        padding[-1 - i] = [amounts[2 * i], amounts[2 * i + 1]]
    x = a["self"]
    for along, (before, after) in enumerate(padding):
        if before < 0 or after < 0:
            n = b.shape(x)[along]
            x = cut(b, x, along, max(-before, 0), n - max(-after, 0), part=f".{along}.cropped")
            padding[along] = [max(before, 0), max(after, 0)]
    if not any(before or after for before, after in padding):
        return str(x)
    if mode != "constant":
        return mirrored(b, x, [(before, after) for before, after in padding], str(mode))
    return b.emit("pad", [x], {"padding": padding, "value": float(a.get("value") or 0)})
