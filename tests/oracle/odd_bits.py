"""Indices of 64 bits and weights of four, some of these with a scale for each block, for make_odd.py. Results are those of the same weights in eight
bits or as float32; of int8 layers they are LiteRT's own, too."""

import numpy as np

from tflite_builder import TYPES, Builder, random_input, reference, run, schema

RNG = np.random.default_rng(4)


def four_bits(b, values, **stated):
    """A constant of INT4: two numbers in a byte, the first in its lower half."""
    index = b.const(values, "int8", **stated)
    tensor = b.graph.tensors[index]
    tensor.type = schema.TensorType.INT4
    numbers = np.append(np.asarray(values).ravel() & 15, np.zeros(np.size(values) % 2, int))
    b.buffers[tensor.buffer].data = [int(low | high << 4) for low, high in numbers.reshape(-1, 2)]
    return index


NUMBERS = RNG.integers(-7, 8, (5, 12))


def fully_connected(weights):
    b = Builder()
    x, y = b.tensor((3, 7), "int8", scale=0.05, zero_point=3), b.tensor((3, 5), "int8", scale=0.1, zero_point=-4)
    w = weights(b, NUMBERS[:, :7], scale=[0.02, 0.05, 0.01, 0.04, 0.03])
    b.op("FULLY_CONNECTED", [x, w, b.const(np.arange(5) * 100 - 170, "int32")], [y], "FullyConnectedOptions", version=5)
    return b.finish([x], [y])


def convolution(weights, depthwise=False):
    b = Builder()
    x = b.tensor((1, 5, 4, 3), "int8", scale=0.05, zero_point=3)
    y = b.tensor((1, 4, 3, 3), "int8", scale=0.1, zero_point=-4)
    scale = [0.02, 0.05, 0.03]
    shape = (1, 2, 2, 3) if depthwise else (3, 2, 2, 3)
    w = weights(b, np.resize(NUMBERS, shape), scale=scale, axis=3 if depthwise else 0)
    bias = b.const(np.arange(3) * 300 - 170, "int32")
    more = {"depthMultiplier": 1} if depthwise else {}
    name, options = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
    b.op(name, [x, w, bias], [y], options, version=6 if depthwise else 7, padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1, **more)
    return b.finish([x], [y])


SCALES = (RNG.integers(1, 9, (5, 3)) / 64).astype(np.float16)


def blocks(kind, size=4, scales=SCALES, change=None, reads_bytes=False):
    """A layer of float32 between conversions: with scales of blocks in float16 or float32, or with what they stand for."""
    b = Builder()
    x, y = b.tensor((2, 12), "int8", scale=0.05, zero_point=3), b.tensor((2, 5), "int8", scale=0.07, zero_point=-4)
    real, out = b.tensor((2, 12), "float32"), b.tensor((2, 5), "float32")
    b.op("DEQUANTIZE", [x], [real], "DequantizeOptions", version=2)
    if kind == "real":
        w = b.const(NUMBERS * np.repeat(SCALES.astype(np.float32), 4, 1), "float32")
    else:
        w = four_bits(b, NUMBERS)
        details = schema.BlockwiseQuantizationT()
        details.scales, details.zeroPoints, details.blockSize = b.const(scales, kind), 0, size
        quant = schema.QuantizationParametersT()
        quant.detailsType, quant.details = schema.QuantizationDetails.BlockwiseQuantization, details
        b.graph.tensors[w].quantization = quant
        if change:
            change(b, details, w)
    read, written = (x, y) if reads_bytes else (real, out)
    b.op("FULLY_CONNECTED", [read, w, b.const(np.arange(5) / 8, "float32")], [written], "FullyConnectedOptions", version=5)
    if not reads_bytes:
        b.op("QUANTIZE", [out], [y], "QuantizeOptions", version=2)
    return b.finish([x], [y])


def largest(kind):
    """Of which of five rows each column is largest, and that row's number of a table: the indices of a converter's default type, or of the other."""
    b = Builder()
    x = b.tensor((1, 5, 4), "int8", scale=0.05, zero_point=3)
    index, flat = b.tensor((1, 4), kind), b.tensor((4,), kind)
    y = b.tensor((4,), "int8", scale=0.05, zero_point=3)
    b.op("ARG_MAX", [x, b.const([1], "int32")], [index], "ArgMaxOptions", version=2, outputType=TYPES[kind])
    b.op("RESHAPE", [index, b.const([4], "int32")], [flat], "ReshapeOptions", newShape=[4])
    table = b.const(np.arange(5) * 20 - 50, "int8", scale=0.05, zero_point=3)
    b.op("GATHER", [table, flat], [y], "GatherOptions", axis=0, version=2)
    return b.finish([x], [y])


def write(odd):
    odd("arg_max_int64", largest("int64"), warning=["int64 tensors that are computed are int32 on the device"], truth=largest("int32"))
    layers = {"fully_connected": fully_connected, "conv": convolution, "depthwise": lambda weights: convolution(weights, True)}
    for name, layer in layers.items():
        file, eight = layer(four_bits), layer(lambda b, values, **stated: b.const(values, "int8", **stated))
        x = random_input(np.random.default_rng(3), schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(file, 0)), 0, 2)
        assert np.array_equal(reference(file, [x])[0], run(eight, [x])[0]), name
        odd(f"four_bits_{name}", file, warning=[], truth=eight)
    odd("blocks_float16", blocks("float16"), warning=["1 hybrid operators"], truth=blocks("real"))
    odd("blocks_float32", blocks("float32"), warning=["1 hybrid operators"], truth=blocks("real"))
    odd("blocks_in_part", blocks("float16", size=5), error=["blocks of 5 in rows of 12; expected whole blocks"])
    odd("blocks_scales", blocks("float32", scales=SCALES[:, :2]), error=["scales of shape [5, 2]; expected [5, 3]"])
    odd("blocks_scale", blocks("float32", scales=-SCALES), error=["scale -", "expected a finite scale that is not below zero"])
    odd("blocks_nowhere", blocks("float32", change=lambda b, of, w: setattr(of, "scales", 99)), error=["the scales of its blocks are no tensor"])
    odd("blocks_computed", blocks("float32", change=lambda b, of, w: setattr(of, "scales", b.tensor((5, 3), "float32"))),
        error=["the scales of its blocks are no constant"])
    odd("blocks_zero_points", blocks("float32", change=lambda b, of, w: setattr(of, "zeroPoints", b.const(np.ones((5, 3)), "int8"))),
        error=["blocks with zero points; expected zero points of 0"])

    odd("blocks_int8", blocks("float32", reads_bytes=True), error=["weights with a scale for each block", "fully connected layers of float32 activations"])

    def in_row(b, of, w):
        b.graph.tensors[w].shape = [60]

    odd("blocks_of_a_line", blocks("float32", change=in_row), error=["scales of blocks for shape [60]; expected two axes"])
