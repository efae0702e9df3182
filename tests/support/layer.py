"""The built layer, unpacked as the service unpacks it to /opt."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from tests.support.paths import LAYER_ZIP, REPOSITORY


def build_layer() -> Path:
    """Build the zip from what is in the repository now; takes well under a second."""
    built = subprocess.run(
        [REPOSITORY / "build.sh"], check=False, capture_output=True, text=True, cwd=REPOSITORY
    )
    if built.returncode != 0:
        raise RuntimeError(f"./build.sh failed:\n{built.stdout}{built.stderr}")
    return LAYER_ZIP


def unpack_layer(archive: Path, target: Path) -> Path:
    """Unpack a layer zip with its permissions, which zipfile by itself would drop."""
    with zipfile.ZipFile(archive) as layer:
        for info in layer.infolist():
            path = Path(layer.extract(info, target))
            path.chmod((info.external_attr >> 16) & 0o777)
    return target
