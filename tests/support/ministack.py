"""DynamoDB from ministack, the main one. It answers failed conditions with the old item."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from tests.support.aws import REGION
from tests.support.paths import TOOLS
from tests.support.ports import LOOPBACK, free_port
from tests.support.processes import LocalServer, Process

PYTHON = TOOLS / "ministack" / "bin" / "python"


def environment(port: int, home: str, services: tuple[str, ...]) -> dict[str, str]:
    """All that ministack sees. Nothing is kept, and no Docker of this machine is touched."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "SERVICES": ",".join(services),
        "MINISTACK_REGION": REGION,
        "LOG_LEVEL": "WARNING",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": f"unix://{home}/no-docker.sock",
    }


def is_healthy(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running_ministack(services: tuple[str, ...] = ("dynamodb",)) -> Iterator[LocalServer]:
    """Run ministack, with an empty store, on a free port of loopback."""
    port = free_port()
    endpoint = f"http://{LOOPBACK}:{port}"
    with TemporaryDirectory(prefix="ministack-") as home:
        command = [str(PYTHON), "-m", "ministack"]
        with Process(command, environment(port, home, services)) as process:
            process.wait_until_ready(lambda: is_healthy(endpoint))
            yield LocalServer(endpoint, process)
