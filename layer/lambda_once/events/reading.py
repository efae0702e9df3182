"""Reading events, of which nothing is certain."""

from __future__ import annotations

from typing import Any


def at(value: Any, *path: str) -> Any:
    """The member at ``path``; None where there is none, or the way leads through no object."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def first(event: Any, container: str = "Records") -> dict[str, Any]:
    """The first record, if it is an object; else an empty one."""
    records = event.get(container) if isinstance(event, dict) else None
    first = records[0] if isinstance(records, list) and records else None
    return first if isinstance(first, dict) else {}


def given(*values: object) -> list[object] | None:
    """The values; None if one is missing, as the others alone would be shared by several events."""
    return None if any(value is None or value == "" for value in values) else list(values)
