"""Measures what the layer costs: ./build.sh bench [--runs N] [--only PART].

Each figure stands beside that of a peer measured in the same run, one after the other in turns, so
that the ratio holds on a slow or busy machine, where the times alone do not.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.bench.batches import WARM_UP
from tests.bench.canned import FRESH, LAYER_DONE, POWERTOOLS_DONE, running_canned
from tests.support.aws import CREDENTIALS, REGION, create_table
from tests.support.emulator import Emulator
from tests.support.layer import unpack_layer
from tests.support.ministack import running_ministack
from tests.support.paths import LAYER_ZIP, REPOSITORY, TOOLS

PYTHON = TOOLS / "bench" / "bin" / "python"
FUNCTIONS = Path(__file__).parent / "functions"
SIZES = (1, 10, 100, 1_000, 10_000)
# A larger batch shows no more of one that does one record after the other.
MOST_FOR_PEER = 100
# How long DynamoDB itself takes for a small write, seen from a function: a few ms.
DELAY_MS = 5
CALLS = 150


def environment(endpoint: str) -> dict[str, str]:
    """All that a measured process sees."""
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'layer'}:{REPOSITORY / 'wrapper'}",
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        **CREDENTIALS,
    }


def child(endpoint: str, module: str, *arguments: str) -> Any:
    """Run one of the measuring modules; what it printed."""
    done = subprocess.run(
        [str(PYTHON), "-m", f"tests.bench.{module}", *arguments],
        env=environment(endpoint),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def in_turns(runs: int, subjects: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Measure all subjects, one after the other, so many times."""
    found: dict[str, list[float]] = {name: [] for name in subjects}
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


# ---- cold start


class Start(NamedTuple):
    """A function to start: its module, and whether the layer is attached."""

    module: str
    layered: bool = False


STARTS = {
    "plain": Start("plain"),
    "plain, layer": Start("plain", layered=True),
    "plain, Powertools": Start("with_powertools"),
    "uses boto3": Start("with_boto3"),
    "uses boto3, layer": Start("with_boto3", layered=True),
}


def cold_start(runs: int) -> None:
    with running_canned() as endpoint, _unpacked() as layer:
        measures = {
            name: partial(_first_answer_ms, start, endpoint, layer)
            for name, start in STARTS.items()
        }
        found = in_turns(runs, measures)
    rows = []
    for name, times in found.items():
        peer = found["uses boto3" if name.startswith("uses") else "plain"]
        more = median(times) - median(peer)
        rows.append([name, f"{median(times):.0f} ms", f"{more:+.0f} ms", _ratio(times, peer)])
    table(
        f"Cold start: init and first invocation in the real emulator, median of {runs}",
        ("function", "time", "more", "ratio"),
        rows,
    )
    ours = median(found["plain, layer"]) - median(found["plain"])
    theirs = median(found["plain, Powertools"]) - median(found["plain"])
    print(f"\n  The layer adds {ours / theirs:.2f} of what Powertools adds to the plain function.")


@contextmanager
def _unpacked() -> Iterator[Path]:
    with TemporaryDirectory(prefix="layer-") as folder:
        yield unpack_layer(LAYER_ZIP, Path(folder))


