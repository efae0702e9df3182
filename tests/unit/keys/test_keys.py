"""Equal JSON gives an equal key, whatever its spelling; anything else gives another."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lambda_once.errors import IdempotencyKeyMissingError
from lambda_once.events.expressions import compile_expression
from lambda_once.keys.canonical import canonical, is_missing, record_id
from lambda_once.keys.expressions import fingerprint, select_key

# A loaded machine is no failure.
UNHURRIED = settings(deadline=None)

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
# What a key can be: nothing in it is null or empty.
KEYS = st.recursive(
    st.booleans() | NUMBERS | st.text(min_size=1),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def plain(value: Any) -> Any:
    """The reference: each JSON value as a Python value that is equal if and only if the JSON is."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    if isinstance(value, (int, float)):
        return "number", Fraction(value)
    if isinstance(value, dict):
        return "object", frozenset((name, plain(member)) for name, member in value.items())
    return "array", tuple(plain(member) for member in value)


def shuffled(value: Any, seed: int) -> Any:
    """The same JSON with the members of every object in another order."""
    if isinstance(value, dict):
        names = list(value)
        random.Random(seed).shuffle(names)
        return {name: shuffled(value[name], seed) for name in names}
    if isinstance(value, list):
        return [shuffled(member, seed) for member in value]
    return value


