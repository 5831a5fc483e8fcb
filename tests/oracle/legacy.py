"""More cases: legacy uint8 models, activations and weights with one scale each; importing this registers them. LiteRT's reference kernels compute them, and
inputs and outputs are kept as int8 numbers, 128 less, as the importer reads them."""

import numpy as np

from cases import ACT, C, CASES, D, SAME, VALID, case, i32
from tflite_builder import Builder
from uneven import extents

BEFORE = set(CASES)
SOFT = dict(scale=1 / 256, zero_point=0)


def q(scale=0.05, zero_point=121):
    return dict(scale=scale, zero_point=zero_point)


def ends(rng, *shapes):
    """Runs of random numbers, of the lowest, the highest, and both in turn."""
    arrays = []
    for shape in shapes:
        size = int(np.prod(shape))
        rows = [rng.integers(0, 256, size), np.zeros(size), np.full(size, 255), np.arange(size) % 2 * 255]
        arrays.append(np.stack(rows).reshape(4, *shape).astype(np.uint8))
    return arrays


def legacy(name, op, inputs, outputs, options=None, consts=(), version=1, before=False, given=None, **fields):
    """Activations `inputs` and `outputs` [(shape, quant)], constants [(array, quant)] behind the inputs or before them."""

    @case(f"legacy_{name}")
    def make(rng):
        b = Builder()
        ins = [b.tensor(shape, "uint8", **quant) for shape, quant in inputs]
        tail = [b.const(array, **quant) for array, quant in consts]
        outs = [b.tensor(shape, *(quant if isinstance(quant, tuple) else ("uint8",)), **({} if isinstance(quant, tuple) else quant))
                for shape, quant in outputs]
        b.op(op, tail + ins if before else ins + tail, outs, options, version=version, **fields)
        return b.finish(ins, outs), 4, given(rng) if given else ends(rng, *(shape for shape, _ in inputs))


# ------------------------------------------------------------------------------------------------ weights


