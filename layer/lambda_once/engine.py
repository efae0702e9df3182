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
from .record import Outcome, StoredResult
from .sources import BatchSource, Http, Source, counts_as_failure, recognise


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

    def __init__(self, event: object, source: Source, guard: Guard, services: Services) -> None:
        super().__init__(event)
        self._source = source
        self._guard = guard
        self._services = services

    def succeeded(self, response: object) -> None:
        """Complete; release where the response is, or will be turned into, an error."""
        super().succeeded(response)
        try:
            stored = results.to_stored(response, self._services.marshal)
        except results.UnstorableResponseError as fault:
            self._guard.release(f"the response cannot be sent: {fault}")
            return
        try:
            failed = counts_as_failure(self._source, response, self._services.config.release)
        except keys.ExpressionError as fault:
            # For the runtime the call succeeded: running it again would be the greater harm.
            self._guard.complete(stored, unjudged=str(fault))
            return
        if failed:
            self._guard.release("the response counts as a failure")
        else:
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
        if not source.guarded(event, services.config.key is not None):
            return Passed(event)
        request_id = str(getattr(context, "aws_request_id", "") or "")
        if isinstance(source, BatchSource) and services.config.batch != "whole":
            return self._open_batch(source, event, context, request_id)
        try:
            target = self._target(source, event, context, request_id)
        except IdempotencyKeyMissingError as fault:
            kind = record.UNPROTECTED if services.config.run_without_key else record.KEY_MISSING
            self._report(kind, source, request_id, fault)
            if services.config.run_without_key:
                return Passed(event)
            return self._refused(source, event, fault)
        guard = Guard(services, target)
        try:
            stored = guard.open(wait=services.config.wait_in_progress)
        except IdempotencyError as fault:
            if may_run_unprotected(services.config, fault):
                guard.reject(fault, record.UNPROTECTED)
                return Passed(event)
            guard.reject(fault)
            return self._refused(source, event, fault)
        if stored is None:
            return Guarded(event, source, guard, services)
        return Answered(self._replay(source, event, stored))

    def _refused(self, source: Source, event: Any, fault: IdempotencyError) -> Answered:
        """An answer in place of the error where the source is HTTP; else the error is raised."""
        if not isinstance(source, Http):
            raise fault
        from . import http

        by_header = self._services.config.key is None
        return Answered(http.problem(source, event, fault, by_header))

    def _replay(self, source: Source, event: Any, stored: StoredResult) -> object:
        response = results.from_stored(stored, self._services.marshal)
        if not isinstance(source, Http):
            return response
        from . import http

        if stored.encoding == results.OMITTED.encoding:
            response = http.no_content(source, event)
        name = self._services.config.replay_header
        return http.with_header(source, event, response, name) if name else response

    def _open_batch(
        self, source: BatchSource, event: Any, context: Any, request_id: str
    ) -> Invocation:
        from .batch import Batch

        targets = [
            self._record_target(source, event, each, context, request_id)
            for each in source.records(event)
        ]
        deadline_ms = deadline_of(context, self._services.now_ms())
        return Batch(self._services, source, event, targets, deadline_ms)

    def _record_target(
        self, source: BatchSource, event: Any, each: Any, context: Any, request_id: str
    ) -> Target | IdempotencyKeyMissingError | None:
        """The target of one record; None to run it without protection; or why it has no key."""
        try:
            identity = None if self._services.config.key else source.record_identity(event, each)
            return self._target_of(source, identity, each, context, request_id)
        except IdempotencyKeyMissingError as fault:
            if self._services.config.run_without_key:
                self._report(record.UNPROTECTED, source, request_id, fault)
                return None
            self._report(record.KEY_MISSING, source, request_id, fault)
            return fault

    def _target(self, source: Source, event: Any, context: Any, request_id: str) -> Target:
        identity = None if self._services.config.key else source.identity(event)
        return self._target_of(source, identity, event, context, request_id)

    def _target_of(
        self, source: Source, identity: object | None, unit: Any, context: Any, request_id: str
    ) -> Target:
        """``unit`` is what the expressions look at; raises IdempotencyKeyMissingError."""
        config = self._services.config
        if config.key:
            kind, key = "key", keys.select_key(config.key, unit)
        elif identity is None:
            raise IdempotencyKeyMissingError(source.missing)
        else:
            kind, key = source.name, identity
        return Target(
            record_id=keys.record_id(config.scope, kind, getattr(context, "tenant_id", None), key),
            fingerprint=keys.fingerprint(config.payload, unit),
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
