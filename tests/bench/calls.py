"""Measures the CPU time of single invocations in a process of its own, and prints ms as JSON.

python -m tests.bench.calls SUBJECT TABLE CALLS
"""

from __future__ import annotations

import json
import sys
import time

from tests.bench.subjects import SUBJECTS, quietly

WARM_UP = 30


def measure(subject: str, table: str, count: int) -> float:
    call = quietly(SUBJECTS[subject](table))
    for number in range(WARM_UP):
        call({"orderId": f"warm-{number}"})
    started = time.process_time()
    for number in range(count):
        call({"orderId": f"order-{number}", "amount": 12.5})
    return (time.process_time() - started) / count * 1000


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
