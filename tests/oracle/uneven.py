"""Windows whose rows are unlike their columns in everything, paddings before them, and inputs at the ends of their range."""

import numpy as np

from cases import ACT, SAME, VALID, C, D, case, conv, pool, quant
from tflite_builder import RANGES, Builder


def extent(n, kernel, stride, dilation, padding):
    reach = dilation * (kernel - 1) + 1
    return -(-n // stride) if padding == SAME else (n - reach) // stride + 1


def extents(x, kernel, stride, dilation, padding):
    return [extent(*axis, padding) for axis in zip(x[1:3], kernel, stride, dilation)]


WINDOWS = {
    "tall": dict(kernel=(4, 2), stride=(1, 3), dilation=(1, 1), padding=VALID),
    "wide": dict(kernel=(2, 5), stride=(3, 1), dilation=(1, 1), padding=SAME),
    "same": dict(kernel=(5, 3), stride=(2, 1), dilation=(1, 1), padding=SAME),
    "far": dict(kernel=(2, 3), stride=(1, 1), dilation=(3, 2), padding=VALID),
    "far_same": dict(kernel=(3, 2), stride=(1, 1), dilation=(1, 3), padding=SAME),
}

for dtype in ["int8", "int16", "float32"]:
    for name, w in WINDOWS.items():
        kernel, stride, dilation, padding = w["kernel"], w["stride"], w["dilation"], w["padding"]
        x = (1, 11, 8, 3)
        rows, columns = extents(x, kernel, stride, dilation, padding)
        for kind, op in [("average", "AVERAGE_POOL_2D"), ("max", "MAX_POOL_2D")]:
            if dilation == (1, 1):
                pool(f"uneven_{kind}_pool_{name}_{dtype}", op, x, (1, rows, columns, 3), dtype, kernel, stride, padding=padding)
        options = dict(dtype=dtype, stride=stride, dilation=dilation, padding=padding)
        conv(f"uneven_conv_{name}_{dtype}", C, x, (5, *kernel, 3), (1, rows, columns, 5), **options)
        conv(f"uneven_depthwise_{name}_{dtype}", D, x, (1, *kernel, 3), (1, rows, columns, 3), **options)

# Windows of more products than a sum of 32 bits holds at a time.
for dtype in ["int8", "int16"]:
    conv(f"uneven_depthwise_long_{dtype}", D, (1, 28, 23, 5), (1, 26, 22, 5), (1, 3, 2, 5), dtype=dtype)
    conv(f"uneven_conv_long_{dtype}", C, (1, 28, 23, 3), (5, 26, 22, 3), (1, 3, 2, 5), dtype=dtype)


def extreme(rng, dtype, shape):
    """Runs of the lowest, the highest, both in turn, and both at random."""
    low, high = RANGES[dtype]
    size = int(np.prod(shape))
    rows = [np.full(size, low), np.full(size, high), np.arange(size) % 2 * (high - low) + low, rng.choice([low, high], size)]
    return np.stack(rows).reshape(4, *shape).astype(dtype)


def limits(name, op, dtype, weight, zero_in=0, fan=40, scale_out=0.5):
    """Weights at an end of their range as well, so that sums reach as far as they can."""

    @case(name)
    def make(rng):
        b = Builder()
        depthwise = op == D
        x = (1, 7, 6, 4 if depthwise else fan)
        w = (1, 3, 2, 4) if depthwise else (4, 3, 2, fan)
        scales = [0.01, 0.02, 0.005, 0.015]
        xi = b.tensor(x, dtype, scale=0.05, zero_point=zero_in)
        wi = b.const(np.full(w, weight) if weight else rng.choice([-127, 127], w), "int8", scale=scales, axis=3 if depthwise else 0)
        wide = dtype == "int16"
        bias = [2**31 - 2**26, -(2**31) + 2**26, 1, -1] if not wide else [2**31, -(2**31), 1, -1]
        bi = b.const(bias if not depthwise else [20000, -20000, 1, -1], "int64" if wide else "int32", scale=[0.05 * s for s in scales])
        yi = b.tensor((1, 5, 5, 4), dtype, scale=scale_out, zero_point=0 if wide else -128)
        fields = {"depthMultiplier": 1} if depthwise else {}
        b.op(op, [xi, wi, bi], [yi], "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", version=3, padding=VALID, strideH=1,
             strideW=1, dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=ACT.NONE, **fields)
        return b.finish([xi], [yi]), 4, [extreme(rng, dtype, x)]


for weight in [-127, 127, None]:
    sign = {-127: "low", 127: "high", None: "mixed"}[weight]
    limits(f"extreme_conv_{sign}", C, "int8", weight, zero_in=-128)
    limits(f"extreme_conv_{sign}_zero_high", C, "int8", weight, zero_in=127)
    limits(f"extreme_depthwise_{sign}", D, "int8", weight, zero_in=127)
    limits(f"extreme_conv_i16_{sign}", C, "int16", weight)


def pointwise(name, op, options, dtype, inputs, **fields):
    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        ins = [b.tensor((1, 5, 7, 3), dtype, scale=q["scale"] * (1 + i), zero_point=q["zero_point"]) for i in range(inputs)]
        out = b.tensor((1, 5, 7, 3), dtype, scale=q["scale"] * 1.7, zero_point=q["zero_point"])
        b.op(op, ins, [out], options, **fields)
        return b.finish(ins, [out]), 4, [extreme(rng, dtype, (1, 5, 7, 3)) for _ in ins]


for dtype in ["int8", "int16"]:
    for name, op, options in [("add", "ADD", "AddOptions"), ("sub", "SUB", "SubOptions"), ("mul", "MUL", "MulOptions")]:
        pointwise(f"extreme_{name}_{dtype}", op, options, dtype, 2, version=2, fusedActivationFunction=ACT.NONE)


def padded(name, op, dtype, value, relu=False):
    """A padding of rows and columns, each side another, before a window."""

    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        x = b.tensor((1, 6, 9, 3), dtype, **q)
        fed = x
        if relu:
            fed = b.tensor((1, 6, 9, 3), dtype, **q)
            b.op("RELU", [x], [fed])
        pads = b.const(np.array([[0, 0], [1, 2], [0, 1], [0, 0]]), "int32")
        wide = b.tensor((1, 9, 10, 3), dtype, **q)
        if value is None:
            b.op("PAD", [fed, pads], [wide], "PadOptions")
        else:
            b.op("PADV2", [fed, pads, b.const(np.array([value]), dtype, **q)], [wide], "PadV2Options")
        rows, columns = extents((1, 9, 10, 3), (3, 2), (2, 1), (1, 1), VALID)
        if op == C:
            y = b.tensor((1, rows, columns, 4), dtype, scale=None if dtype == "float32" else 0.2, zero_point=3 if dtype == "int8" else 0)
            if dtype == "float32":
                w, bias = b.const(rng.normal(0, 0.4, (4, 3, 2, 3)).astype(np.float32)), b.const(np.ones(4, np.float32))
            else:
                w = b.const(rng.integers(-127, 128, (4, 3, 2, 3)), "int8", scale=[0.01, 0.02, 0.005, 0.015], axis=0)
                bias = b.const([9, -9, 99, 0], "int32", scale=[0.05 * s for s in [0.01, 0.02, 0.005, 0.015]])
            b.op(op, [wide, w, bias], [y], "Conv2DOptions", version=3, padding=VALID, strideH=2, strideW=1,
                 dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=ACT.NONE)
        else:
            y = b.tensor((1, rows, columns, 3), dtype, **q)
            b.op(op, [wide], [y], "Pool2DOptions", padding=VALID, strideH=2, strideW=1, filterHeight=3, filterWidth=2,
                 fusedActivationFunction=ACT.NONE)
        return b.finish([x], [y]), 2, None


for dtype, zero, other in [("int8", -7, 5), ("float32", 0, 0.75)]:
    for kind, op in [("conv", C), ("average_pool", "AVERAGE_POOL_2D"), ("max_pool", "MAX_POOL_2D")]:
        padded(f"padded_{kind}_{dtype}", op, dtype, None)
        padded(f"padded_{kind}_{dtype}_relu", op, dtype, None, relu=True)
        padded(f"padded_{kind}_{dtype}_zero", op, dtype, zero)
        padded(f"padded_{kind}_{dtype}_other", op, dtype, other)
        padded(f"padded_{kind}_{dtype}_low", op, dtype, -128 if dtype == "int8" else -3)


def alive(name, how):
    """A depthwise convolution whose input is read once more behind it, or is an output."""

    @case(name)
    def make(rng):
        b = Builder()
        q = quant("int8")
        x = b.tensor((1, 6, 9, 4), "int8", **q)
        fed = b.tensor((1, 6, 9, 4), "int8", **q)
        b.op("RELU", [x], [fed])
        y = b.tensor((1, 6, 9, 4), "int8", scale=0.1, zero_point=2)
        scales = [0.01, 0.02, 0.005, 0.015]
        w = b.const(rng.integers(-127, 128, (1, 3, 5, 4)), "int8", scale=scales, axis=3)
        bias = b.const([9, -9, 99, 0], "int32", scale=[0.05 * s for s in scales])
        b.op(D, [fed, w, bias], [y], "DepthwiseConv2DOptions", version=3, padding=SAME, strideH=1, strideW=1, dilationHFactor=1,
             dilationWFactor=1, fusedActivationFunction=ACT.NONE, depthMultiplier=1)
        z = b.tensor((1, 6, 9, 4), "int8", scale=0.12, zero_point=-3)
        b.op("ADD", [y, fed], [z], "AddOptions", version=2, fusedActivationFunction=ACT.NONE)
        outputs = {"read": [z], "output": [z, fed]}[how]
        return b.finish([x], outputs), 2, None


for how in ["read", "output"]:
    alive(f"alive_depthwise_{how}", how)


@case("conv_i16_nearly_a_power")
def conv_i16_nearly_a_power(rng):
    """The multiplier is so little below a power of two that its high half rounds up to what has no 16 bits."""
    b = Builder()
    x, y = (1, 5, 6, 3), (1, 4, 4, 7)
    xi = b.tensor(x, "int16", scale=2.0**-11, zero_point=0)
    wi = b.const(rng.integers(-127, 128, (7, 2, 3, 3)), "int8", scale=np.full(7, (1 - 2.0**-23) * 2.0**-7), axis=0)
    bi = b.const(rng.integers(-4000, 4000, 7), "int64", scale=np.full(7, 2.0**-18))
    yi = b.tensor(y, "int16", scale=2.0**-9, zero_point=0)
    b.op(C, [xi, wi, bi], [yi], "Conv2DOptions", version=3, padding=VALID, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1,
         fusedActivationFunction=ACT.NONE)
    return b.finish([xi], [yi]), 2, None
