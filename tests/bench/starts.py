"""Functions that are started as Lambda starts them, and what their start takes.

The runtime client is the real one and the Runtime API a fake: the emulator knows no init phase, it
starts a function at its first invocation. Init ends when the runtime asks for an invocation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.canned import FRESH
from tests.bench.setting import PYTHON, Setting
from tests.support.aws import CREDENTIALS, REGION
from tests.support.emulator import RUNTIME_FOLDER, version_of
from tests.support.fake_runtime_api import FakeRuntimeApi
from tests.support.processes import Process

FUNCTIONS = Path(__file__).parent / "functions"
EVENT = {"orderId": "1"}
ANSWER = {"status": "booked"}
WAIT_S = 60
SETTLE_S = 0.01


class Start(NamedTuple):
    """A function to start: its module, and whether the layer is attached."""

    module: str
    layered: bool = False


BARE = "plain"
LAYER = "plain, layer"
POWERTOOLS = "plain, Powertools"
BARE_BOTO3 = "uses boto3"
LAYER_BOTO3 = "uses boto3, layer"
POWERTOOLS_BOTO3 = "uses boto3, Powertools"

STARTS = {
    BARE: Start("plain"),
    LAYER: Start("plain", layered=True),
    POWERTOOLS: Start("with_powertools"),
    BARE_BOTO3: Start("with_boto3"),
    LAYER_BOTO3: Start("with_boto3", layered=True),
    POWERTOOLS_BOTO3: Start("with_boto3_and_powertools"),
}


def function_variables(scheme: Mapping[str, str]) -> dict[str, str]:
    return {
        **scheme,
        "IDEMPOTENCY_TABLE": FRESH,
        # Neither /opt nor /var/task can be written to on Lambda.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class Function:
    """A started function."""

    def __init__(self, api: FakeRuntimeApi, process: Process) -> None:
        self._api = api
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_idle(self, invocations: int) -> None:
        """Until it has had so many invocations and asks for the next."""

        def is_idle() -> bool:
            return self._api.paths.count("invocation/next") > invocations

        self._process.wait_until_ready(is_idle, WAIT_S)

    def invoke(self) -> float:
        """Invoke it; the wall time in seconds until its answer was there."""
        started = time.perf_counter()
        answer = self._api.invoke(EVENT).result(WAIT_S)
        took = time.perf_counter() - started
        if answer.json() != ANSWER:
            raise RuntimeError(f"wrong answer {answer.body!r}:\n{self._process.output()}")
        return took

    def cpu_s(self) -> float:
        """The CPU time of its process so far, read when it has come to rest.

        The clock's number is as in clock_getcpuclockid(3) of the C library: it counts ns, where
        /proc counts ticks.
        """
        clock = ~self.pid << 3 | 2
        used = time.clock_gettime(clock)
        while True:
            time.sleep(SETTLE_S)
            before, used = used, time.clock_gettime(clock)
            if used == before:
                return used


@contextmanager
def started(start: Start, setting: Setting, scheme: Mapping[str, str]) -> Iterator[Function]:
    """Start a function; it is given when its init has ended."""
    with FakeRuntimeApi() as api:
        variables = {**_platform(start, setting, api), **function_variables(scheme)}
        command = [str(RUNTIME_FOLDER / "bootstrap")]
        with Process(command, variables, folder=FUNCTIONS) as process:
            function = Function(api, process)
            function.wait_until_idle(0)
            yield function


def _platform(start: Start, setting: Setting, api: FakeRuntimeApi) -> dict[str, Any]:
    """The variables that the service sets."""
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        **CREDENTIALS,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{version_of(str(PYTHON))}",
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
        "LAMBDA_RUNTIME_DIR": str(RUNTIME_FOLDER),
        "LAMBDA_TASK_ROOT": str(FUNCTIONS),
        "TEST_PYTHON": str(PYTHON),
        "_HANDLER": f"{start.module}.handler",
    }
    if start.layered:
        variables["TEST_OPT"] = str(setting.layer)
        variables["AWS_LAMBDA_EXEC_WRAPPER"] = str(setting.layer / "lambda-once")
    return variables
