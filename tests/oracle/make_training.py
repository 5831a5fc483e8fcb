"""Results that training must come to: the network digits, mounted sideways, trained by PyTorch in f64.

    python tests/oracle/make_training.py

writes into `tests/models/training` the loss of each of the 1,437 steps of one pass (`sideways.losses.npy`, f64), all parameters behind it
(`sideways.parameters.npy`, f64, in the order and layout of the network), the order of the images (`order.npy`), and the parameters of `fc2` alone behind
500 steps on mirrored images (`mirrored.fc2.npy`). Batch 1, plain gradient descent, cross-entropy, images in the order of
`numpy.random.default_rng(0).permutation`. The other network, `branches`, has what digits lacks: grouped and depthwise convolutions, overlapping windows,
averages over padding, sums, concatenation, tanh, logistic; it is traced there at batch 2 with its gradients in f64 (`branches.gradients.npy`).
`residual` of the digits, whose batch norms take the statistics of a batch of 8, has its loss and gradients there (`residual.gradients.npy`, f64, parameters in
the order of their names), and the moving statistics behind the step (`residual.statistics.npy`, f64, mean and variance of each in the network's order).
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import arenite_trace
import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent / "models" / "digits"
OUT = HERE.parent / "models" / "training"
NAMES = [f"{layer}.{part}" for layer in ("conv1", "conv2", "conv3", "fc1", "fc2") for part in ("weight", "bias")]


def network() -> dict[str, torch.Tensor]:
    weights = load_file(DIGITS / "digits.safetensors")
    return {name: torch.from_numpy(weights[name]).double().requires_grad_() for name in NAMES}


def forward(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    f = nn.functional
    x = f.relu(f.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=1))
    x = f.max_pool2d(f.relu(f.conv2d(x, p["conv2.weight"], p["conv2.bias"], padding=1)), 2)
    x = f.max_pool2d(f.relu(f.conv2d(x, p["conv3.weight"], p["conv3.bias"], padding=1)), 2)
    x = f.relu(f.linear(torch.flatten(x, 1), p["fc1.weight"], p["fc1.bias"]))
    return f.linear(x, p["fc2.weight"], p["fc2.bias"])


def train(images: np.ndarray, steps: int, rate: float, trained: list[str]) -> tuple[dict[str, torch.Tensor], np.ndarray]:
    p, labels = network(), np.load(DIGITS / "train_labels.npy")
    order, losses = np.random.default_rng(0).permutation(len(images))[:steps], []
    for sample in order:
        x = torch.from_numpy(images[sample : sample + 1].astype(np.float64))
        loss = nn.functional.cross_entropy(forward(p, x), torch.tensor([int(labels[sample])]))
        gradients = torch.autograd.grad(loss, [p[name] for name in trained])
        losses.append(loss.item())
        with torch.no_grad():
            for name, gradient in zip(trained, gradients):
                p[name] -= float(np.float32(rate)) * gradient
    return p, np.array(losses)


def optimised(images: np.ndarray, name: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """One pass by another optimiser of PyTorch, of its defaults and momentum 0.9, at a rate of 0.001."""
    p = {key: w.detach().to(dtype).requires_grad_() for key, w in network().items()}
    labels = np.load(DIGITS / "train_labels.npy")
    values = list(p.values())
    optimiser = torch.optim.Adam(values, lr=0.001) if name == "adam" else torch.optim.SGD(values, lr=0.001, momentum=0.9)
    for sample in np.random.default_rng(0).permutation(len(images)):
        optimiser.zero_grad()
        x = torch.from_numpy(images[sample : sample + 1]).to(dtype)
        nn.functional.cross_entropy(forward(p, x), torch.tensor([int(labels[sample])])).backward()
        optimiser.step()
    return {key: w.detach().double() for key, w in p.items()}


def right(p: dict[str, torch.Tensor], turned) -> int:
    images, labels = np.load(DIGITS / "test_images.npy")[:, 0], np.load(DIGITS / "test_labels.npy")
    with torch.no_grad():
        scores = forward(p, torch.from_numpy(np.ascontiguousarray(turned(images)).astype(np.float64)))
    return int((scores.argmax(1).numpy() == labels).sum())


class Branches(nn.Module):
    """Of 9 x 7 images with 3 channels; the two halves meet in sums and concatenations."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, stride=(1, 2), padding=1)
        self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.grouped = nn.Conv2d(6, 8, (3, 1), padding=(1, 0), groups=2, bias=False)
        self.dilated = nn.Conv2d(6, 6, 2, dilation=2, padding=1)
        self.pointwise = nn.Conv2d(8, 6, 1)
        self.fc = nn.Linear(12, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        f = nn.functional
        x = f.relu6(self.stem(image))
        a = torch.tanh(self.depthwise(x)) + self.dilated(x) + x
        b = self.pointwise(torch.sigmoid(self.grouped(a)))
        a = f.max_pool2d(a, 3, stride=(2, 1), padding=1)
        b = f.avg_pool2d(b, 3, stride=(2, 1), padding=1, count_include_pad=False)
        x = torch.cat([a, f.relu(b)], dim=1)
        return self.fc(x.mean(dim=(2, 3)))


def branches() -> None:
    torch.manual_seed(44)
    module = Branches()
    images, labels = torch.randn(2, 3, 9, 7), torch.tensor([4, 1])
    double = copy.deepcopy(module).double()
    arenite_trace.trace(module, (images,), OUT / "branches.trace.json", name="branches", output_names=["logits"])
    np.save(OUT / "branches.images.npy", images.numpy())
    np.save(OUT / "branches.labels.npy", labels.numpy())
    loss = nn.functional.cross_entropy(double(images.double()), labels)
    gradients = [g.numpy().ravel() for g in torch.autograd.grad(loss, list(double.parameters()))]
    np.save(OUT / "branches.gradients.npy", np.concatenate([[loss.item()], *gradients]))
    print(f"branches: {sum(len(g) for g in gradients)} parameters, loss {loss.item():.4f}")


def residual() -> None:
    sys.path.insert(0, str(DIGITS))
    from train import Residual

    module = Residual().double()
    weights = load_file(DIGITS / "residual.safetensors")
    state = module.state_dict()
    module.load_state_dict({name: torch.from_numpy(weights[name]) if name in weights else state[name] for name in state})
    module.train()
    module.dropout.eval()
    images = torch.from_numpy(np.load(DIGITS / "train_images.npy")[:8].astype(np.float64) / 16)
    labels = torch.from_numpy(np.load(DIGITS / "train_labels.npy")[:8].astype(np.int64))
    loss = nn.functional.cross_entropy(module.logits(images), labels)
    names = sorted(name for name, _ in module.named_parameters())
    gradients = torch.autograd.grad(loss, [module.get_parameter(name) for name in names])
    np.save(OUT / "residual.gradients.npy", np.concatenate([[loss.item()], *(g.numpy().ravel() for g in gradients)]))
    norms = [module.bn, module.block1.bn1, module.block1.bn2, module.block2.bn1, module.block2.bn2]
    np.save(OUT / "residual.statistics.npy", np.concatenate([s.numpy() for n in norms for s in (n.running_mean, n.running_var)]))
    print(f"residual: {sum(g.numel() for g in gradients)} parameters, loss {loss.item():.4f}")


def main() -> None:
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    branches()
    residual()
    images = np.load(DIGITS / "train_images.npy").astype(np.float32) / 16
    np.save(OUT / "order.npy", np.random.default_rng(0).permutation(len(images)).astype(np.int16))

    def sideways(x: np.ndarray) -> np.ndarray:
        return np.rot90(x, 1, (2, 3))

    def mirrored(x: np.ndarray) -> np.ndarray:
        return x[..., ::-1]

    before = right(network(), sideways)
    p, losses = train(np.ascontiguousarray(sideways(images)), len(images), 0.01, NAMES)
    np.save(OUT / "sideways.losses.npy", losses)
    np.save(OUT / "sideways.parameters.npy", np.concatenate([p[name].detach().numpy().ravel() for name in NAMES]))
    print(f"sideways: {before} of 360 right before, {right(p, sideways)} after {len(losses)} steps")
    for name in ("momentum", "adam"):
        pictures = np.ascontiguousarray(sideways(images))
        counts = [right(optimised(pictures, name, dtype), sideways) for dtype in (torch.float64, torch.float32)]
        print(f"sideways by {name}: {counts[0]} of 360 right in f64, {counts[1]} in f32")
    before = right(network(), mirrored)
    p, losses = train(np.ascontiguousarray(mirrored(images)), 500, 0.03, ["fc2.weight", "fc2.bias"])
    fc2 = [p[name].detach().numpy().ravel() for name in ("fc2.weight", "fc2.bias")]
    np.save(OUT / "mirrored.fc2.npy", np.concatenate(fc2))
    print(f"mirrored, fc2 alone: {before} of 360 right before, {right(p, mirrored)} after {len(losses)} steps")


if __name__ == "__main__":
    main()
