"""Imports go downwards only, from floor to floor and inside a wing; a cold start loads little.

The floors are drawn from the real imports: ``python -m tests.unit.test_architecture`` prints them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import REPOSITORY

LAYER = REPOSITORY / "layer"
ENGINE = LAYER / "lambda_once"
BOOTSTRAP = REPOSITORY / "wrapper" / "lambda_once_wrapper" / "bootstrap.py"

# From the bottom up: a wing imports from the floors below it only, and nothing of its own floor.
FLOORS = (
    {"errors", "record", "bundled", "import_faults"},
    {"keys", "results"},
    {"events", "store"},
    {"config"},
    {"telemetry"},
    {"claims"},
    {"invocations"},
    {"engine"},
)
# Values that every wing of the lowest floor may speak in.
WORDS = {"errors", "record"}

DEAR = {"boto3", "botocore", "jmespath", "aws_xray_sdk", "dataclasses", "simplejson", "pathlib"}


class Import(NamedTuple):
    """One imported module by its full name; for our own as in ``lambda_once.claims.protocol``."""

    name: str
    at_module_level: bool


def module_name(path: Path) -> str:
    """As in ``lambda_once.claims.protocol``; of a package its own name."""
    inside = path.relative_to(LAYER).with_suffix("")
    parts = inside.parts[:-1] if inside.name == "__init__" else inside.parts
    return ".".join(parts)


def imports_of(path: Path) -> list[Import]:
    """Every import of a file, also inside functions and for type checkers only."""
    package = ".".join(path.relative_to(path.parents[1]).parts[:-1])
    if path.is_relative_to(ENGINE):
        package = ".".join(path.relative_to(LAYER).parts[:-1])
    return list(_imports(ast.parse(path.read_text(), str(path)), package, at_module_level=True))


def _imports(node: ast.AST, package: str, *, at_module_level: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, at_module_level) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(name, at_module_level) for name in _imported(child, package))
        late = isinstance(child, (ast.FunctionDef, ast.Lambda)) or _is_for_types_only(child)
        yield from _imports(child, package, at_module_level=at_module_level and not late)


def _is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imported(node: ast.ImportFrom, package: str) -> list[str]:
    """The modules that are named: ``from . import a`` names one for each name."""
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*above, *(node.module or "").split(".")]).strip(".")
    found = [f"{base}.{alias.name}" for alias in node.names]
    modules = [name for name in found if name in MODULES]
    return modules or [base]


FILES = {module_name(p): p for p in sorted(ENGINE.rglob("*.py")) if "_bundled" not in p.parts}
MODULES = set(FILES)


def wing_of(module: str) -> str:
    """The wing, or the single module, that a module of ours belongs to."""
    return module.split(".")[1] if "." in module else ""


def ours(module: str) -> list[str]:
    """Our own modules that a module of ours imports."""
    return [each.name for each in imports_of(FILES[module]) if each.name.startswith("lambda_once")]


def floor_of(wing: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if wing in floor)


def arrows() -> set[tuple[str, str]]:
    """Every import from one wing into another, as drawn by the code."""
    found = {(wing_of(module), wing_of(name)) for module in MODULES for name in ours(module)}
    return {(above, below) for above, below in found if above != below and above and below}


def test_every_module_has_its_floor() -> None:
    wings = {wing_of(module) for module in MODULES} - {""}
    assert wings == set().union(*FLOORS)


@pytest.mark.parametrize(("above", "below"), sorted(arrows()), ids=lambda wing: wing)
def test_no_arrow_goes_up_or_sideways(above: str, below: str) -> None:
    words = below in WORDS and above not in WORDS
    assert floor_of(below) < floor_of(above) or words


def test_inside_a_wing_no_module_imports_one_that_imports_it() -> None:
    # Raises CycleError, which names the circle.
    assert list(TopologicalSorter({module: ours(module) for module in MODULES}).static_order())


def test_the_rules_import_nothing_but_values() -> None:
    imported = {each.name for each in imports_of(FILES["lambda_once.claims.protocol"])}
    assert imported == {"__future__", "enum", "lambda_once.record"}


@pytest.mark.parametrize("module", ["plan", "answer"])
def test_what_is_pure_has_no_clock_and_no_store(module: str) -> None:
    imported = {each.name for each in imports_of(FILES[f"lambda_once.invocations.{module}"])}
    assert not imported & {"time", "os", "threading", "concurrent.futures"}
    assert not {name for name in imported if name.startswith("lambda_once.store")}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_the_engine_knows_no_lambda_runtime(module: str) -> None:
    names = {each.name.partition(".")[0] for each in imports_of(FILES[module])}
    assert not names & {"awslambdaric", "lambda_once_wrapper", "snapshot_restore_py"}


def test_only_one_module_speaks_boto3_and_only_when_it_is_asked() -> None:
    aws = {
        (module, each.at_module_level)
        for module in MODULES
        for each in imports_of(FILES[module])
        if each.name.partition(".")[0] in {"boto3", "botocore"}
    }
    assert aws == {("lambda_once.store.boto", False)}


@pytest.mark.parametrize("wing", sorted({wing_of(m) for m in MODULES if m.count(".") > 1}))
def test_a_wing_has_a_page_and_imports_nothing_by_itself(wing: str) -> None:
    page = ENGINE / wing / "__init__.py"
    assert imports_of(page) == []
    assert ast.get_docstring(ast.parse(page.read_text()))


def test_the_bootstrap_loads_nothing_before_the_users_module() -> None:
    early = {each.name for each in imports_of(BOOTSTRAP) if each.at_module_level}
    assert early <= {"__future__", "os", "sys"}


def loaded_by(program: str) -> set[str]:
    """All that a fresh process loads to run the program: our modules in full, others' top names."""
    told = f"import sys\nsys.path.insert(0, {str(LAYER)!r})\n{program}\nprint(*sys.modules)"
    command = [sys.executable, "-S", "-c", told]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return {n if n in MODULES else n.partition(".")[0] for n in run.stdout.split()}


