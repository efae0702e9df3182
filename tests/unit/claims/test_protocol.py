"""The pure rules: what each record means for each claimer, and the boundary times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lambda_once.claims import protocol
from lambda_once.claims.protocol import CLOCK_MARGIN_MS, Settlement, Verdict
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Record

NOW_MS = 1_800_000_000_500
NOW_S = 1_800_000_000
CLAIM = Claim("orders#1", "me", NOW_MS + 60_000, NOW_S + 3_600)


def in_progress(owner: str = "other", *, until_ms: int = NOW_MS + 1, print_: str = "") -> Record:
    return Record("orders#1", IN_PROGRESS, owner, until_ms, NOW_S + 3_600, print_ or None)


def completed(owner: str = "other", *, expires_at_s: int = NOW_S + 1, print_: str = "") -> Record:
    return Record("orders#1", COMPLETED, owner, 0, expires_at_s, print_ or None)


@pytest.mark.parametrize(
    ("existing", "verdict"),
    [
        pytest.param(in_progress("me"), Verdict.MINE, id="my own token"),
        pytest.param(in_progress("me", until_ms=NOW_MS - 1), Verdict.MINE, id="my own, ended"),
        pytest.param(in_progress(), Verdict.IN_PROGRESS, id="another's"),
        pytest.param(in_progress(until_ms=NOW_MS), Verdict.IN_PROGRESS, id="in its last moment"),
        pytest.param(in_progress(until_ms=NOW_MS - 1), Verdict.FREE, id="lease ended"),
        pytest.param(completed(), Verdict.REPLAY, id="completed"),
        pytest.param(completed("me"), Verdict.REPLAY, id="completed by my token"),
        pytest.param(completed(expires_at_s=NOW_S), Verdict.REPLAY, id="in its last second"),
        pytest.param(completed(expires_at_s=NOW_S - 1), Verdict.FREE, id="expired"),
    ],
)
def test_the_item_in_the_way_decides_a_claim(existing: Record, verdict: Verdict) -> None:
    assert protocol.judge_claim(existing, CLAIM, NOW_MS) is verdict


@pytest.mark.parametrize("existing", [in_progress(print_="old"), completed(print_="old")])
@pytest.mark.parametrize(
    ("fingerprint", "differs"), [("new", True), ("old", False), (None, False), ("", False)]
)
def test_another_fingerprint_is_a_mismatch_and_none_matches_all(
    existing: Record, fingerprint: str | None, differs: bool
) -> None:
    verdict = protocol.judge_claim(existing, CLAIM._replace(fingerprint=fingerprint), NOW_MS)
    assert (verdict is Verdict.MISMATCH) is differs


def test_a_record_without_fingerprint_matches_every_payload() -> None:
    verdict = protocol.judge_claim(completed(), CLAIM._replace(fingerprint="new"), NOW_MS)
    assert verdict is Verdict.REPLAY


def test_an_ended_record_is_free_whatever_its_fingerprint() -> None:
    ended = completed(expires_at_s=NOW_S - 1, print_="old")
    verdict = protocol.judge_claim(ended, CLAIM._replace(fingerprint="new"), NOW_MS)
    assert verdict is Verdict.FREE


@pytest.mark.parametrize(
    ("existing", "settlement"),
    [
        pytest.param(completed("me"), Settlement.DONE, id="completed by my token"),
        pytest.param(completed("other"), Settlement.LOST, id="completed by another"),
        pytest.param(in_progress("other"), Settlement.LOST, id="claimed by another"),
        pytest.param(in_progress("me"), Settlement.LOST, id="mine again: cannot be"),
        pytest.param(None, Settlement.LOST, id="gone"),
    ],
)
def test_the_item_in_the_way_decides_a_completion(
    existing: Record | None, settlement: Settlement
) -> None:
    assert protocol.judge_completion(existing, CLAIM) is settlement


@pytest.mark.parametrize(
    ("existing", "settlement"),
    [
        pytest.param(None, Settlement.DONE, id="gone"),
        pytest.param(in_progress("other"), Settlement.LOST, id="claimed by another"),
        pytest.param(completed("other"), Settlement.LOST, id="completed by another"),
        pytest.param(completed("me"), Settlement.LOST, id="completed by my token"),
    ],
)
def test_the_item_in_the_way_decides_a_release(
    existing: Record | None, settlement: Settlement
) -> None:
    assert protocol.judge_release(existing, CLAIM) is settlement


def test_a_lease_ends_one_margin_after_the_deadline() -> None:
    assert protocol.lease_until(NOW_MS, 3_000) == NOW_MS + 3_000 + CLOCK_MARGIN_MS


def test_a_configured_lease_only_lengthens() -> None:
    assert protocol.lease_until(NOW_MS, 3_000, 2_000) == NOW_MS + 3_000 + CLOCK_MARGIN_MS
    assert protocol.lease_until(NOW_MS, 3_000, 9_000) == NOW_MS + 9_000 + CLOCK_MARGIN_MS


@settings(deadline=None)
@given(
    now_ms=st.integers(0, 10**13),
    remaining_ms=st.integers(0, 6_000_000),
    retention_s=st.integers(1, 10**6),
)
def test_a_claim_never_expires_before_its_lease(
    now_ms: int, remaining_ms: int, retention_s: int
) -> None:
    lease_ms = protocol.lease_until(now_ms, remaining_ms)
    expires_at_s = protocol.expiry_of_claim(lease_ms, now_ms, retention_s)
    assert expires_at_s * 1000 >= lease_ms
    assert expires_at_s >= now_ms // 1000 + retention_s
    claim = Record("orders#1", IN_PROGRESS, "me", lease_ms, expires_at_s)
    assert not protocol.has_ended(claim, lease_ms)
    assert protocol.has_ended(claim, lease_ms + 1)


def test_a_claim_is_usable_until_the_deadline() -> None:
    deadline_ms = CLAIM.lease_until_ms - CLOCK_MARGIN_MS
    assert protocol.is_usable(CLAIM, deadline_ms - 1)
    assert not protocol.is_usable(CLAIM, deadline_ms)
