"""Quantises small networks with torchao, after training (PT2E) and while training (QAT), and traces them with PyTorch's outputs: tests/models/pytorch_int8.

    pip install ./host-tools/python torch torchao --extra-index-url https://download.pytorch.org/whl/cpu
    python tests/oracle/make_pytorch_int8.py             # writes them
    python tests/oracle/make_pytorch_int8.py --check     # traces them anew, and compares with what is committed

The seed of a network is its name. No input is square.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")

from torchao.quantization.pt2e import move_exported_model_to_eval  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e  # noqa: E402
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import X86InductorQuantizer, get_default_x86_inductor_quantization_config  # noqa: E402
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config  # noqa: E402

import arenite_trace  # noqa: E402

FOLDER = Path(__file__).parent.parent / "models" / "pytorch_int8"
RUNS = 24
LARGEST = 300_000


class Mobile(nn.Module):
    """As MobileNetV2: a block with a shortcut and one that makes the picture smaller."""

    shape = (1, 3, 18, 14)

    def __init__(self):
        super().__init__()
        layer = lambda i, o, k, s=1, g=1: nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o))
        self.stem = layer(3, 8, 3, 2)
        self.widen, self.depth, self.narrow = layer(8, 24, 1), layer(24, 24, 3, 1, 24), layer(24, 8, 1)
        self.smaller, self.last = layer(8, 8, 3, 2, 8), layer(8, 20, 1)
        self.head = nn.Linear(20, 6)

    def forward(self, image):
        x = F.relu(self.stem(image))
        x = x + self.narrow(F.relu(self.depth(F.relu(self.widen(x)))))
        x = F.relu(self.last(F.relu(self.smaller(x))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Branches(nn.Module):
    """Branches that are joined, under a maximum."""

    shape = (1, 2, 11, 16)

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(2, 6, 5, padding=2), nn.BatchNorm2d(6)
        self.one, self.three = nn.Conv2d(6, 5, 1), nn.Conv2d(6, 7, 3, padding=1)
        self.hidden, self.head = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.norm(self.stem(image))), 2)
        x = torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)
        return self.head(F.relu(self.hidden(x.mean((2, 3)))))


class Layer(nn.Module):
    """A layer alone: what its one rounding costs."""

    shape = (1, 3, 13, 9)

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8)

    def forward(self, image):
        return F.relu(self.norm(self.conv(image)))


def xnnpack(**options):
    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))


def calibrated(module, shape, quantizer):
    """Quantised after training."""
    exported = torch.export.export(module.eval(), (torch.randn(shape),)).module()
    prepared = prepare_pt2e(exported, quantizer)
    for _ in range(16):
        prepared(torch.randn(shape))
    return convert_pt2e(prepared)


def trained(module, shape, quantizer):
    """Quantised while training, for a few steps; the batch of training is the one of inference, which the exported module has for good."""
    exported = torch.export.export(module.train(), (torch.randn(shape),)).module()
    prepared = prepare_qat_pt2e(exported, quantizer)
    optimizer = torch.optim.SGD(prepared.parameters(), 1e-3)
    for _ in range(24):
        x = torch.randn(shape)
        loss = (prepared(x) - x.mean()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    move_exported_model_to_eval(prepared)
    return convert_pt2e(prepared)


# A network, how it is quantised, and by which rules.
NETWORKS = {
    "layer_pt2e": (Layer, calibrated, lambda: xnnpack(is_per_channel=True)),
    "mobile_pt2e": (Mobile, calibrated, lambda: xnnpack(is_per_channel=True)),
    "mobile_pt2e_one_scale": (Mobile, calibrated, lambda: xnnpack(is_per_channel=False)),
    "branches_qat": (Branches, trained, lambda: xnnpack(is_per_channel=True, is_qat=True)),
    "branches_u8": (Branches, calibrated, lambda: X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())),
}


def traced(name, folder):
    kind, quantise, quantizer = NETWORKS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    module = kind()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2.0)
    quantised = quantise(module, kind.shape, quantizer())
    runs = [torch.randn(kind.shape) for _ in range(RUNS)]
    arenite_trace.trace(quantised, runs[0], folder / f"{name}.trace.json", samples=runs, rtol=0.02)
    size = sum(file.stat().st_size for file in folder.glob(f"{name}.*"))
    assert size <= LARGEST, f"{name}: {size} bytes"


def differences(name, anew):
    """Differences of a network from its committed form. Training ends elsewhere where sums are of another order: scales and numbers are compared roughly."""
    documents = [json.loads((folder / f"{name}.trace.json").read_text()) for folder in (FOLDER, anew)]
    scales = []
    for document in documents:
        document.pop("producer")
        for op in document["ops"]:
            op.pop("source", None)
        quants = [tensor.pop("quant") for tensor in document["tensors"].values() if "quant" in tensor]
        scales.append(np.concatenate([quant["scale"] for quant in quants]))
    if documents[0] != documents[1] or scales[0].shape != scales[1].shape:
        yield f"{name}: another trace"
    elif not np.allclose(*scales, rtol=0.01, atol=0):
        yield f"{name}: other scales"
    old, new = (load_file(folder / f"{name}.safetensors") for folder in (FOLDER, anew))
    if old.keys() != new.keys():
        yield f"{name}: another list of arrays"
        return
    for key, value in old.items():
        value, other = value.astype(float), new[key].astype(float)
        error = np.abs(value - other).max()
        if error > (1 if old[key].dtype == np.int8 else 1e-3 * np.abs(value).max()):
            yield f"{name}: {key} differs by {error}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if check else FOLDER
        for name in NETWORKS:
            traced(name, folder)
        problems = [problem for name in NETWORKS for problem in differences(name, folder)] if check else []
    print("\n".join(problems) or f"{len(NETWORKS)} networks")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
