"""Faults in random order on all requests, several callers: each order is charged once."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter, defaultdict

import pytest

from lambda_once.store import dynamodb
from tests.faults.conftest import NewFunction
from tests.faults.function import Answer, Context, Function, Log, new_order
from tests.faults.table import TRIALS
from tests.support.fault_proxy import ANY, PASS, FaultProxy

LONG = os.environ.get("LAMBDA_ONCE_LONG") == "1"
SEED = int(os.environ.get("LAMBDA_ONCE_SEED") or random.SystemRandom().randrange(10**9))
ORDERS = 4_000 if LONG else 200
CALLERS = 4
# Of the invocation's time; the lease, which a lost release leaves behind, is one second longer.
REMAINING_MS = 2_000
BROKEN_PART = 0.4


class Callers:
    """Invoke all orders, side by side and in random order, until each has a result."""

    def __init__(self, function: Function, proxy: FaultProxy) -> None:
        self._function = function
        self._proxy = proxy
        self._lock = threading.Lock()
        self._open = [new_order() for _ in range(ORDERS)]
        self.order_of_request: dict[str, str] = {}
        self.results: defaultdict[str, list[object]] = defaultdict(list)
        self.faults = 0

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._call, args=(random.Random(f"{SEED}.{number}"),))
            for number in range(CALLERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _call(self, chance: random.Random) -> None:
        while (order := self._take(chance)) is not None:
            self._break_some(chance)
            context = Context(REMAINING_MS)
            self.order_of_request[context.aws_request_id] = order
            self._note(order, self._function.invoke(order, context))

    def _take(self, chance: random.Random) -> str | None:
        with self._lock:
            return chance.choice(self._open) if self._open else None

    def _break_some(self, chance: random.Random) -> None:
        for _ in range(4):
            broken = chance.random() < BROKEN_PART
            self.faults += broken
            self._proxy.inject(ANY, chance.choice(TRIALS).fault if broken else PASS)

    def _note(self, order: str, answer: Answer) -> None:
        with self._lock:
            if answer.error is None:
                self.results[order].append(answer.result)
                if order in self._open:
                    self._open.remove(order)
                return
        time.sleep(0.02)


def test_each_order_is_charged_once_but_where_the_log_says_that_it_could_not_be_recorded(
    new_function: NewFunction,
    proxy: FaultProxy,
    runs: Counter[str],
    log: Log,
    tried: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dynamodb, "FIRST_PAUSE_MS", 4)
    function = new_function()
    function.invoke(new_order())
    callers = Callers(function, proxy)
    callers.run()
    tried["at random"] += callers.faults
    unrecorded = Counter(
        callers.order_of_request[line["requestId"]]
        for line in log.lines()
        if line["outcome"] in ("unrecorded", "claim_lost")
    )
    for order, results in callers.results.items():
        assert 1 <= runs[order] <= 1 + unrecorded[order], f"seed {SEED}, {order}"
        distinct = {str(result) for result in results}
        assert len(distinct) <= 1 + unrecorded[order], f"seed {SEED}, {order}: {distinct}"
