"""The networks of make_pt2.py: modules with their inputs, each a family of calls of ATen. No input is square."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

NETWORKS = {}


def network(*inputs, dynamic=None):
    """A module by a function that makes it, or by what it computes of its inputs; `inputs` are shapes, or functions that make one."""

    def add(make):
        NETWORKS[make.__name__.lower()] = (make, inputs, dynamic)
        return make

    return add


class Of(nn.Module):
    """A function of its inputs, and of modules."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def whole(low, high, *shape):
    return lambda: torch.randint(low, high, shape)


@network((1, 7))
def mlp():
    return nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 5, bias=False), nn.Softmax(-1))


@network((1, 3, 13, 9))
def cnn():
    parts = [nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Conv2d(6, 6, 3, padding="same", groups=6), nn.Hardswish()]
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(6, 4))


@network((2, 5))
def activations():
    each = [F.relu, F.relu6, F.hardtanh, F.hardswish, F.hardsigmoid, F.silu, F.gelu, F.mish, F.elu, F.selu, F.softplus, torch.sigmoid, torch.tanh]
    return Of(lambda m, x: [f(x) for f in each])


@network((2, 5))
def activations_too():
    each = [
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: F.leaky_relu(x, 0.2),
        lambda x: F.celu(x, 0.7),
        lambda x: F.elu(x, 0.6),
        lambda x: F.threshold(x, 0.3, -0.5),
        F.hardshrink,
        lambda x: F.softshrink(x, 0.4),
        F.tanhshrink,
        F.logsigmoid,
        F.softsign,
        lambda x: F.glu(torch.cat([x, x * 2], 1), 1),
        lambda x: x.clamp(min=-0.25),
        lambda x: torch.clamp(x, max=torch.full((5,), 0.4)),
    ]
    return Of(lambda m, x: [f(x) for f in each])


@network((1, 4, 3, 5))
def slopes():
    net = Of(lambda m, x: (m.each(x), m.one(x)), each=nn.PReLU(4), one=nn.PReLU())
    with torch.no_grad():
        net.each.weight.uniform_(0.05, 0.4)
    return net


@network((2, 5))
def functions():
    each = [
        torch.exp, torch.abs, torch.neg, torch.sign, torch.floor, torch.ceil, torch.round, torch.sin, torch.cos, torch.erf, torch.square,
        torch.trunc, torch.expm1, torch.frac, torch.erfc, torch.exp2,
    ]  # fmt: skip
    return Of(lambda m, x: [f(x) for f in each])


@network((2, 5))
def functions_above_zero():
    each = [torch.log, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.log1p, torch.log2, torch.log10, lambda x: torch.logit(x / 3), torch.tan]
    return Of(lambda m, x: [f(x.abs() * 0.4 + 0.2) for f in each])


@network((2, 5), (2, 5))
def arithmetic():
    each = [
        lambda x, y: x + y,
        lambda x, y: torch.add(x, y, alpha=2),
        lambda x, y: torch.sub(x, y, alpha=0.5),
        lambda x, y: 3 - x,
        lambda x, y: x * 1.5,
        lambda x, y: x / (y.abs() + 1),
        lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="floor"),
        lambda x, y: torch.div(x * 4, y.abs() + 1, rounding_mode="trunc"),
        lambda x, y: x // 0.7,
        lambda x, y: torch.remainder(x, 0.7),
        lambda x, y: torch.fmod(x, 0.7),
        torch.maximum,
        torch.minimum,
        lambda x, y: torch.max(x, y),
        lambda x, y: x**2,
        lambda x, y: x.abs() ** 1.5,
        lambda x, y: 2 ** (x * 0.5),
    ]
    return Of(lambda m, x, y: [f(x, y) for f in each])


