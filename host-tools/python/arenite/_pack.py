"""Packing: a network of any library into a model."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ._arrays import file_of, is_path, words_path
from ._error import Error, named
from ._model import Folder, Model
from ._words import Watch, call, options

#: The identifier of a ``.tflite`` file, behind its first word.
_TFLITE = b"TFL3"


def pack(
    network: Any,
    example_inputs: Any = None,
    *,
    output: str | os.PathLike[str] | None = None,
    calibrate: Any = None,
    self_test: Any = None,
    weights: Any = None,
    labels: Any = None,
    progress: Watch = None,
    **keywords: Any,
) -> Model:
    """Packs a network as ``pack`` does, byte for byte.

    :param network: a path; the bytes of a ``.tflite``, ``.onnx``, ``.pt2``, ``.gguf`` or ``trace.json`` file; an ONNX model (``onnx.ModelProto``); a
        ``torch.nn.Module``, with ``example_inputs``, a tensor or a tuple of them; a Keras 3 model.
    :param output: where the model file goes besides; :meth:`Model.save` writes it later.
    :param calibrate: sample inputs for ``dtype="int8"`` or ``"int16x8"``: a path as of ``--calibrate``; an array, or a dict of arrays by the input's name,
        each with one more leading axis than the input; or what gives batches, such as a data loader: arrays, dicts of arrays, or tuples of one of these and
        labels, whose first axis counts samples of a network with a batch of one.
    :param self_test: sample inputs that a device runs as a self-test: a path, an array, a dict of arrays.
    :param weights: a path, ``"seeded:N"``, or arrays by name.
    :param labels: class labels, a list of words, or the path of a file of them.
    :param progress: told of the stages: a function of stage, done and of, or ``True`` for a bar of `tqdm`. An exception of it ends packing.
    :param keywords: the options of ``pack``, with ``_`` for ``-``: ``target="cortex-m4"``, ``dtype="int8"``, ``keep_f32=["head"]``, ``size=True``,
        ``assume={"KEY": "VALUE"}``, …; ``set_`` and ``from_`` are ``--set`` and ``--from``.
    :raises Error: as the program would end, with its text.
    """
    taken = sorted({"json", "help", "version"}.intersection(keywords))
    if taken:
        raise Error("usage", f"`{taken[0]}` is of the command line alone", help="Model.summary has the fields of --json" if taken[0] == "json" else None)
    folder = Folder()
    with tempfile.TemporaryDirectory(prefix="arenite-") as scratch, named(scratch), named(folder.name):
        source = _source(network, example_inputs, scratch)
        model = os.path.join(folder.name, "model.bin")
        words = ["pack", source, f"--output={model}"]
        for name, given in (("calibrate", calibrate), ("self_test", self_test)):
            if given is not None:
                words += options({name: file_of(given, scratch, name, loads=name == "calibrate")})
        if weights is not None:
            words += options({"weights": file_of(weights, scratch, "weights")})
        if labels is not None:
            words += options({"labels": labels if is_path(labels) else _lines(labels, scratch)})
        text, notes, _ = call([*words, *options(keywords)], progress)
    packed = Model._packed(folder, model, notes, text if keywords.get("dump_after") else None)
    if output is not None:
        packed.save(output)
    return packed


def _lines(labels: Any, scratch: str) -> str:
    words = [str(label) for label in labels]
    if any("\n" in word or "\r" in word for word in words):
        raise Error("usage", "a label holds an end of line", expected="one line each")
    path = os.path.join(scratch, "labels.txt")
    Path(path).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return path


def _source(network: Any, example_inputs: Any, scratch: str) -> str:
    """The path of a file that `pack` reads."""
    # On PyTorch a Keras model is a module as well; with example inputs it is traced as one.
    if _is_keras(network) and example_inputs is None:
        return _of_keras(network, scratch)
    if hasattr(network, "named_parameters") and hasattr(network, "forward"):
        return _of_torch(network, example_inputs, scratch)
    if example_inputs is not None:
        raise Error("usage", f"example_inputs beside a {type(network).__name__}", expected="them with a torch.nn.Module alone")
    if is_path(network):
        return words_path(network)
    if isinstance(network, (bytes, bytearray, memoryview)):
        return _written(bytes(network), scratch, "network")
    if hasattr(network, "SerializeToString") and hasattr(network, "graph"):
        return _of_proto(network, scratch)
    raise Error(
        "usage",
        f"a {type(network).__module__}.{type(network).__qualname__} is no network",
        expected="a path, bytes, an onnx.ModelProto, a torch.nn.Module or a Keras model",
        help="arenite_trace, torch.onnx.export, tf.lite.TFLiteConverter and skl2onnx make files of networks",
    )


def _is_keras(network: Any) -> bool:
    return any(kind.__module__.split(".")[0] == "keras" for kind in type(network).__mro__)


def _written(content: bytes, scratch: str, name: str) -> str:
    start = content.lstrip()[:1]
    known = {b"{": "trace.json", b"P": "pt2", b"G": "gguf"}
    ending = "tflite" if content[4:8] == _TFLITE else known.get(start, "onnx")
    path = os.path.join(scratch, f"{name}.{ending}")
    Path(path).write_bytes(content)
    return path


def _of_proto(network: Any, scratch: str) -> str:
    try:
        content = network.SerializeToString()
    except Exception as error:
        what = f"the ONNX model cannot be written: {error}"
        raise Error("input", what, help="save it by onnx.save with save_as_external_data=True, and pack the path") from error
    return _written(content, scratch, "network")


def _of_torch(network: Any, example_inputs: Any, scratch: str) -> str:
    """A trace; where the tracer lacks an operator, an ONNX file."""
    import arenite_trace

    if example_inputs is None:
        what = "a torch.nn.Module without example_inputs"
        raise Error("usage", what, expected="pack(module, example_inputs): a tensor, or a tuple of one for each argument of forward")
    name = type(network).__name__
    path = os.path.join(scratch, f"{name}.trace.json")
    try:
        arenite_trace.trace(network, example_inputs, path)
    except arenite_trace.UnsupportedOperator as error:
        try:
            return _by_onnx(network, example_inputs, os.path.join(scratch, f"{name}.onnx"))
        except ImportError:
            raise Error("unsupported", str(error), help="`pip install onnx`: by way of ONNX more operators pack") from error
        except Exception as second:
            reason = str(second).strip().split("\n")[0]
            raise Error("unsupported", str(error), help=f"torch.onnx.export cannot write it either: {reason}") from error
    except (arenite_trace.TraceError, ImportError) as error:
        raise Error("input", str(error)) from error
    return path


def _by_onnx(network: Any, example_inputs: Any, path: str) -> str:
    import onnx  # noqa: F401  what torch.onnx.export writes with
    import torch

    several = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    was_training = network.training
    try:
        torch.onnx.export(network.eval(), several, path, dynamo=False)
    finally:
        network.train(was_training)
    return path


def _of_keras(network: Any, scratch: str) -> str:
    """The export of Keras itself, as ONNX or, where that is not installed, as TensorFlow Lite."""
    reasons = []
    for form, ending in (("onnx", "onnx"), ("litert", "tflite")):
        path = os.path.join(scratch, f"{network.name}.{ending}")
        try:
            network.export(path, format=form, verbose=False)
        except Exception as error:
            reasons.append(f"{form}: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}")
            continue
        return path
    what = f"Keras cannot export the model ({'; '.join(reasons)})"
    raise Error("unsupported", what, expected="a Keras 3 model with a backend that exports to ONNX or LiteRT", help="pip install onnx tf2onnx")
