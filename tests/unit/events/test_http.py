"""The client's key, who calls, which responses are failures, and our own answers."""

from __future__ import annotations

import decimal
import json
from collections import namedtuple
from http import HTTPStatus
from typing import Any

import pytest

from lambda_once.errors import (
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyMissingError,
    IdempotencyPayloadMismatchError,
    IdempotencyStoreError,
)
from lambda_once.events import http, problem
from lambda_once.events.caller import principal
from lambda_once.events.http import Http
from lambda_once.events.registry import recognise
from tests.sources import events
from tests.sources.events import SHAPES, request


def source_of(event: Any) -> Http:
    source = recognise(event)
    assert isinstance(source, Http)
    return source


def shape_of(event: Any) -> problem.Shape:
    return source_of(event)._shape(event)


def with_context(shape: str, **members: Any) -> Any:
    event = request(shape, idempotency_key="k")
    event["requestContext"] |= members
    return event


# ---- the key


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        ('  "abc"\t', "abc"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ("a,b", "a,b"),
        ('"a, b"', "a, b"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("x" * 255, "x" * 255),
        ('"' + r"\"" * 255 + '"', '"' * 255),
    ],
)
def test_a_key_is_quoted_or_bare(shape: str, sent: str, key: str) -> None:
    assert http.key_in_header(request(shape, Idempotency_Key=sent)) == key


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "sent",
    [
        "",
        " ",
        '""',
        '"',
        '"abc',
        '"abc"d',
        '"abc";a=1',
        '"a"b"',
        r'"a\bc"',
        '"a\\',
        "x" * 256,
        '"' + "x" * 256 + '"',
        "ä",
        "a\tb",
        "a\x00b",
        ['"a"', '"b"'],
        ['"a"', '"a"'],
    ],
)
def test_a_malformed_key_is_refused_without_quoting_it(shape: str, sent: Any) -> None:
    event = request(shape, Idempotency_Key=sent)
    assert http.has_key(event)
    with pytest.raises(IdempotencyKeyMissingError) as caught:
        http.key_in_header(event)
    assert "Idempotency-Key header" in caught.value.reason
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize("shape", ["apigateway-v1", "alb-lists", "lattice-v2"])
def test_two_header_lines_are_refused(shape: str) -> None:
    with pytest.raises(IdempotencyKeyMissingError, match="once"):
        http.key_in_header(request(shape, Idempotency_Key=["a", "b"]))


def test_two_spellings_of_the_header_are_two_lines() -> None:
    event = request("alb", **{"Idempotency_Key": "a", "idempotency_key": "b"})
    with pytest.raises(IdempotencyKeyMissingError, match="once"):
        http.key_in_header(event)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_header_is_no_key(shape: str) -> None:
    assert not http.has_key(request(shape))


def test_an_event_with_null_headers_has_none() -> None:
    assert not http.has_key({"headers": None, "multiValueHeaders": None})
    assert not http.has_key({"headers": {"Idempotency-Key": None}})


# ---- who calls

IAM_V1 = {"userArn": "arn:aws:iam::1:user/jane", "caller": "AIDA:x", "accessKey": "AKIA"}
ACCESS_TOKEN = "eyJhbGciOiJIUzI1NiJ9.e30.secret"

