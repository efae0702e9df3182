"""The items in the table are those that the README describes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from lambda_once.errors import IdempotencyStoreError
from lambda_once.record import Claim, StoredResult
from lambda_once.store.dynamodb import DynamoDBStore
from tests.support.aws import boto_client, items
from tests.support.processes import LocalServer
from tests.support.stores import aws_environment, deadline_ms, dynamodb_store

NOW_MS = 4_000_000_000_123
CLAIM = Claim("orders#1", "token", NOW_MS + 60_000, 4_000_003_600, "fingerprint")
COMPLETED = {
    "status": {"S": "COMPLETED"},
    "result": {"S": "null"},
    "encoding": {"S": "text"},
    "parts": {"N": "0"},
}
LARGE = StoredResult("bytes", random.Random(1).randbytes(1_000_000))


@pytest.fixture
def store(ministack: LocalServer, table: str) -> Iterator[DynamoDBStore]:
    with aws_environment(ministack.endpoint):
        yield dynamodb_store(table)


@pytest.fixture
def completed_large(store: DynamoDBStore) -> None:
    store.claim(CLAIM, NOW_MS, deadline_ms())
    assert store.complete(CLAIM, LARGE, 4_000_007_200, deadline_ms()) is None


def test_a_claim_is_one_item(store: DynamoDBStore, ministack: LocalServer, table: str) -> None:
    store.claim(CLAIM, NOW_MS, deadline_ms())
    assert items(ministack.endpoint, table) == [
        {
            "id": {"S": "orders#1"},
            "status": {"S": "INPROGRESS"},
            "owner": {"S": "token"},
            "in_progress_until": {"N": "4000000060123"},
            "expires_at": {"N": "4000003600"},
            "fingerprint": {"S": "fingerprint"},
        }
    ]


def test_a_short_text_result_can_be_read_in_the_table(
    store: DynamoDBStore, ministack: LocalServer, table: str
) -> None:
    store.claim(CLAIM, NOW_MS, deadline_ms())
    store.complete(CLAIM, StoredResult("text", b'{"a": 1}'), 4_000_007_200, deadline_ms())
    assert items(ministack.endpoint, table) == [
        {
            "id": {"S": "orders#1"},
            "status": {"S": "COMPLETED"},
            "owner": {"S": "token"},
            "expires_at": {"N": "4000007200"},
            "fingerprint": {"S": "fingerprint"},
            "result": {"S": '{"a": 1}'},
            "encoding": {"S": "text"},
            "parts": {"N": "0"},
        }
    ]


@pytest.mark.usefixtures("completed_large")
def test_a_large_result_lies_in_parts_that_expire_with_their_record(
    ministack: LocalServer, table: str
) -> None:
    stored: dict[str, Any] = {item["id"]["S"]: item for item in items(ministack.endpoint, table)}
    assert sorted(stored) == [
        "orders#1",
        "orders#1#token#0",
        "orders#1#token#1",
        "orders#1#token#2",
    ]
    assert stored["orders#1"]["parts"] == {"N": "3"}
    assert stored["orders#1"]["result"] == {"B": b""}
    assert {item["expires_at"]["N"] for item in stored.values()} == {"4000007200"}


@pytest.mark.usefixtures("completed_large")
def test_a_lost_part_is_an_error_and_not_a_shorter_result(
    store: DynamoDBStore, ministack: LocalServer, table: str
) -> None:
    boto_client(ministack.endpoint).delete_item(
        TableName=table, Key={"id": {"S": "orders#1#token#1"}}
    )
    record = store.read("orders#1", deadline_ms())
    assert record is not None
    with pytest.raises(IdempotencyStoreError, match="orders#1#token#1"):
        store.load(record, deadline_ms())


@pytest.mark.parametrize(
    ("change", "attribute"),
    [
        ({"status": {"S": "EXPIRED"}}, "status"),
        ({"owner": {"N": "1"}}, "owner"),
        ({"expires_at": {"S": "4000003600"}}, "expires_at"),
        ({"expires_at": {"N": "4000003600.5"}}, "expires_at"),
        ({"in_progress_until": {"S": "soon"}}, "in_progress_until"),
        ({"status": {"S": "COMPLETED"}}, "encoding"),
        (COMPLETED | {"encoding": {"S": "rot13"}}, "encoding"),
        (COMPLETED | {"parts": {"S": "0"}}, "parts"),
        (COMPLETED | {"parts": {"N": "-1"}}, "parts"),
        (COMPLETED | {"result": {"N": "7"}}, "result"),
        ({"fingerprint": {"N": "7"}}, "fingerprint"),
    ],
)
def test_an_item_of_another_program_is_an_error_that_names_the_attribute(
    store: DynamoDBStore,
    ministack: LocalServer,
    table: str,
    change: dict[str, Any],
    attribute: str,
) -> None:
    store.claim(CLAIM, NOW_MS, deadline_ms())
    (ours,) = items(ministack.endpoint, table)
    foreign = {**ours, **change}
    boto_client(ministack.endpoint).put_item(TableName=table, Item=foreign)
    with pytest.raises(IdempotencyStoreError, match=f"its attribute {attribute} ") as refused:
        store.read("orders#1", deadline_ms())
    assert refused.value.code == "ForeignRecord"
    assert items(ministack.endpoint, table) == [foreign]
