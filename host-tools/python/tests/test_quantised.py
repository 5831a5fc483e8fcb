"""Modules that torchao has quantised: what becomes of their conversions, and that the trace computes what they do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")

from torch import nn  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: E402
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (  # noqa: E402
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config  # noqa: E402

import arenite_trace  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "reference"))

import native  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Linear(6, 4)

    def forward(self, image):
        return self.head(torch.relu(self.norm(self.conv(image))).mean((2, 3)))


def quantised(quantizer, shape=(1, 2, 7, 5)):
    torch.manual_seed(1)
    prepared = prepare_pt2e(torch.export.export(Net().eval(), (torch.randn(shape),)).module(), quantizer)
    for _ in range(8):
        prepared(torch.randn(shape))
    return convert_pt2e(prepared), shape


def xnnpack(**options):
    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))


def x86():
    return X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())


@pytest.mark.parametrize(
    ("quantizer", "dtype", "scales"),
    [(lambda: xnnpack(is_per_channel=True), "i8", 6), (lambda: xnnpack(is_per_channel=False), "i8", 1), (x86, "u8", 6)],
)
def test_a_quantised_module_is_a_trace_of_integers(tmp_path, quantizer, dtype, scales):
    module, shape = quantised(quantizer())
    path = tmp_path / "net.trace.json"
    assert arenite_trace.trace(module, torch.randn(shape), path).version == 3
    document = json.loads(path.read_text())
    weight = document["tensors"]["conv.weight"]
    assert (weight["dtype"], weight["role"], weight["layout"], len(weight["quant"]["scale"])) == ("i8", "parameter", "OIHW", scales)
    written = [document["tensors"][op["outputs"][0]]["dtype"] for op in document["ops"] if op["op"] == "quantize"]
    assert written and set(written) == {dtype}
    reference, weights = native.Reference(path.read_text()), load_file(tmp_path / "net.safetensors")
    assert weights["conv.weight"].dtype == np.int8
    (output,) = document["outputs"]
    for _ in range(8):
        image = torch.randn(shape)
        layers = dict(reference.run({document["inputs"][0]: image.numpy()}, weights))
        expected = module(image).detach().numpy()
        # In f64 a sum may be on the other side of a tie.
        steps = np.abs(layers[output] - expected).max() / np.abs(expected).max()
        assert steps < 0.02


def test_a_network_of_real_numbers_states_the_version_that_it_had(tmp_path):
    path = tmp_path / "net.trace.json"
    assert arenite_trace.trace(Net(), torch.randn(1, 2, 7, 5), path).version == 1
    assert '"quant"' not in path.read_text()


def of(call):
    class Module(nn.Module):
        def forward(self, x):
            return call(x)

    return Module()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda q, x: q.dequantize_per_tensor(q.quantize_per_tensor(x, 0.1, 0, 0, 127, torch.uint8), 0.1, 0, 0, 127, torch.uint8), "all of 0 to 255"),
        (lambda q, x: q.dequantize_per_tensor(q.quantize_per_tensor(x, 0.1, 0, -32768, 32767, torch.int16), 0.1, 0, -32768, 32767, torch.int16), "torch.int16"),
        (lambda q, x: q.dequantize_per_tensor(q.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8), 0.2, 0, -128, 127, torch.int8), "two different scales"),
    ],
)
def test_what_the_trace_cannot_state_is_refused(call, said):
    module = of(lambda x: call(torch.ops.quantized_decomposed, x))
    with pytest.raises(arenite_trace.UnsupportedOperator, match=said):
        arenite_trace.trace(module, torch.randn(1, 4))
