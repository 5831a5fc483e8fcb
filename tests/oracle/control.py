"""More cases: IF and WHILE whose conditions are constants or integer arithmetic on them; importing this registers them. TensorFlow Lite Micro runs the
subgraphs; LiteRT's reference kernels where it cannot."""

import numpy as np

from cases import ACT, CASES, case, i32, quant
from tflite_builder import Builder

BEFORE = set(CASES)


def scalar(b, value=None, dtype="int32"):
    return b.tensor((), dtype) if value is None else b.const(np.array(value, dtype))


def loop(b, values, condition, body):
    """A WHILE over `values`; `condition(*tensors)` and `body(*tensors)` build subgraphs: what they return are the outputs. Tensors of all like `values`."""
    main, likes = b.graph, [(b.graph.tensors[v].shape, b.graph.tensors[v].type, b.graph.tensors[v].quantization) for v in values]

    def copies():
        out = []
        for shape, kind, quantization in likes:
            index = b.tensor(shape, "float32")
            b.graph.tensors[index].type, b.graph.tensors[index].quantization = kind, quantization
            out.append(index)
        return out

    numbers = []
    for build in [condition, body]:
        b.subgraph()
        numbers.append(len(b.subgraphs) - 1)
        graph, inputs = b.graph, copies()
        result = build(*inputs)
        graph.inputs, graph.outputs = inputs, result if isinstance(result, list) else [result]
    b.graph = main
    results = copies()
    b.op("WHILE", values, results, "WhileOptions", condSubgraphIndex=numbers[0], bodySubgraphIndex=numbers[1])
    return results


def branch(b, condition, values, outputs, then, other):
    """An IF; `then(*tensors)` and `other(*tensors)` build the branches."""
    main, likes = b.graph, [b.graph.tensors[v] for v in values]
    numbers = []
    for build in [then, other]:
        b.subgraph()
        numbers.append(len(b.subgraphs) - 1)
        graph, inputs = b.graph, []
        for like in likes:
            inputs.append(b.tensor(like.shape, "float32"))
            graph.tensors[-1].type, graph.tensors[-1].quantization = like.type, like.quantization
        graph.outputs, graph.inputs = build(*inputs), inputs
    b.graph = main
    b.op("IF", [condition, *values], outputs, "IfOptions", thenSubgraphIndex=numbers[0], elseSubgraphIndex=numbers[1])
    return outputs


def below(b, limit):
    """A condition: the first value is less than `limit`."""

    def build(i, *_):
        holds = scalar(b, dtype="bool")
        b.op("LESS", [i, scalar(b, limit)], [holds], "LessOptions")
        return holds

    return build


def next_of(b, i, step=1):
    after = scalar(b)
    b.op("ADD", [i, scalar(b, step)], [after], "AddOptions")
    return after


def of_two(b, op, x, y, shape, dtype="float32", q=None, act=ACT.NONE):
    result = b.tensor(shape, dtype, **(quant(dtype) if q is None else q))
    b.op(op, [x, y], [result], op.title() + "Options", fusedActivationFunction=act)
    return result


def dense(b, x, w, bias, shape, act=ACT.NONE):
    result = b.tensor(shape, "float32")
    b.op("FULLY_CONNECTED", [x, w, bias], [result], "FullyConnectedOptions", fusedActivationFunction=act)
    return result


def unary(b, op, x, shape, dtype="float32", **q):
    result = b.tensor(shape, dtype, **q)
    b.op(op, [x], [result])
    return result


for holds in [True, False]:
    for dtype in ["float32", "int8"]:

        @case(f"if_{str(holds).lower()}_{dtype}")
        def make(rng, holds=holds, dtype=dtype):
            b, shape, q = Builder(), (2, 3, 5), quant(dtype)
            x, z, y = (b.tensor(shape, dtype, **q) for _ in range(3))
            condition = scalar(b, holds, "bool")
            branch(b, condition, [x, z], [y], lambda x, z: [of_two(b, "ADD", x, z, shape, dtype)], lambda x, z: [of_two(b, "MUL", z, x, shape, dtype)])
            return b.finish([x, z], [y]), 3, None


