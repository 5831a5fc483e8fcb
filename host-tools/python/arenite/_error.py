"""The one exception of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Error(Exception):
    """An error as the programs print it, and in fields: what is wrong, where, what was expected, what to do."""

    #: ``input``, ``unsupported``, ``ambiguous``, ``weights``, ``does_not_fit``, ``io``, ``usage`` or ``internal``.
    kind: str
    #: The plain statement, without place and remedy.
    what: str
    #: The file that it is in.
    file: str | None
    #: The place in the file or the network: a line, a layer, a tensor.
    where: str | None
    #: The expectation.
    expected: str | None
    #: The remedy.
    help: str | None

    def __init__(
        self,
        kind: str,
        what: str,
        file: str | None = None,
        where: str | None = None,
        expected: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(kind, what, file, where, expected, help)
        self.kind, self.what, self.file, self.where, self.expected, self.help = kind, what, file, where, expected, help

    def __str__(self) -> str:
        places = "".join(f"{place}: " for place in (self.file, self.where) if place)
        expected = f"; expected {self.expected}" if self.expected else ""
        remedy = f"\n  help: {self.help}" if self.help else ""
        return f"{places}{self.what}{expected}{remedy}"


@contextmanager
def named(folder: str) -> Iterator[None]:
    """Errors of work on the files of a temporary ``folder`` call them by their names alone."""
    try:
        yield
    except Error as error:
        fields = [field and field.replace(f"{folder}/", "").replace(f"{folder}\\", "") for field in error.args]
        if fields == list(error.args):
            raise
        raise Error(*fields) from None
