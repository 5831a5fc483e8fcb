"""More cases: rearrangements, transposed convolutions, what else becomes several operators, and channels that are constant; importing this
registers them."""

import numpy as np

from cases import ACT, SAME, VALID, Builder, all_i8, case, conv, i32, linear, moved, quant, schema, simple, unary

C, D = "CONV_2D", "DEPTHWISE_CONV_2D"
conv("conv_i16_no_bias", C, (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), dtype="int16", padding=SAME, bias=False)
conv("depthwise_i16_no_bias", D, (1, 5, 5, 4), (1, 3, 3, 4), (1, 5, 5, 4), dtype="int16", padding=SAME, bias=False)
conv("depthwise_i16_multiplier", D, (1, 7, 6, 5), (1, 3, 2, 15), (1, 4, 6, 15), dtype="int16", multiplier=3, stride=(2, 1), padding=SAME)
conv("conv_i16_dilated", C, (1, 9, 7, 3), (5, 3, 2, 3), (1, 5, 5, 5), dtype="int16", dilation=(2, 2))
linear("linear_i16_no_bias", (2, 8), (5, 8), (2, 5), dtype="int16", bias=False)
linear("linear_weights_zero_point_low", (3, 16), (4, 16), (3, 4), zero_w=-128, act=ACT.RELU)


def transpose_conv(name, x, w, y, dtype="int8", stride=(2, 2), padding=SAME, act=ACT.NONE, bias=True, per_channel=True):
    """x, y: NHWC; w: OHWI."""

    @case(name)
    def make(rng):
        b = Builder()
        shape = b.const(np.array(y, np.int32))
        if dtype == "float32":
            xi, yi = b.tensor(x, dtype), b.tensor(y, dtype)
            wi, bi = b.const(rng.normal(0, 0.4, w).astype(np.float32)), b.const(rng.normal(0, 1, w[0]).astype(np.float32))
        else:
            wide = dtype == "int16"
            scale_in = 0.0004 if wide else 0.05
            scale_w = rng.uniform(0.003, 0.02, w[0] if per_channel else 1)
            xi = b.tensor(x, dtype, scale=scale_in, zero_point=0 if wide else -7)
            wi = b.const(rng.integers(-127, 128, w), "int8", scale=scale_w)
            bi = b.const(rng.integers(-4000, 4000, w[0]), "int64" if wide else "int32", scale=scale_in * scale_w)
            yi = b.tensor(y, dtype, scale=float(scale_in * 0.4 * np.sqrt(w[3])), zero_point=0 if wide else 11)
        b.op("TRANSPOSE_CONV", [shape, wi, xi] + ([bi] if bias else []), [yi], "TransposeConvOptions", version=3, padding=padding,
             strideH=stride[0], strideW=stride[1], fusedActivationFunction=act)
        return b.finish([xi], [yi]), 2, None


transpose_conv("transpose_conv_same", (1, 4, 3, 5), (4, 3, 3, 5), (1, 8, 6, 4))
transpose_conv("transpose_conv_valid", (1, 4, 3, 5), (4, 3, 2, 5), (1, 9, 6, 4), padding=VALID)
transpose_conv("transpose_conv_stride1", (1, 4, 3, 5), (4, 3, 3, 5), (1, 4, 3, 4), stride=(1, 1))
transpose_conv("transpose_conv_wide", (2, 3, 4, 2), (3, 4, 5, 2), (2, 6, 12, 3), stride=(2, 3), bias=False)
transpose_conv("transpose_conv_small_kernel", (1, 3, 4, 2), (3, 1, 2, 2), (1, 5, 11, 3), stride=(2, 3), padding=VALID)
transpose_conv("transpose_conv_per_tensor", (1, 4, 3, 5), (4, 2, 2, 5), (1, 8, 6, 4), per_channel=False)
transpose_conv("transpose_conv_relu", (1, 4, 3, 5), (4, 2, 2, 5), (1, 8, 6, 4), act=ACT.RELU)
transpose_conv("transpose_conv_i16", (1, 4, 3, 5), (4, 3, 3, 5), (1, 8, 6, 4), dtype="int16")
transpose_conv("transpose_conv_f32", (1, 4, 3, 5), (4, 3, 3, 5), (1, 8, 6, 4), dtype="float32")

moved("depth_to_space", "DEPTH_TO_SPACE", (2, 2, 3, 12), (2, 4, 6, 3), "DepthToSpaceOptions", blockSize=2)
moved("space_to_depth", "SPACE_TO_DEPTH", (2, 4, 6, 3), (2, 2, 3, 12), "SpaceToDepthOptions", blockSize=2)
SB = "SpaceToBatchNDOptions"
# TensorFlow Lite Micro never sets what it pads int8 with.
moved("space_to_batch", "SPACE_TO_BATCH_ND", (2, 4, 5, 3), (12, 3, 2, 3), SB, [i32(2, 3), np.array([[1, 1], [0, 1]], np.int32)],
      dtypes=("float32",))
