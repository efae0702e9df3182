"""Compares the ledger with what was delivered: each side effect once, or explained."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.deaths.delivery import Board


class Line(NamedTuple):
    """One line of the ledger."""

    what: str
    order: str
    delivery: str
    request: str
    run: str
    at_ns: int


class Double(NamedTuple):
    """A side effect that happened although the order was not done by it, and why."""

    order: str
    run: str
    why: str
    gap_ms: int


def read_ledger(path: Path) -> list[Line]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted((Line(**line) for line in lines), key=lambda line: line.at_ns)


def outcomes_in(log: str) -> list[dict[str, Any]]:
    """What lambda-once has logged, in JSON, among the other output."""
    found = [json.loads(line) for line in log.splitlines() if line.startswith('{"timestamp"')]
    return [entry for entry in found if "outcome" in entry]


# The layer's own word that a run is done and nothing says so: its time ran out.
UNRECORDED = ("unrecorded", "claim_lost")


class Audit:
    """The events of one test. `log` is what lambda-once has printed in all environments."""

    def __init__(self, board: Board, ledger: Iterable[Line], log: str) -> None:
        self._board = board
        self._lines = list(ledger)
        self._deliveries = {each.id: each for each in board.delivered}
        self._unrecorded = {
            entry["requestId"] for entry in outcomes_in(log) if entry["outcome"] in UNRECORDED
        }

    def doubles(self) -> list[Double]:
        """The doubles that are explained; AssertionError on any other, and on all else amiss."""
        return [double for order in self._board.orders for double in self._check(order)]

    def _check(self, order: str) -> list[Double]:
        of_order = [line for line in self._lines if line.order == order]
        self._check_that_runs_follow_each_other(of_order)
        effects = [line for line in of_order if line.what == "effect"]
        done_by = self._run_that_counts(order, effects)
        return [self._explained(each, of_order) for each in effects if each.run != done_by]

    def _run_that_counts(self, order: str, effects: list[Line]) -> str | None:
        """The run whose result every caller was given; None if no result could be recorded."""
        runs = {line.run: line for line in effects}
        given = [
            each.ending.result
            for each in self._board.delivered
            if each.order == order and each.ending.kind == "result"
        ]
        assert given, f"{order} was never done"
        for result in given:
            assert result["shipped"] == order
            assert result["run"] in runs, f"{order}: a result without a run"
        counts = {r["run"] for r in given if runs[r["run"]].request not in self._unrecorded}
        assert len(counts) <= 1, f"{order}: different results {counts}"
        return counts.pop() if counts else None

    def _explained(self, effect: Line, of_order: Iterable[Line]) -> Double:
        """The death between this side effect and the completing write; there must be one."""
        if effect.request in self._unrecorded:
            return Double(effect.order, effect.run, "unrecorded", 0)
        ending = self._deliveries[effect.delivery].ending
        assert ending.kind == "died", f"{effect}: shipped twice without a death: {ending}"
        gone_ns = self._gone_ns(effect, of_order)
        assert gone_ns is None or gone_ns > effect.at_ns, f"{effect}: dead before its side effect"
        gap_ms = 0 if gone_ns is None else (gone_ns - effect.at_ns) // 1_000_000
        return Double(effect.order, effect.run, ending.how, gap_ms)

    def _gone_ns(self, line: Line, of_order: Iterable[Line]) -> int | None:
        """When the run began to die, by the kill or its own last line; None if nobody saw it."""
        if killed_ns := self._deliveries[line.delivery].ending.killed_ns:
            return killed_ns
        dying = [each.at_ns for each in of_order if each.run == line.run and each.what == "dying"]
        return dying[0] if dying else None

    def _check_that_runs_follow_each_other(self, of_order: list[Line]) -> None:
        """No run begins while an earlier one of the same order is alive, or after it is done."""
        begins = [line for line in of_order if line.what == "begin"]
        for earlier, later in itertools.pairwise(begins):
            ending = self._deliveries[earlier.delivery].ending
            over = ending.kind in ("died", "declined") or earlier.request in self._unrecorded
            assert over, f"{later} began after {earlier}: {ending}"
            gone_ns = self._gone_ns(earlier, of_order)
            assert gone_ns is None or gone_ns < later.at_ns, f"{later} began while {earlier} ran"
