"""Where the recipes' tools are, and how they run: in a folder, against a local server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.aws import CREDENTIALS, REGION
from tests.support.paths import TOOLS
from tests.support.processes import LocalServer

BIN = TOOLS / "recipes" / "bin"
OSLS = TOOLS / "osls" / "node_modules" / ".bin" / "osls"
SERVICES = ("cloudformation", "s3", "lambda", "iam", "dynamodb", "sts", "logs", "ssm")

needs_tools = [
    pytest.mark.long,
    pytest.mark.skipif(not BIN.exists(), reason="./build.sh recipes fetches the recipes' tools"),
]
needs_node = pytest.mark.skipif(not OSLS.exists(), reason="./build.sh recipes fetches it with npm")


def run(folder: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder, without this machine's settings."""
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        # The tools' libraries warn of a Node.js that they will not know next year.
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
        **variables,
    }
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=folder
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The standard output of a tool that must have succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def on(server: LocalServer) -> dict[str, str]:
    """The variables that send a tool to the local server."""
    return {**CREDENTIALS, "AWS_ENDPOINT_URL": server.endpoint, "AWS_DEFAULT_REGION": REGION}
