"""Operators that compare and choose, with a NaN at every place; importing this gives CASES."""

import numpy as np

CASES = {}
NAN = float("nan")
#: Every pair of these, NaN first, last and in the middle.
VALUES = [NAN, -np.inf, -2.0, 0.0, 3.0, np.inf]


def case(name, opset=17):
    def add(function):
        CASES[f"nan_{name}"] = (function, opset)
        return function

    return add


@case("pairs")
def _(n):
    first, second = np.meshgrid(VALUES, VALUES)
    a, b = n.input(6, 6, values=first), n.input(6, 6, values=second)
    one, row, none = n.value(np.float32(1)), n.value(np.array(VALUES, np.float32)), n.value(np.float32(NAN))
    return (n.Min(a, b), n.Max(a, b), n.Min(a, one), n.Max(one, a), n.Min(a, row), n.Max(row, a), n.Min(a, none), n.Max(none, a), n.Min(a, b, one),
            n.Max(a, b, one), n.Where(n.Less(a, b), one, none), n.Where(n.LessOrEqual(a, b), one, row), n.Where(n.Equal(a, b), a, one),
            n.Where(n.Greater(a, b), one, a), n.Where(n.GreaterOrEqual(a, b), one, b))


@case("single")
def _(n):
    x = n.input(6, values=VALUES)
    low, high = n.value(np.float32(-1)), n.value(np.float32(2))
    known = n.value(np.array(VALUES, np.float32))
    nothing = n.value(np.zeros(6, np.float32))
    results = [n.Clip(x, low, high), n.LeakyRelu(x, alpha=0.3), n.PRelu(x, high), n.Abs(x), n.Neg(x), n.IsNaN(x)]
    results[-1] = n.Where(results[-1], low, high)
    folded = [n.Min(known, high), n.Max(known, high), n.ReduceMax(known, keepdims=1), n.ReduceMin(known, keepdims=1)]
    return (*results, *[n.Add(n.Expand(value, n.ints(6)), n.Mul(nothing, n.Where(n.IsNaN(x), low, high))) for value in folded])


#: Where ONNX Runtime takes a NaN or drops it by its place in a vector: the package's own evaluator, in NumPy.
BY_REFERENCE = {"nan_reduced"}


@case("reduced", 13)
def _(n):
    rows = np.array([[NAN, 1, 2, 3], [1, NAN, 3, 2], [3, 2, 1, NAN], [1, 4, 2, 3]], np.float32)
    x = n.input(1, 1, 4, 4, values=rows)
    return (n.ReduceMax(x, axes=[3]), n.ReduceMin(x, axes=[3]), n.ReduceMax(x, axes=[2]), n.ReduceMin(x, axes=[2]))
