"""Traces a PyTorch module into ``trace.json`` and ``.safetensors``, the native input of Arenite's ``pack``.

The format is specified in ``docs/trace-schema.md`` of the Arenite repository. Importing this package does not import
PyTorch; calling :func:`trace` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


#: How PyTorch is installed: the build for CPUs first, which is a tenth as large.
INSTALL = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def _torch() -> Any:
    """PyTorch, which only tracing needs."""
    try:
        import torch
    except ImportError as error:
        message = f"tracing needs PyTorch 2.6 or later ({error}): `{INSTALL}`, or `pip install torch` for the build with CUDA"
        raise ImportError(message) from error
    return torch


def trace(
    module: torch.nn.Module,
    example_inputs: torch.Tensor | Sequence[torch.Tensor],
    path: str | PathLike[str] | None = None,
    *,
    name: str | None = None,
    samples: Sequence[torch.Tensor | Sequence[torch.Tensor]] | None = None,
    rtol: float = 1e-4,
    output_names: Sequence[str] | None = None,
) -> Trace:
    """Traces ``module`` in evaluation mode; the result's :meth:`Trace.save` writes it, as ``path`` does at once.

    For ``path`` = ``net.trace.json`` the parameters go to ``net.safetensors`` beside it and, where ``samples`` are given,
    inputs and expected outputs to ``net.samples.safetensors``. The module itself is left as it was.

    :param example_inputs: the tensor that ``forward`` takes, or a tuple of one per argument: f32, or int32 and int64 where the
        network looks them up in a table. Their first axis is the batch, usually 1.
    :param name: the network's name; the default is the first part of the file name, without one the module's class.
    :param samples: argument tuples (or tensors), one per run, that ``pack`` replays; they have the shapes of ``example_inputs``.
    :param rtol: the relative error, max|a - b| / max|b|, that the replay may show.
    :param output_names: names for the outputs, in order; the default are the names of their operators.
    :raises UnsupportedOperator: naming every operator that has no counterpart, with its module and source line.
    :raises ImportError: without PyTorch, with the command that installs it.
    :raises TraceError: for inputs, dtypes, values or names that the format cannot hold.
    """
    torch = _torch()
    from ._export import trace_module

    several: Callable[[Any], tuple[Any, ...]] = lambda given: (given,) if isinstance(given, torch.Tensor) else tuple(given)  # noqa: E731
    runs = None if samples is None else [several(arguments) for arguments in samples]
    keywords: dict[str, Any] = {"name": name, "samples": runs, "rtol": rtol, "output_names": output_names}
    return trace_module(module, several(example_inputs), path, **keywords)
