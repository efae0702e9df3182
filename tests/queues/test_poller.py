"""The poller reads a function's answer as Lambda's event source mapping does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.queues.poller import failed_in, record_of
from tests.queues.sqs import Message
from tests.support.paths import SAMPLE_EVENTS

IDS = ["a", "b", "c"]


def items(*identifiers: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in identifiers]}


@pytest.mark.parametrize("answer", [None, {}, items(), {"batchItemFailures": None}])
def test_nothing_null_and_an_empty_list_mean_success(answer: Any) -> None:
    assert failed_in(answer, IDS) == set()


def test_reported_messages_failed() -> None:
    assert failed_in(items("a", "c"), IDS) == {"a", "c"}


@pytest.mark.parametrize(
    "answer",
    [
        items("a", "unknown"),
        items("a", ""),
        items(None),
        {"batchItemFailures": [{"identifier": "a"}]},
        {"batchItemFailures": "a"},
        "done",
    ],
)
def test_what_cannot_be_understood_fails_the_whole_batch(answer: Any) -> None:
    assert failed_in(answer, IDS) == set(IDS)


def test_a_record_has_the_members_of_lambdas_own_sample() -> None:
    message: Message = {
        "MessageId": "a",
        "ReceiptHandle": "handle",
        "MD5OfBody": "0" * 32,
        "Body": "{}",
        "Attributes": {"ApproximateReceiveCount": "1"},
    }
    sample = (SAMPLE_EVENTS / "sqs" / "Sqs.json").read_text()
    assert all(f'"{member}"' in sample for member in record_of(message, "arn"))
