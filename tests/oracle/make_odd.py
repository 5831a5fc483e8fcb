"""Small .tflite files with one mistake each, and what the importer has to say about it.

    python tests/oracle/make_odd.py

writes tests/models/tflite_odd/NAME.tflite and expected.json: NAME -> {"error": words that the message holds}, or {"warning": words,
"input": int8 values, "output": what TensorFlow Lite Micro makes of them}.
"""

import json
import pathlib

import flatbuffers
import numpy as np

import odd_bits
import odd_control
import odd_detections
from sparse import sparse
from tflite_builder import Builder, random_input, run, schema

OUT = pathlib.Path(__file__).resolve().parent.parent / "models" / "tflite_odd"
EXPECTED = {}


def odd(name, file, error=None, warning=None, truth=None):
    """`truth` is a file that means the same, where TensorFlow Lite Micro cannot run this one."""
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.tflite").write_bytes(file)
    EXPECTED[name] = {"error": error} if error else {"warning": warning, **computed(truth or file)}


def changed(name, of, change, error):
    """A file of tflite_ops with a change."""
    model = (OUT.parent / "tflite_ops" / f"{of}.tflite").read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(model, 0))
    change(model)
    file = flatbuffers.Builder()
    file.Finish(model.Pack(file), b"TFL3")
    odd(name, bytes(file.Output()), error=error)


def computed(file):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(file, 0))
    (x,) = [random_input(np.random.default_rng(7), model, i, 1) for i in range(len(model.subgraphs[0].inputs))]
    (y,) = run(file, [x])
    return {"input": x.ravel().tolist(), "output": y.ravel().tolist()}


def depthwise(multiplier, scale=0.01, rows=3):
    """A depthwise convolution of [1, 5, 4, 2] with kernels of 3 columns."""
    b = Builder()
    x = b.tensor((1, 5, 4, 2), "int8", scale=0.05, zero_point=3)
    w = b.const(np.arange(rows * 12).reshape(1, rows, 3, 4) - 9, "int8", scale=scale, axis=3)
    y = b.tensor((1, 6 - rows, 2, 4), "int8", scale=0.1, zero_point=1)
    b.op("DEPTHWISE_CONV_2D", [x, w, b.const(np.arange(4) * 100, "int32")], [y], "DepthwiseConv2DOptions", version=3, padding=1, strideH=1, strideW=1,
         dilationHFactor=1, dilationWFactor=1, depthMultiplier=multiplier)
    return b, [x], [y]


def transpose_conv():
    """A transposed convolution of [1, 3, 2, 2] to [1, 7, 5, 3]."""
    b = Builder()
    shape = b.const([1, 7, 5, 3], "int32")
    w = b.const(np.arange(54).reshape(3, 3, 3, 2) - 27, "int8", scale=[0.01, 0.02, 0.03], axis=0)
    x = b.tensor((1, 3, 2, 2), "int8", scale=0.05, zero_point=3)
    y = b.tensor((1, 7, 5, 3), "int8", scale=0.1, zero_point=1)
    b.op("TRANSPOSE_CONV", [shape, w, x, b.const(np.arange(3) * 100, "int32")], [y], "TransposeConvOptions", version=3, padding=1, strideH=2, strideW=2)
    return b, [x], [y]


