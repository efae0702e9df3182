"""EventBridge Pipes: lists of records of other sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import LIST, BatchSource
from .queues import ActiveMQ, RabbitMQ, Sqs
from .reading import at
from .streams import DynamoDBStream, Kafka, Kinesis


class Pipes(BatchSource):
    """EventBridge Pipes: a list of records, each like one of the source that the pipe reads.

    The function may be the pipe's enrichment, which answers with a list, or its target, which may
    answer with ``batchItemFailures``; the event does not say which.
    """

    title = "EventBridge Pipes"
    identity_text = "as the pipe's source"
    answers = LIST

    def __init__(self, kind: BatchSource, *event_sources: str, reported_as: str = "") -> None:
        """``reported_as``: the member of a record that is its identifier, if it can be reported."""
        self._kind = kind
        self._event_sources = event_sources
        self._reported_as = reported_as
        self.name = f"pipes-{kind.name}"
        self.retention_s = kind.retention_s
        self.missing = kind.missing
        self.ordered = kind.ordered
        self.reports_failures = bool(reported_as)

    def matches(self, event: Any) -> bool:
        """By the first record."""
        if not isinstance(event, list) or not event:
            return False
        return at(event[0], "eventSource") in self._event_sources

    def records(self, event: Any) -> list[Any]:
        """All of the list."""
        return list(event)

    def subset(self, event: Any, kept: Sequence[int]) -> Any:
        """A list of these records."""
        return [event[position] for position in kept]

    def record_identity(self, event: Any, record: Any) -> object | None:
        """What a batch says once, each record of a pipe says itself."""
        return self._kind.record_identity(record, record)

    def identifier(self, record: Any) -> object:
        """The id that the record had at its source."""
        return at(record, self._reported_as)

    def group(self, record: Any) -> str | None:
        """As at the source."""
        return self._kind.group(record)


SOURCES = (
    Pipes(Sqs(), "aws:sqs", reported_as="messageId"),
    Pipes(Kinesis(), "aws:kinesis", reported_as="eventID"),
    Pipes(DynamoDBStream(), "aws:dynamodb", reported_as="eventID"),
    Pipes(Kafka(), "aws:kafka", "SelfManagedKafka"),
    Pipes(ActiveMQ(), "aws:mq", "aws:amq"),
    Pipes(RabbitMQ(), "aws:rmq"),
)
