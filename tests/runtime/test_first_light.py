"""The demo's unmodified handler under the layer, in the real emulator."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.aws import items
from tests.support.emulator import Emulator, Reply
from tests.support.fault_proxy import FaultProxy
from tests.support.paths import REPOSITORY
from tests.support.processes import LocalServer, wait_until

ORDERS = REPOSITORY / "demo" / "functions" / "orders"
FIRST_RUN = {"PutItem": 1, "UpdateItem": 1}
REPLAY = {"PutItem": 1}
FAILURE = {"PutItem": 1, "DeleteItem": 1}


def orders(
    book: Path, layer: Path | None, variables: Mapping[str, str], *, timeout_s: int = 10
) -> Emulator:
    """The demo's function; its runs are lines of the book."""
    return Emulator(
        sys.executable,
        ORDERS,
        "app.handler",
        layer=layer,
        environment={"ORDERS_BOOK": str(book), **variables},
        timeout_s=timeout_s,
    )


def guarded(endpoint: str, table: str) -> dict[str, str]:
    """What a user sets, and where DynamoDB is."""
    return {
        "IDEMPOTENCY_TABLE": table,
        "IDEMPOTENCY_KEY": "orderId",
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
    }


def runs(book: Path) -> int:
    return len(book.read_text().splitlines()) if book.exists() else 0


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "book.txt"


def counted(function: Emulator, proxy: FaultProxy, event: Any) -> tuple[Reply, dict[str, int]]:
    """An answer, and the requests that it took."""
    proxy.reset()
    return function.invoke(event), proxy.counts()


def test_each_case_costs_exactly_its_requests(
    layer_dir: Path, proxy: FaultProxy, table: str, book: Path
) -> None:
    with orders(book, layer_dir, guarded(proxy.endpoint, table)) as function:
        first, first_cost = counted(function, proxy, {"orderId": "1", "amount": 5})
        second, second_cost = counted(function, proxy, {"orderId": "1", "amount": 5})
        failed, failed_cost = counted(
            function, proxy, {"orderId": "2", "amount": 5, "card": "declined"}
        )
        retried, retried_cost = counted(function, proxy, {"orderId": "2", "amount": 5})
    assert (first_cost, second_cost) == (FIRST_RUN, REPLAY)
    assert (failed_cost, retried_cost) == (FAILURE, FIRST_RUN)
    assert first.body == second.body == b'{"orderId": "1", "charged": 5, "receipt": "R-1"}'
    assert failed.error_type == "CardDeclinedError"
    assert retried.json()["receipt"] == "R-3"
    assert runs(book) == 3


def test_without_repeats_the_function_answers_byte_for_byte_as_without_the_layer(
    layer_dir: Path, ministack: LocalServer, table: str, tmp_path: Path
) -> None:
    events = [
        {"orderId": "1", "amount": 49.9},
        {"orderId": "Größe", "amount": 1e300},
        {"orderId": "3", "amount": None},
        {"orderId": "4", "amount": 1, "card": "declined"},
        {"orderId": "5"},
    ]
    with orders(tmp_path / "plain", None, {}) as plain:
        expected = [without_request_id(plain.invoke(event)) for event in events]
    with orders(tmp_path / "ours", layer_dir, guarded(ministack.endpoint, table)) as ours:
        assert [without_request_id(ours.invoke(event)) for event in events] == expected


def without_request_id(reply: Reply) -> tuple[int, bytes]:
    """An answer, but for what differs between any two invocations."""
    return reply.status, re.sub(rb'"requestId": "[^"]+"', b'"requestId": ""', reply.body)


def test_a_killed_run_blocks_its_event_until_its_lease_ends_and_no_longer(
    layer_dir: Path, ministack: LocalServer, table: str, book: Path
) -> None:
    event = {"orderId": "1", "amount": 5, "takes_s": 1.5}
    variables = guarded(ministack.endpoint, table)
    with (
        orders(book, layer_dir, variables, timeout_s=4) as dying,
        orders(book, layer_dir, variables, timeout_s=4) as next_one,
    ):
        next_one.invoke({"orderId": "warm up", "amount": 1})
        kill_in_the_middle(dying, event, book)
        left = record_of_order(ministack.endpoint, table)
        assert left["status"] == {"S": "INPROGRESS"}
        until_ms = int(left["in_progress_until"]["N"])
        refused = next_one.invoke(event)
        assert time.time() * 1000 < until_ms, "too slow a machine: the lease has ended already"
        assert refused.error_type == "IdempotencyInProgressError"
        assert all("/bootstrap.py" in frame for frame in refused.json()["stackTrace"])
        assert runs(book) == 2
        time.sleep(max(0, until_ms / 1000 - time.time()) + 0.01)
        assert next_one.invoke(event).json()["receipt"] == "R-3"


def record_of_order(endpoint: str, table: str) -> dict[str, Any]:
    (left,) = [item for item in items(endpoint, table) if item["status"]["S"] == "INPROGRESS"]
    return left


def kill_in_the_middle(function: Emulator, event: Any, book: Path) -> None:
    """Invoke the function and kill it with SIGKILL while its handler is running."""
    before = runs(book)
    caller = threading.Thread(target=function.invoke, args=(event,))
    caller.start()
    wait_until(lambda: runs(book) > before, 10, "the handler to begin")
    function.kill_function()
    caller.join()


def test_a_misspelt_table_is_one_init_error_that_says_what_was_meant(
    layer_dir: Path, book: Path
) -> None:
    with orders(book, layer_dir, {"IDEMPOTENCY_TABEL": "x"}) as function:
        reply = function.invoke({"orderId": "1", "amount": 5})
        log = function.output()
    told = json.loads(reply.body)
    assert reply.status == 502
    assert told["errorType"] == "IdempotencyConfigError"
    assert "IDEMPOTENCY_TABLE is required" in told["errorMessage"]
    assert "did you mean IDEMPOTENCY_TABLE?" in told["errorMessage"]
    assert runs(book) == 0
    assert log.count("[ERROR] IdempotencyConfigError") == 1


REPORTER = """
import sys

def handler(event, context):
    names = {name.partition(".")[0] for name in sys.modules}
    return sorted(names & {"boto3", "botocore", "jmespath", "aws_xray_sdk"})
"""


@pytest.mark.parametrize("rest", [{}, {"IDEMPOTENCY_KEY": "a[", "IDEMPOTENCY_TABEL": "x"}])
def test_switched_off_it_needs_nothing_and_loads_nothing_of_aws(
    layer_dir: Path, tmp_path: Path, rest: dict[str, str]
) -> None:
    (tmp_path / "app.py").write_text(REPORTER)
    nothing = dict.fromkeys(
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"), ""
    )
    nowhere = {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}
    environment = {**nothing, **nowhere, **rest, "IDEMPOTENCY_DISABLED": "true"}
    with Emulator(
        sys.executable, tmp_path, "app.handler", layer=layer_dir, environment=environment
    ) as function:
        assert [function.invoke({"a": 1}).json() for _ in range(2)] == [[], []]
        assert "lambda-once is disabled, app.handler runs without protection" in function.output()


def test_one_line_at_init_says_what_is_guarded(
    layer_dir: Path, ministack: LocalServer, table: str, book: Path
) -> None:
    with orders(book, layer_dir, guarded(ministack.endpoint, table)) as function:
        function.invoke({"orderId": "1", "amount": 5})
        function.invoke({"orderId": "2", "amount": 5})
        lines = [line for line in function.output().splitlines() if "lambda-once" in line]
    (line,) = lines
    assert f"guards app.handler, table {table}, key orderId" in line
