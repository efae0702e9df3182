"""Outcomes are told to log, metrics and trace, and whatever fails there changes nothing."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from lambda_once import record
from lambda_once.config import Config
from lambda_once.record import Outcome
from lambda_once.telemetry.log import Log, LogSink
from lambda_once.telemetry.reporter import Reporter
from tests.support.paths import REPOSITORY

KINDS = {
    record.EXECUTED: "DEBUG",
    record.UNJUDGED: "WARN",
    record.REPLAYED: "INFO",
    record.BLOCKED: "WARN",
    record.MISMATCHED: "WARN",
    record.KEY_MISSING: "WARN",
    record.STORE_FAILED: "ERROR",
    record.UNPROTECTED: "WARN",
    record.RELEASED: "INFO",
    record.RELEASE_FAILED: "WARN",
    record.UNRECORDED: "ERROR",
    record.LOST: "ERROR",
}
COUNTERS = {
    record.EXECUTED: "Executed",
    record.UNJUDGED: "Executed",
    record.REPLAYED: "Replayed",
    record.BLOCKED: "InProgress",
    record.MISMATCHED: "PayloadMismatch",
    record.KEY_MISSING: "KeyMissing",
    record.STORE_FAILED: "StoreFailure",
    record.UNPROTECTED: "Unprotected",
    record.RELEASED: "Released",
    record.RELEASE_FAILED: "ReleaseFailure",
    record.UNRECORDED: "Unrecorded",
    record.LOST: "ClaimLost",
}
METRICS = {"IDEMPOTENCY_METRICS": "Shop"}
JSON_LOG = {"AWS_LAMBDA_LOG_FORMAT": "JSON"}
TRACE_ID = "1-5759e988-bd862e3fe1be46a994272793"
PARENT_ID = "53995c3f42cd8ad8"
TRACED = {"_X_AMZN_TRACE_ID": f"Root={TRACE_ID};Parent={PARENT_ID};Sampled=1"}


def outcome(kind: str = record.REPLAYED, **changes: Any) -> Outcome:
    return Outcome(kind, "event", "orders#1", "request-1")._replace(**changes)


def lines_of(outcome_: Outcome, environ: dict[str, str] | None = None) -> list[str]:
    """What is written for one outcome."""
    written: list[str] = []
    reporter(written, environ)(outcome_)
    return written


def reporter(written: list[str], environ: dict[str, str] | None = None) -> Reporter:
    environ = {"IDEMPOTENCY_TABLE": "idempotency", **(environ or {})}
    return Reporter(Config.from_environ(environ), environ, Log(environ, written.append))


def metric_of(outcome_: Outcome) -> Any:
    (document,) = [json.loads(line) for line in lines_of(outcome_, METRICS) if line.startswith("{")]
    return document


# --- Log ------------------------------------------------------------------------------------------


def test_a_text_line_has_the_form_of_the_runtimes_own() -> None:
    (line,) = lines_of(outcome())
    assert re.fullmatch(
        r"\[INFO\]\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\trequest-1\t"
        r"lambda-once: replayed, the handler did not run"
        r" outcome=replayed source=event record=orders#1\n",
        line,
    )


def test_a_json_line_has_the_members_of_the_runtimes_own() -> None:
    (line,) = lines_of(outcome(record.STORE_FAILED, error="E", code="Denied"), JSON_LOG)
    entry = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.pop("timestamp"))
    assert entry == {
        "level": "ERROR",
        "message": "lambda-once: refused, the store could not be asked",
        "logger": "lambda_once",
        "requestId": "request-1",
        "outcome": "store_failed",
        "source": "event",
        "record": "orders#1",
        "error": "E",
        "code": "Denied",
    }
    assert line.count("\n") == 1


def test_a_line_stays_one_line_whatever_the_detail() -> None:
    (line,) = lines_of(outcome(record.UNRECORDED, detail="first\nsecond"))
    assert line.count("\n") == 1
    assert "(first\rsecond)" in line


def test_the_tables_above_have_every_kind() -> None:
    names = {value for name, value in vars(record).items() if name.isupper()}
    kinds = names - {record.IN_PROGRESS, record.COMPLETED}
    assert kinds == set(KINDS) == set(COUNTERS)


@pytest.mark.parametrize(("kind", "level"), KINDS.items())
def test_each_kind_has_its_level(kind: str, level: str) -> None:
    (line,) = lines_of(outcome(kind), {"AWS_LAMBDA_LOG_LEVEL": "TRACE"})
    assert line.startswith(f"[{level}]\t")


@pytest.mark.parametrize("kind", KINDS)
def test_everything_but_a_plain_first_run_is_logged(kind: str) -> None:
    assert bool(lines_of(outcome(kind))) == (kind != record.EXECUTED)


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("DEBUG", {"DEBUG", "INFO", "WARN", "ERROR"}),
        ("INFO", {"INFO", "WARN", "ERROR"}),
        ("warn", {"WARN", "ERROR"}),
        ("ERROR", {"ERROR"}),
        ("FATAL", set()),
        ("", {"INFO", "WARN", "ERROR"}),
        ("loud", {"INFO", "WARN", "ERROR"}),
    ],
)
def test_the_functions_log_level_holds(level: str, logged: set[str]) -> None:
    environ = {"AWS_LAMBDA_LOG_LEVEL": level}
    assert {KINDS[kind] for kind in KINDS if lines_of(outcome(kind), environ)} == logged


# --- Metrics --------------------------------------------------------------------------------------


def test_without_a_namespace_there_is_no_metric() -> None:
    assert lines_of(outcome(record.EXECUTED)) == []


@pytest.mark.parametrize(("kind", "name"), COUNTERS.items())
def test_each_kind_is_counted(kind: str, name: str) -> None:
    document = metric_of(outcome(kind))
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert directive["Metrics"] == [{"Name": name, "Unit": "Count"}]
    assert document[name] == 1


def test_a_metric_is_an_embedded_metric_document_that_holds_what_it_names() -> None:
    timed = outcome(
        claim_started_ms=1_000, claim_ended_ms=1_012, settle_started_ms=2_000, settle_ended_ms=2_007
    )
    document = metric_of(timed)
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert isinstance(document["_aws"]["Timestamp"], int)
    assert directive["Namespace"] == "Shop"
    assert directive["Dimensions"] == [["FunctionName"]]
    assert document["FunctionName"] == "function"
    assert directive["Metrics"] == [
        {"Name": "Replayed", "Unit": "Count"},
        {"Name": "ClaimDuration", "Unit": "Milliseconds"},
        {"Name": "SettleDuration", "Unit": "Milliseconds"},
    ]
    values = {metric["Name"]: document[metric["Name"]] for metric in directive["Metrics"]}
    assert values == {"Replayed": 1, "ClaimDuration": 12, "SettleDuration": 7}


def test_a_metric_is_written_whatever_the_log_level() -> None:
    written = lines_of(outcome(), {**METRICS, "AWS_LAMBDA_LOG_LEVEL": "FATAL"})
    assert len(written) == 1


# --- Trace ----------------------------------------------------------------------------------------


class Subsegment:
    """What the recorder hands out, as far as it is used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start_time = 0.0
        self.end_time = 0.0
        self.annotations: dict[str, str] = {}
        self.is_error = False

    def put_annotation(self, key: str, value: str) -> None:
        self.annotations[key] = value

    def add_error_flag(self) -> None:
        self.is_error = True


