"""The wall time of the first invocation of a 128 MB function, whose CPU is limited after init."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.bench.cpu_quota import (
    PERIOD_US,
    SHARE_OF_128_MB,
    CpuGroup,
    NoQuotaError,
    find_cpu_group,
    limited_group,
    move,
)
from tests.bench.figures import Findings, Target, in_turns, ratio, spread, table
from tests.bench.setting import Setting
from tests.bench.starts import (
    LAYER,
    LAYER_BOTO3,
    POWERTOOLS,
    POWERTOOLS_BOTO3,
    STARTS,
    Start,
    started,
)

AT_MOST = 0.5
LIMIT = f"{SHARE_OF_128_MB:.0%} of a core, in periods of {PERIOD_US // 1000} ms"


def measure(setting: Setting) -> Findings:
    try:
        return _measure(setting, find_cpu_group())
    except NoQuotaError as why:
        print(f"\nThe first invocation under a CPU limit was not measured: {why}", flush=True)
        return Findings({"not measured": str(why)})


def _measure(setting: Setting, cpu: CpuGroup) -> Findings:
    figures: dict[str, Any] = {"limit": LIMIT}
    targets = []
    with setting.canned() as server:
        for scheme, variables in server.schemes().items():
            subjects = {
                name: partial(_first_ms, start, setting, cpu, variables)
                for name, start in STARTS.items()
            }
            found = in_turns(setting.runs, subjects)
            plain = ratio(found[LAYER], found[POWERTOOLS])
            boto3 = ratio(found[LAYER_BOTO3], found[POWERTOOLS_BOTO3])
            table(
                f"First invocation over {scheme}, wall time with {LIMIT} from the end of init on,"
                f" median of {setting.runs}",
                ("function", "time", ""),
                [[name, *spread(times).ms()] for name, times in found.items()],
            )
            print(
                f"\n  The layer by Powertools: {plain.median:.2f},"
                f" and {boto3.median:.2f} where the function uses boto3."
            )
            figures[scheme] = {
                **{name: {"wall ms": spread(times).json()} for name, times in found.items()},
                "ratio, plain": plain.json(),
                "ratio, uses boto3": boto3.json(),
            }
            name = f"first invocation of a plain function with 128 MB, {scheme}"
            targets.append(Target(name, plain.median, AT_MOST))
    return Findings(figures, targets)


def _first_ms(start: Start, setting: Setting, cpu: CpuGroup, scheme: Mapping[str, str]) -> float:
    # Left last, when the process has ended.
    with limited_group(cpu, SHARE_OF_128_MB) as group, started(start, setting, scheme) as function:
        function.cpu_s()  # waits until init is at rest
        move(function.pid, group)
        return function.invoke() * 1000
