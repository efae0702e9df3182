"""A FIFO queue: as a standard one, and each message group in its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.queues.ledger import out_of_order
from tests.queues.poller import DIED, FAILED, REPORTED
from tests.queues.runs import Run, Setting, run_all
from tests.support.processes import LocalServer

EACH = {"IDEMPOTENCY_BATCH": "each"}
EACH_REPORTING = {**EACH, "IDEMPOTENCY_PARTIAL_BATCH": "report"}

SETTINGS = (
    Setting("reporting_in_order", {}, reports=True, messages=250, groups=25),
    Setting("raising", EACH_REPORTING, reports=True, messages=150, groups=15),
    Setting("raising", EACH, reports=False, messages=150, groups=15),
)


@pytest.fixture(scope="module")
def runs(
    aws: LocalServer,
    layer_dir: Path,
    reported: list[Run],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Run]:
    found = run_all(SETTINGS, aws.endpoint, layer_dir, tmp_path_factory.mktemp("ledgers"))
    reported += found
    return {run.setting.title: run for run in found}


@pytest.fixture(params=[setting.title for setting in SETTINGS])
def one(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    """One of the runs."""
    return runs[request.param]


def test_the_side_effects_of_a_group_happen_in_its_order(one: Run) -> None:
    assert out_of_order(one.effects) == []


def test_each_side_effect_happens_once_unless_the_environment_died_before_recording_it(
    one: Run,
) -> None:
    assert one.verdict.unexplained == ()
    assert one.verdict.once + one.verdict.after_death == one.sent


def test_no_message_is_lost(one: Run) -> None:
    assert one.verdict.lost == ()


def test_each_message_ends_as_one_completed_record_or_was_said_to_be_unrecorded(one: Run) -> None:
    # On a slow machine the deadline can part a success from its completing write.
    unrecorded = one.sent - one.statuses["COMPLETED"]
    assert sum(one.statuses.values()) == one.sent
    assert unrecorded <= one.outcomes.get("unrecorded", 0)


def test_no_message_goes_to_the_dead_letter_queue(one: Run) -> None:
    assert one.dead_letters == []


def test_the_run_had_duplicates_failures_deaths_and_replays(one: Run) -> None:
    assert one.copies
    assert one.endings[DIED]
    assert one.endings[REPORTED if one.setting.reports else FAILED]
    assert one.outcomes["replayed"]
