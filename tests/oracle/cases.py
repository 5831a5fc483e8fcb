"""The cases: each a function of a random generator that returns (file, runs, inputs or None)."""

import numpy as np

from tflite_builder import RANGES, Builder, schema

CASES = {}
# Files that say in float32 what those of hybrid cases say, by name: TensorFlow Lite Micro has no hybrid operators, and LiteRT quantises their activations.
TRUTH = {}
ACT = schema.ActivationFunctionType
SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
# Scale and zero point of an ordinary activation of each type.
ORDINARY = {"int8": (0.05, -7), "int16": (0.0003, 0), "float32": (None, 0), "uint8": (0.05, 121)}


def case(name):
    def register(make):
        assert name not in CASES, name
        CASES[name] = make
        return make

    return register


def quant(dtype, scale=None, zero_point=None):
    s, z = ORDINARY.get(dtype, (None, 0))
    return {"scale": s if scale is None or s is None else scale, "zero_point": z if zero_point is None else zero_point}


def simple(name, op, inputs, output, options=None, consts=(), runs=2, given=None, version=1, **fields):
    """An operator of activations `inputs` [(shape, dtype, quant)], then `consts` [(array, quant)]."""

    @case(name)
    def make(rng):
        b = Builder()
        ins = [b.tensor(shape, dtype, **q) for shape, dtype, q in inputs]
        tail = [b.const(array, **q) for array, q in consts]
        outs = [b.tensor(shape, dtype, **q) for shape, dtype, q in (output if isinstance(output, list) else [output])]
        b.op(op, ins + tail, outs, options, version=version, **fields)
        return b.finish(ins, outs), runs, given(rng) if given else None


# ------------------------------------------------------------------------------------------------ weights


def conv(name, op, x, w, y, dtype="int8", stride=(1, 1), dilation=(1, 1), padding=VALID, act=ACT.NONE, bias=True, per_channel=True,
         multiplier=1, zero_in=-7, zero_out=11, scale_out=None):
    """x, y: NHWC; w: OHWI, or 1HWC for depthwise."""
    depthwise = op == "DEPTHWISE_CONV_2D"

    @case(name)
    def make(rng):
        b = Builder()
        channels = w[3] if depthwise else w[0]
        axis = 3 if depthwise else 0
        if dtype == "float32":
            xi = b.tensor(x, dtype)
            wi = b.const(rng.normal(0, 0.4, w).astype(np.float32))
            bi = b.const(rng.normal(0, 1, channels).astype(np.float32))
            yi = b.tensor(y, dtype)
        else:
            wide = dtype == "int16"
            scale_in = 0.0004 if wide else 0.05
            scale_w = rng.uniform(0.003, 0.02, channels if per_channel else 1)
            fan = np.prod(w[1:3]) if depthwise else np.prod(w[1:])
            out = scale_out or float(scale_in * 0.01 * 40 * np.sqrt(fan))
            xi = b.tensor(x, dtype, scale=scale_in, zero_point=0 if wide else zero_in)
            wi = b.const(rng.integers(-127, 128, w), "int8", scale=scale_w, axis=axis)
            bias_dtype = "int64" if wide else "int32"
            bi = b.const(rng.integers(-4000, 4000, channels), bias_dtype, scale=scale_in * scale_w)
            yi = b.tensor(y, dtype, scale=out, zero_point=0 if wide else zero_out)
        fields = dict(padding=padding, strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0], dilationWFactor=dilation[1],
                      fusedActivationFunction=act)
        if depthwise:
            fields["depthMultiplier"] = multiplier
        options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        b.op(op, [xi, wi] + ([bi] if bias else []), [yi], options, version=3, **fields)
        return b.finish([xi], [yi]), 2, None


