"""template.yaml deployed on a local CloudFormation, as far as that goes.

What the local server cannot do is taken out before, and tested by reading the template instead: an
alarm on a query becomes one on the metric. It ignores TTL, point-in-time recovery and the routes of
an HTTP API, and starts functions without their exec wrapper.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.aws import REGION, boto_client
from tests.support.ministack import running_ministack
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until
from tests.template import sam

SERVICES = (
    "cloudformation",
    "s3",
    "lambda",
    "iam",
    "dynamodb",
    "sqs",
    "apigatewayv2",
    "events",
    "cloudwatch",
    "monitoring",
    "logs",
)
NAME = "once"
BUCKET = "code"


@dataclass(frozen=True)
class Stack:
    """A stack that stands: where the server is, and the stack's outputs by name."""

    endpoint: str
    outputs: Mapping[str, str]

    def client(self, service: str) -> Any:
        return boto_client(self.endpoint, service)

    def configuration(self, function: str) -> Any:
        """The configuration of a sample function: orders, http, queue or events."""
        return self.client("lambda").get_function_configuration(FunctionName=f"{NAME}-{function}")

    def policy(self, arn: str) -> Any:
        """The document of a managed policy."""
        iam = self.client("iam")
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


@contextmanager
def deployed(home: Path, **parameters: str) -> Iterator[Stack]:
    """The template, with these parameters and the rest as it has them."""
    template = sam.as_json(home, sam.TEMPLATE)
    with running_ministack(SERVICES) as server:
        upload_code(boto_client(server.endpoint, "s3"), template)
        plain = sam.expanded(home, template)
        simplify_alarms(plain["Resources"])
        yield Stack(server.endpoint, create(server.endpoint, plain, parameters))


def upload_code(s3: Any, template: Any) -> None:
    """Do what `sam package` does: every local file or folder goes to a bucket."""
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    for resource in template["Resources"].values():
        for name in {"CodeUri", "ContentUri"} & resource["Properties"].keys():
            path = resource["Properties"][name]
            s3.put_object(Bucket=BUCKET, Key=path, Body=zipped(REPOSITORY / path))
            resource["Properties"][name] = f"s3://{BUCKET}/{path}"


def zipped(path: Path) -> bytes:
    """A zip as it is, a folder as a zip."""
    if path.is_file():
        return path.read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(path.glob("*.py")):
            archive.write(file, file.name)
    return target.getvalue()


def simplify_alarms(resources: dict[str, Any]) -> None:
    """Put the metric for the query over all functions."""
    for resource in resources.values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            (query,) = resource["Properties"].pop("Metrics")
            resource["Properties"] |= {
                "Namespace": {"Ref": "MetricsNamespace"},
                "MetricName": query["Label"],
                "Period": query["Period"],
                "Statistic": "Sum",
            }


def create(endpoint: str, template: Any, parameters: Mapping[str, str]) -> dict[str, str]:
    """Create the stack and wait for it; its outputs."""
    cloudformation = boto_client(endpoint, "cloudformation")
    cloudformation.create_stack(
        StackName=NAME,
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
    )

    def state() -> Any:
        return cloudformation.describe_stacks(StackName=NAME)["Stacks"][0]

    wait_until(lambda: not state()["StackStatus"].endswith("_IN_PROGRESS"), 20, "the stack")
    assert state()["StackStatus"] == "CREATE_COMPLETE", failures(cloudformation)
    return {each["OutputKey"]: each["OutputValue"] for each in state()["Outputs"]}


def failures(cloudformation: Any) -> list[str]:
    """Why resources could not be made."""
    events = cloudformation.describe_stack_events(StackName=NAME)["StackEvents"]
    return [f"{e['LogicalResourceId']}: {e.get('ResourceStatusReason')}" for e in events]
