"""The function's own packages stay what they are, and ours is content with what it finds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.observe import ORDER, Setting
from tests.support.emulator import Emulator, Style
from tests.support.paths import TOOLS

# Whatever code is found under these names, and wherever it lies, must be the function's own.
PROBE = """
import importlib.metadata, importlib.util, pkgutil
NAMES = ["boto3", "botocore", "jmespath", "urllib3", "simplejson", "aws_xray_sdk", "wrapt"]

def probe():
    specs = {name: importlib.util.find_spec(name) for name in NAMES}
    found = importlib.metadata.distributions()
    return {
        "files": {name: spec and spec.origin for name, spec in specs.items()},
        "distributions": sorted({(d.metadata["Name"], d.version) for d in found}),
        "names": sorted({module.name for module in pkgutil.iter_modules()}),
    }

at_import = probe()
def handler(event, context):
    return {"import": at_import, "invocation": probe()}
"""
PLAIN = "def handler(event, context):\n    print('ran')\n    return 'done'\n"
# An old botocore knows no AWS_ENDPOINT_URL_DYNAMODB, and the tests' store lies nowhere else.
POINTED_AT_STORE = """
import os
from boto3.session import Session
make = Session.client
Session.client = lambda self, *names, **options: make(
    self, *names, endpoint_url=os.environ["AWS_ENDPOINT_URL_DYNAMODB"], **options
)
"""
OUR_NAMES = {"lambda_once", "lambda_once_wrapper"}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def function(
    setting: Setting, task: Path, *, python: str = "", layer: bool = True, style: Style = "managed"
) -> Emulator:
    return Emulator(
        python or setting.python,
        task,
        "app.handler",
        layer=setting.layer if layer else None,
        environment={
            "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
            "IDEMPOTENCY_TABLE": setting.table,
            "IDEMPOTENCY_SCOPE": task.parent.name,
            "IDEMPOTENCY_KEY": "orderId",
        },
        style=style,
    )


RUNTIME_CLIENT = ("awslambdaric", "simplejson", "snapshot_restore_py", "runtime_client")
SDK = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six")


def bare_python(folder: Path, packages: Iterable[str]) -> str:
    """A Python with these packages and no others, as in an image made by hand."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = folder / "lib" / version / "site-packages"
    for package in packages:
        for path in Path(sysconfig.get_path("purelib")).glob(f"{package}*"):
            if path.name.split(".")[0] == package:
                (target / path.name).symlink_to(path)
    return str(folder / "bin" / "python")


def probed(
    setting: Setting, task: Path, style: Style, *, layer: bool, python: str = ""
) -> list[Any]:
    """What the probe finds at import, in the first invocation, and in one after the store's use."""
    with function(setting, task, python=python, layer=layer, style=style) as running:
        first, second = (running.invoke({"orderId": n}).json() for n in (1, 2))
        return [first["import"], first["invocation"], second["invocation"]]


@pytest.mark.parametrize("style", ["managed", "module"])
def test_packages_are_found_where_they_are_without_the_layer(
    setting: Setting, tmp_path: Path, style: Style
) -> None:
    task = write(tmp_path / "task", {"app.py": PROBE})
    without = probed(setting, task, style, layer=False)
    layer = probed(setting, task, style, layer=True)
    for before, after in zip(without, layer, strict=True):
        assert None not in before["files"].values()
        assert after["files"] == before["files"]
        assert after["distributions"] == before["distributions"]


@pytest.mark.parametrize("style", ["managed", "module"])
def test_no_importable_name_is_added_but_ours(
    setting: Setting, tmp_path: Path, style: Style
) -> None:
    task = write(tmp_path / "task", {"app.py": PROBE})
    # As in the managed runtimes there is no aws_xray_sdk or wrapt here that would hide our copies.
    python = bare_python(tmp_path / "bare", [*RUNTIME_CLIENT, *SDK, "jmespath"])
    without = probed(setting, task, style, layer=False, python=python)
    layer = probed(setting, task, style, layer=True, python=python)
    for before, after in zip(without, layer, strict=True):
        assert "wrapt" not in before["names"]
        assert set(after["names"]) ^ set(before["names"]) == OUR_NAMES


