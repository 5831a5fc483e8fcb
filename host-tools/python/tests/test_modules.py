"""Modules and functions of PyTorch, one at a time, against PyTorch: the table of README.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cases import IMAGE, Call, Weights, check  # noqa: E402
from test_functions import FUNCTIONS  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from arenite_trace._pointwise import POINTWISE  # noqa: E402

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
    "conv_transpose2d": nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
    "conv_transpose2d_grouped": nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=(2, 1), bias=False),
    "upsample_nearest": nn.Upsample(scale_factor=2),
    "upsample_nearest_exact": nn.Upsample(size=(13, 5), mode="nearest-exact"),
    "upsample_bilinear": nn.Upsample(size=(13, 21), mode="bilinear"),
    "upsample_bilinear_down": nn.Upsample(scale_factor=(1 / 3, 0.5), mode="bilinear"),
    "upsample_bilinear_corners": nn.UpsamplingBilinear2d(scale_factor=2),
    "layer_norm": nn.LayerNorm((9, 8)),
    "layer_norm_plain": nn.LayerNorm(8, elementwise_affine=False, eps=1e-3),
    "rms_norm": nn.RMSNorm(8),
    "group_norm": nn.GroupNorm(2, 4),
    "instance_norm": nn.InstanceNorm2d(4, affine=True),
    "elu": nn.ELU(0.7),
    "selu": nn.SELU(),
    "celu": nn.CELU(1.3),
    "mish": nn.Mish(),
    "log_sigmoid": nn.LogSigmoid(),
    "softmin": nn.Softmin(dim=2),
    "glu": nn.GLU(dim=1),
    "pixel_shuffle": nn.PixelShuffle(2),
    "pixel_unshuffle": nn.Sequential(nn.ZeroPad2d((0, 0, 1, 0)), nn.PixelUnshuffle(2)),
    "channel_shuffle": nn.ChannelShuffle(2),
    "argmax": Call(lambda x: x.argmax(dim=1)),
    "argmax_keepdim": Call(lambda x: x.argmax(dim=-1, keepdim=True)),
    "max_values": Call(lambda x: x.max(dim=1).values - x.min(dim=1, keepdim=True)[0].squeeze(1)),
    "adaptive_max": nn.AdaptiveMaxPool2d((3, 2)),
    "adaptive_max_global": nn.AdaptiveMaxPool2d(1),
    "reflection_pad": nn.ReflectionPad2d((1, 2, 0, 3)),
    "replication_pad": nn.ReplicationPad2d((2, 0, 1, 1)),
    "circular_pad": nn.CircularPad2d((1, 2, 3, 0)),
    "powers": Call(lambda x: x**3 + x**4 + (x.abs() + 1) ** 0.5 + (x.abs() + 1) ** -1 + (x.abs() + 1).reciprocal()),
    "var_std": Call(lambda x: x.var(dim=1) + x.std(dim=(1,), correction=0) + x.std(dim=1)),
    "normalize": Call(lambda x: F.normalize(x, dim=1) + F.normalize(x, p=1, dim=2)),
    "stack": Call(lambda x: torch.stack([x, torch.tanh(x)], dim=2)),
    "repeat_expand": Call(lambda x: x.repeat(1, 2, 1, 3) + x[:, :1, :, :1].expand(-1, 8, -1, 24)),
    "roll": Call(lambda x: x.roll((1, -2), (1, 3))),
    "unbind": Call(lambda x: torch.add(*x.unbind(1)[1:3])),
    "constants": Call(lambda x: x * torch.arange(8) + torch.zeros(1, 4, 9, 8) + torch.linspace(-1, 1, 8)),
    "matmul": Call(lambda x: x @ x.transpose(-1, -2)),
    "matmul_broadcast": Call(lambda x: x[:, :1] @ x.transpose(-1, -2)),
    "matmul_vector": Call(lambda x: x @ torch.linspace(-1, 1, 8)),
    "attention": Call(lambda x: F.scaled_dot_product_attention(x, torch.tanh(x), x * 2)),
    "attention_causal": Call(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3)),
    "masked_fill": Call(lambda x: x.masked_fill(torch.arange(8) > 5, -torch.inf).softmax(-1)),
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


class First(nn.Module):
    """The parts of a recurrent module's results that are wanted."""

    def __init__(self, module, *parts):
        super().__init__()
        self.inner, self.parts = module, parts

    def forward(self, x):
        results = self.inner(x)
        y, states = results if isinstance(results, tuple) else (results, None)
        states = states if isinstance(states, tuple) else (states,)
        wanted = tuple((y, *states)[i] for i in self.parts)
        return wanted if len(wanted) > 1 else wanted[0]