@network((2, 5), (5,))
def choices():
    each = [
        lambda x, y: torch.where(x > y, x, y * 2),
        lambda x, y: torch.where(x < 0.1, 1.0, 0.5) + x,
        lambda x, y: x.masked_fill(y <= 0, -1.5),
        lambda x, y: x.masked_fill((x >= 0) & (y != 0), float("-inf")).softmax(-1),
        lambda x, y: torch.where(torch.logical_or(x == y, ~(x > 0)), x, 0.25),
        lambda x, y: (torch.logical_xor(x > 0, y > 0)).float(),
        lambda x, y: torch.addcmul(x, y, y, value=0.5),
        lambda x, y: torch.addcdiv(x, y, x.abs() + 1, value=2.0),
        lambda x, y: torch.lerp(x, y, 0.3),
        lambda x, y: x.tril() + x.triu(1),
        lambda x, y: torch.isnan(x).float() + torch.isinf(x).to(torch.float32),
    ]
    return Of(lambda m, x, y: [f(x, y) for f in each])


@network((2, 3, 4), (2, 4, 5))
def products():
    each = [
        torch.matmul,
        torch.bmm,
        lambda x, y: x[0] @ y[1],
        lambda x, y: torch.mm(x[0], y[0]),
        lambda x, y: torch.einsum("bij,bjk->bik", x, y),
        lambda x, y: torch.baddbmm(torch.ones(3, 5), x, y, beta=0.5, alpha=2.0),
        lambda x, y: torch.outer(x[0, 0], y[0, 0]),
        lambda x, y: torch.mv(x[0], y[0, :, 0]),
        lambda x, y: F.cosine_similarity(x, x * x, dim=2),
    ]
    return Of(lambda m, x, y: [f(x, y) for f in each])


@network((3, 4))
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.normed = nn.Linear(4, 6), nn.utils.parametrizations.weight_norm(nn.Linear(6, 5))
        self.table = nn.Parameter(torch.randn(5, 3))

    def forward(self, x):
        x = self.normed(self.first(x).relu())
        return torch.addmm(torch.ones(3), x, self.table, beta=0.5, alpha=2.0)


@network((1, 4, 12), (1, 4, 9, 7))
def convolutions():
    return Of(
        lambda m, x, y: [m.line(x), m.same(x), m.up(x), m.grouped(y), m.wide(y), m.up2(y), F.conv2d(y[0], m.wide.weight)],
        line=nn.Conv1d(4, 6, 3, 2, 1),
        same=nn.Conv1d(4, 3, 4, padding="same", dilation=2),
        up=nn.ConvTranspose1d(4, 3, 3, 2, 1, 1),
        grouped=nn.Conv2d(4, 8, (3, 2), (2, 1), (1, 0), groups=2, bias=False),
        wide=nn.Conv2d(4, 5, 3, dilation=(2, 1)),
        up2=nn.ConvTranspose2d(4, 6, (3, 2), 2, groups=2),
    )


@network((1, 3, 13, 9), (1, 3, 14))
def pools():
    each = [
        lambda x, y: F.max_pool2d(x, 3, 2, 1),
        lambda x, y: F.max_pool2d(x, (3, 2), ceil_mode=True),
        lambda x, y: F.avg_pool2d(x, 3, 2, 1),
        lambda x, y: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        lambda x, y: F.adaptive_avg_pool2d(x, 1),
        lambda x, y: F.adaptive_avg_pool2d(x, (5, 3)),
        lambda x, y: F.adaptive_max_pool2d(x, (4, 9)),
        lambda x, y: F.max_pool1d(y, 3),
        lambda x, y: F.avg_pool1d(y, 2),
        lambda x, y: F.adaptive_avg_pool1d(y, 7),
        lambda x, y: F.adaptive_max_pool1d(y, 1),
    ]
    return Of(lambda m, x, y: [f(x, y) for f in each])


