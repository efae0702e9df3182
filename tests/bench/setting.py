"""What all parts measure in: the interpreter, the layer, the server, and what a process sees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import botocore

from tests.bench.canned import Canned, running_canned
from tests.support.aws import CREDENTIALS, REGION
from tests.support.certificates import Certificates, has_openssl, make_certificates
from tests.support.layer import unpack_layer
from tests.support.paths import LAYER_ZIP, REPOSITORY, TOOLS

PYTHON = TOOLS / "bench" / "bin" / "python"
PLAIN = "plain HTTP"
TLS = "TLS"


class Setting(NamedTuple):
    """What one run of the benchmark has in common.

    runs          how often each thing is measured
    layer         the built zip, unpacked
    certificates  None where the machine cannot make any: then nothing is measured over TLS
    authorities   the PEM file that clients are to trust
    """

    runs: int
    layer: Path
    certificates: Certificates | None
    authorities: Path

    @contextmanager
    def canned(self, delay_ms: int = 0) -> Iterator[Server]:
        """The canned DynamoDB."""
        with running_canned(self.certificates, delay_ms) as canned:
            yield Server(canned, self)


class Server(NamedTuple):
    """The canned DynamoDB as the measured processes see it."""

    canned: Canned
    setting: Setting

    def schemes(self) -> Mapping[str, Mapping[str, str]]:
        """The variables with which a client comes to it, by plain HTTP and by TLS."""
        found = {PLAIN: {"AWS_ENDPOINT_URL_DYNAMODB": self.canned.plain}}
        if self.canned.tls:
            found[TLS] = {
                "AWS_ENDPOINT_URL_DYNAMODB": self.canned.tls,
                "AWS_CA_BUNDLE": str(self.setting.authorities),
            }
        return found


@contextmanager
def new_setting(runs: int) -> Iterator[Setting]:
    """Unpack the layer, make certificates."""
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        authorities = folder / "authorities.pem"
        certificates = None
        if has_openssl():
            certificates = make_certificates(folder)
            authorities.write_text(_trusted_by_botocore() + certificates.root.read_text())
        layer = unpack_layer(LAYER_ZIP, folder / "layer")
        yield Setting(runs, layer, certificates, authorities)


def _trusted_by_botocore() -> str:
    """Real clients read a list of many authorities, which takes its time: so must ours."""
    return Path(botocore.__file__).with_name("cacert.pem").read_text()


def child(variables: Mapping[str, str], module: str, *arguments: str) -> Any:
    """Run one of the measuring modules; what it printed."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'layer'}:{REPOSITORY / 'wrapper'}",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_LAMBDA_FUNCTION_NAME": "orders",
        **CREDENTIALS,
        **variables,
    }
    done = subprocess.run(
        [str(PYTHON), "-m", f"tests.bench.{module}", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)