def layer(b, rng, x, kernel, out, op=C, stride=(1, 1), dilation=(1, 1), padding=VALID, act=ACT.NONE, zero_w=128, zero_in=121,
          zero_out=97, groups=1, low=0, high=255, scale_w=0.007, narrow=1.0):
    """A convolution from the tensor `x` = (index, shape, scale); its result likewise. Weights reach both ends of their range."""
    index, shape, scale_in = x
    depthwise = op == D
    w = (1, *kernel, out) if depthwise else (out, *kernel, shape[3] // groups)
    values = rng.integers(low, high + 1, w).astype(np.uint8)
    values.flat[:2] = low, high
    wi = b.const(values, scale=scale_w, zero_point=zero_w)
    fan = kernel[0] * kernel[1] * (1 if depthwise else shape[3] // groups)
    scale_out = float(scale_in * scale_w * 90 * np.sqrt(fan) * narrow)
    bias = b.const(rng.integers(-4000, 4000, out), "int32", scale=np.float32(scale_in) * np.float32(scale_w))
    y = (shape[0], *extents(shape, kernel, stride, dilation, padding), out)
    yi = b.tensor(y, "uint8", scale=scale_out, zero_point=zero_out)
    fields = dict(padding=padding, strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0], dilationWFactor=dilation[1],
                  fusedActivationFunction=act)
    if depthwise:
        fields["depthMultiplier"] = out // shape[3]
    b.op(op, [index, wi, bias], [yi], "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", version=2, **fields)
    return yi, y, scale_out


def conv(name, x, kernel, out, **fields):
    @case(f"legacy_{name}")
    def make(rng):
        b = Builder()
        xi = b.tensor(x, "uint8", scale=0.05, zero_point=fields.get("zero_in", 121))
        yi, *_ = layer(b, rng, (xi, x, 0.05), kernel, out, **fields)
        return b.finish([xi], [yi]), 4, ends(rng, x)


X = (1, 9, 7, 3)
conv("conv", X, (4, 2), 5, stride=(1, 2), padding=SAME)
conv("conv_relu6", X, (2, 3), 4, act=ACT.RELU6, zero_out=3)
conv("conv_near_zero_point", X, (3, 2), 4, zero_in=1, zero_w=129, low=1)
for zero in [0, 7, 151, 255]:
    conv(f"conv_weights_{zero}", X, (3, 2), 5, zero_w=zero, stride=(2, 1), padding=SAME, zero_in=255 - zero)
    conv(f"depthwise_weights_{zero}", X, (3, 2), 6, op=D, zero_w=zero, stride=(1, 2), padding=SAME, zero_in=zero, zero_out=255 - zero)
conv("conv_1x1_weights", (2, 3, 5, 9), (1, 1), 7, zero_w=99, act=ACT.RELU)
conv("conv_dilated_weights", X, (3, 2), 4, zero_w=140, dilation=(2, 3), padding=SAME)
conv("conv_grouped_weights", (1, 6, 5, 6), (3, 2), 4, zero_w=101, groups=2)
conv("conv_saturating", X, (3, 2), 5, narrow=0.02, zero_w=77)
conv("conv_near_weights", X, (3, 2), 5, zero_w=100, low=20, high=200)
conv("depthwise", X, (2, 4), 3, op=D, padding=SAME, act=ACT.RELU6, zero_out=2)
conv("depthwise_multiplier_weights", (1, 5, 8, 2), (2, 3), 6, op=D, zero_w=113, stride=(2, 2))
conv("depthwise_columns_weights", X, (2, 3), 3, op=D, zero_w=200, dilation=(3, 1), padding=SAME)
conv("depthwise_one_row_weights", X, (1, 3), 3, op=D, zero_w=60, dilation=(2, 1), stride=(3, 1))
conv("depthwise_one_channel_weights", (1, 6, 5, 1), (3, 2), 4, op=D, zero_w=90)
conv("depthwise_batch_weights", (2, 6, 5, 3), (3, 2), 3, op=D, zero_w=160, stride=(2, 1), padding=SAME)


def linear(name, x, out, y, zero_w, act=ACT.NONE, keep=False):
    @case(f"legacy_{name}")
    def make(rng):
        b = Builder()
        terms = x[-1] if keep else int(np.prod(x)) // y[0]
        xi = b.tensor(x, "uint8", **q())
        values = rng.integers(0, 256, (out, terms)).astype(np.uint8)
        values.flat[:2] = 0, 255
        wi = b.const(values, scale=0.007, zero_point=zero_w)
        bi = b.const(rng.integers(-4000, 4000, out), "int32", scale=np.float32(0.05) * np.float32(0.007))
        yi = b.tensor(y, "uint8", scale=float(0.05 * 0.007 * 90 * np.sqrt(terms)), zero_point=97)
        b.op("FULLY_CONNECTED", [xi, wi, bi], [yi], "FullyConnectedOptions", fusedActivationFunction=act, keepNumDims=keep)
        return b.finish([xi], [yi]), 4, ends(rng, x)


linear("linear", (3, 10), 4, (3, 4), 128)
linear("linear_weights_0", (2, 9), 5, (2, 5), 0)
linear("linear_weights_7", (2, 9), 5, (2, 5), 7, act=ACT.RELU)
linear("linear_weights_255", (1, 3, 2, 3), 5, (1, 5), 255)
linear("linear_keep_weights", (2, 3, 7), 4, (2, 3, 4), 143, keep=True)



def transposed(name, x, kernel, out, y, stride, zero_w, padding=VALID, zero_in=121, bias=True):
    @case(f"legacy_transpose_{name}")
    def make(rng):
        b = Builder()
        xi, yi = b.tensor(x, "uint8", scale=0.05, zero_point=zero_in), b.tensor(y, "uint8", scale=0.21, zero_point=97)
        values = rng.integers(0, 256, (out, *kernel, x[3])).astype(np.uint8)
        values.flat[:2] = 0, 255
        wi = b.const(values, scale=0.007, zero_point=zero_w)
        tail = [b.const(rng.integers(-4000, 4000, out), "int32", scale=np.float32(0.05) * np.float32(0.007))] if bias else []
        b.op("TRANSPOSE_CONV", [b.const(i32(*y)), wi, xi, *tail], [yi], "TransposeConvOptions", version=3 if bias else 1, padding=padding,
             strideH=stride[0], strideW=stride[1])
        return b.finish([xi], [yi]), 4, ends(rng, x)


transposed("conv", (1, 3, 4, 5), (3, 2), 4, (1, 7, 8, 4), (2, 2), 128)
transposed("conv_weights", (1, 3, 4, 5), (3, 3), 4, (1, 7, 9, 4), (2, 2), 101)
transposed("conv_weights_255", (2, 3, 2, 3), (2, 3), 5, (2, 6, 6, 5), (2, 3), 255, padding=SAME, zero_in=0, bias=False)
transposed("conv_one_stride", (1, 4, 5, 3), (3, 2), 2, (1, 4, 5, 2), (1, 1), 140, padding=SAME)

# ------------------------------------------------------------------------------------------------ windows


def pool(name, op, x, kernel, stride, padding=VALID, act=ACT.NONE, zero=121):
    y = (x[0], *extents(x, kernel, stride, (1, 1), padding), x[3])
    legacy(name, op, [(x, q(0.05, zero))], [(y, q(0.05, zero))], "Pool2DOptions", filterHeight=kernel[0], filterWidth=kernel[1],
           strideH=stride[0], strideW=stride[1], padding=padding, fusedActivationFunction=act)


pool("average_odd", "AVERAGE_POOL_2D", (1, 9, 8, 3), (3, 5), (2, 1))
pool("average_halves", "AVERAGE_POOL_2D", (2, 9, 8, 3), (2, 3), (1, 2))
pool("average_same", "AVERAGE_POOL_2D", (1, 9, 8, 5), (3, 2), (2, 3), padding=SAME, zero=7)
pool("average_same_odd", "AVERAGE_POOL_2D", (1, 4, 6, 3), (3, 3), (1, 2), padding=SAME, act=ACT.RELU)
pool("average_relu", "AVERAGE_POOL_2D", (1, 6, 7, 3), (4, 2), (1, 1), act=ACT.RELU)
pool("average_relu6", "AVERAGE_POOL_2D", (1, 6, 7, 3), (2, 1), (2, 1), act=ACT.RELU6, zero=33)
pool("average_relu_n1", "AVERAGE_POOL_2D", (1, 6, 7, 3), (2, 2), (2, 1), act=ACT.RELU_N1_TO_1)
pool("average_whole", "AVERAGE_POOL_2D", (1, 6, 7, 9), (6, 7), (1, 1))
pool("max", "MAX_POOL_2D", (1, 9, 8, 3), (3, 2), (2, 1), padding=SAME)
pool("max_relu6", "MAX_POOL_2D", (1, 9, 8, 3), (2, 3), (1, 2), act=ACT.RELU6, zero=5)

# ------------------------------------------------------------------------------------------------ element by element

for op, options in [("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")]:
    for act, word in [(ACT.NONE, ""), (ACT.RELU6, "_relu6")]:
        legacy(op.lower() + word, op, [((2, 40), q()), ((2, 40), q(0.03, 7))], [((2, 40), q(0.11, 33))], options, fusedActivationFunction=act)
    legacy(op.lower() + "_constant", op, [((2, 3, 5), q())], [((2, 3, 5), q(0.11, 133))], options,
           consts=[(np.array([0, 255, 7, 128, 99], np.uint8), q(0.02, 255))])
for op in ["MAXIMUM", "MINIMUM"]:
    legacy(op.lower(), op, [((2, 40), q()), ((2, 40), q())], [((2, 40), q())], "MaximumMinimumOptions")
EVERY = lambda rng: [np.stack([np.arange(256), np.arange(256)[::-1]]).reshape(2, 2, 128).astype(np.uint8)]
for name, op, options, out, fields in [
        ("relu", "RELU", None, q(0.03, 7), {}), ("relu6", "RELU6", None, q(), {}), ("relu6_rescaled", "RELU6", None, q(0.0235, 0), {}),
        ("leaky_relu", "LEAKY_RELU", "LeakyReluOptions", q(0.04, 133), dict(alpha=0.3)), ("logistic", "LOGISTIC", None, SOFT, {}),
        ("tanh", "TANH", None, dict(scale=1 / 128, zero_point=128), {}), ("softmax", "SOFTMAX", "SoftmaxOptions", SOFT, dict(beta=1.0)),
        ("log_softmax", "LOG_SOFTMAX", "LogSoftmaxOptions", dict(scale=16 / 256, zero_point=255), {})]:
    legacy(name, op, [((2, 128), q())], [((2, 128), out)], options, given=EVERY, **fields)
for name, (scale, zero, scale_out, zero_out) in {"": (0.05, 121, 0.04, 20), "_coarse": (0.09, 200, 0.03, 0), "_fine": (0.013, 3, 0.0131, 7)}.items():
    legacy(f"hard_swish{name}", "HARD_SWISH", [((2, 128), q(scale, zero))], [((2, 128), q(scale_out, zero_out))], given=EVERY)
legacy("softmax_short", "SOFTMAX", [((7, 3), q())], [((7, 3), SOFT)], "SoftmaxOptions", beta=0.5)
legacy("prelu", "PRELU", [((1, 3, 5, 4), q())], [((1, 3, 5, 4), q(0.06, 77))], consts=[(np.array([[[0, 255, 130, 9]]], np.uint8), q(0.01, 130))])
for op, options in [("EQUAL", "EqualOptions"), ("NOT_EQUAL", "NotEqualOptions"), ("LESS", "LessOptions"), ("LESS_EQUAL", "LessEqualOptions"),
                    ("GREATER", "GreaterOptions"), ("GREATER_EQUAL", "GreaterEqualOptions")]:
    legacy(op.lower(), op, [((2, 40), q()), ((2, 40), q(0.1, 121))], [((2, 40), ("bool",))], options)

# ------------------------------------------------------------------------------------------------ reductions

for op in ["MEAN", "SUM"]:
    legacy(op.lower(), op, [((2, 5, 6, 3), q())], [((2, 3), q(0.08, 99))], "ReducerOptions", consts=[(i32(1, 2), {})], keepDims=False)
    legacy(op.lower() + "_channels", op, [((2, 5, 6, 3), q())], [((2, 5, 6, 1), q())], "ReducerOptions", consts=[(i32(3), {})], keepDims=True)
for op in ["REDUCE_MAX", "REDUCE_MIN"]:
    legacy(op.lower(), op, [((2, 5, 6), q())], [((2, 1, 6), q())], "ReducerOptions", consts=[(i32(1), {})], keepDims=True)
for op, options in [("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")]:
    legacy(op.lower(), op, [((3, 7), q())], [((3,), ("int32",))], options, consts=[(i32(1), {})], outputType=2)

# ------------------------------------------------------------------------------------------------ movement


def moved(name, op, x, y, options=None, consts=(), **fields):
    legacy(name, op, [(x, q())], [(y, q())], options, consts=[c if isinstance(c, tuple) else (c, {}) for c in consts], **fields)


PADS = np.array([[0, 0], [1, 2], [2, 0], [0, 1]], np.int32)
moved("pad", "PAD", (1, 3, 5, 4), (1, 6, 7, 5), "PadOptions", [PADS])
moved("padv2", "PADV2", (1, 3, 5, 4), (1, 6, 7, 5), "PadV2Options", [PADS, (np.array([9], np.uint8), q())])
moved("nearest", "RESIZE_NEAREST_NEIGHBOR", (1, 3, 5, 2), (1, 7, 6, 2), "ResizeNearestNeighborOptions", [i32(7, 6)])
for name, corners, centres in [("", False, False), ("_corners", True, False), ("_centres", False, True)]:
    for size in [(7, 6), (2, 13)]:
        moved(f"bilinear{name}_{size[0]}", "RESIZE_BILINEAR", (2, 3, 5, 4), (2, *size, 4), "ResizeBilinearOptions", [i32(*size)], version=3,
              alignCorners=corners, halfPixelCenters=centres)
for name, scale in [("half", 0.1), ("double", 0.025), ("third", 0.15), ("below", 0.0317), ("ties", 0.007)]:
    first = 0.0035 if name == "ties" else 0.05
    legacy(f"concat_{name}", "CONCATENATION", [((2, 128), q(first)), ((2, 128), q(scale, 30))], [((4, 128), q(scale, 30))], "ConcatenationOptions",
           axis=0, given=lambda rng: EVERY(rng) * 2)
moved("space_to_batch", "SPACE_TO_BATCH_ND", (1, 3, 5, 2), (6, 2, 2, 2), "SpaceToBatchNDOptions", [i32(2, 3), np.array([[0, 1], [0, 1]], np.int32)])


def chain(name, make):
    """Movement alone stays uint8: behind it an operator computes."""

    @case(f"legacy_{name}")
    def network(rng):
        b = Builder()
        return make(b, rng)


def movement(b, rng):
    x, z = b.tensor((2, 3, 5, 4), "uint8", **q()), b.tensor((2, 3, 5, 2), "uint8", **q(0.0317, 7))
    t = lambda shape, **quant: b.tensor(shape, "uint8", **(quant or q()))
    joined, turned, flat = t((2, 3, 5, 6)), t((2, 6, 3, 5)), t((2, 6, 15))
    b.op("CONCATENATION", [x, z], [joined], "ConcatenationOptions", axis=3)
    b.op("TRANSPOSE", [joined, b.const(i32(0, 3, 1, 2))], [turned])
    b.op("RESHAPE", [turned, b.const(i32(2, 6, 15))], [flat], "ReshapeOptions", newShape=[2, 6, 15])
    first, second = t((2, 3, 15)), t((2, 3, 15))
    b.op("SPLIT", [b.const(i32(1)), flat], [first, second], "SplitOptions", numSplits=2)
    some, few = t((1, 3, 9)), t((1, 2, 5))
    b.op("SLICE", [first, b.const(i32(1, 0, 4)), b.const(i32(1, 3, 9))], [some], "SliceOptions")
    b.op("STRIDED_SLICE", [second, b.const(i32(0, 0, 3)), b.const(i32(1, 3, 13)), b.const(i32(1, 2, 2))], [few], "StridedSliceOptions")
    packed = t((2, 2, 5))
    low = t((2, 5))
    b.op("SQUEEZE", [few], [low], "SqueezeOptions", squeezeDims=[0])
    b.op("PACK", [low, low], [packed], "PackOptions", valuesCount=2, axis=0)
    ends_, mirrored = t((1, 3, 9), scale=0.04, zero_point=3), t((2, 2, 7))
    b.op("RELU", [some], [ends_])
    b.op("MIRROR_PAD", [packed, b.const(np.array([[0, 0], [0, 0], [1, 1]], np.int32))], [mirrored], "MirrorPadOptions", mode=0)
    real = b.tensor((2, 2, 7), "float32")
    b.op("DEQUANTIZE", [mirrored], [real], "DequantizeOptions")
    return b.finish([x, z], [ends_, mirrored, real]), 4, ends(rng, (2, 3, 5, 4), (2, 3, 5, 2))


def network(b, rng):
    """Layers of MobileNet."""
    real = b.tensor((1, 12, 9, 3), "float32")
    x = b.tensor((1, 12, 9, 3), "uint8", **q(1 / 128, 128))
    b.op("QUANTIZE", [real], [x], "QuantizeOptions")
    first = layer(b, rng, (x, (1, 12, 9, 3), 1 / 128), (3, 3), 6, stride=(2, 2), padding=SAME, act=ACT.RELU6, zero_w=122, zero_in=128, zero_out=0)
    second = layer(b, rng, first, (3, 3), 6, op=D, padding=SAME, act=ACT.RELU6, zero_w=165, zero_out=0)
    third = layer(b, rng, second, (1, 1), 6, zero_w=95, zero_out=119)
    sum_ = b.tensor(first[1], "uint8", **q(first[2] + third[2], 60))
    b.op("ADD", [first[0], third[0]], [sum_], "AddOptions")
    mean = b.tensor((1, 1, 1, 6), "uint8", **q(first[2] + third[2], 60))
    b.op("AVERAGE_POOL_2D", [sum_], [mean], "Pool2DOptions", filterHeight=6, filterWidth=5, strideH=6, strideW=5, padding=VALID)
    logits = layer(b, rng, (mean, (1, 1, 1, 6), first[2] + third[2]), (1, 1), 5, zero_w=74, zero_out=66)
    flat, soft = b.tensor((1, 5), "uint8", **q(logits[2], 66)), b.tensor((1, 5), "uint8", **SOFT)
    b.op("SQUEEZE", [logits[0]], [flat], "SqueezeOptions", squeezeDims=[1, 2])
    b.op("SOFTMAX", [flat], [soft], "SoftmaxOptions", beta=1.0)
    return b.finish([real], [soft, sum_]), 4, [rng.normal(0, 0.5, (4, 1, 12, 9, 3)).astype(np.float32)]


chain("movement", movement)
chain("network", network)

# LiteRT's reference kernels compute all of them.
NAMES = set(CASES) - BEFORE


def as_int8(array):
    """uint8 numbers less 128."""
    return (array.astype(np.int16) - 128).astype(np.int8) if array.dtype == np.uint8 else array
