"""Recognising events, and taking batches apart. Identities: tests/sources."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lambda_once.events.base import BatchSource, Direct, counts_as_failure
from lambda_once.events.expressions import compile_expression
from lambda_once.events.pipes import Pipes
from lambda_once.events.queues import RabbitMQ
from lambda_once.events.registry import all_sources, recognise
from tests.sources import events

ODD_EVENTS: list[Any] = [
    None, True, 0, 1.5, "", "text", b"", b"raw", [], {}, [None], [[]], ["text"], [{}],
    {"Records": None}, {"Records": []}, {"Records": "text"}, {"Records": [None]},
    {"Records": {"0": {}}}, {"Records": [[]]}, {"Records": [{"eventSource": {}}]},
    {"Records": [{"eventSource": ["aws:sqs"]}]},
    {"requestContext": None}, {"requestContext": "elb"}, {"requestContext": {"http": None}},
    {"requestContext": {"elb": "text"}}, {"requestContext": {"domainName": 1}},
    {"requestContext": ["serviceArn"]}, {"httpMethod": "POST"},
    {"records": {}}, {"records": {"a": []}}, {"records": {"a": None}}, {"records": [1]},
    {"eventSource": "aws:kafka", "records": {"a": "text"}}, {"eventSource": "aws:kafka"},
    {"eventSource": {}, "records": {}}, {"messages": [{}]}, {"tasks": [{}]},
    {"awslogs": None}, {"awslogs": {"data": None}}, {"info": {}}, {"info": None, "arguments": 1},
    {"detail-type": "t", "source": "s"}, {"source": "aws.s3", "detail": None},
    {"type": "TOKEN"}, {"header": {"namespace": 1}}, {"session": None}, {"directive": []},
    {"CodePipeline.job": None}, {"SecretId": "s"}, {"StackId": "s"},
]  # fmt: skip


def batch(event: Any) -> BatchSource:
    source = recognise(event)
    assert isinstance(source, BatchSource)
    return source


# ---- recognising


@pytest.mark.parametrize("event", ODD_EVENTS, ids=repr)
def test_an_event_of_no_known_shape_is_a_direct_invocation(event: Any) -> None:
    source = recognise(event)
    assert isinstance(source, Direct)
    assert source.identity(event) == (event or (event if event in (0, True) else None))


@pytest.mark.parametrize(
    "event",
    [
        {"Records": [{"eventSource": "aws:sqs"}]},
        {"Records": [{"eventSource": "aws:s3", "s3": None}]},
        {"Records": [{"eventSource": "aws:kinesis"}, None]},
        {"Records": [{"EventSource": "aws:sns", "Sns": []}]},
        {"Records": [{"eventSource": "aws:ses", "ses": 1}]},
        {"eventSource": "aws:kafka", "records": {"a-0": [None]}},
        {"eventSource": "aws:rmq", "rmqMessagesByQueue": {"q": [{"basicProperties": None}]}},
        {"eventSource": "aws:mq", "messages": [{"messageID": "1"}]},
        {"detail-type": "t", "id": "1"},
        [{"eventSource": "aws:sqs"}],
    ],
    ids=repr,
)
def test_an_event_without_its_id_has_no_identity(event: Any) -> None:
    source = recognise(event)
    assert not isinstance(source, Direct)
    assert source.identity(event) is None
    assert source.missing


def test_the_names_of_sources_that_match_different_events_differ() -> None:
    names = [source.name for source in all_sources()]
    # S3 has two ways, and one meaning.
    assert sorted(names).count("s3") == 2
    assert len(set(names)) == len(names) - 1


@pytest.mark.parametrize("source", all_sources(), ids=lambda source: source.name)
def test_every_source_has_what_the_documentation_says_of_it(source: Any) -> None:
    assert source.title
    assert source.retention_s >= 3_600
    assert source.identity_text or not source.guarded({}, False)


DAY_S = 86_400


@pytest.mark.parametrize(
    ("event", "retention_s"),
    [
        (events.sqs("a"), 15 * DAY_S),
        (events.sample("sns/notification"), 24 * DAY_S),
        (events.sample("cloudwatch/scheduled-event"), 31 * 3_600),
        (events.s3_by_eventbridge(), 31 * 3_600),
        (events.sample("s3/put"), 7 * 3_600),
        (events.sample("kinesis/get-records"), 7 * DAY_S),
        (events.sample("dynamodb/update"), 25 * 3_600),
        (events.kafka(), 8 * DAY_S),
        (events.activemq(), 7 * DAY_S),
        (events.rabbitmq(), 7 * DAY_S),
        (events.sample("ses/email-receiving"), 7 * 3_600),
        (events.request("apigateway-v2"), DAY_S),
        (events.pipe("sqs"), 15 * DAY_S),
        ({"orderId": 7}, 3_600),
    ],
)
def test_a_record_is_kept_as_long_as_the_source_may_deliver_again(
    event: Any, retention_s: int
) -> None:
    assert recognise(event).retention_s == retention_s


# ---- not guarded


@pytest.mark.parametrize(
    "event",
    [events.durable(), events.tumbling_window(), events.sample("cloudfront/ab-test")],
)
def test_some_events_are_never_guarded(event: Any) -> None:
    assert not recognise(event).guarded(event, False)
    assert not recognise(event).guarded(event, True)


@pytest.mark.parametrize(
    "event",
    [
        events.user_pool_trigger(),
        events.sample("cognito/sync-trigger"),
        events.sample("kinesis/kinesis-firehose"),
        events.sample("lex/book-car"),
        events.sample("apigateway/authorizer"),
        events.websocket(),
        events.sample("appsync/resolver"),
        [events.sample("appsync/resolver")],
        events.request("apigateway-v1"),
        events.request("alb", "DELETE"),
    ],
)
def test_some_events_are_guarded_only_with_an_expression(event: Any) -> None:
    assert not recognise(event).guarded(event, False)
    assert recognise(event).guarded(event, True)


@pytest.mark.parametrize("shape", events.SHAPES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "get"])
def test_safe_methods_are_never_guarded(shape: str, method: str) -> None:
    event = events.request(shape, method, idempotency_key="k")
    assert not recognise(event).guarded(event, False)
    assert not recognise(event).guarded(event, True)


@pytest.mark.parametrize("shape", events.SHAPES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_methods_are_guarded_where_the_client_sends_a_key(shape: str, method: str) -> None:
    event = events.request(shape, method, Idempotency_Key="k")
    assert recognise(event).guarded(event, False)


# ---- batches

BATCHES = [
    events.sqs("a", "b", "c"),
    events.sample("dynamodb/update"),
    events.kafka(*(events.kafka_record(p, o) for p, o in [(0, 1), (1, 1), (0, 2), (2, 9)])),
    {**events.activemq(), "messages": [events.activemq_message() for _ in range(3)]},
    {
        **events.rabbitmq(),
        "rmqMessagesByQueue": {"a": [events.rabbitmq_message()], "b": [events.rabbitmq_message()]},
    },
    events.sqs("a", "b", "c")["Records"],
    [events.sample("appsync/resolver") for _ in range(3)],
]


@pytest.mark.parametrize("event", BATCHES)
def test_a_subset_has_the_shape_of_the_event_and_shares_its_records(event: Any) -> None:
    source, before = batch(event), copy.deepcopy(event)
    records = source.records(event)
    for kept in ([], [0], [len(records) - 1], [0, len(records) - 1], list(range(len(records)))):
        subset = source.subset(event, kept)
        if kept:
            assert recognise(subset) is source
        found = source.records(subset)
        assert len(found) == len(kept)
        assert all(one is records[at] for one, at in zip(found, kept, strict=True))
        if isinstance(event, dict):
            assert subset.keys() == event.keys()
    assert source.subset(event, range(len(records))) == event
    assert event == before


def test_partitions_of_which_nothing_is_left_are_dropped() -> None:
    event = events.kafka(*(events.kafka_record(p, o) for p, o in [(0, 1), (1, 1), (0, 2)]))
    # The order is partition by partition: 0-1, 0-2, 1-1.
    subset = batch(event).subset(event, [1])
    assert subset["records"] == {"orders-0": [events.kafka_record(0, 2)]}
    assert subset["eventSourceArn"] == event["eventSourceArn"]


@pytest.mark.parametrize(
    ("event", "identifier"),
    [
        (events.sqs("a"), "message-0"),
        (
            events.sample("kinesis/get-records"),
            "49545115243490985018280067714973144582180062593244200961",
        ),
        (events.sample("dynamodb/update"), "4421584500000000017450439091"),
        (events.kafka(), {"partition": "orders-0", "offset": 15}),
        (events.pipe("sqs"), "message-0"),
        (
            events.pipe("kinesis"),
            "shardId-000000000000:49545115243490985018280067714973144582180062593244200961",
        ),
        (events.pipe("dynamodb"), "c4ca4238a0b923820dcc509a6f75849b"),
    ],
)
def test_failures_are_reported_by_the_identifier_of_the_source(
    event: Any, identifier: object
) -> None:
    source = batch(event)
    assert source.reports_failures
    assert source.identifier(source.records(event)[0]) == identifier


@pytest.mark.parametrize(
    "event",
    [
        events.sample("sns/notification"),
        events.sample("s3/put"),
        events.activemq(),
        events.rabbitmq(),
        events.pipe("kafka"),
        [events.sample("appsync/resolver")],
    ],
)
def test_other_sources_understand_no_reported_failures(event: Any) -> None:
    assert not batch(event).reports_failures


def test_the_answer_of_a_list_is_a_list() -> None:
    assert batch([events.sample("appsync/resolver")]).answers == "list"
    assert batch(events.pipe("sqs")).answers == "list"
    assert batch(events.sqs("a")).answers == "failures"
    assert batch(events.sample("s3/put")).answers is None


def test_only_fifo_queues_have_groups() -> None:
    for queue, group in (("orders.fifo", "g"), ("orders", None)):
        event = events.sqs("a", queue=queue)
        record = event["Records"][0]
        record["attributes"]["MessageGroupId"] = "g"
        assert batch(event).group(record) == group
        assert batch([record]).group(record) == group
    assert not batch(events.sqs("a")).ordered


def test_streams_and_partitions_are_ordered() -> None:
    kafka = batch(events.kafka())
    assert kafka.ordered
    assert kafka.group(events.kafka_record(3, 1)) == "orders-3"
    for event in (events.sample("kinesis/get-records"), events.sample("dynamodb/update")):
        assert batch(event).ordered
        assert batch(event).group(batch(event).records(event)[0]) is None
    assert all(batch(events.pipe(kind)).ordered for kind in ("kinesis", "dynamodb", "kafka"))


def test_a_whole_batch_is_the_list_of_its_records() -> None:
    event = events.sqs("a", "b")
    source = batch(event)
    both = [source.record_identity(event, record) for record in event["Records"]]
    assert source.identity(event) == both
    del event["Records"][1]["messageId"]
    assert source.identity(event) is None


def test_records_of_a_batch_have_different_identities() -> None:
    for event in (BATCHES[0], BATCHES[1], BATCHES[2], BATCHES[4], BATCHES[5]):
        source = batch(event)
        identities = [repr(source.record_identity(event, each)) for each in source.records(event)]
        assert len(set(identities)) == len(identities)


def test_a_rabbitmq_message_without_an_id_of_its_producer_has_no_identity() -> None:
    event = events.rabbitmq()
    (message,) = batch(event).records(event)
    message["basicProperties"]["messageId"] = None
    assert batch(event).record_identity(event, message) is None
    assert recognise(event).missing == RabbitMQ.missing == "its producer set no messageId"
    assert any(isinstance(s, Pipes) and s.missing == RabbitMQ.missing for s in all_sources())


def test_an_s3_record_without_a_sequencer_is_told_by_its_time() -> None:
    event = events.sample("s3/put")
    (record,) = event["Records"]
    del record["s3"]["object"]["sequencer"]
    later = copy.deepcopy(event)
    later["Records"][0]["eventTime"] = "2026-01-01T00:00:00.000Z"
    assert recognise(event).identity(event) not in (None, recognise(later).identity(later))


# ---- failures


def test_a_response_is_no_failure_unless_the_source_says_so() -> None:
    for response in ({"statusCode": 500}, {"results": [{"resultCode": "TemporaryFailure"}]}, None):
        assert not counts_as_failure(recognise({"a": 1}), response, None)


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ({"results": [{"resultCode": "TemporaryFailure"}]}, True),
        ({"results": [{"resultCode": "PermanentFailure"}]}, False),
        ({"results": [{"resultCode": "Succeeded"}]}, False),
        ({"results": None}, False),
        (None, False),
    ],
)
def test_a_task_of_s3_batch_that_failed_for_now_is_not_kept(response: Any, failed: bool) -> None:
    source = recognise(events.sample("s3/batch-invocation"))
    assert counts_as_failure(source, response, None) is failed


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ({"status": "retry"}, True),
        ({"status": "done"}, False),
        ({"statusCode": 500}, False),
        (None, False),
    ],
)
@pytest.mark.parametrize("event", [{"a": 1}, events.request("apigateway-v1")])
def test_a_configured_rule_replaces_that_of_the_source(
    event: Any, response: Any, failed: bool
) -> None:
    rule = compile_expression("status == 'retry'")
    assert counts_as_failure(recognise(event), response, rule) is failed


@pytest.mark.parametrize("result", ["status", "`1`", "[`true`]", "'true'"])
def test_only_true_releases(result: str) -> None:
    rule = compile_expression(result)
    assert not counts_as_failure(recognise({}), {"status": "retry"}, rule)
