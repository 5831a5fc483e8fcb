"""More cases: operators that compare, choose, repeat, update and sum, and products of matrices; importing this registers them."""

import numpy as np

from cases import ACT, CASES, SAME, VALID, Builder, binary, case, i32, moved, quant, simple, unary

BEFORE = set(CASES)

# ------------------------------------------------------------------------------------------------ repetitions

moved("tile", "TILE", (2, 1, 3), (4, 5, 6), None, [i32(2, 5, 2)], dtypes=("int8", "float32", "int32"))
moved("tile_once", "TILE", (3, 4), (3, 4), None, [i32(1, 1)])
moved("tile_rank1", "TILE", (5,), (15,), None, [i32(3)], dtypes=("int8", "int16", "bool"))
moved("broadcast_to", "BROADCAST_TO", (3, 1, 2), (2, 3, 4, 2), None, [i32(2, 3, 4, 2)], dtypes=("int8", "float32", "int16"), version=2)
moved("broadcast_to_scalar", "BROADCAST_TO", (1,), (3, 4), None, [i32(3, 4)], dtypes=("float32",), version=2)
moved("gather_nd", "GATHER_ND", (3, 4, 5), (2, 3, 5), None, [np.array([[[0, 1], [2, 3], [1, 1]], [[2, 0], [0, 0], [0, 3]]], np.int32)])
moved("gather_nd_elements", "GATHER_ND", (3, 4), (5,), None, [np.array([[0, 1], [2, 3], [1, 1], [2, 0], [2, 3]], np.int32)])
moved("gather_nd_spaced", "GATHER_ND", (6, 2, 3), (3, 2, 3), None, [np.array([[0], [2], [4]], np.int32)])
simple("update_slice", "DYNAMIC_UPDATE_SLICE", [((4, 5, 3), "int8", quant("int8"))], ((4, 5, 3), "int8", quant("int8")),
       consts=[(np.arange(-6, 6, dtype=np.int8).reshape(2, 2, 3), quant("int8")), (i32(1, 2, 0), {})])
moved("update_slice_clamped", "DYNAMIC_UPDATE_SLICE", (4, 5), (4, 5), None, [np.arange(-6, 0, dtype=np.float32).reshape(2, 3), i32(9, -4)],
      dtypes=("float32",))
for dtype in ["int8", "float32"]:
    q = quant(dtype)
    simple(f"update_slice_computed_{dtype}", "DYNAMIC_UPDATE_SLICE", [((3, 4), dtype, q), ((1, 4), dtype, q)], ((3, 4), dtype, q),
           consts=[(i32(1, 0), {})])
    simple(f"zeros_like_{dtype}", "ZEROS_LIKE", [((3, 4), dtype, q)], ((3, 4), dtype, q), "ZerosLikeOptions")


def fill(name, dtype, value):
    """A constant, added to an activation, since a network has an input."""

    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        x, filled, y = b.tensor((2, 3), dtype, **q), b.tensor((2, 3), dtype, **q), b.tensor((2, 3), dtype, **q)
        b.op("FILL", [b.const(i32(2, 3)), b.const(np.array(value), dtype, **q)], [filled], "FillOptions")
        b.op("ADD", [x, filled], [y], "AddOptions", version=2)
        return b.finish([x], [y]), 2, None


fill("fill_float32", "float32", 2.5)
fill("fill_int8", "int8", -9)
fill("fill_int32", "int32", 77)


@case("fill_computed")
def _(rng):
    b = Builder()
    x, one, y = b.tensor((1,), "float32"), b.tensor((), "float32"), b.tensor((2, 3), "float32")
    b.op("RESHAPE", [x, b.const(np.zeros(0, np.int32))], [one], "ReshapeOptions", newShape=[])
    b.op("FILL", [b.const(i32(2, 3)), one], [y], "FillOptions")
    return b.finish([x], [y]), 2, None


def at(low, high, shape):
    return lambda rng: rng.integers(low, high, (3, *shape), dtype=np.int32)


