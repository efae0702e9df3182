"""Claims, settles and reports one unit: the protocol, driven against a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import protocol, record, results
from .config import Config
from .errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyPayloadMismatchError,
    IdempotencyStoreError,
)
from .protocol import Settlement, Verdict
from .record import Claim, Outcome, Record, StoredResult
from .store import Refusal, Store

# What is left of the invocation's time for everything that is not a request.
RESERVE_MS = 100
# How long the caller may be kept from a result that cannot be recorded.
COMPLETION_BUDGET_MS = 10_000
# How often a claim is tried again because the record in its way was gone when it was looked at.
CLAIM_ROUNDS = 8
FIRST_POLL_MS = 50
LONGEST_POLL_MS = 1_000
# For a context that cannot say how much time is left: the common maximum of a function's timeout.
UNKNOWN_REMAINING_MS = 900_000


class Services(NamedTuple):
    """What the engine is given: where to store, the time, and whom to tell.

    ``now_ms`` is epoch ms; ``sleep`` takes seconds; ``token`` draws a new random text.
    """

    config: Config
    store: Store
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    token: Callable[[], str]
    report: Callable[[Outcome], None]
    marshal: results.Marshal


class Target(NamedTuple):
    """One unit of work to guard: a whole event or one record of a batch."""

    record_id: str
    fingerprint: str | None
    retention_s: int
    source: str
    request_id: str
    deadline_ms: int


def deadline_of(context: object, now_ms: int) -> int:
    """When the platform ends this invocation, in epoch ms."""
    try:
        remaining = int(context.get_remaining_time_in_millis())  # type: ignore[attr-defined]  # checked by trying
    except (AttributeError, TypeError, ValueError):
        remaining = UNKNOWN_REMAINING_MS
    return now_ms + remaining


class Guard:
    """The life of one unit in one invocation: claim, then complete or release."""

    def __init__(self, services: Services, target: Target) -> None:
        self._services = services
        self._store = services.store
        self._now_ms = services.now_ms
        self._by_ms = target.deadline_ms - RESERVE_MS
        self._claim: Claim | None = None
        self._times = dict.fromkeys(
            ("claim_started_ms", "claim_ended_ms", "settle_started_ms", "settle_ended_ms"), 0
        )
        self.target = target

    def open(self) -> StoredResult | None:
        """Own the unit (None), or the result that is stored for it.

        Raises IdempotencyInProgressError, IdempotencyPayloadMismatchError and
        IdempotencyStoreError, which the caller reports with ``reject``.
        """
        self._times["claim_started_ms"] = self._now_ms()
        try:
            existing = self._claim_or_find()
            stored = None if existing is None else self._store.load(existing, self._by_ms)
        finally:
            self._times["claim_ended_ms"] = self._now_ms()
        if stored is not None:
            self._report(record.REPLAYED)
        return stored

    def reject(self, fault: IdempotencyError, kind: str | None = None) -> None:
        """Report that the unit could not be claimed; ``kind`` where that is not its outcome."""
        self._report(kind or _KIND_OF[type(fault)], fault)

    def complete(self, result: StoredResult) -> None:
        """Record the result. A failure is reported and not raised: the caller has its result."""
        claim = self._owned()
        now_ms = self._now_ms()
        self._times["settle_started_ms"] = now_ms
        stored = results.OMITTED if self._services.config.omit_result else result
        by_ms = min(self._by_ms, now_ms + COMPLETION_BUDGET_MS)
        expires_at_s = now_ms // 1000 + self.target.retention_s
        try:
            refusal = self._store.complete(claim, stored, expires_at_s, by_ms)
            settled = self._settlement(refusal, protocol.judge_completion, by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the caller's result comes first
            self._report(record.UNRECORDED, fault)
            return
        self._report(record.EXECUTED if settled is Settlement.DONE else record.LOST)

    def release(self, reason: str) -> None:
        """Give the claim back. Raises nothing: what made us release it must not be hidden."""
        claim = self._owned()
        self._times["settle_started_ms"] = self._now_ms()
        try:
            refusal = self._store.release(claim, self._by_ms)
            settled = self._settlement(refusal, protocol.judge_release, self._by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the user's failure comes first
            self._report(record.RELEASE_FAILED, fault)
            return
        kind = record.RELEASED if settled is Settlement.DONE else record.LOST
        self._report(kind, detail=reason)

    def _owned(self) -> Claim:
        if self._claim is None:
            raise RuntimeError("a unit is settled only while it is claimed")
        return self._claim

    def _claim_or_find(self) -> Record | None:
        for _ in range(CLAIM_ROUNDS):
            claim, now_ms = self._new_claim()
            refusal = self._try_claim(claim, now_ms)
            if refusal is None:
                return self._accept(claim)
            existing = self._existing(refusal)
            if existing is None:
                continue
            verdict = protocol.judge_claim(existing, claim, now_ms)
            if verdict is Verdict.MINE:
                return self._accept(claim)
            found = self._follow(existing, claim, verdict)
            if found is not None:
                return found
        raise IdempotencyStoreError(
            "PutItem",
            self._services.config.table,
            "Contention",
            f"the record {self.target.record_id} changed {CLAIM_ROUNDS} times while it was claimed",
        )

    def _new_claim(self) -> tuple[Claim, int]:
        now_ms = self._now_ms()
        remaining_ms = max(0, self.target.deadline_ms - now_ms)
        lease_ms = protocol.lease_until(now_ms, remaining_ms, self._services.config.lease_s * 1000)
        expires_at_s = protocol.expiry_of_claim(lease_ms, now_ms, self.target.retention_s)
        token = self._services.token()
        target = self.target
        return Claim(target.record_id, token, lease_ms, expires_at_s, target.fingerprint), now_ms

    def _try_claim(self, claim: Claim, now_ms: int) -> Refusal | None:
        try:
            return self._store.claim(claim, now_ms, self._by_ms)
        except IdempotencyStoreError as fault:
            if fault.maybe_applied:
                self._give_back(claim)
            raise

    def _accept(self, claim: Claim) -> None:
        """Start on a claim that is ours, unless its answer came too late to start anything."""
        if not protocol.is_usable(claim, self._now_ms()):
            self._give_back(claim)
            raise IdempotencyStoreError(
                "PutItem",
                self._services.config.table,
                "AnsweredTooLate",
                "the claim was answered after the invocation's deadline",
            )
        self._claim = claim

    def _give_back(self, claim: Claim) -> None:
        """Undo a claim that may be ours and will not be used, so that the retry need not wait."""
        try:
            self._store.release(claim, self._by_ms)
        except IdempotencyStoreError:
            return  # then it ends by itself

    def _follow(self, existing: Record, claim: Claim, verdict: Verdict) -> Record | None:
        """Act on another's record: the completed one, or None to claim again."""
        pause_ms = FIRST_POLL_MS
        while verdict is Verdict.IN_PROGRESS:
            now_ms = self._now_ms()
            if not self._services.config.wait_in_progress or now_ms + pause_ms >= self._by_ms:
                raise IdempotencyInProgressError(
                    existing.id, existing.in_progress_until_ms, now_ms
                )
            self._services.sleep(pause_ms / 1000)
            pause_ms = min(LONGEST_POLL_MS, pause_ms * 3 // 2)
            found = self._store.read(existing.id, self._by_ms)
            if found is None:
                return None
            existing = found
            verdict = protocol.judge_claim(existing, claim, self._now_ms())
        if verdict is Verdict.MISMATCH:
            raise IdempotencyPayloadMismatchError(existing.id)
        return existing if verdict is Verdict.REPLAY else None

    def _existing(self, refusal: Refusal) -> Record | None:
        """The item in the way; read where the store did not return it with its refusal."""
        return refusal.existing or self._store.read(self.target.record_id, self._by_ms)

    def _settlement(
        self,
        refusal: Refusal | None,
        judge: Callable[[Record | None, Claim], Settlement],
        by_ms: int,
    ) -> Settlement:
        if refusal is None:
            return Settlement.DONE
        existing = refusal.existing or self._store.read(self.target.record_id, by_ms)
        return judge(existing, self._owned())

    def _report(self, kind: str, fault: Exception | None = None, detail: str = "") -> None:
        if self._times["settle_started_ms"]:
            self._times["settle_ended_ms"] = self._now_ms()
        target = self.target
        self._services.report(
            Outcome(
                kind,
                target.source,
                target.record_id,
                target.request_id,
                error=type(fault).__name__ if fault else "",
                code=getattr(fault, "code", ""),
                detail=str(fault) if fault else detail,
                **self._times,
            )
        )


_KIND_OF: dict[type[IdempotencyError], str] = {
    IdempotencyInProgressError: record.BLOCKED,
    IdempotencyPayloadMismatchError: record.MISMATCHED,
    IdempotencyStoreError: record.STORE_FAILED,
}
