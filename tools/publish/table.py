"""docs/layers.md: where the layer is, Region by Region."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .layers import Published, Release

_PAGE = """\
# The layer, by Region

`./build.sh publish` writes this page. Versions of a layer are numbered in each Region by itself, so
take the ARN from the row of your Region. The SHA-256 is that of the zip, as `./build.sh` prints it:
whoever builds this version gets the same.

| Region | ARN | version | SHA-256 |
|---|---|---|---|
{rows}
"""
_ROW = re.compile(r"^\| ([a-z0-9-]+) \| (`arn:.*\|)$", re.MULTILINE)


def write(path: Path, published: Iterable[Published], release: Release, sha256_hex: str) -> None:
    """Write the rows of these Regions. Rows of other Regions stay as they are."""
    rows = dict(_ROW.findall(path.read_text())) if path.exists() else {}
    for each in published:
        rows[each.region] = f"`{each.arn}` | {release.version} | `{sha256_hex}` |"
    lines = [f"| {region} | {rest}" for region, rest in sorted(rows.items())]
    path.write_text(_PAGE.format(rows="\n".join(lines)))