class Recorder:
    """Stands in for X-Ray's recorder."""

    def __init__(self) -> None:
        self.subsegments: list[Subsegment] = []

    def begin_subsegment(self, name: str) -> Subsegment:
        self.subsegments.append(Subsegment(name))
        return self.subsegments[-1]

    def end_subsegment(self, end_time: float) -> None:
        self.subsegments[-1].end_time = end_time


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The function has loaded aws_xray_sdk."""
    core = ModuleType("aws_xray_sdk.core")
    fake = Recorder()
    core.xray_recorder = fake  # type: ignore[attr-defined]  # that is how modules are made
    package = ModuleType("aws_xray_sdk")
    monkeypatch.setitem(sys.modules, "aws_xray_sdk", package)
    monkeypatch.setitem(sys.modules, "aws_xray_sdk.core", core)
    return fake


TIMED = outcome(
    record.EXECUTED,
    claim_started_ms=1_000,
    claim_ended_ms=1_012,
    settle_started_ms=2_000,
    settle_ended_ms=2_007,
)


@pytest.mark.parametrize("tracing", ["auto", "on"])
def test_claim_and_settle_are_subsegments_with_their_own_times(
    recorder: Recorder, tracing: str
) -> None:
    lines_of(TIMED, {**TRACED, "IDEMPOTENCY_TRACING": tracing})
    assert [(each.name, each.start_time, each.end_time) for each in recorder.subsegments] == [
        ("lambda-once claim", 1.0, 1.012),
        ("lambda-once settle", 2.0, 2.007),
    ]
    assert [each.annotations for each in recorder.subsegments] == [{"outcome": "executed"}] * 2
    assert not any(each.is_error for each in recorder.subsegments)


def test_a_step_that_was_not_taken_is_no_subsegment(recorder: Recorder) -> None:
    lines_of(TIMED._replace(settle_started_ms=0, settle_ended_ms=0), TRACED)
    assert [each.name for each in recorder.subsegments] == ["lambda-once claim"]


def test_a_failure_is_marked_in_the_trace(recorder: Recorder) -> None:
    lines_of(TIMED._replace(kind=record.STORE_FAILED, error="E"), TRACED)
    assert all(each.is_error for each in recorder.subsegments)


@pytest.mark.parametrize(
    "environ", [{**TRACED, "IDEMPOTENCY_TRACING": "off"}, {}, {"IDEMPOTENCY_TRACING": "on"}]
)
def test_nothing_is_traced_if_switched_off_or_not_asked_by_the_invocation(
    recorder: Recorder, environ: dict[str, str]
) -> None:
    lines_of(TIMED, environ)
    assert recorder.subsegments == []


def test_the_sdk_is_not_loaded_for_a_function_that_has_not_loaded_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "aws_xray_sdk"]:
        monkeypatch.delitem(sys.modules, name)
    lines_of(TIMED, TRACED)
    assert "aws_xray_sdk" not in sys.modules


@pytest.fixture
def daemon() -> Iterator[socket.socket]:
    """Where X-Ray's daemon would listen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(10)
        yield listening


