"""Opens an invocation, hands out the calls to make, and settles each.

The engine never calls a handler: ``Invocation.next_call`` says with which event to call it, and
the bootstrap tells it how that went.
"""

from __future__ import annotations

from typing import Any, Protocol

from . import keys, record, results
from .errors import IdempotencyError, IdempotencyKeyMissingError
from .guard import (
    Guard,
    ResultCache,
    Services,
    Target,
    deadline_of,
    may_run_unprotected,
)
from .record import Outcome
from .sources import Source, recognise


class Invocation(Protocol):
    """One invocation: the calls to make, and in the end the answer."""

    def next_call(self) -> tuple[object] | None:
        """The event of the next call of the handler, in a tuple of one; None when all are made."""

    def succeeded(self, response: object) -> None:
        """The handler returned ``response``."""

    def failed(self, fault: BaseException) -> bool:
        """The handler raised ``fault``. False: it is to be raised again, now."""

    def fault(self) -> BaseException | None:
        """What to raise when all calls are made; None: there is an answer."""

    def answer(self) -> object:
        """What to give to the runtime when all calls are made."""


class Passed:
    """A call without protection."""

    def __init__(self, event: object) -> None:
        self._events = [event]
        self._response: object = None

    def next_call(self) -> tuple[object] | None:
        """See Invocation."""
        return (self._events.pop(),) if self._events else None

    def succeeded(self, response: object) -> None:
        """See Invocation."""
        self._response = response

    def failed(self, fault: BaseException) -> bool:
        """See Invocation."""
        return False

    def fault(self) -> None:
        """See Invocation."""

    def answer(self) -> object:
        """See Invocation."""
        return self._response


class Guarded(Passed):
    """A call whose claim is ours."""

    def __init__(self, event: object, guard: Guard, marshal: results.Marshal) -> None:
        super().__init__(event)
        self._guard = guard
        self._marshal = marshal

    def succeeded(self, response: object) -> None:
        """Complete; release where the runtime will turn the response into an error."""
        super().succeeded(response)
        try:
            stored = results.to_stored(response, self._marshal)
        except results.UnstorableResponseError as fault:
            self._guard.release(f"the response cannot be sent: {fault}")
            return
        self._guard.complete(stored)

    def failed(self, fault: BaseException) -> bool:
        """Release, and let the failure through."""
        self._guard.release(f"the handler raised {type(fault).__name__}")
        return False


class Answered:
    """The answer is stored: no call is made."""

    def __init__(self, response: object) -> None:
        self._response = response

    def next_call(self) -> None:
        """See Invocation."""

    def succeeded(self, response: object) -> None:
        """See Invocation."""
        raise RuntimeError("no call was handed out")

    def failed(self, fault: BaseException) -> bool:
        """See Invocation."""
        raise RuntimeError("no call was handed out")

    def fault(self) -> None:
        """See Invocation."""

    def answer(self) -> object:
        """See Invocation."""
        return self._response


class Engine:
    """Opens invocations. Holds nothing that belongs to one of them."""

    def __init__(self, services: Services) -> None:
        size = services.config.cache_size
        self._services = services._replace(cache=ResultCache(size)) if size else services

    def open(self, event: Any, context: Any) -> Invocation:
        """Decide what is to be done about ``event``; raises IdempotencyError."""
        services = self._services
        source = recognise(event)
        request_id = str(getattr(context, "aws_request_id", "") or "")
        try:
            target = self._target(source, event, context, request_id)
        except IdempotencyKeyMissingError as fault:
            kind = record.UNPROTECTED if services.config.run_without_key else record.KEY_MISSING
            self._report(kind, source, request_id, fault)
            if services.config.run_without_key:
                return Passed(event)
            raise
        guard = Guard(services, target)
        try:
            stored = guard.open(wait=services.config.wait_in_progress)
        except IdempotencyError as fault:
            if may_run_unprotected(services.config, fault):
                guard.reject(fault, record.UNPROTECTED)
                return Passed(event)
            guard.reject(fault)
            raise
        if stored is None:
            return Guarded(event, guard, services.marshal)
        return Answered(results.from_stored(stored, services.marshal))

    def _target(self, source: Source, event: Any, context: Any, request_id: str) -> Target:
        config = self._services.config
        tenant = getattr(context, "tenant_id", None)
        if config.key:
            kind, key = "key", keys.select_key(config.key, event)
        else:
            kind, key = source.name, source.identity(event)
            if key is None:
                raise IdempotencyKeyMissingError("the event is empty")
        return Target(
            record_id=keys.record_id(config.scope, kind, tenant, key),
            fingerprint=keys.fingerprint(config.payload, event),
            retention_s=config.retention_s or source.retention_s,
            source=source.name,
            request_id=request_id,
            deadline_ms=deadline_of(context, self._services.now_ms()),
        )

    def _report(self, kind: str, source: Source, request_id: str, fault: Exception) -> None:
        self._services.report(
            Outcome(
                kind,
                source.name,
                "",
                request_id,
                error=type(fault).__name__,
                code=getattr(fault, "code", ""),
                detail=str(fault),
            )
        )
