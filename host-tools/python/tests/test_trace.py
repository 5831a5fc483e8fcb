"""Tests of the tracer: its interface, names, states, samples, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cases import IMAGE, Call, Weights, check, native, ops_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import arenite_trace  # noqa: E402
import arenite_trace.__main__  # noqa: E402
from arenite_trace import TraceError, UnsupportedOperator  # noqa: E402


def test_what_pytorch_takes_apart_otherwise_at_another_batch_keeps_its_own(tmp_path: Path) -> None:
    module = Call(lambda x: torch.einsum("bchw,bdhw->bcd", x, torch.tanh(x)))
    document = check(module, torch.randn(*IMAGE), path=tmp_path, batch=1)
    shapes = [op["attrs"]["shape"] for op in document["ops"] if op["op"] == "reshape"]
    assert shapes and all(-1 not in shape for shape in shapes)


def test_a_trace_states_the_lowest_version_that_holds_it(tmp_path: Path) -> None:
    x = torch.randn(*IMAGE)
    for module, version in ((nn.Tanh(), 1), (nn.Upsample(scale_factor=2), 2)):
        assert check(module, x, path=tmp_path)["arenite_trace"] == version


def test_a_trace_is_saved_where_it_is_asked_to_be(tmp_path: Path) -> None:
    x = torch.randn(*IMAGE)
    alone = arenite_trace.trace(nn.Conv2d(4, 6, 3), x, samples=[x])
    several = arenite_trace.trace(Call(lambda a, b: a + b), (x, x[:, :1]))
    assert (alone.name, len(several.inputs)) == ("Conv2d", 2) and list(tmp_path.iterdir()) == []
    alone.save(tmp_path / "net.trace.json")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["net.safetensors", "net.samples.safetensors", "net.trace.json"]


MODULE = """
import torch
from torch import nn
net = nn.Conv2d(2, 3, 3)
def build(): return net, torch.randn(1, 2, 7, 5)
def runs(): return net, (torch.randn(1, 2, 7, 5),), [torch.randn(1, 2, 7, 5)]
def keywords(): return {"module": net, "example_inputs": torch.randn(1, 2, 7, 5), "output_names": ["y"]}
def wrong(): return 3
def refused(): return nn.MaxPool2d(2, return_indices=True), torch.randn(1, 2, 7, 5)
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(Path(arenite_trace.__file__).parents[1])}
    line = [sys.executable, "-m", "arenite_trace", *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "my_module.py").write_text(MODULE)
    done = command(tmp_path, "my_module:runs", "-o", "trace.json", "--name", "mine")
    assert done.returncode == 0 and "trace.json: 1 operators" in done.stdout, done.stderr
    document = json.loads((tmp_path / "trace.json").read_text())
    assert (document["name"], document["parameters"]) == ("mine", "trace.safetensors") and "samples" in document
    for arguments, said in (
        (["my_module:wrong"], "build gives a int: give a module with --input-shape"),
        (["my_module:net"], "state its inputs with --input-shape"),
        (["my_module:build", "--input-shape", "1,2"], "this one gives the inputs itself"),
        (["my_module:net", "--input-shape", "1,x"], "--input-shape 1,x: give extents"),
        (["my_module:nothing"], "my_module has no nothing"),
        (["nowhere:build"], "No module named 'nowhere'"),
        (["nowhere"], "state MODULE:FUNCTION"),
        (["my_module:refused"], "gives indices"),
    ):
        failed = command(tmp_path, *arguments, "-o", "x.json")
        assert failed.returncode == 1 and said in failed.stderr and "Traceback" not in failed.stderr, failed.stderr
        assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("form", ["build", "keywords", "net"])
