"""The units of a batch, and which of them may be handed over next. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence

from ..claims.claimer import Claimer
from ..record import StoredResult

# States of a unit. Every unit ends as DONE or FAILED.
WAITING = "waiting"  # not claimed yet, or in progress elsewhere
READY = "ready"  # claimed, or to run without protection; not handed over yet
DONE = "done"
FAILED = "failed"


class HeldBackError(Exception):
    """A record was not handed to the handler: no time was left, or its order forbade it."""

    def __init__(self) -> None:
        super().__init__("no time was left, or a record that must come before it is not done")


class Unit:
    """One key of the batch: its position, and those of the same key's further occurrences.

    ``claimer`` is None where the unit runs without protection. ``group``: units of one group are
    done in their order; None where no order is promised.
    """

    __slots__ = (
        "claimer",
        "fault",
        "group",
        "identifier",
        "position",
        "repeats",
        "result",
        "state",
    )

    def __init__(
        self, position: int, identifier: object, group: str | None, claimer: Claimer | None
    ) -> None:
        self.position = position
        self.repeats: list[int] = []
        self.identifier = identifier
        self.group = group
        self.claimer = claimer
        self.state = WAITING if claimer else READY
        self.fault: BaseException | None = None
        self.result: StoredResult | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """Where the unit's key stands in the batch."""
        return (self.position, *self.repeats)

    @property
    def claimed(self) -> Claimer:
        """The claimer of a unit that has one."""
        if self.claimer is None:
            raise RuntimeError("a unit without protection is never claimed")
        return self.claimer

    def fail(self, fault: BaseException) -> None:
        """Not done in this invocation, because of ``fault``."""
        self.state = FAILED
        self.fault = fault


class Plan:
    """The units in their order, walked once: a unit that was passed is not looked at again."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self._at = 0
        self._stopped: set[str] = set()

    def in_state(self, state: str) -> list[Unit]:
        """All units in this state."""
        return [unit for unit in self.units if unit.state is state]

    def next_one(self) -> list[Unit]:
        """The next unit that is ready and has nothing of its group before it that is not done.

        In a list of one; empty if there is none. The unit must be done or failed at the next call.
        """
        while self._at < len(self.units):
            unit = self.units[self._at]
            if unit.state is READY and unit.group not in self._stopped:
                return [unit]
            if unit.state is not DONE and unit.group is not None:
                self._stopped.add(unit.group)
            self._at += 1
        return []

    def next_all(self) -> list[Unit]:
        """All such units at once."""
        found = []
        while (one := self.next_one()) != []:
            found += one
            self._at += 1
        return found

    def walk_again(self) -> None:
        """Units that were waiting may be ready now."""
        self._at = 0
        self._stopped.clear()
