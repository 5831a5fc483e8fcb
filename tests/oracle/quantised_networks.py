"""Networks of quantised operators for make_onnx.py, in the forms in which ONNX Runtime's static quantiser writes them."""

import numpy as np

CASES = {}


def case(name, opset):
    def add(function):
        CASES[name] = (function, opset)
        return function

    return add


def quantised(n, x, scale, zero, dtype):
    s, z = n.value(np.float32(scale)), n.value(np.array(zero, dtype))
    return n.DequantizeLinear(n.QuantizeLinear(x, s, z), s, z)


@case("qdq_conv_quantised", 13)
def _(n):
    x = quantised(n, n.input(1, 3, 6, 5), 0.03, -5, np.int8)
    w = n.value(n.random.integers(-127, 128, size=(4, 3, 3, 2)).astype(np.int8))
    scales = n.value(np.array([0.01, 0.02, 0.013, 0.007], np.float32))
    w = n.DequantizeLinear(w, scales, n.value(np.zeros(4, np.int8)), axis=0)
    b = n.DequantizeLinear(n.value(n.random.integers(-900, 900, size=4).astype(np.int32)), n.value(np.float32(0.0003)))
    y = quantised(n, n.Relu(n.Conv(x, w, b, pads=[1, 0, 1, 1])), 0.05, -128, np.int8)
    return n.QuantizeLinear(n.GlobalAveragePool(y), n.value(np.float32(0.04)), n.value(np.int8(-100)))


@case("qlinear_conv_quantised", 13)
def _(n):
    x = n.QuantizeLinear(n.input(1, 2, 5, 6), n.value(np.float32(0.02)), n.value(np.uint8(120)))
    w = n.value(n.random.integers(0, 255, size=(3, 2, 2, 3)).astype(np.uint8))
    one = lambda v, t: n.value(t(v))
    b = n.value(n.random.integers(-500, 500, size=3).astype(np.int32))
    return n.QLinearConv(x, one(0.02, np.float32), one(120, np.uint8), w, one(0.01, np.float32), one(130, np.uint8), one(0.06, np.float32),
                         one(110, np.uint8), b)


def grid(n, x, scale, zero, dtype):
    """Quantised, and no conversion back: those who read it make their own, as exporters do."""
    return n.QuantizeLinear(x, n.value(np.float32(scale)), n.value(np.array(zero, dtype)))


def real(n, q, scale, zero, dtype):
    return n.DequantizeLinear(q, n.value(np.float32(scale)), n.value(np.array(zero, dtype)))


def weights(n, *shape, axis=0, per_channel=True):
    w = n.value(n.random.integers(-127, 128, size=shape).astype(np.int8))
    count = shape[axis]
    scales = n.random.uniform(0.004, 0.02, size=count).astype(np.float32)
    if not per_channel:
        return n.DequantizeLinear(w, n.value(scales[0]), n.value(np.int8(0))), scales[:1]
    return n.DequantizeLinear(w, n.value(scales), n.value(np.zeros(count, np.int8)), axis=axis), scales


def bias(n, count, units):
    units = np.broadcast_to(units, count).astype(np.float32)
    whole = n.value(n.random.integers(-4000, 4000, size=count).astype(np.int32))
    return n.DequantizeLinear(whole, n.value(units), n.value(np.zeros(count, np.int32)), axis=0)


@case("qdq_residual_quantised", 17)
def _(n):
    u8, s = np.uint8, np.float32(0.031)
    x = quantised(n, n.input(1, 3, 9, 7), s, 131, u8)
    w, scales = weights(n, 4, 3, 3, 2)
    a = quantised(n, n.Relu(n.Conv(x, w, bias(n, 4, scales * s), pads=[1, 0, 1, 1])), 0.05, 0, u8)
    w, scales = weights(n, 4, 1, 3, 3)
    b = n.Conv(a, w, bias(n, 4, scales * np.float32(0.05)), pads=[1, 1, 1, 1], group=4)
    b = quantised(n, b, 0.09, 120, u8)
    y = quantised(n, n.Relu(n.Add(a, b)), 0.07, 0, u8)
    y = quantised(n, n.MaxPool(y, kernel_shape=[3, 2], strides=[2, 1]), 0.07, 0, u8)
    y = quantised(n, n.Reshape(y, n.ints(1, -1)), 0.07, 0, u8)
    w, scales = weights(n, 5, 96, per_channel=False)
    y = quantised(n, n.Gemm(y, w, bias(n, 5, scales * np.float32(0.07)), transB=1), 0.3, 128, u8)
    return grid(n, n.Softmax(y, axis=1), 1 / 255, 0, u8)


@case("qdq_1d_quantised", 17)
def _(n):
    x = quantised(n, n.input(1, 4, 19), 0.027, 3, np.int8)
    w, scales = weights(n, 6, 4, 5)
    y = quantised(n, n.Conv(x, w, bias(n, 6, scales * np.float32(0.027)), strides=[2]), 0.11, -7, np.int8)
    y = quantised(n, n.Sigmoid(y), 1 / 256, -128, np.int8)
    y = quantised(n, n.Transpose(y, perm=[0, 2, 1]), 1 / 256, -128, np.int8)
    w, _ = weights(n, 6, 3, axis=1)
    return grid(n, n.MatMul(y, w), 0.02, 4, np.int8)


