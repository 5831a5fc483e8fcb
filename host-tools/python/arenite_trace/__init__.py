"""Traces a PyTorch module into ``trace.json`` and ``.safetensors``, the native input of Arenite's ``pack``.

The format is specified in ``docs/trace-schema.md`` of the Arenite repository. Importing this package does not import
PyTorch; calling :func:`trace` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from ._schema import SCHEMA_VERSION, Op, Samples, Tensor, Trace, TraceError, UnsupportedOperator
from ._version import __version__

if TYPE_CHECKING:
    import torch

__all__ = [
    "SCHEMA_VERSION",
    "Op",
    "Samples",
    "Tensor",
    "Trace",
    "TraceError",
    "UnsupportedOperator",
    "__version__",
    "trace",
]


def trace(
    module: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    path: str | PathLike[str],
    *,
    name: str | None = None,
    samples: Sequence[Sequence[torch.Tensor]] | None = None,
    rtol: float = 1e-4,
    output_names: Sequence[str] | None = None,
) -> Trace:
    """Traces ``module`` in evaluation mode and writes ``path`` with its sidecar files.

    For ``path`` = ``net.trace.json`` the parameters go to ``net.safetensors`` beside it and, where ``samples`` are given,
    inputs and expected outputs to ``net.samples.safetensors``. The module itself is left as it was.

    :param example_inputs: one f32 tensor per argument of ``forward``; their first axis is the batch, usually 1.
    :param name: the network's name; the default is the first part of the file name.
    :param samples: argument tuples, one per run, that ``pack`` replays; they have the shapes of ``example_inputs``.
    :param rtol: the relative error, max|a - b| / max|b|, that the replay may show.
    :param output_names: names for the outputs, in order; the default are the names of their operators.
    :raises UnsupportedOperator: naming every operator that has no counterpart, with its module and source line.
    :raises TraceError: for inputs, dtypes, values or names that the format cannot hold.
    """
    from ._export import trace_module

    keywords: dict[str, Any] = {"name": name, "samples": samples, "rtol": rtol, "output_names": output_names}
    return trace_module(module, tuple(example_inputs), path, **keywords)
