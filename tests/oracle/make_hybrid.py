"""The hybrid keyword model (float32 activations, int8 weights) in float32, by NumPy: its weights are what their steps mean.

    python tests/oracle/make_hybrid.py ../shared/data/models

writes tests/models/hybrid_kws.json: set -> the probabilities of each input of the model's golden file.
"""

import json
import pathlib
import sys

import numpy as np

from tflite_builder import schema

NAMES = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}


def value(model, tensor):
    """A constant as float32 (indices as they are); None for what is computed."""
    data = model.buffers[tensor.buffer].data
    if data is None or len(data) == 0:
        return None
    data = bytes(bytearray(data))
    if tensor.type == schema.TensorType.INT8:
        scale = np.float32(tensor.quantization.scale)
        shape = [1] * len(tensor.shape)
        shape[tensor.quantization.quantizedDimension if len(scale) > 1 else 0] = -1
        return np.frombuffer(data, np.int8).reshape(tensor.shape).astype(np.float32) * scale.reshape(shape)
    return np.frombuffer(data, {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32}[tensor.type]).reshape(tensor.shape)


def padding(extent, kernel, stride):
    count = -(-extent // stride)
    total = max((count - 1) * stride + kernel - extent, 0)
    return (total // 2, total - total // 2), count


def convolution(x, w, bias, strides, depthwise):
    rows, height = padding(x.shape[1], w.shape[1], strides[0])
    columns, width = padding(x.shape[2], w.shape[2], strides[1])
    x = np.pad(x, ((0, 0), rows, columns, (0, 0)))
    y = np.zeros((len(x), height, width, w.shape[3] if depthwise else w.shape[0]), np.float32)
    for i in range(height):
        for j in range(width):
            part = x[:, i * strides[0] : i * strides[0] + w.shape[1], j * strides[1] : j * strides[1] + w.shape[2]]
            y[:, i, j] = (part * w).sum((1, 2)) if depthwise else np.einsum("nhwc,ohwc->no", part, w)
    return y + bias


def run(model, x):
    graph = model.subgraphs[0]
    values = {graph.inputs[0]: x}
    for op in graph.operators:
        code = model.operatorCodes[op.opcodeIndex]
        kind, options = NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)], op.builtinOptions
        operands = [values[i] if i in values else value(model, graph.tensors[i]) for i in op.inputs]
        if kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            assert options.padding == 0 and options.fusedActivationFunction in (0, 1)
            y = convolution(*operands, (options.strideH, options.strideW), kind == "DEPTHWISE_CONV_2D")
            y = np.maximum(y, 0) if options.fusedActivationFunction else y
        elif kind == "AVERAGE_POOL_2D":
            y = operands[0].mean((1, 2), keepdims=True)
        elif kind == "RESHAPE":
            y = operands[0].reshape(len(x), -1)
        elif kind == "FULLY_CONNECTED":
            y = operands[0].reshape(len(x), -1) @ operands[1].T + operands[2]
        elif kind == "SOFTMAX":
            e = np.exp(operands[0] - operands[0].max(-1, keepdims=True))
            y = e / e.sum(-1, keepdims=True)
        else:
            raise ValueError(kind)
        values[op.outputs[0]] = y
    return values[graph.outputs[0]]


models = pathlib.Path(sys.argv[1])
name = "kws_ref_model_float32"
model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel((models / f"{name}.tflite").read_bytes(), 0))
golden = np.load(models / f"golden/{name}.npz")
out = {s: [[float(f"{p:.7g}") for p in row] for row in run(model, golden[f"in_{s}_0"].reshape(-1, 49, 10, 1))] for s in ("rand", "real")}
rows = ",\n".join(f' "{s}": [\n  ' + ",\n  ".join(map(json.dumps, table)) + "\n ]" for s, table in out.items())
(pathlib.Path(__file__).resolve().parent.parent / "models" / "hybrid_kws.json").write_text("{\n" + rows + "\n}\n")
