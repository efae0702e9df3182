"""Takes orders over HTTP. An ordinary handler of an HTTP API: nothing in it knows of repeats."""

from __future__ import annotations

import json
import uuid
from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer POST /orders, {"item": "tea", "amount": 4.5}; 400 if a member is missing.

    Each run draws a new order number, so an answer that comes again shows that nothing ran.
    """
    order = json.loads(event.get("body") or "{}")
    if not {"item", "amount"} <= order.keys():
        return answer(400, {"message": "item and amount are needed"})
    return answer(201, {"orderId": uuid.uuid4().hex, **order})


def answer(status: int, body: dict[str, Any]) -> dict[str, Any]:
    """A response of an HTTP API with a JSON body."""
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(body),
    }
