"""A store that is not there or not allowed: a clear error, or a run without protection."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from lambda_once.errors import IdempotencyStoreError
from tests.faults.conftest import NewFunction
from tests.faults.function import Function, Log, in_time, new_order
from tests.support.aws import CREDENTIALS, boto_client
from tests.support.ports import LOOPBACK, free_port
from tests.support.processes import LocalServer

REMAINING_MS = 4_000
RUN = {"IDEMPOTENCY_STORE_FAILURE": "run"}
CREDENTIAL_VARIABLES = tuple(CREDENTIALS)


@pytest.fixture
def blackhole() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        listening.listen(64)
        yield int(listening.getsockname()[1])


@pytest.fixture
def wrong_key_table(ministack: LocalServer) -> Iterator[str]:
    """A table whose key is not called id."""
    client = boto_client(ministack.endpoint)
    name = "wrong-key"
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    yield name
    client.delete_table(TableName=name)


def no_credentials(patch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIAL_VARIABLES:
        patch.delenv(name)
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def no_region(patch: pytest.MonkeyPatch) -> None:
    patch.delenv("AWS_REGION")
    patch.delenv("AWS_DEFAULT_REGION", raising=False)


def refused(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://{LOOPBACK}:{free_port()}")


BROKEN = {
    "NoCredentialsError": no_credentials,
    "NoRegionError": no_region,
    "EndpointConnectionError": refused,
}


def check(
    function: Function, code: str, *, run: bool, log: Log, runs: Counter[str], detail: str = ""
) -> None:
    """One error that says what and where, handler not run; or a run that the log warns of."""
    order = new_order()
    answer = function.invoke(order, remaining_ms=REMAINING_MS)
    assert in_time(answer)
    last = log.lines()[-1]
    assert last["code"] == code
    assert f"PutItem on table {function.table} failed: {code}: " in last["message"]
    assert detail in last["message"]
    if run:
        assert answer.result == {"paid": order, "run": 1}
        assert last["outcome"] == "unprotected"
        assert last["level"] == "WARN"
    else:
        assert isinstance(answer.error, IdempotencyStoreError)
        assert str(answer.error) in last["message"]
        assert last["outcome"] == "store_failed"
        assert last["level"] == "ERROR"
    assert runs[order] == (1 if run else 0)


@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("run", [False, True], ids=["fail", "run"])
def test_without_access(
    new_function: NewFunction,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
    runs: Counter[str],
    tried: Counter[str],
    code: str,
    run: bool,
) -> None:
    tried["without a store"] += 1
    BROKEN[code](monkeypatch)
    check(new_function(**(RUN if run else {})), code, run=run, log=log, runs=runs)


@pytest.mark.parametrize("run", [False, True], ids=["fail", "run"])
def test_an_endpoint_that_never_answers(
    new_function: NewFunction,
    blackhole: int,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
    runs: Counter[str],
    tried: Counter[str],
    run: bool,
) -> None:
    tried["without a store"] += 1
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://{LOOPBACK}:{blackhole}")
    function = new_function(**(RUN if run else {}))
    check(function, "ReadTimeoutError", run=run, log=log, runs=runs)


@pytest.mark.parametrize("run", [False, True], ids=["fail", "run"])
def test_a_missing_table(
    new_function: NewFunction, log: Log, runs: Counter[str], tried: Counter[str], run: bool
) -> None:
    tried["without a store"] += 1
    function = new_function(**(RUN if run else {}), IDEMPOTENCY_TABLE="not-there")
    function.table = "not-there"
    check(function, "ResourceNotFoundException", run=run, log=log, runs=runs)


@pytest.mark.parametrize("run", [False, True], ids=["fail", "run"])
def test_a_table_with_another_key(
    new_function: NewFunction,
    wrong_key_table: str,
    log: Log,
    runs: Counter[str],
    tried: Counter[str],
    run: bool,
) -> None:
    tried["without a store"] += 1
    function = new_function(**(RUN if run else {}), IDEMPOTENCY_TABLE=wrong_key_table)
    function.table = wrong_key_table
    check(function, "ValidationException", run=run, log=log, runs=runs)


def test_credentials_that_come_later_are_found(
    new_function: NewFunction, monkeypatch: pytest.MonkeyPatch, runs: Counter[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        no_credentials(patch)
        function = new_function()
        assert function.invoke(new_order()).error is not None
    order = new_order()
    assert function.invoke(order).result == {"paid": order, "run": 1}


def test_a_region_in_the_table_arn_is_used_without_any_other(
    new_function: NewFunction, monkeypatch: pytest.MonkeyPatch, runs: Counter[str]
) -> None:
    no_region(monkeypatch)
    function = new_function(
        IDEMPOTENCY_TABLE="arn:aws:dynamodb:eu-west-1:000000000000:table/not-there"
    )
    error = function.invoke(new_order()).error
    assert isinstance(error, IdempotencyStoreError)
    assert error.code == "ResourceNotFoundException"
