"""One unit in one invocation: claimed, then completed or released."""

from __future__ import annotations

from .. import record
from ..errors import IdempotencyError, IdempotencyPayloadMismatchError, IdempotencyStoreError
from ..record import Claim, Record, StoredResult
from ..results.stored import unpacked
from . import protocol
from .claiming import Claiming
from .protocol import Verdict
from .refusal import refusal_for
from .reporting import UnitReport
from .services import Services, Target
from .settling import Settling


class Claimer:
    """The life of one unit in one invocation."""

    def __init__(self, services: Services, target: Target) -> None:
        self.target = target
        self._services = services
        self._report = UnitReport(services, target)
        self._claiming = Claiming(services, target)
        self._claim: Claim | None = None

    def open(self, *, wait: bool) -> StoredResult | None:
        """Own the unit (None), or the result that is stored for it. May be tried again.

        ``wait`` says whether to wait for an owner that is at work, within the deadline.
        Raises IdempotencyInProgressError, IdempotencyPayloadMismatchError and
        IdempotencyStoreError, which the caller reports with ``reject``.
        """
        self._report.note("claim_started")
        try:
            found = self._cached() or self._claiming.claim_or_find(wait=wait)
            if isinstance(found, Claim):
                self._claim = found
                return None
            stored = self._whole_result(found)
        finally:
            self._report.note("claim_ended")
        self._report.tell(record.REPLAYED)
        return stored

    def reject(self, fault: IdempotencyError) -> bool:
        """Report that the unit could not be claimed; whether it is to run unprotected."""
        refusal = refusal_for(self._services.config, fault)
        self._report.tell(refusal.kind, fault)
        return refusal.runs

    def leave(self, fault: IdempotencyStoreError) -> None:
        """Report that the unit was not even tried: no time was left for it."""
        self._report.tell(record.STORE_FAILED, fault)

    def complete(self, result: StoredResult, unjudged: str = "") -> None:
        """Record the result; see ``Settling.complete``."""
        completed = self._settling().complete(result, unjudged)
        if completed is not None:
            self._keep(completed)

    def release(self, reason: str) -> None:
        """Give the claim back, for ``reason``."""
        self._settling().release(reason)

    def _settling(self) -> Settling:
        if self._claim is None:
            raise RuntimeError("a unit is settled only while it is claimed")
        return Settling(self._services, self.target, self._claim, self._report)

    def _cached(self) -> Record | None:
        """The completed record from memory, without a request."""
        cache = self._services.cache
        if cache is None:
            return None
        claim, now_ms = self._claiming.new_claim()
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
            stored = self._services.store.load(existing, self._claiming.by_ms)
            whole = unpacked(stored)
        except IdempotencyStoreError as fault:
            fault.may_have_run = True
            raise
        except ValueError as fault:
            raise self._claiming.store_error(
                "GetItem", "ForeignRecord", f"the record {existing.id}: {fault}"
            ) from fault
        self._keep(existing._replace(result=stored))
        return whole
