"""The values of every pointwise operator of one operand and of two, by the function that its row names (PyTorch or NumPy, in float64).

    pip install numpy safetensors torch
    python tests/oracle/make_pointwise.py

reads ../reference/pointwise.json, which is generated from the rows of core/src/ops/pointwise.rs and binary.rs, and writes
../models/pointwise/values.safetensors: the arguments `x` and `other` (f32) and the results (f64) under each operator's name.
"""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

HERE = Path(__file__).parent


def arguments() -> np.ndarray:
    """Both zeros, halves and integers, neighbours of the kinks at -3, 0, 3 and 6, tiny and large numbers, and 150 random ones."""
    exact = np.arange(-14, 15) / 2
    kinks = np.array([-3, 0, 3, 6], np.float32)
    beside = [np.nextafter(kinks, np.float32(way)) for way in (-np.inf, np.inf)]
    far = np.array([1e-30, 1e-6, 0.4999999, 16.5, 80, 1e4])
    random = np.random.default_rng(5).normal(0, 3, 150)
    return np.concatenate([[-0.0], exact, *beside, far, -far, random]).astype(np.float32)


def function(text: str):
    """`module.function` or `module.function(name='value')`."""
    path, given = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", text).groups()
    module, name = path.rsplit(".", 1)
    if text == "numpy.where":
        return lambda a, b: np.where(b != 0, a, -0.0)
    call = getattr(importlib.import_module(module), name)
    keywords = {k: v.strip("'") for k, v in (part.split("=") for part in (given or "").split(",") if part)}
    if module == "numpy":
        return lambda *x: call(*x, **keywords)
    return lambda *x: call(*map(torch.from_numpy, x), **keywords).numpy()


def main() -> None:
    x = arguments()
    # Every kind of number meets others: equal ones, zeros, signs.
    other = np.where(np.arange(len(x)) % 11 == 0, x, np.roll(x[::-1], 7)).astype(np.float32)
    values = {"x": x, "other": other}
    with np.errstate(all="ignore"):
        for row in json.loads((HERE / "../reference/pointwise.json").read_text()):
            operands = [values[name].astype(np.float64) for name in ("x", "other")[: row["operands"]]]
            values[row["trace"]] = np.ascontiguousarray(function(row["oracle"])(*operands), np.float64)
    save_file(values, HERE / "../models/pointwise/values.safetensors")


if __name__ == "__main__":
    main()
