"""Checks the references themselves: `python -m unittest discover -s tests/reference`."""

from __future__ import annotations

import itertools
import os
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ops  # noqa: E402
import reference  # noqa: E402

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

WORKSPACE = HERE.parent.parent
SHARED = Path(os.environ.get("ARENITE_SHARED", WORKSPACE.parent / "shared"))

# trace -> dialect, parameters in scalars, multiply-accumulates, and the output's name and shape at batch 1
CATALOGUE = {
    "vgg19-chainer.trace.txt": ("chainer", 143_667_240, 19_632_062_464, "buffer52", (1, 1000)),
    "localnet-rects.trace.txt": (
        "rects",
        293_629_250,
        293_512_896,
        "classifier.softmax.probability",
        (1, 3034, 1, 1),
    ),
    "resnet50-megengine.trace.json": (
        "megengine",
        25_526_632,
        4_089_184_256,
        "TRUE_DIV(EXP[852],reduce0[854])[857]",
        (1, 1000),
    ),
    "alexnet-tf-shapes.trace.txt": ("tf-shapes", 2_469_696, 658_145_280, "pool5", (1, 256, 6, 6)),
    "resnet50-keras-order.trace.txt": ("keras-order", 25_636_712, 3_857_973_248, "predictions/BiasAdd", (1, 1000)),
}


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).standard_normal(shape)


