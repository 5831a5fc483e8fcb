"""Evaluates a trace in NumPy and writes its inputs and every layer's output, for `arenite diff MODEL ref.npz` to compare with.

    python tests/reference/reference.py TRACE --weights W.safetensors --input X.npy -o ref.npz
    python tests/reference/reference.py TRACE --weights W.safetensors --seed 1 --batch 1 --save-input X.npy -o ref.npz

The dialect is recognised from the content. All arithmetic is float64, the arrays are written as float32. The keys are those
that each dialect's module documents.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

MODULES = {
    "native": "native",
    "chainer": "vgg19_chainer",
    "rects": "localnet_rects",
    "megengine": "resnet50_megengine",
    "tf-shapes": "alexnet_tf_shapes",
    "keras-order": "resnet50_keras",
}


def load(trace: Path, dialect: str | None = None) -> Any:
    """The dialect's `Reference`: `input_shapes(batch)`, `parameters()`, `run(inputs, weights)`, `output`."""
    text = trace.read_text(encoding="utf-8")
    return importlib.import_module(MODULES[dialect or recognise(text)]).Reference(text)


def recognise(text: str) -> str:
    start = text.lstrip()
    if start.startswith("{"):
        return "native" if '"arenite_trace"' in start else "megengine"
    first = start.split("\n", 1)[0].split()
    if len(first) == 2 and all(word.isdigit() for word in first):
        return "chainer"
    if "Rect(array(" in text:
        return "rects"
    return "tf-shapes" if ", GPU, 0" in text or ", CPU, 0" in text else "keras-order"


class Weights(Mapping[str, np.ndarray]):
    """Arrays by name from a .safetensors or .npz file, each read when it is asked for and not kept."""

    def __init__(self, path: Path) -> None:
        if path.suffix == ".npz":
            self._file = np.load(path)
            self._names, self._get = list(self._file), self._file.__getitem__
        else:
            from safetensors import safe_open

            self._file = safe_open(path, framework="np")
            self._names, self._get = list(self._file.keys()), self._file.get_tensor

    def __getitem__(self, name: str) -> np.ndarray:
        return self._get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def check_weights(reference: Any, weights: Mapping[str, np.ndarray]) -> None:
    """Names must agree; shapes as well, where the trace states them. Reads one tensor at a time."""
    wanted = reference.parameters()
    missing, unknown = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    if missing or unknown:
        sys.exit(f"the weights do not fit the trace: missing {missing[:5]}, unknown {unknown[:5]}")
    for name, shape in wanted.items():
        if weights[name].shape != shape:
            sys.exit(f"weights {name}: shape {weights[name].shape}, the trace says {shape}")


class NpzWriter:
    """An .npz that grows array by array, so that a network's layers need not fit into memory together."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)

    def add(self, name: str, array: np.ndarray) -> None:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
        # A fixed date: the same arrays give the same bytes.
        self._zip.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getbuffer())

    def __enter__(self) -> NpzWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()


def read_inputs(options: argparse.Namespace, reference: Any) -> dict[str, np.ndarray]:
    shapes = reference.input_shapes(options.batch)
    if options.input is None:
        generator = np.random.default_rng(options.seed)
        return {n: generator.standard_normal(shape, dtype=np.float32) for n, shape in shapes.items()}
    inputs = {}
    for i, argument in enumerate(options.input):
        name, found, path = argument.partition("=")
        if not found:
            name, path = list(shapes)[i], argument
        inputs[name] = np.load(path)
        expected = shapes[name][1:]
        if inputs[name].shape[1:] != expected and reference.dialect != "keras-order":
            sys.exit(f"input {name}: shape {inputs[name].shape}, expected [N, {', '.join(map(str, expected))}]")
    if set(inputs) != set(shapes):
        sys.exit(f"the network's inputs are {list(shapes)}")
    return inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--dialect", choices=MODULES)
    parser.add_argument("--weights", type=Path, required=True, help=".safetensors or .npz by the trace's names")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", action="append", metavar="[NAME=]X.npy")
    source.add_argument("--seed", type=int, help="normal input from NumPy's default generator")
    parser.add_argument("--batch", type=int, default=1, help="with --seed")
    parser.add_argument("--save-input", type=Path, help="with --seed: writes the input, for one-input networks")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the .npz to write")
    parser.add_argument("--outputs-only", action="store_true", help="write the network's output alone")
    options = parser.parse_args()

    start = time.monotonic()
    reference = load(options.trace, options.dialect)
    weights = Weights(options.weights)
    check_weights(reference, weights)
    inputs = read_inputs(options, reference)
    if options.save_input is not None:
        (only,) = inputs.values()
        np.save(options.save_input, only)
    result, count = None, 0
    with NpzWriter(options.output) as npz:
        for name, x in inputs.items():
            npz.add(name, x.astype(np.float32))
        for name, y in reference.run(inputs, weights):
            count += 1
            if not np.isfinite(y).all():
                sys.exit(f"{name}: not finite")
            if name == reference.output:
                result = y
            if name not in inputs and (name == reference.output or not options.outputs_only):
                npz.add(name, y.astype(np.float32))
            print(f"{name}  {list(y.shape)}  max |y| {np.abs(y).max():.4g}", file=sys.stderr)
    assert result is not None, f"no layer {reference.output}"
    seconds = time.monotonic() - start
    print(f"{reference.dialect}: {count} layers in {seconds:.1f} s; {reference.output} {list(result.shape)}", end="")
    print(f", top-1 {result.reshape(len(result), -1).argmax(axis=1).tolist()}")


if __name__ == "__main__":
    main()