@case("qdq_joined_quantised", 17)
def _(n):
    x = quantised(n, n.input(1, 2, 5, 6), 0.03, -3, np.int8)
    z = quantised(n, n.input(1, 3, 5, 6), 0.02, 5, np.int8)
    y = quantised(n, n.Concat(x, z, axis=1), 0.033, 1, np.int8)
    half = n.DequantizeLinear(n.value(np.int8(50)), n.value(np.float32(0.01)), n.value(np.int8(0)))
    y = quantised(n, n.Mul(y, half), 0.017, 0, np.int8)
    y = quantised(n, n.Pad(y, n.ints(0, 0, 1, 0, 0, 0, 0, 2), n.value(np.float32(0.0))), 0.017, 0, np.int8)
    y = quantised(n, n.AveragePool(y, kernel_shape=[2, 3], strides=[1, 2]), 0.018, 2, np.int8)
    return grid(n, n.ReduceMean(y, axes=[2, 3], keepdims=0), 0.006, -10, np.int8)


@case("qdq_bytes_in_and_out_quantised", 17)
def _(n):
    x = real(n, n.input(2, 7, dtype=np.uint8, values=n.random.integers(0, 256, size=(2, 7))), 0.04, 99, np.uint8)
    w, scales = weights(n, 3, 7)
    y = n.Gemm(x, w, bias(n, 3, scales * np.float32(0.04)), transB=1)
    return grid(n, n.Relu(y), 0.02, 0, np.uint8)


@case("qdq_shared_result_quantised", 17)
def _(n):
    """Two conversions of one result, and an operator without a form on int8 between others."""
    x = quantised(n, n.input(1, 3, 4, 5), 0.03, 0, np.int8)
    w, scales = weights(n, 2, 3, 1, 2)
    y = n.Conv(x, w, bias(n, 2, scales * np.float32(0.03)))
    a, b = (quantised(n, y, 0.05, -9, np.int8) for _ in range(2))
    a = quantised(n, n.Softplus(a), 0.03, -128, np.int8)
    return grid(n, n.Sub(a, quantised(n, n.Erf(b), 0.008, 0, np.int8)), 0.03, -20, np.int8)


@case("qlinear_chain_quantised", 17)
def _(n):
    one = lambda v, t: n.value(t(v))
    x = n.QuantizeLinear(n.input(1, 2, 6, 5), one(0.02, np.float32), one(120, np.uint8))
    w = n.value(n.random.integers(-127, 128, size=(3, 2, 2, 3)).astype(np.int8))
    scales = n.value(np.array([0.01, 0.004, 0.007], np.float32))
    b = n.value(n.random.integers(-500, 500, size=3).astype(np.int32))
    y = n.QLinearConv(x, one(0.02, np.float32), one(120, np.uint8), w, scales, n.value(np.zeros(3, np.int8)), one(0.03, np.float32),
                      one(110, np.uint8), b)
    y = n.MaxPool(y, kernel_shape=[2, 1], strides=[2, 1])
    y = n.Reshape(y, n.ints(2, 9))
    m = n.value(n.random.integers(-127, 128, size=(9, 4)).astype(np.int8))
    return n.QLinearMatMul(y, one(0.03, np.float32), one(110, np.uint8), m, one(0.012, np.float32), one(0, np.int8), one(0.09, np.float32),
                           one(130, np.uint8))


@case("qoperators_quantised", 17)
def _(n):
    """ONNX Runtime's own operators on bytes."""
    own = lambda op: lambda *inputs, **attributes: getattr(n, op)(*inputs, domain="com.microsoft", **attributes)
    params = lambda scale, zero, t=np.uint8: [n.value(np.float32(scale)), n.value(t(zero))]
    x = n.QuantizeLinear(n.input(1, 4, 6, 5), *params(0.03, 128))
    z = n.QuantizeLinear(n.input(1, 4, 6, 5), *params(0.02, 20))
    at_x, at_z = params(0.03, 128), params(0.02, 20)
    window = dict(kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 0])
    flat = n.Reshape(x, n.ints(15, 8))
    w = n.value(n.random.integers(-127, 128, size=(8, 3)).astype(np.int8))
    scales = n.value(np.array([0.01, 0.02, 0.013], np.float32))
    c = n.value(n.random.integers(-400, 400, size=3).astype(np.int32))
    return (own("QLinearLeakyRelu")(x, *at_x, *params(0.02, 20), alpha=0.1),
            own("QLinearSigmoid")(x, *at_x, *params(1 / 255, 0)),
            own("QLinearMul")(x, *at_x, z, *at_z, *params(0.018, 110)),
            own("QLinearAdd")(x, *at_x, z, *at_z, *params(0.04, 90)),
            own("QLinearAveragePool")(x, *at_x, *params(0.032, 92), **window),
            own("QLinearAveragePool")(x, *at_x, *params(0.031, 127), count_include_pad=1, **window),
            own("QLinearConcat")(*params(0.04, 92), x, *at_x, z, *at_z, axis=1),
            own("QLinearGlobalAveragePool")(x, *at_x, *params(0.02, 100)),
            own("QGemm")(flat, *at_x, w, scales, n.value(np.zeros(3, np.int8)), c, *params(0.02, 130)),
            own("QLinearSoftmax")(flat, *at_x, *params(1 / 255, 0), axis=-1, opset=17))


@case("qgemm_real_result", 17)
def _(n):
    """Without a scale the result is real; conversions of that domain."""
    one = lambda v, t: n.value(t(v))
    x = n.QuantizeLinear(n.input(3, 5), one(0.03, np.float32), one(-4, np.int8), domain="com.microsoft")
    w = n.value(n.random.integers(-127, 128, size=(4, 5)).astype(np.int8))
    c = n.value(n.random.integers(-400, 400, size=4).astype(np.int32))
    y = n.QGemm(x, one(0.03, np.float32), one(-4, np.int8), w, n.value(np.array([0.02, 0.01, 0.005, 0.03], np.float32)),
                n.value(np.zeros(4, np.int8)), c, domain="com.microsoft", transB=1,
                alpha=1.5)
    z = n.DequantizeLinear(x, one(0.03, np.float32), one(-4, np.int8), domain="com.microsoft")
    return y, z
