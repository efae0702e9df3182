"""Show the layer at work.

    python -m demo [--json]

An order handler that knows nothing of the layer runs in two execution environments (the real
Runtime Interface Emulator, twice) over one DynamoDB table (ministack). Everything is on loopback,
and gone at the end. The exit status is 0 only if every case showed what it should.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from demo.cases import run_cases
from demo.shop import open_shop
from demo.show import Show, as_json_lines, as_table

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_signals(action: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    """What to do when asked to end."""
    for number in SIGNALS:
        signal.signal(number, action)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind as if by an exception, so that everything that was started is stopped."""
    on_signals(signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run all cases; the exit status."""
    parser = argparse.ArgumentParser(prog="./build.sh demo", description="Show the layer at work.")
    parser.add_argument("--json", action="store_true", help="print one JSON line for each case")
    show: Show = as_json_lines() if parser.parse_args(arguments).json else as_table()
    on_signals(leave)
    show.begin()
    with open_shop() as shop:
        cases = [show.case(case) for case in run_cases(shop)]
        log = shop.log()
        on_signals(signal.SIG_IGN)  # nothing may keep what was started from being stopped
    faults = [f"{case.name}: {fault}" for case in cases for fault in case.faults]
    show.end(faults)
    if faults:
        print(*faults, f"What the functions wrote:\n{log}", sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
