"""Does for a queue what Lambda's event source mapping does, and has bad luck on purpose.

As Lambda does: it receives up to a batch of messages, invokes a free environment with them, and
deletes the batch if that succeeds. If it fails, or for the messages that the function reports, it
does nothing, and they come back when the queue's visibility timeout is over. Source: the Lambda
developer guide, "Using Lambda with Amazon SQS" and "Handling errors for an SQS event source".

As queues at times do: it delivers batches a second time, at once to another environment or when
they have long been deleted, and environments die at any moment.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.queues.sqs import Message, Queue
from tests.support.aws import REGION
from tests.support.emulator import Emulator, Reply

PAUSE_S = 0.05

# How a delivery ended.
SUCCEEDED = "succeeded"
REPORTED = "reported failures"
FAILED = "failed"
DIED = "died"


class Luck(NamedTuple):
    """At which of the queue's deliveries there is a mishap: each n-th one; 0 for never."""

    copied_at_once: int = 0
    copied_late: int = 0
    killed: int = 0


NO_MISHAPS = Luck()


@dataclass
class Delivery:
    """One invocation with one batch.

    ``of_queue`` counts what the queue gave us; a copy was not asked of it and has that number too.
    """

    number: int
    of_queue: int
    messages: Sequence[Message]
    copy: bool = False
    ending: str = ""


