"""Opens an invocation, hands out the calls to make, and settles each.

The engine never calls a handler: ``Invocation.next_call`` says with which event to call it, and
the bootstrap tells it how that went.
"""

from __future__ import annotations

from typing import Any

from .claims.cache import ResultCache
from .claims.claimer import Claimer
from .claims.refusal import refusal_for
from .claims.services import Services, Target, deadline_of
from .errors import IdempotencyError, IdempotencyKeyMissingError
from .events.base import BatchSource, Source
from .events.registry import recognise
from .invocations.single import Answered, Guarded, Invocation, Passed
from .keys.canonical import record_id
from .keys.expressions import fingerprint, select_key
from .record import Outcome, StoredResult
from .results.stored import OMITTED, from_stored


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
        return self._open_single(source, event, context, request_id)

    def _open_single(self, source: Source, event: Any, context: Any, request_id: str) -> Invocation:
        try:
            target = self._target(source, event, context, request_id)
        except IdempotencyKeyMissingError as fault:
            if self._runs_without_key(source, request_id, fault):
                return Passed(event)
            return self._refused(source, event, fault)
        claimer = Claimer(self._services, target)
        try:
            stored = claimer.open(wait=self._services.config.wait_in_progress)
        except IdempotencyError as fault:
            if claimer.reject(fault):
                return Passed(event)
            return self._refused(source, event, fault)
        if stored is None:
            return Guarded(event, source, claimer, self._services)
        return Answered(self._replay(source, event, stored))

    def _refused(self, source: Source, event: Any, fault: IdempotencyError) -> Answered:
        """The source's own answer in place of the error, where it has one; else it is raised."""
        answer = source.refusal(event, fault, by_source=self._services.config.key is None)
        if answer is None:
            raise fault
        return Answered(answer)

    def _replay(self, source: Source, event: Any, stored: StoredResult) -> object:
        response = from_stored(stored, self._services.marshal)
        omitted = stored.encoding == OMITTED.encoding
        header = self._services.config.replay_header
        return source.replayed(event, response, omitted=omitted, header=header)

    def _open_batch(
        self, source: BatchSource, event: Any, context: Any, request_id: str
    ) -> Invocation:
        from .invocations.batch import Batch

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
            return None if self._runs_without_key(source, request_id, fault) else fault

    def _target(self, source: Source, event: Any, context: Any, request_id: str) -> Target:
        identity = None if self._services.config.key else source.identity(event)
        return self._target_of(source, identity, event, context, request_id)

    def _target_of(
        self, source: Source, identity: object | None, unit: Any, context: Any, request_id: str
    ) -> Target:
        """``unit`` is what the expressions look at; raises IdempotencyKeyMissingError."""
        config = self._services.config
        if config.key:
            kind, key = "key", select_key(config.key, unit)
        elif identity is None:
            raise IdempotencyKeyMissingError(source.missing)
        else:
            kind, key = source.name, identity
        return Target(
            record_id=record_id(config.scope, kind, getattr(context, "tenant_id", None), key),
            fingerprint=fingerprint(config.payload, unit),
            retention_s=config.retention_s or source.retention_s,
            source=source.name,
            request_id=request_id,
            deadline_ms=deadline_of(context, self._services.now_ms()),
        )

    def _runs_without_key(
        self, source: Source, request_id: str, fault: IdempotencyKeyMissingError
    ) -> bool:
        """Report a unit without a key; whether it is to run unprotected."""
        refusal = refusal_for(self._services.config, fault)
        self._services.report(
            Outcome(
                refusal.kind,
                source.name,
                "",
                request_id,
                error=type(fault).__name__,
                detail=str(fault),
            )
        )
        return refusal.runs
