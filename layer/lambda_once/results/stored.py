"""From a response to its stored form and back, exactly as the runtime would send it."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..record import StoredResult

# (text or bytes to send, content type), as awslambdaric's marshaller returns it.
Marshal = Callable[[object], "tuple[str | bytes, str]"]

# What Lambda accepts as a response: 6 MB and 100 bytes. A longer one fails the invocation, so it
# must not be kept as a success. Source: the runtime API of the emulator, and the service's quota.
MAX_RESPONSE_BYTES = 6_291_556

# From this size on compression is tried. A write is billed by the KB, so below it gains nothing.
COMPRESS_FROM_BYTES = 1024

# More than there are frames of ours between the runtime and the marshaller.
OUR_FRAMES = 30

OMITTED = StoredResult("omitted", b"")


class UnstorableResponseError(Exception):
    """The runtime will turn this response into an error, so it is a failure and not a result."""


def to_stored(response: object, marshal: Marshal) -> StoredResult:
    """Marshal ``response`` and encode it; raises UnstorableResponseError."""
    try:
        marshalled = _marshal_deeply(response, marshal)
        body = marshalled if isinstance(marshalled, bytes) else marshalled.encode("utf-8")
    except Exception as fault:
        raise UnstorableResponseError(str(fault)) from fault
    if len(body) > MAX_RESPONSE_BYTES:
        raise UnstorableResponseError(f"{len(body)} bytes are more than Lambda accepts")
    return _compressed("bytes" if isinstance(marshalled, bytes) else "text", body)


def _marshal_deeply(response: object, marshal: Marshal) -> str | bytes:
    """Marshal as far down the stack as the runtime can, although we begin some frames deeper.

    A result that the runtime can just marshal must not be taken for one that it cannot: it would
    be sent, not recorded, and run again.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + OUR_FRAMES)
    try:
        return marshal(response)[0]
    finally:
        sys.setrecursionlimit(limit)


def from_stored(stored: StoredResult, marshal: Marshal) -> object:
    """A value that the runtime marshals to the very bytes that were stored.

    The parsed value where marshalling it gives the same text, so that a tracer around us can look
    into it; else the text itself, marked as ready JSON (a Decimal 1.10 would come back as 1.1).
    """
    if stored.encoding == OMITTED.encoding:
        return None
    kind, body, _ = unpacked(stored)
    return body if kind == "bytes" else _from_text(body.decode("utf-8"), marshal)


def unpacked(stored: StoredResult) -> StoredResult:
    """The same result without compression; raises ValueError where the body is not its encoding."""
    kind, _, compression = stored.encoding.partition("+")
    body = _decompress(stored.body) if compression else stored.body
    if kind == "text":
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise ValueError("its attribute result is not text in UTF-8") from fault
    return StoredResult(kind, body)


def _from_text(text: str, marshal: Marshal) -> object:
    import simplejson

    try:
        value = simplejson.loads(text)
        same = marshal(value)[0] == text
    except Exception:  # noqa: BLE001  the marshaller may raise anything; the text is ready anyway
        same = False
    if same:
        return value
    from simplejson.raw_json import RawJSON

    return RawJSON(text)


def _compressed(kind: str, body: bytes) -> StoredResult:
    if len(body) < COMPRESS_FROM_BYTES:
        return StoredResult(kind, body)
    import zlib

    packed = zlib.compress(body, 1)
    smaller = len(packed) < len(body)
    return StoredResult(f"{kind}+zlib", packed) if smaller else StoredResult(kind, body)


def _decompress(body: bytes) -> bytes:
    import zlib

    try:
        return zlib.decompress(body)
    except zlib.error as fault:
        raise ValueError(f"its attribute result cannot be decompressed: {fault}") from fault
