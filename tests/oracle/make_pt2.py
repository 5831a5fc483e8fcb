"""Programs of torch.export with samples and the module's own outputs: tests/models/pt2.

    pip install torch --index-url https://download.pytorch.org/whl/cpu
    python tests/oracle/make_pt2.py               # writes them; NAME... for some of them
    python tests/oracle/make_pt2.py --check       # makes them anew, and compares calls, weights and outputs with what is committed

A network has NAME.pt2, as `torch.export.save` writes it but for what tells of the machine, of source lines and of the example, and NAME.samples.safetensors
with inputs `in.RUN.PORT` and outputs `out.RUN.PORT`. The MLP is there in the layouts of older releases as well: `mlp_2_8.pt2` (weights as one file of
torch.save) and `mlp_2_5.pt2` (PyTorch 2.5 to 2.7).

The seed of a network is its name.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from pt2_networks import NETWORKS

FOLDER = Path(__file__).parent.parent / "models" / "pt2"
RUNS = 2
LARGEST = 60_000
TIME = (2026, 1, 1, 0, 0, 0)


def made(name):
    make, inputs, dynamic = NETWORKS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    module = make().eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2.0)
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)) and part.weight is not None:
            nn.init.uniform_(part.weight, 0.5, 1.5)
            if getattr(part, "bias", None) is not None:
                nn.init.normal_(part.bias, 0, 0.3)
    runs = [tuple(shape() if callable(shape) else torch.randn(shape) for shape in inputs) for _ in range(RUNS)]
    return module, runs, dynamic


def exported(module, runs, dynamic):
    shapes = None
    if dynamic:
        shapes = ({axis: torch.export.Dim(name, min=2, max=64) for axis, name in dynamic.items()},)
        module, shapes = module, {"inputs": shapes} if type(module).__name__ == "Of" else shapes
    return torch.export.export(module, runs[0], dynamic_shapes=shapes)


def document(content):
    """The program without what tells of source lines."""
    program = json.loads(content)
    for node in program["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    program["graph_module"]["module_call_graph"] = []
    return json.dumps(program).encode()


def entries(name, program):
    """The entries of a file of torch.export.save, as a dictionary."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{name}.pt2"
        torch.export.save(program, path)
        with zipfile.ZipFile(path) as archive:
            found = {entry: archive.read(entry) for entry in archive.namelist()}
    found = {entry: content for entry, content in found.items() if "/sample_inputs/" not in entry and "/.data/" not in entry}
    return {entry: document(content) if "/models/" in entry else content for entry, content in found.items()}


def write(path, found, deflated=False):
    """An archive of these entries, stored as PyTorch stores them, or texts deflated."""
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in found.items():
            kind = zipfile.ZIP_DEFLATED if deflated and entry.endswith(".json") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(entry, TIME), content, kind)


def saved(tensors):
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return buffer.getvalue()


def older(name, program, folder):
    """The same program in the layouts of older releases."""
    found = entries(name, program)
    text = found[f"{name}/models/model.json"]
    state, constants = saved(program.state_dict), saved({})
    root = f"{name}_2_8"
    write(folder / f"{root}.pt2", {
        f"{root}/archive_format": b"pt2",
        f"{root}/models/model.json": text,
        f"{root}/data/weights/model.pt": state,
        f"{root}/data/constants/model.pt": constants,
    })  # fmt: skip
    old = json.loads(text)
    for node in old["graph_module"]["graph"]["nodes"]:
        for field in ("name", "is_hop_single_tensor_return"):
            node.pop(field, None)
    write(folder / f"{name}_2_5.pt2", {
        "serialized_exported_program.json": json.dumps(old).encode(),
        "serialized_state_dict.pt": state,
        "serialized_constants.pt": constants,
        "version": b"8.2",
    })  # fmt: skip


def flat(outputs):
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [tensor for output in outputs for tensor in flat(output)]


def written(name, folder):
    module, runs, dynamic = made(name)
    with torch.no_grad():
        program = exported(module, runs, dynamic)
        arrays = {}
        for run, inputs in enumerate(runs):
            copies = [tensor.clone() for tensor in inputs]
            for port, tensor in enumerate(inputs):
                arrays[f"in.{run}.{port}"] = tensor.contiguous().clone()
            for port, tensor in enumerate(flat(module(*copies))):
                arrays[f"out.{run}.{port}"] = tensor.contiguous().clone()
    write(folder / f"{name}.pt2", entries(name, program))
    save_file(arrays, folder / f"{name}.samples.safetensors")
    if name == "mlp":
        older(name, program, folder)
    size = sum(file.stat().st_size for file in folder.glob(f"{name}.*"))
    assert size <= LARGEST, f"{name}: {size} bytes"


def calls(path):
    with zipfile.ZipFile(path) as archive:
        [entry] = [entry for entry in archive.namelist() if "/models/" in entry]
        nodes = json.loads(archive.read(entry))["graph_module"]["graph"]["nodes"]
    return [node["target"] for node in nodes]


def differences(name, anew):
    """Differences of a network from its committed form. Other releases may write it otherwise; what it computes they may not change."""
    old, new = (load_file(folder / f"{name}.samples.safetensors") for folder in (FOLDER, anew))
    if old.keys() != new.keys():
        yield f"{name}: another list of arrays"
        return
    for key, value in old.items():
        if not np.allclose(value.double(), new[key].double(), rtol=1e-5, atol=1e-5):
            yield f"{name}: {key} differs"
    if calls(FOLDER / f"{name}.pt2") != calls(anew / f"{name}.pt2"):
        yield f"{name}: other calls"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # an operator of its own, which nothing else computes
    warnings.simplefilter("ignore")
    names, problems = options.names or list(NETWORKS), []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.check else FOLDER
        folder.mkdir(exist_ok=True)
        for name in names:
            written(name, folder)
            problems += differences(name, folder) if options.check else []
    print("\n".join(problems) or f"{len(names)} networks")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
