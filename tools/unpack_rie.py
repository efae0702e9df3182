"""Take the Runtime Interface Emulator and the sample events out of the wheel that ships them.

Usage: unpack_rie.py WHEELS TARGET

WHEELS is a folder holding the aws-sam-cli wheel. TARGET receives `aws-lambda-rie`, the binary for
this processor, `events/`, the sample event templates by service, and `event-mapping.json`, which
describes their placeholders.
"""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path

BINARIES = {
    "x86_64": "samcli/local/rapid/aws-lambda-rie-x86_64",
    "aarch64": "samcli/local/rapid/aws-lambda-rie-arm64",
    "arm64": "samcli/local/rapid/aws-lambda-rie-arm64",
}
EVENTS = "samcli/lib/generated_sample_events/"


def unpack_binary(wheel: zipfile.ZipFile, target: Path) -> None:
    """Write the emulator for this processor, executable."""
    machine = platform.machine()
    if machine not in BINARIES:
        raise SystemExit(f"unpack_rie: there is no emulator for a {machine} processor.")
    binary = target / "aws-lambda-rie"
    binary.write_bytes(wheel.read(BINARIES[machine]))
    binary.chmod(0o755)


def unpack_events(wheel: zipfile.ZipFile, target: Path) -> None:
    """Write the JSON files: the templates and the mapping that describes them."""
    for name in wheel.namelist():
        if name.startswith(EVENTS) and name.endswith(".json"):
            path = target / name.removeprefix(EVENTS)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wheel.read(name))


def main(wheels: Path, target: Path) -> None:
    """Unpack both from the one wheel."""
    (path,) = wheels.glob("aws_sam_cli-*.whl")
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path) as wheel:
        unpack_binary(wheel, target)
        unpack_events(wheel, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
