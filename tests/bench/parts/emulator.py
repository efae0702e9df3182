"""The wall time of a cold start, init and first invocation, in the real emulator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from statistics import median

from tests.bench.figures import Findings, in_turns, ratio, spread, table
from tests.bench.setting import PYTHON, Setting
from tests.bench.starts import (
    ANSWER,
    BARE,
    BARE_BOTO3,
    EVENT,
    FUNCTIONS,
    LAYER,
    POWERTOOLS,
    STARTS,
    Start,
    function_variables,
)
from tests.support.emulator import Emulator


def measure(setting: Setting) -> Findings:
    figures = {}
    with setting.canned() as server:
        for scheme, variables in server.schemes().items():
            subjects = {
                name: partial(_first_answer_ms, start, setting, variables)
                for name, start in STARTS.items()
            }
            found = in_turns(setting.runs, subjects)
            rows = []
            for name, times in found.items():
                base = found[BARE_BOTO3 if name.startswith(BARE_BOTO3) else BARE]
                more = median(times) - median(base)
                rows.append([name, *spread(times).ms(), f"{more:+.0f} ms"])
            table(
                f"Cold start in the real emulator over {scheme}, wall time,"
                f" median of {setting.runs}",
                ("function", "time", "", "more"),
                rows,
            )
            added = ratio(found[LAYER], found[POWERTOOLS], found[BARE])
            print(f"\n  The layer adds {added.median:.2f} of what Powertools adds.")
            figures[scheme] = {
                **{name: {"wall ms": spread(times).json()} for name, times in found.items()},
                "ratio of what is added": added.json(),
            }
    return Findings(figures)


def _first_answer_ms(start: Start, setting: Setting, scheme: Mapping[str, str]) -> float:
    with Emulator(
        PYTHON,
        FUNCTIONS,
        f"{start.module}.handler",
        environment=function_variables(scheme),
        layer=setting.layer if start.layered else None,
        timeout_s=60,
    ) as function:
        started = time.perf_counter()
        reply = function.invoke(EVENT)
        took = time.perf_counter() - started
    if reply.json() != ANSWER:
        raise RuntimeError(f"{start} answered {reply.body!r}:\n{function.output()}")
    return took * 1000