def ship(task: Path, folder: str, packages: Iterable[str]) -> None:
    """Copy packages into the function's own code, as pip install --target does."""
    for package in packages:
        shutil.copytree(TOOLS / folder / package, task / package)


def assert_protected(setting: Setting, task: Path, python: str = "") -> None:
    with function(setting, task, python=python) as running:
        replies = [running.invoke(ORDER).body for _ in range(2)]
        assert replies == [b'"done"', b'"done"'], running.output()
        assert running.output().count("ran") == 1


def refusal(setting: Setting, task: Path, python: str = "") -> dict[str, Any]:
    """The error of the first invocation, after an init that went well."""
    with function(setting, task, python=python) as running:
        answer: dict[str, Any] = running.invoke(ORDER).json()
        assert "INIT RTDONE(status: success)" in running.output()
        assert "ran" not in running.output().splitlines()
    return answer


def test_an_old_boto3_and_botocore_of_the_user_serve(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": POINTED_AT_STORE + PLAIN})
    ship(task, "old-botocore", ["boto3", "botocore", "s3transfer", "urllib3"])
    assert_protected(setting, task)


def test_urllib3_1_26_of_the_user_serves(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN})
    ship(task, "old-botocore", ["urllib3"])
    assert_protected(setting, task)


def test_an_old_boto3_of_the_user_without_botocore_serves(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN})
    ship(task, "old-boto3", ["boto3"])
    assert_protected(setting, task)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("botocore/__init__.py", "raise RuntimeError('half')", id="broken botocore"),
        pytest.param("boto3/__init__.py", "from botocore import gone", id="boto3 of another age"),
        pytest.param("queue.py", "JOBS = []", id="queue.py"),
        pytest.param("calendar.py", "DAYS = []", id="calendar.py"),
        pytest.param("urllib3/__init__.py", "", id="empty urllib3"),
        pytest.param("typing.py", "", id="typing.py"),
        pytest.param("jmespath/__init__.py", "1 / 0", id="broken jmespath"),
        pytest.param("lambda_once.py", "", id="lambda_once.py"),
    ],
)
def test_a_file_that_breaks_ours_is_named_when_invoked_and_not_at_init(
    setting: Setting, tmp_path: Path, name: str, text: str
) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN, name: text})
    answer = refusal(setting, task)
    assert answer["errorType"] in ("IdempotencyError", "IdempotencyStoreError")
    assert str(task / name) in answer["errorMessage"]


def test_the_kill_switch_works_where_ours_cannot_be_loaded(
    setting: Setting, tmp_path: Path
) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN, "typing.py": ""})
    environment = {"IDEMPOTENCY_DISABLED": "true", "IDEMPOTENCY_TABLE": "any"}
    with Emulator(
        setting.python, task, "app.handler", layer=setting.layer, environment=environment
    ) as running:
        assert running.invoke(ORDER).body == b'"done"'


def test_no_boto3_is_told_when_invoked(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN})
    answer = refusal(setting, task, bare_python(tmp_path / "bare", [*RUNTIME_CLIENT, "jmespath"]))
    assert answer["errorType"] == "IdempotencyStoreError"
    assert "No module named 'boto3'" in answer["errorMessage"]


def test_the_key_is_evaluated_where_there_is_no_jmespath(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN})
    python = bare_python(tmp_path / "bare", RUNTIME_CLIENT)
    with function(setting, task, python=python) as running:
        keyless, keyed = running.invoke({"other": 1}), running.invoke(ORDER)
    assert json.loads(keyless.body)["errorType"] == "IdempotencyKeyMissingError"
    assert keyed.error_type == "IdempotencyStoreError"  # it has a key, and there is no boto3


def test_ours_works_with_boto3_where_there_is_no_jmespath(setting: Setting, tmp_path: Path) -> None:
    task = write(tmp_path / "task", {"app.py": PLAIN})
    assert_protected(setting, task, bare_python(tmp_path / "bare", [*RUNTIME_CLIENT, *SDK]))
