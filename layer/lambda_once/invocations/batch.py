"""A batch: each of its records is a unit of its own.

The units are claimed side by side, those that are done are dropped, the handler gets the rest in
order, each unit is settled by itself, and the answer is built in the shape that the source expects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from ..claims.claimer import Claimer
from ..claims.services import Services, Target
from ..claims.times import RESERVE_MS
from ..errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyStoreError,
)
from ..events.base import LIST, BatchSource, counts_as_failure
from ..keys.expressions import ExpressionError
from ..results.stored import UnstorableResponseError, to_stored
from .answer import NULL, Ended, ReportedFailureError
from .plan import DONE, READY, WAITING, HeldBackError, Plan, Unit
from .side_by_side import side_by_side


class ReleasedResponseError(Exception):
    """What the handler returned counts as a failure, or the runtime cannot send it."""

    def __init__(self) -> None:
        super().__init__("the handler's response counts as a failure")


class Batch:
    """The invocation of a handler with a batch event."""

    def __init__(
        self,
        services: Services,
        source: BatchSource,
        event: Any,
        targets: Sequence[Target | IdempotencyKeyMissingError | None],
        deadline_ms: int,
    ) -> None:
        """``targets``, one a record: a target, a fault, or None to run it without protection."""
        # A batch's records are dropped when they are done; only list answers have results to omit.
        self._services = services._replace(config=services.config._replace(omit_result=False))
        self._source = source
        self._event = event
        self._deadline_ms = deadline_ms
        self._each = services.config.batch == "each"
        # Taken before user code can change the records.
        records = source.records(event)
        self._identifiers = [source.identifier(each) for each in records]
        self._plan = Plan(self._split(records, targets))
        self._handed: list[Unit] = []
        self._responses: list[object] = []
        self._reported_by_handler = False
        self._passed_through = False
        self._unjudged = ""
        self._user_fault: BaseException | None = None
        self._calls = 0
        self._call_started_ms = 0
        self._longest_call_ms = 0
        self._claim(self._plan.in_state(WAITING), wait=False)

    # ---- the calls to make

    def next_call(self) -> tuple[object] | None:
        """See engine.Invocation."""
        while not self._passed_through:
            runnable = self._plan.next_one() if self._each else self._plan.next_all()
            if runnable:
                if self._each and not self._time_for_another():
                    break
                return (self._hand_over(runnable),)
            if not self._wait_for_others():
                break
        self._finish()
        return None

    def succeeded(self, response: object) -> None:
        """See engine.Invocation."""
        self._responses.append(response)
        handed, self._handed = self._handed, []
        failed, why = self._failed_in(response, handed)
        self._release(failed, str(why), why)
        self._share_out(response, handed)
        side_by_side(self._complete, [unit for unit in handed if unit.state is READY])
        self._note_duration()

    def failed(self, fault: BaseException) -> bool:
        """See engine.Invocation. In mode ``each`` a failure costs its own record alone."""
        handed, self._handed = self._handed, []
        self._release(handed, f"the handler raised {type(fault).__name__}", fault)
        self._note_duration()
        if self._each and isinstance(fault, Exception):
            self._user_fault = self._user_fault or fault
            return True
        self._finish()
        return False

    # ---- the answer

    def fault(self) -> BaseException | None:
        """See engine.Invocation."""
        return None if self._passed_through else self._ended().fault()

    def answer(self) -> object:
        """See engine.Invocation."""
        if self._passed_through:
            return self._responses[-1]
        return self._ended().answer(self._services.marshal)

    def _ended(self) -> Ended:
        return Ended(
            self._source,
            self._services.config.partial_batch,
            self._identifiers,
            self._plan.units,
            self._responses,
            self._reported_by_handler,
            self._user_fault,
        )

    # ---- splitting

    def _split(
        self,
        records: Sequence[Any],
        targets: Sequence[Target | IdempotencyKeyMissingError | None],
    ) -> list[Unit]:
        units: list[Unit] = []
        by_id: dict[str, Unit] = {}
        for position, (each, target) in enumerate(zip(records, targets, strict=True)):
            claimer = Claimer(self._services, target) if isinstance(target, Target) else None
            first = by_id.get(target.record_id) if isinstance(target, Target) else None
            if first is not None and self._same_payload(first, target):
                first.repeats.append(position)
                continue
            unit = Unit(position, self._identifiers[position], self._group(each), claimer)
            if isinstance(target, IdempotencyKeyMissingError):
                unit.fail(target)
            if isinstance(target, Target):
                by_id.setdefault(target.record_id, unit)
            units.append(unit)
        return units

    @staticmethod
    def _same_payload(first: Unit, target: Target | IdempotencyKeyMissingError | None) -> bool:
        """Another payload under one key is a unit of its own: its claim will meet the first's."""
        ours = first.claimer.target.fingerprint if first.claimer else None
        return isinstance(target, Target) and ours == target.fingerprint

    def _group(self, each: Any) -> str | None:
        group = self._source.group(each)
        return "" if group is None and self._source.ordered else group

    # ---- claiming

    def _claim(self, units: Sequence[Unit], *, wait: bool) -> None:
        """Claim side by side. Half of the time left is for claiming, half for the handler."""
        now_ms = self._services.now_ms()
        until_ms = now_ms + (self._deadline_ms - now_ms) // 2

        def claim(unit: Unit) -> None:
            if not wait and self._services.now_ms() >= until_ms:
                self._leave(unit)
            else:
                self._claim_one(unit, wait)

        side_by_side(claim, units)

    def _claim_one(self, unit: Unit, wait: bool) -> None:
        try:
            stored = unit.claimed.open(wait=wait)
        except IdempotencyInProgressError as fault:
            unit.fault = fault
            if wait or not self._services.config.wait_in_progress:
                self._rejected(unit, fault)
        except IdempotencyError as fault:
            self._rejected(unit, fault)
        else:
            unit.result = stored
            unit.state = READY if stored is None else DONE

    def _rejected(self, unit: Unit, fault: IdempotencyError) -> None:
        if unit.claimed.reject(fault):
            unit.claimer = None
            unit.state = READY
        else:
            unit.fail(fault)

    def _leave(self, unit: Unit) -> None:
        """No time is left to claim it: it is left for the redelivery."""
        table = self._services.config.table
        fault = IdempotencyStoreError("PutItem", table, "DeadlineExceeded", "no time left to claim")
        unit.claimed.leave(fault)
        unit.fail(fault)

    def _wait_for_others(self) -> bool:
        """Wait for units in progress elsewhere; whether that may have made some runnable."""
        waiting = self._plan.in_state(WAITING)
        if waiting:
            self._claim(waiting, wait=True)
            self._plan.walk_again()
        return bool(waiting)

    # ---- handing over

    def _hand_over(self, units: Sequence[Unit]) -> object:
        self._handed = list(units)
        self._calls += 1
        self._call_started_ms = self._services.now_ms()
        positions = [unit.position for unit in units]
        if len(positions) == len(self._identifiers):
            return self._event  # nothing was dropped: the very event, as without us
        return self._source.subset(self._event, positions)

    def _note_duration(self) -> None:
        took_ms = self._services.now_ms() - self._call_started_ms
        self._longest_call_ms = max(self._longest_call_ms, took_ms)

    def _time_for_another(self) -> bool:
        """Whether a call as long as the longest so far, and its settling, fits before the end."""
        left_ms = self._deadline_ms - self._services.now_ms()
        return not self._calls or left_ms > self._longest_call_ms + 2 * RESERVE_MS

    # ---- settling

    def _failed_in(self, response: object, handed: list[Unit]) -> tuple[list[Unit], Exception]:
        """Which of the units handed over failed, and why."""
        try:
            to_stored(response, self._services.marshal)
        except UnstorableResponseError:
            self._passed_through = True
            return handed, ReleasedResponseError()
        if self._is_failure(response):
            return handed, ReleasedResponseError()
        if not (self._source.reports_failures and _has_failures(response)):
            return [], ReportedFailureError()
        self._reported_by_handler = True
        reported = self._reported(response, handed)
        if reported is None:
            # Lambda fails the whole batch for an unknown identifier, if it reads the answer at all.
            self._passed_through = self._services.config.partial_batch != "raise"
            return handed, ReportedFailureError()
        return self._with_followers(reported, handed), ReportedFailureError()

    def _is_failure(self, response: object) -> bool:
        try:
            return counts_as_failure(self._source, response, self._services.config.release)
        except ExpressionError as fault:
            # For the runtime the call succeeded: running it again would be the greater harm.
            self._unjudged = str(fault)
            return False

    def _reported(self, response: Any, handed: list[Unit]) -> list[Unit] | None:
        """The units whose identifiers the handler returned; None if one is not of this batch."""
        by_identifier = {_plain(unit.identifier): unit for unit in handed}
        entries = response["batchItemFailures"] or []
        if not isinstance(entries, list):
            return None
        found = [by_identifier.get(_plain(_identifier_in(entry))) for entry in entries]
        known = [unit for unit in found if unit is not None]
        return known if len(known) == len(found) else None

    def _with_followers(self, failed: list[Unit], handed: list[Unit]) -> list[Unit]:
        """For streams the lowest failure is the checkpoint: all from there on comes again."""
        if not self._source.ordered:
            return failed
        lowest: dict[str | None, int] = {}
        for unit in failed:
            lowest[unit.group] = min(unit.position, lowest.get(unit.group, unit.position))
        return [u for u in handed if u.group in lowest and u.position >= lowest[u.group]]

    def _share_out(self, response: object, handed: list[Unit]) -> None:
        """Give each unit its own part of the answer, where the source's answer has such parts."""
        has_parts = isinstance(response, list) and len(response) == len(handed)
        for index, unit in enumerate(handed):
            if has_parts and self._source.answers == LIST:
                part = cast("list[object]", response)[index]
                unit.result = to_stored(part, self._services.marshal)
            else:
                unit.result = NULL

    def _complete(self, unit: Unit) -> None:
        if unit.claimer is not None:
            unit.claimer.complete(unit.result or NULL, self._unjudged)
        unit.state = DONE

    def _release(self, units: Sequence[Unit], reason: str, fault: BaseException) -> None:
        def release(unit: Unit) -> None:
            if unit.claimer is not None:
                unit.claimer.release(reason)
            unit.fail(fault)

        side_by_side(release, units)

    def _finish(self) -> None:
        """Give back what is claimed and was not handed over: the redelivery must find it free."""
        held = HeldBackError()
        self._release(self._plan.in_state(READY), str(held), held)
        for unit in self._plan.in_state(WAITING):
            fault = unit.fault or held
            unit.fail(fault)
            if isinstance(fault, IdempotencyError):
                unit.claimed.reject(fault)


def _has_failures(response: object) -> bool:
    return isinstance(response, dict) and "batchItemFailures" in response


def _identifier_in(entry: object) -> object:
    return entry.get("itemIdentifier") if isinstance(entry, dict) else None


def _plain(identifier: object) -> str:
    """A form that can be a dictionary's key: Kafka's identifiers are objects."""
    return json.dumps(identifier, sort_keys=True, default=str)
