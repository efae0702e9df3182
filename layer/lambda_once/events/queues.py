"""Queues: SQS, ActiveMQ and RabbitMQ."""

from __future__ import annotations

import json
from typing import Any

from .base import DAY_S, FAILURES, BatchSource, ByQueue, Records
from .reading import at, first, given


class Sqs(Records):
    """SQS. The retention is the longest that a queue can keep a message, and a day."""

    name = "sqs"
    title = "SQS"
    identity_text = (
        "queue ARN + `messageId`; of an SNS notification, S3 notification or EventBridge event"
        " in the body: queue ARN + the inner identity"
    )
    event_source = "aws:sqs"
    retention_s = 15 * DAY_S
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The inner identity survives what gives a message another id, such as a redrive."""
        inner = _identity_in_body(at(record, "body"))
        return given(at(record, "eventSourceARN"), inner or at(record, "messageId"))

    def identifier(self, record: Any) -> object:
        """The message's id."""
        return at(record, "messageId")

    def group(self, record: Any) -> str | None:
        """Of FIFO queues. In others MessageGroupId means fairness and not order."""
        is_fifo = str(at(record, "eventSourceARN")).endswith(".fifo")
        group = at(record, "attributes", "MessageGroupId")
        return str(group) if is_fifo and group is not None else None


class ActiveMQ(BatchSource):
    """Amazon MQ for ActiveMQ."""

    name = "activemq"
    title = "ActiveMQ"
    identity_text = "broker ARN + queue + `messageID`"
    container = "messages"
    retention_s = 7 * DAY_S

    def matches(self, event: Any) -> bool:
        """By the name and the first message."""
        named = at(event, "eventSource") in ("aws:mq", "aws:amq")
        return named and "messageID" in first(event, "messages")

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the queue, as a topic gives one message to several queues."""
        where = at(record, "destination")
        queue = at(where, "physicalName") or at(where, "physicalname")
        known = given(at(event, "eventSourceArn"), at(record, "messageID"))
        return known and [*known, queue]


class RabbitMQ(ByQueue):
    """Amazon MQ for RabbitMQ."""

    name = "rabbitmq"
    title = "RabbitMQ"
    identity_text = (
        "broker ARN + queue + `messageId`, which the producer must set; without one the message"
        " has no key"
    )
    missing = "its producer set no messageId"
    event_sources = ("aws:rmq",)
    container = "rmqMessagesByQueue"
    retention_s = 7 * DAY_S

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the queue, as an exchange gives one message to several queues."""
        queue = at(record, "eventSourceKey") or self._queue(event, record)
        message_id = at(record, "basicProperties", "messageId")
        return given(at(event, "eventSourceArn"), queue, message_id)

    def _queue(self, event: Any, record: Any) -> str | None:
        lists: dict[str, list[Any]] = at(event, self.container) or {}
        if len(lists) == 1:  # always so, as a mapping has one queue
            return next(iter(lists))
        holding = (name for name, each in lists.items() if any(r is record for r in each))
        return next(holding, None)


def _identity_in_body(body: object) -> object | None:
    """The identity of what AWS put into a message's body; None for any other body.

    The text is looked through first, as parsing every body would cost more than all the rest.
    """
    if not isinstance(body, str) or not any(mark in body for mark in _MARKS):
        return None
    try:
        inner = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if at(inner, "Type") == "Notification":
        return given(at(inner, "TopicArn"), at(inner, "MessageId"))
    from .notifications import S3, EventBridge, S3ByEventBridge

    for source in (S3(), S3ByEventBridge(), EventBridge()):
        if source.matches(inner):
            return source.identity(inner)
    return None


# What the body holds if it is an SNS, S3 or EventBridge envelope.
_MARKS = ('"TopicArn"', '"aws:s3"', '"detail-type"')


SOURCES = (Sqs(), ActiveMQ(), RabbitMQ())
