"""The port to a store: four operations on records, each safe to repeat.

An implementation makes each write conditional as the table in ``protocol`` says, repeats requests
whose fate is unknown, and raises ``IdempotencyStoreError`` where it cannot do what was asked.
``by_ms`` is the epoch time in ms by which an operation must have come back.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..record import Claim, Record, StoredResult


class Refusal(NamedTuple):
    """A write's condition did not hold. ``existing`` is the item in the way.

    It is None where there was no item, or the store did not say.
    """

    existing: Record | None


class Store(Protocol):
    """Where records live."""

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        """Write the claim where no live record stands at ``now_ms``. None: it is written."""

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        """Turn the owner's claim into a completed record. None: it is."""

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        """Delete the owner's claim. None: it is gone."""

    def read(self, record_id: str, by_ms: int) -> Record | None:
        """The record as it is now (a consistent read), or None."""

    def load(self, record: Record, by_ms: int) -> StoredResult:
        """The whole result of a completed record, its further parts included."""
