"""Writes every node test that the package `onnx` generates into a folder, for the long test of `tests/tests/host/onnx_node.rs`.

    python3 -m venv venv && venv/bin/pip install onnx numpy && venv/bin/python tests/oracle/make_onnx_nodes.py FOLDER
    ARENITE_ONNX_NODES=FOLDER cargo test -p arenite-tests --test host onnx_node:: -- --ignored

Their operands are all inputs of the network, also those that say how an operator works. `NAME_known` is a case with these as initializers.
"""

import pathlib
import shutil
import sys

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

# Operators and the position from which on operands say how they work.
HOW = {"Reshape": 1, "Pad": 1, "Expand": 1, "Tile": 1, "Slice": 1, "Resize": 1, "Upsample": 1, "Split": 1, "Squeeze": 1, "Unsqueeze": 1,
       "Gather": 1, "CumSum": 1, "Trilu": 1, "OneHot": 1, "ConstantOfShape": 0, "Range": 0, "Conv": 1, "QLinearConv": 1, "DequantizeLinear": 1}


def how(node, position):
    first = 1 if node.op_type.startswith("Reduce") else HOW.get(node.op_type, 99)
    return position >= first


def write(path, model, inputs, outputs):
    data = path / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (path / "model.onnx").write_bytes(model.SerializeToString())
    try:
        for kind, values in [("input", inputs), ("output", outputs)]:
            for index, tensor in enumerate(map(proto, values)):
                (data / f"{kind}_{index}.pb").write_bytes(tensor.SerializeToString())
    except (TypeError, ValueError, KeyError, NotImplementedError):
        # Sequences and optional values are no tensors.
        shutil.rmtree(path)
        return 0
    return 1


def proto(value):
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value))


def known(model, inputs):
    """The model with the operands that say how as initializers, and the inputs that are left; None where there are none of either, or where an
    operand is none of the types that the test reads."""
    read = {TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}
    try:
        if any(proto(value).data_type not in read for value in inputs):
            return None
    except (TypeError, ValueError, KeyError, NotImplementedError):
        return None
    changed = ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    names = {name for node in graph.node for position, name in enumerate(node.input) if how(node, position)}
    left = []
    stated = list(graph.input)
    del graph.input[:]
    for info, value in zip(stated, inputs):
        if info.name in names:
            tensor = TensorProto()
            tensor.CopyFrom(proto(value))
            tensor.name = info.name
            graph.initializer.append(tensor)
        else:
            graph.input.append(info)
            left.append(value)
    return (changed, left) if left and graph.initializer else None


def main(folder):
    written = 0
    for case in collect_testcases(None):
        inputs, outputs = case.data_sets[0]
        if not write(folder / case.name, case.model, inputs, outputs):
            continue
        written += 1
        other = known(case.model, inputs)
        if other:
            written += write(folder / f"{case.name}_known", other[0], other[1], outputs)
    print(written, "cases")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
