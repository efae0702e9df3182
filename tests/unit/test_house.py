"""The page about the house says where things are, and they are there.

``python -m tests.unit.test_house`` puts the picture of the floors in its place.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.paths import REPOSITORY
from tests.unit.test_architecture import ENGINE, picture

PAGE = REPOSITORY / "docs" / "house.md"
OPEN, CLOSE = "<!-- floors -->", "<!-- /floors -->"
PLACES = re.findall(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \|$", PAGE.read_text(), re.MULTILINE)


def module_at(path: Path) -> ModuleType:
    if path.is_relative_to(ENGINE):
        name = ".".join(path.relative_to(ENGINE.parent).with_suffix("").parts)
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("bootstrap_as_a_page_names_it", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_names_a_place_for_many_changes() -> None:
    assert len(PLACES) >= 12


@pytest.mark.parametrize(("change", "file", "name"), PLACES, ids=lambda cell: cell)
def test_what_is_to_be_changed_is_where_the_page_says(change: str, file: str, name: str) -> None:
    inside = ENGINE / file
    found: object = module_at(inside if inside.is_file() else REPOSITORY / file)
    for part in name.split("."):
        found = getattr(found, part)


def rendered() -> str:
    return f"{OPEN}\n```\n{picture()}\n```\n{CLOSE}"


def test_the_page_has_the_picture_that_the_imports_draw() -> None:
    assert rendered() in PAGE.read_text()


if __name__ == "__main__":
    pattern = f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}"
    page = re.sub(pattern, lambda _: rendered(), PAGE.read_text(), flags=re.DOTALL)
    PAGE.write_text(page)
