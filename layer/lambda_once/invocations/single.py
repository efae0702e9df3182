"""An event that is one unit: let through, guarded, or answered from what is stored."""

from __future__ import annotations

from typing import Protocol

from ..claims.claimer import Claimer
from ..claims.services import Services
from ..events.base import Source, counts_as_failure
from ..keys.expressions import ExpressionError
from ..results.stored import UnstorableResponseError, to_stored


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

    def __init__(self, event: object, source: Source, claimer: Claimer, services: Services) -> None:
        super().__init__(event)
        self._source = source
        self._claimer = claimer
        self._services = services

    def succeeded(self, response: object) -> None:
        """Complete; release where the response is, or will be turned into, an error."""
        super().succeeded(response)
        try:
            stored = to_stored(response, self._services.marshal)
        except UnstorableResponseError as fault:
            self._claimer.release(f"the response cannot be sent: {fault}")
            return
        try:
            failed = counts_as_failure(self._source, response, self._services.config.release)
        except ExpressionError as fault:
            # For the runtime the call succeeded: running it again would be the greater harm.
            self._claimer.complete(stored, unjudged=str(fault))
            return
        if failed:
            self._claimer.release("the response counts as a failure")
        else:
            self._claimer.complete(stored)

    def failed(self, fault: BaseException) -> bool:
        """Release, and let the failure through."""
        self._claimer.release(f"the handler raised {type(fault).__name__}")
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
