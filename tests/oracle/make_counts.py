"""Parameters and multiply-accumulates of the single-operator models, counted from the files' shapes alone.

    python tests/oracle/make_counts.py

writes tests/models/tflite_ops/counts.json: NAME -> [parameters, multiply-accumulates for one element of the batch]. Files with IF or WHILE are left out:
how often what runs is no matter of shapes. Further files on the command line are counted and printed.
"""

import json
import pathlib
import sys

import numpy as np

from tflite_builder import schema

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "models" / "tflite_ops"
NAMES = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
T = schema.TensorType
VALUES = (T.FLOAT32, T.FLOAT16, T.INT8, T.UINT8, T.INT16)
# Operands that are biases, and those that are attributes: a padding's value.
BIASES = {"CONV_2D": [2], "DEPTHWISE_CONV_2D": [2], "FULLY_CONNECTED": [2], "TRANSPOSE_CONV": [3], "SVDF": [3], "UNIDIRECTIONAL_SEQUENCE_LSTM": range(12, 16)}
ATTRIBUTES = {"PADV2": [2]}


def size(tensor):
    return int(np.prod(tensor.shape)) if tensor.shape is not None else 1


def read(path):
    return schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))


def branches(path):
    """Whether operators run subgraphs."""
    return any(NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)] in ("IF", "WHILE") for code in read(path).operatorCodes)


def count(path):
    model = read(path)
    graph = model.subgraphs[0]
    constant = lambda t: model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data) > 0
    params, macs = {}, 0
    for op in graph.operators:
        code = model.operatorCodes[op.opcodeIndex]
        kind = NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
        operand = lambda i: graph.tensors[op.inputs[i]]
        for position, index in enumerate(op.inputs if op.inputs is not None else []):
            if index < 0 or not constant(graph.tensors[index]) or position in ATTRIBUTES.get(kind, ()):
                continue
            if graph.tensors[index].type in VALUES or position in BIASES.get(kind, ()):
                params[index] = size(graph.tensors[index])
        result = size(graph.tensors[op.outputs[0]]) if len(op.outputs) else 0
        if kind == "CONV_2D":
            macs += result * int(np.prod(operand(1).shape[1:]))
        elif kind == "DEPTHWISE_CONV_2D":
            macs += result * int(np.prod(operand(1).shape[1:3]))
        elif kind == "TRANSPOSE_CONV":
            macs += size(operand(2)) * int(np.prod(operand(1).shape[:3]))
        elif kind == "FULLY_CONNECTED":
            macs += size(operand(0)) * int(operand(1).shape[0])
        elif kind == "BATCH_MATMUL":
            macs += result * int(operand(0).shape[-2 if op.builtinOptions.adjX else -1])
        elif kind == "SVDF":
            batch, (filters, features), memory = operand(0).shape[0], operand(1).shape, operand(2).shape[1]
            macs += int(batch * filters * (features + memory))
        elif kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
            cells, features = operand(1).shape
            macs += int(np.prod(operand(0).shape[:2]) * 4 * cells * (features + cells))
    first = graph.tensors[graph.inputs[0]].shape
    batch = int(first[0]) if first is not None and len(first) else 1
    return [sum(params.values()), macs // batch]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(pathlib.Path(path).stem, *count(pathlib.Path(path)))
    counts = {path.stem: count(path) for path in sorted(FOLDER.glob("*.tflite")) if not branches(path)}
    lines = ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in counts.items())
    (FOLDER / "counts.json").write_text("{\n" + lines + "\n}\n")
