"""Trains, traces and evaluates three small networks on scikit-learn's handwritten digits (1797 images of 8 x 8).

    pip install ./host-tools/python torch scikit-learn
    python tests/models/digits/train.py

writes, into this folder, `NAME.trace.json` with its `.safetensors` files for the networks digits, residual and mlp, their
outputs over the held-out images, and those images with their labels. Seeds, order and thread count are fixed: the same
PyTorch on the same kind of processor writes the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import arenite_trace

HELD_OUT = 360
SAMPLE_RUNS = 8


class Digits(nn.Module):
    """The main job: three convolutions and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(16, 24, 3, padding=1)
        self.relu3 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(24 * 2 * 2, 32)
        self.relu4 = nn.ReLU()
        self.fc2 = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.relu1(self.conv1(image))
        x = self.pool1(self.relu2(self.conv2(x)))
        x = self.pool2(self.relu3(self.conv3(x)))
        x = self.dropout(self.flatten(x))
        return self.fc2(self.dropout(self.relu4(self.fc1(x))))


class SeparableBlock(nn.Module):
    """x + pointwise(depthwise(x)), as in mobile networks."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu6 = nn.ReLU6()
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu6(self.bn1(self.depthwise(x)))
        return torch.relu(x + self.bn2(self.pointwise(y)))


class Residual(nn.Module):
    """Layers that the main network lacks: batch norm, depthwise, residual sums, average pooling, concatenation, softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.block1 = SeparableBlock(16)
        self.avg = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.max = nn.MaxPool2d(2)
        self.block2 = SeparableBlock(32)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(32, 10)
        self.softmax = nn.Softmax(dim=-1)

    def logits(self, image: torch.Tensor) -> torch.Tensor:
        x = self.block1(torch.relu(self.bn(self.stem(image))))
        x = self.block2(torch.cat([self.avg(x), self.max(x)], dim=1))
        x = self.dropout(torch.flatten(self.pool(x), 1))
        return self.fc(x)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.logits(image))


class Mlp(nn.Module):
    """Linear layers alone: the smallest useful blob."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.fc1(torch.flatten(image, 1)))
        return self.fc2(x)


NETWORKS = {"digits": (Digits, "logits"), "residual": (Residual, "probability"), "mlp": (Mlp, "logits")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=0, stratify=labels
    )
    # One more axis in front: a sequence of runs, each at batch 1.
    np.save(options.out / "test_images.npy", test_x[:, None])
    np.save(options.out / "test_labels.npy", test_y.astype(np.int64))
    np.save(options.out / "train_images.npy", (train_x * 16).astype(np.uint8))
    np.save(options.out / "train_labels.npy", train_y.astype(np.uint8))

    for name, (network, output) in NETWORKS.items():
        torch.manual_seed(0)
        module = network()
        fit(module, torch.from_numpy(train_x), torch.from_numpy(train_y), options.epochs)
        runs = [torch.from_numpy(image) for image in test_x[:, None]]
        with torch.no_grad():
            outputs = np.stack([module(image).numpy() for image in runs])
        correct = int((outputs[:, 0].argmax(axis=1) == test_y).sum())
        np.save(options.out / f"{name}.test_{output}.npy", outputs)
        traced = arenite_trace.trace(
            module,
            (runs[0],),
            options.out / f"{name}.trace.json",
            name=name,
            samples=[(image,) for image in runs[:SAMPLE_RUNS]],
            rtol=1e-5,
            output_names=[output],
        )
        params = sum(traced.values[n].size for n, t in traced.tensors.items() if t.role == "parameter")
        print(f"{name}: {params} parameters, {correct}/{HELD_OUT} = {100 * correct / HELD_OUT:.2f} %")


def fit(module: nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """AdamW with a cosine schedule on shuffled batches of 32; noise and soft labels against over-fitting.

    The settings were chosen on 300 images set apart from the training images; the held-out ones played no part.
    """
    logits = getattr(module, "logits", module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    order, noise = torch.Generator().manual_seed(0), torch.Generator().manual_seed(1)
    module.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(images), generator=order).split(32):
            x = images[batch]
            x = x + 0.1 * torch.randn(x.shape, generator=noise)
            loss = nn.functional.cross_entropy(logits(x), labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    module.eval()


if __name__ == "__main__":
    main()
