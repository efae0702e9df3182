"""What the table of cases does not show: repeats, groups, waiting, deadlines, answers, faults."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lambda_once import record
from lambda_once.errors import IdempotencyBatchError
from lambda_once.events.expressions import compile_expression
from lambda_once.invocations.side_by_side import WIDTH
from lambda_once.record import Claim
from lambda_once.store.port import Refusal
from tests.batches.world import START_MS, TIMEOUT_MS, World, event_of, letters_in, world


def nothing(event: Any, context: Any) -> None:
    """A handler that succeeds."""


def states(here: World, event: Any, letters: str) -> str:
    return " ".join(here.state(event, letter) for letter in letters)


# ---- what is handed over


def test_a_batch_with_nothing_to_drop_is_handed_over_as_the_very_object() -> None:
    here, event, got = world(), event_of("SQS", "abc"), []
    here.invoke(lambda e, c: got.append(e), event)
    assert got[0] is event


def test_dropping_a_record_leaves_the_delivered_event_as_it_was() -> None:
    here, event = world(), event_of("SQS", "abc")
    here.put(event, "b", "done")
    here.invoke(nothing, event)
    assert here.seen == ["ac"]
    assert letters_in(event) == "abc"


def test_a_handler_that_clears_its_event_loses_no_record() -> None:
    here, event = world(batch="each"), event_of("SQS", "abc")

    def clear(e: Any, c: Any) -> None:
        e["Records"][0].clear()
        e.clear()

    answer = here.invoke(clear, event)
    assert answer == {"batchItemFailures": []}
    assert here.kinds() == [record.EXECUTED] * 3


def test_the_same_message_twice_in_one_batch_is_handed_over_once() -> None:
    here, event = world(), event_of("SQS", "aba")
    here.invoke(nothing, event)
    assert here.seen == ["ab"]
    assert states(here, event, "ab") == "done done"


def test_a_repeat_of_a_failed_message_is_reported_with_it() -> None:
    here, event = world(), event_of("SQS", "aba")
    answer = here.invoke(lambda e, c: {"batchItemFailures": [{"itemIdentifier": "b"}]}, event)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "b"}]}
    again = event_of("SQS", "bcb")
    answer = here.invoke(lambda e, c: {"batchItemFailures": [{"itemIdentifier": "b"}]}, again)
    assert here.state(again, "b") == "new"


def test_a_blocked_message_that_comes_twice_is_reported_twice() -> None:
    here, event = world(partial_batch="report"), event_of("SQS", "aba")
    here.put(event, "a", "running")
    here.put(event, "b", "running")
    answer = here.invoke(nothing, event)
    assert [item["itemIdentifier"] for item in answer["batchItemFailures"]] == ["a", "b", "a"]


def test_one_key_with_two_payloads_in_one_batch_is_a_mismatch_and_not_dropped() -> None:
    here = world(
        key=compile_expression("attributes.ApproximateReceiveCount"),
        payload=compile_expression("body"),
        partial_batch="report",
    )
    answer = here.invoke(nothing, event_of("SQS", "ab"))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "b"}]}
    assert record.MISMATCHED in here.kinds() or record.BLOCKED in here.kinds()


# ---- groups


def test_a_blocked_record_holds_back_its_own_group_only() -> None:
    here, event = world("SQS FIFO", partial_batch="report"), event_of("SQS FIFO", "aAbBcC")
    here.put(event, "b", "running")
    answer = here.invoke(nothing, event)
    assert here.seen == ["aABC"]
    assert [item["itemIdentifier"] for item in answer["batchItemFailures"]] == ["b", "c"]
    assert states(here, event, "aAbBcC") == "done done running done new done"


def test_kafka_partitions_do_not_hold_back_one_another() -> None:
    here, event = world("Kafka", partial_batch="report"), event_of("Kafka", "abc")
    other = [{"topic": "orders", "partition": 1, "offset": 7, "value": "z"}]
    event["records"]["orders-1"] = other
    here.put(event, "a", "running")
    answer = here.invoke(nothing, event)
    assert here.seen == ["z"]
    assert answer["batchItemFailures"] == [
        {"itemIdentifier": {"partition": "orders-0", "offset": ord("a")}}
    ]


# ---- waiting


def test_a_blocked_record_is_waited_for_after_the_others_have_run() -> None:
    here, event = world(wait_in_progress=True), event_of("SQS", "abc")
    here.put(event, "b", "running")
    here.on_sleep = lambda w: w.put(event, "b", "done")
    assert here.invoke(nothing, event) is None
    assert here.seen == ["ac"]
    assert states(here, event, "abc") == "done done done"


def test_a_record_whose_owner_fails_while_we_wait_is_run_in_a_second_call() -> None:
    here, event = world(wait_in_progress=True), event_of("SQS", "abc")
    here.put(event, "b", "running")
    here.on_sleep = lambda w: w.store.records.pop(w.record_id(event, "b"), None) and None
    here.invoke(nothing, event)
    assert here.seen == ["ac", "b"]
    assert states(here, event, "abc") == "done done done"


def test_records_behind_a_waited_for_one_follow_in_order() -> None:
    here, event = world("SQS FIFO", wait_in_progress=True), event_of("SQS FIFO", "abc")
    here.put(event, "b", "running")
    here.on_sleep = lambda w: w.put(event, "b", "done")
    here.invoke(nothing, event)
    assert here.seen == ["a", "c"]
    assert states(here, event, "abc") == "done done done"


def test_waiting_ends_before_the_deadline_and_the_record_comes_again() -> None:
    here, event = world(wait_in_progress=True), event_of("SQS", "ab")
    here.put(event, "b", "running")
    key = here.record_id(event, "b")
    here.store.records[key] = here.store.records[key]._replace(
        in_progress_until_ms=START_MS + 10 * TIMEOUT_MS
    )
    answer = here.invoke(nothing, event)
    assert isinstance(answer, IdempotencyBatchError)
    assert here.now < START_MS + TIMEOUT_MS
    assert here.kinds().count(record.BLOCKED) == 1


# ---- time


def test_each_stops_before_the_deadline_and_leaves_the_rest_free() -> None:
    here, event = world(batch="each", partial_batch="report"), event_of("SQS", "abcde")

    def slow(e: Any, c: Any) -> None:
        here.now += TIMEOUT_MS * 2 // 5

    answer = here.invoke(slow, event)
    assert here.seen == ["a", "b"]
    assert [item["itemIdentifier"] for item in answer["batchItemFailures"]] == ["c", "d", "e"]
    assert states(here, event, "abcde") == "done done new new new"


def test_each_counts_failing_calls_in_its_estimate_too() -> None:
    here, event = world(batch="each", partial_batch="report"), event_of("SQS", "abcd")

    def slow(e: Any, c: Any) -> None:
        here.now += TIMEOUT_MS * 2 // 5
        raise ValueError

    here.invoke(slow, event)
    assert here.seen == ["a", "b"]


def test_records_for_which_there_is_no_time_to_claim_are_left_for_redelivery() -> None:
    here, event = world(partial_batch="report"), event_of("SQS", "abc")
    claims = here.store.claim

    def slow_claim(claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        here.now += TIMEOUT_MS
        return claims(claim, now_ms, by_ms)

    here.store.claim = slow_claim  # type: ignore[method-assign]  # a slow network, for this test
    answer = here.invoke(nothing, event)
    assert len(answer["batchItemFailures"]) == 3
    assert here.seen == []
    assert here.kinds() == [record.STORE_FAILED] * 3


def test_half_of_the_time_is_left_for_the_handler() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    here, event = world(partial_batch="report"), event_of("SQS", letters)
    claims, each_ms, alone = here.store.claim, 1_500, threading.Lock()

    def slow_claim(claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        with alone:
            here.now += each_ms
        return claims(claim, now_ms, by_ms)

    here.store.claim = slow_claim  # type: ignore[method-assign]  # a slow network, for this test
    here.invoke(nothing, event)
    # Those under way when the time was up may still come in.
    assert TIMEOUT_MS // 2 // each_ms <= len(here.seen[0]) <= TIMEOUT_MS // 2 // each_ms + WIDTH


# ---- faults


def test_a_store_failure_runs_the_record_unprotected_if_configured() -> None:
    here, event = world(run_without_store=True), event_of("SQS", "ab")
    here.put(event, "b", "throttled")
    assert here.invoke(nothing, event) is None
    assert here.seen == ["ab"]
    assert record.UNPROTECTED in here.kinds()


def test_a_record_without_a_key_is_a_failed_one() -> None:
    here = world(key=compile_expression("messageAttributes.key"), partial_batch="report")
    event = event_of("SQS", "ab")
    event["Records"][0]["messageAttributes"] = {"key": "1"}
    answer = here.invoke(nothing, event)
    assert here.seen == ["a"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "b"}]}


def test_a_record_without_a_key_runs_unprotected_if_configured() -> None:
    here = world(key=compile_expression("messageAttributes.key"), run_without_key=True)
    here.invoke(nothing, event_of("SQS", "ab"))
    assert here.seen == ["ab"]
    assert here.kinds() == [record.UNPROTECTED] * 2
    assert here.store.requests == 0


def test_each_raises_the_first_failure_of_the_handler_itself() -> None:
    here = world(batch="each")
    faults = [ValueError("first"), ValueError("second")]

    def fail(e: Any, c: Any) -> None:
        raise faults[len(here.seen) - 1]

    assert here.invoke(fail, event_of("SQS", "ab")) is faults[0]


def test_the_release_rule_fails_the_whole_call() -> None:
    here, event = world(release=compile_expression("failed")), event_of("SQS", "ab")
    answer = here.invoke(lambda e, c: {"failed": True}, event)
    assert isinstance(answer, IdempotencyBatchError)
    assert states(here, event, "ab") == "new new"


def test_a_batch_costs_two_requests_a_record() -> None:
    here = world()
    here.invoke(nothing, event_of("SQS", "abcdefgh"))
    assert here.store.requests == 16


def test_claims_are_made_side_by_side() -> None:
    here = world()
    together = threading.Barrier(min(WIDTH, 8), timeout=30)
    claims = here.store.claim

    def claim(claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        together.wait()
        return claims(claim, now_ms, by_ms)

    here.store.claim = claim  # type: ignore[method-assign]  # passes only if 8 claims meet
    here.invoke(nothing, event_of("SQS", "abcdefgh"))
    assert here.seen == ["abcdefgh"]


# ---- answers that are lists


def contexts(*names: str) -> list[dict[str, Any]]:
    return [
        {"arguments": {"id": name}, "info": {"fieldName": "pay", "parentTypeName": "Mutation"}}
        for name in names
    ]


def names_of(event: Any, context: Any) -> list[str]:
    return [each["arguments"]["id"].upper() for each in event]


def appsync(handler: Any, here: World, *names: str) -> Any:
    invocation = here.engine().open(contexts(*names), None)
    while (call := invocation.next_call()) is not None:
        handed: Any = call[0]
        here.seen.append("".join(each["arguments"]["id"] for each in handed))
        invocation.succeeded(handler(handed, None))
    fault = invocation.fault()
    return fault if fault is not None else invocation.answer()


@pytest.mark.parametrize("batch", ["records", "each"])
def test_stored_and_new_results_are_joined_in_the_order_of_the_list(batch: str) -> None:
    here = world(batch=batch, key=compile_expression("arguments.id"))
    assert appsync(names_of, here, "b") == ["B"]
    assert appsync(names_of, here, "a", "b", "c") == ["A", "B", "C"]
    assert "b" not in "".join(here.seen[1:])


def test_a_repeat_in_a_list_gets_the_first_ones_result() -> None:
    here = world(key=compile_expression("arguments.id"))
    assert appsync(names_of, here, "a", "a") == ["A", "A"]
    assert here.seen == ["a"]


def test_omitting_results_does_not_empty_a_list_answer() -> None:
    here = world(key=compile_expression("arguments.id"), omit_result=True)
    appsync(names_of, here, "a")
    assert appsync(names_of, here, "a", "b") == ["A", "B"]


def test_a_pipe_is_split_into_its_records() -> None:
    here = world()
    event: Any = event_of("SQS", "ab")["Records"]
    reported = {"batchItemFailures": [{"itemIdentifier": "a"}]}
    invocation = here.engine().open(event, None)
    assert invocation.next_call() == (event,)
    invocation.succeeded(reported)
    assert invocation.next_call() is None
    assert invocation.answer() == reported
    assert here.engine().open(event, None).next_call() == (event[:1],)
