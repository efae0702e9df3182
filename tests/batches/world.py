"""A batch of lettered records, a store in a known state, and what became of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awslambdaric.lambda_runtime_client import LambdaRuntimeClient

from lambda_once.claims.services import Services
from lambda_once.config import Config
from lambda_once.engine import Engine
from lambda_once.errors import IdempotencyStoreError
from lambda_once.events.base import BatchSource
from lambda_once.events.registry import recognise
from lambda_once.keys.canonical import record_id
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Outcome, Record, StoredResult
from lambda_once.store.port import Refusal
from tests.support.memory_store import MemoryStore

START_MS = 1_800_000_000_000
TIMEOUT_MS = 60_000
ANOTHER = "another owner"
ARNS = {
    "SQS": "arn:aws:sqs:us-east-1:123456789012:orders",
    "SQS FIFO": "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
    "Kinesis": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "DynamoDB Streams": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01",
}
TOPIC_PARTITION = "orders-0"


def _sqs(letter: str, arn: str, group: str | None) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": "1"}
    if group is not None:
        attributes["MessageGroupId"] = group
    return {
        "messageId": letter,
        "receiptHandle": f"handle-{letter}",
        "body": letter,
        "attributes": attributes,
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }


def _kinesis(letter: str) -> dict[str, Any]:
    return {
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": f"shardId-000000000000:{letter}",
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::123456789012:role/x",
        "awsRegion": "us-east-1",
        "eventSourceARN": ARNS["Kinesis"],
        "kinesis": {"sequenceNumber": letter, "partitionKey": "p", "data": letter},
    }


def _dynamodb(letter: str) -> dict[str, Any]:
    return {
        "eventID": letter,
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {"SequenceNumber": letter, "Keys": {"id": {"S": letter}}},
        "eventSourceARN": ARNS["DynamoDB Streams"],
    }


def _kafka(letters: Sequence[str]) -> dict[str, Any]:
    return {
        "eventSource": "aws:kafka",
        "eventSourceArn": "arn:aws:kafka:us-east-1:123456789012:cluster/c/1",
        "bootstrapServers": "b-1:9092",
        "records": {
            TOPIC_PARTITION: [
                {"topic": "orders", "partition": 0, "offset": ord(letter), "value": letter}
                for letter in letters
            ]
        },
    }


def event_of(kind: str, batch: str) -> Any:
    """A batch event of a kind of source. ``batch`` has a letter a record, as in ``abc``.

    In a FIFO queue capital letters are of another group than small ones.
    """
    if kind == "Kafka":
        return _kafka(batch)
    if kind == "Kinesis":
        return {"Records": [_kinesis(letter) for letter in batch]}
    if kind == "DynamoDB Streams":
        return {"Records": [_dynamodb(letter) for letter in batch]}
    fifo = kind == "SQS FIFO"
    return {
        "Records": [
            _sqs(c, ARNS[kind], ("upper" if c.isupper() else "lower") if fifo else None)
            for c in batch
        ]
    }


def letters_in(event: Any) -> str:
    """The letters of the records of an event."""
    source = recognise(event)
    assert isinstance(source, BatchSource)
    return "".join(letter_of(each) for each in source.records(event))


def letter_of(each: Mapping[str, Any]) -> str:
    """The letter of one record."""
    if "kinesis" in each:
        return str(each["kinesis"]["data"])
    if "dynamodb" in each:
        return str(each["dynamodb"]["SequenceNumber"])
    return str(each.get("body") or each["value"])


def identifier(kind: str, letter: str) -> object:
    """What ``batchItemFailures`` calls the record."""
    if kind == "Kafka":
        return {"partition": TOPIC_PARTITION, "offset": ord(letter)}
    return letter


class StoreWithFaults(MemoryStore):
    """Refuses to claim the records whose ids are in ``throttled``."""

    def __init__(self) -> None:
        super().__init__()
        self.throttled: set[str] = set()
        self.requests = 0

    def claim(self, claim: Claim, now_ms: int, by_ms: int) -> Refusal | None:
        self.requests += 1
        if claim.id in self.throttled:
            raise IdempotencyStoreError("PutItem", "orders", "ThrottlingException", "slow down")
        return super().claim(claim, now_ms, by_ms)

    def complete(
        self, claim: Claim, result: StoredResult, expires_at_s: int, by_ms: int
    ) -> Refusal | None:
        self.requests += 1
        return super().complete(claim, result, expires_at_s, by_ms)


@dataclass
class Context:
    """As much of Lambda's context as is used."""

    world: World
    aws_request_id: str = "request"
    tenant_id: None = None

    def get_remaining_time_in_millis(self) -> int:
        return max(0, START_MS + TIMEOUT_MS - self.world.now)


