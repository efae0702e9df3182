"""The Runtime API as a small server, for what the emulator does not have.

That is SnapStart, and several invocations at once.

    with FakeRuntimeApi() as api:
        ...  # start a runtime with AWS_LAMBDA_RUNTIME_API=api.address
        answer = api.invoke({"orderId": 1}).result(timeout=20)

Each process that asks for its next invocation gets one, in the order in which they were made.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.support.ports import LOOPBACK

PREFIX = "/2018-06-01/runtime"
ARN = "arn:aws:lambda:eu-west-1:123456789012:function:orders"
DEADLINE_S = 20


@dataclass(frozen=True)
class Answer:
    """What the runtime posted for an invocation: its body, and whether it is an error."""

    body: bytes
    is_error: bool

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class _Invocation:
    request_id: str
    body: bytes
    answer: Future[Answer]


class FakeRuntimeApi:
    """The server. A context manager.

    paths     what was asked for, in order and without the prefix: "restore/next"
    restored  set it to let /restore/next be answered
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.restored = threading.Event()
        self._waiting: queue.Queue[_Invocation | None] = queue.Queue()
        self._open: dict[str, _Invocation] = {}
        self._server = ThreadingHTTPServer(
            (LOOPBACK, 0), type("Handler", (_Handler,), {"api": self})
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> FakeRuntimeApi:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restored.set()
        self._waiting.put(None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def invoke(self, event: object) -> Future[Answer]:
        """Hand an event to the next process that asks for one."""
        answer: Future[Answer] = Future()
        self._waiting.put(_Invocation(str(uuid.uuid4()), json.dumps(event).encode(), answer))
        return answer

    def next_invocation(self) -> _Invocation | None:
        """The next one, as soon as there is one; None at the end."""
        invocation = self._waiting.get()
        if invocation is None:
            self._waiting.put(None)  # for the next thread that waits
            return None
        self._open[invocation.request_id] = invocation
        return invocation

    def answer(self, request_id: str, body: bytes, *, is_error: bool) -> None:
        self._open.pop(request_id).answer.set_result(Answer(body, is_error))


class _Handler(BaseHTTPRequestHandler):
    api: FakeRuntimeApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with suppress(ConnectionError):  # a runtime that was ended while it waited
            super().handle()

    def do_GET(self) -> None:
        path = self.path.removeprefix(f"{PREFIX}/")
        self.api.paths.append(path)
        if path == "restore/next":
            self.api.restored.wait()
            self._send(200, {}, b"")
        elif (invocation := self.api.next_invocation()) is not None:
            self._send(200, _headers_of(invocation), invocation.body)

    def do_POST(self) -> None:
        path = self.path.removeprefix(f"{PREFIX}/")
        self.api.paths.append(path)
        body = self._body()
        if path.startswith("invocation/"):
            _, request_id, kind = path.split("/")
            self.api.answer(request_id, body, is_error=kind == "error")
        self._send(202, {}, b'{"status": "OK"}')

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the runtime has ended

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as inherited
        return


def _headers_of(invocation: _Invocation) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
        "Lambda-Runtime-Deadline-Ms": str(int((time.time() + DEADLINE_S) * 1000)),
        "Lambda-Runtime-Invoked-Function-Arn": ARN,
        "Lambda-Runtime-Trace-Id": "Root=1-5759e988-bd862e3fe1be46a994272793",
    }
