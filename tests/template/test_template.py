"""template.yaml is valid, and grants, attaches and watches exactly what the README says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lambda_once.config import VARIABLES
from tests.support.paths import LAYER_ZIP, REPOSITORY
from tests.template import sam
from tests.template.sam import SAM, TEMPLATE, properties, run

pytestmark = pytest.mark.skipif(not sam.is_installed(), reason=sam.MISSING)

ACTIONS = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
METRICS = set(
    re.findall(r"^\| `([A-Z][a-z]\w+)` \|", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
)
DURATIONS = {"ClaimDuration", "SettleDuration"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = sam.as_json(tmp_path_factory.mktemp("home"), TEMPLATE)
    return found


@pytest.fixture(scope="module")
def resources(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"]
    return found


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    """The properties of all resources of this type, by name."""
    return {n: each["Properties"] for n, each in resources.items() if each["Type"] == kind}


def statements(policy: Any) -> tuple[Any, Any]:
    """The statement on records, and the one on the table's key, which is there if it is."""
    records, (condition, on_key, otherwise) = (
        policy["PolicyDocument"]["Statement"][0],
        policy["PolicyDocument"]["Statement"][1]["Fn::If"],
    )
    assert (condition, otherwise) == ("HasTableKey", {"Ref": "AWS::NoValue"})
    return records, on_key


def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, SAM / "cfn-lint", "--regions", "us-east-1", "--", TEMPLATE) == ""


def test_sam_finds_it_valid(tmp_path: Path) -> None:
    said = run(tmp_path, SAM / "sam", "validate", "--lint", "--template", TEMPLATE)
    assert "is a valid SAM Template" in said


def test_each_policy_grants_four_actions_on_records_of_one_table(resources: dict[str, Any]) -> None:
    policies = of_type(resources, "AWS::IAM::ManagedPolicy")
    assert sorted(policies) == ["Policy", "SamplePolicy"]
    for policy in policies.values():
        records, on_key = statements(policy)
        assert (records["Effect"], sorted(records["Action"])) == ("Allow", ACTIONS)
        assert records["Resource"] == {"Fn::GetAtt": ["Table", "Arn"]}
        assert list(records["Condition"]) == ["ForAllValues:StringLike"]
        assert list(records["Condition"]["ForAllValues:StringLike"]) == ["dynamodb:LeadingKeys"]
        assert on_key["Resource"] == {"Ref": "TableKeyArn"}
        assert "kms:ViaService" in on_key["Condition"]["StringEquals"]


def test_the_samples_policy_names_every_sample(resources: dict[str, Any]) -> None:
    records, _ = statements(resources["SamplePolicy"]["Properties"])
    opened = records["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    functions = of_type(resources, "AWS::Serverless::Function").values()
    named = [function["FunctionName"]["Fn::Sub"] for function in functions]
    assert [each["Fn::Sub"] for each in opened] == [f"{name}#*" for name in named]


def test_the_layer_is_the_built_zip_for_every_python_and_processor(
    resources: dict[str, Any],
) -> None:
    layer = properties(resources, "AWS::Serverless::LayerVersion")
    assert REPOSITORY / layer["ContentUri"] == LAYER_ZIP
    assert layer["CompatibleRuntimes"] == [f"python3.{minor}" for minor in range(10, 15)]
    assert layer["CompatibleArchitectures"] == ["x86_64", "arm64"]


def test_the_table_is_on_demand_expires_records_and_stays(resources: dict[str, Any]) -> None:
    table = resources["Table"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["TimeToLiveSpecification"] == {
        "AttributeName": "expires_at",
        "Enabled": True,
    }
    assert table["Properties"]["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]


def test_the_tables_protections_are_parameters(template: dict[str, Any]) -> None:
    table = template["Resources"]["Table"]["Properties"]
    assert table["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert template["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert table["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": {"Ref": "PointInTimeRecovery"}
    }
    condition, with_key, without = table["SSESpecification"]["Fn::If"]
    assert (condition, without) == ("HasTableKey", {"Ref": "AWS::NoValue"})
    assert with_key == {
        "SSEEnabled": True,
        "SSEType": "KMS",
        "KMSMasterKeyId": {"Ref": "TableKeyArn"},
    }


def test_samples_are_deployed_only_if_asked_for(template: dict[str, Any]) -> None:
    assert template["Parameters"]["Samples"]["Default"] == "no"
    always = {n for n, each in template["Resources"].items() if "Condition" not in each}
    assert always == {
        *("Layer", "Table", "Policy", "Dashboard"),
        *("UnrecordedAlarm", "ClaimLostAlarm", "StoreFailureAlarm", "InProgressAlarm"),
    }


def test_functions_get_the_layer_and_its_variables(template: dict[str, Any]) -> None:
    every = template["Globals"]["Function"]
    assert every["Layers"] == [{"Ref": "Layer"}]
    assert every["Environment"]["Variables"] == {
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
        "IDEMPOTENCY_TABLE": {"Ref": "Table"},
        "IDEMPOTENCY_METRICS": {"Ref": "MetricsNamespace"},
    }


def test_every_sample_is_code_that_is_there_and_sets_real_variables(
    resources: dict[str, Any],
) -> None:
    functions = of_type(resources, "AWS::Serverless::Function")
    assert sorted(functions) == ["Events", "Http", "Orders", "Queue"]
    for function in functions.values():
        assert (REPOSITORY / function["CodeUri"] / "app.py").is_file()
        assert function["Policies"] == [{"Ref": "SamplePolicy"}]
        assert set(function.get("Environment", {}).get("Variables", {})) <= set(VARIABLES)


def test_nobody_reaches_the_sample_api_without_credentials(resources: dict[str, Any]) -> None:
    assert properties(resources, "AWS::Serverless::HttpApi")["Auth"] == {
        "EnableIamAuthorizer": True,
        "DefaultAuthorizer": "AWS_IAM",
    }


def test_the_alarms_ask_for_metrics_of_the_readme_over_all_functions(
    resources: dict[str, Any],
) -> None:
    asked = {}
    for alarm in of_type(resources, "AWS::CloudWatch::Alarm").values():
        (query,) = alarm["Metrics"]
        asked[query["Label"]] = query["Expression"]["Fn::Sub"]
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
        assert alarm["TreatMissingData"] == "notBreaching"
    assert set(asked) == {"Unrecorded", "ClaimLost", "StoreFailure", "InProgress"}
    for metric, query in asked.items():
        assert metric in METRICS
        assert query.split(" FROM ") == [
            f"SELECT SUM({metric})",
            'SCHEMA("${MetricsNamespace}", FunctionName)',
        ]


def test_one_success_that_could_not_be_recorded_is_an_alarm(resources: dict[str, Any]) -> None:
    for name in ("UnrecordedAlarm", "ClaimLostAlarm"):
        alarm = resources[name]["Properties"]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (0, 1)


def test_the_dashboard_shows_every_metric_of_the_readme_and_no_other(
    resources: dict[str, Any],
) -> None:
    body = properties(resources, "AWS::CloudWatch::Dashboard")["DashboardBody"]["Fn::Sub"]
    assert json.loads(body)["widgets"]
    assert set(re.findall(r'MetricName=\\"(\w+)\\"', body)) == METRICS | DURATIONS
