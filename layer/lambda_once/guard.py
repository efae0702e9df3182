"""Claims, settles and reports one unit: the protocol, driven against a store."""

from __future__ import annotations

import threading
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
# The same once the handler is done: there is nothing left to do but to answer.
SETTLE_RESERVE_MS = 50
# How long the caller may be kept from a result that cannot be recorded.
COMPLETION_BUDGET_MS = 10_000
# How long a failed claim may take to be given back.
GIVE_BACK_BUDGET_MS = 2_000
# How often a claim is tried again because the record in its way was gone when it was looked at.
CLAIM_ROUNDS = 8
FIRST_POLL_MS = 50
LONGEST_POLL_MS = 1_000
# The time that one look at the record needs at least.
POLL_MS = 100
# For a context that cannot say how much time is left: the common maximum of a function's timeout.
UNKNOWN_REMAINING_MS = 900_000
# A longer result is not kept in memory: it would take too much of a small function's.
MAX_CACHED_BYTES = 256 * 1024


class ResultCache:
    """The ``size`` completed records that were used last; safe to share between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._records: dict[str, Record] = {}
        self._lock = threading.Lock()

    def get(self, record_id: str, now_ms: int) -> Record | None:
        """The record, unless it has expired; it then counts as used."""
        with self._lock:
            found = self._records.pop(record_id, None)
            if found is None or protocol.has_ended(found, now_ms):
                return None
            self._records[record_id] = found
            return found

    def put(self, found: Record) -> None:
        """Keep a completed record with its whole result, at the expense of the longest unused."""
        if found.result is None or len(found.result.body) > MAX_CACHED_BYTES:
            return
        with self._lock:
            self._records.pop(found.id, None)
            self._records[found.id] = found
            if len(self._records) > self._size:
                del self._records[next(iter(self._records))]


class Services(NamedTuple):
    """What the engine is given: where to store, the time, and whom to tell.

    ``now_ms`` is epoch ms; ``sleep`` takes seconds; ``token`` draws a new random text. ``cache`` is
    the engine's own, if it is configured.
    """

    config: Config
    store: Store
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    token: Callable[[], str]
    report: Callable[[Outcome], None]
    marshal: results.Marshal
    cache: ResultCache | None = None


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


def may_run_unprotected(config: Config, fault: IdempotencyError) -> bool:
    """Whether the handler is to run although its unit could not be claimed, as configured."""
    return (
        config.run_without_store
        and isinstance(fault, IdempotencyStoreError)
        and not fault.may_have_run
    )


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

    def open(self, *, wait: bool) -> StoredResult | None:
        """Own the unit (None), or the result that is stored for it. May be tried again.

        ``wait`` says whether to wait for an owner that is at work, within the deadline.
        Raises IdempotencyInProgressError, IdempotencyPayloadMismatchError and
        IdempotencyStoreError, which the caller reports with ``reject``.
        """
        self._times["claim_started_ms"] = self._now_ms()
        try:
            existing = self._cached() or self._claim_or_find(wait)
            stored = None if existing is None else self._whole_result(existing)
        finally:
            self._times["claim_ended_ms"] = self._now_ms()
        if stored is not None:
            self._report(record.REPLAYED)
        return stored

    def reject(self, fault: IdempotencyError, kind: str | None = None) -> None:
        """Report that the unit could not be claimed; ``kind`` where that is not its outcome."""
        self._report(kind or _KIND_OF[type(fault)], fault)

    def complete(self, result: StoredResult, unjudged: str = "") -> None:
        """Record the result. A failure is reported and not raised: the caller has its result.

        ``unjudged`` says why the rule for failures could not be applied to the response.
        """
        claim = self._owned()
        now_ms = self._now_ms()
        self._times["settle_started_ms"] = now_ms
        stored = results.OMITTED if self._services.config.omit_result else result
        by_ms = self._settle_by(now_ms)
        expires_at_s = now_ms // 1000 + self.target.retention_s
        try:
            refusal = self._store.complete(claim, stored, expires_at_s, by_ms)
            settled = self._settlement(refusal, protocol.judge_completion, by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the caller's result comes first
            self._report(record.UNRECORDED, fault)
            return
        if settled is Settlement.LOST:
            self._report(record.LOST)
            return
        self._keep(
            Record(
                claim.id, record.COMPLETED, claim.owner, 0, expires_at_s, claim.fingerprint, stored
            )
        )
        self._report(record.UNJUDGED if unjudged else record.EXECUTED, detail=unjudged)

    def release(self, reason: str) -> None:
        """Give the claim back. Raises nothing: what made us release it must not be hidden."""
        claim = self._owned()
        now_ms = self._now_ms()
        self._times["settle_started_ms"] = now_ms
        by_ms = self._settle_by(now_ms)
        try:
            refusal = self._store.release(claim, by_ms)
            settled = self._settlement(refusal, protocol.judge_release, by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the user's failure comes first
            self._report(record.RELEASE_FAILED, fault)
            return
        kind = record.RELEASED if settled is Settlement.DONE else record.LOST
        self._report(kind, detail=reason)

    def _owned(self) -> Claim:
        if self._claim is None:
            raise RuntimeError("a unit is settled only while it is claimed")
        return self._claim

    def _settle_by(self, now_ms: int) -> int:
        """By when a settling write must have come back.

        Past the deadline nothing is left to be in time for: where the platform has not ended us by
        then, it does not (Lambda Managed Instances), and a result is still better recorded.
        """
        by_ms = self.target.deadline_ms - SETTLE_RESERVE_MS
        budget_ms = now_ms + COMPLETION_BUDGET_MS
        return budget_ms if now_ms >= self.target.deadline_ms else min(by_ms, budget_ms)

    def _cached(self) -> Record | None:
        """The completed record from memory, without a request."""
        cache = self._services.cache
        if cache is None:
            return None
        claim, now_ms = self._new_claim()
        found = cache.get(claim.id, now_ms)
        if found is not None and protocol.judge_claim(found, claim, now_ms) is Verdict.MISMATCH:
            raise IdempotencyPayloadMismatchError(found.id)
        return found

    def _keep(self, completed: Record) -> None:
        if self._services.cache is not None:
            self._services.cache.put(completed)

    def _whole_result(self, existing: Record) -> StoredResult:
        """The result of a completed record, all its parts read, ready to be given."""
        try:
            stored = self._store.load(existing, self._by_ms)
            unpacked = results.unpacked(stored)
        except IdempotencyStoreError as fault:
            fault.may_have_run = True
            raise
        except ValueError as fault:
            raise self._store_error(
                "GetItem", "ForeignRecord", f"the record {existing.id}: {fault}"
            ) from fault
        self._keep(existing._replace(result=stored))
        return unpacked

    def _claim_or_find(self, wait: bool) -> Record | None:
        for _ in range(CLAIM_ROUNDS):
            claim, now_ms = self._new_claim()
            refusal = self._try_claim(claim, now_ms)
            if refusal is None:
                self._accept(claim)
                return None
            existing = self._existing(refusal, claim)
            if existing is None:
                continue
            verdict = protocol.judge_claim(existing, claim, now_ms)
            if verdict is Verdict.MINE:
                self._accept(claim)
                return None
            found = self._follow(existing, claim, verdict, wait)
            if found is not None or self._claim is not None:
                return found
        raise self._store_error(
            "PutItem",
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
        now_ms = self._now_ms()
        # A configured lease can be longer than the invocation.
        if not protocol.is_usable(claim, now_ms) or now_ms >= self.target.deadline_ms:
            self._give_back(claim)
            raise self._store_error(
                "PutItem",
                "AnsweredTooLate",
                "the claim was answered after the invocation's deadline",
            )
        self._claim = claim

    def _give_back(self, claim: Claim) -> None:
        """Undo a claim that may be ours and will not be used, so that the retry need not wait.

        Where the handler is to run without protection, it must have some time left for that.
        """
        now_ms = self._now_ms()
        half_ms = max(0, self._by_ms - now_ms) // 2
        by_ms = now_ms + min(half_ms, GIVE_BACK_BUDGET_MS)
        try:
            self._store.release(claim, by_ms)
        except IdempotencyStoreError:
            return  # then it ends by itself

    def _follow(
        self, existing: Record, claim: Claim, verdict: Verdict, wait: bool
    ) -> Record | None:
        """Act on another's record: the completed one, or None to claim again or once it is ours."""
        pause_ms = FIRST_POLL_MS
        while verdict is Verdict.IN_PROGRESS:
            now_ms = self._now_ms()
            if not wait or now_ms + pause_ms + POLL_MS >= self._by_ms:
                raise IdempotencyInProgressError(existing.id, existing.in_progress_until_ms, now_ms)
            self._services.sleep(pause_ms / 1000)
            pause_ms = min(LONGEST_POLL_MS, pause_ms * 3 // 2)
            found = self._poll(existing)
            if found is None:
                return None
            existing = found
            verdict = protocol.judge_claim(existing, claim, self._now_ms())
        if verdict is Verdict.MISMATCH:
            raise IdempotencyPayloadMismatchError(existing.id)
        if verdict is Verdict.MINE:
            self._accept(claim)  # a first copy of our request came in after the other's release
        return existing if verdict is Verdict.REPLAY else None

    def _poll(self, existing: Record) -> Record | None:
        """The record as it is now. It is known to be in progress if there is no time to ask."""
        try:
            return self._store.read(existing.id, self._by_ms)
        except IdempotencyStoreError as fault:
            now_ms = self._now_ms()
            if now_ms + POLL_MS >= self._by_ms:
                until_ms = existing.in_progress_until_ms
                raise IdempotencyInProgressError(existing.id, until_ms, now_ms) from fault
            fault.may_have_run = True
            raise

    def _existing(self, refusal: Refusal, claim: Claim) -> Record | None:
        """The item in the way; read where the store did not return it with its refusal."""
        if refusal.existing is not None:
            return refusal.existing
        try:
            return self._store.read(claim.id, self._by_ms)
        except IdempotencyStoreError as fault:
            self._give_back(claim)  # what is in the way may be our own, its first reply lost
            fault.may_have_run = True
            raise

    def _store_error(self, operation: str, code: str, detail: str) -> IdempotencyStoreError:
        """What we found in the store ourselves: another has been at work on the record."""
        table = self._services.config.table
        return IdempotencyStoreError(operation, table, code, detail, may_have_run=True)

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
