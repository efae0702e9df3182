"""What the engine is given, and what one unit of work is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..config import Config
from ..record import Outcome
from ..results.stored import Marshal
from ..store.port import Store
from .cache import ResultCache

# For a context that cannot say how much time is left: the common maximum of a function's timeout.
UNKNOWN_REMAINING_MS = 900_000


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
    marshal: Marshal
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
