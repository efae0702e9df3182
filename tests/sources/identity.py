"""What an event's default key depends on, found by changing one value after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

from lambda_once.events.registry import recognise
from lambda_once.keys.canonical import canonical
from tests.sources.events import changed, leaves


class Identity(NamedTuple):
    """The source's name, and its identity as the key has it; None: the event is not guarded."""

    source: str
    text: bytes | None


def identity_of(event: Any) -> Identity:
    """The identity by the source, without any expression."""
    source = recognise(event)
    if not source.guarded(event, False):
        return Identity(source.name, None)
    identity = source.identity(event)
    assert identity is not None, f"{source.name} finds no identity"
    return Identity(source.name, canonical(identity))


def places_in_key(event: Any) -> set[str]:
    """The values whose change makes another key, as in "Records.0.messageId"."""
    original = identity_of(event)
    paths = leaves(event)
    return {
        ".".join(map(str, path)) for path in paths if identity_of(changed(event, path)) != original
    }


def with_all_else_changed(event: Any, places: set[str]) -> Any:
    """A redelivery at its worst: everything that is not in the key is another."""
    others = [path for path in leaves(event) if ".".join(map(str, path)) not in places]
    return changed(event, *others)
