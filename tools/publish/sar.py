"""The application for the Serverless Application Repository: template, readme and licence.

Its template is template.yaml with the local code replaced by what was uploaded to a bucket. The
repository reads the bucket, so the bucket's policy must let it (docs/publishing.md).
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from .calls import Calls
from .layers import NAME, Audience

DESCRIPTION = "Idempotency for Lambda functions in Python, without a change to their code"
_AUTHOR = "lambda-once"
_LABELS = ["idempotency", "lambda", "layer", "python"]
_LOCAL_CODE = re.compile(r"^(\s+(?:CodeUri|ContentUri): )(?!s3:)(\S+)$", re.MULTILINE)
# The earliest time a zip can hold. The real times would make every zip differ.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


class Package(NamedTuple):
    """What is published: the texts, and the files that the template names, by their key."""

    version: str
    template: str
    readme: str
    license: str
    files: dict[str, bytes]

    def save(self, folder: Path) -> None:
        """Write the texts into a folder, to be looked at or published by hand."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "template.yaml").write_text(self.template)
        (folder / "README.md").write_text(self.readme)
        (folder / "LICENSE").write_text(self.license)


def package(repository: Path, bucket: str, version: str) -> Package:
    """Put the package together. Files are named by their content, so the same are the same."""
    files: dict[str, bytes] = {}

    def uploaded(match: re.Match[str]) -> str:
        content = _zipped(repository / match[2])
        key = f"{NAME}/{hashlib.sha256(content).hexdigest()}.zip"
        files[key] = content
        return f"{match[1]}s3://{bucket}/{key}"

    return Package(
        version=version,
        template=_LOCAL_CODE.sub(uploaded, (repository / "template.yaml").read_text()),
        readme=(repository / "README.md").read_text(),
        license=(repository / "LICENSE").read_text(),
        files=files,
    )


def _zipped(path: Path) -> bytes:
    """A zip as it is, the Python files of a folder as a zip that is the same each time."""
    if path.is_file():
        return path.read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*.py")):
            info = zipfile.ZipInfo(file.relative_to(path).as_posix(), _TIMESTAMP)
            info.external_attr = 0o644 << 16
            archive.writestr(info, file.read_bytes())
    return target.getvalue()


def upload(calls: Calls, region: str, bucket: str, package: Package) -> None:
    """Put the package's files into the bucket, those that are not there."""
    for key, content in package.files.items():
        if not calls.read(region, "s3", "head_object", Bucket=bucket, Key=key):
            calls.write(region, "s3", "put_object", Bucket=bucket, Key=key, Body=content)


def publish(
    calls: Calls, region: str, package: Package, audience: Audience, source_url: str
) -> None:
    """Publish the application, or a new version of it. A version that is there is not changed."""
    caller = calls.read(region, "sts", "get_caller_identity")
    partition = caller["Arn"].split(":")[1]
    application = f"arn:{partition}:serverlessrepo:{region}:{caller['Account']}:applications/{NAME}"
    source = {"SourceCodeUrl": source_url} if source_url else {}
    if not _found(calls, region, ApplicationId=application):
        _create(calls, region, package, source)
    elif _found(calls, region, ApplicationId=application, SemanticVersion=package.version):
        calls.note(f"note: {application} has version {package.version}; it cannot be changed")
    else:
        _add_version(calls, region, package, source, application)
    _share(calls, region, audience, application)


def _found(calls: Calls, region: str, **parameters: str) -> Any:
    return calls.read(region, "serverlessrepo", "get_application", **parameters)


def _create(calls: Calls, region: str, package: Package, source: dict[str, str]) -> None:
    calls.write(
        region,
        "serverlessrepo",
        "create_application",
        Name=NAME,
        Author=_AUTHOR,
        Description=DESCRIPTION,
        Labels=_LABELS,
        SpdxLicenseId="MIT",
        LicenseBody=package.license,
        ReadmeBody=package.readme,
        SemanticVersion=package.version,
        TemplateBody=package.template,
        **source,
    )


def _add_version(
    calls: Calls, region: str, package: Package, source: dict[str, str], application: str
) -> None:
    calls.write(
        region,
        "serverlessrepo",
        "create_application_version",
        ApplicationId=application,
        SemanticVersion=package.version,
        TemplateBody=package.template,
        **source,
    )
    calls.write(
        region,
        "serverlessrepo",
        "update_application",
        ApplicationId=application,
        Description=DESCRIPTION,
        Labels=_LABELS,
        ReadmeBody=package.readme,
    )


def _share(calls: Calls, region: str, audience: Audience, application: str) -> None:
    """Let the audience deploy the application; its policy is replaced as a whole."""
    if not audience.public and not audience.organization:
        return
    statement: dict[str, Any] = {
        "StatementId": NAME,
        "Principals": ["*"],
        "Actions": ["Deploy"],
    }
    if audience.organization:
        statement |= {
            "PrincipalOrgIDs": [audience.organization],
            "Actions": ["Deploy", "UnshareApplication"],
        }
    calls.write(
        region,
        "serverlessrepo",
        "put_application_policy",
        ApplicationId=application,
        Statements=[statement],
    )
