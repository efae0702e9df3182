"""Streams: Kinesis, DynamoDB Streams and Kafka. Order is kept in each shard or partition."""

from __future__ import annotations

from typing import Any

from .base import DAY_S, FAILURES, HOUR_S, ByQueue, Records
from .reading import at, given


class Kinesis(Records):
    """Kinesis streams. A batch is of one shard."""

    name = "kinesis"
    title = "Kinesis"
    identity_text = "stream ARN + `eventID` (shard and sequence number)"
    event_source = "aws:kinesis"
    retention_s = 7 * DAY_S
    ordered = True
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The shard and the sequence number in one."""
        return given(at(record, "eventSourceARN"), at(record, "eventID"))

    def identifier(self, record: Any) -> object:
        """The sequence number, which is the checkpoint."""
        return at(record, "kinesis", "sequenceNumber")


class DynamoDBStream(Kinesis):
    """DynamoDB streams, which keep records for a day. A batch is of one shard."""

    name = "dynamodb"
    title = "DynamoDB Streams"
    identity_text = "stream ARN + `eventID`"
    event_source = "aws:dynamodb"
    retention_s = 25 * HOUR_S

    def identifier(self, record: Any) -> object:
        """The sequence number, which is the checkpoint."""
        return at(record, "dynamodb", "SequenceNumber")


class Kafka(ByQueue):
    """Kafka, of MSK or self-managed."""

    name = "kafka"
    title = "Kafka (MSK and self-managed)"
    identity_text = "cluster + topic + partition + offset + the record's timestamp"
    event_sources = ("aws:kafka", "SelfManagedKafka")
    container = "records"
    retention_s = 8 * DAY_S
    ordered = True
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the timestamp, as the offsets of a topic that is created anew start from 0 again."""
        cluster = at(event, "eventSourceArn") or _servers(at(event, "bootstrapServers"))
        place = (at(record, "topic"), at(record, "partition"), at(record, "offset"))
        known = given(cluster, *place)
        return known and [*known, at(record, "timestamp")]

    def identifier(self, record: Any) -> object:
        """The partition, with its topic's name, and the offset."""
        return {"partition": self.group(record), "offset": at(record, "offset")}

    def group(self, record: Any) -> str:
        """The partition, with its topic's name."""
        return f"{at(record, 'topic')}-{at(record, 'partition')}"


def _servers(listed: object) -> list[str] | None:
    """The addresses of a self-managed cluster, in an order of ours."""
    text = listed if isinstance(listed, str) else None
    return sorted(text.split(",")) if text else None


SOURCES = (Kinesis(), DynamoDBStream(), Kafka())
