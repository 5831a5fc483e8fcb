"""Quantises the network of a reference trace with ONNX Runtime and says how near each layer stays to the float network.

    python tests/reference/quantised.py TRACE --weights W.safetensors --calibrate X.npy --judge OTHERS.npy [--method percentile]

Wants `onnx`, `onnxruntime` and `safetensors`. Inputs are [samples, …] in the trace's layout. Prints JSON: by layer of the trace, `snr_db` and
`deviations_db` as `arenite diff --float` defines them, of the answers under `answers`.
QDQ with int8 activations and a scale for each output channel, as ONNX Runtime's documentation advises.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import onnx_graph

METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter([{"input": sample} for sample in samples])

    def get_next(self):
        return next(self.samples, None)


def session(model: onnx.ModelProto, tensors: list[str]) -> onnxruntime.InferenceSession:
    """Gives these tensors as well."""
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in tensors)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Sums:
    def __init__(self):
        self.squares, self.means = np.zeros(2), None

    def add(self, float_values, found):
        pair = np.stack([float_values.astype(np.float64).ravel(), (float_values.astype(np.float64) - found).ravel()])
        self.squares += (pair**2).sum(axis=1)
        self.means = pair if self.means is None else self.means + pair

    def decibels(self, samples):
        ratio = lambda pair: round(10 * float(np.log10(pair[0] / pair[1])), 2) if pair[1] > 0 and pair[0] > 0 else None
        return {"snr_db": ratio(self.squares), "deviations_db": ratio(self.squares - (self.means**2).sum(axis=1) / samples)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace", type=Path)
    for name in ("--weights", "--calibrate", "--judge"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--method", choices=METHODS, default="minmax")
    options = parser.parse_args()
    calibrate, judge = (np.load(path).astype(np.float32) for path in (options.calibrate, options.judge))
    with tempfile.TemporaryDirectory() as folder:
        graph, ready, made = (str(Path(folder) / name) for name in ("graph.onnx", "ready.onnx", "made.onnx"))
        layers = [line.split("\t") for line in onnx_graph.write(options.trace, options.weights, Path(graph))]
        quant_pre_process(graph, ready, skip_symbolic_shape=True)
        quantize_static(ready, made, Reader(calibrate[:, None]), quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                        per_channel=True, calibrate_method=METHODS[options.method])
        before, after = onnx.load(graph), onnx.load(made)
    there = {name for node in after.graph.node for name in node.output}
    # The node that follows reads the tensor through its integers.
    quantised = {name: next((n for n in (f"{name}_DequantizeLinear_Output", name) if n in there), None) for _, name in layers}
    layers = [(key, name) for key, name in layers if quantised[name]]
    names = [name for _, name in layers]
    before, after = session(before, names), session(after, [quantised[name] for name in names])
    sums = [Sums() for _ in names]
    for value in judge[:, None]:
        for of_layer, exact, found in zip(sums, before.run(None, {"input": value}), after.run(None, {"input": value})):
            of_layer.add(exact, found)
    of_layers = {key: of_layer.decibels(len(judge)) for (key, _), of_layer in zip(layers, sums)}
    print(json.dumps({"layers": of_layers, "answers": of_layers[layers[-1][0]]}, indent=1))


if __name__ == "__main__":
    main()
