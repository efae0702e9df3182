"""Ending a claim that is ours: completing or releasing, and what the store's answer means."""

from __future__ import annotations

from collections.abc import Callable

from .. import record
from ..record import Claim, Record, StoredResult
from ..results.stored import OMITTED
from ..store.port import Refusal
from . import protocol
from .protocol import Settlement
from .reporting import UnitReport
from .services import Services, Target
from .times import COMPLETION_BUDGET_MS, SETTLE_RESERVE_MS


class Settling:
    """Settles one claim. Raises nothing: what the handler did comes first."""

    def __init__(
        self, services: Services, target: Target, claim: Claim, report: UnitReport
    ) -> None:
        self._services = services
        self._store = services.store
        self._target = target
        self._claim = claim
        self._report = report

    def complete(self, result: StoredResult, unjudged: str = "") -> Record | None:
        """Record the result; the completed record, or None if that failed, which is reported.

        ``unjudged`` says why the rule for failures could not be applied to the response.
        """
        claim = self._claim
        now_ms = self._report.note("settle_started")
        stored = OMITTED if self._services.config.omit_result else result
        by_ms = self._settle_by(now_ms)
        expires_at_s = now_ms // 1000 + self._target.retention_s
        try:
            refusal = self._store.complete(claim, stored, expires_at_s, by_ms)
            settled = self._settlement(refusal, protocol.judge_completion, by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the caller's result comes first
            self._report.tell(record.UNRECORDED, fault)
            return None
        if settled is Settlement.LOST:
            self._report.tell(record.LOST)
            return None
        self._report.tell(record.UNJUDGED if unjudged else record.EXECUTED, detail=unjudged)
        return Record(
            claim.id, record.COMPLETED, claim.owner, 0, expires_at_s, claim.fingerprint, stored
        )

    def release(self, reason: str) -> None:
        """Give the claim back, for ``reason``."""
        by_ms = self._settle_by(self._report.note("settle_started"))
        try:
            refusal = self._store.release(self._claim, by_ms)
            settled = self._settlement(refusal, protocol.judge_release, by_ms)
        except Exception as fault:  # noqa: BLE001  whatever it is, the user's failure comes first
            self._report.tell(record.RELEASE_FAILED, fault)
            return
        kind = record.RELEASED if settled is Settlement.DONE else record.LOST
        self._report.tell(kind, detail=reason)

    def _settle_by(self, now_ms: int) -> int:
        """By when a settling write must have come back.

        Past the deadline nothing is left to be in time for: where the platform has not ended us by
        then, it does not (Lambda Managed Instances), and a result is still better recorded.
        """
        by_ms = self._target.deadline_ms - SETTLE_RESERVE_MS
        budget_ms = now_ms + COMPLETION_BUDGET_MS
        return budget_ms if now_ms >= self._target.deadline_ms else min(by_ms, budget_ms)

    def _settlement(
        self,
        refusal: Refusal | None,
        judge: Callable[[Record | None, Claim], Settlement],
        by_ms: int,
    ) -> Settlement:
        if refusal is None:
            return Settlement.DONE
        existing = refusal.existing or self._store.read(self._target.record_id, by_ms)
        return judge(existing, self._claim)
