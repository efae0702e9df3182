"""The benchmark's own parts: what it measures with must be what it says."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.canned import FRESH, LAYER_DONE, Canned, running_canned
from tests.bench.cpu_quota import (
    CpuGroup,
    NoQuotaError,
    find_cpu_group,
    limited_group,
    move,
    set_limit,
)
from tests.bench.figures import Target, ratio, spread
from tests.support.certificates import Certificates, has_openssl, make_certificates
from tests.support.processes import Process

needs_openssl = pytest.mark.skipif(not has_openssl(), reason="the program openssl was not found")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates | None:
    return make_certificates(tmp_path_factory.mktemp("certificates")) if has_openssl() else None


@pytest.fixture(scope="module")
def canned(certificates: Certificates | None) -> Iterator[Canned]:
    with running_canned(certificates) as server:
        yield server


def address(url: str | None) -> str:
    assert url is not None
    return url.partition("://")[2]


def put(
    connection: http.client.HTTPConnection, table: str
) -> tuple[http.client.HTTPResponse, bytes]:
    headers = {"X-Amz-Target": "DynamoDB_20120810.PutItem"}
    connection.request("POST", "/", json.dumps({"TableName": table}), headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def over_plain(canned: Canned) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(address(canned.plain), timeout=10)


@pytest.mark.parametrize("table", [FRESH, LAYER_DONE])
def test_the_canned_server_sends_the_checksum_of_what_it_sends(canned: Canned, table: str) -> None:
    answer, body = put(over_plain(canned), table)
    assert int(answer.headers["x-amz-crc32"]) == zlib.crc32(body)


def test_each_canned_answer_has_an_id_of_its_own(canned: Canned) -> None:
    connection = over_plain(canned)
    ids = [put(connection, FRESH)[0].headers["x-amzn-RequestId"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert {len(each) for each in ids} == {52}


def test_a_canned_refusal_shows_the_old_item(canned: Canned) -> None:
    answer, body = put(over_plain(canned), LAYER_DONE)
    assert answer.status == 400
    assert json.loads(body)["Item"]["status"] == {"S": "COMPLETED"}


@needs_openssl
def test_tls_verifies_against_the_root_and_counts_with_plain_http(
    canned: Canned, certificates: Certificates
) -> None:
    canned.requests()
    context = ssl.create_default_context(cafile=str(certificates.root))
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 does by itself
    host = address(canned.tls)
    answer, _ = put(http.client.HTTPSConnection(host, timeout=10, context=context), FRESH)
    assert answer.status == 200
    put(over_plain(canned), FRESH)
    assert canned.requests() == {"PutItem": 2}


@needs_openssl
def test_the_certificate_is_trusted_by_no_one_else(canned: Canned) -> None:
    context = ssl.create_default_context()
    connection = http.client.HTTPSConnection(address(canned.tls), timeout=10, context=context)
    with pytest.raises(ssl.SSLCertVerificationError):
        put(connection, FRESH)
    connection.close()


# ---- the CPU limit


def system_of(folder: Path, own: str, **files: str) -> tuple[Path, Path]:
    """A made-up /sys/fs/cgroup and /proc/self/cgroup; two underlines stand for a slash."""
    for name, text in files.items():
        path = folder / "system" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    return folder / "system", folder / "own"


def test_a_group_of_version_1_is_found_where_we_are(tmp_path: Path) -> None:
    system, own = system_of(
        tmp_path,
        "3:cpu,cpuacct:/mine\n0::/other\n",
        cpu__mine__cpu_DOT_cfs_quota_us="-1",
        cpu__cpu_DOT_cfs_quota_us="-1",
    )
    assert find_cpu_group(system, own) == CpuGroup(system / "cpu" / "mine", 1)


def test_a_group_of_version_2_is_the_nearest_that_hands_on_the_cpu(tmp_path: Path) -> None:
    system, own = system_of(
        tmp_path,
        "0::/user/mine\n",
        user__mine__cgroup_DOT_subtree_control="memory\n",
        user__cgroup_DOT_subtree_control="cpu memory\n",
        cgroup_DOT_subtree_control="cpu memory\n",
    )
    assert find_cpu_group(system, own) == CpuGroup(system / "user", 2)


def test_a_path_that_only_the_host_sees_falls_back_to_the_root(tmp_path: Path) -> None:
    system, own = system_of(tmp_path, "1:cpu:/docker/123\n", cpu__cpu_DOT_cfs_quota_us="-1")
    assert find_cpu_group(system, own) == CpuGroup(system / "cpu", 1)


def test_a_machine_without_control_groups_is_told_from_one_with(tmp_path: Path) -> None:
    with pytest.raises(NoQuotaError, match="no control group under"):
        find_cpu_group(tmp_path / "none", tmp_path / "none")


def test_version_1_takes_period_and_quota_in_files_of_their_own(tmp_path: Path) -> None:
    set_limit(CpuGroup(tmp_path, 1), 0.07)
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "20000"
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "1400"


def test_version_2_takes_quota_and_period_in_one_file(tmp_path: Path) -> None:
    set_limit(CpuGroup(tmp_path, 2), 0.07)
    assert (tmp_path / "cpu.max").read_text() == "1400 20000"


SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")


def test_a_limited_process_is_in_the_group_and_the_group_is_gone_after_it() -> None:
    try:
        parent = find_cpu_group()
        with limited_group(parent, 0.5) as folder:
            with Process(
                [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ)
            ) as process:
                move(process.pid, folder)
                inside = (folder / "cgroup.procs").read_text().split()
            assert inside == [str(process.pid)]
    except NoQuotaError as why:
        pytest.skip(str(why))
    assert not folder.exists()


# ---- figures


def test_a_ratio_is_of_the_medians_with_the_spread_of_the_turns() -> None:
    found = ratio([11, 13, 12], [12, 18, 14], base=[10, 10, 10])
    assert found == (2 / 4, 3 / 8, 1 / 2)


def test_a_spread_has_the_median_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]).json() == {"median": 2.0, "min": 1.0, "max": 3.0}


@pytest.mark.parametrize(
    ("at_least", "value", "met"),
    [(False, 0.25, True), (False, 0.26, False), (True, 3.0, True), (True, 2.9, False)],
)
def test_a_target_is_met_on_its_own_side(at_least: bool, value: float, met: bool) -> None:
    bound = 3.0 if at_least else 0.25
    assert Target("x", value, bound, at_least).is_met is met
