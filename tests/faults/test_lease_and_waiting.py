"""How long a claim lasts, and how long another waits for it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from lambda_once.errors import IdempotencyInProgressError, IdempotencyStoreError
from tests.faults import app
from tests.faults.conftest import NewFunction
from tests.faults.function import Answer, Context, Function, Table, in_time, new_order, now_ms
from tests.support.bench import Bench, Step, store_error
from tests.support.fault_proxy import FaultProxy, status
from tests.support.processes import wait_until

DENIED = status(400, "AccessDeniedException")
WAIT = {"IDEMPOTENCY_IN_PROGRESS": "wait"}
HOUR_MS = 3_600_000


class Calls:
    """Invocations side by side; `answers` in the order in which they end."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self._threads: list[threading.Thread] = []

    def start(self, function: Function, order: str, **given: Any) -> None:
        def call() -> None:
            self.answers.append(function.invoke(order, **given))

        self._threads.append(threading.Thread(target=call))
        self._threads[-1].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def calls(runs: Counter[str]) -> Calls:
    return Calls()


def claimed_item(proxy: FaultProxy, stored: Table, order_index: int = 0) -> dict[str, Any]:
    """The item of the claim that was asked for as the so-manieth."""
    record_id = proxy.requests("PutItem")[order_index].body["Item"]["id"]["S"]
    item = stored.item(record_id)
    assert item is not None
    return item


def leave_claimed(function: Function, proxy: FaultProxy, order: str, *, remaining_ms: int) -> None:
    """An owner that is gone without a word, as far as the store can tell."""
    proxy.inject("DeleteItem", DENIED)
    answer = function.invoke(order, do="raise", remaining_ms=remaining_ms)
    assert isinstance(answer.error, app.CardDeclinedError)


def lease_of(item: dict[str, Any]) -> int:
    return int(item["in_progress_until"]["N"])


def running(function: Function, order: str, calls: Calls, runs: Counter[str], **given: Any) -> None:
    """Start an invocation whose handler waits at its gate."""
    app.GATES[order] = threading.Event()
    calls.start(function, order, **given)
    wait_until(lambda: runs[order] == 1, 20, "the first handler to start")


# --- The lease ----------


