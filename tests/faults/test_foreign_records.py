"""An item under our id that is not as we write it: an error that names the attribute, no change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lambda_once.errors import IdempotencyStoreError
from lambda_once.record import StoredResult
from lambda_once.results import stored as results
from tests.faults.conftest import NewFunction
from tests.faults.function import Function, Table, new_order
from tests.support.fault_proxy import FaultProxy, status

TEXT = {"S": "text"}
NUMBER = {"N": "1"}
SILENT_REFUSAL = status(400, "ConditionalCheckFailedException")

# Attribute, and its value; None is none at all.
Case = tuple[str, dict[str, Any] | None]

COMPLETED: list[Case] = [
    ("status", {"S": "PAID"}),
    ("status", NUMBER),
    ("status", None),
    ("owner", NUMBER),
    ("owner", None),
    ("owner", {"L": []}),
    ("expires_at", TEXT),
    ("expires_at", None),
    ("expires_at", {"N": "4000000000.5"}),
    ("fingerprint", NUMBER),
    ("result", {"L": [TEXT]}),
    ("result", {"M": {}}),
    ("result", None),
    ("encoding", {"S": "text+zstd"}),
    ("encoding", NUMBER),
    ("encoding", None),
    ("parts", TEXT),
    ("parts", None),
    ("parts", {"N": "-1"}),
    ("parts", {"N": "2"}),
]
IN_PROGRESS: list[Case] = [
    ("status", {"S": "PAUSED"}),
    ("owner", NUMBER),
    ("owner", None),
    ("expires_at", TEXT),
    ("expires_at", None),
    ("in_progress_until", TEXT),
    ("in_progress_until", None),
]


def named(case: Case) -> str:
    return f"{case[0]}: {case[1]}"


def foreign(error: BaseException | None) -> str:
    """The message of the error, checked for what it must say whatever the attribute."""
    assert isinstance(error, IdempotencyStoreError), error
    assert error.code == "ForeignRecord"
    assert error.table in str(error)
    return str(error)


@pytest.fixture(scope="module")
def kept() -> list[Function]:
    return []


@pytest.fixture
def function(kept: list[Function], new_function: NewFunction) -> Function:
    if not kept:
        kept.append(new_function())
    return kept[0]


def record_id(proxy: FaultProxy) -> str:
    return str(proxy.requests("PutItem")[0].body["Item"]["id"]["S"])


@pytest.mark.parametrize("silent", [False, True], ids=["told", "read"])
@pytest.mark.parametrize("case", COMPLETED, ids=named)
def test_a_changed_result(
    function: Function,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    case: Case,
    silent: bool,
) -> None:
    order = new_order()
    function.invoke(order)
    attribute, value = case
    changed = stored.change(record_id(proxy), **{attribute: value})
    if silent:
        proxy.inject("PutItem", SILENT_REFUSAL)
    message = foreign(function.invoke(order).error)
    assert f"attribute {attribute}" in message
    assert record_id(proxy) in message
    assert stored.item(record_id(proxy)) == changed
    assert runs[order] == 1


@pytest.mark.parametrize("ended", [False, True], ids=["live", "ended"])
@pytest.mark.parametrize("case", IN_PROGRESS, ids=named)
def test_a_changed_claim(
    function: Function,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    case: Case,
    ended: bool,
) -> None:
    order = new_order()
    proxy.inject("DeleteItem", status(400, "AccessDeniedException"))
    function.invoke(order, do="raise")
    attribute, value = case
    lease = {"in_progress_until": NUMBER} if ended else {}
    changed = stored.change(record_id(proxy), **{**lease, attribute: value})
    assert f"attribute {attribute}" in foreign(function.invoke(order).error)
    assert stored.item(record_id(proxy)) == changed
    assert runs[order] == 1


def test_an_item_of_quite_another_kind(
    function: Function, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    order = new_order()
    function.invoke(order)
    item = {"id": {"S": record_id(proxy)}, "customer": {"M": {"name": TEXT}}}
    stored.put(item)
    assert "attribute status" in foreign(function.invoke(order).error)
    assert stored.item(record_id(proxy)) == item


@pytest.mark.parametrize(
    "value",
    [{"B": b"no zlib at all"}, {"B": b"\x78\x9c\x00"}, {"S": "text"}],
    ids=["garbage", "half", "text"],
)
def test_a_body_that_cannot_be_decompressed(
    function: Function,
    proxy: FaultProxy,
    stored: Table,
    runs: Counter[str],
    value: dict[str, Any],
) -> None:
    order = new_order()
    function.invoke(order)
    changed = stored.change(record_id(proxy), encoding={"S": "text+zlib"}, result=value)
    assert "attribute result" in foreign(function.invoke(order).error)
    assert stored.item(record_id(proxy)) == changed
    assert runs[order] == 1


def test_a_body_that_is_no_text(
    function: Function, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    order = new_order()
    function.invoke(order)
    stored.change(record_id(proxy), result={"B": b"\xff\xfe"})
    assert "attribute result is not text" in foreign(function.invoke(order).error)


@pytest.mark.parametrize("change", ["missing", "no data", "text"])
def test_a_part_that_is_missing_or_changed(
    function: Function, proxy: FaultProxy, stored: Table, runs: Counter[str], change: str
) -> None:
    order = new_order()
    function.invoke(order, do="big")
    part_id = str(proxy.requests("PutItem")[1].body["Item"]["id"]["S"])
    if change == "missing":
        stored.delete(part_id)
    else:
        stored.change(part_id, data=TEXT if change == "text" else None)
    before = stored.item(record_id(proxy))
    message = foreign(function.invoke(order, do="big").error)
    assert part_id in message
    assert ("attribute parts" if change == "missing" else "attribute data") in message
    assert stored.item(record_id(proxy)) == before
    assert runs[order] == 1


def test_a_corrupted_completion_of_our_own_is_an_error_line_and_not_the_callers(
    function: Function, proxy: FaultProxy, stored: Table, runs: Counter[str]
) -> None:
    answer = {"id": {"S": "x"}, "status": {"S": "PAID"}}
    proxy.inject(
        "UpdateItem", status(400, "ConditionalCheckFailedException", Item=answer), times=100
    )
    order = new_order()
    assert function.invoke(order).result == {"paid": order, "run": 1}


@pytest.mark.parametrize(
    ("stored_result", "message"),
    [
        (StoredResult("text+zlib", b"garbage"), "decompressed"),
        (StoredResult("bytes+zlib", b""), "decompressed"),
        (StoredResult("text", b"\xff"), "not text"),
    ],
)
def test_a_corrupted_body_says_so(stored_result: StoredResult, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        results.unpacked(stored_result)
