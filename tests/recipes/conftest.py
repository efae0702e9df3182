"""The tools of the recipes, and the recipes in a place where tools may write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes.tools import SERVICES
from tests.support.ministack import running_ministack
from tests.support.paths import LAYER_ZIP, REPOSITORY
from tests.support.processes import LocalServer


@pytest.fixture
def recipes(tmp_path: Path, layer_dir: Path) -> Path:
    """A copy of the recipes beside the built zip, for tools that write into their folder."""
    shutil.copytree(REPOSITORY / "recipes", tmp_path / "recipes")
    (tmp_path / "dist").mkdir()
    shutil.copy(LAYER_ZIP, tmp_path / "dist")
    return tmp_path / "recipes"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalServer]:
    with running_ministack(SERVICES) as server:
        yield server
