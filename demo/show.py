"""How the cases are printed: as a table to look at, or as JSON lines to be read by a program."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from demo.cases import Case

INTRODUCTION = """\
An order handler that knows nothing of the layer, in two execution environments, A and B.
The layer is attached, IDEMPOTENCY_TABLE and IDEMPOTENCY_KEY=orderId are set, and that is all.
"""
TITLES = ("case", "what happened", "handler runs")
WIDTHS = (13, 38, 12)
INDENT = " " * 15
LINE_WIDTH = 100


@dataclass(frozen=True)
class Show:
    """Three moments at which something may be printed."""

    begin: Callable[[], None]
    print_case: Callable[[Case], None]
    end: Callable[[list[str]], None]

    def case(self, case: Case) -> Case:
        """Print a case as soon as it is known, and give it back."""
        self.print_case(case)
        return case


def as_json_lines() -> Show:
    """One line for each case and nothing else."""
    return Show(lambda: None, print_json, lambda faults: None)


def as_table() -> Show:
    """For people."""
    return Show(print_heading, print_row, print_conclusion)


def print_json(case: Case) -> None:
    """The fields of a case that do not depend on how it is judged."""
    line = {
        "case": case.name,
        "status": case.status,
        "body": case.body,
        "handler_runs": case.handler_runs,
    }
    print(json.dumps(line), flush=True)


def print_heading() -> None:
    """What is going to be shown."""
    print(f"\n{INTRODUCTION}")
    print(columns(*TITLES))
    print(columns(*("-" * width for width in WIDTHS)), flush=True)


def print_row(case: Case) -> None:
    """The case in one line, and its answer below."""
    mark = "" if not case.faults else "   <-- not as it should be"
    print(columns(case.name, case.remark, f"{case.handler_runs:>{WIDTHS[2]}}") + mark)
    if case.name == "record":
        print_attributes(case)
    else:
        print_indented(summary(case.body))


def print_attributes(case: Case) -> None:
    """The attributes of a stored record, one a line."""
    for name, value in json.loads(case.body).items():
        print(f"{INDENT}{name:18} {value}")
    print()


def print_indented(text: str) -> None:
    """Text under the second column, wrapped."""
    lines = textwrap.wrap(
        text, LINE_WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False
    )
    print("\n".join(lines), end="\n\n")


def summary(body: str) -> str:
    """An answer as it is; of an error its type and message."""
    answer = json.loads(body)
    return f"{answer['errorType']}: {answer['errorMessage']}" if "errorType" in answer else body


def print_conclusion(faults: list[str]) -> None:
    """Whether all was as it should be."""
    print("Not every case was as it should be." if faults else "Every case showed what it should.")


def columns(*cells: str) -> str:
    """One line of the table."""
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()
