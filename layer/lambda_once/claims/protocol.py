"""The rules of ownership. Pure: no I/O, no clock, no randomness, nothing of AWS.

Theory
------
A record is the only thing contenders share, and each change of it is one conditional write, so
the store orders all changes of one record. A record is in one of three states:

    absent        no item, or one that has ended: a COMPLETED past its expiry, an INPROGRESS past
                  its lease
    in progress   owned by one token until its lease ends
    completed     holds the result until its expiry

Transitions; nothing else ever changes a record:

    state         write      by                     condition                     becomes
    absent        claim      anyone, a fresh token  absent at the claimer's time  in progress
    in progress   complete   the owner              owner = me, INPROGRESS        completed
    in progress   release    the owner              owner = me, INPROGRESS        absent
    in progress   (time)                            the lease ends                absent
    completed     (time)                            the expiry passes             absent

A token belongs to one claim and is never used again. So a write that is repeated because its
reply was lost meets its own token, and the item in the way tells what happened (``judge_claim``,
``judge_completion``, ``judge_release``). A write that arrives late, after its claim has ended and
another began, meets another token and changes nothing.

The lease ends one margin after the moment at which the platform ends the owner's invocation, so
while an owner can run, its claim stands even for a contender whose clock is ahead by the margin.

Invariants, checked by exploring every interleaving (tests/protocol)
-------------------------------------------------------------------
I1  While an owner is alive and inside its lease, nobody else's handler starts.
I2  A completed record is not changed or deleted by anyone before it expires.
I3  A late owner changes nothing, and what it is told says so.
I4  For one key and retention at most one completion is recorded.
I5  After all contenders have died, a new delivery after the lease can run.
I6  A caller gets the recorded result or its own, never another.
"""

from __future__ import annotations

from enum import Enum

from ..record import COMPLETED, IN_PROGRESS, Claim, Record

# How far the clocks of two environments may be apart. AWS disciplines them to far less.
CLOCK_MARGIN_MS = 1000


class Verdict(Enum):
    """What the record that stands in a claim's way means for the claimer."""

    MINE = "the claim is mine: its first reply was lost"
    REPLAY = "completed: give the stored result"
    IN_PROGRESS = "another owner is at work"
    MISMATCH = "the key was used with another payload"
    FREE = "the record has ended: claim again"


class Settlement(Enum):
    """What the answer to completing or releasing means for the owner."""

    DONE = "done, now or by a request whose reply was lost"
    LOST = "the claim was no longer mine; nothing was changed"


def lease_until(now_ms: int, remaining_ms: int, at_least_ms: int = 0) -> int:
    """When a claim made now ends by itself, in epoch ms.

    ``remaining_ms`` is what the invocation has left; ``at_least_ms`` is a configured lease, which
    can only lengthen it: a lease that ends before its owner would let two handlers run at once.
    """
    return now_ms + max(remaining_ms, at_least_ms) + CLOCK_MARGIN_MS


def expiry_of_claim(claim_lease_until_ms: int, now_ms: int, retention_s: int) -> int:
    """The ``expires_at`` of a claim in epoch s: the retention, but never before the lease ends."""
    return max(-(-claim_lease_until_ms // 1000), now_ms // 1000 + retention_s)


def has_ended(record: Record, now_ms: int) -> bool:
    """Whether the record counts as absent at ``now_ms``; the same test as the claim's condition."""
    if record.expires_at_s < now_ms // 1000:
        return True
    return record.status == IN_PROGRESS and record.in_progress_until_ms < now_ms


def judge_claim(existing: Record, claim: Claim, now_ms: int) -> Verdict:
    """What a claim made at ``now_ms`` means when ``existing`` was in its way."""
    if existing.owner == claim.owner and existing.status == IN_PROGRESS:
        return Verdict.MINE
    if has_ended(existing, now_ms):
        return Verdict.FREE
    # A record from before payloads were compared has no fingerprint and matches every payload.
    if existing.fingerprint and claim.fingerprint and existing.fingerprint != claim.fingerprint:
        return Verdict.MISMATCH
    return Verdict.REPLAY if existing.status == COMPLETED else Verdict.IN_PROGRESS


def judge_completion(existing: Record | None, claim: Claim) -> Settlement:
    """What it means that completing ``claim`` was refused because of ``existing``."""
    mine = existing is not None and existing.owner == claim.owner and existing.status == COMPLETED
    return Settlement.DONE if mine else Settlement.LOST


def judge_release(existing: Record | None, claim: Claim) -> Settlement:
    """What it means that releasing ``claim`` was refused because of ``existing``.

    No item is what a release leaves behind, so a repeated release finds none.
    """
    return Settlement.DONE if existing is None else Settlement.LOST


def is_usable(claim: Claim, now_ms: int) -> bool:
    """Whether a claim answered at ``now_ms`` still lets a handler start.

    A process can be frozen between asking and being answered. Once the lease has ended, another
    owner may be at work, also one whose clock is ahead by the margin.
    """
    return now_ms < claim.lease_until_ms - CLOCK_MARGIN_MS