def gather(name, x, indices, y, dtype, axis=0):
    q = quant(dtype)

    def given(rng):
        data = rng.normal(0, 2, (3, *x)) if dtype == "float32" else rng.integers(-128, 128, (3, *x))
        return [data.astype(dtype), at(0, x[axis], indices)(rng)]

    simple(name, "GATHER", [(x, dtype, q), (indices, "int32", {})], (y, dtype, q), "GatherOptions", axis=axis, given=given)


gather("gather_computed", (7, 3), (4,), (4, 3), "int8")
gather("gather_computed_float32", (7, 3), (2, 2), (2, 2, 3), "float32")
gather("gather_computed_middle", (2, 5, 3), (4,), (2, 4, 3), "float32", axis=1)


def embedding(name, table_dtype, out_dtype):
    @case(name)
    def make(rng):
        b = Builder()
        x = b.tensor((4,), "int32")
        if table_dtype == "float32":
            table = b.const(rng.normal(0, 1, (9, 5)).astype(np.float32))
        else:
            table = b.const(rng.integers(-128, 128, (9, 5)), "int8", **(quant("int8") if out_dtype == "int8" else dict(scale=0.02)))
        y = b.tensor((4, 5), out_dtype, **(quant("int8") if out_dtype == "int8" else {}))
        b.op("EMBEDDING_LOOKUP", [x, table], [y])
        return b.finish([x], [y]), 3, [rng.integers(0, 9, (3, 4), dtype=np.int32)]


embedding("embedding_float32", "float32", "float32")
embedding("embedding_hybrid", "int8", "float32")
embedding("embedding_int8", "int8", "int8")

# ------------------------------------------------------------------------------------------------ questions


def near(dtype, shapes):
    """Numbers that are often equal."""
    return lambda rng: [rng.integers(-3, 4, (3, *shape)).astype(dtype) for shape in shapes]


for op in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]:
    name = op.lower()
    options = "".join(part.capitalize() for part in op.split("_")) + "Options"
    for dtype in ["float32", "int32", "int8"]:
        q = quant(dtype)
        simple(f"{name}_{dtype}", op, [((2, 3, 5), dtype, q), ((2, 3, 5), dtype, q)], ((2, 3, 5), "bool", {}), options,
               given=near(dtype, [(2, 3, 5)] * 2))
        simple(f"{name}_broadcast_{dtype}", op, [((4, 1, 5), dtype, q), ((3, 1), dtype, q)], ((4, 3, 5), "bool", {}), options,
               given=near(dtype, [(4, 1, 5), (3, 1)]))
    # Real values of two scales.
    simple(f"{name}_scales", op, [((4, 40), "int8", dict(scale=0.05, zero_point=-7)), ((4, 40), "int8", dict(scale=0.021, zero_point=30))],
           ((4, 40), "bool", {}), options)
    if "EQUAL" == op or "NOT_EQUAL" == op:
        simple(f"{name}_bool", op, [((2, 9), "bool", {}), ((2, 9), "bool", {})], ((2, 9), "bool", {}), options)
for op, options in [("LOGICAL_AND", "LogicalAndOptions"), ("LOGICAL_OR", "LogicalOrOptions")]:
    simple(op.lower(), op, [((2, 9), "bool", {}), ((2, 9), "bool", {})], ((2, 9), "bool", {}), options)
    simple(f"{op.lower()}_broadcast", op, [((2, 1, 9), "bool", {}), ((3, 1), "bool", {})], ((2, 3, 9), "bool", {}), options)
simple("logical_not", "LOGICAL_NOT", [((2, 9), "bool", {})], ((2, 9), "bool", {}), "LogicalNotOptions")

