"""Records as DynamoDB items: attributes, conditions, and how an item is known to be ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import IdempotencyStoreError
from ..record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult

Item = Mapping[str, Any]
Request = dict[str, Any]

# A result longer than this lies in items of its own: every duplicate's refused write is billed by
# the size of the item that it met.
MAX_INLINE_BYTES = 32 * 1024
# An item may have 400 KB, its attribute names included.
MAX_PART_BYTES = 390_000

_CLAIM_CONDITION = (
    "attribute_not_exists(id) OR expires_at < :now"
    " OR (#status = :in_progress AND in_progress_until < :now_ms"
    # Only what we wrote may be replaced for its lease: see ``Items.record``.
    " AND attribute_type(#owner, :text) AND attribute_type(expires_at, :number))"
)
_OWNER_CONDITION = "#owner = :me AND #status = :in_progress"
_COMPLETION = (
    "SET #status = :completed, expires_at = :expires_at, #result = :result,"
    " #encoding = :encoding, #parts = :parts REMOVE in_progress_until"
)
_NAMES = {"#status": "status", "#owner": "owner"}
_RESULT_NAMES = {"#result": "result", "#encoding": "encoding", "#parts": "parts"}

_ENCODINGS = frozenset({"text", "bytes", "text+zlib", "bytes+zlib", "omitted"})


class Items:
    """The requests about the records of one table, and the records in its items.

    A request holds all but what each attempt adds. An item that we did not write is an
    IdempotencyStoreError that names it and says why.
    """

    def __init__(self, table: str) -> None:
        self._table = table

    def claim(self, claim: Claim, now_ms: int) -> Request:
        """PutItem: write the claim where no live record stands. See ``protocol.has_ended``."""
        item = {
            "id": {"S": claim.id},
            "status": {"S": IN_PROGRESS},
            "owner": {"S": claim.owner},
            "in_progress_until": {"N": str(claim.lease_until_ms)},
            "expires_at": {"N": str(claim.expires_at_s)},
        }
        if claim.fingerprint:
            item["fingerprint"] = {"S": claim.fingerprint}
        values = {
            ":now": {"N": str(now_ms // 1000)},
            ":now_ms": {"N": str(now_ms)},
            ":in_progress": {"S": IN_PROGRESS},
            ":text": {"S": "S"},
            ":number": {"S": "N"},
        }
        return {"Item": item, **self._condition(_CLAIM_CONDITION, _NAMES, values)}

    def completion(self, claim: Claim, result: StoredResult, expires_at_s: int) -> Request:
        """UpdateItem: turn the owner's claim into a completed record."""
        values = {
            ":me": {"S": claim.owner},
            ":in_progress": {"S": IN_PROGRESS},
            ":completed": {"S": COMPLETED},
            ":expires_at": {"N": str(expires_at_s)},
            ":result": _body_value(result),
            ":encoding": {"S": result.encoding},
            ":parts": {"N": str(result.parts)},
        }
        return {
            **self._key(claim.id),
            "UpdateExpression": _COMPLETION,
            **self._condition(_OWNER_CONDITION, {**_NAMES, **_RESULT_NAMES}, values),
        }

    def release(self, claim: Claim) -> Request:
        """DeleteItem: give the owner's claim back."""
        values = {":me": {"S": claim.owner}, ":in_progress": {"S": IN_PROGRESS}}
        return {**self._key(claim.id), **self._condition(_OWNER_CONDITION, _NAMES, values)}

    def read(self, item_id: str) -> Request:
        """GetItem: the item as it is now."""
        return {**self._key(item_id), "ConsistentRead": True}

    def parts(self, claim: Claim, result: StoredResult, expires_at_s: int) -> list[Request]:
        """PutItem for each part of a long result.

        No condition is needed: the ids hold the owner's token, so nobody else writes them.
        """
        starts = range(0, len(result.body), MAX_PART_BYTES)
        return [
            {
                "Item": {
                    "id": {"S": part_id(claim.id, claim.owner, number)},
                    "expires_at": {"N": str(expires_at_s)},
                    "data": {"B": result.body[start : start + MAX_PART_BYTES]},
                }
            }
            for number, start in enumerate(starts)
        ]

    def part(self, record: Record, number: int, item: Item | None) -> bytes:
        """The content of a part of the record's result, from its item."""
        name = part_id(record.id, record.owner, number)
        if item is None:
            detail = (
                f"of the {record.result.parts if record.result else 0} parts that the item"
                f" {record.id} has by its attribute parts, {name} is missing"
            )
            raise self._unusable("GetItem", detail)
        data = item.get("data", {}).get("B")
        if not isinstance(data, bytes):
            raise self.foreign("GetItem", name, "data", "bytes")
        return data

    def record(self, operation: str, item: Item) -> Record:
        """The record in an item that ``operation`` returned."""
        record_id = str(item.get("id", {}).get("S", ""))
        status = item.get("status", {}).get("S")
        if status not in (IN_PROGRESS, COMPLETED):
            raise self.foreign(operation, record_id, "status", f"{IN_PROGRESS} or {COMPLETED}")
        owner = item.get("owner", {}).get("S")
        if not owner:
            raise self.foreign(operation, record_id, "owner", "a text")
        lease = 0
        if status == IN_PROGRESS:
            lease = self._number(operation, record_id, item, "in_progress_until")
        expires_at = self._number(operation, record_id, item, "expires_at")
        fingerprint = item.get("fingerprint", {"S": None})
        if "S" not in fingerprint:
            raise self.foreign(operation, record_id, "fingerprint", "a text")
        result = self._result(operation, record_id, item) if status == COMPLETED else None
        return Record(record_id, status, owner, lease, expires_at, fingerprint["S"], result)

    def foreign(
        self, operation: str, item_id: str, attribute: str, expected: str
    ) -> IdempotencyStoreError:
        """The error for an item that is not ours."""
        detail = (
            f"the item {item_id} was not written by lambda-once: its attribute {attribute}"
            f" is not {expected}; nothing was changed"
        )
        return self._unusable(operation, detail)

    def _key(self, item_id: str) -> Request:
        return {"Key": {"id": {"S": item_id}}}

    def _condition(self, text: str, names: Mapping[str, str], values: Item) -> Request:
        return {
            "ConditionExpression": text,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _number(self, operation: str, record_id: str, item: Item, name: str) -> int:
        number = _whole(item.get(name))
        if number is None:
            raise self.foreign(operation, record_id, name, "a whole number")
        return number

    def _result(self, operation: str, record_id: str, item: Item) -> StoredResult:
        encoding = item.get("encoding", {}).get("S")
        if encoding not in _ENCODINGS:
            raise self.foreign(operation, record_id, "encoding", "one that this version knows")
        parts = _whole(item.get("parts"))
        if parts is None or parts < 0:
            raise self.foreign(operation, record_id, "parts", "a number of parts")
        value = item.get("result", {})
        body = value["S"].encode("utf-8") if "S" in value else value.get("B")
        if not isinstance(body, bytes):
            raise self.foreign(operation, record_id, "result", "text or bytes")
        return StoredResult(encoding, body, parts)

    def _unusable(self, operation: str, detail: str) -> IdempotencyStoreError:
        return IdempotencyStoreError(
            operation, self._table, "ForeignRecord", detail, may_have_run=True
        )


def part_id(record_id: str, owner: str, number: int) -> str:
    """The id of the item that holds a part of a result."""
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
