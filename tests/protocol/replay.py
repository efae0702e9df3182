"""Runs one contender's real code up to its next request, again and again from the start.

The engine is synchronous. What it does next depends only on the answers it has had and on the
times at which it had them, so it is run from the start with the answers recorded so far, and
stopped by an exception at the first thing that nobody has answered yet. That needs no threads. The
exception is a BaseException, which the engine does not catch.

The places at which the code can stop form a tree; each is run once and kept.
"""

from __future__ import annotations

import json
from typing import NamedTuple, NoReturn, cast

from lambda_once.claims.services import Services
from lambda_once.config import Config
from lambda_once.engine import Engine
from lambda_once.errors import IdempotencyStoreError
from lambda_once.invocations.single import Guarded, Invocation
from lambda_once.keys.expressions import Expression
from lambda_once.record import Claim, Outcome, Record, StoredResult
from lambda_once.store.port import Refusal
from tests.protocol.model import (
    CLAIM,
    COMPLETE,
    READ,
    RELEASE,
    Contender,
    Failure,
    Finished,
    NotStarted,
    Pending,
    Request,
    Running,
    Scenario,
    Sleeping,
)

RETURNED = "returned"
RAISED = "raised"
TABLE = "table"


class Step(NamedTuple):
    """What a contender was answered, and the true time in ms at which it went on."""

    answer: object
    now_ms: int


class HandlerError(Exception):
    """What the modelled handler raises."""


class _Stop(BaseException):
    """Nobody has answered this yet."""

    def __init__(self, pending: Pending) -> None:
        super().__init__()
        self.pending = pending


class Node:
    """A place at which a contender's code waits for an answer, reached by a list of steps.

    ``claim`` is the claim under which the handler was started, or None: not started, or without
    protection. ``deadline_ms`` is when the platform ends the invocation.
    """

    __slots__ = ("_children", "_replay", "_steps", "claim", "deadline_ms", "pending", "reports")

    def __init__(self, replay: Replay, steps: tuple[Step, ...]) -> None:
        self._replay = replay
        self._steps = steps
        self._children: dict[Step, Node] = {}
        self.claim: Claim | None = None
        self.deadline_ms = 0
        self.reports: tuple[str, ...] = ()
        self.pending: Pending = NotStarted()
        if steps:
            self._run()

    def after(self, answer: object, now_ms: int) -> Node:
        """Where the code stands after being answered at ``now_ms``."""
        step = Step(answer, now_ms)
        node = self._children.get(step)
        if node is None:
            node = self._children[step] = self.after_anew(answer, now_ms)
        return node

    def after_anew(self, answer: object, now_ms: int) -> Node:
        """The same, run once more even if it is known."""
        return Node(self._replay, (*self._steps, Step(answer, now_ms)))

    def _run(self) -> None:
        run = Run(self._replay, self._steps)
        self.pending = run.to_next_request()
        self.claim = run.started_under
        self.deadline_ms = run.deadline_ms
        self.reports = tuple(run.reports)
        self._replay.runs += 1


class Replay:
    """The code of one contender. ``runs`` counts how often it was run from its start."""

    def __init__(self, scenario: Scenario, contender: Contender) -> None:
        self.scenario = scenario
        self.contender = contender
        self.config = _config(scenario)
        self.runs = 0

    def root(self) -> Node:
        """The contender before its event is delivered."""
        return Node(self, ())


def _config(scenario: Scenario) -> Config:
    return Config(
        table=TABLE,
        table_region=None,
        scope="f",
        key=Expression("key", lambda _: "one key for all"),
        payload=Expression("payload", _payload) if scenario.compare_payload else None,
        retention_s=scenario.retention_s,
        wait_in_progress=scenario.wait,
        run_without_store=scenario.run_without_store,
        lease_s=scenario.lease_s,
    )


def _payload(event: object) -> object:
    return cast("dict[str, str]", event)["payload"]


def _marshal(response: object) -> tuple[str, str]:
    return json.dumps(response), "application/json"