@unittest.skipIf(torch is None, "no PyTorch")
class AgainstTorch(unittest.TestCase):
    def same(self, ours: np.ndarray, theirs: torch.Tensor) -> None:
        self.assertEqual(ours.shape, tuple(theirs.shape))
        self.assertLess(relative(ours, theirs.numpy()), 1e-12)

    def test_conv2d(self) -> None:
        for stride, pad, dilation, groups in itertools.product((1, 2), (0, 2), (1, 2), (1, 2, 4)):
            x, w, b = random(2, 4, 11, 9), random(8, 4 // groups, 3, 2), random(8)
            ours = ops.conv2d(x, w, b, (stride, 1), (pad, pad, 1, 1), (dilation, 1), groups)
            tx, tw, tb = map(torch.from_numpy, (x, w, b))
            self.same(ours, F.conv2d(tx, tw, tb, (stride, 1), (pad, 1), (dilation, 1), groups))

    def test_conv2d_in_pieces(self) -> None:
        x, w = random(1, 3, 20, 20), random(2, 3, 3, 3)
        whole = ops.conv2d(x, w)
        pieces, ops._PIECE_BYTES = ops._PIECE_BYTES, 8 * 27 * 18 * 4
        try:
            np.testing.assert_allclose(ops.conv2d(x, w), whole, rtol=1e-12, atol=1e-14)
        finally:
            ops._PIECE_BYTES = pieces

    def test_pooling_in_floor_and_ceiling_mode(self) -> None:
        for n, k, s, p, ceil in itertools.product((7, 8, 9), (2, 3), (1, 2, 3), (0, 1), (False, True)):
            x = random(2, 3, n, n + 1)
            size = ops.torch_ceil_size if ceil else ops.floor_size
            out = [size(m, k, s, p, p) for m in (n, n + 1)]
            tx = torch.from_numpy(x)
            with self.subTest(n=n, k=k, s=s, p=p, ceil=ceil):
                self.same(ops.max_pool2d(x, (k, k), (s, s), out, (p,) * 4), F.max_pool2d(tx, k, s, p, ceil_mode=ceil))
                for include in (False, True):
                    ours = ops.avg_pool2d(x, (k, k), (s, s), out, (p,) * 4, include)
                    self.same(ours, F.avg_pool2d(tx, k, s, p, ceil_mode=ceil, count_include_pad=include))

    def test_batch_norm_and_softmax(self) -> None:
        x, g, b, m, v = random(2, 5, 3, 3), random(5), random(5), random(5), np.abs(random(5)) + 0.5
        t = [torch.from_numpy(a) for a in (x, m, v, g, b)]
        self.same(ops.batch_norm(x, g, b, m, v, 1e-3, axis=1), F.batch_norm(*t, eps=1e-3))
        self.same(ops.softmax(x, 1), torch.softmax(t[0], 1))
        self.same(ops.log_softmax(x, 1), torch.log_softmax(t[0], 1))

    def test_lrn(self) -> None:
        # PyTorch's divides alpha by the window's size; TensorFlow's does not.
        x = random(2, 3, 4, 6) * 10
        theirs = F.local_response_norm(torch.from_numpy(x).permute(0, 3, 1, 2), 5, alpha=5e-2, beta=0.75, k=2.0)
        self.same(ops.lrn(x, 2, 2.0, 1e-2, 0.75), theirs.permute(0, 2, 3, 1))


class Definitions(unittest.TestCase):
    def test_locally_connected_with_equal_kernels_is_a_convolution(self) -> None:
        x, w = random(2, 3, 8, 9), random(4, 3, 3, 2)
        filters = np.broadcast_to(w[:, None, None, :, :, :, None, None], (4, 1, 1, 3, 3, 2, 6, 8))
        np.testing.assert_allclose(ops.locally_connected(x, filters), ops.conv2d(x, w), rtol=1e-12)

    def test_locally_connected_by_loops(self) -> None:
        x, f = random(1, 2, 4, 4), random(3, 1, 1, 2, 2, 2, 3, 3)
        y = ops.locally_connected(x, f)
        for o, p, q in itertools.product(range(3), range(3), range(3)):
            expected = (x[0, :, p : p + 2, q : q + 2] * f[o, 0, 0, :, :, :, p, q]).sum()
            self.assertAlmostEqual(y[0, o, p, q], expected, places=12)

    def test_window_sizes_of_the_catalogue(self) -> None:
        self.assertEqual(ops.same_padding((224, 224), (11, 11), (4, 4)), (3, 4, 3, 4))
        self.assertEqual([ops.floor_size(n, 3, 2) for n in (56, 27, 13)], [27, 13, 6])
        self.assertEqual(ops.chainer_size(7, 2, 2, 0, True), 4)
        self.assertEqual(ops.chainer_size(7, 2, 2, 0, False), 3)


class Digits(unittest.TestCase):
    """The stored outputs are PyTorch's, in f32."""

    def check(self, name: str, output: str) -> None:
        folder = WORKSPACE / "tests/models/digits"
        network = reference.load(folder / f"{name}.trace.json")
        weights = reference.Weights(folder / f"{name}.safetensors")
        reference.check_weights(network, weights)
        images, expected = np.load(folder / "test_images.npy"), np.load(folder / f"{name}.test_{output}.npy")
        layers = dict(network.run({"image": images[:, 0]}, weights))
        self.assertEqual(network.output, output)
        self.assertEqual(set(layers), {op["outputs"][0] for op in network.trace["ops"]})
        ours = layers[output]
        self.assertLess(max(relative(a, b) for a, b in zip(ours, expected[:, 0], strict=True)), 1e-5)
        np.testing.assert_array_equal(ours.argmax(axis=1), expected[:, 0].argmax(axis=1))

    def test_digits(self) -> None:
        self.check("digits", "logits")

    def test_residual(self) -> None:
        self.check("residual", "probability")

    def test_mlp(self) -> None:
        self.check("mlp", "logits")


class FiveTraces(unittest.TestCase):
    def test_parameters_macs_and_outputs(self) -> None:
        for file, (dialect, count, macs, output, shape) in CATALOGUE.items():
            with self.subTest(file):
                path = SHARED / "traces" / file
                if not path.exists():
                    required = os.environ.get("ARENITE_REQUIRE", "").split(",")
                    self.assertNotIn("shared", required, f"{file} is not among the shared data")
                    self.skipTest(f"skipped: {file}: no shared data")
                network = reference.load(path)
                self.assertEqual(network.dialect, dialect)
                self.assertEqual(sum(int(np.prod(shape)) for shape in network.parameters().values()), count)
                self.assertEqual(network.output, output)
                self.assertEqual(self.dry_run(network), (macs, shape))

    def dry_run(self, network: Any) -> tuple[int, tuple[int, ...]]:
        """Every product is zero and costs nothing; what is left are the shapes, and the count of multiplications."""
        macs = 0

        def counted(shape: tuple[int, ...], each: int) -> np.ndarray:
            nonlocal macs
            macs += int(np.prod(shape)) * each
            return np.zeros(shape)

        def conv2d(x, weight, bias=None, strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
            self.assertEqual(x.shape[1], weight.shape[1] * groups)
            sides = range(2)
            out = [
                ops.floor_size(
                    x.shape[2 + i], weight.shape[2 + i], strides[i], padding[2 * i], padding[2 * i + 1], dilation[i]
                )
                for i in sides
            ]
            return counted((len(x), len(weight), *out), int(np.prod(weight.shape[1:])))

        def locally_connected(x, filters):
            return counted((len(x), len(filters), *filters.shape[6:]), int(np.prod(filters.shape[3:6])))

        def linear(x, weight, bias=None):
            self.assertEqual(x.shape[-1], weight.shape[1])
            return counted((*x.shape[:-1], len(weight)), x.shape[-1])

        zero = np.float32(0)
        weights = {name: np.broadcast_to(zero, shape) for name, shape in network.parameters().items()}
        inputs = {name: np.zeros(shape, np.float32) for name, shape in network.input_shapes(1).items()}
        with mock.patch.multiple(ops, conv2d=conv2d, locally_connected=locally_connected, linear=linear):
            layers = dict(network.run(inputs, weights))
        return macs, layers[network.output].shape


if __name__ == "__main__":
    unittest.main()
