"""Modules import downwards only, and the cold start loads nothing dear."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import REPOSITORY

LAYER = REPOSITORY / "layer"
ENGINE = LAYER / "lambda_once"
BOOTSTRAP = REPOSITORY / "wrapper" / "lambda_once_wrapper" / "bootstrap.py"

# From the bottom up: a module imports only those before it.
ORDER = [
    "errors",
    "blame",
    "quiet",
    "record",
    "protocol",
    "callers",
    "functions",
    "keys",
    "results",
    "http",
    "sources",
    "config",
    "store",
    "dynamodb",
    "guard",
    "batch",
    "engine",
    "telemetry",
]

DEAR = {"boto3", "botocore", "jmespath", "aws_xray_sdk", "dataclasses", "simplejson"}


class Import(NamedTuple):
    """One imported module: `.record` for our own, its full name for others."""

    name: str
    at_module_level: bool


def imports_of(path: Path) -> list[Import]:
    """Every import of a file that can happen at run time, also inside functions."""
    return list(_imports(ast.parse(path.read_text(), str(path)), at_module_level=True))


def _imports(node: ast.AST, *, at_module_level: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, at_module_level) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(name, at_module_level) for name in _imported_from(child))
        inside = isinstance(child, (ast.FunctionDef, ast.Lambda))
        yield from _imports(child, at_module_level=at_module_level and not inside)


def _imported_from(node: ast.ImportFrom) -> list[str]:
    """`from . import a, b` names two modules, `from .a import b` and `from a import b` one."""
    if node.level and node.module is None:
        return [f".{alias.name}" for alias in node.names]
    return ["." * node.level + (node.module or "")]


def modules() -> list[str]:
    return sorted(path.stem for path in ENGINE.glob("*.py") if path.stem != "__init__")


def test_every_module_has_its_place_in_the_order() -> None:
    assert set(modules()) <= set(ORDER)


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_modules_below_it(module: str) -> None:
    ours = {each.name[1:] for each in imports_of(ENGINE / f"{module}.py") if each.name[0] == "."}
    assert ours <= set(ORDER[: ORDER.index(module)])


def test_the_rules_import_nothing_but_values() -> None:
    imported = {each.name for each in imports_of(ENGINE / "protocol.py")}
    assert imported == {"__future__", "enum", ".record"}


@pytest.mark.parametrize("module", modules())
def test_the_engine_knows_no_lambda_runtime(module: str) -> None:
    names = {each.name.partition(".")[0] for each in imports_of(ENGINE / f"{module}.py")}
    assert not names & {"awslambdaric", "lambda_once_wrapper", "snapshot_restore_py"}


def test_only_one_module_speaks_aws_and_only_when_it_is_asked() -> None:
    aws = {
        (module, each.at_module_level)
        for module in modules()
        for each in imports_of(ENGINE / f"{module}.py")
        if each.name.partition(".")[0] in {"boto3", "botocore"}
    }
    assert aws == {("dynamodb", False)}


def test_the_package_itself_imports_nothing() -> None:
    assert imports_of(ENGINE / "__init__.py") == []


def test_the_bootstrap_loads_nothing_before_the_users_module() -> None:
    early = {each.name for each in imports_of(BOOTSTRAP) if each.at_module_level}
    assert early <= {"__future__", "os", "sys", "typing", "collections.abc"}


def loaded_by(program: str) -> set[str]:
    """The top-level names of all that a fresh process loads to run the program."""
    told = f"import sys\nsys.path.insert(0, {str(LAYER)!r})\n{program}\nprint(*sys.modules)"
    command = [sys.executable, "-S", "-c", told]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_importing_the_engine_loads_nothing_dear() -> None:
    # `functions` is for expressions only, and imports jmespath.
    wanted = [module for module in modules() if module != "functions"]
    assert not loaded_by(f"from lambda_once import {', '.join(wanted)}") & DEAR


def test_a_configuration_without_expressions_loads_nothing_dear() -> None:
    program = (
        "from lambda_once.config import Config\n"
        "Config.from_environ({'IDEMPOTENCY_TABLE': 'idempotency'})"
    )
    assert not loaded_by(program) & DEAR
