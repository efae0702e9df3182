"""The harness finds defects: each way of breaking the code is shown by a schedule."""

from __future__ import annotations

import pytest

from tests.protocol.explorer import Explorer, InvariantViolation
from tests.protocol.scenarios import SCENARIOS
from tests.protocol.variants import VARIANTS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.mark.parametrize("name", VARIANTS)
def test_finds_the_schedule_that_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = VARIANTS[name]
    variant.put_in(monkeypatch)
    with pytest.raises(InvariantViolation) as found:
        Explorer(BY_NAME[variant.scenario]).explore()
    assert variant.invariant in found.value.invariants
    assert "A is delivered" in found.value.schedule
