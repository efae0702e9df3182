"""One unit is claimed, settled and reported as the protocol says, whatever the store answers."""

from __future__ import annotations

import pytest

from lambda_once import record
from lambda_once.claims.claimer import Claimer
from lambda_once.claims.claiming import CLAIM_ROUNDS
from lambda_once.claims.protocol import CLOCK_MARGIN_MS
from lambda_once.claims.services import Target
from lambda_once.claims.times import COMPLETION_BUDGET_MS
from lambda_once.errors import (
    IdempotencyInProgressError,
    IdempotencyPayloadMismatchError,
    IdempotencyStoreError,
)
from lambda_once.record import COMPLETED, IN_PROGRESS, Record, StoredResult
from lambda_once.store.port import Refusal
from tests.support.bench import START_MS, Bench, Step, store_error

RECORD_ID = "orders#1"
RESULT = StoredResult("text", b'{"paid": true}')
REMAINING_MS = 3_000
LEASE_UNTIL_MS = START_MS + REMAINING_MS + CLOCK_MARGIN_MS


def claimer_on(bench: Bench, *, fingerprint: str | None = None) -> Claimer:
    """A guard of an invocation that begins now."""
    deadline_ms = bench.clock.ms + REMAINING_MS
    target = Target(RECORD_ID, fingerprint, 3_600, "event", "request-1", deadline_ms)
    return Claimer(bench.services, target)


def opened(bench: Bench) -> Claimer:
    claimer = claimer_on(bench)
    assert claimer.open(wait=False) is None
    return claimer


def another_owner(*, until_ms: int = LEASE_UNTIL_MS, fingerprint: str | None = None) -> Record:
    expires_at_s = START_MS // 1000 + 3_600
    return Record(RECORD_ID, IN_PROGRESS, "another", until_ms, expires_at_s, fingerprint)


def put(bench: Bench, existing: Record) -> None:
    bench.store.memory.records[RECORD_ID] = existing


def stored(bench: Bench) -> Record:
    existing = bench.store.only_record()
    assert existing is not None
    return existing


# --- Claiming -------------------------------------------------------------------------------------


def test_a_claim_is_one_request_and_lasts_one_margin_longer_than_the_invocation() -> None:
    bench = Bench()
    opened(bench)
    assert bench.store.calls == ["claim"]
    assert stored(bench) == Record(
        RECORD_ID, IN_PROGRESS, "token-1", LEASE_UNTIL_MS, START_MS // 1000 + 3_600
    )


def test_a_configured_lease_outlasts_the_invocation() -> None:
    bench = Bench({"IDEMPOTENCY_LEASE": "2h"})
    opened(bench)
    lease_ms = START_MS + 7_200_000 + CLOCK_MARGIN_MS
    assert stored(bench).in_progress_until_ms == lease_ms
    assert stored(bench).expires_at_s * 1000 >= lease_ms


def test_every_request_ends_before_the_deadline() -> None:
    bench = Bench()
    opened(bench).release("test")
    opened(bench).complete(RESULT)
    assert max(bench.store.by_ms) < START_MS + REMAINING_MS


def test_a_completed_record_is_given_and_reported_as_a_replay() -> None:
    bench = Bench()
    opened(bench).complete(RESULT)
    assert claimer_on(bench).open(wait=False) == RESULT
    assert bench.kinds() == [record.EXECUTED, record.REPLAYED]


