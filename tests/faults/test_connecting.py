"""A connection that cannot be made is tried again, as any request that may work the next time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    ProxyConnectionError,
    SSLError,
)
from botocore.httpsession import URLLib3Session

from tests.faults.conftest import NewFunction
from tests.faults.function import Table, new_order
from tests.support.fault_proxy import FaultProxy

URL = "http://127.0.0.1:9"
FAULTS = [
    EndpointConnectionError(endpoint_url=URL, error="refused"),
    ConnectTimeoutError(endpoint_url=URL, error="timed out"),
    ProxyConnectionError(proxy_url=URL, error="refused"),
    SSLError(endpoint_url=URL, error="handshake failed"),
]


def named(fault: Exception) -> str:
    return type(fault).__name__


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize("fault", FAULTS, ids=named)
def test_a_connection_that_fails_once(
    new_function: NewFunction,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    tried: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    fault: Exception,
) -> None:
    tried["on connecting"] += 1
    function, order = new_function(), new_order()
    broken = fail_once(operation, fault, monkeypatch)
    function.invoke(order, do="raise" if operation == "DeleteItem" else "return")
    assert broken() == 1
    record_id = proxy.requests("PutItem")[0].body["Item"]["id"]["S"]
    expected = "absent" if operation == "DeleteItem" else "COMPLETED"
    assert stored.status(record_id) == expected
    assert runs[order] == 1


def fail_once(
    operation: str, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], int]:
    """Break the next connection for an operation; gives a function that tells how many broke."""
    send = URLLib3Session.send
    broken: list[str] = []

    def failing(session: Any, request: Any) -> Any:
        target = str(request.headers["X-Amz-Target"], "ascii")
        if not broken and target.endswith(operation):
            broken.append(target)
            raise fault
        return send(session, request)

    monkeypatch.setattr(URLLib3Session, "send", failing)
    return lambda: len(broken)
