"""Models: files that `pack` made, looked at, run and measured."""

from __future__ import annotations

import html
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._arrays import array_from, file_of, in_order, npy, table, words_path
from ._error import Error, named
from ._words import Watch, answer, call, options, warn, watching


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    #: A number q of an integer stands for ``scale * (q - zero_point)``; 0 where it stands for itself.
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Bench:
    """One inference on a board, in figures."""

    #: The fields of ``arenite bench --json``, but for the steps.
    figures: dict[str, Any]
    #: The steps, a column for each figure: ``index``, ``name``, ``op``, ``instructions``, ``macs``, ``bound``, ``cycles``, …
    steps: dict[str, np.ndarray] = field(repr=False)

    @property
    def board(self) -> str:
        return self.figures["board"]

    @property
    def instructions(self) -> int:
        """Instructions of one inference."""
        return self.figures["instructions"]

    @property
    def cycles(self) -> int | None:
        """Cycles of one inference as the model of the core estimates them; None where there is no model of it, and with ``quick=True``."""
        return self.figures.get("cycles")


@dataclass(frozen=True)
class Training:
    """Result of training: what a model has learnt, and how."""

    #: The fields of ``arenite train --json``, but for the losses.
    figures: dict[str, Any]
    #: The loss of each step, float32.
    losses: np.ndarray = field(repr=False)
    #: The file that ``arenite train --state-out`` writes: :meth:`Model.train`, :meth:`Model.eval` and :meth:`Model.bench` take it as ``state``.
    saved: bytes = field(repr=False)
    #: With ``keep_gradients=True``: those of the last step, by the parameter's name.
    gradients: dict[str, np.ndarray] | None = field(default=None, repr=False)

    @property
    def state(self) -> bytes:
        """The bytes that :attr:`Session.state` takes."""
        # The file ends with it.
        return self.saved[len(self.saved) - self.figures["state_bytes"] :]


