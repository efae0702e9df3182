"""From an event to its idempotency key, and from the key to the record's id."""

from __future__ import annotations

import json
import os.path
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from .errors import IdempotencyKeyMissingError

# Where the build puts what must be bundled; never on the import path unless it is needed.
BUNDLED = os.path.join(os.path.dirname(__file__), "_bundled")

_dumps = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_TOO_DEEP = "it is nested too deeply"


class Expression(NamedTuple):
    """A compiled JMESPath expression. ``search`` raises ExpressionError and nothing else."""

    text: str
    evaluate: Callable[[object], object]

    def search(self, data: object) -> object:
        """The value that the expression selects from ``data``."""
        try:
            return self.evaluate(data)
        except Exception as fault:  # noqa: BLE001  jmespath and our functions raise many kinds
            # The message of a JMESPath fault quotes the value, which is payload: only its type
            # and, for our own functions, the function's name may go on.
            raise ExpressionError(self.text, _describe(fault)) from None


class ExpressionError(ValueError):
    """An expression could not be evaluated on an event. The message quotes no payload."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        super().__init__(f"the expression {text} {reason}")


def compile_expression(text: str) -> Expression:
    """Compile JMESPath with our functions; raises ValueError that says where it is wrong."""
    make_importable("jmespath")  # bare images have none
    import jmespath
    from jmespath.exceptions import JMESPathError

    from .functions import options

    try:
        compiled = jmespath.compile(text)
    except JMESPathError as fault:
        raise ValueError(" ".join(str(fault).split())) from None
    opts = options()
    return Expression(text, lambda data: compiled.search(data, options=opts))


def make_importable(package: str) -> None:
    """Where ``package`` is nowhere, put our bundled copies last, so that any other copy wins."""
    from importlib.util import find_spec

    if package not in sys.modules and find_spec(package) is None:
        sys.path.append(os.path.join(BUNDLED, package))


def _describe(fault: Exception) -> str:
    from .functions import FunctionError

    if isinstance(fault, FunctionError):
        return str(fault)
    return f"cannot be evaluated on this event ({type(fault).__name__})"


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


def select_key(expression: Expression, data: object) -> Any:
    """The key that ``expression`` selects; raises IdempotencyKeyMissingError."""
    try:
        value = expression.search(data)
        missing = is_missing(value)
    except ExpressionError as fault:
        raise IdempotencyKeyMissingError(str(fault)) from None
    except RecursionError:
        raise IdempotencyKeyMissingError(_TOO_DEEP) from None
    if missing:
        found = "null" if value is None else "an empty value, or a null or empty member"
        raise IdempotencyKeyMissingError(f"the expression {expression.text} gave {found}")
    return value


def record_id(scope: str, kind: str, tenant: str | None, key: object) -> str:
    """``{scope}#{sha256}``. ``kind`` keeps the keys of different sources apart.

    Raises IdempotencyKeyMissingError for a key that is nested too deeply to be written.
    """
    try:
        text = canonical([kind, tenant]) + canonical(key)
    except RecursionError:
        raise IdempotencyKeyMissingError(_TOO_DEEP) from None
    return f"{scope}#{sha256(text).hexdigest()}"


def fingerprint(expression: Expression | None, data: object) -> str | None:
    """SHA-256 of what must be equal under one key; None where nothing is compared.

    An expression that cannot be evaluated compares as null: the payload is another one than any
    that can, and a first request must not fail for it.
    """
    if expression is None:
        return None
    try:
        text = canonical(expression.search(data))
    except (ExpressionError, RecursionError):
        text = canonical(None)
    return sha256(text).hexdigest()
