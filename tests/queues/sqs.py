"""Queues of a local SQS, each with a dead-letter queue."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.aws import boto_client

# The most that SQS takes and gives in one request.
PAGE = 10
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

Message = Mapping[str, Any]


class Order(NamedTuple):
    """A message to send. ``plan`` is what is to go wrong with it, see functions/orders.py."""

    number: int
    group: str | None = None
    plan: Mapping[str, object] = {}

    @property
    def body(self) -> str:
        return json.dumps({"number": self.number, **self.plan})


class Queue:
    """A queue that moves a message to its dead-letter queue after ``receives`` receives in vain."""

    def __init__(
        self, endpoint: str, *, visibility_s: int, receives: int, fifo: bool = False
    ) -> None:
        self.fifo = fifo
        self._sqs = boto_client(endpoint, "sqs")
        name = f"orders-{uuid.uuid4().hex}"
        self._dead = self._create(f"{name}-dead", {})
        redrive = {"deadLetterTargetArn": self._arn(self._dead), "maxReceiveCount": receives}
        self._url = self._create(
            name,
            {"VisibilityTimeout": str(visibility_s), "RedrivePolicy": json.dumps(redrive)},
        )
        self.arn = self._arn(self._url)

    def send(self, orders: Sequence[Order]) -> set[str]:
        """Send in this order; the ids that the messages got."""
        ids = set()
        for start in range(0, len(orders), PAGE):
            entries = [self._entry(each) for each in orders[start : start + PAGE]]
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=entries)
            assert not answer.get("Failed")
            ids |= {each["MessageId"] for each in answer["Successful"]}
        return ids

    def receive(self, most: int) -> list[Message]:
        """At most ``most`` messages, asked for until there are enough, or none are left."""
        found: list[Message] = []
        while len(found) < most:
            page = self._receive(self._url, min(PAGE, most - len(found)))
            if not page:
                break
            found += page
        return found

    def delete(self, messages: Iterable[Message]) -> None:
        """Delete; one that has been deleted already is no error."""
        every = list(messages)
        for start in range(0, len(every), PAGE):
            entries = [
                {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
                for number, each in enumerate(every[start : start + PAGE])
            ]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def is_empty(self) -> bool:
        """Whether it holds no message, not even one under way."""
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["All"])
        return not any(int(answer["Attributes"][name]) for name in _COUNTS)

    def dead_letters(self) -> list[Message]:
        """Everything in the dead-letter queue."""
        found: list[Message] = []
        while page := self._receive(self._dead, PAGE):
            found += page
        return found

    def _receive(self, url: str, most: int) -> list[Message]:
        answer = self._sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=most,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def _entry(self, order: Order) -> dict[str, str]:
        entry = {"Id": str(order.number), "MessageBody": order.body}
        if order.group is not None:
            entry["MessageGroupId"] = order.group
            entry["MessageDeduplicationId"] = str(order.number)
        return entry

    def _create(self, name: str, attributes: Mapping[str, str]) -> str:
        kind = {"FifoQueue": "true"} if self.fifo else {}
        answer = self._sqs.create_queue(
            QueueName=f"{name}.fifo" if self.fifo else name, Attributes={**kind, **attributes}
        )
        return str(answer["QueueUrl"])

    def _arn(self, url: str) -> str:
        answer = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])
