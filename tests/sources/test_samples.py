"""Every sample event, and our own where there is none: what its key depends on, and nothing else.

For each event the test changes one value after the other. The set of those that make another key
must be exactly the one written here; so a redelivery, in which any other value may differ, has the
same key, and a different event another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.sources import events
from tests.sources.identity import identity_of, places_in_key, with_all_else_changed


class Expected(NamedTuple):
    """The source's name; the places in the key: a set, EVERYTHING, or NOT_GUARDED."""

    source: str
    places: set[str] | str


EVERYTHING = "everything"
NOT_GUARDED = "not guarded"


def in_record(*names: str, records: int = 1) -> set[str]:
    return {f"Records.{number}.{name}" for number in range(records) for name in names}


ALEXA = Expected("alexa", {"session.application.applicationId", "request.requestId"})
SMART_HOME = Expected("alexa", {"header.namespace", "header.messageId"})
EDGE = Expected("lambda-edge", NOT_GUARDED)
FIREHOSE = Expected("firehose", NOT_GUARDED)
CONVERSATION = Expected("conversation", NOT_GUARDED)
CONFIG = Expected("config", {"configRuleArn", "invokingEvent"})
DIRECT = Expected("event", EVERYTHING)
S3 = Expected(
    "s3",
    in_record("eventSource", "eventName", "s3.bucket.name", "s3.object.key", "s3.object.sequencer"),
)

SAMPLES = {
    "alexa-skills-kit/end-session": ALEXA,
    "alexa-skills-kit/intent-answer": ALEXA,
    "alexa-skills-kit/intent-getnewfact": ALEXA,
    "alexa-skills-kit/intent-mycoloris": ALEXA,
    "alexa-skills-kit/intent-recipe": ALEXA,
    "alexa-skills-kit/start-session": ALEXA,
    "alexa-smart-home/smart-home-control-turn-off-request": SMART_HOME,
    "alexa-smart-home/smart-home-control-turn-on-request": SMART_HOME,
    "alexa-smart-home/smart-home-discovery-request": SMART_HOME,
    # HTTP without a key; with one, see OWN.
    "alb/request": Expected("alb", NOT_GUARDED),
    "apigateway/aws-proxy": Expected("apigateway-v1", NOT_GUARDED),
    "apigateway/http-api-proxy": Expected("apigateway-v2", NOT_GUARDED),
    "apigateway/authorizer": Expected("authorizer", NOT_GUARDED),
    "apigateway/request-authorizer": Expected("authorizer", NOT_GUARDED),
    "appsync/resolver": Expected("appsync", NOT_GUARDED),
    "batch/get-job": DIRECT,
    "batch/submit-job": DIRECT,
    "cloudformation/create-request": Expected(
        "cloudformation", {"StackId", "LogicalResourceId", "RequestId"}
    ),
    "cloudfront/ab-test": EDGE,
    "cloudfront/access-request-in-response": EDGE,
    "cloudfront/http-redirect": EDGE,
    "cloudfront/modify-querystring": EDGE,
    "cloudfront/modify-response-header": EDGE,
    "cloudfront/multiple-remote-calls-aggregate-response": EDGE,
    "cloudfront/normalize-querystring-to-improve-cache-hit": EDGE,
    "cloudfront/redirect-on-viewer-country": EDGE,
    "cloudfront/redirect-unauthenticated-users": EDGE,
    "cloudfront/response-generation": EDGE,
    "cloudfront/serve-object-on-viewer-device": EDGE,
    "cloudfront/simple-remote-call": EDGE,
    # A letter more at the end of the packed data changes nothing in it: see the test below.
    "cloudwatch/logs": Expected("logs", set()),
    "cloudwatch/scheduled-event": Expected("eventbridge", {"account", "source", "id"}),
    "codecommit/repository": Expected(
        "codecommit",
        in_record(
            "eventSource", "eventSourceARN", "eventId", "eventPartNumber", "eventTriggerName"
        ),
    ),
    "codepipeline/job": Expected(
        "codepipeline", {"CodePipeline.job.id", "CodePipeline.job.accountId"}
    ),
    "cognito/sync-trigger": Expected("cognito", NOT_GUARDED),
    "config/item-change-notification": CONFIG,
    "config/oversized-item-change-notification": CONFIG,
    "config/periodic-rule": CONFIG,
    "connect/contact-flow-event": CONVERSATION,
    # The source is told by the first record alone.
    "dynamodb/update": Expected(
        "dynamodb",
        {"Records.0.eventSource"} | in_record("eventID", "eventSourceARN", records=3),
    ),
    "kinesis/get-records": Expected(
        "kinesis", in_record("eventSource", "eventSourceARN", "eventID")
    ),
    "kinesis/analytics": FIREHOSE,
    "kinesis/analytics-compressed": FIREHOSE,
    "kinesis/analytics-dynamodb": FIREHOSE,
    "kinesis/analytics-kpl": FIREHOSE,
    "kinesis/apachelog": FIREHOSE,
    "kinesis/cloudwatch-logs-processor": FIREHOSE,
    "kinesis/kinesis-firehose": FIREHOSE,
    "kinesis/streams-as-source": FIREHOSE,
    "kinesis/syslog": FIREHOSE,
    "lex/book-car": CONVERSATION,
    "lex/book-hotel": CONVERSATION,
    "lex/make-appointment": CONVERSATION,
    "lex/order-flowers": CONVERSATION,
    "lex-v2/banking-bot": CONVERSATION,
    "lex-v2/book-car": CONVERSATION,
    "lex-v2/book-hotel": CONVERSATION,
    "rekognition/s3-request": S3,
    "s3/put": S3,
    "s3/delete": S3,
    "s3/batch-invocation": Expected("s3-batch", {"job.id", "tasks.0.taskId"}),
    "sagemaker/ground-truth-pre-human": DIRECT,
    "sagemaker/ground-truth-annotation-consolidation": DIRECT,
    "ses/email-receiving": Expected(
        "ses", in_record("eventSource", "ses.mail.messageId", "ses.receipt.recipients.0")
    ),
    "sns/notification": Expected("sns", in_record("EventSource", "Sns.TopicArn", "Sns.MessageId")),
    "sqs/receive-message": Expected("sqs", in_record("eventSource", "eventSourceARN", "messageId")),
    "stepfunctions/error": DIRECT,
    "workmail/email": Expected(
        "workmail",
        {
            "messageId",
            "flowDirection",
            "envelope.recipients.0.address",
            "envelope.recipients.1.address",
        },
    ),
}

