"""A shop's functions on a queue, as a user writes them: nothing in here knows of idempotency.

The side effect is a line in a ledger. What is to go wrong stands in the message.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any


def book(record: Any, context: Any) -> None:
    """The side effect: one line, in one write, so that all functions may share the ledger."""
    line = {
        "message": record["messageId"],
        "group": record["attributes"].get("MessageGroupId"),
        "number": json.loads(record["body"])["number"],
        "delivery": int(context.client_context.custom["delivery"]),
    }
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, (json.dumps(line) + "\n").encode())
    os.close(ledger)


def check(record: Any) -> None:
    """Fail where the message says so: at its first so many receives."""
    order = json.loads(record["body"])
    if int(record["attributes"]["ApproximateReceiveCount"]) <= order.get("fails", 0):
        raise ValueError(f"no stock for order {order['number']}")


def die_if_told(record: Any, moment: str) -> None:
    """End as if the environment's machine were gone, or never come back, at the first receive."""
    told = json.loads(record["body"]).get("dies")
    if told != moment or record["attributes"]["ApproximateReceiveCount"] != "1":
        return
    if told == "late":
        time.sleep(60)
    os.kill(os.getpid(), signal.SIGKILL)


def work(record: Any, context: Any) -> None:
    check(record)
    time.sleep(json.loads(record["body"]).get("takes_s", 0))
    die_if_told(record, "before")
    book(record, context)
    die_if_told(record, "after")
    die_if_told(record, "late")


def raising(event: Any, context: Any) -> None:
    """Works through the records; the first failure is everyone's."""
    for record in event["Records"]:
        work(record, context)


def checking_first(event: Any, context: Any) -> None:
    """All or nothing: a failure shows before the first side effect."""
    for record in event["Records"]:
        check(record)
    for record in event["Records"]:
        work(record, context)


def reporting(event: Any, context: Any) -> Any:
    """Reports the records that failed."""
    failed = []
    for record in event["Records"]:
        try:
            work(record, context)
        except ValueError:  # noqa: PERF203  one failure must not cost the others
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def reporting_in_order(event: Any, context: Any) -> Any:
    """Stops a message group at its first failure, and reports it and the rest of the group."""
    stopped: set[str] = set()
    failed = []
    for record in event["Records"]:
        group = record["attributes"]["MessageGroupId"]
        try:
            if group in stopped:
                raise ValueError("an earlier message of the group failed")
            work(record, context)
        except ValueError:
            stopped.add(group)
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