def stored(weights, dtype, **quant):
    """A float32 convolution between int8 tensors, its weights stored as `dtype`."""
    b = Builder()
    x, xf = b.tensor((1, 4, 5, 2), "int8", scale=0.05, zero_point=3), b.tensor((1, 4, 5, 2), "float32")
    w = b.const(weights.astype(np.float32 if dtype == np.float16 else dtype), **quant)
    if dtype == np.float16:
        tensor, wide = b.graph.tensors[w], b.tensor(weights.shape, "float32")
        tensor.type = schema.TensorType.FLOAT16
        b.buffers[tensor.buffer].data = list(weights.tobytes())
        b.op("DEQUANTIZE", [w], [wide], "DequantizeOptions")
        w = wide
    yf, y = b.tensor((1, 3, 3, 3), "float32"), b.tensor((1, 3, 3, 3), "int8", scale=0.07, zero_point=-5)
    b.op("DEQUANTIZE", [x], [xf], "DequantizeOptions")
    bias = b.const(np.float32([0.3, -1.2, 0.05]))
    b.op("CONV_2D", [xf, w, bias], [yf], "Conv2DOptions", version=3, padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    b.op("QUANTIZE", [yf], [y], "QuantizeOptions")
    return b.finish([x], [y])


def densified(name, change, error):
    """Sparse weights of 4 rows of 6 in blocks of 2, of which the parameters or the tensors are changed."""
    b = Builder()
    values = np.zeros((4, 6), np.float32)
    values[1, 2:4], values[3] = 2, 3
    x, y, w = b.tensor((2, 6), "float32"), b.tensor((2, 4), "float32"), b.tensor((4, 6), "float32")
    stored = sparse(b, values, "float32", ([0, 1, 2], [1], [2], ["dense", "csr", "dense"], "int32"))
    b.op("DENSIFY", [stored], [w], "DensifyOptions")
    b.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions")
    change(b, b.graph.tensors[stored].sparsity)
    odd(name, b.finish([x], [y]), error=[*error])


def sparse_weights():
    """One contradiction each."""
    def put(field, value, level=1):
        return lambda b, s: setattr(s.dimMetadata[level], field, value)

    def listed(field, values):
        return lambda b, s: setattr(getattr(s.dimMetadata[1], field), "values", np.array(values, np.int32))

    def cut(b, s):
        b.buffers[-1].data = b.buffers[-1].data[:-4]

    def computed(b, s):
        b.graph.operators[0].inputs = [0]
        b.graph.tensors[0].shape = [4, 6]

    indices = "arrayIndices"
    densified("sparse_segments", listed("arraySegments", [0, 0, 1, 1, 5]), ["`t3`", "level 1", "4 indices"])
    densified("sparse_segments_missing", listed("arraySegments", [0, 0, 1, 4]), ["level 1", "no part 3"])
    densified("sparse_segments_more", listed("arraySegments", [0, 0, 1, 1, 4, 4]), ["6 segments", "5 segments"])
    densified("sparse_segments_fewer", listed("arraySegments", [0, 0, 1, 1, 3]), ["5 segments for 4 indices"])
    densified("sparse_index", listed(indices, [1, 0, 1, 3]), ["has the index 3", "below 3"])
    densified("sparse_indices_twice", listed(indices, [1, 0, 1, 1]), ["has the index 1", "from 2"])
    densified("sparse_index_negative", listed(indices, [-1, 0, 1, 2]), ["has the index -1", "below 3"])
    densified("sparse_values", cut, ["28 bytes of values", "32 for 8 values"])
    densified("sparse_extent", put("denseSize", 5, 0), ["level 0 of extent 5", "4, for shape [4, 6]"])
    densified("sparse_block", put("denseSize", 4, 2), ["blocks of 4 along axis 1"])
    densified("sparse_no_block", put("denseSize", 0, 2), ["a level without extent"])
    densified("sparse_type", put("format", 2), ["level 1 of type 2"])
    densified("sparse_index_type", put("arrayIndicesType", 0), ["indices of type 0"])
    densified("sparse_no_indices", put("arrayIndices", None), ["without segments or indices"])
    densified("sparse_order", lambda b, s: setattr(s, "traversalOrder", [0, 1, 1]), ["level 2 in the order is dimension 1", "each below 3 once"])
    densified("sparse_levels", lambda b, s: setattr(s, "dimMetadata", s.dimMetadata[:2]), ["2 levels", "an order of 3"])
    densified("sparse_block_axis", lambda b, s: setattr(s, "blockMap", [7]), ["along axis 7"])
    def huge(b, s):
        for tensor in (b.graph.tensors[2], b.graph.tensors[3]):
            tensor.shape = [1 << 14, 1 << 14]
        for tensor in (b.graph.tensors[0], b.graph.tensors[1]):
            tensor.shape = [2, 1 << 14]
        s.traversalOrder, s.blockMap, s.dimMetadata = [0, 1], [], [s.dimMetadata[1]] * 2
        s.dimMetadata[0].arraySegments.values = s.dimMetadata[0].arrayIndices.values = np.array([0, 0], np.int32)

    densified("sparse_huge", huge, ["constant of shape [16384, 16384] (FLOAT32), 1073741824 bytes", "128 times"])
    densified("densify_shape", lambda b, s: setattr(b.graph.tensors[2], "shape", [6, 4]), ["FLOAT32 [6, 4]", "FLOAT32 [4, 6]"])
    densified("densify_computed", computed, ["`t0` has no data"])

    def written(b, s):
        b.graph.operators[0].outputs = [0]
        b.graph.tensors[0].shape = [4, 6]

    densified("densify_written", written, ["it writes `t0`", "has a value already"])
    b = Builder()
    stored = sparse(b, np.eye(3, 5, dtype=np.float32), "float32", ([0, 1], [], [], ["dense", "csr"], "int32"))
    x, y = b.tensor((2, 6), "float32"), b.tensor((2, 6), "float32")
    b.op("RELU", [x], [y])
    odd("sparse_output", b.finish([x], [y, stored]), error=["is stored sparsely", "no operator reads it"])


def shaped(name, op, indices, result, error, options=None, **fields):
    """An operator on a tensor of 3 rows of 5, or on one value, and constant indices."""
    b = Builder()
    x = b.tensor((3, 5), "int8", scale=0.05, zero_point=3)
    y = b.tensor(result, "int8", scale=0.05, zero_point=3)
    constants = [b.const(values, "int32") for values in indices]
    one = b.const(np.int8([7]).reshape(()), "int8", scale=0.05, zero_point=3)
    b.op(op, [constants[0], one] if op == "FILL" else [x, *constants], [y], options, **fields)
    odd(name, b.finish([x], [y]), error=error)


def indices():
    """Indices and shapes that contradict the operand or the result."""
    for name, mask in {"ellipsis": {"ellipsisMask": 2}, "new_axis": {"newAxisMask": 1}}.items():
        shaped(f"strided_slice_{name}", "STRIDED_SLICE", [[0, 1], [3, 4], [1, 1]], (3, 3), ["ellipsis or new-axis"], "StridedSliceOptions", **mask)
    slices = {
        "begins": ([0, 1, 0], [3, 4, 1], [1, 1, 1]), "ends": ([0, 1], [3], [1, 1]), "strides": ([0, 1], [3, 4], [1]), "stride_zero": ([0, 1], [3, 4], [1, 0]),
        "stride_least": ([0, 1], [3, 4], [1, -(1 << 31)]),
    }
    for name, values in slices.items():
        said = "slice [" if name != "stride_least" else "at least one element"
        shaped(f"strided_slice_{name}", "STRIDED_SLICE", values, (3, 3), [said, "of shape [3, 5]"], "StridedSliceOptions")
    for name, values in {"empty": ([0, 4], [3, 4], [1, 1]), "backwards": ([0, 1], [3, 4], [1, -1]), "turned": ([0, 4], [3, 1], [1, 1])}.items():
        shaped(f"strided_slice_{name}", "STRIDED_SLICE", values, (3, 3), ["at least one element on each axis"], "StridedSliceOptions")
    for name, index in {"beyond": 5, "before": -6}.items():
        shaped(f"strided_slice_shrink_{name}", "STRIDED_SLICE", [[0, index], [3, index + 1], [1, 1]], (3,), ["at least one element on each axis"],
               "StridedSliceOptions", shrinkAxisMask=2)
    slices = {
        "begins": ([0], [3, 3]), "sizes": ([0, 1], [3]), "negative": ([0, -1], [3, 1]), "beyond": ([0, 5], [3, -1]), "size": ([0, 2], [3, 4]),
        "size_least": ([0, 2], [3, -2]),
    }
    for name, values in slices.items():
        shaped(f"slice_{name}", "SLICE", values, (3, 3), [f"first indices {list(values[0])} and sizes {list(values[1])}", "of shape [3, 5]"], "SliceOptions")
    for op, options in {"BROADCAST_TO": "BroadcastToOptions", "FILL": "FillOptions"}.items():
        for name, result in {"first": (4, 3, 5), "last": (2, 3, 4), "rank": (3, 5)}.items():
            shaped(f"{op.lower()}_{name}", op, [[2, 3, 5]], result, [f"a result of {list(result)}", "expected [2, 3, 5]"], options)


def lstm(dtype="int8"):
    """Three cells of four features, five times: tensors 0 input, 1 to 8 weights, 9 to 12 biases, 13 state, 14 cell, 15 result."""
    b = Builder()
    x = b.tensor((1, 5, 4), dtype, scale=0.03, zero_point=3)
    weights = [b.const(np.arange(3 * n).reshape(3, n) - 5, "int8", scale=0.01) for n in [4] * 4 + [3] * 4]
    biases = [b.const(np.arange(3), "int32" if dtype == "int8" else "int64", scale=0.0002) for _ in range(4)]
    hidden = b.tensor((1, 3), dtype, variable=True, scale=0.008, zero_point=-4)
    cell = b.tensor((1, 3), "int16", variable=True, scale=2.0**-11)
    y = b.tensor((1, 5, 3), dtype, scale=0.008, zero_point=-4)
    b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1], [y],
         "UnidirectionalSequenceLSTMOptions", version=3, fusedActivationFunction=4)
    return b, [x], [y]


