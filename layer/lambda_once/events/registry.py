"""Which source an event came from: a cheap look says which family to load, and that one decides.

The look is at members that every event of a family has. It may name a family too many, and never
one too few: the sources themselves decide, and an event that none of them takes is a direct one.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from .base import Direct, Source
from .reading import first

# In the order of the documentation's table.
FAMILIES = (
    "http",
    "queues",
    "notifications",
    "streams",
    "pipes",
    "services",
    "unguarded",
)

# The members by which an event's family is known, the families whose events must be let through
# first. A family can be named by several.
_BY_MEMBER = {
    "DurableExecutionArn": "unguarded",
    "isFinalInvokeForWindow": "unguarded",
    "methodArn": "unguarded",
    "routeArn": "unguarded",
    "requestContext": "http",
    "raw_path": "http",
    "detail-type": "notifications",
    "source": "notifications",
    "arguments": "unguarded",
    "triggerSource": "unguarded",
    "datasetRecords": "unguarded",
    "bot": "unguarded",
    "Details": "unguarded",
    "invocationId": "unguarded",
    "awslogs": "services",
    "StackId": "services",
    "SecretId": "services",
    "CodePipeline.job": "services",
    "configRuleArn": "services",
    "flowDirection": "services",
    "tasks": "services",
    "request": "services",
    "directive": "services",
    "header": "services",
}

# What a batch, or its first record, says of its source.
_BY_EVENT_SOURCE = {
    "aws:sqs": "queues",
    "aws:mq": "queues",
    "aws:amq": "queues",
    "aws:rmq": "queues",
    "aws:sns": "notifications",
    "aws:s3": "notifications",
    "aws:kinesis": "streams",
    "aws:dynamodb": "streams",
    "aws:kafka": "streams",
    "SelfManagedKafka": "streams",
    "aws:ses": "services",
    "aws:codecommit": "services",
}

_DIRECT = Direct()


def recognise(event: Any) -> Source:
    """The source of the event; a direct invocation where no other takes it."""
    for family in _families(event):
        for source in _sources_of(family):
            if source.matches(event):
                return source
    return _DIRECT


def all_sources() -> tuple[Source, ...]:
    """Every source there is, the one that takes everything last. Loads all families."""
    return (*(source for family in FAMILIES for source in _sources_of(family)), _DIRECT)


def _sources_of(family: str) -> tuple[Source, ...]:
    sources: tuple[Source, ...] = import_module(f".{family}", __package__).SOURCES
    return sources


def _families(event: Any) -> Iterator[str]:
    """The families to ask, in order."""
    if isinstance(event, list):
        yield from ("pipes", "unguarded") if event else ()
    if not isinstance(event, dict):
        return
    yield from dict.fromkeys(family for name, family in _BY_MEMBER.items() if name in event)
    record = first(event)
    yield from _by_name(record.get("eventSource"))
    yield from _by_name(record.get("EventSource"))
    yield from _by_name(event.get("eventSource"))
    if "cf" in record:
        yield "unguarded"


def _by_name(event_source: object) -> Iterator[str]:
    if isinstance(event_source, str) and event_source in _BY_EVENT_SOURCE:
        yield _BY_EVENT_SOURCE[event_source]