ROW = (1, 6, 12)

SEQUENCES = {
    "conv1d": nn.Conv1d(6, 4, 3, stride=2, padding=1, dilation=2, groups=2),
    "conv_transpose1d": nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, output_padding=1),
    "max_pool1d": nn.MaxPool1d(3, stride=2, padding=1),
    "avg_pool1d": nn.AvgPool1d(3, stride=2, padding=1, ceil_mode=True),
    "adaptive_average1d": nn.AdaptiveAvgPool1d(4),
    "adaptive_max1d": nn.AdaptiveMaxPool1d(1),
    "batch_norm1d": nn.BatchNorm1d(6),
    "instance_norm1d": nn.InstanceNorm1d(6),
    "group_norm1d": nn.GroupNorm(3, 6),
    "upsample1d": nn.Upsample(scale_factor=2),
    "upsample_linear1d": nn.Upsample(size=17, mode="linear", align_corners=True),
    "lstm": First(nn.LSTM(12, 5, batch_first=True), 0),
    "lstm_states": First(nn.LSTM(12, 5, num_layers=2, batch_first=True, bias=False), 1, 2),
    "lstm_bidirectional": First(nn.LSTM(12, 5, num_layers=2, bidirectional=True, batch_first=True), 0, 1),
    "gru": First(nn.GRU(12, 5, batch_first=True), 0, 1),
    "gru_bidirectional": First(nn.GRU(12, 5, bidirectional=True, batch_first=True, bias=False), 0),
    "rnn": First(nn.RNN(12, 5, batch_first=True, nonlinearity="relu"), 0),
    "attention": First(nn.MultiheadAttention(12, 3, batch_first=True), 0),
    "transformer": nn.TransformerEncoderLayer(12, 2, 16, batch_first=True, activation="gelu", norm_first=True),
}
SEQUENCES["attention"].forward = lambda x, m=SEQUENCES["attention"]: m.inner(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(SEQUENCES[name], torch.randn(*ROW), path=tmp_path)


TIME_FIRST = (First(nn.LSTM(4, 5, bidirectional=True), 0, 1, 2), First(nn.GRU(4, 5), 0), First(nn.RNN(4, 5), 0, 1))


def test_time_first(tmp_path: Path) -> None:
    """Their batch is the second axis, so that only the traced one is evaluated."""
    for module in TIME_FIRST:
        check(module, torch.randn(7, 1, 4), path=tmp_path, batch=1)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(6, 4), nn.GRUCell(6, 4), nn.RNNCell(6, 4)

    def forward(self, x, h, c):
        moved, c = self.lstm(x, (h, c))
        return moved, c, self.gru(x, h), self.rnn(x, h), self.gru(x), self.lstm(x)[0], self.rnn(x)


def test_cells_with_and_without_a_state(tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(Cells(), torch.randn(1, 6), torch.randn(1, 4), torch.randn(1, 4), path=tmp_path)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 5), nn.Linear(5, 3)

    def forward(self, tokens):
        return self.head(self.table(tokens.view(tokens.shape[0], -1)))


def test_integer_inputs_are_looked_up(tmp_path: Path) -> None:
    tokens = torch.tensor([[6, 0, 3, 1]])
    document = check(Words(), tokens, path=tmp_path, samples=[tokens, tokens.roll(1, 1)])
    assert document["tensors"]["tokens"]["dtype"] == "i32" and document["arenite_trace"] == 2
    assert Weights(tmp_path / "net.samples.safetensors")["input.tokens"].dtype == np.int32


def test_the_table_of_modules_is_what_these_tests_trace() -> None:
    readme = Path(__file__).resolve().parents[1].joinpath("README.md").read_text()
    rows = [line.split("|")[1] for line in readme.splitlines() if line.startswith("| `")]
    stated = [name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row)]
    assert len(stated) == len(set(stated))
    traced = [*MODULES.values(), *FUNCTIONS.values(), *SEQUENCES.values(), *TIME_FIRST, Cells(), Words()]
    kinds = {type(layer) for module in traced for layer in module.modules()}
    inside = {"ModuleList", "Identity", "NonDynamicallyQuantizableLinear", "LayerNorm"}
    # Of the rows of core/src/ops/pointwise.rs the table need not name each.
    inside |= {kind.__name__ for kind in kinds if kind.__name__.lower() in {aten for aten, _, _ in POINTWISE}} | {"GELU"}
    library = {kind.__name__ for kind in kinds if kind.__module__.startswith("torch.nn.")}
    assert library - inside == set(stated) - inside
