"""Loads the user's handler, and calls it as the engine says.

The runtime imports this module in place of the user's. It must be called bootstrap.py: the runtime
drops leading frames of files of that name from error payloads, so that a traceback begins in the
user's code, as it does without us. At the top it imports only what every Python process has loaded
already: the user's module comes first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lambda_once.config import Config
    from lambda_once.engine import Engine

Handler = Callable[[Any, Any], Any]

# Set by the wrapper script.
ORIGINAL_HANDLER = "LAMBDA_ONCE_HANDLER"
ORIGINAL_PYTHONPATH = "LAMBDA_ONCE_PYTHONPATH"
PYTHONPATH_CHANGED = "LAMBDA_ONCE_PYTHONPATH_CHANGED"


def _restore_environment() -> str:
    """Put back what the script changed; the name of the user's handler."""
    name = os.environ.pop(ORIGINAL_HANDLER, None)
    if name is None:
        raise _fault(
            "IdempotencyConfigError",
            "lambda-once has no handler to guard: set AWS_LAMBDA_EXEC_WRAPPER=/opt/lambda-once"
            " and leave the function's own handler setting as it was",
        )
    os.environ["_HANDLER"] = name
    if os.environ.pop(PYTHONPATH_CHANGED, None):
        original = os.environ.pop(ORIGINAL_PYTHONPATH, None)
        if original is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = original
    return name


def _fault(error_type: str, message: str, trace: list[str] | None = None) -> Exception:
    """What the runtime reports as an error of this type, with this message and stack trace."""
    from awslambdaric.lambda_runtime_exception import FaultException

    fault: Exception = FaultException(error_type, message, trace)
    return fault


def _load(name: str) -> Handler:
    """The user's handler; what goes wrong is reported as the runtime would report it."""
    from awslambdaric import bootstrap as runtime
    from awslambdaric.lambda_runtime_exception import FaultException

    # 4.1.0 and 4.2.0 call it get_handler, every other version _get_handler.
    resolve = getattr(runtime, "_get_handler", None) or runtime.get_handler
    try:
        handler: Handler = resolve(name)
    except FaultException:
        raise
    except Exception:
        told = runtime.build_fault_result(sys.exc_info(), None)
        raise _fault(told["errorType"], told["errorMessage"], told["stackTrace"]) from None
    return handler


def _guarded(user_handler: Handler, engine: Engine) -> Handler:
    """The handler that the runtime calls."""

    def handler(event: Any, context: Any) -> Any:
        invocation = engine.open(event, context)
        while (call := invocation.next_call()) is not None:
            try:
                response = user_handler(call[0], context)
            except BaseException as fault:
                if not invocation.failed(fault):
                    raise
            else:
                invocation.succeeded(response)
        return invocation.answer()

    return handler


def _wrap(user_handler: Handler, name: str) -> Handler:
    """Ours around the user's, as configured; the user's own where we are switched off."""
    from lambda_once.config import Config, is_disabled
    from lambda_once.errors import IdempotencyConfigError
    from lambda_once.telemetry import Log

    log = Log(os.environ)
    try:
        if is_disabled(os.environ):
            log.line("INFO", f"lambda-once is disabled, {name} runs without protection")
            return user_handler
        config = Config.from_environ(os.environ)
    except IdempotencyConfigError as fault:
        raise _fault(type(fault).__name__, str(fault)) from None
    engine = _engine(config, log)
    _announce(config, name, log)
    return _guarded(user_handler, engine)


def _engine(config: Config, log: Any) -> Engine:
    """No client, socket, credential or random number here: a snapshot may be taken after this."""
    import time

    from awslambdaric.lambda_runtime_client import LambdaRuntimeClient
    from lambda_once.dynamodb import DynamoDBStore
    from lambda_once.engine import Engine
    from lambda_once.guard import Services
    from lambda_once.telemetry import Reporter

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    return Engine(
        Services(
            config=config,
            store=DynamoDBStore(config.table, config.table_region, now_ms, time.sleep),
            now_ms=now_ms,
            sleep=time.sleep,
            token=lambda: os.urandom(16).hex(),
            report=Reporter(config, os.environ, log),
            # Looked up at each call: functions may replace the runtime's marshaller.
            marshal=lambda response: LambdaRuntimeClient.marshaller.marshal_response(response),
        )
    )


def _announce(config: Config, name: str, log: Any) -> None:
    """Say at init what is guarded and how, so that a silent bypass shows."""
    from lambda_once import __version__

    key = config.key.text if config.key else "by event source"
    log.line(
        "INFO", f"lambda-once {__version__} guards {name}, table {config.table}, key {key}"
    )
    for variable in config.ignored:
        log.line("WARN", f"lambda-once: {variable} is not one of its variables and is ignored")


def _start() -> Handler:
    name = _restore_environment()
    return _wrap(_load(name), name)


handler = _start()
