"""The publisher publishes once, shares with whom it was told, and says every call it makes."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.publish.account import Account, Organizations
from tests.support.ministack import running_ministack
from tools.publish.__main__ import main
from tools.publish.calls import Calls
from tools.publish.layers import Published, Release, publish
from tools.publish.pointer import PARAMETER

SERVICES = ("lambda", "ssm", "sts", "s3")
HOME, AWAY = "eu-west-1", "us-east-1"


class Publisher:
    """The command in an account, with a zip of its own, and what it printed."""

    def __init__(self, account: Account, folder: Path) -> None:
        self.account = account
        self.zip = folder / "lambda-once.zip"
        self.table = folder / "layers.md"
        self.printed: list[str] = []
        self.build("1.2.3")

    def build(self, version: str) -> None:
        """Write a zip that says it has this version."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr("lambda-once", "#!/bin/sh\n")
            archive.writestr("python/lambda_once/__init__.py", f'__version__ = "{version}"\n')
        self.zip.write_bytes(target.getvalue())

    def __call__(self, *arguments: str, regions: str = HOME) -> int:
        self.printed = []
        given = ["--regions", regions, "--zip", str(self.zip), "--table", str(self.table)]
        return main([*given, *arguments], self.account, self.printed.append)

    def writes(self, word: str = "write") -> list[str]:
        """The operations that were, or would be, carried out: "lambda publish-layer-version"."""
        lines = [line.split() for line in self.printed if line.startswith(f"{word} ")]
        return [" ".join(words[2:4]) for words in lines]

    def versions(self, region: str = HOME) -> list[str]:
        found = self.account("lambda", region).list_layer_versions(LayerName="lambda-once")
        return sorted(each["LayerVersionArn"] for each in found["LayerVersions"])

    def policy(self, number: int = 1, region: str = HOME) -> list[Any]:
        client = self.account("lambda", region)
        found = client.get_layer_version_policy(LayerName="lambda-once", VersionNumber=number)
        statements: list[Any] = json.loads(found["Policy"])["Statement"]
        return statements

    def pointer(self, region: str = HOME) -> str:
        found = self.account("ssm", region).get_parameter(Name=PARAMETER)
        return str(found["Parameter"]["Value"])


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with running_ministack(SERVICES) as server:
        yield server.endpoint


@pytest.fixture
def publisher(endpoint: str, tmp_path: Path) -> Iterator[Publisher]:
    publisher = Publisher(Account(endpoint), tmp_path)
    yield publisher
    forget(publisher.account)


def forget(account: Account) -> None:
    """Delete what a test has made."""
    account.broken = set()
    for region in (HOME, AWAY):
        functions, ssm = account("lambda", region), account("ssm", region)
        for each in functions.list_layer_versions(LayerName="lambda-once")["LayerVersions"]:
            functions.delete_layer_version(LayerName="lambda-once", VersionNumber=each["Version"])
        ssm.delete_parameters(Names=[PARAMETER])


def newest(publisher: Publisher, region: str = HOME) -> tuple[int, str]:
    """The number and ARN of the only version."""
    (arn,) = publisher.versions(region)
    return int(arn.rpartition(":")[2]), arn


def test_the_zip_becomes_a_version_in_each_region(publisher: Publisher) -> None:
    assert publisher(regions=f"{HOME},{AWAY}") == 0
    for region in (HOME, AWAY):
        number, arn = newest(publisher, region)
        found = publisher.account("lambda", region).get_layer_version(
            LayerName="lambda-once", VersionNumber=number
        )
        assert found["CompatibleRuntimes"][0] == "python3.10"
        assert "1.2.3" in found["Description"]
        assert publisher.pointer(region) == arn


def test_the_same_zip_is_not_published_twice(publisher: Publisher) -> None:
    assert publisher("--public") == 0
    assert publisher("--public") == 0
    assert publisher.writes() == []
    assert len(publisher.versions()) == 1


def test_an_older_zip_that_was_published_is_found_among_newer_ones(publisher: Publisher) -> None:
    publisher()
    old = publisher.zip.read_bytes()
    first = publisher.pointer()
    publisher.build("1.3.0")
    publisher()
    assert publisher.pointer() != first
    publisher.zip.write_bytes(old)
    assert publisher() == 0
    assert len(publisher.versions()) == 2
    assert publisher.pointer() == first


def test_every_page_of_versions_is_looked_through(tmp_path: Path) -> None:
    publisher = Publisher(Account("http://unused"), tmp_path)
    release = Release.read(publisher.zip)

    class Lambda:
        """Has three versions, one a page; the oldest is the release."""

        def list_layer_versions(self, LayerName: str, Marker: str = "3") -> Any:  # noqa: N803
            number = int(Marker)
            more = {"NextMarker": str(number - 1)} if number > 1 else {}
            return {"LayerVersions": [{"Version": number}], **more}

        def get_layer_version(self, LayerName: str, VersionNumber: int) -> Any:  # noqa: N803
            digest = release.sha256 if VersionNumber == 1 else "another"
            return {"Content": {"CodeSha256": digest}, "LayerVersionArn": f"arn:{VersionNumber}"}

    calls = Calls(lambda service, region: Lambda(), publisher.printed.append, dry_run=False)
    assert publish(calls, HOME, release) == Published(HOME, "arn:1", is_new=False)


