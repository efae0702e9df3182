"""An invocation from event to answer: what is run, stored, reported and raised."""

from __future__ import annotations

import contextlib
import decimal
import json
from typing import Any

import pytest

from lambda_once import record
from lambda_once.claims.protocol import CLOCK_MARGIN_MS
from lambda_once.claims.services import UNKNOWN_REMAINING_MS
from lambda_once.errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyPayloadMismatchError,
    IdempotencyStoreError,
)
from lambda_once.record import COMPLETED, IN_PROGRESS, Record
from tests.support.bench import START_MS, Bench, Context, Step, store_error

EVENT = {"orderId": 7, "amount": 100}
KEY = {"IDEMPOTENCY_KEY": "orderId"}


class Handler:
    """Counts its runs; returns, or raises, what it is given."""

    def __init__(self, response: Any = None) -> None:
        self.events: list[Any] = []
        self._response = response

    def __call__(self, event: Any) -> Any:
        self.events.append(event)
        if isinstance(self._response, BaseException):
            raise self._response
        return self._response

    @property
    def runs(self) -> int:
        return len(self.events)


def only_record(bench: Bench) -> Record:
    existing = bench.store.only_record()
    assert existing is not None
    return existing


# --- First and again ------------------------------------------------------------------------------


def test_a_first_run_is_a_claim_and_a_completion() -> None:
    bench, handler = Bench(KEY), Handler({"paid": True})
    assert bench.invoke(EVENT, handler) == {"paid": True}
    assert bench.store.calls == ["claim", "complete"]
    assert bench.kinds() == [record.EXECUTED]


def test_the_handler_gets_the_very_event() -> None:
    bench, handler = Bench(KEY), Handler()
    event = dict(EVENT)
    bench.invoke(event, handler)
    assert handler.events[0] is event


@pytest.mark.parametrize("response", [None, 0, False, "", [], {}, "text", {"a": [1]}, b"raw"])
def test_a_repeat_gets_the_first_answer_and_runs_nothing(response: Any) -> None:
    bench = Bench(KEY)
    bench.invoke(EVENT, Handler(response))
    again = Handler("another answer")
    assert bench.invoke(EVENT, again) == response
    assert again.runs == 0
    assert bench.kinds() == [record.EXECUTED, record.REPLAYED]


def test_the_response_is_returned_as_the_handler_gave_it() -> None:
    response = {"price": decimal.Decimal("1.10")}
    assert Bench(KEY).invoke(EVENT, Handler(response)) is response


def test_what_the_handler_does_to_the_event_does_not_change_its_key() -> None:
    def handler(event: dict[str, Any]) -> str:
        event["orderId"] = "changed"
        return "done"

    bench, again = Bench(KEY), Handler()
    bench.invoke(dict(EVENT), handler)
    assert bench.invoke(dict(EVENT), again) == "done"
    assert again.runs == 0


def test_another_key_is_another_run() -> None:
    bench, handler = Bench(KEY), Handler()
    bench.invoke({"orderId": 1}, handler)
    bench.invoke({"orderId": 2}, handler)
    assert handler.runs == 2


def test_a_record_is_forgotten_after_its_retention() -> None:
    bench, handler = Bench({**KEY, "IDEMPOTENCY_RETENTION": "60"}), Handler()
    bench.invoke(EVENT, handler)
    bench.clock.ms += 60_000
    bench.invoke(EVENT, handler)
    assert handler.runs == 1
    bench.clock.ms += 1_000
    bench.invoke(EVENT, handler)
    assert handler.runs == 2


def test_another_scope_is_another_record() -> None:
    bench = Bench({**KEY, "IDEMPOTENCY_SCOPE": "orders-v2"})
    bench.invoke(EVENT, Handler())
    assert only_record(bench).id.startswith("orders-v2#")


def test_each_tenant_has_records_of_its_own() -> None:
    bench, handler = Bench(KEY), Handler()
    for tenant in ("blue", "green", "blue"):
        context = bench.context()
        context.tenant_id = tenant  # type: ignore[attr-defined]  # as the runtime client sets it
        bench.invoke(EVENT, handler, context)
    assert handler.runs == 2


