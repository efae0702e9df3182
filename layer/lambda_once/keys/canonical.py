"""One spelling for each value, and the record's id made from it."""

from __future__ import annotations

import json
from hashlib import sha256

from ..errors import IdempotencyKeyMissingError

_dumps = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

TOO_DEEP = "it is nested too deeply"


def canonical(value: object) -> bytes:
    """JSON in one spelling: members sorted, no spaces, ASCII, numbers by value (1.0 is 1).

    ``value`` is what JSON parsing yields, or bytes (an event that is no JSON).
    """
    if isinstance(value, bytes):
        return b"bytes:" + value
    text = _dumps(value)
    # Only a text with one of these can hold a number like 1.0 or 1e+16: few events pay for it.
    if ".0" in text or "e+" in text:
        text = _dumps(_with_plain_numbers(value))
    return text.encode("ascii")


def _with_plain_numbers(value: object) -> object:
    """The same value with 1.0 as 1: JSON has one kind of number, and senders mix the spellings."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_plain_numbers(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_plain_numbers(member) for member in value]
    return value


def is_missing(value: object) -> bool:
    """Whether a selected value is no key: null, "", [], {} or a null or empty member in it.

    0 and false are keys.
    """
    if value is None or value == "" or value == b"":
        return True
    if isinstance(value, dict):
        return not value or any(is_missing(member) for member in value.values())
    if isinstance(value, (list, tuple)):
        return not value or any(is_missing(member) for member in value)
    return False


def record_id(scope: str, kind: str, tenant: str | None, key: object) -> str:
    """``{scope}#{sha256}``. ``kind`` keeps the keys of different sources apart.

    Raises IdempotencyKeyMissingError for a key that is nested too deeply to be written.
    """
    try:
        text = canonical([kind, tenant]) + canonical(key)
    except RecursionError:
        raise IdempotencyKeyMissingError(TOO_DEEP) from None
    return f"{scope}#{sha256(text).hexdigest()}"
