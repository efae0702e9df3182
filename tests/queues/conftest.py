"""A local SQS and DynamoDB, and the report of all runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.queues.runs import Run
from tests.support import report
from tests.support.ministack import running_ministack
from tests.support.processes import LocalServer


@pytest.fixture(scope="session")
def aws() -> Iterator[LocalServer]:
    """One server that speaks SQS and DynamoDB."""
    with running_ministack(("sqs", "dynamodb")) as server:
        yield server


@pytest.fixture(scope="session")
def reported() -> Iterator[list[Run]]:
    """Runs that are put into this list are reported."""
    runs: list[Run] = []
    yield runs
    if runs:
        report.write("queues", _summary(runs), runs=[run.figures() for run in runs])


def _summary(runs: list[Run]) -> str:
    """One sentence with the sums."""
    died = sum(run.endings.get("died", 0) for run in runs)
    failed = sum(run.endings.get("failed", 0) for run in runs)
    reported = sum(run.endings.get("reported failures", 0) for run in runs)
    return (
        f"queues: {sum(run.sent for run in runs):,} messages"
        f" in {sum(len(run.deliveries) for run in runs):,} deliveries"
        f" ({sum(run.copies for run in runs):,} of them copies, {failed} failed,"
        f" {reported} reported failures, {died} died); side effects once:"
        f" {sum(run.verdict.once for run in runs):,}, again after a death:"
        f" {sum(run.verdict.after_death for run in runs)}, again without one:"
        f" {sum(len(run.verdict.unexplained) for run in runs)}, lost:"
        f" {sum(len(run.verdict.lost) for run in runs)}, dead letters:"
        f" {sum(len(run.dead_letters) for run in runs)}"
    )
