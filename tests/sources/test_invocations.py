"""Whole invocations: what HTTP events get in place of errors, and what passes untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambda_once import record
from lambda_once.errors import IdempotencyKeyMissingError
from lambda_once.telemetry.log import Log
from lambda_once.telemetry.reporter import Reporter
from tests.sources import events
from tests.sources.events import SHAPES, request
from tests.support.bench import Bench, Step, store_error

OK = {"statusCode": 201, "body": "made"}
BODY_KEY = {"IDEMPOTENCY_KEY": "parse_json(body).orderId"}


class Handler:
    """Counts its runs; returns, or raises, what it is given."""

    def __init__(self, response: Any = OK) -> None:
        self.events: list[Any] = []
        self._response = response

    def __call__(self, event: Any) -> Any:
        self.events.append(event)
        if isinstance(self._response, BaseException):
            raise self._response
        return self._response

    @property
    def runs(self) -> int:
        return len(self.events)


def with_body(shape: str, body: Any, method: str = "POST", **headers: str) -> Any:
    return {**request(shape, method, **headers), "body": json.dumps(body)}


def caller(arn: str) -> Any:
    event = request("apigateway-v1", idempotency_key="order-7")
    event["requestContext"]["identity"]["userArn"] = arn
    return event


# ---- passing through


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("method", "headers", "variables"),
    [
        ("GET", {}, {}),
        ("POST", {}, {}),
        ("GET", {"idempotency_key": "k"}, {}),
        ("GET", {"idempotency_key": '"broken'}, BODY_KEY),
    ],
)
def test_a_plain_request_is_handled_as_if_we_were_not_there(
    shape: str, method: str, headers: Any, variables: Any
) -> None:
    bench, handler, event = Bench(variables), Handler(), request(shape, method, **headers)
    for _ in range(2):
        assert bench.invoke(event, handler) is OK
    assert handler.runs == 2
    assert handler.events[0] is event
    assert bench.store.calls == []
    assert bench.outcomes == []


def test_what_a_plain_request_raises_is_raised_untouched() -> None:
    fault = ValueError("theirs")
    with pytest.raises(ValueError, match="theirs") as caught:
        Bench().invoke(request("alb"), Handler(fault))
    assert caught.value is fault


# ---- the client's key


@pytest.mark.parametrize("shape", SHAPES)
def test_a_request_sent_again_gets_the_first_answer(shape: str) -> None:
    bench, handler = Bench(), Handler()
    first = bench.invoke(request(shape, idempotency_key="k"), handler)
    assert bench.invoke(request(shape, Idempotency_Key='"k"'), handler) == first == OK
    assert handler.runs == 1
    bench.invoke(request(shape, idempotency_key="l"), handler)
    assert handler.runs == 2


def test_one_caller_never_gets_the_answer_to_another() -> None:
    bench = Bench()
    for name in ("jane", "john"):
        answer = {**OK, "body": f"the order of {name}"}
        assert bench.invoke(caller(f"arn:aws:iam::1:user/{name}"), Handler(answer)) == answer
    again = Handler("never run")
    for name in ("jane", "john"):
        replayed = bench.invoke(caller(f"arn:aws:iam::1:user/{name}"), again)
        assert replayed["body"] == f"the order of {name}"
    assert again.runs == 0


def test_a_caller_without_credentials_never_gets_the_answer_to_one_with_them() -> None:
    bench = Bench()
    bench.invoke(caller("arn:aws:iam::1:user/jane"), Handler())
    stranger = Handler({**OK, "body": "a stranger's"})
    assert bench.invoke(request("apigateway-v1", idempotency_key="order-7"), stranger) != OK
    assert stranger.runs == 1


# ---- problems


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("key", ["", '"', "x" * 256, "ü"])
def test_a_malformed_key_is_a_400(shape: str, key: str) -> None:
    bench, handler = Bench(), Handler()
    answer = bench.invoke(request(shape, idempotency_key=key), handler)
    assert answer["statusCode"] == 400
    assert handler.runs == 0
    assert bench.kinds() == [record.KEY_MISSING]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_key_in_progress_is_a_409(shape: str) -> None:
    bench, event = Bench(), request(shape, idempotency_key="k")
    bench.engine.open(event, bench.context())
    answer = bench.invoke(event, Handler())
    assert answer["statusCode"] == 409
    assert json.loads(answer["body"])["title"] == "Conflict"
    headers = answer.get("headers") or {n: v[0] for n, v in answer["multiValueHeaders"].items()}
    assert headers["retry-after"] == "4"  # 3 s of the other invocation, and the margin
    assert bench.kinds() == [record.BLOCKED]


def test_another_payload_under_the_same_key_is_a_422() -> None:
    bench = Bench({"IDEMPOTENCY_PAYLOAD": "body"})
    bench.invoke(with_body("apigateway-v2", 1, idempotency_key="k"), Handler())
    answer = bench.invoke(with_body("apigateway-v2", 2, idempotency_key="k"), Handler())
    assert answer["statusCode"] == 422
    assert bench.kinds() == [record.EXECUTED, record.MISMATCHED]


def test_a_store_that_cannot_be_asked_is_a_503() -> None:
    bench, handler = Bench(), Handler()
    bench.store.plan("claim", Step(applied=False, error=store_error()))
    answer = bench.invoke(request("function-url", idempotency_key="k"), handler)
    assert answer["statusCode"] == 503
    assert handler.runs == 0
    assert bench.kinds() == [record.STORE_FAILED]


def test_a_request_without_the_key_that_an_expression_wants_is_a_400() -> None:
    bench, handler = Bench(BODY_KEY), Handler()
    for body in ({}, {"orderId": None}, {"orderId": ""}):
        answer = bench.invoke(with_body("apigateway-v2", body), handler)
        assert answer["statusCode"] == 400
        assert "orderId" not in answer["body"]
    assert handler.runs == 0
    assert set(bench.kinds()) == {record.KEY_MISSING}


def test_an_event_without_the_key_that_an_expression_wants_is_an_error() -> None:
    with pytest.raises(IdempotencyKeyMissingError, match="no JSON"):
        Bench(BODY_KEY).invoke({"body": "text"}, Handler())


def test_it_runs_unprotected_where_that_is_configured() -> None:
    bench, handler = Bench({**BODY_KEY, "IDEMPOTENCY_MISSING_KEY": "run"}), Handler()
    assert bench.invoke(with_body("alb", {}), handler) is OK
    assert bench.kinds() == [record.UNPROTECTED]
    assert bench.store.calls == []


# ---- failures


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 503])
def test_a_failure_is_passed_on_and_not_kept(status: int) -> None:
    bench, event = Bench(), request("apigateway-v1", idempotency_key="k")
    failure = {"statusCode": status, "body": "later"}
    assert bench.invoke(event, Handler(failure)) is failure
    assert bench.kinds() == [record.RELEASED]
    assert bench.invoke(event, Handler()) == OK


@pytest.mark.parametrize("status", [200, 302, 400, 404, 409, 422])
def test_any_other_status_is_kept(status: int) -> None:
    bench, event = Bench(), request("apigateway-v1", idempotency_key="k")
    answer = {"statusCode": status, "body": ""}
    bench.invoke(event, Handler(answer))
    assert bench.invoke(event, Handler()) == answer


def test_a_status_means_nothing_outside_http() -> None:
    bench = Bench()
    bench.invoke({"orderId": 7}, Handler({"statusCode": 500}))
    assert bench.kinds() == [record.EXECUTED]


@pytest.mark.parametrize("event", [{"orderId": 7}, request("alb", idempotency_key="k")])
def test_a_configured_rule_decides_alone(event: Any) -> None:
    bench = Bench({"IDEMPOTENCY_RELEASE": "again"})
    bench.invoke(event, Handler({"statusCode": 200, "again": True}))
    assert bench.kinds() == [record.RELEASED]
    bench.invoke(event, Handler({"statusCode": 500, "again": False}))
    assert bench.kinds() == [record.RELEASED, record.EXECUTED]


def test_a_response_that_the_rule_cannot_judge_is_kept_and_told_of() -> None:
    bench, event = Bench({"IDEMPOTENCY_RELEASE": "abs(code) > `1`"}), {"orderId": 7}
    bench.invoke(event, Handler({"code": "marker"}))
    (outcome,) = bench.outcomes
    assert outcome.kind == record.UNJUDGED
    assert "abs(code)" in outcome.detail
    assert "marker" not in outcome.detail
    assert bench.invoke(event, Handler()) == {"code": "marker"}


# ---- replays


def test_only_replays_are_marked() -> None:
    bench = Bench({"IDEMPOTENCY_REPLAY_HEADER": "Idempotency-Replayed"})
    event = request("apigateway-v2", idempotency_key="k")
    assert bench.invoke(event, Handler()) is OK
    assert bench.invoke(event, Handler()) == {**OK, "headers": {"Idempotency-Replayed": "true"}}
    direct = {"orderId": 7}
    bench.invoke(direct, Handler())
    assert bench.invoke(direct, Handler()) == OK


def test_a_replay_of_what_was_not_stored_is_a_204() -> None:
    bench = Bench({"IDEMPOTENCY_RESULT": "omit"})
    event = request("apigateway-v1", idempotency_key="k")
    assert bench.invoke(event, Handler()) is OK
    assert bench.invoke(event, Handler())["statusCode"] == 204


# ---- nothing leaks

MARKER = "m4rk3r"


def marked_events() -> list[Any]:
    token = f"Bearer {MARKER}"
    unknown = request("function-url", idempotency_key=MARKER, authorization=token)
    return [
        with_body("apigateway-v2", {"orderId": MARKER}, idempotency_key=MARKER),
        with_body("apigateway-v2", MARKER, idempotency_key=f'"{MARKER}'),
        unknown,
        events.sqs(MARKER),
        {"orderId": MARKER, "body": MARKER, "amount": MARKER},
    ]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"IDEMPOTENCY_KEY": "orderId", "IDEMPOTENCY_PAYLOAD": "abs(amount)"},
        {"IDEMPOTENCY_KEY": "parse_json(body).x"},
        {"IDEMPOTENCY_KEY": "abs(body)"},
        {"IDEMPOTENCY_KEY": "gunzip(body)"},
        {"IDEMPOTENCY_RELEASE": "abs(result)"},
    ],
)
@pytest.mark.parametrize("number", range(len(marked_events())))
def test_no_payload_key_or_result_is_in_errors_logs_answers_or_ids(
    variables: dict[str, str], number: int
) -> None:
    event, bench = marked_events()[number], Bench(variables)
    said: list[str] = []
    handlers = (
        Handler(OSError(MARKER)),
        Handler({"statusCode": 200, "result": MARKER}),
        Handler({"statusCode": 200, "result": MARKER}),
    )
    for handler in handlers:
        try:
            answer = bench.invoke(event, handler)
        except OSError:
            answer = None  # theirs
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is looked through
            answer = repr(fault)
        if not handler.runs and bench.kinds()[-1] != record.REPLAYED:
            said.append(json.dumps(answer))
    reporter = Reporter(bench.services.config, {}, Log({}, said.append))
    for outcome in bench.outcomes:
        reporter(outcome)
    ids = "".join(bench.store.memory.records)
    assert said
    assert MARKER not in "".join(said) + ids
