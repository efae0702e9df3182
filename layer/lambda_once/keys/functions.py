"""Our JMESPath functions on values. Imported only when an expression is configured."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from jmespath import functions

# What gunzip may unfold a value to: more than any event Lambda delivers in full, and little enough
# that a hostile value cannot use up the function's memory.
MAX_GUNZIP_BYTES = 32 * 1024 * 1024


class FunctionError(ValueError):
    """One of our functions was given what it cannot work on. The message quotes no payload."""


class Functions(functions.Functions):
    """JMESPath's own functions and ours. An argument of null gives null, as in a plain path."""

    @functions.signature({"types": ["string", "null"]})
    def _func_parse_json(self, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise FunctionError("met text that is no JSON in parse_json()") from None

    @functions.signature({"types": ["string", "null"]})
    def _func_base64(self, text: str | None) -> str | None:
        return None if text is None else _as_text(_decode(text, "base64"), "base64")

    @functions.signature({"types": ["string", "null"]})
    def _func_gunzip(self, text: str | None) -> str | None:
        return None if text is None else _as_text(_gunzip(_decode(text, "gunzip")), "gunzip")


def _decode(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FunctionError(f"met text that is no base64 in {name}()") from None


def _gunzip(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(packed, MAX_GUNZIP_BYTES)
    except zlib.error:
        raise FunctionError("met data that is not gzip in gunzip()") from None
    if not unpacker.eof:
        raise FunctionError("met gzip data that is cut short or too large in gunzip()")
    return data


def _as_text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FunctionError(f"met data that is no UTF-8 text in {name}()") from None
