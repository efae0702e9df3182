"""The store in a DynamoDB table. The only module that speaks DynamoDB.

boto3 comes from the runtime or the user and is imported at the first request: it takes several
times longer to import than all the rest, and a snapshot must hold no client or credential.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .errors import IdempotencyStoreError
from .record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult
from .store import Refusal

# A result longer than this lies in items of its own: every duplicate's refused write is billed by
# the size of the item that it met.
MAX_INLINE_BYTES = 32 * 1024
# An item may have 400 KB, its attribute names included.
MAX_PART_BYTES = 390_000

# As many as the widest batch asks for side by side.
CONNECTIONS = 16

ATTEMPTS = 4
COMPLETION_ATTEMPTS = 30
FIRST_PAUSE_MS = 50
LONGEST_PAUSE_MS = 1_000

_CLAIM_CONDITION = (
    "attribute_not_exists(id) OR expires_at < :now"
    " OR (#status = :in_progress AND in_progress_until < :now_ms)"
)
_OWNER_CONDITION = "#owner = :me AND #status = :in_progress"
_NAMES = {"#status": "status", "#owner": "owner"}


class Timeouts(NamedTuple):
    """How long one attempt may take: ms to connect, and ms to wait for the answer."""

    connect_ms: int
    read_ms: int


# The patient one is the rule. The others are for when little time is left.
_PATIENT = Timeouts(1_000, 2_000)
_TIERS = (_PATIENT, Timeouts(300, 500), Timeouts(75, 125))

# Codes after which the same request may succeed. Source: DynamoDB developer guide, error handling.
_TRANSIENT = frozenset(
    {
        "InternalServerError",
        "InternalFailure",
        "InternalServerErrorException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TransactionConflictException",
        "TransactionInProgressException",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
    }
)
# Of those, the codes that say for certain that nothing was written.
_REFUSED = frozenset(
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


class _Failure(NamedTuple):
    """One failed attempt, as far as it matters for the next."""

    code: str
    detail: str
    transient: bool
    maybe_applied: bool


class DynamoDBStore:
    """The store port over one table; safe to share between threads.

    ``region`` is None for the environment's own. ``now_ms`` is epoch ms, ``sleep`` takes seconds.
    """

    def __init__(
        self,
        table: str,
        region: str | None,
        now_ms: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        self._table = table
        self._region = region
        self._now_ms = now_ms
        self._sleep = sleep
        self._clients: dict[Timeouts, Any] = {}
        self._lock = threading.Lock()

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        """See the port. The condition is the one of ``protocol.has_ended``."""
        item = {
            "id": {"S": claim.id},
            "status": {"S": IN_PROGRESS},
            "owner": {"S": claim.owner},
            "in_progress_until": {"N": str(claim.lease_until_ms)},
            "expires_at": {"N": str(claim.expires_at_s)},
        }
        if claim.fingerprint:
            item["fingerprint"] = {"S": claim.fingerprint}
        request = {
            "Item": item,
            "ConditionExpression": _CLAIM_CONDITION,
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": {
                ":now": {"N": str(now_ms // 1000)},
                ":now_ms": {"N": str(now_ms)},
                ":in_progress": {"S": IN_PROGRESS},
            },
        }
        return self._write("PutItem", request, by_ms, ATTEMPTS)

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        """See the port. A long result's parts are written first, under the owner's token."""
        if len(result.body) > MAX_INLINE_BYTES:
            result = self._write_parts(claim, result, expires_at_s, by_ms)
        request = {
            "Key": {"id": {"S": claim.id}},
            "ConditionExpression": _OWNER_CONDITION,
            "UpdateExpression": (
                "SET #status = :completed, expires_at = :expires_at, #result = :result,"
                " #encoding = :encoding, #parts = :parts REMOVE in_progress_until"
            ),
            "ExpressionAttributeNames": {
                **_NAMES,
                "#result": "result",
                "#encoding": "encoding",
                "#parts": "parts",
            },
            "ExpressionAttributeValues": {
                ":me": {"S": claim.owner},
                ":in_progress": {"S": IN_PROGRESS},
                ":completed": {"S": COMPLETED},
                ":expires_at": {"N": str(expires_at_s)},
                ":result": _body_value(result),
                ":encoding": {"S": result.encoding},
                ":parts": {"N": str(result.parts)},
            },
        }
        return self._write("UpdateItem", request, by_ms, COMPLETION_ATTEMPTS)

    def release(self, claim: Claim, by_ms: int) -> Refusal | None:
        """See the port."""
        request = {
            "Key": {"id": {"S": claim.id}},
            "ConditionExpression": _OWNER_CONDITION,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": {
                ":me": {"S": claim.owner},
                ":in_progress": {"S": IN_PROGRESS},
            },
        }
        return self._write("DeleteItem", request, by_ms, ATTEMPTS)

    def read(self, record_id: str, by_ms: int) -> Record | None:
        """See the port."""
        item = self._get(record_id, by_ms)
        return None if item is None else self._parse("GetItem", item)

    def load(self, record: Record, by_ms: int) -> StoredResult:
        """See the port."""
        result = record.result
        if result is None:
            raise self._foreign("GetItem", record.id, "result", "a completed record's result")
        if not result.parts:
            return result
        parts = [self._read_part(record, number, by_ms) for number in range(result.parts)]
        return StoredResult(result.encoding, b"".join(parts))

    def _write_parts(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> StoredResult:
        """No condition is needed: the ids hold the owner's token, so nobody else writes them."""
        body = result.body
        starts = range(0, len(body), MAX_PART_BYTES)
        for number, start in enumerate(starts):
            item = {
                "id": {"S": _part_id(claim.id, claim.owner, number)},
                "expires_at": {"N": str(expires_at_s)},
                "data": {"B": body[start : start + MAX_PART_BYTES]},
            }
            self._ask("PutItem", {"Item": item}, by_ms, COMPLETION_ATTEMPTS)
        return StoredResult(result.encoding, b"", len(starts))

    def _read_part(self, record: Record, number: int, by_ms: int) -> bytes:
        part_id = _part_id(record.id, record.owner, number)
        item = self._get(part_id, by_ms)
        data = (item or {}).get("data", {}).get("B")
        if not isinstance(data, bytes):
            raise self._foreign("GetItem", part_id, "data", "a part of a stored result")
        return data

    def _get(self, item_id: str, by_ms: int) -> Mapping[str, Any] | None:
        request = {"Key": {"id": {"S": item_id}}, "ConsistentRead": True}
        answer = self._ask("GetItem", request, by_ms, ATTEMPTS)
        item: Mapping[str, Any] | None = answer.get("Item")
        return item

    def _write(
        self, operation: str, request: Mapping[str, Any], by_ms: int, attempts: int
    ) -> Refusal | None:
        request = {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        answer = self._ask(operation, request, by_ms, attempts)
        if "Refused" not in answer:
            return None
        item = answer["Refused"]
        return Refusal(self._parse(operation, item) if item else None)

    def _ask(
        self, operation: str, request: Mapping[str, Any], by_ms: int, attempts: int
    ) -> Mapping[str, Any]:
        """Send until answered, at most ``attempts`` times and never past ``by_ms``.

        A failed condition is an answer: ``{"Refused": item or None}``.
        """
        failure = _Failure("DeadlineExceeded", "no time left for a request", False, False)
        maybe_applied = False
        for attempt in range(attempts):
            timeouts = self._timeouts(by_ms)
            if timeouts is None:
                break
            answer = self._attempt(operation, request, timeouts)
            if not isinstance(answer, _Failure):
                return answer
            failure = answer
            maybe_applied = maybe_applied or failure.maybe_applied
            if not failure.transient or not self._pause(attempt, by_ms):
                break
        raise IdempotencyStoreError(
            operation, self._table, failure.code, failure.detail, maybe_applied=maybe_applied
        )

    def _timeouts(self, by_ms: int) -> Timeouts | None:
        """The most patient timeouts that cannot pass ``by_ms``."""
        left = by_ms - self._now_ms()
        return next((t for t in _TIERS if t.connect_ms + t.read_ms <= left), None)

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

    def _attempt(
        self, operation: str, request: Mapping[str, Any], timeouts: Timeouts
    ) -> Mapping[str, Any] | _Failure:
        client = self._client(operation, timeouts)
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.parsers import ResponseParserError

        send = getattr(client, _METHODS[operation])
        try:
            answer: Mapping[str, Any] = send(
                TableName=self._table, ReturnConsumedCapacity="TOTAL", **request
            )
        except ClientError as fault:
            return _refusal_or_failure(fault.response)
        except HTTPClientError as fault:
            return _Failure(type(fault).__name__, str(fault), True, True)
        except ResponseParserError as fault:
            return _Failure(type(fault).__name__, str(fault), True, True)
        except Exception as fault:  # noqa: BLE001  boto3 is the user's: it may raise anything
            # No credentials, no region, a bad endpoint: a BotoCoreError is raised before sending.
            sent = not isinstance(fault, BotoCoreError)
            return _Failure(type(fault).__name__, str(fault), False, sent)
        if "ConsumedCapacity" not in answer:
            # DynamoDB always says what it was asked to say: something else has answered.
            return _Failure("UnreadableAnswer", "the answer is not DynamoDB's", True, True)
        return answer

    def _client(self, operation: str, timeouts: Timeouts) -> Any:
        with self._lock:
            if timeouts not in self._clients:
                try:
                    self._clients[timeouts] = _new_client(self._region, timeouts)
                except Exception as fault:
                    raise self._no_client(operation, fault) from fault
            return self._clients[timeouts]

    def _no_client(self, operation: str, fault: Exception) -> IdempotencyStoreError:
        """boto3 is the user's or the runtime's: say which file made it fail."""
        import traceback

        frames = traceback.extract_tb(fault.__traceback__)
        where = f" (in {frames[-1].filename})" if frames else ""
        if isinstance(fault, ImportError) and fault.path:
            where = f" (in {fault.path})"
        detail = f"no DynamoDB client could be made from boto3: {fault}{where}"
        return IdempotencyStoreError(operation, self._table, type(fault).__name__, detail)

    def _parse(self, operation: str, item: Mapping[str, Any]) -> Record:
        """The record in an item; an item that we did not write is an error that says why."""
        record_id = str(item.get("id", {}).get("S", ""))
        status = item.get("status", {}).get("S")
        if status not in (IN_PROGRESS, COMPLETED):
            raise self._foreign(operation, record_id, "status", f"{IN_PROGRESS} or {COMPLETED}")
        owner = item.get("owner", {}).get("S")
        if not owner:
            raise self._foreign(operation, record_id, "owner", "a text")
        lease_name = "in_progress_until"
        lease = _whole(item.get(lease_name)) if status == IN_PROGRESS else 0
        expires_at = _whole(item.get("expires_at"))
        for name, number in (("expires_at", expires_at), (lease_name, lease)):
            if number is None:
                raise self._foreign(operation, record_id, name, "a whole number")
        result = _stored_result(item) if status == COMPLETED else None
        if status == COMPLETED and result is None:
            raise self._foreign(operation, record_id, "result", "a result in a known encoding")
        fingerprint = item.get("fingerprint", {}).get("S")
        return Record(record_id, status, owner, lease or 0, expires_at or 0, fingerprint, result)

    def _foreign(
        self, operation: str, item_id: str, attribute: str, expected: str
    ) -> IdempotencyStoreError:
        detail = (
            f"the item {item_id} was not written by lambda-once: its attribute {attribute}"
            f" is not {expected}; nothing was changed"
        )
        return IdempotencyStoreError(operation, self._table, "ForeignRecord", detail)


_METHODS = {
    "PutItem": "put_item",
    "GetItem": "get_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
}

_ENCODINGS = frozenset({"text", "bytes", "text+zlib", "bytes+zlib", "omitted"})


def _new_client(region: str | None, timeouts: Timeouts) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=timeouts.connect_ms / 1000,
        read_timeout=timeouts.read_ms / 1000,
        # Repeating is ours: it knows the deadline and what a repeated write means.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=CONNECTIONS,
        user_agent_extra="lambda-once",
    )
    session = boto3.session.Session(region_name=region or os.environ.get("AWS_REGION"))
    return session.client("dynamodb", config=config)


