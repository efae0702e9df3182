"""The table of what is explored, each to its bound."""

from __future__ import annotations

from lambda_once.claims.protocol import CLOCK_MARGIN_MS
from tests.protocol.model import Contender, Scenario

# Clocks may be apart by the margin. Only the difference between two contenders matters, and who is
# called A is of no importance, so A's clock true and B's ahead stands for every way round.
ALIKE = (Contender("A"), Contender("B"))
APART = (Contender("A"), Contender("B", CLOCK_MARGIN_MS))
TWO_PAYLOADS = (Contender("A"), Contender("B", payload="other"))
THREE = (Contender("A"), Contender("B"), Contender("C"))
THREE_APART = (Contender("A"), Contender("B"), Contender("C", CLOCK_MARGIN_MS))

# Long enough for three looks, or for one, at the record before a waiting contender gives up.
WAIT_MS = 500
SHORT_WAIT_MS = 300

PLAIN = Scenario("two", ALIKE)
OVERRUNNING = Scenario("two, overrunning", ALIKE, managed=True, faults=2, long_faults=3)
WAITING = Scenario("two, waiting", ALIKE, wait=True, timeout_ms=WAIT_MS, faults=2, long_faults=4)
BRIEF = Scenario("two, short retention", APART, retention_s=1, deletes=True, faults=2)
CROWD = Scenario("three", THREE, faults=1, long_faults=4)

SCENARIOS = (
    PLAIN,
    PLAIN._replace(name="two, clocks apart", contenders=APART),
    PLAIN._replace(name="two, no old item", returns_old=False, faults=3),
    PLAIN._replace(name="two, no old item, clocks apart", contenders=APART, returns_old=False),
    OVERRUNNING,
    OVERRUNNING._replace(name="two, overrunning, clocks apart", contenders=APART, faults=1),
    OVERRUNNING._replace(
        name="two, overrunning, no old item, clocks apart",
        contenders=APART,
        returns_old=False,
        faults=1,
        long_faults=2,
    ),
    WAITING,
    WAITING._replace(
        name="two, waiting, no old item, clocks apart", contenders=APART, returns_old=False
    ),
    WAITING._replace(name="two, waiting, overrunning", managed=True, faults=1, long_faults=2),
    PLAIN._replace(name="two payloads", contenders=TWO_PAYLOADS, compare_payload=True, faults=3),
    WAITING._replace(name="two payloads, waiting", contenders=TWO_PAYLOADS, compare_payload=True),
    PLAIN._replace(name="two, lease beyond the deadline", contenders=APART, lease_s=10, faults=3),
    PLAIN._replace(name="two, lease below the deadline", contenders=APART, lease_s=1, faults=3),
    BRIEF,
    BRIEF._replace(
        name="two, short retention, overrunning",
        contenders=ALIKE,
        managed=True,
        faults=1,
        long_faults=2,
    ),
    OVERRUNNING._replace(name="two, overrunning, lease beyond the deadline", lease_s=10, faults=1),
    PLAIN._replace(name="two, unprotected without store", run_without_store=True, faults=3),
    CROWD,
    CROWD._replace(
        name="three, no old item, clocks apart",
        contenders=THREE_APART,
        returns_old=False,
        faults=0,
        long_faults=1,
    ),
    CROWD._replace(name="three, overrunning", managed=True, faults=0, long_faults=1),
    CROWD._replace(
        name="three, waiting", wait=True, timeout_ms=SHORT_WAIT_MS, faults=0, long_faults=1
    ),
)

# How many worlds must be seen at least, so that a harness that explores nothing fails: what was
# seen in the short exploration, less a tenth. The bounds in the table are chosen for the time this
# takes, 40 s altogether on a slow core; the long exploration takes five minutes and 700 MB.
MIN_STATES = {
    "two": 22_000,
    "two, clocks apart": 29_000,
    "two, no old item": 21_000,
    "two, no old item, clocks apart": 90_000,
    "two, overrunning": 25_000,
    "two, overrunning, clocks apart": 8_500,
    "two, overrunning, no old item, clocks apart": 20_000,
    "two, waiting": 22_000,
    "two, waiting, no old item, clocks apart": 37_000,
    "two, waiting, overrunning": 38_000,
    "two payloads": 17_000,
    "two payloads, waiting": 5_600,
    "two, lease beyond the deadline": 15_000,
    "two, lease below the deadline": 17_000,
    "two, short retention": 23_000,
    "two, short retention, overrunning": 38_000,
    "two, overrunning, lease beyond the deadline": 8_300,
    "two, unprotected without store": 16_000,
    "three": 15_000,
    "three, no old item, clocks apart": 11_000,
    "three, overrunning": 7_900,
    "three, waiting": 4_400,
}