def test_a_claim_ends_one_margin_after_its_owners_deadline(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(), new_order()
    before_ms = now_ms()
    leave_claimed(function, proxy, order, remaining_ms=10_000)
    lease_ms = lease_of(claimed_item(proxy, stored))
    assert before_ms + 11_000 <= lease_ms <= now_ms() + 11_000


def test_when_the_lease_of_a_dead_owner_has_ended_a_retry_runs(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(), new_order()
    function.invoke(new_order())
    proxy.reset()
    leave_claimed(function, proxy, order, remaining_ms=2_000)
    blocked = function.invoke(order).error
    assert isinstance(blocked, IdempotencyInProgressError)
    lease_ms = lease_of(claimed_item(proxy, stored))
    assert blocked.until_ms == lease_ms
    wait_until(lambda: now_ms() > lease_ms, 20, "the lease to end")
    assert function.invoke(order).result == {"paid": order, "run": 2}


def test_a_configured_lease_lengthens_the_claim_to_at_most_once(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(IDEMPOTENCY_LEASE="1h"), new_order()
    leave_claimed(function, proxy, order, remaining_ms=3_000)
    assert lease_of(claimed_item(proxy, stored)) > now_ms() + HOUR_MS - 60_000
    blocked = function.invoke(order).error
    assert isinstance(blocked, IdempotencyInProgressError)
    assert blocked.retry_after_s > 3_000
    assert runs[order] == 1


def test_a_configured_lease_never_shortens_the_claim(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(IDEMPOTENCY_LEASE="1s"), new_order()
    leave_claimed(function, proxy, order, remaining_ms=60_000)
    assert lease_of(claimed_item(proxy, stored)) > now_ms() + 50_000


def test_a_claim_does_not_expire_before_its_lease_however_short_the_retention(
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    calls: Calls,
) -> None:
    function, order = new_function(IDEMPOTENCY_RETENTION="1s"), new_order()
    running(function, order, calls, runs)
    item = claimed_item(proxy, stored)
    assert int(item["expires_at"]["N"]) * 1000 >= lease_of(item)
    started_ms = now_ms()
    wait_until(lambda: now_ms() > started_ms + 2_500, 20, "the retention to pass twice")
    assert isinstance(function.invoke(order).error, IdempotencyInProgressError)
    app.GATES[order].set()
    calls.join()
    assert runs[order] == 1


# --- The context ----------


def test_with_no_time_left_nothing_is_asked_and_nothing_runs(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    order = new_order()
    error = new_function().invoke(order, Context(0)).error
    assert isinstance(error, IdempotencyStoreError)
    assert error.code == "DeadlineExceeded"
    assert proxy.counts() == {}
    assert runs[order] == 0


def test_with_no_time_left_and_protection_waived_the_handler_runs(
    new_function: NewFunction, runs: Counter[str]
) -> None:
    order = new_order()
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run")
    assert function.invoke(order, Context(0)).result == {"paid": order, "run": 1}


class Nonsense:
    def get_remaining_time_in_millis(self) -> str:
        return "soon"


@pytest.mark.parametrize("context", [object(), None, Nonsense()], ids=["bare", "none", "nonsense"])
def test_a_context_that_cannot_say_how_much_time_is_left_counts_as_the_longest(
    new_function: NewFunction,
    proxy: FaultProxy,
    runs: Counter[str],
    context: object,
) -> None:
    function, order = new_function(), new_order()
    # `invoke` makes a context where it is given none.
    answer = function.call(order, context)
    assert answer.result == {"paid": order, "run": 1}
    claim = proxy.requests("PutItem")[0].body["Item"]
    assert lease_of(claim) > now_ms() + 800_000


# --- Waiting ----------


def test_the_result_that_arrives_while_waiting_is_given(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], calls: Calls
) -> None:
    function, order = new_function(**WAIT), new_order()
    running(function, order, calls, runs)
    for _ in range(3):
        calls.start(function, order)
    wait_until(lambda: proxy.counts().get("GetItem", 0) >= 3, 20, "all to poll")
    app.GATES[order].set()
    calls.join()
    assert [answer.result for answer in calls.answers] == [{"paid": order, "run": 1}] * 4
    assert runs[order] == 1


def test_waiting_reads_consistently_and_ever_more_rarely(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], calls: Calls
) -> None:
    function, order = new_function(**WAIT), new_order()
    running(function, order, calls, runs)
    function.invoke(order, remaining_ms=3_000)
    polls = proxy.requests("GetItem")
    assert all(poll.body["ConsistentRead"] is True for poll in polls)
    # Every 50 ms it would be 60.
    assert 1 <= len(polls) <= 9
    assert proxy.counts()["PutItem"] == 2
    app.GATES[order].set()
    calls.join()


def test_when_the_first_fails_one_that_waits_runs_and_the_others_get_its_result(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], calls: Calls
) -> None:
    function, order = new_function(**WAIT), new_order()
    running(function, order, calls, runs, do="raise")
    for _ in range(3):
        calls.start(function, order)
    wait_until(lambda: proxy.counts().get("GetItem", 0) >= 3, 20, "all to poll")
    app.GATES[order].set()
    calls.join()
    assert sum(isinstance(a.error, app.CardDeclinedError) for a in calls.answers) == 1
    assert [a.result for a in calls.answers if not a.error] == [{"paid": order, "run": 2}] * 3
    assert runs[order] == 2


def test_when_the_first_has_died_one_that_waits_runs_after_its_lease(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(**WAIT), new_order()
    function.invoke(new_order())
    proxy.reset()
    leave_claimed(function, proxy, order, remaining_ms=1_500)
    lease_ms = lease_of(claimed_item(proxy, stored))
    answer = function.invoke(order)
    assert answer.result == {"paid": order, "run": 2}
    assert now_ms() > lease_ms


def test_waiting_ends_in_time_before_the_own_deadline(
    new_function: NewFunction, runs: Counter[str], calls: Calls
) -> None:
    function, order = new_function(**WAIT), new_order()
    running(function, order, calls, runs)
    answer = function.invoke(order, remaining_ms=1_500)
    assert isinstance(answer.error, IdempotencyInProgressError)
    assert in_time(answer)
    app.GATES[order].set()
    calls.join()
    assert runs[order] == 1


def test_without_waiting_the_error_comes_with_the_first_request(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], calls: Calls
) -> None:
    function, order = new_function(), new_order()
    running(function, order, calls, runs)
    proxy.reset()
    assert isinstance(function.invoke(order).error, IdempotencyInProgressError)
    assert proxy.counts() == {"PutItem": 1}
    app.GATES[order].set()
    calls.join()


def test_when_the_last_look_takes_all_the_time_left_it_is_still_known_to_be_in_progress() -> None:
    bench = Bench({**WAIT, "IDEMPOTENCY_STORE_FAILURE": "run"})
    bench.engine.open({"orderId": 1}, bench.context(60_000))
    bench.store.plan("read", Step(takes_ms=2_800, error=store_error("GetItem")))
    with pytest.raises(IdempotencyInProgressError):
        bench.engine.open({"orderId": 1}, bench.context(3_000))
