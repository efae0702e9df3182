"""The six cases. Each is played, looked at, and compared with what it should show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from demo.shop import Shop
from tests.support.emulator import Reply

PAID = {"orderId": "1001", "amount": 49.9}
SLOW = {"orderId": "1002", "amount": 15, "takes_s": 2}
DECLINED = {"orderId": "1003", "amount": 8, "card": "declined"}
ACCEPTED = {"orderId": "1003", "amount": 8, "card": "accepted"}


@dataclass(frozen=True)
class Case:
    """One case: what was seen, and in `faults` what should have been seen instead.

    `status` is derived from what happened: `executed`, `replayed`, the errorType of an error, or
    the status of the stored record. `body` is the answer, byte for byte.
    """

    name: str
    status: str
    body: str
    handler_runs: int
    remark: str
    faults: tuple[str, ...]


def run_cases(shop: Shop) -> Iterator[Case]:
    """Play all of them, in order: each builds on those before."""
    first = first_run(shop)
    yield first
    yield replay(shop, first)
    yield two_at_once(shop)
    yield failure(shop)
    yield retry(shop)
    yield record(shop, first)


def first_run(shop: Shop) -> Case:
    """An order comes for the first time."""
    reply = shop.a.invoke(PAID)
    runs = shop.runs_of("1001")
    faults = expect(
        (reply.error_type is None, f"the handler should have answered, not {reply.body!r}"),
        (runs == 1, f"the handler should have run once, not {runs} times"),
    )
    return seen("first run", reply, "executed", runs, "the handler ran", faults)


def replay(shop: Shop, first: Case) -> Case:
    """The same order again, in another environment."""
    reply = shop.b.invoke(PAID)
    runs = shop.runs_of("1001")
    faults = expect(
        (text(reply) == first.body, f"the answer should be {first.body}, not {text(reply)}"),
        (runs == first.handler_runs, f"the handler should not have run again: {runs} runs"),
    )
    status = "replayed" if runs == first.handler_runs else "executed"
    return seen("replay", reply, status, runs, "the same bytes, nothing ran", faults)


def two_at_once(shop: Shop) -> Case:
    """An order comes while it is being worked on."""
    with ThreadPoolExecutor(1) as pool:
        at_work = pool.submit(shop.a.invoke, SLOW)
        shop.wait_for_run_of("1002")
        reply = shop.b.invoke(SLOW)
        done = at_work.result()
    runs = shop.runs_of("1002")
    faults = expect(
        (
            reply.error_type == "IdempotencyInProgressError",
            f"the second should be told that the first is at work, not {text(reply)}",
        ),
        (done.error_type is None, f"the first should have answered, not {text(done)}"),
        (runs == 1, f"the handler should have run once, not {runs} times"),
    )
    return seen("two at once", reply, "executed", runs, "one runs, the other is refused", faults)


def failure(shop: Shop) -> Case:
    """The handler raises: the caller sees its error, and no record stays."""
    before = shop.records()
    reply = shop.a.invoke(DECLINED)
    runs = shop.runs_of("1003")
    faults = expect(
        (
            reply.error_type == "CardDeclinedError",
            f"the caller should see the handler's own error, not {text(reply)}",
        ),
        (shop.records() == before, "the claim should have been released, a record is left"),
        (runs == 1, f"the handler should have run once, not {runs} times"),
    )
    return seen("raise", reply, "executed", runs, "the handler's own error, no record", faults)


def retry(shop: Shop) -> Case:
    """The retry of what has failed runs."""
    reply = shop.b.invoke(ACCEPTED)
    runs = shop.runs_of("1003")
    faults = expect(
        (reply.error_type is None, f"the retry should have answered, not {text(reply)}"),
        (runs == 2, f"the handler should have run for the second time, not {runs} times"),
    )
    return seen("retry", reply, "executed", runs, "the handler ran again", faults)


def record(shop: Shop, first: Case) -> Case:
    """What is stored for the first order."""
    stored = [plain(item) for item in shop.records()]
    found = next((item for item in stored if item.get("result") == first.body), {})
    faults = expect(
        (len(stored) == 3, f"there should be a record for each of 3 orders, not {len(stored)}"),
        (found.get("status") == "COMPLETED", "the first order's record should be COMPLETED"),
        (
            str(found.get("id")).startswith("orders#"),
            "its id should begin with the scope",
        ),
    )
    runs = shop.runs_of("1001")
    status = str(found.get("status"))
    return Case("record", status, json.dumps(found), runs, "as stored in DynamoDB", faults)


def seen(
    name: str, reply: Reply, status: str, runs: int, remark: str, faults: tuple[str, ...]
) -> Case:
    """A case that ended in this reply."""
    return Case(name, reply.error_type or status, text(reply), runs, remark, faults)


def text(reply: Reply) -> str:
    """The body of a reply as text."""
    return reply.body.decode("utf-8", "replace")


def expect(*expectations: tuple[bool, str]) -> tuple[str, ...]:
    """What to say of those that do not hold."""
    return tuple(complaint for holds, complaint in expectations if not holds)


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item without DynamoDB's types, its numbers as numbers."""
    return {
        name: int(value["N"]) if "N" in value else value.get("S", str(value))
        for name, value in item.items()
    }