class Poller:
    """An event source mapping. ``reports`` is its setting ReportBatchItemFailures."""

    def __init__(self, queue: Queue, *, batch: int, reports: bool, luck: Luck = NO_MISHAPS) -> None:
        self.deliveries: dict[int, Delivery] = {}
        self._queue = queue
        self._batch = batch
        self._reports = reports
        self._luck = luck
        self._random = random.Random(batch)
        self._lock = threading.Lock()
        self._work = _Work()

    def run(self, environments: Sequence[Emulator], patience_s: float) -> None:
        """Deliver until the queue is empty and nothing is under way; TimeoutError if that fails."""
        end = time.monotonic() + patience_s
        threads = [
            threading.Thread(target=self._serve, args=(each, end), daemon=True)
            for each in environments
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._work.faults:
            raise self._work.faults[0]
        if not self._queue.is_empty():
            raise TimeoutError(f"the queue was not empty after {patience_s} s")

    def endings(self) -> Counter[str]:
        """How many deliveries ended how."""
        return Counter(each.ending for each in self.deliveries.values())

    def _serve(self, environment: Emulator, end: float) -> None:
        """Deliver to one environment."""
        try:
            while time.monotonic() < end and not self._work.faults:
                delivery = self._next()
                if delivery is not None:
                    self._deliver(environment, delivery)
                elif self._is_over():
                    return
                else:
                    time.sleep(PAUSE_S)
        except Exception as fault:  # noqa: BLE001  goes on in the thread that waits for this one
            self._work.faults.append(fault)

    def _next(self) -> Delivery | None:
        """A copy that waits, or else a batch from the queue."""
        with self._lock:
            if self._work.copies:
                self._work.under_way += 1
                return self._work.copies.pop(0)
            # Asked under the lock, so that nobody thinks it is over while a batch is on its way.
            messages = self._queue.receive(self._batch)
            if not messages:
                return None
            self._work.under_way += 1
            self._work.received += 1
            return self._numbered(self._work.received, messages)

    def _numbered(
        self, of_queue: int, messages: Sequence[Message], *, copy: bool = False
    ) -> Delivery:
        delivery = Delivery(len(self.deliveries) + 1, of_queue, messages, copy)
        self.deliveries[delivery.number] = delivery
        return delivery

    def _is_over(self) -> bool:
        with self._lock:
            idle = not self._work.under_way and not self._work.copies
            return idle and self._queue.is_empty()

    def _deliver(self, environment: Emulator, delivery: Delivery) -> None:
        if _is_due(delivery, self._luck.copied_at_once):
            self._copy(delivery)
        with self._death_if_due(environment, delivery):
            delivery.ending, done = self._invoke(environment, delivery)
        self._queue.delete(done)
        if _is_due(delivery, self._luck.copied_late):
            self._copy(delivery)
        with self._lock:
            self._work.under_way -= 1

    def _copy(self, delivery: Delivery) -> None:
        """Deliver the same batch once more; SQS promises each message at least once, not once."""
        with self._lock:
            copy = self._numbered(delivery.of_queue, delivery.messages, copy=True)
            self._work.copies.append(copy)

    @contextmanager
    def _death_if_due(self, environment: Emulator, delivery: Delivery) -> Iterator[None]:
        """Kill the environment's function, at a random moment of the invocation."""
        if not _is_due(delivery, self._luck.killed):
            yield
            return
        with self._lock:
            delay_s = self._random.uniform(0, self._work.usual_s * 1.2)
        timer = threading.Timer(delay_s, _kill_quietly, [environment])
        timer.start()
        yield
        timer.cancel()
        timer.join()

    def _invoke(self, environment: Emulator, delivery: Delivery) -> tuple[str, Sequence[Message]]:
        """How it ended, and the messages to delete."""
        event = {"Records": [record_of(each, self._queue.arn) for each in delivery.messages]}
        started = time.monotonic()
        try:
            reply = environment.invoke(event, headers=_client_context(delivery.number))
        except (OSError, http.client.HTTPException):
            return DIED, ()
        if has_died(reply):
            return DIED, ()
        if reply.error_type is not None:
            return FAILED, ()
        with self._lock:
            self._work.usual_s += (time.monotonic() - started - self._work.usual_s) / 4
        if not self._reports:
            return SUCCEEDED, delivery.messages
        failed = failed_in(reply.json(), [each["MessageId"] for each in delivery.messages])
        done = [each for each in delivery.messages if each["MessageId"] not in failed]
        return (REPORTED if failed else SUCCEEDED), done


@dataclass
class _Work:
    """What the threads of one poller share, under its lock."""

    copies: list[Delivery] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    under_way: int = 0
    received: int = 0
    # How long an invocation usually takes: a running mean.
    usual_s: float = 0.2


def _is_due(delivery: Delivery, every: int) -> bool:
    return bool(every) and not delivery.copy and delivery.of_queue % every == 0


def record_of(message: Message, queue_arn: str) -> dict[str, Any]:
    """A record of the event, as Lambda makes it of a message."""
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {
            name: _attribute(each) for name, each in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return record


def _attribute(value: Message) -> dict[str, Any]:
    attribute: dict[str, Any] = {
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value["DataType"],
    }
    if "StringValue" in value:
        attribute["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        attribute["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return attribute


def failed_in(answer: Any, message_ids: Sequence[str]) -> set[str]:
    """The messages that failed, as a mapping with ReportBatchItemFailures reads the answer.

    Nothing, null and an empty list mean that none did; whatever cannot be understood, and an id
    that is empty or not of the batch, mean that all did.
    """
    if answer in (None, {}):
        return set()
    if not isinstance(answer, dict):
        return set(message_ids)
    items = answer.get("batchItemFailures")
    if not items:
        return set()
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return set(message_ids)
    failed = {item.get("itemIdentifier") for item in items}
    return failed if failed <= set(message_ids) else set(message_ids)


def has_died(reply: Reply) -> bool:
    """Whether the environment ended before it could answer; the emulator's own answers say so."""
    return reply.status != 200 or b"Task timed out after" in reply.body


def _client_context(delivery: int) -> dict[str, str]:
    """Tells the function which delivery this is; the event itself stays as Lambda makes it."""
    context = json.dumps({"custom": {"delivery": str(delivery)}})
    return {"X-Amz-Client-Context": base64.b64encode(context.encode()).decode()}


def _kill_quietly(environment: Emulator) -> None:
    """Kill the function, unless it died by itself just now."""
    try:
        environment.kill_function()
    except (TimeoutError, ProcessLookupError):
        return