class Run:
    """One run: the store port, the clock and the handler, all answering from the record."""

    def __init__(self, replay: Replay, steps: tuple[Step, ...]) -> None:
        self._replay = replay
        self._offset_ms = replay.contender.offset_ms
        self._steps = iter(steps[1:])
        self._now_ms = steps[0].now_ms
        self._tokens = 0
        self._asked_for: Claim | None = None
        self._ran = ""
        self.deadline_ms = self._now_ms + replay.scenario.timeout_ms
        self.started_under: Claim | None = None
        self.reports: list[str] = []

    def to_next_request(self) -> Pending:
        """Run from the start to the first thing that is not answered, or to the end."""
        try:
            response = self._invoke()
        except _Stop as stop:
            return stop.pending
        except Exception as fault:  # noqa: BLE001  it is looked at, not handled
            return Finished(None, type(fault).__name__, self._ran)
        return Finished(response, "", self._ran)

    def _invoke(self) -> object:
        """As the bootstrap does it; that one needs a Lambda environment to be imported."""
        contender = self._replay.contender
        invocation = Engine(self._services()).open({"payload": contender.payload}, self)
        while invocation.next_call() is not None:
            try:
                response = self._handle(invocation)
            except HandlerError as fault:  # noqa: PERF203  as in the bootstrap
                if not invocation.failed(fault):
                    raise
            else:
                invocation.succeeded(response)
        if (put_off := invocation.fault()) is not None:
            raise put_off
        return invocation.answer()

    def _handle(self, invocation: Invocation) -> object:
        if isinstance(invocation, Guarded):
            self.started_under = self._asked_for
        self._ran = cast("str", self._ask(Running()))
        if self._ran == RAISED:
            raise HandlerError
        return own_response(self._replay.contender)

    def _services(self) -> Services:
        return Services(
            config=self._replay.config,
            store=self,
            now_ms=self.local_ms,
            sleep=self._sleep,
            token=self.token,
            report=self._report,
            marshal=_marshal,
        )

    def get_remaining_time_in_millis(self) -> int:
        """Of Lambda's context object."""
        return self.deadline_ms - self._now_ms

    def local_ms(self) -> int:
        """The contender's own clock."""
        return self._now_ms + self._offset_ms

    def _sleep(self, seconds: float) -> None:
        self._ask(Sleeping(self._now_ms + round(seconds * 1000)))

    def token(self) -> str:
        """A token that no other claim of this world has."""
        self._tokens += 1
        return f"{self._replay.contender.name}{self._tokens}"

    def _report(self, outcome: Outcome) -> None:
        self.reports.append(outcome.kind)

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        """See the store port."""
        self._asked_for = claim
        return cast("Refusal | None", self._ask(Request(CLAIM, claim, now_ms)))

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        """See the store port."""
        request = Request(COMPLETE, claim, 0, result, expires_at_s)
        return cast("Refusal | None", self._ask(request))

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        """See the store port."""
        return cast("Refusal | None", self._ask(Request(RELEASE, claim)))

    def read(self, record_id: str, by_ms: int) -> Record | None:
        """See the store port."""
        assert self._asked_for is not None
        return cast("Record | None", self._ask(Request(READ, self._asked_for)))

    def load(self, record: Record, by_ms: int) -> StoredResult:
        """See the store port; a short result comes with its record."""
        assert record.result is not None
        return record.result

    def _ask(self, pending: Pending) -> object:
        step = next(self._steps, None)
        if step is None:
            raise _Stop(pending)
        self._now_ms = step.now_ms
        if isinstance(step.answer, Failure):
            self._fail(pending, step.answer)
        return step.answer

    def _fail(self, pending: Pending, failure: Failure) -> NoReturn:
        assert isinstance(pending, Request)
        raise IdempotencyStoreError(
            pending.operation,
            TABLE,
            failure.code,
            "modelled",
            maybe_applied=failure.maybe_applied,
        )


def own_response(contender: Contender) -> object:
    """What this contender's handler returns, and no other's."""
    return {"by": contender.name}