def test_an_omitted_result_is_replayed_as_none() -> None:
    bench = Bench({**KEY, "IDEMPOTENCY_RESULT": "omit"})
    assert bench.invoke(EVENT, Handler("secret")) == "secret"
    assert bench.invoke(EVENT, Handler()) is None


# --- Failing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()]
)
def test_what_the_handler_raises_is_raised_untouched_after_the_release(
    fault: BaseException,
) -> None:
    bench = Bench(KEY)
    with pytest.raises(type(fault)) as raised:
        bench.invoke(EVENT, Handler(fault))
    assert raised.value is fault
    assert fault.__cause__ is None
    assert fault.__context__ is None
    assert bench.store.calls == ["claim", "release"]
    assert bench.kinds() == [record.RELEASED]


def test_a_retry_after_a_failure_runs() -> None:
    bench, retry = Bench(KEY), Handler("paid")
    with pytest.raises(ValueError, match="broken"):
        bench.invoke(EVENT, Handler(ValueError("broken")))
    assert bench.invoke(EVENT, retry) == "paid"
    assert retry.runs == 1


def test_a_release_that_fails_hides_no_failure_of_the_handler() -> None:
    bench = Bench(KEY)
    bench.store.plan("release", Step(applied=False, error=store_error("DeleteItem")))
    with pytest.raises(ValueError, match="broken"):
        bench.invoke(EVENT, Handler(ValueError("broken")))
    assert bench.kinds() == [record.RELEASE_FAILED]


@pytest.mark.parametrize("response", [{1, 2}, object(), "x" * 7_000_000])
def test_a_response_that_the_runtime_cannot_send_releases_and_is_left_to_the_runtime(
    response: object,
) -> None:
    bench = Bench(KEY)
    assert bench.invoke(EVENT, Handler(response)) is response
    assert bench.store.only_record() is None
    assert bench.kinds() == [record.RELEASED]


# --- In progress, mismatch ------------------------------------------------------------------------


def test_a_repeat_while_the_first_is_running_is_refused() -> None:
    bench, second = Bench(KEY), Handler()
    met: list[IdempotencyInProgressError] = []

    def handler(event: Any) -> str:
        with pytest.raises(IdempotencyInProgressError) as refused:
            bench.invoke(EVENT, second)
        met.append(refused.value)
        return "first"

    assert bench.invoke(EVENT, handler) == "first"
    assert second.runs == 0
    assert met[0].retry_after_s == 4
    assert bench.kinds() == [record.BLOCKED, record.EXECUTED]


def test_a_repeat_can_wait_for_the_first_result() -> None:
    bench, second = Bench({**KEY, "IDEMPOTENCY_IN_PROGRESS": "wait"}), Handler()
    first = bench.engine.open(EVENT, bench.context())
    first.next_call()
    bench.clock.on_sleep = lambda: first.succeeded("first")
    assert bench.invoke(EVENT, second) == "first"
    assert second.runs == 0
    assert bench.kinds() == [record.EXECUTED, record.REPLAYED]


def test_a_claim_left_by_a_dead_environment_ends_and_then_a_retry_runs() -> None:
    bench, retry = Bench(KEY), Handler()
    bench.engine.open(EVENT, bench.context(remaining_ms=3_000))
    bench.clock.ms += 3_000 + CLOCK_MARGIN_MS
    with pytest.raises(IdempotencyInProgressError):
        bench.invoke(EVENT, retry)
    bench.clock.ms += 1
    bench.invoke(EVENT, retry)
    assert retry.runs == 1


def test_an_old_owner_that_comes_back_changes_nothing_and_keeps_its_result() -> None:
    bench = Bench(KEY)
    old = bench.engine.open(EVENT, bench.context())
    old.next_call()
    bench.clock.ms += 3_000 + CLOCK_MARGIN_MS + 1
    bench.invoke(EVENT, Handler("new"))
    old.succeeded("old")
    assert old.answer() == "old"
    assert bench.invoke(EVENT, Handler()) == "new"
    assert bench.kinds() == [record.EXECUTED, record.LOST, record.REPLAYED]


