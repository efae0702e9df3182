"""A server certificate for loopback, made when it is needed: no key lies in the repository.

Signed through an intermediate authority, as the certificates of AWS's endpoints are, with RSA keys
of 2,048 bits throughout: checking it costs a client what checking theirs costs.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.ports import LOOPBACK

_KEYS = "subjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n"
_AUTHORITY = f"basicConstraints = critical, CA:true\nkeyUsage = critical, keyCertSign\n{_KEYS}"
_SETTINGS = f"""
[req]
distinguished_name = name
[name]
[root]
{_AUTHORITY}
[intermediate]
{_AUTHORITY}
[server]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:{LOOPBACK}, DNS:localhost
{_KEYS}
"""


class Certificates(NamedTuple):
    """PEM files.

    root   the authority that a client must trust
    chain  what a server shows: its certificate and the intermediate one
    key    the server's private key
    """

    root: Path
    chain: Path
    key: Path


def has_openssl() -> bool:
    """Whether the program that makes certificates is on this machine."""
    return shutil.which("openssl") is not None


def make_certificates(folder: Path) -> Certificates:
    """Make them in this folder, valid for two days; takes about a second.

    RuntimeError if the openssl program is missing or fails.
    """
    if not has_openssl():
        raise RuntimeError("certificates need the openssl program, which is not on PATH")
    (folder / "settings").write_text(_SETTINGS)
    _sign(folder, "root", None)
    _sign(folder, "intermediate", "root")
    _sign(folder, "server", "intermediate")
    chain = folder / "chain.pem"
    chain.write_text("".join(_pem(folder, name).read_text() for name in ("server", "intermediate")))
    return Certificates(_pem(folder, "root"), chain, _key(folder, "server"))


def _sign(folder: Path, name: str, issuer: str | None) -> None:
    """Make a key and its certificate, signed by the issuer's key or, without one, by its own."""
    settings, request = str(folder / "settings"), str(folder / f"{name}.csr")
    key = str(_key(folder, name))
    subject = f"/CN=lambda-once test {name}"
    _openssl(
        *("req", "-new", "-config", settings, "-subj", subject, "-out", request),
        *("-newkey", "rsa:2048", "-nodes", "-keyout", key),
    )
    signer = ["-signkey", key]
    if issuer:
        signer = ["-CA", str(_pem(folder, issuer)), "-CAkey", str(_key(folder, issuer))]
        signer.append("-CAcreateserial")
    _openssl(
        *("x509", "-req", "-sha256", "-days", "2", "-in", request, *signer),
        *("-extfile", settings, "-extensions", name, "-out", str(_pem(folder, name))),
    )


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], check=False, capture_output=True, text=True)  # noqa: S607  whichever the machine has
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed:\n{done.stderr}")


def _pem(folder: Path, name: str) -> Path:
    return folder / f"{name}.pem"


def _key(folder: Path, name: str) -> Path:
    return folder / f"{name}.key"
