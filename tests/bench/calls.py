"""Measures the CPU time and requests of invocations in a process of its own; prints JSON.

    python -m tests.bench.calls SUBJECT KIND COUNTER

The environment names the DynamoDB. COUNTER is the plain URL of the canned one.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from typing import Any, NamedTuple

from tests.bench.canned import DONE, FRESH, counted
from tests.bench.subjects import SUBJECTS, Call, books, fails

WARM_UP = 30


class Kind(NamedTuple):
    """A kind of invocation.

    calls     how many are measured
    requests  how many each should make to DynamoDB
    handler   the user's
    is_done   whether the table holds a result for every event
    is_same   whether all events are one and the same, and results are kept in memory
    """

    calls: int
    requests: int
    handler: Callable[[Any, Any], Any] = books
    is_done: bool = False
    is_same: bool = False


KINDS = {
    "first run": Kind(150, 2),
    "replay": Kind(150, 1, is_done=True),
    "release": Kind(150, 2, fails),
    "cached replay": Kind(3_000, 0, is_same=True),
}


def measure(subject: str, kind: Kind, counter: str) -> Mapping[str, float]:
    table = DONE.get(subject, FRESH) if kind.is_done else FRESH
    call = SUBJECTS[subject](table, kind.handler, kind.is_same)
    _call_all(call, _events("warm", WARM_UP, kind))
    if kind.is_same:
        _call_all(call, _events("order", 1, kind))
    counted(counter)
    events = list(_events("order", kind.calls, kind))
    started = time.process_time()
    _call_all(call, events)
    took = time.process_time() - started
    requests = sum(counted(counter).values())
    return {"cpu_ms": took / kind.calls * 1000, "requests": requests / kind.calls}


def _events(name: str, count: int, kind: Kind) -> Iterable[dict[str, Any]]:
    for number in range(count):
        yield {"orderId": f"{name}-{0 if kind.is_same else number}", "amount": 12.5}


def _call_all(call: Call, events: Iterable[Any]) -> None:
    for event in events:
        try:
            call(event)
        except LookupError:  # noqa: PERF203  what the failing handler raises
            continue


if __name__ == "__main__":
    # What is measured may print; the output is ours.
    with redirect_stdout(io.StringIO()):
        result = measure(sys.argv[1], KINDS[sys.argv[2]], sys.argv[3])
    print(json.dumps(result))