@case("if_extents")
def if_extents(rng):
    """The condition is arithmetic on a shape, the weights are handed over, and one result is an operand."""
    b = Builder()
    x = b.tensor((3, 7), "float32")
    w, bias = b.const(rng.normal(0, 0.4, (4, 7)).astype(np.float32)), b.const(rng.normal(0, 1, 4).astype(np.float32))
    extents, rows, few, many, holds = b.tensor((2,), "int32"), scalar(b), scalar(b, dtype="bool"), scalar(b, dtype="bool"), scalar(b, dtype="bool")
    b.op("SHAPE", [x], [extents], "ShapeOptions", outType=2)
    b.op("STRIDED_SLICE", [extents, b.const(i32(0)), b.const(i32(1)), b.const(i32(1))], [rows], "StridedSliceOptions", shrinkAxisMask=1)
    b.op("GREATER_EQUAL", [rows, scalar(b, 4)], [many], "GreaterEqualOptions")
    b.op("LOGICAL_NOT", [many], [few], "LogicalNotOptions")
    b.op("LOGICAL_AND", [few, scalar(b, True, "bool")], [holds], "LogicalAndOptions")
    y, same = b.tensor((3, 4), "float32"), b.tensor((3, 7), "float32")
    branch(b, holds, [x, w, bias], [y, same], lambda x, w, bias: [dense(b, x, w, bias, (3, 4), ACT.RELU), x],
           lambda x, w, bias: [dense(b, x, w, bias, (3, 4)), unary(b, "NEG", x, (3, 7))])
    z = unary(b, "ABS", same, (3, 7))
    return b.finish([x], [y, z]), 3, None


@case("while_add")
def while_add(rng):
    """A sum that begins with a constant; the number of runs is a result, too."""
    b = Builder()
    x = b.tensor((2, 5), "float32")
    begin = b.const(rng.normal(0, 1, (2, 5)).astype(np.float32))
    body = lambda i, sum_, x: [next_of(b, i), of_two(b, "ADD", unary(b, "TANH", sum_, (2, 5)), x, (2, 5)), x]
    i, y, _ = loop(b, [scalar(b, 0), begin, x], below(b, 4), body)
    return b.finish([x], [y, i]), 3, None


@case("while_never")
def while_never(rng):
    b = Builder()
    x = b.tensor((2, 5), "int8", **quant("int8"))
    _, y = loop(b, [scalar(b, 7), x], below(b, 7), lambda i, x: [next_of(b, i), of_two(b, "ADD", x, x, (2, 5), "int8")])
    return b.finish([x], [y]), 3, None


@case("while_dense")
def while_dense(rng):
    """The body's weights are handed on from run to run."""
    b = Builder()
    x = b.tensor((2, 5), "float32")
    w, bias = b.const(rng.normal(0, 0.4, (5, 5)).astype(np.float32)), b.const(rng.normal(0, 1, 5).astype(np.float32))
    body = lambda i, x, w, bias: [next_of(b, i), dense(b, x, w, bias, (2, 5), ACT.RELU), w, bias]
    _, y, _, _ = loop(b, [scalar(b, 0), x, w, bias], below(b, 4), body)
    return b.finish([x], [y]), 3, None


@case("while_depthwise")
def while_depthwise(rng):
    """The weights belong to the body."""
    b, shape, q = Builder(), (1, 5, 4, 3), dict(scale=0.05, zero_point=4)
    x = b.tensor(shape, "int8", **q)
    weights, values = rng.integers(-127, 128, (1, 3, 2, 3)), rng.integers(-900, 900, 3)

    def body(i, x):
        y = b.tensor(shape, "int8", **q)
        w, bias = b.const(weights, "int8", scale=[0.004, 0.003, 0.005], axis=3), b.const(values, "int32")
        b.op("DEPTHWISE_CONV_2D", [x, w, bias], [y], "DepthwiseConv2DOptions", version=3, padding=0, strideH=1, strideW=1, dilationHFactor=1,
             dilationWFactor=1, depthMultiplier=1, fusedActivationFunction=ACT.RELU6)
        return [next_of(b, i, -2), y]

    def condition(i, x):
        holds = scalar(b, dtype="bool")
        b.op("NOT_EQUAL", [i, scalar(b, 0)], [holds], "NotEqualOptions")
        return holds

    _, y = loop(b, [scalar(b, 6), x], condition, body)
    return b.finish([x], [y]), 3, None


@case("while_swapped")
def while_swapped(rng):
    """Two values change places, five times; one is of another scale in the body, where stored numbers count."""
    b, shape = Builder(), (2, 6)
    x, z = b.tensor(shape, "int8", scale=0.05, zero_point=3), b.tensor(shape, "int8", scale=0.05, zero_point=3)

    def body(i, x, z):
        return [next_of(b, i), z, of_two(b, "ADD", x, z, shape, "int8", dict(scale=0.08, zero_point=-7))]

    _, y, t = loop(b, [scalar(b, 0), x, z], below(b, 5), body)
    return b.finish([x, z], [y, t]), 3, None