def test_another_payload_under_the_same_key_is_refused() -> None:
    bench, second = Bench({**KEY, "IDEMPOTENCY_PAYLOAD": "amount"}), Handler()
    bench.invoke({"orderId": 7, "amount": 100, "note": "a"}, Handler("first"))
    assert bench.invoke({"orderId": 7, "amount": 100, "note": "b"}, second) == "first"
    with pytest.raises(IdempotencyPayloadMismatchError):
        bench.invoke({"orderId": 7, "amount": 999}, second)
    assert second.runs == 0
    assert bench.kinds() == [record.EXECUTED, record.REPLAYED, record.MISMATCHED]


# --- No key ---------------------------------------------------------------------------------------

MISSING = [{}, {"orderId": None}, {"orderId": ""}, {"orderId": []}, {"orderId": {"a": None}}]


@pytest.mark.parametrize("event", MISSING)
def test_an_event_without_key_is_refused_and_nothing_is_asked(event: Any) -> None:
    bench, handler = Bench(KEY), Handler()
    with pytest.raises(IdempotencyKeyMissingError, match="orderId"):
        bench.invoke(event, handler)
    assert (handler.runs, bench.store.calls) == (0, [])
    assert bench.kinds() == [record.KEY_MISSING]


@pytest.mark.parametrize("event", MISSING)
def test_an_event_without_key_runs_unprotected_if_configured(event: Any) -> None:
    bench, handler = Bench({**KEY, "IDEMPOTENCY_MISSING_KEY": "run"}), Handler("ran")
    assert [bench.invoke(event, handler) for _ in range(2)] == ["ran", "ran"]
    assert (handler.runs, bench.store.calls) == (2, [])
    assert bench.kinds() == [record.UNPROTECTED] * 2


@pytest.mark.parametrize("order_id", [0, False])
def test_zero_and_false_are_keys(order_id: object) -> None:
    bench, handler = Bench(KEY), Handler()
    for _ in range(2):
        bench.invoke({"orderId": order_id}, handler)
    assert handler.runs == 1


def test_without_an_expression_the_whole_event_is_the_key() -> None:
    bench, handler = Bench(), Handler()
    bench.invoke({"a": 1, "b": 2}, handler)
    bench.invoke({"b": 2, "a": 1}, handler)
    assert handler.runs == 1
    bench.invoke({"a": 1, "b": 3}, handler)
    assert handler.runs == 2


# --- The store fails ------------------------------------------------------------------------------


def test_a_store_that_cannot_be_asked_is_an_error_and_the_handler_does_not_run() -> None:
    bench, handler = Bench(KEY), Handler()
    bench.store.plan("claim", Step(applied=False, error=store_error()))
    with pytest.raises(IdempotencyStoreError, match="PutItem on table idempotency failed"):
        bench.invoke(EVENT, handler)
    assert handler.runs == 0
    (outcome,) = bench.outcomes
    assert (outcome.kind, outcome.code) == (record.STORE_FAILED, "Unavailable")


def test_a_store_that_cannot_be_asked_lets_the_handler_run_if_configured() -> None:
    bench, handler = Bench({**KEY, "IDEMPOTENCY_STORE_FAILURE": "run"}), Handler("ran")
    bench.store.plan("claim", Step(applied=False, error=store_error()))
    assert bench.invoke(EVENT, handler) == "ran"
    assert bench.store.calls == ["claim"]
    assert bench.kinds() == [record.UNPROTECTED]


@pytest.mark.parametrize("variable", ["IDEMPOTENCY_STORE_FAILURE", "IDEMPOTENCY_MISSING_KEY"])
def test_running_unprotected_does_not_extend_to_what_is_in_progress(variable: str) -> None:
    bench, second = Bench({**KEY, variable: "run"}), Handler()
    bench.engine.open(EVENT, bench.context())
    with pytest.raises(IdempotencyInProgressError):
        bench.invoke(EVENT, second)
    assert second.runs == 0