CALLERS: dict[str, tuple[Any, Any]] = {
    "v1 IAM": (
        with_context("apigateway-v1", identity=IAM_V1),
        [["iam", "arn:aws:iam::1:user/jane"]],
    ),
    "v1 Cognito identity": (
        with_context("apigateway-v1", identity={**IAM_V1, "cognitoIdentityId": "eu:1"}),
        [["cognito", "eu:1"], ["iam", "arn:aws:iam::1:user/jane"]],
    ),
    "v1 user pool": (
        with_context("apigateway-v1", authorizer={"claims": {"iss": "i", "sub": "s", "exp": "9"}}),
        [["jwt", "i", "s"]],
    ),
    "v1 Lambda authorizer": (
        with_context(
            "apigateway-v1",
            authorizer={"principalId": "user", "userId": "u", "integrationLatency": 8},
        ),
        [["authorizer", {"principalId": "user", "userId": "u", "iss": "-"}]],
    ),
    "v1 API key": (
        with_context("apigateway-v1", identity={"apiKey": "secret", "apiKeyId": "id"}),
        [["api_key", "id"]],
    ),
    "v1 mTLS": (
        with_context(
            "apigateway-v1",
            identity={"clientCert": {"subjectDN": "s", "issuerDN": "i", "serialNumber": "1"}},
        ),
        [["mtls", "i", "s"]],
    ),
    "v2 JWT": (
        with_context(
            "apigateway-v2", authorizer={"jwt": {"claims": {"iss": "i", "sub": "s", "iat": 1}}}
        ),
        [["jwt", "i", "s"]],
    ),
    "v2 machine": (
        with_context(
            "apigateway-v2", authorizer={"jwt": {"claims": {"iss": "i", "client_id": "c"}}}
        ),
        [["jwt", "i", "c"]],
    ),
    "v2 IAM": (
        with_context(
            "apigateway-v2",
            authorizer={"iam": {"userArn": "arn:u", "accessKey": "AKIA", "cognitoIdentity": None}},
        ),
        [["iam", "arn:u"]],
    ),
    "v2 Cognito identity": (
        with_context(
            "apigateway-v2",
            authorizer={"iam": {"userArn": "arn:u", "cognitoIdentity": {"identityId": "eu:1"}}},
        ),
        [["cognito", "eu:1"], ["iam", "arn:u"]],
    ),
    "v2 Lambda authorizer": (
        with_context("apigateway-v2", authorizer={"lambda": {"sub": "s", "token": ACCESS_TOKEN}}),
        [["authorizer", {"sub": "s", "iss": "-"}]],
    ),
    "v2 mTLS": (
        with_context("apigateway-v2", authentication={"clientCert": {"subjectDN": "s"}}),
        [["mtls", "-", "s"]],
    ),
    "function URL IAM": (
        with_context("function-url", authorizer={"iam": {"userArn": "arn:u"}}),
        [["iam", "arn:u"]],
    ),
    "ALB OIDC": (
        request("alb", x_amzn_oidc_identity="s", x_amzn_oidc_data=ACCESS_TOKEN),
        [["oidc", "s"]],
    ),
    "ALB mTLS": (
        request("alb-lists", x_amzn_mtls_clientcert_subject="s", x_amzn_mtls_clientcert_issuer="i"),
        [["mtls", "i", "s"]],
    ),
    "Lattice 2.0": (
        with_context("lattice-v2", identity={"principal": "arn:r", "sessionName": "s"}),
        [["lattice", "arn:r", "s", "-", "-", "-"]],
    ),
    "Lattice 1.0": (
        request(
            "lattice-v1",
            x_amzn_lattice_identity="Principal=arn:r; PrincipalOrgID=; SessionName=s; Type=AWS_IAM",
        ),
        [["lattice", "arn:r", "s", "-", "-", "-"]],
    ),
    "AppSync user pool": (
        {"identity": {"sub": "s", "issuer": "i", "claims": {"exp": 1}}},
        [["jwt", "i", "s"]],
    ),
}


@pytest.mark.parametrize("name", CALLERS)
def test_a_caller_is_known_by_what_the_gateway_found_out(name: str) -> None:
    event, found = CALLERS[name]
    assert principal(event) == found
    assert http.known_principal(event) == found


@pytest.mark.parametrize("name", CALLERS)
def test_no_token_says_who_calls(name: str) -> None:
    event, found = CALLERS[name]
    event = json.loads(json.dumps(event))
    headers = event.setdefault("headers", {}) if "multiValueHeaders" not in event else {}
    headers["authorization"] = headers["x-amzn-oidc-accesstoken"] = ACCESS_TOKEN
    anonymous = name in ("v1 API key", "v1 mTLS", "v2 mTLS")
    assert ACCESS_TOKEN not in json.dumps(principal(event))
    if not anonymous:
        assert principal(event) == found


@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_is_null(shape: str) -> None:
    event = request(shape, idempotency_key="k")
    assert principal(event) is None
    assert http.known_principal(event) is None


