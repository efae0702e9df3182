"""An HTTP proxy in front of a local DynamoDB that counts requests and breaks chosen ones.

    with FaultProxy(ministack.endpoint) as proxy:
        proxy.inject("PutItem", DROP_REPLY)                # the next PutItem
        proxy.inject("UpdateItem", HALF_REPLY, after=1)    # the second UpdateItem from now
        proxy.inject(ANY, throttled(), times=3)
        ... use proxy.endpoint ...
        assert proxy.counts() == {"PutItem": 2, "UpdateItem": 1}

A fault says whether the store gets the request and what the client gets for an answer; the two are
independent, as on a real network.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.support.ports import LOOPBACK

ANY = "*"
ERROR_PREFIX = "com.amazonaws.dynamodb.v20120810#"
JSON_TYPE = "application/x-amz-json-1.0"


class Ending(Enum):
    """How an answer reaches the client."""

    WHOLE = "whole"
    NOTHING = "the connection is closed without an answer"
    RESET = "the connection is reset without an answer"
    HALF = "the connection is closed in the middle of the body"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: status, headers and body."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", JSON_TYPE),)


@dataclass(frozen=True)
class Fault:
    """What happens to one request.

    forward   whether the store gets it
    answer    what the client gets in the place of the store's answer
    ending    how it gets it
    before    runs before the store gets it: a delay, a barrier
    after     runs after the store has answered, before the client gets it
    """

    forward: bool = True
    answer: Answer | None = None
    ending: Ending = Ending.WHOLE
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None


PASS = Fault()
DROP_REPLY = Fault(ending=Ending.NOTHING)
DROP_REQUEST = Fault(forward=False, ending=Ending.NOTHING)
RESET_BEFORE = Fault(forward=False, ending=Ending.RESET)
RESET_AFTER = Fault(ending=Ending.RESET)
HALF_REPLY = Fault(ending=Ending.HALF)
GARBAGE = Fault(answer=Answer(200, b"<html>no JSON at all</html>"))
GARBAGE_UNFORWARDED = Fault(forward=False, answer=GARBAGE.answer)
EMPTY_BODY = Fault(answer=Answer(200, b""))


def status(code: int, error: str, message: str = "injected", **members: Any) -> Fault:
    """An AWS error answered in the store's place, e.g. `status(400, "ValidationException")`.

    `error` may carry its own prefix up to "#". `members` are added to the body.
    """
    kind = error if "#" in error else ERROR_PREFIX + error
    body = json.dumps({"__type": kind, "message": message, **members}).encode()
    return Fault(forward=False, answer=Answer(code, body))


def throttled() -> Fault:
    """The error that DynamoDB gives when a table or partition is too busy."""
    return status(400, "ProvisionedThroughputExceededException", "The level of ... was exceeded")


def unavailable() -> Fault:
    """A server error that does not even speak JSON, as a load balancer gives it."""
    return Fault(forward=False, answer=Answer(503, b"Service Unavailable", ()))


def slow(seconds: float, *, before: bool = False) -> Fault:
    """The store's answer comes late; with `before`, its request does."""

    def wait() -> None:
        time.sleep(seconds)

    return Fault(before=wait) if before else Fault(after=wait)


def hold(gate: threading.Event, *, before: bool = False, timeout_s: float = 30) -> Fault:
    """As `slow`, until the test opens the gate."""

    def wait() -> None:
        gate.wait(timeout_s)

    return Fault(before=wait) if before else Fault(after=wait)


@dataclass(frozen=True)
class Request:
    """A request that came in: its operation, JSON body and headers, and what happened to it."""

    operation: str
    body: dict[str, Any]
    headers: dict[str, str]
    fault: Fault


