"""From a PyTorch module to a :class:`Trace`, by way of ``torch.export``.

``torch.export`` gives a functional graph of ATen calls whose nodes know the module and the source line they come from.
:mod:`._operators` has one converter per ATen call, :mod:`._builder` is what they work with; this module supplies
parameters, states and samples.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind, OutputKind

from ._builder import Builder, Unsupported, is_own, module_of, source_of
from ._folding import copied, fold_parametrizations
from . import _conditions, _maps, _norms, _quantised, _recurrent, _windows  # noqa: F401  (they register converters)
from ._operators import CONVERTERS
from ._products import known_as_array
from ._schema import Samples, Tensor, Trace, TraceError, UnsupportedOperator, sidecar_stem
from ._version import __version__

DTYPES = {
    torch.float32: "f32",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
}

# Calls that take integers as well: they move elements.
INTEGERS = (
    "view reshape squeeze unsqueeze unflatten flatten permute transpose cat slice select split split_with_sizes chunk unbind stack "
    "clone contiguous alias detach"
).split()

#: Calls that are refused here, all or some of their forms, and that `pack` takes from an ONNX file: tests/oracle/compare_doors.py compares.
BY_ONNX = "conv3d conv_transpose3d conv2d conv1d gather scatter add sub mul where _to_copy".split()

# Calls without a result that only check what torch.export already knows.
_CHECKS = ("_assert_tensor_metadata",)


def trace_module(
    module: torch.nn.Module,
    example_inputs: tuple[torch.Tensor, ...],
    path: str | os.PathLike[str] | None,
    *,
    name: str | None,
    samples: Sequence[Sequence[torch.Tensor]] | None,
    rtol: float,
    output_names: Sequence[str] | None,
) -> Trace:
    """See :func:`arenite_trace.trace`."""
    stem = type(module).__name__ if path is None else sidecar_stem(Path(path))
    if not example_inputs:
        raise TraceError("example_inputs is empty: give one tensor per argument of forward")
    # A copy, so that the caller's module keeps its training mode and its buffers.
    network = _of_inference(copied(module)).cpu()
    fold_parametrizations(network)
    inputs = tuple(_plain(tensor, f"example_inputs[{i}]") for i, tensor in enumerate(example_inputs))
    for tensor_name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            raise TraceError(f"{tensor_name} has dtype {tensor.dtype}: convert the module with .float() before tracing")
    for part in network.modules():
        _exportable(part)
    exported = _exported(network, inputs)
    walk = Walk(exported, Trace(name or stem, f"arenite_trace {__version__}, PyTorch {_release()}"))
    walk.builder.batched = _at_another_batch(network, inputs, exported)
    result = walk.build(output_names)
    if samples is not None:
        result.samples = _run_samples(network, result, inputs, samples, rtol)
    if path is not None:
        result.save(path)
    return result


class Walk:
    """Walks the exported graph once and lets converters state each call."""

    def __init__(self, exported: torch.export.ExportedProgram, trace: Trace) -> None:
        self.exported = exported
        self.trace = trace
        self.builder = Builder(trace)
        self.values: dict[torch.fx.Node, Any] = {}
        #: Values that the program computes of nothing but its own constants: they are computed here, once.
        self.known: dict[torch.fx.Node, torch.Tensor] = {}
        #: Parameters, and what the program computes of them and of constants alone.
        self.learned: dict[torch.fx.Node, torch.Tensor] = {}
        self.problems: list[str] = []
        #: Whether `pack` takes each of them from an ONNX file.
        self.by_onnx: list[bool] = []
        self.state_nodes: dict[str, str] = {}

    def build(self, output_names: Sequence[str] | None) -> Trace:
        signature = self.exported.graph_signature
        placeholders = {spec.arg.name: spec for spec in signature.input_specs}
        mutated = {
            spec.target for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION and spec.target
        }
        for node in self.exported.graph.nodes:
            self.builder.node = node
            if node.op == "placeholder":
                self._placeholder(node, placeholders[node.name], mutated)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._output(node.args[0], signature.output_specs, output_names)
        if self.problems:
            raise UnsupportedOperator(self.problems, by_onnx=all(self.by_onnx))
        self._drop_unused()
        return self.trace

    def _placeholder(self, node: torch.fx.Node, spec: Any, mutated: set[str]) -> None:
        meta = node.meta["val"]
        if spec.kind == InputKind.USER_INPUT:
            if not isinstance(meta, torch.Tensor):
                raise TraceError(f"input {node.name} is a {type(meta).__name__}: every argument of forward must be a tensor")
            name = self.builder.unique(node.name)
            self._declare(name, meta.to(torch.int32) if meta.dtype == torch.int64 else meta, "input")
            self.trace.inputs.append(name)
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            if not node.users and spec.target not in mutated:
                # Such as the real weights that a quantised module keeps.
                return
            name = self.builder.unique(_frozen(node, spec.target))
            value = self._stored_value(spec)
            if spec.target in mutated:
                self._state(name, value)
            else:
                # Persistent buffers are the moving statistics and the like; the others are fixed by the program.
                learned = spec.kind == InputKind.PARAMETER or (spec.kind == InputKind.BUFFER and spec.persistent)
                self._declare(name, value, "parameter" if learned else "constant")
                self.trace.values[name] = _contiguous(value)
                if not learned or not value.is_floating_point():
                    self.known[node] = value
                else:
                    self.learned[node] = value
        else:
            raise TraceError(f"argument {node.name} has the kind {spec.kind.name}: only tensors can be traced")
        self.values[node] = name

    def _stored_value(self, spec: Any) -> torch.Tensor:
        stored = self.exported.state_dict
        value: torch.Tensor = (stored if spec.target in stored else self.exported.constants)[spec.target]
        return value.detach()

    def _state(self, name: str, value: torch.Tensor) -> None:
        if torch.any(value != 0):
            raise TraceError(f"buffer {name} is written by forward but does not start at zero: states start at zero")
        self._declare(name, value, "state")
        self.state_nodes[name] = name

    def _declare(self, name: str, value: torch.Tensor, role: str) -> None:
        dtype = DTYPES.get(value.dtype)
        if dtype is None:
            raise TraceError(f"{role} {name} has dtype {value.dtype}: convert it with .float() before tracing")
        self.trace.tensors[name] = Tensor(tuple(value.shape), dtype, role)

    def _call(self, node: torch.fx.Node) -> None:
        try:
            name = self.values[node] = self._convert(node)
            value = node.meta.get("val")
            if isinstance(name, str) and isinstance(value, torch.Tensor) and value.dtype == torch.bool and not self.builder.is_stored(name):
                self.builder.conditions.add(name)
        except Unsupported as problem:
            self.problems.append(_problem(node, problem))
            self.by_onnx.append(self._packs_as_onnx(node))
            # A stand-in of the right shape lets the walk go on and name every problem at once.
            self.values[node] = self._stand_in(node.meta.get("val"))

    def _packs_as_onnx(self, node: torch.fx.Node) -> bool:
        key, value = _key(node), node.meta.get("val")
        plain = isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.int32, torch.int64)
        return plain and key in BY_ONNX and (key not in ("gather", "scatter") or node.args[2] in self.known)

    def _convert(self, node: torch.fx.Node) -> Any:
        if getattr(node.target, "__name__", "") == "getitem":
            source, index = node.args
            assert isinstance(source, torch.fx.Node)
            return self.values[source][index]
        schema, key = getattr(node.target, "_schema", None), _key(node)
        if key in _CHECKS:
            return None
        if self._computed(node, schema):
            return None
        converter: Callable[[Builder, dict[str, Any]], Any] | None = CONVERTERS.get(key)
        if converter is None or schema is None:
            raise Unsupported(f"{key} has no counterpart", "replace it by operators of docs/trace-schema.md")
        value = node.meta["val"]
        for result in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(result, torch.Tensor) and not self._typed(node, key, result):
                raise Unsupported(
                    f"{key} gives {result.dtype}", "keep the network in float32; compute integers before tracing"
                )
        arguments = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
        arguments.update(zip((a.name for a in schema.arguments), node.args, strict=False))
        arguments.update(node.kwargs)
        return converter(self.builder, {k: torch.fx.map_arg(v, self._operand) for k, v in arguments.items()})

    def _computed(self, node: torch.fx.Node, schema: Any) -> bool:
        """Computes a node of constants alone, and one of parameters where more happens than that they are moved."""
        random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        # Integers stay what they are stored as.
        if schema is not None and schema.name.startswith(_quantised.NAMESPACE):
            return False
        sources = node.all_input_nodes
        if schema is None or random or any(source not in self.learned and source not in self.known for source in sources):
            return False
        if not isinstance(node.meta["val"], torch.Tensor):
            return False
        of_parameters = any(source in self.learned for source in sources)
        if of_parameters and not self._folded(node, schema):
            return False
        given = {source: self.learned[source] if source in self.learned else self.known[source] for source in sources}
        arguments: Any = torch.fx.map_arg(node.args, given.__getitem__)
        keywords: Any = torch.fx.map_arg(node.kwargs, given.__getitem__)
        call: Any = node.target
        with torch.no_grad():
            (self.learned if of_parameters else self.known)[node] = call(*arguments, **keywords)
        return True

    def _folded(self, node: torch.fx.Node, schema: Any) -> bool:
        """A parameter that is only moved is stored once, for all who read it; those of convolutions are as they are read."""
        if schema.name.removeprefix("aten::") not in INTEGERS:
            return True
        read = any("conv" in str(user.target) and user.args[0] is not node for user in node.users)
        return read or any(self.values.get(source) is None for source in node.all_input_nodes)

    def _operand(self, node: torch.fx.Node) -> Any:
        """Operand that a converter sees of an argument; a known value becomes a constant where it is first read, one of parameters a parameter."""
        if self.values.get(node) is None:
            for values, role in ((self.known, "constant"), (self.learned, "parameter")):
                if node in values:
                    name = self.builder.store(self.builder.unique(node.name), known_as_array(values[node]))
                    self.trace.tensors[name].role = role
                    self.values[node] = name
        return self.values[node]

    def _typed(self, node: torch.fx.Node, key: str, result: torch.Tensor) -> bool:
        """Whether the trace can hold a result: f32, the index of an argmax, and integers that are only moved."""
        if result.dtype == torch.float32 or key in ("argmax", "argmin", "one_hot") or key.startswith(_quantised.NAMESPACE):
            return True
        sources = [source.meta.get("val") for source in node.all_input_nodes]
        if result.dtype == torch.bool and (key in (*_conditions.CONDITIONS, "_to_copy", "to", "expand") or key in INTEGERS):
            return True
        moved = key in INTEGERS and all(isinstance(v, torch.Tensor) and v.dtype == result.dtype for v in sources)
        unread = isinstance(node.meta["val"], (list, tuple)) and result.dtype == torch.int64
        return moved or unread

    def _stand_in(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._stand_in(v) for v in value]
        name = self.builder.unique("unsupported")
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else ()
        self.trace.tensors[name] = Tensor(shape, "f32", "activation")
        return name

    def _output(self, results: Sequence[Any], specs: Sequence[Any], names: Sequence[str] | None) -> None:
        for node, spec in zip(results, specs, strict=True):
            if not isinstance(node, torch.fx.Node):
                raise TraceError(f"an output of forward is {node!r}: every output must be a tensor")
            name = self._operand(node)
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.trace.state.append((self.state_nodes[spec.target], self._activation(node, name)))
            elif spec.kind == OutputKind.USER_OUTPUT:
                self.trace.outputs.append(self._activation(node, name))
            else:
                raise TraceError(f"{spec.target or node.name} is changed by forward: only buffers may be")
        if names is not None:
            self._rename_outputs(list(names))

    def _activation(self, node: torch.fx.Node, name: str) -> str:
        """A state, parameter or constant that is given back goes through an operator of its own."""
        if self.trace.tensors[name].role in ("input", "activation"):
            return name
        self.builder.node = node
        return self.builder.emit("identity", [name], shape=self.builder.shape(name), part=".copy")

    def _rename_outputs(self, names: list[str]) -> None:
        outputs = self.trace.outputs
        if len(names) != len(outputs):
            raise TraceError(f"output_names has {len(names)} names, the module {len(outputs)} outputs")
        renamed = {old: new for old, new in zip(outputs, names, strict=True) if old != new}
        clash = [new for new in renamed.values() if new in self.trace.tensors]
        if clash or len(set(names)) != len(names) or any(old in self.trace.inputs for old in renamed):
            raise TraceError(f"output_names {names}: each must be new and name one operator's result")
        rename: Callable[[str], str] = lambda name: renamed.get(name, name)  # noqa: E731
        self.trace.outputs = [rename(n) for n in outputs]
        self.trace.state = [(before, rename(after)) for before, after in self.trace.state]
        self.trace.tensors = {rename(n): tensor for n, tensor in self.trace.tensors.items()}
        for op in self.trace.ops:
            op.inputs = [None if i is None else rename(i) for i in op.inputs]
            op.outputs = [rename(o) for o in op.outputs]

    def _drop_unused(self) -> None:
        """Counters such as num_batches_tracked feed nothing; operators that feed no output stay, for pack to count."""
        used = set(self.trace.inputs) | set(self.trace.outputs) | {n for pair in self.trace.state for n in pair}
        for op in self.trace.ops:
            used.update(n for n in (*op.inputs, *op.outputs) if n is not None)
        self.trace.tensors = {n: t for n, t in self.trace.tensors.items() if n in used}
        self.trace.values = {n: v for n, v in self.trace.values.items() if n in used}
        for name, value in self.trace.values.items():
            if value.dtype == np.float32 and not np.isfinite(value).all():
                raise TraceError(f"{self.trace.tensors[name].role} {name} holds a value that is not finite")


def _exported(network: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.export.ExportedProgram:
    """Functional form: in-place calls and views are resolved, writes to buffers are results."""
    try:
        with torch.no_grad():
            exported: torch.export.ExportedProgram = torch.export.export(network, inputs, strict=False)
            functional: torch.export.ExportedProgram = exported.run_decompositions({})
            return _decomposed(functional)
    except Exception as error:
        # Among others: control flow that depends on values, wrong numbers or shapes of example inputs.
        frames = [f for f in traceback.extract_tb(error.__traceback__) if is_own(f.filename)]
        where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise TraceError(f"{where}torch.export cannot trace the module: {reason}") from error


def _decomposed(exported: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Calls without a converter are taken apart by PyTorch, as far as PyTorch can."""
    for _ in range(3):
        calls = {node.target for node in exported.graph.nodes if hasattr(node.target, "_schema")}
        unknown = {call for call in calls if call._schema.name.removeprefix("aten::") not in CONVERTERS}
        table = torch.export.default_decompositions() if unknown else {}
        known = {call: table[call] for call in unknown if call in table}
        if not known:
            break
        exported = exported.run_decompositions(known)
    return exported