@case("while_rows")
def while_rows(rng):
    """A recurrent network over the rows of its input, by the number of the run."""
    b = Builder()
    x, w = b.tensor((6, 3), "float32"), rng.normal(0, 0.5, (4, 7)).astype(np.float32)

    def body(i, x, state):
        axis, row = b.const(np.array(0, np.int32)), b.tensor((1, 3), "float32")
        index, both = b.tensor((1,), "int32"), b.tensor((1, 7), "float32")
        b.op("EXPAND_DIMS", [i, axis], [index], "ExpandDimsOptions")
        b.op("GATHER", [x, index], [row], "GatherOptions")
        b.op("CONCATENATION", [row, state], [both], "ConcatenationOptions", axis=1)
        return [next_of(b, i), x, unary(b, "TANH", dense(b, both, b.const(w), -1, (1, 4)), (1, 4))]

    _, _, y = loop(b, [scalar(b, 0), x, b.const(np.zeros((1, 4), np.float32))], below(b, 6), body)
    return b.finish([x], [y]), 3, None


@case("while_in_while")
def while_in_while(rng):
    """The inner loop runs as often as the outer one has; a branch chooses by its number."""
    b, shape = Builder(), (2, 5)
    x = b.tensor(shape, "float32")

    def inner(i, x):
        def condition(j, i, x):
            holds = scalar(b, dtype="bool")
            b.op("LESS_EQUAL", [j, i], [holds], "LessEqualOptions")
            return holds

        _, _, y = loop(b, [scalar(b, 1), i, x], condition, lambda j, i, x: [next_of(b, j), i, unary(b, "SIN", x, shape)])
        first, z = scalar(b, dtype="bool"), b.tensor(shape, "float32")
        b.op("EQUAL", [i, scalar(b, 1)], [first], "EqualOptions")
        branch(b, first, [y, x], [z], lambda y, x: [of_two(b, "SUB", y, x, shape)], lambda y, x: [of_two(b, "ADD", y, x, shape)])
        return [next_of(b, i), z]

    _, y = loop(b, [scalar(b, 0), x], below(b, 4), inner)
    return b.finish([x], [y]), 3, None


@case("while_variable")
def while_variable(rng):
    """A variable that every run of the body reads and assigns."""
    b, shape = Builder(), (1, 6)
    x, handle = b.tensor(shape, "float32"), b.tensor((1,), "resource")
    b.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="memory")

    def body(i, x):
        own, old = b.tensor((1,), "resource"), b.tensor(shape, "float32")
        b.op("VAR_HANDLE", [], [own], "VarHandleOptions", container="", sharedName="memory")
        b.op("READ_VARIABLE", [own], [old], "ReadVariableOptions")
        new = of_two(b, "SUB", x, old, shape)
        b.op("ASSIGN_VARIABLE", [own, new], [], "AssignVariableOptions")
        return [next_of(b, i), unary(b, "TANH", of_two(b, "ADD", new, old, shape), shape)]

    _, y = loop(b, [scalar(b, 0), x], below(b, 3), body)
    last = b.tensor(shape, "float32")
    b.op("READ_VARIABLE", [handle], [last], "ReadVariableOptions")
    return b.finish([x], [y, last]), 4, None


@case("while_integers")
def while_integers(rng):
    """Integers of which some are computed on the device."""
    b = Builder()
    x = b.tensor((3, 4), "int32")

    def body(i, sum_, x):
        y = b.tensor((3, 4), "int32")
        b.op("ADD", [sum_, x], [y], "AddOptions")
        return [next_of(b, i), y, x]

    _, y, _ = loop(b, [scalar(b, 0), b.const(i32(*range(12)).reshape(3, 4)), x], below(b, 3), body)
    return b.finish([x], [y]), 3, None


@case("truth_of_constants")
def truth_of_constants(rng):
    """A tensor that packing computes is read by steps: chosen by, cast, and a result itself."""
    b, shape = Builder(), (2, 3)
    x, z, y = (b.tensor(shape, "float32") for _ in range(3))
    less, real = b.tensor(shape, "bool"), b.tensor(shape, "float32")
    b.op("GREATER", [b.const(i32(5, -1, 3, 2, 0, 7).reshape(shape)), b.const(i32(2))], [less], "GreaterOptions")
    b.op("SELECT_V2", [less, x, z], [y], "SelectV2Options")
    b.op("CAST", [less], [real], "CastOptions")
    sum_ = of_two(b, "ADD", real, y, shape)
    return b.finish([x, z], [sum_, y, less]), 3, None


NAMES = set(CASES) - BEFORE