C, D = "CONV_2D", "DEPTHWISE_CONV_2D"
conv("conv_3x3_same", C, (1, 5, 7, 3), (4, 3, 3, 3), (1, 5, 7, 4), padding=SAME)
conv("conv_3x3_valid_stride2", C, (1, 8, 7, 2), (5, 3, 3, 2), (1, 3, 3, 5), stride=(2, 2))
conv("conv_3x3_same_stride2", C, (1, 8, 7, 2), (5, 3, 3, 2), (1, 4, 4, 5), stride=(2, 2), padding=SAME, act=ACT.RELU)
conv("conv_1x1", C, (2, 3, 3, 9), (6, 1, 1, 9), (2, 3, 3, 6), act=ACT.RELU6)
conv("conv_dilated", C, (1, 9, 8, 2), (3, 3, 2, 2), (1, 5, 5, 3), dilation=(2, 3))
conv("conv_dilated_same", C, (1, 6, 6, 2), (3, 3, 3, 2), (1, 6, 6, 3), dilation=(2, 2), padding=SAME)
conv("conv_grouped", C, (1, 4, 4, 6), (4, 3, 3, 3), (1, 2, 2, 4))
conv("conv_no_bias", C, (1, 4, 4, 3), (4, 2, 2, 3), (1, 3, 3, 4), bias=False)
conv("conv_per_tensor", C, (1, 4, 4, 3), (4, 2, 2, 3), (1, 3, 3, 4), per_channel=False, act=ACT.RELU_N1_TO_1)
conv("conv_asymmetric_stride", C, (1, 7, 12, 1), (2, 4, 3, 1), (1, 4, 4, 2), stride=(2, 3), padding=SAME)
conv("conv_saturating", C, (1, 4, 4, 3), (4, 2, 2, 3), (1, 3, 3, 4), scale_out=0.01)
conv("conv_large_scale", C, (1, 4, 4, 3), (4, 2, 2, 3), (1, 3, 3, 4), scale_out=0.0004)
conv("conv_i16", C, (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), dtype="int16", padding=SAME)
conv("conv_i16_relu", C, (1, 5, 5, 3), (4, 3, 3, 3), (1, 3, 3, 4), dtype="int16", act=ACT.RELU)
conv("conv_f32", C, (2, 5, 7, 3), (4, 3, 3, 3), (2, 3, 4, 4), dtype="float32", stride=(2, 2), padding=SAME, act=ACT.RELU6)
conv("depthwise_3x3_same", D, (1, 5, 7, 3), (1, 3, 3, 3), (1, 5, 7, 3), padding=SAME)
conv("depthwise_3x3_stride2", D, (1, 8, 7, 5), (1, 3, 3, 5), (1, 4, 4, 5), stride=(2, 2), padding=SAME, act=ACT.RELU6)
conv("depthwise_multiplier2", D, (1, 5, 5, 3), (1, 3, 3, 6), (1, 3, 3, 6), multiplier=2)
conv("depthwise_one_channel", D, (1, 9, 6, 1), (1, 5, 4, 8), (1, 5, 3, 8), multiplier=8, stride=(2, 2), padding=SAME)
conv("depthwise_dilated", D, (1, 7, 7, 4), (1, 3, 3, 4), (1, 3, 3, 4), dilation=(2, 2))
conv("depthwise_no_bias", D, (2, 4, 4, 4), (1, 2, 2, 4), (2, 3, 3, 4), bias=False)
conv("depthwise_per_tensor", D, (1, 4, 4, 4), (1, 2, 2, 4), (1, 3, 3, 4), per_channel=False)
conv("depthwise_whole_input", D, (1, 6, 5, 8), (1, 6, 5, 8), (1, 1, 1, 8))
conv("depthwise_i16", D, (1, 5, 5, 4), (1, 3, 3, 4), (1, 5, 5, 4), dtype="int16", padding=SAME)
conv("depthwise_f32", D, (1, 5, 5, 4), (1, 3, 3, 8), (1, 5, 5, 8), dtype="float32", padding=SAME, multiplier=2, act=ACT.RELU)


def linear(name, x, w, y, dtype="int8", act=ACT.NONE, bias=True, per_channel=False, zero_w=0, keep=False, weights="int8"):
    @case(name)
    def make(rng):
        b = Builder()
        if dtype == "float32":
            xi, yi = b.tensor(x, dtype), b.tensor(y, dtype)
            wi, bi = b.const(rng.normal(0, 0.4, w).astype(np.float32)), b.const(rng.normal(0, 1, w[0]).astype(np.float32))
        else:
            wide = dtype == "int16"
            scale_in = 0.0004 if wide else 0.05
            scale_w = rng.uniform(0.003, 0.02, w[0] if per_channel else 1)
            xi = b.tensor(x, dtype, scale=scale_in, zero_point=0 if wide else 5)
            wi = b.const(rng.integers(-127, 128, w), weights, scale=scale_w, zero_point=zero_w)
            bi = b.const(rng.integers(-4000, 4000, w[0]), "int64" if wide else "int32", scale=scale_in * scale_w)
            yi = b.tensor(y, dtype, scale=float(scale_in * 0.4 * np.sqrt(w[1])), zero_point=0 if wide else -3)
        b.op("FULLY_CONNECTED", [xi, wi] + ([bi] if bias else [-1]), [yi], "FullyConnectedOptions", version=4,
             fusedActivationFunction=act, keepNumDims=keep)
        return b.finish([xi], [yi]), 2, None


