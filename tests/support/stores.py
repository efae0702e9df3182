"""The DynamoDB store over a table of a local server, with the real clock."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lambda_once.store.boto import BotoTransport
from lambda_once.store.dynamodb import DynamoDBStore
from tests.support.aws import CREDENTIALS, REGION, create_table

# Longer than any request of a test takes: contract tests are about answers, not about deadlines.
PATIENCE_MS = 60_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def deadline_ms() -> int:
    """A `by_ms` that leaves enough time."""
    return now_ms() + PATIENCE_MS


@contextmanager
def aws_environment(endpoint: str) -> Iterator[None]:
    """The standard variables through which a function's boto3 finds its DynamoDB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
        patch.setenv("AWS_REGION", REGION)
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield


def new_table(endpoint: str) -> str:
    """A table of its own for one test; its name."""
    name = f"idempotency-{uuid.uuid4().hex}"
    create_table(endpoint, name)
    return name


def dynamodb_store(table: str) -> DynamoDBStore:
    """To be used inside `aws_environment`: the client is made at the first request."""
    return DynamoDBStore(table, BotoTransport(None, now_ms), now_ms, time.sleep)
