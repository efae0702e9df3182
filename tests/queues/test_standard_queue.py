"""A standard queue delivers twice, in any order, and to environments that die."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.queues.poller import DIED, FAILED, REPORTED
from tests.queues.runs import Run, Setting, run_all
from tests.support.processes import LocalServer

EACH = {"IDEMPOTENCY_BATCH": "each"}
EACH_REPORTING = {**EACH, "IDEMPOTENCY_PARTIAL_BATCH": "report"}

SETTINGS = (
    Setting("reporting", {}, reports=True, messages=800),
    Setting("checking_first", {}, reports=False, messages=500),
    Setting("raising", EACH_REPORTING, reports=True, messages=500, batch=50),
    Setting("raising", EACH, reports=False, messages=300),
)
UNGUARDED = Setting("reporting", {}, reports=True, messages=200, guarded=False)
POISONED = Setting("reporting", {}, reports=True, messages=40, poison=4)


@pytest.fixture(scope="module")
def runs(
    aws: LocalServer,
    layer_dir: Path,
    reported: list[Run],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Run]:
    every = (*SETTINGS, UNGUARDED, POISONED)
    found = run_all(every, aws.endpoint, layer_dir, tmp_path_factory.mktemp("ledgers"))
    reported += found[: len(SETTINGS)]
    return {run.setting.title: run for run in found}


@pytest.fixture(params=[setting.title for setting in SETTINGS])
def one(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    """One of the runs."""
    return runs[request.param]


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


def test_there_are_at_least_2000_messages_in_all(runs: dict[str, Run]) -> None:
    assert sum(runs[setting.title].sent for setting in SETTINGS) >= 2_000


def test_without_the_layer_the_same_bad_luck_repeats_side_effects(runs: dict[str, Run]) -> None:
    assert runs[UNGUARDED.title].verdict.unexplained


def test_only_a_message_that_always_fails_goes_to_the_dead_letter_queue(
    runs: dict[str, Run],
) -> None:
    run = runs[POISONED.title]
    dead = {each["MessageId"] for each in run.dead_letters}
    assert len(dead) == POISONED.poison
    assert dead == set(run.verdict.lost)
    assert run.verdict.once == run.sent - POISONED.poison
