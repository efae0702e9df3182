"""template.yaml stands on a local CloudFormation, and its samples run with what it gives them.

The functions run in the runtime emulator, with the variables of the deployed configuration and the
deployed table.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.support.aws import items
from tests.support.emulator import Emulator
from tests.support.paths import LAYER_ZIP, REPOSITORY
from tests.template import sam
from tests.template.stack import NAME, Stack, deployed

pytestmark = pytest.mark.skipif(not sam.is_installed(), reason=sam.MISSING)

SAMPLES = ("orders", "http", "queue", "events")


@pytest.fixture(scope="module")
def stack(layer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with deployed(tmp_path_factory.mktemp("home"), Samples="yes", Scopes="a,b") as stack:
        yield stack


def sample(stack: Stack, name: str, layer: Path, tmp_path: Path) -> Emulator:
    """A deployed sample function, in the emulator."""
    configuration = stack.configuration(name)
    variables = dict(configuration["Environment"]["Variables"])
    assert variables.pop("AWS_LAMBDA_EXEC_WRAPPER") == "/opt/lambda-once"
    return Emulator(
        sys.executable,
        REPOSITORY / "demo" / "functions" / name,
        configuration["Handler"],
        layer=layer,
        environment={
            **variables,
            "AWS_LAMBDA_FUNCTION_NAME": configuration["FunctionName"],
            "AWS_ENDPOINT_URL_DYNAMODB": stack.endpoint,
            "ORDERS_BOOK": str(tmp_path / "book.txt"),
        },
        timeout_s=configuration["Timeout"],
    )


def http_request(key: str, caller: str) -> dict[str, Any]:
    """POST /orders as an HTTP API with IAM credentials hands it over."""
    return {
        "version": "2.0",
        "routeKey": "POST /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "idempotency-key": key},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "domainName": "api.execute-api.eu-west-1.amazonaws.com",
            "authorizer": {"iam": {"userArn": f"arn:aws:iam::123456789012:user/{caller}"}},
            "http": {"method": "POST", "path": "/orders", "sourceIp": "192.0.2.1"},
            "requestId": "id",
            "stage": "$default",
            "timeEpoch": 1_800_000_000_000,
        },
        "body": json.dumps({"item": "tea", "amount": 4.5}),
        "isBase64Encoded": False,
    }


def message(number: str, body: dict[str, str]) -> dict[str, Any]:
    """One message as an event source mapping hands it over."""
    return {
        "messageId": number,
        "receiptHandle": f"handle-{number}",
        "body": json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{NAME}",
        "awsRegion": "eu-west-1",
    }


def test_the_layer_is_the_built_zip_and_every_sample_has_it(stack: Stack) -> None:
    arn = stack.outputs["LayerArn"]
    content = stack.client("lambda").get_layer_version_by_arn(Arn=arn)["Content"]
    digest = hashlib.sha256(LAYER_ZIP.read_bytes()).digest()
    assert content["CodeSha256"] == base64.b64encode(digest).decode()
    for name in SAMPLES:
        assert [layer["Arn"] for layer in stack.configuration(name)["Layers"]] == [arn]


def test_the_table_is_protected_from_deletion(stack: Stack) -> None:
    table = stack.client("dynamodb").describe_table(TableName=stack.outputs["TableName"])["Table"]
    assert str(table["DeletionProtectionEnabled"]).lower() == "true"
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_the_policy_opens_the_records_of_each_scope_and_no_others(stack: Stack) -> None:
    (statement,) = stack.policy(stack.outputs["PolicyArn"])["Statement"]
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["a#*", "b#*"]}
    }


def test_the_queue_reports_failures_and_waits_six_times_the_timeout(stack: Stack) -> None:
    (mapping,) = stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    queue = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.outputs["QueueUrl"], AttributeNames=["All"]
    )["Attributes"]
    assert queue["QueueArn"] == mapping["EventSourceArn"]
    assert int(queue["VisibilityTimeout"]) == 6 * stack.configuration("queue")["Timeout"]
    assert int(json.loads(queue["RedrivePolicy"])["maxReceiveCount"]) >= 3


def test_the_dashboard_shows_the_table_that_was_deployed(stack: Stack) -> None:
    cloudwatch = stack.client("cloudwatch")
    (entry,) = cloudwatch.list_dashboards()["DashboardEntries"]
    body = cloudwatch.get_dashboard(DashboardName=entry["DashboardName"])["DashboardBody"]
    shown = json.dumps(json.loads(body))
    assert stack.outputs["TableName"] in shown
    assert "${" not in shown


def test_the_orders_sample_replays_an_order(stack: Stack, layer_dir: Path, tmp_path: Path) -> None:
    event = {"orderId": "1001", "amount": 49.9}
    with sample(stack, "orders", layer_dir, tmp_path) as function:
        first, again = function.invoke(event), function.invoke(event)
    assert first.json()["receipt"] == "R-1"
    assert again.body == first.body


def test_the_http_sample_replays_for_its_caller_alone(
    stack: Stack, layer_dir: Path, tmp_path: Path
) -> None:
    with sample(stack, "http", layer_dir, tmp_path) as function:
        first, again, other = (
            function.invoke(http_request("key-1", caller)).json()
            for caller in ("ann", "ann", "bob")
        )
    assert first["statusCode"] == 201
    assert again["body"] == first["body"]
    assert again["headers"]["Idempotency-Replayed"] == "true"
    assert other["body"] != first["body"]


def test_the_queue_sample_reports_the_one_message_that_fails(
    stack: Stack, layer_dir: Path, tmp_path: Path
) -> None:
    good, bad = {"orderId": "1", "address": "1 Main Street"}, {"orderId": "2"}
    batch = {"Records": [message("m1", good), message("m2", bad)]}
    with sample(stack, "queue", layer_dir, tmp_path) as function:
        answers = [function.invoke(batch).json() for _ in range(2)]
        said = function.output()
    assert answers == [{"batchItemFailures": [{"itemIdentifier": "m2"}]}] * 2
    assert said.count("shipped 1") == 1


def test_the_events_sample_sends_one_letter(stack: Stack, layer_dir: Path, tmp_path: Path) -> None:
    event = {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "account": "123456789012",
        "source": "lambda-once.samples",
        "detail-type": "New customer",
        "region": "eu-west-1",
        "time": "2026-12-07T12:00:00Z",
        "resources": [],
        "detail": {"email": "ann@example.com"},
    }
    with sample(stack, "events", layer_dir, tmp_path) as function:
        first, again = function.invoke(event), function.invoke(event)
        said = function.output()
    assert again.body == first.body
    assert said.count("welcomed ann@example.com") == 1


def test_all_records_of_the_samples_are_open_to_them_by_policy(
    stack: Stack, layer_dir: Path, tmp_path: Path
) -> None:
    iam = stack.client("iam")
    role = stack.configuration("orders")["Role"].rpartition("/")[2]
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    (arn,) = [each["PolicyArn"] for each in attached if "SamplePolicy" in each["PolicyArn"]]
    (statement,) = stack.policy(arn)["Statement"]
    allowed = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    with sample(stack, "orders", layer_dir, tmp_path) as function:
        function.invoke({"orderId": "1002", "amount": 1})
    keys = [item["id"]["S"] for item in items(stack.endpoint, stack.outputs["TableName"])]
    assert any(key.startswith(f"{NAME}-orders#") for key in keys)
    assert all(any(fnmatchcase(key, pattern) for pattern in allowed) for key in keys)
