"""Measures one batch size in a process of its own, and prints what it found as JSON.

    python -m tests.bench.batches SUBJECT TABLE RECORDS

The environment names the DynamoDB. A first, small batch pays for imports and connections.
"""

from __future__ import annotations

import io
import json
import sys
import time
import tracemalloc
import uuid
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tests.bench.subjects import BATCH_SUBJECTS

WARM_UP = 32
# About what an order is.
BODY = json.dumps({"orderId": "0000", "amount": 12.5, "items": ["book", "pen"], "note": "x" * 200})


def event(count: int) -> str:
    """A batch of SQS messages as it comes over the wire."""
    return json.dumps({"Records": [_record() for _ in range(count)]})


def _record() -> dict[str, Any]:
    return {
        "messageId": str(uuid.uuid4()),
        "receiptHandle": uuid.uuid4().hex * 5,
        "body": BODY,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1800000000000",
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": "1800000000001",
        },
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:orders",
        "awsRegion": "eu-west-1",
    }


def memory_kb(name: str) -> int:
    """``VmRSS``, what this process has in memory now, or ``VmHWM``, the most since the reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise ValueError(name)


def forget_peak() -> None:
    """Let ``VmHWM`` start from here. Source: proc(5), clear_refs."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_of(text: str) -> float:
    """What the parsed event takes, in bytes."""
    tracemalloc.start()
    parsed = json.loads(text)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size if parsed else 0


def measure(subject: str, table: str, count: int) -> dict[str, float]:
    """``peak_mb`` is what the process needed most beyond what it had with the parsed event."""
    call = BATCH_SUBJECTS[subject](table)
    call(json.loads(event(WARM_UP)))
    text = event(count)
    event_bytes = memory_of(text)
    batch = json.loads(text)
    before_kb = memory_kb("VmRSS")
    forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    call(batch)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "event_mb": event_bytes / 2**20,
        "peak_mb": (memory_kb("VmHWM") - before_kb) / 1024,
    }


if __name__ == "__main__":
    # What is measured may print; the output is ours.
    with redirect_stdout(io.StringIO()):
        result = measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps(result))
