"""Calls of the command line: keywords are its options, and what it prints as JSON is the answer."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Union

from . import _native
from ._error import Error

#: Told of long work: the stage, and how much of how much of it is done (0 of 0 where that is not known).
Progress = Callable[[str, int, int], Any]
#: The values of `progress=`: a function, ``True`` for a bar of `tqdm`, or nothing.
Watch = Union[Progress, bool, None]


def options(keywords: Mapping[str, Any]) -> list[str]:
    """``keep_f32=["a", "b"]`` as ``--keep-f32 a --keep-f32 b``; ``True`` is an option without a value, a dict gives ``KEY=VALUE``."""
    words: list[str] = []
    for name, value in keywords.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        values = [f"{key}={held}" for key, held in value.items()] if isinstance(value, Mapping) else value
        for each in values if isinstance(values, (list, tuple)) else [values]:
            if not isinstance(each, (str, int, float, os.PathLike)):
                what = f"{name} is a {type(each).__name__}"
                raise Error("usage", what, expected="a word, a number, a path, True, or a list or dict of them")
            # One word: a value may begin with a hyphen.
            words.append(f"{option}={os.fspath(each) if isinstance(each, os.PathLike) else each}")
    return words


def call(words: list[str], progress: Watch = None) -> tuple[str, list[str], bool]:
    """Carries out a command line; its warnings are Python's as well."""
    with watching(progress) as watch:
        text, notes, good = _native.call(words, watch)
    warn(notes)
    return text, notes, good


def answer(words: list[str], progress: Watch = None) -> Any:
    """The JSON of a command of `arenite`."""
    text, _, _ = call(["arenite", *words, "--json"], progress)
    return json.loads(text)


def command(*words: str | os.PathLike[str], progress: Watch = None) -> str:
    """Carries out a command line of `pack` or `arenite` in this process, and returns what it prints.

    >>> arenite.command("arenite", "explain-code", "0x12ff0003").splitlines()[0]
    '0x12ff0003 Fault::Bounds'
    """
    return call([os.fspath(word) for word in words], progress)[0]


def warn(notes: list[str]) -> None:
    for note in notes:
        if note.startswith("warning: "):
            warnings.warn(note.removeprefix("warning: "), stacklevel=4)


class watching:
    """Who is told of progress: the function itself, or a bar that lasts as long as the work."""

    def __init__(self, progress: Watch) -> None:
        self.bar: Any = None
        self.progress = progress

    def __enter__(self) -> Progress | None:
        if self.progress is None or self.progress is False:
            return None
        if self.progress is not True:
            if not callable(self.progress):
                what = f"progress is a {type(self.progress).__name__}"
                raise Error("usage", what, expected="a function of stage, done and of, or True for a bar of tqdm")
            return self.progress
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise Error("usage", "progress=True wants tqdm, which is not installed", help="pip install tqdm, or pass a function") from error
        self.bar = tqdm(total=None)
        return self._told

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def _told(self, stage: str, done: int, of: int) -> None:
        if self.bar.desc != stage:
            self.bar.set_description_str(stage, refresh=False)
            self.bar.reset(total=of or None)
        self.bar.n = done
        self.bar.refresh()
