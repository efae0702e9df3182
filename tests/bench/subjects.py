"""The functions that are measured: guarded by the layer, by Powertools, and by nothing."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

RESULT = {"status": "booked"}
Call = Callable[[Any], Any]


class Context:
    """What the runtime passes with an event. The invocation has 15 minutes from its creation."""

    aws_request_id = "8f5c1f6e-1c1f-4d0a-9b1a-2f1b2c3d4e5f"
    function_name = "orders"
    memory_limit_in_mb = "512"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders"
    tenant_id = None

    def __init__(self) -> None:
        self._end = time.monotonic() + 900

    def get_remaining_time_in_millis(self) -> int:
        return int((self._end - time.monotonic()) * 1000)


def handler(event: Any, context: object) -> Any:
    """The user's function: next to nothing, so that what is around it shows."""
    return RESULT


def bare(table: str) -> Call:
    """Without idempotency."""
    return lambda event: handler(event, Context())


def _to_nobody(line: str) -> None:
    """In place of the standard error."""


def layer(table: str, variables: Mapping[str, str] | None = None) -> Call:
    """As the bootstrap makes it, with the same parts."""
    from lambda_once.config import Config
    from lambda_once.telemetry.log import Log
    from lambda_once_wrapper import bootstrap

    environ = {"IDEMPOTENCY_TABLE": table, "AWS_LAMBDA_FUNCTION_NAME": "orders"}
    config = Config.from_environ({**environ, **(variables or {})})
    engine = bootstrap._engine(config, Log(os.environ, _to_nobody))
    guarded = bootstrap._guarded(handler, engine)
    return lambda event: guarded(event, Context())


def layer_by_key(table: str) -> Call:
    """The layer with the key that Powertools gets here."""
    return layer(table, {"IDEMPOTENCY_KEY": "orderId"})


def powertools(table: str) -> Call:
    """Powertools' decorator around the whole handler."""
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent,
    )

    guarded = idempotent(
        handler,
        config=IdempotencyConfig(event_key_jmespath="orderId"),
        persistence_store=DynamoDBPersistenceLayer(table_name=table),
    )
    return lambda event: guarded(event, Context())


def powertools_batch(table: str) -> Call:
    """Powertools' batch processor, with an idempotent function for each record."""
    from aws_lambda_powertools.utilities.batch import (
        BatchProcessor,
        EventType,
        process_partial_response,
    )
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent_function,
    )

    config = IdempotencyConfig(event_key_jmespath="messageId")

    def work(record: Any) -> Any:
        return RESULT

    guarded = idempotent_function(
        work,
        data_keyword_argument="record",
        config=config,
        persistence_store=DynamoDBPersistenceLayer(table_name=table),
    )
    processor = BatchProcessor(event_type=EventType.SQS)

    def call(event: Any) -> Any:
        context = Context()
        config.register_lambda_context(context)
        return process_partial_response(
            event=event,
            record_handler=lambda record: guarded(record=record.raw_event),
            processor=processor,
            context=context,
        )

    return call


def quietly(call: Call) -> Call:
    """Without what it prints: a bench's output is its own."""

    def quiet(event: Any) -> Any:
        with redirect_stdout(io.StringIO()):
            return call(event)

    return quiet


SUBJECTS: Mapping[str, Callable[[str], Call]] = {
    "bare": bare,
    "layer": layer_by_key,
    "powertools": powertools,
    "layer batch": layer,
    "powertools batch": powertools_batch,
}