def test_a_claim_whose_reply_was_lost_is_recognised() -> None:
    bench = Bench(tells=True)
    own = Record(RECORD_ID, IN_PROGRESS, "token-1", LEASE_UNTIL_MS, START_MS // 1000 + 3_600)
    bench.store.plan("claim", Step(answer=(Refusal(own),)))
    opened(bench)
    assert bench.store.calls == ["claim"]


def test_a_claim_whose_reply_was_lost_is_recognised_by_reading_too() -> None:
    bench = Bench(tells=False)
    bench.store.plan("claim", Step(answer=(Refusal(None),)))
    opened(bench)
    assert bench.store.calls == ["claim", "read"]


def test_each_claim_draws_its_own_token() -> None:
    bench = Bench()
    opened(bench).release("test")
    opened(bench)
    assert stored(bench).owner == "token-2"


def test_a_record_that_is_gone_when_it_is_read_is_claimed_again() -> None:
    bench = Bench(tells=False)
    bench.store.plan("claim", Step(applied=False, answer=(Refusal(None),)))
    opened(bench)
    assert bench.store.calls == ["claim", "read", "claim"]


def test_a_record_that_ended_since_the_refusal_is_claimed_again() -> None:
    bench = Bench()
    ended = another_owner(until_ms=START_MS - 1)
    bench.store.plan("claim", Step(applied=False, answer=(Refusal(ended),)))
    opened(bench)
    assert bench.store.calls == ["claim", "claim"]


def test_a_record_that_never_stays_is_given_up_in_the_end() -> None:
    bench = Bench()
    ended = another_owner(until_ms=START_MS - 1)
    refused = Step(applied=False, answer=(Refusal(ended),))
    bench.store.plan("claim", *[refused] * 1_000)
    with pytest.raises(IdempotencyStoreError, match="orders#1 changed 8 times") as given_up:
        claimer_on(bench).open(wait=False)
    assert given_up.value.code == "Contention"
    assert bench.store.calls == ["claim"] * CLAIM_ROUNDS


def test_another_owner_is_an_error_that_says_until_when() -> None:
    bench = Bench()
    put(bench, another_owner())
    with pytest.raises(IdempotencyInProgressError) as refused:
        claimer_on(bench).open(wait=False)
    assert refused.value.record_id == RECORD_ID
    assert refused.value.until_ms == LEASE_UNTIL_MS
    assert refused.value.retry_after_s == 4
    assert bench.store.calls == ["claim"]
    assert stored(bench) == another_owner()


@pytest.mark.parametrize("status", [IN_PROGRESS, COMPLETED])
def test_another_payload_is_an_error(status: str) -> None:
    bench = Bench()
    put(bench, another_owner(fingerprint="theirs")._replace(status=status, result=RESULT))
    with pytest.raises(IdempotencyPayloadMismatchError) as refused:
        claimer_on(bench, fingerprint="mine").open(wait=False)
    assert refused.value.record_id == RECORD_ID


def test_a_store_that_did_nothing_is_an_error_and_nothing_is_undone() -> None:
    bench = Bench()
    bench.store.plan("claim", Step(applied=False, error=store_error()))
    with pytest.raises(IdempotencyStoreError):
        claimer_on(bench).open(wait=False)
    assert bench.store.calls == ["claim"]


@pytest.mark.parametrize("applied", [True, False])
def test_a_claim_that_may_have_been_written_is_given_back(applied: bool) -> None:
    bench = Bench()
    error = store_error(maybe_applied=True)
    bench.store.plan("claim", Step(applied=applied, error=error))
    with pytest.raises(IdempotencyStoreError) as raised:
        claimer_on(bench).open(wait=False)
    assert raised.value is error
    assert bench.store.calls == ["claim", "release"]
    assert bench.store.only_record() is None


def test_a_claim_that_cannot_be_given_back_hides_no_error() -> None:
    bench = Bench()
    error = store_error(maybe_applied=True)
    bench.store.plan("claim", Step(error=error))
    bench.store.plan("release", Step(applied=False, error=store_error("DeleteItem")))
    with pytest.raises(IdempotencyStoreError) as raised:
        claimer_on(bench).open(wait=False)
    assert raised.value is error


@pytest.mark.parametrize("variables", [{}, {"IDEMPOTENCY_LEASE": "24h"}])
@pytest.mark.parametrize("takes_ms", [REMAINING_MS, REMAINING_MS + 60_000])
def test_a_claim_answered_after_the_deadline_starts_nothing(
    takes_ms: int, variables: dict[str, str]
) -> None:
    bench = Bench(variables)
    bench.store.plan("claim", Step(takes_ms=takes_ms))
    with pytest.raises(IdempotencyStoreError) as refused:
        claimer_on(bench).open(wait=False)
    assert refused.value.code == "AnsweredTooLate"
    assert bench.store.only_record() is None


def test_a_claim_answered_just_before_the_deadline_is_used() -> None:
    bench = Bench()
    bench.store.plan("claim", Step(takes_ms=REMAINING_MS - 1))
    opened(bench)


def test_a_result_that_cannot_be_loaded_is_an_error() -> None:
    bench = Bench()
    opened(bench).complete(RESULT)
    bench.store.plan("load", Step(error=store_error("GetItem")))
    with pytest.raises(IdempotencyStoreError):
        claimer_on(bench).open(wait=False)


# --- Waiting --------------------------------------------------------------------------------------


def test_waiting_ends_with_the_first_result() -> None:
    bench = Bench()
    owner = opened(bench)
    bench.clock.on_sleep = lambda: owner.complete(RESULT) if len(bench.clock.slept) == 3 else None
    assert claimer_on(bench).open(wait=True) == RESULT
    assert len(bench.clock.slept) == 3


def test_waiting_claims_what_its_owner_released() -> None:
    bench = Bench()
    owner = opened(bench)
    bench.clock.on_sleep = lambda: owner.release("test")
    assert claimer_on(bench).open(wait=True) is None
    assert stored(bench).owner != "token-1"


def test_waiting_accepts_its_own_first_request_that_came_in_late() -> None:
    bench = Bench()
    opened(bench)
    late = another_owner()._replace(owner="token-2")
    bench.clock.on_sleep = lambda: put(bench, late)
    assert claimer_on(bench).open(wait=True) is None
    assert stored(bench).owner == "token-2"
    assert bench.store.calls == ["claim", "claim", "read"]


def test_waiting_claims_what_its_owner_left_behind() -> None:
    bench = Bench()
    put(bench, another_owner(until_ms=START_MS + 1_000))
    assert claimer_on(bench).open(wait=True) is None
    assert bench.clock.ms > START_MS + 1_000


def test_waiting_ends_before_the_deadline() -> None:
    bench = Bench()
    put(bench, another_owner())
    with pytest.raises(IdempotencyInProgressError):
        claimer_on(bench).open(wait=True)
    assert START_MS + REMAINING_MS - 2_000 < bench.clock.ms < START_MS + REMAINING_MS


def test_waiting_notices_another_payload() -> None:
    bench = Bench()
    put(bench, another_owner())
    bench.clock.on_sleep = lambda: put(bench, another_owner(fingerprint="theirs"))
    with pytest.raises(IdempotencyPayloadMismatchError):
        claimer_on(bench, fingerprint="mine").open(wait=True)


# --- Completing -----------------------------------------------------------------------------------


def test_completing_keeps_the_result_for_the_retention_from_now() -> None:
    bench = Bench()
    claimer = opened(bench)
    bench.clock.ms += 2_000
    claimer.complete(RESULT)
    assert stored(bench).result == RESULT
    assert stored(bench).expires_at_s == START_MS // 1000 + 2 + 3_600
    assert bench.kinds() == [record.EXECUTED]


def test_completing_omits_the_result_if_configured() -> None:
    bench = Bench({"IDEMPOTENCY_RESULT": "omit"})
    opened(bench).complete(RESULT)
    assert stored(bench).result == StoredResult("omitted", b"")


def test_completing_does_not_keep_the_caller_waiting_for_long() -> None:
    bench = Bench()
    deadline_ms = START_MS + 900_000
    claimer = Claimer(bench.services, Target(RECORD_ID, None, 1, "event", "request-1", deadline_ms))
    claimer.open(wait=False)
    claimer.complete(RESULT)
    assert bench.store.by_ms[-1] == START_MS + COMPLETION_BUDGET_MS


@pytest.mark.parametrize("tells", [True, False])
def test_a_completion_whose_reply_was_lost_is_recognised(tells: bool) -> None:
    bench = Bench(tells=tells)
    claimer = opened(bench)
    own = stored(bench)._replace(status=COMPLETED, result=RESULT)
    put(bench, own)
    claimer.complete(RESULT)
    assert bench.kinds() == [record.EXECUTED]


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("next_status", [IN_PROGRESS, COMPLETED, None])
def test_completing_what_is_another_owners_changes_nothing_and_says_so(
    tells: bool, next_status: str | None
) -> None:
    bench = Bench(tells=tells)
    claimer = opened(bench)
    bench.store.memory.records.clear()
    if next_status:
        put(bench, another_owner()._replace(status=next_status, result=RESULT))
    before = bench.store.only_record()
    claimer.complete(StoredResult("text", b"mine"))
    assert bench.kinds() == [record.LOST]
    assert bench.store.only_record() == before


@pytest.mark.parametrize("error", [store_error("UpdateItem"), RuntimeError("boto3 fell over")])
def test_a_result_that_cannot_be_recorded_is_reported_and_not_raised(error: Exception) -> None:
    bench = Bench()
    claimer = opened(bench)
    bench.store.plan("complete", Step(applied=False, error=error))
    claimer.complete(RESULT)
    (outcome,) = bench.outcomes
    assert (outcome.kind, outcome.error) == (record.UNRECORDED, type(error).__name__)
    assert str(error) in outcome.detail


# --- Releasing ------------------------------------------------------------------------------------


def test_releasing_leaves_nothing_and_reports_why() -> None:
    bench = Bench()
    opened(bench).release("the handler raised ValueError")
    assert bench.store.only_record() is None
    (outcome,) = bench.outcomes
    assert outcome.kind == record.RELEASED
    assert outcome.detail == "the handler raised ValueError"


@pytest.mark.parametrize("tells", [True, False])
def test_a_release_whose_reply_was_lost_is_recognised(tells: bool) -> None:
    bench = Bench(tells=tells)
    claimer = opened(bench)
    bench.store.memory.records.clear()
    claimer.release("test")
    assert bench.kinds() == [record.RELEASED]


@pytest.mark.parametrize("tells", [True, False])
def test_releasing_what_is_another_owners_changes_nothing_and_says_so(tells: bool) -> None:
    bench = Bench(tells=tells)
    claimer = opened(bench)
    put(bench, another_owner())
    claimer.release("test")
    assert bench.kinds() == [record.LOST]
    assert stored(bench) == another_owner()


@pytest.mark.parametrize("error", [store_error("DeleteItem"), RuntimeError("boto3 fell over")])
def test_a_claim_that_cannot_be_released_is_reported_and_not_raised(error: Exception) -> None:
    bench = Bench()
    claimer = opened(bench)
    bench.store.plan("release", Step(applied=False, error=error))
    claimer.release("test")
    assert bench.kinds() == [record.RELEASE_FAILED]
    assert bench.outcomes[0].error == type(error).__name__


def test_nothing_is_settled_that_was_not_claimed() -> None:
    with pytest.raises(RuntimeError, match="only while it is claimed"):
        claimer_on(Bench()).complete(RESULT)


# --- What is reported -----------------------------------------------------------------------------


def test_an_outcome_says_when_each_step_began_and_ended() -> None:
    bench = Bench()
    bench.store.plan("claim", Step(takes_ms=5))
    bench.store.plan("complete", Step(takes_ms=7))
    claimer = opened(bench)
    bench.clock.ms += 100
    claimer.complete(RESULT)
    (outcome,) = bench.outcomes
    assert (outcome.claim_started_ms, outcome.claim_ended_ms) == (START_MS, START_MS + 5)
    assert outcome.settle_started_ms == START_MS + 105
    assert outcome.settle_ended_ms == START_MS + 112
    assert (outcome.source, outcome.record_id, outcome.request_id) == (
        "event",
        RECORD_ID,
        "request-1",
    )


def test_a_step_that_was_not_taken_has_no_times() -> None:
    bench = Bench()
    opened(bench).complete(RESULT)
    claimer_on(bench).open(wait=False)
    replay = bench.outcomes[-1]
    assert (replay.settle_started_ms, replay.settle_ended_ms) == (0, 0)
