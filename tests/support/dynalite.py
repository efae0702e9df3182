"""DynamoDB from dynalite: a second opinion. It answers failed conditions without the old item."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.paths import TOOLS
from tests.support.ports import LOOPBACK, free_port, is_listening
from tests.support.processes import LocalServer, Process

PROGRAM = TOOLS / "dynalite" / "node_modules" / "dynalite" / "cli.js"


def why_unavailable() -> str | None:
    """The reason why dynalite cannot run here; None if it can."""
    if shutil.which("node") is None or not PROGRAM.is_file():
        return "dynalite is not installed (it needs npm; then run ./build.sh test)"
    return None


@contextmanager
def running_dynalite() -> Iterator[LocalServer]:
    """Run dynalite, with an empty store in memory, on a free port of loopback."""
    port = free_port()
    node = shutil.which("node") or "node"
    command = [node, str(PROGRAM), "--host", LOOPBACK, "--port", str(port), "--createTableMs", "0"]
    with Process(command, {"PATH": "/usr/bin:/bin"}) as process:
        process.wait_until_ready(lambda: is_listening(port))
        yield LocalServer(f"http://{LOOPBACK}:{port}", process)
