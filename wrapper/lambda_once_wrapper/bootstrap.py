"""Loads the user's handler, and calls it as the engine says.

The runtime imports this module in place of the user's, and then asks it for ``handler``. Only then
is the user's module loaded, and only after that our own: see ``__getattr__``. It must be called
bootstrap.py: the runtime drops leading frames of files of that name from error payloads, so that a
traceback begins in the user's code, as it does without us. At its top it imports only what the
runtime has loaded already: whatever else is imported, the user's module imports it first.
"""

from __future__ import annotations

import os
import sys

# Not from typing: the runtime has not loaded that.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from lambda_once.config import Config
    from lambda_once.engine import Engine
    from lambda_once.store.transport import Transport

    Handler = Callable[[Any, Any], Any]

# Set by the wrapper script.
ORIGINAL_HANDLER = "LAMBDA_ONCE_HANDLER"
ADDED_PATH = "LAMBDA_ONCE_ADDED_PATH"


def __getattr__(name: str) -> Handler:
    """Make ``handler`` when the runtime first asks for it.

    Were it made at import, the frames of the import system would lie between the runtime and the
    user's code, and every error at the import of the user's module would show them.
    """
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    handler = globals()["handler"] = _start()
    return handler


def _start() -> Handler:
    name = _restore_environment()
    if name is None:
        return _refused(
            "lambda-once has no handler to guard: set AWS_LAMBDA_EXEC_WRAPPER=/opt/lambda-once"
            " and leave the function's own handler setting as it was"
        )
    user_handler = _load(name)
    if _is_fault(user_handler):
        return user_handler
    try:
        return _wrap(user_handler, name)
    except Exception as fault:  # noqa: BLE001  what we import may be the user's: anything may come
        if type(fault).__name__ == "IdempotencyConfigError":
            return _refused(str(fault))
        return _unloadable(user_handler, fault)


def _restore_environment() -> str | None:
    """Put back what the script changed; the name of the user's handler, if there is one."""
    name = os.environ.pop(ORIGINAL_HANDLER, None)
    added = os.environ.pop(ADDED_PATH, None)
    if added:
        _restore_path(added)
    # Another wrapper that was started after ours has put its own name here, and keeps it.
    if name is not None and os.environ.get("_HANDLER") == f"{__name__}.handler":
        os.environ["_HANDLER"] = name
    return name


def _restore_path(added: str) -> None:
    """Take our folder out of PYTHONPATH, and look into it last: no package in it may win."""
    before, _, after = f":{os.environ.get('PYTHONPATH', '')}:".rpartition(f":{added}:")
    rest = f"{before}:{after}".strip(":")
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    if added in sys.path:
        sys.path.remove(added)
    sys.path.append(added)


def _load(name: str) -> Handler:
    """The user's handler, by the runtime's own resolver; its faults are passed on unchanged."""
    from awslambdaric import bootstrap as runtime

    # 4.1.0 and 4.2.0 call it get_handler, every other version _get_handler.
    newer = getattr(runtime, "get_handler", _resolve)
    try:
        handler: Handler = getattr(runtime, "_get_handler", newer)(name)
    except AttributeError as fault:
        # The runtime would take it for a missing handler of this module.
        kind = type(type(fault).__name__, (_UserAttributeError,), {})
        raise kind(fault).with_traceback(fault.__traceback__) from None
    return handler


class _UserAttributeError(Exception):
    """Stands for an AttributeError at the import of the user's module. Reported like it."""

    def __str__(self) -> str:
        return str(self.args[0])


def _resolve(name: str) -> Handler:
    """For a runtime client that has renamed its resolver once more."""
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    handler: Handler = getattr(import_module(module.replace("/", ".")), attribute)
    return handler


def _is_fault(handler: Handler) -> bool:
    """Whether the runtime client is one (up to 2.0) that reports faults at import when invoked.

    Its resolver then returns a function that raises the fault: not to be guarded.
    """
    from awslambdaric import bootstrap as runtime

    make = getattr(runtime, "make_fault_handler", None)
    return make is not None and getattr(handler, "__code__", None) is make(None).__code__


def _refused(message: str) -> Handler:
    """End the start as the runtime ends it for a handler that it cannot use."""
    from awslambdaric import bootstrap as runtime

    fault = _fault("IdempotencyConfigError", message)
    if hasattr(runtime, "make_fault_handler"):
        handler: Handler = runtime.make_fault_handler(fault)
        return handler
    raise fault


