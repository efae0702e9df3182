"""boto3 clients for local servers, independent of the machine's own AWS settings."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.loaders import JSONFileLoader

REGION = "eu-west-1"

# Dummies, as environment variables. Nothing checks them; clients insist on having some.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "example-secret-key",
    "AWS_SESSION_TOKEN": "example-session-token",
}


# Clients may be shared by threads, a session may not. Sharing it saves reading the service models
# for every client.
_session_lock = threading.Lock()


@cache
def _session() -> Any:
    return boto3.session.Session()


def read_service_models_once() -> None:
    """Let all sessions of this process share what each would read by itself.

    Most of the time for a client goes into that, and some tests make a client each, in a session
    of its own as a new execution environment does.
    """
    load = JSONFileLoader.load_file

    @cache
    def loaded(path: str) -> Any:
        return load(JSONFileLoader(), path)

    JSONFileLoader.load_file = lambda _self, path: loaded(path)


def boto_client(endpoint: str, service: str = "dynamodb") -> Any:
    """A boto3 client of a service behind a local endpoint. It does not retry: faults must show."""
    with _session_lock:
        return _session().client(
            service,
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=10),
        )


def create_table(endpoint: str, name: str) -> None:
    """Create an idempotency table as the README tells users to: key `id`, on demand, with TTL.

    A server without a TTL API (dynalite) gets the same table without TTL.
    """
    client = boto_client(endpoint)
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    try:
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"},
        )
    except client.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "UnknownOperationException":
            raise


def items(endpoint: str, table: str) -> list[dict[str, Any]]:
    """Every item of a table, in DynamoDB's own typed form: {"id": {"S": "..."}, ...}."""
    pages = (
        boto_client(endpoint).get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    )
    return [item for page in pages for item in page["Items"]]
