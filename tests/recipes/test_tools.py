"""Each recipe passes its own tool's checks, and comes to what all recipes come to.

`./build.sh recipes` fetches the tools and runs these. CDK, Pulumi and Terraform are synthesized or
parsed; SAM is translated; the Serverless Framework deploys to a local server. The image is not
built, as that would need Docker: its Dockerfile is checked.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.recipes import shape
from tests.recipes.shape import Shape, assert_wanted
from tests.recipes.tools import BIN, OSLS, needs_node, needs_tools, on, run, said
from tests.support.aws import REGION, boto_client
from tests.support.paths import REPOSITORY
from tests.support.processes import LocalServer
from tests.template import sam

pytestmark = needs_tools


def lint(tmp_path: Path, template: Path, *options: str) -> str:
    """What cfn-lint finds: nothing, if all is well."""
    return sam.run(tmp_path, sam.SAM / "cfn-lint", "--regions", REGION, *options, "--", template)


def test_sam(recipes: Path, tmp_path: Path) -> None:
    template = recipes / "sam" / "template.yaml"
    assert lint(tmp_path, template) == ""
    sam.run(tmp_path, sam.SAM / "sam", "validate", "--lint", "--template", template)
    plain = sam.as_json(tmp_path, template)
    for resource in plain["Resources"].values():
        for name in {"CodeUri", "ContentUri"} & resource["Properties"].keys():
            assert (template.parent / resource["Properties"][name]).exists()
            resource["Properties"][name] = "s3://bucket/key"
    assert_wanted(shape.of_cloudformation(sam.expanded(tmp_path, plain)))


@needs_node
def test_cdk(recipes: Path, tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"
    said(run(recipes / "cdk", BIN / "python", "app.py", CDK_OUTDIR=str(out)))
    template = out / "orders.template.json"
    # CDK itself writes a dependency (W3005) where a reference would do.
    assert lint(tmp_path, template, "--ignore-checks", "W3005") == ""
    assert_wanted(shape.of_cloudformation(json.loads(template.read_text())))


@needs_node
def test_serverless(recipes: Path, tmp_path: Path, aws: LocalServer) -> None:
    folder = recipes / "serverless"
    done = run(folder, OSLS, "deploy", "--region", REGION, **on(aws))
    said(done)
    assert "Could not find" not in done.stderr
    template = json.loads(
        (folder / ".serverless" / "cloudformation-template-update-stack.json").read_text()
    )
    assert_wanted(shape.of_cloudformation(template))
    deployed = boto_client(aws.endpoint, "lambda").get_function_configuration(FunctionName="orders")
    assert deployed["Environment"]["Variables"]["IDEMPOTENCY_TABLE"] == "idempotency"
    assert [":layer:lambda-once:" in layer["Arn"] for layer in deployed["Layers"]] == [True]


def test_pulumi(recipes: Path) -> None:
    mocks = REPOSITORY / "tests" / "recipes" / "pulumi_mocks.py"
    found = json.loads(said(run(recipes / "pulumi", BIN / "python", mocks, "__main__.py")))
    inputs = {resource["type"].rpartition(":")[2]: resource["inputs"] for resource in found}
    statement = shape.on_the_table(json.loads(inputs["RolePolicy"]["policy"])["Statement"])
    table, function = inputs["Table"], inputs["Function"]
    assert (recipes / "pulumi" / inputs["LayerVersion"]["code"]).is_file()
    assert_wanted(
        Shape(
            variables=function["environment"]["variables"],
            layers=len(function["layers"]),
            actions=frozenset(statement["Action"]),
            condition=statement["Condition"],
            partition_key=table["hashKey"],
            ttl=table["ttl"]["attributeName"],
        )
    )


def test_terraform(recipes: Path) -> None:
    folder = recipes / "terraform"
    if shutil.which("terraform"):
        said(run(folder, "terraform", "fmt", "-check", "-diff"))
    parse = "import hcl2, json; print(json.dumps(hcl2.load(open('main.tf'))))"
    found = json.loads(said(run(folder, BIN / "python", "-c", parse)))
    table = block(found["resource"], "aws_dynamodb_table", "idempotency")
    function = block(found["resource"], "aws_lambda_function", "orders")
    policy = block(found["data"], "aws_iam_policy_document", "idempotency")
    (statement,), (environment,), (ttl,) = (
        policy["statement"],
        function["environment"],
        table["ttl"],
    )
    (condition,) = statement["condition"]
    assert condition["values"] == ["${local.function}#*"]
    assert (
        found["locals"][0]["function"] == '"orders"' or found["locals"][0]["function"] == "orders"
    )
    assert_wanted(
        Shape(
            variables=environment["variables"],
            layers=len(function["layers"]),
            actions=frozenset(statement["actions"]),
            condition={condition["test"]: {condition["variable"]: ["orders#*"]}},
            partition_key=table["hash_key"],
            ttl=ttl["attribute_name"],
        )
    )


def block(blocks: list[Any], kind: str, name: str) -> Any:
    """A labelled block, as plain data: the parser keeps the quotes of strings."""
    (found,) = [each for each in map(unquoted, blocks) if name in each.get(kind, {})]
    return found[kind][name]


def unquoted(value: Any) -> Any:
    if isinstance(value, str):
        return value.removeprefix('"').removesuffix('"')
    if isinstance(value, list):
        return [unquoted(each) for each in value]
    if isinstance(value, dict):
        return {unquoted(key): unquoted(each) for key, each in value.items()}
    return value


def test_container(recipes: Path) -> None:
    assert said(run(recipes / "container", BIN / "hadolint", "Dockerfile")) == ""


def test_the_script_passes_shellcheck(recipes: Path) -> None:
    assert said(run(recipes / "aws-cli", BIN / "shellcheck", "attach.sh")) == ""
