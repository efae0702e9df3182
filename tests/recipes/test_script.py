"""The script for the AWS CLI attaches to functions on a local server, and leaves the rest alone."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.recipes import shape
from tests.recipes.tools import SERVICES, needs_tools, on, run, said
from tests.support.aws import boto_client
from tests.support.ministack import running_ministack
from tests.support.processes import LocalServer

pytestmark = needs_tools


class Account:
    """A local account with functions made by somebody else."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.functions = boto_client(server.endpoint, "lambda")
        self.iam = boto_client(server.endpoint, "iam")

    def create(self, name: str, runtime: str = "python3.13", **rest: Any) -> None:
        role = self.iam.create_role(
            RoleName=f"{name}-role", Path="/service-role/", AssumeRolePolicyDocument="{}"
        )
        self.functions.create_function(
            FunctionName=name,
            Role=role["Role"]["Arn"],
            Runtime=runtime,
            Handler="app.handler",
            Code={"ZipFile": code()},
            **rest,
        )
        active = self.functions.get_waiter("function_active")
        active.wait(FunctionName=name, WaiterConfig={"Delay": 1})

    def configuration(self, name: str) -> dict[str, Any]:
        """What can be configured, without what changes by itself."""
        found: dict[str, Any] = self.functions.get_function_configuration(FunctionName=name)
        passing = ("ResponseMetadata", "LastModified", "RevisionId")
        return {key: value for key, value in found.items() if key not in passing}

    def statement(self, name: str) -> Any:
        policy = self.iam.get_role_policy(
            RoleName=f"{name}-role", PolicyName=f"lambda-once-{name}"
        )["PolicyDocument"]
        (statement,) = policy["Statement"]
        return statement


def code() -> bytes:
    """A zip with some handler."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("app.py", "def handler(event, context): return event\n")
    return target.getvalue()


@pytest.fixture
def account(aws: LocalServer) -> Account:
    return Account(aws)


def attach(recipes: Path, server: LocalServer, *arguments: str) -> Any:
    return run(recipes, recipes / "aws-cli" / "attach.sh", *arguments, **on(server))


def variables(configuration: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = configuration["Environment"]["Variables"]
    return found


def test_the_script_adds_to_a_function_and_changes_nothing_else(
    recipes: Path, account: Account
) -> None:
    other = account.functions.publish_layer_version(LayerName="other", Content={"ZipFile": code()})
    account.create(
        "paid",
        Layers=[other["LayerVersionArn"]],
        Environment={"Variables": {"GREETING": "it's $HOME"}},
    )
    before = account.configuration("paid")
    key = "[principal(@), header(@, 'Idempotency-Key')]"
    said(attach(recipes, account.server, "paid", key))
    after = account.configuration("paid")
    assert variables(after) == {
        "GREETING": "it's $HOME",
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
        "IDEMPOTENCY_TABLE": "idempotency",
        "IDEMPOTENCY_KEY": key,
    }
    assert [layer["Arn"].split(":")[6] for layer in after["Layers"]] == ["other", "lambda-once"]
    ours = ("Environment", "Layers")
    assert {k: v for k, v in before.items() if k not in ours} == {
        k: v for k, v in after.items() if k not in ours
    }
    statement = account.statement("paid")
    assert frozenset(statement["Action"]) == shape.WANTED_ACTIONS
    assert statement["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["paid#*"]}

    said(attach(recipes, account.server, "paid", key))
    assert account.configuration("paid") == after


def test_the_script_chains_another_wrapper_and_keeps_a_scope(
    recipes: Path, account: Account
) -> None:
    account.create(
        "traced",
        Environment={
            "Variables": {
                "AWS_LAMBDA_EXEC_WRAPPER": "/opt/otel-instrument",
                "IDEMPOTENCY_SCOPE": "old-name",
            }
        },
    )
    said(attach(recipes, account.server, "traced"))
    assert variables(account.configuration("traced")) == {
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
        "IDEMPOTENCY_NEXT_WRAPPER": "/opt/otel-instrument",
        "IDEMPOTENCY_SCOPE": "old-name",
        "IDEMPOTENCY_TABLE": "idempotency",
    }
    statement = account.statement("traced")
    assert statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] == [
        "old-name#*"
    ]


def test_the_script_refuses_other_runtimes_before_it_makes_anything(recipes: Path) -> None:
    with running_ministack(SERVICES) as server:
        account = Account(server)
        account.create("front", runtime="nodejs22.x")
        done = attach(recipes, server, "front")
        assert done.returncode == 1
        assert "front runs on nodejs22.x" in done.stderr
        assert account.functions.list_layers()["Layers"] == []
        assert boto_client(server.endpoint).list_tables()["TableNames"] == []


def test_the_script_says_that_a_function_is_not_there(recipes: Path, account: Account) -> None:
    done = attach(recipes, account.server, "nowhere")
    assert done.returncode != 0
    assert "ResourceNotFoundException" in done.stderr
