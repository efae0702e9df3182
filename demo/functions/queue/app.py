"""Works off a queue of orders. An ordinary handler of SQS: nothing in it knows of repeats.

With IDEMPOTENCY_BATCH=each it is called with one message at a time, so an order that fails costs
no other order a second delivery, and the code needs no list of failures.
"""

from __future__ import annotations

import json
from typing import Any


def handler(event: dict[str, Any], context: object) -> None:
    """Ship every order of the batch: {"orderId": "1001", "address": "..."}; ValueError fails it."""
    for record in event["Records"]:
        order = json.loads(record["body"])
        if not order.get("address"):
            raise ValueError(f"order {order.get('orderId')} has no address")
        print(f"shipped {order['orderId']}")
