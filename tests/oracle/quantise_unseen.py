"""Compares what ``pack --dtype int8 --calibrate`` estimates of samples that it has not seen with what such samples give.

    cargo build --release -p arenite-host --bins
    python tests/oracle/quantise_unseen.py target/release            # a Python with numpy, scikit-learn, torch (and onnx, onnxruntime)

Small networks are trained here, on data that scikit-learn ships or that is generated. Training, calibration and test sets are kept apart; the calibration
samples are drawn anew for each seed. The test set is read by `arenite diff` alone. Where onnx and onnxruntime are installed, the float network is
quantised by ONNX Runtime (MinMax, Percentile) from the same samples as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

COUNTS = (16, 64, 256)
TEST = 400
NETWORKS = {}


def network(kind):
    """A network: its module, inputs [samples, ...] and targets."""
    NETWORKS[kind.__name__] = kind
    return kind


def digits(generator):
    data = load_digits()
    order = generator.permutation(len(data.target))
    return (data.images[order] / 16).astype(np.float32)[:, None], data.target[order]


@network
def digits_mlp(generator):
    x, y = digits(generator)
    layers = [nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10)]
    return nn.Sequential(*layers), x.reshape(len(x), 64), y


@network
def digits_conv(generator):
    x, y = digits(generator)
    layers = [nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(24 * 16, 10)), x, y


@network
def digits_depthwise(generator):
    x, y = digits(generator)
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU6()]
    for inputs, outputs in ((16, 24), (24, 32)):
        layers += [nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6()]
        layers += [nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), x, y


@network
def autoencoder(generator):
    """Spectra: a few peaks of random place, width and height over noise; answers are the spectra."""
    at = np.arange(64)
    place, width, height = (generator.uniform(*ends, (2400, 3, 1)) for ends in ((0, 64), (1, 6), (0.2, 2)))
    x = (height * np.exp(-(((at - place) / width) ** 2))).sum(1) + generator.normal(0, 0.05, (2400, 64))
    x = x.astype(np.float32)
    layers = [nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64)]
    return nn.Sequential(*layers), x, x


@network
def tabular(generator):
    """Columns of unlike units: log-normal, Gaussian, counts and shares, up to 300 times apart."""
    rows = 2400
    scales = np.array([1, 300, 0.5, 20, 1, 100, 3, 0.02])
    columns = [generator.lognormal(0, 0.6, rows), *generator.normal(0.5, 1, (4, rows)), generator.poisson(3, rows), *generator.random((2, rows))]
    z = np.stack(columns, 1)
    y = np.sin(z[:, 1]) + z[:, 0] * z[:, 2] + np.abs(z[:, 3]) - z[:, 7] * z[:, 5] + 0.5 * z[:, 6]
    x = (z * scales).astype(np.float32)
    first = nn.Linear(8, 48)
    first.weight.data /= torch.tensor(scales, dtype=torch.float32)
    return nn.Sequential(first, nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1)), x, y[:, None].astype(np.float32)


@network
def tcn(generator):
    """Sequences of two channels whose frequency is the class."""
    rows, t = 2000, np.arange(48)
    y = generator.integers(0, 4, rows)
    phase, height = generator.uniform(0, 6.28, (rows, 2, 1)), generator.lognormal(0, 0.4, (rows, 2, 1))
    x = height * np.sin(0.25 * (y[:, None, None] + 1) * t + phase) + generator.normal(0, 0.3, (rows, 2, 48))
    layers = [nn.Conv1d(2, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 16, 3, padding=2, dilation=2), nn.ReLU(), nn.Conv1d(16, 16, 3, padding=4, dilation=4)]
    return nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4)), x.astype(np.float32), y


def trained(module, x, y, epochs=30):
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    loss = nn.CrossEntropyLoss() if y.dtype == torch.int64 else nn.MSELoss()
    optimiser = torch.optim.Adam(module.parameters(), 3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            loss(module(x[batch]), y[batch]).backward()
            optimiser.step()
    return module.eval()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def pooled(expected, found):
    return 10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())


def of_onnx_runtime(module, name, calibration, test, folder):
    """SNR on the test set by method; nothing where ONNX Runtime is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        from onnxruntime import quantization
    except ModuleNotFoundError:
        return {}
    source = folder / f"{name}.onnx"
    torch.onnx.export(module, (torch.from_numpy(test[:1]),), source, input_names=["x"], dynamo=False)
    float_session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])

    def answers(session):
        return np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in test])

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.samples = iter(calibration)

        def get_next(self):
            sample = next(self.samples, None)
            return None if sample is None else {"x": sample[None]}

    found = {}
    for method in ("MinMax", "Percentile"):
        output = folder / f"{name}.{method}.onnx"
        quantization.quantize_static(source, output, Reader(), per_channel=True, calibrate_method=quantization.CalibrationMethod[method])
        session = onnxruntime.InferenceSession(str(output), providers=["CPUExecutionProvider"])
        found[method] = pooled(answers(float_session), answers(session))
    return found