@pytest.mark.parametrize(
    "event",
    [
        request("function-url", authorization="Bearer " + ACCESS_TOKEN),
        request("alb", Authorization="Bearer " + ACCESS_TOKEN),
        with_context("apigateway-v2", authorizer={"jwt": {"claims": {"scope": "a"}}}),
        with_context("apigateway-v2", authorizer={"jwt": {"claims": {"sub": "s"}}}),
        with_context("apigateway-v2", authorizer={"lambda": {"tier": "gold"}}),
        with_context("apigateway-v2", authorizer={"lambda": None}),
        with_context("apigateway-v2", authorizer={"iam": {"accessKey": "AKIA"}}),
    ],
)
def test_callers_that_cannot_be_told_apart_share_no_key(event: Any) -> None:
    with pytest.raises(IdempotencyKeyMissingError, match="no authorizer says whose") as caught:
        http.known_principal(event)
    assert ACCESS_TOKEN not in str(caught.value)


@pytest.mark.parametrize("shape", ["apigateway-v1", "apigateway-v2", "function-url"])
def test_headers_that_only_other_gateways_set_are_not_believed(shape: str) -> None:
    event = request(
        shape,
        x_amzn_oidc_identity="s",
        x_amzn_mtls_clientcert_subject="s",
        x_amzn_lattice_identity="Principal=p",
    )
    assert principal(event) is None


def identity(event: Any) -> object:
    return source_of(event).identity(event)


@pytest.mark.parametrize("shape", SHAPES)
def test_methods_paths_and_keys_are_kept_apart(shape: str) -> None:
    base = request(shape, idempotency_key="k")
    elsewhere = json.loads(json.dumps(base))
    for name in ("path", "rawPath", "raw_path"):
        if name in elsewhere:
            elsewhere[name] = "/elsewhere"
    all_four = [
        identity(base),
        identity(elsewhere),
        identity(request(shape, "PUT", idempotency_key="k")),
        identity(request(shape, idempotency_key="l")),
    ]
    assert len({repr(each) for each in all_four}) == 4
    assert identity(request(shape, idempotency_key='"k"')) == identity(base)


@pytest.mark.parametrize(
    ("shape", "one", "other"),
    [
        ("apigateway-v1", {"identity": {"userArn": "a"}}, {"identity": {"userArn": "b"}}),
        ("apigateway-v1", {"apiId": "a"}, {"apiId": "b"}),
        ("apigateway-v2", {"domainName": "a.example.com"}, {"domainName": "b.example.com"}),
        ("alb", {"elb": {"targetGroupArn": "a"}}, {"elb": {"targetGroupArn": "b"}}),
    ],
)
def test_principals_apis_and_domains_are_kept_apart(shape: str, one: Any, other: Any) -> None:
    assert identity(with_context(shape, **one)) != identity(with_context(shape, **other))


def test_the_host_is_one_in_any_case() -> None:
    one, other = request("alb", idempotency_key="k"), request("alb", idempotency_key="k")
    other["headers"]["host"] = one["headers"]["host"].upper()
    assert identity(one) == identity(other)


# ---- failures

Response = namedtuple("Response", ["statusCode", "body"])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("status", "failed"),
    [
        *((status, False) for status in (200, 201, 204, 301, 304, 400, 404, 409, 410, 422)),
        *((status, True) for status in (401, 403, 408, 425, 429, 500, 502, 503, 504, 599)),
        ("201", False),
        ("500", True),
        (200.0, False),
        (decimal.Decimal(429), True),
        (HTTPStatus.NOT_FOUND, False),
        (None, True),
        ("OK", True),
        ({}, True),
        (0, True),
        (1000, True),
        (float("inf"), True),
        (float("nan"), True),
    ],
)
def test_a_response_is_a_failure_by_its_status(shape: str, status: Any, failed: bool) -> None:
    source = source_of(request(shape))
    assert source.is_failure({"statusCode": status, "body": ""}) is failed
    assert source.is_failure(Response(status, "")) is failed