def lstms():
    """Tensors and options that an LSTM may not have."""
    def quantised(tensor, field, value):
        return lambda m: setattr(m.subgraphs[0].tensors[tensor].quantization, field, [value])

    def operand(position, tensor):
        def edit(m):
            operator = m.subgraphs[0].operators[0]
            operator.inputs = [tensor if at == position else index for at, index in enumerate(operator.inputs)]
        return edit

    def shape(tensor, value):
        return lambda m: setattr(m.subgraphs[0].tensors[tensor], "shape", value)

    option = lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "fusedActivationFunction", 1)
    for name, edit, error in [
        ("cell_zero_point", quantised(14, "zeroPoint", 1), ["cell state", "zero point 1"]),
        ("cell_scale", quantised(14, "scale", 0.0006), ["a cell state of scale 0.0006", "a power of two"]),
        ("cell_scale_far", quantised(14, "scale", 16.0), ["a cell state of scale 16"]),
        ("weights_zero_point", quantised(2, "zeroPoint", 3), ["weights with zero point 3"]),
        ("recurrent_zero_point", quantised(7, "zeroPoint", 3), ["weights with zero point 3"]),
        ("peephole", operand(10, 1), ["peephole weights"]),
        ("projection", operand(17, 1), ["projection weights"]),
        ("normalisation", operand(20, 9), ["layer normalisation weights"]),
        ("activation", option, ["an activation other than TANH"]),
        ("state_axes", shape(13, [1, 1, 3]), ["input [1, 5, 4] and state [1, 1, 3]"]),
        ("cell_shape", shape(14, [1, 4]), ["weights that do not fit"]),
        ("weights_shape", shape(3, [4, 3]), ["weights that do not fit"]),
        ("recurrent_shape", operand(6, 2), ["weights that do not fit"]),
        ("result_shape", shape(15, [5, 1, 3]), ["weights that do not fit"]),
        ("no_variable", lambda m: setattr(m.subgraphs[0].tensors[13], "isVariable", False), ["t13"]),
        ("cell_type", lambda m: setattr(m.subgraphs[0].tensors[14], "type", schema.TensorType.INT8), ["t14", "int8", "int16"]),
        ("bias_type", lambda m: setattr(m.subgraphs[0].tensors[10], "type", schema.TensorType.FLOAT32), ["t10", "f32", "int32"]),
    ]:
        odd(f"lstm_{name}", edited(lstm(), edit), error=error)

    def hidden_scale(m):
        for tensor in [13, 15]:
            quantised(tensor, "scale", 1e-9)(m)

    odd("lstm_hidden_scale", edited(lstm(), hidden_scale), error=["a hidden state of scale 0.000000001", "below 0.5"])
    odd("lstm_wide_zero_point", edited(lstm("int16"), lambda m: None), error=["zero point"])


