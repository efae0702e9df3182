"""What kind of event this is, and what identifies it. One small class per source.

``recognise`` takes the first class in ``SOURCES`` that matches. An identity is a JSON value that is
the same at each delivery of one event and differs from every other event's. What changes from one
delivery to the next (receipt handles, receive counts, request ids, trace headers, signatures) and
what is secret (tokens, credentials) is in no identity.

Each retention outlasts the time during which its source may deliver an event again: the longest
retention or retry period that can be configured for it, with a margin.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .keys import Expression

_HOUR_S = 3_600
_DAY_S = 24 * _HOUR_S

# How a batch source takes its answer: as {"batchItemFailures": [...]}, as a list with one item for
# each record, or not at all.
FAILURES = "failures"
LIST = "list"
NONE = "none"

# Source: RFC 9110, section 9.2.1.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


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
    retention_s = _HOUR_S
    is_http = False

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


class BatchSource(Source):
    """A source whose events hold records that are units of their own.

    ordered           nothing after the first record (of its group) that is not done may be done
    reports_failures  understands ``{"batchItemFailures": [...]}``
    answers           FAILURES, LIST or NONE
    container         the member of the event that holds the records
    """

    ordered = False
    reports_failures = False
    answers = NONE
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


# ---- never guarded, or only with an expression


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


class Durable(NeverGuarded):
    """Durable functions: the service replays the handler on purpose, with its own checkpoints."""

    name = "durable"
    title = "Durable functions"

    def matches(self, event: Any) -> bool:
        """By the execution's ARN."""
        return isinstance(event, dict) and "DurableExecutionArn" in event


class TumblingWindow(NeverGuarded):
    """Stream batches with a window: each call's answer is the state given to the next."""

    name = "tumbling-window"
    title = "Tumbling windows of streams"

    def matches(self, event: Any) -> bool:
        """By the window's state."""
        return isinstance(event, dict) and "isFinalInvokeForWindow" in event and "state" in event


class LambdaEdge(NeverGuarded):
    """Lambda@Edge, where there are neither layers nor environment variables."""

    name = "lambda-edge"
    title = "Lambda@Edge"

    def matches(self, event: Any) -> bool:
        """By the record's ``cf``."""
        return "cf" in _first(event)


class Authorizer(GuardedByExpression):
    """API Gateway's Lambda authorizers: a stored answer would outlive a revoked token."""

    name = "authorizer"
    title = "API Gateway authorizers"

    def matches(self, event: Any) -> bool:
        """By its type and the ARN that it is asked about."""
        return (
            isinstance(event, dict)
            and event.get("type") in ("TOKEN", "REQUEST")
            and ("methodArn" in event or "routeArn" in event)
        )


class WebSocket(GuardedByExpression):
    """API Gateway's WebSocket APIs: nothing is delivered twice, and all ids are new each time."""

    name = "websocket"
    title = "API Gateway WebSocket"

    def matches(self, event: Any) -> bool:
        """By the connection's id."""
        return _at(event, "requestContext", "connectionId") is not None


class Cognito(GuardedByExpression):
    """Cognito's triggers: the same user signs in again with the same event."""

    name = "cognito"
    title = "Cognito triggers"

    def matches(self, event: Any) -> bool:
        """By the user pool's trigger, or the identity pool's sync."""
        if not isinstance(event, dict):
            return False
        by_user_pool = "triggerSource" in event and "userPoolId" in event
        return by_user_pool or ("datasetRecords" in event and "identityPoolId" in event)


class Firehose(GuardedByExpression):
    """Transforms of Firehose and Kinesis Data Analytics: pure functions, and large answers."""

    name = "firehose"
    title = "Firehose and Kinesis Data Analytics transforms"
    retention_s = 25 * _HOUR_S

    def matches(self, event: Any) -> bool:
        """By the invocation's and the first record's id."""
        return "recordId" in _first(event, "records") and "invocationId" in event


class Conversation(GuardedByExpression):
    """Lex and Amazon Connect: the same words at the same place are a new turn, not a repetition."""

    name = "conversation"
    title = "Lex, Amazon Connect"

    def matches(self, event: Any) -> bool:
        """By the bot, or the contact."""
        if not isinstance(event, dict):
            return False
        return ("bot" in event and "invocationSource" in event) or (
            event.get("Name") == "ContactFlowEvent" and "Details" in event
        )


