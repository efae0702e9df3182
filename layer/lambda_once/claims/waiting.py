"""Outlasting another owner: how its record is looked at again, and for how long."""

from __future__ import annotations

from ..errors import IdempotencyInProgressError, IdempotencyStoreError
from ..record import Claim, Record
from . import protocol
from .protocol import Verdict
from .services import Services

FIRST_POLL_MS = 50
LONGEST_POLL_MS = 1_000
# The time that one look at the record needs at least.
POLL_MS = 100


class Waiting:
    """Waits for one other owner; no request ends after ``by_ms``."""

    def __init__(self, services: Services, by_ms: int) -> None:
        self._store = services.store
        self._now_ms = services.now_ms
        self._sleep = services.sleep
        self._by_ms = by_ms

    def outlast(self, existing: Record, claim: Claim) -> tuple[Record, Verdict] | None:
        """The record, and what it means, when its owner is done. None: the record is gone.

        Raises IdempotencyInProgressError where the owner is still at work when the time is over,
        and IdempotencyStoreError where the record cannot be looked at.
        """
        pause_ms = FIRST_POLL_MS
        while True:
            now_ms = self._now_ms()
            if now_ms + pause_ms + POLL_MS >= self._by_ms:
                raise in_progress(existing, now_ms)
            self._sleep(pause_ms / 1000)
            pause_ms = min(LONGEST_POLL_MS, pause_ms * 3 // 2)
            found = self._look(existing)
            if found is None:
                return None
            existing = found
            verdict = protocol.judge_claim(existing, claim, self._now_ms())
            if verdict is not Verdict.IN_PROGRESS:
                return existing, verdict

    def _look(self, existing: Record) -> Record | None:
        """The record as it is now. It is known to be in progress if there is no time to ask."""
        try:
            return self._store.read(existing.id, self._by_ms)
        except IdempotencyStoreError as fault:
            now_ms = self._now_ms()
            if now_ms + POLL_MS >= self._by_ms:
                raise in_progress(existing, now_ms) from fault
            fault.may_have_run = True
            raise


def in_progress(existing: Record, now_ms: int) -> IdempotencyInProgressError:
    """The error of a unit whose owner is at work."""
    return IdempotencyInProgressError(existing.id, existing.in_progress_until_ms, now_ms)