@dataclass
class Plan:
    """Faults still to come for one operation: skip `after` requests, then break `times` of them."""

    operation: str
    fault: Fault
    times: int
    after: int

    def matches(self, operation: str) -> bool:
        return self.operation in (ANY, operation)

    def take(self) -> Fault | None:
        """The fault for a matching request, or None if it is not this plan's turn."""
        if self.after > 0:
            self.after -= 1
            return None
        if self.times == 0:
            return None
        self.times -= 1
        return self.fault


@dataclass
class Book:
    """What was asked for and what is to be broken; shared by all connections."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    requests: list[Request] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)

    def enter(self, operation: str, body: dict[str, Any], headers: dict[str, str]) -> Fault:
        """Record a request and decide what happens to it: the first plan whose turn it is."""
        with self.lock:
            fault = self._next_fault(operation)
            self.requests.append(Request(operation, body, headers, fault))
            return fault

    def _next_fault(self, operation: str) -> Fault:
        for plan in self.plans:
            if plan.matches(operation) and (fault := plan.take()):
                return fault
        return PASS


class Handler(BaseHTTPRequestHandler):
    """One client connection, kept alive as the real service does."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError):  # the client was quicker
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing; tests look at `FaultProxy.requests`."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        fault = self.server.book.enter(operation, json.loads(raw), dict(self.headers))
        if fault.before:
            fault.before()
        answer = self._forward(raw) if fault.forward else None
        if fault.after:
            fault.after()
        self._answer(fault.answer or answer, fault.ending)

    def _forward(self, raw: bytes) -> Answer:
        # A connection of its own: a kept one could have been closed by the store in the meantime.
        store = http.client.HTTPConnection(*self.server.store, timeout=30)
        try:
            store.request("POST", self.path, raw, dict(self.headers))
            answer = store.getresponse()
            body = answer.read()
        finally:
            store.close()
        kept = [
            (name, value)
            for name, value in answer.getheaders()
            if name.lower() not in {"content-length", "connection", "transfer-encoding"}
        ]
        return Answer(answer.status, body, tuple(kept))

    def _answer(self, answer: Answer | None, ending: Ending) -> None:
        if ending is Ending.RESET:
            arm_reset(self.connection)
        if ending in (Ending.RESET, Ending.NOTHING) or answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if ending is Ending.HALF:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(answer.body)


def arm_reset(connection: socket.socket) -> None:
    """Make the peer see a reset when the connection is closed: a linger time of 0 does that."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Server(ThreadingHTTPServer):
    """The listening side: a thread for each connection."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, store: tuple[str, int], book: Book) -> None:
        self.store = store
        self.book = book
        self.connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, 0), Handler)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection without the polite shutdown, which would turn a reset into a close."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the proxy's."""

    def cut_all(self) -> None:
        """End every open connection."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):  # already gone
                connection.shutdown(socket.SHUT_RDWR)


class FaultProxy:
    """The proxy. A context manager; `endpoint` is what clients use in the place of `store`."""

    def __init__(self, store: str) -> None:
        parts = urlsplit(store)
        self._book = Book()
        self._server = Server((parts.hostname or LOOPBACK, parts.port or 80), self._book)
        self.endpoint = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> FaultProxy:
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.005,), name="fault-proxy", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.cut_all()

    def inject(self, operation: str, fault: Fault, *, times: int = 1, after: int = 0) -> None:
        """Break `times` requests of an operation (or ANY), once `after` of them have passed.

        Injections for one operation add up: the oldest with faults left comes first.
        """
        with self._book.lock:
            self._book.plans.append(Plan(operation, fault, times, after))

    def requests(self, operation: str = ANY) -> list[Request]:
        """The requests of an operation since the start or the last reset, in order of arrival."""
        with self._book.lock:
            return [each for each in self._book.requests if operation in (ANY, each.operation)]

    def counts(self) -> dict[str, int]:
        """How many requests came in, by operation."""
        return dict(Counter(request.operation for request in self.requests()))

    def reset(self) -> None:
        """Forget all requests and all faults still to come."""
        with self._book.lock:
            self._book.requests.clear()
            self._book.plans.clear()
