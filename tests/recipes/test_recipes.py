"""Each recipe sets variables that the layer has, and grants what the README says, and no more.

These tests read text, so they need none of the tools; `./build.sh recipes` runs those.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lambda_once.config import VARIABLES
from tests.recipes.shape import WANTED_ACTIONS
from tests.support.paths import REPOSITORY

RECIPES = REPOSITORY / "recipes"
FOLDERS = sorted(path.name for path in RECIPES.iterdir() if path.is_dir())
ZIP = "dist/lambda-once.zip"


def text(recipe: str) -> str:
    """All that a recipe says, without its comments."""
    files = sorted(path for path in (RECIPES / recipe).rglob("*") if path.is_file())
    lines = "\n".join(path.read_text() for path in files if path.suffix != ".pyc").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def test_there_is_one_for_each_tool_and_the_page_lists_them() -> None:
    assert [
        *("aws-cli", "cdk", "container", "pulumi", "sam", "serverless", "terraform"),
    ] == FOLDERS
    page = (RECIPES / "README.md").read_text()
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == FOLDERS


@pytest.mark.parametrize("recipe", FOLDERS)
def test_it_sets_variables_that_the_layer_has(recipe: str) -> None:
    named = set(re.findall(r"IDEMP\w+", text(recipe)))
    assert named <= set(VARIABLES)
    assert {"IDEMPOTENCY_TABLE", "IDEMPOTENCY_KEY"} <= named


@pytest.mark.parametrize("recipe", FOLDERS)
def test_it_names_the_wrapper_where_the_layer_has_it(recipe: str) -> None:
    values = re.findall(
        r"""AWS_LAMBDA_EXEC_WRAPPER["']?\s*[:=]\s*["']?([^"'\s,\\]+)""", text(recipe)
    )
    assert set(values) == {"/opt/lambda-once"}


@pytest.mark.parametrize("recipe", FOLDERS)
def test_it_grants_the_four_actions_on_the_functions_own_records(recipe: str) -> None:
    granted = set(re.findall(r"dynamodb:[A-Z*]\w*", text(recipe))) - {"dynamodb:LeadingKeys"}
    assert granted == WANTED_ACTIONS
    assert re.search(r"dynamodb:LeadingKeys", text(recipe))
    assert "ForAllValues:StringLike" in text(recipe)


@pytest.mark.parametrize("recipe", FOLDERS)
def test_it_takes_the_built_layer(recipe: str) -> None:
    # In a Dockerfile and a script it is the user who puts it there: a comment says so.
    assert any(ZIP in path.read_text() for path in (RECIPES / recipe).iterdir() if path.is_file())


@pytest.mark.parametrize("recipe", sorted({*FOLDERS} - {"container"}))
def test_its_table_expires_records(recipe: str) -> None:
    assert "expires_at" in text(recipe)
    assert "PAY_PER_REQUEST" in text(recipe)


def test_all_functions_are_the_same_ordinary_handler() -> None:
    handlers = sorted(RECIPES.glob("*/src/app.py"))
    assert len(handlers) == len(FOLDERS) - 1
    assert len({path.read_text() for path in handlers}) == 1


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.py")), ids=str)
def test_its_python_compiles(path: Path) -> None:
    ast.parse(path.read_text())


def test_the_image_starts_the_wrapper_from_where_it_copies_the_layer() -> None:
    dockerfile = (RECIPES / "container" / "Dockerfile").read_text()
    assert "COPY --from=layer /layer/ /opt/" in dockerfile
    assert "chmod 755 /layer/lambda-once" in dockerfile