@pytest.mark.parametrize("tracing", ["auto", "on"])
def test_the_real_sdk_sends_a_subsegment_for_claim_and_settle(
    daemon: socket.socket, tracing: str
) -> None:
    program = (
        "import os\n"
        + ("import aws_xray_sdk.core\n" if tracing == "auto" else "")
        + "from lambda_once.config import Config\n"
        "from lambda_once.record import Outcome\n"
        "from lambda_once.telemetry.log import Log\n"
        "from lambda_once.telemetry.reporter import Reporter\n"
        "reporter = Reporter(Config.from_environ(os.environ), os.environ, Log(os.environ))\n"
        f"reporter({TIMED!r})\n"
    )
    environ = {
        **TRACED,
        "IDEMPOTENCY_TABLE": "idempotency",
        "IDEMPOTENCY_TRACING": tracing,
        "LAMBDA_TASK_ROOT": "/var/task",
        "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
        "PYTHONPATH": str(REPOSITORY / "layer"),
    }
    run = subprocess.run(
        [sys.executable, "-c", program], env=environ, check=True, capture_output=True, text=True
    )
    assert run.stderr == ""
    sent = [json.loads(daemon.recv(65_536).split(b"\n", 1)[1]) for _ in range(2)]
    assert [(each["name"], each["start_time"], each["end_time"]) for each in sent] == [
        ("lambda-once claim", 1.0, 1.012),
        ("lambda-once settle", 2.0, 2.007),
    ]
    assert {each["trace_id"] for each in sent} == {TRACE_ID}
    assert {each["parent_id"] for each in sent} == {PARENT_ID}


# --- Whatever fails -------------------------------------------------------------------------------


def test_a_log_that_cannot_be_written_fails_nothing() -> None:
    def broken(line: str) -> None:
        raise OSError("standard error is closed")

    environ = {"IDEMPOTENCY_TABLE": "idempotency", **METRICS}
    Reporter(Config.from_environ(environ), environ, Log(environ, broken))(outcome())


def test_a_recorder_that_fails_is_told_of_and_fails_nothing(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> Subsegment:
        raise ValueError("no segment is open")

    monkeypatch.setattr(recorder, "begin_subsegment", broken)
    *_, complaint = lines_of(TIMED, TRACED)
    assert "lambda-once: trace failed: ValueError: no segment is open" in complaint


def test_a_sink_that_fails_does_not_silence_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: LogSink, outcome_: Outcome) -> None:
        raise KeyError("log")

    monkeypatch.setattr(LogSink, "__call__", broken)
    written = lines_of(outcome(), METRICS)
    assert any('"Replayed": 1' in line for line in written)
