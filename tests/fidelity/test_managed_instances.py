"""Several invocations at once in one environment: forked processes, or threads."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.faked import WAIT_S, running
from tests.fidelity.observe import Setting
from tests.support.aws import CREDENTIALS, REGION
from tests.support.fake_runtime_api import FakeRuntimeApi
from tests.support.processes import wait_until

PROCESSES = 4

SLOW = """
import os, time
print("imported by", os.getpid(), flush=True)
def handler(event, context):
    os.write(1, b"ran\\n")
    time.sleep(1)
    return os.getpid()
"""


@pytest.fixture
def api() -> Iterator[FakeRuntimeApi]:
    with FakeRuntimeApi() as server:
        yield server


@pytest.mark.parametrize("in_progress", ["fail", "wait"])
def test_of_four_processes_with_one_key_one_runs(
    api: FakeRuntimeApi, setting: Setting, tmp_path: Path, in_progress: str
) -> None:
    variables = {
        "AWS_LAMBDA_MAX_CONCURRENCY": str(PROCESSES),
        "IDEMPOTENCY_IN_PROGRESS": in_progress,
        "PYTHONWARNINGS": "ignore",
    }
    with running(api, setting, tmp_path / "task", SLOW, **variables) as function:
        wait_until(lambda: api.paths.count("invocation/next") == PROCESSES, WAIT_S, "all processes")
        waiting = [api.invoke({"orderId": 1}) for _ in range(PROCESSES)]
        answers = [answer.result(WAIT_S) for answer in waiting]
        output = function.output()
    assert output.count("imported by") == PROCESSES
    assert output.count("ran\n") == 1
    if in_progress == "wait":
        assert len({answer.body for answer in answers}) == 1
        assert not any(answer.is_error for answer in answers)
    else:
        errors = [answer.json()["errorType"] for answer in answers if answer.is_error]
        assert Counter(errors) == {"IdempotencyInProgressError": PROCESSES - 1}


# Calls the handler as the runtime resolves it, from eight threads at once: with one key, then each
# with its own.
THREADS = """
import json, os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from awslambdaric import bootstrap

class Context:
    aws_request_id = "one"
    def get_remaining_time_in_millis(self):
        return 20_000

resolve = getattr(bootstrap, "_get_handler", None) or bootstrap.get_handler
handler = resolve("lambda_once_wrapper.bootstrap.handler")
gate = threading.Barrier(8)

def call(order):
    gate.wait()
    return handler({"orderId": order}, Context())

with ThreadPoolExecutor(8) as pool:
    same = list(pool.map(call, [0] * 8))
    other = list(pool.map(call, range(1, 9)))
print(json.dumps([same, other, handler.__module__]))
"""
COUNTING = """
import itertools
calls = itertools.count()
def handler(event, context):
    return [event["orderId"], next(calls)]
"""


def call_in_threads(setting: Setting, task: Path) -> Any:
    task.mkdir()
    (task / "app.py").write_text(COUNTING)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{task}:{setting.layer}/python",
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL_DYNAMODB": setting.endpoint,
        "IDEMPOTENCY_TABLE": setting.table,
        "IDEMPOTENCY_SCOPE": task.parent.name,
        "IDEMPOTENCY_IN_PROGRESS": "wait",
        "LAMBDA_ONCE_HANDLER": "app.handler",
        **CREDENTIALS,
    }
    done = subprocess.run(
        [setting.python, "-c", THREADS],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        timeout=WAIT_S,
    )
    return json.loads(done.stdout)


def test_threads_in_one_process_run_once_for_one_key(setting: Setting, tmp_path: Path) -> None:
    same, other, module = call_in_threads(setting, tmp_path / "task")
    assert module == "lambda_once_wrapper.bootstrap"
    assert same == [[0, 0]] * 8
    assert [order for order, _ in other] == list(range(1, 9))
    assert {number for _, number in other} == set(range(1, 9))