API = {"requestContext.apiId", "requestContext.stage"}
V2 = {
    *API,
    "requestContext.domainName",
    "requestContext.http.method",
    "rawPath",
    "headers.idempotency-key",
}
KAFKA = {f"records.orders-0.0.{name}" for name in ("topic", "partition", "offset", "timestamp")}
IN_BODY = in_record("eventSource", "eventSourceARN", "body")

OWN: dict[str, tuple[Any, Expected]] = {
    "API Gateway v1": (
        events.request("apigateway-v1", idempotency_key="k"),
        Expected(
            "apigateway-v1",
            {
                *API,
                "httpMethod",
                "path",
                "multiValueHeaders.idempotency-key.0",
                "requestContext.identity.cognitoIdentityId",
                "requestContext.identity.userArn",
                "requestContext.identity.user",
            },
        ),
    ),
    "API Gateway v2": (
        events.request("apigateway-v2", idempotency_key="k"),
        Expected("apigateway-v2", V2),
    ),
    "Function URL": (
        events.request("function-url", idempotency_key="k"),
        Expected("function-url", V2),
    ),
    "ALB": (
        events.request("alb", idempotency_key="k"),
        Expected(
            "alb",
            {
                "requestContext.elb.targetGroupArn",
                "httpMethod",
                "path",
                "headers.host",
                "headers.idempotency-key",
            },
        ),
    ),
    "ALB with lists of header values": (
        events.request("alb-lists", idempotency_key="k"),
        Expected(
            "alb",
            {
                "requestContext.elb.targetGroupArn",
                "httpMethod",
                "path",
                "multiValueHeaders.host.0",
                "multiValueHeaders.idempotency-key.0",
            },
        ),
    ),
    # A letter more at the end of the path is one more of the query, which is not in the key.
    "VPC Lattice 2.0": (
        events.request("lattice-v2", idempotency_key="k"),
        Expected(
            "lattice-v2",
            {
                "requestContext.serviceArn",
                "requestContext.targetGroupArn",
                "method",
                "headers.host.0",
                "headers.idempotency-key.0",
            },
        ),
    ),
    "VPC Lattice 1.0": (
        events.request("lattice-v1", idempotency_key="k"),
        Expected("lattice-v1", {"method", "headers.host", "headers.idempotency-key"}),
    ),
    "SNS behind SQS": (events.sqs(events.sns_envelope()), Expected("sqs", IN_BODY)),
    "S3 behind SQS": (events.sqs(events.sample("s3/put")), Expected("sqs", IN_BODY)),
    "S3 through EventBridge": (
        events.s3_by_eventbridge(),
        Expected(
            "s3",
            {
                "source",
                "detail-type",
                "detail.bucket.name",
                "detail.object.key",
                "detail.object.version-id",
                "detail.object.sequencer",
            },
        ),
    ),
    "EventBridge replay": (
        {**events.sample("cloudwatch/scheduled-event"), "replay-name": "again"},
        Expected("eventbridge", {"account", "source", "id", "replay-name"}),
    ),
    "Kafka": (events.kafka(), Expected("kafka", {"eventSource", "eventSourceArn", *KAFKA})),
    "self-managed Kafka": (
        events.kafka_self_managed(),
        Expected("kafka", {"eventSource", "bootstrapServers", *KAFKA}),
    ),
    "ActiveMQ": (
        events.activemq(),
        Expected(
            "activemq",
            {
                "eventSource",
                "eventSourceArn",
                "messages.0.messageID",
                "messages.0.destination.physicalName",
            },
        ),
    ),
    "RabbitMQ": (
        events.rabbitmq(),
        Expected(
            "rabbitmq",
            {
                "eventSource",
                "eventSourceArn",
                "rmqMessagesByQueue.orders::/.0.basicProperties.messageId",
            },
        ),
    ),
    "Pipes of SQS": (
        events.pipe("sqs"),
        Expected("pipes-sqs", {"0.eventSource", "0.eventSourceARN", "0.messageId"}),
    ),
    "Pipes of Kinesis": (
        events.pipe("kinesis"),
        Expected("pipes-kinesis", {"0.eventSource", "0.eventSourceARN", "0.eventID"}),
    ),
    "Pipes of DynamoDB": (
        events.pipe("dynamodb"),
        Expected("pipes-dynamodb", {"0.eventSource", "0.eventSourceARN", "0.eventID"}),
    ),
    "Pipes of Kafka": (
        events.pipe("kafka"),
        Expected(
            "pipes-kafka",
            {
                "0.eventSource",
                "0.eventSourceArn",
                "0.topic",
                "0.partition",
                "0.offset",
                "0.timestamp",
            },
        ),
    ),
    "Pipes of ActiveMQ": (
        events.pipe("activemq"),
        Expected(
            "pipes-activemq",
            {
                "0.eventSource",
                "0.eventSourceArn",
                "0.messageID",
                "0.destination.physicalName",
            },
        ),
    ),
    "Pipes of RabbitMQ": (
        events.pipe("rabbitmq"),
        Expected(
            "pipes-rabbitmq",
            {
                "0.eventSource",
                "0.eventSourceArn",
                "0.eventSourceKey",
                "0.basicProperties.messageId",
            },
        ),
    ),
    "Secrets Manager rotation": (
        events.rotation(),
        Expected("secretsmanager", {"SecretId", "ClientRequestToken", "Step"}),
    ),
    "smart home, payload version 3": (
        events.smart_home(),
        Expected("alexa", {"directive.header.namespace", "directive.header.messageId"}),
    ),
    "direct invocation": ({"orderId": 7, "lines": [{"sku": "a"}]}, DIRECT),
    "Cognito user pool": (events.user_pool_trigger(), Expected("cognito", NOT_GUARDED)),
    "WebSocket": (events.websocket(), Expected("websocket", NOT_GUARDED)),
    "authorizer of an HTTP API": (events.authorizer_v2(), Expected("authorizer", NOT_GUARDED)),
    "durable function": (events.durable(), Expected("durable", NOT_GUARDED)),
    "tumbling window": (events.tumbling_window(), Expected("tumbling-window", NOT_GUARDED)),
    "AppSync batch": (
        [events.sample("appsync/resolver")],
        Expected("appsync-batch", NOT_GUARDED),
    ),
}

