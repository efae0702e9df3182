"""The functions that are measured: guarded by the layer, by Powertools, and by nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

RESULT = {"status": "booked"}
# How many results are kept in memory, where any are: what Powertools takes by itself.
CACHED = 256
Call = Callable[[Any], Any]
Handler = Callable[[Any, Any], Any]


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


def books(event: Any, context: object) -> Any:
    """The user's function: next to nothing, so that what is around it shows."""
    return RESULT


def fails(event: Any, context: object) -> Any:
    """A function that fails."""
    raise LookupError("no such order")


def bare(table: str, handler: Handler, is_cached: bool) -> Call:
    """Without idempotency."""
    return lambda event: handler(event, Context())


def _to_nobody(line: str) -> None:
    """In place of the standard error."""


def layer(table: str, handler: Handler, variables: Mapping[str, str]) -> Call:
    """As the bootstrap makes it, with the same parts. All that knows the layer's inside is here."""
    from lambda_once.config import Config
    from lambda_once.telemetry.log import Log
    from lambda_once_wrapper import bootstrap

    environ = {"IDEMPOTENCY_TABLE": table, "AWS_LAMBDA_FUNCTION_NAME": "orders", **variables}
    config = Config.from_environ(environ)
    engine = bootstrap._engine(config, Log(os.environ, _to_nobody))
    guarded = bootstrap._guarded(handler, engine)
    return lambda event: guarded(event, Context())


def layer_by_key(table: str, handler: Handler, is_cached: bool) -> Call:
    """The layer with the key that Powertools gets here."""
    cache = {"IDEMPOTENCY_CACHE": str(CACHED)} if is_cached else {}
    return layer(table, handler, {"IDEMPOTENCY_KEY": "orderId", **cache})


def powertools(table: str, handler: Handler, is_cached: bool) -> Call:
    """Powertools' decorator around the whole handler."""
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent,
    )

    guarded = idempotent(
        handler,
        config=IdempotencyConfig(
            event_key_jmespath="orderId",
            use_local_cache=is_cached,
            local_cache_max_items=CACHED,
        ),
        persistence_store=DynamoDBPersistenceLayer(table_name=table),
    )
    return lambda event: guarded(event, Context())


def layer_batch(table: str) -> Call:
    """The layer as it comes."""
    return layer(table, books, {})


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


SUBJECTS: Mapping[str, Callable[[str, Handler, bool], Call]] = {
    "bare": bare,
    "layer": layer_by_key,
    "powertools": powertools,
}
BATCH_SUBJECTS: Mapping[str, Callable[[str], Call]] = {
    "layer": layer_batch,
    "powertools": powertools_batch,
}