def test_a_result_that_cannot_be_recorded_still_reaches_the_caller() -> None:
    bench = Bench(KEY)
    bench.store.plan("complete", Step(applied=False, error=store_error("UpdateItem")))
    assert bench.invoke(EVENT, Handler("paid")) == "paid"
    assert bench.kinds() == [record.UNRECORDED]
    assert only_record(bench).status == IN_PROGRESS


def test_a_claim_that_may_have_been_written_is_given_back_so_that_a_retry_need_not_wait() -> None:
    bench, handler = Bench(KEY), Handler()
    bench.store.plan("claim", Step(error=store_error(maybe_applied=True)))
    with pytest.raises(IdempotencyStoreError):
        bench.invoke(EVENT, handler)
    bench.invoke(EVENT, handler)
    assert handler.runs == 1


def test_a_claim_answered_after_the_deadline_starts_no_handler() -> None:
    bench, handler = Bench(KEY), Handler()
    bench.store.plan("claim", Step(takes_ms=3_000))
    with pytest.raises(IdempotencyStoreError, match="AnsweredTooLate"):
        bench.invoke(EVENT, handler)
    assert handler.runs == 0
    assert bench.kinds() == [record.STORE_FAILED]


# --- Odd contexts ---------------------------------------------------------------------------------


def test_an_invocation_without_time_left_starts_no_handler() -> None:
    bench, handler = Bench(KEY), Handler()
    with pytest.raises(IdempotencyStoreError):
        bench.invoke(EVENT, handler, bench.context(remaining_ms=0))
    assert handler.runs == 0
    assert bench.store.only_record() is None


