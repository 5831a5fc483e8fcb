"""Single-operator models and what TensorFlow Lite Micro makes of them.

    pip install tflite-micro ai-edge-litert flatbuffers numpy
    python tests/oracle/make_cases.py [NAME-PREFIX ...]

writes tests/models/tflite_ops/NAME.tflite and one cases.npz with `NAME/in_i` and `NAME/out_i`; the first axis counts consecutive
runs of one interpreter, so stateful operators carry their state over. Cases called wide_… go to tests/models/tflite_wide. The seed of each
case is its name: the files are reproducible. A case that TensorFlow Lite Micro refuses is computed by LiteRT's reference kernels where it is one of
`control.NAMES`, `detections.OTHERS`, `general.NAMES`, `legacy.NAMES` or `sparse.NAMES` and listed in litert.txt; other combinations that it refuses are
reported and left out.
"""

import contextlib
import os
import pathlib
import sys
import zlib

import numpy as np

import control  # registers cases
import detections  # likewise
import general  # likewise
import legacy  # likewise
import rearranged  # likewise
import sparse  # likewise
import stateful  # likewise
import uneven  # likewise
import wide  # likewise
from cases import CASES, TRUTH
from tflite_builder import random_input, reference, run, schema

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


def main():
    prefixes = tuple(sys.argv[1:])
    for folder, wide in [("tflite_ops", False), ("tflite_wide", True)]:
        wanted = lambda name: name.startswith("wide_") == wide and (not prefixes or name.startswith(prefixes))
        cases = {name: make for name, make in CASES.items() if wanted(name)}
        if cases:
            write(MODELS / folder, prefixes, cases)


def close(name, computed, hybrid):
    """The same numbers, but for what LiteRT's rounding of activations costs."""
    for a, b in zip(computed, hybrid):
        worst = float(np.abs(a - b).max() / np.abs(a).max())
        print(f"{name}: LiteRT's hybrid kernel is {worst:.1e} away")
        assert worst < 0.05, name


def write(out, prefixes, cases):
    out.mkdir(parents=True, exist_ok=True)
    arrays, refused, other = {}, [], set()
    listed = out / "litert.txt"
    if prefixes and (out / "cases.npz").exists():
        arrays = {k: v for k, v in np.load(out / "cases.npz").items() if not k.startswith(prefixes)}
        other = {name for name in listed.read_text().split() if not name.startswith(prefixes)} if listed.exists() else set()
    for name, make in cases.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        file, runs, given = make(rng)
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(file, 0))
        count = len(model.subgraphs[0].inputs)
        inputs = given if given is not None else [random_input(rng, model, i, runs) for i in range(count)]
        try:
            if name in legacy.NAMES | detections.OTHERS:
                raise ValueError("uint8")
            with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
                outputs = run(TRUTH.get(name, file), inputs)
            if name in TRUTH and name not in detections.NAMES:
                close(name, outputs, reference(file, inputs))
        except Exception as error:
            if name not in control.NAMES | detections.OTHERS | general.NAMES | legacy.NAMES | sparse.NAMES:
                refused.append(f"{name}: {error}")
                continue
            try:
                outputs = reference(file, inputs)
            except Exception as second:
                refused.append(f"{name}: {error}; {second}")
                continue
            other.add(name)
        if name in detections.NAMES:
            outputs = detections.told(outputs)
        if name in legacy.NAMES | detections.NAMES:
            inputs, outputs = map(legacy.as_int8, inputs), list(map(legacy.as_int8, outputs))
        (out / f"{name}.tflite").write_bytes(file)
        for i, value in enumerate(inputs):
            arrays[f"{name}/in_{i}"] = value
        for i, value in enumerate(outputs):
            arrays[f"{name}/out_{i}"] = value
    np.savez_compressed(out / "cases.npz", **dict(sorted(arrays.items())))
    if other or listed.exists():
        listed.write_text("".join(f"{name}\n" for name in sorted(other)))
    print(f"{len({k.split('/')[0] for k in arrays})} cases, {len(other)} of them by LiteRT")
    for line in refused:
        print("refused by TensorFlow Lite Micro:", line)


if __name__ == "__main__":
    main()
