"""template.yaml is valid, and grants and attaches exactly what the README says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import LAYER_ZIP, REPOSITORY, TOOLS

SAM = TOOLS / "sam" / "bin"
TEMPLATE = REPOSITORY / "template.yaml"

pytestmark = pytest.mark.skipif(
    not (SAM / "sam").exists(), reason="the SAM CLI is not installed; ./build.sh test installs it"
)

# Prints a template as JSON: {"Ref": ...} for !Ref, and so on.
AS_JSON = """
import json, pathlib, sys
from samcli.yamlhelper import yaml_parse
print(json.dumps(yaml_parse(pathlib.Path(sys.argv[1]).read_text())))
"""


def run(home: Path, *command: str | Path) -> str:
    """What one of SAM's tools says, without this machine's settings or any credentials."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AWS_DEFAULT_REGION": "us-east-1",
        "SAM_CLI_TELEMETRY": "0",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    template = json.loads(run(home, SAM / "python", "-c", AS_JSON, TEMPLATE))
    found: dict[str, Any] = template["Resources"]
    return found


def properties(resources: dict[str, Any], kind: str) -> Any:
    """The properties of the one resource of this type."""
    (found,) = [each["Properties"] for each in resources.values() if each["Type"] == kind]
    return found


def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, SAM / "cfn-lint", "--regions", "us-east-1", "--", TEMPLATE) == ""


def test_sam_finds_it_valid(tmp_path: Path) -> None:
    said = run(tmp_path, SAM / "sam", "validate", "--lint", "--template", TEMPLATE)
    assert "is a valid SAM Template" in said


def test_the_policy_grants_four_actions_on_one_table(resources: dict[str, Any]) -> None:
    policy = properties(resources, "AWS::IAM::ManagedPolicy")["PolicyDocument"]
    (statement,) = policy["Statement"]
    assert sorted(statement["Action"]) == [
        "dynamodb:DeleteItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    ]
    assert statement["Effect"] == "Allow"
    assert statement["Resource"] == {"Fn::GetAtt": ["Table", "Arn"]}


def test_the_layer_is_the_built_zip_for_every_python_and_processor(
    resources: dict[str, Any],
) -> None:
    layer = properties(resources, "AWS::Serverless::LayerVersion")
    assert REPOSITORY / layer["ContentUri"] == LAYER_ZIP
    assert layer["CompatibleRuntimes"] == [f"python3.{minor}" for minor in range(10, 15)]
    assert layer["CompatibleArchitectures"] == ["x86_64", "arm64"]


def test_the_table_is_on_demand_expires_records_is_encrypted_and_stays(
    resources: dict[str, Any],
) -> None:
    table = resources["Table"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["TimeToLiveSpecification"] == {
        "AttributeName": "expires_at",
        "Enabled": True,
    }
    assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert table["Properties"]["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]


def test_the_sample_function_is_the_demos_with_the_layer_and_its_variables(
    resources: dict[str, Any],
) -> None:
    function = properties(resources, "AWS::Serverless::Function")
    assert (REPOSITORY / function["CodeUri"] / "app.py").is_file()
    assert function["Handler"] == "app.handler"
    assert function["Layers"] == [{"Ref": "Layer"}]
    assert function["Policies"] == [{"Ref": "Policy"}]
    assert function["Environment"]["Variables"] == {
        "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
        "IDEMPOTENCY_TABLE": {"Ref": "Table"},
        "IDEMPOTENCY_KEY": "orderId",
    }
