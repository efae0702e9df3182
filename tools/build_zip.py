"""Write the layer zip, byte for byte the same for the same inputs.

Usage: build_zip.py REPOSITORY WHEELS ZIP

REPOSITORY is the root of this repository, WHEELS a folder with the pinned wheels of the private
bundle, ZIP the file to write. Only the standard library is used, so that any Python from 3.10 on
can build the layer.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

BUNDLE = "python/lambda_once/_bundled/"
# Each in the folder that is put on the import path for it, so that looking for one finds no other.
BUNDLED_PACKAGES = {"aws_xray_sdk": "aws_xray_sdk", "jmespath": "jmespath", "wrapt": "aws_xray_sdk"}
OUR_PACKAGES = {
    "python/lambda_once/": "layer/lambda_once",
    "python/lambda_once_wrapper/": "wrapper/lambda_once_wrapper",
}
SCRIPT = "wrapper/lambda-once"
SCRIPT_START = b"#!/bin/sh\n"

# What a bundled package needs at run time. Its C sources and type stubs would be dead weight.
BUNDLED_SUFFIXES = {".py", ".json"}
LICENSE_NAMES = {"LICENSE", "NOTICE"}

# Promised in the README; a build that breaks them must not pass unseen.
OUR_LIMIT_BYTES = 100 * 1024
ZIP_LIMIT_BYTES = 400 * 1024

# The earliest time a zip can hold. The real times would make every build differ.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The layer cannot be built; the message says what to do."""


@dataclass(frozen=True)
class Entry:
    """One file of the zip: its path inside, its bytes, and its permission bits."""

    path: str
    content: bytes
    mode: int = 0o644


def script_entry(path: Path) -> Entry:
    """Read the exec wrapper, refusing one that the Lambda service could not start."""
    if not path.is_file():
        raise BuildError(f"{path} is missing: the layer is useless without its exec wrapper.")
    content = path.read_bytes()
    if b"\r" in content:
        raise BuildError(
            f"{path} has Windows line endings, which no kernel starts. Convert it to LF."
        )
    if not content.startswith(SCRIPT_START):
        raise BuildError(f"{path} must start with the line {SCRIPT_START.decode().strip()}.")
    return Entry(path.name, content, 0o755)


def package_entries(prefix: str, folder: Path) -> Iterator[Entry]:
    """Yield every file of one of our packages, without what compilers and checkers leave there."""
    if not folder.is_dir():
        raise BuildError(f"{folder} is missing.")
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        left_over = any(part == "__pycache__" or part.startswith(".") for part in inside.parts)
        if path.is_file() and not left_over:
            yield Entry(prefix + inside.as_posix(), path.read_bytes())


def find_wheel(wheels: Path, package: str) -> Path:
    """Find the one wheel of a package, refusing compiled ones."""
    found = sorted(wheels.glob(f"{package}-*.whl"))
    if len(found) != 1 or not found[0].name.endswith("-none-any.whl"):
        names = [path.name for path in found]
        raise BuildError(
            f"{wheels} must hold one pure wheel of {package}, found {names}. Delete the folder."
        )
    return found[0]


def bundle_entries(wheels: Path, package: str) -> Iterator[Entry]:
    """Yield the importable files of one bundled package, and its licence.

    Its dist-info stays out: importlib.metadata must not see packages the user did not install.
    """
    folder = f"{BUNDLE}{BUNDLED_PACKAGES[package]}/"
    with zipfile.ZipFile(find_wheel(wheels, package)) as wheel:
        for name in wheel.namelist():
            path = PurePosixPath(name)
            if path.parts[0] == package and path.suffix in BUNDLED_SUFFIXES:
                yield Entry(folder + name, wheel.read(name))
            elif path.parts[0].endswith(".dist-info") and path.name in LICENSE_NAMES:
                yield Entry(f"{folder}{package}.{path.name}", wheel.read(name))


def collect(repository: Path, wheels: Path) -> list[Entry]:
    """Gather all files of the layer, sorted by path."""
    entries = [script_entry(repository / SCRIPT)]
    for prefix, folder in OUR_PACKAGES.items():
        entries.extend(package_entries(prefix, repository / folder))
    for package in BUNDLED_PACKAGES:
        entries.extend(bundle_entries(wheels, package))
    return sorted(entries, key=lambda entry: entry.path)


def write_zip(entries: list[Entry], target: Path) -> None:
    """Write the zip beside its target first, so that a reader never sees half of one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.path, TIMESTAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, on whatever system the build runs
            info.external_attr = (stat.S_IFREG | entry.mode) << 16
            archive.writestr(info, entry.content)
    unfinished.replace(target)


def sizes(target: Path) -> tuple[int, int]:
    """Return the bytes of the whole zip and, of these, the bytes that the private bundle takes.

    An entry takes its compressed data, a local header of 30 bytes, a directory record of 46, and
    its name in both.
    """
    with zipfile.ZipFile(target) as archive:
        bundle = sum(
            info.compress_size + 30 + 46 + 2 * len(info.filename)
            for info in archive.infolist()
            if info.filename.startswith(BUNDLE)
        )
    return target.stat().st_size, bundle


def report(target: Path, shown_as: str) -> None:
    """Print the sizes and the hash, and refuse a zip that has outgrown its limits."""
    whole, bundle = sizes(target)
    ours = whole - bundle
    print(shown_as)
    print(f"  whole zip       {whole:>9,} bytes  (limit {ZIP_LIMIT_BYTES:,})")
    print(f"  our own part    {ours:>9,} bytes  (limit {OUR_LIMIT_BYTES:,})")
    print(f"  private bundle  {bundle:>9,} bytes")
    print(f"  SHA-256         {hashlib.sha256(target.read_bytes()).hexdigest()}")
    if whole > ZIP_LIMIT_BYTES or ours > OUR_LIMIT_BYTES:
        raise BuildError(
            "The zip has outgrown its limits: make it smaller, or change the promise in the README."
        )


def main(arguments: list[str]) -> int:
    """Build the zip; 0 if it was written and keeps its limits."""
    repository, wheels, target = (Path(argument) for argument in arguments)
    try:
        write_zip(collect(repository, wheels), target)
        report(target, os.path.relpath(target, repository))
    except BuildError as error:
        print(f"build_zip: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
