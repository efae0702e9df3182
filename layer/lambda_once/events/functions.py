"""JMESPath functions that read a request. Imported only when an expression is configured."""

from __future__ import annotations

from typing import Any

from jmespath import functions

from ..keys.functions import Functions
from .caller import header_values, principal


class EventFunctions(Functions):
    """Our functions on values, and those that know the shapes of HTTP events."""

    @functions.signature({"types": []}, {"types": ["string"]})
    def _func_header(self, event: Any, name: str) -> str | None:
        """In any case. Several values are joined, as HTTP has it."""
        return ", ".join(header_values(event, name)) or None

    @functions.signature({"types": []})
    def _func_principal(self, event: Any) -> list[object] | None:
        """A list with a null member, which is a missing key, where callers cannot be told apart."""
        return principal(event)