CASES = {name: (events.sample(name), expected) for name, expected in SAMPLES.items()} | OWN


def test_every_sample_is_here() -> None:
    assert sorted(SAMPLES) == sorted(events.sample_names())


@pytest.mark.parametrize("name", CASES)
def test_a_key_depends_on_the_identity_and_nothing_else(name: str) -> None:
    event, expected = CASES[name]
    found = identity_of(event)
    assert found.source == expected.source
    if expected.places == NOT_GUARDED:
        assert found.text is None
        return
    everything = {".".join(map(str, path)) for path in events.leaves(event)}
    places = everything if expected.places == EVERYTHING else set(expected.places)
    assert found.text is not None
    assert places_in_key(event) == places
    assert identity_of(with_all_else_changed(event, places)) == found


def test_log_events_are_recognised_however_they_are_packed() -> None:
    batch = events.log_batch()
    original = identity_of(events.log_data(batch))
    assert identity_of(events.log_data(batch, level=1)) == original
    for name in ("owner", "logGroup", "logStream"):
        assert identity_of(events.log_data({**batch, name: "other"})) != original
    other = {**batch, "logEvents": [*batch["logEvents"], {"id": "2"}]}
    assert identity_of(events.log_data(other)) != original


def test_a_log_delivery_that_cannot_be_read_has_no_key() -> None:
    from lambda_once.events.registry import recognise

    for data in ("", "!", "AAAA", events.log_data([])["awslogs"]["data"]):
        event = {"awslogs": {"data": data}}
        assert recognise(event).identity(event) is None