@network((2, 6, 5))
def norms():
    return Of(
        lambda m, x: [m.batch(x), m.layer(x), m.plain(x), m.group(x), m.instance(x), m.rms(x), F.softmax(x, 1), F.log_softmax(x, 2), F.normalize(x, dim=1)],
        batch=nn.BatchNorm1d(6),
        layer=nn.LayerNorm(5),
        plain=nn.LayerNorm((6, 5), elementwise_affine=False),
        group=nn.GroupNorm(2, 6),
        instance=nn.InstanceNorm1d(6),
        rms=nn.RMSNorm(5),
    )


@network((2, 3, 5))
def reductions():
    each = [
        lambda x: x.mean(1),
        lambda x: x.mean((0, 2), keepdim=True),
        lambda x: x.sum(-1),
        lambda x: x.sum().reshape(1),
        lambda x: x.amax(1, keepdim=True),
        lambda x: x.amin((1, 2)),
        lambda x: x.max(2).values,
        lambda x: x.min().reshape(1),
        lambda x: x.prod(1),
        lambda x: x.logsumexp(2),
        lambda x: x.var(1),
        lambda x: x.std((1, 2), unbiased=False),
        lambda x: torch.var_mean(x, 2)[1],
        lambda x: x.norm(dim=1),
        lambda x: torch.linalg.vector_norm(x, 1, 2),
        lambda x: x.cumsum(1),
        lambda x: (x > 0.5).any(2).float(),
        lambda x: (x > -2.5).all(1).float(),
    ]
    return Of(lambda m, x: [f(x) for f in each])


@network((2, 3, 5))
def places():
    return Of(lambda m, x: [x.argmax(1), x.argmin(-1, keepdim=True), x.max(2)[1], x.argmax().reshape(1)])


@network((2, 6, 5))
def shapes():
    each = [
        lambda x: x.view(3, -1),
        lambda x: x.reshape(2, 2, 3, 5),
        lambda x: x.flatten(1),
        lambda x: x.flatten(0, 1),
        lambda x: x.unflatten(1, (2, -1)),
        lambda x: x.unsqueeze(1).squeeze(1) + 1,
        lambda x: x.permute(2, 0, 1),
        lambda x: x.transpose(1, 2),
        lambda x: x[0].t(),
        lambda x: x.movedim(0, 2),
        lambda x: x[:, :1].expand(-1, 4, -1),
        lambda x: x[:1].expand_as(x) * 2,
        lambda x: x.repeat(2, 1, 1, 2),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: x.mT,
        lambda x: x.view_as(x.reshape(2, 5, 6)),
        lambda x: x.reshape(2, 1, 6, 1, 5).squeeze(),
    ]
    return Of(lambda m, x: [f(x) for f in each])


