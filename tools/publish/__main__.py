"""The command: see ./build.sh publish --help."""

from __future__ import annotations

import argparse
import base64
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from . import layers, pointer, sar, table
from .calls import Calls, Clients, PublishError
from .layers import Audience, Published, Release

REPOSITORY = Path(__file__).resolve().parents[2]
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]+")
_ORGANIZATION = re.compile(r"o-[a-z0-9]{10,32}")

_EXAMPLES = """\
examples:
  ./build.sh publish --regions eu-west-1,us-east-1 --dry-run
  ./build.sh publish --regions eu-west-1,us-east-1 --organization o-exampleorgid
  ./build.sh publish --regions eu-west-1 --public --sar-bucket my-bucket --source-url https://example.com/lambda-once
"""


def _regions(text: str) -> list[str]:
    regions = [each.strip() for each in text.split(",")]
    wrong = [each for each in regions if not _REGION.fullmatch(each)]
    if wrong:
        raise argparse.ArgumentTypeError(
            f"{wrong[0]!r} is no Region; expected names such as eu-west-1, with commas between"
        )
    return list(dict.fromkeys(regions))


def _organization(text: str) -> str:
    if not _ORGANIZATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no id of an organisation (o-exampleorgid)")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./build.sh publish",
        description="Publish dist/lambda-once.zip as a layer. What is there already stays.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--regions", type=_regions, required=True, help="eu-west-1,us-east-1,...")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--public", action="store_true", help="everybody may use the layer")
    who.add_argument(
        "--organization", type=_organization, help="the accounts of this one may use it"
    )
    parser.add_argument(
        "--sar-bucket",
        default="",
        help="publish the application too, from the first Region, with its code in this bucket",
    )
    parser.add_argument(
        "--source-url", default="", help="where the source is; a public application must say"
    )
    parser.add_argument("--zip", type=Path, default=REPOSITORY / "dist" / "lambda-once.zip")
    parser.add_argument("--table", type=Path, default=REPOSITORY / "docs" / "layers.md")
    parser.add_argument(
        "--dry-run", action="store_true", help="look, print every call, and change nothing"
    )
    return parser


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.sar_bucket and options.public and not options.source_url:
        parser.error("--public with --sar-bucket needs --source-url: a public application must say")
    return options


@cache
def _client(service: str, region: str) -> Any:
    return boto3.client(service, region_name=region)


def main(
    arguments: Sequence[str],
    clients: Clients = _client,
    say: Callable[[str], None] = print,
) -> int:
    """Publish as the arguments say; 0 if all of it is done, 1 if something failed."""
    options = _parse(arguments)
    calls = Calls(clients, say, dry_run=options.dry_run)
    try:
        return _run(calls, options)
    except (PublishError, ClientError, BotoCoreError) as fault:
        say(f"publish: {fault}")
        return 1


def _run(calls: Calls, options: argparse.Namespace) -> int:
    release = Release.read(options.zip)
    audience = Audience(options.public, options.organization or "")
    published, failed = _everywhere(calls, options.regions, release, audience)
    if published and not calls.dry_run:
        sha256_hex = base64.b64decode(release.sha256).hex()
        table.write(options.table, published, release, sha256_hex)
    if options.sar_bucket and not failed:
        _application(calls, options, release, audience)
    for each in published:
        calls.note(f"{'new  ' if each.is_new else 'there'} {each.arn}")
    for line in failed:
        calls.note(f"publish: {line}")
    return 1 if failed else 0


def _everywhere(
    calls: Calls, regions: list[str], release: Release, audience: Audience
) -> tuple[list[Published], list[str]]:
    """Publish in each Region; what was published, and a line for each Region that failed."""
    organization = ""
    if audience.organization:
        organization = pointer.organization_arn(calls, audience.organization)
    outcomes = [_publish(calls, region, release, audience, organization) for region in regions]
    return (
        [each for each in outcomes if isinstance(each, Published)],
        [each for each in outcomes if isinstance(each, str)],
    )


def _publish(
    calls: Calls, region: str, release: Release, audience: Audience, organization: str
) -> Published | str:
    """What was published in the Region, or why it was not: one that fails stops no other."""
    try:
        published = layers.publish(calls, region, release)
        layers.share(calls, published, audience)
        pointer.point(calls, published, audience, organization)
    except (ClientError, BotoCoreError) as fault:
        return f"{region}: {fault}"
    return published


def _application(
    calls: Calls, options: argparse.Namespace, release: Release, audience: Audience
) -> None:
    region = options.regions[0]
    package = sar.package(REPOSITORY, options.sar_bucket, release.version)
    if not calls.dry_run:
        package.save(options.zip.parent / "sar")
    sar.upload(calls, region, options.sar_bucket, package)
    sar.publish(calls, region, package, audience, options.source_url)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
