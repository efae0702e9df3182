"""The CPU time of a cold start: of init, and of the first invocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tests.bench.figures import Findings, Spread, Target, in_turns, ratio, spread, table
from tests.bench.setting import Setting
from tests.bench.starts import (
    BARE,
    BARE_BOTO3,
    LAYER,
    LAYER_BOTO3,
    POWERTOOLS,
    POWERTOOLS_BOTO3,
    STARTS,
    Start,
    started,
)

# Of what Powertools adds, for a plain function and for one that uses boto3 itself.
AT_MOST = 0.15
AT_MOST_WITH_BOTO3 = 0.5


class Cpu(NamedTuple):
    """CPU time in ms."""

    init: float
    first: float

    @property
    def both(self) -> float:
        return self.init + self.first


Found = Mapping[str, Sequence[Cpu]]


def measure(setting: Setting) -> Findings:
    figures, targets = {}, []
    with setting.canned() as server:
        for scheme, variables in server.schemes().items():
            subjects = {
                name: partial(_cpu, start, setting, variables) for name, start in STARTS.items()
            }
            found: Found = in_turns(setting.runs, subjects)
            added = _added(found, [BARE, LAYER, POWERTOOLS])
            added_boto3 = _added(found, [BARE_BOTO3, LAYER_BOTO3, POWERTOOLS_BOTO3])
            _print(scheme, found, added, added_boto3)
            figures[scheme] = {
                **{name: _json(runs) for name, runs in found.items()},
                "ratio of what is added, plain": added.json(),
                "ratio of what is added, uses boto3": added_boto3.json(),
            }
            what = f"cold start, CPU added to a function that is plain, {scheme}"
            targets.append(Target(what, added.median, AT_MOST))
            what = f"cold start, CPU added to one that uses boto3, {scheme}"
            targets.append(Target(what, added_boto3.median, AT_MOST_WITH_BOTO3))
    return Findings(figures, targets)


def _cpu(start: Start, setting: Setting, scheme: Mapping[str, str]) -> Cpu:
    with started(start, setting, scheme) as function:
        init = function.cpu_s()
        function.invoke()
        function.wait_until_idle(1)
        return Cpu(init * 1000, (function.cpu_s() - init) * 1000)


def _added(found: Found, names: Sequence[str]) -> Spread:
    base, ours, theirs = ([run.both for run in found[name]] for name in names)
    return ratio(ours, theirs, base)


def _json(runs: Sequence[Cpu]) -> dict[str, dict[str, float]]:
    return {
        "init CPU ms": spread([run.init for run in runs]).json(),
        "first invocation CPU ms": spread([run.first for run in runs]).json(),
        "both CPU ms": spread([run.both for run in runs]).json(),
    }


def _print(scheme: str, found: Found, added: Spread, added_boto3: Spread) -> None:
    rows = []
    for name, runs in found.items():
        init, first = spread([run.init for run in runs]), spread([run.first for run in runs])
        both = spread([run.both for run in runs])
        base = found[BARE_BOTO3 if name.startswith(BARE_BOTO3) else BARE]
        more = both.median - spread([run.both for run in base]).median
        rows.append([name, *init.ms(), *first.ms(1), *both.ms(), f"{more:+.0f} ms"])
    table(
        f"CPU time of a cold start over {scheme}, median of {len(found[BARE])}",
        ("function", "init", "", "first invocation", "", "both", "", "more"),
        rows,
    )
    print(
        f"\n  The layer adds {added.median:.2f} of what Powertools adds to the plain function,"
        f"\n  and {added_boto3.median:.2f} of what it adds to the one that uses boto3."
    )
