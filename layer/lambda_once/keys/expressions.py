"""JMESPath expressions: compiled once, and evaluated on events without quoting them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bundled import make_importable
from ..errors import IdempotencyKeyMissingError
from .canonical import TOO_DEEP, canonical, is_missing

if TYPE_CHECKING:
    from jmespath.visitor import Options


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


def compile_with(text: str, options: Callable[[], Options]) -> Expression:
    """Compile JMESPath with the functions in ``options()``.

    Raises ValueError that says where the expression is wrong.
    """
    make_importable("jmespath")  # bare images have none
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        compiled = jmespath.compile(text)
    except JMESPathError as fault:
        raise ValueError(" ".join(str(fault).split())) from None
    known = options()
    return Expression(text, lambda data: compiled.search(data, options=known))


def _describe(fault: Exception) -> str:
    from .functions import FunctionError

    if isinstance(fault, FunctionError):
        return str(fault)
    return f"cannot be evaluated on this event ({type(fault).__name__})"


def select_key(expression: Expression, data: object) -> Any:
    """The key that ``expression`` selects; raises IdempotencyKeyMissingError."""
    try:
        value = expression.search(data)
        missing = is_missing(value)
    except ExpressionError as fault:
        raise IdempotencyKeyMissingError(str(fault)) from None
    except RecursionError:
        raise IdempotencyKeyMissingError(TOO_DEEP) from None
    if missing:
        found = "null" if value is None else "an empty value, or a null or empty member"
        raise IdempotencyKeyMissingError(f"the expression {expression.text} gave {found}")
    return value


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
