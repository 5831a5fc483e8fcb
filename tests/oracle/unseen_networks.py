"""The networks of ``quantise_unseen.py``: small ones of many kinds, trained here on scikit-learn's digits or on data that is generated.

Each is a function of a NumPy generator that gives a module, inputs [samples, ...] and targets: integers are classes, real numbers are regressed on.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn
from torch.nn import functional

NETWORKS = {}


def network(kind):
    """Puts a network on the list."""
    NETWORKS[kind.__name__] = kind
    return kind


def trained(module: nn.Module, x: np.ndarray, y: np.ndarray, epochs: int = 20) -> nn.Module:
    """The module after so many passes of Adam."""
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    loss = nn.CrossEntropyLoss() if y.dtype == torch.int64 else nn.MSELoss()
    optimiser = torch.optim.Adam(module.parameters(), 3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            loss(module(x[batch]), y[batch]).backward()
            optimiser.step()
    return module.eval()


def digits(generator):
    data = load_digits()
    order = generator.permutation(len(data.target))
    return (data.images[order] / 16).astype(np.float32)[:, None], data.target[order]


def waves(generator, rows=2000, length=48, channels=2):
    """Sequences [rows, channels, length] whose frequency is the class of four; heights are log-normal."""
    y = generator.integers(0, 4, rows)
    phase, height = generator.uniform(0, 6.28, (rows, channels, 1)), generator.lognormal(0, 0.4, (rows, channels, 1))
    x = height * np.sin(0.25 * (y[:, None, None] + 1) * np.arange(length) + phase) + generator.normal(0, 0.3, (rows, channels, length))
    return x.astype(np.float32), y


def shapes(generator, rows=1600, size=16):
    """Pictures [rows, 1, size, size] of a disc and a bar over a gradient, and where the disc is [rows, 1, size, size]."""
    at = np.arange(size)
    place, radius = generator.uniform(3, size - 3, (rows, 2, 1, 1)), generator.uniform(2, 4, (rows, 1, 1))
    disc = ((at[:, None] - place[:, 0]) ** 2 + (at - place[:, 1]) ** 2 < radius**2).astype(np.float32)
    bar = np.abs(at - generator.uniform(0, size, (rows, 1, 1))) < 1.5
    light = generator.uniform(0.3, 1.5, (rows, 1, 1)) * at / size
    x = disc * generator.uniform(0.5, 1, (rows, 1, 1)) + 0.4 * bar + light + generator.normal(0, 0.05, (rows, size, size))
    return x.astype(np.float32)[:, None], disc[:, None], place[:, :, 0, 0]


def conv(inputs, outputs, stride=1, groups=1, size=3, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


@network
def digits_mlp(generator):
    x, y = digits(generator)
    layers = [nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10)]
    return nn.Sequential(*layers), x.reshape(len(x), 64), y


@network
def digits_conv(generator):
    x, y = digits(generator)
    layers = [nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), conv(12, 24), nn.Flatten(), nn.Linear(24 * 16, 10)]
    return nn.Sequential(*layers), x, y


@network
def mobilenet_v1(generator):
    x, y = digits(generator)
    layers = [conv(1, 16, act=nn.ReLU6)]
    for inputs, outputs in ((16, 24), (24, 32)):
        layers += [conv(inputs, inputs, groups=inputs, act=nn.ReLU6), conv(inputs, outputs, size=1, act=nn.ReLU6)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), x, y


class Residual(nn.Module):
    """A sum of its input and of what its layers make of it."""

    def __init__(self, *layers, act=None):
        super().__init__()
        self.layers, self.act = nn.Sequential(*layers), act() if act else nn.Identity()

    def forward(self, x):
        return self.act(x + self.layers(x))


@network
def mobilenet_v2(generator):
    x, y = digits(generator)

    def block(inputs, outputs):
        wide = 4 * inputs
        layers = [conv(inputs, wide, size=1, act=nn.ReLU6), conv(wide, wide, groups=wide, act=nn.ReLU6), conv(wide, outputs, size=1, act=None)]
        return Residual(*layers) if inputs == outputs else nn.Sequential(*layers)

    layers = [conv(1, 12, act=nn.ReLU6), block(12, 12), block(12, 20), block(20, 20), conv(20, 48, size=1, act=nn.ReLU6)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10)), x, y


class Excited(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), nn.ReLU(), nn.Conv2d(channels // 4, channels, 1), nn.Hardsigmoid()
        )

    def forward(self, x):
        return x * self.layers(x)


@network
def mobilenet_v3(generator):
    x, y = digits(generator)

    def block(inputs, outputs):
        wide = 3 * inputs
        layers = [conv(inputs, wide, size=1, act=nn.Hardswish), conv(wide, wide, groups=wide, act=nn.Hardswish), Excited(wide)]
        layers += [conv(wide, outputs, size=1, act=None)]
        return Residual(*layers) if inputs == outputs else nn.Sequential(*layers)

    layers = [conv(1, 16, act=nn.Hardswish), block(16, 16), block(16, 24), conv(24, 48, size=1, act=nn.Hardswish)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10)), x, y


@network
def resnet(generator):
    x, y = digits(generator)
    layers = [conv(1, 12), Residual(conv(12, 12), conv(12, 12, act=None), act=nn.ReLU), conv(12, 24, stride=2)]
    layers += [Residual(conv(24, 24), conv(24, 24, act=None), act=nn.ReLU)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)), x, y


@network
def ds_cnn(generator):
    """Spectrograms [1, 24, 10] of ridges whose slope is the class of five."""
    rows, t, f = 1800, np.arange(24)[:, None], np.arange(10)
    y = generator.integers(0, 5, rows)
    start, height = generator.uniform(0, 10, (rows, 1, 1)), generator.lognormal(0.5, 0.5, (rows, 1, 1))
    ridge = np.exp(-(((f - start - (y[:, None, None] - 2) * 0.25 * t + 5) % 10 - 5) ** 2))
    x = np.log(0.02 + height * ridge + np.abs(generator.normal(0, 0.1, (rows, 24, 10))))
    layers = [nn.Conv2d(1, 24, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(24), nn.ReLU()]
    for _ in range(3):
        layers += [conv(24, 24, groups=24), conv(24, 24, size=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 5)), x.astype(np.float32)[:, None], y


class UNet(nn.Module):
    """Two levels, joined by channels."""

    def __init__(self):
        super().__init__()
        self.down, self.deep, self.up = conv(1, 8), conv(8, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.join, self.last = conv(16, 8), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        first = self.down(x)
        deep = self.deep(functional.max_pool2d(first, 2))
        return self.last(self.join(torch.cat([first, self.up(deep)], 1)))


@network
def unet(generator):
    x, mask, _ = shapes(generator)
    return UNet(), x, mask


@network
def pose(generator):
    """Where the disc is."""
    x, _, place = shapes(generator)
    layers = []
    for inputs, outputs in ((1, 12), (12, 24), (24, 32)):
        layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, 32), nn.LeakyReLU(0.1), nn.Linear(32, 2)), x, (place / 16).astype(np.float32)


@network
def autoencoder(generator):
    """Spectra: a few peaks of random place, width and height over noise; answers are the spectra."""
    at = np.arange(64)
    place, width, height = (generator.uniform(*ends, (2400, 3, 1)) for ends in ((0, 64), (1, 6), (0.2, 2)))
    x = ((height * np.exp(-(((at - place) / width) ** 2))).sum(1) + generator.normal(0, 0.05, (2400, 64))).astype(np.float32)
    layers = [nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 64)), x, x


@network
def tabular(generator):
    """Columns of unlike units: log-normal, Gaussian, counts and shares, up to 15,000 times apart."""
    rows = 2400
    scales = np.array([1, 300, 0.5, 20, 1, 100, 3, 0.02])
    columns = [generator.lognormal(0, 0.6, rows), *generator.normal(0.5, 1, (4, rows)), generator.poisson(3, rows), *generator.random((2, rows))]
    z = np.stack(columns, 1)
    y = np.sin(z[:, 1]) + z[:, 0] * z[:, 2] + np.abs(z[:, 3]) - z[:, 7] * z[:, 5] + 0.5 * z[:, 6]
    first = nn.Linear(8, 48)
    first.weight.data /= torch.tensor(scales, dtype=torch.float32)
    x = (z * scales).astype(np.float32)
    return nn.Sequential(first, nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1)), x, y[:, None].astype(np.float32)


@network
def cancer(generator):
    """Thirty standardised columns, drawn again with noise: scikit-learn's breast cancer set."""
    data = load_breast_cancer()
    z = (data.data - data.data.mean(0)) / data.data.std(0)
    order = generator.integers(0, len(z), 1600)
    x = z[order] + generator.normal(0, 0.1, (1600, 30))
    layers = [nn.Linear(30, 24), nn.Tanh(), nn.Linear(24, 16), nn.ELU(), nn.Linear(16, 2)]
    return nn.Sequential(*layers), x.astype(np.float32), data.target[order].astype(np.int64)


