"""Under SnapStart nothing that must be fresh exists before the snapshot.

The emulator has no SnapStart, so the Runtime API is a fake. The real runtime client runs the
function's own hooks, asks for /restore/next, and goes on when that is answered.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.fidelity.faked import WAIT_S, running
from tests.fidelity.observe import Setting
from tests.support.aws import items
from tests.support.fake_runtime_api import FakeRuntimeApi
from tests.support.fault_proxy import FaultProxy
from tests.support.ports import LOOPBACK
from tests.support.processes import wait_until

SNAPSTART = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}

# Watches from its import on, which is before anything of ours is loaded, and tells in its hook,
# which the runtime calls when all is loaded and the snapshot is about to be taken.
WATCHING = """
import json, os, sys
from snapshot_restore_py import register_before_snapshot

seen = []
# urllib3 binds a socket at import to learn whether there is IPv6, and closes it.
REMOTE = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda name, args: seen.append(name) if name in REMOTE else None)
urandom = os.urandom

def drawn(size):
    if "lambda_once" in sys._getframe(1).f_code.co_filename:
        seen.append("os.urandom")
    return urandom(size)

os.urandom = drawn

def open_sockets():
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    return [link for link in links if link.startswith("socket:")]

@register_before_snapshot
def tell():
    print("SNAPSHOT", json.dumps([seen, open_sockets()]), flush=True)
    print("LOADED", "boto3.session" in sys.modules, flush=True)

def handler(event, context):
    return os.getpid()
"""


@pytest.fixture
def api() -> Iterator[FakeRuntimeApi]:
    with FakeRuntimeApi() as server:
        yield server


def test_no_socket_client_or_token_exists_before_the_snapshot(
    api: FakeRuntimeApi, setting: Setting, tmp_path: Path
) -> None:
    key = {"IDEMPOTENCY_KEY": "orderId"}
    with running(api, setting, tmp_path / "task", WATCHING, **SNAPSTART, **key) as function:
        wait_until(lambda: "restore/next" in api.paths, WAIT_S, "the runtime to ask for a restore")
        assert "SNAPSHOT [[], []]" in function.output()
        assert "LOADED True" in function.output()
        assert "guards app.handler" in function.output()
        api.restored.set()
        first, second = (api.invoke({"orderId": 1}).result(WAIT_S) for _ in range(2))
    assert (first.is_error, first.body) == (False, second.body)
    assert api.paths.index("restore/next") < api.paths.index("invocation/next")


@contextmanager
def credentials_server() -> Iterator[tuple[str, list[str]]]:
    """The URL of the container's credentials, and the keys given out: another each time."""
    given: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given.append(f"AKID{len(given)}")
            # Within the time in which a client looks for fresh ones.
            expiry = datetime.now(timezone.utc) + timedelta(minutes=5)
            body = json.dumps(
                {
                    "AccessKeyId": given[-1],
                    "SecretAccessKey": "secret",
                    "Token": "token",
                    "Expiration": expiry.strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            ).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as inherited
            return

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/credentials", given
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_credentials_come_after_the_restore_and_are_rotated(
    api: FakeRuntimeApi, setting: Setting, tmp_path: Path, proxy: FaultProxy
) -> None:
    with credentials_server() as (url, given):
        variables = {
            **SNAPSTART,
            "AWS_ENDPOINT_URL_DYNAMODB": proxy.endpoint,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "local",
            "AWS_ACCESS_KEY_ID": "",
            "AWS_SECRET_ACCESS_KEY": "",
            "AWS_SESSION_TOKEN": "",
        }
        with running(api, setting, tmp_path / "task", WATCHING, **variables):
            wait_until(lambda: "restore/next" in api.paths, WAIT_S, "the question for a restore")
            assert given == []
            api.restored.set()
            answers = [api.invoke({"orderId": n}).result(WAIT_S) for n in (1, 2)]
    assert not any(answer.is_error for answer in answers)
    claims = [request.headers["Authorization"] for request in proxy.requests("PutItem")]
    used = [claim.partition("Credential=")[2].partition("/")[0] for claim in claims]
    assert len(set(used)) == 2
    assert set(used) <= set(given)


# Forking where a restored environment begins gives two processes with one memory, as two restores
# of one snapshot are. The kernel's source of random numbers is not copied; it is on Lambda neither,
# where each restored machine gets fresh entropy.
FORKING = """
import os
from snapshot_restore_py import register_after_restore

register_after_restore(os.fork)

def handler(event, context):
    import time
    time.sleep(1)  # so that the other process takes the other invocation
    return os.getpid()
"""


def test_two_restores_of_one_snapshot_share_no_owner_token(
    api: FakeRuntimeApi, setting: Setting, tmp_path: Path
) -> None:
    scope = {"IDEMPOTENCY_SCOPE": f"restores-{tmp_path.name}", "PYTHONWARNINGS": "ignore"}
    api.restored.set()
    with running(api, setting, tmp_path / "task", FORKING, **SNAPSTART, **scope):
        waiting = [api.invoke({"orderId": n}) for n in (1, 2)]
        pids = {answer.result(WAIT_S).body for answer in waiting}
    assert len(pids) == 2
    stored = items(setting.endpoint, setting.table)
    owners = {
        i["owner"]["S"] for i in stored if i["id"]["S"].startswith(scope["IDEMPOTENCY_SCOPE"])
    }
    assert len(owners) == 2
