"""The proxy counts, and each fault is on the wire what its name says."""

from __future__ import annotations

import http.client
import json
import threading
import time
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from tests.support.aws import boto_client, items
from tests.support.fault_proxy import (
    ANY,
    DROP_REPLY,
    DROP_REQUEST,
    EMPTY_BODY,
    GARBAGE,
    GARBAGE_UNFORWARDED,
    HALF_REPLY,
    RESET_AFTER,
    RESET_BEFORE,
    Fault,
    FaultProxy,
    hold,
    slow,
    status,
    unavailable,
)
from tests.support.ports import is_listening
from tests.support.processes import LocalServer, wait_until


def put(proxy: FaultProxy, table: str, key: str = "orders#1") -> None:
    boto_client(proxy.endpoint).put_item(TableName=table, Item={"id": {"S": key}})


def put_raw(proxy: FaultProxy, table: str) -> str:
    """Put an item without botocore, which hides much; what happened on the wire, in one word."""
    connection = http.client.HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=10)
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.PutItem",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/eu-west-1/dynamodb/aws4",
    }
    item = {"TableName": table, "Item": {"id": {"S": "orders#1"}}}
    try:
        connection.request("POST", "/", json.dumps(item), headers)
        answer = connection.getresponse()
        return f"{answer.status} {answer.read().decode()}"
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def test_counts_and_records_what_passes(proxy: FaultProxy, table: str) -> None:
    client = boto_client(proxy.endpoint)
    for _ in range(3):  # on one kept connection
        client.put_item(TableName=table, Item={"id": {"S": "orders#1"}})
    client.get_item(TableName=table, Key={"id": {"S": "orders#1"}})
    assert proxy.counts() == {"PutItem": 3, "GetItem": 1}
    assert proxy.requests("GetItem")[0].body["Key"] == {"id": {"S": "orders#1"}}
    proxy.reset()
    assert proxy.counts() == {}


@pytest.mark.parametrize(
    ("fault", "seen", "is_stored"),
    [
        pytest.param(DROP_REPLY, "RemoteDisconnected", True, id="drop reply"),
        pytest.param(DROP_REQUEST, "RemoteDisconnected", False, id="drop request"),
        pytest.param(RESET_AFTER, "ConnectionResetError", True, id="reset after"),
        pytest.param(RESET_BEFORE, "ConnectionResetError", False, id="reset before"),
        pytest.param(HALF_REPLY, "IncompleteRead", True, id="half reply"),
        pytest.param(EMPTY_BODY, "200 ", True, id="empty body"),
        pytest.param(GARBAGE, "200 <html>no JSON at all</html>", True, id="garbage"),
        pytest.param(
            GARBAGE_UNFORWARDED, "200 <html>no JSON at all</html>", False, id="garbage unforwarded"
        ),
        pytest.param(unavailable(), "503 Service Unavailable", False, id="unavailable"),
    ],
)
def test_breaks_one_request_and_no_more(
    ministack: LocalServer,
    proxy: FaultProxy,
    table: str,
    fault: Fault,
    seen: str,
    is_stored: bool,
) -> None:
    proxy.inject("PutItem", fault)
    assert put_raw(proxy, table) == seen
    assert bool(items(ministack.endpoint, table)) == is_stored
    assert put_raw(proxy, table) == "200 {}"
    assert proxy.counts() == {"PutItem": 2}


def test_an_injected_status_is_an_aws_error(proxy: FaultProxy, table: str) -> None:
    proxy.inject(ANY, status(400, "AccessDeniedException", "not authorized"))
    with pytest.raises(ClientError) as denied:
        put(proxy, table)
    assert denied.value.response["Error"] == {
        "Code": "AccessDeniedException",
        "Message": "not authorized",
    }


def test_a_fault_can_wait_for_later_requests(proxy: FaultProxy, table: str) -> None:
    proxy.inject("PutItem", DROP_REQUEST, times=2, after=1)
    seen = [put_raw(proxy, table) for _ in range(4)]
    assert seen == ["200 {}", "RemoteDisconnected", "RemoteDisconnected", "200 {}"]


def test_a_slow_answer_comes_late(proxy: FaultProxy, table: str) -> None:
    proxy.inject("PutItem", slow(0.2))
    started = time.monotonic()
    put(proxy, table)
    assert time.monotonic() - started >= 0.2


def test_a_held_request_waits_for_its_gate(proxy: FaultProxy, table: str) -> None:
    gate = threading.Event()
    proxy.inject("PutItem", hold(gate, before=True))
    held = threading.Thread(target=put, args=(proxy, table, "held"))
    held.start()
    wait_until(lambda: proxy.counts() == {"PutItem": 1}, 5, "the held request")
    put(proxy, table, "free")
    assert held.is_alive()
    gate.set()
    held.join(5)
    assert not held.is_alive()


def test_starts_and_stops_fast_and_leaves_no_port(ministack: LocalServer) -> None:
    started = time.monotonic()
    for _ in range(10):
        with FaultProxy(ministack.endpoint) as proxy:
            pass
        assert not is_listening(int(proxy.endpoint.rpartition(":")[2]))
    assert time.monotonic() - started < 2
