"""Makes execution environments fast: a process that has imported everything, and forks for each.

    python -m tests.deaths.zygote SOCKET

Each connection is one environment, a process of its own with its own engine and clients. It tells
its process id, then answers deliveries, one JSON line each, through the handler that the bootstrap
has made, as the runtime client does. Nothing is caught that the runtime client would not catch.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import time
import traceback
import uuid
from typing import Any

from tests.support.aws import boto_client, read_service_models_once


class Context:
    """Lambda's context object, as far as the function and the layer look at it."""

    def __init__(self, deadline_ns: int) -> None:
        self.aws_request_id = str(uuid.uuid4())
        self._deadline_ns = deadline_ns

    def get_remaining_time_in_millis(self) -> int:
        return max(0, (self._deadline_ns - time.time_ns()) // 1_000_000)


def serve(connection: socket.socket, handler: Any) -> None:
    """Answer until the other side is gone."""
    with connection, connection.makefile("rw") as lines:
        lines.write(f"{os.getpid()}\n")
        lines.flush()
        for line in lines:
            event = json.loads(line)
            try:
                answer = {"result": handler(event, Context(event["deadline_ns"]))}
            except Exception as fault:  # noqa: BLE001  as the runtime client does
                answer = {"error": type(fault).__name__, "message": str(fault)}
            lines.write(f"{json.dumps(answer)}\n")
            lines.flush()


def in_child(connection: socket.socket, handler: Any) -> None:
    """Serve in this forked process, and end it as the interpreter would."""
    try:
        serve(connection, handler)
    except SystemExit as ending:
        os._exit(int(ending.code or 0))
    except BaseException:  # noqa: BLE001  the runtime's process would end too
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    # Nobody waits for the forked processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    handler = importlib.import_module("lambda_once_wrapper.bootstrap").handler
    read_service_models_once()
    # Never used: it reads what the clients of the forks will ask for.
    boto_client("http://127.0.0.1:9")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                in_child(connection, handler)
            connection.close()


if __name__ == "__main__":
    main()
