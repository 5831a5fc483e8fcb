"""Trains, traces and evaluates a small network that tells gestures by an accelerometer, on motion that is generated here.

    pip install ./host-tools/python torch
    python tests/models/gestures/train.py

writes, into this folder, `gestures.trace.json` with its `.safetensors` files, held-out windows as an ADXL345 gives them, their classes, and PyTorch's
logits. Seeds, order and thread count are fixed: the same PyTorch on the same kind of processor writes the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

import arenite_trace

GESTURES = ["rest", "shake", "circle", "tap", "flip"]
RATE = 50  # samples a second
WINDOW = 64  # samples, 1.28 s
STEP = 1 / 256  # g, the sensor's in full resolution
RANGE = 4  # g
TRAIN, HELD_OUT = 4000, 200
SAMPLE_RUNS = 8


def window(gesture: str, random: np.random.Generator) -> np.ndarray:
    """Samples that the sensor gives while a hand makes the gesture: int16 [WINDOW, 3], x, y and z, in steps of the sensor."""
    t = np.arange(WINDOW) / RATE
    between = random.uniform
    # The device lies in the hand: gravity mostly along z, tilted by up to 30 degrees.
    tilt, direction = between(0, np.pi / 6), between(0, 2 * np.pi)
    gravity = np.array([np.sin(tilt) * np.cos(direction), np.sin(tilt) * np.sin(direction), np.cos(tilt)])
    force = np.tile(gravity, (WINDOW, 1))
    if gesture == "shake":
        wave = between(0.7, 2) * np.sin(2 * np.pi * between(3.5, 7) * t + between(0, 2 * np.pi))
        axis = np.array([1, between(-0.3, 0.3), between(-0.3, 0.3)])
        force += np.outer(wave, axis)
    elif gesture == "circle":
        phase = 2 * np.pi * between(0.9, 1.8) * t + between(0, 2 * np.pi)
        size, turn = between(0.35, 1), random.choice([-1, 1])
        force[:, 0] += size * np.cos(phase)
        force[:, 1] += size * between(0.7, 1.3) * turn * np.sin(phase)
    elif gesture == "tap":
        for _ in range(random.integers(1, 3)):
            at = between(0.1, t[-1] - 0.1)
            knock = between(0.8, 2.5) * np.exp(-(((t - at) / between(0.012, 0.025)) ** 2))
            ring = between(0.2, 0.5) * np.exp(-np.maximum(t - at, 0) / 0.05) * np.sin(2 * np.pi * 15 * (t - at)) * (t > at)
            force[:, 2] += random.choice([-1, 1]) * (knock + ring)
    elif gesture == "flip":
        begin, length = between(0.1, 0.4), between(0.3, 0.7)
        angle = np.pi * np.clip((t - begin) / length, 0, 1) * random.choice([-1, 1])
        y, z = force[:, 1].copy(), force[:, 2].copy()
        force[:, 1] = y * np.cos(angle) - z * np.sin(angle)
        force[:, 2] = y * np.sin(angle) + z * np.cos(angle)
    # A hand trembles; the sensor has noise, and each axis its own offset and gain.
    tremble = between(0.01, 0.05) * np.sin(2 * np.pi * between(6, 10) * t + between(0, 2 * np.pi))
    force += np.outer(tremble, random.normal(size=3)) + random.normal(0, 0.01, force.shape)
    force = force * (1 + random.normal(0, 0.02, 3)) + random.normal(0, 0.03, 3)
    limit = round(RANGE / STEP)
    return np.clip(np.round(force / STEP), -limit, limit - 1).astype(np.int16)


def windows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As many of each gesture."""
    random = np.random.Generator(np.random.PCG64(seed))
    labels = np.arange(count) % len(GESTURES)
    return np.stack([window(GESTURES[label], random) for label in labels]), labels.astype(np.int64)


class Gestures(nn.Module):
    """Three convolutions along the time, from 64 samples of three axes, in g."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(3, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(8, 16, 5, stride=2, padding=2)
        self.conv3 = nn.Conv1d(16, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16 * WINDOW // 8, len(GESTURES))

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        x = samples.transpose(1, 2)
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        return self.fc(torch.flatten(x, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    train_x, train_y = windows(TRAIN, 1)
    test_x, test_y = windows(HELD_OUT, 2)
    np.save(options.out / "test_windows.npy", test_x)
    np.save(options.out / "test_labels.npy", test_y)
    torch.manual_seed(0)
    module = Gestures()
    in_g = lambda raw: torch.from_numpy(raw.astype(np.float32) * STEP)  # noqa: E731
    fit(module, in_g(train_x), torch.from_numpy(train_y), options.epochs)
    runs = [in_g(raw[None]) for raw in test_x]
    with torch.no_grad():
        outputs = np.stack([module(run).numpy() for run in runs])
    right = int((outputs[:, 0].argmax(axis=1) == test_y).sum())
    np.save(options.out / "test_logits.npy", outputs)
    traced = arenite_trace.trace(
        module,
        (runs[0],),
        options.out / "gestures.trace.json",
        name="gestures",
        samples=[(run,) for run in runs[:SAMPLE_RUNS]],
        rtol=1e-5,
        output_names=["logits"],
    )
    params = sum(traced.values[n].size for n, t in traced.tensors.items() if t.role == "parameter")
    print(f"{params} parameters, {right}/{HELD_OUT} right")


def fit(module: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    """AdamW with a cosine schedule on shuffled batches of 32."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for batch in torch.randperm(len(x), generator=order).split(32):
            loss = nn.functional.cross_entropy(module(x[batch]), y[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    module.eval()


if __name__ == "__main__":
    main()
