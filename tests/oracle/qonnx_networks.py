"""Networks of QONNX's Quant for make_onnx.py; the right values are those of the package qonnx (`pip install qonnx`), which computes in f32."""

import numpy as np

CASES = {}
DOMAIN = "qonnx.custom_op.general"


def case(name, opset):
    def add(function):
        CASES[name] = (function, opset)
        return function

    return add


def expected(model, feeds):
    """The results of a model by the package qonnx."""
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    # Shapes that were inferred of values stand there twice where the values are outputs.
    model = type(model).FromString(model.SerializeToString())
    del model.graph.value_info[:]
    found = execute_onnx(ModelWrapper(model).transform(InferShapes()), feeds)
    return [found[output.name] for output in model.graph.output]


def quant(n, x, scale, bits, zero=0.0, **attributes):
    attributes = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes}
    constants = [n.value(np.asarray(value, np.float32)) for value in (scale, zero, bits)]
    return n.Quant(x, *constants, domain=DOMAIN, **attributes)


def per_channel(n, count, rank=4):
    return n.random.uniform(0.02, 0.09, size=(count,) + (1,) * (rank - 1))


@case("qonnx_conv_quantised", 13)
def _(n):
    x = quant(n, n.input(1, 3, 6, 5), 0.031, 8)
    scales = per_channel(n, 4)
    w = quant(n, n.const(4, 3, 3, 2), scales, 4, narrow=1)
    # In the units of the products, as Brevitas writes it.
    b = quant(n, n.const(4), 0.031 * scales.reshape(4), 16)
    x = quant(n, n.Relu(n.Conv(x, w, b, pads=[1, 0, 1, 1])), 0.0131, 8)
    w = quant(n, n.const(5, 4, 1, 3), per_channel(n, 5), 3, narrow=1)
    few = quant(n, n.Relu(n.Conv(x, w)), 0.21, 4, signed=0)
    w = quant(n, n.const(7, 5 * 6 * 4), 0.11, 2, narrow=1)
    flat = quant(n, n.Gemm(n.Flatten(x), w, transB=1), 0.0713, 8)
    # As integers, of which one may be a step away: sums are requantised as TensorFlow Lite does.
    stored = lambda x, scale, zero: n.QuantizeLinear(x, n.value(np.float32(scale)), n.value(zero))
    return stored(few, 0.21, np.uint8(0)), stored(flat, 0.0713, np.int8(0))


@case("qonnx_grids_quantised", 13)
def _(n):
    x = n.input(1, 3, 4, 5)
    results = [
        quant(n, x, 0.1, 5, zero=3.0),
        quant(n, x, 0.07, 6, zero=17.0, signed=0, narrow=1),
        quant(n, x, n.random.uniform(0.02, 0.09, size=(1, 3, 1, 1)), 7),
        quant(n, x, 0.23, 4, rounding_mode="FLOOR"),
        quant(n, x, 0.19, 3, rounding_mode="CEIL", signed=0),
    ]
    return [n.Relu(n.Mul(result, n.value(np.float32(0.77)))) for result in results]
