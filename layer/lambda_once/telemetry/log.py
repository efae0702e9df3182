"""Lines as the runtime would write them, straight to the process's standard error."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..record import Outcome
from .wording import SAID

LOGGER = "lambda_once"
_LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "FATAL": 50}
_DEFAULT_LEVEL = "INFO"


def write_stderr(line: str) -> None:
    """Straight to the process's standard error, past whatever the user did to sys.stderr.

    If it is closed, the line is lost, and nothing else.
    """
    data = line.encode("utf-8", "backslashreplace")
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


class Log:
    """Writes lines as the runtime would format them: text or JSON, filtered by its level."""

    def __init__(
        self, environ: Mapping[str, str], write: Callable[[str], None] = write_stderr
    ) -> None:
        self._json = environ.get("AWS_LAMBDA_LOG_FORMAT", "").upper() == "JSON"
        level = environ.get("AWS_LAMBDA_LOG_LEVEL", "").upper()
        self._threshold = _LEVELS.get(level, _LEVELS[_DEFAULT_LEVEL])
        self._write = write

    def line(self, level: str, message: str, request_id: str = "", **fields: str) -> None:
        """One line at ``level``; ``fields`` with a value become members, or ``name=value``."""
        if _LEVELS[level] < self._threshold:
            return
        given = {name: value for name, value in fields.items() if value}
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        if self._json:
            entry = {
                "timestamp": f"{stamp}Z",
                "level": level,
                "message": message,
                "logger": LOGGER,
                **({"requestId": request_id} if request_id else {}),
                **given,
            }
            self._write(json.dumps(entry) + "\n")
            return
        tail = "".join(f" {name}={value}" for name, value in given.items())
        text = f"{message}{tail}".replace("\n", "\r")
        self._write(f"[{level}]\t{stamp}.{int(now * 1000) % 1000:03d}Z\t{request_id}\t{text}\n")

    def raw(self, entry: Mapping[str, Any]) -> None:
        """One JSON document on a line of its own, whatever the format."""
        self._write(json.dumps(entry) + "\n")


class LogSink:
    """A line for each outcome, at the level of its kind."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __call__(self, outcome: Outcome) -> None:
        """Write it."""
        level, text, _ = SAID[outcome.kind]
        message = f"lambda-once: {text}"
        if outcome.detail:
            message += f" ({outcome.detail})"
        self._log.line(
            level,
            message,
            outcome.request_id,
            outcome=outcome.kind,
            source=outcome.source,
            record=outcome.record_id,
            error=outcome.error,
            code=outcome.code,
        )