@pytest.mark.parametrize("response", [None, "text", {}, {"order": 7}, [], 7, b"raw"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_response_without_status_is_a_success_only_where_it_is_inferred(
    shape: str, response: Any
) -> None:
    infers = shape in ("apigateway-v2", "function-url")
    assert source_of(request(shape)).is_failure(response) is not infers


# ---- our own answers

FAULTS: dict[int, IdempotencyError] = {
    400: IdempotencyKeyMissingError("the Idempotency-Key header is empty"),
    409: IdempotencyInProgressError("orders#hash", 5_500, 1_000),
    422: IdempotencyPayloadMismatchError("orders#hash"),
    503: IdempotencyStoreError("PutItem", "secret-table", "AccessDenied", "secret-arn"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("status", FAULTS)
def test_a_fault_is_answered_as_a_problem(shape: str, status: int) -> None:
    event = request(shape)
    answer: Any = problem.problem(shape_of(event), FAULTS[status], by_header=True)
    assert answer["statusCode"] == status
    assert answer["isBase64Encoded"] is False
    lists = answer.get("multiValueHeaders")
    headers = {name: value for name, (value,) in lists.items()} if lists else answer["headers"]
    assert ("headers" in answer) is not (shape == "alb-lists")
    assert headers["content-type"] == "application/problem+json"
    assert headers.get("retry-after") == {409: "5", 503: "5"}.get(status)
    body = json.loads(answer["body"])
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert body["type"] == "about:blank"
    assert body["error"] == type(FAULTS[status]).__name__
    assert not source_of(event).is_failure(answer) or status == 503
    for private in ("secret", "orders#"):
        assert private not in answer["body"]


@pytest.mark.parametrize("shape", ["alb", "alb-lists", "lattice-v1", "lattice-v2"])
def test_some_gateways_want_the_reason_too(shape: str) -> None:
    event = request(shape)
    answer: Any = problem.problem(shape_of(event), FAULTS[409], by_header=True)
    assert answer["statusDescription"] == "409 Conflict"


def test_nobody_is_told_to_wait_longer_than_a_gateway_does() -> None:
    event = request("apigateway-v1")
    fault = IdempotencyInProgressError("id", 900_000, 0)
    answer: Any = problem.problem(shape_of(event), fault, by_header=True)
    assert answer["headers"]["retry-after"] == "30"


def test_only_what_is_wrong_with_the_header_is_told_to_the_client() -> None:
    event = request("apigateway-v1")
    fault = IdempotencyKeyMissingError("the expression secret.path gave null")
    answer: Any = problem.problem(shape_of(event), fault, by_header=False)
    assert "secret" not in answer["body"]
    answer = problem.problem(shape_of(event), FAULTS[400], by_header=True)
    assert "header is empty" in json.loads(answer["body"])["detail"]


# ---- the header on replays

HEADER = "Idempotency-Replayed"


def marked(shape: str, response: Any) -> Any:
    event = request(shape)
    return problem.with_header(shape_of(event), response, HEADER)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_replay_gets_the_header_and_nothing_else(shape: str) -> None:
    response = {"statusCode": 201, "body": "b", "cookies": ["a=1"], "x": None}
    answer = marked(shape, response)
    member, value = ("multiValueHeaders", ["true"]) if shape == "alb-lists" else ("headers", "true")
    assert answer.pop(member) == {HEADER: value}
    assert answer == response


def test_other_headers_stay() -> None:
    answer = marked("apigateway-v1", {"statusCode": 200, "headers": {"a": "b"}})
    assert answer == {"statusCode": 200, "headers": {"a": "b", HEADER: "true"}}
    assert marked("alb", {"statusCode": 200, "headers": None})["headers"] == {HEADER: "true"}


@pytest.mark.parametrize("response", [None, "text", [1], {"order": 7}, b"raw"])
def test_a_response_that_is_all_body_stays_as_it_is(response: Any) -> None:
    assert marked("apigateway-v2", response) is response


def test_a_response_whose_headers_are_no_object_stays_as_it_is() -> None:
    response = {"statusCode": 200, "headers": "text"}
    assert marked("apigateway-v2", response) == response


def test_numbers_keep_their_digits() -> None:
    from awslambdaric.lambda_runtime_marshaller import LambdaMarshaller
    from simplejson.raw_json import RawJSON

    answer = marked("apigateway-v2", RawJSON('{"statusCode": 200, "price": 1.10}'))
    text, _ = LambdaMarshaller().marshal_response(answer)
    assert text == '{"statusCode": 200, "price": 1.10, "headers": {"Idempotency-Replayed": "true"}}'


def test_a_result_that_was_not_stored_is_replayed_without_content() -> None:
    for shape in SHAPES:
        event = request(shape)
        answer: Any = problem.no_content(shape_of(event))
        assert (answer["statusCode"], answer["body"]) == (204, "")


def test_the_sample_of_an_http_api_says_nothing_about_its_caller() -> None:
    event = events.sample("apigateway/http-api-proxy")
    assert principal(event) == [["jwt", None, None], ["mtls", "Example issuer", "www.example.com"]]
