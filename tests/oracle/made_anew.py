"""Networks that are made anew, beside those that are committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def of_arrays(name: str, committed: Path, anew: Path) -> Iterator[str]:
    """Differences between the parameters and the samples of a network in two folders: arrays by 1e-5 of their largest element."""
    for suffix in ("safetensors", "samples.safetensors"):
        old, new = (load_file(folder / f"{name}.{suffix}") for folder in (committed, anew))
        if old.keys() != new.keys():
            yield f"{name}: another list of arrays in {suffix}"
            continue
        for key, value in old.items():
            error = np.abs(value.astype(float) - new[key]).max()
            if error > 1e-5 * max(np.abs(value.astype(float)).max(), 1e-30):
                yield f"{name}: {key} differs by {error}"
