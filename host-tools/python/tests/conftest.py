"""Cases by turns: a run of `cargo xtask test` takes some of them, by the commit."""

from __future__ import annotations

import os

import pytest

# Runs that together take every case, where their numbers follow each other: PyTorch takes a second and more to export each.
RUNS = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number = os.environ.get("ARENITE_TURN")
    if number is None:
        return
    waiting = [item for index, item in enumerate(items) if index % RUNS != int(number) % RUNS]
    items[:] = items[int(number) % RUNS :: RUNS]
    # The count is in pytest's last line.
    config.hook.pytest_deselected(items=waiting)