def _part_id(record_id: str, owner: str, number: int) -> str:
    return f"{record_id}#{owner}#{number}"


def _body_value(result: StoredResult) -> dict[str, Any]:
    """Short text as text, so that an operator can read it; everything else as bytes."""
    if result.encoding == "text" and not result.parts:
        return {"S": result.body.decode("utf-8")}
    return {"B": result.body}


def _stored_result(item: Mapping[str, Any]) -> StoredResult | None:
    encoding = item.get("encoding", {}).get("S")
    value = item.get("result", {})
    body = value["S"].encode("utf-8") if "S" in value else value.get("B")
    parts = _whole(item.get("parts"))
    if encoding not in _ENCODINGS or not isinstance(body, bytes) or parts is None:
        return None
    return StoredResult(encoding, body, parts)


def _whole(value: Mapping[str, str] | None) -> int | None:
    try:
        return int((value or {})["N"])
    except (KeyError, ValueError):
        return None


def _refusal_or_failure(response: Mapping[str, Any]) -> Mapping[str, Any] | _Failure:
    """What an error response means. The status decides where the code is unknown or missing."""
    error = response.get("Error", {})
    code = str(error.get("Code") or "Unknown")
    if code == "ConditionalCheckFailedException":
        return {"Refused": response.get("Item")}
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    transient = code in _TRANSIENT or status >= 500 or not code.isidentifier()
    maybe_applied = transient and code not in _REFUSED
    return _Failure(code, str(error.get("Message") or f"HTTP {status}"), transient, maybe_applied)
