"""Fixtures that every test may use. Servers are started once, when the first test wants them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import report

if TYPE_CHECKING:
    from tests.support.fault_proxy import FaultProxy
    from tests.support.processes import LocalServer


def pytest_sessionstart() -> None:
    """Begin without the reports of an earlier run."""
    report.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the run has shown: how many schedules, faults and deaths were tried."""
    for line in report.summaries():
        terminalreporter.write_line(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the long tests unless they were asked for."""
    if os.environ.get("LAMBDA_ONCE_LONG") == "1":
        return
    skip = pytest.mark.skip(reason="long; ./build.sh test --long runs it")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def ministack() -> Iterator[LocalServer]:
    """A DynamoDB that answers failed conditions with the old item."""
    from tests.support.ministack import running_ministack

    with running_ministack() as server:
        yield server


@pytest.fixture(scope="session")
def dynalite() -> Iterator[LocalServer]:
    """A DynamoDB that answers failed conditions without the old item."""
    from tests.support.dynalite import running_dynalite, why_unavailable

    if reason := why_unavailable():
        pytest.skip(reason)
    with running_dynalite() as server:
        yield server


@pytest.fixture(scope="session")
def layer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer, freshly built and unpacked: /opt of a function. Not to be changed by tests."""
    from tests.support.layer import build_layer, unpack_layer

    return unpack_layer(build_layer(), tmp_path_factory.mktemp("opt"))


@pytest.fixture
def table(ministack: LocalServer) -> str:
    """The name of a new table in ministack."""
    from tests.support.aws import create_table

    name = f"idempotency-{uuid.uuid4().hex}"
    create_table(ministack.endpoint, name)
    return name


@pytest.fixture
def proxy(ministack: LocalServer) -> Iterator[FaultProxy]:
    """A proxy in front of ministack that counts requests and breaks those it is told to."""
    from tests.support.fault_proxy import FaultProxy

    with FaultProxy(ministack.endpoint) as running:
        yield running
