"""Each function of the table is with the layer what it is without, or differs as the table says."""

from __future__ import annotations

import pytest

from tests.fidelity.functions import ROWS
from tests.fidelity.observe import Compared, Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_is_the_same_with_the_layer(row: Row, compared: dict[str, Compared]) -> None:
    seen = compared[row.name]
    assert row.shows in seen.without.text
    if not seen.is_as_told:
        pytest.fail("\n".join(seen.differences()), pytrace=False)


def test_every_row_has_its_own_name() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 60
