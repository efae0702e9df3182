"""Every fault on every operation, once and for ever: the outcome that the table promises."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lambda_once.claims import waiting as polling
from lambda_once.errors import IdempotencyInProgressError, IdempotencyStoreError
from lambda_once.store import dynamodb
from tests.faults import app
from tests.faults.conftest import NewFunction
from tests.faults.function import Answer, Function, Log, Table, in_time, new_order, now_ms
from tests.faults.table import (
    CLAIM,
    COMPLETION,
    FOR_EVER,
    ONCE,
    READ,
    RELEASE,
    TRIALS,
    Expected,
    Kind,
    Trial,
)
from tests.support.fault_proxy import FaultProxy, hold, status
from tests.support.processes import wait_until

# Little enough for the read timeout that the slow faults are longer than, and enough to repeat.
REMAINING_MS = 2_900

every_trial = pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
once_and_for_ever = pytest.mark.parametrize("times", [ONCE, FOR_EVER], ids=["once", "for ever"])

SILENT_REFUSAL = status(400, "ConditionalCheckFailedException", "The conditional request failed")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the pauses between attempts are does not matter for what comes of them."""
    monkeypatch.setattr(dynamodb, "FIRST_PAUSE_MS", 4)
    monkeypatch.setattr(polling, "FIRST_POLL_MS", 10)


class Subject:
    """A function with faults between it and the store, and one order."""

    def __init__(self, function: Function, proxy: FaultProxy, stored: Table, log: Log) -> None:
        self.function = function
        self.proxy = proxy
        self.stored = stored
        self.log = log
        self.order = new_order()

    def invoke(self, **event: Any) -> Answer:
        return self.function.invoke(self.order, remaining_ms=REMAINING_MS, **event)

    def record_id(self) -> str:
        """As the first claim named it."""
        item: Mapping[str, Any] = self.proxy.requests("PutItem")[0].body["Item"]
        return str(item["id"]["S"])

    def check(
        self, answer: Answer, expected: Expected, operation: str, trial: Trial, runs: int
    ) -> None:
        """All that the table says about the outcome."""
        assert in_time(answer)
        assert _kind_of(answer) == expected.gets
        assert runs == expected.runs
        assert self.stored.status(self.record_id()) == expected.stored
        last = self.log.lines()[-1]
        assert last["outcome"] == expected.logged
        if expected.gets == "store error":
            _check_error(answer.error, operation, trial, self.function.table)
        if expected.logged in ("unrecorded", "release_failed"):
            assert f"{operation} on table {self.function.table} failed" in last["message"]
            assert trial.is_named_by(last["code"])


def _kind_of(answer: Answer) -> str:
    if answer.error is None:
        return "result"
    return "user's error" if isinstance(answer.error, app.CardDeclinedError) else "store error"


def _check_error(error: BaseException | None, operation: str, trial: Trial, table: str) -> None:
    """The AWS code, the operation and the table, as attributes and in the message."""
    assert isinstance(error, IdempotencyStoreError), error
    assert (error.operation, error.table) == (operation, table)
    assert trial.is_named_by(error.code), error
    assert str(error).startswith(f"{operation} on table {table} failed: {error.code}: ")
    assert error.detail