for dtype in ["float32", "int8", "int16", "int32"]:
    q = quant(dtype)
    simple(f"select_v2_{dtype}", "SELECT_V2", [((2, 3, 4), "bool", {}), ((2, 3, 4), dtype, q), ((2, 3, 4), dtype, q)],
           ((2, 3, 4), dtype, q), "SelectV2Options")
    simple(f"select_v2_broadcast_{dtype}", "SELECT_V2", [((3, 1), "bool", {}), ((2, 3, 4), dtype, q), ((4,), dtype, q)],
           ((2, 3, 4), dtype, q), "SelectV2Options")
    simple(f"select_{dtype}", "SELECT", [((2, 3), "bool", {}), ((2, 3), dtype, q), ((2, 3), dtype, q)], ((2, 3), dtype, q), "SelectOptions")
    simple(f"select_slices_{dtype}", "SELECT", [((3,), "bool", {}), ((3, 2, 4), dtype, q), ((3, 2, 4), dtype, q)],
           ((3, 2, 4), dtype, q), "SelectOptions")


@case("select_of_comparison")
def _(rng):
    """Operators that converters make of tf.where(x > 0, x, 0.1 x)."""
    b = Builder()
    q = quant("int8")
    x, low, y = b.tensor((2, 6), "int8", **q), b.tensor((2, 6), "int8", **q), b.tensor((2, 6), "int8", **q)
    holds, kept = b.tensor((2, 6), "bool"), b.tensor((2, 6), "bool")
    b.op("GREATER", [x, low], [holds], "GreaterOptions")
    b.op("LOGICAL_NOT", [holds], [kept], "LogicalNotOptions")
    b.op("SELECT_V2", [kept, x, low], [y], "SelectV2Options")
    return b.finish([x, low], [y]), 2, None


@case("cast_of_comparison")
def _(rng):
    b = Builder()
    x, z = b.tensor((2, 6), "float32"), b.tensor((2, 6), "float32")
    holds, y = b.tensor((2, 6), "bool"), b.tensor((2, 6), "float32")
    b.op("LESS", [x, z], [holds], "LessOptions")
    b.op("CAST", [holds], [y], "CastOptions")
    return b.finish([x, z], [y]), 2, None


# ------------------------------------------------------------------------------------------------ quotients and differences


def apart(dtype, shapes):
    """No divisor is zero."""

    def make(rng):
        arrays = [rng.integers(-100, 100, (3, *shape)) for shape in shapes]
        arrays[1] = np.where(arrays[1] == 0, 7, arrays[1])
        if dtype == "float32":
            arrays = [a / 8 for a in arrays]
        return [a.astype(dtype) for a in arrays]

    return make


for op, options in [("FLOOR_DIV", "FloorDivOptions"), ("FLOOR_MOD", "FloorModOptions")]:
    for dtype in ["float32", "int8", "int16", "int32"]:
        q = quant(dtype)
        simple(f"{op.lower()}_{dtype}", op, [((2, 30), dtype, q), ((2, 30), dtype, q)], ((2, 30), dtype, q), options,
               given=apart(dtype, [(2, 30)] * 2))
    simple(f"{op.lower()}_broadcast", op, [((2, 1, 5), "float32", {}), ((3, 1), "float32", {})], ((2, 3, 5), "float32", {}), options,
           given=apart("float32", [(2, 1, 5), (3, 1)]))


def quotients(zero):
    def make(rng):
        a, b = rng.integers(-128, 128, (3, 2, 40)), rng.integers(-128, 128, (3, 2, 40))
        a[0, 0, :4] = b[0, 0, :4] = -128, -128, 127, 127
        a[0, 0, 4:8], b[0, 0, 4:8] = zero, (-128, 127, zero + 1, zero - 1)
        return [a.astype(np.int8), np.where(b == zero, zero + 1, b).astype(np.int8)]

    return make


