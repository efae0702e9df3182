"""The application of the Serverless Application Repository is template.yaml with uploaded code."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.publish.account import Account
from tests.support.ministack import running_ministack
from tests.support.paths import REPOSITORY
from tests.template import sam
from tools.publish import sar as application
from tools.publish.calls import Calls
from tools.publish.layers import Audience

BUCKET = "code"
REGION = "eu-west-1"


@pytest.fixture
def package(layer_dir: Path) -> application.Package:
    """The package of the repository as it is, with the layer built."""
    return application.package(REPOSITORY, BUCKET, "1.2.3")


def publish(account: Account, package: application.Package, audience: Audience) -> list[str]:
    """Publish it; what was printed."""
    printed: list[str] = []
    calls = Calls(account, printed.append, dry_run=False)
    application.publish(calls, REGION, package, audience, "https://example.com")
    return printed


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with running_ministack(("sts",)) as server:
        yield server.endpoint


@pytest.fixture
def account(endpoint: str) -> Account:
    return Account(endpoint)


def test_no_local_path_is_left_in_the_template(package: application.Package) -> None:
    code = re.findall(r"(?:CodeUri|ContentUri): (\S+)", package.template)
    assert len(code) == 5
    for uri in code:
        content = package.files[uri.removeprefix(f"s3://{BUCKET}/")]
        assert hashlib.sha256(content).hexdigest() in uri
        assert zipfile.is_zipfile(io.BytesIO(content))


def test_the_rest_of_the_template_is_the_repositorys(package: application.Package) -> None:
    ours = (REPOSITORY / "template.yaml").read_text().splitlines()
    changed = [line for line in package.template.splitlines() if line not in ours]
    assert len(changed) == 5


@pytest.mark.skipif(not sam.is_installed(), reason=sam.MISSING)
def test_cfn_lint_finds_nothing_in_it(package: application.Package, tmp_path: Path) -> None:
    package.save(tmp_path)
    assert sam.run(tmp_path, sam.SAM / "cfn-lint", "--", tmp_path / "template.yaml") == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "LICENSE",
        "README.md",
        "template.yaml",
    ]


def test_the_same_sources_give_the_same_package(package: application.Package) -> None:
    assert application.package(REPOSITORY, BUCKET, "1.2.3") == package


def test_a_version_is_published_once_and_the_next_beside_it(
    account: Account, package: application.Package
) -> None:
    publish(account, package, Audience(public=True))
    again = publish(account, package, Audience(public=True))
    publish(account, package._replace(version="1.3.0"), Audience(public=True))
    assert any("cannot be changed" in line for line in again)
    assert list(account.application.templates) == ["1.2.3", "1.3.0"]
    assert account.application.created["SpdxLicenseId"] == "MIT"


@pytest.mark.parametrize(
    ("audience", "organizations"),
    [(Audience(public=True), None), (Audience(organization="o-aaaaaaaaaa"), ["o-aaaaaaaaaa"])],
)
def test_it_is_deployed_by_whom_it_was_published_for(
    account: Account,
    package: application.Package,
    audience: Audience,
    organizations: list[str] | None,
) -> None:
    publish(account, package, audience)
    (statement,) = account.application.policy
    assert "Deploy" in statement["Actions"]
    assert statement.get("PrincipalOrgIDs") == organizations


def test_without_an_audience_it_stays_private(
    account: Account, package: application.Package
) -> None:
    publish(account, package, Audience())
    assert account.application.policy == []
