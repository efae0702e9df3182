"""Where things are in this repository."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = REPOSITORY / ".venv"
LAYER_ZIP = REPOSITORY / "dist" / "lambda-once.zip"
# One folder per version of the runtime client and Python, as in CLIENTS / "4.0.4-py3.11".
CLIENTS = TOOLS / "clients"
RIE = TOOLS / "rie" / "aws-lambda-rie"
# Templates by service, as in SAMPLE_EVENTS / "sqs" / "SqsReceiveMessage.json".
SAMPLE_EVENTS = TOOLS / "rie" / "events"