def _give_up_early(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a completion that never works it does not matter whether it is tried 30 times or 4."""
    if times == FOR_EVER:
        monkeypatch.setattr(dynamodb, "COMPLETION_ATTEMPTS", 4)


@pytest.fixture(scope="module")
def functions() -> dict[str, Function]:
    """Kept for the whole file: each has made its clients by the second test."""
    return {}


@pytest.fixture
def subject(
    functions: dict[str, Function],
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    log: Log,
) -> Subject:
    if "fail" not in functions:
        functions["fail"] = new_function()
    return Subject(functions["fail"], proxy, stored, log)


@pytest.fixture
def waiting(
    functions: dict[str, Function],
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    log: Log,
) -> Iterator[Subject]:
    if "wait" not in functions:
        functions["wait"] = new_function(IDEMPOTENCY_IN_PROGRESS="wait")
    yield Subject(functions["wait"], proxy, stored, log)
    for gate in app.GATES.values():
        gate.set()


@every_trial
@once_and_for_ever
def test_on_the_claim(
    subject: Subject, trial: Trial, times: int, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the claim"] += 1
    subject.proxy.inject("PutItem", trial.fault, times=times)
    answer = subject.invoke()
    subject.check(answer, CLAIM[trial.kind, times], "PutItem", trial, runs[subject.order])


@every_trial
def test_after_a_failed_claim_the_retry_runs_at_once(
    subject: Subject, trial: Trial, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the claim, then retried"] += 1
    subject.proxy.inject("PutItem", trial.fault, times=FOR_EVER)
    assert subject.invoke().error is not None
    subject.proxy.reset()
    assert subject.invoke().result == {"paid": subject.order, "run": 1}
    assert runs[subject.order] == 1


@every_trial
@once_and_for_ever
def test_on_the_completion(
    subject: Subject,
    trial: Trial,
    times: int,
    runs: Counter[str],
    tried: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried["on the completion"] += 1
    _give_up_early(times, monkeypatch)
    subject.proxy.inject("UpdateItem", trial.fault, times=times)
    answer = subject.invoke()
    subject.check(answer, COMPLETION[trial.kind, times], "UpdateItem", trial, runs[subject.order])
    assert answer.result == {"paid": subject.order, "run": 1}


@every_trial
@once_and_for_ever
def test_on_a_part_of_a_large_result(
    subject: Subject,
    trial: Trial,
    times: int,
    runs: Counter[str],
    tried: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried["on writing a part"] += 1
    _give_up_early(times, monkeypatch)
    # The claim and the first part pass, then the second part is broken.
    subject.proxy.inject("PutItem", trial.fault, times=times, after=2)
    answer = subject.invoke(do="big")
    # A part that was written once is not the result: the record is complete with all of them only.
    kind = Kind.PASSING if trial.kind is Kind.LOST else trial.kind
    expected = COMPLETION[kind, times]
    subject.check(answer, expected, "PutItem", trial, runs[subject.order])
    assert answer.result is not None
    if expected.stored == "COMPLETED":
        assert subject.invoke(do="big").result == answer.result
        assert runs[subject.order] == 1


@every_trial
@once_and_for_ever
def test_on_the_release(
    subject: Subject, trial: Trial, times: int, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the release"] += 1
    subject.proxy.inject("DeleteItem", trial.fault, times=times)
    answer = subject.invoke(do="raise")
    subject.check(answer, RELEASE[trial.kind, times], "DeleteItem", trial, runs[subject.order])


@every_trial
@once_and_for_ever
def test_on_the_read_after_a_refusal_without_the_item(
    subject: Subject, trial: Trial, times: int, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the read of the item in the way"] += 1
    first = subject.invoke()
    subject.proxy.inject("PutItem", SILENT_REFUSAL)
    subject.proxy.inject("GetItem", trial.fault, times=times)
    answer = subject.invoke()
    expected = READ[trial.kind, times]
    subject.check(answer, expected, "GetItem", trial, runs[subject.order] - 1)
    assert answer.result in (first.result, None)


@every_trial
@once_and_for_ever
def test_on_the_read_of_a_part(
    subject: Subject, trial: Trial, times: int, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the read of a part"] += 1
    first = subject.invoke(do="big")
    subject.proxy.inject("GetItem", trial.fault, times=times, after=1)
    answer = subject.invoke(do="big")
    expected = READ[trial.kind, times]
    subject.check(answer, expected, "GetItem", trial, runs[subject.order] - 1)
    assert answer.result in (first.result, None)


@every_trial
@once_and_for_ever
def test_on_a_poll_while_waiting(
    waiting: Subject, trial: Trial, times: int, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on a poll"] += 1
    gate = app.GATES[waiting.order] = threading.Event()
    firsts: list[Answer] = []
    first = threading.Thread(target=lambda: firsts.append(waiting.invoke()))
    first.start()
    wait_until(lambda: runs[waiting.order] == 1, 20, "the first handler to start")
    waiting.proxy.inject("GetItem", trial.fault, times=times)
    second: list[Answer] = []
    waiter = threading.Thread(target=lambda: second.append(waiting.invoke()))
    waiter.start()
    wait_until(lambda: "GetItem" in waiting.proxy.counts(), 20, "the first poll")
    gate.set()
    first.join()
    waiter.join()
    assert runs[waiting.order] == 1
    assert in_time(second[0])
    assert _kind_of(second[0]) == READ[trial.kind, times].gets
    if isinstance(second[0].error, IdempotencyInProgressError):
        # The time for waiting went by, and nothing more was learned than that it is in progress.
        assert (trial.name, times) == ("slow reply", FOR_EVER)
    elif second[0].error is not None:
        _check_error(second[0].error, "GetItem", trial, waiting.function.table)
    else:
        assert second[0].result == firsts[0].result


def test_a_claim_that_arrives_after_it_was_given_up_blocks_no_longer_than_its_lease(
    subject: Subject, runs: Counter[str], tried: Counter[str]
) -> None:
    tried["on the claim, arriving late"] += 1
    arrive = threading.Event()

    subject.proxy.inject("PutItem", hold(arrive, before=True), times=FOR_EVER)
    assert isinstance(subject.invoke().error, IdempotencyStoreError)
    sent = len(subject.proxy.requests("PutItem"))
    arrive.set()
    record_id = subject.record_id()
    wait_until(lambda: subject.stored.status(record_id) == "INPROGRESS", 20, "the late claim")
    subject.proxy.reset()
    item = subject.stored.item(record_id)
    assert item is not None
    lease_ms = int(item["in_progress_until"]["N"])
    wait_until(lambda: now_ms() > lease_ms, 20, "its lease to end")
    assert subject.invoke().result == {"paid": subject.order, "run": 1}
    assert sent >= 1
    assert runs[subject.order] == 1