def _fault(error_type: str, message: str) -> Exception:
    """What the runtime reports as an error of this type, with this message and no stack trace."""
    from awslambdaric.lambda_runtime_exception import FaultException

    fault: Exception = FaultException(error_type, message, None)
    return fault


def _unloadable(user_handler: Handler, fault: Exception) -> Handler:
    """Our own code could not be loaded: say so when invoked. The kill switch works even here."""
    if os.environ.get("IDEMPOTENCY_DISABLED", "").strip().lower() == "true":
        return user_handler
    reason = f"{type(fault).__name__}: {fault}{_files_at_fault(fault)}"

    def handler(event: Any, context: Any) -> Any:
        raise _fault("IdempotencyError", f"lambda-once could not be loaded: {reason}")

    return handler


def _files_at_fault(fault: Exception) -> str:
    try:
        from lambda_once.import_faults import files_at_fault
    except ImportError:
        ours = sys.modules.get("lambda_once")
        return f" (lambda_once is {getattr(ours, '__file__', 'missing')})"
    return files_at_fault(fault)


def _wrap(user_handler: Handler, name: str) -> Handler:
    """Ours around the user's, as configured; the user's own where we are switched off."""
    from lambda_once.config import Config, is_disabled
    from lambda_once.telemetry.log import Log

    log = Log(os.environ)
    if is_disabled(os.environ):
        log.line("INFO", f"lambda-once is disabled, {name} runs without protection")
        return user_handler
    config = Config.from_environ(os.environ)
    engine = _engine(config, log)
    _announce(config, name, log)
    return _guarded(user_handler, engine)


def _guarded(user_handler: Handler, engine: Engine) -> Handler:
    """The handler that the runtime calls."""
    from lambda_once.errors import IdempotencyError

    def handler(event: Any, context: Any) -> Any:
        try:
            invocation = engine.open(event, context)
        except IdempotencyError as refused:
            # Where in our code it was raised tells nobody anything: the message does.
            raise refused.with_traceback(None)  # noqa: B904  it is the same exception
        while (call := invocation.next_call()) is not None:
            try:
                response = user_handler(call[0], context)
            except BaseException as fault:  # noqa: PERF203  once a call, not once a record
                if not invocation.failed(fault):
                    raise
            else:
                invocation.succeeded(response)
        # Raised here, so that a failure of user code that was put off has no frame of ours but
        # this file's.
        if (put_off := invocation.fault()) is not None:
            raise put_off
        return invocation.answer()

    return handler


def _engine(config: Config, log: Any) -> Engine:
    """The engine, with its transport ready for the first request."""
    import time

    from awslambdaric.lambda_runtime_client import LambdaRuntimeClient

    from lambda_once.claims.services import Services
    from lambda_once.engine import Engine
    from lambda_once.store.boto import BotoTransport
    from lambda_once.store.dynamodb import DynamoDBStore
    from lambda_once.telemetry.reporter import Reporter

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    def marshal(response: object) -> tuple[str | bytes, str]:
        # Looked up at each call: a function may replace the runtime's marshaller.
        marshalled: tuple[str | bytes, str] = LambdaRuntimeClient.marshaller.marshal_response(
            response
        )
        return marshalled

    transport = BotoTransport(config.table_region, now_ms)
    _prepare(transport)
    return Engine(
        Services(
            config=config,
            store=DynamoDBStore(config.table, transport, now_ms, time.sleep),
            now_ms=now_ms,
            sleep=time.sleep,
            token=lambda: os.urandom(16).hex(),
            report=Reporter(config, os.environ, log),
            marshal=marshal,
        )
    )


def _prepare(transport: Transport) -> None:
    """Do at init what is heavy: afterwards a small function has a fourteenth of a core.

    No client, credential or socket may be in a snapshot, so under SnapStart they come after the
    restore. A runtime without hooks makes them at the first request.
    """
    transport.load()
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "snap-start":
        transport.prepare()
        return
    try:
        from snapshot_restore_py import register_after_restore
    except ImportError:
        return
    register_after_restore(transport.prepare)


def _announce(config: Config, name: str, log: Any) -> None:
    """Say at init what is guarded and how, so that a silent bypass shows."""
    from lambda_once import __version__

    key = config.key.text if config.key else "by event source"
    log.line("INFO", f"lambda-once {__version__} guards {name}, table {config.table}, key {key}")
    for variable in config.ignored:
        log.line("WARN", f"lambda-once: {variable} is not one of its variables and is ignored")
