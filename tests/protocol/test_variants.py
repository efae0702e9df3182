"""The harness finds defects: each way of breaking the code is shown by a schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.protocol.explorer import Explorer, InvariantViolation
from tests.protocol.rules import INVARIANTS
from tests.protocol.scenarios import SCENARIOS
from tests.protocol.variants import VARIANTS
from tests.support import report

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture(scope="module")
def found() -> Iterator[set[str]]:
    """The names of the defects that were found; they go into the report at the end."""
    names: set[str] = set()
    yield names
    report.write(
        "protocol-variants",
        f"protocol: {len(names)} defects put in on purpose, each found by a schedule",
        found=sorted(names),
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_finds(name: str, monkeypatch: pytest.MonkeyPatch, found: set[str]) -> None:
    variant = VARIANTS[name]
    variant.put_in(monkeypatch)
    for invariant in variant.violated.split():
        with pytest.raises(InvariantViolation) as caught:
            Explorer(BY_NAME[variant.scenario]).explore(frozenset({invariant}))
        assert invariant in caught.value.invariants
        assert f"{invariant}: " in str(caught.value)
        assert "A is delivered and sends claim" in caught.value.schedule
    found.add(name)


def test_each_invariant_is_violated_by_some_variant() -> None:
    violated = {name for variant in VARIANTS.values() for name in variant.violated.split()}
    assert violated == INVARIANTS
