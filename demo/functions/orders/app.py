"""Takes orders. An ordinary handler: nothing in it knows of repeated events."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

# Each order that is charged is a line in this book. It stands for a side effect that must not
# happen twice.
BOOK = Path(os.environ.get("ORDERS_BOOK") or Path(tempfile.gettempdir()) / "orders.txt")


class CardDeclinedError(Exception):
    """The customer's bank said no."""


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Charge one order: {"orderId": "1001", "amount": 49.9}."""
    entry = write_into_book(event["orderId"])
    time.sleep(event.get("takes_s", 0))
    if event.get("card") == "declined":
        raise CardDeclinedError(f"the card for order {event['orderId']} was declined")
    return {"orderId": event["orderId"], "charged": event["amount"], "receipt": f"R-{entry}"}


def write_into_book(order_id: str) -> int:
    """Add a line; its number."""
    with BOOK.open("a+", encoding="utf-8") as book:
        book.write(f"{order_id}\n")
        book.flush()
        book.seek(0)
        return len(book.readlines())
