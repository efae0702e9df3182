"""The user's function: charges an order, and counts how often it has done so."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

RUNS: Counter[str] = Counter()
# For orders that wait: opened by the test that wants the handler to go on.
GATES: dict[str, threading.Event] = {}
# Incompressible and too long for one item: three parts.
BIG_BYTES = 500_000


class CardDeclinedError(Exception):
    """What this function raises by itself."""


def handler(event: dict[str, Any], context: object) -> object:
    """Do what the order says: return, raise, return much, wait for the gate, take its time."""
    order = event["orderId"]
    RUNS[order] += 1
    time.sleep(event.get("takes_s", 0))
    if gate := GATES.get(order):
        gate.wait(30)
    match event.get("do", "return"):
        case "raise":
            raise CardDeclinedError(order)
        case "big":
            return {"noise": random.Random(order).randbytes(BIG_BYTES).hex()}
        case "exit":
            raise SystemExit(3)
        case _:
            return {"paid": order, "run": RUNS[order]}
