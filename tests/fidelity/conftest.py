"""Where the rows run. All of them run once, two at a time, when the first is asked for."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fidelity.functions import ROWS
from tests.fidelity.observe import WIDTH, Compared, Setting, compare, write_report
from tests.support.aws import create_table
from tests.support.processes import LocalServer


@pytest.fixture(scope="session")
def setting(ministack: LocalServer, layer_dir: Path) -> Setting:
    """The Python of the tests, the layer, and a table of their own."""
    create_table(ministack.endpoint, "fidelity")
    return Setting(sys.executable, layer_dir, ministack.endpoint, "fidelity")


@pytest.fixture(scope="session")
def compared(
    request: pytest.FixtureRequest, setting: Setting, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Compared]:
    """Every row that is to be tested, run with and without the layer; written as a report."""
    wanted = {
        item.callspec.params["row"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "compared" in item.fixturenames
    }
    rows = [row for row in ROWS if row in wanted]
    folders = [tmp_path_factory.mktemp("task") for _ in rows]
    with ThreadPoolExecutor(WIDTH) as pool:
        found = list(pool.map(compare, rows, folders, [setting] * len(rows)))
    lines = [(c.row.name, c.without.summary, c.layer.summary, c.verdict) for c in found]
    write_report("fidelity", ("function", "without", "layer", "verdict"), lines)
    return {each.row.name: each for each in found}