class Refusing:
    """A context whose method fails, or gives what is no number."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get_remaining_time_in_millis(self) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "context",
    [None, object(), {}, Refusing(None), Refusing("soon"), Refusing(TypeError("no"))],
    ids=["none", "object", "dict", "gives none", "gives text", "raises"],
)
def test_a_context_that_cannot_tell_the_time_counts_as_a_long_one(context: object) -> None:
    bench = Bench(KEY)
    bench.engine.open(EVENT, context)
    lease_ms = START_MS + UNKNOWN_REMAINING_MS + CLOCK_MARGIN_MS
    assert only_record(bench).in_progress_until_ms == lease_ms


# --- Every way in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [[1, 2], "text", 5, 0, False, b"bytes that are no JSON"])
def test_any_event_is_guarded(event: Any) -> None:
    bench, handler = Bench(), Handler("done")
    assert [bench.invoke(event, handler) for _ in range(2)] == ["done", "done"]
    assert handler.runs == 1


@pytest.mark.parametrize("event", [None, {}, [], ""])
def test_an_empty_event_has_no_key(event: Any) -> None:
    bench, handler = Bench(), Handler()
    with pytest.raises(IdempotencyKeyMissingError, match="empty"):
        bench.invoke(event, handler)
    assert handler.runs == 0


def test_every_outcome_is_reported_with_its_request_and_record() -> None:
    bench = Bench(KEY)
    bench.invoke(EVENT, Handler())
    bench.invoke(EVENT, Handler())
    assert {outcome.request_id for outcome in bench.outcomes} == {Context.aws_request_id}
    assert {outcome.record_id for outcome in bench.outcomes} == {only_record(bench).id}
    assert only_record(bench).status == COMPLETED


@pytest.mark.parametrize("variables", [KEY, {**KEY, "IDEMPOTENCY_PAYLOAD": "amount"}])
def test_no_error_message_quotes_the_event(variables: dict[str, str]) -> None:
    bench = Bench(variables)
    secret = "4111-1111-1111-1111"
    bench.engine.open({"orderId": secret, "amount": secret}, bench.context())
    with pytest.raises(IdempotencyError) as refused:
        bench.invoke({"orderId": secret, "amount": "another"}, Handler())
    assert secret not in str(refused.value)


def test_a_configured_lease_lets_a_dead_environments_event_run_at_most_once_in_that_time() -> None:
    bench, retry = Bench({**KEY, "IDEMPOTENCY_LEASE": "24h"}), Handler()
    bench.engine.open(EVENT, bench.context())
    bench.clock.ms += 24 * 3_600_000
    with pytest.raises(IdempotencyInProgressError):
        bench.invoke(EVENT, retry)
    assert retry.runs == 0


def test_no_outcome_quotes_the_event_or_the_response() -> None:
    secret = "4111-1111-1111-1111"
    event = {"orderId": secret, "amount": secret}
    bench = Bench({**KEY, "IDEMPOTENCY_PAYLOAD": "amount"})
    for response in (ValueError(secret), {secret, 1}, {"paid": secret}, None):
        with contextlib.suppress(ValueError):
            bench.invoke(event, Handler(response))
    for unusable in ({**event, "amount": "another"}, {"orderId": {secret: None}}):
        with pytest.raises(IdempotencyError):
            bench.invoke(unusable, Handler())
    assert bench.kinds() == [
        record.RELEASED,
        record.RELEASED,
        record.EXECUTED,
        record.REPLAYED,
        record.MISMATCHED,
        record.KEY_MISSING,
    ]
    assert not [outcome for outcome in bench.outcomes if secret in str(outcome)]


# --- HTTP -----------------------------------------------------------------------------------------

REQUEST = {
    "version": "2.0",
    "rawPath": "/orders",
    "headers": {"idempotency-key": "order-7"},
    "body": "100",
    "requestContext": {"http": {"method": "POST", "path": "/orders"}, "domainName": "shop.example"},
}


def problem(answer: Any) -> tuple[int, str, str | None]:
    """Of an answer in the shape of problem details: status, error and Retry-After."""
    assert answer["headers"]["content-type"] == "application/problem+json"
    error = json.loads(answer["body"])["error"]
    return answer["statusCode"], error, answer["headers"].get("retry-after")


def test_an_http_request_that_is_in_progress_is_answered_with_409_and_when_to_come_back() -> None:
    bench, second = Bench(), Handler()
    bench.engine.open(REQUEST, bench.context())
    answer = bench.invoke(REQUEST, second)
    assert problem(answer) == (409, "IdempotencyInProgressError", "4")
    assert second.runs == 0


def test_an_http_request_with_another_payload_is_answered_with_422() -> None:
    bench, second = Bench({"IDEMPOTENCY_PAYLOAD": "body"}), Handler()
    bench.invoke(REQUEST, Handler({"statusCode": 201}))
    answer = bench.invoke({**REQUEST, "body": "999"}, second)
    assert problem(answer) == (422, "IdempotencyPayloadMismatchError", None)
    assert second.runs == 0


def test_an_http_request_without_its_key_is_answered_with_400() -> None:
    bench, handler = Bench({"IDEMPOTENCY_KEY": "header(@, 'X-Order')"}), Handler()
    assert problem(bench.invoke(REQUEST, handler))[:2] == (400, "IdempotencyKeyMissingError")
    assert handler.runs == 0


def test_an_http_request_is_answered_with_503_where_the_store_cannot_be_asked() -> None:
    bench, handler = Bench(), Handler()
    bench.store.plan("claim", Step(applied=False, error=store_error()))
    assert problem(bench.invoke(REQUEST, handler))[:2] == (503, "IdempotencyStoreError")
    assert handler.runs == 0


@pytest.mark.parametrize(
    ("response", "runs"),
    [
        ({"statusCode": 201}, 1),
        ({"statusCode": 404}, 1),
        ({"statusCode": 500}, 2),
        ({"statusCode": 429}, 2),
    ],
)
def test_an_http_response_that_a_retry_may_better_is_not_kept(response: Any, runs: int) -> None:
    bench, handler = Bench(), Handler(response)
    assert [bench.invoke(REQUEST, handler) for _ in range(2)] == [response] * 2
    assert handler.runs == runs


def test_an_expression_can_say_which_responses_are_failures() -> None:
    bench = Bench({**KEY, "IDEMPOTENCY_RELEASE": "status == 'error'"})
    for response in ({"status": "error"}, {"status": "ok"}, {"status": "never returned"}):
        bench.invoke(EVENT, Handler(response))
    assert bench.kinds() == [record.RELEASED, record.EXECUTED, record.REPLAYED]


def test_the_configured_header_marks_a_replay_and_nothing_else() -> None:
    bench = Bench({"IDEMPOTENCY_REPLAY_HEADER": "Idempotency-Replayed"})
    response = {"statusCode": 201, "headers": {"a": "b"}, "body": "paid"}
    assert bench.invoke(REQUEST, Handler(response)) == response
    again = bench.invoke(REQUEST, Handler())
    assert again.pop("headers") == {"a": "b", "Idempotency-Replayed": "true"}
    assert again == {"statusCode": 201, "body": "paid"}


# --- Results in memory ----------------------------------------------------------------------------

CACHED = {**KEY, "IDEMPOTENCY_CACHE": "2"}


def invoke_order(bench: Bench, number: int, handler: Handler | None = None) -> list[str]:
    """One invocation; the requests that it took (loading a short result takes none)."""
    before = len(bench.store.calls)
    bench.invoke({"orderId": number, "amount": 100}, handler or Handler(number))
    return [call for call in bench.store.calls[before:] if call != "load"]


def test_a_result_in_memory_is_replayed_without_a_request() -> None:
    bench, again = Bench(CACHED), Handler()
    assert invoke_order(bench, 1) == ["claim", "complete"]
    assert invoke_order(bench, 1, again) == []
    assert bench.invoke({"orderId": 1}, again) == 1
    assert again.runs == 0
    assert bench.kinds() == [record.EXECUTED, record.REPLAYED, record.REPLAYED]


def test_a_result_that_was_replayed_from_the_store_is_in_memory_too() -> None:
    bench, other = Bench(CACHED), Bench(CACHED)
    invoke_order(bench, 1)
    other.store.memory = bench.store.memory
    assert invoke_order(other, 1) == ["claim"]
    assert invoke_order(other, 1) == []


def test_no_more_results_are_in_memory_than_configured_and_the_longest_unused_goes_first() -> None:
    bench = Bench(CACHED)
    for number in (1, 2, 3):
        invoke_order(bench, number)
    assert [invoke_order(bench, number) for number in (3, 2, 1)] == [[], [], ["claim"]]


def test_a_result_in_memory_expires_as_its_record_does() -> None:
    bench, again = Bench({**CACHED, "IDEMPOTENCY_RETENTION": "60"}), Handler()
    invoke_order(bench, 1)
    bench.clock.ms += 61_000
    assert invoke_order(bench, 1, again) == ["claim", "complete"]
    assert again.runs == 1


def test_another_payload_is_refused_from_memory_too() -> None:
    bench, second = Bench({**CACHED, "IDEMPOTENCY_PAYLOAD": "amount"}), Handler()
    invoke_order(bench, 1)
    with pytest.raises(IdempotencyPayloadMismatchError):
        bench.invoke({"orderId": 1, "amount": 999}, second)
    assert second.runs == 0


def test_what_was_released_or_could_not_be_recorded_is_not_in_memory() -> None:
    bench = Bench(CACHED)
    with pytest.raises(ValueError, match="broken"):
        invoke_order(bench, 1, Handler(ValueError("broken")))
    bench.store.plan("complete", Step(applied=False, error=store_error("UpdateItem")))
    invoke_order(bench, 2)
    assert invoke_order(bench, 1) == ["claim", "complete"]
    with pytest.raises(IdempotencyInProgressError):
        invoke_order(bench, 2)


def test_unless_configured_nothing_is_in_memory() -> None:
    bench = Bench(KEY)
    invoke_order(bench, 1)
    assert invoke_order(bench, 1) == ["claim"]
