"""What a run has shown beyond passing: one file a topic, one line each in pytest's summary."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".report"


def write(topic: str, summary: str, **numbers: object) -> None:
    """Leave a topic's report; `summary` is the line that is printed at the end of the run."""
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"summary": summary, **numbers}, indent=2)
    (FOLDER / f"{topic}.json").write_text(text + "\n")


def summaries() -> list[str]:
    """The line of each report that this run has left."""
    reports = [json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))]
    return [f"{report['summary']}" for report in reports if "summary" in report]


def clear() -> None:
    """Forget the reports of earlier runs."""
    for file in FOLDER.glob("*.json"):
        file.unlink(missing_ok=True)
