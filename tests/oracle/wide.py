"""More cases: layers of the sizes of real networks, one of each kind, on which no core may fall off a cliff (`cargo xtask bench --cliffs`); importing this
registers them."""

import numpy as np

from cases import C, D, SAME, Builder, case, conv, linear, quant, schema, simple
from general import matmul
from stateful import lstm, svdf

conv("wide_conv_1d", C, (1, 1, 96, 40), (32, 1, 9, 40), (1, 1, 96, 32), padding=SAME)
conv("wide_conv_odd", C, (1, 13, 11, 5), (7, 3, 3, 5), (1, 13, 11, 7), padding=SAME)
conv("wide_conv_dilated", C, (1, 14, 17, 12), (20, 3, 3, 12), (1, 10, 13, 20), dilation=(2, 2))
conv("wide_conv_grouped", C, (1, 12, 9, 32), (32, 3, 3, 8), (1, 12, 9, 32), padding=SAME)
conv("wide_conv_i16", C, (1, 12, 10, 16), (24, 3, 3, 16), (1, 12, 10, 24), dtype="int16", padding=SAME)
conv("wide_depthwise_1d", D, (1, 1, 120, 64), (1, 1, 9, 64), (1, 1, 120, 64), padding=SAME)
conv("wide_depthwise_5x5", D, (1, 16, 12, 48), (1, 5, 5, 48), (1, 16, 12, 48), padding=SAME)
conv("wide_depthwise_7x7", D, (1, 21, 18, 24), (1, 7, 7, 24), (1, 11, 9, 24), stride=(2, 2), padding=SAME)
conv("wide_depthwise_multiplier", D, (1, 12, 14, 9), (1, 3, 3, 36), (1, 12, 14, 36), multiplier=4, padding=SAME)
conv("wide_depthwise_odd", D, (1, 17, 13, 19), (1, 4, 2, 19), (1, 7, 12, 19), stride=(2, 1))
conv("wide_conv_i16_pixels", C, (1, 12, 10, 24), (40, 1, 1, 24), (1, 12, 10, 40), dtype="int16")
conv("wide_conv_i16_one", C, (1, 20, 18, 1), (6, 3, 3, 1), (1, 18, 16, 6), dtype="int16")
conv("wide_conv_i16_dilated", C, (1, 20, 18, 8), (9, 3, 3, 8), (1, 16, 14, 9), dtype="int16", dilation=(2, 2))
conv("wide_conv_few", C, (1, 15, 13, 3), (6, 1, 1, 3), (1, 15, 13, 6))
conv("wide_conv_groups", C, (1, 11, 9, 32), (32, 3, 3, 2), (1, 11, 9, 32), padding=SAME)
conv("wide_depthwise_pixels", D, (1, 12, 14, 24), (1, 1, 1, 24), (1, 12, 14, 24))
conv("wide_depthwise_column", D, (1, 40, 5, 24), (1, 3, 1, 24), (1, 40, 5, 24), padding=SAME)
conv("wide_depthwise_row", D, (1, 5, 40, 24), (1, 1, 3, 24), (1, 5, 40, 24), padding=SAME)
conv("wide_depthwise_i16_multiplier", D, (1, 14, 12, 5), (1, 3, 3, 20), (1, 14, 12, 20), dtype="int16", multiplier=4, padding=SAME)
conv("wide_depthwise_i16", D, (1, 14, 12, 32), (1, 3, 3, 32), (1, 14, 12, 32), dtype="int16", padding=SAME)
conv("wide_conv_column", C, (1, 64, 1, 6), (16, 5, 1, 6), (1, 60, 1, 16))
conv("wide_conv_column_one", C, (1, 200, 1, 1), (8, 16, 1, 1), (1, 93, 1, 8), stride=(2, 1))
conv("wide_conv_i16_column", C, (1, 48, 1, 16), (24, 3, 1, 16), (1, 24, 1, 24), dtype="int16", stride=(2, 1), padding=SAME)
conv("wide_depthwise_one_column", D, (1, 60, 1, 48), (1, 9, 1, 48), (1, 60, 1, 48), padding=SAME)
linear("wide_linear_odd", (1, 515), (61, 515), (1, 61))
linear("wide_linear_long", (1, 4096), (11, 4096), (1, 11))
linear("wide_linear_i16", (1, 320), (48, 320), (1, 48), dtype="int16")
lstm("wide_lstm", 1, 20, 28, 32)
lstm("wide_lstm_i16", 1, 12, 20, 24, dtype="int16")
svdf("wide_svdf_i16_state", 1, 96, 64, 2, 12, "int16")
svdf("wide_svdf_i8_state", 1, 96, 64, 1, 10, "int8")