def _frozen(node: torch.fx.Node, target: str) -> str:
    """A parameter's name; one that torchao has frozen is called after the module that reads it, through its conversion."""
    if not target.startswith("_frozen_param"):
        return target
    readers = [reader for conversion in node.users for reader in conversion.users]
    paths = {module_of(reader)[0] for reader in readers}
    place = {reader.args.index(conversion) for conversion in node.users for reader in conversion.users if conversion in reader.args}
    path = paths.pop() if len(paths) == 1 else ""
    return f"{path}.{'weight' if place == {1} else 'bias' if place == {2} else target}" if path else target


def _of_inference(network: torch.nn.Module) -> torch.nn.Module:
    try:
        return network.eval()
    except NotImplementedError:
        # A module that torch.export gave has no modes; quantised modules are such.
        return network


def _exportable(module: torch.nn.Module) -> None:
    """Works around what torch.export of some versions stumbles over."""
    # Buffers that are absent, counted as present.
    for name in [name for name, value in module._buffers.items() if value is None]:
        del module._buffers[name]
        module.__dict__[name] = None
    # The list that a recurrent module keeps of its weights, taken for tensors that forward writes.
    if isinstance(module, torch.nn.RNNBase):
        kind = type(module)
        read: Callable[[Any], Any] = lambda self: [getattr(self, name) for name in self._flat_weights_names]  # noqa: E731
        names = property(read, lambda self, value: None)
        module.__dict__.pop("_flat_weights", None)
        attributes = {"_flat_weights": names, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        module.__class__ = type(kind.__name__, (kind,), attributes)


def _same(a: torch.fx.Node, b: torch.fx.Node) -> bool:
    """Whether two nodes do the same, shapes aside: some of PyTorch's own lowerings look at extents of 1."""
    shaped = ("view", "_unsafe_view", "reshape", "expand", "zeros", "ones", "full")
    if a.op != "call_function" or str(a.target).removeprefix("aten.").split(".")[0] in shaped:
        return a.op == b.op
    plain = [[str(value) for value in node.args if not isinstance(value, torch.fx.Node)] for node in (a, b)]
    return a.target == b.target and plain[0] == plain[1]


def _at_another_batch(
    network: torch.nn.Module, inputs: tuple[torch.Tensor, ...], exported: torch.export.ExportedProgram
) -> dict[str, tuple[int, ...]]:
    """The shapes of all nodes at another batch, which show the axes that carry it; nothing where the network has one batch only."""
    if any(tensor.dim() == 0 or tensor.shape[0] != inputs[0].shape[0] for tensor in inputs):
        return {}
    silent = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        other = _exported(network, tuple(torch.cat([tensor] * 2) for tensor in inputs))
    except TraceError:
        return {}
    finally:
        logging.disable(silent)
    pairs = list(zip(exported.graph.nodes, other.graph.nodes, strict=False))
    if len(pairs) != len(exported.graph.nodes) or not all(_same(a, b) for a, b in pairs):
        return {}
    return {a.name: tuple(b.meta["val"].shape) for a, b in pairs if isinstance(b.meta.get("val"), torch.Tensor)}


def _plain(tensor: Any, where: str) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise TraceError(f"{where} is a {type(tensor).__name__}: give a tensor")
    if tensor.dtype not in (torch.float32, torch.int32, torch.int64):
        raise TraceError(f"{where} has dtype {tensor.dtype}: give torch.float32, or integers where the network looks them up")
    return tensor.detach().cpu()


def _contiguous(value: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(value.cpu().numpy()).copy()


def _release() -> str:
    """PyTorch's version without the build, so that a trace does not depend on the machine."""
    return torch.__version__.split("+")[0]


def _key(node: torch.fx.Node) -> str:
    """The call's name without overload."""
    schema = getattr(node.target, "_schema", None)
    return schema.name.removeprefix("aten::") if schema is not None else str(node.target)


def _problem(node: torch.fx.Node, problem: Unsupported) -> str:
    return f"{source_of(node)}: {problem.what}; {problem.advice}"


def _leaves(results: Any) -> list[torch.Tensor]:
    """The tensors of nested results, in the order in which torch.export lists them."""
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, (list, tuple)):
        return [leaf for result in results for leaf in _leaves(result)]
    return [results]


def _stored_as(tensor: torch.Tensor, declared: Tensor) -> np.ndarray:
    """Indices of 64 bits are of 32 in the trace, conditions 1 and 0 in f32."""
    kinds = {"i32": torch.int32, "f32": torch.float32}
    return tensor.to(kinds.get(declared.dtype, tensor.dtype)).numpy()


def _run_samples(
    network: torch.nn.Module,
    trace: Trace,
    example: tuple[torch.Tensor, ...],
    samples: Sequence[Sequence[torch.Tensor]],
    rtol: float,
) -> Samples:
    """The expected outputs, from PyTorch itself; states carry over from run to run, as they do in a replay."""
    if not samples:
        raise TraceError("samples is empty: give at least one run, or None")
    if not rtol > 0:
        raise TraceError(f"rtol is {rtol}: it must be above 0")
    inputs: dict[str, list[np.ndarray]] = {name: [] for name in trace.inputs}
    outputs: dict[str, list[np.ndarray]] = {name: [] for name in trace.outputs}
    for run, arguments in enumerate(samples):
        plain = [_plain(tensor, f"samples[{run}][{i}]") for i, tensor in enumerate(arguments)]
        if [tuple(t.shape) for t in plain] != [tuple(t.shape) for t in example]:
            raise TraceError(f"samples[{run}] has shapes other than example_inputs")
        with torch.no_grad():
            results = network(*plain)
        results = _leaves(results)
        for name, tensor in zip(trace.inputs, plain, strict=True):
            inputs[name].append(_stored_as(tensor, trace.tensors[name]))
        for name, tensor in zip(trace.outputs, results, strict=True):
            outputs[name].append(_stored_as(tensor, trace.tensors[name]))
    stack = lambda arrays: {name: np.stack(runs) for name, runs in arrays.items()}  # noqa: E731
    return Samples(stack(inputs), stack(outputs), len(samples), rtol)
