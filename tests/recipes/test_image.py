"""The container recipe's image, without Docker: its steps are carried out in a folder, and run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.emulator import Emulator
from tests.support.paths import LAYER_ZIP, REPOSITORY
from tests.support.processes import LocalServer

CONTAINER = REPOSITORY / "recipes" / "container"
DOCKERFILE = (CONTAINER / "Dockerfile").read_text()


@pytest.fixture
def opt(tmp_path: Path, layer_dir: Path) -> Path:
    """What the image has in /opt: what its one RUN makes of the zip."""
    (command,) = re.findall(r"^RUN (.+)$", DOCKERFILE, re.MULTILINE)
    here = command.replace("python ", f"{sys.executable} ", 1)
    here = here.replace("/lambda-once.zip", str(LAYER_ZIP), 1)
    here = here.replace(" /layer", f" {tmp_path}/layer")
    subprocess.run(["/bin/sh", "-c", here], check=True)
    return tmp_path / "layer"


def variables() -> dict[str, str]:
    """The variables that the image sets."""
    (text,) = re.findall(r"^ENV ((?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in text.replace("\\\n", " ").split())


def test_the_image_has_in_opt_what_a_function_would_have(opt: Path, layer_dir: Path) -> None:
    def content(folder: Path) -> dict[str, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.suffix != ".pyc"}

    assert content(opt) == content(layer_dir)


@pytest.mark.parametrize("style", ["managed", "module"])
def test_its_function_replays(opt: Path, ministack: LocalServer, table: str, style: str) -> None:
    # By AWS's own entry point, and by the client's module as in the comment.
    given = variables()
    assert given.pop("AWS_LAMBDA_EXEC_WRAPPER") == "/opt/lambda-once"
    assert 'CMD ["app.handler"]' in DOCKERFILE
    environment = {
        **given,
        "IDEMPOTENCY_TABLE": table,
        "AWS_ENDPOINT_URL_DYNAMODB": ministack.endpoint,
        "AWS_LAMBDA_LOG_LEVEL": "INFO",
    }
    function = Emulator(
        sys.executable,
        CONTAINER / "src",
        "app.handler",
        layer=opt,
        environment=environment,
        style=style,
    )
    event = {"orderId": "1001", "amount": 49.9}
    with function:
        first, again = function.invoke(event), function.invoke(event)
        said = function.output()
    assert first.json() == {"orderId": "1001", "charged": 49.9}
    assert again.body == first.body
    assert said.count("lambda-once: replayed") == 1