def hybrid_svdf(time="float32", state="float32", computed=False):
    b = Builder()
    x, y = b.tensor((1, 4), "float32"), b.tensor((1, 2), "float32")
    w = b.tensor((2, 4), "int8", scale=0.01) if computed else b.const(np.ones((2, 4)), "int8", scale=0.01)
    b.op("SVDF", [x, w, b.const(np.ones((2, 3)), time, **({} if time == "float32" else dict(scale=0.01))), -1,
                  b.tensor((1, 6), state, variable=True)], [y], "SVDFOptions", rank=1)
    return b.finish([x, w] if computed else [x], [y])


def quantised_bias(scale, zero_point, axis, bias=2):
    """An edit: the quantisation of the bias, operand `bias` of the first operator."""
    def edit(model):
        graph = model.subgraphs[0]
        quant = schema.QuantizationParametersT()
        quant.scale, quant.zeroPoint, quant.quantizedDimension = scale, zero_point, axis
        graph.tensors[graph.operators[0].inputs[bias]].quantization = quant
    return edit


def conv(scale=0.01, axis=0, bias_type="int32", x="int8", w="int8", y="int8", quantised=True, version=3, variable=False, k=2):
    """A convolution of [1, 4, 4, k] with three 1 x 1 kernels."""
    b = Builder()
    q = dict(scale=0.05, zero_point=3) if quantised and x == "int8" else {}
    xi = b.tensor((1, 4, 4, k), x, **q)
    wi = b.const(np.arange(3 * k).reshape(3, 1, 1, k), w, **(dict(scale=scale, axis=axis) if w == "int8" else {}))
    bi = b.const(np.arange(3), bias_type if x == "int8" else "float32")
    yi = b.tensor((1, 4, 4, 3), y, **(dict(scale=0.1, zero_point=1) if quantised and y == "int8" else {}))
    b.op("CONV_2D", [xi, wi, bi], [yi], "Conv2DOptions", version=version, padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    return b, [xi], [yi]


def edited(make, edit):
    """The file of `make`, with `edit` applied to the model object before it is packed."""
    import flatbuffers

    b, ins, outs = make
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(b.finish(ins, outs), 0))
    edit(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def plain(make):
    b, ins, outs = make
    return b.finish(ins, outs)


def unary(op, dtype="int8", options=None, version=1, **fields):
    b = Builder()
    q = dict(scale=0.05, zero_point=3) if dtype == "int8" else {}
    x, y = b.tensor((1, 4), dtype, **q), b.tensor((1, 4), dtype, **q)
    b.op(op, [x], [y], options, version=version, **fields)
    return b, [x], [y]


def max_pool(scale, zero_point):
    b = Builder()
    x, y = b.tensor((1, 4, 4, 2), "int8", scale=0.05, zero_point=3), b.tensor((1, 2, 2, 2), "int8", scale=scale, zero_point=zero_point)
    b.op("MAX_POOL_2D", [x], [y], "Pool2DOptions", padding=1, strideH=2, strideW=2, filterHeight=2, filterWidth=2)
    return b, [x], [y]


def legacy():
    """uint8 that is not converted: each network computes with it somewhere."""
    q = dict(scale=0.05, zero_point=121)

    def byte(b, shape, **quant):
        return b.tensor(shape, "uint8", **(quant or q))

    def conv(error, name, dtype="uint8", computed=False, scale_in=0.05, **weights):
        b = Builder()
        x, shape = byte(b, (1, 7, 8, 2), scale=scale_in, zero_point=9), (2, 3, 2, 2)
        quant = {**dict(scale=0.01, zero_point=100), **weights}
        w = b.tensor(shape, dtype, **quant) if computed else b.const(np.arange(np.prod(shape)).reshape(shape) * 10, dtype, **quant)
        y = byte(b, (1, 5, 7, 2))
        b.op("CONV_2D", [x, w, b.const(np.arange(2), "int32")], [y], "Conv2DOptions", padding=1, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
        odd(f"legacy_{name}", b.finish([x, w] if computed else [x], [y]), error=error)

    conv(["t1", "INT8", "beside the uint8 `t0`"], "weights_int8", dtype="int8")
    conv(["2 scales of the uint8 weights `t1`", "expected one"], "weights_scales", scale=[0.01, 0.02])
    conv(["the scales 0.000", "`t0`", "`t1`", "normal float32"], "scale_product", scale_in=1e-30, scale=1e-30)
    conv(["weights that are computed at run time"], "weights_computed", computed=True)
    conv(["tensor 1 `t1`", "zero point 256", "0 to 255"], "zero_point", zero_point=256)

    b = Builder()
    x, y = byte(b, (1, 9, 9, 2)), byte(b, (1, 5, 7, 2))
    w = b.const(np.arange(12).reshape(1, 3, 2, 2) * 20, "uint8", scale=0.01, zero_point=190)
    b.op("DEPTHWISE_CONV_2D", [x, w, b.const(np.arange(2), "int32")], [y], "DepthwiseConv2DOptions", padding=1, strideH=1, strideW=1, depthMultiplier=1,
         dilationHFactor=2, dilationWFactor=2)
    odd("legacy_dilated", b.finish([x], [y]), error=["2 groups", "dilated by [2, 2]", "-128 to 127 of their zero point"])

    for op, options in [("DIV", "DivOptions"), ("CAST", "CastOptions")]:
        b = Builder()
        x, t = byte(b, (1, 4, 3, 2)), byte(b, (1, 4, 3, 2))
        b.op("RELU", [x], [t])
        y = byte(b, (1, 4, 3, 2)) if op == "DIV" else b.tensor((1, 4, 3, 2), "float32")
        b.op(op, [t, x] if op == "DIV" else [t], [y], options)
        odd(f"legacy_{op.lower()}", b.finish([x], [y]), error=[op, "uint8 numbers, such as `t1`", "DEQUANTIZE and QUANTIZE"])


def main():
    t = lambda model, i: model.subgraphs[0].tensors[i]
    odd("dimension_out_of_range", plain(conv(axis=7)), warning=["t1", "quantised dimension 7", "ignored"])
    odd("negative_dimension", plain(conv(axis=-4)), warning=["t1", "quantised dimension -4", "ignored"])
    odd("channel_count", plain(conv(scale=[0.1, 0.2])), error=["t1", "2 scales along dimension 0", "[3, 1, 1, 2]"])
    odd("channels_out_of_range", plain(conv(scale=[0.1, 0.2, 0.3], axis=5)), error=["t1", "3 scales along dimension 5"])
    odd("infinite_scale", plain(conv(scale=float("inf"))), error=["t1", "scale inf"])
    odd("no_quantisation", plain(conv(quantised=False)), error=["t0", "no quantisation", "full integer quantisation"])
    odd("hybrid_svdf_computed", hybrid_svdf(computed=True), error=["hybrid operator", "t0", "`t2`", "SVDF"])
    odd("hybrid_svdf_time", hybrid_svdf(time="int16"), error=["SVDF", "`t3` is int16", "expected f32"])
    odd("hybrid_svdf_state", hybrid_svdf(state="int8"), error=["SVDF", "`t4` is int8", "expected f32"])
    weights = np.random.default_rng(5).normal(0, 0.7, (3, 2, 3, 2)).astype(np.float16)
    odd("float16_weights", stored(weights, np.float16), warning=["1 float16 tensors"], truth=stored(weights, np.float32))
    steps = np.random.default_rng(6).integers(-128, 128, (3, 2, 3, 2)).astype(np.int8)
    for name, scale, axis in [("hybrid", 0.013, 0), ("hybrid_channels", [0.013, 0.02, 0.004], 0), ("hybrid_other_axis", [0.013, 0.02, 0.004], 2)]:
        shape = [1] * 4
        shape[axis] = -1
        real = steps.astype(np.float32) * np.broadcast_to(np.float32(scale), 3).reshape(shape)
        odd(name, stored(steps, np.int8, scale=scale, axis=axis), warning=["1 hybrid operators"], truth=stored(real, np.float32))
    odd("bias_type", plain(conv(bias_type="int16")), error=["t2", "int16", "int32"])
    odd("operator_version", plain(conv(version=99)), error=["CONV_2D", "version 99", "at most 8"])
    odd("schema_version", edited(conv(), lambda m: setattr(m, "version", 2)), error=["schema version 2", "expected 3"])
    odd("zero_points", edited(conv(scale=[0.1, 0.2, 0.3]), lambda m: setattr(t(m, 1).quantization, "zeroPoint", [0, 0])),
        warning=["t1", "2 zero points for 3 scales", "the first counts"])
    odd("zero_point_of_64_bits", edited(conv(), lambda m: setattr(t(m, 1).quantization, "zeroPoint", [1 << 40])),
        error=["t1", "zero point 1099511627776", "-128 to 127"])
    odd("scales_of_an_activation", edited(conv(), lambda m: (setattr(t(m, 3).quantization, "scale", [0.1, 0.2]),
                                                           setattr(t(m, 3).quantization, "zeroPoint", [1, 2]))),
        warning=["t3", "2 scales", "the first counts"])
    # TensorFlow Lite Micro never looks at a bias's quantisation, nor at its axes.
    for name, (scale, zero_point, axis) in {
        "axis": ([5e-4, 1e-3, 15e-4], [0, 0, 0], 3), "negative_axis": ([5e-4, 1e-3, 15e-4], [0, 0, 0], -1), "count": ([5e-4, 1e-3], [0], 0),
        "zero_scale": ([0.0, 1e-3, 15e-4], [0, 0, 0], 0), "zero_point": ([5e-4], [1 << 40], 0), "no_zero_point": ([5e-4], [], 0),
    }.items():
        odd(f"bias_{name}", edited(conv(scale=[0.01, 0.02, 0.03]), quantised_bias(scale, zero_point, axis)), warning=[])
        odd(f"bias_{name}_depthwise", edited(depthwise(2), quantised_bias(scale, zero_point, axis)), warning=[])
        odd(f"bias_{name}_transpose", edited(transpose_conv(), quantised_bias(scale, zero_point, axis, 3)), warning=[])
    odd("bias_shape", edited(conv(), lambda m: setattr(t(m, 2), "shape", [1, 1, 1, 3])), warning=[])
    # Weights whose scales are along another axis than the outputs, of the same length.
    odd("weights_axis", edited(conv(scale=[0.01, 0.02, 0.03], k=3), lambda m: setattr(t(m, 1).quantization, "quantizedDimension", 3)), warning=[])
    odd("depthwise_axis", edited(depthwise(2, [0.01, 0.02, 0.03, 0.04], 4), lambda m: setattr(t(m, 1).quantization, "quantizedDimension", 1)), warning=[])
    odd("weights_axis_count", edited(conv(scale=[0.01, 0.02], axis=3), lambda m: None), error=["t1", "2 scales of weights for 3 outputs"])
    odd("zero_point_range", edited(conv(), lambda m: setattr(t(m, 0).quantization, "zeroPoint", [200])), error=["t0", "zero point 200", "-128 to 127"])
    odd("scale_without_zero_point", edited(unary("RESHAPE"), lambda m: setattr(t(m, 0).quantization, "zeroPoint", [])),
        warning=["t0", "no zero point"])
    odd("depth_multiplier", plain(depthwise(1)), error=["t2", "depth multiplier 1", "2 channels", "expected depth multiplier 2"])

    pool = lambda scale, zero_point: plain(max_pool(scale, zero_point))
    odd("pool_scales", pool(0.06, 3), error=["t1", "MAX_POOL_2D", "different scales", "QUANTIZE"])
    odd("pool_zero_points", pool(0.05, 4), error=["t1", "different scales"])
    odd("pool_scales_close", pool(0.0500005, 3), warning=["t1", "scales differ by", "stored values are pooled"])
    odd("tensor_index", edited(conv(), lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [0, 99, 2])), error=["operator 0", "tensor 99", "0 to 3"])
    odd("output_index", edited(conv(), lambda m: setattr(m.subgraphs[0], "outputs", [-7])), error=["tensor -7"])
    odd("buffer_index", edited(conv(), lambda m: setattr(t(m, 1), "buffer", 77)), error=["tensor 1", "buffer 77"])
    odd("operator_code", edited(conv(), lambda m: setattr(m.subgraphs[0].operators[0], "opcodeIndex", 5)), error=["operator code 5"])
    odd("buffer_length", edited(conv(), lambda m: setattr(m.buffers[1], "data", [1, 2, 3])), error=["t1", "3 bytes", "expected 6"])
    odd("empty_shape", edited(conv(), lambda m: setattr(t(m, 0), "shape", [0, 4, 4, 2])), error=["t0", "[0, 4, 4, 2]", "above zero"])
    odd("huge_shape", edited(conv(), lambda m: setattr(t(m, 0), "shape", [1, 1 << 20, 1 << 20, 2])), error=["t0", "fewer than 2^29"])
    odd("nine_axes", edited(conv(), lambda m: setattr(t(m, 0), "shape", [1] * 9)), error=["tensor 0", "9 axes"])
    odd("float16", edited(conv(), lambda m: setattr(t(m, 0), "type", schema.TensorType.FLOAT16)), error=["t0", "FLOAT16"])
    odd("int4", edited(conv(), lambda m: setattr(t(m, 1), "type", schema.TensorType.INT4)), error=["t1", "INT4"])
    odd("output_shape", edited(conv(), lambda m: setattr(t(m, 3), "shape", [1, 3, 4, 3])), error=["t3", "[1, 3, 4, 3]", "[1, 4, 4, 3]"])
    odd("padding_mode", edited(conv(), lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "padding", 9)), error=["padding 9"])
    odd("stride", edited(conv(), lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "strideH", 0)), error=["stride [0, 1]"])
    odd("fused_tanh", edited(conv(), lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "fusedActivationFunction", 4)),
        error=["fused activation TANH"])
    odd("no_subgraph", edited(conv(), lambda m: setattr(m, "subgraphs", [])), error=["no subgraph"])
    odd("int8_exp", plain(unary("EXP")), error=["EXP", "int8", "f32"])

    b = Builder()
    q = dict(scale=0.05, zero_point=3)
    ts = [b.tensor((1, 4), "int8", **q) for _ in range(4)]
    b.op("UNIQUE", [ts[0]], [ts[1]])
    b.op("RELU", [ts[1]], [ts[2]])
    b.op("BUCKETIZE", [ts[2]], [ts[3]])
    odd("two_unsupported", b.finish([ts[0]], [ts[3]]), error=["2 operators", "UNIQUE", "`t1`", "BUCKETIZE", "`t3`"])

    b = Builder()
    x, y = b.tensor((2, 2), "int8", **q), b.tensor((4, 2), "int8", scale=0.06, zero_point=3)
    b.op("CONCATENATION", [x, x], [y], "ConcatenationOptions", axis=0)
    odd("concat_scales", b.finish([x], [y]), error=["different scales", "QUANTIZE"])

    b = Builder()
    x, y = b.tensor((1, 4), "int8", **q), b.tensor((1, 4), "int8", **q)
    b.op("RELU", [y], [y])
    odd("read_before_written", b.finish([x], [y]), error=["t1", "before anything writes it"])

    b = Builder()
    x, h, y = b.tensor((1, 4), "int8", **q), b.tensor((1,), "resource"), b.tensor((1, 4), "int8", **q)
    b.op("READ_VARIABLE", [h], [y], "ReadVariableOptions")
    odd("no_handle", b.finish([x], [y]), error=["t1", "VAR_HANDLE"])

    b = Builder()
    b.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=9)
    x, y = b.tensor((1, 4), "int8", **q), b.tensor((1, 4), "int8", **q)
    b.op("RELU", [x], [y])
    odd("no_such_subgraph", b.finish([x], [y]), error=["subgraph 9"])

    legacy()
    sparse_weights()
    indices()
    lstms()
    for op in ["LOGISTIC", "TANH"]:
        b = Builder()
        x, y = b.tensor((1, 4), "int16", scale=6.0), b.tensor((1, 4), "int16", scale=2.0**-15)
        b.op(op, [x], [y])
        odd(f"{op.lower()}_i16_coarse", b.finish([x], [y]), error=[op, "an operand of scale 6", "below 16/3"])
    b = Builder()
    x, y = b.tensor((2, 5), "int8", scale=0.05, zero_point=3), b.tensor((2, 5), "int8", scale=1 / 127)
    b.op("L2_NORMALIZATION", [x], [y], "L2NormOptions")
    odd("l2_normalization_scale", b.finish([x], [y]), error=["L2_NORMALIZATION", "expected scale 1/128 and zero point 0"])
    b = Builder()
    x, y = b.tensor((2, 3), "int8", scale=0.05), b.tensor((2, 1), "int8", scale=0.05)
    b.op("GATHER", [x, b.const([[0], [2]], "int32")], [y], "GatherOptions", axis=1, batchDims=1)
    odd("gather_batch", b.finish([x], [y]), error=["GATHER", "batch_dims of a gather"])
    b = Builder()
    x, y = b.tensor((2, 3), "float32"), b.tensor((2, 4), "float32")
    b.op("PADV2", [x, b.const([[0, 0], [0, 1]], "int32"), b.const(True)], [y], "PadV2Options")
    odd("pad_value_bool", b.finish([x], [y]), error=["PADV2", "a padding value of type bool"])

    def relu6(model):
        model.subgraphs[0].operators[0].builtinOptions.fusedActivationFunction = schema.ActivationFunctionType.RELU6

    def no_handle(model):
        assign = model.subgraphs[1].operators[-1]
        assign.inputs = [assign.inputs[1], assign.inputs[1]]

    changed("svdf_relu6", "svdf_i8_state", relu6, ["SVDF", "a fused activation other than RELU"])
    changed("no_handle_once", "variable_f32", no_handle, ["subgraph 1", "ASSIGN_VARIABLE", "the handle is no VAR_HANDLE's"])
    odd_bits.write(odd)
    odd_control.write(odd)
    odd_detections.write(odd)
    (OUT / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n")
    print(len(EXPECTED), "files")


main()
