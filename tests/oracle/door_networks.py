"""The networks of make_doors.py: functions that make a module, and modules, each with the shape of its input."""

from __future__ import annotations

import re

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

NETWORKS = {}


def network(*shape):
    """A network of one input of this shape: a class of modules, or a function that makes one."""

    def add(make):
        NETWORKS[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", make.__name__).lower()] = (make, shape)
        return make

    return add


class Of(nn.Module):
    """A function of its input, and of modules."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        return self.function(self, x)


def block(inputs, outputs, kernel=3, stride=1, groups=1, activation=None):
    """A convolution, its batch norm, and an activation."""
    parts = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([activation] if activation else []))


def clamped(activation):
    """Two layers with a clamp behind each, and a sum."""
    return Of(
        lambda m, x: m.head(activation(m.second(activation(m.first(x))))),
        first=block(3, 6, stride=2),
        second=nn.Conv2d(6, 8, (3, 2)),
        head=nn.Conv2d(8, 4, 1),
    )


# Clamps of all spellings.


@network(1, 3, 13, 9)
def relu6():
    return clamped(nn.ReLU6())


@network(1, 3, 13, 9)
def clip():
    return clamped(lambda x: x.clamp(0, 6))


@network(1, 3, 13, 9)
def min_max():
    return clamped(lambda x: torch.minimum(torch.maximum(x, torch.tensor(0.0)), torch.tensor(6.0)))


@network(1, 3, 13, 9)
def clamp_twice():
    return clamped(lambda x: F.relu(x).clamp(max=6.0))


@network(1, 3, 13, 9)
def clamp_below_zero():
    return clamped(nn.Hardtanh(-0.75, 1.5))


@network(1, 3, 13, 9)
def hard_swish():
    return clamped(nn.Hardswish())


@network(1, 3, 13, 9)
def hard_swish_written_out():
    return clamped(lambda x: x * F.relu6(x + 3) / 6)


@network(1, 3, 13, 9)
def hard_sigmoid():
    return clamped(nn.Hardsigmoid())


@network(1, 3, 13, 9)
def hard_sigmoid_written_out():
    return clamped(lambda x: (x + 3).clamp(0, 6) / 6)


# Activations by name and by their parts.


@network(1, 3, 13, 9)
def silu():
    return clamped(nn.SiLU())


@network(1, 3, 13, 9)
def silu_written_out():
    return clamped(lambda x: x * torch.sigmoid(x))


@network(1, 3, 13, 9)
def mish():
    return clamped(nn.Mish())


@network(1, 3, 13, 9)
def mish_written_out():
    return clamped(lambda x: x * torch.tanh(torch.log(1 + torch.exp(x))))


@network(1, 3, 13, 9)
def leaky_relu():
    return clamped(nn.LeakyReLU(0.1))


@network(1, 3, 13, 9)
class Prelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.slope, self.head = block(3, 6), nn.PReLU(6, 0.2), nn.Conv2d(6, 4, 2)
        with torch.no_grad():
            self.slope.weight.uniform_(0.05, 0.4)

    def forward(self, x):
        return self.head(self.slope(self.first(x)))


@network(1, 3, 13, 9)
def elu():
    return clamped(nn.ELU(0.7))


@network(1, 3, 13, 9)
def softplus():
    return clamped(nn.Softplus())


@network(3, 20)
def gelus():
    return Of(
        lambda m, x: m.c(F.gelu(m.b(F.gelu(m.a(x))), approximate="tanh")),
        a=nn.Linear(20, 12),
        b=nn.Linear(12, 10),
        c=nn.Linear(10, 5),
    )


# Networks for images.


@network(1, 3, 20, 14)
def depthwise_separable():
    parts = [block(3, 8, stride=2, activation=nn.ReLU())]
    parts += [block(8, 8, groups=8, activation=nn.ReLU()), block(8, 12, 1, activation=nn.ReLU())]
    parts += [block(12, 12, stride=2, groups=12, activation=nn.ReLU()), block(12, 10, 1, activation=nn.ReLU())]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(10, 5), nn.Softmax(-1))


@network(1, 3, 16, 12)
def inverted_residual():
    return Of(
        lambda m, x: m.head((y := m.stem(x)) + m.narrow(m.depth(m.widen(y)))),
        stem=block(3, 6, stride=2, activation=nn.ReLU6()),
        widen=block(6, 18, 1, activation=nn.ReLU6()),
        depth=block(18, 18, groups=18, activation=nn.ReLU6()),
        narrow=block(18, 6, 1),
        head=nn.Conv2d(6, 4, 1),
    )


@network(1, 3, 14, 10)
def squeeze_excite():
    return Of(
        lambda m, x: m.head((y := m.stem(x)) * F.hardsigmoid(m.excite(F.relu(m.squeeze(y.mean((2, 3), keepdim=True)))))),
        stem=block(3, 8, activation=nn.Hardswish()),
        squeeze=nn.Conv2d(8, 3, 1),
        excite=nn.Conv2d(3, 8, 1),
        head=nn.Conv2d(8, 4, 1),
    )


@network(1, 3, 14, 10)
def residual():
    return Of(
        lambda m, x: m.head(F.relu(m.short(y := m.stem(x)) + m.b(m.a(y)))),
        stem=block(3, 6, activation=nn.ReLU()),
        a=block(6, 8, stride=2, activation=nn.ReLU()),
        b=block(8, 8),
        short=block(6, 8, 1, 2),
        head=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
    )


@network(1, 2, 12, 16)
def u_net():
    return Of(
        lambda m, x: m.head(m.join(torch.cat([m.up(m.low(F.max_pool2d(y := m.top(x), 2))), y], 1))),
        top=block(2, 6, activation=nn.ReLU()),
        low=block(6, 10, activation=nn.ReLU()),
        up=nn.Sequential(nn.ConvTranspose2d(10, 6, 2, 2, bias=False), nn.BatchNorm2d(6), nn.ReLU()),
        join=block(12, 6, activation=nn.ReLU()),
        head=nn.Conv2d(6, 2, 1),
    )


@network(1, 2, 24)
def u_net_1d():
    def part(inputs, outputs, stride=1):
        return nn.Sequential(nn.Conv1d(inputs, outputs, 3, stride, 1), nn.BatchNorm1d(outputs), nn.ReLU())

    return Of(
        lambda m, x: m.head(m.join(torch.cat([m.up(m.low(y := m.top(x))), y], 1))),
        top=part(2, 6),
        low=part(6, 10, 2),
        up=nn.Sequential(nn.ConvTranspose1d(10, 6, 4, 2, 1), nn.BatchNorm1d(6), nn.ReLU()),
        join=part(12, 6),
        head=nn.Conv1d(6, 2, 1),
    )


@network(1, 3, 7, 10)
def upsampling():
    return Of(
        lambda m, x: m.head(F.interpolate(m.b(F.interpolate(m.a(x), scale_factor=2)), scale_factor=2, mode="bilinear")),
        a=block(3, 6, activation=nn.ReLU()),
        b=block(6, 4, activation=nn.ReLU()),
        head=nn.Conv2d(4, 2, 1),
    )


@network(1, 3, 9, 7)
def pixel_shuffle():
    return nn.Sequential(block(3, 6, activation=nn.ReLU()), nn.Conv2d(6, 12, 3, padding=1), nn.PixelShuffle(2), nn.ReLU(), nn.Conv2d(3, 2, 1))


@network(1, 6, 9, 7)
def concat_split():
    def forward(m, x):
        a, b = m.stem(x).split([3, 5], 1)
        return m.head(torch.cat([m.a(a), F.relu(b)], 1))

    return Of(forward, stem=nn.Conv2d(6, 8, 3), a=nn.Conv2d(3, 4, 1), head=nn.Conv2d(9, 4, 2))


@network(1, 4, 9, 7)
def group_norm():
    return nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 3, 1))


@network(1, 4, 12, 9)
def weight_norm():
    return nn.Sequential(parametrizations.weight_norm(nn.Conv2d(4, 6, (3, 2))), nn.ReLU(), nn.Flatten(2), parametrizations.weight_norm(nn.Linear(80, 5)))


@network(1, 3, 14, 9)
def pools():
    parts = [nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.AvgPool2d(2, 1)]
    return nn.Sequential(*parts, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 4))


@network(1, 3, 11, 8)
def mean_pooling():
    return Of(lambda m, x: m.head(m.stem(x).mean((2, 3))), stem=block(3, 8, activation=nn.ReLU6()), head=nn.Linear(8, 4))


@network(1, 3, 11, 8)
def padded():
    return nn.Sequential(nn.ZeroPad2d((0, 1, 1, 2)), nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.ZeroPad2d((1, 1, 1, 1)), nn.MaxPool2d(2), nn.Conv2d(6, 4, 2))


# Sequences.


@network(1, 3, 40)
def tcn():
    def part(inputs, outputs, dilation):
        return [nn.ConstantPad1d((2 * dilation, 0), 0.0), nn.Conv1d(inputs, outputs, 3, dilation=dilation), nn.BatchNorm1d(outputs), nn.ReLU()]

    return nn.Sequential(*part(3, 8, 1), *part(8, 8, 2), *part(8, 6, 4), nn.Conv1d(6, 4, 1))


@network(1, 3, 40)
def conv1d_pools():
    parts = [nn.Conv1d(3, 6, 5), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(6, 8, 3), nn.ReLU(), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(1)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(8, 4))


@network(1, 1, 30)
def conv1d_residual():
    return Of(
        lambda m, x: m.head((y := F.relu(m.stem(x))) + m.b(F.relu(m.a(y)))),
        stem=nn.Conv1d(1, 6, 3, padding=1),
        a=nn.Conv1d(6, 6, 3, padding=2, dilation=2),
        b=nn.Conv1d(6, 6, 1),
        head=nn.Conv1d(6, 3, 1),
    )


# Fully connected layers.


@network(3, 20)
def mlp():
    return nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 5), nn.Softmax(-1))


@network(3, 20)
def mlp_batch_norm():
    parts = [nn.BatchNorm1d(20), nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 12, bias=False), nn.BatchNorm1d(12), nn.ReLU()]
    return nn.Sequential(*parts, nn.BatchNorm1d(12), nn.Linear(12, 5))


@network(3, 20)
def autoencoder():
    parts = [nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 20), nn.Sigmoid()]
    return nn.Sequential(*parts)


# Normalisation and attention.


@network(1, 9, 12)
def layer_norm():
    return nn.Sequential(nn.Linear(12, 10), nn.LayerNorm(10), nn.GELU(), nn.Linear(10, 4))


@network(1, 9, 12)
def rms_norm():
    return nn.Sequential(nn.Linear(12, 10), nn.RMSNorm(10, eps=1e-6), nn.SiLU(), nn.Linear(10, 4))


@network(1, 9, 12)
class RmsNormWrittenOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(12, 10), nn.Linear(10, 4), nn.Parameter(torch.rand(10) + 0.5)

    def forward(self, x):
        x = self.a(x)
        return self.b(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale)


@network(1, 9, 12)
def softmax_written_out():
    def forward(m, x):
        y = m.a(x)
        y = torch.exp(y - y.amax(-1, keepdim=True))
        return m.b(y / y.sum(-1, keepdim=True))

    return Of(forward, a=nn.Linear(12, 7), b=nn.Linear(7, 4))


@network(1, 9, 12)
def attention():
    def forward(m, x):
        q, k, v = (part.view(1, 9, 2, 6).transpose(1, 2) for part in m.qkv(x).chunk(3, -1))
        return m.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    return Of(forward, qkv=nn.Linear(12, 36), out=nn.Linear(12, 5))


@network(1, 9, 12)
def attention_written_out():
    def forward(m, x):
        scores = m.q(x) @ m.k(x).transpose(1, 2) / 8**0.5
        return m.out(scores.softmax(-1) @ m.v(x))

    return Of(forward, q=nn.Linear(12, 8), k=nn.Linear(12, 8), v=nn.Linear(12, 8), out=nn.Linear(8, 5))


@network(1, 3, 12, 8)
class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, 12, 4, 4), nn.Parameter(torch.randn(1, 6, 12) * 0.1)
        self.block = nn.TransformerEncoderLayer(12, 2, 20, activation="gelu", batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.block(x)).mean(1))


# Constants, transposes, and what does nothing.


@network(1, 3, 9, 7)
def affine_chain():
    def forward(m, x):
        y = F.relu(m.a((x / 255 - 0.25) * 3))
        y = m.b(y * 2 / 3)
        return (y + 1) * torch.tensor([0.5, 1.5, 2.0, 0.7]).view(4, 1, 1) - 0.5

    return Of(forward, a=nn.Conv2d(3, 6, 3), b=nn.Conv2d(6, 4, 2))


@network(3, 20)
def divisions():
    return Of(lambda m, x: m.b(torch.tanh(m.a(x) / 3.7)) / torch.tensor([1.5, 3.0, 7.0]), a=nn.Linear(20, 12), b=nn.Linear(12, 3))


@network(1, 9, 7, 4)
def transposes():
    def forward(m, x):
        y = F.relu(m.a(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1) + 0.5) * 1.25
        return m.b(torch.tanh(y).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)

    return Of(forward, a=nn.Conv2d(4, 6, 3), b=nn.Conv2d(6, 3, 2))


@network(1, 6, 20)
def transposed_linear():
    return Of(lambda m, x: m.b(F.relu(m.a(x.transpose(1, 2)))).transpose(1, 2), a=nn.Linear(6, 10), b=nn.Linear(10, 4))


@network(1, 3, 9, 7)
def nothing():
    def forward(m, x):
        y = m.a(nn.Identity()(x)) * 1 + 0
        unused = m.b(y).exp()  # noqa: F841: a dead branch
        y = F.dropout(F.relu(y).contiguous(), training=False)
        return m.c(y.view(1, 6, -1).view(1, 6, 7, 5).repeat(1, 1, 1, 1)) / 1

    return Of(forward, a=nn.Conv2d(3, 6, 3), b=nn.Conv2d(6, 4, 2), c=nn.Conv2d(6, 4, 2))


@network(1, 3, 12, 9)
def flattened():
    parts = [nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(120, 12), nn.ReLU(), nn.Linear(12, 4), nn.LogSoftmax(-1)]
    return nn.Sequential(*parts)
