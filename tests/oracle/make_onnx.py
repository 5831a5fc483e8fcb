"""Writes tests/models/onnx: small networks as .onnx files, with inputs and what ONNX Runtime makes of them, laid out as ONNX's own backend tests.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime numpy qonnx && venv/bin/python tests/oracle/make_onnx.py [NAME-PREFIX ...]

The seed of a case is its name. No operand is square. Names that end in `_quantised` may be a step away, for ONNX Runtime rounds otherwise.
"""

import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import attributes
import casts
import nans
import qonnx_networks
import quantised_networks
import resizings

FOLDER = pathlib.Path(__file__).parent.parent / "models" / "onnx"
CASES = {}


def case(name, opset=17):
    def add(function):
        CASES[name] = (function, opset)
        return function

    return add


class Net:
    """A network under construction: every method adds a node and returns its result's name."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.inits, self.inputs, self.feeds = [], [], [], {}
        self.count = 0

    def input(self, *shape, dtype=np.float32, stated=None, values=None):
        name = f"x{len(self.inputs)}"
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, stated or shape))
        if values is None:
            values = self.random.normal(size=shape)
            if np.dtype(dtype).kind in "iu":
                values = self.random.integers(0, 8, size=shape)
        self.feeds[name] = np.asarray(values).astype(dtype).reshape(shape)
        return name

    def const(self, *shape, scale=0.5):
        return self.value(self.random.normal(size=shape).astype(np.float32) * scale)

    def value(self, array, dtype=None):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(array, dtype=dtype), name))
        return name

    def ints(self, *values):
        return self.value(values, np.int64)

    def __getattr__(self, op):
        def add(*inputs, outputs=1, domain="", **attributes):
            names = [f"t{self.count + i}" for i in range(outputs)]
            self.count += outputs
            self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
            return names[0] if outputs == 1 else names

        return add


def unary(name, opset=17, op=None, scale=2.0, **attributes):
    def build(n):
        x = n.input(2, 3, 5, values=n.random.normal(size=(2, 3, 5)) * scale)
        return getattr(n, op or name)(x, **attributes)

    CASES[name.lower()] = (build, opset)


for name in ["Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Mish", "LeakyRelu", "ThresholdedRelu", "Erf", "Floor",
             "Ceil", "Round", "Sign", "Abs", "Neg", "Exp", "Reciprocal", "Sigmoid", "Tanh"]:
    unary(name, 18)
unary("Gelu", 20)
unary("Gelu_tanh", 20, op="Gelu", approximate="tanh")
unary("Softmax_flat", 11, op="Softmax", axis=1)
unary("LogSoftmax", 13, axis=1)
unary("LpNormalization", 17, axis=1)
for name in ["ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceMean"]:
    unary(name, 13, axes=[0, 2], keepdims=0)
for name in ["ArgMax", "ArgMin"]:
    unary(name, 13, axis=1, keepdims=1)


@case("conv_1d")
def _(n):
    return n.Conv(n.input(2, 3, 11), n.const(4, 3, 3), n.const(4), strides=[2], pads=[1, 0])


@case("conv_grouped")
def _(n):
    x = n.input(1, 4, 7, 6)
    return n.Conv(x, n.const(6, 2, 3, 2), n.const(6), group=2, pads=[1, 0, 0, 1], strides=[2, 1])


@case("conv_depthwise_dilated")
def _(n):
    return n.Conv(n.input(1, 3, 9, 8), n.const(6, 1, 3, 2), group=3, dilations=[2, 3], pads=[2, 1, 1, 2])


@case("conv_3d")
def _(n):
    return n.Conv(n.input(1, 2, 4, 5, 3), n.const(3, 2, 2, 3, 2), n.const(3), pads=[1, 0, 0, 0, 1, 1])


@case("conv_transpose")
def _(n):
    x = n.input(1, 4, 3, 5)
    return n.ConvTranspose(x, n.const(4, 3, 3, 2), n.const(6), group=2, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0])


@case("conv_transpose_1d")
def _(n):
    return n.ConvTranspose(n.input(2, 3, 4), n.const(3, 2, 4), strides=[3], pads=[1, 2], dilations=[2])


@case("conv_transpose_same")
def _(n):
    return n.ConvTranspose(n.input(1, 2, 3, 4), n.const(2, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER")


@case("pools")
def _(n):
    x = n.input(1, 2, 7, 9)
    a = n.MaxPool(x, kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1, pads=[1, 0, 0, 1])
    b = n.AveragePool(x, kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 0, 1], count_include_pad=1, ceil_mode=1)
    return n.Flatten(a), n.GlobalMaxPool(x), b


@case("matmul_batched")
def _(n):
    return n.MatMul(n.input(2, 1, 3, 5), n.input(4, 5, 2))


@case("gemm_alpha")
def _(n):
    return n.Gemm(n.input(3, 4), n.const(5, 3), n.const(1, 5), transA=1, transB=1, alpha=0.5, beta=2.0)


@case("einsum_attention")
def _(n):
    q, k = n.input(1, 3, 2, 4), n.input(1, 5, 2, 4)
    return n.Einsum(q, k, equation="bqhd,bkhd->bhqk")


@case("layer_norm")
def _(n):
    return n.LayerNormalization(n.input(2, 3, 5), n.const(5), n.const(5), axis=-1, epsilon=1e-3)


@case("group_norm", 21)
def _(n):
    return n.GroupNormalization(n.input(2, 6, 3, 2), n.const(6), n.const(6), num_groups=3)


@case("instance_norm")
def _(n):
    return n.InstanceNormalization(n.input(2, 3, 4, 5), n.const(3), n.const(3))


@case("batch_norm_after_relu")
def _(n):
    x = n.Relu(n.input(2, 3, 4, 5))
    return n.BatchNormalization(x, n.const(3), n.const(3), n.const(3), n.value(np.array([0.5, 1.5, 2.5], np.float32)))


@case("lrn")
def _(n):
    return n.LRN(n.Conv(n.input(1, 2, 5, 4), n.const(7, 2, 3, 3)), size=5, alpha=0.3, beta=0.6, bias=1.5)


def recurrent(op, gates, direction, **attributes):
    def build(n):
        d = 2 if direction == "bidirectional" else 1
        x = n.input(5, 2, 3)
        operands = [x, n.const(d, gates * 4, 3), n.const(d, gates * 4, 4), n.const(d, 2 * gates * 4), "", n.const(d, 2, 4)]
        if op == "LSTM":
            operands += [n.const(d, 2, 4), n.const(d, 12)]
        return n.__getattr__(op)(*operands, outputs=3 if op == "LSTM" else 2, hidden_size=4, direction=direction, **attributes)

    CASES[f"{op.lower()}_{direction}{''.join('_' + k for k in attributes)}"] = (build, 14)


for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
    for direction in ["forward", "reverse", "bidirectional"]:
        recurrent(op, gates, direction)
recurrent("GRU", 3, "forward", linear_before_reset=1)
recurrent("LSTM", 4, "forward", clip=0.4)


@case("gru_first_step", 14)
def _(n):
    x = n.input(2, 1, 3)
    return n.GRU(x, n.const(1, 12, 3), n.const(1, 12, 4), n.const(1, 24), hidden_size=4, linear_before_reset=1, outputs=2)


def resized(name, mode, sizes, **attributes):
    def build(n):
        return n.Resize(n.input(1, 2, 4, 5), "", "", n.ints(1, 2, *sizes), mode=mode, **attributes)

    CASES[f"resize_{name}"] = (build, 13)


resized("nearest_twice", "nearest", (8, 10), coordinate_transformation_mode="asymmetric", nearest_mode="floor")
resized("nearest_usual", "nearest", (7, 3))
resized("linear_half_pixel", "linear", (8, 7))
resized("linear_corners", "linear", (9, 3), coordinate_transformation_mode="align_corners")
resized("linear_asymmetric", "linear", (6, 9), coordinate_transformation_mode="asymmetric")
resized("linear_pytorch", "linear", (1, 9), coordinate_transformation_mode="pytorch_half_pixel")
resized("cubic", "cubic", (7, 8))
resized("cubic_outside", "cubic", (3, 8), exclude_outside=1, cubic_coeff_a=-0.5)


@case("upsample", 9)
def _(n):
    return n.Upsample(n.input(1, 2, 3, 4), n.value(np.array([1, 1, 2, 3], np.float32)), mode="nearest")


def padded(mode, opset=13):
    def build(n):
        x = n.input(2, 3, 5)
        extra = [n.value(np.float32(1.5))] if mode == "constant" else []
        return n.Pad(x, n.ints(0, 1, 3, 0, 2, 1), *extra, mode=mode)

    CASES[f"pad_{mode}"] = (build, opset)


for mode in ["constant", "edge", "reflect"]:
    padded(mode)
padded("wrap", 19)


@case("pad_negative")
def _(n):
    return n.Pad(n.input(2, 4, 5), n.ints(0, -1, 2, 0, 0, -2))


@case("slices")
def _(n):
    x = n.input(4, 7, 5)
    a = n.Slice(x, n.ints(-1, 1), n.ints(-5, 100), n.ints(0, 1), n.ints(-2, 3))
    b = n.Slice(x, n.ints(2), n.ints(4), n.ints(2))
    return a, b


@case("splits", 18)
def _(n):
    x = n.input(3, 7, 2)
    a = n.Split(x, n.ints(2, 1, 4), axis=1, outputs=3)
    b = n.Split(x, axis=1, outputs=3, num_outputs=3)
    return a[2], a[0], b[2]


@case("gathers")
def _(n):
    x = n.input(4, 5, 3)
    return n.Gather(x, n.ints(2, 0, -1, 1, 2), axis=1), n.Gather(x, n.value(np.int64(-2)), axis=0)


@case("embedding")
def _(n):
    tokens = n.input(2, 3, dtype=np.int64, values=[[1, 6, -1], [0, 3, 2]])
    return n.Gather(n.const(7, 5), tokens)


@case("one_hot")
def _(n):
    return n.OneHot(n.input(2, 3, dtype=np.int64), n.value(np.int64(5)), n.value(np.array([-1, 2], np.float32)), axis=1)


@case("tile_expand")
def _(n):
    x = n.input(2, 1, 3)
    return n.Tile(x, n.ints(2, 3, 2)), n.Expand(x, n.ints(4, 2, 5, 3))


@case("depth_and_space", 13)
def _(n):
    x = n.input(1, 12, 2, 3)
    a, b = n.DepthToSpace(x, blocksize=2), n.DepthToSpace(x, blocksize=2, mode="CRD")
    return n.SpaceToDepth(b, blocksize=2), a


@case("cumsum", 14)
def _(n):
    x = n.input(2, 5, 3)
    return n.CumSum(x, n.value(np.int64(1))), n.CumSum(x, n.value(np.int64(-1)), exclusive=1, reverse=1)


@case("comparisons")
def _(n):
    a = n.input(2, 3, 5, values=n.random.integers(-2, 3, size=(2, 3, 5)))
    b = n.input(3, 1, values=n.random.integers(-2, 3, size=(3, 1)))
    truths = [n.Less(a, b), n.Greater(a, b), n.Equal(a, b), n.LessOrEqual(a, b), n.GreaterOrEqual(a, b)]
    either = n.Xor(n.Or(truths[0], n.Not(truths[2])), n.And(truths[3], truths[4]))
    return n.Where(either, a, b), either, n.Cast(truths[1], to=TensorProto.FLOAT)


@case("where_keeps_bits")
def _(n):
    a = n.input(2, 3, values=[[np.inf, -0.0, 1.0], [-np.inf, 2.0, -0.0]])
    b = n.input(3, values=[5.0, np.inf, -np.inf])
    return n.Where(n.Less(a, n.value(np.float32(1.5))), a, b)


@case("powers")
def _(n):
    x = n.Abs(n.input(2, 5))
    raised = [n.Pow(x, n.value(np.float32(p))) for p in (2, 3, 0.5, -1, 1.7)]
    return n.Concat(*raised, n.Pow(x, n.input(2, 5)), axis=0)


@case("clip_bounds")
def _(n):
    x = n.input(3, 5)
    return n.Clip(n.Clip(x, n.value(np.float32(-0.5))), "", n.value(np.float32(0.25)))


@case("shape_arithmetic", 13)
def _(n):
    x = n.input(1, 6, 3, 4, stated=["batch", 6, 3, 4])
    shape = n.Shape(x)
    batch = n.Unsqueeze(n.Gather(shape, n.value(np.int64(0))), n.ints(0))
    channels = n.Div(n.Slice(shape, n.ints(1), n.ints(2)), n.ints(2))
    rest = n.Where(n.Equal(n.ints(-1), n.ints(-1)), n.ints(-1), n.ConstantOfShape(n.ints(1), value=numpy_helper.from_array(np.array([3]))))
    positions = n.Cast(n.Range(n.value(np.int64(0)), n.Squeeze(channels, n.ints(0)), n.value(np.int64(1))), to=TensorProto.FLOAT)
    y = n.Reshape(x, n.Concat(batch, channels, rest, axis=0))
    return n.Add(y, n.Unsqueeze(positions, n.ints(0, 2)))


@case("transformer_block", 20)
def _(n):
    x = n.input(1, 5, 6)
    y = n.LayerNormalization(x, n.const(6), n.const(6))
    heads = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        part = n.Add(n.MatMul(y, n.const(6, 6)), n.const(6))
        heads.append(n.Transpose(n.Reshape(part, n.ints(0, 0, 2, 3)), perm=perm))
    scores = n.Softmax(n.Div(n.MatMul(heads[0], heads[1]), n.value(np.float32(1.732))), axis=-1)
    joined = n.Reshape(n.Transpose(n.MatMul(scores, heads[2]), perm=[0, 2, 1, 3]), n.ints(0, 0, 6))
    x = n.Add(x, n.MatMul(joined, n.const(6, 6)))
    y = n.LayerNormalization(x, n.const(6), n.const(6))
    y = n.MatMul(n.Gelu(n.Add(n.MatMul(y, n.const(6, 11)), n.const(11))), n.const(11, 6))
    return n.Add(x, y)


@case("squeeze_excite", 13)
def _(n):
    x = n.Relu(n.Conv(n.input(1, 3, 7, 5), n.const(6, 3, 3, 3), n.const(6), pads=[1, 1, 1, 1]))
    s = n.GlobalAveragePool(x)
    s = n.Relu(n.Conv(s, n.const(4, 6, 1, 1), n.const(4)))
    s = n.HardSigmoid(n.Conv(s, n.const(6, 4, 1, 1)))
    return n.Gemm(n.Flatten(n.Mul(x, s)), n.const(210, 3), n.const(3))


@case("halves", 13)
def _(n):
    w = n.Cast(n.value(n.random.normal(size=(5, 3)).astype(np.float16)), to=TensorProto.FLOAT)
    return n.MatMul(n.input(2, 5), w)


@case("dynamic_quantise", 11)
def _(n):
    q, s, z = n.DynamicQuantizeLinear(n.input(3, 5), outputs=3)
    w = n.value(n.random.integers(-100, 100, size=(5, 4)).astype(np.int8))
    return n.Mul(n.Cast(n.MatMulInteger(q, w, z), to=TensorProto.FLOAT), s)


CASES.update(quantised_networks.CASES)
CASES.update(qonnx_networks.CASES)
CASES.update(attributes.CASES)
CASES.update(resizings.CASES)
CASES.update(casts.CASES)
CASES.update(nans.CASES)


def write(name, build, opset):
    net = Net(name)
    results = build(net)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    folder = FOLDER / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    outputs = [helper.make_empty_tensor_value_info(r) for r in results]
    graph = helper.make_graph(net.nodes, name, net.inputs, outputs, net.inits)
    domains = 1 + any(node.domain for node in net.nodes)
    other = qonnx_networks.DOMAIN if name in qonnx_networks.CASES else "com.microsoft"
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(other, 1)][:domains]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10 if opset > 18 else 8)
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:
        # Nothing infers the types of ONNX Runtime's own operators.
        if not output.type.tensor_type.elem_type:
            quantised = name.startswith("qoperators")
            output.type.tensor_type.elem_type = TensorProto.UINT8 if quantised else TensorProto.FLOAT
    if name in qonnx_networks.CASES:
        found = qonnx_networks.expected(model, net.feeds)
    else:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, net.feeds)
    if name in nans.BY_REFERENCE:
        found = ReferenceEvaluator(model).run(None, net.feeds)
    # As computed: inference of shapes knows neither all operators nor the last window of a ceiling.
    del model.graph.output[:]
    for result, array in zip(results, found):
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
        model.graph.output.append(helper.make_tensor_value_info(result, kind, np.shape(array)))
    if name not in qonnx_networks.CASES:
        onnx.checker.check_model(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, arrays in [("input", net.feeds.values()), ("output", found)]:
        for index, array in enumerate(arrays):
            tensor = numpy_helper.from_array(np.asarray(array))
            (data / f"{kind}_{index}.pb").write_bytes(tensor.SerializeToString())


if __name__ == "__main__":
    prefixes = tuple(sys.argv[1:])
    for name, (build, opset) in CASES.items():
        if prefixes and not name.startswith(prefixes):
            continue
        try:
            write(name, build, opset)
        except Exception as error:
            raise SystemExit(f"{name}: {error}")
    print(len(CASES), "cases")