class AppSync(GuardedByExpression):
    """AppSync's resolvers: queries may be asked again, and mutations have no id."""

    name = "appsync"
    title = "AppSync resolvers"
    retention_s = _DAY_S

    def matches(self, event: Any) -> bool:
        """By the field that is resolved."""
        return _at(event, "info", "fieldName") is not None and "arguments" in event


class AppSyncBatch(BatchSource):
    """AppSync's BatchInvoke: a list of resolver contexts; a list of as many answers."""

    name = "appsync-batch"
    title = "AppSync batch resolvers"
    retention_s = _DAY_S
    answers = LIST

    def matches(self, event: Any) -> bool:
        """By its first context."""
        return isinstance(event, list) and bool(event) and _APPSYNC.matches(event[0])

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """If the user said what the key is."""
        return has_expression

    def records(self, event: Any) -> list[Any]:
        """The contexts."""
        return list(event)

    def subset(self, event: Any, kept: Sequence[int]) -> Any:
        """A list of these contexts."""
        return [event[position] for position in kept]

    def record_identity(self, event: Any, record: Any) -> None:
        """None: it is never asked for."""


# ---- queues, topics and streams


class Records(BatchSource):
    """Sources that deliver ``{"Records": [...]}`` and name themselves in each record."""

    event_source = ""

    def matches(self, event: Any) -> bool:
        """By the first record; a batch is of one source."""
        return _first(event).get("eventSource") == self.event_source


class Sqs(Records):
    """SQS. The retention is the longest that a queue can keep a message, and a day."""

    name = "sqs"
    title = "SQS"
    identity_text = (
        "queue ARN + `messageId`; of an SNS notification, S3 notification or EventBridge event"
        " in the body: queue ARN + the inner identity"
    )
    event_source = "aws:sqs"
    retention_s = 15 * _DAY_S
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The inner identity survives what gives a message another id, such as a redrive."""
        inner = _identity_in_body(_at(record, "body"))
        return _given(_at(record, "eventSourceARN"), inner or _at(record, "messageId"))

    def identifier(self, record: Any) -> object:
        """The message's id."""
        return _at(record, "messageId")

    def group(self, record: Any) -> str | None:
        """Of FIFO queues. In others MessageGroupId means fairness and not order."""
        is_fifo = str(_at(record, "eventSourceARN")).endswith(".fifo")
        group = _at(record, "attributes", "MessageGroupId")
        return str(group) if is_fifo and group is not None else None


