"""What can go wrong with a request, and what must then become of the invocation.

The outcome depends on two things only: whether the store had carried out the request, and whether
the fault is one that may pass. So there are three kinds of fault, and for each operation, kind and
number of times one expected outcome.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tests.support.fault_proxy import (
    DROP_REPLY,
    DROP_REQUEST,
    EMPTY_BODY,
    GARBAGE,
    GARBAGE_UNFORWARDED,
    HALF_REPLY,
    RESET_AFTER,
    RESET_BEFORE,
    Answer,
    Fault,
    slow,
    status,
    throttled,
    unavailable,
)


class Kind(Enum):
    """What a fault leaves behind."""

    LOST = "carried out, and the answer was lost"
    PASSING = "not carried out; the same request may work"
    LASTING = "not carried out; the same request will not work"


class Trial(NamedTuple):
    """A fault, and the code by which the error and the log must name it, or one of a few codes."""

    name: str
    kind: Kind
    codes: str
    fault: Fault

    def is_named_by(self, code: str) -> bool:
        return code in self.codes.split()


def _answered(answer: Answer) -> Fault:
    return Fault(forward=True, answer=answer)


def _html(code: int) -> Answer:
    return Answer(code, b"<html>not the service</html>", (("Content-Type", "text/html"),))


_INTERNAL = status(500, "InternalServerError")
_ELSEWHERE = Answer(307, b"", (("Location", "http://127.0.0.1:9/elsewhere"),))
# Longer than the read timeout of an invocation that has less than 3 s left.
_SLOW_S = 0.6

_CLOSED = "ConnectionClosedError"
_UNREADABLE = "UnreadableAnswer"

TRIALS = (
    Trial("reply dropped", Kind.LOST, _CLOSED, DROP_REPLY),
    Trial("reset after", Kind.LOST, _CLOSED, RESET_AFTER),
    Trial("half a reply", Kind.LOST, f"{_CLOSED} {_UNREADABLE} 400", HALF_REPLY),
    Trial("500 after", Kind.LOST, "InternalServerError", _answered(_INTERNAL.answer or _ELSEWHERE)),
    Trial("503 after", Kind.LOST, "503", _answered(_html(503))),
    Trial("slow reply", Kind.LOST, "ReadTimeoutError", slow(_SLOW_S)),
    Trial("garbage after", Kind.LOST, _UNREADABLE, GARBAGE),
    Trial("empty body after", Kind.LOST, _UNREADABLE, EMPTY_BODY),
    Trial("null after", Kind.LOST, "AttributeError TypeError", _answered(Answer(200, b"null"))),
    Trial("bytes after", Kind.LOST, "UnicodeDecodeError", _answered(Answer(200, b"\xff\xfe"))),
    Trial("request dropped", Kind.PASSING, _CLOSED, DROP_REQUEST),
    Trial("reset before", Kind.PASSING, _CLOSED, RESET_BEFORE),
    Trial("500 before", Kind.PASSING, "InternalServerError", _INTERNAL),
    Trial("503 before", Kind.PASSING, "503", unavailable()),
    Trial("garbage before", Kind.PASSING, _UNREADABLE, GARBAGE_UNFORWARDED),
    Trial("redirect", Kind.PASSING, "307", Fault(forward=False, answer=_ELSEWHERE)),
    Trial("a proxy's 403", Kind.PASSING, "403", Fault(forward=False, answer=_html(403))),
    Trial(
        "throughput exceeded", Kind.PASSING, "ProvisionedThroughputExceededException", throttled()
    ),
    *(
        Trial(code, Kind.PASSING, code, status(400, code))
        for code in (
            "ThrottlingException",
            "RequestLimitExceeded",
            "TransactionConflictException",
            "ReplicatedWriteConflictException",
        )
    ),
    *(
        Trial(code, Kind.LASTING, code, status(400, code))
        for code in (
            "AccessDeniedException",
            "ResourceNotFoundException",
            "ValidationException",
            "UnrecognizedClientException",
            "ExpiredTokenException",
            "InvalidSignatureException",
            "ItemCollectionSizeLimitExceededException",
        )
    ),
)

ONCE = 1
FOR_EVER = 10_000


class Expected(NamedTuple):
    """What the caller gets, how often the handler runs, what is stored and what is logged last.

    ``gets`` is "result", "user's error" or "store error".
    """

    gets: str
    runs: int
    stored: str
    logged: str


_RUN = Expected("result", 1, "COMPLETED", "executed")
_REFUSED = Expected("store error", 0, "absent", "store_failed")

CLAIM = {
    (Kind.LOST, ONCE): _RUN,
    (Kind.PASSING, ONCE): _RUN,
    (Kind.LASTING, ONCE): _REFUSED,
    # Given back: the retry need not wait for the lease to end.
    (Kind.LOST, FOR_EVER): _REFUSED,
    (Kind.PASSING, FOR_EVER): _REFUSED,
    (Kind.LASTING, FOR_EVER): _REFUSED,
}

COMPLETION = {
    (Kind.LOST, ONCE): _RUN,
    (Kind.PASSING, ONCE): _RUN,
    (Kind.LASTING, ONCE): Expected("result", 1, "INPROGRESS", "unrecorded"),
    # Completed in truth, which we could not learn.
    (Kind.LOST, FOR_EVER): Expected("result", 1, "COMPLETED", "unrecorded"),
    (Kind.PASSING, FOR_EVER): Expected("result", 1, "INPROGRESS", "unrecorded"),
    (Kind.LASTING, FOR_EVER): Expected("result", 1, "INPROGRESS", "unrecorded"),
}

_RELEASED = Expected("user's error", 1, "absent", "released")

RELEASE = {
    (Kind.LOST, ONCE): _RELEASED,
    (Kind.PASSING, ONCE): _RELEASED,
    (Kind.LASTING, ONCE): Expected("user's error", 1, "INPROGRESS", "release_failed"),
    (Kind.LOST, FOR_EVER): Expected("user's error", 1, "absent", "release_failed"),
    (Kind.PASSING, FOR_EVER): Expected("user's error", 1, "INPROGRESS", "release_failed"),
    (Kind.LASTING, FOR_EVER): Expected("user's error", 1, "INPROGRESS", "release_failed"),
}

# A read changes nothing, so it does not matter whether it was carried out. The record is complete
# when it is read: the handler never runs.
_REPLAYED = Expected("result", 0, "COMPLETED", "replayed")
_UNREAD = Expected("store error", 0, "COMPLETED", "store_failed")

READ = {
    (kind, times): _REPLAYED if kind is not Kind.LASTING and times == ONCE else _UNREAD
    for kind in Kind
    for times in (ONCE, FOR_EVER)
}
