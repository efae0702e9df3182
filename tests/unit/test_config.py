"""Environment variables are read completely and loudly."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lambda_once.config import VARIABLES, Config, is_disabled, parse_duration
from lambda_once.errors import IdempotencyConfigError

REQUIRED = {"IDEMPOTENCY_TABLE": "idempotency"}


def read(**variables: str) -> Config:
    """The configuration from the required variables and these; names without their prefix."""
    return Config.from_environ({**REQUIRED, **prefixed(variables)})


def faults(environ: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(IdempotencyConfigError) as refused:
        Config.from_environ(environ)
    return refused.value.faults


def prefixed(variables: dict[str, str]) -> dict[str, str]:
    return {f"IDEMPOTENCY_{name}": value for name, value in variables.items()}


def test_only_the_table_is_required() -> None:
    assert read() == Config(table="idempotency", table_region=None, scope="function")


def test_every_empty_variable_counts_as_not_set() -> None:
    empty = dict.fromkeys(VARIABLES, "")
    assert Config.from_environ({**empty, **REQUIRED}) == read()


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("TABLE", "orders.idem_1-x", "table", "orders.idem_1-x"),
        ("TABLE", " idempotency ", "table", "idempotency"),
        ("RETENTION", "90", "retention_s", 90),
        ("RETENTION", "90s", "retention_s", 90),
        ("RETENTION", "90m", "retention_s", 5_400),
        ("RETENTION", "24h", "retention_s", 86_400),
        ("RETENTION", "15d", "retention_s", 1_296_000),
        ("MISSING_KEY", "fail", "run_without_key", False),
        ("MISSING_KEY", "run", "run_without_key", True),
        ("MISSING_KEY", "RUN", "run_without_key", True),
        ("IN_PROGRESS", "fail", "wait_in_progress", False),
        ("IN_PROGRESS", "wait", "wait_in_progress", True),
        ("STORE_FAILURE", "fail", "run_without_store", False),
        ("STORE_FAILURE", "run", "run_without_store", True),
        ("LEASE", "deadline", "lease_s", 0),
        ("LEASE", "2h", "lease_s", 7_200),
        ("BATCH", "records", "batch", "records"),
        ("BATCH", "each", "batch", "each"),
        ("BATCH", "whole", "batch", "whole"),
        ("PARTIAL_BATCH", "auto", "partial_batch", "auto"),
        ("PARTIAL_BATCH", "report", "partial_batch", "report"),
        ("PARTIAL_BATCH", "raise", "partial_batch", "raise"),
        ("RESULT", "store", "omit_result", False),
        ("RESULT", "omit", "omit_result", True),
        ("SCOPE", "orders:prod", "scope", "orders:prod"),
        ("CACHE", "0", "cache_size", 0),
        ("CACHE", "100000", "cache_size", 100_000),
        ("REPLAY_HEADER", "Idempotency-Replayed", "replay_header", "Idempotency-Replayed"),
        ("METRICS", "Shop/Orders", "metrics_namespace", "Shop/Orders"),
        ("TRACING", "auto", "tracing", "auto"),
        ("TRACING", "on", "tracing", "on"),
        ("TRACING", "off", "tracing", "off"),
    ],
)
def test_an_accepted_value_is_read(name: str, value: str, field: str, expected: Any) -> None:
    assert getattr(read(**{name: value}), field) == expected


@pytest.mark.parametrize(
    ("name", "field"), [("KEY", "key"), ("PAYLOAD", "payload"), ("RELEASE", "release")]
)
def test_an_expression_is_compiled(name: str, field: str) -> None:
    expression = getattr(read(**{name: "order.id"}), field)
    assert expression.text == "order.id"
    assert expression.search({"order": {"id": 7}}) == 7


@pytest.mark.parametrize(
    ("name", "value", "accepts"),
    [
        ("TABLE", "no spaces", "table's name or ARN"),
        ("TABLE", "ab", "table's name or ARN"),
        ("TABLE", "arn:aws:sqs:eu-west-1:123456789012:queue", "table's name or ARN"),
        ("KEY", "order..id", "a JMESPath expression"),
        ("KEY", "order[", "a JMESPath expression"),
        ("PAYLOAD", "a b", "a JMESPath expression"),
        ("RELEASE", "&", "a JMESPath expression"),
        ("RETENTION", "0", "24h"),
        ("RETENTION", "-1", "24h"),
        ("RETENTION", "1.5h", "24h"),
        ("RETENTION", "2w", "24h"),
        ("RETENTION", "4000d", "24h"),
        ("RETENTION", "٣", "24h"),
        ("RETENTION", "deadline", "24h"),
        ("LEASE", "soon", "deadline, or"),
        ("LEASE", "0", "deadline, or"),
        ("MISSING_KEY", "ignore", "fail or run"),
        ("IN_PROGRESS", "run", "fail or wait"),
        ("STORE_FAILURE", "yes", "fail or run"),
        ("BATCH", "record", "records or each or whole"),
        ("PARTIAL_BATCH", "on", "auto or report or raise"),
        ("RESULT", "no", "store or omit"),
        ("SCOPE", "a#b", "not #"),
        ("SCOPE", "x" * 513, "not #"),
        ("CACHE", "-1", "a number from 0"),
        ("CACHE", "100001", "a number from 0"),
        ("CACHE", "many", "a number from 0"),
        ("REPLAY_HEADER", "Not A Header", "a header name"),
        ("REPLAY_HEADER", "X: 1\r\nY", "a header name"),
        ("METRICS", "AWS/Lambda", "a CloudWatch namespace"),
        ("METRICS", "x" * 256, "a CloudWatch namespace"),
        ("TRACING", "true", "auto or on or off"),
        ("DISABLED", "yes", "false or true"),
    ],
)
def test_a_refused_value_is_one_fault_that_says_what_is_accepted(
    name: str, value: str, accepts: str
) -> None:
    (fault,) = faults({**REQUIRED, **prefixed({name: value})})
    assert fault.startswith(f"IDEMPOTENCY_{name}={value!r}: expected ")
    assert accepts in fault


def test_a_table_given_as_an_arn_brings_its_region() -> None:
    arn = "arn:aws:dynamodb:eu-north-1:123456789012:table/idempotency"
    config = read(TABLE=arn)
    assert (config.table, config.table_region) == (arn, "eu-north-1")


def test_the_scope_is_the_functions_name_unless_set() -> None:
    lambda_variables = {**REQUIRED, "AWS_LAMBDA_FUNCTION_NAME": "orders"}
    assert Config.from_environ(lambda_variables).scope == "orders"
    renamed = Config.from_environ({**lambda_variables, "IDEMPOTENCY_SCOPE": "orders-v1"})
    assert renamed.scope == "orders-v1"


def test_all_faults_are_told_at_once_and_in_one_message() -> None:
    environ = prefixed(
        {"KEY": "a[", "RETENTION": "soon", "BATCH": "all", "TRACING": "x", "CASHE": "1"}
    )
    with pytest.raises(IdempotencyConfigError) as refused:
        Config.from_environ(environ)
    named = {fault.split("=")[0].split(" ")[0] for fault in refused.value.faults}
    assert named == {*environ, "IDEMPOTENCY_TABLE"}
    assert str(refused.value).count("\n") == 6
    assert all(fault in str(refused.value) for fault in refused.value.faults)


@pytest.mark.parametrize("name", ["IDEMPOTENCY_TABEL", "IDEMPOTENCY_TABLES", "Idempotency_Table"])
def test_a_misspelt_table_alone_is_told_what_was_meant_and_required(name: str) -> None:
    required, suggestion = sorted(faults({name: "x"}), key=lambda fault: name in fault)
    assert "IDEMPOTENCY_TABLE is required" in required
    assert suggestion == (
        f"{name} is not a variable of lambda-once; did you mean IDEMPOTENCY_TABLE?"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("IDEMPOTENCY_RETENTON", "IDEMPOTENCY_RETENTION"),
        ("IDEMPOTENCE_KEY", "IDEMPOTENCY_KEY"),
        ("IDEMPOTENCY_INPROGRESS", "IDEMPOTENCY_IN_PROGRESS"),
        ("IDEMPOTENCY_DISABLE", "IDEMPOTENCY_DISABLED"),
        ("idempotency_key", "IDEMPOTENCY_KEY"),
    ],
)
def test_a_near_misspelling_is_a_fault(name: str, meant: str) -> None:
    (fault,) = faults({**REQUIRED, name: "x"})
    assert fault == f"{name} is not a variable of lambda-once; did you mean {meant}?"


def test_a_name_far_from_ours_is_only_noted() -> None:
    config = Config.from_environ({**REQUIRED, "IDEMPOTENCY_OWNER_TEAM": "x", "IDEMPOTENT": "y"})
    assert config.ignored == ("IDEMPOTENCY_OWNER_TEAM",)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        read().table = "other"  # type: ignore[misc]  # that is what the test shows


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"IDEMPOTENCY_DISABLED": ""}, False),
        ({"IDEMPOTENCY_DISABLED": "false"}, False),
        ({"IDEMPOTENCY_DISABLED": "true"}, True),
        ({"IDEMPOTENCY_DISABLED": "True"}, True),
        ({"IDEMPOTENCY_DISABLED": "true", "IDEMPOTENCY_KEY": "a["}, True),
    ],
)
def test_the_kill_switch_works_however_wrong_the_rest_is(
    environ: dict[str, str], expected: bool
) -> None:
    assert is_disabled(environ) is expected


@pytest.mark.parametrize("value", ["yes", "1", "off"])
def test_a_kill_switch_in_doubt_is_a_fault(value: str) -> None:
    with pytest.raises(IdempotencyConfigError, match="expected false or true"):
        is_disabled({"IDEMPOTENCY_DISABLED": value})


@pytest.mark.parametrize("text", ["", " ", "h", "1 2", "1hh", "+1", "1e3", "٣h"])
def test_a_duration_is_whole_and_plain(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        parse_duration(text)