class Sns(BatchSource):
    """SNS, which retries for up to 23 days."""

    name = "sns"
    title = "SNS"
    identity_text = "topic ARN + `MessageId`"
    retention_s = 24 * _DAY_S

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return _first(event).get("EventSource") == "aws:sns"

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The same for every subscription of the topic."""
        return _given(_at(record, "Sns", "TopicArn"), _at(record, "Sns", "MessageId"))


class S3(Records):
    """S3 notifications, as an asynchronous invocation (6 h of retries)."""

    name = "s3"
    title = "S3"
    identity_text = (
        "bucket + key + version + `sequencer` (the time, where there is none) + event name"
    )
    event_source = "aws:s3"
    retention_s = 7 * _HOUR_S

    def record_identity(self, event: Any, record: Any) -> object | None:
        """Duplicates of one notification share the sequencer; a few event types have none."""
        thing = _at(record, "s3", "object")
        bucket, key = _at(record, "s3", "bucket", "name"), _at(thing, "key")
        change = _at(thing, "sequencer") or _at(record, "eventTime")
        known = _given(bucket, key, change, _at(record, "eventName"))
        return known and [*known, _at(thing, "versionId")]


class Kinesis(Records):
    """Kinesis streams. A batch is of one shard."""

    name = "kinesis"
    title = "Kinesis"
    identity_text = "stream ARN + `eventID` (shard and sequence number)"
    event_source = "aws:kinesis"
    retention_s = 7 * _DAY_S
    ordered = True
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """The shard and the sequence number in one."""
        return _given(_at(record, "eventSourceARN"), _at(record, "eventID"))

    def identifier(self, record: Any) -> object:
        """The sequence number, which is the checkpoint."""
        return _at(record, "kinesis", "sequenceNumber")


class DynamoDBStream(Kinesis):
    """DynamoDB streams, which keep records for a day. A batch is of one shard."""

    name = "dynamodb"
    title = "DynamoDB Streams"
    identity_text = "stream ARN + `eventID`"
    event_source = "aws:dynamodb"
    retention_s = 25 * _HOUR_S

    def identifier(self, record: Any) -> object:
        """The sequence number, which is the checkpoint."""
        return _at(record, "dynamodb", "SequenceNumber")


class ByQueue(BatchSource):
    """Sources whose event holds a list of records for each queue or partition."""

    event_sources: tuple[str, ...] = ()

    def matches(self, event: Any) -> bool:
        """By the name, the lists, and at least one record."""
        if _at(event, "eventSource") not in self.event_sources:
            return False
        lists = _at(event, self.container)
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
            chosen = [each for at, each in enumerate(records, start) if at in wanted]
            start += len(records)
            if chosen:
                lists[name] = chosen
        return {**event, self.container: lists}


class Kafka(ByQueue):
    """Kafka, of MSK or self-managed."""

    name = "kafka"
    title = "Kafka (MSK and self-managed)"
    identity_text = "cluster + topic + partition + offset + the record's timestamp"
    event_sources = ("aws:kafka", "SelfManagedKafka")
    container = "records"
    retention_s = 8 * _DAY_S
    ordered = True
    reports_failures = True
    answers = FAILURES

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the timestamp, as the offsets of a topic that is created anew start from 0 again."""
        cluster = _at(event, "eventSourceArn") or _servers(_at(event, "bootstrapServers"))
        place = (_at(record, "topic"), _at(record, "partition"), _at(record, "offset"))
        known = _given(cluster, *place)
        return known and [*known, _at(record, "timestamp")]

    def identifier(self, record: Any) -> object:
        """The partition, with its topic's name, and the offset."""
        return {"partition": self.group(record), "offset": _at(record, "offset")}

    def group(self, record: Any) -> str:
        """The partition, with its topic's name."""
        return f"{_at(record, 'topic')}-{_at(record, 'partition')}"


class ActiveMQ(BatchSource):
    """Amazon MQ for ActiveMQ."""

    name = "activemq"
    title = "ActiveMQ"
    identity_text = "broker ARN + queue + `messageID`"
    container = "messages"
    retention_s = 7 * _DAY_S

    def matches(self, event: Any) -> bool:
        """By the name and the first message."""
        named = _at(event, "eventSource") in ("aws:mq", "aws:amq")
        return named and "messageID" in _first(event, "messages")

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the queue, as a topic gives one message to several queues."""
        where = _at(record, "destination")
        queue = _at(where, "physicalName") or _at(where, "physicalname")
        known = _given(_at(event, "eventSourceArn"), _at(record, "messageID"))
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
    retention_s = 7 * _DAY_S

    def record_identity(self, event: Any, record: Any) -> object | None:
        """With the queue, as an exchange gives one message to several queues."""
        queue = _at(record, "eventSourceKey") or self._queue(event, record)
        message_id = _at(record, "basicProperties", "messageId")
        return _given(_at(event, "eventSourceArn"), queue, message_id)

    def _queue(self, event: Any, record: Any) -> str | None:
        lists: dict[str, list[Any]] = _at(event, self.container) or {}
        if len(lists) == 1:  # always so, as a mapping has one queue
            return next(iter(lists))
        holding = (name for name, each in lists.items() if any(r is record for r in each))
        return next(holding, None)


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
        return _at(event[0], "eventSource") in self._event_sources

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
        return _at(record, self._reported_as)

    def group(self, record: Any) -> str | None:
        """As at the source."""
        return self._kind.group(record)


# ---- events


class S3ByEventBridge(Source):
    """S3's events on EventBridge, which retries for up to a day."""

    name = "s3"
    title = "S3 through EventBridge"
    identity_text = (
        "bucket + key + version + `sequencer` (the event's `id`, where there is none)"
        " + detail type + `replay-name`"
    )
    retention_s = 31 * _HOUR_S

    def matches(self, event: Any) -> bool:
        """By the source and the object."""
        return (
            isinstance(event, dict)
            and event.get("source") == "aws.s3"
            and _at(event, "detail", "object", "key") is not None
        )

    def identity(self, event: Any) -> object | None:
        """S3 may put one change on the bus twice, with two ids."""
        detail = event["detail"]
        thing = detail["object"]
        change = thing.get("sequencer") or event.get("id")
        bucket = _at(detail, "bucket", "name")
        known = _given(bucket, thing["key"], change, event.get("detail-type"))
        return known and [*known, thing.get("version-id"), event.get("replay-name")]


