"""The zip as a version of the layer in one Region, and who may use it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from .calls import Calls, PublishError

NAME = "lambda-once"
_RUNTIMES = [f"python3.{minor}" for minor in range(10, 15)]
_PROCESSORS = ["x86_64", "arm64"]
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class Release(NamedTuple):
    """A built zip and the version that it says it has."""

    content: bytes
    version: str

    @property
    def sha256(self) -> str:
        """As Lambda gives it: in base64."""
        return base64.b64encode(hashlib.sha256(self.content).digest()).decode()

    @classmethod
    def read(cls, path: Path) -> Release:
        """Raises PublishError if there is no such zip, or it is not the layer."""
        if not path.is_file():
            raise PublishError(f"{path} is not there; ./build.sh makes it.")
        content = path.read_bytes()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                source = archive.read("python/lambda_once/__init__.py").decode()
            version = _VERSION.findall(source)[0]
        except (zipfile.BadZipFile, KeyError, IndexError) as fault:
            raise PublishError(f"{path} is not the layer: {fault}") from fault
        return cls(content, version)


class Audience(NamedTuple):
    """Who may use what is published: all, an organisation, or nobody but the account."""

    public: bool = False
    organization: str = ""

    @property
    def statement(self) -> dict[str, Any] | None:
        """As AddLayerVersionPermission takes it."""
        if self.public:
            return {"StatementId": "public", "Principal": "*"}
        if self.organization:
            return {
                "StatementId": self.organization,
                "Principal": "*",
                "OrganizationId": self.organization,
            }
        return None


class Published(NamedTuple):
    """A version of the layer in a Region. ``is_new``: this run made it, or would make it."""

    region: str
    arn: str
    is_new: bool

    @property
    def number(self) -> int:
        """Which version of the layer this is in its Region."""
        return int(self.arn.rpartition(":")[2])


def publish(calls: Calls, region: str, release: Release) -> Published:
    """Publish the zip, unless a version with the same hash is there already."""
    numbers = _numbers(calls, region)
    for number in numbers:
        found = calls.read(
            region, "lambda", "get_layer_version", LayerName=NAME, VersionNumber=number
        )
        if found and found["Content"]["CodeSha256"] == release.sha256:
            return Published(region, found["LayerVersionArn"], is_new=False)
    made = calls.write(
        region,
        "lambda",
        "publish_layer_version",
        LayerName=NAME,
        Description=f"lambda-once {release.version}: idempotency for Python functions",
        Content={"ZipFile": release.content},
        CompatibleRuntimes=_RUNTIMES,
        CompatibleArchitectures=_PROCESSORS,
        LicenseInfo="MIT",
    )
    arn = made["LayerVersionArn"] if made else _next_arn(calls, region, numbers)
    return Published(region, arn, is_new=True)


def _numbers(calls: Calls, region: str) -> list[int]:
    """The numbers of all versions in the Region, newest first."""
    numbers: list[int] = []
    more: dict[str, str] = {}
    while True:
        page = calls.read(region, "lambda", "list_layer_versions", LayerName=NAME, **more) or {}
        numbers += [each["Version"] for each in page.get("LayerVersions", [])]
        if not page.get("NextMarker"):
            return sorted(numbers, reverse=True)
        more = {"Marker": page["NextMarker"]}


def _next_arn(calls: Calls, region: str, numbers: list[int]) -> str:
    """What the ARN will probably be: numbers of deleted versions are not used again."""
    caller = calls.read(region, "sts", "get_caller_identity")
    partition = caller["Arn"].split(":")[1]
    number = max(numbers, default=0) + 1
    return f"arn:{partition}:lambda:{region}:{caller['Account']}:layer:{NAME}:{number}"


def share(calls: Calls, published: Published, audience: Audience) -> None:
    """Let the audience use the version. Nothing that was allowed before is taken back."""
    wanted = audience.statement
    if wanted is None:
        return
    allowed = _statement_ids(calls, published)
    for other in sorted(allowed - {wanted["StatementId"]}):
        calls.note(f"note: {published.arn} is shared by the statement {other} as well")
    if wanted["StatementId"] not in allowed:
        calls.write(
            published.region,
            "lambda",
            "add_layer_version_permission",
            LayerName=NAME,
            VersionNumber=published.number,
            Action="lambda:GetLayerVersion",
            **wanted,
        )


def _statement_ids(calls: Calls, published: Published) -> set[str]:
    """The ids of the statements of the version's policy; a new version has none."""
    if published.is_new:
        return set()
    found = calls.read(
        published.region,
        "lambda",
        "get_layer_version_policy",
        LayerName=NAME,
        VersionNumber=published.number,
    )
    return {each["Sid"] for each in json.loads(found["Policy"])["Statement"]} if found else set()
