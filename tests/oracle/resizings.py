"""Every way in which Resize and Upsample place their samples, at scales and sizes that are no whole multiples; importing this gives CASES.

A case is a coordinate transformation: all modes and roundings of it at all SCALES and SIZES, behind one another in one result.
"""

import numpy as np

CASES = {}
SCALES = [(1.5, 1.5), (0.6, 1.3), (2.0, 3.0), (0.3, 0.45), (1 / 3, 0.5), (2.5, 0.9), (0.2, 4.7), (1.0, 0.75)]
SIZES = [(7, 3), (1, 1), (1, 9), (4, 8), (10, 2), (5, 7), (3, 13)]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
MODES = [dict(mode="nearest", nearest_mode=rounding) for rounding in ROUNDINGS] + [dict(mode="linear"), dict(mode="cubic")]


def case(name, opset):
    def add(function):
        CASES[f"resized_{name}"] = (function, opset)
        return function

    return add


def joined(n, results):
    return n.Concat(*[n.Reshape(result, n.ints(-1)) for result in results], axis=0)


def floats(n, *values):
    return n.value(np.array(values, np.float32))


def placed(name, opset, transform, modes):
    @case(name, opset)
    def _(n):
        x = n.input(1, 2, 5, 7)
        # Operator set 11 wants a region and scales, be they empty.
        none = floats(n) if opset < 13 else ""
        operands = [[none, floats(n, 1, 1, *scales)] for scales in SCALES] + [[none, none, n.ints(1, 2, *sizes)] for sizes in SIZES]
        how = dict(coordinate_transformation_mode=transform) if transform else {}
        return joined(n, [n.Resize(x, *operand, **how, **mode) for mode in modes for operand in operands])


for transform in ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]:
    placed(transform, 13, transform, MODES)
placed("half_pixel_symmetric", 19, "half_pixel_symmetric", MODES)
placed("tf_half_pixel_for_nn", 11, "tf_half_pixel_for_nn", MODES)
placed("usual", 13, None, [dict(), dict(mode="linear")])


@case("lines", 13)
def _(n):
    x = n.input(2, 3, 5)
    how = [dict(coordinate_transformation_mode=transform) for transform in ["half_pixel", "align_corners", "asymmetric"]]
    return joined(n, [n.Resize(x, "", floats(n, 1, 1, scale), **mode, **h) for h in how for mode in MODES[:5] for scale in [0.5, 0.7, 1.3, 2.7]])


@case("opset_10", 10)
def _(n):
    x = n.input(1, 2, 5, 7)
    return joined(n, [n.Resize(x, floats(n, 1, 1, *scales), mode=mode) for mode in ["nearest", "linear"] for scales in SCALES])


def upsampled(opset):
    @case(f"upsample_{opset}", opset)
    def _(n):
        x = n.input(1, 2, 5, 7)
        scales = [(1.5, 1.5), (1.0, 1.3), (2.0, 3.0), (2.5, 1.9), (1.2, 4.7)]

        def one(pair, mode):
            if opset < 9:
                return n.Upsample(x, scales=[1.0, 1.0, *pair], mode=mode)
            return n.Upsample(x, floats(n, 1, 1, *pair), mode=mode)

        return joined(n, [one(pair, mode) for mode in ["nearest", "linear"] for pair in scales])


upsampled(7)
upsampled(9)


def quantised(transform):
    """Between conversions; a step away at most."""

    @case(f"qdq_{transform}_quantised", 13)
    def _(n):
        scale, zero = n.value(np.float32(0.03)), n.value(np.int8(-7))
        x = n.DequantizeLinear(n.QuantizeLinear(n.input(1, 2, 5, 7), scale, zero), scale, zero)
        sizes = [n.ints(1, 2, *sizes) for sizes in SIZES]
        results = [n.Resize(x, "", "", to, coordinate_transformation_mode=transform, **mode) for mode in [*MODES[:4], MODES[4]] for to in sizes]
        return joined(n, [n.QuantizeLinear(result, scale, zero) for result in results])


for transform in ["half_pixel", "align_corners", "asymmetric"]:
    quantised(transform)