def test_what_build_may_give(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"forms_{form}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    shape = ["--input-shape", "1,2,7,5"] if form == "net" else []
    assert arenite_trace.__main__.main([f"forms_{form}:{form}", "-o", "x.json", *shape]) == 0
    assert ops_of(json.loads((tmp_path / "x.json").read_text())) == ["conv2d"]


def test_without_pytorch_the_package_imports_and_tracing_names_the_command() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import arenite_trace; arenite_trace.Trace('x', 'y')\n"
        "try: arenite_trace.trace(None, None, 'x.json')\n"
        "except ImportError as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in said
    assert said.index("whl/cpu") < said.index("CUDA")


def test_two_inputs_keep_their_names(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, image, gain):
            return image * gain

    document = check(Two(), torch.randn(*IMAGE), torch.randn(1, 4, 1, 1), path=tmp_path, output_names=["scaled"])
    assert document["inputs"] == ["image", "gain"]
    assert document["outputs"] == ["scaled"]


def replayed(folder: Path) -> None:
    """The written files alone: their samples are what the reference computes of them."""
    document = json.loads((folder / "net.trace.json").read_text())
    samples = Weights(folder / "net.samples.safetensors")
    weights = Weights(folder / "net.safetensors") if "parameters" in document else {}
    reference = native.Reference(json.dumps(document))
    for run in range(document["samples"]["runs"]):
        layers = dict(reference.run({name: samples[f"input.{name}"][run] for name in document["inputs"]}, weights))
        for name in document["outputs"]:
            np.testing.assert_allclose(layers[name], samples[f"output.{name}"][run], rtol=1e-4, atol=1e-5)


#: Modules whose results PyTorch keeps in another order than their axes.
TURNED = {
    "permute": Call(lambda x: torch.tanh(x).permute(0, 2, 3, 1)),
    "transpose": Call(lambda x: torch.tanh(x).transpose(1, 3)),
    "two": Call(lambda x: (torch.tanh(x).permute(0, 3, 1, 2), torch.relu(x).transpose(2, 3))),
    "columns": Call(lambda x: torch.tanh(x)[:, :, :, 1:4]),
    "channels_last": nn.Sequential(nn.Conv2d(4, 6, 3), nn.ReLU()).to(memory_format=torch.channels_last),
    "expand": Call(lambda x: x.mean(1, keepdim=True).expand(-1, 3, -1, -1)),
}


@pytest.mark.parametrize("turn", ["plain", "channels_last", "transposed", "expanded", "strided"])
@pytest.mark.parametrize("name", TURNED)
def test_samples_stand_in_the_order_of_their_axes(tmp_path: Path, name: str, turn: str) -> None:
    inputs = {
        "plain": lambda: torch.randn(*IMAGE),
        "channels_last": lambda: torch.randn(*IMAGE).to(memory_format=torch.channels_last),
        "transposed": lambda: torch.randn(*reversed(IMAGE)).permute(3, 2, 1, 0),
        "expanded": lambda: torch.randn(1, 4, 1, 8).expand(*IMAGE),
        "strided": lambda: torch.randn(1, 4, 18, 8)[:, :, ::2],
    }[turn]
    runs = [inputs() for _ in range(2)]
    arenite_trace.trace(TURNED[name], runs[0], tmp_path / "net.trace.json", samples=runs)
    replayed(tmp_path)


#: A weight [5, 8] and a kernel [6, 4, 3, 2] that lie in memory in another order than their axes.
PARAMETERS = {
    "transposed": (torch.randn(8, 5).t(), torch.randn(2, 3, 4, 6).permute(3, 2, 1, 0)),
    "channels_last": (torch.randn(8, 5).t(), torch.randn(6, 4, 3, 2).to(memory_format=torch.channels_last)),
    "strided": (torch.randn(10, 16)[::2, 1::2], torch.randn(6, 4, 3, 4)[..., ::2]),
    "expanded": (torch.randn(1, 8).expand(5, 8), torch.randn(1, 4, 1, 2).expand(6, 4, 3, 2)),
    "behind": (torch.randn(100)[7:47].view(5, 8), torch.randn(200)[3:147].view(6, 4, 3, 2)),
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters_stand_in_the_order_of_their_axes(tmp_path: Path, kind: str) -> None:
    weight, kernel = PARAMETERS[kind]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.linear = nn.Conv2d(4, 6, (3, 2)), nn.Linear(8, 5)
            self.conv.weight, self.linear.weight = nn.Parameter(kernel), nn.Parameter(weight)
            self.register_buffer("scale", torch.randn(7, 1, 6).permute(2, 0, 1))
            self.register_buffer("total", torch.zeros(5, 1).t())

        def forward(self, x):
            total = self.total + self.linear(x[:, 0, 0])
            self.total.copy_(total)
            return self.conv(x) * self.scale, total

    module, runs = Net(), [torch.randn(*IMAGE).to(memory_format=torch.channels_last) for _ in range(2)]
    assert not kernel.is_contiguous() or kind == "behind"
    arenite_trace.trace(module, runs[0], tmp_path / "net.trace.json", samples=runs)
    stored = Weights(tmp_path / "net.safetensors")
    for name, value in {"conv.weight": kernel, "linear.weight": weight, "scale": module.scale}.items():
        np.testing.assert_array_equal(stored[name], value.numpy())
    replayed(tmp_path)


def test_values_of_a_trace_made_by_hand_stand_in_the_order_of_their_axes(tmp_path: Path) -> None:
    trace = arenite_trace.trace(nn.Linear(8, 5), torch.randn(1, 8), samples=[torch.randn(1, 8)])
    names = {name: value.copy() for name, value in trace.values.items()}
    trace.values = {name: np.asfortranarray(value) for name, value in trace.values.items()}
    trace.samples.outputs = {name: np.asfortranarray(value) for name, value in trace.samples.outputs.items()}
    trace.save(tmp_path / "net.trace.json")
    stored = Weights(tmp_path / "net.safetensors")
    assert names and all((stored[name] == value).all() for name, value in names.items())
    replayed(tmp_path)


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
            self.norm = nn.Conv3d(1, 1, 2)

        def forward(self, x):
            x = self.norm(x[:, None])
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
    volume, digamma = error.value.problems
    assert volume.startswith(f"head.norm (Conv3d), test_trace.py:{line - 1}: Conv3d: a convolution over three axes; ")
    assert digamma.startswith(f"head (Head), test_trace.py:{line}: digamma has no counterpart; ")
    assert list(tmp_path.iterdir()) == [], "a refused trace leaves no file behind"


PROJECTED = nn.LSTM(8, 5, proj_size=3)

REFUSED = {
    "divisor_override and ceil_mode": nn.AvgPool2d(2, divisor_override=3, ceil_mode=True),
    "Conv3d": Call(lambda x: F.conv3d(x[:, None], torch.ones(2, 1, 3, 2, 1))),
    "ConvTranspose3d": Call(lambda x: F.conv_transpose3d(x[:, None], torch.ones(1, 2, 3, 2, 1))),
    "computed tensor at computed indices": Call(lambda x: x[0][:, :, x[0, 0].argmax(0)]),
    "at a computed index": Call(lambda x: x[0, :2, 0][:, x[0, 0, 0].argmax()]),
    "topk of 3": Call(lambda x: x.topk(3, dim=2)[0]),
    "indices": nn.MaxPool2d(2, return_indices=True),
    "with a projection": Call(lambda x, m=PROJECTED: m(x[:, 0])[0]),
    "allows nothing": Call(lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.zeros(9, 9, dtype=torch.bool))),
    "rank 3": Call(lambda x: F.pixel_shuffle(x[0], 2)),
    "not finite": Call(lambda x: x + float("inf")),
    "int64": Call(lambda x: x.long()),
    r"test_trace.py:\d+: torch.export cannot trace": Call(lambda x: x if x.sum() > 0 else -x),
    "own statistics|no counterpart": nn.BatchNorm2d(4, track_running_stats=False),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_stated_exactly_is_refused(reason: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=reason):
        arenite_trace.trace(REFUSED[reason], (torch.randn(*IMAGE),), tmp_path / "net.trace.json")


@pytest.mark.parametrize(
    ("by_onnx", "function"),
    [
        (True, lambda x: F.conv3d(x[:, None], torch.ones(2, 1, 3, 2, 1))),
        (True, lambda x: x.argmax(1) * 2),
        (True, lambda x: x.gather(3, torch.tensor([[[[0, 3, 1, 2]]]]).expand(1, 4, 9, 4))),
        (False, lambda x: x.gather(3, x.argmax(3, keepdim=True))),
        (False, lambda x: x.double() * 2),
        (False, torch.digamma),
        (False, lambda x: torch.digamma(x) + F.conv3d(x[:, None], torch.ones(1, 1, 1, 1, 1))[:, 0]),
    ],
)
def test_what_packs_by_way_of_onnx_is_said_with_the_command(tmp_path: Path, by_onnx: bool, function) -> None:
    with pytest.raises(UnsupportedOperator) as error:
        arenite_trace.trace(Call(function), torch.randn(*IMAGE), tmp_path / "net.trace.json")
    assert error.value.by_onnx is by_onnx
    assert ("torch.onnx.export(" in str(error.value) and "`pack net.onnx -o net.bin`" in str(error.value)) is by_onnx


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