def transposed(name, x, w, y, stride, padding):
    """x, y: NHWC; w: OHWI."""

    @case(name)
    def make(rng):
        b = Builder()
        xi = b.tensor(x, "int8", scale=0.05, zero_point=-7)
        scale_w = rng.uniform(0.003, 0.02, w[0])
        wi = b.const(rng.integers(-127, 128, w), "int8", scale=scale_w, axis=0)
        bi = b.const(rng.integers(-4000, 4000, w[0]), "int32", scale=0.05 * scale_w)
        yi = b.tensor(y, "int8", scale=0.6, zero_point=11)
        b.op("TRANSPOSE_CONV", [b.const(np.array(y, np.int32)), wi, xi, bi], [yi], "TransposeConvOptions", version=3, padding=padding,
             strideH=stride[0], strideW=stride[1])
        return b.finish([xi], [yi]), 2, None


transposed("wide_transposed", (1, 9, 7, 16), (8, 4, 3, 16), (1, 18, 14, 8), (2, 2), SAME)

SOFT = dict(scale=1 / 256, zero_point=-128)
simple("wide_softmax", "SOFTMAX", [((12, 40), "int8", quant("int8"))], ((12, 40), "int8", SOFT), "SoftmaxOptions", beta=1.0)
simple("wide_softmax_i16", "SOFTMAX", [((12, 40), "int16", quant("int16"))], ((12, 40), "int16", dict(scale=1 / 32768)), "SoftmaxOptions",
       beta=1.0)
simple("wide_logistic_i16", "LOGISTIC", [((12, 40), "int16", dict(scale=0.0007))], ((12, 40), "int16", dict(scale=1 / 32768)))
simple("wide_tanh_i16", "TANH", [((12, 40), "int16", dict(scale=0.0007))], ((12, 40), "int16", dict(scale=1 / 32768)))
simple("wide_logistic", "LOGISTIC", [((12, 40), "int8", quant("int8"))], ((12, 40), "int8", SOFT))


