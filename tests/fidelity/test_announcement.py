"""One line at init says what is guarded and how, as the function's log is configured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.fidelity.observe import ORDER, Setting
from tests.support.emulator import Emulator

TEXT = "lambda-once 1.0.0 guards app.handler, table fidelity, key orderId"


def lines_of_ours(setting: Setting, folder: Path, **environment: str) -> list[str]:
    """What the layer has written by the end of a first invocation."""
    (folder / "app.py").write_text("def handler(event, context):\n    return 1\n")
    variables = {
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": folder.name,
        "IDEMPOTENCY_KEY": "orderId",
        **environment,
    }
    with Emulator(
        setting.python, folder, "app.handler", layer=setting.layer, environment=variables
    ) as function:
        assert function.invoke(ORDER).body == b"1"
        return [line for line in function.output().splitlines() if "lambda-once" in line]


@pytest.mark.parametrize("level", ["", "DEBUG"])
def test_says_it_as_text(setting: Setting, tmp_path: Path, level: str) -> None:
    first, *_ = lines_of_ours(setting, tmp_path, AWS_LAMBDA_LOG_LEVEL=level)
    assert re.fullmatch(rf"\[INFO\]\t\d{{4}}-\d\d-\d\dT[\d:.]+Z\t\t{re.escape(TEXT)}", first)


@pytest.mark.parametrize("level", ["", "INFO"])
def test_says_it_as_json(setting: Setting, tmp_path: Path, level: str) -> None:
    first, *_ = lines_of_ours(
        setting, tmp_path, AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL=level
    )
    entry = json.loads(first)
    assert (entry["level"], entry["message"], entry["logger"]) == ("INFO", TEXT, "lambda_once")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["timestamp"])


@pytest.mark.parametrize("form", ["Text", "JSON"])
@pytest.mark.parametrize("level", ["WARN", "FATAL"])
def test_is_silent_above_its_level(setting: Setting, tmp_path: Path, form: str, level: str) -> None:
    variables = {"AWS_LAMBDA_LOG_FORMAT": form, "AWS_LAMBDA_LOG_LEVEL": level}
    assert lines_of_ours(setting, tmp_path, **variables) == []


def test_says_that_it_is_switched_off(setting: Setting, tmp_path: Path) -> None:
    (line,) = lines_of_ours(setting, tmp_path, IDEMPOTENCY_DISABLED="true")
    assert line.endswith("lambda-once is disabled, app.handler runs without protection")
