"""Medians, ratios and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """What several runs gave: the median, the least and the most."""

    median: float
    least: float
    most: float

    def json(self) -> dict[str, float]:
        return {
            "median": round(self.median, 4),
            "min": round(self.least, 4),
            "max": round(self.most, 4),
        }

    def ms(self, digits: int = 0) -> tuple[str, str]:
        """For two cells of a table: the median, and from where to where."""
        ends = f"{self.least:.{digits}f} to {self.most:.{digits}f}"
        return f"{self.median:.{digits}f} ms", ends


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def ratio(
    ours: Sequence[float], theirs: Sequence[float], base: Sequence[float] | None = None
) -> Spread:
    """Ours by theirs, each less ``base`` if given: of the medians, and of the single turns.

    The runs of one turn were made one after the other, so that a busy moment hit them alike.
    """
    base = base or [0.0] * len(ours)
    turns = [(our - b) / (their - b) for our, their, b in zip(ours, theirs, base, strict=True)]
    of_medians = (median(ours) - median(base)) / (median(theirs) - median(base))
    return Spread(of_medians, min(turns), max(turns))


class Target(NamedTuple):
    """A ratio and what it should be: at most ``bound``, or with ``least`` at least that."""

    name: str
    ratio: float
    bound: float
    least: bool = False

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.bound if self.least else self.ratio <= self.bound

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ratio": round(self.ratio, 4),
            "at_least" if self.least else "at_most": self.bound,
            "met": self.is_met,
        }


class Findings(NamedTuple):
    """What a part measured: for the file, and the ratios that have a target."""

    figures: Mapping[str, Any]
    targets: Sequence[Target] = ()


def in_turns(runs: int, subjects: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
    """Measure all subjects, one after the other, so many times."""
    found: dict[str, list[Any]] = {name: [] for name in subjects}
    for _ in range(runs):
        for name, measure in subjects.items():
            found[name].append(measure())
    return found


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with aligned columns: the first to the left, figures to the right."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    print(f"\n{title}\n")
    for row in (head, ["-" * width for width in widths], *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        print("  " + "  ".join(cells).rstrip(), flush=True)


def targets_table(targets: Sequence[Target]) -> None:
    rows = [
        [
            each.name,
            f"{each.ratio:.2f}",
            f"at {'least' if each.least else 'most'} {each.bound:.2f}",
            "met" if each.is_met else "missed",
        ]
        for each in targets
    ]
    table("Targets: the layer by Powertools", ("", "ratio", "target", ""), rows)
