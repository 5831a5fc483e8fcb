"""Runs models on this machine, on one thread, by Arenite and by LiteRT (with XNNPACK) or ONNX Runtime in turn, and prints the medians of what a run takes.

    python3 -m venv venv && venv/bin/pip install ai-edge-litert onnxruntime numpy
    cargo build --release -p arenite-host --examples
    cargo build --release -p arenite-host --bin pack
    venv/bin/python tests/oracle/host_speed.py target/release MODEL.tflite|MODEL.onnx ...

Every model is packed for x86-64. Inputs are zeros. A run of the one follows a run of the other, so that both meet the same machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS = 3.0


def litert(path: Path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    return interpreter.invoke


def onnxruntime(path: Path):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8}
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in session.get_inputs()}
    feeds = {i.name: np.zeros(shapes[i.name], types[i.type]) for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def compared(programs: Path, path: Path) -> tuple[float, float]:
    """Seconds of Arenite and of the other."""
    other = litert(path) if path.suffix == ".tflite" else onnxruntime(path)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.bin"
        packing = [programs / "pack", path, "--target", "x86-64", "-o", model]
        subprocess.run(packing, check=True, stdout=subprocess.DEVNULL)
        child = subprocess.Popen(
            [programs / "examples" / "timed", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert child.stdin and child.stdout
        ours, theirs = [], []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(ours) < 5:
            child.stdin.write("\n")
            child.stdin.flush()
            ours.append(int(child.stdout.readline()) / 1e9)
            begin = time.perf_counter_ns()
            other()
            theirs.append((time.perf_counter_ns() - begin) / 1e9)
        child.stdin.close()
        child.wait()
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print("| model | Arenite, ms | other, ms | ratio |\n| --- | --: | --: | --: |")
    for path in map(Path, sys.argv[2:]):
        ours, theirs = compared(Path(sys.argv[1]), path)
        print(f"| {path.stem} | {1000 * ours:.3f} | {1000 * theirs:.3f} | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
