"""A function whose runtime speaks to a fake Runtime API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fidelity.observe import Setting
from tests.support.aws import CREDENTIALS, REGION
from tests.support.emulator import RUNTIME_FOLDER, version_of
from tests.support.fake_runtime_api import FakeRuntimeApi
from tests.support.processes import Process

WAIT_S = 60


@contextmanager
def running(
    api: FakeRuntimeApi, setting: Setting, task: Path, code: str, **environment: str
) -> Iterator[Process]:
    """The function app.handler with the layer, in the managed runtime."""
    task.mkdir()
    (task / "app.py").write_text(code)
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "AWS_REGION": REGION,
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{version_of(setting.python)}",
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        "AWS_LAMBDA_EXEC_WRAPPER": str(setting.layer / "lambda-once"),
        "LAMBDA_RUNTIME_DIR": str(RUNTIME_FOLDER),
        "LAMBDA_TASK_ROOT": str(task),
        "TEST_OPT": str(setting.layer),
        "TEST_PYTHON": setting.python,
        "_HANDLER": "app.handler",
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": task.parent.name,
        **CREDENTIALS,
        **environment,
    }
    present = {name: value for name, value in variables.items() if value}
    with Process([str(RUNTIME_FOLDER / "bootstrap")], present, folder=task) as process:
        yield process