@dataclass
class World:
    """One invocation's surroundings: a clock that moves only when told, a store, what was said."""

    kind: str
    config: Config
    now: int = START_MS
    store: StoreWithFaults = field(default_factory=StoreWithFaults)
    outcomes: list[Outcome] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    tokens: int = 0
    on_sleep: Callable[[World], None] | None = None

    def engine(self) -> Engine:
        return Engine(
            Services(
                config=self.config,
                store=self.store,
                now_ms=lambda: self.now,
                sleep=self._sleep,
                token=self._token,
                report=self.outcomes.append,
                marshal=LambdaRuntimeClient.marshaller.marshal_response,
            )
        )

    def _sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)
        if self.on_sleep is not None:
            self.on_sleep(self)

    def _token(self) -> str:
        self.tokens += 1
        return f"token-{self.tokens}"

    def record_id(self, event: Any, letter: str) -> str:
        """The id under which the record with this letter is stored."""
        source = recognise(event)
        assert isinstance(source, BatchSource)
        each = next(r for r in source.records(event) if letter_of(r) == letter)
        identity = source.record_identity(event, each)
        return record_id(self.config.scope, source.name, None, identity)

    def put(self, event: Any, letter: str, state: str) -> None:
        """Bring a record into a state: done, running (elsewhere) or throttled; or leave it new."""
        record_id = self.record_id(event, letter)
        if state == "throttled":
            self.store.throttled.add(record_id)
        if state == "done":
            self.store.records[record_id] = Record(
                record_id,
                COMPLETED,
                ANOTHER,
                0,
                START_MS // 1000 + 1_000,
                None,
                StoredResult("text", b"null"),
            )
        if state == "running":
            until = START_MS + 30_000
            expires = until // 1000 + 1_000
            self.store.records[record_id] = Record(
                record_id, IN_PROGRESS, ANOTHER, until, expires, None
            )

    def state(self, event: Any, letter: str) -> str:
        """What is stored for a record: new, done, running (elsewhere) or claimed (by us)."""
        found = self.store.records.get(self.record_id(event, letter))
        if found is None:
            return "new"
        if found.status == COMPLETED:
            return "done"
        return "running" if found.owner == ANOTHER else "claimed"

    def invoke(self, handler: Callable[[Any, Any], Any], event: Any) -> Any:
        """What the runtime would get, an answer or an exception; calls as the bootstrap does."""
        invocation = self.engine().open(event, Context(self))
        while (call := invocation.next_call()) is not None:
            self.seen.append(letters_in(call[0]))
            try:
                response = handler(call[0], None)
            except BaseException as fault:  # noqa: BLE001  as the bootstrap does
                if not invocation.failed(fault):
                    return fault
            else:
                invocation.succeeded(response)
        put_off = invocation.fault()
        return put_off if put_off is not None else invocation.answer()

    def kinds(self) -> list[str]:
        """The kinds of outcomes reported, in order."""
        return [outcome.kind for outcome in self.outcomes]


def world(kind: str = "SQS", **settings: Any) -> World:
    """A world with a configuration that differs from the default by ``settings``."""
    return World(kind, Config(table="orders", table_region=None, scope="orders", **settings))
