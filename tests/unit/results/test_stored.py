"""A stored response comes back as the very bytes that the runtime sent the first time."""

from __future__ import annotations

import math
import random
import sys
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from awslambdaric.lambda_runtime_marshaller import LambdaMarshaller
from hypothesis import given, settings
from hypothesis import strategies as st
from simplejson.raw_json import RawJSON

from lambda_once.results import stored as results
from lambda_once.results.stored import MAX_RESPONSE_BYTES, UnstorableResponseError

# 3.11 escapes what is not ASCII, 3.12 and later do not.
RUNTIMES = ["AWS_Lambda_python3.11", "AWS_Lambda_python3.12"]


class Point(NamedTuple):
    """A response that is marshalled as an object."""

    x: int
    y: Any


class Described:
    """Another: the runtime asks for `_asdict`."""

    def _asdict(self) -> dict[str, int]:
        return {"x": 1}


Pair = namedtuple("Pair", "a b")


def marshaller_of(runtime: str) -> LambdaMarshaller:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_EXECUTION_ENV", runtime)
        return LambdaMarshaller()


MARSHALLERS = {runtime: marshaller_of(runtime) for runtime in RUNTIMES}


@pytest.fixture(params=RUNTIMES)
def marshal(request: pytest.FixtureRequest) -> results.Marshal:
    bound: results.Marshal = MARSHALLERS[request.param].marshal_response
    return bound


def replayed(response: object, marshal: results.Marshal) -> object:
    return results.from_stored(results.to_stored(response, marshal), marshal)


RESPONSES: list[object] = [
    None,
    True,
    False,
    0,
    -1,
    "",
    [],
    {},
    "text",
    'quotes " and \\ and \n and \x00',
    "Grüße, 注文 \U0001f600",
    {"b": 1, "a": [None, {"nested": {}}]},
    {7: "integer names become text", None: "null too", True: "and booleans"},
    10**30,
    0.1,
    1.0,
    1e300,
    5e-324,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    Decimal("1.10"),
    Decimal("1E+5"),
    Decimal("NaN"),
    Decimal("0.10000000000000000000000000000000000001"),
    [Decimal("1.10"), 1.1],
    (1, 2),
    Point(1, Decimal("2.50")),
    [Point(1, 2)],
    Pair(1, 2),
    Described(),
    RawJSON('{"a":1,   "spaces": "kept"}'),
    {"body": b"nested bytes are text"},
    b"",
    b"raw \x00\xff bytes",
    b'{"json": "in bytes"}',
    "x" * 5_000,
    ["é" * 2_000, {"Decimal": Decimal("9.90")}],
    b"\xff" * 5_000,
    {"statusCode": 200, "body": '{"ok": true}', "headers": {"A": "b"}},
]


@pytest.mark.parametrize("response", RESPONSES, ids=lambda response: repr(response)[:40])
def test_a_replay_is_marshalled_to_the_same_bytes(
    response: object, marshal: results.Marshal
) -> None:
    assert marshal(replayed(response, marshal)) == marshal(response)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abé"), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(response=JSON | st.binary())
def test_any_replay_is_marshalled_to_the_same_bytes(response: object) -> None:
    for marshaller in MARSHALLERS.values():
        marshal = marshaller.marshal_response
        assert marshal(replayed(response, marshal)) == marshal(response)


def test_a_plain_response_is_replayed_as_a_value_that_others_can_look_into(
    marshal: results.Marshal,
) -> None:
    response = {"statusCode": 200, "headers": {"A": "b"}, "body": "é"}
    assert replayed(response, marshal) == response


def test_a_response_whose_digits_would_change_is_replayed_as_text(
    marshal: results.Marshal,
) -> None:
    again = replayed({"price": Decimal("1.10")}, marshal)
    assert isinstance(again, RawJSON)
    assert again.encoded_json == '{"price": 1.10}'


def test_a_result_stored_by_another_runtime_is_replayed_in_its_own_spelling() -> None:
    old, new = (MARSHALLERS[runtime].marshal_response for runtime in RUNTIMES)
    stored = results.to_stored("é", old)
    assert new(results.from_stored(stored, new)) == old("é")


@pytest.mark.parametrize("response", [{1, 2}, object(), iter(()), 1j, {(1, 2): 3}])
def test_a_response_that_cannot_be_marshalled_is_no_result(
    response: object, marshal: results.Marshal
) -> None:
    with pytest.raises(UnstorableResponseError, match="Unable to marshal response"):
        results.to_stored(response, marshal)


def test_a_lone_surrogate_that_the_runtime_cannot_send_is_no_result() -> None:
    marshal = MARSHALLERS["AWS_Lambda_python3.12"].marshal_response
    with pytest.raises(UnstorableResponseError, match="surrogates not allowed"):
        results.to_stored("\ud800", marshal)


def test_a_lone_surrogate_that_the_runtime_escapes_is_replayed() -> None:
    marshal = MARSHALLERS["AWS_Lambda_python3.11"].marshal_response
    assert marshal(replayed("\ud800", marshal)) == marshal("\ud800")


def test_the_longest_response_that_lambda_accepts_is_stored(marshal: results.Marshal) -> None:
    response = random.Random(1).randbytes(MAX_RESPONSE_BYTES)
    assert replayed(response, marshal) == response


@pytest.mark.parametrize("response", [b"x" * (MAX_RESPONSE_BYTES + 1), "x" * MAX_RESPONSE_BYTES])
def test_a_response_longer_than_lambda_accepts_is_no_result(
    response: object, marshal: results.Marshal
) -> None:
    with pytest.raises(UnstorableResponseError, match="more than Lambda accepts"):
        results.to_stored(response, marshal)


@pytest.mark.parametrize(
    ("response", "encoding"),
    [
        ("x" * 100, "text"),
        ("x" * 10_000, "text+zlib"),
        (b"x" * 100, "bytes"),
        (b"x" * 10_000, "bytes+zlib"),
        (random.Random(1).randbytes(10_000), "bytes"),
    ],
)
def test_only_what_becomes_smaller_is_compressed(
    response: object, encoding: str, marshal: results.Marshal
) -> None:
    stored = results.to_stored(response, marshal)
    assert (stored.encoding, stored.parts) == (encoding, 0)


def test_an_omitted_result_is_replayed_as_null(marshal: results.Marshal) -> None:
    assert marshal(results.from_stored(results.OMITTED, marshal))[0] == "null"


def nested(depth: int) -> list[Any]:
    response: list[Any] = []
    for _ in range(depth):
        response = [response]
    return response


def can_be_sent(response: object, marshal: results.Marshal) -> bool:
    try:
        marshal(response)
    except Exception:  # noqa: BLE001  the runtime's own fault, of whatever kind
        return False
    return True


def deeper(call: Callable[[], results.StoredResult], frames: int = 5) -> results.StoredResult:
    """What ``call`` returns, called from as many frames deeper as the engine is."""
    return deeper(call, frames - 1) if frames else call()


def test_the_deepest_response_that_the_runtime_can_send_is_stored(marshal: results.Marshal) -> None:
    deepest = max(depth for depth in range(700, 1_100) if can_be_sent(nested(depth), marshal))
    assert deeper(lambda: results.to_stored(nested(deepest), marshal)).encoding == "text+zlib"
    limit = sys.getrecursionlimit()
    assert replayed(nested(deepest), marshal) is not None
    assert sys.getrecursionlimit() == limit
