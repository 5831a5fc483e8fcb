"""Small networks of all kinds, each written through every door that a PyTorch network has: tests/models/doors.

    pip install ./host-tools/python torch onnx onnxscript --extra-index-url https://download.pytorch.org/whl/cpu
    python tests/oracle/make_doors.py               # writes them; NAME... for some of them, --door DOOR by one door alone
    python tests/oracle/make_doors.py --check       # makes them anew, and compares with what is committed

A network has NAME.trace.json (the tracer's, with NAME.safetensors), NAME.torchscript.onnx and NAME.dynamo.onnx (PyTorch's two exporters), and where
`litert-torch` is installed NAME.tflite, whose inputs and outputs keep PyTorch's order. NAME.pt2 is the program of torch.export, its texts deflated.
NAME.samples.safetensors has inputs with the outputs of the module as
PyTorch computes it, for all of them. A door whose exporter refuses the network is left out, and said.

The seed of a network is its name. No input is square.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import onnx
import torch
from torch import nn

import arenite_trace
from door_networks import NETWORKS
from made_anew import of_arrays
from make_pt2 import calls, entries, write

try:
    import litert_torch
except ImportError:
    litert_torch = None

FOLDER = Path(__file__).parent.parent / "models" / "doors"
RUNS = 3
LARGEST = 120_000


def made(name):
    make, shape = NETWORKS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    module = make().eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0, 0.3)
        elif isinstance(part, (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            if getattr(part, "bias", None) is not None:
                nn.init.normal_(part.bias, 0, 0.3)
    return module, [torch.randn(shape) * 2 for _ in range(RUNS)]


def bare(path):
    """Without what tells of the machine and of source lines."""
    model = onnx.load(path)
    model.ClearField("metadata_props")
    graphs = [model.graph, *model.functions]
    for graph in graphs:
        for part in [graph, *graph.node, *graph.value_info, *getattr(graph, "initializer", []), *getattr(graph, "input", []), *getattr(graph, "output", [])]:
            if hasattr(part, "DESCRIPTOR"):
                part.ClearField("metadata_props")
                part.ClearField("doc_string")
    onnx.save(model, path)


def by_onnx(module, runs, path, dynamo):
    names = {"input_names": ["x"], "output_names": ["y"]}
    torch.onnx.export(module, (runs[0],), path, dynamo=dynamo, opset_version=18, external_data=False, verbose=False, **names)
    bare(path)


def by_tracer(module, runs, path):
    arenite_trace.trace(module, runs[0], path, samples=runs, rtol=1e-5, output_names=["y"])
    document = json.loads(path.read_text())
    for op in document["ops"]:
        op.pop("source", None)
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")


def by_export(module, runs, path):
    write(path, entries(path.stem, torch.export.export(module, (runs[0],))), deflated=True)


DOORS = {
    "trace.json": by_tracer,
    "torchscript.onnx": lambda module, runs, path: by_onnx(module, runs, path, False),
    "dynamo.onnx": lambda module, runs, path: by_onnx(module, runs, path, True),
    "pt2": by_export,
    "tflite": lambda module, runs, path: litert_torch.convert(module, (runs[0],)).export(str(path)),
}


def written(name, folder, doors):
    """Writes a network's files."""
    for door in doors:
        module, runs = made(name)
        with torch.no_grad():
            try:
                DOORS[door](module, runs, folder / f"{name}.{door}")
            except Exception as error:  # noqa: BLE001: whatever the converter raises is its refusal
                if door == "trace.json":
                    raise
                print(f"{name} has no {door}: {' '.join(str(error).split())[:300]}", flush=True)
    size = sum(file.stat().st_size for file in folder.glob(f"{name}.*"))
    assert size <= LARGEST, f"{name}: {size} bytes"


def differences(name, anew):
    """Differences of a network from its committed form. Exporters of other releases may write it otherwise; what the network computes they may not change."""
    yield from of_arrays(name, FOLDER, anew)
    for suffix in ("torchscript.onnx", "dynamo.onnx"):
        if not all((folder / f"{name}.{suffix}").exists() for folder in (FOLDER, anew)):
            if (FOLDER / f"{name}.{suffix}").exists() != (anew / f"{name}.{suffix}").exists():
                yield f"{name}: {suffix} is there and not there"
            continue
        old, new = ([node.op_type for node in onnx.load(folder / f"{name}.{suffix}").graph.node] for folder in (FOLDER, anew))
        if old != new:
            yield f"{name}: other operators in {suffix}"
    old, new = (calls(folder / f"{name}.pt2") for folder in (FOLDER, anew))
    if old != new:
        yield f"{name}: other calls in pt2"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--door", choices=DOORS, action="append", help="this one alone; repeatable")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    doors = options.door or [door for door in DOORS if door != "tflite" or litert_torch]
    check, names = options.check, options.names or list(NETWORKS)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # an operator of its own, which no exporter knows
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if check else FOLDER
        folder.mkdir(exist_ok=True)
        for name in names:
            written(name, folder, doors)
        problems = [problem for name in names for problem in differences(name, folder)] if check else []
    print("\n".join(problems) or f"{len(names)} networks")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