class EventBridge(Source):
    """EventBridge's events and schedule rules: a day of retries, then 6 h of Lambda's own."""

    name = "eventbridge"
    title = "EventBridge, schedule rules"
    identity_text = "account + source + `id` + `replay-name`"
    retention_s = 31 * _HOUR_S

    def matches(self, event: Any) -> bool:
        """By what every event on a bus has."""
        return isinstance(event, dict) and "detail-type" in event and "id" in event

    def identity(self, event: Any) -> object | None:
        """An event that is replayed from an archive on purpose is another one."""
        known = _given(event.get("account"), event.get("source"), event["id"])
        return known and [*known, event.get("replay-name")]


class Asynchronous(Source):
    """A service that invokes asynchronously and gives its events ids: 6 h of retries."""

    retention_s = 7 * _HOUR_S


class CloudWatchLogs(Asynchronous):
    """Log subscriptions."""

    name = "logs"
    title = "CloudWatch Logs"
    identity_text = "account + log group + log stream + filters + ids of the log events"
    missing = "its log data cannot be read"

    def matches(self, event: Any) -> bool:
        """By its packed data."""
        return isinstance(_at(event, "awslogs", "data"), str)

    def identity(self, event: Any) -> object | None:
        """From inside the packed data: packing the same again can give other bytes."""
        batch = _unpack(event["awslogs"]["data"])
        events = _at(batch, "logEvents")
        if not isinstance(events, list) or not events:
            return None
        place = (_at(batch, "owner"), _at(batch, "logGroup"), _at(batch, "logStream"))
        known = _given(*place, *(_at(each, "id") for each in events))
        return known and [known, _at(batch, "subscriptionFilters")]


class Ses(Asynchronous):
    """Mail received by SES."""

    name = "ses"
    title = "SES"
    identity_text = "SES's `messageId` + the recipients of the rule"

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return _first(event).get("eventSource") == "aws:ses"

    def identity(self, event: Any) -> object | None:
        """With the recipients, as several rules may invoke the function for one mail."""
        mail = _at(_first(event), "ses")
        known = _given(_at(mail, "mail", "messageId"))
        return known and [*known, _at(mail, "receipt", "recipients")]


class CodeCommit(Asynchronous):
    """Triggers of CodeCommit."""

    name = "codecommit"
    title = "CodeCommit"
    identity_text = "repository ARN + `eventId` + part + trigger"

    def matches(self, event: Any) -> bool:
        """By the first record."""
        return _first(event).get("eventSource") == "aws:codecommit"

    def identity(self, event: Any) -> object | None:
        """An event may come in several parts, and start several triggers."""
        record = _first(event)
        known = _given(record.get("eventSourceARN"), record.get("eventId"))
        return known and [*known, record.get("eventPartNumber"), record.get("eventTriggerName")]


class CustomResource(Asynchronous):
    """Custom resources of CloudFormation."""

    name = "cloudformation"
    title = "CloudFormation custom resources"
    identity_text = "stack + logical resource + `RequestId`"

    def matches(self, event: Any) -> bool:
        """By what every request has."""
        return isinstance(event, dict) and "StackId" in event and "ResponseURL" in event

    def identity(self, event: Any) -> object | None:
        """The signed URL for the answer is left out."""
        return _given(event["StackId"], event.get("LogicalResourceId"), event.get("RequestId"))


