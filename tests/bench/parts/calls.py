"""The CPU time and the requests of single invocations of a warm function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from tests.bench.calls import KINDS, Kind
from tests.bench.figures import Findings, Target, in_turns, ratio, spread, table
from tests.bench.setting import Server, Setting, child

SUBJECTS = ("layer", "powertools", "bare")

# By kind: the most of Powertools' CPU time.
AT_MOST = {"first run": 0.25, "replay": 0.25, "release": 0.25, "cached replay": 0.5}

Found = Mapping[str, Sequence[Mapping[str, float]]]


def measure(setting: Setting) -> Findings:
    figures: dict[str, Any] = {}
    targets = []
    with setting.canned() as server:
        for scheme, variables in server.schemes().items():
            rows = []
            figures[scheme] = {}
            for name, kind in KINDS.items():
                found = _runs(server, variables, name)
                figures[scheme][name] = _json(found)
                rows.append(_row(name, found))
                target = _ratio(found).median
                targets.append(Target(f"CPU of a {name}, {scheme}", target, AT_MOST[name]))
                _check_requests(name, kind, found)
            table(
                f"CPU time of an invocation over {scheme}, {setting.runs} runs of many calls;"
                " DynamoDB answers at once",
                ("", "layer", "", "Powertools", "", "bare", "ratio", "", "requests", "theirs"),
                rows,
            )
    return Findings(figures, targets)


def _runs(server: Server, variables: Mapping[str, str], name: str) -> Found:
    counter = server.canned.plain
    subjects = {
        subject: partial(child, variables, "calls", subject, name, counter) for subject in SUBJECTS
    }
    return in_turns(server.setting.runs, subjects)


def _times(found: Found, subject: str) -> list[float]:
    return [run["cpu_ms"] for run in found[subject]]


def _requests(found: Found, subject: str) -> float:
    return median(run["requests"] for run in found[subject])


def _ratio(found: Found) -> Any:
    return ratio(_times(found, "layer"), _times(found, "powertools"))


def _json(found: Found) -> dict[str, Any]:
    figures: dict[str, Any] = {
        subject: {
            "CPU ms": spread(_times(found, subject)).json(),
            "requests": _requests(found, subject),
        }
        for subject in SUBJECTS
    }
    return {**figures, "ratio": _ratio(found).json()}


def _row(name: str, found: Found) -> list[str]:
    ours, theirs, bare = (spread(_times(found, subject)) for subject in SUBJECTS)
    by = _ratio(found)
    return [
        name,
        *ours.ms(3),
        *theirs.ms(3),
        f"{bare.median:.4f} ms",
        f"{by.median:.2f}",
        f"{by.least:.2f} to {by.most:.2f}",
        f"{_requests(found, 'layer'):g}",
        f"{_requests(found, 'powertools'):g}",
    ]


def _check_requests(name: str, kind: Kind, found: Found) -> None:
    """What was measured must be what the row says it is."""
    for run in found["layer"]:
        if run["requests"] != kind.requests:
            raise RuntimeError(f"a {name} made {run['requests']} requests, not {kind.requests}")
