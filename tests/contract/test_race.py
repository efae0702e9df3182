"""Many contenders, one key, real servers: each round has one winner."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lambda_once.claims import protocol
from lambda_once.claims.protocol import Verdict
from lambda_once.record import Claim, StoredResult
from lambda_once.store.port import Store
from tests.support.processes import LocalServer
from tests.support.stores import aws_environment, deadline_ms, dynamodb_store, new_table

CONTENDERS = 32
# Environments have a store of their own; these share four, which is what two processors can serve.
STORES = 4
ROUNDS = 2_000 if os.environ.get("LAMBDA_ONCE_LONG") == "1" else 204

NOW_MS = 4_000_000_000_000
RESULT = StoredResult("text", b"null")


def prepare(store: Store, record_id: str, round_number: int) -> None:
    """What the contenders meet, in turn: nothing, an ended lease, an expired result."""
    state = round_number % 3
    if state == 0:
        return
    before = Claim(record_id, "before", NOW_MS - 1, NOW_MS // 1000 - 1)
    assert store.claim(before, NOW_MS - 1, deadline_ms()) is None
    if state == 2:
        assert store.complete(before, RESULT, NOW_MS // 1000 - 1, deadline_ms()) is None


def wins(store: Store, claim: Claim, start: threading.Barrier) -> bool:
    """Whether this contender may run: what the engine concludes from the store's answer."""
    start.wait()
    refusal = store.claim(claim, NOW_MS, deadline_ms())
    if refusal is None:
        return True
    existing = refusal.existing or store.read(claim.id, deadline_ms())
    assert existing is not None
    return protocol.judge_claim(existing, claim, NOW_MS) is Verdict.MINE


@pytest.mark.parametrize("server_name", ["ministack", "dynalite"])
def test_of_32_contenders_exactly_one_wins(
    server_name: str, request: pytest.FixtureRequest
) -> None:
    server: LocalServer = request.getfixturevalue(server_name)
    start = threading.Barrier(CONTENDERS, timeout=60)
    winners = []
    with aws_environment(server.endpoint), ThreadPoolExecutor(CONTENDERS) as pool:
        table = new_table(server.endpoint)
        stores = [dynamodb_store(table) for _ in range(STORES)]
        for number in range(ROUNDS):
            record_id = f"orders#{number}"
            prepare(stores[0], record_id, number)
            claims = [
                Claim(record_id, f"contender {n}", NOW_MS + 60_000, NOW_MS // 1000 + 60)
                for n in range(CONTENDERS)
            ]
            contest = [
                pool.submit(wins, stores[n % STORES], claim, start)
                for n, claim in enumerate(claims)
            ]
            winners.append(sum(each.result() for each in contest))
    assert winners == [1] * ROUNDS
