"""The table of what is explored, each to its bound."""

from __future__ import annotations

from lambda_once.protocol import CLOCK_MARGIN_MS
from tests.protocol.model import Contender, Scenario

# Clocks may be apart by the margin. Only the difference between two contenders matters, and who is
# called A is of no importance, so A's clock true and B's ahead stands for every way round.
ALIKE = (Contender("A"), Contender("B"))
APART = (Contender("A"), Contender("B", CLOCK_MARGIN_MS))
THREE = (Contender("A"), Contender("B"), Contender("C"))
THREE_APART = (Contender("A"), Contender("B"), Contender("C", CLOCK_MARGIN_MS))
TWO_PAYLOADS = (Contender("A"), Contender("B", payload="other"))

# Long enough for three polls of the record before a waiting contender gives up.
WAIT_MS = 400

SCENARIOS = (
    Scenario("two", ALIKE),
    Scenario("two, no old item", ALIKE, returns_old=False),
    Scenario("two, clocks apart", APART),
    Scenario("two, clocks apart, no old item", APART, returns_old=False),
    Scenario("two, overrunning", ALIKE, managed=True, faults=2),
    Scenario("two, overrunning, no old item", ALIKE, managed=True, returns_old=False, faults=2),
    Scenario("two, overrunning, clocks apart", APART, managed=True, faults=2),
    Scenario("two, waiting", ALIKE, wait=True, timeout_ms=WAIT_MS, faults=2),
    Scenario("two, waiting, clocks apart", APART, wait=True, timeout_ms=WAIT_MS, faults=2),
    Scenario("two, waiting, no old item", ALIKE, wait=True, timeout_ms=WAIT_MS, returns_old=False, faults=2),
    Scenario("two, waiting, overrunning", ALIKE, wait=True, timeout_ms=WAIT_MS, managed=True, faults=2),
    Scenario("two payloads", TWO_PAYLOADS, compare_payload=True),
    Scenario("two payloads, waiting", TWO_PAYLOADS, compare_payload=True, wait=True, timeout_ms=WAIT_MS, faults=2),
    Scenario("two, long lease", APART, lease_s=10),
    Scenario("two, short lease configured", APART, lease_s=1),
    Scenario("two, short retention", APART, retention_s=1, deletes=True),
    Scenario("two, short retention, overrunning", ALIKE, retention_s=1, deletes=True, managed=True, faults=2),
    Scenario("two, unprotected without store", ALIKE, run_without_store=True),
    Scenario("three", THREE, faults=2),
    Scenario("three, clocks apart, no old item", THREE_APART, returns_old=False, faults=1),
    Scenario("three, overrunning", THREE, managed=True, faults=0),
    Scenario("three, waiting", THREE, wait=True, timeout_ms=WAIT_MS, faults=0),
)
