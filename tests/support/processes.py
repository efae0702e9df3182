"""Start a program, wait until it is ready, read what it prints, and leave nothing of it behind.

Each program gets a session of its own. Process groups would not do: the emulator puts the function
into another group than its own, and the function survives when the emulator is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

POLL_S = 0.01
GRACE_S = 3.0

PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessInfo:
    """A living process: its id, its parent's, and the id of its session."""

    pid: int
    parent: int
    session: int


def read_process(folder: Path) -> ProcessInfo | None:
    """Read one folder of /proc; None if the process is gone, or dead but not yet waited for."""
    try:
        text = (folder / "stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may hold spaces; after it: state, parent, group, session.
    state, parent, _group, session = text.rpartition(")")[2].split()[:4]
    if state in "ZX":
        return None
    return ProcessInfo(int(folder.name), int(parent), int(session))


def living_processes() -> Iterator[ProcessInfo]:
    """Every living process of the machine."""
    for folder in PROC.iterdir():
        if folder.name.isdigit() and (info := read_process(folder)):
            yield info


def session_members(session: int) -> list[ProcessInfo]:
    """The living processes of a session, whoever adopted them."""
    return [info for info in living_processes() if info.session == session]


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Poll until the condition holds; TimeoutError naming `what` if it never does."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(POLL_S)


def signal_quietly(pid: int, number: int) -> None:
    """Send a signal; a process that is already gone is as good as signalled."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


class Process:
    """A running program with a session of its own. A context manager: leaving it ends the program.

    `environment` is all that the program sees: nothing is inherited.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> None:
        self.command = list(command)
        self._environment = dict(environment)
        self._folder = folder

    def __enter__(self) -> Process:
        self._output = tempfile.NamedTemporaryFile(prefix="output-", suffix=".log")
        try:
            self._child = subprocess.Popen(
                self.command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            self._output.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._output.close()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def output(self) -> str:
        """Everything the program and its children have printed so far."""
        return Path(self._output.name).read_text(errors="replace")

    def descendants(self) -> list[ProcessInfo]:
        """The living processes that the program started, directly or not."""
        return [info for info in session_members(self.pid) if info.pid != self.pid]

    def wait_until_ready(self, ready: Callable[[], bool], timeout_s: float = 20) -> None:
        """Wait until `ready()` holds; an error with the output if the program ends before that."""

        def ready_or_dead() -> bool:
            return not self.is_running or ready()

        wait_until(ready_or_dead, timeout_s, f"{self.command[0]} to be ready")
        if not self.is_running:
            raise RuntimeError(f"{self.command} ended early:\n{self.output()}")

    def stop(self) -> None:
        """Ask the program to end, then kill whatever is left of its session."""
        if self.is_running:
            self._child.terminate()
        try:
            self._child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._kill_session()

    def kill(self) -> None:
        """Kill the program and all it started, at once: a machine that loses power."""
        self._child.kill()
        self._child.wait()
        self._kill_session()

    def _kill_session(self) -> None:
        # Repeated, as a process can start another between being listed and being killed.
        def is_empty() -> bool:
            for info in session_members(self.pid):
                signal_quietly(info.pid, signal.SIGKILL)
            return not session_members(self.pid)

        wait_until(is_empty, GRACE_S, f"the session of {self.command[0]} to end")


@dataclass(frozen=True)
class LocalServer:
    """A running server on loopback: its URL without a path, and its process."""

    endpoint: str
    process: Process
