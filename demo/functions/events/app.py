"""Welcomes new customers. An ordinary handler of EventBridge: nothing in it knows of repeats.

EventBridge delivers at least once, and asynchronous invocations are retried: without the layer a
customer may get two letters.
"""

from __future__ import annotations

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, str]:
    """Send one letter for {"detail": {"email": "..."}}; the result is kept for repeats."""
    email = event["detail"]["email"]
    print(f"welcomed {email}")
    return {"welcomed": email}
