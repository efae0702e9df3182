"""After the handler the caller comes first: its result, or the function's own failure."""

from __future__ import annotations

from collections import Counter

import pytest

from lambda_once import record
from lambda_once.claims import settling, times
from lambda_once.claims.claimer import Claimer
from lambda_once.claims.services import Target
from lambda_once.errors import IdempotencyStoreError
from lambda_once.record import StoredResult
from lambda_once.store import dynamodb
from lambda_once.store.port import Refusal
from tests.faults import app
from tests.faults.conftest import NewFunction
from tests.faults.function import Log, Table, new_order, now_ms
from tests.support.bench import Bench, Step, store_error
from tests.support.fault_proxy import FaultProxy, status, throttled
from tests.support.processes import wait_until

DENIED = status(400, "AccessDeniedException")
RESULT = StoredResult("text", b"1")


def record_id(proxy: FaultProxy) -> str:
    return str(proxy.requests("PutItem")[0].body["Item"]["id"]["S"])


def test_a_completion_is_repeated_more_often_than_other_requests(
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dynamodb, "LONGEST_PAUSE_MS", 50)
    proxy.inject("UpdateItem", throttled(), times=dynamodb.ATTEMPTS + 2)
    order = new_order()
    assert new_function().invoke(order).result == {"paid": order, "run": 1}
    assert stored.status(record_id(proxy)) == "COMPLETED"


def test_an_unrecorded_result_is_given_told_and_free_again_after_the_lease(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str], log: Log
) -> None:
    function, order = new_function(), new_order()
    function.invoke(new_order())
    proxy.reset()
    proxy.inject("UpdateItem", DENIED, times=100)
    answer = function.invoke(order, remaining_ms=2_500)
    assert answer.result == {"paid": order, "run": 1}
    last = log.lines()[-1]
    assert (last["level"], last["code"]) == ("ERROR", "AccessDeniedException")
    assert "its result could not be recorded" in last["message"]
    item = stored.item(record_id(proxy))
    assert item is not None
    assert item["status"] == {"S": "INPROGRESS"}
    assert function.invoke(order).error is not None
    lease_ms = int(item["in_progress_until"]["N"])
    wait_until(lambda: now_ms() > lease_ms, 20, "the lease to end")
    proxy.reset()
    assert function.invoke(order).result == {"paid": order, "run": 2}


def test_the_caller_is_not_kept_to_its_deadline_by_a_completion_that_fails(
    new_function: NewFunction,
    proxy: FaultProxy,
    runs: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "COMPLETION_BUDGET_MS", 500)
    proxy.inject("UpdateItem", throttled(), times=10_000)
    answer = new_function().invoke(new_order(), remaining_ms=600_000)
    assert answer.result is not None
    assert answer.left_ms > 300_000


@pytest.mark.parametrize(("do", "error"), [("raise", app.CardDeclinedError), ("exit", SystemExit)])
def test_a_release_that_fails_hides_nothing(
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    log: Log,
    do: str,
    error: type[BaseException],
) -> None:
    proxy.inject("DeleteItem", DENIED, times=100)
    answer = new_function().invoke(new_order(), do=do)
    assert type(answer.error) is error
    assert answer.error.__context__ is None
    assert log.outcomes()[-1] == "release_failed"
    assert stored.status(record_id(proxy)) == "INPROGRESS"


def opened(bench: Bench, *, remaining_ms: int = 3_000) -> Claimer:
    deadline_ms = bench.clock.ms + remaining_ms
    target = Target("orders#1", None, 3_600, "event", "request-1", deadline_ms)
    unit = Claimer(bench.services, target)
    assert unit.open(wait=False) is None
    bench.store.by_ms.clear()
    return unit


def test_with_little_time_left_a_result_is_still_recorded_and_the_answer_still_in_time() -> None:
    bench = Bench()
    unit = opened(bench)
    bench.clock.ms = unit.target.deadline_ms - 130
    unit.complete(RESULT)
    assert bench.store.by_ms == [unit.target.deadline_ms - times.SETTLE_RESERVE_MS]
    assert bench.kinds() == [record.EXECUTED]


def test_where_the_platform_does_not_end_it_at_the_deadline_a_late_result_is_recorded() -> None:
    bench = Bench()
    unit = opened(bench)
    bench.clock.ms = unit.target.deadline_ms + 500
    unit.complete(RESULT)
    assert bench.store.by_ms == [bench.clock.ms + times.COMPLETION_BUDGET_MS]
    assert bench.kinds() == [record.EXECUTED]


def test_a_claim_answered_after_the_deadline_starts_nothing_however_long_its_lease() -> None:
    bench = Bench({"IDEMPOTENCY_LEASE": "1h"})
    bench.store.plan("claim", Step(takes_ms=3_500))
    with pytest.raises(IdempotencyStoreError) as refused:
        opened(bench)
    assert refused.value.code == "AnsweredTooLate"
    assert bench.store.only_record() is None


def test_an_item_in_the_way_that_cannot_be_read_and_is_our_own_is_given_back() -> None:
    bench = Bench(tells=False)
    bench.store.plan("claim", Step(answer=(Refusal(None),)))
    bench.store.plan("read", Step(error=store_error("GetItem")))
    with pytest.raises(IdempotencyStoreError):
        opened(bench)
    assert bench.store.only_record() is None
