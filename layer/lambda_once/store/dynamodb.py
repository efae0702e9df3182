"""The store in a DynamoDB table: deadlines, repeating, and what a repeated write means.

A transport below makes one attempt; what is done about its outcome is decided here, once for all
transports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import IdempotencyStoreError
from ..record import Claim, Record, StoredResult
from .items import MAX_INLINE_BYTES, Items, part_id
from .port import Refusal
from .transport import NO_TIME, Answer, Failed, Refused, Transport

ATTEMPTS = 4
COMPLETION_ATTEMPTS = 30
FIRST_PAUSE_MS = 50
LONGEST_PAUSE_MS = 1_000

CONDITION_FAILED = "ConditionalCheckFailedException"

# Codes that say for certain that nothing was written, and that the same request may succeed.
# Source: DynamoDB developer guide, error handling.
_NOT_APPLIED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "LimitExceededException",
        "TransactionConflictException",
    }
)
# Further codes after which the same request may succeed.
_TRANSIENT = _NOT_APPLIED | {
    "InternalServerError",
    "InternalFailure",
    "InternalServerErrorException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "RequestTimeout",
}


class DynamoDBStore:
    """The store port over one table; safe to share between threads.

    ``now_ms`` is epoch ms, ``sleep`` takes seconds.
    """

    def __init__(
        self,
        table: str,
        transport: Transport,
        now_ms: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        self._table = table
        self._transport = transport
        self._now_ms = now_ms
        self._sleep = sleep
        self._items = Items(table)

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        """See the port.

        Half of the time is kept from being spent on repeating: a handler must not start with no
        time left.
        """
        started_ms = self._now_ms()
        repeat_by_ms = started_ms + (by_ms - started_ms) // 2
        request = self._items.claim(claim, now_ms)
        return self._write("PutItem", request, by_ms, ATTEMPTS, repeat_by_ms)

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        """See the port. A long result's parts are written first, under the owner's token."""
        if len(result.body) > MAX_INLINE_BYTES:
            parts = self._items.parts(claim, result, expires_at_s)
            for part in parts:
                self._ask("PutItem", part, by_ms, COMPLETION_ATTEMPTS)
            result = StoredResult(result.encoding, b"", len(parts))
        request = self._items.completion(claim, result, expires_at_s)
        return self._write("UpdateItem", request, by_ms, COMPLETION_ATTEMPTS)

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        """See the port."""
        return self._write("DeleteItem", self._items.release(claim), by_ms, ATTEMPTS)

    def read(self, record_id: str, by_ms: int) -> Record | None:
        """See the port."""
        item = self._get(record_id, by_ms)
        return None if item is None else self._items.record("GetItem", item)

    def load(self, record: Record, by_ms: int) -> StoredResult:
        """See the port."""
        result = record.result
        if result is None:
            raise self._items.foreign("GetItem", record.id, "result", "text or bytes")
        if not result.parts:
            return result
        parts = [self._part(record, number, by_ms) for number in range(result.parts)]
        return StoredResult(result.encoding, b"".join(parts))

    def _part(self, record: Record, number: int, by_ms: int) -> bytes:
        item = self._get(part_id(record.id, record.owner, number), by_ms)
        return self._items.part(record, number, item)

    def _get(self, item_id: str, by_ms: int) -> Any | None:
        answer = self._ask("GetItem", self._items.read(item_id), by_ms, ATTEMPTS)
        return answer.members.get("Item") if isinstance(answer, Answer) else None

    def _write(
        self,
        operation: str,
        request: dict[str, Any],
        by_ms: int,
        attempts: int,
        repeat_by_ms: int | None = None,
    ) -> Refusal | None:
        answer = self._ask(operation, request, by_ms, attempts, repeat_by_ms)
        if isinstance(answer, Answer):
            return None
        return Refusal(self._items.record(operation, answer.item) if answer.item else None)

    def _ask(
        self,
        operation: str,
        request: dict[str, Any],
        by_ms: int,
        attempts: int,
        repeat_by_ms: int | None = None,
    ) -> Answer | Refused:
        """Send until answered, at most ``attempts`` times and never past ``by_ms``.

        ``repeat_by_ms`` is the same for all attempts but the first. The only refusal that is an
        answer is a failed condition. Raises IdempotencyStoreError.
        """
        request = {"TableName": self._table, "ReturnConsumedCapacity": "TOTAL", **request}
        failure = NO_TIME
        maybe_applied = False
        for attempt in range(attempts):
            outcome = self._transport.send(operation, request, by_ms)
            if isinstance(outcome, Refused) and outcome.code == CONDITION_FAILED:
                return outcome
            if isinstance(outcome, Answer) and "ConsumedCapacity" in outcome.members:
                return outcome
            if outcome is NO_TIME:
                break
            failure = _failure(outcome, operation)
            maybe_applied = maybe_applied or failure.maybe_applied
            by_ms = by_ms if repeat_by_ms is None else repeat_by_ms
            if not failure.transient or not self._pause(attempt, by_ms):
                break
        raise IdempotencyStoreError(
            operation, self._table, failure.code, failure.detail, maybe_applied=maybe_applied
        )

    def _pause(self, attempt: int, by_ms: int) -> bool:
        """Wait before the next attempt; False if there is no time for one.

        Half of the pause is random, so that contenders that failed together come back apart.
        """
        import random

        longest = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2**attempt)
        pause_ms = longest / 2 + random.random() * longest / 2  # noqa: S311  no secret
        if self._now_ms() + pause_ms >= by_ms:
            return False
        self._sleep(pause_ms / 1000)
        return True


def _failure(outcome: Answer | Refused | Failed, operation: str) -> Failed:
    """What an attempt that brought no answer means for the next."""
    if isinstance(outcome, Failed):
        return outcome
    if isinstance(outcome, Answer):
        # DynamoDB always says what it was asked to say: something else has answered.
        return Failed("UnreadableAnswer", "the answer is not DynamoDB's", maybe_applied=True)
    code = outcome.code
    # The status decides where the code is unknown or missing.
    transient = code in _TRANSIENT or outcome.status >= 500 or not code.isidentifier()
    detail = _HINTS.get(code, "{operation} was answered with HTTP {status}")
    return Failed(
        code,
        detail.format(operation=operation, status=outcome.status),
        maybe_applied=transient and code not in _NOT_APPLIED,
        transient=transient,
    )


# What to do about an error whose code alone does not say it. The service's own words are not
# repeated: those about a wrong signature hold the session token.
_HINTS = {
    "AccessDeniedException": "the function's role needs dynamodb:{operation} on this table",
    "ResourceNotFoundException": "there is no such table in this Region",
    "ValidationException": "the table's partition key must be id, a string, with no sort key",
    "ExpiredTokenException": "the function's credentials have expired",
    "UnrecognizedClientException": "the function's credentials are not valid",
    "InvalidSignatureException": "the function's secret key is wrong, or its clock is",
}
