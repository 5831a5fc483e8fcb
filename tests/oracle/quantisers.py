"""Quantises float networks with other quantisers, on given calibration sets: the peers of `cargo xtask quantisers`, which judges what they answer.

    python3 -m venv venv && venv/bin/pip install ./host-tools/python ai-edge-quantizer ai-edge-litert onnx onnxruntime onnxscript torch torchao scikit-learn
    cargo xtask quantisers --python venv/bin/python

    python tests/oracle/quantisers.py SETS MODELS ANSWERS

SETS has a file NAME.npz for each network: `samples_K` calibrate its fold K, `judged_K` are the inputs whose answers are asked for. MODELS has the
.tflite files. ANSWERS gets NAME.QUANTISER.npz with `answers_K`: real numbers, of the tensor before the last softmax.

Networks of .tflite files go to ai-edge-quantizer as they are, and as the same graph in ONNX, which is made here, to ONNX Runtime; the digits go to torchao's
PT2E and, exported, to ONNX Runtime. Of a quantiser with several methods each is tried.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path

import flatbuffers
import numpy as np
import onnx
import onnxruntime
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

warnings.filterwarnings("ignore")

ROOT = Path(__file__).parent.parent
DIGITS = ("digits", "residual", "mlp")
FIXED = {getattr(schema.BuiltinOperator, name): name for name in dir(schema.BuiltinOperator) if name.isupper()}


def as_onnx(path: Path) -> onnx.ModelProto:
    """The graph of a float .tflite file of one input: its operators one by one, in NCHW between two transpositions where there are pictures."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
    graph = model.subgraphs[0]
    nodes, constants = [], []
    # By tensor: the name in ONNX; pictures are NCHW there.
    names = {}

    def constant(array, name):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def stored(index):
        tensor = graph.tensors[index]
        kind = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32}[tensor.type]
        return np.frombuffer(bytes(model.buffers[tensor.buffer].data), kind).reshape(tensor.shape)

    def add(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def padding(options, extents, window, strides, dilations):
        if options.padding == schema.Padding.VALID:
            return [0, 0, 0, 0]
        before, after = [], []
        for extent, taps, stride, dilation in zip(extents, window, strides, dilations):
            total = max((-(-extent // stride) - 1) * stride + (taps - 1) * dilation + 1 - extent, 0)
            before.append(total // 2)
            after.append(total - total // 2)
        return before + after

    def activated(options, name, last):
        kind = options.fusedActivationFunction
        if kind == schema.ActivationFunctionType.NONE:
            return add("Identity", [name], last)
        if kind == schema.ActivationFunctionType.RELU6:
            zero, six = constant(np.float32(0), f"{last}.least"), constant(np.float32(6), f"{last}.most")
            return add("Clip", [name, zero, six], last)
        assert kind == schema.ActivationFunctionType.RELU, kind
        return add("Relu", [name], last)

    entered, left = graph.inputs[0], graph.outputs[0]
    shape = [int(extent) for extent in graph.tensors[entered].shape]
    names[entered] = add("Transpose", ["input"], "input.nchw", perm=[0, 3, 1, 2]) if len(shape) == 4 else "input"
    for at, operator in enumerate(graph.operators):
        code = model.operatorCodes[operator.opcodeIndex]
        kind = FIXED[max(code.builtinCode, code.deprecatedBuiltinCode)]
        options, ins, out = operator.builtinOptions, operator.inputs, operator.outputs[0]
        name, raw = f"t{out}", f"t{out}.sum"
        if kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            weights, strides = stored(ins[1]), [options.strideH, options.strideW]
            dilations = [options.dilationHFactor, options.dilationWFactor]
            groups = 1
            if kind == "CONV_2D":
                weights = weights.transpose(0, 3, 1, 2)
            else:
                weights, groups = weights.transpose(3, 0, 1, 2), weights.shape[3] // options.depthMultiplier
            pads = padding(options, graph.tensors[ins[0]].shape[1:3], weights.shape[2:], strides, dilations)
            operands = [names[ins[0]], constant(weights, f"{name}.weights"), constant(stored(ins[2]), f"{name}.biases")]
            add("Conv", operands, raw, strides=strides, dilations=dilations, pads=pads, group=groups)
            names[out] = activated(options, raw, name)
        elif kind == "FULLY_CONNECTED":
            operands = [names[ins[0]], constant(stored(ins[1]), f"{name}.weights"), constant(stored(ins[2]), f"{name}.biases")]
            add("Gemm", operands, raw, transB=1)
            names[out] = activated(options, raw, name)
        elif kind == "ADD":
            add("Add", [names[ins[0]], names[ins[1]]], raw)
            names[out] = activated(options, raw, name)
        elif kind == "AVERAGE_POOL_2D":
            strides, window = [options.strideH, options.strideW], [options.filterHeight, options.filterWidth]
            pads = padding(options, graph.tensors[ins[0]].shape[1:3], window, strides, [1, 1])
            names[out] = add("AveragePool", [names[ins[0]]], name, kernel_shape=window, strides=strides, pads=pads, count_include_pad=0)
        elif kind == "RESHAPE":
            source = names[ins[0]]
            # Of one pixel the order of axes is any.
            assert all(extent == 1 for extent in graph.tensors[ins[0]].shape[1:3]), "a picture is flattened"
            target = constant(np.array(graph.tensors[out].shape, np.int64), f"{name}.shape")
            names[out] = add("Reshape", [source, target], name)
        elif kind == "SOFTMAX":
            names[out] = add("Softmax", [names[ins[0]]], name, axis=-1)
        else:
            raise ValueError(f"{path.name}: operator {at} is {kind}")
    outputs = [helper.make_tensor_value_info(names[left], onnx.TensorProto.FLOAT, list(map(int, graph.tensors[left].shape)))]
    inputs = [helper.make_tensor_value_info("input", onnx.TensorProto.FLOAT, shape)]
    made = helper.make_model(helper.make_graph(nodes, path.stem, inputs, outputs, constants), opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    onnx.checker.check_model(made)
    return made


def tflite(path: Path):
    """An interpreter without delegates, and the tensors that it reads and that are judged."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                              experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    details = interpreter.get_tensor_details()
    last = interpreter.get_output_details()[0]["index"]
    # Back over a conversion and a softmax.
    for operator in reversed(interpreter._get_ops_details()):
        if last in operator["outputs"] and operator["op_name"] in ("SOFTMAX", "DEQUANTIZE"):
            last = operator["inputs"][0]
    judged = next(detail for detail in details if detail["index"] == last)
    return interpreter, interpreter.get_input_details()[0], judged


def run_tflite(path: Path, inputs):
    interpreter, entry, judged = tflite(path)
    answers = []
    for value in inputs:
        if entry["dtype"] != np.float32:
            scale, zero = entry["quantization"]
            limits = np.iinfo(entry["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max).astype(entry["dtype"])
        interpreter.set_tensor(entry["index"], value.reshape(entry["shape"]))
        interpreter.invoke()
        found = interpreter.get_tensor(judged["index"])
        if found.dtype != np.float32:
            scale, zero = judged["quantization"]
            found = scale * (found.astype(np.float64) - zero)
        answers.append(found.astype(np.float64).ravel())
    return np.stack(answers)


def signed(path: Path, target: Path) -> Path:
    """The file as ai-edge-quantizer reads it: operators by their newer numbers, and a signature, which names the inputs; older files have neither."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
    graph = model.subgraphs[0]
    for code in model.operatorCodes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = "serving_default", 0
    signature.inputs, signature.outputs = [], []
    for kind, tensors, maps in (("input", graph.inputs, signature.inputs), ("output", graph.outputs, signature.outputs)):
        for index in tensors:
            named = schema.TensorMapT()
            named.name, named.tensorIndex = kind, index
            maps.append(named)
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    target.write_bytes(builder.Output())
    return target


def ai_edge(path: Path, samples, scratch: Path) -> Path:
    from ai_edge_quantizer import quantizer, recipe

    path = signed(path, scratch / "signed.tflite")
    made = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    shape = Interpreter(str(path)).get_input_details()[0]["shape"]
    calibration = made.calibrate({"serving_default": [{"input": sample.reshape(shape).astype(np.float32)} for sample in samples]})
    target = scratch / "ai_edge.tflite"
    target.unlink(missing_ok=True)
    made.quantize(calibration).export_model(str(target))
    return target


class Reader(CalibrationDataReader):
    def __init__(self, name, samples):
        self.samples = iter([{name: sample} for sample in samples])

    def get_next(self):
        return next(self.samples, None)


METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}


def run_onnx(model: Path, samples, inputs, method, scratch: Path):
    ready, made = scratch / "ready.onnx", scratch / "made.onnx"
    quant_pre_process(str(model), str(ready), skip_symbolic_shape=True)
    session = onnxruntime.InferenceSession(str(ready))
    entry = session.get_inputs()[0]
    shaped = [sample.reshape(entry.shape).astype(np.float32) for sample in samples]
    quantize_static(str(ready), str(made), Reader(entry.name, shaped), quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, per_channel=True, calibrate_method=METHODS[method])
    graph = onnx.load(made)
    # Back over the conversions of the output, and a softmax.
    judged, moved = graph.graph.output[0].name, True
    while moved:
        moved = False
        for node in graph.graph.node:
            if judged in node.output and node.op_type == "Softmax":
                judged, moved = node.input[0], True
                break
            is_last = judged == graph.graph.output[0].name or node.op_type == "QuantizeLinear"
            if judged in node.output and node.op_type in ("DequantizeLinear", "QuantizeLinear") and is_last and has_softmax(graph):
                judged, moved = node.input[0], True
                break
    if judged != graph.graph.output[0].name:
        graph.graph.output.append(helper.make_tensor_value_info(judged, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    return np.stack([session.run([judged], {entry.name: value.reshape(entry.shape)})[0].astype(np.float64).ravel() for value in inputs])


def has_softmax(graph) -> bool:
    return any(node.op_type == "Softmax" for node in graph.graph.node)


def digits_module(name: str):
    """As `tests/models/digits/train.py` has it, with its weights; answers are logits."""
    import torch
    from safetensors.torch import load_file

    spec = importlib.util.spec_from_file_location("train", ROOT / "models/digits/train.py")
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    module = train.NETWORKS[name][0]()
    module.load_state_dict(load_file(ROOT / f"models/digits/{name}.safetensors"), strict=False)
    if name == "residual":
        module.forward = module.logits
    return torch, module.eval()


def torchao(name: str, samples, inputs):
    torch, module = digits_module(name)
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    shaped = [torch.from_numpy(sample.reshape(1, 1, 8, 8)) for sample in samples]
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, (shaped[0],)).module(), quantizer)
    with torch.no_grad():
        for sample in shaped:
            prepared(sample)
        made = convert_pt2e(prepared)
        return np.stack([made(torch.from_numpy(value.reshape(1, 1, 8, 8))).numpy().astype(np.float64).ravel() for value in inputs])


def exported(name: str, scratch: Path) -> Path:
    torch, module = digits_module(name)
    path = scratch / f"{name}.onnx"
    torch.onnx.export(module, (torch.zeros(1, 1, 8, 8),), str(path), dynamo=True, external_data=False, verbose=False)
    return path


def quantisers(name: str, models: Path, scratch: Path):
    """By name: a function of samples and inputs to answers."""
    found = {}
    if name in DIGITS:
        found["torchao PT2E"] = lambda samples, inputs: torchao(name, samples, inputs)
        graph = exported(name, scratch)
    else:
        path, graph = models / f"{name}.tflite", scratch / f"{name}.onnx"
        onnx.save(as_onnx(path), graph)
        found["ai-edge-quantizer"] = lambda samples, inputs: run_tflite(ai_edge(path, samples, scratch), inputs)
    for method in METHODS:
        found[f"ONNX Runtime, {method}"] = lambda samples, inputs, method=method: run_onnx(graph, samples, inputs, method, scratch)
    return found


def check(name: str, models: Path, scratch: Path, inputs):
    """The graph that was made for ONNX answers what the .tflite file does."""
    session = onnxruntime.InferenceSession(str(scratch / f"{name}.onnx"))
    entry = session.get_inputs()[0]
    interpreter = Interpreter(str(models / f"{name}.tflite"))
    interpreter.allocate_tensors()
    into, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    for value in inputs:
        interpreter.set_tensor(into["index"], value.reshape(into["shape"]))
        interpreter.invoke()
        expected, found = interpreter.get_tensor(out["index"]), session.run(None, {entry.name: value.reshape(entry.shape)})[0]
        assert np.allclose(expected, found, rtol=1e-4, atol=1e-5), f"{name}: the graphs differ by {np.abs(expected - found).max()}"


def main():
    sets, models, answers = map(Path, sys.argv[1:4])
    answers.mkdir(exist_ok=True)
    for path in sorted(sets.glob("*.npz")):
        data = np.load(path)
        folds = sum(key.startswith("samples_") for key in data)
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            found = quantisers(path.stem, models, scratch)
            if path.stem not in DIGITS:
                check(path.stem, models, scratch, data["judged_0"][:2])
            for quantiser, run in found.items():
                arrays = {f"answers_{k}": run(data[f"samples_{k}"], data[f"judged_{k}"]) for k in range(folds)}
                np.savez(answers / f"{path.stem}.{quantiser}.npz", **arrays)
                print(f"{path.stem}: {quantiser}, {folds} folds", flush=True)


if __name__ == "__main__":
    main()
