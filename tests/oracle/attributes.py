"""Attributes of ONNX operators, each changed alone and each left to its default; importing this gives CASES. No two axes are equal."""

import numpy as np

CASES = {}


def case(name, opset=17):
    def add(function):
        CASES[f"alone_{name}"] = (function, opset)
        return function

    return add


@case("gemm")
def _(n):
    a, b, c = n.input(3, 4), n.const(4, 5), n.const(5)
    turned_a, turned_b = n.Transpose(a, perm=[1, 0]), n.const(5, 4)
    return (n.Gemm(a, b), n.Gemm(a, b, c), n.Gemm(turned_a, b, c, transA=1), n.Gemm(a, turned_b, c, transB=1), n.Gemm(a, b, c, alpha=0.5),
            n.Gemm(a, b, c, beta=-2.0), n.Gemm(a, b, n.const(3, 1)))


@case("cumsum", 14)
def _(n):
    x = n.input(4, 5, 3)
    axis = n.value(np.int64(1))
    first, last = n.value(np.int64(0)), n.value(np.int64(-1))
    return n.CumSum(x, axis, exclusive=1), n.CumSum(x, axis, reverse=1), n.CumSum(x, first, exclusive=1), n.CumSum(x, last, reverse=1)


@case("cumsum_line", 14)
def _(n):
    x, axis = n.input(7), n.value(np.int64(0))
    return n.CumSum(x, axis), n.CumSum(x, axis, reverse=1, exclusive=1)


@case("dft", 17)
def _(n):
    x, z = n.input(2, 10, 3, 1), n.input(2, 7, 3, 2)
    of = [n.value(np.int64(length)) for length in (12, 8, 7, 9)]
    return (n.DFT(x), n.DFT(x, onesided=1), n.DFT(x, axis=2, onesided=1), n.DFT(x, of[0], onesided=1), n.DFT(x, of[1], onesided=1), n.DFT(x, of[2]),
            n.DFT(z), n.DFT(z, inverse=1), n.DFT(z, axis=2), n.DFT(z, of[3], inverse=1))


@case("dft_axis", 20)
def _(n):
    x, z = n.input(3, 6, 5, 1), n.input(3, 6, 5, 2)
    return n.DFT(x), n.DFT(x, "", n.value(np.int64(1)), onesided=1), n.DFT(z, n.value(np.int64(4)), n.value(np.int64(-3))), n.DFT(z, inverse=1)


@case("stft", 17)
def _(n):
    x, window = n.input(2, 70, 1), n.value(np.hamming(16).astype(np.float32))
    step, length = n.value(np.int64(6)), n.value(np.int64(11))
    return (n.STFT(x, step, window), n.STFT(x, step, "", length), n.STFT(x, step, "", length, onesided=0), n.STFT(x, n.value(np.int64(8)), window),
            n.STFT(x, n.value(np.int64(8)), window, n.value(np.int64(16)), onesided=0))


@case("stft_wide_step", 17)
def _(n):
    return n.STFT(n.input(1, 1100, 1), n.value(np.int64(256)), "", n.value(np.int64(512)))


# Of the same number several times.
TIES = np.array([[[2, 0, 2, 1], [0, 2, 1, 0], [2, 2, 0, 0]], [[1, 1, 1, 1], [3, 0, 3, 0], [0, -1, -1, 2]]], np.float32)


@case("last_extremes", 13)
def _(n):
    x = n.input(2, 3, 4, values=TIES)
    return (n.ArgMax(x, axis=-1, select_last_index=1), n.ArgMax(x, axis=1, keepdims=0, select_last_index=1), n.ArgMin(x, axis=0, select_last_index=1),
            n.ArgMin(x, axis=2, keepdims=0, select_last_index=1))


@case("hardmax", 13)
def _(n):
    x = n.input(2, 3, 4, values=TIES)
    return n.Hardmax(x), n.Hardmax(x, axis=1), n.Hardmax(x, axis=-3)


@case("hardmax_flat", 11)
def _(n):
    x = n.input(2, 3, 4, values=TIES)
    return n.Hardmax(x), n.Hardmax(x, axis=2)


