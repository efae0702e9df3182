"""What is said of each kind of outcome, and what it is counted as."""

from __future__ import annotations

from .. import record
from ..record import Outcome

# For each kind of outcome: log level, what is said, name of the metric.
SAID = {
    record.EXECUTED: ("DEBUG", "executed, result recorded", "Executed"),
    record.UNJUDGED: (
        "WARN",
        "executed, result recorded, as IDEMPOTENCY_RELEASE cannot judge it",
        "Executed",
    ),
    record.REPLAYED: ("INFO", "replayed, the handler did not run", "Replayed"),
    record.BLOCKED: ("WARN", "in progress elsewhere, the handler did not run", "InProgress"),
    record.MISMATCHED: ("WARN", "refused, the payload differs", "PayloadMismatch"),
    record.KEY_MISSING: ("WARN", "refused, no idempotency key", "KeyMissing"),
    record.STORE_FAILED: ("ERROR", "refused, the store could not be asked", "StoreFailure"),
    record.UNPROTECTED: ("WARN", "the handler runs without protection", "Unprotected"),
    record.RELEASED: ("INFO", "released, a retry will run", "Released"),
    record.RELEASE_FAILED: (
        "WARN",
        "not released, a retry can run when the claim's lease ends",
        "ReleaseFailure",
    ),
    record.UNRECORDED: (
        "ERROR",
        "the handler succeeded and its result could not be recorded:"
        " the same request can run again when the claim's lease ends",
        "Unrecorded",
    ),
    record.LOST: (
        "ERROR",
        "the handler finished after its claim had ended, and nothing was recorded:"
        " another invocation may have run for the same request",
        "ClaimLost",
    ),
}


def timings(outcome: Outcome) -> list[tuple[str, int, int]]:
    """Name, start and end (epoch ms) of the steps that were taken: ``Claim``, ``Settle``."""
    steps = [
        ("Claim", outcome.claim_started_ms, outcome.claim_ended_ms),
        ("Settle", outcome.settle_started_ms, outcome.settle_ended_ms),
    ]
    return [step for step in steps if step[1]]
