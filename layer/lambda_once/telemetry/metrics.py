"""Metrics in the embedded metric format, one line for each outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..record import Outcome
from .log import Log
from .wording import SAID, timings


class MetricsSink:
    """Counts outcomes in a CloudWatch namespace, and says how long the steps took."""

    def __init__(self, namespace: str, environ: Mapping[str, str], log: Log) -> None:
        self._namespace = namespace
        self._environ = environ
        self._log = log

    def __call__(self, outcome: Outcome) -> None:
        """Write the document that CloudWatch reads out of the log."""
        values: dict[str, int] = {SAID[outcome.kind][2]: 1}
        units = {SAID[outcome.kind][2]: "Count"}
        for name, started, ended in timings(outcome):
            values[f"{name}Duration"] = ended - started
            units[f"{name}Duration"] = "Milliseconds"
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        self._log.raw(
            {
                "_aws": {
                    "Timestamp": int(time.time() * 1000),
                    "CloudWatchMetrics": [
                        {
                            "Namespace": self._namespace,
                            "Dimensions": [["FunctionName"]],
                            "Metrics": metrics,
                        }
                    ],
                },
                "FunctionName": self._environ.get("AWS_LAMBDA_FUNCTION_NAME", "function"),
                "Source": outcome.source,
                **values,
            }
        )
