"""Writes the README's table of sources: ``python -m tests.sources.table`` puts it in its place."""

from __future__ import annotations

import re

from lambda_once.events.base import Source
from lambda_once.events.pipes import Pipes
from lambda_once.events.registry import all_sources
from tests.support.paths import REPOSITORY

README = REPOSITORY / "README.md"
OPEN, CLOSE = "<!-- sources -->", "<!-- /sources -->"
HEAD = ("| source | what identifies an event, without an expression | retention |", "|---|---|---|")


def _duration(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    return f"{days} days" if days > 1 and not rest else f"{seconds // 3_600} h"


def _line(source: Source) -> str:
    retention = _duration(source.retention_s)
    if isinstance(source, Pipes):
        retention = source.identity_text
    if source.identity_text:
        return f"| {source.title} | {source.identity_text} | {retention} |"
    if source.guarded({}, has_expression=True):
        return f"| {source.title} | guarded only if `IDEMPOTENCY_KEY` is set | {retention} |"
    return f"| {source.title} | never guarded | |"


def _rank(source: Source) -> int:
    """Those that guard by themselves first."""
    if source.identity_text:
        return 0
    return 1 if source.guarded({}, has_expression=True) else 2


def rendered() -> str:
    """One line for each title; sources that share one, as HTTP's and the pipes', are alike."""
    alike: dict[str, Source] = {}
    for source in sorted(all_sources(), key=_rank):
        alike.setdefault(source.title, source)
    # What matches everything stands last of those that guard.
    last = alike.pop(all_sources()[-1].title)
    guarding = [source for source in alike.values() if not _rank(source)]
    others = [source for source in alike.values() if _rank(source)]
    return "\n".join((*HEAD, *map(_line, (*guarding, last, *others))))


def placed(text: str) -> str:
    """The README's text with the table between its marks."""
    pattern = f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}"
    return re.sub(pattern, lambda _: f"{OPEN}\n{rendered()}\n{CLOSE}", text, flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(placed(README.read_text()))
