"""The face towards HTTP: the client's key, which responses are failures, and our own answers.

Whether an event is HTTP is decided by its source, never by what a response looks like. Rules:
draft-ietf-httpapi-idempotency-key-header-07 (the header, and the statuses 400, 409 and 422),
RFC 9457 (problem details), RFC 9110 (statuses, Retry-After), RFC 8941 (quoted strings).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .callers import header_values, principal
from .errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyPayloadMismatchError,
)
from .keys import is_missing

if TYPE_CHECKING:
    from .sources import Http

KEY_HEADER = "idempotency-key"
MAX_KEY_LENGTH = 255

# Responses that a later, equal request need not get again. All other statuses are kept.
_TRANSIENT_STATUSES = frozenset({401, 403, 408, 425, 429})

# The longest that API Gateway waits for an answer is 29 s: after that the first request has ended
# for its client, and asking again is right whatever the claim's lease.
MAX_RETRY_AFTER_S = 30
STORE_RETRY_AFTER_S = 5

_REASONS = {
    204: "No Content",
    400: "Bad Request",
    409: "Conflict",
    422: "Unprocessable Content",
    503: "Service Unavailable",
}

# ---- the request


def has_key(event: Any) -> bool:
    """Whether the client sent an Idempotency-Key, well formed or not."""
    return bool(header_values(event, KEY_HEADER))


def key_in_header(event: Any) -> str:
    """The client's key; raises IdempotencyKeyMissingError if it is malformed or absent.

    A quoted string and the same text without quotes are one key.
    """
    values = header_values(event, KEY_HEADER)
    if len(values) != 1:
        raise IdempotencyKeyMissingError("the Idempotency-Key header must be sent once")
    text = values[0].strip(" \t")
    key = _unquote(text[1:]) if text.startswith('"') else text
    if not key:
        raise IdempotencyKeyMissingError("the Idempotency-Key header is empty")
    if len(key) > MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
        raise IdempotencyKeyMissingError(
            f"the Idempotency-Key header holds more than {MAX_KEY_LENGTH} characters,"
            " or others than printable ASCII"
        )
    return key


def _unquote(text: str) -> str:
    """The content of a quoted string, from after its first quote.

    Gateways that join several values with commas give more text after the last quote.
    """
    content: list[str] = []
    rest = iter(text)
    for char in rest:
        if char == '"':
            if next(rest, None) is None:
                return "".join(content)
            break
        escaped = next(rest, None) if char == "\\" else char
        if escaped is None or (char == "\\" and escaped not in ('"', "\\")):
            break
        content.append(escaped)
    raise IdempotencyKeyMissingError("the Idempotency-Key header is not one well-formed string")


def known_principal(event: Any) -> list[object] | None:
    """As ``principal``; raises IdempotencyKeyMissingError where callers cannot be told apart."""
    found = principal(event)
    if found is not None and is_missing(found):
        raise IdempotencyKeyMissingError(
            "the request carries credentials, and no authorizer says whose they are:"
            " IDEMPOTENCY_KEY must select what identifies the caller"
        )
    return found


# ---- responses


def is_failure(response: object, infers_response: bool) -> bool:
    """Whether the client is told of a failure after which an equal request should run again.

    ``infers_response``: the gateway makes a 200 of a response without a status; others make a 502.
    """
    fields = _fields(response)
    if fields is None or "statusCode" not in fields:
        return not infers_response
    try:
        status = int(fields["statusCode"])
    except (TypeError, ValueError, OverflowError):
        return True  # the gateway makes a 500 or 502 of it
    return not 100 <= status < 500 or status in _TRANSIENT_STATUSES


def _fields(response: object) -> dict[str, Any] | None:
    """The members of a response that the runtime sends as an object."""
    if isinstance(response, dict):
        return response
    as_dict = getattr(response, "_asdict", None)
    fields = as_dict() if callable(as_dict) else None
    return fields if isinstance(fields, dict) else None


def problem(source: Http, event: Any, fault: IdempotencyError, by_header: bool) -> object:
    """Our own answer in place of an error, as the gateway takes it.

    ``by_header``: the key is the client's header, so what is wrong with it is for the client.
    """
    status, detail, retry_after_s = _told(fault, by_header)
    body = {
        "type": "about:blank",
        "title": _REASONS[status],
        "status": status,
        "detail": detail,
        "error": type(fault).__name__,
    }
    headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
    if retry_after_s:
        headers["retry-after"] = str(retry_after_s)
    return _answer(source, event, status, headers, json.dumps(body))


def _told(fault: IdempotencyError, by_header: bool) -> tuple[int, str, int]:
    """Status, detail and seconds for Retry-After. Nothing of tables, keys or configuration."""
    if isinstance(fault, IdempotencyKeyMissingError):
        reason = fault.reason if by_header else "the request holds no idempotency key"
        return 400, reason, 0
    if isinstance(fault, IdempotencyInProgressError):
        wait_s = min(fault.retry_after_s, MAX_RETRY_AFTER_S)
        return 409, "a request with the same idempotency key is being processed", wait_s
    if isinstance(fault, IdempotencyPayloadMismatchError):
        return 422, "the idempotency key was already used with a different request", 0
    return 503, "the request was not processed, as it could not be protected", STORE_RETRY_AFTER_S


def no_content(source: Http, event: Any) -> object:
    """The replay of a response that was not stored: it succeeded, and that is all we know."""
    return _answer(source, event, 204, {}, "")


def _answer(
    source: Http, event: Any, status: int, headers: dict[str, str], body: str
) -> dict[str, object]:
    answer: dict[str, object] = {"statusCode": status}
    if source.wants_reason:
        answer["statusDescription"] = f"{status} {_REASONS[status]}"
    if _takes_lists(source, event):
        answer["multiValueHeaders"] = {name: [value] for name, value in headers.items()}
    else:
        answer["headers"] = headers
    return {**answer, "body": body, "isBase64Encoded": False}


def _takes_lists(source: Http, event: Any) -> bool:
    """A load balancer reads only the kind of headers that it sends."""
    return source.wants_reason and isinstance(event.get("multiValueHeaders"), dict)


def with_header(source: Http, event: Any, response: object, name: str) -> object:
    """The response with the header ``name: true``, and otherwise as it is.

    Without a statusCode the whole response is the body, and there is no place for a header.
    """
    fields = _parsed(response)
    if not isinstance(fields, dict) or "statusCode" not in fields:
        return response
    lists = _takes_lists(source, event)
    member = "multiValueHeaders" if lists else "headers"
    headers = fields.get(member) or {}
    if not isinstance(headers, dict):
        return response
    return {**fields, member: {**headers, name: ["true"] if lists else "true"}}


def _parsed(response: object) -> object:
    """Ready JSON as objects, its numbers in their own digits."""
    text = getattr(response, "encoded_json", None)
    if not isinstance(text, str):
        return response
    import simplejson

    return simplejson.loads(text, use_decimal=True)
