"""Every pair of element types that Cast and CastLike convert between; importing this gives CASES."""

import numpy as np
from onnx import TensorProto

CASES = {}
#: Types that the runtime has, with numbers that are numbers of the other types as well, and the ends of its own.
TYPES = {
    "float": (TensorProto.FLOAT, np.float32, [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.75, -3.25, 99.999, -100.5, 127.9, -127.9]),
    "int8": (TensorProto.INT8, np.int8, [0, 1, -1, 2, 100, -100, 127, -128]),
    "uint8": (TensorProto.UINT8, np.uint8, [0, 1, 2, 100, 127, 128, 200, 255]),
    "int16": (TensorProto.INT16, np.int16, [0, 1, -1, 127, 128, -128, -129, 255, 256, -257, 32767, -32768]),
    "int32": (TensorProto.INT32, np.int32, [0, 1, -1, 127, 128, -128, -129, 255, 256, 32768, -32769, 65535, 2147483647, -2147483648, 16777217]),
    "bool": (TensorProto.BOOL, np.bool_, [0, 1, 1, 0]),
}
WIDE = [0.0, -0.0, 0.1, -1.2345678, 1000.123, 262016.0, -65519.9, 65520.0, 6e-8, 2.9e-8, 3e-8, 6.1e-5, np.inf, -np.inf, np.nan, 1e-45, 3.4e38]


def case(name, opset):
    def add(function):
        CASES[f"cast_{name}"] = (function, opset)
        return function

    return add


def converted(name):
    kind, dtype, values = TYPES[name]

    @case(name, 19)
    def _(n):
        x = n.input(len(values), dtype=dtype, values=values)
        results = []
        for to, (number, other, _) in TYPES.items():
            # Beyond the range of an integer a float has no meaning; what is negative has none without sign.
            if name == "float" and to == "uint8":
                continue
            # Refused by name.
            if name == "int32" and to == "bool":
                continue
            results.append(n.Cast(n.Cast(x, to=number), to=TensorProto.FLOAT))
            results.append(n.Cast(n.CastLike(x, n.value(np.zeros(1, other))), to=TensorProto.FLOAT))
        return n.Concat(*results, axis=0)


for name in TYPES:
    converted(name)


@case("constants", 19)
def _(n):
    """Known values through half precision and back."""
    x, wide = n.input(1), n.value(np.array(WIDE, np.float32))
    half = n.value(np.array([0.1, 1000.5, 3.0], np.float16))
    results = [n.Cast(n.Cast(wide, to=TensorProto.FLOAT16), to=TensorProto.FLOAT), n.Cast(n.CastLike(wide, half), to=TensorProto.FLOAT),
               n.Cast(n.Cast(wide, to=TensorProto.BFLOAT16), to=TensorProto.FLOAT),
               n.Cast(n.CastLike(n.Reshape(wide, n.ints(17, 1)), n.Reshape(half, n.ints(3, 1))), to=TensorProto.FLOAT)]
    nothing = n.Mul(x, n.value(np.zeros(1, np.float32)))
    return tuple(n.Add(result, nothing) for result in results)


@case("table_of_halves", 19)
def _(n):
    """Rows of a table in half precision: nothing is computed in it."""
    table = n.value(n.random.normal(size=(7, 5)).astype(np.float16))
    rows = n.Gather(table, n.input(3, dtype=np.int64, values=[6, 0, 3]))
    return n.Cast(n.Transpose(rows, perm=[1, 0]), to=TensorProto.FLOAT)
