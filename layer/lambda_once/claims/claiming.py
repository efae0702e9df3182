"""Taking a claim, or finding the record that is in its way."""

from __future__ import annotations

from ..errors import IdempotencyPayloadMismatchError, IdempotencyStoreError
from ..record import Claim, Record
from ..store.port import Refusal
from . import protocol
from .protocol import Verdict
from .services import Services, Target
from .times import GIVE_BACK_BUDGET_MS, RESERVE_MS
from .waiting import Waiting, in_progress

# How often a claim is tried again because the record in its way was gone when it was looked at.
CLAIM_ROUNDS = 8


class Claiming:
    """Claims one unit."""

    def __init__(self, services: Services, target: Target) -> None:
        self._services = services
        self._store = services.store
        self._now_ms = services.now_ms
        self._target = target
        self.by_ms = target.deadline_ms - RESERVE_MS

    def claim_or_find(self, *, wait: bool) -> Claim | Record:
        """Our claim, or the completed record of an earlier run. May be tried again.

        ``wait`` says whether to wait for an owner that is at work, within the deadline.
        Raises IdempotencyInProgressError, IdempotencyPayloadMismatchError and
        IdempotencyStoreError.
        """
        for _ in range(CLAIM_ROUNDS):
            claim, now_ms = self.new_claim()
            refusal = self._try_claim(claim, now_ms)
            if refusal is None:
                return self._accepted(claim)
            existing = self._existing(refusal, claim)
            if existing is None:
                continue
            found = self._follow(existing, claim, now_ms, wait)
            if found is not None:
                return found
        raise self.store_error(
            "PutItem",
            "Contention",
            f"the record {self._target.record_id} changed {CLAIM_ROUNDS} times"
            " while it was claimed",
        )

    def new_claim(self) -> tuple[Claim, int]:
        """A claim with a token of its own, and the time it was made for (epoch ms)."""
        now_ms = self._now_ms()
        target = self._target
        remaining_ms = max(0, target.deadline_ms - now_ms)
        lease_ms = protocol.lease_until(now_ms, remaining_ms, self._services.config.lease_s * 1000)
        expires_at_s = protocol.expiry_of_claim(lease_ms, now_ms, target.retention_s)
        token = self._services.token()
        return Claim(target.record_id, token, lease_ms, expires_at_s, target.fingerprint), now_ms

    def store_error(self, operation: str, code: str, detail: str) -> IdempotencyStoreError:
        """What we found in the store ourselves: another has been at work on the record."""
        table = self._services.config.table
        return IdempotencyStoreError(operation, table, code, detail, may_have_run=True)

    def _try_claim(self, claim: Claim, now_ms: int) -> Refusal | None:
        try:
            return self._store.claim(claim, now_ms, self.by_ms)
        except IdempotencyStoreError as fault:
            if fault.maybe_applied:
                self._give_back(claim)
            raise

    def _accepted(self, claim: Claim) -> Claim:
        """Start on a claim that is ours, unless its answer came too late to start anything."""
        now_ms = self._now_ms()
        # A configured lease can be longer than the invocation.
        if not protocol.is_usable(claim, now_ms) or now_ms >= self._target.deadline_ms:
            self._give_back(claim)
            raise self.store_error(
                "PutItem",
                "AnsweredTooLate",
                "the claim was answered after the invocation's deadline",
            )
        return claim

    def _give_back(self, claim: Claim) -> None:
        """Undo a claim that may be ours and will not be used, so that the retry need not wait.

        Where the handler is to run without protection, it must have some time left for that.
        """
        now_ms = self._now_ms()
        half_ms = max(0, self.by_ms - now_ms) // 2
        by_ms = now_ms + min(half_ms, GIVE_BACK_BUDGET_MS)
        try:
            self._store.release(claim, by_ms)
        except IdempotencyStoreError:
            return  # then it ends by itself

    def _existing(self, refusal: Refusal, claim: Claim) -> Record | None:
        """The item in the way; read where the store did not return it with its refusal."""
        if refusal.existing is not None:
            return refusal.existing
        try:
            return self._store.read(claim.id, self.by_ms)
        except IdempotencyStoreError as fault:
            self._give_back(claim)  # what is in the way may be our own, its first reply lost
            fault.may_have_run = True
            raise

    def _follow(
        self, existing: Record, claim: Claim, now_ms: int, wait: bool
    ) -> Claim | Record | None:
        """Act on the record in the way: our claim, the completed record, or None to claim again."""
        verdict = protocol.judge_claim(existing, claim, now_ms)
        if verdict is Verdict.IN_PROGRESS:
            if not wait:
                raise in_progress(existing, self._now_ms())
            outlasted = Waiting(self._services, self.by_ms).outlast(existing, claim)
            if outlasted is None:
                return None
            existing, verdict = outlasted
        if verdict is Verdict.MISMATCH:
            raise IdempotencyPayloadMismatchError(existing.id)
        if verdict is Verdict.MINE:
            # Its first reply was lost, or a first copy of the request came in late.
            return self._accepted(claim)
        return existing if verdict is Verdict.REPLAY else None
