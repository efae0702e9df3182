"""Batches of SQS records: records per second, CPU time, memory and requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from tests.bench.batches import WARM_UP
from tests.bench.canned import FRESH
from tests.bench.figures import Findings, Spread, Target, ratio, spread, table
from tests.bench.setting import PLAIN, TLS, Server, Setting, child
from tests.support.aws import create_table
from tests.support.ministack import running_ministack

SIZES = (1, 10, 100, 1_000, 10_000)
MIDDLE = (10, 100, 1_000)
# A larger batch shows no more of one that does one record after the other.
MOST_FOR_PEER = 100

HEAD = ("records", "runs", "records/s", "CPU/record", "event", "peak memory", "peak/event")


class Case(NamedTuple):
    """How DynamoDB is reached and how late it answers, and what the ratio of speeds should be.

    A small write takes DynamoDB itself a few ms, seen from a function.
    """

    scheme: str
    delay_ms: int
    sizes: Sequence[int]
    at_least: float


CASES = (
    Case(PLAIN, 0, SIZES, 1.0),
    Case(TLS, 0, MIDDLE, 1.0),
    Case(PLAIN, 1, MIDDLE, 3.0),
    Case(TLS, 1, MIDDLE, 3.0),
    Case(PLAIN, 5, MIDDLE, 3.0),
)

Runs = Sequence[Mapping[str, float]]


class Compared(NamedTuple):
    """One size: what ours and theirs gave, for how many records, and our requests per record."""

    size: int
    ours: Runs
    their_size: int
    theirs: Runs
    requests: float

    def rates(self) -> tuple[list[float], list[float]]:
        """Records per second of each run."""
        return _rates(self.size, self.ours), _rates(self.their_size, self.theirs)

    def ratio(self) -> Spread:
        return ratio(*self.rates())


def measure(setting: Setting) -> Findings:
    figures: dict[str, Any] = {}
    targets = []
    for case in CASES:
        with setting.canned(case.delay_ms) as server:
            if (variables := server.schemes().get(case.scheme)) is None:
                continue
            found = [_compared(server, variables, size) for size in case.sizes]
        how = f"{case.delay_ms} ms later" if case.delay_ms else "at once"
        name = f"{case.scheme}, answered {how}"
        table(
            f"Batches of SQS records, each claimed and completed, over {name}",
            (*HEAD, "requests/record", "Powertools records/s", "ratio"),
            [_row(each) for each in found],
        )
        figures[name] = {str(each.size): _json(each) for each in found}
        worst = min(each.ratio().median for each in found)
        targets.append(Target(f"batches, speed, {name}", worst, case.at_least, least=True))
    figures["ministack"] = _with_ministack(setting)
    return Findings(figures, targets)


def _with_ministack(setting: Setting) -> dict[str, Any]:
    with running_ministack() as server:
        create_table(server.endpoint, FRESH)
        variables = {"AWS_ENDPOINT_URL_DYNAMODB": server.endpoint}
        found = {size: _ours(variables, setting.runs, size) for size in MIDDLE}
    rows = [_figures(size, runs) for size, runs in found.items()]
    table("The same; DynamoDB is ministack, which is the slower part", HEAD, rows)
    return {str(size): {"layer": _json_of(size, runs)} for size, runs in found.items()}


def _ours(variables: Mapping[str, str], runs: int, size: int) -> Runs:
    return [
        child(variables, "batches", "layer", FRESH, str(size)) for _ in range(_runs_of(runs, size))
    ]


def _runs_of(runs: int, size: int) -> int:
    """One long run says as much as several short ones."""
    return max(1, min(runs, 2_000 // size))


def _compared(server: Server, variables: Mapping[str, str], size: int) -> Compared:
    """The layer and Powertools, which does one record after the other, in turns."""
    their_size = min(size, MOST_FOR_PEER)
    ours: list[Mapping[str, float]] = []
    theirs: list[Mapping[str, float]] = []
    requests = 0
    for _ in range(_runs_of(server.setting.runs, size)):
        server.canned.requests()
        ours += _ours(variables, 1, size)
        requests += sum(server.canned.requests().values()) - 2 * WARM_UP
        theirs.append(child(variables, "batches", "powertools", FRESH, str(their_size)))
    return Compared(size, ours, their_size, theirs, requests / len(ours) / size)


def _row(found: Compared) -> list[str]:
    _, theirs = found.rates()
    return [
        *_figures(found.size, found.ours),
        f"{found.requests:.2f}",
        f"{median(theirs):,.0f}",
        f"{found.ratio().median:.2f}",
    ]


def _figures(size: int, runs: Runs) -> list[str]:
    event_mb = median(each["event_mb"] for each in runs)
    peak_mb = max(0.0, median(each["peak_mb"] for each in runs))
    return [
        f"{size:,}",
        str(len(runs)),
        f"{median(_rates(size, runs)):,.0f}",
        f"{median(_cpu_ms(size, runs)):.2f} ms",
        f"{event_mb:.1f} MB",
        f"{peak_mb:.1f} MB",
        # A small event's memory is lost in that of the threads and connections.
        f"{peak_mb / event_mb:.1f}" if size >= 1_000 else "",
    ]


def _rates(size: int, runs: Runs) -> list[float]:
    return [size / each["seconds"] for each in runs]


def _cpu_ms(size: int, runs: Runs) -> list[float]:
    """CPU time per record."""
    return [each["cpu_seconds"] / size * 1000 for each in runs]


def _json(found: Compared) -> dict[str, Any]:
    return {
        "layer": _json_of(found.size, found.ours),
        "powertools": {**_json_of(found.their_size, found.theirs), "records": found.their_size},
        "requests per record": round(found.requests, 3),
        "ratio of records per second": found.ratio().json(),
    }


def _json_of(size: int, runs: Runs) -> dict[str, Any]:
    return {
        "records per second": spread(_rates(size, runs)).json(),
        "CPU ms per record": spread(_cpu_ms(size, runs)).json(),
        "event MB": round(median(each["event_mb"] for each in runs), 3),
        "peak MB": spread([each["peak_mb"] for each in runs]).json(),
    }
