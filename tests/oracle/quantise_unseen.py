"""Compares ``pack --dtype int8 --calibrate`` with other quantisers, on samples that no choice has seen, and what it says of such samples with what they give.

    cargo build --release -p arenite-host --bins
    venv/bin/python tests/oracle/quantise_unseen.py target/release --folder unseen

The Python has numpy, scikit-learn, torch, torchao, onnx, onnxscript and onnxruntime. The networks are those of ``unseen_networks.py``: trained here,
training, calibration and test sets kept apart. All get the same ONNX file, torchao's PT2E the module. The test set is read by nothing but the
figures. FOLDER keeps networks
and the other quantisers' figures, so that another Arenite is measured in a few minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from unseen_networks import NETWORKS, trained

COUNTS = (16, 64, 256)
SEEDS = (11, 12, 13)
TEST = 400
OTHERS = ("MinMax", "Percentile", "PT2E")

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def made(name: str, seed: int, folder: Path) -> dict:
    """The network's files and arrays."""
    source, arrays = folder / "network.onnx", folder / "sets.npz"
    if not arrays.exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng([seed, *name.encode()])
        torch.manual_seed(seed)
        module, x, y = NETWORKS[name](generator)
        parts = np.split(generator.permutation(len(x)), [TEST, TEST + max(COUNTS)])
        module = trained(module, x[parts[2]], y[parts[2]])
        torch.save(module, folder / "module.pt")
        with contextlib.redirect_stdout(io.StringIO()):
            torch.onnx.export(module, (torch.from_numpy(x[:1]),), source, input_names=["x"], output_names=["y"], dynamo=False)
        with torch.no_grad():
            answers = module(torch.from_numpy(x[parts[0]])).numpy()
        np.savez(arrays, test=x[parts[0]], pool=x[parts[1]], target=y[parts[0]], answers=answers)
    return {"onnx": source, "module": folder / "module.pt", **np.load(arrays)}


def figures(own: dict, found: np.ndarray) -> dict:
    """Signal to noise over the test set, and what the task gives: the share of right classes, or the mean square."""
    expected, found = (array.astype(np.float64).reshape(len(own["test"]), -1) for array in (own["answers"], found))
    snr = 10 * np.log10((expected**2).sum() / ((expected - found) ** 2).sum())
    target = own["target"]
    if target.dtype == np.int64:
        task = float((found.argmax(1) == target).mean())
    else:
        task = float(((found - target.reshape(found.shape)) ** 2).mean())
    return {"snr": float(snr), "task": task}


def run(*words) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def of_arenite(programs: Path, own: dict, count: int, folder: Path, options) -> dict:
    scratch = Path(tempfile.mkdtemp(dir=folder))
    samples, inputs, model, answers = (scratch / name for name in ("samples.npy", "test.npy", "int8.bin", "answers.npy"))
    np.save(samples, own["pool"][:count, None])
    np.save(inputs, own["test"][:, None])
    start = time.monotonic()
    words = ("--dtype", "int8", "--calibrate", samples, "--output-dtype", "f32", "--input-dtype", "f32", "-o", model, "--json", *options)
    report = json.loads(run(programs / "pack", own["onnx"], *words))
    seconds = time.monotonic() - start
    run(programs / "arenite", "run", model, "--input", inputs, "--output", answers)
    says = report["quantization"]
    estimate = says.get("estimate") or {}
    found = np.load(answers)
    shutil.rmtree(scratch)
    line = figures(own, found) | {"seconds": seconds, "bytes": report["model_bytes"], "on_them": says["snr_db"], "cross": says["cross_snr_db"]}
    return line | {"estimate": estimate.get("snr_db"), "spread": estimate.get("spread_db")}


def of_onnx_runtime(method: str, own: dict, count: int, folder: Path) -> dict:
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.samples = iter(own["pool"][:count])

        def get_next(self):
            sample = next(self.samples, None)
            return None if sample is None else {"x": sample[None]}

    ready, output = folder / "ready.onnx", folder / "other.onnx"
    quant_pre_process(own["onnx"], ready)
    kinds = {"activation_type": quantization.QuantType.QInt8, "weight_type": quantization.QuantType.QInt8}
    with contextlib.redirect_stdout(io.StringIO()):
        quantization.quantize_static(ready, output, Reader(), per_channel=True, calibrate_method=quantization.CalibrationMethod[method], **kinds)
    # Its fused kernels saturate sums of two products on processors without VNNI: operator by operator nothing does.
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(output), plain, providers=["CPUExecutionProvider"])
    found = np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in own["test"]])
    return figures(own, found) | {"bytes": output.stat().st_size}