def test_without_an_audience_nobody_else_may_use_it(publisher: Publisher) -> None:
    publisher()
    assert publisher.writes() == ["lambda publish-layer-version", "ssm put-parameter"]


def test_public_lets_everybody_use_it(publisher: Publisher) -> None:
    publisher("--public")
    number, _ = newest(publisher)
    (statement,) = publisher.policy(number)
    assert statement["Principal"] == "*"
    assert statement["Action"] == "lambda:GetLayerVersion"
    assert "Condition" not in statement


def test_a_version_that_is_there_can_be_shared_later(publisher: Publisher) -> None:
    publisher()
    publisher("--public")
    assert publisher.writes() == ["lambda add-layer-version-permission"]


def test_an_organisation_gets_the_layer_and_the_parameter_and_nobody_else(
    publisher: Publisher,
) -> None:
    assert publisher("--organization", Organizations.id) == 0
    number, _ = newest(publisher)
    (statement,) = publisher.policy(number)
    assert Organizations.id in json.dumps(statement["Condition"])
    share = publisher.account.shares[HOME].shares["lambda-once"]
    assert share["resourceArns"][0].endswith(f":parameter{PARAMETER}")
    assert share["principals"][0].endswith(Organizations.id)
    assert share["allowExternalPrincipals"] is False
    described = publisher.account("ssm", HOME).describe_parameters()["Parameters"]
    assert [each["Tier"] for each in described] == ["Advanced"]

    assert publisher("--organization", Organizations.id) == 0
    assert publisher.writes() == []


def test_a_parameter_that_was_private_becomes_one_that_can_be_shared(
    publisher: Publisher,
) -> None:
    publisher()
    publisher("--organization", Organizations.id)
    assert publisher.writes() == [
        "lambda add-layer-version-permission",
        "ssm put-parameter",
        "ram create-resource-share",
    ]


def test_another_organisation_than_ones_own_is_refused_before_anything_is_made(
    publisher: Publisher,
) -> None:
    assert publisher("--organization", "o-aaaaaaaaaa") == 1
    assert Organizations.id in publisher.printed[-1]
    assert publisher.versions() == []


def test_what_is_shared_with_more_is_said(publisher: Publisher) -> None:
    publisher("--public")
    publisher("--organization", Organizations.id)
    assert any("shared by the statement public as well" in line for line in publisher.printed)


def test_a_dry_run_prints_the_calls_and_makes_none(publisher: Publisher) -> None:
    publisher.account("s3", HOME).create_bucket(
        Bucket="dry", CreateBucketConfiguration={"LocationConstraint": HOME}
    )
    arguments = ("--public", "--sar-bucket", "dry", "--source-url", "https://example.com")
    assert publisher(*arguments, "--dry-run") == 0
    planned = publisher.writes("would")
    assert publisher.writes() == []
    assert publisher.versions() == []
    assert not publisher.table.exists()
    assert not (publisher.zip.parent / "sar").exists()
    assert publisher.account("s3", HOME).list_objects_v2(Bucket="dry")["KeyCount"] == 0

    assert publisher(*arguments) == 0
    assert publisher.writes() == planned


def test_a_dry_run_names_the_version_to_come(publisher: Publisher) -> None:
    publisher()
    publisher.build("2.0.0")
    publisher("--dry-run")
    foretold = publisher.printed[-1].split()[-1]
    publisher()
    assert publisher.pointer() == foretold


def test_no_printed_line_holds_the_zip(publisher: Publisher) -> None:
    publisher()
    size = f"<{publisher.zip.stat().st_size:,} bytes>"
    assert any(size in line for line in publisher.printed)
    assert max(map(len, publisher.printed)) < 600


def test_the_table_has_a_row_for_each_region_and_keeps_those_of_before(
    publisher: Publisher,
) -> None:
    publisher(regions=AWAY)
    publisher(regions=HOME)
    digest = hashlib.sha256(publisher.zip.read_bytes()).hexdigest()
    rows = re.findall(
        r"^\| (\S+) \| `(\S+)` \| (\S+) \| `(\S+)` \|$", publisher.table.read_text(), re.M
    )
    assert rows == [
        (region, publisher.pointer(region), "1.2.3", digest) for region in sorted((HOME, AWAY))
    ]


def test_a_region_that_fails_is_said_and_stops_no_other(publisher: Publisher) -> None:
    publisher.account.broken = {AWAY}
    assert publisher(regions=f"{AWAY},{HOME}") == 1
    assert len(publisher.versions()) == 1
    assert publisher.printed[-1].startswith(f"publish: {AWAY}: ")
    assert AWAY not in publisher.table.read_text()


@pytest.mark.parametrize("content", [b"no zip", None])
def test_what_is_not_the_layer_is_refused(publisher: Publisher, content: bytes | None) -> None:
    if content is None:
        publisher.zip.unlink()
    else:
        publisher.zip.write_bytes(content)
    assert publisher() == 1
    assert str(publisher.zip) in publisher.printed[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--regions", "europe"], "'europe' is no Region"),
        (["--regions", HOME, "--organization", "mine"], "'mine' is no id of an organisation"),
        (["--regions", HOME, "--public", "--sar-bucket", "b"], "--source-url"),
        (["--regions", HOME, "--public", "--organization", "o-aaaaaaaaaa"], "not allowed with"),
    ],
)
def test_wrong_arguments_are_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