for i, (sa, sb, sy, za, zb, zy, act) in enumerate([
        (0.05, 0.02, 0.06, -7, 9, -20, ACT.NONE), (0.05, 0.5, 0.001, 3, -100, 0, ACT.NONE), (0.8, 0.01, 1.3, 0, 0, 10, ACT.RELU),
        (0.02, 0.03, 0.05, 0, -11, -128, ACT.RELU6)]):
    simple(f"div_i8_scales_{i}", "DIV", [((2, 40), "int8", dict(scale=sa, zero_point=za)), ((2, 40), "int8", dict(scale=sb, zero_point=zb))],
           ((2, 40), "int8", dict(scale=sy, zero_point=zy)), "DivOptions", version=2, given=quotients(zb), fusedActivationFunction=act)
    simple(f"squared_difference_scales_{i}", "SQUARED_DIFFERENCE",
           [((2, 40), "int8", dict(scale=sa, zero_point=za)), ((2, 40), "int8", dict(scale=sb, zero_point=zb))],
           ((2, 40), "int8", dict(scale=sy * 3, zero_point=zy)), "SquaredDifferenceOptions", version=2)
binary("squared_difference_broadcast", "SQUARED_DIFFERENCE", "SquaredDifferenceOptions", (2, 3, 5), (3, 1), (2, 3, 5), "int8")
simple("pow_f32", "POW", [((2, 9), "float32", {}), ((2, 9), "float32", {})], ((2, 9), "float32", {}), "PowOptions",
       given=lambda rng: [np.abs(rng.normal(0, 2, (2, 2, 9))).astype(np.float32), rng.normal(0, 2, (2, 2, 9)).astype(np.float32)])

# ------------------------------------------------------------------------------------------------ functions


def angles(rng):
    far = np.array([0, -0.0, 1e-30, 1e-6, np.pi, -np.pi / 2, 33.3, -200.7, 1e4, -12345.678, 3e5, 1e7])
    return [np.concatenate([far, rng.normal(0, 8, 244)]).astype(np.float32).reshape(1, 1, 256)]


unary("sin_f32", "SIN", "float32", given=angles)
unary("cos_f32", "COS", "float32", given=angles)
unary("gelu_f32", "GELU", "float32", options="GeluOptions")
unary("gelu_tanh_f32", "GELU", "float32", options="GeluOptions", approximate=True)
unary("relu_n1_to_1_f32", "RELU_N1_TO_1", "float32")
unary("relu_0_to_1_f32", "RELU_0_TO_1", "float32")

# ------------------------------------------------------------------------------------------------ sums and products

for count in [2, 3, 7]:
    for dtype in ["float32", "int8", "int32"]:
        q = quant(dtype)
        out = dict(scale=0.11, zero_point=4) if dtype == "int8" else q
        simple(f"add_n_{count}_{dtype}", "ADD_N", [((2, 5), dtype, q)] * count, ((2, 5), dtype, out), "AddNOptions")
for name, shape, axis, exclusive, reverse in [("", (2, 5, 3), 1, False, False), ("_last", (3, 9), -1, False, False), ("_exclusive", (2, 6), 1, True, False),
                                              ("_reverse", (7, 2), 0, False, True), ("_both", (2, 6, 2), 1, True, True), ("_one", (3, 1), 1, True, False)]:
    for dtype in ["float32", "int8", "int32"]:
        q = quant(dtype)
        out = dict(scale=0.15, zero_point=4) if dtype == "int8" else q
        simple(f"cumsum{name}_{dtype}", "CUMSUM", [(shape, dtype, q)], (shape, dtype, out), "CumsumOptions", consts=[(i32(axis), {})],
               exclusive=exclusive, reverse=reverse)


def l2_pool(name, x, y, kernel, stride, padding=VALID, act=ACT.NONE):
    simple(name, "L2_POOL_2D", [(x, "float32", {})], (y, "float32", {}), "Pool2DOptions", padding=padding, strideH=stride[0], strideW=stride[1],
           filterHeight=kernel[0], filterWidth=kernel[1], fusedActivationFunction=act)


l2_pool("l2_pool", (1, 6, 5, 3), (1, 3, 2, 3), (2, 2), (2, 2))
l2_pool("l2_pool_same", (2, 6, 5, 3), (2, 3, 3, 3), (3, 2), (2, 2), padding=SAME, act=ACT.RELU6)


