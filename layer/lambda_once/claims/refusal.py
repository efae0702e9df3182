"""What it means that a unit could not be claimed: said here once, for events and for records."""

from __future__ import annotations

from typing import NamedTuple

from .. import record
from ..config import Config
from ..errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyPayloadMismatchError,
    IdempotencyStoreError,
)


class Refusal(NamedTuple):
    """``kind`` is the unit's outcome; ``runs``: the handler runs all the same, unprotected."""

    kind: str
    runs: bool


_KIND_OF: dict[type[IdempotencyError], str] = {
    IdempotencyInProgressError: record.BLOCKED,
    IdempotencyKeyMissingError: record.KEY_MISSING,
    IdempotencyPayloadMismatchError: record.MISMATCHED,
    IdempotencyStoreError: record.STORE_FAILED,
}


def refusal_for(config: Config, fault: IdempotencyError) -> Refusal:
    """What is to be done about a unit that ``fault`` keeps from being claimed, as configured."""
    runs = False
    if isinstance(fault, IdempotencyKeyMissingError):
        runs = config.run_without_key
    elif isinstance(fault, IdempotencyStoreError):
        runs = config.run_without_store and not fault.may_have_run
    return Refusal(record.UNPROTECTED if runs else _KIND_OF[type(fault)], runs)
