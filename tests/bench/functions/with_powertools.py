"""The function of plain.py, made idempotent with Powertools."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent,
)


@idempotent(  # type: ignore[untyped-decorator]  # installed for the bench alone
    config=IdempotencyConfig(event_key_jmespath="orderId"),
    persistence_store=DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"]),
)
def handler(event: Any, context: Any) -> Any:
    return {"status": "booked"}