class SecretRotation(Asynchronous):
    """Rotations of Secrets Manager."""

    name = "secretsmanager"
    title = "Secrets Manager rotation"
    identity_text = "secret + version (`ClientRequestToken`) + step"

    def matches(self, event: Any) -> bool:
        """By what every step has."""
        return isinstance(event, dict) and "SecretId" in event and "ClientRequestToken" in event

    def identity(self, event: Any) -> object | None:
        """The token is the new version's id and no secret."""
        return _given(event["SecretId"], event["ClientRequestToken"], event.get("Step"))


class CodePipeline(Asynchronous):
    """Jobs of CodePipeline."""

    name = "codepipeline"
    title = "CodePipeline"
    identity_text = "account + job id + continuation"

    def matches(self, event: Any) -> bool:
        """By the job."""
        return isinstance(_at(event, "CodePipeline.job"), dict)

    def identity(self, event: Any) -> object | None:
        """The credentials for the artifacts are left out."""
        job = event["CodePipeline.job"]
        known = _given(job.get("accountId"), job.get("id"))
        return known and [*known, _at(job, "data", "continuationToken")]


class ConfigRule(Asynchronous):
    """Custom rules of AWS Config."""

    name = "config"
    title = "AWS Config rules"
    identity_text = "rule + the invoking event"

    def matches(self, event: Any) -> bool:
        """By the rule and what it is asked about."""
        return isinstance(event, dict) and "configRuleArn" in event and "invokingEvent" in event

    def identity(self, event: Any) -> object | None:
        """The token for the answer is left out."""
        return _given(event["configRuleArn"], event["invokingEvent"])


class WorkMail(Asynchronous):
    """Mail passing through WorkMail."""

    name = "workmail"
    title = "WorkMail"
    identity_text = "`messageId` + direction + recipients"

    def matches(self, event: Any) -> bool:
        """By what every message has."""
        return isinstance(event, dict) and "flowDirection" in event and "summaryVersion" in event

    def identity(self, event: Any) -> object | None:
        """With the recipients, as a mail to several is handled for each group of them."""
        known = _given(event.get("messageId"), event["flowDirection"])
        return known and [*known, _at(event, "envelope", "recipients")]


class S3Batch(Asynchronous):
    """S3 Batch Operations."""

    name = "s3-batch"
    title = "S3 Batch Operations"
    identity_text = "job + task"

    def matches(self, event: Any) -> bool:
        """By the first task."""
        return "taskId" in _first(event, "tasks") and "job" in event

    def identity(self, event: Any) -> object | None:
        """The invocation's id is left out."""
        return _given(_at(event, "job", "id"), *(_at(task, "taskId") for task in event["tasks"]))

    def is_failure(self, response: object) -> bool:
        """A task that failed for now is given to the function again."""
        found = _at(response, "results")
        codes = [_at(result, "resultCode") for result in found] if isinstance(found, list) else []
        return "TemporaryFailure" in codes


class Alexa(Asynchronous):
    """Alexa's skills: custom ones, and those for smart homes."""

    name = "alexa"
    title = "Alexa skills"
    identity_text = "skill + request id; of smart home skills the message id"

    def matches(self, event: Any) -> bool:
        """By the ids."""
        return self.identity(event) is not None

    def identity(self, event: Any) -> object | None:
        """The user's access tokens are left out."""
        return self._message(event) or _given(
            self._skill(event), _at(event, "request", "requestId")
        )

    def _message(self, event: Any) -> object | None:
        header = _at(event, "directive", "header") or _at(event, "header")
        namespace = _at(header, "namespace")
        is_home = isinstance(namespace, str) and namespace.startswith("Alexa")
        return _given(namespace, _at(header, "messageId")) if is_home else None

    def _skill(self, event: Any) -> object | None:
        in_session: object = _at(event, "session", "application", "applicationId")
        return in_session or _at(event, "context", "System", "application", "applicationId")


# ---- HTTP


