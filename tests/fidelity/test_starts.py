"""However the runtime is started, the function is wrapped, or a message says why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.observe import ORDER, Setting
from tests.support.emulator import RUNTIME_FOLDER, Emulator, Style
from tests.support.paths import REPOSITORY

SCRIPT = REPOSITORY / "wrapper" / "lambda-once"
OURS = "lambda_once_wrapper.bootstrap.handler"

APP = """
import os, sys
def handler(event, context):
    print("ran")
    return {"PYTHONPATH": os.environ.get("PYTHONPATH"), "path": sys.path}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "app.py").write_text(APP)
    return folder


def environment(setting: Setting, task: Path, **more: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": task.parent.name,
        **more,
    }


def assert_protected(function: Emulator) -> Any:
    with function as running:
        first, second = running.invoke(ORDER), running.invoke(ORDER)
        output = running.output()
    assert first.body == second.body
    assert output.count("ran\n") == 1, output
    return first.json()


class Image(Emulator):
    """A container image with a command of its own."""

    def __init__(self, command: Sequence[str], *given: Any, **named: Any) -> None:
        self._image_command = list(command)
        super().__init__(*given, **named)

    def _function_command(self) -> list[str]:
        return self._image_command

    def _managed_runtime(self) -> dict[str, str]:
        return {name: v for name, v in super()._managed_runtime().items() if name != "_HANDLER"}


@pytest.mark.parametrize(
    "options", [["-m", "awslambdaric"], ["-X", "utf8", "-m", "awslambdaric"], ["-mawslambdaric"]]
)
def test_the_runtime_client_started_as_a_module_is_wrapped(
    setting: Setting, task: Path, options: list[str]
) -> None:
    command = [str(setting.layer / "lambda-once"), setting.python, *options, "app.handler"]
    seen = assert_protected(
        Image(
            command,
            setting.python,
            task,
            "",
            environment=environment(setting, task),
            style="module",
        )
    )
    assert seen["PYTHONPATH"] is None


# What /lambda-entrypoint.sh of the AWS base images does with the image's command.
ENTRYPOINT = f"""#!/bin/sh
if [ $# -ne 1 ]; then
    echo "entrypoint requires the handler name to be the first argument" 1>&2
    exit 142
fi
export _HANDLER="$1"
exec {RUNTIME_FOLDER}/bootstrap
"""


def test_an_aws_base_image_is_wrapped(setting: Setting, task: Path, tmp_path: Path) -> None:
    entrypoint = tmp_path / "lambda-entrypoint.sh"
    entrypoint.write_text(ENTRYPOINT)
    entrypoint.chmod(0o755)
    assert_protected(
        Image(
            [str(entrypoint), "app.handler"],
            setting.python,
            task,
            "",
            environment=environment(setting, task),
            layer=setting.layer,
        )
    )


@pytest.mark.parametrize("style", ["managed", "module"])
def test_a_pythonpath_of_the_user_is_left_to_user_code(
    setting: Setting, task: Path, style: Style
) -> None:
    given = environment(setting, task, PYTHONPATH="/one:/two")
    seen = [
        assert_protected(
            Emulator(
                setting.python,
                task,
                "app.handler",
                environment=given,
                layer=setting.layer,
                style=style,
            )
        )
    ]
    with Emulator(setting.python, task, "app.handler", environment=given, style=style) as without:
        seen.append(without.invoke(ORDER).json())
    layer, plain = seen
    assert layer["PYTHONPATH"] == plain["PYTHONPATH"] == "/one:/two"
    assert layer["path"] == [*plain["path"], f"{setting.layer}/python"]


def test_our_handler_without_the_script_says_what_to_set(setting: Setting, task: Path) -> None:
    variables = environment(setting, task, AWS_LAMBDA_EXEC_WRAPPER="")
    with Emulator(
        setting.python, task, OURS, environment=variables, layer=setting.layer
    ) as running:
        answer = running.invoke(ORDER).json()
    assert answer["errorType"] == "IdempotencyConfigError"
    assert "set AWS_LAMBDA_EXEC_WRAPPER=/opt/lambda-once" in answer["errorMessage"]


