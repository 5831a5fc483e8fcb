"""Two doors for PyTorch networks: `arenite_trace`, and an ONNX file. What does one refuse that the other packs?

    pip install ./host-tools/python torch onnx pytest
    cargo build -p arenite-host --bin pack
    python tests/oracle/compare_doors.py [--pack target/debug/pack] [NAME...]

Each network of the tracer's own tests and of the list below goes through both: traced with a run of PyTorch, which `pack` replays, and exported. The
tracer must take what `pack` takes of the ONNX file, or say the command that goes by way of ONNX, and only then; the program ends with 1 where it does not.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "host-tools/python"), str(ROOT / "host-tools/python/tests")]

import arenite_trace  # noqa: E402
import test_functions  # noqa: E402
import test_modules  # noqa: E402
from cases import IMAGE, Call  # noqa: E402

First = test_modules.First

#: Beside those of the tests: input shapes, or an input.
OTHERS = {
    "conv_transpose3d": (Call(lambda x: F.conv_transpose3d(x[:, None], torch.ones(1, 2, 3, 2, 1))), IMAGE),
    "integer_mask_sum": (Call(lambda x: x.argmax(1) - 1), IMAGE),
    "conv1d_computed_weight": (Call(lambda x: F.conv1d(x[:, 0], x[0, :1, :, :3])), IMAGE),
    "conv3d": (Call(lambda x: F.conv3d(x[:, None], torch.ones(2, 1, 3, 2, 1))), IMAGE),
    "unbatched_conv": (Call(lambda x, w=torch.randn(3, 4, 3, 2): F.conv2d(x[0], w)), IMAGE),
    "unbatched_pool": (Call(lambda x: F.max_pool2d(x[:, 0], 2)), IMAGE),
    "grid_sample": (Call(lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False)), IMAGE),
    "max_unpool": (Call(lambda x: F.max_unpool2d(*F.max_pool2d(x[:, :, :8], 2, return_indices=True), 2)), IMAGE),
    "batch_norm_without_statistics": (nn.BatchNorm2d(4, track_running_stats=False), IMAGE),
    "lstm_projection": (First(nn.LSTM(12, 5, proj_size=3, batch_first=True), 0), (1, 6, 12)),
    "atan": (Call(torch.atan), IMAGE),
    "asin_acos": (Call(lambda x: torch.asin(x.tanh()) + torch.acos(x.tanh())), IMAGE),
    "hyperbolic": (Call(lambda x: torch.sinh(x) + torch.cosh(x)), IMAGE),
    "tan": (Call(lambda x: torch.tan(x * 0.3)), IMAGE),
    "round_decimals": (Call(lambda x: torch.round(x, decimals=1)), IMAGE),
    "topk3": (Call(lambda x: x.topk(3, dim=2)[0]), IMAGE),
    "sort": (Call(lambda x: x.sort(dim=1)[0]), IMAGE),
    "gather_constant": (Call(lambda x: x.gather(3, torch.tensor([[[[0, 3, 1, 2]]]]).expand(1, 4, 9, 4))), IMAGE),
    "gather_computed": (Call(lambda x: x.gather(3, x.argmax(3, keepdim=True))), IMAGE),
    "double": (Call(lambda x: (x.double() * 2).float()), IMAGE),
    "scatter": (Call(lambda x: x.scatter(1, torch.zeros(1, 1, 9, 8, dtype=torch.long), 0.5)), IMAGE),
    "assigned_slice": (Call(lambda x: _assigned(x)), IMAGE),
    "count": (Call(lambda x: (x > 0).sum(1)), IMAGE),
    "integers": (Call(lambda x: x.argmax(1) * 2 + 1), IMAGE),
    "one_hot": (Call(lambda i: F.one_hot(i, 7).float()), torch.randint(7, (1, 5))),
    "embedding_bag": (nn.EmbeddingBag(7, 3), torch.randint(7, (1, 5))),
    "integer_sum": (Call(lambda i: i + 1), torch.randint(7, (1, 5), dtype=torch.int32)),
    "integer_where": (Call(lambda i: torch.where(i > 3, i, 0)), torch.randint(7, (1, 5), dtype=torch.int32)),
    "integer_mask": (Call(lambda i: (i != 0).float()), torch.randint(7, (1, 5))),
    "computed_table": (Call(lambda x: x[0, 0][x.argmax(1)]), IMAGE),
    "int_cast": (Call(lambda x: x.to(torch.int32)), IMAGE),
    "conv_computed_weight": (Call(lambda x: F.conv2d(x, x[:, :, :3, :2])), IMAGE),
    "softplus": (nn.Softplus(2, 10), IMAGE),
    "gelu_quick": (Call(lambda x: x * torch.sigmoid(1.702 * x)), IMAGE),
    "lp_pool": (nn.LPPool2d(2, 2), IMAGE),
    "fractional": (nn.AdaptiveAvgPool2d((None, 4)), IMAGE),
    "alpha_dropout": (nn.Sequential(nn.AlphaDropout(), nn.FeatureAlphaDropout(), nn.Dropout2d(), nn.Tanh()), IMAGE),
    "cosine": (nn.CosineSimilarity(dim=1), (IMAGE, IMAGE)),
    "pairwise": (nn.PairwiseDistance(), (IMAGE, IMAGE)),
    "softmax2d": (nn.Softmax2d(), IMAGE),
    "unflatten": (nn.Unflatten(1, (2, 2)), IMAGE),
    "fold": (nn.Fold((5, 7), (2, 2)), (1, 12, 24)),
    "lstm_cell": (Call(lambda x, m=nn.LSTMCell(12, 5): m(x)[0]), (1, 12)),
    "instance_norm_tracked": (nn.InstanceNorm2d(4, track_running_stats=True), IMAGE),
    "local_response_1d": (nn.LocalResponseNorm(3), (1, 6, 12)),
    "upsample3d": (Call(lambda x: F.interpolate(x[:, None], scale_factor=2)), IMAGE),
    "upsample_trilinear": (Call(lambda x: F.interpolate(x[:, None], scale_factor=2, mode="trilinear")), IMAGE),
    "reflection3d": (Call(lambda x: F.pad(x[:, None], (1, 2, 0, 1, 1, 0), mode="reflect")), IMAGE),
    "repeat_interleave": (Call(lambda x: x.repeat_interleave(2, dim=1)), IMAGE),
    "einsum": (Call(lambda x: torch.einsum("nchw,ndhw->ncd", x, x)), IMAGE),
    "outer": (Call(lambda x: torch.outer(x[0, 0, 0], x[0, 1, 1])), IMAGE),
    "kron_like": (Call(lambda x: torch.tensordot(x, x, dims=([2, 3], [2, 3]))), IMAGE),
    "meshgrid": (Call(lambda x: x + torch.stack(torch.meshgrid(torch.arange(9.0), torch.arange(8.0), indexing="ij")).sum(0)), IMAGE),
    "diagonal": (Call(lambda x: x.diagonal(dim1=2, dim2=3)), IMAGE),
    "std_mean": (Call(lambda x: torch.add(*torch.std_mean(x, dim=1))), IMAGE),
    "log_add_exp": (Call(lambda x: torch.logaddexp(x, x.tanh())), IMAGE),
    "hypot": (Call(lambda x: torch.hypot(x, x.tanh())), IMAGE),
    "atan2": (Call(lambda x: torch.atan2(x, x.tanh())), IMAGE),
    "xlogy": (Call(lambda x: torch.xlogy(x, x.abs())), IMAGE),
    "square_difference": (Call(lambda x: F.mse_loss(x, x.tanh(), reduction="none")), IMAGE),
    "smooth_l1": (Call(lambda x: F.smooth_l1_loss(x, x.tanh(), reduction="none")), IMAGE),
    "cross": (Call(lambda x: torch.cross(x[:, :3], x[:, 1:], dim=1)), IMAGE),
    "cummax": (Call(lambda x: x.cummax(1)[0]), IMAGE),
    "median": (Call(lambda x: x.median(1)[0]), IMAGE),
    "not_a_number": (Call(lambda x: torch.nan_to_num(x.log(), 0.5, 3.0, -3.0)), IMAGE),
    "bool_output": (Call(lambda x: x > 0), IMAGE),
    "infinity": (Call(lambda x: torch.where(x > 0, x, float("inf")).amin(1)), IMAGE),
    "rms_norm": (nn.RMSNorm((9, 8)), IMAGE),
    "huge_mask": (Call(lambda x: (x.masked_fill(x > 1, float("-inf"))).amax(1)), IMAGE),
    "rotary": (Call(lambda x: torch.cat([-x[..., 4:], x[..., :4]], -1) * torch.arange(8.0).sin() + x * torch.arange(8.0).cos()), IMAGE),
    "complex_fft": (Call(lambda x: torch.fft.rfft(x).abs()), IMAGE),
}


def _assigned(x):
    y = x.clone()
    y[:, 1:3, 2] = 0.5
    y[:, 0] += 1
    return y


def networks():
    for name, module in {**test_modules.MODULES, **test_functions.FUNCTIONS}.items():
        yield name, module, (torch.randn(*IMAGE),)
    for name, module in test_modules.SEQUENCES.items():
        yield name, module, (torch.randn(*test_modules.ROW),)
    for name, (module, rows) in test_functions.TABLES.items():
        yield f"table_{name}", module, (torch.randint(rows, (1, 5)),)
    for name, (module, given) in OTHERS.items():
        several = given if isinstance(given, tuple) and isinstance(given[0], tuple) else (given,)
        yield name, module, tuple(g if isinstance(g, torch.Tensor) else torch.randn(*g) for g in several)


def packed(program: str, file: Path) -> str:
    """Why `pack` refuses a file, or nothing."""
    done = subprocess.run([program, file, "-o", file.with_suffix(".bin")], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else " ".join(done.stderr.split())[:240]


def traced(program: str, module: nn.Module, inputs: tuple, folder: Path) -> str:
    try:
        arenite_trace.trace(module, inputs, folder / "net.trace.json", samples=[inputs])
    except arenite_trace.TraceError as error:
        return " ".join(str(error).split())
    return packed(program, folder / "net.trace.json")


def by_onnx(program: str, module: nn.Module, inputs: tuple, folder: Path) -> str:
    try:
        torch.onnx.export(module.eval(), inputs, folder / "net.onnx", dynamo=False, opset_version=18)
    except Exception as error:  # noqa: BLE001: whatever the exporter raises is its refusal
        return "export: " + " ".join(str(error).split())[:160]
    return packed(program, folder / "net.onnx")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", default=str(ROOT / "target/debug/pack"))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    counts, weaker, wrong = [0, 0, 0], [], []
    for name, module, inputs in networks():
        if options.names and name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            refused = [door(options.pack, module, inputs, Path(scratch)) for door in (traced, by_onnx)]
        counts = [counts[0] + 1, counts[1] + (not refused[0]), counts[2] + (not refused[1])]
        if any(refused):
            print(name, *(f"\n    {door}: {text[:240] or 'packs'}" for door, text in zip(("trace", "onnx"), refused, strict=True)), flush=True)
        if refused[0] and not refused[1]:
            weaker.append(name)
        if refused[0] and ("torch.onnx.export" in refused[0]) == bool(refused[1]):
            wrong.append(name)
    print(f"{counts[0]} networks: {counts[1]} pack as a trace, {counts[2]} as ONNX; ONNX alone packs {len(weaker)}: {', '.join(weaker)}")
    if wrong:
        print(f"the tracer says the way by ONNX where there is none, or does not where there is one: {', '.join(wrong)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
