"""The payload's fingerprint on every path, and results that are kept in memory."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lambda_once.claims.cache import MAX_CACHED_BYTES, ResultCache
from lambda_once.errors import IdempotencyPayloadMismatchError
from lambda_once.record import COMPLETED, Record, StoredResult
from tests.faults import app
from tests.faults.conftest import NewFunction
from tests.faults.function import Answer, Function, Log, Table, new_order, now_ms
from tests.support.fault_proxy import FaultProxy, status
from tests.support.processes import wait_until

PAYLOAD = {"IDEMPOTENCY_PAYLOAD": "amount"}
CACHE = {"IDEMPOTENCY_CACHE": "2"}


def is_mismatch(answer: Answer) -> bool:
    return isinstance(answer.error, IdempotencyPayloadMismatchError)


def running(function: Function, order: str, runs: Counter[str], amount: int) -> threading.Thread:
    """An invocation whose handler waits at its gate."""
    app.GATES[order] = threading.Event()
    thread = threading.Thread(target=lambda: function.invoke(order, amount=amount))
    thread.start()
    wait_until(lambda: runs[order] == 1, 20, "the first handler to start")
    return thread


def only_item(proxy: FaultProxy, stored: Table) -> dict[str, object]:
    item = stored.item(proxy.requests("PutItem")[0].body["Item"]["id"]["S"])
    assert item is not None
    return item


# --- The payload ----------


def test_the_same_payload_is_replayed_and_another_is_refused(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str], log: Log
) -> None:
    function, order = new_function(**PAYLOAD), new_order()
    first = function.invoke(order, amount=1)
    before = only_item(proxy, stored)
    assert is_mismatch(function.invoke(order, amount=2))
    assert log.outcomes()[-1] == "mismatch"
    assert function.invoke(order, amount=1).result == first.result
    assert only_item(proxy, stored) == before
    assert runs[order] == 1


def test_the_fingerprint_is_stored_with_the_claim_and_holds_no_payload(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    new_function(**PAYLOAD).invoke(new_order(), amount="4111 1111")
    claim = proxy.requests("PutItem")[0].body["Item"]
    assert len(claim["fingerprint"]["S"]) == 64
    assert "4111" not in str(claim)


def test_another_payload_is_refused_while_the_first_is_in_progress(
    new_function: NewFunction, runs: Counter[str]
) -> None:
    function, order = new_function(**PAYLOAD), new_order()
    first = running(function, order, runs, amount=1)
    assert is_mismatch(function.invoke(order, amount=2))
    app.GATES[order].set()
    first.join()
    assert runs[order] == 1


def test_another_payload_does_not_wait_for_the_first(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function = new_function(**PAYLOAD, IDEMPOTENCY_IN_PROGRESS="wait")
    order = new_order()
    first = running(function, order, runs, amount=1)
    assert is_mismatch(function.invoke(order, amount=2))
    assert "GetItem" not in proxy.counts()
    app.GATES[order].set()
    first.join()


def test_another_payload_that_takes_the_key_while_we_wait_is_refused_then(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function = new_function(**PAYLOAD, IDEMPOTENCY_IN_PROGRESS="wait")
    order = new_order()
    first = running(function, order, runs, amount=1)
    answers: list[Answer] = []
    waiter = threading.Thread(target=lambda: answers.append(function.invoke(order, amount=1)))
    waiter.start()
    wait_until(lambda: "GetItem" in proxy.counts(), 20, "the first poll")
    item = only_item(proxy, stored)
    stored.put({**item, "owner": {"S": "another"}, "fingerprint": {"S": "0" * 64}})
    waiter.join()
    assert is_mismatch(answers[0])
    app.GATES[order].set()
    first.join()


def test_another_payload_is_refused_from_memory_too(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function, order = new_function(**PAYLOAD, **CACHE), new_order()
    function.invoke(order, amount=1)
    proxy.reset()
    assert is_mismatch(function.invoke(order, amount=2))
    assert function.invoke(order, amount=1).result == {"paid": order, "run": 1}
    assert proxy.counts() == {}


@pytest.mark.parametrize(("earlier", "later"), [({}, PAYLOAD), (PAYLOAD, {})], ids=["on", "off"])
def test_switching_the_comparison_on_or_off_keeps_the_records_of_before(
    new_function: NewFunction,
    runs: Counter[str],
    earlier: dict[str, str],
    later: dict[str, str],
) -> None:
    order = new_order()
    first = new_function(**earlier).invoke(order, amount=1)
    assert new_function(**later).invoke(order, amount=2).result == first.result
    assert runs[order] == 1


# --- Results in memory ----------


def test_what_ran_here_is_replayed_without_a_request(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], log: Log
) -> None:
    function, order = new_function(**CACHE), new_order()
    first = function.invoke(order)
    proxy.reset()
    assert function.invoke(order).result == first.result
    assert proxy.counts() == {}
    assert log.outcomes() == ["executed", "replayed"]


def test_what_was_replayed_once_is_replayed_without_a_request(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    order = new_order()
    first = new_function().invoke(order)
    function = new_function(**CACHE)
    proxy.reset()
    assert [function.invoke(order).result for _ in range(3)] == [first.result] * 3
    assert proxy.counts() == {"PutItem": 1}


def test_nothing_is_kept_unless_asked_for(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function, order = new_function(), new_order()
    function.invoke(order)
    proxy.reset()
    function.invoke(order)
    assert proxy.counts() == {"PutItem": 1}


def test_two_environments_keep_nothing_in_common(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    order = new_order()
    new_function(**CACHE).invoke(order)
    proxy.reset()
    new_function(**CACHE).invoke(order)
    assert proxy.counts() == {"PutItem": 1}


def test_what_a_caller_does_to_a_result_does_not_reach_the_next(
    new_function: NewFunction, runs: Counter[str]
) -> None:
    function, order = new_function(**CACHE), new_order()
    function.invoke(order)
    function.invoke(order).result["paid"] = "changed"
    assert function.invoke(order).result == {"paid": order, "run": 1}


def test_a_result_in_memory_ends_with_its_record(
    new_function: NewFunction, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    function, order = new_function(**CACHE, IDEMPOTENCY_RETENTION="1s"), new_order()
    function.invoke(order)
    expires_at_s = int(str(only_item(proxy, stored)["expires_at"]["N"]))  # type: ignore[index]
    wait_until(lambda: now_ms() // 1000 > expires_at_s, 20, "the record to expire")
    assert function.invoke(order).result == {"paid": order, "run": 2}


def test_a_long_result_is_not_kept(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function, order = new_function(**CACHE), new_order()
    function.invoke(order, do="big")
    proxy.reset()
    assert function.invoke(order, do="big").result is not None
    assert proxy.counts()["PutItem"] == 1


@pytest.mark.parametrize("operation", ["UpdateItem", "handler"])
def test_only_what_is_recorded_is_kept(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str], operation: str
) -> None:
    function, order = new_function(**CACHE), new_order()
    proxy.inject(operation, status(400, "AccessDeniedException"))
    function.invoke(order, do="raise" if operation == "handler" else "return")
    proxy.reset()
    function.invoke(order)
    assert proxy.counts()["PutItem"] == 1


def test_an_omitted_result_is_omitted_from_memory_too(
    new_function: NewFunction, proxy: FaultProxy, runs: Counter[str]
) -> None:
    function, order = new_function(**CACHE, IDEMPOTENCY_RESULT="omit"), new_order()
    assert function.invoke(order).result == {"paid": order, "run": 1}
    proxy.reset()
    answer = function.invoke(order)
    assert (answer.result, answer.error) == (None, None)
    assert proxy.counts() == {}


def completed(name: str, *, expires_at_s: int = 2_000, size: int = 1) -> Record:
    return Record(name, COMPLETED, "me", 0, expires_at_s, None, StoredResult("text", b"1" * size))


def test_the_longest_unused_makes_room() -> None:
    cache = ResultCache(2)
    cache.put(completed("a"))
    cache.put(completed("b"))
    assert cache.get("a", 0) is not None
    cache.put(completed("c"))
    assert [cache.get(name, 0) is not None for name in "abc"] == [True, False, True]


def test_a_record_is_kept_through_the_second_of_its_expiry_and_no_longer() -> None:
    cache = ResultCache(2)
    cache.put(completed("a", expires_at_s=10))
    assert cache.get("a", 10_999) is not None
    assert cache.get("a", 11_000) is None


def test_the_longest_result_that_is_kept() -> None:
    cache = ResultCache(2)
    cache.put(completed("a", size=MAX_CACHED_BYTES))
    cache.put(completed("b", size=MAX_CACHED_BYTES + 1))
    assert [cache.get(name, 0) is not None for name in "ab"] == [True, False]


def test_threads_may_share_it() -> None:
    cache = ResultCache(5)

    def use(number: int) -> None:
        name = str(number % 9)
        cache.put(completed(name))
        found = cache.get(name, 0)
        assert found is None or found.id == name

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(use, range(5_000)))
    assert sum(cache.get(str(number), 0) is not None for number in range(9)) == 5
