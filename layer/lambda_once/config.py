"""Environment variables in, one frozen ``Config`` out, once, and loudly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .errors import IdempotencyConfigError
from .events.expressions import compile_expression
from .keys.expressions import Expression

PREFIX = "IDEMPOTENCY_"

VARIABLES = (
    "IDEMPOTENCY_TABLE",
    "IDEMPOTENCY_KEY",
    "IDEMPOTENCY_PAYLOAD",
    "IDEMPOTENCY_RETENTION",
    "IDEMPOTENCY_MISSING_KEY",
    "IDEMPOTENCY_IN_PROGRESS",
    "IDEMPOTENCY_STORE_FAILURE",
    "IDEMPOTENCY_RELEASE",
    "IDEMPOTENCY_LEASE",
    "IDEMPOTENCY_BATCH",
    "IDEMPOTENCY_PARTIAL_BATCH",
    "IDEMPOTENCY_RESULT",
    "IDEMPOTENCY_SCOPE",
    "IDEMPOTENCY_CACHE",
    "IDEMPOTENCY_REPLAY_HEADER",
    "IDEMPOTENCY_METRICS",
    "IDEMPOTENCY_TRACING",
    "IDEMPOTENCY_NEXT_WRAPPER",
    "IDEMPOTENCY_DISABLED",
)

# Ten years. TTL needs an expiry it can reach, and a larger number is a slip of the unit.
MAX_DURATION_S = 10 * 366 * 86_400
MAX_CACHE = 100_000
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

# Source: the naming rules of the DynamoDB developer guide.
_TABLE_NAME = r"[A-Za-z0-9_.-]{3,255}"
_TABLE = re.compile(rf"(?:arn:aws[a-z-]*:dynamodb:([a-z0-9-]+):[0-9]{{12}}:table/)?({_TABLE_NAME})")
_SCOPE = re.compile(r"[A-Za-z0-9_.:/@+=,-]{1,512}")
_HEADER = re.compile(r"[A-Za-z0-9!$%&'*+.^_`|~-]{1,128}")
# Source: CloudWatch's rules for namespaces.
_NAMESPACE = re.compile(r"(?!AWS/)[A-Za-z0-9._/:# -]{1,255}")


class Config(NamedTuple):
    """Everything that is configured, checked and complete.

    Durations are seconds; ``retention_s`` None means as the source has it; ``lease_s`` 0 means the
    invocation's deadline. ``table_region`` is set where the table is given as an ARN. ``ignored``
    names variables that start like ours and are not.
    """

    table: str
    table_region: str | None
    scope: str
    key: Expression | None = None
    payload: Expression | None = None
    release: Expression | None = None
    retention_s: int | None = None
    run_without_key: bool = False
    wait_in_progress: bool = False
    run_without_store: bool = False
    lease_s: int = 0
    batch: str = "records"
    partial_batch: str = "auto"
    omit_result: bool = False
    cache_size: int = 0
    replay_header: str | None = None
    metrics_namespace: str | None = None
    tracing: str = "auto"
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Config:
        """Read ``environ``; raises IdempotencyConfigError that lists every fault."""
        return _Reader(environ).config()


def is_disabled(environ: Mapping[str, str]) -> bool:
    """The kill switch, which works however wrong the rest is; raises IdempotencyConfigError."""
    reader = _Reader(environ)
    disabled = reader.choice("IDEMPOTENCY_DISABLED", "false", "true")
    if reader.faults:
        raise IdempotencyConfigError(tuple(reader.faults))
    return disabled == "true"


def parse_duration(text: str) -> int:
    """Seconds from ``90``, ``90s``, ``90m``, ``24h`` or ``15d``; raises ValueError."""
    match = re.fullmatch(r"([0-9]{1,12})\s*([smhd]?)", text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= seconds <= MAX_DURATION_S:
        raise ValueError(text)
    return seconds


class _Reader:
    """Reads one variable at a time and collects the faults."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.faults: list[str] = []

    def config(self) -> Config:
        ignored = self.check_names()
        table_region, table = self.table()
        config = Config(
            table=table,
            table_region=table_region,
            scope=self.scope(),
            key=self.expression("IDEMPOTENCY_KEY"),
            payload=self.expression("IDEMPOTENCY_PAYLOAD"),
            release=self.expression("IDEMPOTENCY_RELEASE"),
            retention_s=self.duration("IDEMPOTENCY_RETENTION") or None,
            run_without_key=self.choice("IDEMPOTENCY_MISSING_KEY", "fail", "run") == "run",
            wait_in_progress=self.choice("IDEMPOTENCY_IN_PROGRESS", "fail", "wait") == "wait",
            run_without_store=self.choice("IDEMPOTENCY_STORE_FAILURE", "fail", "run") == "run",
            lease_s=self.duration("IDEMPOTENCY_LEASE", "deadline"),
            batch=self.choice("IDEMPOTENCY_BATCH", "records", "each", "whole"),
            partial_batch=self.choice("IDEMPOTENCY_PARTIAL_BATCH", "auto", "report", "raise"),
            omit_result=self.choice("IDEMPOTENCY_RESULT", "store", "omit") == "omit",
            cache_size=self.cache_size(),
            replay_header=self.pattern(
                "IDEMPOTENCY_REPLAY_HEADER", _HEADER, "a header name such as Idempotency-Replayed"
            ),
            metrics_namespace=self.pattern(
                "IDEMPOTENCY_METRICS", _NAMESPACE, "a CloudWatch namespace such as Orders"
            ),
            tracing=self.choice("IDEMPOTENCY_TRACING", "auto", "on", "off"),
            ignored=ignored,
        )
        self.choice("IDEMPOTENCY_DISABLED", "false", "true")
        if self.faults:
            raise IdempotencyConfigError(tuple(self.faults))
        return config

    def value(self, name: str) -> str:
        """The variable's text without surrounding spaces; empty counts as not set."""
        return self.environ.get(name, "").strip()

    def fault(self, name: str, accepted: str) -> None:
        self.faults.append(f"{name}={self.value(name)!r}: expected {accepted}")

    def choice(self, name: str, default: str, *others: str) -> str:
        text = self.value(name).lower() or default
        if text not in (default, *others):
            self.fault(name, " or ".join((default, *others)))
            return default
        return text

    def duration(self, name: str, word: str = "") -> int:
        """Seconds; 0 if not set or set to ``word``."""
        text = self.value(name)
        if not text or text == word:
            return 0
        try:
            return parse_duration(text)
        except ValueError:
            named = f"{word}, or " if word else ""
            self.fault(name, f"{named}whole seconds or a duration such as 90m, 24h or 15d")
            return 0

    def pattern(self, name: str, pattern: re.Pattern[str], accepted: str) -> str | None:
        text = self.value(name)
        if text and not pattern.fullmatch(text):
            self.fault(name, accepted)
        return text or None

    def expression(self, name: str) -> Expression | None:
        text = self.value(name)
        if not text:
            return None
        try:
            return compile_expression(text)
        except ValueError as fault:
            self.fault(name, f"a JMESPath expression ({fault})")
            return None

    def table(self) -> tuple[str | None, str]:
        text = self.value("IDEMPOTENCY_TABLE")
        match = _TABLE.fullmatch(text)
        if not text:
            self.faults.append("IDEMPOTENCY_TABLE is required: the table's name or ARN")
        elif not match:
            self.fault("IDEMPOTENCY_TABLE", "a DynamoDB table's name or ARN")
        return (match[1] if match else None), text

    def scope(self) -> str:
        accepted = "1 to 512 letters, digits and _.:/@+=,- (not #)"
        scope = self.pattern("IDEMPOTENCY_SCOPE", _SCOPE, accepted)
        return scope or self.environ.get("AWS_LAMBDA_FUNCTION_NAME") or "function"

    def cache_size(self) -> int:
        text = self.value("IDEMPOTENCY_CACHE") or "0"
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > MAX_CACHE:
            self.fault("IDEMPOTENCY_CACHE", f"a number from 0 to {MAX_CACHE}")
            return 0
        return int(text)

    def check_names(self) -> tuple[str, ...]:
        """Near-misspellings are faults; other names that start like ours are returned."""
        unknown = [
            name
            for name in self.environ
            if name.upper().startswith("IDEMP") and name not in VARIABLES
        ]
        if not unknown:
            return ()
        meant = {name: _nearest(name) for name in unknown}
        self.faults += [
            f"{name} is not a variable of lambda-once; did you mean {near}?"
            for name, near in sorted(meant.items())
            if near
        ]
        return tuple(sorted(n for n in unknown if not meant[n] and n.startswith(PREFIX)))


def _nearest(name: str) -> str | None:
    from difflib import get_close_matches  # only ever needed for a wrong name

    found = get_close_matches(name.upper(), VARIABLES, n=1, cutoff=0.9)
    return found[0] if found else None