def of_torchao(own: dict, count: int) -> dict:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    module = torch.load(own["module"], weights_only=False)
    shaped = [torch.from_numpy(sample[None]) for sample in own["pool"][:count]]
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, (shaped[0],)).module(), quantizer)
    with torch.no_grad():
        for sample in shaped:
            prepared(sample)
        network = convert_pt2e(prepared)
        return figures(own, np.concatenate([network(torch.from_numpy(sample[None])).numpy() for sample in own["test"]]))


def lines_of(options):
    """A line for each network, seed and number of samples."""
    for name in options.networks:
        for seed in options.seeds:
            folder = options.folder / name / str(seed)
            own = made(name, seed, folder)
            kept = folder / "others.json"
            others = json.loads(kept.read_text()) if kept.exists() else {}
            for count in options.counts:
                line = {"network": name, "seed": seed, "samples": count, "float": figures(own, own["answers"] * (1 + 1e-9))["task"]}
                for other in OTHERS:
                    key = f"{other} {count}"
                    if key not in others:
                        try:
                            others[key] = of_torchao(own, count) if other == "PT2E" else of_onnx_runtime(other, own, count, folder)
                        except Exception as error:
                            others[key] = {"error": f"{type(error).__name__}: {error}"[:200]}
                        kept.write_text(json.dumps(others))
                    line[other] = others[key]
                if options.programs:
                    try:
                        line["Arenite"] = of_arenite(options.programs, own, count, folder, options.option)
                    except RuntimeError as error:
                        line["Arenite"] = {"error": str(error)[:600]}
                yield line


def value(line: dict, who: str, of: str) -> float:
    return line.get(who, {}).get(of, float("nan"))


def table_of_networks(lines, counts) -> list[str]:
    """Means over the seeds: Arenite, and the best of the others."""
    rows = ["| network | " + " | ".join(f"{count}: Arenite | best other" for count in counts) + " |", "| --- |" + " --: |" * (2 * len(counts))]
    for name in dict.fromkeys(line["network"] for line in lines):
        cells = []
        for count in counts:
            own = [line for line in lines if (line["network"], line["samples"]) == (name, count)]
            ours = np.mean([value(line, "Arenite", "snr") for line in own])
            means = {other: np.mean([value(line, other, "snr") for line in own]) for other in OTHERS}
            means = {other: mean for other, mean in means.items() if np.isfinite(mean)}
            best = max(means, key=means.get, default=None)
            cells.append(f"{ours:.1f} | " + (f"{means[best]:.1f} {best}" if best else "-"))
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return rows


def table_of_claims(lines, counts) -> list[str]:
    """How far what a summary says is from the test set's figure."""
    rows = ["| figure | samples | mean error, dB | mean distance, dB | above the test set's by more than the spread | mean spread, dB |"]
    rows.append("| --- | --: | --: | --: | --: | --: |")
    for count in (*counts, None):
        own = [line["Arenite"] for line in lines if count in (None, line["samples"]) and "snr" in line["Arenite"]]
        for key in ("estimate", "cross", "on_them"):
            known = [line for line in own if line[key] is not None]
            if not known:
                continue
            errors = np.array([line[key] - line["snr"] for line in known])
            spreads = np.array([line["spread"] or 0.0 for line in known])
            above = f"{100 * (errors > spreads).mean():.0f} % | {spreads.mean():.2f}"
            rows.append(f"| `{key}` | {count or 'all'} | {errors.mean():+.2f} | {np.abs(errors).mean():.2f} | {above} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, nargs="?", help="folder of pack and arenite; without it the others alone are measured")
    parser.add_argument("--folder", type=Path, required=True, help="keeps networks and the others' figures")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--lines", type=Path, help="gets each run as a line of JSON")
    parser.add_argument("--option", action="append", default=[], help="handed on to pack, repeatable")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for line in lines_of(options):
        lines.append(line)
        short = {who: round(value(line, who, "snr"), 1) for who in ("Arenite", *OTHERS)}
        print(line["network"], line["seed"], line["samples"], short, file=sys.stderr, flush=True)
        if options.lines:
            with options.lines.open("a") as file:
                file.write(json.dumps(line) + "\n")
    if options.programs:
        print("\n".join([*table_of_networks(lines, options.counts), "", *table_of_claims(lines, options.counts)]))


if __name__ == "__main__":
    main()
