"""Our JMESPath functions, as expressions use them."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest

from lambda_once.events.expressions import compile_expression
from lambda_once.keys.expressions import ExpressionError
from lambda_once.keys.functions import MAX_GUNZIP_BYTES


def search(expression: str, data: Any) -> Any:
    return compile_expression(expression).search(data)


def packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data)).decode()


def test_a_body_is_parsed() -> None:
    assert search("parse_json(body).order.id", {"body": '{"order": {"id": 7}}'}) == 7


def test_a_record_is_unpacked() -> None:
    assert search("parse_json(gunzip(data)).id", {"data": packed(b'{"id": 7}')}) == 7
    assert search("base64(data)", {"data": base64.b64encode("ä".encode()).decode()}) == "ä"


@pytest.mark.parametrize("function", ["parse_json", "base64", "gunzip"])
def test_null_gives_null_as_in_a_plain_path(function: str) -> None:
    assert search(f"{function}(absent)", {}) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("parse_json(bad)", "no JSON"),
        ("parse_json(deep)", "no JSON"),
        ("base64(bad)", "no base64"),
        ("gunzip(bad)", "no base64"),
        ("gunzip(text)", "not gzip"),
        ("gunzip(cut)", "cut short or too large"),
        ("gunzip(bomb)", "cut short or too large"),
        ("base64(binary)", "no UTF-8"),
    ],
)
def test_what_cannot_be_worked_on_is_told_without_the_payload(expression: str, said: str) -> None:
    data = {
        "bad": "marker {",
        "deep": "[" * 100_000,
        "text": base64.b64encode(b"marker").decode(),
        "cut": base64.b64encode(gzip.compress(b"marker" * 100)[:30]).decode(),
        "bomb": packed(bytes(MAX_GUNZIP_BYTES + 1)),
        "binary": base64.b64encode(b"\xff\xfe").decode(),
    }
    with pytest.raises(ExpressionError) as caught:
        search(expression, data)
    assert said in str(caught.value)
    assert "marker" not in str(caught.value)


@pytest.mark.parametrize(
    "event",
    [
        {"headers": {"X-Order": "7"}},
        {"headers": {"x-order": "7"}},
        {"headers": {"X-ORDER": ["7"]}},
        {"headers": None, "multiValueHeaders": {"x-Order": ["7"]}},
        {"headers": {"x-order": "of no weight"}, "multiValueHeaders": {"X-Order": ["7"]}},
        {"request": {"headers": {"x-order": "7"}}},
    ],
)
def test_a_header_is_found_in_any_case_and_shape(event: Any) -> None:
    assert search("header(@, 'X-Order')", event) == "7"


def test_several_values_of_a_header_are_joined() -> None:
    event = {"multiValueHeaders": {"X-Order": ["7", "8"]}}
    assert search("header(@, 'x-order')", event) == "7, 8"


@pytest.mark.parametrize("event", [{}, None, [], "text", {"headers": {}}, {"headers": {"a": None}}])
def test_a_header_that_was_not_sent_is_null(event: Any) -> None:
    assert search("header(@, 'a')", event) is None


def test_the_principal_can_be_part_of_a_key() -> None:
    event = {"body": "b", "requestContext": {"identity": {"userArn": "arn:aws:iam::1:user/a"}}}
    assert search("[principal(@), body]", event) == [[["iam", "arn:aws:iam::1:user/a"]], "b"]
    assert search("principal(@)", {}) is None
    assert search("principal(@)", [1]) is None
