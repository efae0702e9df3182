"""The same step for many units at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# How many requests are under way at once; the store keeps as many connections.
WIDTH = 16


def side_by_side(job: Callable[[T], None], units: Sequence[T]) -> None:
    """Do ``job`` for all; come back when all are done. Raises what the first that failed raised."""
    if len(units) < 2:
        for unit in units:
            job(unit)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(WIDTH, len(units))) as pool:
        for _ in pool.map(job, units):
            pass
