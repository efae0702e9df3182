"""The errors callers and operators see.

Lambda reports the bare class name as ``errorType``, so these names are part of the public
interface. What an error knows is kept as attributes; the message is made from them and never
holds a payload, a key's text or a result.
"""

from __future__ import annotations


class IdempotencyError(Exception):
    """Base of everything lambda-once raises itself."""


class IdempotencyConfigError(IdempotencyError):
    """The environment variables are wrong; ``faults`` has one sentence for each."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        self.faults = faults
        listed = "".join(f"\n  - {fault}" for fault in faults)
        super().__init__(f"lambda-once cannot start, its configuration is wrong:{listed}")


class IdempotencyKeyMissingError(IdempotencyError):
    """The event holds no idempotency key; ``reason`` says which part was missing, not its text."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The event holds no idempotency key: {reason}")


class IdempotencyInProgressError(IdempotencyError):
    """Another invocation holds the claim until ``until_ms`` (epoch milliseconds)."""

    def __init__(self, record_id: str, until_ms: int, now_ms: int) -> None:
        self.record_id = record_id
        self.until_ms = until_ms
        self.retry_after_s = max(1, -(-(until_ms - now_ms) // 1000))
        super().__init__(
            f"The same request is being processed by another invocation (record {record_id});"
            f" its claim ends in {self.retry_after_s} s at the latest"
        )


class IdempotencyPayloadMismatchError(IdempotencyError):
    """The idempotency key was used before, with a different payload."""

    def __init__(self, record_id: str) -> None:
        self.record_id = record_id
        super().__init__(
            f"The idempotency key was already used with a different payload (record {record_id})"
        )


class IdempotencyStoreError(IdempotencyError):
    """The store did not do what was asked.

    ``operation`` and ``code`` are the service's own names, ``table`` the configured table.
    ``maybe_applied`` is true where the request may have taken effect although no answer came.
    ``may_have_run`` is true where a record stood in the way: the handler has run or is running, so
    this is not a fault to run it without protection for.
    """

    def __init__(
        self,
        operation: str,
        table: str,
        code: str,
        detail: str,
        *,
        maybe_applied: bool = False,
        may_have_run: bool = False,
    ) -> None:
        self.operation = operation
        self.table = table
        self.code = code
        self.detail = detail
        self.maybe_applied = maybe_applied
        self.may_have_run = may_have_run
        super().__init__(f"{operation} on table {table} failed: {code}: {detail}")


class IdempotencyBatchError(IdempotencyError):
    """Some records of a batch were not processed; the whole batch is to be delivered again.

    Records that are done stay done: they are dropped at the next delivery.
    """

    def __init__(self, blocked: int, total: int, first: BaseException) -> None:
        self.blocked = blocked
        self.total = total
        self.first = first
        super().__init__(
            f"{blocked} of {total} records were not processed;"
            f" the first because of {type(first).__name__}: {first}"
        )
