"""What is stored, what is claimed and what is reported. Values only.

Times are integers of UTC epoch time and carry their unit in the name: ``_ms`` or ``_s``.
These are NamedTuples and not dataclasses because importing ``dataclasses`` (which imports
``inspect``) would be the dearest import of the whole layer in a cold start.
"""

from __future__ import annotations

from typing import NamedTuple

IN_PROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"


class StoredResult(NamedTuple):
    """A response in the form the store keeps.

    ``encoding`` is ``text``, ``bytes``, ``text+zlib``, ``bytes+zlib`` or ``omitted``. ``body`` is
    the response in that encoding; ``parts`` says in how many further items it lies, in which case
    ``body`` is empty until they are read.
    """

    encoding: str
    body: bytes
    parts: int = 0


class Record(NamedTuple):
    """One stored record, as read. ``owner`` is the token of the claim that wrote it."""

    id: str
    status: str
    owner: str
    in_progress_until_ms: int
    expires_at_s: int
    fingerprint: str | None = None
    result: StoredResult | None = None


class Claim(NamedTuple):
    """One try to own a record until ``lease_until_ms``. ``owner`` is drawn anew for every claim.

    ``expires_at_s`` is when the store may drop the record by itself; never before the lease ends.
    """

    id: str
    owner: str
    lease_until_ms: int
    expires_at_s: int
    fingerprint: str | None = None


class Outcome(NamedTuple):
    """What became of one unit, reported once, when it is known.

    ``kind`` is one of the names below. ``error`` is the class name of what was raised or met, and
    ``code`` the service's error code, if there is one. The four times are epoch milliseconds and
    0 where the step was not taken.
    """

    kind: str
    source: str
    record_id: str
    request_id: str
    error: str = ""
    code: str = ""
    detail: str = ""
    claim_started_ms: int = 0
    claim_ended_ms: int = 0
    settle_started_ms: int = 0
    settle_ended_ms: int = 0


# First run, recorded: the only outcome that is not logged.
EXECUTED = "executed"
# The same, although IDEMPOTENCY_RELEASE could not be evaluated on the response.
UNJUDGED = "unjudged"
# The stored result was given, the handler did not run.
REPLAYED = "replayed"
# The handler did not run: another owner has the claim; the payload differs; there is no key.
BLOCKED = "in_progress"
MISMATCHED = "mismatch"
KEY_MISSING = "key_missing"
# The handler did not run: the store could not be asked.
STORE_FAILED = "store_failed"
# The handler ran without protection, as configured.
UNPROTECTED = "unprotected"
# The handler failed and the claim was given back.
RELEASED = "released"
# The handler failed and the claim could not be given back: it ends by itself.
RELEASE_FAILED = "release_failed"
# The handler succeeded and its result could not be recorded: it may run again after the lease.
UNRECORDED = "unrecorded"
# The handler finished after its claim had gone to another owner.
LOST = "claim_lost"
