"""Every store keeps the table of transitions in `protocol`: the same tests for each of them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lambda_once.claims import protocol
from lambda_once.claims.protocol import Verdict
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult
from lambda_once.store.port import Refusal, Store
from tests.support.memory_store import MemoryStore
from tests.support.stores import aws_environment, deadline_ms, dynamodb_store, new_table

# Far in the future and at the start of a second: no server's own TTL interferes, and the boundaries
# in seconds and in milliseconds lie together.
NOW_MS = 4_000_000_000_000
NOW_S = NOW_MS // 1000
LEASE_MS = 60_000
RETENTION_S = 3_600

RESULT = StoredResult("text", b'{"paid": true}')
OTHER_RESULT = StoredResult("text", b'{"paid": false}')


class Subject(NamedTuple):
    """A store, and one record in it that no other test uses."""

    store: Store
    id: str

    def claim_by(
        self,
        owner: str,
        *,
        now_ms: int = NOW_MS,
        fingerprint: str | None = None,
        lease_until_ms: int | None = None,
        expires_at_s: int | None = None,
    ) -> tuple[Claim, Refusal | None]:
        """What `owner` claimed at `now_ms`, and the store's answer."""
        claim = Claim(
            self.id,
            owner,
            now_ms + LEASE_MS if lease_until_ms is None else lease_until_ms,
            now_ms // 1000 + RETENTION_S if expires_at_s is None else expires_at_s,
            fingerprint,
        )
        return claim, self.store.claim(claim, now_ms, deadline_ms())

    def claimed_by(self, owner: str, *, fingerprint: str | None = None) -> Claim:
        claim, refusal = self.claim_by(owner, fingerprint=fingerprint)
        assert refusal is None
        return claim

    def complete(
        self, claim: Claim, result: StoredResult = RESULT, expires_at_s: int = NOW_S + RETENTION_S
    ) -> Refusal | None:
        return self.store.complete(claim, result, expires_at_s, deadline_ms())

    def completed_by(self, owner: str, result: StoredResult = RESULT) -> Claim:
        claim = self.claimed_by(owner)
        assert self.complete(claim, result) is None
        return claim

    def release(self, claim: Claim) -> Refusal | None:
        return self.store.release(claim, deadline_ms())

    def read(self) -> Record | None:
        return self.store.read(self.id, deadline_ms())

    def load(self) -> StoredResult:
        record = self.read()
        assert record is not None
        return self.store.load(record, deadline_ms())

    def in_the_way(self, refusal: Refusal | None) -> Record | None:
        """What the engine learns from a refusal: the item that came with it, or a read."""
        assert refusal is not None
        return refusal.existing or self.read()


