"""The README says of each source what the code does."""

from __future__ import annotations

from lambda_once.events.registry import all_sources
from tests.sources.table import README, rendered


def test_every_source_is_in_the_table_once() -> None:
    titles = {source.title for source in all_sources()}
    lines = rendered().splitlines()[2:]
    assert sorted(line.split(" | ")[0].removeprefix("| ") for line in lines) == sorted(titles)


def test_the_readme_has_the_table_as_it_is() -> None:
    assert rendered() in README.read_text()
