"""A few functions on every runtime client and every Python that are there.

Without LAMBDA_ONCE_LONG=1 each client runs on one Python, and the newest client on every Python.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fidelity.functions import AT_IMPORT, RAISES
from tests.fidelity.observe import (
    ORDER,
    WIDTH,
    Compared,
    Row,
    Setting,
    compare,
    run,
    write_report,
)
from tests.support.emulator import version_of
from tests.support.fault_proxy import FaultProxy
from tests.support.paths import CLIENTS, REPOSITORY, TOOLS

# What happens in invocations: each event has its own outcome, and one environment serves them all.
INVOCATIONS = """
from decimal import Decimal
def handler(event, context):
    print("handling", event["do"])
    if event["do"] == "raise":
        raise LookupError("no such order")
    return {"result": 1, "decimal": Decimal("1.10"), "set": {1}}[event["do"]]
"""
AT_IMPORT_BY_NAME = {row.name: row for row in AT_IMPORT}
ROWS = (
    Row(
        "result, Decimal, error, result that cannot be sent",
        INVOCATIONS,
        "Runtime.MarshalError",
        events=tuple({"do": do} for do in ("result", "decimal", "raise", "set")),
    ),
    Row("sys.exit(3)", "import sys\n" + RAISES.format("sys.exit(3)"), "Runtime.ExitError"),
    *(
        AT_IMPORT_BY_NAME[name]
        for name in (
            "import of a missing module",
            "KeyError at import",
            "AttributeError at import",
            "missing handler",
        )
    ),
)
REPLAYED = Row(
    "replay",
    "def handler(event, context):\n    print('ran')\n    return 1.5\n",
    events=(ORDER,) * 2,
)

PYTHONS = {
    version_of(str(home / "bin" / "python")): str(home / "bin" / "python")
    for home in (*TOOLS.glob("py3.*"), TOOLS / "dev")
}
LISTED = sorted(
    tuple(folder.name.split("-py")) for folder in CLIENTS.glob("*-py*") if folder.is_dir()
)


def is_chosen(client: str, python: str) -> bool:
    """Whether a combination runs in an ordinary run too."""
    clients_pythons = [p for c, p in LISTED if c == client and p in PYTHONS]
    is_newest_client = client == max(c for c, _ in LISTED)
    first = min(clients_pythons, key=lambda version: int(version.partition(".")[2]))
    return is_newest_client or python == first or os.environ.get("LAMBDA_ONCE_LONG") == "1"


COMBINATIONS = [(c, p) for c, p in LISTED if p in PYTHONS and is_chosen(c, p)]


def setting_of(combination: tuple[str, str], setting: Setting) -> Setting:
    client, version = combination
    folder = CLIENTS / f"{client}-py{version}"
    return Setting(PYTHONS[version], setting.layer, setting.endpoint, setting.table, folder)


Matrix = dict[tuple[str, str], dict[str, Compared]]


@pytest.fixture(scope="module")
def matrix(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """Every row on every combination; written as a report, holes included."""
    cells = [(combination, row) for combination in COMBINATIONS for row in ROWS]
    folders = [tmp_path_factory.mktemp("task") for _ in cells]

    def compared(cell: tuple[tuple[str, str], Row], folder: Path) -> Compared:
        return compare(cell[1], folder, setting_of(cell[0], setting))

    with ThreadPoolExecutor(WIDTH) as pool:
        found = list(pool.map(compared, cells, folders))
    lines = [
        (client, python, row.name, each.without.summary, each.verdict)
        for ((client, python), row), each in zip(cells, found, strict=True)
    ]
    write_report(
        "matrix",
        ("awslambdaric", "python", "function", "without", "verdict"),
        [*lines, *((c, p, "", "", "no wheel") for c, p in holes())],
    )
    result: Matrix = {}
    for (combination, row), each in zip(cells, found, strict=True):
        result.setdefault(combination, {})[row.name] = each
    return result


def holes() -> list[tuple[str, str]]:
    """Combinations that cannot be installed."""
    return [(c, p) for c in sorted({c for c, _ in LISTED}) for p in PYTHONS if (c, p) not in LISTED]


def test_every_listed_client_runs_on_some_python() -> None:
    names = (REPOSITORY / "requirements/clients.txt").read_text().split()
    listed = {name.partition("==")[2] for name in names if name.startswith("awslambdaric==")}
    assert {client for client, _ in COMBINATIONS} == listed
    assert {python for _, python in COMBINATIONS} == set(PYTHONS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("combination", COMBINATIONS, ids="-py".join)
def test_is_the_same_on_every_runtime(
    row: Row, combination: tuple[str, str], matrix: Matrix
) -> None:
    seen = matrix[combination][row.name]
    assert row.shows in seen.without.text
    if not seen.is_as_told:
        pytest.fail("\n".join(seen.differences()), pytrace=False)


@pytest.mark.parametrize("combination", COMBINATIONS, ids="-py".join)
def test_a_repeated_event_is_replayed_on_every_runtime(
    combination: tuple[str, str], setting: Setting, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(REPLAYED.code)
    seen = run(REPLAYED, tmp_path, setting_of(combination, setting), setting.layer)
    assert seen.replies == ((200, "1.5"),) * 2
    assert seen.output.count("ran") == 1


# Up to 2.0 a fault at import comes out of each invocation, by a handler that the runtime client
# puts in the place of the user's. Guarded, it would claim and release a record each time.
REPORTED_WHEN_INVOKED = [(c, p) for c, p in COMBINATIONS if c.startswith("2.0.")]


@pytest.mark.parametrize("combination", REPORTED_WHEN_INVOKED, ids="-py".join)
def test_a_fault_at_import_claims_nothing_where_it_is_reported_when_invoked(
    combination: tuple[str, str], setting: Setting, tmp_path: Path, proxy: FaultProxy
) -> None:
    proxied = setting_of(combination, replace(setting, endpoint=proxy.endpoint))
    row = AT_IMPORT_BY_NAME["import of a missing module"]
    compared = compare(row, tmp_path, proxied)
    assert compared.without.replies[0][0] == 200
    assert compared.is_as_told
    assert proxy.counts() == {}
