"""A DynamoDB that answers at once and without thinking, so that only the client is measured.

    python -m tests.bench.canned DELAY_MS PORT [TLS_PORT CHAIN KEY]

It speaks plain HTTP on one port and TLS on another. What it answers depends on the table's name
alone (see ``ANSWERS``), with the headers that DynamoDB sends. A GET is answered with the number of
requests on both ports since the last GET, by operation.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import ssl
import sys
import time
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from tests.support.certificates import Certificates
from tests.support.paths import REPOSITORY
from tests.support.ports import LOOPBACK, free_ports, is_listening
from tests.support.processes import Process

# Every write succeeds; every claim meets the completed record of the layer, or of Powertools.
FRESH = "fresh"
LAYER_DONE = "layer-done"
POWERTOOLS_DONE = "powertools-done"

# The table of completed records, by subject.
DONE = {"layer": LAYER_DONE, "powertools": POWERTOOLS_DONE}

RESULT = '{"status": "booked"}'
FAR = {"N": "4102444800"}
_LAYER_ITEM = {
    "id": {"S": "orders#0"},
    "status": {"S": "COMPLETED"},
    "owner": {"S": "another"},
    "expires_at": FAR,
    "result": {"S": RESULT},
    "encoding": {"S": "text"},
    "parts": {"N": "0"},
}
_POWERTOOLS_ITEM = {
    "id": {"S": "orders#0"},
    "status": {"S": "COMPLETED"},
    "expiration": FAR,
    "data": {"S": RESULT},
}


class Response(NamedTuple):
    """An answer, ready but for what differs from one to the next."""

    head: bytes
    rest: bytes

    def sent_now(self) -> bytes:
        # A request id has 52 letters and digits.
        varying = f"Date: {_date(int(time.time()))}\r\nx-amzn-RequestId: {next(_numbers):052d}\r\n"
        return self.head + varying.encode() + self.rest


_numbers = itertools.count(1)


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


def _response(status: str, body: Any) -> Response:
    data = json.dumps(body).encode()
    return Response(
        f"HTTP/1.1 {status}\r\nServer: Server\r\n".encode(),
        b"Content-Type: application/x-amz-json-1.0\r\n"
        b"Content-Length: %d\r\nConnection: keep-alive\r\nx-amz-crc32: %d\r\n\r\n%b"
        % (len(data), zlib.crc32(data), data),
    )


def _refusal(item: Any) -> Response:
    kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
    message = "The conditional request failed"
    return _response("400 Bad Request", {"__type": kind, "message": message, "Item": item})


OK = _response("200 OK", {"ConsumedCapacity": {"TableName": FRESH, "CapacityUnits": 1.0}})
ANSWERS = {
    FRESH: OK,
    LAYER_DONE: _refusal(_LAYER_ITEM),
    POWERTOOLS_DONE: _refusal(_POWERTOOLS_ITEM),
}

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_OPERATION = re.compile(rb"(?i)\r\nx-amz-target: *DynamoDB_20120810\.(\w+)")
_TABLE = re.compile(rb'"TableName": ?"([^"]+)"')


class Connection(asyncio.Protocol):
    """One client's connection: requests in, answers out, in order."""

    counts: ClassVar[Counter[str]] = Counter()
    delay_s = 0.0

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = _LENGTH.search(head)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < size:
                return
            body = self._buffer[end + 4 : size]
            self._buffer = self._buffer[size:]
            self._answer(self._answer_to(head, body).sent_now())

    def _answer_to(self, head: bytes, body: bytes) -> Response:
        if head.startswith(b"GET "):
            counted = dict(self.counts)
            self.counts.clear()
            return _response("200 OK", counted)
        operation, table = _OPERATION.search(head), _TABLE.search(body)
        if operation is None or table is None:
            return _response("400 Bad Request", {"__type": "ValidationException"})
        self.counts[operation[1].decode()] += 1
        return ANSWERS[table[1].decode()]

    def _answer(self, answer: bytes) -> None:
        if self.delay_s:
            asyncio.get_running_loop().call_later(self.delay_s, self._write, answer)
        else:
            self._write(answer)

    def _write(self, answer: bytes) -> None:
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.write(answer)


async def serve(port: int, tls: Tls | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, LOOPBACK, port)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.chain, tls.key)
        await loop.create_server(Connection, LOOPBACK, tls.port, ssl=context)
    await server.serve_forever()


class Tls(NamedTuple):
    """Where TLS is spoken, and with which files."""

    port: int
    chain: str
    key: str


class Canned(NamedTuple):
    """The running server: its URL for plain HTTP and, with certificates, the one for TLS."""

    plain: str
    tls: str | None

    def requests(self) -> Mapping[str, int]:
        """How many it has had since it was last asked, by operation."""
        return counted(self.plain)


def counted(plain_url: str) -> Mapping[str, int]:
    """As ``Canned.requests``, for those who only know its plain URL."""
    with urllib.request.urlopen(plain_url, timeout=10) as answer:
        counts: Mapping[str, int] = json.load(answer)
    return counts


@contextmanager
def running_canned(certificates: Certificates | None, delay_ms: int = 0) -> Iterator[Canned]:
    """Run it in a process of its own."""
    port, tls_port = free_ports(2)
    command = [sys.executable, "-m", "tests.bench.canned", str(delay_ms), str(port)]
    if certificates:
        command += [str(tls_port), str(certificates.chain), str(certificates.key)]
    with Process(command, {"PYTHONPATH": str(REPOSITORY)}) as process:
        used = [port, tls_port] if certificates else [port]
        process.wait_until_ready(lambda: all(map(is_listening, used)))
        tls = f"https://{LOOPBACK}:{tls_port}" if certificates else None
        yield Canned(f"http://{LOOPBACK}:{port}", tls)


def main(delay_ms: str, port: str, *tls: str) -> None:
    Connection.delay_s = int(delay_ms) / 1000
    asyncio.run(serve(int(port), Tls(int(tls[0]), *tls[1:]) if tls else None))


if __name__ == "__main__":
    main(*sys.argv[1:])
