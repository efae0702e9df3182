"""The local DynamoDBs start, keep items, and differ only where they are known to."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.support.aws import boto_client, create_table, items
from tests.support.dynalite import why_unavailable
from tests.support.ministack import running_ministack
from tests.support.ports import is_listening
from tests.support.processes import LocalServer, session_members

ITEM = {"id": {"S": "orders#1"}, "status": {"S": "INPROGRESS"}}


def refused_put(endpoint: str, table: str) -> dict[str, object]:
    """Put an item that is there already; the error's response."""
    client = boto_client(endpoint)
    client.put_item(TableName=table, Item=ITEM)
    with pytest.raises(ClientError) as refused:
        client.put_item(
            TableName=table,
            Item=ITEM,
            ConditionExpression="attribute_not_exists(id)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    response: dict[str, object] = refused.value.response
    return response


def test_ministack_returns_the_old_item(ministack: LocalServer, table: str) -> None:
    assert refused_put(ministack.endpoint, table)["Item"] == ITEM
    assert items(ministack.endpoint, table) == [ITEM]


def test_ministack_knows_the_ttl_attribute(ministack: LocalServer, table: str) -> None:
    described = boto_client(ministack.endpoint).describe_time_to_live(TableName=table)
    assert described["TimeToLiveDescription"]["AttributeName"] == "expires_at"


def test_ministack_starts_empty_and_ends_wholly() -> None:
    with running_ministack() as server:
        assert boto_client(server.endpoint).list_tables()["TableNames"] == []
        session = server.process.pid
    assert not is_listening(int(server.endpoint.rpartition(":")[2]))
    assert not server.process.is_running
    assert session_members(session) == []


@pytest.mark.skipif(why_unavailable() is not None, reason=why_unavailable() or "")
def test_dynalite_returns_no_old_item(dynalite: LocalServer) -> None:
    create_table(dynalite.endpoint, "second-opinion")
    assert "Item" not in refused_put(dynalite.endpoint, "second-opinion")
    assert items(dynalite.endpoint, "second-opinion") == [ITEM]
