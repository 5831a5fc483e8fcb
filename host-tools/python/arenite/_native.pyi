from collections.abc import Callable, Sequence
from typing import Any

VERSION: str

_Port = tuple[str, list[int], str, float, int]
_Array = tuple[list[int], str, bytearray]
_Progress = Callable[[str, int, int], Any]
_Outputs = tuple[list[_Array], list[str]]
_Session = tuple[
    Callable[[Sequence[bytes]], _Outputs],
    Callable[[], None],
    Callable[[], bytes],
    Callable[[bytes], None],
]

def call(words: Sequence[str], progress: _Progress | None, /) -> tuple[str, list[str], bool]: ...
def open(
    path: str, /
) -> tuple[
    list[_Port],
    list[_Port],
    Callable[[Sequence[bytes], str, bool, int, _Progress | None], _Outputs],
    Callable[[], _Session],
]: ...