@case("one_hot")
def _(n):
    x = n.input(2, 3, dtype=np.int64, values=[[0, -1, 4], [5, -5, 2]])
    depth, values = n.value(np.int64(5)), n.value(np.array([3, 0.5], np.float32))
    return n.OneHot(x, depth, values), n.OneHot(x, depth, values, axis=0), n.OneHot(x, depth, values, axis=-2)


@case("depth_to_space")
def _(n):
    a, b = n.input(2, 18, 2, 5), n.input(2, 3, 6, 12)
    return (n.DepthToSpace(a, blocksize=3), n.DepthToSpace(a, blocksize=3, mode="CRD"), n.SpaceToDepth(b, blocksize=2), n.SpaceToDepth(b, blocksize=3))


@case("softmax", 13)
def _(n):
    x = n.input(2, 3, 5)
    return n.Softmax(x), n.Softmax(x, axis=0), n.Softmax(x, axis=1), n.LogSoftmax(x), n.LogSoftmax(x, axis=0)


@case("softmax_flat", 11)
def _(n):
    x = n.input(2, 3, 5)
    return n.Softmax(x), n.Softmax(x, axis=2), n.LogSoftmax(x), n.LogSoftmax(x, axis=0)


@case("norms", 17)
def _(n):
    x, scale, shift = n.input(2, 3, 5), n.const(5), n.const(5)
    return (n.LayerNormalization(x, scale, shift), n.LayerNormalization(x, scale), n.LayerNormalization(x, n.const(3, 5), n.const(3, 5), axis=1),
            n.LayerNormalization(x, scale, epsilon=0.3), n.LpNormalization(x), n.LpNormalization(x, p=1), n.LpNormalization(x, axis=0),
            n.MeanVarianceNormalization(n.input(2, 3, 4, 5)), n.MeanVarianceNormalization(n.input(2, 3, 4, 6), axes=[1, 3]))


@case("batch_norms")
def _(n):
    x = n.input(2, 3, 4, 5)
    spread = n.value(np.array([0.02, 1.5, 2.5], np.float32))
    operands = [n.const(3), n.const(3), n.const(3), spread]
    return (n.BatchNormalization(x, *operands), n.BatchNormalization(x, *operands, epsilon=0.2), n.InstanceNormalization(x, n.const(3), n.const(3)),
            n.InstanceNormalization(x, n.const(3), n.const(3), epsilon=0.4))


@case("group_norms", 21)
def _(n):
    x = n.input(2, 6, 3, 5)
    return (n.GroupNormalization(x, n.const(6), n.const(6), num_groups=2), n.GroupNormalization(x, n.const(6), n.const(6), num_groups=3, epsilon=0.2))


@case("reductions", 13)
def _(n):
    x = n.input(2, 3, 5)
    return (n.ReduceSum(x), n.ReduceSum(x, keepdims=0), n.ReduceSum(x, n.ints(-1)), n.ReduceSum(x, n.ints(0, -2), keepdims=0),
            n.ReduceSum(x, noop_with_empty_axes=1), n.ReduceMean(x), n.ReduceMean(x, axes=[-3]), n.ReduceMax(x, axes=[1]), n.ReduceMin(x, keepdims=0),
            n.ReduceL1(x, axes=[0]), n.ReduceL2(x, axes=[-1], keepdims=0), n.ReduceProd(x, axes=[2]), n.ReduceLogSum(n.Abs(x), axes=[1]))


@case("largest", 13)
def _(n):
    x = n.input(4, 3, 5, values=n.random.integers(0, 3, size=(4, 3, 5)))
    y = n.input(4, 3, 5)
    return (n.ArgMax(x), n.ArgMin(x), n.ArgMax(y, axis=1, keepdims=0), n.ArgMin(y, axis=-1))


@case("convolutions")
def _(n):
    x, w = n.input(1, 4, 9, 6), n.const(2, 4, 3, 2)
    return (n.Conv(x, w), n.Conv(x, w, n.const(2), strides=[2, 3]), n.Conv(x, w, dilations=[2, 1]), n.Conv(x, w, dilations=[1, 3]),
            n.Conv(x, w, pads=[2, 0, 0, 1]), n.Conv(x, w, pads=[0, 1, 1, 0]), n.Conv(x, n.const(6, 2, 3, 2), group=2),
            n.Conv(x, w, auto_pad="SAME_UPPER", strides=[2, 3]), n.Conv(x, w, auto_pad="SAME_LOWER", strides=[2, 3]),
            n.Conv(x, w, auto_pad="VALID", strides=[1, 2]), n.Conv(x, w, auto_pad="SAME_LOWER"))


