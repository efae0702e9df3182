"""Events to recognise: the samples that AWS ships with its command line tool, and our own.

The samples are templates with places to fill, {{{name}}}; `event-mapping.json` has the values.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tests.support.paths import SAMPLE_EVENTS

MAPPING = SAMPLE_EVENTS.parent / "event-mapping.json"
PLACE = re.compile(r"\{{2,3}(\w+)\}{2,3}")
ENCODINGS: dict[str | None, Callable[[str], str]] = {
    None: str,
    "url": urllib.parse.quote,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
}

Path = tuple[str | int, ...]


# ---- the samples


@cache
def _mapping() -> dict[str, Any]:
    mapping: dict[str, Any] = json.loads(MAPPING.read_text())
    return mapping


def sample_names() -> list[str]:
    """All samples, as in "sqs/receive-message"."""
    return [f"{service}/{name}" for service, samples in _mapping().items() for name in samples]


def sample(full_name: str) -> Any:
    """A sample, filled with the default values."""
    service, name = full_name.split("/")
    described = _mapping()[service][name]
    template = json.loads((SAMPLE_EVENTS / service / f"{described['filename']}.json").read_text())
    return _filled(template, described["tags"])


def _filled(template: Any, tags: dict[str, Any]) -> Any:
    if isinstance(template, dict):
        return {name: _filled(member, tags) for name, member in template.items()}
    if isinstance(template, list):
        return [_filled(member, tags) for member in template]
    if not isinstance(template, str):
        return template
    text = PLACE.sub(lambda place: _value(place[1], tags), template)
    whole = PLACE.fullmatch(template)
    is_object = whole and _tag(whole[1], tags).get("type") == "dict"
    return json.loads(text) if is_object else text


def _value(name: str, tags: dict[str, Any]) -> str:
    tag = _tag(name, tags)
    return ENCODINGS[tag.get("encoding")](tag.get("default", ""))


def _tag(name: str, tags: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tags.get(name) or tags.get(name.replace("_", "-")) or {}
    return found


# ---- changing events


def leaves(event: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values that are no objects or lists."""
    if isinstance(event, (dict, list)):
        members = event.items() if isinstance(event, dict) else enumerate(event)
        for name, member in members:
            yield from leaves(member, (*path, name))
    else:
        yield path


def changed(event: Any, *paths: Path) -> Any:
    """A copy with other values of the same type at these paths."""
    event = copy.deepcopy(event)
    for path in paths:
        holder = event
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = _other(holder[path[-1]])
    return event


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return "changed" if value is None else f"{value}x"


# ---- our own


