"""Every line of the table of batch cases, and what must hold for all of them."""

from __future__ import annotations

import pytest

from tests.batches.cases import CASES, Case, delivered_again, run
from tests.batches.table import README, rendered

IDS = [f"{c.source}, {c.batch}, {c.partial}: {c.before} / {c.handler}" for c in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_handler_sees_and_the_source_is_answered_as_the_table_says(case: Case) -> None:
    came = run(case)
    assert (came.seen, came.answer, came.after) == (case.seen, case.answer, case.after)


def settings_of(case: Case) -> list[bool]:
    """What the mapping may be set to: whether it reads ``batchItemFailures``.

    A handler that reports, and the setting ``report``, say that it does.
    """
    reports = case.handler.startswith("reports") and case.seen and case.partial != "raise"
    return [True] if case.partial == "report" or reports else [True, False]


# Where the event is one unit its records have no state of their own.
OF_RECORDS = [case for case in CASES if case.batch != "whole"]


@pytest.mark.parametrize("case", OF_RECORDS)
def test_a_record_that_is_not_done_is_delivered_again(case: Case) -> None:
    came = run(case)
    not_done = {
        letter
        for letter, state in zip(case.letters, came.after.split(), strict=True)
        if state != "done"
    }
    for setting in settings_of(case):
        again = delivered_again(case, came.raw_answer, mapping_reports=setting)
        assert not_done <= set(again), f"lost with mapping_reports={setting}"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_record_stays_claimed_when_the_invocation_is_over(case: Case) -> None:
    assert "claimed" not in run(case).after.split()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_unit_is_reported_once(case: Case) -> None:
    outcomes = run(case).world.outcomes
    ids = [outcome.record_id for outcome in outcomes]
    assert len(ids) == len(set(ids)) == (1 if case.batch == "whole" else len(case.letters))


def test_the_readme_has_the_table_as_it_is() -> None:
    assert rendered() in README.read_text("utf-8")