@case("transposed")
def _(n):
    x, w = n.input(1, 4, 3, 5), n.const(4, 2, 3, 2)
    return (n.ConvTranspose(x, w), n.ConvTranspose(x, w, n.const(2), strides=[3, 2]), n.ConvTranspose(x, w, dilations=[2, 1]),
            n.ConvTranspose(x, w, strides=[2, 3], pads=[1, 0, 0, 1]), n.ConvTranspose(x, w, strides=[2, 3], output_padding=[1, 2]),
            n.ConvTranspose(x, n.const(4, 3, 3, 2), group=2), n.ConvTranspose(x, w, strides=[2, 3], output_shape=[8, 15]),
            n.ConvTranspose(x, w, strides=[2, 2], auto_pad="SAME_LOWER"))


@case("pools")
def _(n):
    x = n.input(1, 2, 8, 11)
    how = dict(kernel_shape=[3, 2])
    return (n.MaxPool(x, **how), n.MaxPool(x, strides=[2, 3], **how), n.MaxPool(x, strides=[2, 4], ceil_mode=1, **how),
            n.MaxPool(x, dilations=[2, 3], **how),
            n.MaxPool(x, pads=[1, 0, 2, 1], **how), n.MaxPool(x, auto_pad="SAME_LOWER", strides=[2, 2], **how), n.AveragePool(x, **how),
            n.AveragePool(x, pads=[1, 1, 0, 1], **how), n.AveragePool(x, pads=[1, 1, 0, 1], count_include_pad=1, **how),
            n.AveragePool(x, strides=[2, 4], ceil_mode=1, **how), n.AveragePool(x, auto_pad="SAME_UPPER", strides=[3, 2], **how))


@case("layouts")
def _(n):
    x = n.input(2, 3, 1, 5)
    return (n.Transpose(x), n.Transpose(x, perm=[2, 0, 3, 1]), n.Flatten(x), n.Flatten(x, axis=0), n.Flatten(x, axis=-1), n.Squeeze(x),
            n.Squeeze(x, n.ints(-2)),
            n.Unsqueeze(x, n.ints(-1, 1)), n.Concat(x, x, axis=1), n.Concat(x, x, axis=-1), n.Reshape(x, n.ints(0, -1, 3)))


@case("slices")
def _(n):
    x = n.input(4, 7, 5)
    return (n.Slice(x, n.ints(1, 2), n.ints(3, -1)), n.Slice(x, n.ints(-3), n.ints(9), n.ints(-1)), n.Slice(x, n.ints(5), n.ints(-9), n.ints(1), n.ints(-1)),
            n.Slice(x, n.ints(0), n.ints(7), n.ints(1), n.ints(3)), n.Slice(x, n.ints(-1), n.ints(-5), n.ints(0), n.ints(-2)))


@case("splits", 13)
def _(n):
    x = n.input(6, 5, 3)
    first, second = n.Split(x, outputs=2)
    a, b = n.Split(x, n.ints(2, 3), axis=-2, outputs=2)
    return second, first, b, a


@case("functions", 16)
def _(n):
    x = n.input(2, 3, 5, values=n.random.normal(size=(2, 3, 5)) * 3)
    return (n.Elu(x), n.Elu(x, alpha=0.4), n.Selu(x, alpha=1.1), n.Selu(x, gamma=0.7), n.Celu(x), n.Celu(x, alpha=0.6), n.HardSigmoid(x),
            n.HardSigmoid(x, alpha=0.1), n.HardSigmoid(x, beta=0.2), n.ThresholdedRelu(x), n.ThresholdedRelu(x, alpha=0.3), n.LeakyRelu(x),
            n.LeakyRelu(x, alpha=0.3),
            n.PRelu(x, n.const(3, 1)), n.PRelu(x, n.const(5)), n.Clip(x), n.Clip(x, n.value(np.float32(-1))), n.Clip(x, "", n.value(np.float32(0.5))))


