"""Runs one function with and without the layer, and brings both to a form that can be compared."""

from __future__ import annotations

import difflib
import json
import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import report
from tests.support.emulator import Emulator, Reply, Style

# One event that identifies itself: what most rows are invoked with.
ORDER = {"orderId": 17}

# How many run at once. As many as the smallest machine has processors: more would only make it
# likelier that a function's time runs out.
WIDTH = 2

# Variables that only a function with the layer has, or that differ between any two environments.
DIFFERENT_VARIABLES = (
    "AWS_LAMBDA_EXEC_WRAPPER",
    "AWS_LAMBDA_METADATA_API",
    "AWS_LAMBDA_RUNTIME_API",
    "TEST_OPT",
    "_X_AMZN_TRACE_ID",
)


@dataclass(frozen=True, eq=False)
class Row:
    """One function of the table.

    code        app.py; `files` are further files, or all of them
    events      one invocation each, in one environment; bytes are sent as they are
    shows       a text that the reply or the output must hold without the layer: proof that the
                function did what its name says
    difference  what differs, in words, for the few rows where something must
    forgiven    the difference as patterns, and what each is replaced with, on both sides
    instead     the difference where there is nothing to compare: what the layer must show instead
    """

    name: str
    code: str = ""
    shows: str = ""
    handler: str = "app.handler"
    files: Mapping[str, str] = field(default_factory=dict)
    events: tuple[object, ...] = (ORDER,)
    environment: Mapping[str, str] = field(default_factory=dict)
    style: Style = "managed"
    timeout_s: int = 10
    difference: str = ""
    forgiven: tuple[tuple[str, str], ...] = ()
    instead: str = ""


@dataclass(frozen=True)
class Seen:
    """What a caller and a reader of the log see.

    replies  (status, body) of each
    exits    how each process of the function ended that did
    """

    replies: tuple[tuple[int, str], ...]
    exits: tuple[str, ...]
    output: str

    @property
    def text(self) -> str:
        return "\n".join(
            [*(f"{status} {body}" for status, body in self.replies), *self.exits, self.output]
        )

    @property
    def summary(self) -> str:
        """A few words for the report: the last reply's status, and its error type."""
        status, body = self.replies[-1]
        try:
            decoded = json.loads(body)
        except ValueError:
            decoded = None
        error = decoded.get("errorType") if isinstance(decoded, dict) else None
        return f"{status} {error or 'result'}"


@dataclass(frozen=True)
class Compared:
    """Both sides of a row."""

    row: Row
    without: Seen
    layer: Seen

    @property
    def is_as_told(self) -> bool:
        """Whether both sides are equal but for what the table says."""
        if self.row.instead:
            return self.row.instead in self.layer.text
        return _forgive(self.without, self.row) == _forgive(self.layer, self.row)

    def differences(self) -> list[str]:
        """The lines that differ, for a reader."""
        without, layer = (
            _forgive(side, self.row).text.splitlines() for side in (self.without, self.layer)
        )
        return [self.row.instead, *difflib.unified_diff(without, layer, "without", "layer", n=1)]

    @property
    def verdict(self) -> str:
        if not self.is_as_told:
            return "DIFFERENT"
        return f"documented: {self.row.difference}" if self.row.difference else "equal"


@dataclass(frozen=True)
class Setting:
    """Where rows run: an interpreter, the layer, a store, and perhaps another runtime client."""

    python: str
    layer: Path
    endpoint: str
    table: str
    client: Path | None = None


def write_task(row: Row, folder: Path) -> None:
    files = {**row.files, **({"app.py": row.code} if row.code else {})}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def compare(row: Row, folder: Path, setting: Setting) -> Compared:
    """Both runs, one after the other, from one folder: its path stands in every traceback."""
    write_task(row, folder)
    without = run(row, folder, setting, None)
    layer = run(row, folder, setting, setting.layer)
    return Compared(row, without, layer)


def run(row: Row, folder: Path, setting: Setting, layer: Path | None) -> Seen:
    with Emulator(
        setting.python,
        folder,
        row.handler,
        environment=environment_of(row, setting),
        layer=layer,
        timeout_s=row.timeout_s,
        style=row.style,
        client=setting.client,
    ) as function:
        replies = [function.invoke(event) for event in row.events]
        output = function.output()
    return Seen(
        tuple((reply.status, _plain(_body(reply), layer)) for reply in replies),
        tuple(_EXIT.findall(output)),
        _plain(_users_part(output), layer),
    )


def environment_of(row: Row, setting: Setting) -> dict[str, str]:
    variables = {
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": uuid.uuid5(uuid.NAMESPACE_OID, f"{row.name} {setting}").hex,
    }
    return {**variables, **row.environment}


def _body(reply: Reply) -> str:
    """The body, as text; one of several MB by its length and its ends."""
    text = reply.body.decode("utf-8", "backslashreplace")
    return text if len(text) < 100_000 else f"{len(text)} characters: {text[:200]}...{text[-200:]}"


# Lines of the emulator itself, wherever they begin: a function may print without a newline.
_RAPID = re.compile(
    r"\d\d \w{3} \d{4} \d\d:\d\d:\d\d,\d{3} \[\w+\] \(rapid\)[^\n]*\n"
    r"|(?:START|END|REPORT) RequestId: [^\n]*\n"
)
_EXIT = re.compile(r"\(rapid\) Process runtime-\d+ exited: ([^\n]*)")
_OURS = re.compile(
    r"\[[A-Z]+\]\t[^\t\n]*\t[^\t\n]*\tlambda-once[^\n]*\n"
    r'|\{"timestamp": [^\n]*"logger": "lambda_once"[^\n]*\n'
)


def _users_part(output: str) -> str:
    return _OURS.sub("", _RAPID.sub("", output))


_PLAIN = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"\[\d{13}\]"), "[<time>]"),
)


def _plain(text: str, layer: Path | None) -> str:
    """What differs between any two runs, taken out."""
    if layer:
        text = text.replace(str(layer), "/opt")
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return text


def _forgive(seen: Seen, row: Row) -> Seen:
    def forgiven(text: str) -> str:
        for pattern, replacement in row.forgiven:
            text = re.sub(pattern, replacement, text)
        return text

    replies = tuple((status, forgiven(body)) for status, body in seen.replies)
    return Seen(replies, seen.exits, forgiven(seen.output))


def write_report(topic: str, columns: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
    """Under tests/.report a JSON document, and the same as a table to read.

    The last column is the verdict.
    """
    verdicts = Counter(line[-1].partition(":")[0] for line in lines)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    report.write(topic, f"{topic}: {len(lines)} functions, {counted}", functions=rows)
    (report.FOLDER / f"{topic}.txt").write_text(_table([columns, *lines]))


def _table(lines: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join("  ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in lines)
