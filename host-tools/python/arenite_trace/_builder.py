"""State that a converter works with: the trace so far, and the exported node that it states."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._schema import Op, Quant, Tensor, Trace

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep


DTYPES_OF_ARRAYS = {"f4": "f32", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "b1": "bool"}


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
        #: Tensors of f32 that are conditions: 1 where it holds, else 0.
        self.conditions: set[str] = set()
        #: Shapes of nodes' results at another batch; empty where the network has one batch only.
        self.batched: dict[str, tuple[int, ...]] = {}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.trace.tensors[name].shape

    def result_shape(self, index: int | None = None) -> tuple[int, ...]:
        """The shape that PyTorch inferred for the current node, or for one of its several results."""
        value = self._node.meta["val"]
        return tuple(value.shape if index is None else value[index].shape)

    def result_count(self) -> int:
        return len(self._node.meta["val"])

    def dtype(self, name: str) -> str:
        """Element type that an operator reads: of integers that are stored for real numbers, that of these."""
        return "f32" if self.is_stored(name) and self.trace.tensors[name].quant else self.trace.tensors[name].dtype

    def dtypes(self) -> tuple[str, str]:
        """Those of the current node's first operand and of its result, as PyTorch has them: integers of 64 bits are i32."""
        source = next(node for node in self._node.all_input_nodes)
        names = {torch.float32: "f32", torch.bool: "bool", torch.int32: "i32", torch.int64: "i32"}
        before, after = (node.meta["val"].dtype for node in (source, self._node))
        return names.get(before, str(before)), names.get(after, str(after))

    def is_stored(self, name: str) -> bool:
        return name in self.trace.values

    def is_zero(self, name: str) -> bool:
        """Whether it is a constant of zeros, as a recurrent module's first state."""
        return self.is_stored(name) and self.trace.tensors[name].role == "constant" and not self.trace.values[name].any()

    @property
    def call(self) -> str:
        """The current node's ATen call, without overload."""
        return str(self._node.target).removeprefix("aten.").split(".")[0]

    def is_used(self, index: int) -> bool:
        """Whether anything reads this one of the current node's several results."""
        return any(user.args[1] == index and user.users for user in self._node.users if len(user.args) == 2)

    def emit(
        self,
        op: str,
        inputs: Sequence[str | None],
        attrs: dict[str, Any] | None = None,
        *,
        shape: Sequence[int] | None = None,
        part: str = "",
        layout: str | None = None,
        dtype: str | None = None,
    ) -> str:
        """Appends an operator and returns its output's name; ``part`` tells several operators of one node apart."""
        for key, value in (attrs or {}).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise Unsupported(f"{op} has {key} = {value}", "use a finite number")
        name = self.unique(_label(self._node) + part)
        first = next(i for i in inputs if i is not None)
        shape = tuple(self.result_shape() if shape is None else shape)
        tensor = Tensor(shape, dtype or self.dtype(first), "activation", layout)
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

    def constant(self, values: np.ndarray, part: str = ".constant") -> str:
        """A constant of the program, named after the current node."""
        name = self.unique(_label(self._node) + part)
        return self.store(name, values)

    def store(self, name: str, values: np.ndarray) -> str:
        dtype = DTYPES_OF_ARRAYS.get(values.dtype.str[1:])
        if dtype is None:
            raise Unsupported(f"a constant of {values.dtype}", "make it float32, or int32 where it counts")
        self.trace.tensors[name] = Tensor(values.shape, dtype, "constant")
        self.trace.values[name] = values
        return name

    def batch_axis(self, shape: Sequence[int]) -> int | None:
        """The axis of the current node's result that carries the batch: the one that another batch changes."""
        other = self.batched.get(self._node.name)
        if other is None or len(other) != len(shape):
            return None
        differ = [i for i, (a, b) in enumerate(zip(shape, other, strict=True)) if a != b]
        return differ[0] if len(differ) == 1 else None

    def reshape_stored(self, name: str, shape: Sequence[int]) -> None:
        """Stores a parameter in another shape of the same row-major values; every reader must agree on it."""
        tensor = self.trace.tensors[name]
        if tensor.shape != tuple(shape):
            readers = [op.name for op in self.trace.ops if name in op.inputs]
            if readers:
                raise Unsupported(f"{name} is read with two different shapes", "give each reader its own parameter")
            tensor.shape = tuple(shape)
            self.trace.values[name] = self.trace.values[name].reshape(shape)

    def set_quant(self, name: str, quant: Quant) -> None:
        """States what the integers of a tensor stand for; every reader must agree on it."""
        tensor = self.trace.tensors[name]
        if tensor.quant not in (None, quant):
            raise Unsupported(f"{name} is read with two different scales", "give each reader a tensor of its own")
        tensor.quant = quant

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
    path, kind = module_of(node)
    text = f"{path or '<top>'} ({kind.rsplit('.', 1)[-1] or 'function'})"
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in frames if is_own(file)]
    if own:
        file, line = own[-1]
        text += f", {os.path.basename(file)}:{line}"
    return text


def _label(node: torch.fx.Node) -> str:
    """The module's path where the node is a library module's work, else the enclosing path and the call."""
    path, kind = module_of(node)
    # Several calls within one module differ in their last part: "block.add".
    call = re.sub(r"_\d+$", "", node.name).lstrip("_")
    if kind.startswith("torch.nn.") and path and not kind.endswith("Sequential"):
        return path
    return f"{path}.{call}" if path else call


def module_of(node: torch.fx.Node) -> tuple[str, str]:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "", ""
    path, kind = stack[-1]
    return path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