def escaped(text: str) -> str:
    """A JSON string with every character written as an escape."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return '"' + "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs) + '"'


# ---- spelling


@UNHURRIED
@given(VALUES, st.integers())
def test_the_order_of_members_does_not_count(value: Any, seed: int) -> None:
    assert canonical(shuffled(value, seed)) == canonical(value)


@UNHURRIED
@given(VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_white_space_and_escapes_do_not_count(value: Any, indent: int | None, ascii: bool) -> None:  # noqa: A002
    respelled = json.loads(json.dumps(value, indent=indent, ensure_ascii=ascii))
    assert canonical(respelled) == canonical(value)


@UNHURRIED
@given(st.text())
def test_all_spellings_of_a_string_are_one(text: str) -> None:
    assert canonical(json.loads(escaped(text))) == canonical(text)


@UNHURRIED
@given(VALUES, VALUES)
def test_keys_are_equal_if_and_only_if_the_json_is(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == (plain(one) == plain(other))


@UNHURRIED
@given(VALUES)
def test_without_whole_floats_it_is_plain_json(value: Any) -> None:
    reference = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    assume(b".0" not in reference and b"e+" not in reference)
    assert canonical(value) == reference


@UNHURRIED
@given(VALUES)
def test_it_is_json_of_an_equal_value(value: Any) -> None:
    assert plain(json.loads(canonical(value))) == plain(value)


# ---- numbers


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1", "1e0"),
        ("100", "1e2"),
        ("1e16", "10000000000000000"),
        ("1E400", "1e401"),  # both are more than a float can be
        ("-0.0", "0"),
        ("-0", "0.0"),
        ("0.1", "0.10"),
        ("0.1", "1e-1"),
        ('{"a": [1.0, {"b": 2}]}', '{"a": [1, {"b": 2.0}]}'),
    ],
)
def test_two_spellings_of_a_number_are_one_key(one: str, other: str) -> None:
    assert canonical(json.loads(one)) == canonical(json.loads(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10000000000000000", "10000000000000001"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("0.1", "0.1000000000000001"),
        ("1", "-1"),
        ("NaN", "Infinity"),
        ("Infinity", "-Infinity"),
        ("NaN", '"NaN"'),
    ],
)
def test_two_numbers_are_two_keys(one: str, other: str) -> None:
    assert canonical(json.loads(one)) != canonical(json.loads(other))


def test_nan_is_a_key_like_any_other() -> None:
    assert canonical(math.nan) == canonical(float("nan"))


@pytest.mark.parametrize("text", ["version 2.0", "1e+16", '"1.0"', "a.0,", "1.0"])
def test_text_that_looks_like_a_number_stays_text(text: str) -> None:
    assert json.loads(canonical({"text": text})) == {"text": text}


# ---- types


def test_values_of_different_types_never_collide() -> None:
    values: list[Any] = [
        1, "1", True, "true", 0, False, "", "0", None, "null", [], {}, [1], ["1"], [[1]],
        {"1": 1}, {"1": "1"}, [None], [False], "[1]", '{"1":1}', b"1", b"", b"bytes:1", "bytes:1",
    ]  # fmt: skip
    assert len({canonical(value) for value in values}) == len(values)


@UNHURRIED
@given(st.lists(KEYS, min_size=2, max_size=2))
def test_two_selected_values_are_one_key_only_if_they_are_equal(values: list[Any]) -> None:
    key = compile_expression("key")
    ids = [record_id("f", "key", None, select_key(key, {"key": value})) for value in values]
    assert (ids[0] == ids[1]) == (plain(values[0]) == plain(values[1]))


@UNHURRIED
@given(KEYS, KEYS, VALUES)
def test_what_is_not_selected_does_not_count(selected: Any, other: Any, noise: Any) -> None:
    key = compile_expression("[a, b.c]")
    one = select_key(key, {"a": selected, "b": {"c": other}})
    again = select_key(key, {"noise": noise, "b": {"noise": noise, "c": other}, "a": selected})
    assert canonical(one) == canonical(again)


# ---- missing


@pytest.mark.parametrize(
    "value", [None, "", b"", [], {}, [None], [1, ""], {"a": {}}, [[1, [None]]]]
)
def test_null_and_empty_values_are_no_keys(value: Any) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, 0.0, False, " ", [0], {"": 0}, [[False]]])
def test_zero_and_false_are_keys(value: Any) -> None:
    assert not is_missing(value)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("orderId", "the expression orderId gave null"),
        ("[user, orderId]", "a null or empty member"),
        ("parse_json(body).id", "met text that is no JSON in parse_json()"),
        ("base64(body)", "met text that is no base64 in base64()"),
        ("gunzip(packed)", "met data that is not gzip in gunzip()"),
        ("abs(body)", "cannot be evaluated on this event (JMESPathTypeError)"),
        ("parse_json(user)", "cannot be evaluated on this event (JMESPathTypeError)"),
    ],
)
def test_a_missing_key_says_which_part_failed_and_quotes_no_payload(
    expression: str, said: str
) -> None:
    event = {"body": "secret-payload!", "packed": "c2VjcmV0", "user": {"secret": 1}}
    with pytest.raises(IdempotencyKeyMissingError) as caught:
        select_key(compile_expression(expression), event)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_value_that_is_nested_too_deeply_is_a_missing_key() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(IdempotencyKeyMissingError, match="nested too deeply"):
        record_id("f", "event", None, value)
    with pytest.raises(IdempotencyKeyMissingError):
        select_key(compile_expression("@"), value)
    assert fingerprint(compile_expression("@"), value)
    # Taken apart here: the interpreter's own way of doing it could use up the stack.
    while isinstance(value, list):
        value = value.pop()


# ---- the record's id


def test_the_id_is_the_scope_in_clear_and_a_hash() -> None:
    scope, _, digest = record_id("orders", "key", None, "payload-text").partition("#")
    assert scope == "orders"
    assert len(digest) == 64
    assert int(digest, 16)


def test_scopes_kinds_tenants_and_keys_are_kept_apart() -> None:
    ids = [
        record_id("f", "key", None, 1),
        record_id("g", "key", None, 1),
        record_id("f", "sqs", None, 1),
        record_id("f", "key", "a", 1),
        record_id("f", "key", "b", 1),
        record_id("f", "key", "null", 1),
        record_id("f", "key", None, 2),
    ]
    assert len(set(ids)) == len(ids)


# ---- the fingerprint


def test_without_an_expression_there_is_no_fingerprint() -> None:
    assert fingerprint(None, {"a": 1}) is None


def test_a_fingerprint_follows_what_is_selected() -> None:
    amount = compile_expression("amount")
    one, same = {"amount": 1, "at": 1}, {"at": 2, "amount": 1.0}
    assert fingerprint(amount, one) == fingerprint(amount, same)
    assert fingerprint(amount, one) != fingerprint(amount, {"amount": 2})


def test_a_payload_that_cannot_be_evaluated_compares_as_null() -> None:
    parsed = compile_expression("parse_json(body)")
    assert fingerprint(parsed, {"body": "{"}) == fingerprint(parsed, {"body": "null"})