def request(shape: str, method: str = "POST", **headers: str | list[str]) -> Any:
    """An HTTP request with a body, in the shape of one gateway; `idempotency_key` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    build: Callable[[str, dict[str, Any]], Any] = SHAPES[shape]
    return build(method, named)


def _single(headers: dict[str, Any]) -> dict[str, str]:
    return {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in headers.items()
    }


def _lists(headers: dict[str, Any]) -> dict[str, list[str]]:
    return {name: value if isinstance(value, list) else [value] for name, value in headers.items()}


def _v1(method: str, headers: dict[str, Any]) -> Any:
    event = sample("apigateway/aws-proxy")
    event["httpMethod"] = event["requestContext"]["httpMethod"] = method
    event["headers"] |= {name: _lists(headers)[name][-1] for name in headers}
    event["multiValueHeaders"] |= _lists(headers)
    return event


def _v2(method: str, headers: dict[str, Any]) -> Any:
    event = sample("apigateway/http-api-proxy")
    event["requestContext"]["http"]["method"] = method
    event["headers"] |= _single(headers)
    del event["requestContext"]["authentication"], event["requestContext"]["authorizer"]
    return event


def _function_url(method: str, headers: dict[str, Any]) -> Any:
    event = _v2(method, headers)
    event["requestContext"] |= {
        "apiId": "url-id",
        "domainName": "url-id.lambda-url.eu-central-1.on.aws",
        "domainPrefix": "url-id",
    }
    return event


def _alb(method: str, headers: dict[str, Any]) -> Any:
    event = sample("alb/request")
    event["httpMethod"] = method
    event["headers"] |= _single(headers)
    return event


def _alb_lists(method: str, headers: dict[str, Any]) -> Any:
    event = _alb(method, {})
    event["multiValueHeaders"] = _lists(event.pop("headers") | headers)
    return event


def _lattice_v2(method: str, headers: dict[str, Any]) -> Any:
    return {
        "version": "2.0",
        "path": "/orders?page=1",
        "method": method,
        "headers": _lists({"host": "orders.example.com", **headers}),
        "queryStringParameters": {"page": ["1"]},
        "body": '{"orderId": 7}',
        "isBase64Encoded": False,
        "requestContext": {
            "serviceNetworkArn": "arn:aws:vpc-lattice:eu-central-1:1:servicenetwork/sn-1",
            "serviceArn": "arn:aws:vpc-lattice:eu-central-1:1:service/svc-1",
            "targetGroupArn": "arn:aws:vpc-lattice:eu-central-1:1:targetgroup/tg-1",
            "identity": {"sourceVpcArn": "arn:aws:ec2:eu-central-1:1:vpc/vpc-1"},
            "region": "eu-central-1",
            "timeEpoch": "1690497599177430",
        },
    }


def _lattice_v1(method: str, headers: dict[str, Any]) -> Any:
    return {
        "raw_path": "/orders?page=1",
        "method": method,
        "headers": _single({"host": "orders.example.com", **headers}),
        "query_string_parameters": {"page": "1"},
        "body": '{"orderId": 7}',
        "is_base64_encoded": False,
    }


SHAPES = {
    "apigateway-v1": _v1,
    "apigateway-v2": _v2,
    "function-url": _function_url,
    "alb": _alb,
    "alb-lists": _alb_lists,
    "lattice-v2": _lattice_v2,
    "lattice-v1": _lattice_v1,
}


def sqs(*bodies: Any, queue: str = "orders") -> Any:
    """A batch of messages; bodies that are no text are sent as JSON."""
    records = []
    for number, body in enumerate(bodies):
        record = sample("sqs/receive-message")["Records"][0]
        record["messageId"] = f"message-{number}"
        record["body"] = body if isinstance(body, str) else json.dumps(body, indent=1)
        record["eventSourceARN"] = f"arn:aws:sqs:eu-central-1:1:{queue}"
        records.append(record)
    return {"Records": records}


def sns_envelope() -> Any:
    """What SNS puts into a queue."""
    return {
        "Type": "Notification",
        "MessageId": "notification-1",
        "TopicArn": "arn:aws:sns:eu-central-1:1:orders",
        "Message": "text",
        "Timestamp": "2026-01-01T00:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "c2lnbmVk",
        "UnsubscribeURL": "https://sns.example.com/?Token=secret",
    }


def s3_by_eventbridge() -> Any:
    """An object was created, told by EventBridge."""
    return {
        "version": "0",
        "id": "event-1",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "1",
        "time": "2026-01-01T00:00:00Z",
        "region": "eu-central-1",
        "resources": ["arn:aws:s3:::bucket"],
        "detail": {
            "version": "0",
            "bucket": {"name": "bucket"},
            "object": {
                "key": "key",
                "size": 5,
                "etag": "e",
                "version-id": "v1",
                "sequencer": "0062E99A88DC407460",
            },
            "request-id": "N4N7GDK58NMKJ12R",
            "requester": "1",
            "source-ip-address": "1.2.3.4",
            "reason": "PutObject",
        },
    }


def kafka_record(partition: int = 0, offset: int = 15) -> Any:
    """A record of topic orders."""
    return {
        "topic": "orders",
        "partition": partition,
        "offset": offset,
        "timestamp": 1545084650987,
        "timestampType": "CREATE_TIME",
        "key": "a2V5",
        "value": "SGVsbG8=",
        "headers": [{"headerKey": [104]}],
    }


def kafka(*records: Any) -> Any:
    """A batch of MSK."""
    lists: dict[str, list[Any]] = {}
    for record in records or [kafka_record()]:
        lists.setdefault(f"{record['topic']}-{record['partition']}", []).append(record)
    return {
        "eventSource": "aws:kafka",
        "eventSourceArn": "arn:aws:kafka:eu-central-1:1:cluster/c/u",
        "bootstrapServers": "b-2.example.com:9092,b-1.example.com:9092",
        "records": lists,
    }


def kafka_self_managed() -> Any:
    """A batch of a cluster that has no ARN."""
    event = kafka()
    del event["eventSourceArn"]
    return {**event, "eventSource": "SelfManagedKafka"}


def activemq_message() -> Any:
    """A text message."""
    return {
        "messageID": "ID:b-1.mq.eu-central-1.amazonaws.com-1:1:1:1:1",
        "messageType": "jms/text-message",
        "deliveryMode": 1,
        "replyTo": None,
        "type": None,
        "expiration": "60000",
        "priority": 1,
        "correlationId": "correlation",
        "redelivered": False,
        "destination": {"physicalName": "orders"},
        "data": "QUJDOkFBQUE=",
        "timestamp": 1598827811958,
        "brokerInTime": 1598827811958,
        "brokerOutTime": 1598827811959,
    }


def activemq() -> Any:
    """A batch of one message."""
    return {
        "eventSource": "aws:mq",
        "eventSourceArn": "arn:aws:mq:eu-central-1:1:broker:b:b-1",
        "messages": [activemq_message()],
    }


def rabbitmq_message() -> Any:
    """A message to which its producer gave an id."""
    return {
        "basicProperties": {
            "contentType": "text/plain",
            "headers": {"header1": {"bytes": [118]}},
            "deliveryMode": 1,
            "correlationId": None,
            "expiration": "60000",
            "messageId": "rabbit-1",
            "timestamp": "Jan 1, 1970, 12:33:41 AM",
            "bodySize": 80,
        },
        "redelivered": False,
        "data": "eyJ0aW1lb3V0IjowfQ==",
    }


def rabbitmq() -> Any:
    """A batch of one message."""
    return {
        "eventSource": "aws:rmq",
        "eventSourceArn": "arn:aws:mq:eu-central-1:1:broker:r:r-1",
        "rmqMessagesByQueue": {"orders::/": [rabbitmq_message()]},
    }


def pipe(kind: str) -> Any:
    """A list as EventBridge Pipes delivers it: what a batch says once, each record says itself."""
    if kind == "sqs":
        return sqs("one")["Records"]
    if kind == "kinesis":
        record = sample("kinesis/get-records")["Records"][0]
        return [record.pop("kinesis") | record]
    if kind == "dynamodb":
        return sample("dynamodb/update")["Records"][:1]
    if kind == "kafka":
        source = {"eventSource": "aws:kafka", "eventSourceArn": "arn:aws:kafka:::cluster/c/u"}
        return [{**source, "eventSourceKey": "orders-0", **kafka_record()}]
    if kind == "activemq":
        return [{"eventSource": "aws:amq", "eventSourceArn": "arn:b", **activemq_message()}]
    source = {"eventSource": "aws:rmq", "eventSourceArn": "arn:r", "eventSourceKey": "orders::/"}
    return [{**source, **rabbitmq_message()}]


def log_data(batch: Any, level: int = 9) -> Any:
    """A delivery of CloudWatch Logs; `level` is that of the compression."""
    data = gzip.compress(json.dumps(batch).encode(), level)
    return {"awslogs": {"data": base64.b64encode(data).decode()}}


def log_batch() -> Any:
    """What a log subscription delivers, unpacked."""
    return {
        "messageType": "DATA_MESSAGE",
        "owner": "1",
        "logGroup": "group",
        "logStream": "stream",
        "subscriptionFilters": ["filter"],
        "logEvents": [{"id": "34622316099697884706540976068822859012661220141643892546"}],
    }


def user_pool_trigger() -> Any:
    """A user signs in."""
    return {
        "version": "1",
        "triggerSource": "PreAuthentication_Authentication",
        "region": "eu-central-1",
        "userPoolId": "eu-central-1_pool",
        "userName": "jane",
        "request": {"userAttributes": {"sub": "u"}},
        "response": {},
    }


def rotation() -> Any:
    """A step of a secret's rotation."""
    return {
        "Step": "createSecret",
        "SecretId": "arn:aws:secretsmanager:eu-central-1:1:secret:s",
        "ClientRequestToken": "version-1",
        "RotationToken": "secret",
    }


