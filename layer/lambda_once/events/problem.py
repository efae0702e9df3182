"""Our own answers over HTTP, in the shape that the event's source takes.

Rules: draft-ietf-httpapi-idempotency-key-header-07 (the statuses 400, 409 and 422), RFC 9457
(problem details), RFC 9110 (Retry-After).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ..errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyPayloadMismatchError,
)

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


class Shape(NamedTuple):
    """How a gateway takes a response.

    reason  the status also as text, in ``statusDescription``
    lists   headers as lists of values, in ``multiValueHeaders``
    """

    reason: bool
    lists: bool


def problem(shape: Shape, fault: IdempotencyError, *, by_header: bool) -> object:
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
    return _answer(shape, status, headers, json.dumps(body))


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


def no_content(shape: Shape) -> object:
    """The replay of a response that was not stored: it succeeded, and that is all we know."""
    return _answer(shape, 204, {}, "")


def _answer(shape: Shape, status: int, headers: dict[str, str], body: str) -> dict[str, object]:
    answer: dict[str, object] = {"statusCode": status}
    if shape.reason:
        answer["statusDescription"] = f"{status} {_REASONS[status]}"
    if shape.lists:
        answer["multiValueHeaders"] = {name: [value] for name, value in headers.items()}
    else:
        answer["headers"] = headers
    return {**answer, "body": body, "isBase64Encoded": False}


def with_header(shape: Shape, response: object, name: str) -> object:
    """The response with the header ``name: true``, and otherwise as it is.

    Without a statusCode the whole response is the body, and there is no place for a header.
    """
    fields = _parsed(response)
    if not isinstance(fields, dict) or "statusCode" not in fields:
        return response
    member = "multiValueHeaders" if shape.lists else "headers"
    headers = fields.get(member) or {}
    if not isinstance(headers, dict):
        return response
    return {**fields, member: {**headers, name: ["true"] if shape.lists else "true"}}


def _parsed(response: object) -> object:
    """Ready JSON as objects, its numbers in their own digits."""
    text = getattr(response, "encoded_json", None)
    if not isinstance(text, str):
        return response
    import simplejson

    return simplejson.loads(text, use_decimal=True)
