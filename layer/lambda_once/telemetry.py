"""One frozen Outcome to a log line, a metric and a trace. Can never fail an invocation."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from . import record
from .config import Config
from .keys import make_importable
from .record import Outcome

LOGGER = "lambda_once"
_LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "FATAL": 50}
_DEFAULT_LEVEL = "INFO"


# For each kind of outcome: log level, what is said, name of the metric.
_SAID = {
    record.EXECUTED: ("DEBUG", "executed, result recorded", "Executed"),
    record.UNJUDGED: (
        "WARN",
        "executed, result recorded, as IDEMPOTENCY_RELEASE cannot judge it",
        "Executed",
    ),
    record.REPLAYED: ("INFO", "replayed, the handler did not run", "Replayed"),
    record.BLOCKED: ("WARN", "in progress elsewhere, the handler did not run", "InProgress"),
    record.MISMATCHED: ("WARN", "refused, the payload differs", "PayloadMismatch"),
    record.KEY_MISSING: ("WARN", "refused, no idempotency key", "KeyMissing"),
    record.STORE_FAILED: ("ERROR", "refused, the store could not be asked", "StoreFailure"),
    record.UNPROTECTED: ("WARN", "the handler runs without protection", "Unprotected"),
    record.RELEASED: ("INFO", "released, a retry will run", "Released"),
    record.RELEASE_FAILED: (
        "WARN",
        "not released, a retry can run when the claim's lease ends",
        "ReleaseFailure",
    ),
    record.UNRECORDED: (
        "ERROR",
        "the handler succeeded and its result could not be recorded:"
        " the same request can run again when the claim's lease ends",
        "Unrecorded",
    ),
    record.LOST: (
        "ERROR",
        "the handler finished after its claim had ended, and nothing was recorded:"
        " another invocation may have run for the same request",
        "ClaimLost",
    ),
}


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


class Reporter:
    """The outcome hook: log always, metrics and trace where they are switched on."""

    def __init__(self, config: Config, environ: Mapping[str, str], log: Log) -> None:
        self._config = config
        self._environ = environ
        self._log = log

    def __call__(self, outcome: Outcome) -> None:
        """Tell of ``outcome``. Whatever fails here changes nothing for the invocation."""
        for sink in (self._to_log, self._to_metrics, self._to_trace):
            self._tell(sink, outcome)

    def _tell(self, sink: Callable[[Outcome], None], outcome: Outcome) -> None:
        try:
            sink(outcome)
        except Exception as fault:  # noqa: BLE001  telemetry must not fail an invocation
            self._complain(sink.__name__, fault)

    def _complain(self, sink: str, fault: Exception) -> None:
        try:
            self._log.line("WARN", f"lambda-once: {sink} failed: {type(fault).__name__}: {fault}")
        except Exception:  # noqa: BLE001  not even a closed standard error may
            return

    def _to_log(self, outcome: Outcome) -> None:
        level, text, _ = _SAID[outcome.kind]
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

    def _to_metrics(self, outcome: Outcome) -> None:
        if not self._config.metrics_namespace:
            return
        values: dict[str, int] = {_SAID[outcome.kind][2]: 1}
        units = {_SAID[outcome.kind][2]: "Count"}
        for name, started, ended in _spans(outcome):
            values[f"{name}Duration"] = ended - started
            units[f"{name}Duration"] = "Milliseconds"
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        self._log.raw(
            {
                "_aws": {
                    "Timestamp": int(time.time() * 1000),
                    "CloudWatchMetrics": [
                        {
                            "Namespace": self._config.metrics_namespace,
                            "Dimensions": [["FunctionName"]],
                            "Metrics": metrics,
                        }
                    ],
                },
                "FunctionName": self._environ.get("AWS_LAMBDA_FUNCTION_NAME", "function"),
                "Source": outcome.source,
                **values,
            }
        )

    def _to_trace(self, outcome: Outcome) -> None:
        recorder = self._recorder()
        if recorder is None:
            return
        for name, started, ended in _spans(outcome):
            subsegment = recorder.begin_subsegment(f"lambda-once {name.lower()}")
            if subsegment is None:
                continue
            subsegment.start_time = started / 1000
            subsegment.put_annotation("outcome", outcome.kind)
            if outcome.error:
                subsegment.add_error_flag()
            recorder.end_subsegment(ended / 1000)

    def _recorder(self) -> Any:
        """The X-Ray recorder, if the configuration and the invocation want one.

        aws_xray_sdk takes over half a second to import: in ``auto`` it counts only if the user's
        code has loaded it already.
        """
        loaded = "aws_xray_sdk.core" in sys.modules
        wanted = self._config.tracing == "on" or (self._config.tracing == "auto" and loaded)
        if not wanted or not self._environ.get("_X_AMZN_TRACE_ID"):
            return None
        make_importable("aws_xray_sdk")
        from aws_xray_sdk.core import xray_recorder

        return xray_recorder


def _spans(outcome: Outcome) -> list[tuple[str, int, int]]:
    spans = [
        ("Claim", outcome.claim_started_ms, outcome.claim_ended_ms),
        ("Settle", outcome.settle_started_ms, outcome.settle_ended_ms),
    ]
    return [span for span in spans if span[1]]