linear("linear", (1, 17), (6, 17), (1, 6))
linear("linear_batch_relu", (3, 8), (5, 8), (3, 5), act=ACT.RELU)
linear("linear_no_bias", (2, 8), (5, 8), (2, 5), bias=False)
linear("linear_per_channel", (2, 8), (5, 8), (2, 5), per_channel=True)
linear("linear_weights_zero_point", (2, 8), (5, 8), (2, 5), zero_w=9)
linear("linear_from_4d", (2, 2, 2, 3), (5, 12), (2, 5))
linear("linear_keep_dims", (2, 3, 8), (5, 8), (2, 3, 5), keep=True)
linear("linear_i16", (2, 8), (5, 8), (2, 5), dtype="int16")
linear("linear_f32", (2, 9), (5, 9), (2, 5), dtype="float32", act=ACT.RELU6)

# ------------------------------------------------------------------------------------------------ pools


def pool(name, op, x, y, dtype, kernel, stride, padding=VALID, act=ACT.NONE, scale=None):
    q = quant(dtype, scale)
    simple(name, op, [(x, dtype, q)], (y, dtype, q), "Pool2DOptions", padding=padding, strideH=stride[0], strideW=stride[1],
           filterHeight=kernel[0], filterWidth=kernel[1], fusedActivationFunction=act)


for kind, op in [("average", "AVERAGE_POOL_2D"), ("max", "MAX_POOL_2D")]:
    for dtype in ["int8", "int16", "float32"]:
        pool(f"{kind}_pool_{dtype}", op, (1, 6, 5, 3), (1, 3, 2, 3), dtype, (2, 2), (2, 2))
    pool(f"{kind}_pool_same", op, (1, 6, 5, 3), (1, 3, 3, 3), "int8", (3, 3), (2, 2), padding=SAME)
    pool(f"{kind}_pool_same_f32", op, (1, 6, 5, 3), (1, 3, 3, 3), "float32", (3, 3), (2, 2), padding=SAME, act=ACT.RELU)
    pool(f"{kind}_pool_relu6", op, (2, 4, 4, 5), (2, 1, 1, 5), "int8", (4, 4), (4, 4), act=ACT.RELU6)
    pool(f"{kind}_pool_whole", op, (1, 7, 3, 4), (1, 1, 1, 4), "int8", (7, 3), (1, 1), act=ACT.RELU)

# ------------------------------------------------------------------------------------------------ elementwise

BINARY = {"add": ("ADD", "AddOptions"), "sub": ("SUB", "SubOptions"), "mul": ("MUL", "MulOptions")}


def binary(name, op, options, a, b_shape, y, dtype, act=None, qa=None, qb=None, qy=None, const=False, **fields):
    @case(name)
    def make(rng):
        b = Builder()
        ai = b.tensor(a, dtype, **(qa or quant(dtype, 0.05)))
        if const:
            low, high = RANGES.get(dtype, (-5, 5))
            data = rng.uniform(-3, 3, b_shape) if dtype == "float32" else rng.integers(low, high + 1, b_shape)
            bi = b.const(data, dtype, **(qb or quant(dtype, 0.02)))
        else:
            bi = b.tensor(b_shape, dtype, **(qb or quant(dtype, 0.02, None if dtype != "int8" else 9)))
        yi = b.tensor(y, dtype, **(qy or quant(dtype, 0.06, None if dtype != "int8" else -20)))
        if act is not None:
            fields["fusedActivationFunction"] = act
        b.op(op, [ai, bi], [yi], options, version=2, **fields)
        return b.finish([ai] if const else [ai, bi], [yi]), 2, None


