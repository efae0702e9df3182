"""A limit on the CPU of one process, by a control group: what a small function has after its init.

    with limited_group(find_cpu_group(), 0.07) as folder:
        ...  # start a process
        move(pid, folder)

Works with version 1 and version 2 of control groups, where this process may make one.
Source: the kernel's documents admin-guide/cgroup-v1 and cgroup-v2, and scheduler/sched-bwc.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import wait_until

SYSTEM = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
PERIOD_US = 20_000
# Lambda gives 1,769 MB one core, so 128 MB 7 % of one. Source: Lambda developer guide, memory.
SHARE_OF_128_MB = 0.07

_numbers = itertools.count(1)


class NoQuotaError(Exception):
    """No control group with a CPU limit can be made here; the message says why."""


class CpuGroup(NamedTuple):
    """A control group in which groups with a CPU limit can be made, and its version: 1 or 2."""

    folder: Path
    version: int


def find_cpu_group(system: Path = SYSTEM, own: Path = OWN) -> CpuGroup:
    """The nearest one from our own upwards. NoQuotaError if there is none to be written to."""
    paths = _own_paths(own)
    if "cpu" in paths and (system / "cpu").is_dir():
        candidates = [CpuGroup(folder, 1) for folder in _upwards(system / "cpu", paths["cpu"])]
    else:
        candidates = [CpuGroup(folder, 2) for folder in _upwards(system, paths.get("", "/"))]
    for group in candidates:
        if _has_cpu(group) and os.access(group.folder, os.W_OK):
            return group
    raise NoQuotaError(f"no control group under {system} has a CPU controller we may write to")


def _own_paths(own: Path) -> dict[str, str]:
    """Our group by controller; that of version 2 has no name. A line is ``1:cpu,cpuacct:/path``."""
    found: dict[str, str] = {}
    for line in own.read_text().splitlines() if own.exists() else ():
        _, names, path = line.split(":", 2)
        found.update(dict.fromkeys(names.split(","), path))
    return found


def _upwards(root: Path, path: str) -> list[Path]:
    folder = root / path.lstrip("/")
    # In a container the path can be one that only the host sees.
    return [each for each in (folder, *folder.parents) if each.is_relative_to(root)]


def _has_cpu(group: CpuGroup) -> bool:
    """Whether a group made inside can limit the CPU."""
    if group.version == 1:
        return (group.folder / "cpu.cfs_quota_us").exists()
    control = group.folder / "cgroup.subtree_control"
    return control.exists() and "cpu" in control.read_text().split()


@contextmanager
def limited_group(parent: CpuGroup, share: float) -> Iterator[Path]:
    """A new group whose processes together have this share of one core; for ``move``.

    They must have ended when it is left. NoQuotaError if the kernel refuses.
    """
    folder = parent.folder / f"lambda-once-bench-{os.getpid()}-{next(_numbers)}"
    try:
        folder.mkdir()
    except OSError as fault:
        raise NoQuotaError(f"{folder} could not be made: {fault}") from fault
    try:
        set_limit(CpuGroup(folder, parent.version), share)
        yield folder
    finally:
        wait_until(lambda: _removed(folder), 5, f"{folder} to be empty")


def set_limit(group: CpuGroup, share: float) -> None:
    """Give the group this share of one core. NoQuotaError if the kernel refuses."""
    quota_us = round(PERIOD_US * share)
    try:
        if group.version == 1:
            (group.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group.folder / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group.folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    except OSError as fault:
        raise NoQuotaError(f"the limit could not be set: {fault}") from fault


def move(pid: int, folder: Path) -> None:
    """Put a process with all its threads into a group. NoQuotaError if the kernel refuses."""
    try:
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError as fault:
        raise NoQuotaError(f"process {pid} could not be moved to {folder}: {fault}") from fault


def _removed(folder: Path) -> bool:
    """Whether it could be removed; it cannot as long as a process is in it."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
