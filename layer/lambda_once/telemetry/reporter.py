"""The one hook that outcomes are told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..config import Config
from ..record import Outcome
from .log import Log, LogSink

Sink = Callable[[Outcome], None]


class Reporter:
    """Log always; metrics and trace where they are switched on."""

    def __init__(self, config: Config, environ: Mapping[str, str], log: Log) -> None:
        self._log = log
        self._sinks: dict[str, Sink] = {"log": LogSink(log)}
        if config.metrics_namespace:
            from .metrics import MetricsSink

            self._sinks["metrics"] = MetricsSink(config.metrics_namespace, environ, log)
        if config.tracing != "off":
            from .xray import TraceSink

            self._sinks["trace"] = TraceSink(config.tracing, environ)

    def __call__(self, outcome: Outcome) -> None:
        """Tell of ``outcome``. Whatever fails here changes nothing for the invocation."""
        for name, sink in self._sinks.items():
            self._tell(name, sink, outcome)

    def _tell(self, name: str, sink: Sink, outcome: Outcome) -> None:
        try:
            sink(outcome)
        except Exception as fault:  # noqa: BLE001  telemetry must not fail an invocation
            self._complain(name, fault)

    def _complain(self, name: str, fault: Exception) -> None:
        try:
            self._log.line("WARN", f"lambda-once: {name} failed: {type(fault).__name__}: {fault}")
        except Exception:  # noqa: BLE001  not even a closed standard error may
            return
