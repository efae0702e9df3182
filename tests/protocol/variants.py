"""Ways of breaking the real code, or the store's conditions, on purpose.

Each is a function that changes the code for the duration of a test. The explorer must find each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lambda_once.claims import protocol
from lambda_once.claims.claiming import Claiming
from lambda_once.claims.protocol import CLOCK_MARGIN_MS, Settlement, Verdict
from lambda_once.claims.settling import Settling
from lambda_once.claims.times import RESERVE_MS
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult
from lambda_once.store.port import Refusal
from tests.protocol import model, replay
from tests.protocol.model import Request

# The originals, which a broken function falls back on where it is not broken.
_judge_claim = protocol.judge_claim
_may_claim = model.may_claim
_may_complete = model.may_complete
_settlement = Settling._settlement

# What the variant that overwrites writes, so that the store's broken condition lets it pass.
FORCED = StoredResult("forced", b"null")


class Variant(NamedTuple):
    """One defect, the name of the scenario that shows it, and the invariants that it violates.

    Each of ``violated`` is looked for by itself, so that each check is shown to work.
    """

    put_in: Callable[[pytest.MonkeyPatch], None]
    scenario: str
    violated: str


def _in_protocol(name: str, broken: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(protocol, name, broken)


def _in_store(name: str, broken: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(model, name, broken)


def _in_claiming(name: str, broken: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(Claiming, name, broken)


def _any_claim(record: Record | None, request: Request) -> bool:
    return record is not None and record.status == IN_PROGRESS


def _anything(record: Record | None, request: Request) -> bool:
    return True


def _claim_ignores_lease(record: Record | None, request: Request) -> bool:
    in_progress = record is not None and record.status == IN_PROGRESS
    return in_progress or _may_claim(record, request)


def _claim_ignores_completed(record: Record | None, request: Request) -> bool:
    completed = record is not None and record.status == COMPLETED
    return completed or _may_claim(record, request)


def _claim_waits_forever(record: Record | None, request: Request) -> bool:
    in_progress = record is not None and record.status == IN_PROGRESS
    return not in_progress and _may_claim(record, request)


def _shared_token(patch: pytest.MonkeyPatch) -> None:
    """As if it were drawn once, at import, and kept in a snapshot."""
    patch.setattr(replay.Run, "token", lambda _: "A1")


def _every_claim_is_mine(existing: Record, claim: Claim, now_ms: int) -> Verdict:
    verdict = _judge_claim(existing, claim, now_ms)
    return Verdict.MINE if verdict is Verdict.IN_PROGRESS else verdict


def _fingerprint_ignored(existing: Record, claim: Claim, now_ms: int) -> Verdict:
    return _judge_claim(existing._replace(fingerprint=None), claim, now_ms)


def _expiry_in_ms(record: Record, now_ms: int) -> bool:
    in_progress = record.status == IN_PROGRESS
    return record.expires_at_s < now_ms or (in_progress and record.in_progress_until_ms < now_ms)


def _lease_in_s(record: Record, now_ms: int) -> bool:
    in_progress = record.status == IN_PROGRESS
    return in_progress and record.in_progress_until_ms < now_ms // 1000


def _lease_without_margin(now_ms: int, remaining_ms: int, at_least_ms: int = 0) -> int:
    return now_ms + max(remaining_ms, at_least_ms)


def _lease_in_seconds(now_ms: int, remaining_ms: int, at_least_ms: int = 0) -> int:
    return now_ms + max(remaining_ms, at_least_ms) // 1000 + CLOCK_MARGIN_MS


def _configured_lease_shortens(now_ms: int, remaining_ms: int, at_least_ms: int = 0) -> int:
    return now_ms + (at_least_ms or remaining_ms) + CLOCK_MARGIN_MS


def _expiry_ignores_lease(claim_lease_until_ms: int, now_ms: int, retention_s: int) -> int:
    return now_ms // 1000 + retention_s


def _always_done(existing: Record | None, claim: Claim) -> Settlement:
    return Settlement.DONE


def _always_lost(existing: Record | None, claim: Claim) -> Settlement:
    return Settlement.LOST


def _refusal_not_looked_at(self: Claiming, claim: Claim, now_ms: int) -> None:
    """Whatever the store says, the claim counts as made."""
    self._store.claim(claim, now_ms, self.by_ms)


def _used_however_late(self: Claiming, claim: Claim) -> Claim:
    """Neither ``is_usable`` nor the deadline is looked at."""
    return claim


def _lost_overwrites(patch: pytest.MonkeyPatch) -> None:
    """A completion that is refused is written again without a condition."""

    def settlement(self: Settling, refusal: Refusal | None, judge: Any, by_ms: int) -> Settlement:
        settled = _settlement(self, refusal, judge, by_ms)
        if settled is Settlement.LOST and judge is protocol.judge_completion:
            self._store.complete(self._claim, FORCED, by_ms // 1000, by_ms)
        return settled

    def may_complete(record: Record | None, request: Request) -> bool:
        return request.result == FORCED or _may_complete(record, request)

    patch.setattr(Settling, "_settlement", settlement)
    patch.setattr(model, "may_complete", may_complete)


def _unrecorded_is_given_back(patch: pytest.MonkeyPatch) -> None:
    """A completion without an answer is undone, by a release that does not look at the status."""
    complete = Settling.complete

    def completed(self: Settling, result: StoredResult, unjudged: str = "") -> Record | None:
        found = complete(self, result, unjudged)
        if found is None:
            self._store.release(self._claim, self._target.deadline_ms - RESERVE_MS)
        return found

    def may_release(record: Record | None, request: Request) -> bool:
        return record is not None and record.owner == request.claim.owner

    patch.setattr(Settling, "complete", completed)
    patch.setattr(model, "may_release", may_release)


VARIANTS = {
    "complete without the owner in its condition": Variant(
        _in_store("may_complete", _any_claim), "two, overrunning", "I3 I6"
    ),
    "release without the owner in its condition": Variant(
        _in_store("may_release", _any_claim), "two, overrunning", "I3"
    ),
    "claim without a condition": Variant(_in_store("may_claim", _anything), "two", "I1 I2 I4 I6"),
    "claim that ignores the lease": Variant(
        _in_store("may_claim", _claim_ignores_lease), "two", "I1 I6"
    ),
    "claim that overwrites a completed record": Variant(
        _in_store("may_claim", _claim_ignores_completed), "two", "I2 I4 I6"
    ),
    "claim that never sees a lease end": Variant(
        _in_store("may_claim", _claim_waits_forever), "two", "I5"
    ),
    "one token for all": Variant(_shared_token, "two", "I1 I3 I6"),
    "every claim in the way is mine": Variant(
        _in_protocol("judge_claim", _every_claim_is_mine), "two", "I1 I6"
    ),
    "fingerprint ignored": Variant(
        _in_protocol("judge_claim", _fingerprint_ignored), "two payloads", "I6"
    ),
    "expiry compared in ms": Variant(_in_protocol("has_ended", _expiry_in_ms), "two", "I6"),
    "lease compared in s": Variant(_in_protocol("has_ended", _lease_in_s), "two, waiting", "I5"),
    "lease without the margin": Variant(
        _in_protocol("lease_until", _lease_without_margin), "two, clocks apart", "I1"
    ),
    "lease counted in s": Variant(_in_protocol("lease_until", _lease_in_seconds), "two", "I1"),
    "configured lease shortens": Variant(
        _in_protocol("lease_until", _configured_lease_shortens),
        "two, lease below the deadline",
        "I1",
    ),
    "claim expires before its lease": Variant(
        _in_protocol("expiry_of_claim", _expiry_ignores_lease), "two, short retention", "I1"
    ),
    "lost completion is reported as done": Variant(
        _in_protocol("judge_completion", _always_done), "two, overrunning", "I3"
    ),
    "repeated completion is reported as lost": Variant(
        _in_protocol("judge_completion", _always_lost), "two", "I3"
    ),
    "lost release is reported as done": Variant(
        _in_protocol("judge_release", _always_done), "two, overrunning", "I3"
    ),
    "refused claim is not looked at": Variant(
        _in_claiming("_try_claim", _refusal_not_looked_at), "two", "I1 I6"
    ),
    "late claim is used": Variant(
        _in_claiming("_accepted", _used_however_late), "two, overrunning", "I1"
    ),
    "lost completion overwrites": Variant(_lost_overwrites, "two, overrunning", "I2 I3 I4 I6"),
    "unrecorded completion is given back": Variant(_unrecorded_is_given_back, "two", "I2 I4 I6"),
}
