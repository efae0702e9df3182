"""Completed records in memory, for replays without a request."""

from __future__ import annotations

import threading

from ..record import Record
from . import protocol

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
