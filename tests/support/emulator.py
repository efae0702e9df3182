"""A function in the real Lambda Runtime Interface Emulator, with or without the layer.

    with Emulator(python, task, "app.handler", layer=layer_dir, environment={...}) as function:
        reply = function.invoke({"orderId": 1})

What the emulator does, as seen: the function starts at the first invocation; an error of the
handler comes with status 200 and an errorType; a failed start or a process that ends is a 502, and
the next invocation starts a new process; a timeout is a 200 with the plain text "... Task timed out
after ...". It handles one invocation at a time and breaks on a second, so `invoke` waits for its
turn.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from tests.support.aws import CREDENTIALS, REGION
from tests.support.paths import RIE
from tests.support.ports import LOOPBACK, free_ports, is_listening
from tests.support.processes import Process, wait_until

RUNTIME_FOLDER = Path(__file__).parent / "runtime"
INVOKE_PATH = "/2015-03-31/functions/function/invocations"

# How a function comes to life: `managed` as in the service's own runtimes, where bootstrap starts
# the exec wrapper; `module` as in a container image with `python -m awslambdaric app.handler`.
Style = Literal["managed", "module"]


@cache
def version_of(python: str) -> str:
    """The version of an interpreter, as in "3.11"."""
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Reply:
    """The emulator's answer to an invocation. `body` is what the runtime sent, byte for byte."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error_type(self) -> str | None:
        """The errorType, if the answer is an error of the function; else None."""
        try:
            decoded = json.loads(self.body)
        except ValueError:
            return None
        return decoded.get("errorType") if isinstance(decoded, dict) else None


class Emulator:
    """One execution environment. A context manager: leaving it ends the function too.

    python       the interpreter of the function; needs awslambdaric
    task         the user's code: /var/task, and the working directory
    handler      as configured in Lambda: "app.handler"
    environment  the function's variables; the machine's own are not passed on
    layer        an unpacked layer: /opt; None runs without it
    timeout_s    the function's timeout in whole seconds
    style        see `Style`
    client       a folder with another version of the runtime client, see `paths.CLIENTS`; only for
                 `managed`, as there is no way to it by module that leaves PYTHONPATH alone
    """

    def __init__(
        self,
        python: str | Path,
        task: Path,
        handler: str,
        *,
        environment: Mapping[str, str] | None = None,
        layer: Path | None = None,
        timeout_s: int = 10,
        style: Style = "managed",
        client: Path | None = None,
    ) -> None:
        if client and style != "managed":
            raise ValueError("another runtime client needs the style 'managed'")
        self._python = str(python)
        self._task = task
        self._handler = handler
        self._layer = layer
        self._timeout_s = timeout_s
        self._style = style
        self._client = client
        self.port, self._runtime_api_port = free_ports(2)
        self._turn = threading.Lock()
        self._process = Process(
            self._command(), {**self._platform(), **(environment or {})}, folder=task
        )

    def __enter__(self) -> Emulator:
        self._process.__enter__()
        try:
            self._process.wait_until_ready(lambda: is_listening(self.port))
        except BaseException:
            self._process.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def invoke(self, payload: object = None, *, headers: Mapping[str, str] | None = None) -> Reply:
        """Invoke the function and wait for the answer.

        Bytes are sent as they are, anything else as JSON.
        """
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        with self._turn:
            # Longer than the function may take: the emulator must be the one to end it.
            connection = http.client.HTTPConnection(
                LOOPBACK, self.port, timeout=self._timeout_s + 20
            )
            try:
                connection.request("POST", INVOKE_PATH, body, dict(headers or {}))
                answer = connection.getresponse()
                return Reply(answer.status, answer.read(), dict(answer.getheaders()))
            finally:
                connection.close()

    def wait_idle(self, timeout_s: float = 30) -> None:
        """Wait until no invocation is under way."""
        if not self._turn.acquire(timeout=timeout_s):
            raise TimeoutError(f"an invocation was still under way after {timeout_s} s")
        self._turn.release()

    def pid_of_function(self, timeout_s: float = 5) -> int:
        """The process id of the function's Python, waiting for it to be started."""

        def children() -> list[int]:
            return [
                info.pid
                for info in self._process.descendants()
                if info.parent == self._process.pid and self._runs_python(info.pid)
            ]

        wait_until(lambda: bool(children()), timeout_s, "the function's process")
        return children()[0]

    def kill_function(self) -> None:
        """Kill the function's Python as a crash would; the emulator lives on."""
        os.kill(self.pid_of_function(), signal.SIGKILL)

    def kill(self) -> None:
        """Kill the whole environment at once: its machine is gone."""
        self._process.kill()

    def output(self) -> str:
        """Everything that the emulator and the function have printed so far."""
        return self._process.output()

    def _runs_python(self, pid: int) -> bool:
        """Whether the process has come past the shells that precede Python."""
        try:
            program = Path(f"/proc/{pid}/exe").resolve()
        except OSError:
            return False
        return program == Path(self._python).resolve()

    def _command(self) -> list[str]:
        flags = [
            "--runtime-interface-emulator-address",
            f"{LOOPBACK}:{self.port}",
            "--runtime-api-address",
            f"{LOOPBACK}:{self._runtime_api_port}",
        ]
        return [str(RIE), *flags, *self._function_command()]

    def _function_command(self) -> list[str]:
        if self._style == "managed":
            return [str(RUNTIME_FOLDER / "bootstrap")]
        wrapper = [str(self._layer / "lambda-once")] if self._layer else []
        return [*wrapper, self._python, "-m", "awslambdaric", self._handler]

    def _platform(self) -> dict[str, str]:
        """The variables that the service sets, and the folders that it fixes."""
        variables = {
            "PATH": f"{Path(self._python).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",  # noqa: S108 - what Lambda offers a function to write to
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            **CREDENTIALS,
            "AWS_LAMBDA_FUNCTION_NAME": "orders",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(self._timeout_s),
            "LAMBDA_TASK_ROOT": str(self._task),
        }
        if self._style == "managed":
            variables |= self._managed_runtime()
        return variables

    def _managed_runtime(self) -> dict[str, str]:
        variables = {
            "_HANDLER": self._handler,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{version_of(self._python)}",
            "LAMBDA_RUNTIME_DIR": str(RUNTIME_FOLDER),
            "TEST_PYTHON": self._python,
        }
        if self._client:
            variables["TEST_RUNTIME_PACKAGES"] = str(self._client)
        if self._layer:
            variables["TEST_OPT"] = str(self._layer)
            variables["AWS_LAMBDA_EXEC_WRAPPER"] = str(self._layer / "lambda-once")
        return variables
