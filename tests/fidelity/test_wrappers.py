"""Other exec wrappers run before or after ours, and each wraps once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fidelity.observe import ORDER, Setting
from tests.support.emulator import Emulator

APP = """
import os
def handler(event, context):
    print("ran")
    return "done"
"""

# In the manner of OpenTelemetry's layer: it sets PYTHONPATH, and takes the place of the handler.
OPENTELEMETRY = """#!/bin/sh
export PYTHONPATH="$TEST_OPT/python:$LAMBDA_RUNTIME_DIR${PYTHONPATH:+:$PYTHONPATH}"
export ORIG_HANDLER="$_HANDLER"
export _HANDLER=stand_in.otel_handler
exec ${AFTER_THEIRS:+"$AFTER_THEIRS"} "$@"
"""
# In the manner of Datadog's: the handler is redirected, and nothing else.
DATADOG = """#!/bin/sh
export DD_LAMBDA_HANDLER="$_HANDLER"
export _HANDLER=stand_in.datadog_handler
exec ${AFTER_THEIRS:+"$AFTER_THEIRS"} "$@"
"""
# Both find the handler that they wrap as the real ones do: when they are imported.
STAND_IN = """
import os
from importlib import import_module

def wrapped(variable):
    if variable not in os.environ:
        return None
    module, _, name = os.environ[variable].rpartition(".")
    inner = getattr(import_module(module.replace("/", ".")), name)

    def handler(event, context):
        print("span begins")
        return inner(event, context)

    return handler

otel_handler = wrapped("ORIG_HANDLER")
datadog_handler = wrapped("DD_LAMBDA_HANDLER")
"""
SCRIPTS = {"opentelemetry": OPENTELEMETRY, "datadog": DATADOG}


@pytest.fixture
def opt(setting: Setting, tmp_path: Path) -> Path:
    """All layers in one folder, as the service lays them."""
    folder = shutil.copytree(setting.layer, tmp_path / "opt")
    (folder / "python" / "stand_in.py").write_text(STAND_IN)
    for name, text in SCRIPTS.items():
        executable(folder / name, text)
    return folder


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def function(setting: Setting, opt: Path, **environment: str) -> Emulator:
    task = opt.parent / "task"
    task.mkdir()
    (task / "app.py").write_text(APP)
    given = {
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": opt.parent.name,
        **environment,
    }
    return Emulator(setting.python, task, "app.handler", layer=opt, environment=given)


def output_of_two(function: Emulator) -> str:
    """What is printed when an event comes twice. It is protected, whatever else is around."""
    with function as running:
        replies = [running.invoke(ORDER).body for _ in range(2)]
        output = running.output()
    assert replies == [b'"done"', b'"done"'], output
    assert output.count("ran\n") == 1
    assert output.count("lambda-once 1.0.0 guards") == 1
    return output


@pytest.mark.parametrize("other", SCRIPTS)
def test_a_wrapper_after_ours_sees_replays_too(setting: Setting, opt: Path, other: str) -> None:
    output = output_of_two(
        function(setting, opt, IDEMPOTENCY_NEXT_WRAPPER=str(opt / other)),
    )
    assert output.count("span begins") == 2
    assert "guards app.handler" in output


@pytest.mark.parametrize("other", SCRIPTS)
def test_a_wrapper_before_ours_sees_what_runs(setting: Setting, opt: Path, other: str) -> None:
    output = output_of_two(
        function(
            setting,
            opt,
            AWS_LAMBDA_EXEC_WRAPPER=str(opt / other),
            AFTER_THEIRS=str(opt / "lambda-once"),
        )
    )
    assert output.count("span begins") == 1
    assert "guards stand_in." in output


def test_naming_ours_as_the_next_wrapper_wraps_once(setting: Setting, opt: Path) -> None:
    output_of_two(function(setting, opt, IDEMPOTENCY_NEXT_WRAPPER=str(opt / "lambda-once")))


def test_naming_ours_twice_in_one_command_wraps_once(setting: Setting, opt: Path) -> None:
    ours = opt / "lambda-once"
    twice = executable(opt / "twice", f'#!/bin/sh\nexec {ours} {ours} "$@"\n')
    output = output_of_two(function(setting, opt, AWS_LAMBDA_EXEC_WRAPPER=str(twice)))
    assert "is not Python" not in output


def test_reaching_ours_again_through_the_next_wrapper_wraps_once(
    setting: Setting, opt: Path
) -> None:
    ours = str(opt / "lambda-once")
    output = output_of_two(
        function(setting, opt, IDEMPOTENCY_NEXT_WRAPPER=str(opt / "datadog"), AFTER_THEIRS=ours)
    )
    assert output.count("span begins") == 2


@pytest.mark.parametrize(
    ("make", "code", "complaint"),
    [
        pytest.param(lambda path: None, 127, "does not exist", id="missing"),
        pytest.param(Path.touch, 126, "is not an executable", id="not executable"),
        pytest.param(Path.mkdir, 126, "is not an executable", id="a folder"),
    ],
)
def test_a_next_wrapper_that_cannot_be_run_ends_the_start(
    setting: Setting, opt: Path, make: object, code: int, complaint: str
) -> None:
    assert callable(make)
    other = opt / "other wrapper"
    make(other)
    with function(setting, opt, IDEMPOTENCY_NEXT_WRAPPER=str(other)) as running:
        assert running.invoke(ORDER).status == 502
        assert f"exit status {code}" in running.output()
        assert f"IDEMPOTENCY_NEXT_WRAPPER={other} {complaint}" in running.output()