def arithmetic(name, op, dtype, x, z, constant):
    """x with z, which is broadcast."""

    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        out = dict(scale=0.09, zero_point=-5) if dtype == "int8" else dict(scale=0.0007)
        xi = b.tensor(x, dtype, **q)
        top = 128 if dtype == "int8" else 32768
        zi = b.const(rng.integers(-top, top, z), dtype, **q) if constant else b.tensor(z, dtype, **q)
        yi = b.tensor(x, dtype, **out)
        b.op(op, [xi, zi], [yi], {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[op], version=2)
        return b.finish([xi] if constant else [xi, zi], [yi]), 2, None


arithmetic("wide_add_i16", "ADD", "int16", (1, 14, 12, 10), (1, 14, 12, 10), False)
arithmetic("wide_sub", "SUB", "int8", (1, 14, 12, 10), (1, 14, 12, 10), False)
arithmetic("wide_mul", "MUL", "int8", (1, 14, 12, 10), (1, 14, 12, 10), False)
arithmetic("wide_mul_channels", "MUL", "int8", (1, 14, 12, 24), (1, 1, 1, 24), False)
arithmetic("wide_mul_pixels", "MUL", "int8", (1, 14, 12, 24), (1, 14, 12, 1), False)
arithmetic("wide_sub_channels", "SUB", "int8", (1, 14, 12, 24), (24,), True)
arithmetic("wide_add_pixels", "ADD", "int8", (1, 14, 12, 24), (1, 14, 12, 1), False)
arithmetic("wide_add_scalar", "ADD", "int8", (1, 11, 13, 7), (1,), True)
arithmetic("wide_mul_i16", "MUL", "int16", (1, 14, 12, 10), (1, 14, 12, 10), False)


@case("wide_movement")
def movement(rng):
    """Padding, a slice, a concatenation along the channels, a transposition."""
    b = Builder()
    q = quant("int8")
    x = b.tensor((1, 12, 17, 20), "int8", **q)
    padded, cut = b.tensor((1, 14, 20, 20), "int8", **q), b.tensor((1, 12, 17, 7), "int8", **q)
    joined, turned = b.tensor((1, 12, 17, 27), "int8", **q), b.tensor((1, 20, 12, 17), "int8", **q)
    b.op("PAD", [x, b.const(np.array([[0, 0], [1, 1], [2, 1], [0, 0]], np.int32))], [padded], "PadOptions")
    b.op("SLICE", [x, b.const(np.array([0, 0, 0, 5], np.int32)), b.const(np.array([1, 12, 17, 7], np.int32))], [cut], "SliceOptions")
    b.op("CONCATENATION", [x, cut], [joined], "ConcatenationOptions", axis=3)
    b.op("TRANSPOSE", [x, b.const(np.array([0, 3, 1, 2], np.int32))], [turned])
    return b.finish([x], [padded, joined, turned]), 2, None


def window(name, op, x, y, kernel, stride):
    simple(name, op, [(x, "int8", quant("int8"))], (y, "int8", quant("int8")), "Pool2DOptions", filterHeight=kernel[0], filterWidth=kernel[1],
           strideH=stride[0], strideW=stride[1], padding=schema.Padding.VALID)


window("wide_max_pool", "MAX_POOL_2D", (1, 18, 15, 13), (1, 8, 7, 13), (3, 3), (2, 2))
window("wide_average_pool", "AVERAGE_POOL_2D", (1, 18, 15, 13), (1, 8, 7, 13), (3, 3), (2, 2))
simple("wide_mean", "MEAN", [((1, 9, 11, 24), "int8", quant("int8"))], ((1, 24), "int8", quant("int8")), "ReducerOptions",
       consts=[(np.array([1, 2], np.int32), {})], keepDims=False)
window("wide_max_pool_small", "MAX_POOL_2D", (1, 16, 14, 18), (1, 8, 7, 18), (2, 2), (2, 2))
window("wide_average_pool_small", "AVERAGE_POOL_2D", (1, 16, 14, 18), (1, 8, 7, 18), (2, 2), (2, 2))
matmul("wide_matmul", (4, 24, 16), (4, 16, 21), (4, 24, 21))
matmul("wide_matmul_turned", (4, 24, 16), (4, 21, 16), (4, 24, 21), adj_y=True)


def operands(name, op, options=None, scale=None, dtype="int8"):
    """Of two tensors of one shape."""
    x = ((1, 9, 8, 21), dtype, quant(dtype))
    simple(name, op, [x, x], ((1, 9, 8, 21), dtype, quant(dtype, scale)), options)


operands("wide_maximum", "MAXIMUM", "MaximumMinimumOptions")
operands("wide_minimum_i16", "MINIMUM", "MaximumMinimumOptions", dtype="int16")
operands("wide_squared_difference", "SQUARED_DIFFERENCE", "SquaredDifferenceOptions", 1.0)
simple("wide_prelu", "PRELU", [((1, 9, 8, 20), "int8", quant("int8"))], ((1, 9, 8, 20), "int8", quant("int8")),
       consts=[(np.arange(-10, 10).astype(np.int8).reshape(1, 1, 20), dict(scale=0.02))])
simple("wide_leaky_relu_i16", "LEAKY_RELU", [((1, 9, 8, 20), "int16", quant("int16"))], ((1, 9, 8, 20), "int16", dict(scale=0.0002)),
       "LeakyReluOptions", alpha=0.2)
simple("wide_dequantize", "DEQUANTIZE", [((1, 9, 8, 20), "int8", quant("int8"))], ((1, 9, 8, 20), "float32", {}), "DequantizeOptions")
simple("wide_reduce_max", "REDUCE_MAX", [((1, 20, 11, 9), "int8", quant("int8"))], ((1, 9), "int8", quant("int8")), "ReducerOptions",
       consts=[(np.array([1, 2], np.int32), {})], keepDims=False)
simple("wide_arg_max", "ARG_MAX", [((1, 20, 11, 8), "int8", quant("int8"))], ((1, 20, 11), "int32", {}), "ArgMaxOptions",
       consts=[(np.array(3, np.int32), {})], outputType=schema.TensorType.INT32)
simple("wide_log_softmax", "LOG_SOFTMAX", [((12, 40), "int8", quant("int8"))], ((12, 40), "int8", dict(scale=16 / 256, zero_point=127)),
       "LogSoftmaxOptions")
SIZE = [(np.array([16, 18], np.int32), {})]
for kind, options, fields in [("nearest_neighbor", "ResizeNearestNeighborOptions", {}), ("bilinear", "ResizeBilinearOptions", dict(halfPixelCenters=True))]:
    simple(f"wide_resize_{kind}", f"RESIZE_{kind.upper()}", [((1, 8, 9, 10), "int8", quant("int8"))], ((1, 16, 18, 10), "int8", quant("int8")), options,
           consts=SIZE, **fields)
