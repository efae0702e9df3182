"""What a recipe comes to, whatever the tool: one form to compare all of them in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Shape(NamedTuple):
    """The variables of the function, what its policy opens, and how the table is made."""

    variables: Mapping[str, Any]
    layers: int
    actions: frozenset[str]
    condition: Any
    partition_key: str
    ttl: str


WANTED_ACTIONS = frozenset(
    {"dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
)
WANTED_CONDITION = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["orders#*"]}}


def assert_wanted(shape: Shape) -> None:
    """All recipes make the same function; only the form of a reference to the table differs."""
    variables = dict(shape.variables)
    assert variables.pop("IDEMPOTENCY_TABLE")
    assert variables == {
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
        "IDEMPOTENCY_KEY": "orderId",
    }
    assert shape.layers == 1
    assert shape.actions == WANTED_ACTIONS
    assert as_lists(shape.condition) == WANTED_CONDITION
    assert (shape.partition_key, shape.ttl) == ("id", "expires_at")


def as_lists(condition: Any) -> Any:
    """Some tools write a list of one as the one."""
    return {
        test: {key: [value] if isinstance(value, str) else value for key, value in keys.items()}
        for test, keys in condition.items()
    }


def of_cloudformation(template: Mapping[str, Any]) -> Shape:
    """The shape of a plain CloudFormation template with one function and one table."""
    resources = template["Resources"].values()

    def only(kind: str) -> Any:
        (found,) = [each["Properties"] for each in resources if each["Type"] == kind]
        return found

    function, table = only("AWS::Lambda::Function"), only("AWS::DynamoDB::Table")
    statement = on_the_table(statements(resources))
    (key,) = table["KeySchema"]
    assert table["TimeToLiveSpecification"]["Enabled"] is True
    return Shape(
        variables=function["Environment"]["Variables"],
        layers=len(function["Layers"]),
        actions=frozenset(statement["Action"]),
        condition=statement["Condition"],
        partition_key=key["AttributeName"],
        ttl=table["TimeToLiveSpecification"]["AttributeName"],
    )


def statements(resources: Iterable[Any]) -> list[Any]:
    """All statements of all policies, in roles and outside."""
    documents = []
    for each in resources:
        policies = each["Properties"].get("Policies", [])
        if each["Type"] == "AWS::IAM::Policy":
            policies = [each["Properties"]]
        if each["Type"] in ("AWS::IAM::Policy", "AWS::IAM::Role"):
            documents += [policy["PolicyDocument"] for policy in policies]
    return [statement for document in documents for statement in document["Statement"]]


def on_the_table(found: Iterable[Any]) -> Any:
    """The one statement that opens anything of DynamoDB."""
    (statement,) = [each for each in found if "dynamodb" in json.dumps(each["Action"])]
    return statement
