"""Quantises the .onnx models of a folder with ONNX Runtime, packs and runs them, and compares: the table of docs/onnx.md.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime numpy && venv/bin/python tests/oracle/quantised_onnx.py ../shared/data/models

Calibrated on the inputs of `golden`, which are judged as well: what is compared is arithmetic, not accuracy. Opset 11 has no scales for each output.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

ROOT = pathlib.Path(__file__).parent.parent.parent
MODELS = ["burn_mnist", "onnx2c_atmega_mnist", "st_yamnet_256_64x96_tl"]


class Reader(CalibrationDataReader):
    def __init__(self, name, samples):
        self.samples = iter([{name: sample} for sample in samples])

    def get_next(self):
        return next(self.samples, None)


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def decibels(found, exact):
    return 10 * np.log10((exact**2).sum() / max(((found - exact) ** 2).sum(), 1e-30))


def judge(model, samples, form, activations, per_channel, scratch):
    path = scratch / "quantised.onnx"
    float_session = session(model)
    name = float_session.get_inputs()[0].name
    quantize_static(model, path, Reader(name, samples), quant_format=form, activation_type=activations, weight_type=QuantType.QInt8,
                    per_channel=per_channel)
    run = lambda session: np.stack([session.run(None, {name: sample})[0] for sample in samples])
    exact, theirs = run(float_session), run(session(path))
    blob, inputs, outputs = scratch / "model.bin", scratch / "x.npy", scratch / "y.npy"
    np.save(inputs, np.stack(samples))
    tool = ["cargo", "run", "-q", "-p", "arenite-host", "--bin"]
    subprocess.run([*tool, "pack", "--", path, "-o", blob, "--target", "cortex-m4"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*tool, "arenite", "--", "run", blob, "--input", inputs, "--output", outputs], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    ours = np.load(outputs).reshape(theirs.shape)
    equal = (np.abs(ours - theirs) <= 1e-6 * np.abs(theirs).max()).mean()
    print(f"{model.stem}, {form.name}, {activations.name}, {'by output' if per_channel else 'by layer'}: equal {equal:.0%}, largest difference "
          f"{np.abs(ours - theirs).max():.5f}, SNR here {decibels(ours, exact):.1f}, there {decibels(theirs, exact):.1f}", flush=True)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        for name in MODELS:
            golden = np.load(folder / "golden" / f"{name}.npz")
            samples = list(golden["in_rand_0"].astype(np.float32))
            for form in (QuantFormat.QDQ, QuantFormat.QOperator):
                for activations in (QuantType.QInt8, QuantType.QUInt8):
                    for per_channel in (False, True):
                        if per_channel and name == "onnx2c_atmega_mnist":
                            continue
                        judge(folder / f"{name}.onnx", samples, form, activations, per_channel, pathlib.Path(scratch))


main()
