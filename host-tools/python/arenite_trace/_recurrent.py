"""Converters of LSTM, GRU and RNN: the products with the whole sequence at once, those with the state step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._builder import Builder, Unsupported
from ._operators import Arguments, chosen, converts, cut, reshaped

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass
class Cell:
    """One direction of one layer."""

    kind: str
    w_ih: str
    w_hh: str
    b_ih: str | None
    b_hh: str | None
    #: Prefix of the operators' names.
    part: str

    @property
    def gates(self) -> int:
        return GATES[self.kind]


def _product(b: Builder, x: str, weight: str, bias: str | None, part: str) -> str:
    b.set_layout(weight, "OI")
    shape = (*b.shape(x)[:-1], b.shape(weight)[0])
    return b.emit("linear", [x, weight, bias], shape=shape, part=part)


def _step(b: Builder, cell: Cell, own: str, h: str | None, c: str | None, part: str) -> tuple[str, str | None]:
    """The next hidden state, and the next cell state of an LSTM; ``own`` is the product with the input, an absent state is 0."""
    n = b.shape(own)[1] // cell.gates
    shape = (b.shape(own)[0], n)

    def two(op: str, x: str, y: str, name: str) -> str:
        return b.emit(op, [x, y], shape=shape, part=f"{part}.{name}")

    def one(op: str, x: str, name: str) -> str:
        return b.emit(op, [x], shape=shape, part=f"{part}.{name}")

    # Without a state, its product is the bias alone.
    seen = cell.b_hh if h is None else _product(b, h, cell.w_hh, cell.b_hh, f"{part}.state")

    def gate(of: str, index: int, name: str) -> str:
        along = len(b.shape(of)) - 1
        return cut(b, of, along, index * n, (index + 1) * n, part=f"{part}.{name}")

    if cell.kind == "gru":
        names = ("reset", "update", "new")
        mine = [gate(own, i, f"own_{name}") for i, name in enumerate(names)]
        theirs = None if seen is None else [gate(seen, i, f"state_{name}") for i, name in enumerate(names)]
        sums = mine[:2] if theirs is None else [two("add", mine[i], theirs[i], f"{names[i]}_sum") for i in range(2)]
        update = one("sigmoid", sums[1], "update")
        candidate = mine[2]
        if theirs is not None:
            term = two("mul", one("sigmoid", sums[0], "reset"), theirs[2], "reset_state")
            candidate = two("add", candidate, term, "new_sum")
        candidate = one("tanh", candidate, "new")
        # (1 - z) * n + z * h
        if h is None:
            return two("sub", candidate, two("mul", update, candidate, "moved"), "h"), None
        moved = two("mul", update, two("sub", h, candidate, "difference"), "moved")
        return two("add", candidate, moved, "h"), None

    total = own if seen is None else b.emit("add", [own, seen], shape=b.shape(own), part=f"{part}.sum")
    if cell.kind != "lstm":
        return one(cell.kind.removeprefix("rnn_"), total, "h"), None
    kept = one("sigmoid", gate(total, 0, "own_input"), "input")
    candidate = one("tanh", gate(total, 2, "own_cell"), "candidate")
    state = two("mul", kept, candidate, "c" if c is None else "added")
    if c is not None:
        forget = one("sigmoid", gate(total, 1, "own_forget"), "forget")
        state = two("add", two("mul", forget, c, "kept"), state, "c")
    output = one("sigmoid", gate(total, 3, "own_output"), "output")
    return two("mul", output, one("tanh", state, "bounded"), "h"), state


def _first(b: Builder, state: str | None) -> str | None:
    return None if state is None or b.is_zero(state) else state


def _cell(kind: str) -> None:
    @converts(f"{kind}_cell")
    def convert(b: Builder, a: Arguments) -> Any:
        x = a["input"]
        states = a["hx"] if kind == "lstm" else [a["hx"], None]
        h, c = (_first(b, state) for state in states)
        cell = Cell(kind, a["w_ih"], a["w_hh"], a["b_ih"], a["b_hh"], "")
        own = _product(b, x, cell.w_ih, cell.b_ih, ".input")
        h, c = _step(b, cell, own, h, c, "")
        return [h, c] if kind == "lstm" else h


def _sequence(kind: str) -> None:
    @converts(kind)
    def convert(b: Builder, a: Arguments) -> Any:
        if "batch_sizes" in a:
            raise Unsupported(f"{kind} of a packed sequence", "give a tensor: the device runs the plan of one length")
        if a["train"] and a["dropout"]:
            raise Unsupported(f"{kind} is in training mode", "use eval()")
        per = 2 + 2 * bool(a["has_biases"])
        ways = 2 if a["bidirectional"] else 1
        if len(a["params"]) != per * ways * a["num_layers"]:
            raise Unsupported(f"{kind} with a projection", "leave proj_size out, and put a Linear behind")
        first = [_first(b, state) for state in (a["hx"] if isinstance(a["hx"], list) else [a["hx"]])]
        return _layers(b, a, kind, per, ways, (first + [None])[:2])


def _layers(b: Builder, a: Arguments, kind: str, per: int, ways: int, first: Sequence[str | None]) -> list[Any]:
    x, time = a["input"], 1 if a["batch_first"] else 0
    last: list[list[Any]] = [[], []]
    sequences: list[str] = []
    for index in range(a["num_layers"] * ways):
        layer, way = divmod(index, ways)
        w_ih, w_hh, *biases = a["params"][index * per : (index + 1) * per]
        b_ih, b_hh = biases or (None, None)
        cell = Cell(kind, w_ih, w_hh, b_ih, b_hh, f".l{layer}" + (".reverse" if way else ""))
        n = b.shape(x)[1 - time]
        shape = (n, b.shape(w_hh)[1])
        states = [
            None if state is None else chosen(b, state, 0, index, shape, part=f"{cell.part}.{name}0")
            for state, name in zip(first, "hc", strict=True)
        ]
        sequence, *ends = _direction(b, cell, x, time, states, reverse=bool(way))
        for end, of in zip(ends, last, strict=True):
            of.append(end)
        sequences = [sequence] if way == 0 else [*sequences, sequence]
        if way == ways - 1:
            x = sequences[0]
            if ways == 2:
                wide = (*b.shape(x)[:2], 2 * b.shape(x)[2])
                x = b.emit("concat", sequences, {"axis": 2}, shape=wide, part=f".l{layer}.both")
    results: list[Any] = [x]
    for position, final in enumerate(last[: 2 if kind == "lstm" else 1], start=1):
        results.append(_stacked(b, final, "_hc"[position]) if b.is_used(position) else None)
    return results


def _stacked(b: Builder, states: Sequence[str], name: str) -> str:
    """The last states of all layers, ``[layers, N, hidden]``."""
    shape = b.shape(states[0])
    rows = [reshaped(b, state, (1, *shape), 1, f".{name}_n.{i}") for i, state in enumerate(states)]
    return rows[0] if len(rows) == 1 else b.emit("concat", rows, {"axis": 0}, shape=(len(rows), *shape), part=f".{name}_n")


def _direction(b: Builder, cell: Cell, x: str, time: int, states: Sequence[str | None], reverse: bool) -> list[Any]:
    """The hidden states as a sequence, and the last ones."""
    seen = _product(b, x, cell.w_ih, cell.b_ih, f"{cell.part}.input")
    steps, n = b.shape(x)[time], b.shape(x)[1 - time]
    h, c = states
    found: dict[int, str] = {}
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        part = f"{cell.part}.t{t}"
        own = chosen(b, seen, time, t, (n, b.shape(seen)[2]), part=f"{part}.own")
        h, c = _step(b, cell, own, h, c, part)
        one = (n, 1, b.shape(h)[1]) if time else (1, n, b.shape(h)[1])
        found[t] = reshaped(b, h, one, 1 - time, f"{part}.row")
    shape = list(b.shape(found[0]))
    shape[time] = steps
    rows = [found[t] for t in range(steps)]
    y = rows[0] if steps == 1 else b.emit("concat", rows, {"axis": time}, shape=shape, part=f"{cell.part}.sequence")
    return [y, h, c]


for _kind in GATES:
    _cell(_kind)
    _sequence(_kind)
