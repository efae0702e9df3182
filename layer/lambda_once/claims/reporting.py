"""What became of one unit, told once."""

from __future__ import annotations

from ..record import Outcome
from .services import Services, Target


class UnitReport:
    """Notes when the steps of a unit were taken, and tells its outcome."""

    def __init__(self, services: Services, target: Target) -> None:
        self._now_ms = services.now_ms
        self._report = services.report
        self._target = target
        self._times = dict.fromkeys(
            ("claim_started_ms", "claim_ended_ms", "settle_started_ms", "settle_ended_ms"), 0
        )

    def note(self, step: str) -> int:
        """Note that ``step`` is now, as in ``claim_started``; the time in epoch ms."""
        now_ms = self._times[f"{step}_ms"] = self._now_ms()
        return now_ms

    def tell(self, kind: str, fault: Exception | None = None, detail: str = "") -> None:
        """The outcome is ``kind``, because of ``fault`` or for the reason in ``detail``."""
        if self._times["settle_started_ms"]:
            self.note("settle_ended")
        target = self._target
        self._report(
            Outcome(
                kind,
                target.source,
                target.record_id,
                target.request_id,
                error=type(fault).__name__ if fault else "",
                code=getattr(fault, "code", ""),
                detail=str(fault) if fault else detail,
                **self._times,
            )
        )