for kind, (op, options) in BINARY.items():
    i16 = dict(scale=0.0004), dict(scale=0.0003), dict(scale=0.001)
    qs = dict(zip(["qa", "qb", "qy"], [dict(zero_point=0, **q) for q in i16]))
    for dtype in ["int8", "int16", "float32"]:
        extra = qs if dtype == "int16" else {}
        binary(f"{kind}_{dtype}", op, options, (2, 3, 5), (2, 3, 5), (2, 3, 5), dtype, ACT.NONE, **extra)
        binary(f"{kind}_broadcast_{dtype}", op, options, (2, 1, 5, 4), (1, 3, 1, 4), (2, 3, 5, 4), dtype, ACT.RELU, **extra)
    binary(f"{kind}_scalar", op, options, (1, 3, 5), (1,), (1, 3, 5), "int8", ACT.NONE, const=True)
    binary(f"{kind}_rank0", op, options, (1, 3, 5), (), (1, 3, 5), "int8", ACT.NONE, const=True)
    binary(f"{kind}_channel_const", op, options, (1, 3, 5, 4), (4,), (1, 3, 5, 4), "int8", ACT.RELU6, const=True)
    binary(f"{kind}_first_broadcast", op, options, (4,), (2, 3, 4), (2, 3, 4), "int8", ACT.NONE)
    binary(f"{kind}_i32", op, options, (2, 3), (2, 3), (2, 3), "int32", ACT.NONE)
binary("add_i16_power_of_two", "ADD", "AddOptions", (2, 5), (2, 5), (2, 5), "int16", ACT.NONE,
       qa=dict(scale=2.0**-12), qb=dict(scale=2.0**-13), qy=dict(scale=2.0**-11), potScaleInt16=True)
binary("div_f32", "DIV", "DivOptions", (2, 3), (2, 3), (2, 3), "float32", ACT.NONE)
binary("div_i8", "DIV", "DivOptions", (2, 3), (2, 3), (2, 3), "int8", ACT.NONE)
same = quant("int8")
for kind, op in [("minimum", "MINIMUM"), ("maximum", "MAXIMUM")]:
    for dtype in ["int8", "int16", "int32", "float32"]:
        q = quant(dtype)
        binary(f"{kind}_{dtype}", op, "MaximumMinimumOptions", (2, 3, 5), (2, 3, 5), (2, 3, 5), dtype, qa=q, qb=q, qy=q)
    binary(f"{kind}_broadcast", op, "MaximumMinimumOptions", (2, 3, 5), (3, 1), (2, 3, 5), "int8", qa=same, qb=same, qy=same)
for dtype in ["int8", "float32", "int32"]:
    binary(f"squared_difference_{dtype}", "SQUARED_DIFFERENCE", "SquaredDifferenceOptions", (2, 3), (2, 3), (2, 3), dtype)
for dtype in ["int8", "float32"]:
    binary(f"prelu_{dtype}", "PRELU", None, (1, 2, 3, 4), (1, 1, 4), (1, 2, 3, 4), dtype, const=True)


def all_i8(rng):
    return [np.arange(-128, 128, dtype=np.int8).reshape(1, 1, 256)]


def with_a_number(name, op, options, number, first, act=None, q=None, qy=None):
    """All int8 numbers and a constant of one element, which is the first operand or the second."""

    @case(name)
    def make(rng):
        b = Builder()
        x = b.tensor((1, 256), "int8", **(q or quant("int8")))
        constant = b.const(np.array([number], np.int8), "int8", **(q or dict(scale=0.02, zero_point=9)))
        y = b.tensor((1, 256), "int8", **(qy or dict(scale=0.06, zero_point=-20)))
        b.op(op, [constant, x] if first else [x, constant], [y], options, version=2, **({} if act is None else dict(fusedActivationFunction=act)))
        return b.finish([x], [y]), 1, all_i8(rng)


for kind, (op, options) in BINARY.items():
    for first in [False, True]:
        side = "first" if first else "second"
        with_a_number(f"{kind}_number_{side}", op, options, -77, first, ACT.NONE)
        with_a_number(f"{kind}_number_{side}_relu6", op, options, 113, first, ACT.RELU6)
for kind, op in [("minimum", "MINIMUM"), ("maximum", "MAXIMUM")]:
    with_a_number(f"{kind}_number", op, "MaximumMinimumOptions", 31, False, q=same, qy=same)
with_a_number("prelu_number", "PRELU", None, -90, False)
with_a_number("div_number", "DIV", "DivOptions", 57, False, ACT.NONE)


def unary(name, op, dtype, qx=None, qy=None, options=None, given=None, shape=(1, 256), **fields):
    given = given or (all_i8 if dtype == "int8" and shape == (1, 256) else None)
    simple(name, op, [(shape, dtype, qx or quant(dtype))], (shape, dtype, qy or quant(dtype)), options, given=given, **fields)


def positive(rng):
    return [np.abs(rng.normal(1, 2, (2, 1, 256))).astype(np.float32) + np.float32(0.01)]