def test_importing_the_engine_loads_nothing_dear() -> None:
    # The functions of expressions are for expressions only, and import jmespath.
    wanted = [module for module in MODULES if not module.endswith(".functions")]
    assert not loaded_by("\n".join(f"import {module}" for module in wanted)) & DEAR


def test_a_configuration_without_expressions_loads_nothing_dear() -> None:
    program = (
        "from lambda_once.config import Config\n"
        "Config.from_environ({'IDEMPOTENCY_TABLE': 'idempotency'})"
    )
    assert not loaded_by(program) & DEAR


FAMILIES = {"http", "queues", "notifications", "streams", "pipes", "services", "unguarded"}
ONE_OF_EACH = {
    "http": {"requestContext": {"http": {"method": "POST"}}},
    "queues": {"Records": [{"eventSource": "aws:sqs", "messageId": "1"}]},
    "notifications": {"Records": [{"EventSource": "aws:sns", "Sns": {}}]},
    "streams": {"Records": [{"eventSource": "aws:kinesis", "eventID": "1"}]},
    "services": {"awslogs": {"data": ""}},
    "unguarded": {"DurableExecutionArn": "arn"},
    "": {"orderId": 1},
}


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_an_event_loads_its_own_family_only(family: str) -> None:
    program = (
        "from lambda_once.events.registry import recognise\n"
        f"assert recognise({ONE_OF_EACH[family]!r})"
    )
    loaded = {name.rpartition(".")[2] for name in loaded_by(program)} & FAMILIES
    assert loaded == ({family} - {""})


def test_the_store_keeps_a_connection_for_each_claim_that_is_made_side_by_side() -> None:
    from lambda_once.invocations.side_by_side import WIDTH
    from lambda_once.store.boto import CONNECTIONS

    assert CONNECTIONS == WIDTH


def picture() -> str:
    """The floors from the top down; after each wing the wings that it imports."""
    lines = []
    for number, floor in reversed(list(enumerate(FLOORS))):
        for wing in sorted(floor):
            below = sorted(low for high, low in arrows() if high == wing)
            lines.append(f"{number}  {wing:<14}{', '.join(below) or '-'}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(picture())
