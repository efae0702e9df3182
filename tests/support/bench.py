"""An engine on a bench: the test moves its clock, scripts its store and reads its reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from awslambdaric.lambda_runtime_marshaller import LambdaMarshaller

from lambda_once.claims.services import Services
from lambda_once.config import Config
from lambda_once.engine import Engine
from lambda_once.errors import IdempotencyStoreError
from lambda_once.record import Claim, Outcome, Record, StoredResult
from lambda_once.store.port import Refusal
from tests.support.memory_store import MemoryStore

T = TypeVar("T")

START_MS = 1_800_000_000_000


def store_error(operation: str = "PutItem", *, maybe_applied: bool = False) -> Exception:
    """What a store raises when it cannot do what was asked."""
    return IdempotencyStoreError(
        operation, "idempotency", "Unavailable", "as the test wants", maybe_applied=maybe_applied
    )


class Clock:
    """Epoch ms that pass only when told to, or by sleeping."""

    def __init__(self) -> None:
        self.ms = START_MS
        self.slept: list[float] = []
        self.on_sleep: Callable[[], object] = lambda: None

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += round(seconds * 1000)
        self.on_sleep()


class Context:
    """What Lambda passes with an event, as far as the engine looks."""

    aws_request_id = "request-1"

    def __init__(self, clock: Clock, remaining_ms: int = 3_000) -> None:
        self._clock = clock
        self._deadline_ms = clock.ms + remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self._deadline_ms - self._clock.ms)


class Step(NamedTuple):
    """What becomes of one request.

    applied   whether the store does it
    error     what is raised in the place of its answer
    answer    what is answered in its place, in a tuple of one
    takes_ms  how long it takes
    """

    applied: bool = True
    error: Exception | None = None
    answer: tuple[Any] | None = None
    takes_ms: int = 0


class ScriptedStore:
    """A store in memory that remembers the requests, and for which each can be made to fail."""

    def __init__(self, clock: Clock, *, tells: bool = True) -> None:
        self.memory = MemoryStore(tells=tells)
        self.calls: list[str] = []
        self.by_ms: list[int] = []
        self._clock = clock
        self._steps: dict[str, list[Step]] = {}

    def plan(self, operation: str, *steps: Step) -> None:
        """What becomes of the next requests of this kind."""
        self._steps.setdefault(operation, []).extend(steps)

    def only_record(self) -> Record | None:
        """The one record there is, or None."""
        records = list(self.memory.records.values())
        assert len(records) <= 1
        return records[0] if records else None

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        return self._do("claim", by_ms, lambda: self.memory.claim(claim, now_ms, by_ms))

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        return self._do(
            "complete", by_ms, lambda: self.memory.complete(claim, result, expires_at_s, by_ms)
        )

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        return self._do("release", by_ms, lambda: self.memory.release(claim, by_ms))

    def read(self, record_id: str, by_ms: int) -> Record | None:
        return self._do("read", by_ms, lambda: self.memory.read(record_id, by_ms))

    def load(self, record: Record, by_ms: int) -> StoredResult:
        return self._do("load", by_ms, lambda: self.memory.load(record, by_ms))

    def _do(self, operation: str, by_ms: int, act: Callable[[], T]) -> T:
        self.calls.append(operation)
        self.by_ms.append(by_ms)
        steps = self._steps.get(operation)
        step = steps.pop(0) if steps else Step()
        answer = act() if step.applied else None
        self._clock.ms += step.takes_ms
        if step.error:
            raise step.error
        return cast("T", step.answer[0] if step.answer else answer)


class Bench:
    """Everything that an engine is given, and the engine."""

    def __init__(self, variables: Mapping[str, str] | None = None, *, tells: bool = True) -> None:
        self.clock = Clock()
        self.store = ScriptedStore(self.clock, tells=tells)
        self.outcomes: list[Outcome] = []
        self._tokens = 0
        environ = {"IDEMPOTENCY_TABLE": "idempotency", **(variables or {})}
        self.services = Services(
            config=Config.from_environ(environ),
            store=self.store,
            now_ms=self.clock.now_ms,
            sleep=self.clock.sleep,
            token=self._token,
            report=self.outcomes.append,
            marshal=LambdaMarshaller().marshal_response,
        )
        self.engine = Engine(self.services)

    def kinds(self) -> list[str]:
        """What was reported, in order."""
        return [outcome.kind for outcome in self.outcomes]

    def context(self, remaining_ms: int = 3_000) -> Context:
        return Context(self.clock, remaining_ms)

    def invoke(
        self, event: Any, handler: Callable[[Any], Any], context: object | None = None
    ) -> Any:
        """One invocation, driven as the bootstrap drives it."""
        invocation = self.engine.open(event, context or self.context())
        while (call := invocation.next_call()) is not None:
            try:
                response = handler(call[0])
            except BaseException as fault:  # noqa: PERF203 - one call is one round
                if not invocation.failed(fault):
                    raise
            else:
                invocation.succeeded(response)
        if (put_off := invocation.fault()) is not None:
            raise put_off
        return invocation.answer()

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens}"
