"""What the demo runs on: one table, two execution environments, the unmodified handler."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.aws import create_table, items
from tests.support.emulator import Emulator
from tests.support.layer import unpack_layer
from tests.support.ministack import running_ministack
from tests.support.paths import LAYER_ZIP, REPOSITORY
from tests.support.processes import wait_until

HANDLER = REPOSITORY / "demo" / "functions" / "orders"
TABLE = "idempotency"
TIMEOUT_S = 10


@dataclass(frozen=True)
class Shop:
    """Two environments of one function, its book of orders, and the table between them."""

    a: Emulator
    b: Emulator
    book: Path
    endpoint: str

    def runs_of(self, order_id: str) -> int:
        """How often the handler has run for this order."""
        return self.book.read_text().splitlines().count(order_id) if self.book.exists() else 0

    def wait_for_run_of(self, order_id: str) -> None:
        """Wait until the handler has begun with this order."""
        wait_until(lambda: self.runs_of(order_id) > 0, TIMEOUT_S, f"order {order_id} to begin")

    def records(self) -> list[dict[str, Any]]:
        """All records of the table, in DynamoDB's own typed form."""
        return items(self.endpoint, TABLE)

    def log(self) -> str:
        """What both functions have written."""
        return f"{self.a.output()}{self.b.output()}"


@contextmanager
def open_shop() -> Iterator[Shop]:
    """Start everything on free ports of loopback; stop everything at the end."""
    with ExitStack() as started:
        folder = Path(started.enter_context(TemporaryDirectory(prefix="lambda-once-demo-")))
        database = started.enter_context(running_ministack())
        create_table(database.endpoint, TABLE)
        layer = unpack_layer(LAYER_ZIP, folder / "opt")
        variables = {
            "IDEMPOTENCY_TABLE": TABLE,
            "IDEMPOTENCY_KEY": "orderId",
            "AWS_ENDPOINT_URL_DYNAMODB": database.endpoint,
            "ORDERS_BOOK": str(folder / "book.txt"),
        }
        a, b = (
            started.enter_context(
                Emulator(
                    sys.executable,
                    HANDLER,
                    "app.handler",
                    environment=variables,
                    layer=layer,
                    timeout_s=TIMEOUT_S,
                )
            )
            for _ in range(2)
        )
        yield Shop(a, b, folder / "book.txt", database.endpoint)
