"""Each source in the real emulator: an event, its redelivery, and a different one."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.sources import events
from tests.sources.events import request
from tests.support.aws import items
from tests.support.emulator import Emulator
from tests.support.processes import LocalServer

APP = """
import os

def handler(event, context):
    with open(os.environ["BOOK"], "a") as book:
        book.write("run\\n")
    with open(os.environ["BOOK"]) as book:
        run = len(book.readlines())
    return {"statusCode": 201, "body": f"run {run}"}
"""


class Delivery(NamedTuple):
    """Three events of one source, and whether its answer is the handler's own."""

    original: Any
    redelivery: Any
    different: Any
    answers: bool = True


def edited(event: Any, edit: Callable[[Any], object]) -> Any:
    event = copy.deepcopy(event)
    edit(event)
    return event


def sqs() -> Delivery:
    event = events.sqs('{"orderId": 7}')

    def redeliver(event: Any) -> None:
        record = event["Records"][0]
        record["receiptHandle"] = "another"
        record["attributes"] |= {"ApproximateReceiveCount": "2"}

    other = edited(event, lambda event: event["Records"][0].update(messageId="another"))
    # A batch source gets its own answer when nothing is left to do.
    return Delivery(event, edited(event, redeliver), other, answers=False)


def eventbridge() -> Delivery:
    event = events.sample("cloudwatch/scheduled-event")
    return Delivery(event, {**event, "time": "later"}, {**event, "id": "another"})


def http(shape: str) -> Delivery:
    # Both shapes of the load balancer are one target group, so each has a key of its own.
    event = request(shape, idempotency_key=f"7-{shape}", x_amzn_trace_id="one")
    again = request(shape, Idempotency_Key=f'"7-{shape}"', x_amzn_trace_id="two")
    again["requestContext"] |= {"requestId": "another", "requestTimeEpoch": 1, "timeEpoch": 1}
    return Delivery(event, again, request(shape, idempotency_key=f"8-{shape}"))


def direct() -> Delivery:
    event = {"orderId": 7, "lines": [{"sku": "a", "price": 1.0}]}
    again = {"lines": [{"price": 1, "sku": "a"}], "orderId": 7}
    return Delivery(event, again, {**event, "orderId": 8})


DELIVERIES = {
    "SQS": sqs(),
    "EventBridge": eventbridge(),
    "API Gateway v1": http("apigateway-v1"),
    "API Gateway v2": http("apigateway-v2"),
    "Function URL": http("function-url"),
    "ALB": http("alb"),
    "ALB with lists": http("alb-lists"),
    "direct": direct(),
}


class Function(NamedTuple):
    """A function under the layer, its book of runs, and how to see its records."""

    emulator: Emulator
    book: Path
    records: Callable[[], list[Any]]

    def runs(self) -> int:
        return len(self.book.read_text().splitlines()) if self.book.exists() else 0


@pytest.fixture
def start(
    layer_dir: Path, ministack: LocalServer, table: str, tmp_path: Path
) -> Iterator[Callable[..., Function]]:
    """Starts the function with these variables; ended after the test."""
    (tmp_path / "app.py").write_text(APP)
    book = tmp_path / "book.txt"
    running: list[Emulator] = []

    def start_it(**variables: str) -> Function:
        environment = {
            "BOOK": str(book),
            "IDEMPOTENCY_TABLE": table,
            "AWS_ENDPOINT_URL_DYNAMODB": ministack.endpoint,
            **variables,
        }
        emulator = Emulator(
            sys.executable, tmp_path, "app.handler", layer=layer_dir, environment=environment
        )
        running.append(emulator.__enter__())
        return Function(emulator, book, lambda: items(ministack.endpoint, table))

    yield start_it
    for emulator in running:
        emulator.__exit__(None, None, None)


def test_a_redelivery_is_answered_and_a_different_event_runs(
    start: Callable[..., Function],
) -> None:
    function = start()
    for name, delivery in DELIVERIES.items():
        before = function.runs()
        first = function.emulator.invoke(delivery.original)
        again = function.emulator.invoke(delivery.redelivery)
        assert function.runs() == before + 1, name
        other = function.emulator.invoke(delivery.different)
        assert function.runs() == before + 2, name
        assert first.error_type is again.error_type is other.error_type is None
        if delivery.answers:
            assert again.body == first.body != other.body, name
    assert len(function.records()) == 2 * len(DELIVERIES)


def test_plain_requests_leave_no_trace(start: Callable[..., Function]) -> None:
    function = start()
    for method in ("GET", "POST"):
        for shape in events.SHAPES:
            before = function.runs()
            bodies = [function.emulator.invoke(request(shape, method)).json() for _ in range(2)]
            assert bodies == [
                {"statusCode": 201, "body": f"run {before + 1}"},
                {"statusCode": 201, "body": f"run {before + 2}"},
            ]
    assert function.records() == []


def test_a_missing_key_is_a_400_or_the_error(start: Callable[..., Function]) -> None:
    function = start(IDEMPOTENCY_KEY="parse_json(body).orderId", IDEMPOTENCY_MISSING_KEY="fail")
    answer = function.emulator.invoke({**request("apigateway-v2"), "body": "{}"}).json()
    assert answer["statusCode"] == 400
    assert answer["headers"]["content-type"] == "application/problem+json"
    assert json.loads(answer["body"])["error"] == "IdempotencyKeyMissingError"
    reply = function.emulator.invoke({"body": "{}"})
    assert reply.error_type == "IdempotencyKeyMissingError"
    assert function.runs() == 0
    assert function.records() == []


def test_two_callers_with_one_key_have_two_answers(start: Callable[..., Function]) -> None:
    function = start()

    def order_of(subject: str) -> Any:
        event = request("apigateway-v2", idempotency_key="order-7")
        claims = {"iss": "https://issuer", "sub": subject, "jti": function.runs()}
        event["requestContext"]["authorizer"] = {"jwt": {"claims": claims}}
        return function.emulator.invoke(event).json()["body"]

    assert [order_of("jane"), order_of("john")] == ["run 1", "run 2"]
    assert [order_of("jane"), order_of("john")] == ["run 1", "run 2"]
    assert function.runs() == 2


def test_the_log_holds_no_payload_key_or_result(start: Callable[..., Function]) -> None:
    function = start()
    event = request("function-url", idempotency_key="m4rk3r")
    event["body"] = "m4rk3r"
    for _ in range(2):
        function.emulator.invoke(event)
    function.emulator.invoke(request("function-url", idempotency_key='"m4rk3r'))
    function.emulator.invoke(
        request("function-url", idempotency_key="m4rk3r", authorization="Bearer m4rk3r")
    )
    output = function.emulator.output()
    assert "outcome=replayed" in output
    assert output.count("outcome=key_missing") == 2
    assert "m4rk3r" not in output
    assert "run 1" not in output
