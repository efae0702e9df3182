"""The store in a DynamoDB table. The only module that speaks DynamoDB.

boto3 comes from the runtime or the user. It takes several times longer to import than all the rest,
so it is loaded at init, where Lambda gives a function a full core, and not at the first request.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from .blame import blame
from .errors import IdempotencyStoreError
from .quiet import quiet
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
    " OR (#status = :in_progress AND in_progress_until < :now_ms"
    # Only what we wrote may be replaced for its lease: see `_parse`.
    " AND attribute_type(#owner, :text) AND attribute_type(expires_at, :number))"
)
_OWNER_CONDITION = "#owner = :me AND #status = :in_progress"
_NAMES = {"#status": "status", "#owner": "owner"}


class Timeouts(NamedTuple):
    """How long one attempt may take: ms to connect, and ms to wait for the answer."""

    connect_ms: int
    read_ms: int


# The patient one is the rule. The others are for when little time is left.
_PATIENT = Timeouts(1_000, 2_000)
_TIERS = (_PATIENT, Timeouts(300, 500), Timeouts(75, 125), Timeouts(25, 50))

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
        self._session: Any = None
        self._clients: dict[Timeouts, Any] = {}
        self._lock = threading.Lock()

    def load_modules(self) -> None:
        """Import boto3. A snapshot may be taken after this: no client or socket is made.

        A fault is left to the first request, which meets it again and tells it.
        """
        with suppress(Exception):
            _load()

    def prepare(self) -> None:
        """Make the clients that requests will need; faults as in ``load_modules``."""
        with suppress(Exception), self._lock:
            for timeouts in _TIERS:
                self._client_for(timeouts)

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
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": {
                ":now": {"N": str(now_ms // 1000)},
                ":now_ms": {"N": str(now_ms)},
                ":in_progress": {"S": IN_PROGRESS},
                ":text": {"S": "S"},
                ":number": {"S": "N"},
            },
        }
        return self._write("PutItem", request, by_ms, ATTEMPTS, leave_half=True)

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
            raise self._foreign("GetItem", record.id, "result", "text or bytes")
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
        if item is None:
            detail = (
                f"of the {record.result.parts if record.result else 0} parts that the item"
                f" {record.id} has by its attribute parts, {part_id} is missing"
            )
            raise self._unusable("GetItem", detail)
        data = item.get("data", {}).get("B")
        if not isinstance(data, bytes):
            raise self._foreign("GetItem", part_id, "data", "bytes")
        return data

    def _get(self, item_id: str, by_ms: int) -> Mapping[str, Any] | None:
        request = {"Key": {"id": {"S": item_id}}, "ConsistentRead": True}
        answer = self._ask("GetItem", request, by_ms, ATTEMPTS)
        item: Mapping[str, Any] | None = answer.get("Item")
        return item

    def _write(
        self,
        operation: str,
        request: Mapping[str, Any],
        by_ms: int,
        attempts: int,
        *,
        leave_half: bool = False,
    ) -> Refusal | None:
        request = {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        answer = self._ask(operation, request, by_ms, attempts, leave_half=leave_half)
        if "Refused" not in answer:
            return None
        item = answer["Refused"]
        return Refusal(self._parse(operation, item) if item else None)

    def _ask(
        self,
        operation: str,
        request: Mapping[str, Any],
        by_ms: int,
        attempts: int,
        *,
        leave_half: bool = False,
    ) -> Mapping[str, Any]:
        """Send until answered, at most ``attempts`` times and never past ``by_ms``.

        A failed condition is an answer: ``{"Refused": item or None}``. ``leave_half`` keeps half of
        the time from being spent on repeating: a handler must not start with no time left.
        """
        failure = _Failure("DeadlineExceeded", "no time left for a request", False, False)
        maybe_applied = False
        for attempt in range(attempts):
            client = self._client(operation, by_ms)
            if client is None:
                break
            if leave_half and attempt == 0:
                now_ms = self._now_ms()
                by_ms = now_ms + (by_ms - now_ms) // 2
            answer = self._attempt(client, operation, request)
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
        self, client: Any, operation: str, request: Mapping[str, Any]
    ) -> Mapping[str, Any] | _Failure:
        from botocore.exceptions import ClientError

        send = getattr(client, _METHODS[operation])
        try:
            with quiet():
                answer: Mapping[str, Any] = send(
                    TableName=self._table,
                    ReturnConsumedCapacity="TOTAL",
                    **_known(client, operation, request),
                )
        except ClientError as fault:
            return _refusal_or_failure(fault.response)
        except Exception as fault:  # noqa: BLE001  boto3 is the user's: it may raise anything
            failure = _failure_without_answer(fault)
            if not failure.transient:
                self._forget_clients()
            return failure
        if "ConsumedCapacity" not in answer:
            # DynamoDB always says what it was asked to say: something else has answered.
            return _Failure("UnreadableAnswer", "the answer is not DynamoDB's", True, True)
        return answer

    def _client(self, operation: str, by_ms: int) -> Any | None:
        """A client that comes back by ``by_ms``; None if there is no time left.

        Making one can take long where init could not, so the time is looked at again after it.
        """
        with self._lock:
            while (timeouts := self._timeouts(by_ms)) is not None:
                if timeouts in self._clients:
                    return self._clients[timeouts]
                try:
                    self._client_for(timeouts)
                except Exception as fault:
                    raise self._no_client(operation, fault) from fault
        return None

    def _client_for(self, timeouts: Timeouts) -> None:
        """Make the client with these timeouts, if there is none yet. Holding the lock."""
        if timeouts not in self._clients:
            self._session = self._session or _new_session(self._region)
            self._clients[timeouts] = _new_client(self._session, timeouts)

    def _forget_clients(self) -> None:
        """A client keeps the credentials that it found, or did not find: begin anew."""
        with self._lock:
            self._session = None
            self._clients.clear()

    def _no_client(self, operation: str, fault: Exception) -> IdempotencyStoreError:
        """boto3 is the user's or the runtime's: say which file made it fail."""
        detail = f"no DynamoDB client could be made from boto3: {fault}{blame(fault)}"
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
        fingerprint = item.get("fingerprint", {"S": None})
        if "S" not in fingerprint:
            raise self._foreign(operation, record_id, "fingerprint", "a text")
        result = self._parse_result(operation, record_id, item) if status == COMPLETED else None
        return Record(
            record_id, status, owner, lease or 0, expires_at or 0, fingerprint["S"], result
        )

    def _parse_result(
        self, operation: str, record_id: str, item: Mapping[str, Any]
    ) -> StoredResult:
        encoding = item.get("encoding", {}).get("S")
        if encoding not in _ENCODINGS:
            raise self._foreign(operation, record_id, "encoding", "one that this version knows")
        parts = _whole(item.get("parts"))
        if parts is None or parts < 0:
            raise self._foreign(operation, record_id, "parts", "a number of parts")
        value = item.get("result", {})
        body = value["S"].encode("utf-8") if "S" in value else value.get("B")
        if not isinstance(body, bytes):
            raise self._foreign(operation, record_id, "result", "text or bytes")
        return StoredResult(encoding, body, parts)

    def _foreign(
        self, operation: str, item_id: str, attribute: str, expected: str
    ) -> IdempotencyStoreError:
        detail = (
            f"the item {item_id} was not written by lambda-once: its attribute {attribute}"
            f" is not {expected}; nothing was changed"
        )
        return self._unusable(operation, detail)

    def _unusable(self, operation: str, detail: str) -> IdempotencyStoreError:
        return IdempotencyStoreError(
            operation, self._table, "ForeignRecord", detail, may_have_run=True
        )


_METHODS = {
    "PutItem": "put_item",
    "GetItem": "get_item",
    "UpdateItem": "update_item",
    "DeleteItem": "delete_item",
}

_ENCODINGS = frozenset({"text", "bytes", "text+zlib", "bytes+zlib", "omitted"})


def _load() -> None:
    with quiet():
        import boto3.session  # noqa: F401  loaded for later
        import botocore.config
        import botocore.exceptions  # noqa: F401  loaded for later


def _new_session(region: str | None) -> Any:
    import boto3

    with quiet():
        return boto3.session.Session(region_name=region or os.environ.get("AWS_REGION"))


def _new_client(session: Any, timeouts: Timeouts) -> Any:
    from botocore.config import Config

    config = Config(
        connect_timeout=timeouts.connect_ms / 1000,
        read_timeout=timeouts.read_ms / 1000,
        # Repeating is ours: it knows the deadline and what a repeated write means.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=CONNECTIONS,
        user_agent_extra="lambda-once",
    )
    with quiet():
        return session.client("dynamodb", config=config)


def _known(client: Any, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request as an older botocore takes it: it returns no old item, which is then read."""
    optional = "ReturnValuesOnConditionCheckFailure"  # botocore 1.29.165, June 2023
    members = client.meta.service_model.operation_model(operation).input_shape.members
    if optional in members:
        return request
    return {name: value for name, value in request.items() if name != optional}


def _part_id(record_id: str, owner: str, number: int) -> str:
    return f"{record_id}#{owner}#{number}"


def _body_value(result: StoredResult) -> dict[str, Any]:
    """Short text as text, so that an operator can read it; everything else as bytes."""
    if result.encoding == "text" and not result.parts:
        return {"S": result.body.decode("utf-8")}
    return {"B": result.body}


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


def _failure_without_answer(fault: Exception) -> _Failure:
    """What an exception in the place of an answer means: whether the request can have arrived."""
    from botocore import exceptions

    code, detail = type(fault).__name__, str(fault)
    if isinstance(fault, exceptions.SSLError):
        return _Failure(code, detail, True, True)  # in the handshake, or in the middle of it all
    if isinstance(fault, exceptions.ConnectionError):
        return _Failure(code, detail, True, False)  # there was no connection
    if isinstance(fault, exceptions.BotoCoreError) and not isinstance(
        fault, exceptions.HTTPClientError
    ):
        return _Failure(code, detail, False, False)  # no credentials, no region: never sent
    # The connection broke, or the answer could not even be parsed.
    return _Failure(code, detail, True, True)
