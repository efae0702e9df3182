"""Writes the table of batch cases as Markdown: ``python -m tests.batches.table`` prints it."""

from __future__ import annotations

from pathlib import Path

from tests.batches.cases import CASES, Case, run

README = Path(__file__).parents[2] / "README.md"
HEAD = (
    "| source | `BATCH` | `PARTIAL_BATCH` | records before | the handler | sees | answer | after |",
    "|---|---|---|---|---|---|---|---|",
)
WORDS = {"passes": "its answer, as it is", "returns": "returns"}


def _line(case: Case) -> str:
    came = run(case)
    cells = (
        case.source,
        case.batch,
        case.partial,
        _states(case.letters, case.before),
        case.handler,
        came.seen or "not called",
        WORDS.get(came.answer, came.answer),
        _states(case.letters, came.after),
    )
    return f"| {' | '.join(cells)} |"


def _states(letters: str, states: str) -> str:
    return ", ".join(f"{a} {b}" for a, b in zip(letters, states.split(), strict=True))


def rendered() -> str:
    """The table of the main cases, made by running them."""
    return "\n".join((*HEAD, *(_line(case) for case in CASES if case.in_readme)))


if __name__ == "__main__":
    print(rendered())