for i, (scale, zero_point) in enumerate([(0.05, -7), (0.002, 100), (0.3, -128), (1.7, 3)]):
    q = dict(scale=scale, zero_point=zero_point)
    unary(f"logistic_{i}", "LOGISTIC", "int8", q, dict(scale=1 / 256, zero_point=-128))
    unary(f"tanh_{i}", "TANH", "int8", q, dict(scale=1 / 128, zero_point=0))
    unary(f"leaky_relu_{i}", "LEAKY_RELU", "int8", q, dict(scale=scale * 0.7, zero_point=4), "LeakyReluOptions", alpha=0.13)
    unary(f"hard_swish_{i}", "HARD_SWISH", "int8", q, dict(scale=scale * 0.8, zero_point=-90), "HardSwishOptions")
    unary(f"relu_{i}", "RELU", "int8", q, dict(scale=scale * 0.6, zero_point=-128))
    unary(f"relu6_{i}", "RELU6", "int8", q, q)
    unary(f"abs_{i}", "ABS", "int8", q, dict(scale=scale * 0.9, zero_point=-100))
    unary(f"rsqrt_{i}", "RSQRT", "int8", dict(scale=scale, zero_point=-128), dict(scale=0.02, zero_point=-110))
for kind, qy in [("LOGISTIC", dict(scale=1 / 256, zero_point=-128)), ("TANH", dict(scale=1 / 128, zero_point=0))]:
    unary(f"{kind.lower()}_coarse", kind, "int8", dict(scale=20.5, zero_point=-5), qy)
unary("leaky_relu_negative", "LEAKY_RELU", "int8", None, None, "LeakyReluOptions", alpha=-0.4)
unary("leaky_relu_steep", "LEAKY_RELU", "int8", None, None, "LeakyReluOptions", alpha=1.9)
unary("abs_same", "ABS", "int8")
for scale in [2.0**-12, 2.0**-11, 0.0007, 2.0**-15, 2.0**-16, 1e-9, 1e-12, 0.9, 3.1, 5.333]:
    label = str(scale).replace(".", "_").replace("-", "m")
    unary(f"logistic_i16_{label}", "LOGISTIC", "int16", dict(scale=scale), dict(scale=2.0**-15), shape=(1, 400))
    unary(f"tanh_i16_{label}", "TANH", "int16", dict(scale=scale), dict(scale=2.0**-15), shape=(1, 400))
unary("leaky_relu_i16", "LEAKY_RELU", "int16", None, None, "LeakyReluOptions", shape=(1, 40), alpha=0.3)
unary("relu_i16", "RELU", "int16", shape=(1, 40))
unary("relu6_i16", "RELU6", "int16", shape=(1, 40))
I16 = dict(scale=0.00034418), dict(scale=0.00016994)
unary("leaky_relu_i16_rescaled", "LEAKY_RELU", "int16", *I16, "LeakyReluOptions", shape=(1, 4000), alpha=0.3)
unary("relu_i16_rescaled", "RELU", "int16", *I16, shape=(1, 4000))
unary("abs_i16_rescaled", "ABS", "int16", *I16, shape=(1, 4000))
unary("abs_i16", "ABS", "int16", shape=(1, 40))
for kind in ["LOGISTIC", "TANH", "RELU", "RELU6", "ABS", "NEG", "EXP", "HARD_SWISH", "SQUARE", "FLOOR", "CEIL", "ROUND", "SIGN"]:
    unary(f"{kind.lower()}_f32", kind, "float32")
unary("leaky_relu_f32", "LEAKY_RELU", "float32", None, None, "LeakyReluOptions", alpha=0.2)
for kind in ["SQRT", "RSQRT", "LOG"]:
    unary(f"{kind.lower()}_f32", kind, "float32", given=positive)
unary("neg_i8", "NEG", "int8")

# ------------------------------------------------------------------------------------------------ softmax

SOFT = dict(scale=1 / 256, zero_point=-128)
for i, (scale, beta) in enumerate([(0.1, 1.0), (0.02, 1.0), (0.5, 0.5), (2.0, 1.0)]):
    q = dict(scale=scale, zero_point=3)
    simple(f"softmax_{i}", "SOFTMAX", [((3, 11), "int8", q)], ((3, 11), "int8", SOFT), "SoftmaxOptions", beta=beta)
simple("softmax_4d", "SOFTMAX", [((1, 2, 3, 5), "int8", quant("int8"))], ((1, 2, 3, 5), "int8", SOFT), "SoftmaxOptions", beta=1.0)
simple("softmax_to_i16", "SOFTMAX", [((3, 11), "int8", quant("int8"))], ((3, 11), "int16", dict(scale=1 / 65536, zero_point=-32768)),
       "SoftmaxOptions", beta=1.0)
