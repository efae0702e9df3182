"""Reads the ledger of side effects, and judges it.

A side effect may be repeated in one case only: the environment died after it and before the
layer's completing write. Nothing outside of the handler can tell that from a death before it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.queues.poller import DIED, Delivery


class Effect(NamedTuple):
    """One side effect, as the handler wrote it."""

    message: str
    group: str | None
    number: int
    delivery: int


class Verdict(NamedTuple):
    """What the ledger shows.

    ``once``          messages with one side effect
    ``after_death``   messages whose earlier side effects all were of deliveries that died
    ``unexplained``   messages with one more side effect than that allows
    ``lost``          messages that should have one and have none
    """

    once: int
    after_death: int
    unexplained: tuple[str, ...]
    lost: tuple[str, ...]


def read(ledger: Path) -> list[Effect]:
    """All side effects, in the order in which they happened."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [Effect(**json.loads(line)) for line in lines]


def judge(
    effects: Collection[Effect], expected: Collection[str], deliveries: Mapping[int, Delivery]
) -> Verdict:
    """Compare the side effects with the messages that should have one each."""
    by_message: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        by_message[effect.message].append(effect)
    again = {message: each for message, each in by_message.items() if len(each) > 1}
    unexplained = [
        message
        for message, each in again.items()
        if any(deliveries[effect.delivery].ending != DIED for effect in each[:-1])
    ]
    return Verdict(
        once=len(by_message) - len(again),
        after_death=len(again) - len(unexplained),
        unexplained=tuple(sorted(unexplained)),
        lost=tuple(sorted(set(expected) - set(by_message))),
    )


def out_of_order(effects: Collection[Effect]) -> list[Effect]:
    """Side effects that came after a later one of their group; repeated ones do not count."""
    highest: dict[str | None, int] = {}
    seen: set[str] = set()
    found = []
    for effect in effects:
        if effect.message in seen:
            continue
        seen.add(effect.message)
        if effect.number < highest.get(effect.group, 0):
            found.append(effect)
        highest[effect.group] = max(effect.number, highest.get(effect.group, 0))
    return found
