"""The data of ``trace.json`` and its writer. Needs no PyTorch.

The writer is deterministic and puts one tensor or operator on a line, so that a change of a committed trace reads well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import numpy as safetensors

SCHEMA_VERSION = 3

#: Operators that version 2 added; a trace without them states version 1.
SINCE_2 = ("matmul", "argmax", "embedding", "conv_transpose2d", "resize_nearest", "resize_bilinear", "rfft")

#: Those that version 3 added, beside the field ``quant`` of tensors.
SINCE_3 = ("quantize", "dequantize", "cast", "sin", "cos", "less", "less_or_equal", "equal", "keep", "power", "floor_mod")

ROLES = ("input", "activation", "parameter", "constant", "state")


#: How a network is packed by way of ONNX.
BY_ONNX = (
    'by way of ONNX it packs: `torch.onnx.export(module.eval(), inputs, "net.onnx", dynamo=False)` (`pip install onnx`), '
    "then `pack net.onnx -o net.bin`"
)


class TraceError(Exception):
    """A network, input or name that ``trace.json`` cannot hold."""


class UnsupportedOperator(TraceError):
    """The module uses operators that ``trace.json`` cannot state.

    ``problems`` holds one message for each: module path, source line, operator, and what to do. ``by_onnx`` says whether
    ``pack`` takes all of them from an ONNX file.
    """

    def __init__(self, problems: Sequence[str], by_onnx: bool = False) -> None:
        self.problems, self.by_onnx = list(problems), by_onnx
        count = len(self.problems)
        lead = f"{count} operator{'s' if count > 1 else ''} cannot be traced"
        lines = [lead + ":", *self.problems, *([BY_ONNX] if by_onnx else [])]
        super().__init__("\n  ".join(lines))


@dataclass(frozen=True)
class Quant:
    """Real numbers that the integers of a tensor stand for: less ``zero_point``, times the one scale or that of their place along ``axis``."""

    scale: tuple[float, ...]
    zero_point: int = 0
    axis: int = 0

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"scale": list(self.scale)}
        if self.zero_point:
            entry["zero_point"] = self.zero_point
        if self.axis and len(self.scale) > 1:
            entry["axis"] = self.axis
        return entry


@dataclass
class Tensor:
    """One entry of ``tensors``. ``dtype`` is ``f32``, ``i8``, …; ``role`` one of :data:`ROLES`."""

    shape: tuple[int, ...]
    dtype: str
    role: str
    layout: str | None = None
    quant: Quant | None = None

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"shape": list(self.shape), "dtype": self.dtype, "role": self.role}
        if self.layout is not None:
            entry["layout"] = self.layout
        if self.quant is not None:
            entry["quant"] = self.quant.to_json()
        return entry


@dataclass
class Op:
    """One entry of ``ops``; an absent optional input is ``None``."""

    name: str
    op: str
    inputs: list[str | None]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": self.name, "op": self.op, "inputs": self.inputs, "outputs": self.outputs}
        if self.attrs:
            entry["attrs"] = self.attrs
        if self.source is not None:
            entry["source"] = self.source
        return entry


@dataclass
class Samples:
    """Inputs and expected outputs of ``runs`` runs: tensor name -> array [runs, …shape]."""

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    runs: int
    rtol: float


@dataclass
class Trace:
    """A whole network. ``values`` holds the arrays of parameters and constants by tensor name."""

    name: str
    producer: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    state: list[tuple[str, str]] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    samples: Samples | None = None

    @property
    def version(self) -> int:
        """The lowest version of the format that holds the network."""
        ops = {op.op for op in self.ops}
        if not ops.isdisjoint(SINCE_3) or any(tensor.quant for tensor in self.tensors.values()):
            return SCHEMA_VERSION
        return 1 if ops.isdisjoint(SINCE_2) else 2

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace and its sidecars; each file is replaced as a whole or not at all."""
        path = Path(path)
        stem = sidecar_stem(path)
        document: dict[str, Any] = {
            "arenite_trace": self.version,
            "producer": self.producer,
            "name": self.name,
            "inputs": self.inputs,
            "outputs": self.outputs,
        }
        if self.state:
            document["state"] = [{"input": before, "output": after} for before, after in self.state]
        document["tensors"] = {name: tensor.to_json() for name, tensor in self.tensors.items()}
        document["ops"] = [op.to_json() for op in self.ops]
        if self.values:
            document["parameters"] = f"{stem}.safetensors"
            _replace(path.with_name(document["parameters"]), _row_major(self.values))
        if self.samples is not None:
            file = f"{stem}.samples.safetensors"
            arrays = _sample_keys(self.samples)
            document["samples"] = {
                "file": file,
                "runs": self.samples.runs,
                "inputs": {name: f"input.{name}" for name in self.samples.inputs},
                "outputs": {name: f"output.{name}" for name in self.samples.outputs},
                "rtol": self.samples.rtol,
            }
            _replace(path.with_name(file), _row_major(arrays))
        _replace(path, _format(document).encode())

    #: The name before :meth:`save` had one.
    write = save


def sidecar_stem(path: Path) -> str:
    """``net`` for ``net.trace.json`` and ``net.json``; the sidecars are named after it."""
    name = path.name
    for suffix in (".trace.json", ".json"):
        if name.endswith(suffix) and name != suffix:
            return name[: -len(suffix)]
    raise TraceError(f"{path}: the file name must end in .trace.json or .json")


def _row_major(arrays: dict[str, np.ndarray]) -> bytes:
    """The bytes of a file of arrays. ``safetensors`` writes an array as it lies in memory, whatever the order of its axes there."""
    return safetensors.save({name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()})


def _sample_keys(samples: Samples) -> dict[str, np.ndarray]:
    """One file holds both directions, and an output may be an input as well: the keys say which it is."""
    arrays = {f"input.{name}": array for name, array in samples.inputs.items()}
    arrays.update({f"output.{name}": array for name, array in samples.outputs.items()})
    return arrays


def _format(document: dict[str, Any]) -> str:
    lines = []
    for key, value in document.items():
        if key == "tensors":
            body = [f"    {_dump(name)}: {_dump(entry)}" for name, entry in value.items()]
            rendered = "{\n" + ",\n".join(body) + "\n  }"
        elif key == "ops":
            body = [f"    {_dump(entry)}" for entry in value]
            rendered = "[\n" + ",\n".join(body) + "\n  ]" if body else "[]"
        else:
            rendered = _dump(value)
        lines.append(f"  {_dump(key)}: {rendered}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
