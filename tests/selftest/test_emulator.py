"""The real emulator runs plain functions, without the layer, as Lambda would."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.emulator import Emulator, version_of
from tests.support.paths import CLIENTS
from tests.support.ports import is_listening
from tests.support.processes import read_process, wait_until

APP = """
import os, sys, time

def handler(event, context):
    print("handling", event)
    if event == "raise":
        raise ValueError("broken")
    if event == "sleep":
        time.sleep(30)
    return {"event": event, "pid": os.getpid(), "path": sys.path, "environment": dict(os.environ)}
"""


VERSION = """
import awslambdaric

def handler(event, context):
    return awslambdaric.__file__
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    (folder / "app.py").write_text(APP)
    (folder / "version.py").write_text(VERSION)
    return folder


@pytest.fixture(scope="module")
def function(task: Path) -> Iterator[Emulator]:
    with Emulator(sys.executable, task, "app.handler", environment={"SHOP": "books"}) as running:
        yield running


def test_answers_and_stays_warm(function: Emulator) -> None:
    first, second = function.invoke({"n": 1}), function.invoke(b'{"n": 2}')
    assert (first.status, first.json()["event"]) == (200, {"n": 1})
    assert second.json()["event"] == {"n": 2}
    assert first.json()["pid"] == second.json()["pid"] == function.pid_of_function()
    assert "handling {'n': 2}" in function.output()


def test_has_the_import_path_of_the_service(function: Emulator, task: Path) -> None:
    path = function.invoke().json()["path"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # The runtime client puts the working directory, /var/task, in front once more.
    assert path[0] == str(task)
    tail = path[path.index(f"/opt/python/lib/{version}/site-packages") :]
    assert tail[1] == "/opt/python"
    assert tail[2].endswith("site-packages")


def test_sees_only_what_it_was_given(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/leaked")
    monkeypatch.setenv("PYTHONPATH", "/leaked")
    with Emulator(sys.executable, task, "app.handler", environment={"SHOP": "books"}) as function:
        environment = function.invoke().json()["environment"]
    assert environment["SHOP"] == "books"
    assert "/leaked" not in environment.values()


def test_reports_an_error_of_the_handler(function: Emulator) -> None:
    reply = function.invoke("raise")
    assert (reply.status, reply.error_type) == (200, "ValueError")


def test_starts_as_a_module_too(task: Path) -> None:
    with Emulator(sys.executable, task, "app.handler", style="module") as function:
        assert function.invoke({"n": 1}).json()["event"] == {"n": 1}


def test_runs_another_version_of_the_runtime_client(task: Path) -> None:
    client = CLIENTS / f"4.0.4-py{version_of(sys.executable)}"
    with Emulator(sys.executable, task, "version.handler", client=client) as function:
        assert str(client) in function.invoke().json()


def test_ends_a_function_at_its_timeout_and_starts_another(task: Path) -> None:
    with Emulator(sys.executable, task, "app.handler", timeout_s=1) as function:
        first = function.invoke().json()["pid"]
        assert b"Task timed out after 1.00 seconds" in function.invoke("sleep").body
        assert function.invoke().json()["pid"] != first


def test_survives_the_death_of_a_function(task: Path) -> None:
    replies = []
    with Emulator(sys.executable, task, "app.handler") as function:
        caller = threading.Thread(target=lambda: replies.append(function.invoke("sleep")))
        caller.start()
        wait_until(lambda: "handling sleep" in function.output(), 5, "the handler to begin")
        function.kill_function()
        caller.join()
        function.wait_idle()
        assert function.invoke({"n": 1}).json()["event"] == {"n": 1}
    assert replies[0].status == 502


@pytest.mark.parametrize("ending", ["leave", "kill"])
def test_leaves_no_process_and_no_port(task: Path, ending: str) -> None:
    with Emulator(sys.executable, task, "app.handler") as function:
        function.invoke()
        pid = function.pid_of_function()
        if ending == "kill":
            function.kill()
    assert read_process(Path(f"/proc/{pid}")) is None
    assert not is_listening(function.port)


@pytest.mark.parametrize(
    ("wrapper", "code", "complaint"),
    [("missing", 127, "does not exist"), ("plain", 126, "is not an executable")],
)
def test_refuses_a_bad_exec_wrapper(
    task: Path, tmp_path: Path, wrapper: str, code: int, complaint: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    variables = {"AWS_LAMBDA_EXEC_WRAPPER": str(tmp_path / wrapper)}
    with Emulator(sys.executable, task, "app.handler", environment=variables) as function:
        assert function.invoke().status == 502
        assert f"exit status {code}" in function.output()
        assert complaint in function.output()
