"""All invariants hold on every schedule of every scenario, up to the bounds in ``scenarios``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from lambda_once.claims import protocol
from tests.protocol.explorer import Explorer, Totals
from tests.protocol.model import Scenario
from tests.protocol.replay import Node
from tests.protocol.rules import INVARIANTS
from tests.protocol.scenarios import MIN_STATES, PLAIN, SCENARIOS
from tests.support import report

LONG = os.environ.get("LAMBDA_ONCE_LONG") == "1"

FAULTS = ("refuse", "silence", "give_up", "slow")
DEATHS = ("die", "kill")


@pytest.fixture(scope="module")
def explored() -> Iterator[list[Totals]]:
    """What was explored without a violation; it goes into the report at the end."""
    totals: list[Totals] = []
    yield totals
    report.write("protocol", summary(totals), scenarios=[each._asdict() for each in totals])


def summary(totals: list[Totals]) -> str:
    kinds = sum((each.kinds for each in totals), Counter[str]())
    return (
        f"protocol: all invariants hold in {len(totals)} scenarios:"
        f" {sum(each.schedules for each in totals):,} schedules, which are the paths through"
        f" {sum(each.states for each in totals):,} worlds and {kinds.total():,} steps,"
        f" {sum(kinds[kind] for kind in FAULTS):,} of them faults"
        f" and {sum(kinds[kind] for kind in DEATHS):,} deaths"
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_invariants_hold(scenario: Scenario, explored: list[Totals]) -> None:
    if LONG:
        scenario = scenario._replace(faults=scenario.long_faults)
    totals = Explorer(scenario).explore()
    assert totals.states >= MIN_STATES[scenario.name]
    assert totals.schedules > totals.states
    explored.append(totals)


def test_every_kind_of_step_is_taken() -> None:
    brief = next(scenario for scenario in SCENARIOS if scenario.deletes)
    waiting = next(scenario for scenario in SCENARIOS if scenario.wait)
    kinds = set[str]()
    for scenario in (brief, waiting):
        kinds |= set(Explorer(scenario._replace(faults=1)).explore().kinds)
    assert kinds == {
        "start", "answer", "return", "raise", "wake", "receive", "deliver", "expire", "advance",
        *FAULTS, *DEATHS,
    }  # fmt: skip


def count_without_merging(explorer: Explorer) -> int:
    """The number of schedules, each walked to its end."""
    ends, worlds = 0, [explorer.first_world()]
    while worlds:
        moves = list(explorer.moves(worlds.pop()))
        worlds += [move.world for move in moves]
        ends += not moves
    return ends


def test_merging_equal_worlds_loses_no_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = PLAIN._replace(faults=1)
    merged = Explorer(scenario).explore()
    # Without the memory of where the code has stood before, no two worlds are equal.
    monkeypatch.setattr(Node, "after", Node.after_anew)
    assert count_without_merging(Explorer(scenario)) == merged.schedules


def test_two_explorations_are_alike() -> None:
    scenario = PLAIN._replace(faults=1)
    assert Explorer(scenario).explore() == Explorer(scenario).explore()


def test_checks_the_invariants_that_the_protocol_states() -> None:
    stated = re.findall(r"^(I\d)  ", protocol.__doc__ or "", re.MULTILINE)
    assert set(stated) == INVARIANTS
