"""The SAM CLI's own reader, checker and translator of templates, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.aws import REGION
from tests.support.paths import REPOSITORY, TOOLS

SAM = TOOLS / "sam" / "bin"
TEMPLATE = REPOSITORY / "template.yaml"
MISSING = "the SAM CLI is not installed; ./build.sh test installs it"

# Prints a template as JSON: {"Ref": ...} for !Ref, and so on.
AS_JSON = """
import json, pathlib, sys
from samcli.yamlhelper import yaml_parse
print(json.dumps(yaml_parse(pathlib.Path(sys.argv[1]).read_text())))
"""

# Prints what CloudFormation makes of a template with the SAM transform, read as JSON from a file.
# Managed policies that are named, not referred to, would be looked up by the loader.
EXPANDED = """
import json, pathlib, sys
from types import SimpleNamespace
from samtranslator.translator.transform import transform
template = json.loads(pathlib.Path(sys.argv[1]).read_text())
print(json.dumps(transform(template, {}, SimpleNamespace(load=dict))))
"""


def is_installed() -> bool:
    return (SAM / "sam").exists()


def run(home: Path, *command: str | Path) -> str:
    """What one of SAM's tools says, without this machine's settings or any credentials."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AWS_DEFAULT_REGION": REGION,
        "SAM_CLI_TELEMETRY": "0",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_json(home: Path, template: Path) -> Any:
    """A template as plain data."""
    return json.loads(run(home, SAM / "python", "-c", AS_JSON, template))


def expanded(home: Path, template: Any) -> Any:
    """The same without SAM's own kinds of resources."""
    written = home / "template.json"
    written.write_text(json.dumps(template))
    return json.loads(run(home, SAM / "python", "-c", EXPANDED, written))


def properties(resources: dict[str, Any], kind: str) -> Any:
    """The properties of the one resource of this type."""
    (found,) = [each["Properties"] for each in resources.values() if each["Type"] == kind]
    return found
