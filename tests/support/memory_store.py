"""A store in memory: the port of `lambda_once.store`, one lock, nothing that can go wrong."""

from __future__ import annotations

import threading

from lambda_once.claims import protocol
from lambda_once.errors import IdempotencyStoreError
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult
from lambda_once.store.port import Refusal


class MemoryStore:
    """Obeys the same contract as the DynamoDB store; safe to share between threads.

    `tells` says whether a refusal brings the item in the way, as DynamoDB does, or None, as a store
    without that ability does.
    """

    def __init__(self, *, tells: bool = True) -> None:
        self._tells = tells
        self._lock = threading.Lock()
        self.records: dict[str, Record] = {}

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        with self._lock:
            existing = self.records.get(claim.id)
            if existing is not None and not protocol.has_ended(existing, now_ms):
                return self._refusal(existing)
            self.records[claim.id] = Record(
                claim.id,
                IN_PROGRESS,
                claim.owner,
                claim.lease_until_ms,
                claim.expires_at_s,
                claim.fingerprint,
            )
            return None

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        with self._lock:
            existing = self.records.get(claim.id)
            if existing is None or not _is_owned(existing, claim):
                return self._refusal(existing)
            self.records[claim.id] = existing._replace(
                status=COMPLETED, in_progress_until_ms=0, expires_at_s=expires_at_s, result=result
            )
            return None

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        with self._lock:
            existing = self.records.get(claim.id)
            if existing is None or not _is_owned(existing, claim):
                return self._refusal(existing)
            del self.records[claim.id]
            return None

    def read(self, record_id: str, by_ms: int) -> Record | None:
        with self._lock:
            return self.records.get(record_id)

    def load(self, record: Record, by_ms: int) -> StoredResult:
        if record.result is None:
            raise IdempotencyStoreError("load", "memory", "ForeignRecord", "there is no result")
        return record.result

    def _refusal(self, existing: Record | None) -> Refusal:
        return Refusal(existing if self._tells else None)


def _is_owned(existing: Record, claim: Claim) -> bool:
    return existing.status == IN_PROGRESS and existing.owner == claim.owner
