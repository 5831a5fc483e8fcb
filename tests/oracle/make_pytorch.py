"""Traces small networks of the usual kinds, with PyTorch's outputs: tests/models/pytorch.

    pip install ./host-tools/python torch --extra-index-url https://download.pytorch.org/whl/cpu
    python tests/oracle/make_pytorch.py             # writes them
    python tests/oracle/make_pytorch.py --check     # traces them anew, and compares with what is committed

The seed of a network is its name. No input is square.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zlib
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import arenite_trace
from made_anew import of_arrays

FOLDER = Path(__file__).parent.parent / "models" / "pytorch"
RUNS = 3
LARGEST = 300_000
NETWORKS = {}


def network(*shapes, integers=0):
    """A network of these inputs; with ``integers``, of indices below that number."""

    def add(kind):
        NETWORKS[kind.__name__.lower()] = (kind, shapes, integers)
        return kind

    return add


def block(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    parts = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


@network((1, 3, 18, 14))
class Residual(nn.Module):
    """As ResNet: a block that keeps its shape, and one whose shortcut is a convolution."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = block(3, 8), nn.MaxPool2d(3, 2, 1)
        self.a, self.b = block(8, 8), block(8, 8, activation=None)
        self.c, self.d, self.shortcut = block(8, 12, stride=2), block(12, 12, activation=None), block(8, 12, 1, 2, activation=None)
        self.head = nn.Linear(12, 5)

    def forward(self, image):
        x = self.pool(self.stem(image))
        x = F.relu(x + self.b(self.a(x)))
        x = F.relu(self.shortcut(x) + self.d(self.c(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


@network((1, 3, 20, 14))
class Depthwise(nn.Module):
    """As MobileNetV3: an inverted bottleneck."""

    def __init__(self):
        super().__init__()
        self.stem = block(3, 8, stride=2, activation=nn.Hardswish)
        self.widen, self.depth = block(8, 24, 1, activation=nn.ReLU6), block(24, 24, 5, groups=24, activation=nn.ReLU6)
        self.narrow = block(24, 8, 1, activation=None)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 16), nn.Hardswish(), nn.Linear(16, 4))

    def forward(self, image):
        x = self.stem(image)
        return self.head(x + self.narrow(self.depth(self.widen(x)))).softmax(-1)


@network((1, 2, 12, 16))
class Dense(nn.Module):
    """As DenseNet: each layer reads all before it."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 6, 3, padding=1)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 4, 3, padding=1)) for c in (6, 10, 14))
        self.transition = nn.Sequential(nn.BatchNorm2d(18), nn.ReLU(), nn.Conv2d(18, 8, 1), nn.AvgPool2d(2))
        self.head = nn.Linear(8, 3)

    def forward(self, image):
        x = self.stem(image)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return self.head(self.transition(x).mean(dim=(2, 3)))


@network((1, 3, 15, 11))
class Inception(nn.Module):
    """As GoogLeNet: branches of several kernels, joined."""

    def __init__(self):
        super().__init__()
        self.one, self.three = block(3, 4, 1), nn.Sequential(block(3, 4, 1), block(4, 6))
        self.five = nn.Sequential(block(3, 2, 1), nn.Conv2d(2, 3, (1, 5), padding=(0, 2)), nn.Conv2d(3, 3, (5, 1), padding=(2, 0)))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(3, 2, 1))
        self.head = nn.Linear(15, 6)

    def forward(self, image):
        x = torch.cat([self.one(image), self.three(image), self.five(image), self.pooled(image)], 1)
        return self.head(F.max_pool2d(F.elu(x), 3, 2, ceil_mode=True).amax(dim=(2, 3)))


@network((1, 4, 10, 13))
class SqueezeExcite(nn.Module):
    """Channels weighted by what all of them hold."""

    def __init__(self):
        super().__init__()
        self.stem, self.squeeze, self.excite = block(4, 12, activation=nn.SiLU), nn.Conv2d(12, 3, 1), nn.Conv2d(3, 12, 1)
        self.head = nn.Conv2d(12, 5, 1)

    def forward(self, image):
        x = self.stem(image)
        weights = torch.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return self.head(x * weights)


@network((1, 1, 16, 24))
class UNet(nn.Module):
    """Down and up again: by a transposed convolution, and by interpolation."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.bottom = block(1, 6), block(6, 10), block(10, 12)
        self.up = nn.ConvTranspose2d(12, 10, 2, stride=2)
        self.joined, self.last, self.head = block(20, 10), block(16, 6), nn.Conv2d(6, 2, 1)

    def forward(self, image):
        a = self.first(image)
        b = self.second(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        x = self.joined(torch.cat([self.up(c), b], 1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear")
        return self.head(self.last(torch.cat([x, a], 1)))


@network((1, 9, 12))
class Transformer(nn.Module):
    """A block with attention before and one that looks back alone."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.randn(9, 16) * 0.1)
        self.into, self.norm = nn.Linear(12, 16), nn.LayerNorm(16)
        self.block = nn.TransformerEncoderLayer(16, 4, 24, activation="gelu", batch_first=True, norm_first=True)
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 7)

    def forward(self, tokens):
        x = self.block(self.into(tokens) + self.place)
        q, k, v = (part.view(-1, 9, 2, 8).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.head((x + self.out(seen)).mean(dim=1))


@network((1, 8, 6))
class Lstm(nn.Module):
    """Two layers of both directions."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(32, 4)

    def forward(self, sequence):
        y, (h, _) = self.lstm(sequence)
        return self.head(torch.cat([y[:, -1], h[-2], h[-1]], dim=-1))


@network((1, 14, 5))
class Gru(nn.Module):
    """A sequence's result at each step, and its end through a cell."""

    def __init__(self):
        super().__init__()
        self.gru, self.cell, self.head = nn.GRU(5, 10, batch_first=True), nn.GRUCell(10, 6), nn.Linear(10, 3)

    def forward(self, sequence):
        y, h = self.gru(sequence)
        return self.head(y).log_softmax(-1), self.cell(h[0])


@network((1, 1, 40))
class WaveNet(nn.Module):
    """Causal, dilated, gated, with skips."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 4, 1)
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2, 4, 8))
        self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))

    def forward(self, wave):
        x, total = self.stem(wave), 0
        for gate, skip, dilation in zip(self.gates, self.skips, (1, 2, 4, 8)):
            value, control = gate(F.pad(x, (dilation, 0))).chunk(2, dim=1)
            y = torch.tanh(value) * torch.sigmoid(control)
            total, x = total + skip(y), x + y
        return self.head(F.max_pool1d(F.relu(total), 4))


@network((1, 3, 24, 16))
class Detection(nn.Module):
    """Two scales, joined top-down, and heads for classes and boxes."""

    def __init__(self):
        super().__init__()
        self.low, self.high = block(3, 8, stride=2), block(8, 12, stride=2)
        self.side, self.top = nn.Conv2d(8, 10, 1), nn.Conv2d(12, 10, 1)
        self.classes, self.boxes = nn.Conv2d(10, 6, 3, padding=1), nn.Conv2d(10, 8, 3, padding=1)

    def forward(self, image):
        low = self.low(image)
        top = self.top(self.high(low))
        scales = [self.side(low) + F.interpolate(top, scale_factor=2.0), top]
        classes = torch.cat([self.classes(s).permute(0, 2, 3, 1).flatten(1, 2).unflatten(-1, (2, 3)).flatten(1, 2) for s in scales], 1)
        boxes = torch.cat([self.boxes(s).permute(0, 2, 3, 1).reshape(s.shape[0], -1, 4) for s in scales], 1)
        return classes.sigmoid(), boxes, classes.argmax(dim=-1)


@network((1, 11), integers=20)
class Words(nn.Module):
    """Integers looked up in a table, and what the most important of them say."""

    def __init__(self):
        super().__init__()
        self.table, self.key, self.norm, self.head = nn.Embedding(20, 12), nn.Linear(12, 1), nn.LayerNorm(12), nn.Linear(12, 3)

    def forward(self, tokens):
        x = self.norm(self.table(tokens))
        weights = self.key(x).transpose(1, 2).softmax(-1)
        return self.head((weights @ x).squeeze(1))


@network((1, 1, 9, 14))
class SuperResolution(nn.Module):
    """Sub-pixels from channels, normalised by groups."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm, self.body = nn.Conv2d(1, 8, 5, padding=2), nn.GroupNorm(2, 8), nn.Conv2d(8, 9, 3, padding=1)

    def forward(self, image):
        x = F.mish(self.norm(self.stem(image)))
        return F.pixel_shuffle(F.elu(self.body(x)), 3)


@network((1, 4, 9, 7))
class Choices(nn.Module):
    """Choices by conditions, sums and products in a row, remainders, windows, folded weights, and a table that is read at what comes out of it."""

    def __init__(self):
        super().__init__()
        self.stem = parametrizations.weight_norm(nn.Conv2d(4, 6, (3, 2)))
        self.norm, self.mix = nn.LocalResponseNorm(3, alpha=0.2), nn.Bilinear(5, 6, 4)
        self.table = nn.Parameter(torch.randn(6, 3))

    def forward(self, image):
        x = self.norm(self.stem(F.interpolate(image, size=(8, 7), mode="bicubic")))
        x = torch.where(x > 0.1, x, torch.remainder(x, 0.25)).masked_fill(x < -0.6, -0.5)
        rows = F.softshrink(x.cumsum(2), 0.2).logsumexp(3)
        mixed = self.mix(x.mean(1)[:, :, 1:], rows.transpose(1, 2))
        windows = F.unfold(x, (2, 3), stride=(3, 2))[:, 3:8].prod(1)
        return mixed, windows, self.table[x.mean(3).argmax(1)], self.table[[3, 0]] + rows[:, :2, :3]


def traced(name, folder):
    kind, shapes, integers = NETWORKS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    module = kind().eval()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2.0)

    def inputs():
        return tuple(torch.randint(integers, shape) if integers else torch.randn(shape) for shape in shapes)

    runs = [inputs() for _ in range(RUNS)]
    arenite_trace.trace(module, runs[0], folder / f"{name}.trace.json", samples=runs, rtol=1e-5)
    size = sum(file.stat().st_size for file in folder.glob(f"{name}.*"))
    assert size <= LARGEST, f"{name}: {size} bytes"


def differences(name, anew):
    """Differences of a network from its committed form; the version of PyTorch may be another.

    PyTorch's program of a network at another batch says which axis of a shape is the batch, and is left open. Releases differ in whether they have that
    program: `lstm` at a batch of 2 is an error in torch.export of 2.6, and none in 2.15. So shapes are compared as they are at the traced batch.
    """
    documents = [json.loads((folder / f"{name}.trace.json").read_text()) for folder in (FOLDER, anew)]
    for document in documents:
        document.pop("producer")
        for op in document["ops"]:
            op.pop("source", None)
            if op["op"] == "reshape":
                stated, shape = op["attrs"]["shape"], document["tensors"][op["outputs"][0]]["shape"]
                op["attrs"]["shape"] = [at if extent == -1 else extent for extent, at in zip(stated, shape, strict=True)]
    if documents[0] != documents[1]:
        yield f"{name}: another trace"
    yield from of_arrays(name, FOLDER, anew)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if check else FOLDER
        for name in NETWORKS:
            traced(name, folder)
        problems = [problem for name in NETWORKS for problem in differences(name, folder)] if check else []
    print("\n".join(problems) or f"{len(NETWORKS)} networks")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