@pytest.mark.parametrize(
    ("envelope", "changes"),
    [
        (events.sns_envelope(), {"Signature", "Timestamp", "UnsubscribeURL"}),
        (events.s3_by_eventbridge(), {"id", "time"}),
        (events.sample("cloudwatch/scheduled-event"), {"time"}),
    ],
)
def test_a_message_sent_again_with_the_same_envelope_is_the_same(
    envelope: Any, changes: set[str]
) -> None:
    first = events.sqs(envelope)
    again = events.sqs({**envelope, **dict.fromkeys(changes, "changed")})
    again["Records"][0]["messageId"] = "after a redrive"
    assert identity_of(again) == identity_of(first)
    elsewhere = events.sqs(envelope, queue="others")
    assert identity_of(elsewhere) != identity_of(first)


@pytest.mark.parametrize(
    "body",
    [
        "plain",
        '{"TopicArn": ',
        '"TopicArn"',
        '{"Type": "Notification", "TopicArn": null}',
        '{"TopicArn": "t", "MessageId": "m"}',
        '{"Records": [{"eventSource": "aws:s3"}]}',
        '{"detail-type": "t"}',
        "[" * 5000 + '"detail-type"',
    ],
)
def test_a_body_that_only_looks_like_an_envelope_does_not_count(body: str) -> None:
    one, other = events.sqs(body), events.sqs(body)
    other["Records"][0]["messageId"] = "another"
    assert identity_of(one) != identity_of(other)


SECRETS = ("token", "authorization", "secret", "credential", "signature", "receipthandle", "pem")


def is_secret(path: events.Path) -> bool:
    # These two are an ARN and the id of a version.
    names = [str(name).lower() for name in path if name not in ("SecretId", "ClientRequestToken")]
    return any(secret in name for name in names for secret in SECRETS)


@pytest.mark.parametrize("name", CASES)
def test_no_token_or_other_secret_is_in_a_key(name: str) -> None:
    event, _ = CASES[name]
    secrets = [path for path in events.leaves(event) if is_secret(path)]
    assert identity_of(events.changed(event, *secrets)) == identity_of(event)