simple("softmax_i16", "SOFTMAX", [((3, 11), "int16", dict(scale=0.0004))], ((3, 11), "int16", dict(scale=1 / 32768)), "SoftmaxOptions",
       beta=1.0)
simple("softmax_f32", "SOFTMAX", [((3, 11), "float32", {})], ((3, 11), "float32", {}), "SoftmaxOptions", beta=0.7)
for i, scale in enumerate([0.1, 0.02, 0.5]):
    simple(f"log_softmax_{i}", "LOG_SOFTMAX", [((3, 11), "int8", dict(scale=scale, zero_point=3))],
           ((3, 11), "int8", dict(scale=1 / 16, zero_point=127)), "LogSoftmaxOptions")
simple("log_softmax_f32", "LOG_SOFTMAX", [((3, 11), "float32", {})], ((3, 11), "float32", {}), "LogSoftmaxOptions")

# ------------------------------------------------------------------------------------------------ reductions


def reduction(name, op, x, axes, y, dtype, keep=False, qy=None):
    simple(name, op, [(x, dtype, quant(dtype))], (y, dtype, qy or quant(dtype)), "ReducerOptions",
           consts=[(np.array(axes, np.int32), {})], keepDims=keep)


out8 = dict(scale=0.03, zero_point=12)
sum8 = dict(scale=0.4, zero_point=-5)
for kind, op, q in [("mean", "MEAN", out8), ("sum", "SUM", sum8), ("reduce_max", "REDUCE_MAX", None), ("reduce_min", "REDUCE_MIN", None)]:
    reduction(f"{kind}_spatial", op, (2, 4, 3, 5), [1, 2], (2, 5), "int8", qy=q)
    reduction(f"{kind}_spatial_keep", op, (2, 4, 3, 5), [1, 2], (2, 1, 1, 5), "int8", keep=True, qy=q)
    reduction(f"{kind}_last", op, (2, 4, 7), [-1], (2, 4), "int8", qy=q)
    reduction(f"{kind}_middle", op, (2, 4, 7), [1], (2, 7), "int8", qy=q)
    reduction(f"{kind}_all", op, (2, 3, 4), [0, 1, 2], (), "int8", qy=q)
    reduction(f"{kind}_f32", op, (2, 4, 3, 5), [1, 2], (2, 5), "float32")
    reduction(f"{kind}_last_f32", op, (2, 4, 7), [2], (2, 4, 1), "float32", keep=True)
reduction("mean_i16", "MEAN", (2, 4, 3, 5), [1, 2], (2, 5), "int16", qy=dict(scale=0.0002))
reduction("mean_same_quant", "MEAN", (1, 7, 7, 3), [1, 2], (1, 3), "int8")
reduction("sum_i16", "SUM", (2, 4, 3, 5), [1], (2, 3, 5), "int16", qy=dict(scale=0.001))
for kind, op, options in [("arg_max", "ARG_MAX", "ArgMaxOptions"), ("arg_min", "ARG_MIN", "ArgMinOptions")]:
    for dtype in ["int8", "float32"]:
        for axis, y in [(-1, (2, 3)), (1, (2, 4))]:
            simple(f"{kind}_{dtype}_{'last' if axis < 0 else 'middle'}", op, [((2, 3, 4), dtype, quant(dtype))], (y, "int32", {}), options,
                   consts=[(np.array(axis, np.int32), {})], outputType=schema.TensorType.INT32)

# ------------------------------------------------------------------------------------------------ data movement

Q = quant("int8")


def moved(name, op, x, y, options=None, consts=(), dtypes=("int8", "float32"), version=1, **fields):
    for dtype in dtypes:
        q = quant(dtype)
        suffix = "" if dtype == "int8" else f"_{dtype}"
        outs = [(shape, dtype, q) for shape in y] if isinstance(y, list) else (y, dtype, q)
        simple(name + suffix, op, [(x, dtype, q)], outs, options, consts=[(np.asarray(c), {}) for c in consts], version=version, **fields)


def i32(*values):
    return np.array(values, np.int32)


