"""The invariants I1 to I6 of ``protocol``, as checks of one step each.

I1  is checked when a handler starts, that is when ``next_call`` hands out the event: nobody who
    started before may still be protected. Protection lasts until the owner's own completion or
    release was applied, its lease less the margin has ended in true time, or its invocation's
    deadline has passed, and it lasts for a dead owner too. That is more than I1 asks for, and is
    what makes ``IDEMPOTENCY_LEASE`` at-most-once. A handler that is run without protection, as
    ``IDEMPOTENCY_STORE_FAILURE=run`` asks for, neither counts as a start nor is protected.
I2  is checked at each change of the record.
I3  is checked at each change, and at each outcome that is reported after a settling request.
I4  is checked at each completion that is applied.
I5  is checked for each record that is ever stored: a delivery after its lease is run, alone.
I6  is checked when a caller gets its answer, when a handler starts although a completed record
    stands, and for each completed record: a delivery before its expiry is run, alone.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from lambda_once import record as kinds
from lambda_once.record import COMPLETED, IN_PROGRESS, Record
from lambda_once.store.port import Refusal
from tests.protocol.model import (
    COMPLETE,
    RELEASE,
    START_MS,
    Contender,
    Finished,
    Request,
    Running,
    Scenario,
    Sleeping,
    World,
    apply,
    has_ended,
    last_ms,
)
from tests.protocol.replay import RAISED, RETURNED, Node, Replay, own_response

# Short of the first poll's pause, so that a waiting contender wakes after the lease.
BEFORE_THE_END_MS = 40


INVARIANTS = frozenset({"I1", "I2", "I3", "I4", "I5", "I6"})


class Breach(NamedTuple):
    """One broken invariant, and what was seen."""

    invariant: str
    seen: str


def check_change(
    scenario: Scenario, before: World, request: Request, after: Record | None
) -> list[Breach]:
    """I2, I3 and I4, when ``request`` was applied and left ``after``."""
    old = before.record
    if old == after or old is None:
        return _check_completion(scenario, before, request, after) if old != after else []
    latest_ms = before.now_ms + scenario.fastest_ms
    owner = request.claim.owner
    breaches = []
    if old.status == COMPLETED and not has_ended(old, latest_ms):
        breaches.append(Breach("I2", f"{owner}'s {request.operation} changed a completed record"))
    if request.operation in (COMPLETE, RELEASE) and old.owner != owner:
        breaches.append(Breach("I3", f"{owner}'s late {request.operation} changed a record"))
    return breaches + _check_completion(scenario, before, request, after)


def _check_completion(
    scenario: Scenario, before: World, request: Request, after: Record | None
) -> list[Breach]:
    if request.operation != COMPLETE or after is None:
        return []
    latest_ms = before.now_ms + scenario.fastest_ms
    return [
        Breach("I4", f"{request.claim.owner} completed what {done.owner} had completed")
        for done in before.completions
        if not has_ended(done, latest_ms)
    ]


def check_start(scenario: Scenario, world: World, node: Node) -> list[Breach]:
    """I1 and I6, when the handler is started under ``node.claim``."""
    assert node.claim is not None
    owner = node.claim.owner
    breaches = [
        Breach("I1", f"the handler starts as {owner} while {other.owner} is inside its lease")
        for other in world.protections
        if world.now_ms < other.until_ms and other.owner != owner
    ]
    record = world.record
    latest_ms = world.now_ms + scenario.fastest_ms
    if record and record.status == COMPLETED and not has_ended(record, latest_ms):
        breaches.append(Breach("I6", f"the handler starts as {owner} though a result is recorded"))
    return breaches


def check_reports(world: World, answer: object, node: Node, reported: int) -> list[Breach]:
    """I3, for the outcomes that the owner reported after ``answer``."""
    if node.claim is None:
        return []
    owner = node.claim.owner
    return [
        Breach("I3", f"{owner} reports {kind}, but {wrong}")
        for kind in node.reports[reported:]
        if (wrong := _what_is_wrong(world, answer, kind, owner))
    ]


def _what_is_wrong(world: World, answer: object, kind: str, owner: str) -> str:
    """Why an outcome is not what the answer said and the store holds; empty if it is."""
    found = answer.existing if isinstance(answer, Refusal) else answer
    met = found if isinstance(found, Record) else None
    if kind == kinds.EXECUTED and all(done.owner != owner for done in world.completions):
        return "its completion was never applied"
    if kind == kinds.RELEASED and met is not None:
        return f"{met.owner}'s record stood in its way"
    if kind == kinds.RELEASED and answer is not None and _stands(world.record, owner):
        return "its claim stands"
    if kind == kinds.LOST and met is not None and met.owner == owner and met.status == COMPLETED:
        return "its completion was recorded"
    return ""


def _stands(record: Record | None, owner: str) -> bool:
    return record is not None and record.owner == owner and record.status == IN_PROGRESS


def check_answer(
    scenario: Scenario, world: World, contender: Contender, finished: Finished
) -> list[Breach]:
    """I6, for what the caller got."""
    seen = f"{contender.name}'s caller gets {finished.fault or finished.response}"
    if finished.ran == RETURNED:
        own = not finished.fault and finished.response == own_response(contender)
        return [] if own else [Breach("I6", f"{seen}, not its handler's result")]
    if finished.ran == RAISED:
        own = finished.fault == "HandlerError"
        return [] if own else [Breach("I6", f"{seen}, not its handler's error")]
    if finished.fault == "IdempotencyPayloadMismatchError":
        alike = len({other.payload for other in scenario.contenders}) == 1
        return [Breach("I6", f"{seen}, but all payloads are alike")] if alike else []
    if finished.fault.startswith("Idempotency"):
        return []
    if not finished.fault and _is_recorded(scenario, world, contender, finished.response):
        return []
    return [Breach("I6", f"{seen}, which nobody recorded for its payload")]


def _is_recorded(scenario: Scenario, world: World, contender: Contender, response: object) -> bool:
    """Whether ``response`` was recorded, by a contender with the same payload if that counts."""
    payloads = {other.name: other.payload for other in scenario.contenders}
    return any(
        done.result is not None
        and json.loads(done.result.body) == response
        and (not scenario.compare_payload or payloads[done.owner[0]] == contender.payload)
        for done in world.completions
    )


class Prober:
    """Sends one more delivery after a record, alone and without faults, to see what it meets."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._known: dict[Record | None, list[Breach]] = {}
        self.runs = 0

    def check(self, record: Record | None) -> list[Breach]:
        """I5 and I6 for everything that can be stored."""
        if record not in self._known:
            self._known[record] = self._check(record)
        return self._known[record]

    def _check(self, record: Record | None) -> list[Breach]:
        if record is None:
            return self._must_start(None, START_MS)
        after = self._must_start(record, last_ms(record) + 1)
        if record.status == COMPLETED:
            return after + self._must_replay(record)
        if self._scenario.wait:
            return after + self._must_start(record, last_ms(record) - BEFORE_THE_END_MS)
        return after + self._must_not_start(record, last_ms(record))

    def _must_start(self, record: Record | None, at_ms: int) -> list[Breach]:
        started, _ = self._deliver(record, at_ms)
        return [] if started else [Breach("I5", f"a new delivery never runs after {record}")]

    def _must_not_start(self, record: Record, at_ms: int) -> list[Breach]:
        started, _ = self._deliver(record, at_ms)
        return [Breach("I1", f"a new delivery runs inside the lease of {record}")] * started

    def _must_replay(self, record: Record) -> list[Breach]:
        started, finished = self._deliver(record, last_ms(record))
        assert record.result is not None
        given = not started and finished.response == json.loads(record.result.body)
        seen = "runs" if started else f"gets {finished.fault or finished.response}"
        return [] if given else [Breach("I6", f"a new delivery {seen} in spite of {record}")]

    def _deliver(self, record: Record | None, now_ms: int) -> tuple[bool, Finished]:
        """Whether the handler is started, and the answer."""
        replay = Replay(self._scenario, self._newcomer(record))
        node = replay.root().after(None, now_ms)
        started = False
        while not isinstance(pending := node.pending, Finished):
            answer: object = None
            if isinstance(pending, Running):
                started, answer = True, RETURNED
            elif isinstance(pending, Sleeping):
                now_ms = pending.until_ms
            elif isinstance(pending, Request):
                old = self._scenario.returns_old
                record, answer = apply(record, pending, returns_old=old)
            node = node.after(answer, now_ms)
        self.runs += replay.runs
        return started, pending

    def _newcomer(self, record: Record | None) -> Contender:
        """One with a true clock and with the payload of the record's owner."""
        payloads = {other.name: other.payload for other in self._scenario.contenders}
        return Contender("Z", 0, payloads[record.owner[0]] if record else "same")
