"""The layer zip: as small as promised, and nothing in it that does not belong there."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.layer import build_layer
from tests.support.paths import LAYER_ZIP, REPOSITORY, TOOLS

BUNDLE = "python/lambda_once/_bundled/"
OUR_LIMIT_BYTES = 100 * 1024
WHOLE_LIMIT_BYTES = 400 * 1024
PACKAGES = {
    "python/lambda_once": "layer/lambda_once",
    "python/lambda_once_wrapper": "wrapper/lambda_once_wrapper",
}


@pytest.fixture(scope="module")
def layer() -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(build_layer()) as archive:
        yield archive


def build_from(repository: Path, target: Path) -> str:
    """Build a zip from a copy of the sources; its hash."""
    command: list[str | Path] = [
        sys.executable,
        REPOSITORY / "tools/build_zip.py",
        repository,
        TOOLS / "wheels",
        target,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def test_holds_our_sources_the_script_and_the_bundle_and_nothing_else(
    layer: zipfile.ZipFile,
) -> None:
    ours = {
        f"{inside}/{path.relative_to(REPOSITORY / folder).as_posix()}"
        for inside, folder in PACKAGES.items()
        for path in (REPOSITORY / folder).rglob("*.py")
    }
    names = {name for name in layer.namelist() if not name.startswith(BUNDLE)}
    assert names == {"lambda-once", *ours}


def test_holds_each_of_our_files_as_it_is_in_the_repository(layer: zipfile.ZipFile) -> None:
    for inside, folder in PACKAGES.items():
        for path in (REPOSITORY / folder).rglob("*.py"):
            name = path.relative_to(REPOSITORY / folder).as_posix()
            assert layer.read(f"{inside}/{name}") == path.read_bytes()
    assert layer.read("lambda-once") == (REPOSITORY / "wrapper" / "lambda-once").read_bytes()


def test_the_script_can_be_started_by_any_kernel(layer: zipfile.ZipFile) -> None:
    script = layer.read("lambda-once")
    assert script.startswith(b"#!/bin/sh\n")
    assert b"\r" not in script
    assert layer.getinfo("lambda-once").external_attr >> 16 == stat.S_IFREG | 0o755


def test_is_as_small_as_promised(layer: zipfile.ZipFile) -> None:
    whole = LAYER_ZIP.stat().st_size
    # An entry is its compressed bytes, a header of 30, a line of 46 in the directory, two names.
    bundle = sum(
        entry.compress_size + 30 + 46 + 2 * len(entry.filename)
        for entry in layer.infolist()
        if entry.filename.startswith(BUNDLE)
    )
    assert whole < WHOLE_LIMIT_BYTES
    assert whole - bundle < OUR_LIMIT_BYTES


def test_is_the_same_whatever_tools_have_left_among_the_sources(tmp_path: Path) -> None:
    for folder in ("layer", "wrapper"):
        shutil.copytree(
            REPOSITORY / folder,
            tmp_path / folder,
            ignore=shutil.ignore_patterns("__pycache__", ".*"),
        )
    clean = build_from(tmp_path, tmp_path / "clean.zip")
    for left in (".mypy_cache/3.10/cache.0.db", "__pycache__/a.pyc", ".DS_Store"):
        path = tmp_path / "layer" / "lambda_once" / left
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left over")
    assert build_from(tmp_path, tmp_path / "left.zip") == clean
