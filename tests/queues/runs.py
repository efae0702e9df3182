"""One run: a queue full of messages, several environments, a poller, and what came of it."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.queues import ledger
from tests.queues.ledger import Effect, Verdict
from tests.queues.poller import NO_MISHAPS, Delivery, Luck, Poller
from tests.queues.sqs import Message, Order, Queue
from tests.support.aws import items
from tests.support.emulator import Emulator
from tests.support.stores import new_table

FUNCTIONS = Path(__file__).parent / "functions"
LONG = os.environ.get("LAMBDA_ONCE_LONG") == "1"
TIMES = 5 if LONG else 1
PATIENCE_S = 300 * TIMES

TIMEOUT_S = 5
# Longer than a claim of an environment that died lasts: the timeout and the margin.
VISIBILITY_S = 7
# Enough for all that goes wrong; and few, where a message is to be given up.
RECEIVES, FEW_RECEIVES = 10, 3
ENVIRONMENTS = 2
# Numbers without a common divisor, so that each mishap meets each other.
LUCK = Luck(copied_at_once=9, copied_late=8, killed=17)


class Setting(NamedTuple):
    """A function, the layer's variables, and how its event source mapping is set.

    ``groups`` is the number of message groups of a FIFO queue, 0 for a standard queue. ``guarded``
    is False for the comparison without the layer. ``poison`` is how many messages always fail; then
    nothing else goes wrong.
    """

    handler: str
    variables: Mapping[str, str]
    reports: bool
    messages: int
    batch: int = 10
    groups: int = 0
    guarded: bool = True
    poison: int = 0

    @property
    def title(self) -> str:
        """For the report and the tests' ids."""
        mode = self.variables.get("IDEMPOTENCY_BATCH", "records")
        queue = "FIFO" if self.groups else "standard"
        mapping = "reports" if self.reports else "does not report"
        layer = "" if self.guarded else ", without the layer"
        layer += f", {self.poison} always fail" if self.poison else ""
        return f"{queue}, {mode}, mapping {mapping}, {self.handler}, batches of {self.batch}{layer}"


@dataclass(frozen=True)
class Run:
    """What came of a setting."""

    setting: Setting
    sent: int
    deliveries: Mapping[int, Delivery]
    endings: Mapping[str, int]
    effects: Sequence[Effect]
    verdict: Verdict
    statuses: Mapping[str, int]
    dead_letters: Sequence[Message]
    outcomes: Mapping[str, int]
    seconds: float

    @property
    def copies(self) -> int:
        """Deliveries that the queue was not asked for."""
        return sum(each.copy for each in self.deliveries.values())

    def figures(self) -> dict[str, Any]:
        """For the report."""
        return {
            "setting": self.setting.title,
            "messages": self.sent,
            "deliveries": len(self.deliveries),
            "copies": self.copies,
            "endings": dict(self.endings),
            "outcomes": dict(self.outcomes),
            "records": dict(self.statuses),
            "side effects": len(self.effects),
            "once": self.verdict.once,
            "again after a death": self.verdict.after_death,
            "again, unexplained": len(self.verdict.unexplained),
            "lost": len(self.verdict.lost),
            "dead letters": len(self.dead_letters),
            "seconds": round(self.seconds, 1),
        }


def run_all(settings: Sequence[Setting], endpoint: str, layer: Path, folder: Path) -> list[Run]:
    """Run all side by side: most of the time is spent waiting for redeliveries."""
    with ThreadPoolExecutor(len(settings)) as pool:
        jobs = [
            pool.submit(run, setting, endpoint, layer, folder / f"{number}.jsonl")
            for number, setting in enumerate(settings)
        ]
        return [job.result() for job in jobs]


def run(setting: Setting, endpoint: str, layer: Path, ledger_file: Path) -> Run:
    """Send all messages, and deliver them until none is left."""
    queue = Queue(endpoint, visibility_s=VISIBILITY_S, receives=RECEIVES, fifo=bool(setting.groups))
    table = new_table(endpoint)
    sent = queue.send(orders(setting))
    luck = NO_MISHAPS if setting.poison else LUCK
    poller = Poller(queue, batch=setting.batch, reports=setting.reports, luck=luck)
    with ExitStack() as stack:
        environments = [
            stack.enter_context(_environment(setting, endpoint, layer, table, ledger_file))
            for _ in range(ENVIRONMENTS)
        ]
        started = time.monotonic()
        poller.run(environments, PATIENCE_S)
        seconds = time.monotonic() - started
        output = "".join(each.output() for each in environments)
    effects = ledger.read(ledger_file)
    return Run(
        setting=setting,
        sent=len(sent),
        deliveries=poller.deliveries,
        endings=poller.endings(),
        effects=effects,
        verdict=ledger.judge(effects, sent, poller.deliveries),
        statuses=Counter(each["status"]["S"] for each in items(endpoint, table)),
        dead_letters=queue.dead_letters(),
        outcomes=Counter(re.findall(r"lambda-once: .* outcome=(\w+)", output)),
        seconds=seconds,
    )


def orders(setting: Setting) -> list[Order]:
    """The messages, with what is to go wrong with them; two of a FIFO queue's group in a row."""
    plans: list[dict[str, object]] = [{} for _ in range(setting.messages * TIMES)]
    if setting.poison:
        for plan in plans[:: len(plans) // setting.poison]:
            plan["fails"] = 1_000
    else:
        _spoil(plans, random.Random(setting.title))
    groups = setting.groups
    return [
        Order(number, f"group-{number // 2 % groups}" if groups else None, plan)
        for number, plan in enumerate(plans, 1)
    ]


def _spoil(plans: Sequence[dict[str, object]], chance: random.Random) -> None:
    count = len(plans)
    for plan in chance.sample(plans, count // 30):
        plan["fails"] = chance.choice((1, 1, 2))
    for plan in chance.sample(plans, count // 50):
        plan["takes_s"] = 0.2
    for moment in ("before", "after", "late"):
        for plan in chance.sample(plans, TIMES):
            plan["dies"] = moment


def _environment(
    setting: Setting, endpoint: str, layer: Path, table: str, ledger_file: Path
) -> Emulator:
    return Emulator(
        sys.executable,
        FUNCTIONS,
        f"orders.{setting.handler}",
        layer=layer if setting.guarded else None,
        timeout_s=TIMEOUT_S,
        environment={
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
            "IDEMPOTENCY_TABLE": table,
            "LEDGER": str(ledger_file),
            **setting.variables,
        },
    )