class Http(Source):
    """A gateway that turns requests into events. The rules of HTTP are in the module http.

    infers_response  makes a 200 of a response without statusCode, where others make an error
    wants_reason     takes the status also as text, in ``statusDescription``
    """

    is_http = True
    title = "API Gateway v1 and v2, Function URL, ALB, VPC Lattice"
    identity_text = (
        "API or target group + domain + method + path + principal + `Idempotency-Key` header;"
        " without the header, and for GET, HEAD, OPTIONS and TRACE, run unprotected"
    )
    retention_s = _DAY_S
    infers_response = False
    wants_reason = False

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(_at(event, "httpMethod"))

    def resource(self, event: Any) -> list[object]:
        """What tells the requested resource from those of other APIs, domains and paths."""
        raise NotImplementedError

    def guarded(self, event: Any, has_expression: bool) -> bool:
        """Not where repeating does no harm by definition, nor where the client wants no key."""
        if self.method(event).upper() in SAFE_METHODS:
            return False
        from . import http

        return has_expression or http.has_key(event)

    def identity(self, event: Any) -> object | None:
        """The client's key, which counts for one caller and one resource only."""
        from . import http

        caller, key = http.known_principal(event), http.key_in_header(event)
        return [self.method(event).upper(), self.resource(event), caller, key]

    def is_failure(self, response: object) -> bool:
        """By the status."""
        from . import http

        return http.is_failure(response, self.infers_response)


class ApiGatewayV1(Http):
    """REST APIs, and HTTP APIs with payload format 1.0."""

    name = "apigateway-v1"

    def matches(self, event: Any) -> bool:
        """By the method and the context; load balancers have them too, but another context."""
        context = _at(event, "requestContext")
        return isinstance(context, dict) and "httpMethod" in event and "elb" not in context

    def resource(self, event: Any) -> list[object]:
        """The API, its stage and domain, and the path."""
        return _api(event["requestContext"], event.get("path"))


class ApiGatewayV2(Http):
    """HTTP APIs with payload format 2.0."""

    name = "apigateway-v2"
    infers_response = True

    def matches(self, event: Any) -> bool:
        """By the context's ``http``."""
        return isinstance(_at(event, "requestContext", "http"), dict)

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(_at(event, "requestContext", "http", "method"))

    def resource(self, event: Any) -> list[object]:
        """The API, its stage and domain, and the path."""
        return _api(event["requestContext"], event.get("rawPath"))


class FunctionUrl(ApiGatewayV2):
    """Function URLs: payload format 2.0 under a domain of their own."""

    name = "function-url"

    def matches(self, event: Any) -> bool:
        """By the domain."""
        domain = _at(event, "requestContext", "domainName")
        return isinstance(domain, str) and ".lambda-url." in domain and super().matches(event)


class LoadBalancer(Http):
    """Application load balancers, with single or multiple header values."""

    name = "alb"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By the context's ``elb``."""
        return isinstance(_at(event, "requestContext", "elb"), dict)

    def resource(self, event: Any) -> list[object]:
        """The target group, the host and the path."""
        group = _at(event, "requestContext", "elb", "targetGroupArn")
        return [group, _host(event), event.get("path")]


class LatticeV2(Http):
    """VPC Lattice, event structure 2.0."""

    name = "lattice-v2"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By the context's service."""
        return _at(event, "requestContext", "serviceArn") is not None

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(event.get("method"))

    def resource(self, event: Any) -> list[object]:
        """The service, the target group, the host and the path without its query."""
        context = event["requestContext"]
        path = str(event.get("path")).partition("?")[0]
        return [context["serviceArn"], context.get("targetGroupArn"), _host(event), path]


class LatticeV1(Http):
    """VPC Lattice, event structure 1.0."""

    name = "lattice-v1"
    wants_reason = True

    def matches(self, event: Any) -> bool:
        """By its own spelling of the path."""
        return isinstance(event, dict) and "raw_path" in event and "method" in event

    def method(self, event: Any) -> str:
        """The request's method."""
        return str(event["method"])

    def resource(self, event: Any) -> list[object]:
        """The host and the path without its query; the event does not name its service."""
        return [_host(event), str(event["raw_path"]).partition("?")[0]]


# ---- the rest


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


_APPSYNC = AppSync()
_SQS, _KINESIS, _STREAM = Sqs(), Kinesis(), DynamoDBStream()
_KAFKA, _ACTIVEMQ, _RABBITMQ = Kafka(), ActiveMQ(), RabbitMQ()
_S3, _S3_BY_EVENTBRIDGE, _EVENTBRIDGE = S3(), S3ByEventBridge(), EventBridge()

