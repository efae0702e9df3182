"""The user's function: ships an order, and writes each step into a ledger that outlives it.

Runs in the emulator too, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from typing import Any, NamedTuple


class DeclinedError(Exception):
    """An ordinary failure, before the side effect."""


class Uncaught(BaseException):
    """What the runtime does not catch either."""


class Run(NamedTuple):
    """One run of the handler: what it was asked to do, and the names under which it is found."""

    event: dict[str, Any]
    request: str
    id: str


def note(what: str, run: Run) -> None:
    """One line, in one write to a file opened for appending: whole or not at all."""
    entry = {
        "what": what,
        "order": run.event["order"],
        "delivery": run.event["delivery"],
        "request": run.request,
        "run": run.id,
        "at_ns": time.time_ns(),
    }
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, f"{json.dumps(entry)}\n".encode())
    finally:
        os.close(ledger)


def die(run: Run) -> None:
    """End this process, or this call, in the way that the delivery asks for."""
    note("dying", run)
    how = run.event["how"]
    if how == "sys.exit":
        sys.exit(3)
    if how == "os._exit":
        os._exit(4)
    if how == "BaseException":
        raise Uncaught(run.event["order"])
    time.sleep(60)  # until the platform ends it


def handler(event: dict[str, Any], context: Any) -> object:
    """Ship the order; the line "effect" is the side effect that must happen once."""
    run = Run(event, context.aws_request_id, uuid.uuid4().hex)
    note("begin", run)
    time.sleep(event["before_s"])
    if event["declined"]:
        raise DeclinedError(event["order"])
    if event["dies"] == "before":
        die(run)
    note("effect", run)
    time.sleep(event["after_s"])
    if event["dies"] == "after":
        die(run)
    return {"shipped": event["order"], "run": run.id}
