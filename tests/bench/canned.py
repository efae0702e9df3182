"""A DynamoDB that answers at once and without thinking, so that only the client is measured.

    python -m tests.bench.canned PORT DELAY_MS

What it answers depends on the table's name alone (see ``ANSWERS``). A GET is answered with the
number of requests since the last GET, by operation.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tests.support.paths import REPOSITORY
from tests.support.ports import LOOPBACK, free_port, is_listening
from tests.support.processes import Process

# Every write succeeds; every claim meets the completed record of the layer, or of Powertools.
FRESH = "fresh"
LAYER_DONE = "layer-done"
POWERTOOLS_DONE = "powertools-done"

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


def _response(status: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/x-amz-json-1.0\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def _refusal(item: Any) -> bytes:
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
            self._answer(self._answer_to(head, body))

    def _answer_to(self, head: bytes, body: bytes) -> bytes:
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


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, LOOPBACK, port)
    await server.serve_forever()


@contextmanager
def running_canned(delay_ms: int = 0) -> Iterator[str]:
    """Run it in a process of its own; its endpoint."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.canned", str(port), str(delay_ms)]
    with Process(command, {"PYTHONPATH": str(REPOSITORY)}) as process:
        process.wait_until_ready(lambda: is_listening(port))
        yield f"http://{LOOPBACK}:{port}"


if __name__ == "__main__":
    Connection.delay_s = int(sys.argv[2]) / 1000
    asyncio.run(serve(int(sys.argv[1])))