class Folder:
    """A temporary folder that goes with the object."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="arenite-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class Model:
    """A model file. The object keeps a copy of its own, which goes when nobody uses it any more."""

    #: Notes of packing: assumptions, conversions, warnings; with ``explain=True`` what makes the arena's peak.
    notes: list[str]
    #: With ``dump_after=``: the network after that stage, as text.
    dump: str | None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens a file; ``FILE#NAME`` is the model of that name in a bundle."""
        text = words_path(path)
        file, sharp, name = (text, "", "") if os.path.exists(text) else text.partition("#")
        folder = Folder()
        copy = os.path.join(folder.name, os.path.basename(file) or "model")
        try:
            shutil.copyfile(file, copy)
        except OSError as error:
            what = f"cannot read the model: {(error.strerror or str(error)).lower()}"
            raise Error("io", what, file=file, expected="a file that pack has made") from error
        self._open(folder, copy + sharp + name, [], None)

    @classmethod
    def _packed(cls, folder: Folder, path: str, notes: list[str], dump: str | None) -> Model:
        model = cls.__new__(cls)
        model._open(folder, path, notes, dump)
        return model

    def _open(self, folder: Folder, path: str, notes: list[str], dump: str | None) -> None:
        self._folder, self._path, self.notes, self.dump = folder, path, notes, dump
        with named(folder.name):
            inputs, outputs, self._run, self._open_session = _native.open(path)
        self._ports = [[_port(port) for port in ports] for ports in (inputs, outputs)]

    @property
    def inputs(self) -> list[Port]:
        return list(self._ports[0])

    @property
    def outputs(self) -> list[Port]:
        return list(self._ports[1])

    @property
    def name(self) -> str:
        return self.summary["name"]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The fields of ``arenite inspect --json``."""
        return self._answer("inspect", self._path)

    def to_bytes(self) -> bytes:
        """The file: of a model of a bundle, the whole bundle."""
        return Path(self._whole()).read_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file; one that is there is replaced at once or, where that fails, left as it was."""
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}-{id(self):x}")
        try:
            try:
                with open(draft, "xb") as file:
                    file.write(self.to_bytes())
                os.replace(draft, target)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise Error("io", f"cannot write the model: {(error.strerror or str(error)).lower()}", file=str(path)) from error

    def run(
        self,
        inputs: Any,
        *,
        on: str = "host",
        reset_each: bool = False,
        timeout: int = 3600,
        progress: Watch = None,
    ) -> Any:
        """Runs the model as ``arenite run`` does.

        :param inputs: the array of the one input; of several a dict by name, or a tuple in their order. One more leading axis than the input's makes a
            sequence of runs: state carries over from run to run, and the outputs are stacked in the same way. Floats for an integer input are quantised with
            its scale, float64 is rounded to float32; anything else of another dtype or shape is refused.
        :param on: ``host``, ``qemu:BOARD`` or ``serial:PORT``.
        :param reset_each: each run of a sequence starts with fresh state.
        :param timeout: the seconds of wall time that a board gets.
        :returns: the array of the one output, or a dict by name.
        :raises Error: for inputs that are wrong, and where the board is not installed.
        """
        arrays = _inputs(self, inputs)
        with named(self._folder.name), watching(progress) as watch:
            outputs, notes = self._run(arrays, on, reset_each, int(timeout), watch)
        warn(notes)
        return _outputs(self, outputs)

    def session(self) -> Session:
        """A session with fresh state, which keeps the model alive."""
        return Session(self)

    def bench(self, on: str | list[str], *, progress: Watch = None, **keywords: Any) -> Any:
        """Counts instructions, arena and stack on a board (``"qemu:mps2-an386"``), or on each of a list of them.

        Keywords are the options of ``arenite bench``: ``chip``, ``quick``, ``timeout``, and ``state``, the ``saved`` of a :class:`Training` or a path.
        """
        with _scratch() as folder:
            taken = {"on": on, **_with_state(keywords, folder)}
            found = self._answer("bench", self._path, taken=taken, progress=progress, also=folder)
        several = [Bench(_without(bench, "steps"), table(bench["steps"])) for bench in (found if isinstance(found, list) else [found])]
        return several[0] if isinstance(on, str) else several

    def eval(self, inputs: Any, labels: Any, *, reference: Any = None, progress: Watch = None, **keywords: Any) -> dict[str, Any]:
        """Accuracy on labelled inputs: the fields of ``arenite eval --json``.

        :param inputs: as of :meth:`run`, one sample for each index of the leading axis.
        :param labels: the right class of each, integers.
        :param reference: answers to compare with, such as PyTorch's.
        Keywords are the options of ``arenite eval``: ``on``, ``reset_each``, ``timeout``, and ``state``, the ``saved`` of a :class:`Training` or a path.
        """
        with _scratch() as folder:
            files = self._files(inputs, folder)
            extra = {"reference": None if reference is None else file_of(reference, folder, "reference")}
            words = ["eval", self._path, *(f"--inputs={file}" for file in files), f"--labels={file_of(labels, folder, 'labels')}"]
            taken = {**extra, **_with_state(keywords, folder)}
            found = self._answer(*words, taken=taken, progress=progress, also=folder)
        for each in (found, *found.get("evaluations", ())):
            if each.get("model") == self._path:
                each["model"] = os.path.basename(self._path)
        if "confusion" in found:
            found["confusion"] = np.asarray(found["confusion"], dtype=np.int64)
        return found

    def train(
        self,
        inputs: Any,
        labels: Any = None,
        *,
        rate: float,
        state: bytes | str | os.PathLike[str] | None = None,
        keep_gradients: bool = False,
        progress: Watch = None,
        **keywords: Any,
    ) -> Training:
        """Trains a model that was packed with ``train=True`` and a ``loss``, as ``arenite train`` does; the model itself stays as it is.

        :param inputs: as of :meth:`eval`, one sample for each index of the leading axis; in their order, where there is no ``seed``.
        :param labels: the right class of each, integers; of ``loss="mse"`` the targets, of ``"l2"`` nothing.
        :param rate: the learning rate.
        :param state: where to go on from: the ``saved`` of a training before, or a path.
        Keywords are the options of ``arenite train``: ``epochs`` or ``steps``, ``seed``, ``on``, ``timeout``.
        :raises Error: for a loss or parameters that are not finite, too: nothing is learnt then.
        """
        with _scratch() as folder:
            files = self._files(inputs, folder)
            saved, gradients = (os.path.join(folder, name) for name in ("state-out", "gradients.npz"))
            words = ["train", self._path, *(f"--inputs={file}" for file in files), f"--state-out={saved}"]
            if labels is not None:
                words.append(f"--labels={file_of(labels, folder, 'labels')}")
            taken = {"rate": rate, **_with_state({"state": state}, folder), **keywords}
            if keep_gradients:
                taken["keep_gradients"] = gradients
            found = self._answer(*words, taken=taken, progress=progress, also=folder)
            kept = None
            if keep_gradients:
                with np.load(gradients) as archive:
                    kept = dict(archive)
            losses = np.asarray(found["losses"], dtype=np.float32)
            return Training(_without(found, "losses"), losses, Path(saved).read_bytes(), kept)

    def generate(self, prompt: str, *, tokens: int, progress: Watch = None, **keywords: Any) -> str:
        """The text that a language model, packed with a ``tokenizer``, writes behind a prompt: as ``arenite generate``.

        :param tokens: so many, at most.
        Keywords are the options of ``arenite generate``: ``temperature``, ``top_k``, ``top_p``, ``stop``, ``chat``, ``seed``, ``on``, ``timeout``.
        """
        words = ["arenite", "generate", self._path, *options({"prompt": prompt, "tokens": tokens, **keywords})]
        with named(self._folder.name):
            return call(words, progress)[0].removesuffix("\n")

    def diff(
        self,
        reference: Any = None,
        *,
        inputs: Any = None,
        float: Model | None = None,
        progress: Watch = None,
        **keywords: Any,
    ) -> dict[str, Any]:
        """Every layer beside a reference: the fields of ``arenite diff --json``, with ``layers`` a table.

        :param reference: arrays by the traced tensor's name, or the path of a file of them.

        :param inputs: as of :meth:`run`, where the reference does not hold them.
        :param float: the float model that this integer one was made of: the noise of each layer on ``inputs``.
        Keywords are the options of ``arenite diff``: ``tolerance``, ``on``, ``timeout``.
        """
        with _scratch() as folder:
            words = ["diff", self._path]
            extra: dict[str, Any] = {}
            if float is not None:
                extra = {"float": float._path, "inputs": file_of(_named(self, inputs), folder, "inputs")}
            else:
                if reference is None:
                    raise Error("usage", "nothing to compare with is given", expected="reference=, or float= with inputs=")
                words.append(file_of(reference, folder, "reference"))
                if inputs is not None:
                    words += [f"--input={file}" for file in self._files(inputs, folder)]
            found = self._answer(*words, taken={**extra, **keywords}, progress=progress, also=folder)
        if "layers" in found:
            found["layers"] = table(found["layers"])
        return found

    def compare(self, other: Model, *, inputs: Any = None, progress: Watch = None, **keywords: Any) -> dict[str, Any]:
        """This model and another: the fields of ``arenite compare --json``. With ``inputs``, as of :meth:`run`, their outputs too."""
        with _scratch() as folder:
            words = ["compare", self._path, other._path]
            if inputs is not None:
                words += [f"--input={file}" for file in self._files(inputs, folder)]
            return self._answer(*words, taken=keywords, progress=progress, also=folder)

    def report(self, *, progress: Watch = None, **keywords: Any) -> str:
        """The model as one HTML page: graph, arena over time, steps. Keywords are the options of ``arenite report``: ``trace``, ``on``, …"""
        with _scratch() as folder, named(folder), named(self._folder.name):
            page = os.path.join(folder, "report.html")
            call(["arenite", "report", self._path, f"--output={page}", *options(keywords)], progress)
            return Path(page).read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        # The page's own scripts run in a frame that reaches nothing of the notebook.
        page = html.escape(self.report(), quote=True)
        return f'<iframe sandbox="allow-scripts" style="width: 100%; height: 40em; border: 0" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        ports = [", ".join(f"{port.name} {port.dtype}{list(port.shape)}" for port in ports) for ports in self._ports]
        return f"<arenite.Model {self.name!r} for {self.summary['target']}: {ports[0]} -> {ports[1]}>"

    def _whole(self) -> str:
        return self._path if os.path.exists(self._path) else self._path.rpartition("#")[0]

    def _answer(self, *words: str, taken: Mapping[str, Any] | None = None, progress: Watch = None, also: str | None = None) -> Any:
        with named(also or self._folder.name), named(self._folder.name):
            return answer([*words, *options(taken or {})], progress)

    def _files(self, inputs: Any, folder: str) -> list[str]:
        """Inputs as words ``NAME=FILE``."""
        ports = self.inputs
        given = in_order(inputs, [port.name for port in ports], "input")
        files = [file_of(value, folder, f"input{index}") for index, value in enumerate(given)]
        return [f"{port.name}={file}" for port, file in zip(ports, files)]


