"""Functions that are several operators of the trace, against PyTorch: choices, remainders, sums in a row, indices, folded weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cases import IMAGE, Call, check, ops_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrizations, spectral_norm, weight_norm  # noqa: E402


class Table(nn.Module):
    """A function of a parameter and the inputs."""

    def __init__(self, function, *shape):
        super().__init__()
        self.table, self.function = nn.Parameter(torch.randn(shape)), function

    def forward(self, *inputs):
        return self.function(self.table, *inputs)


class With(nn.Module):
    """A function of modules and the inputs."""

    def __init__(self, function, *parts):
        super().__init__()
        self.parts, self.function = nn.ModuleList(parts), function

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


def written(x):
    y = x.clone()
    y[:, 1:3, 2] = 0.5
    y[:, 0] += 1
    y[..., 4:] = x[..., :4] * 2
    return y


FUNCTIONS = {
    "where": Call(lambda x: torch.where(x > 0.1, x, x * 2)),
    "where_of_numbers": Call(lambda x: torch.where(x > 0.1, 1.5, torch.where(x < -0.5, x, 0.0))),
    "where_zero": Call(lambda x: torch.where(x > 0.1, 0.0, x)),
    "where_broadcasts": Call(lambda x: torch.where(x[:, :1] >= 0, x[:, :, :1], x[:, :, :, :1])),
    "where_not_finite": Call(lambda x: torch.where(x > 0, torch.log(x), -1.0) + torch.where(x > 0, 0.0, torch.sqrt(-x))),
    "where_constant": Call(lambda x: torch.where(torch.arange(8) % 3 == 0, x, -x)),
    "comparisons": Call(lambda x: (x > 0).float() + (x < 1) * 2.0 + (x >= x.mean(1, keepdim=True)) * 4.0 + (x <= 0.2).to(x.dtype) * 8.0),
    "equality": Call(lambda x: (x.round() == 0).float() + (x.round() != 1).float() * 2),
    "logic": Call(lambda x: torch.where((x > 0) & ~(x > 1) | (x < -1) ^ (x < -2), x, 1 - x)),
    "logic_of_numbers": Call(lambda x: torch.logical_and(x.round(), x > -1).float() + torch.logical_not(x.relu()).float()),
    "any_all": Call(lambda x: (x > 1.5).any(1).float() + (x > -1).all(dim=-1, keepdim=True).float().squeeze(-1).mean()),
    "nan": Call(lambda x: torch.nan_to_num(torch.log(x), nan=0.5) + torch.isnan(torch.sqrt(x)).float()),
    "nan_and_infinities": Call(lambda x: torch.nan_to_num(torch.log(x.relu() - (x < -1).float()), 0.5, 3.0, -2.0)),
    "infinities": Call(lambda x: torch.nan_to_num(torch.exp(x * 100), posinf=-1)),
    "infinite": Call(lambda x: torch.isinf(torch.exp(x * 100)).float() + torch.isfinite(torch.exp(x * 100)).float() * 2),
    "index_compared": Call(lambda x: (x.argmax(1, keepdim=True) == torch.arange(4).view(1, 4, 1, 1)).float()),
    "index_as_number": Call(lambda x: x.argmax(1).float() * 0.5),
    "masked_fill": Call(lambda x: x.masked_fill(x > 0.3, -1.5) + x.masked_fill(x < 0.3, 0)),
    "masked_scores": Call(lambda x: x.masked_fill(x > 1, -torch.inf).softmax(-1)),
    "attention_masked": Call(lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=(x @ x.transpose(-1, -2)) > -3)),
    "attention_grouped": Call(lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, 2:], enable_gqa=True)),
    "remainder": Call(lambda x: torch.remainder(x, 0.7) + torch.remainder(x, -0.3)),
    "remainder_of_tensors": Call(lambda x: x % (x.abs() + 1) + torch.remainder(2.5, x.abs() + 0.5)),
    "fmod": Call(lambda x: torch.fmod(x, 0.7) + torch.fmod(x, -x.abs() - 0.5)),
    "floor_division": Call(lambda x: x // 0.3 + torch.div(x, 0.7, rounding_mode="floor") + torch.div(x, 0.3, rounding_mode="trunc")),
    "trunc_frac": Call(lambda x: torch.trunc(x * 3) + torch.frac(x)),
    "cumsum": Call(lambda x: x.cumsum(1) + x.cumsum(2) * 0.5 + x.cumsum(-1)),
    "cumprod": Call(lambda x: x.cumprod(2)),
    "prod": Call(lambda x: x.prod(1) + x.prod(2, keepdim=True).squeeze(2).mean(1)[:, None, None]),
    "logsumexp": Call(lambda x: x.logsumexp(1) + (x * 60).logsumexp((2, 3), keepdim=True).squeeze(1)[:, 0:1]),
    "softshrink": nn.Softshrink(0.4),
    "hardshrink": nn.Hardshrink(0.4),
    "tanhshrink": nn.Tanhshrink(),
    "threshold": nn.Threshold(0.1, -2),
    "threshold_zero": nn.Threshold(0.1, 0),
    "rrelu": nn.RReLU(),
    "softplus": nn.Softplus(2, 10),
    "softplus_always": nn.Softplus(0.7, 30),
    "round_decimals": Call(lambda x: torch.round(x, decimals=1)),
    "written_slices": Call(lambda x: written(x)),
    "rows_at_computed": Call(lambda x: x.mean((0, 1))[x[:, :, :, :5].argmax(2)]),
    "max_pool_dilated": nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 1), dilation=(2, 3)),
    "max_pool_dilated_ceil": nn.MaxPool2d((2, 3), stride=2, dilation=(3, 1), ceil_mode=True),
    "lrn": nn.LocalResponseNorm(3, alpha=0.3, beta=0.75, k=1.5),
    "lrn_even": nn.LocalResponseNorm(2, alpha=0.5, beta=0.6),
    "powers": Call(lambda x: x.abs() ** 2.5 + 2.0**x + (x.abs() + 0.1) ** torch.sigmoid(x) + x**5),
    "logarithms": Call(lambda x: torch.log2(x.abs()) + torch.log10(x.abs()) + torch.log1p(x.abs()) + torch.exp2(x)),
    "near_zero": Call(lambda x: torch.log1p(x * 1e-6) * 1e6 + torch.expm1(x * 1e-6) * 1e6),
    "waves": Call(lambda x: torch.sin(x) * torch.cos(x * 2)),
    "norms": Call(lambda x: x.norm(float("inf"), dim=1) + x.norm(3, dim=1) + x.norm(-float("inf"), dim=1)),
    "distances": Call(lambda x: torch.cdist(x[:, 0], x[:, 1, :5])),
    "clamp_by_tensors": Call(lambda x: torch.clamp(x, torch.tanh(x) - 0.1, torch.sigmoid(x))),
    "bicubic": nn.Upsample(size=(13, 5), mode="bicubic"),
    "bicubic_factor": nn.Upsample(scale_factor=(1.3, 2), mode="bicubic"),
    "bicubic_corners": nn.Upsample(size=(4, 11), mode="bicubic", align_corners=True),
    "antialiased": Call(lambda x: F.interpolate(x, size=(4, 5), mode="bicubic", antialias=True)),
    "antialiased_bilinear": Call(lambda x: F.interpolate(x, size=(4, 5), mode="bilinear", antialias=True)),
    "factor_nearest": nn.Upsample(scale_factor=1.3),
    "factor_nearest_exact": nn.Upsample(scale_factor=(0.7, 1.4), mode="nearest-exact"),
    "factor_bilinear": nn.Upsample(scale_factor=1.3, mode="bilinear"),
    "adaptive_uneven": nn.AdaptiveAvgPool2d((5, 3)),
    "adaptive_max_uneven": nn.AdaptiveMaxPool2d((4, 5)),
    "divisor": nn.AvgPool2d((3, 2), padding=1, divisor_override=4),
    "unfold": nn.Unfold((3, 2), padding=(1, 0), stride=(2, 1), dilation=(1, 2)),
    "unfold_axis": Call(lambda x: x.unfold(2, 3, 2) + x.unfold(2, 2, 2)[..., :1]),
    "fold": With(lambda m, x: m(x.reshape(-1, 12, 24)), nn.Fold((5, 7), (2, 2))),
    "bilinear": With(lambda m, x: m(x[:, 0], x[:, 1, :, :5]), nn.Bilinear(8, 5, 3)),
    "flip": Call(lambda x: x.flip(1) + x.flip((2, 3))),
    "choice_by_constants": Call(lambda x: x[:, [2, 0, 1]] + x.index_select(1, torch.tensor([3, -1 + 4, 0]))),
    "choice_of_two_axes": Call(lambda x: x[:, :, [3, 0, 3], [1, 7, 2]]),
    "max_and_index": Call(lambda x: torch.add(*x.max(dim=1)) + torch.sub(*x.min(dim=1))),
    "argmin": Call(lambda x: x.argmin(dim=1)),
    "topk": Call(lambda x: x.topk(1, 1)[0] + x.topk(1, 1, largest=False).values),
    "pad_and_crop": Call(lambda x: F.pad(x, (-1, 2, 3, -2)) + F.pad(x, (1, 0, -2, 0), mode="reflect").mean()),
    "repeat_more_axes": Call(lambda x: x[:, 0].repeat(1, 3, 1, 1).sum(0, keepdim=True)),
    "std_mean": Call(lambda x: torch.add(*torch.std_mean(x, dim=1)) + torch.sub(*torch.var_mean(x, dim=1, correction=0))),
    "triangles": Call(lambda x: x.tril() + x.triu(1) * 2),
    "lerp": Call(lambda x: torch.lerp(x, x.tanh(), 0.3) + torch.lerp(x, x * 2, torch.sigmoid(x))),
    "volume_pools": With(lambda a, b, x: a(x[:, None]) + b(x[:, None]), *(kind((2, 3, 2), padding=(1, 1, 0)) for kind in (nn.MaxPool3d, nn.AvgPool3d))),
    "depth_pools": Call(lambda x: F.avg_pool3d(x[:, None], (2, 1, 1), count_include_pad=False, padding=(1, 0, 0))),
    "weight_standardised": Table(lambda t, x: F.conv2d(x, (t - t.mean((1, 2, 3), True)) / t.std((1, 2, 3), keepdim=True)), 3, 4, 3, 2),
    "weight_transposed": Table(lambda t, x: F.conv2d(x, t.transpose(0, 1)), 4, 3, 3, 2),
    "table_at_constants": Table(lambda t, x: t[torch.tensor([1, 0, -1])] + x[:, 0, :3], 4, 8),
    "table_at_computed": Table(lambda t, x: t[x.argmax(1)], 4, 3),
}

#: Of those, the ones whose batch is not the first axis throughout.
ONE_BATCH = ("any_all", "rows_at_computed", "pad_and_crop", "repeat_more_axes")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    document = check(FUNCTIONS[name], torch.randn(*IMAGE), path=tmp_path, batch=1 if name in ONE_BATCH else 3)
    assert document["ops"]


WHOLE = {
    "conv_unbatched": Call(lambda x: F.conv2d(x[0], torch.ones(3, 4, 3, 2)) + F.conv1d(x[0, 0], torch.ones(3, 9, 2))[:, None, :7]),
    "pool_unbatched": Call(lambda x: F.max_pool2d(x[0], 2) + F.avg_pool2d(x[0], (2, 3), stride=2, padding=(0, 1), divisor_override=5)),
    "prod_all": Call(lambda x: x[:, :2, :2, :3].prod()),
    "largest_of_all": Call(lambda x: x.max() - x.min()),
    "place_of_all": Call(lambda x: x.argmax()),
    "likes": Call(lambda x: torch.cat([torch.ones_like(x) * 2, torch.full_like(x, 0.5), torch.zeros_like(x), x])),
    "roll_all": Call(lambda x: x.roll(5)),
    "vectors": Call(lambda x: x[0, 0, 0] @ x[0, 1, 2]),
    "alpha_beta": Call(lambda x: torch.addmm(x[0, 0, :3, :2], x[0, 1, :3], x[0, 2, :8, :2], alpha=2, beta=0.5)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_function_of_a_whole_tensor(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(WHOLE[name], torch.randn(*IMAGE), path=tmp_path, batch=1)


TABLES = {
    "rows": (Table(lambda t, i: t[i], 7, 3), 7),
    "numbers": (Table(lambda t, i: t[i], 7), 7),
    "images": (Table(lambda t, i: t[i], 7, 3, 2), 7),
    "columns": (Table(lambda t, i: t[:, i], 3, 7), 7),
    "selected": (Table(lambda t, i: t.index_select(0, i.flatten()), 7, 3), 7),
    "one_hot": (Table(lambda t, i: F.one_hot(i, 7).float() @ t, 7, 3), 7),
    "computed_table": (Table(lambda t, i: (t * 2)[i], 7, 3), 7),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_parameter_is_read_at_indices(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, rows = TABLES[name]
    batch = 1 if name == "columns" else 3
    document = check(module, torch.randint(rows, (1, 5)), path=tmp_path, batch=batch)
    assert ("equal" if name == "one_hot" else "embedding") in ops_of(document)
    assert [t["role"] for t in document["tensors"].values() if t["role"] == "parameter"] == ["parameter"]


PARAMETRIZED = {
    "weight_norm": lambda: parametrizations.weight_norm(nn.Conv2d(4, 3, (3, 2))),
    "weight_norm_of_all": lambda: parametrizations.weight_norm(nn.Conv2d(4, 3, (3, 2)), dim=None),
    "weight_norm_linear": lambda: parametrizations.weight_norm(nn.Linear(8, 5)),
    "weight_norm_before": lambda: weight_norm(nn.Conv2d(4, 3, (3, 2))),
    "spectral_norm": lambda: parametrizations.spectral_norm(nn.Conv2d(4, 3, (3, 2))),
    "spectral_norm_before": lambda: spectral_norm(nn.Conv2d(4, 3, (3, 2))),
    "orthogonal": lambda: parametrizations.orthogonal(nn.Linear(8, 5)),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", PARAMETRIZED)
def test_parametrized_weights_are_folded(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = PARAMETRIZED[name]()
    module = nn.Sequential(layer, nn.ReLU())
    kind, state = type(layer), {key: value.clone() for key, value in module.state_dict().items()}
    document = check(module, torch.randn(*IMAGE), path=tmp_path)
    assert ops_of(document) == ["linear" if isinstance(layer, nn.Linear) else "conv2d", "relu"]
    assert sorted(n for n, t in document["tensors"].items() if t["role"] == "parameter") == ["0.bias", "0.weight"]
    # The caller's module is as it was.
    assert type(module[0]) is kind and all(torch.equal(state[key], value) for key, value in module.state_dict().items())


def test_conditions_are_numbers_as_outputs_too(tmp_path: Path) -> None:
    import arenite_trace

    x = torch.randn(*IMAGE)
    trace = arenite_trace.trace(Call(lambda x: (x > 0, x.isnan())), x, tmp_path / "net.trace.json", samples=[x])
    assert [trace.tensors[name].dtype for name in trace.outputs] == ["f32", "f32"]
    assert trace.version == 3
    above = trace.samples.outputs[trace.outputs[0]]
    assert above.dtype == np.float32 and (above[0] == (x > 0).numpy()).all()