@pytest.fixture(scope="module", params=["memory", "silent memory", "ministack", "dynalite"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each implementation. The silent memory and dynalite refuse without the item in the way."""
    if request.param.endswith("memory"):
        yield MemoryStore(tells=request.param == "memory")
        return
    endpoint = request.getfixturevalue(request.param).endpoint
    with aws_environment(endpoint):
        yield dynamodb_store(new_table(endpoint))


@pytest.fixture
def subject(store: Store) -> Subject:
    return Subject(store, f"orders#{uuid.uuid4().hex}")


# --- Claim ----------------------------------------------------------------------------------------


def test_an_absent_record_is_none(subject: Subject) -> None:
    assert subject.read() is None


def test_a_claim_on_an_absent_record_is_written_as_given(subject: Subject) -> None:
    claim = subject.claimed_by("me", fingerprint="abc")
    assert subject.read() == Record(
        subject.id, IN_PROGRESS, "me", claim.lease_until_ms, claim.expires_at_s, "abc", None
    )


def test_a_live_claim_refuses_another_and_stays(subject: Subject) -> None:
    subject.claimed_by("first")
    before = subject.read()
    _, refusal = subject.claim_by("second")
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_a_completed_record_refuses_a_claim_and_stays(subject: Subject) -> None:
    subject.completed_by("first")
    before = subject.read()
    _, refusal = subject.claim_by("second")
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_a_repeated_claim_meets_its_own_token(subject: Subject) -> None:
    claim = subject.claimed_by("me")
    refusal = subject.store.claim(claim, NOW_MS, deadline_ms())
    existing = subject.in_the_way(refusal)
    assert existing is not None
    assert protocol.judge_claim(existing, claim, NOW_MS) is Verdict.MINE


@pytest.mark.parametrize("status", [IN_PROGRESS, COMPLETED])
@pytest.mark.parametrize("lease_offset_ms", [-1, 0, 1])
@pytest.mark.parametrize("expiry_offset_s", [-1, 0, 1])
@pytest.mark.parametrize("within_second_ms", [0, 999])
def test_a_claim_is_written_exactly_where_the_record_has_ended(
    subject: Subject, status: str, lease_offset_ms: int, expiry_offset_s: int, within_second_ms: int
) -> None:
    now_ms = NOW_MS + within_second_ms
    expires_at_s = NOW_S + expiry_offset_s
    claim, _ = subject.claim_by(
        "first", lease_until_ms=now_ms + lease_offset_ms, expires_at_s=expires_at_s
    )
    if status == COMPLETED:
        subject.complete(claim, expires_at_s=expires_at_s)
    before = subject.read()
    assert before is not None
    _, refusal = subject.claim_by("second", now_ms=now_ms)
    assert (refusal is None) == protocol.has_ended(before, now_ms)
    after = subject.read()
    assert after is not None
    assert after.owner == ("second" if refusal is None else "first")


def test_a_claim_over_an_ended_lease_keeps_nothing_of_it(subject: Subject) -> None:
    first = subject.claimed_by("first", fingerprint="old")
    second, refusal = subject.claim_by("second", now_ms=first.lease_until_ms + 1)
    assert refusal is None
    assert subject.read() == Record(
        subject.id, IN_PROGRESS, "second", second.lease_until_ms, second.expires_at_s, None, None
    )


def test_a_claim_over_an_expired_result_keeps_nothing_of_it(subject: Subject) -> None:
    subject.completed_by("first")
    second, refusal = subject.claim_by("second", now_ms=NOW_MS + (RETENTION_S + 1) * 1000)
    assert refusal is None
    assert subject.read() == Record(
        subject.id, IN_PROGRESS, "second", second.lease_until_ms, second.expires_at_s, None, None
    )


# --- Complete -------------------------------------------------------------------------------------


def test_the_owner_completes_its_claim(subject: Subject) -> None:
    claim = subject.claimed_by("me", fingerprint="abc")
    assert subject.complete(claim, expires_at_s=NOW_S + 7) is None
    assert subject.read() == Record(subject.id, COMPLETED, "me", 0, NOW_S + 7, "abc", RESULT)


def test_a_stranger_cannot_complete(subject: Subject) -> None:
    subject.claimed_by("me")
    before = subject.read()
    refusal = subject.complete(Claim(subject.id, "stranger", NOW_MS + LEASE_MS, NOW_S + 60))
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_nothing_to_complete_is_refused_and_makes_no_record(subject: Subject) -> None:
    refusal = subject.complete(Claim(subject.id, "me", NOW_MS + LEASE_MS, NOW_S + 60))
    assert refusal == Refusal(None)
    assert subject.read() is None


def test_a_completed_record_cannot_be_completed_again(subject: Subject) -> None:
    claim = subject.completed_by("me")
    before = subject.read()
    refusal = subject.complete(claim, OTHER_RESULT, NOW_S + 2 * RETENTION_S)
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_a_late_owner_cannot_complete_over_the_next(subject: Subject) -> None:
    late = subject.claimed_by("late")
    subject.claim_by("next", now_ms=late.lease_until_ms + 1)
    before = subject.read()
    refusal = subject.complete(late)
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_a_late_owner_completes_while_nobody_else_has_claimed(subject: Subject) -> None:
    claim, _ = subject.claim_by("late", lease_until_ms=NOW_MS - 1)
    assert subject.complete(claim) is None
    assert subject.load() == RESULT


# --- Release --------------------------------------------------------------------------------------


def test_the_owner_releases_its_claim(subject: Subject) -> None:
    claim = subject.claimed_by("me")
    assert subject.release(claim) is None
    assert subject.read() is None
    subject.claimed_by("next")


def test_a_stranger_cannot_release(subject: Subject) -> None:
    subject.claimed_by("me")
    before = subject.read()
    refusal = subject.release(Claim(subject.id, "stranger", NOW_MS + LEASE_MS, NOW_S + 60))
    assert subject.in_the_way(refusal) == before
    assert subject.read() == before


def test_a_completed_record_cannot_be_released_even_by_its_owner(subject: Subject) -> None:
    claim = subject.completed_by("me")
    before = subject.read()
    assert subject.in_the_way(subject.release(claim)) == before
    assert subject.read() == before


def test_nothing_to_release_is_refused_without_an_item(subject: Subject) -> None:
    claim = subject.claimed_by("me")
    subject.release(claim)
    assert subject.release(claim) == Refusal(None)


# --- Results --------------------------------------------------------------------------------------

NOISE = random.Random(1).randbytes(6_291_556)

RESULTS = {
    "text": StoredResult("text", "Grüße, \U0001f600 \x00".encode()),
    "empty text": StoredResult("text", b""),
    "bytes": StoredResult("bytes", bytes(range(256))),
    "empty bytes": StoredResult("bytes", b""),
    "compressed text": StoredResult("text+zlib", NOISE[:100]),
    "compressed bytes": StoredResult("bytes+zlib", NOISE[:100]),
    "omitted": StoredResult("omitted", b""),
    "the longest in the record": StoredResult("bytes", NOISE[: 32 * 1024]),
    "the shortest in parts": StoredResult("bytes", NOISE[: 32 * 1024 + 1]),
    "text in parts": StoredResult("text", b"x" * 100_000),
    "exactly two parts": StoredResult("bytes", NOISE[:780_000]),
    "the longest that Lambda accepts": StoredResult("bytes", NOISE),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_a_result_comes_back_as_it_was_given(subject: Subject, result: StoredResult) -> None:
    subject.completed_by("me", result)
    assert subject.load() == result


def test_a_result_in_parts_survives_a_late_owner_with_another(subject: Subject) -> None:
    late = subject.claimed_by("late")
    owner, _ = subject.claim_by("owner", now_ms=late.lease_until_ms + 1)
    theirs = StoredResult("bytes", NOISE[:500_000])
    assert subject.complete(owner, theirs) is None
    assert subject.complete(late, StoredResult("bytes", NOISE[500_000:1_000_000])) is not None
    assert subject.load() == theirs