# The first that matches counts. Those that must let everything pass come first; the frequent ones
# come before the rare ones, wherever they cannot be taken for one another.
SOURCES: tuple[Source, ...] = (
    Durable(),
    TumblingWindow(),
    Authorizer(),
    WebSocket(),
    FunctionUrl(),
    ApiGatewayV2(),
    LoadBalancer(),
    LatticeV2(),
    ApiGatewayV1(),
    LatticeV1(),
    _SQS,
    _S3_BY_EVENTBRIDGE,
    _EVENTBRIDGE,
    Sns(),
    _S3,
    _KINESIS,
    _STREAM,
    _KAFKA,
    _ACTIVEMQ,
    _RABBITMQ,
    Pipes(_SQS, "aws:sqs", reported_as="messageId"),
    Pipes(_KINESIS, "aws:kinesis", reported_as="eventID"),
    Pipes(_STREAM, "aws:dynamodb", reported_as="eventID"),
    Pipes(_KAFKA, "aws:kafka", "SelfManagedKafka"),
    Pipes(_ACTIVEMQ, "aws:mq", "aws:amq"),
    Pipes(_RABBITMQ, "aws:rmq"),
    AppSyncBatch(),
    _APPSYNC,
    Cognito(),
    Conversation(),
    Firehose(),
    CloudWatchLogs(),
    Ses(),
    CodeCommit(),
    LambdaEdge(),
    CustomResource(),
    SecretRotation(),
    CodePipeline(),
    ConfigRule(),
    WorkMail(),
    S3Batch(),
    Alexa(),
    Direct(),
)


def recognise(event: Any) -> Source:
    """The first source that matches."""
    return next(source for source in SOURCES if source.matches(event))


def counts_as_failure(source: Source, response: object, rule: Expression | None) -> bool:
    """Whether the response is not to be kept: by the configured rule, or by the source's own.

    The rule decides by the result true; any other says that it is to be kept. Raises
    ExpressionError if it cannot be evaluated.
    """
    if rule is None:
        return source.is_failure(response)
    return rule.search(response) is True


# ---- reading events, of which nothing is certain


def _at(value: Any, *path: str) -> Any:
    """The member at ``path``; None where there is none, or the way leads through no object."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _first(event: Any, container: str = "Records") -> dict[str, Any]:
    """The first record, if it is an object; else an empty one."""
    records = event.get(container) if isinstance(event, dict) else None
    first = records[0] if isinstance(records, list) and records else None
    return first if isinstance(first, dict) else {}


def _given(*values: object) -> list[object] | None:
    """The values; None if one is missing, as the others alone would be shared by several events."""
    return None if any(value is None or value == "" for value in values) else list(values)


def _servers(listed: object) -> list[str] | None:
    """The addresses of a self-managed cluster, in an order of ours."""
    text = listed if isinstance(listed, str) else None
    return sorted(text.split(",")) if text else None


def _api(context: dict[str, Any], path: object) -> list[object]:
    """The domain too: one API may serve each of its customers under another domain."""
    return [context.get("apiId"), context.get("stage"), context.get("domainName"), path]


def _host(event: Any) -> str | None:
    from .callers import header_values

    hosts = header_values(event, "host")
    return hosts[0].lower() if hosts else None


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
    if _at(inner, "Type") == "Notification":
        return _given(_at(inner, "TopicArn"), _at(inner, "MessageId"))
    for source in (_S3, _S3_BY_EVENTBRIDGE, _EVENTBRIDGE):
        if source.matches(inner):
            return source.identity(inner)
    return None


# What the body holds if it is an SNS, S3 or EventBridge envelope.
_MARKS = ('"TopicArn"', '"aws:s3"', '"detail-type"')


def _unpack(data: str) -> object | None:
    """What CloudWatch Logs packed: JSON, gzip, base64. None if it is anything else."""
    import base64
    import zlib

    try:
        unpacked: object = json.loads(zlib.decompress(base64.b64decode(data), wbits=31))
    except (ValueError, zlib.error, RecursionError):
        return None
    return unpacked
