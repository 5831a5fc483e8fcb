"""Writes small .tflite files and runs them with TensorFlow Lite Micro's Python runtime."""

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers
from tflite_micro.python.tflite_micro import runtime

schema = runtime.schema_fb
TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "resource": schema.TensorType.RESOURCE,
    "uint32": schema.TensorType.UINT32,
    "uint64": schema.TensorType.UINT64,
}
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


class Builder:
    """One model; `tensor`, `op`, then `finish`."""

    def __init__(self):
        self.buffers = [schema.BufferT()]
        self.codes = []
        self.subgraphs = []
        self.subgraph()

    def subgraph(self):
        """Starts a further subgraph; what follows goes there."""
        graph = schema.SubGraphT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
        graph.name = f"subgraph_{len(self.subgraphs)}"
        self.subgraphs.append(graph)
        self.graph = graph

    def tensor(self, shape, dtype, scale=None, zero_point=0, data=None, axis=0, variable=False):
        """Index of a new tensor. `scale` is a number or, per channel of `axis`, a list."""
        tensor = schema.TensorT()
        tensor.shape = [int(d) for d in shape]
        tensor.type = TYPES[dtype]
        tensor.name = f"t{len(self.graph.tensors)}"
        tensor.isVariable = variable
        if scale is not None:
            scales = np.atleast_1d(scale).astype(np.float32)
            quant = schema.QuantizationParametersT()
            quant.scale = [float(s) for s in scales]
            quant.zeroPoint = [int(zero_point)] * len(scales)
            quant.quantizedDimension = axis
            tensor.quantization = quant
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = list(np.ascontiguousarray(data, dtype=dtype).tobytes())
            self.buffers.append(buffer)
            tensor.buffer = len(self.buffers) - 1
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def const(self, data, dtype=None, **kwargs):
        data = np.asarray(data, dtype=dtype)
        return self.tensor(data.shape, str(data.dtype), data=data, **kwargs)

    def op(self, name, inputs, outputs, options=None, version=1, **fields):
        """Adds an operator; `fields` are its options'."""
        operator = self.operator((getattr(schema.BuiltinOperator, name), version, None), inputs, outputs)
        if options:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(schema, options + "T")()
            for field, value in fields.items():
                assert hasattr(operator.builtinOptions, field), (options, field)
                setattr(operator.builtinOptions, field, value)

    def custom(self, name, inputs, outputs, **options):
        """Adds a custom operator; its options are a flexbuffer."""
        operator = self.operator((schema.BuiltinOperator.CUSTOM, 1, name), inputs, outputs)
        operator.customOptions = list(flexbuffers.Dumps(options))

    def operator(self, key, inputs, outputs):
        if key not in self.codes:
            self.codes.append(key)
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.index(key)
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        self.graph.operators.append(operator)
        return operator

    def finish(self, inputs, outputs):
        """The file. Inputs and outputs are the first subgraph's."""
        main = self.subgraphs[0]
        main.inputs, main.outputs = list(inputs), list(outputs)
        model = schema.ModelT()
        model.version = 3
        model.description = "single operator"
        model.buffers, model.subgraphs, model.operatorCodes = self.buffers, self.subgraphs, []
        for code, version, name in self.codes:
            entry = schema.OperatorCodeT()
            entry.customCode = name
            entry.builtinCode, entry.version = code, version
            entry.deprecatedBuiltinCode = min(code, 127)
            model.operatorCodes.append(entry)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def run(model, inputs):
    """Outputs of consecutive runs of one interpreter: for each output an array with a leading axis of runs."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
    runs = []
    for values in zip(*inputs):
        for i, value in enumerate(values):
            interpreter.set_input(np.asarray(value, order="C"), i)
        interpreter.invoke()
        outputs = []
        while True:
            try:
                outputs.append(np.array(interpreter.get_output(len(outputs))))
            except Exception:
                break
        runs.append(outputs)
    return [np.stack(outputs) for outputs in zip(*runs)]


def reference(model, inputs):
    """The same by LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    runs = []
    for values in zip(*inputs):
        for place, value in zip(places, values):
            interpreter.set_tensor(place, np.ascontiguousarray(value))
        interpreter.invoke()
        runs.append([interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()])
    return [np.stack(outputs) for outputs in zip(*runs)]


def random_input(rng, model, index, runs):
    """Values of the whole range of the input's type; floats around zero."""
    tensor = model.subgraphs[0].tensors[model.subgraphs[0].inputs[index]]
    dtype = {v: k for k, v in TYPES.items()}[tensor.type]
    shape = (runs, *([] if tensor.shape is None else tensor.shape))
    if dtype == "float32":
        return rng.normal(0, 2, shape).astype(np.float32)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low, high = RANGES.get(dtype, (-1000, 1000))
    return rng.integers(low, high + 1, shape).astype(dtype)