def _first_answer_ms(start: Start, endpoint: str, layer: Path) -> float:
    variables = {
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "IDEMPOTENCY_TABLE": FRESH,
        # Neither /opt nor /var/task can be written to on Lambda.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    used = layer if start.layered else None
    with Emulator(
        PYTHON,
        FUNCTIONS,
        f"{start.module}.handler",
        environment=variables,
        layer=used,
        timeout_s=60,
    ) as function:
        started = time.perf_counter()
        reply = function.invoke({"orderId": "1"})
        took = time.perf_counter() - started
    if reply.json() != {"status": "booked"}:
        raise RuntimeError(f"{start} answered {reply.body!r}:\n{function.output()}")
    return took * 1000


# ---- CPU per call


def cpu(runs: int) -> None:
    with running_canned() as endpoint:

        def measured(subject: str, name: str) -> Callable[[], float]:
            return lambda: float(child(endpoint, "calls", subject, name, str(CALLS)))

        found = in_turns(
            runs,
            {
                "layer, first execution": measured("layer", FRESH),
                "Powertools, first execution": measured("powertools", FRESH),
                "layer, replay": measured("layer", LAYER_DONE),
                "Powertools, replay": measured("powertools", POWERTOOLS_DONE),
            },
        )
    rows = []
    for name, times in found.items():
        peer = found[name.replace("layer", "Powertools")]
        rows.append([name, f"{median(times):.2f} ms", f"{min(times):.2f} ms", _ratio(times, peer)])
    table(
        f"CPU time of an invocation, {runs} runs of {CALLS} calls; DynamoDB answers at once",
        ("", "median", "least", "ratio"),
        rows,
    )


# ---- batches


def batches(runs: int) -> None:
    for delay_ms, sizes in ((0, SIZES), (DELAY_MS, SIZES[1:4])):
        how = f"{delay_ms} ms later" if delay_ms else "at once"
        with running_canned(delay_ms) as endpoint:
            rows = [_compared(endpoint, runs, size) for size in sizes]
        table(
            f"Batches of SQS records, each claimed and completed; DynamoDB answers {how}",
            (*HEAD, "requests/record", "Powertools records/s", "ratio"),
            rows,
        )
    with running_ministack() as server:
        create_table(server.endpoint, FRESH)
        rows = [_figures(size, _ours(server.endpoint, FRESH, runs, size)) for size in SIZES[1:4]]
    table("The same; DynamoDB is ministack, which is the slower part", HEAD, rows)


HEAD = ("records", "runs", "records/s", "CPU/record", "event", "peak memory", "peak/event")


def _ours(endpoint: str, name: str, runs: int, size: int) -> list[dict[str, float]]:
    return [
        child(endpoint, "batches", "layer batch", name, str(size))
        for _ in range(_runs_of(runs, size))
    ]


def _runs_of(runs: int, size: int) -> int:
    """One long run says as much as several short ones."""
    return max(1, min(runs, 2_000 // size))


def _figures(size: int, found: Sequence[Mapping[str, float]]) -> list[str]:
    cpu_ms = median(each["cpu_seconds"] for each in found) / size * 1000
    event_mb = median(each["event_mb"] for each in found)
    peak_mb = max(0.0, median(each["peak_mb"] for each in found))
    return [
        f"{size:,}",
        str(len(found)),
        f"{_rate(size, found):,.0f}",
        f"{cpu_ms:.2f} ms",
        f"{event_mb:.1f} MB",
        f"{peak_mb:.1f} MB",
        # A small event's memory is lost in that of the threads and connections.
        f"{peak_mb / event_mb:.1f}" if size >= 1_000 else "",
    ]


def _compared(endpoint: str, runs: int, size: int) -> list[str]:
    """The layer and Powertools, which does one record after the other, in turns."""
    theirs_size = min(size, MOST_FOR_PEER)
    ours, theirs, requests = [], [], 0
    for _ in range(_runs_of(runs, size)):
        _requests(endpoint)
        ours += _ours(endpoint, FRESH, 1, size)
        requests += _requests(endpoint) - 2 * WARM_UP
        theirs.append(child(endpoint, "batches", "powertools batch", FRESH, str(theirs_size)))
    peer = _rate(theirs_size, theirs)
    return [
        *_figures(size, ours),
        f"{requests / len(ours) / size:.2f}",
        f"{peer:,.0f}",
        f"{_rate(size, ours) / peer:.2f}",
    ]


def _rate(size: int, found: Sequence[Mapping[str, float]]) -> float:
    """Records per second."""
    return size / median(each["seconds"] for each in found)


def _requests(endpoint: str) -> int:
    """How many requests the canned server has had since it was last asked."""
    with urllib.request.urlopen(endpoint, timeout=10) as answer:
        return sum(json.load(answer).values())


def _ratio(times: Sequence[float], peer: Sequence[float]) -> str:
    return f"{median(times) / median(peer):.2f}"


def main() -> None:
    options = argparse.ArgumentParser(prog="./build.sh bench", description=__doc__)
    options.add_argument("--runs", type=int, default=5, help="of each measurement (default 5)")
    options.add_argument("--only", choices=("start", "cpu", "batches"), help="one part alone")
    chosen = options.parse_args()
    # Being ended must end the servers too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if chosen.only in (None, "start"):
        cold_start(chosen.runs)
    if chosen.only in (None, "cpu"):
        cpu(chosen.runs)
    if chosen.only in (None, "batches"):
        batches(chosen.runs)


if __name__ == "__main__":
    main()
