"""What the README lists is what there is."""

from __future__ import annotations

import re

import pytest

from lambda_once.config import VARIABLES
from lambda_once.telemetry.wording import SAID
from tests.support.paths import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def first_cells(heading: str) -> list[str]:
    """The first cell of each row of the table whose heading's first cell is this."""
    table = README.split(f"\n| {heading} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (.+?) \|", table.split("\n", 2)[2], re.MULTILINE)


def test_it_lists_every_variable_in_order() -> None:
    assert first_cells("variable") == [f"`{name}`" for name in VARIABLES]


def test_it_lists_every_metric() -> None:
    counted = {metric for _, _, metric in SAID.values()}
    assert set(first_cells("metric")) == {f"`{name}`" for name in counted}


def test_every_guarantee_names_a_test_file_that_exists() -> None:
    table = README.split("\n| situation |", 1)[1].split("\n\n", 1)[0]
    for row in table.split("\n")[2:]:
        named = re.findall(r"`(tests/[^`]+)`", row)
        assert named, row
        assert all((REPOSITORY / name).is_file() for name in named), row


@pytest.mark.parametrize("name", ["sources", "batches"])
def test_it_has_a_place_for_each_generated_table(name: str) -> None:
    assert re.search(rf"<!-- {name} -->.*<!-- /{name} -->", README, re.DOTALL)
