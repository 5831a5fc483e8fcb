"""Arrays of any library as the files that the programs read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._error import Error


def array_of(value: Any, where: str) -> np.ndarray:
    """``value`` as an array in C order and in the machine's order of bytes; a tensor of another device is fetched."""
    if isinstance(value, np.ma.MaskedArray):
        raise Error("usage", "it is a masked array", where=where, expected="numbers in every place", help="fill it with numpy.ma.filled")
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise Error("usage", f"a {type(value).__name__} is no array: {reason}", where=where, expected="numbers") from error
    if array.dtype.kind not in "biuf":
        raise Error("usage", f"it holds {_held(array)}", where=where, expected="an array of numbers or truth values")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def npy(value: Any, where: str) -> bytes:
    """The bytes of a ``.npy`` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array_of(value, where), allow_pickle=False)
    return file.getvalue()


def array_from(parts: tuple[Sequence[int], str, bytearray]) -> np.ndarray:
    """An output of the native module as an array, which may be written."""
    shape, dtype, data = parts
    return np.frombuffer(data, dtype=np.dtype(dtype).newbyteorder("<")).reshape(shape)


def in_order(given: Any, names: Sequence[str], what: str) -> list[Any]:
    """The value for each of ``names``: by name in a mapping; one alone, or a tuple or list in their order."""
    if isinstance(given, Mapping):
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise Error("usage", f"the model has no {what} `{unknown[0]}`", expected=_list(names))
        missing = [name for name in names if name not in given]
        if missing:
            raise Error("usage", f"{what} `{missing[0]}` is not given", expected=_list(names))
        return [given[name] for name in names]
    if isinstance(given, tuple) or (isinstance(given, list) and len(names) != 1):
        if len(given) != len(names):
            raise Error("usage", f"{len(given)} {what}s are given", expected=f"{len(names)}: {_list(names)}")
        return list(given)
    if len(names) != 1:
        raise Error("usage", f"one {what} is given", expected=f"{len(names)}, in a dict: {_list(names)}")
    return [given]


def file_of(given: Any, folder: str, name: str, *, loads: bool = False) -> str:
    """The path of a ``.npy`` or ``.npz`` file: a path as it is, an array or a dict of arrays written into ``folder``.

    With ``loads``, also anything that gives batches: a data loader, a generator, a list.
    """
    if is_path(given):
        return words_path(given)
    if loads and not isinstance(given, Mapping) and not hasattr(given, "__array__"):
        given = _joined(given, name)
    if isinstance(given, Mapping):
        path = os.path.join(folder, f"{name}.npz")
        # Names go into the archive's directory, not into keywords: `file` would be one of numpy.savez.
        import zipfile

        with zipfile.ZipFile(path, "w") as archive:
            for key, value in given.items():
                archive.writestr(f"{key}.npy", npy(value, f"{name}, `{key}`"))
        return path
    path = os.path.join(folder, f"{name}.npy")
    Path(path).write_bytes(npy(given, name))
    return path


def is_path(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike))


def words_path(given: Any) -> str:
    """A path as a word of a command line, where a hyphen would begin an option or mean the standard input."""
    path = os.fspath(given)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    return f".{os.sep}{path}" if path.startswith("-") else path


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Columns by name: whole numbers as int64, with a gap as float64 and NaN there, words as objects."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> np.ndarray:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, (bool, int, float)) for value in known):
        if len(known) == len(values):
            return np.asarray(values)
        return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    # One by one: lists of one length would be taken for axes.
    for index, value in enumerate(values):
        column[index] = value
    return column


def _joined(batches: Iterable[Any], name: str) -> Any:
    """Batches one behind the other, each sample a network's input with a batch of one. Labels beside them are left out."""
    columns: dict[Any, list[np.ndarray]] = {}
    count = 0
    try:
        iterator = iter(batches)
    except TypeError:
        what = f"{name} is a {type(batches).__name__}"
        raise Error("usage", what, expected="a path, an array, a dict of arrays, or something that gives batches") from None
    for count, batch in enumerate(iterator, 1):
        if isinstance(batch, (tuple, list)) and batch:
            batch = batch[0]
        for key, value in batch.items() if isinstance(batch, Mapping) else [(None, batch)]:
            array = array_of(value, f"{name}, batch {count - 1}")
            if array.ndim == 0:
                raise Error("usage", "it is a number", where=f"{name}, batch {count - 1}", expected="an array whose first axis is the batch")
            columns.setdefault(key, []).append(array[:, np.newaxis])
    if not columns:
        raise Error("usage", f"{name} gives nothing", expected="at least one batch", help="an iterator that was used up gives nothing more")
    if any(len(arrays) != count for arrays in columns.values()):
        raise Error("usage", f"batches of {name} hold different inputs", expected=_list([str(key) for key in columns]))
    try:
        joined = {key: np.concatenate(arrays) for key, arrays in columns.items()}
    except ValueError as error:
        raise Error("usage", f"batches of {name} do not fit together: {error}", expected="one shape but for the first axis") from error
    return joined[None] if list(joined) == [None] else joined


def _held(array: np.ndarray) -> str:
    kinds = {"O": "Python objects", "U": "text", "S": "text", "c": "complex numbers", "M": "dates", "m": "times", "V": "records"}
    return kinds.get(array.dtype.kind, str(array.dtype))


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
