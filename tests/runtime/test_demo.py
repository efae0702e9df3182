"""The demo shows its six cases, and leaves nothing behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.layer import build_layer
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

CASES = ["first run", "replay", "two at once", "raise", "retry", "record"]


WITHOUT_LAYER = """
import runpy
from demo import shop

emulator = shop.Emulator
shop.Emulator = lambda *places, **named: emulator(*places, **{**named, "layer": None})
runpy.run_module("demo", run_name="__main__")
"""


def start(
    tmp_path: Path, *arguments: str, program: tuple[str, ...] = ("-m", "demo")
) -> subprocess.Popen[str]:
    """The demo as a process whose temporary files, and those of all it starts, are in tmp_path."""
    build_layer()
    environment = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": str(REPOSITORY),
    }
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_behind(tmp_path: Path) -> list[str]:
    """Files in tmp_path, and processes that still have it in their environment."""
    return [path.name for path in tmp_path.iterdir()] + [
        str(pid) for pid in Path("/proc").iterdir() if pid.name.isdigit() and knows(pid, tmp_path)
    ]


def knows(process: Path, tmp_path: Path) -> bool:
    try:
        return str(tmp_path).encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_shows_six_cases_as_json_lines_and_nothing_else(tmp_path: Path) -> None:
    demo = start(tmp_path, "--json")
    output, errors = demo.communicate(timeout=120)
    assert demo.returncode == 0, errors
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["case"] for line in lines] == CASES
    assert all(set(line) == {"case", "status", "body", "handler_runs"} for line in lines)
    assert [line["handler_runs"] for line in lines] == [1, 1, 1, 1, 2, 1]
    assert [line["status"] for line in lines] == [
        "executed",
        "replayed",
        "IdempotencyInProgressError",
        "CardDeclinedError",
        "executed",
        "COMPLETED",
    ]
    assert lines[0]["body"] == lines[1]["body"]
    assert json.loads(lines[5]["body"])["result"] == lines[0]["body"]
    assert left_behind(tmp_path) == []


def test_shows_the_same_as_a_table(tmp_path: Path) -> None:
    demo = start(tmp_path)
    output, errors = demo.communicate(timeout=120)
    assert demo.returncode == 0, errors
    positions = [output.index(f"\n{case}  ") for case in CASES]
    assert positions == sorted(positions)
    assert output.endswith("Every case showed what it should.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_leaves_nothing_behind_when_it_is_interrupted(tmp_path: Path, number: int) -> None:
    demo = start(tmp_path, "--json")
    assert demo.stdout is not None
    demo.stdout.readline()
    demo.send_signal(number)
    demo.communicate(timeout=60)
    assert demo.returncode == 128 + number
    wait_until(lambda: left_behind(tmp_path) == [], 5, "everything to be gone")


def test_fails_and_says_why_where_the_layer_does_not_do_its_work(tmp_path: Path) -> None:
    demo = start(tmp_path, "--json", program=("-c", WITHOUT_LAYER))
    output, errors = demo.communicate(timeout=120)
    assert demo.returncode == 1
    assert [json.loads(line)["handler_runs"] for line in output.splitlines()] == [1, 2, 2, 1, 2, 2]
    assert "replay: the handler should not have run again: 2 runs" in errors
    assert "two at once: the second should be told that the first is at work" in errors
    assert left_behind(tmp_path) == []
