"""A function under the layer, in this process: the real bootstrap, engine and store."""

from __future__ import annotations

import importlib.util
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.faults import app
from tests.support.aws import boto_client
from tests.support.paths import REPOSITORY

BOOTSTRAP = REPOSITORY / "wrapper" / "lambda_once_wrapper" / "bootstrap.py"
# What a busy machine may add between the end of a timer and the next line of code. An attempt that
# is not bounded by the deadline passes it by a whole read timeout, which is far more.
SCHEDULING_MS = 700
REMAINING_MS = 20_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_order() -> str:
    return f"order-{uuid.uuid4().hex}"


class Context:
    """Lambda's context object of an invocation that has so much time left."""

    def __init__(self, remaining_ms: int) -> None:
        self.aws_request_id = str(uuid.uuid4())
        self.deadline_ms = now_ms() + remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self.deadline_ms - now_ms())


class Answer(NamedTuple):
    """What the caller got: a result or an error; and how much time was left then."""

    result: Any
    error: BaseException | None
    left_ms: int


class Function:
    """One execution environment: the user's handler, loaded and wrapped by the bootstrap.

    The standard AWS variables are those of the process, as on Lambda.
    """

    def __init__(self, table: str, settings: Mapping[str, str]) -> None:
        self.table = table
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("_HANDLER", "")
            patch.setenv("LAMBDA_ONCE_HANDLER", f"{app.__name__}.handler")
            patch.setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
            patch.setenv("AWS_LAMBDA_LOG_FORMAT", "JSON")
            patch.setenv("AWS_LAMBDA_LOG_LEVEL", "DEBUG")
            patch.setenv("IDEMPOTENCY_TABLE", table)
            patch.setenv("IDEMPOTENCY_KEY", "orderId")
            for name, value in settings.items():
                patch.setenv(name, value)
            self._handler = _bootstrapped()

    def invoke(
        self,
        order: str,
        context: Context | None = None,
        *,
        remaining_ms: int = REMAINING_MS,
        **event: Any,
    ) -> Answer:
        """Invoke the handler as the runtime does."""
        given = context or Context(remaining_ms)
        answer = self.call(order, given, **event)
        return answer._replace(left_ms=given.deadline_ms - now_ms())

    def call(self, order: str, context: object, **event: Any) -> Answer:
        """Invoke the handler with a context that need not be Lambda's."""
        try:
            return Answer(self._handler({"orderId": order, **event}, context), None, 0)
        except BaseException as fault:  # noqa: BLE001  whatever it is, tests look at it
            return Answer(None, fault, 0)


def _bootstrapped() -> Callable[[Any, Any], Any]:
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", BOOTSTRAP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[[Any, Any], Any] = module.handler
    return handler


def in_time(answer: Answer) -> bool:
    """Whether the invocation ended by its deadline, but for what the machine's load adds."""
    return answer.left_ms > -SCHEDULING_MS


class Table:
    """The table behind the function, looked at past all faults."""

    def __init__(self, endpoint: str, name: str) -> None:
        self._client = boto_client(endpoint)
        self.name = name

    def item(self, record_id: str) -> dict[str, Any] | None:
        """One item in DynamoDB's own typed form."""
        answer = self._client.get_item(
            TableName=self.name, Key={"id": {"S": record_id}}, ConsistentRead=True
        )
        item: dict[str, Any] | None = answer.get("Item")
        return item

    def status(self, record_id: str) -> str:
        """The status of a record, or "absent"."""
        item = self.item(record_id)
        return "absent" if item is None else str(item["status"]["S"])

    def put(self, item: Mapping[str, Any]) -> None:
        self._client.put_item(TableName=self.name, Item=dict(item))

    def change(self, record_id: str, **values: Any) -> dict[str, Any]:
        """Give attributes of an item other typed values; None takes one away. The item then."""
        item = self.item(record_id)
        assert item is not None
        changed = {**item, **values}
        changed = {name: value for name, value in changed.items() if value is not None}
        self.put(changed)
        return changed

    def delete(self, record_id: str) -> None:
        self._client.delete_item(TableName=self.name, Key={"id": {"S": record_id}})


class Log:
    """What lambda-once has written to standard error, line by line."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self._lines: list[dict[str, Any]] = []

    def lines(self) -> list[dict[str, Any]]:
        """All lines since the last `clear` that tell of an outcome."""
        written = self._capture.readouterr().err.splitlines()
        entries = [json.loads(line) for line in written if line.startswith("{")]
        self._lines += [entry for entry in entries if "outcome" in entry]
        return self._lines

    def outcomes(self) -> list[str]:
        return [line["outcome"] for line in self.lines()]

    def clear(self) -> None:
        self.lines()
        self._lines = []