def websocket() -> Any:
    """A message over a WebSocket."""
    return {
        "requestContext": {
            "routeKey": "$default",
            "eventType": "MESSAGE",
            "messageId": "m",
            "connectionId": "c",
            "requestId": "r",
            "apiId": "a",
        },
        "body": "text",
        "isBase64Encoded": False,
    }


def authorizer_v2() -> Any:
    """A request that an HTTP API's authorizer is asked about."""
    event = request("apigateway-v2")
    return {**event, "type": "REQUEST", "routeArn": "arn:r", "identitySource": ["token"]}


def durable() -> Any:
    """A durable execution."""
    return {"DurableExecutionArn": "arn:d", "CheckpointToken": "t", "InitialExecutionState": {}}


def tumbling_window() -> Any:
    """A stream batch in a window."""
    return {
        **sample("kinesis/get-records"),
        "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:05:00Z"},
        "state": {"1": "a"},
        "shardId": "shardId-000000000006",
        "isFinalInvokeForWindow": False,
        "isWindowTerminatedEarly": False,
    }


def smart_home() -> Any:
    """A directive to a device, payload version 3."""
    return {
        "directive": {
            "header": {
                "namespace": "Alexa.PowerController",
                "name": "TurnOn",
                "messageId": "m",
                "correlationToken": "secret",
                "payloadVersion": "3",
            },
            "endpoint": {"scope": {"type": "BearerToken", "token": "secret"}, "endpointId": "e"},
            "payload": {},
        }
    }