moved("reshape", "RESHAPE", (2, 3, 4), (4, 6), "ReshapeOptions", [i32(4, -1)], newShape=[4, -1])
moved("squeeze", "SQUEEZE", (1, 3, 1, 4), (3, 4), "SqueezeOptions", squeezeDims=[0, 2])
moved("expand_dims", "EXPAND_DIMS", (3, 4), (3, 1, 4), None, [i32(1)])
moved("transpose", "TRANSPOSE", (2, 3, 4, 5), (4, 2, 5, 3), None, [i32(2, 0, 3, 1)], dtypes=("int8", "int16", "float32"))
moved("transpose_2d", "TRANSPOSE", (3, 5), (5, 3), None, [i32(1, 0)])
PADS = np.array([[0, 0], [1, 2], [0, 1], [1, 0]], np.int32)
for dtype in ["int8", "int16", "float32"]:
    q = quant(dtype)
    simple(f"pad_{dtype}", "PAD", [((1, 3, 4, 2), dtype, q)], ((1, 6, 5, 3), dtype, q), "PadOptions", consts=[(PADS, {})])
    value = np.array([3], dtype=dtype)
    simple(f"pad_v2_{dtype}", "PADV2", [((1, 3, 4, 2), dtype, q)], ((1, 6, 5, 3), dtype, q), "PadV2Options",
           consts=[(PADS, {}), (value, q)])
moved("slice", "SLICE", (3, 4, 5), (2, 4, 2), "SliceOptions", [i32(1, 0, 3), i32(-1, 4, 2)])
STRIDED = dict(options="StridedSliceOptions", dtypes=("int8", "float32"))
moved("strided_slice", "STRIDED_SLICE", (4, 6, 5), (2, 3, 5), consts=[i32(1, 0, 0), i32(3, 6, 5), i32(1, 2, 1)], **STRIDED)
moved("strided_slice_masks", "STRIDED_SLICE", (4, 6), (4, 2), consts=[i32(1, 4), i32(2, 1), i32(1, 1)], beginMask=1, endMask=3, **STRIDED)
moved("strided_slice_negative", "STRIDED_SLICE", (4, 6), (4, 3), consts=[i32(-1, -1), i32(0, -6), i32(-1, -2)], endMask=1, **STRIDED)
moved("strided_slice_shrink", "STRIDED_SLICE", (4, 6), (6,), consts=[i32(-2, 0), i32(0, 6), i32(1, 1)], shrinkAxisMask=1, **STRIDED)


def split(name, op, shape, axis, parts, dtype, sizes=None):
    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        x = b.tensor(shape, dtype, **q)
        axis_tensor = b.const(np.array(axis, np.int32))
        outs = [b.tensor(p, dtype, **q) for p in parts]
        if sizes is None:
            b.op(op, [axis_tensor, x], outs, "SplitOptions", numSplits=len(parts))
        else:
            b.op(op, [x, b.const(i32(*sizes)), axis_tensor], outs, "SplitVOptions", numSplits=len(parts))
        return b.finish([x], outs), 2, None


for dtype in ["int8", "float32"]:
    split(f"split_{dtype}", "SPLIT", (2, 6, 3), 1, [(2, 2, 3)] * 3, dtype)
    split(f"split_v_{dtype}", "SPLIT_V", (2, 6, 3), -2, [(2, 1, 3), (2, 3, 3), (2, 2, 3)], dtype, sizes=(1, 3, -1))
    q = quant(dtype)
    simple(f"pack_{dtype}", "PACK", [((2, 3), dtype, q)] * 3, ((2, 3, 3), dtype, q), "PackOptions", axis=1, valuesCount=3)
    simple(f"unpack_{dtype}", "UNPACK", [((2, 3, 4), dtype, q)], [((2, 4), dtype, q)] * 3, "UnpackOptions", axis=1, num=3)
    simple(f"concat_{dtype}", "CONCATENATION", [((2, 3, 2), dtype, q), ((2, 1, 2), dtype, q), ((2, 2, 2), dtype, q)],
           ((2, 6, 2), dtype, q), "ConcatenationOptions", axis=1)
    simple(f"concat_last_{dtype}", "CONCATENATION", [((2, 3, 2), dtype, q), ((2, 3, 5), dtype, q)], ((2, 3, 7), dtype, q),
           "ConcatenationOptions", axis=-1)
simple("concat_int16", "CONCATENATION", [((2, 3), "int16", quant("int16"))] * 2, ((4, 3), "int16", quant("int16")), "ConcatenationOptions",
       axis=0)
