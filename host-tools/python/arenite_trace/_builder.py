"""What a converter works with: the trace so far, and the exported node that it states."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._schema import Op, Tensor, Trace

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep


class Unsupported(Exception):
    """Why a call cannot be stated, and what its author can do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what
        self.advice = advice


class Builder:
    """The trace as converters see it: tensors are names, :meth:`emit` appends an operator for the current node."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.taken: set[str] = set()
        self.node: torch.fx.Node | None = None

    def shape(self, name: str) -> tuple[int, ...]:
        return self.trace.tensors[name].shape

    def result_shape(self, index: int | None = None) -> tuple[int, ...]:
        """The shape that PyTorch inferred for the current node, or for one of its several results."""
        value = self._node.meta["val"]
        return tuple(value.shape if index is None else value[index].shape)

    def result_count(self) -> int:
        return len(self._node.meta["val"])

    def is_stored(self, name: str) -> bool:
        return name in self.trace.values

    def emit(
        self,
        op: str,
        inputs: Sequence[str | None],
        attrs: dict[str, Any] | None = None,
        *,
        shape: Sequence[int] | None = None,
        part: str = "",
        layout: str | None = None,
    ) -> str:
        """Appends an operator and returns its output's name; ``part`` tells several operators of one node apart."""
        for key, value in (attrs or {}).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise Unsupported(f"{op} has {key} = {value}", "use a finite number")
        name = self.unique(_label(self._node) + part)
        first = next(i for i in inputs if i is not None)
        tensor = Tensor(
            tuple(self.result_shape() if shape is None else shape), self.trace.tensors[first].dtype, "activation", layout
        )
        self.trace.tensors[name] = tensor
        self.trace.ops.append(Op(name, op, list(inputs), [name], attrs or {}, source_of(self._node)))
        return name

    def scalar(self, value: float) -> str:
        """A constant of shape []; equal ones are shared."""
        if not math.isfinite(value):
            raise Unsupported(f"the constant {value} is not finite", "use a finite number")
        name = f"constant({float(value)!r})"
        if name not in self.trace.tensors:
            self.taken.add(name)
            self.trace.tensors[name] = Tensor((), "f32", "constant")
            self.trace.values[name] = np.array(value, dtype=np.float32)
        return name

    def reshape_stored(self, name: str, shape: Sequence[int]) -> None:
        """Stores a parameter in another shape of the same row-major values; every reader must agree on it."""
        tensor = self.trace.tensors[name]
        if tensor.shape != tuple(shape):
            readers = [op.name for op in self.trace.ops if name in op.inputs]
            if readers:
                raise Unsupported(f"{name} is read with two different shapes", "give each reader its own parameter")
            tensor.shape = tuple(shape)
            self.trace.values[name] = self.trace.values[name].reshape(shape)

    def set_layout(self, name: str, layout: str) -> None:
        self.trace.tensors[name].layout = layout

    def unique(self, wanted: str) -> str:
        """This name, or it with a number that makes it the only one."""
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    @property
    def _node(self) -> torch.fx.Node:
        assert self.node is not None
        return self.node


def is_own(file: str) -> bool:
    """Whether a stack frame belongs to the traced program."""
    return not file.startswith((_TORCH_FOLDER, os.path.dirname(__file__) + os.sep, "<"))


def source_of(node: torch.fx.Node) -> str:
    """``block.conv (Conv2d), model.py:12``. The line is the user's innermost one; the folder is left out on purpose."""
    path, kind = _module(node)
    text = f"{path or '<top>'} ({kind.rsplit('.', 1)[-1] or 'function'})"
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in frames if is_own(file)]
    if own:
        file, line = own[-1]
        text += f", {os.path.basename(file)}:{line}"
    return text


def _label(node: torch.fx.Node) -> str:
    """The module's path where the node is a library module's work, else the enclosing path and the call."""
    path, kind = _module(node)
    # Several calls within one module differ in their last part: "block.add".
    call = re.sub(r"_\d+$", "", node.name).lstrip("_")
    if kind.startswith("torch.nn.") and path and not kind.endswith("Sequential"):
        return path
    return f"{path}.{call}" if path else call


def _module(node: torch.fx.Node) -> tuple[str, str]:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "", ""
    path, kind = stack[-1]
    return path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