@network
def tcn(generator):
    x, y = waves(generator)
    layers = [nn.Conv1d(2, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 16, 3, padding=2, dilation=2), nn.BatchNorm1d(16), nn.ReLU()]
    layers += [nn.Conv1d(16, 16, 3, padding=4, dilation=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16, 4)), x, y


class Last(nn.Module):
    """A recurrent layer, of which a linear one reads the last state."""

    def __init__(self, recurrent, classes):
        super().__init__()
        self.recurrent, self.linear = recurrent, nn.Linear(recurrent.hidden_size, classes)

    def forward(self, x):
        return self.linear(self.recurrent(x)[0][:, -1])


@network
def gru(generator):
    x, y = waves(generator, length=16)
    return Last(nn.GRU(2, 16, batch_first=True), 4), x.transpose(0, 2, 1).copy(), y


@network
def lstm(generator):
    x, y = waves(generator, length=16)
    return Last(nn.LSTM(2, 16, batch_first=True), 4), x.transpose(0, 2, 1).copy(), y


class Attention(nn.Module):
    """Attention of several heads, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.joint, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, places, width = x.shape
        parts = self.joint(x).reshape(batch, places, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(2, 3) * (width // self.heads) ** -0.5
        return self.out((scores.softmax(-1) @ parts[2]).transpose(1, 2).reshape(batch, places, width))


class Transformer(nn.Module):
    """Blocks of attention and of two linear layers over embedded places; a linear layer reads their mean."""

    def __init__(self, inputs, places, classes, width=24, heads=4, blocks=2):
        super().__init__()
        self.embed, self.places = nn.Linear(inputs, width), nn.Parameter(torch.randn(1, places, width) * 0.1)
        self.blocks = nn.ModuleList()
        for _ in range(blocks):
            wide = [nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)]
            self.blocks.append(nn.Sequential(Residual(nn.LayerNorm(width), Attention(width, heads)), Residual(*wide)))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.last(self.norm(x).mean(1))


@network
def vision_transformer(generator):
    """The digits in patches of 2 x 2."""
    x, y = digits(generator)
    patches = x.reshape(len(x), 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(len(x), 16, 4)
    return Transformer(4, 16, 10), patches.copy(), y


@network
def sequence_transformer(generator):
    x, y = waves(generator, length=20, channels=3)
    return Transformer(3, 20, 4, width=16, heads=2), x.transpose(0, 2, 1).copy(), y
