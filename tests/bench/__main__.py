"""Measures what the layer costs: ./build.sh bench [--runs N] [--only PART ...].

Each figure stands beside that of a peer measured in the same run, one after the other in turns, so
that the ratio holds on a slow or busy machine, where the times alone do not. What was measured goes
to dist/bench.json, with the spread of the runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import signal
import sys
from typing import Any

from tests.bench.figures import Target, targets_table
from tests.bench.parts import batches, calls, emulator, quota, start
from tests.bench.setting import PYTHON, Setting, new_setting
from tests.support.emulator import version_of
from tests.support.paths import LAYER_ZIP, REPOSITORY

RESULTS = REPOSITORY / "dist" / "bench.json"

PARTS = {
    "start": start.measure,
    "quota": quota.measure,
    "calls": calls.measure,
    "emulator": emulator.measure,
    "batches": batches.measure,
}


def main() -> None:
    options = argparse.ArgumentParser(prog="./build.sh bench", description=__doc__)
    options.add_argument("--runs", type=int, default=5, help="of each measurement (default 5)")
    options.add_argument("--only", choices=PARTS, nargs="+", help="these parts alone")
    chosen = options.parse_args()
    # Being ended must end the servers too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with new_setting(chosen.runs) as setting:
        if setting.certificates is None:
            print("Nothing is measured over TLS: the program openssl was not found.", flush=True)
        results, targets = _run(setting, chosen.only or list(PARTS))
    targets_table(targets)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\n  All of it, with the spread of the runs: {RESULTS.relative_to(REPOSITORY)}")


def _run(setting: Setting, names: list[str]) -> tuple[dict[str, Any], list[Target]]:
    results: dict[str, Any] = {"measured": _circumstances(setting)}
    targets: list[Target] = []
    for name in names:
        found = PARTS[name](setting)
        results[name] = found.figures
        targets += found.targets
    results["targets"] = [target.json() for target in targets]
    return results, targets


def _circumstances(setting: Setting) -> dict[str, Any]:
    """What one must know to compare the figures with others."""
    return {
        "runs": setting.runs,
        "zip bytes": LAYER_ZIP.stat().st_size,
        "zip SHA-256": hashlib.sha256(LAYER_ZIP.read_bytes()).hexdigest(),
        "Python": version_of(str(PYTHON)),
        "packages": _pins("python.txt") + _pins("bench.txt"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }


def _pins(name: str) -> list[str]:
    """The packages that were measured with, from a file of requirements."""
    lines = (REPOSITORY / "requirements" / name).read_text().splitlines()
    return [line for line in lines if "==" in line]


if __name__ == "__main__":
    main()
