"""Sources that are never guarded, or only by an expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import DAY_S, HOUR_S, LIST, BatchSource, GuardedByExpression, NeverGuarded
from .reading import at, first


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
        return "cf" in first(event)


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
    retention_s = 25 * HOUR_S

    def matches(self, event: Any) -> bool:
        """By the invocation's and the first record's id."""
        return "recordId" in first(event, "records") and "invocationId" in event


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
    retention_s = DAY_S

    def matches(self, event: Any) -> bool:
        """By the field that is resolved."""
        return at(event, "info", "fieldName") is not None and "arguments" in event


class AppSyncBatch(BatchSource):
    """AppSync's BatchInvoke: a list of resolver contexts; a list of as many answers."""

    name = "appsync-batch"
    title = "AppSync batch resolvers"
    retention_s = DAY_S
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


_APPSYNC = AppSync()

SOURCES = (
    Durable(),
    TumblingWindow(),
    Authorizer(),
    AppSyncBatch(),
    _APPSYNC,
    Cognito(),
    Conversation(),
    Firehose(),
    LambdaEdge(),
)