simple("shape", "SHAPE", [((2, 3, 4), "int8", Q)], ((3,), "int32", {}), "ShapeOptions", outType=schema.TensorType.INT32)
for dtype in ["int8", "float32"]:
    q = quant(dtype)
    for kind, op, options in [("nearest", "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
                              ("bilinear", "RESIZE_BILINEAR", "ResizeBilinearOptions")]:
        for label, fields in [("", {}), ("_corners", dict(alignCorners=True)), ("_centers", dict(halfPixelCenters=True))]:
            simple(f"resize_{kind}{label}_{dtype}", op, [((1, 3, 4, 2), dtype, q)], ((1, 7, 6, 2), dtype, q), options,
                   consts=[(i32(7, 6), {})], **fields)
        simple(f"resize_{kind}_down_{dtype}", op, [((2, 7, 6, 2), dtype, q)], ((2, 3, 4, 2), dtype, q), options, consts=[(i32(3, 4), {})])

# ------------------------------------------------------------------------------------------------ types


def quantize(name, qx, qy, x_dtype, y_dtype, given=None):
    simple(name, "QUANTIZE", [((1, 256), x_dtype, qx)], ((1, 256), y_dtype, qy), "QuantizeOptions", given=given)


quantize("quantize_i8", {}, dict(scale=0.03, zero_point=-7), "float32", "int8")
quantize("quantize_i16", {}, dict(scale=0.0003), "float32", "int16")
quantize("quantize_u8", {}, dict(scale=0.03, zero_point=120), "float32", "uint8")
quantize("requantize_i8", dict(scale=0.05, zero_point=-7), dict(scale=0.03, zero_point=11), "int8", "int8", all_i8)
quantize("requantize_i8_zero_point", dict(scale=0.05, zero_point=-7), dict(scale=0.05, zero_point=11), "int8", "int8", all_i8)
quantize("requantize_i8_i16", dict(scale=0.05, zero_point=-7), dict(scale=0.0003), "int8", "int16", all_i8)
quantize("requantize_i8_u8", dict(scale=0.05, zero_point=-7), dict(scale=0.05, zero_point=121), "int8", "uint8", all_i8)
quantize("requantize_i8_u8_scale", dict(scale=0.05, zero_point=-7), dict(scale=0.03, zero_point=121), "int8", "uint8", all_i8)
quantize("requantize_u8_i8", dict(scale=0.05, zero_point=121), dict(scale=0.05, zero_point=-7), "uint8", "int8")
quantize("requantize_u8_i8_scale", dict(scale=0.05, zero_point=121), dict(scale=0.08, zero_point=-17), "uint8", "int8")
quantize("requantize_i16_i8", dict(scale=0.0004), dict(scale=0.05, zero_point=11), "int16", "int8")
quantize("requantize_i16_i16", dict(scale=0.0004), dict(scale=0.0007), "int16", "int16")
quantize("requantize_i16_i32", dict(scale=0.0004), dict(scale=0.00001), "int16", "int32")
quantize("requantize_i32_i8", dict(scale=0.004), dict(scale=0.05, zero_point=11), "int32", "int8")
quantize("requantize_i32_i16", dict(scale=0.004), dict(scale=0.0005), "int32", "int16")
quantize("requantize_i8_i32", dict(scale=0.05, zero_point=-7), dict(scale=0.001), "int8", "int32", all_i8)
for dtype in ["int8", "uint8", "int16"]:
    simple(f"dequantize_{dtype}", "DEQUANTIZE", [((1, 256), dtype, quant(dtype))], ((1, 256), "float32", {}), "DequantizeOptions")
TYPE = {"float32": schema.TensorType.FLOAT32, "int8": schema.TensorType.INT8, "int32": schema.TensorType.INT32, "uint8": schema.TensorType.UINT8,
        "int16": schema.TensorType.INT16, "bool": schema.TensorType.BOOL}


def small(dtype):
    return lambda rng: [(rng.uniform(-100, 100, (2, 2, 9)) if dtype in ("float32",) else rng.integers(0, 100, (2, 2, 9))).astype(dtype)]


for a, z in [("int8", "float32"), ("float32", "int8"), ("float32", "int32"), ("int32", "float32"), ("int8", "int32"), ("int32", "int8"),
             ("int16", "float32"), ("float32", "int16"), ("int32", "int16"), ("uint8", "float32"), ("bool", "float32"), ("int8", "int16")]:
    simple(f"cast_{a}_{z}", "CAST", [((2, 9), a, {})], ((2, 9), z, {}), "CastOptions", inDataType=TYPE[a], outDataType=TYPE[z],
           given=small(a) if a != "bool" else None)
