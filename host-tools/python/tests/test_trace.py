"""Tests of the tracer. Each network is traced, written, read back and evaluated by the NumPy reference of the format."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import arenite_trace  # noqa: E402
from arenite_trace import TraceError, UnsupportedOperator  # noqa: E402
from arenite_trace._pointwise import POINTWISE  # noqa: E402

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
    for arguments in (inputs, tuple(torch.randn(batch, *i.shape[1:]) for i in inputs)):
        with torch.no_grad():
            expected = module.eval()(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        values = dict(zip(document["inputs"], (a.numpy() for a in arguments), strict=True))
        layers = {**values, **dict(reference.run(values, weights))}
        for name, tensor in zip(document["outputs"], expected, strict=True):
            assert layers[name].shape == tuple(tensor.shape)
            np.testing.assert_allclose(layers[name], tensor.numpy(), rtol=1e-4, atol=1e-5)
        if arguments is inputs:
            for name, value in layers.items():
                assert list(value.shape) == document["tensors"][name]["shape"], name
    return document


def ops_of(document: dict) -> list[str]:
    return [op["op"] for op in document["ops"]]


IMAGE = (1, 4, 9, 8)

MODULES = {
    "conv2d": nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    "conv2d_grouped": nn.Conv2d(4, 6, 3, groups=2, bias=False),
    "conv2d_same": nn.Conv2d(4, 6, (4, 3), padding="same"),
    "conv2d_valid": nn.Conv2d(4, 6, 3, padding="valid"),
    "depthwise": nn.Conv2d(4, 8, 3, groups=4, padding=1),
    "linear_on_the_last_axis": nn.Linear(8, 5),
    "linear_without_bias": nn.Linear(8, 5, bias=False),
    "max_pool2d": nn.MaxPool2d(3, stride=2, padding=1),
    "max_pool2d_dilated": nn.MaxPool2d(2, dilation=2),
    "max_pool2d_ceil": nn.MaxPool2d(2, stride=3, ceil_mode=True),
    "avg_pool2d": nn.AvgPool2d(3, stride=2, padding=1),
    "avg_pool2d_exclude": nn.AvgPool2d((3, 2), padding=(1, 0), count_include_pad=False),
    "avg_pool2d_ceil": nn.AvgPool2d(2, stride=3, padding=1, ceil_mode=True),
    "global_average": nn.AdaptiveAvgPool2d(1),
    "adaptive_that_divides": nn.AdaptiveAvgPool2d((3, 4)),
    "batch_norm": nn.BatchNorm2d(4),
    "batch_norm_plain": nn.BatchNorm2d(4, affine=False, eps=1e-3),
    "relu_in_place": nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(inplace=True)),
    "relu6": nn.ReLU6(),
    "hardtanh": nn.Hardtanh(-0.5, 0.7),
    "leaky_relu": nn.LeakyReLU(0.2),
    "prelu": nn.PReLU(),
    "prelu_per_channel": nn.PReLU(4),
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "hardsigmoid": nn.Hardsigmoid(),
    "hardswish": nn.Hardswish(),
    "silu": nn.SiLU(),
    "softmax": nn.Softmax(dim=1),
    "log_softmax": nn.LogSoftmax(dim=-1),
    "dropout": nn.Sequential(nn.Dropout(0.5), nn.Tanh()),
    "flatten": nn.Flatten(),
    "zero_pad": nn.ZeroPad2d((1, 2, 0, 3)),
    "constant_pad": nn.ConstantPad2d(1, 2.5),
    "exp_sqrt_abs_neg": Call(lambda x: torch.exp(-torch.sqrt(torch.abs(x)))),
    "scalars": Call(lambda x: (2 - x * 0.5 + 3) / 4 - 1),
    "alpha": Call(lambda x: torch.add(x, torch.tanh(x), alpha=2)),
    "square": Call(lambda x: x**2 + x * x),
    "max_min": Call(lambda x: torch.maximum(x, torch.tanh(x)) - torch.minimum(x, torch.sigmoid(x))),
    "clamp_one_side": Call(lambda x: torch.clamp(x, min=0.1)),
    "mean": Call(lambda x: x.mean(dim=(2, 3))),
    "mean_keepdim": Call(lambda x: x - x.mean(dim=1, keepdim=True)),
    "sum_amax_amin": Call(lambda x: x.sum(-1) + x.amax(dim=-1) - x.amin(dim=3)),
    "broadcast": Call(lambda x: x * x.mean(dim=(2, 3), keepdim=True)),
    "permute": Call(lambda x: x.permute(0, 2, 3, 1)),
    "transpose": Call(lambda x: x.transpose(1, -1).contiguous()),
    "view_by_size": Call(lambda x: x.view(x.size(0), -1)),
    "squeeze": Call(lambda x: x.unsqueeze(1).squeeze(1) + 1),
    "index_and_slice": Call(lambda x: x[:, 1] + x[:, 2, :, :] + x[:, :1, 0:9, ::1].squeeze(1)),
    "stepped_slice": Call(lambda x: x[:, :, ::2, 1:-1:3]),
    "chunk_and_cat": Call(lambda x: torch.cat(torch.chunk(x, 2, dim=1)[::-1], dim=1)),
    "split_sizes": Call(lambda x: torch.cat([torch.tanh(x.split([1, 3], dim=1)[1]), x], dim=1)),
    "two_outputs": Call(lambda x: (torch.tanh(x), x.mean(dim=(2, 3)))),
    "the_input_as_output": Call(lambda x: (x, torch.tanh(x))),
}


def pointwise(aten: str, arguments: dict) -> nn.Module:
    return Call(lambda x: getattr(torch.ops.aten, aten)(x.abs() + 0.1, **arguments) + getattr(torch.ops.aten, aten)(x.abs() + 2.6, **arguments))


MODULES |= {f"pointwise_{op}": pointwise(aten, arguments) for aten, arguments, op in POINTWISE}


@pytest.mark.parametrize("name", MODULES)
def test_operator(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = MODULES[name]
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
    document = check(module, torch.randn(*IMAGE), path=tmp_path)
    assert document["ops"] or name == "identity"


def test_conv1d_is_a_row_of_an_image(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv1d(3, 5, 3, stride=2, padding=1, dilation=2), nn.ReLU(), nn.Conv1d(5, 2, 2, padding="same"))
    document = check(module, torch.randn(1, 3, 20), path=tmp_path)
    assert document["tensors"]["0.weight"]["shape"] == [5, 3, 1, 3]


def test_two_inputs_keep_their_names(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, image, gain):
            return image * gain

    document = check(Two(), torch.randn(*IMAGE), torch.randn(1, 4, 1, 1), path=tmp_path, output_names=["scaled"])
    assert document["inputs"] == ["image", "gain"]
    assert document["outputs"] == ["scaled"]


def test_samples_of_nested_results(tmp_path: Path) -> None:
    module = Call(lambda x: {"b": torch.tanh(x), "a": [x.mean(dim=3), x.sum(dim=2)]})
    x = torch.randn(*IMAGE)
    trace = arenite_trace.trace(module, (x,), tmp_path / "net.trace.json", samples=[(x,)])
    samples = Weights(tmp_path / "net.samples.safetensors")
    layers = dict(native.Reference((tmp_path / "net.trace.json").read_text()).run({trace.inputs[0]: x.numpy()}, {}))
    assert len(trace.outputs) == 3
    for name in trace.outputs:
        np.testing.assert_allclose(layers[name], samples[f"output.{name}"][0], rtol=1e-4, atol=1e-5)


def test_names_follow_the_modules(tmp_path: Path) -> None:
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x):
            return F.relu(x + self.conv(x))

    document = check(nn.Sequential(Block(), Block()), torch.randn(*IMAGE), path=tmp_path)
    assert [op["name"] for op in document["ops"]] == ["0.conv", "0.add", "0.relu", "1.conv", "1.add", "1.relu"]
    assert "test_trace.py:" in document["ops"][0]["source"]


def test_a_shared_layer_gives_two_operators_and_one_parameter(tmp_path: Path) -> None:
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x):
            return self.conv(self.conv(x))

    document = check(Shared(), torch.randn(*IMAGE), path=tmp_path)
    assert [op["name"] for op in document["ops"]] == ["conv", "conv_1"]
    assert sorted(n for n, t in document["tensors"].items() if t["role"] == "parameter") == ["conv.bias", "conv.weight"]


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 4))

    def forward(self, x):
        total = self.total + x
        self.total.copy_(total)
        return torch.tanh(total)


def test_a_written_buffer_is_a_state(tmp_path: Path) -> None:
    runs = [(torch.full((1, 4), float(i)),) for i in range(1, 4)]
    module = Counter()
    trace = arenite_trace.trace(module, runs[0], tmp_path / "net.trace.json", samples=runs)
    assert trace.state == [("total", "add")] and trace.tensors["total"].role == "state"
    assert torch.all(module.total == 0), "tracing changed the module"
    reference = native.Reference((tmp_path / "net.trace.json").read_text())
    samples = Weights(tmp_path / "net.samples.safetensors")
    for run in range(3):
        layers = dict(reference.run({"x": samples["input.x"][run]}, {}))
        np.testing.assert_allclose(layers[trace.outputs[0]], samples[f"output.{trace.outputs[0]}"][run], rtol=1e-6)


def test_a_state_that_does_not_start_at_zero_is_refused(tmp_path: Path) -> None:
    module = Counter()
    module.total += 1
    with pytest.raises(TraceError, match="total .* does not start at zero"):
        arenite_trace.trace(module, (torch.zeros(1, 4),), tmp_path / "net.trace.json")


def test_training_mode_is_kept(tmp_path: Path) -> None:
    module = nn.Sequential(nn.BatchNorm2d(4), nn.Dropout()).train()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    arenite_trace.trace(module, (torch.randn(*IMAGE),), tmp_path / "net.trace.json")
    assert module.training and all(torch.equal(before[k], v) for k, v in module.state_dict().items())


def test_every_unsupported_operator_is_named_with_module_and_line(tmp_path: Path) -> None:
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(8)

        def forward(self, x):
            x = self.norm(x)
            return torch.digamma(x)  # the line that the message names

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = Head()

        def forward(self, x):
            return self.head(x) + 1

    path = tmp_path / "net.trace.json"
    with pytest.raises(UnsupportedOperator) as error:
        arenite_trace.trace(Net(), (torch.randn(*IMAGE),), path)
    line = 1 + next(i for i, text in enumerate(Path(__file__).read_text().splitlines()) if "the line that the message" in text)
    norm, digamma = error.value.problems
    assert norm.startswith(f"head.norm (LayerNorm), test_trace.py:{line - 1}: ") and "layer_norm" in norm
    assert digamma.startswith(f"head (Head), test_trace.py:{line}: digamma has no counterpart; ")
    assert list(tmp_path.iterdir()) == [], "a refused trace leaves no file behind"


REFUSED = {
    "windows of several sizes": nn.AdaptiveAvgPool2d(5),
    "indices": nn.MaxPool2d(2, return_indices=True),
    "divisor_override": nn.AvgPool2d(2, divisor_override=3),
    "reflect": nn.ReflectionPad2d(1),
    "exponent other than 2": Call(lambda x: x**3),
    "negative amount": Call(lambda x: F.pad(x, (-1, 0))),
    "rank 3": Call(lambda x: F.max_pool2d(x[:, 0], 2)),
    "not finite": Call(lambda x: x + float("inf")),
    "int64": Call(lambda x: x.long()),
    "argmax has no counterpart": Call(lambda x: x.argmax(dim=1)),
    r"test_trace.py:\d+: torch.export cannot trace": Call(lambda x: x if x.sum() > 0 else -x),
    "own statistics|no counterpart": nn.BatchNorm2d(4, track_running_stats=False),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_stated_exactly_is_refused(reason: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=reason):
        arenite_trace.trace(REFUSED[reason], (torch.randn(*IMAGE),), tmp_path / "net.trace.json")


def test_bad_arguments(tmp_path: Path) -> None:
    x, path = torch.randn(*IMAGE), tmp_path / "net.trace.json"
    with pytest.raises(TraceError, match="float64"):
        arenite_trace.trace(nn.Tanh(), (x.double(),), path)
    with pytest.raises(TraceError, match="float64"):
        arenite_trace.trace(nn.Sequential(nn.Conv2d(4, 4, 1).double()), (x,), path)
    with pytest.raises(TraceError, match="must end in"):
        arenite_trace.trace(nn.Tanh(), (x,), tmp_path / "net.txt")
    with pytest.raises(TraceError, match="example_inputs is empty"):
        arenite_trace.trace(nn.Tanh(), (), path)
    with pytest.raises(TraceError, match="shapes other"):
        arenite_trace.trace(nn.Tanh(), (x,), path, samples=[(x[:, :1],)])
    with pytest.raises(TraceError, match="output_names has 2"):
        arenite_trace.trace(nn.Tanh(), (x,), path, output_names=["a", "b"])
    spoiled = nn.Conv2d(4, 4, 1)
    spoiled.weight.data[0] = float("nan")
    with pytest.raises(TraceError, match="parameter weight holds a value that is not finite"):
        arenite_trace.trace(spoiled, (x,), path)
    assert list(tmp_path.iterdir()) == []


def test_the_same_module_gives_the_same_bytes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), torch.randn(*IMAGE)
    contents = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        arenite_trace.trace(module, (x,), folder / "net.trace.json", samples=[(x,)])
        contents.append({file.name: file.read_bytes() for file in sorted(folder.iterdir())})
    assert contents[0] == contents[1] and len(contents[0]) == 3
