"""The function of with_boto3.py, made idempotent with Powertools."""

from __future__ import annotations

import boto3
from with_powertools import handler  # type: ignore[import-not-found]  # its neighbour on Lambda

__all__ = ["handler"]

client = boto3.client("dynamodb")
