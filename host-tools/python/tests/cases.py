"""Parts that the tests of the tracer share. Each network is traced, written, read back and evaluated by the NumPy reference of the format."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import arenite_trace  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "reference"))

import native  # noqa: E402
from reference import Weights  # noqa: E402


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def check(module: nn.Module, *inputs: torch.Tensor, path: Path, batch: int = 3, **options) -> dict:
    """Traces at batch 1; the written files must reproduce PyTorch at batch 1 and at ``batch``."""
    trace = arenite_trace.trace(module, inputs, path / "net.trace.json", **options)
    document = json.loads((path / "net.trace.json").read_text())
    assert set(document["tensors"]) == set(trace.tensors)
    stored = path / "net.safetensors"
    weights = Weights(stored) if "parameters" in document else {}
    reference = native.Reference(json.dumps(document))
    assert set(weights) == set(reference.parameters())
    several = tuple(
        torch.randn(batch, *i.shape[1:]) if i.is_floating_point() else i.roll(1, -1).repeat(batch, *[1] * (i.dim() - 1)) for i in inputs
    )
    for arguments in (inputs, several) if batch > 1 else (inputs,):
        with torch.no_grad():
            expected = module.eval()(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        values = dict(zip(document["inputs"], (a.numpy() for a in arguments), strict=True))
        layers = {**values, **dict(reference.run(values, weights))}
        for name, tensor in zip(document["outputs"], expected, strict=True):
            assert layers[name].shape == tuple(tensor.shape)
            np.testing.assert_allclose(layers[name], tensor.numpy(), rtol=1e-4, atol=1e-5)
            assert tensor.dtype == torch.float32 or document["tensors"][name]["dtype"] == "i32"
        if arguments is inputs:
            for name, value in layers.items():
                assert list(value.shape) == document["tensors"][name]["shape"], name
    return document


def ops_of(document: dict) -> list[str]:
    return [op["op"] for op in document["ops"]]


IMAGE = (1, 4, 9, 8)
