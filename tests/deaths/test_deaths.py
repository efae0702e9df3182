"""Environments die at any moment, and each order is shipped once, or a death explains it."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deaths import app
from tests.deaths.audit import Audit, Double, read_ledger
from tests.deaths.delivery import Board, Plan, Slot, deliver_all
from tests.deaths.environments import Emulated, Environment, Forked, running_zygote
from tests.support import report
from tests.support.aws import CREDENTIALS, REGION
from tests.support.emulator import Emulator
from tests.support.processes import LocalServer

LONG = os.environ.get("LAMBDA_ONCE_LONG") == "1"
SEED = int(os.environ.get("LAMBDA_ONCE_SEED") or random.SystemRandom().randrange(10**9))


class Tally:
    """What all tests of this folder have seen."""

    def __init__(self) -> None:
        self.deaths: Counter[str] = Counter()
        self.deliveries = 0
        self.orders = 0
        self.doubles: list[Double] = []

    def add(self, where: str, board: Board, doubles: list[Double]) -> None:
        self.deaths.update({f"{how} ({where})": n for how, n in board.deaths.items()})
        self.deliveries += len(board.delivered)
        self.orders += len(board.orders)
        self.doubles += doubles


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    total = Tally()
    yield total
    unrecorded = sum(double.why == "unrecorded" for double in total.doubles)
    report.write(
        "deaths",
        f"deaths: {total.deaths.total()} in {total.deliveries} deliveries of {total.orders} orders,"
        f" seed {SEED}; side effects once, but for {len(total.doubles) - unrecorded} that a death"
        f" and {unrecorded} that the deadline parted from the completing write",
        seed=SEED,
        deaths=dict(sorted(total.deaths.items())),
        explained=[double._asdict() for double in total.doubles],
    )


def settings(ministack: LocalServer, table: str, ledger: Path) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": ministack.endpoint,
        "AWS_REGION": REGION,
        **CREDENTIALS,
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "IDEMPOTENCY_TABLE": table,
        "IDEMPOTENCY_KEY": "order",
        "LEDGER": str(ledger),
    }


def check(where: str, board: Board, ledger: Path, log: str, tally: Tally) -> None:
    """Nothing was shipped twice, and no two runs of an order met, without an explanation."""
    print(f"seed {SEED}: {dict(board.deaths)}")
    tally.add(where, board, Audit(board, read_ledger(ledger), log).doubles())


def test_processes_that_die_at_random_moments(
    ministack: LocalServer, table: str, tmp_path: Path, tally: Tally
) -> None:
    plan = Plan(deaths=2_000 if LONG else 200, longest_s=0.1, kill_within_s=0.4)
    board = Board(plan)
    ledger = tmp_path / "ledger"
    with running_zygote(tmp_path, settings(ministack, table, ledger)) as (address, process):

        def start() -> Environment:
            return Forked(address, timeout_s=2)

        deliver_all([Slot(board, plan, start, f"{SEED}.{number}") for number in range(6)])
        log = process.output()
    check("process", board, ledger, log, tally)


def test_functions_in_the_emulator_that_die_at_random_moments(
    ministack: LocalServer, table: str, tmp_path: Path, layer_dir: Path, tally: Tally
) -> None:
    plan = Plan(deaths=200 if LONG else 20, longest_s=0.2, kill_within_s=1.5)
    board = Board(plan)
    ledger = tmp_path / "ledger"
    task = tmp_path / "task"
    task.mkdir()
    shutil.copy(Path(app.__file__), task / "app.py")
    outputs: list[str] = []

    class Kept(Emulated):
        def close(self) -> None:
            outputs.append(self.output())
            super().close()

    def start() -> Environment:
        return Kept(
            Emulator(
                sys.executable,
                task,
                "app.handler",
                environment=settings(ministack, table, ledger),
                layer=layer_dir,
                timeout_s=3,
            )
        )

    deliver_all([Slot(board, plan, start, f"{SEED}.{number}") for number in range(3)])
    check("emulator", board, ledger, "\n".join(outputs), tally)
