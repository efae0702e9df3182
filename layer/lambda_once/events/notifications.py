"""Notifications: SNS, S3 and EventBridge."""

from __future__ import annotations

from typing import Any

from .base import DAY_S, HOUR_S, BatchSource, Records, Source
from .reading import at, first, given


class Sns(BatchSource):
    """SNS, which retries for up to 23 days."""

    name = "sns"
    title = "SNS"
    identity_text = "topic ARN + `MessageId`"
    retention_s = 24 * DAY_S

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return first(event).get("EventSource") == "aws:sns"

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The same for every subscription of the topic."""
        return given(at(record, "Sns", "TopicArn"), at(record, "Sns", "MessageId"))


class S3(Records):
    """S3 notifications, as an asynchronous invocation (6 h of retries)."""

    name = "s3"
    title = "S3"
    identity_text = (
        "bucket + key + version + `sequencer` (the time, where there is none) + event name"
    )
    event_source = "aws:s3"
    retention_s = 7 * HOUR_S

    def record_identity(self, event: Any, record: Any) -> object | None:
        """Duplicates of one notification share the sequencer; a few event types have none."""
        thing = at(record, "s3", "object")
        bucket, key = at(record, "s3", "bucket", "name"), at(thing, "key")
        change = at(thing, "sequencer") or at(record, "eventTime")
        known = given(bucket, key, change, at(record, "eventName"))
        return known and [*known, at(thing, "versionId")]


class S3ByEventBridge(Source):
    """S3's events on EventBridge, which retries for up to a day."""

    name = "s3"
    title = "S3 through EventBridge"
    identity_text = (
        "bucket + key + version + `sequencer` (the event's `id`, where there is none)"
        " + detail type + `replay-name`"
    )
    retention_s = 31 * HOUR_S

    def matches(self, event: Any) -> bool:
        """By the source and the object."""
        return (
            isinstance(event, dict)
            and event.get("source") == "aws.s3"
            and at(event, "detail", "object", "key") is not None
        )

    def identity(self, event: Any) -> object | None:
        """S3 may put one change on the bus twice, with two ids."""
        detail = event["detail"]
        thing = detail["object"]
        change = thing.get("sequencer") or event.get("id")
        bucket = at(detail, "bucket", "name")
        known = given(bucket, thing["key"], change, event.get("detail-type"))
        return known and [*known, thing.get("version-id"), event.get("replay-name")]


class EventBridge(Source):
    """EventBridge's events and schedule rules: a day of retries, then 6 h of Lambda's own."""

    name = "eventbridge"
    title = "EventBridge, schedule rules"
    identity_text = "account + source + `id` + `replay-name`"
    retention_s = 31 * HOUR_S

    def matches(self, event: Any) -> bool:
        """By what every event on a bus has."""
        return isinstance(event, dict) and "detail-type" in event and "id" in event

    def identity(self, event: Any) -> object | None:
        """An event that is replayed from an archive on purpose is another one."""
        known = given(event.get("account"), event.get("source"), event["id"])
        return known and [*known, event.get("replay-name")]


SOURCES = (S3ByEventBridge(), EventBridge(), Sns(), S3())
