"""Arenite: neural networks for devices without an operating system, packed, run and measured from Python.

The same code as in `pack` and `arenite` does their work here, so that results are the same, bit for bit. ``docs/python.md`` of the repository leads through it.
"""

from __future__ import annotations

try:
    from . import _native
except ImportError as error:
    raise ImportError(
        f"the compiled half of arenite is not there ({error}): install the package (`pip install ./host-tools/python`); a checkout alone has the tracer, "
        "arenite_trace"
    ) from error

from ._error import Error
from ._model import Bench, Model, Port, Session, Training, load
from ._pack import pack
from ._words import command

__version__ = _native.VERSION

__all__ = ["Bench", "Error", "Model", "Port", "Session", "Training", "__version__", "command", "load", "pack"]
