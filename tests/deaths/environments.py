"""Execution environments that can be killed: forked processes, and the real emulator."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.support.emulator import Emulator, Reply
from tests.support.paths import REPOSITORY
from tests.support.processes import Process, signal_quietly

# For a forked process to say that it is there.
START_S = 20.0


class Delivery(NamedTuple):
    """One invocation to make, and when it is to be killed from outside, if it is."""

    event: dict[str, Any]
    kill_after_s: float | None


class Ending(NamedTuple):
    """What became of a delivery.

    ``kind`` is "result", "refused" (by us), "declined" (by the function) or "died"; ``how`` says in
    which way it died; ``killed_ns`` is the moment just before the signal, 0 where there was none.
    """

    kind: str
    result: Any = None
    how: str = ""
    killed_ns: int = 0


class Environment(Protocol):
    """A running environment."""

    def deliver(self, delivery: Delivery) -> Ending:
        """Invoke the function. After "died" the environment is not used again."""

    def close(self) -> None:
        """End it."""


class Forked:
    """A process forked by the zygote; this side plays the platform and ends it at the deadline."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(START_S)
        self._connection.connect(address)
        self._lines = self._connection.makefile("rw")
        self._pid = int(self._lines.readline())

    def deliver(self, delivery: Delivery) -> Ending:
        """See Environment."""
        deadline_s = time.monotonic() + self._timeout_s
        event = {**delivery.event, "deadline_ns": time.time_ns() + int(self._timeout_s * 1e9)}
        self._lines.write(f"{json.dumps(event)}\n")
        self._lines.flush()
        if delivery.kill_after_s is not None and not self._is_answered(delivery.kill_after_s):
            return self._killed("SIGKILL")
        if not self._is_answered(deadline_s - time.monotonic()):
            return self._killed("timeout")
        try:
            line = self._lines.readline()
        except OSError:
            line = ""
        return _ending_of(json.loads(line)) if line else Ending("died", how=event["how"])

    def close(self) -> None:
        """See Environment."""
        with contextlib.suppress(OSError):  # it may be dead
            self._lines.close()
        self._connection.close()

    def _is_answered(self, wait_s: float) -> bool:
        return bool(select.select([self._connection], [], [], max(0.0, wait_s))[0])

    def _killed(self, how: str) -> Ending:
        killed_ns = time.time_ns()
        signal_quietly(self._pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._lines.readline()  # returns when the process is gone
        return Ending("died", how=how, killed_ns=killed_ns)


@contextmanager
def running_zygote(folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, Process]]:
    """The zygote's address, and its process: what it prints is the log of all environments."""
    address = str(folder / "zygote.sock")
    variables = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(str(REPOSITORY / each) for each in ("layer", "wrapper", ".")),
        "LAMBDA_ONCE_HANDLER": "tests.deaths.app.handler",
        **environment,
    }
    command = [sys.executable, "-m", "tests.deaths.zygote", address]
    with Process(command, variables, folder=REPOSITORY) as process:
        process.wait_until_ready(lambda: _accepts(address), timeout_s=60)
        yield address, process


def _accepts(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(address) == 0


class Emulated:
    """A function in the real emulator, which ends it at its timeout."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._emulator.__enter__()

    def deliver(self, delivery: Delivery) -> Ending:
        """See Environment."""
        killed: list[int] = []

        def kill() -> None:
            # The function starts at the first invocation and may not be there yet, or not any more.
            with contextlib.suppress(OSError, TimeoutError, IndexError):
                pid = self._emulator.pid_of_function(timeout_s=1)
                killed.append(time.time_ns())
                os.kill(pid, signal.SIGKILL)

        killer = threading.Timer(delivery.kill_after_s or 0, kill)
        if delivery.kill_after_s is not None:
            killer.start()
        try:
            reply = self._emulator.invoke(delivery.event)
        except (OSError, http.client.HTTPException):
            return Ending("died", how="emulator", killed_ns=killed[0] if killed else 0)
        finally:
            killer.cancel()
            if killer.ident is not None:
                killer.join()
        if _has_died(reply):
            if killed:
                return Ending("died", how="SIGKILL", killed_ns=killed[0])
            return Ending("died", how=delivery.event["how"] or "timeout")
        return _ending_of(_as_answer(reply))

    def output(self) -> str:
        return self._emulator.output()

    def close(self) -> None:
        """See Environment."""
        self._emulator.__exit__(None, None, None)


def _has_died(reply: Reply) -> bool:
    return (
        reply.status != 200
        or b"Task timed out" in reply.body
        or (reply.error_type or "").startswith("Runtime.")
    )


def _as_answer(reply: Reply) -> dict[str, Any]:
    return {"error": reply.error_type} if reply.error_type else {"result": reply.json()}


def _ending_of(answer: dict[str, Any]) -> Ending:
    if "result" in answer:
        return Ending("result", answer["result"])
    return Ending("declined" if answer["error"] == "DeclinedError" else "refused", answer["error"])
