"""What every source has in common.

An identity is a JSON value that is the same at each delivery of one event and differs from every
other event's. What changes from one delivery to the next (receipt handles, receive counts, request
ids, trace headers, signatures) and what is secret (tokens, credentials) is in no identity.

Each retention outlasts the time during which its source may deliver an event again: the longest
retention or retry period that can be configured for it, with a margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .reading import at, first

if TYPE_CHECKING:
    from ..errors import IdempotencyError
    from ..keys.expressions import Expression

HOUR_S = 3_600
DAY_S = 24 * HOUR_S

# How a batch source takes its answer: as {"batchItemFailures": [...]}, or as a list with one item
# for each record. A source that takes none has None.
FAILURES = "failures"
LIST = "list"


class Source:
    """An event source.

    ``name`` is part of every key; ``retention_s`` holds unless one is configured. ``title`` and
    ``identity_text`` are what the documentation's table says; ``missing`` says what an event
    without identity lacks.
    """

    name = "event"
    title = ""
    identity_text = ""
    missing = "its source gave it no id"
    retention_s = HOUR_S

    def matches(self, event: Any) -> bool:
        """Whether ``event`` came from this source."""
        raise NotImplementedError

    def identity(self, event: Any) -> object | None:
        """What is the same at each delivery of one event, and at no other; None if there is none.

        Raises IdempotencyKeyMissingError where there is one, and it is malformed.
        """
        raise NotImplementedError

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """False: the handler is called as if we were not there.

        ``has_expression`` says whether the user configured what the key is.
        """
        return True

    def is_failure(self, response: object) -> bool:
        """Whether a response that the runtime can send tells of a failure: it is not kept."""
        return False

    def refusal(self, event: Any, fault: IdempotencyError, *, by_source: bool) -> object | None:
        """What the source is answered in place of ``fault``; None: the fault is raised.

        ``by_source`` says that the key is the source's own, and no configured one.
        """
        return None

    def replayed(
        self, event: Any, response: object, *, omitted: bool, header: str | None
    ) -> object:
        """The stored response as it is given again.

        ``omitted``: nothing of it was stored. ``header`` is a header to add, where there are any.
        """
        return response


class BatchSource(Source):
    """A source whose events hold records that are units of their own.

    ordered           nothing after the first record (of its group) that is not done may be done
    reports_failures  understands ``{"batchItemFailures": [...]}``
    answers           FAILURES, LIST or None
    container         the member of the event that holds the records
    """

    ordered = False
    reports_failures = False
    answers: str | None = None
    container = "Records"

    def records(self, event: Any) -> list[Any]:
        """The records in their order."""
        return list(event[self.container])

    def subset(self, event: Any, kept: Sequence[int]) -> Any:
        """A copy of the event with the records at these positions only; they are shared."""
        records = event[self.container]
        return {**event, self.container: [records[position] for position in kept]}

    def record_identity(self, event: Any, record: Any) -> object | None:
        """As ``identity``, for one record of the event."""
        raise NotImplementedError

    def identifier(self, record: Any) -> object:
        """What ``batchItemFailures`` calls the record; None where the source has no such thing."""
        return None

    def group(self, record: Any) -> str | None:
        """Records of one group must be done in their order; None: no order is promised."""
        return None

    def identity(self, event: Any) -> object | None:
        """The identities of all records, for a batch that is one unit."""
        identities = [self.record_identity(event, record) for record in self.records(event)]
        return None if None in identities else identities


class NeverGuarded(Source):
    """A source whose every delivery must reach the handler."""

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """Never."""
        return False

    def identity(self, event: Any) -> None:
        """None: it is never asked for."""


class GuardedByExpression(Source):
    """A source whose events have no id that marks a redelivery: only the user knows the key."""

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """If the user said what the key is."""
        return has_expression

    def identity(self, event: Any) -> None:
        """None: it is never asked for."""


class Asynchronous(Source):
    """A service that invokes asynchronously and gives its events ids: 6 h of retries."""

    retention_s = 7 * HOUR_S


class Records(BatchSource):
    """Sources that deliver ``{"Records": [...]}`` and name themselves in each record."""

    event_source = ""

    def matches(self, event: Any) -> bool:
        """By the first record; a batch is of one source."""
        return first(event).get("eventSource") == self.event_source


class ByQueue(BatchSource):
    """Sources whose event holds a list of records for each queue or partition."""

    event_sources: tuple[str, ...] = ()

    def matches(self, event: Any) -> bool:
        """By the name, the lists, and at least one record."""
        if at(event, "eventSource") not in self.event_sources:
            return False
        lists = at(event, self.container)
        if not isinstance(lists, dict) or not all(isinstance(r, list) for r in lists.values()):
            return False
        return any(lists.values())

    def records(self, event: Any) -> list[Any]:
        """List by list."""
        return [record for records in event[self.container].values() for record in records]

    def subset(self, event: Any, kept: Sequence[int]) -> Any:
        """Lists of which nothing is kept are dropped."""
        wanted = set(kept)
        lists: dict[str, list[Any]] = {}
        start = 0
        for name, records in event[self.container].items():
            chosen = [each for place, each in enumerate(records, start) if place in wanted]
            start += len(records)
            if chosen:
                lists[name] = chosen
        return {**event, self.container: lists}


class Direct(Source):
    """Anything else: the whole event is its own identity."""

    title = "anything else, such as a direct invocation"
    identity_text = "the whole event; an empty one has no key"
    missing = "the event is empty"

    def matches(self, event: Any) -> bool:
        """Everything matches."""
        return True

    def identity(self, event: Any) -> object | None:
        """The event itself; an empty one has no identity."""
        return event if event not in (None, "", b"", [], {}) else None


def counts_as_failure(source: Source, response: object, rule: Expression | None) -> bool:
    """Whether the response is not to be kept: by the configured rule, or by the source's own.

    The rule decides by the result true; any other says that it is to be kept. Raises
    ExpressionError if it cannot be evaluated.
    """
    if rule is None:
        return source.is_failure(response)
    return rule.search(response) is True
