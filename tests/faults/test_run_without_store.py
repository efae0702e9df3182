"""IDEMPOTENCY_STORE_FAILURE=run never runs what is known to have run, or to be running."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from lambda_once.claims import claiming
from lambda_once.errors import IdempotencyInProgressError, IdempotencyStoreError
from lambda_once.store import dynamodb
from tests.faults import app
from tests.faults.conftest import NewFunction
from tests.faults.function import Answer, Table, in_time, new_order
from tests.support.fault_proxy import Fault, FaultProxy, status, unavailable
from tests.support.processes import wait_until

DENIED = status(400, "AccessDeniedException")
SILENT_REFUSAL = status(400, "ConditionalCheckFailedException")


def test_a_stored_result_that_cannot_be_read_is_an_error(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run")
    order = new_order()
    function.invoke(order, do="big")
    proxy.inject("GetItem", DENIED, times=100)
    assert isinstance(function.invoke(order, do="big").error, IdempotencyStoreError)
    assert runs[order] == 1


def test_an_item_in_the_way_that_cannot_be_read_is_an_error(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run")
    order = new_order()
    function.invoke(order)
    proxy.inject("PutItem", SILENT_REFUSAL)
    proxy.inject("GetItem", DENIED, times=100)
    assert isinstance(function.invoke(order).error, IdempotencyStoreError)
    assert runs[order] == 1


@pytest.mark.parametrize("fault", [DENIED, unavailable()], ids=["denied", "unavailable"])
def test_a_poll_that_fails_is_an_error(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], fault: Fault
) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run", IDEMPOTENCY_IN_PROGRESS="wait")
    order = new_order()
    app.GATES[order] = threading.Event()
    first = threading.Thread(target=lambda: function.invoke(order))
    first.start()
    wait_until(lambda: runs[order] == 1, 20, "the first handler to start")
    proxy.inject("GetItem", fault, times=100)
    assert isinstance(function.invoke(order).error, IdempotencyStoreError)
    app.GATES[order].set()
    first.join()
    assert runs[order] == 1


def test_the_end_of_waiting_is_an_error(new_function: NewFunction, runs: Counter[str]) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run", IDEMPOTENCY_IN_PROGRESS="wait")
    order = new_order()
    app.GATES[order] = threading.Event()
    first = threading.Thread(target=lambda: function.invoke(order))
    first.start()
    wait_until(lambda: runs[order] == 1, 20, "the first handler to start")
    answer = function.invoke(order, remaining_ms=1_000)
    assert isinstance(answer.error, IdempotencyInProgressError)
    assert in_time(answer)
    app.GATES[order].set()
    first.join()
    assert runs[order] == 1


def test_a_foreign_item_in_the_way_is_an_error(
    new_function: NewFunction, stored: Table, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run")
    order = new_order()
    function.invoke(order)
    stored.change(proxy.requests("PutItem")[0].body["Item"]["id"]["S"], status={"S": "PAID"})
    assert isinstance(function.invoke(order).error, IdempotencyStoreError)
    assert runs[order] == 1


def test_a_claim_that_fails_leaves_the_handler_time_to_run(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function = new_function(IDEMPOTENCY_STORE_FAILURE="run")
    function.invoke(new_order())
    proxy.inject("*", unavailable(), times=1_000)
    order = new_order()
    answer: Answer = function.invoke(order, remaining_ms=3_000)
    assert answer.result == {"paid": order, "run": 1}
    assert in_time(answer)


def test_repeating_a_claim_leaves_half_of_the_time_to_the_handler(
    new_function: NewFunction, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb, "ATTEMPTS", 1_000)
    monkeypatch.setattr(dynamodb, "LONGEST_PAUSE_MS", 50)
    monkeypatch.setattr(claiming, "GIVE_BACK_BUDGET_MS", 0)
    function = new_function()
    function.invoke(new_order())
    proxy.inject("PutItem", unavailable(), times=1_000)
    answer = function.invoke(new_order(), remaining_ms=6_000)
    assert isinstance(answer.error, IdempotencyStoreError)
    assert answer.left_ms > 6_000 // 3
