"""What the source of a batch is told in the end: an answer, or a fault to raise. Pure.

The layer cannot see whether the event source mapping reads ``batchItemFailures``. A mapping that
does not, takes any answer for success and deletes the batch; an invocation that raises is delivered
again in both settings, and costs nothing, since what is done is dropped then. So failures are
reported only if the handler itself reports some (``auto``) or it is configured (``report``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import IdempotencyBatchError, IdempotencyError
from ..events.base import LIST, BatchSource
from ..record import StoredResult
from ..results.stored import Marshal, from_stored
from .plan import FAILED, HeldBackError, Unit

# What a unit without a result of its own is completed with.
NULL = StoredResult("text", b"null")


class ReportedFailureError(Exception):
    """The handler returned the record among its ``batchItemFailures``, or one before it."""

    def __init__(self) -> None:
        super().__init__("the handler reported it as failed")


class Failure(NamedTuple):
    """A record that is not done: where it stands in the batch, and why."""

    position: int
    fault: BaseException


class Ended(NamedTuple):
    """A batch whose calls are made.

    ``setting`` is IDEMPOTENCY_PARTIAL_BATCH; ``identifiers`` has what ``batchItemFailures`` calls
    each record; ``responses`` what the handler returned, call by call; ``reported_by_handler``
    whether one of them reported failures; ``user_fault`` the handler's first failure.
    """

    source: BatchSource
    setting: str
    identifiers: Sequence[object]
    units: Sequence[Unit]
    responses: Sequence[object]
    reported_by_handler: bool
    user_fault: BaseException | None

    def fault(self) -> BaseException | None:
        """What to raise in place of an answer: the handler's own first failure, or ours."""
        failures = self._failures()
        if not failures or self._reports():
            return None
        if self.user_fault is not None:
            return self.user_fault
        first = failures[0].fault
        if len(self.identifiers) == 1 and isinstance(first, IdempotencyError):
            return first
        return IdempotencyBatchError(len(failures), len(self.identifiers), first)

    def answer(self, marshal: Marshal) -> object:
        """The answer in the shape that the source expects, with stored and new results."""
        answers = self.source.answers
        if self.source.reports_failures and (self._reports() or answers != LIST):
            return self._failures_answer()
        if answers == LIST:
            return self._list_answer(marshal)
        return self.responses[-1] if self.responses else None

    def _failures(self) -> list[Failure]:
        found = [
            Failure(position, unit.fault or HeldBackError())
            for unit in self.units
            if unit.state is FAILED
            for position in unit.positions
        ]
        return sorted(found, key=lambda failure: failure.position)

    def _reports(self) -> bool:
        if not self.source.reports_failures or self.setting == "raise":
            return False
        return self.setting == "report" or self.reported_by_handler

    def _failures_answer(self) -> object:
        failures = self._failures()
        first_of_group = [] if not self.source.ordered else list(self._lowest(failures))
        reported = first_of_group or failures
        ours = [f for f in failures if not isinstance(f.fault, ReportedFailureError)]
        if len(self.responses) == 1 and not ours:
            return self.responses[0]  # nothing to add: the handler's very answer
        entries = [{"itemIdentifier": self.identifiers[f.position]} for f in reported]
        last = self.responses[-1] if self.responses else None
        return {**(last if isinstance(last, dict) else {}), "batchItemFailures": entries}

    def _lowest(self, failures: Iterable[Failure]) -> Iterator[Failure]:
        groups = {p: u.group for u in self.units for p in u.positions}
        seen: set[str | None] = set()
        for failure in failures:
            if groups[failure.position] not in seen:
                seen.add(groups[failure.position])
                yield failure

    def _list_answer(self, marshal: Marshal) -> object:
        """The results of all records in their order, stored and new, if each has its own."""
        if len(self.responses) == 1 and all(unit.result is NULL for unit in self.units):
            return self.responses[0]
        by_position = {p: u.result for u in self.units for p in u.positions}
        return [
            from_stored(by_position[position] or NULL, marshal)
            for position in range(len(self.identifiers))
        ]
