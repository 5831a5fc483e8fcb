"""``python -m arenite_trace my_module:build -o net.trace.json``"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from . import TraceError, _torch, trace
from ._version import __version__

FORMS = "a module with --input-shape, (module, inputs), (module, inputs, samples), or a dict of trace()'s arguments"


def _arguments(built: Any, shapes: Sequence[str]) -> dict[str, Any]:
    """Result of ``build``, as arguments of ``trace``."""
    torch = _torch()
    if isinstance(built, torch.nn.Module):
        if not shapes:
            raise TraceError("build gives a module alone: state its inputs with --input-shape, once for each, as in 1,3,32,32")
        return {"module": built, "example_inputs": tuple(torch.zeros(_shape(text)) for text in shapes)}
    if shapes:
        raise TraceError("--input-shape is for a build that gives a module alone: this one gives the inputs itself")
    if isinstance(built, dict):
        return dict(built)
    if isinstance(built, (tuple, list)) and 2 <= len(built) <= 3:
        return dict(zip(("module", "example_inputs", "samples"), built, strict=False))
    raise TraceError(f"build gives a {type(built).__name__}: give {FORMS}")


def _shape(text: str) -> list[int]:
    try:
        shape = [int(part) for part in text.split(",")]
    except ValueError:
        shape = []
    if not shape or min(shape) < 1:
        raise TraceError(f"--input-shape {text}: give extents of at least 1, as in 1,3,32,32")
    return shape


def _found(target: str) -> Any:
    """The function or module that ``MODULE:NAME`` names, called where it is a function."""
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise TraceError(f"{target}: state MODULE:FUNCTION, as in my_module:build")
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise TraceError(f"{target}: {error}; the working directory and PYTHONPATH are searched") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise TraceError(f"{target}: {module} has no {name}")
        found = getattr(found, part)
    torch = _torch()
    return found if isinstance(found, torch.nn.Module) or not callable(found) else found()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m arenite_trace", description="Traces a PyTorch module for pack.")
    parser.add_argument("target", metavar="MODULE:FUNCTION", help=f"a function that gives {FORMS}")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="trace.json; its sidecars go beside it")
    parser.add_argument("--input-shape", metavar="N,C,H,W", action="append", default=[], help="of an f32 input; repeatable")
    parser.add_argument("--name", help="the network's name; default: the first part of the file's name")
    parser.add_argument("--version", action="version", version=f"arenite_trace {__version__}")
    options = parser.parse_args(arguments)
    try:
        keywords = _arguments(_found(options.target), options.input_shape)
        if options.name is not None:
            keywords["name"] = options.name
        result = trace(**keywords, path=options.output)
    except (TraceError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {len(result.ops)} operators, {len(result.values)} stored tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