@case("gelus", 20)
def _(n):
    x = n.input(2, 5, values=n.random.normal(size=(2, 5)) * 2)
    return n.Gelu(x), n.Gelu(x, approximate="none"), n.Gelu(x, approximate="tanh"), n.IsInf(x), n.IsNaN(x)


@case("responses")
def _(n):
    x = n.input(1, 7, 2, 3, values=n.random.normal(size=(1, 7, 2, 3)) * 4)
    return n.LRN(x, size=3), n.LRN(x, size=5, alpha=0.4), n.LRN(x, size=5, alpha=0.4, beta=0.5), n.LRN(x, size=5, alpha=0.4, bias=2.5)


@case("gathered")
def _(n):
    x = n.input(4, 5, 3)
    return n.Gather(x, n.ints(3, -4, 1)), n.Gather(x, n.value([[2, 0], [-1, 1]], np.int64), axis=-1), n.Gather(x, n.value(np.int64(4)), axis=1)


@case("triangles", 14)
def _(n):
    x = n.input(2, 4, 5)
    return n.Trilu(x), n.Trilu(x, upper=0), n.Trilu(x, n.value(np.int64(1))), n.Trilu(x, n.value(np.int64(-1)), upper=0)


@case("resizes")
def _(n):
    x = n.input(1, 2, 4, 6)
    to = ["", "", n.ints(1, 2, 7, 4)]
    scales = ["", n.value(np.array([1, 1, 1.5, 2.5], np.float32))]
    nearest = [n.Resize(x, *to, nearest_mode=mode) for mode in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]]
    return (*nearest, n.Resize(x, *to), n.Resize(x, *scales), n.Resize(x, *scales, mode="linear"),
            n.Resize(x, *to, mode="linear", coordinate_transformation_mode="align_corners"),
            n.Resize(x, *to, mode="cubic"), n.Resize(x, *to, mode="cubic", cubic_coeff_a=-0.5), n.Resize(x, *to, mode="cubic", exclude_outside=1))


@case("resize_axes", 18)
def _(n):
    x = n.input(1, 2, 4, 6)
    return n.Resize(x, "", "", n.ints(9, 5), axes=[3, 2], mode="linear"), n.Resize(x, "", n.value(np.array([2], np.float32)), axes=[2])


@case("pads", 18)
def _(n):
    x = n.input(2, 3, 5)
    return (n.Pad(x, n.ints(0, 1, 2, 1, 0, 3)), n.Pad(x, n.ints(2, 1), n.value(np.float32(-0.5)), n.ints(-1)),
            n.Pad(x, n.ints(1, 2, 2, 0), "", n.ints(2, 1), mode="edge"))


@case("products")
def _(n):
    a, b = n.input(2, 3, 4), n.input(2, 4, 5)
    return (n.MatMul(a, b), n.MatMul(n.const(4), b), n.MatMul(a, n.const(4)), n.Einsum(a, b, equation="bij,bjk->bik"), n.Einsum(a, equation="bij->jbi"),
            n.Einsum(a, equation="bij->bi"), n.Einsum(a, b, equation="bij,bjk->bki"))


def recurrent(op, gates, name, state=True, outputs=2, **attributes):
    @case(f"{op.lower()}_{name}", 14)
    def _(n):
        operands = [n.input(5, 2, 3), n.const(1, gates * 4, 3), n.const(1, gates * 4, 4)]
        if state:
            operands += [n.const(1, 2 * gates * 4), "", n.const(1, 2, 4)]
        return n.__getattr__(op)(*operands, outputs=outputs, hidden_size=4, **attributes)


for op, gates, outputs in [("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)]:
    recurrent(op, gates, "least", state=False, outputs=outputs)
    recurrent(op, gates, "clipped", outputs=outputs, clip=0.3)
recurrent("RNN", 1, "relu", activations=["Relu"])
recurrent("GRU", 3, "functions", activations=["HardSigmoid", "Relu"])
recurrent("LSTM", 4, "functions", outputs=3, activations=["HardSigmoid", "Relu", "Tanh"])