@network((2, 6, 5))
def pieces():
    def parts(m, x):
        a, b = x.chunk(2, 1)
        c, d, e = x.split([1, 3, 2], 1)
        f, g = x.unbind(0)
        h, i = x.tensor_split(2, 2)
        return [
            torch.cat([a, b + 1], 2),
            torch.stack([d[:, :2], e], 1) + c.unsqueeze(1),
            f * g,
            h.sum(2) - i.sum(2),
            x[:, 1:-1:2],
            x[:, -1],
            x.select(2, 3),
            x.narrow(1, 2, 3),
            torch.cat(x.split(4, 1), 1) * 3,
            x.index_select(1, m.order),
            x[:, m.order],
            x[m.order[:3] // 3],
            x.gather(2, m.places),
            x.flip(1, 2),
            x.roll((1, -2), (1, 2)),
        ]

    net = Of(parts)
    net.register_buffer("order", torch.tensor([4, 0, 5, 2]), persistent=False)
    net.register_buffer("places", torch.randint(0, 5, (2, 6, 3)))
    return net


@network((1, 4, 6, 5))
def images():
    each = [
        lambda x: F.pad(x, (1, 2, 0, 3)),
        lambda x: F.pad(x, (1, 2), value=-1.5),
        lambda x: F.pad(x, (2, 1, 3, 0), mode="reflect"),
        lambda x: F.pad(x, (2, 1, 3, 0), mode="replicate"),
        lambda x: F.pad(x, (2, 1, 3, 0), mode="circular"),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_unshuffle(x[:, :, :, :4], 2),
        lambda x: F.channel_shuffle(x, 2),
        lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
        lambda x: F.interpolate(x, size=(9, 7), mode="nearest"),
        lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
        lambda x: F.interpolate(x, size=(8, 9), mode="bilinear", align_corners=True),
        lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
        lambda x: F.interpolate(x, size=(9, 7), mode="nearest-exact"),
        lambda x: F.interpolate(x[0], scale_factor=2, mode="linear"),
    ]
    return Of(lambda m, x: [f(x) for f in each])


@network((2, 3))
def made():
    each = [
        lambda x: x + torch.ones(3) + torch.zeros(2, 1),
        lambda x: x * torch.arange(3),
        lambda x: x + torch.arange(0.5, 2.0, 0.5),
        lambda x: x + torch.full_like(x, 0.3) * torch.ones_like(x) + torch.zeros_like(x),
        lambda x: x @ torch.eye(3, 4),
        lambda x: x + torch.tensor(2.5),
        lambda x: x.new_full((3,), 1.5) - x,
        lambda x: x.to(torch.float32).contiguous().clone() * torch.tensor([1, 0, 1], dtype=torch.bool),
    ]
    return Of(lambda m, x: [f(x) for f in each])


@network((1, 2, 4, 6), (1, 2, 5, 6), (1, 2, 5, 6))
def attention():
    each = [
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.arange(20.0).view(4, 5) * 0.1, scale=0.3),
        lambda q, k, v: F.scaled_dot_product_attention(q[0], k[0], v[0]),
    ]
    return Of(lambda m, q, k, v: [f(q, k, v) for f in each])


@network((1, 5, 12))
def heads():
    return Of(lambda m, x: m.heads(x, x, x, need_weights=False)[0], heads=nn.MultiheadAttention(12, 3, batch_first=True))


@network((4, 1, 5), (2, 1, 6), (2, 1, 6))
def lstm():
    return Of(lambda m, x, h, c: m.cell(x, (h, c)), cell=nn.LSTM(5, 6, 2))


@network((1, 4, 5))
def gru():
    return Of(lambda m, x: [m.cell(x)[0], m.plain(x)[1]], cell=nn.GRU(5, 3, batch_first=True, bidirectional=True), plain=nn.RNN(5, 4, batch_first=True))


@network(whole(0, 9, 1, 6))
def tokens():
    def forward(m, x):
        x = m.table(x) + m.places(torch.arange(6))
        return m.layer(x).mean(1)

    return Of(forward, table=nn.Embedding(9, 4), places=nn.Embedding(6, 4), layer=nn.TransformerEncoderLayer(4, 2, 8, batch_first=True))


@network((2, 3, 4))
def in_place():
    def forward(m, x):
        y = x * 2
        z = y
        y += 1
        y.mul_(x).clamp_(-1, 1)
        w = z + 1
        w.fill_(0.25)
        return [z, w * x, F.relu(x - 1, inplace=True)]

    return Of(forward)


@network((2, 3, 8), dynamic={0: "batch"})
def open_batch():
    return Of(lambda m, x: m.layer(x.reshape(x.shape[0], -1)).view(x.shape[0], 2, 2).flatten(1), layer=nn.Linear(24, 4))


@network((1, 3, 8, 6), dynamic={2: "rows", 3: "columns"})
def open_rows():
    return Of(lambda m, x: F.interpolate(m.layer(x), scale_factor=2).mean((2, 3)) / (x.shape[2] * x.shape[3]), layer=nn.Conv2d(3, 4, 3, padding=1))


@network((1, 4, 9, 7))
def half_weights():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.randn(5, 4, 3, 3).half().permute(0, 1, 3, 2))
            self.register_buffer("b", torch.randn(5, dtype=torch.float64))

        def forward(self, x):
            return F.conv2d(x, self.w.float(), self.b.float())

    return Half()

