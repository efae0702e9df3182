"""An AWS account for the publisher: a local server, and stand-ins for three services it lacks.

The stand-ins check their parameters against botocore's model of the service, so a call that AWS
would not understand fails here too.
"""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from tests.support.aws import CREDENTIALS, REGION


class StandIn:
    """Checks parameters as botocore does, and keeps the names of the calls."""

    service: str

    def __init__(self) -> None:
        client = boto3.client(
            self.service, region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b"
        )
        self._model = client.meta
        self.calls: list[str] = []

    def check(self, operation: str, parameters: dict[str, Any]) -> None:
        name = self._model.method_to_api_mapping[operation]
        model = self._model.service_model.operation_model(name)
        if model.input_shape is None:
            assert not parameters
        else:
            report = ParamValidator().validate(parameters, model.input_shape)
            assert not report.has_errors(), report.generate_report()
        self.calls.append(operation)


class ServerlessRepo(StandIn):
    """Keeps one application and its versions."""

    service = "serverlessrepo"

    def __init__(self) -> None:
        super().__init__()
        self.created: dict[str, Any] = {}
        self.templates: dict[str, str] = {}
        self.policy: list[Any] = []

    def get_application(self, **given: Any) -> Any:
        self.check("get_application", given)
        version = given.get("SemanticVersion")
        if not self.created or (version and version not in self.templates):
            error = {"Error": {"Code": "NotFoundException", "Message": "no such application"}}
            raise ClientError(error, "GetApplication")
        return {"ApplicationId": given["ApplicationId"]}

    def create_application(self, **given: Any) -> Any:
        self.check("create_application", given)
        self.created = given
        self.templates[given["SemanticVersion"]] = given["TemplateBody"]
        return {}

    def create_application_version(self, **given: Any) -> Any:
        self.check("create_application_version", given)
        assert given["SemanticVersion"] not in self.templates
        self.templates[given["SemanticVersion"]] = given["TemplateBody"]
        return {}

    def update_application(self, **given: Any) -> Any:
        self.check("update_application", given)
        return {}

    def put_application_policy(self, **given: Any) -> Any:
        self.check("put_application_policy", given)
        self.policy = given["Statements"]
        return {}


class ResourceShares(StandIn):
    """Keeps resource shares by name."""

    service = "ram"

    def __init__(self) -> None:
        super().__init__()
        self.shares: dict[str, Any] = {}

    def get_resource_shares(self, **given: Any) -> Any:
        self.check("get_resource_shares", given)
        return {"resourceShares": [s for name, s in self.shares.items() if name == given["name"]]}

    def create_resource_share(self, **given: Any) -> Any:
        self.check("create_resource_share", given)
        self.shares[given["name"]] = given
        return {}


class Organizations(StandIn):
    """The one organisation of the account."""

    service = "organizations"
    id = "o-exampleorgid"

    def describe_organization(self, **given: Any) -> Any:
        self.check("describe_organization", given)
        arn = f"arn:aws:organizations::123456789012:organization/{self.id}"
        return {"Organization": {"Id": self.id, "Arn": arn}}


class Account:
    """Clients for the publisher. ``broken`` names Regions where nothing answers."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._clients: dict[tuple[str, str], Any] = {}
        self.application = ServerlessRepo()
        self.shares: dict[str, ResourceShares] = {}
        self.broken: set[str] = set()

    def __call__(self, service: str, region: str) -> Any:
        if region in self.broken:
            error = {"Error": {"Code": "UnrecognizedClientException", "Message": "not enabled"}}
            raise ClientError(error, "Any")
        if service == "serverlessrepo":
            return self.application
        if service == "organizations":
            return Organizations()
        if service == "ram":
            return self.shares.setdefault(region, ResourceShares())
        return self._client(service, region)

    def _client(self, service: str, region: str) -> Any:
        """One client each, as making one takes longer than all it does here."""
        if (service, region) not in self._clients:
            self._clients[service, region] = boto3.client(
                service,
                region_name=region,
                endpoint_url=self._endpoint,
                aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            )
        return self._clients[service, region]
