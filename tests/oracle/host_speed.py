"""Runs models on this machine, on one thread, by Arenite and by LiteRT (with XNNPACK) or ONNX Runtime in turn, and prints the medians of what a run takes.

    python3 -m venv venv && venv/bin/pip install ai-edge-litert onnx onnxruntime safetensors numpy
    cargo build --release -p arenite-host --bin pack --bin arenite --example timed
    venv/bin/python tests/oracle/host_speed.py target/release MODEL.tflite|MODEL.onnx|TRACE ...

Every model is packed for x86-64. Inputs are zeros. A run of the one follows a run of the other, so that both meet the same machine; of the time that passed
and the processor's time the lesser counts, for other processes may come between.

A trace has seeded weights, and ONNX Runtime gets the same network with the same weights (`tests/reference/onnx_graph.py`). Both answer a random input first,
and must agree within 1e-4 of the largest answer.
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
ROUNDS = 15
REFERENCE = Path(__file__).parent.parent / "reference"


def litert(path: Path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    return interpreter.invoke


def onnx_session(path: Path):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnxruntime(path: Path):
    session = onnx_session(path)
    types = {"tensor(float)": np.float32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8}
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in session.get_inputs()}
    feeds = {i.name: np.zeros(shapes[i.name], types[i.type]) for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def prepared(programs: Path, path: Path, folder: Path) -> tuple[Path, list]:
    """A trace as ONNX, and what `pack` takes beside it."""
    sys.path.insert(0, str(REFERENCE))
    import onnx_graph

    weights, graph = folder / "weights.safetensors", folder / "graph.onnx"
    subprocess.run([programs / "arenite", "weights", path, "--seed", "1", "-o", weights], check=True, stdout=subprocess.DEVNULL)
    onnx_graph.write(path, weights, graph)
    return graph, ["--weights", weights]


def agree(programs: Path, model: Path, graph: Path, folder: Path) -> None:
    """Fails where the answers to a random input differ."""
    session = onnx_session(graph)
    given = session.get_inputs()[0]
    x = np.random.default_rng(1).standard_normal(given.shape).astype(np.float32)
    theirs = session.run(None, {given.name: x})[0].ravel()
    np.save(folder / "x.npy", x)
    running = [programs / "arenite", "run", model, "--input", folder / "x.npy", "--output", folder / "y.npy"]
    subprocess.run(running, check=True, stdout=subprocess.DEVNULL)
    ours = np.load(folder / "y.npy").ravel()
    apart = np.abs(ours - theirs).max() / np.abs(theirs).max()
    print(f"<!-- {model.name}: answers {apart:.1e} of the largest apart -->", flush=True)
    if not apart < 1e-4:
        sys.exit(f"{model}: answers differ by {apart} of the largest one")


def processor(pid: int) -> int:
    """Nanoseconds that a process of one thread, which now waits, has had of a processor; where the system does not say, as many as none."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except OSError:
        return -1


def compared(programs: Path, path: Path) -> tuple[float, float]:
    """Seconds of Arenite and of the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        is_trace = ".trace." in path.name
        graph, options = prepared(programs, path, folder) if is_trace else (path, [])
        model = folder / "model.bin"
        packing = [programs / "pack", path, *options, "--target", "x86-64", "-o", model]
        subprocess.run(packing, check=True, stdout=subprocess.DEVNULL)
        if is_trace:
            agree(programs, model, graph, folder)
        other = litert(path) if path.suffix == ".tflite" else onnxruntime(graph)
        child = subprocess.Popen(
            [programs / "examples" / "timed", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert child.stdin and child.stdout
        ours, theirs = [], []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(ours) < ROUNDS:
            before = processor(child.pid)
            child.stdin.write("\n")
            child.stdin.flush()
            passed = int(child.stdout.readline())
            had = processor(child.pid) - before
            ours.append(min(passed, had if had > 0 else passed) / 1e9)
            begin, begun = time.perf_counter_ns(), time.thread_time_ns()
            other()
            theirs.append(min(time.perf_counter_ns() - begin, time.thread_time_ns() - begun) / 1e9)
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
