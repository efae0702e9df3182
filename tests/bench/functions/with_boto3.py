"""A function that uses boto3 itself, as most do."""

from __future__ import annotations

from typing import Any

import boto3

client = boto3.client("dynamodb")


def handler(event: Any, context: Any) -> Any:
    return {"status": "booked"}
