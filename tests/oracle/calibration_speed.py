"""Samples a second that calibration takes on one core: Arenite's and ONNX Runtime's, on the same networks and samples, in turn; prints the medians.

    python3 -m venv venv && venv/bin/pip install ai-edge-litert onnx onnxruntime numpy flatbuffers
    cargo build --release -p arenite-host --example calibrated
    venv/bin/python tests/oracle/calibration_speed.py target/release NETWORK.tflite ...

Least and greatest values stand against ONNX Runtime's `MinMax`, histograms against its `Percentile`, which keeps histograms as well; of both what it takes
to run the samples and to keep what is wanted, not to load the network. ONNX Runtime gets the same graph as ONNX, which `quantisers.py` makes.
"""

from __future__ import annotations

import os

# Before anything starts a thread.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationMethod
from onnxruntime.quantization.calibrate import create_calibrator

from quantisers import Reader, as_onnx

SAMPLES, TURNS = 64, 5


def ours(programs: Path, network: Path, samples: Path, folder: Path) -> list[float]:
    """Samples a second: least and greatest, histograms."""
    command = [programs / "examples" / "calibrated", network, samples, folder / "model.bin"]
    return [float(rate) for rate in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()]


def theirs(model: Path, samples: np.ndarray, method: CalibrationMethod, folder: Path) -> float:
    calibrator = create_calibrator(str(model), None, augmented_model_path=str(folder / "augmented.onnx"), calibrate_method=method)
    begin = time.perf_counter()
    calibrator.collect_data(Reader("input", list(samples)))
    calibrator.compute_data()
    return len(samples) / (time.perf_counter() - begin)


def compared(programs: Path, network: Path) -> list[tuple[float, float]]:
    """Of both methods the rates of Arenite and of ONNX Runtime."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = as_onnx(network)
        model = folder / "network.onnx"
        onnx.save(graph, model)
        shape = [axis.dim_value for axis in graph.graph.input[0].type.tensor_type.shape.dim]
        samples = np.random.default_rng(9).standard_normal((SAMPLES, *shape)).astype(np.float32)
        np.save(folder / "samples.npy", samples)
        rates = []
        for _ in range(TURNS):
            found = ours(programs, network, folder / "samples.npy", folder)
            methods = (CalibrationMethod.MinMax, CalibrationMethod.Percentile)
            rates.append((*found, *(theirs(model, samples, method, folder) for method in methods)))
        ours_min, ours_bins, their_min, their_bins = (statistics.median(column) for column in zip(*rates))
        return [(ours_min, their_min), (ours_bins, their_bins)]


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print("| network | method | Arenite, samples/s | ONNX Runtime, samples/s | ratio |\n| --- | --- | --: | --: | --: |")
    for network in map(Path, sys.argv[2:]):
        for method, (mine, other) in zip(("MinMax", "Percentile"), compared(Path(sys.argv[1]), network)):
            print(f"| {network.stem} | {method} | {mine:.0f} | {other:.0f} | {mine / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
