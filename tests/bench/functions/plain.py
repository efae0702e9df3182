"""A function that needs nothing."""

from __future__ import annotations

from typing import Any


def handler(event: Any, context: Any) -> Any:
    return {"status": "booked"}