moved("space_to_batch_3d", "SPACE_TO_BATCH_ND", (1, 6, 3), (3, 3, 3), SB, [i32(3), np.array([[2, 1]], np.int32)], dtypes=("float32",))
moved("space_to_batch_plain", "SPACE_TO_BATCH_ND", (1, 4, 6, 2), (4, 2, 3, 2), SB, [i32(2, 2), np.zeros((2, 2), np.int32)])
BS = "BatchToSpaceNDOptions"
moved("batch_to_space", "BATCH_TO_SPACE_ND", (12, 3, 2, 3), (2, 4, 5, 3), BS, [i32(2, 3), np.array([[1, 1], [0, 1]], np.int32)])
moved("batch_to_space_3d", "BATCH_TO_SPACE_ND", (3, 3, 3), (1, 6, 3), BS, [i32(3), np.array([[2, 1]], np.int32)])
for mode in ["REFLECT", "SYMMETRIC"]:
    moved(f"mirror_pad_{mode.lower()}", "MIRROR_PAD", (1, 4, 3, 2), (1, 7, 5, 2), "MirrorPadOptions",
          [np.array([[0, 0], [2, 1], [0, 2], [0, 0]], np.int32)], mode=getattr(schema.MirrorPadMode, mode))
moved("reverse", "REVERSE_V2", (2, 4, 3), (2, 4, 3), "ReverseV2Options", [i32(1)], dtypes=("int8", "int16", "float32"))
moved("gather_scattered", "GATHER", (2, 5, 3), (2, 4, 3), "GatherOptions", [i32(3, 0, 0, 4)], axis=1)
moved("gather_spaced", "GATHER", (2, 5, 3), (2, 2, 3), "GatherOptions", [i32(3, 1)], axis=1)
moved("gather_scalar", "GATHER", (2, 5, 3), (2, 5), "GatherOptions", [np.array(1, np.int32)], axis=-1)
for i, (scale, zero_point, scale_out, zero_out) in enumerate([(0.05, -7, 0.03, -90), (0.002, 100, 0.002, 90), (0.3, -128, 0.2, -124), (0.08, 3, 0.05, -108)]):
    unary(f"elu_{i}", "ELU", "int8", dict(scale=scale, zero_point=zero_point), dict(scale=scale_out, zero_point=zero_out))
unary("elu_f32", "ELU", "float32")
simple("l2_normalization_f32", "L2_NORMALIZATION", [((2, 3, 7), "float32", {})], ((2, 3, 7), "float32", {}), "L2NormOptions")
simple("l2_normalization_zeros", "L2_NORMALIZATION", [((1, 4), "float32", {})], ((1, 4), "float32", {}), "L2NormOptions",
       given=lambda rng: [np.full((2, 1, 4), 1e-4, np.float32)])
simple("l2_normalization_i8", "L2_NORMALIZATION", [((2, 16), "int8", quant("int8"))], ((2, 16), "int8", dict(scale=1 / 128, zero_point=0)),
       "L2NormOptions")
for zero, shape in [(-128, (3, 300)), (127, (2, 3, 5)), (0, (4, 1)), (5, (1, 2, 2, 33))]:
    simple(f"l2_normalization_i8_{shape[-1]}", "L2_NORMALIZATION", [(shape, "int8", dict(scale=0.03, zero_point=zero))],
           (shape, "int8", dict(scale=1 / 128, zero_point=0)), "L2NormOptions", runs=4)


def short_rows(rng):
    """Of lengths from nothing on, with numbers at the ends of the range among them."""
    rows = np.full((12, 6), -3)
    rows[1:, 0] += np.arange(11)
    rows[6:, 1] = [-128, 127, -128, 127, -4, -2]
    return [rows.astype(np.int8).reshape(1, 12, 6)]


simple("l2_normalization_i8_short", "L2_NORMALIZATION", [((12, 6), "int8", dict(scale=0.5, zero_point=-3))],
       ((12, 6), "int8", dict(scale=1 / 128, zero_point=0)), "L2NormOptions", given=short_rows)


@case("conv_constant_channels")
def conv_constant_channels(rng):
    """Three ordinary channels, and two whose scale is so small that every input gives the same output; their weights are not zero."""
    b = Builder()
    scales = np.array([0.01, 1e-9, 0.008, 0.012, 2e-9])
    x = b.tensor((1, 5, 4, 8), "int8", scale=0.05, zero_point=-7)
    w = b.const(rng.integers(-127, 128, (5, 1, 1, 8)), "int8", scale=scales)
    bias = b.const(rng.integers(-4000, 4000, 5), "int32", scale=0.05 * scales)
    y = b.tensor((1, 5, 4, 5), "int8", scale=0.05, zero_point=11)
    b.op("CONV_2D", [x, w, bias], [y], "Conv2DOptions", version=3, padding=VALID, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    return b.finish([x], [y]), 2, None
