"""Delivers orders to several environments until each is done, as a queue would, amid deaths."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.deaths.environments import Delivery, Ending, Environment

OPEN_ORDERS = 12
# An order that is never done would be delivered for ever.
PATIENCE_S = 120
PATIENCE_PER_DEATH_S = 2
SELF_MADE = ("sys.exit", "os._exit", "BaseException", "hang")


class Plan(NamedTuple):
    """How a test wants to break things.

    ``deaths`` is how many to reach; ``longest_s`` the longest pause before and after the side
    effect, and the range in which a signal from outside comes.
    """

    deaths: int
    longest_s: float
    kill_within_s: float


class Delivered(NamedTuple):
    """A delivery that is over."""

    order: str
    id: str
    ending: Ending


class Board:
    """Which orders are open, and all that has happened; shared by the slots."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._give_up_s = time.monotonic() + PATIENCE_S + PATIENCE_PER_DEATH_S * plan.deaths
        self._lock = threading.Lock()
        self._open: list[str] = []
        self._done: list[str] = []
        self.deaths: Counter[str] = Counter()
        self.delivered: list[Delivered] = []

    def take(self, chance: random.Random) -> str | None:
        """An order to deliver, perhaps one that another slot has taken too; None at the end."""
        with self._lock:
            if not self.is_calm:
                while len(self._open) < OPEN_ORDERS:
                    self._open.append(f"order-{uuid.uuid4().hex}")
            if not self._open:
                return None
            if time.monotonic() > self._give_up_s:
                raise TimeoutError(f"never done: {self._open}")
            # One in eight is a repetition of one that is done.
            repeated = self._done and chance.random() < 1 / 8
            return chance.choice(self._done if repeated else self._open)

    def note(self, order: str, delivery_id: str, ending: Ending) -> None:
        with self._lock:
            self.delivered.append(Delivered(order, delivery_id, ending))
            if ending.kind == "died":
                self.deaths[ending.how] += 1
            if ending.kind == "result" and order in self._open:
                self._open.remove(order)
                self._done.append(order)

    @property
    def is_calm(self) -> bool:
        """Whether enough have died: what is left is only to be finished."""
        return self.deaths.total() >= self._plan.deaths

    @property
    def orders(self) -> list[str]:
        return sorted({each.order for each in self.delivered})


def make_delivery(order: str, plan: Plan, chance: random.Random, *, calm: bool) -> Delivery:
    """A delivery; unless calm, half of them are to die."""
    fate = "none" if calm else chance.choices(("none", "kill", "self"), (4, 3, 2))[0]
    event: dict[str, Any] = {
        "order": order,
        "delivery": uuid.uuid4().hex,
        "before_s": chance.uniform(0, plan.longest_s),
        "after_s": chance.uniform(0, plan.longest_s),
        "declined": fate == "none" and not calm and chance.random() < 0.2,
        "dies": chance.choice(("before", "after")) if fate == "self" else "",
        "how": chance.choices(SELF_MADE, (3, 3, 3, 1))[0] if fate == "self" else "",
    }
    kill_after_s = chance.uniform(0, plan.kill_within_s) if fate == "kill" else None
    return Delivery(event, kill_after_s)


class Slot(threading.Thread):
    """Keeps one environment alive and delivers to it, one delivery at a time."""

    def __init__(self, board: Board, plan: Plan, start: Callable[[], Environment], seed: str):
        super().__init__(name=f"slot {seed}")
        self._board = board
        self._plan = plan
        self._start_environment = start
        self._chance = random.Random(seed)
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            self._deliver_all()
        except BaseException as fault:  # noqa: BLE001  raised again by `deliver_all`
            self.fault = fault

    def _deliver_all(self) -> None:
        environment: Environment | None = None
        try:
            while (order := self._board.take(self._chance)) is not None:
                environment = environment or self._start_environment()
                calm = self._board.is_calm
                delivery = make_delivery(order, self._plan, self._chance, calm=calm)
                ending = environment.deliver(delivery)
                self._board.note(order, delivery.event["delivery"], ending)
                if ending.kind == "died":
                    environment.close()
                    environment = None
                elif ending.kind == "refused":
                    time.sleep(0.05)
        finally:
            if environment is not None:
                environment.close()


def deliver_all(slots: Sequence[Slot]) -> None:
    """Run the slots to their end."""
    for slot in slots:
        slot.start()
    for slot in slots:
        slot.join()
    for slot in slots:
        if slot.fault is not None:
            raise slot.fault