def measured(programs, name, seed, folder):
    """A line for each number of samples."""
    generator = np.random.default_rng([seed, len(name), *name.encode()])
    torch.manual_seed(seed)
    module, x, y = NETWORKS[name](generator)
    parts = np.split(generator.permutation(len(x)), [TEST, TEST + max(COUNTS)])
    test, pool, training = (x[part] for part in parts)
    module = trained(module, training, y[parts[2]])
    network, plain, inputs = folder / f"{name}.pt2", folder / "f32.bin", folder / "test.npy"
    torch.export.save(torch.export.export(module, (torch.from_numpy(test[:1]),)), network)
    np.save(inputs, test[:, None])
    run(programs / "pack", network, "-o", plain, "--json")
    for count in COUNTS:
        np.save(folder / "samples.npy", pool[:count, None])
        start = time.monotonic()
        words = ["--dtype", "int8", "--calibrate", folder / "samples.npy", "-o", folder / "int8.bin", "--json"]
        report = run(programs / "pack", network, *words)["quantization"]
        seconds = time.monotonic() - start
        true = run(programs / "arenite", "diff", folder / "int8.bin", "--float", plain, "--inputs", inputs, "--json")["snr_db"]
        estimate = report.get("estimate") or {}
        line = {"network": name, "seed": seed, "samples": count, "true": true, "on_them": report["snr_db"], "cross": report["cross_snr_db"]}
        line |= {"estimate": estimate.get("snr_db"), "spread": estimate.get("spread_db"), "seconds": seconds}
        yield line | of_onnx_runtime(module, name, pool[:count], test, folder)


def figures(lines, of):
    """Mean error, mean distance, share above the truth by more than the spread, mean spread."""
    errors = np.array([line[of] - line["true"] for line in lines])
    spreads = np.array([line["spread"] for line in lines])
    return f"{errors.mean():+.2f} | {np.abs(errors).mean():.2f} | {100 * (errors > spreads).mean():.0f} % | {spreads.mean():.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, help="folder of pack and arenite")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lines", action="store_true", help="prints each run as JSON as well")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.networks:
            for seed in range(options.seeds):
                for line in measured(options.programs, name, seed, Path(folder)):
                    lines.append(line)
                    if options.lines:
                        print(json.dumps(line), flush=True)
    others = [method for method in ("MinMax", "Percentile") if method in lines[0]]
    print("| network | " + " | ".join(f"{count} samples" for count in COUNTS) + " |\n| --- |" + " --: |" * len(COUNTS))
    for name in options.networks:
        cells = []
        for count in COUNTS:
            own = [line for line in lines if (line["network"], line["samples"]) == (name, count)]
            mean = {key: np.mean([line[key] for line in own]) for key in ("estimate", "spread", "true", *others)}
            beside = "".join(f", {mean[method]:.1f}" for method in others)
            cells.append(f"{mean['estimate']:.1f} ± {mean['spread']:.1f}, {mean['true']:.1f}{beside}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\n| figure | samples | mean error, dB | mean distance, dB | above by more than the spread | mean spread, dB |\n| --- | --: | --: | --: | --: | --: |")
    for count in (*COUNTS, None):
        own = [line for line in lines if count in (None, line["samples"])]
        for key, title in (("estimate", "`estimate`"), ("cross", "`cross_snr_db`"), ("on_them", "`snr_db`")):
            print(f"| {title} | {count or 'all'} | {figures(own, key)} |")


if __name__ == "__main__":
    main()