def matmul(name, a, b_shape, y, dtype="int8", adj_x=False, adj_y=False, const=False, zero_b=9, hybrid=False):
    @case(name)
    def make(rng):
        b = Builder()
        terms = a[-2] if adj_x else a[-1]
        if dtype == "float32":
            qa = qb = qy = {}
        elif dtype == "int8":
            qa, qb = dict(scale=0.05, zero_point=-7), dict(scale=0.02, zero_point=zero_b)
            qy = dict(scale=float(0.05 * 0.02 * 60 * np.sqrt(terms)), zero_point=11)
        else:
            qa, qb = dict(scale=0.0004), dict(scale=0.0003)
            qy = dict(scale=float(0.0004 * 0.0003 * 15000 * np.sqrt(terms)))
        x = b.tensor(a, dtype, **qa)
        if hybrid:
            w = b.const(rng.integers(-127, 128, b_shape), "int8", scale=0.02)
        elif const and dtype == "float32":
            w = b.const(rng.normal(0, 1, b_shape).astype(np.float32))
        elif const:
            w = b.const(rng.integers(-127, 128, b_shape), dtype, **qb)
        else:
            w = b.tensor(b_shape, dtype, **qb)
        out = b.tensor(y, dtype, **qy)
        b.op("BATCH_MATMUL", [x, w], [out], "BatchMatMulOptions", version=2, adjX=adj_x, adjY=adj_y)
        return b.finish([x] if const else [x, w], [out]), 2, None


for dtype in ["int8", "int16", "float32"]:
    matmul(f"batch_matmul_{dtype}", (2, 3, 4), (2, 4, 5), (2, 3, 5), dtype)
    matmul(f"batch_matmul_adj_y_{dtype}", (2, 3, 4), (2, 5, 4), (2, 3, 5), dtype, adj_y=True)
    matmul(f"batch_matmul_adj_x_{dtype}", (2, 4, 3), (2, 4, 5), (2, 3, 5), dtype, adj_x=True)
    matmul(f"batch_matmul_adj_both_{dtype}", (4, 3), (5, 4), (3, 5), dtype, adj_x=True, adj_y=True)
    matmul(f"batch_matmul_broadcast_{dtype}", (2, 1, 3, 4), (3, 4, 5), (2, 3, 3, 5), dtype)
for dtype in ["int8", "float32"]:
    matmul(f"batch_matmul_const_{dtype}", (2, 3, 9), (9, 5), (2, 3, 5), dtype, const=True, zero_b=0)
    matmul(f"batch_matmul_const_adj_y_{dtype}", (2, 3, 9), (5, 9), (2, 3, 5), dtype, adj_y=True, const=True, zero_b=0)
    matmul(f"batch_matmul_const_batches_{dtype}", (2, 3, 9), (2, 9, 5), (2, 3, 5), dtype, const=True, zero_b=3)
matmul("batch_matmul_long_int8", (1, 2, 130), (1, 130, 7), (1, 2, 7))

# LiteRT's reference kernels compute those of them that TensorFlow Lite Micro does not.
@case("broadcast_args")
def broadcast_args(rng):
    """Constants, added to an activation, since a network has an input."""
    b = Builder()
    x, extents, y = (b.tensor((4,), "int32") for _ in range(3))
    b.op("BROADCAST_ARGS", [b.const(i32(7, 1, 5, 3)), b.const(i32(2, 1, 3))], [extents])
    b.op("ADD", [x, extents], [y], "AddOptions", version=2)
    return b.finish([x], [y]), 2, None


for kind in ["all", "any"]:
    for name, y, axes, keep in [("rows", (2, 5), (1,), False), ("kept", (2, 1, 1), (1, -1), True)]:
        dense = lambda rng, kind=kind: [rng.random((4, 2, 3, 5)) < (0.8 if kind == "all" else 0.2)]
        simple(f"reduce_{kind}_{name}", f"REDUCE_{kind.upper()}", [((2, 3, 5), "bool", {})], (y, "bool", {}), "ReducerOptions", consts=[(i32(*axes), {})],
               given=dense, keepDims=keep)


NAMES = set(CASES) - BEFORE
