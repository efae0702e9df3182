"""X-Ray subsegments for the steps of an outcome."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..bundled import make_importable
from ..record import Outcome
from .wording import timings


class TraceSink:
    """Adds the steps to the function's trace. ``tracing`` is ``auto`` or ``on``."""

    def __init__(self, tracing: str, environ: Mapping[str, str]) -> None:
        self._tracing = tracing
        self._environ = environ

    def __call__(self, outcome: Outcome) -> None:
        """Add a subsegment for each step, if there is a trace."""
        recorder = self._recorder()
        if recorder is None:
            return
        for name, started, ended in timings(outcome):
            subsegment = recorder.begin_subsegment(f"lambda-once {name.lower()}")
            if subsegment is None:
                continue
            subsegment.start_time = started / 1000
            subsegment.put_annotation("outcome", outcome.kind)
            if outcome.error:
                subsegment.add_error_flag()
            recorder.end_subsegment(ended / 1000)

    def _recorder(self) -> Any:
        """The X-Ray recorder, if the configuration and the invocation want one.

        aws_xray_sdk takes over half a second to import: in ``auto`` it counts only if the user's
        code has loaded it already.
        """
        loaded = "aws_xray_sdk.core" in sys.modules
        wanted = self._tracing == "on" or (self._tracing == "auto" and loaded)
        if not wanted or not self._environ.get("_X_AMZN_TRACE_ID"):
            return None
        make_importable("aws_xray_sdk")
        from aws_xray_sdk.core import xray_recorder

        return xray_recorder
