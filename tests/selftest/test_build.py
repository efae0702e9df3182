"""The layer zip holds what it promises, and two builds are one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.layer import build_layer
from tests.support.paths import LAYER_ZIP, REPOSITORY, TOOLS

BUNDLE = "python/lambda_once/_bundled/"


def build_zip(repository: Path, target: Path) -> subprocess.CompletedProcess[str]:
    script = REPOSITORY / "tools" / "build_zip.py"
    command = [sys.executable, *map(str, (script, repository, TOOLS / "wheels", target))]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def names() -> list[str]:
    with zipfile.ZipFile(build_layer()) as layer:
        return layer.namelist()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what goes into the layer, to be spoilt."""
    for folder in ("layer", "wrapper"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def test_two_builds_have_one_hash(sources: Path, tmp_path: Path) -> None:
    for path in sources.rglob("*"):
        path.chmod(0o700)
    assert build_zip(sources, tmp_path / "again.zip").returncode == 0
    build_layer()
    hashes = {
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (LAYER_ZIP, tmp_path / "again.zip")
    }
    assert len(hashes) == 1


def test_puts_only_our_two_packages_on_the_import_path(names: list[str]) -> None:
    assert {name.split("/")[0] for name in names} == {"lambda-once", "python"}
    packages = {name.split("/")[1] for name in names if name.startswith("python/")}
    assert packages == {"lambda_once", "lambda_once_wrapper"}


def test_bundles_importable_code_and_licences_only(names: list[str]) -> None:
    bundled = [name.removeprefix(BUNDLE).split("/") for name in names if name.startswith(BUNDLE)]
    licences = {name for _, name, *inside in bundled if not inside}
    assert {(folder, package) for folder, package, *inside in bundled if inside} == {
        ("aws_xray_sdk", "aws_xray_sdk"),
        ("aws_xray_sdk", "wrapt"),
        ("jmespath", "jmespath"),
    }
    assert licences == {
        "aws_xray_sdk.LICENSE",
        "aws_xray_sdk.NOTICE",
        "jmespath.LICENSE",
        "wrapt.LICENSE",
    }
    assert {Path(path[-1]).suffix for path in bundled if len(path) > 2} == {".py", ".json"}


def test_sets_the_permissions_the_service_needs() -> None:
    with zipfile.ZipFile(build_layer()) as layer:
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in layer.infolist()}
    assert modes.pop("lambda-once") == 0o755
    assert set(modes.values()) == {0o644}


def test_the_bundle_can_be_imported(layer_dir: Path) -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1] + f for f in ('aws_xray_sdk', 'jmespath')];"
        "import aws_xray_sdk.core, jmespath, wrapt;"
        "assert all(m.__file__.startswith(sys.argv[1]) for m in (aws_xray_sdk, jmespath, wrapt))"
    )
    subprocess.run([sys.executable, "-c", program, f"{layer_dir}/{BUNDLE}"], check=True)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"#!/bin/sh\r\nexec\r\n", "Windows line endings"), (b"exec\n", "must start with the line")],
)
def test_refuses_a_script_that_could_not_start(
    sources: Path, tmp_path: Path, content: bytes, complaint: str
) -> None:
    (sources / "wrapper/lambda-once").write_bytes(content)
    built = build_zip(sources, tmp_path / "never.zip")
    assert built.returncode == 1
    assert complaint in built.stderr
    assert not (tmp_path / "never.zip").exists()
