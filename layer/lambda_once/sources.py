"""What kind of event this is, and what identifies it. One small class per source."""

from __future__ import annotations

from typing import Any


class Source:
    """An event source. ``name`` is also part of every key; ``retention_s`` holds unless set."""

    name = "event"
    retention_s = 3_600

    def matches(self, event: Any) -> bool:
        """Whether ``event`` came from this source."""
        raise NotImplementedError

    def identity(self, event: Any) -> object:
        """What is the same at each delivery of one event, and at no other; None if there is none."""
        raise NotImplementedError


class Direct(Source):
    """Anything else: the whole event is its own identity."""

    def matches(self, event: Any) -> bool:
        """Everything matches."""
        return True

    def identity(self, event: Any) -> object:
        """The event itself; an empty one has no identity."""
        return event if event not in (None, "", b"", [], {}) else None


SOURCES: tuple[Source, ...] = (Direct(),)


def recognise(event: Any) -> Source:
    """The first source that matches."""
    return next(source for source in SOURCES if source.matches(event))