def test_a_wrong_configuration_is_told_at_init_with_no_stack_trace(
    setting: Setting, task: Path
) -> None:
    variables = environment(setting, task, IDEMPOTENCY_TABEL="orders", IDEMPOTENCY_BATCH="some")
    with Emulator(
        setting.python, task, "app.handler", environment=variables, layer=setting.layer
    ) as running:
        answer = running.invoke(ORDER).json()
        assert "INIT RTDONE(status: error)" in running.output()
    assert (answer["errorType"], answer["stackTrace"]) == ("IdempotencyConfigError", [])
    assert "did you mean IDEMPOTENCY_TABLE?" in answer["errorMessage"]
    assert "IDEMPOTENCY_BATCH='some'" in answer["errorMessage"]


def run_script(
    folder: Path, command: Sequence[str], shell: str = "sh", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, SCRIPT, *command],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
    )


def fake_python(folder: Path) -> str:
    """A program that goes by Python's name, and says what it was given."""
    path = folder / "python3.13"
    path.write_text(
        "#!/usr/bin/env python3\nimport json, os, sys\n"
        "print(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
    )
    path.chmod(0o755)
    return str(path)


def given_to_python(
    folder: Path, arguments: Sequence[str], shell: str = "sh", **environment: str
) -> tuple[list[str], dict[str, str]]:
    done = run_script(folder, [fake_python(folder), *arguments], shell, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    arguments, environment = json.loads(done.stdout)
    return list(arguments), environment


@pytest.mark.skipif(not shutil.which("dash"), reason="dash is not installed")
def test_the_script_runs_under_a_plain_posix_shell(tmp_path: Path) -> None:
    arguments, seen = given_to_python(tmp_path, ["bootstrap.py"], "dash", _HANDLER="app.handler")
    assert arguments == ["bootstrap.py"]
    assert (seen["_HANDLER"], seen["LAMBDA_ONCE_HANDLER"]) == (OURS, "app.handler")


def test_every_argument_reaches_python_as_it_was(tmp_path: Path) -> None:
    odd = ["", "two  words", "*", "$HOME", "'\"", "line\nline", "-m", "other", "\\", "é"]
    arguments, _ = given_to_python(tmp_path, odd, _HANDLER="app.handler")
    assert arguments == odd


def test_a_handler_in_the_arguments_is_exchanged(tmp_path: Path) -> None:
    arguments, seen = given_to_python(
        tmp_path,
        ["-m", "awslambdaric", "a b.handler", "-m", "awslambdaric", "x"],
        _HANDLER="ignored",
    )
    assert arguments == ["-m", "awslambdaric", OURS, "-m", "awslambdaric", "x"]
    assert seen["LAMBDA_ONCE_HANDLER"] == "a b.handler"


def test_pythonpath_is_left_alone_in_the_managed_runtime(tmp_path: Path) -> None:
    _, seen = given_to_python(tmp_path, ["bootstrap.py"], _HANDLER="app.handler")
    assert "PYTHONPATH" not in seen


def test_a_pythonpath_that_holds_our_folder_stays_as_it_is(tmp_path: Path) -> None:
    ours = f"{SCRIPT.parent}/python"
    _, seen = given_to_python(
        tmp_path, ["bootstrap.py"], _HANDLER="app.handler", PYTHONPATH=f"{ours}:/other"
    )
    assert seen["PYTHONPATH"] == f"{ours}:/other"


def test_another_runtime_is_let_through_with_a_message(tmp_path: Path) -> None:
    done = run_script(tmp_path, ["/bin/echo", "two  words"], _HANDLER="index.handler")
    assert (done.returncode, done.stdout) == (0, "two  words\n")
    assert "/bin/echo is not Python" in done.stderr
    assert "without protection" in done.stderr


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    subprocess.run(["shellcheck", SCRIPT], check=True)  # noqa: S607  wherever it is installed