class Session:
    """Runs of one model, each on the state that the one before left: a stream. Threads that share one run one after the other."""

    def __init__(self, model: Model) -> None:
        self.model = model
        with named(model._folder.name):
            self._run, self._reset, self._state, self._set_state = model._open_session()

    def run(self, inputs: Any) -> Any:
        """One run, or a sequence of them; inputs and outputs are as of :meth:`Model.run`."""
        outputs, notes = self._run(_inputs(self.model, inputs))
        warn(notes)
        return _outputs(self.model, outputs)

    def reset(self) -> None:
        """Gives the state its initial value."""
        self._reset()

    @property
    def state(self) -> bytes:
        """The state's bytes, which a session of the same model continues from where they are set."""
        return self._state()

    @state.setter
    def state(self, value: bytes) -> None:
        self._set_state(bytes(value))


def load(path: str | os.PathLike[str]) -> Model:
    """Opens a model file; ``FILE#NAME`` is the model of that name in a bundle."""
    return Model(path)


def _port(parts: tuple[str, list[int], str, float, int]) -> Port:
    name, shape, dtype, scale, zero_point = parts
    return Port(name, tuple(shape), np.dtype({"f32": "float32"}.get(dtype, dtype)), scale, zero_point)


def _inputs(model: Model, inputs: Any) -> list[bytes]:
    names = [port.name for port in model.inputs]
    given = in_order(inputs, names, "input")
    return [npy(value, f"input `{name}`") for name, value in zip(names, given)]


def _named(model: Model, inputs: Any) -> Any:
    """Inputs as a dict, where there are several."""
    names = [port.name for port in model.inputs]
    if inputs is None:
        raise Error("usage", "float= without inputs=", expected="sample inputs of the model")
    return inputs if isinstance(inputs, (str, os.PathLike)) else dict(zip(names, in_order(inputs, names, "input")))


def _outputs(model: Model, outputs: list[tuple[list[int], str, bytearray]]) -> Any:
    arrays = [array_from(output) for output in outputs]
    return arrays[0] if len(arrays) == 1 else {port.name: array for port, array in zip(model.outputs, arrays)}


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def _with_state(keywords: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Options, with the path of a file where a state is given as bytes."""
    state = keywords.get("state")
    if not isinstance(state, (bytes, bytearray, memoryview)):
        return dict(keywords)
    path = os.path.join(folder, "state-in")
    Path(path).write_bytes(state)
    return {**keywords, "state": path}


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="arenite-")
