"""One proxy and one table for all tests of a file: making a client takes long, a key is cheap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from botocore.loaders import JSONFileLoader

from tests.faults import app
from tests.faults.function import Function, Log, Table
from tests.support import report
from tests.support.aws import read_service_models_once
from tests.support.fault_proxy import FaultProxy
from tests.support.processes import LocalServer
from tests.support.stores import aws_environment, new_table

# A new execution environment with settings of its own.
NewFunction = Callable[..., Function]


@pytest.fixture(scope="session")
def tried() -> Iterator[Counter[str]]:
    """How many combinations were tried, by operation; every test counts its own."""
    counted: Counter[str] = Counter()
    yield counted
    total = sum(counted.values())
    listed = ", ".join(f"{number} {what}" for what, number in sorted(counted.items()))
    report.write("faults", f"faults: {total} combinations tried ({listed})", **counted)


@pytest.fixture(scope="session", autouse=True)
def fast_clients() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", JSONFileLoader.load_file)  # to be put back
        read_service_models_once()
        yield


@pytest.fixture(scope="module")
def module_proxy(ministack: LocalServer) -> Iterator[FaultProxy]:
    with FaultProxy(ministack.endpoint) as running, aws_environment(running.endpoint):
        yield running


@pytest.fixture(scope="module")
def module_table(ministack: LocalServer) -> Table:
    return Table(ministack.endpoint, new_table(ministack.endpoint))


@pytest.fixture
def proxy(module_proxy: FaultProxy) -> FaultProxy:
    """The proxy, without faults and without memory of earlier tests."""
    module_proxy.reset()
    return module_proxy


@pytest.fixture
def stored(module_table: Table) -> Table:
    """What lies in the table, seen past the proxy."""
    return module_table


@pytest.fixture
def new_function(proxy: FaultProxy, stored: Table) -> NewFunction:
    """Make an execution environment: `new_function(IDEMPOTENCY_LEASE="1h")`."""

    def make(**settings: str) -> Function:
        return Function(stored.name, settings)

    return make


@pytest.fixture
def log(capfd: pytest.CaptureFixture[str]) -> Log:
    return Log(capfd)


@pytest.fixture
def runs() -> Iterator[Counter[str]]:
    """How often the handler has run, by order."""
    app.RUNS.clear()
    yield app.RUNS
    for gate in app.GATES.values():
        gate.set()
    app.GATES.clear()
