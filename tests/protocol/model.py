"""A world in which nothing happens by itself: a store of one record, a clock, a network.

Everything here is a value. A step makes a new ``World`` of an old one, so that the explorer can
go on from any world it has seen. Times are epoch ms of the true clock unless the name says ``_s``
or "local"; a contender's local clock shows the true time plus its ``offset_ms``.

What may become of a request, and by which steps of the explorer:

    applied and answered                 ``answer``
    applied, the reply lost, repeated    ``silence``, and the first copy arrives by ``deliver``
    applied, every reply lost            ``give_up``, and the copy arrives by ``deliver``
    not applied, answered by an error    ``refuse``
    applied, the reply very late         ``slow``, and at any later step ``receive``
    arrives late, the client waiting     ``advance`` before ``answer``
    arrives when nobody waits any more   ``silence``, ``give_up`` or ``die``; later ``deliver``
    never arrives                        the same, and no ``deliver``

A copy that is delivered at once is a lost reply, one that is delivered later is a request that was
held up, and one that is not delivered was lost on its way; so one list of copies under way covers
all three. Time passes only to the next instant at which a comparison in the code can change its
outcome (see ``instants``): between two such instants all worlds are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lambda_once.claims.protocol import CLOCK_MARGIN_MS
from lambda_once.record import COMPLETED, IN_PROGRESS, Claim, Record, StoredResult
from lambda_once.store.port import Refusal

if TYPE_CHECKING:
    from tests.protocol.replay import Node

# Half a second past a full one, so that rounding to seconds matters.
START_MS = 1_000_000_500

CLAIM = "claim"
COMPLETE = "complete"
RELEASE = "release"
READ = "read"

# How often a client sends one request before it gives up.
SENDS = 2


class Request(NamedTuple):
    """One request of the store port. ``now_ms`` is the sender's local time, for a claim."""

    operation: str
    claim: Claim
    now_ms: int = 0
    result: StoredResult | None = None
    expires_at_s: int = 0


class Sleeping(NamedTuple):
    """A contender that waits until ``until_ms``."""

    until_ms: int


class Running(NamedTuple):
    """A contender whose handler runs."""


class NotStarted(NamedTuple):
    """A contender whose event has not been delivered."""


class Finished(NamedTuple):
    """What the caller got: a response, or the class name of what was raised.

    ``ran`` is how the contender's own handler ended, or empty.
    """

    response: object
    fault: str
    ran: str


Pending = Request | Sleeping | Running | NotStarted | Finished


class Failure(NamedTuple):
    """The answer to a request that makes the store port raise IdempotencyStoreError."""

    code: str
    maybe_applied: bool


class Reply(NamedTuple):
    """An answer that is under way to its contender."""

    answer: object


class Local(NamedTuple):
    """One contender: where its code stands, how often its request was sent, a reply under way.

    ``node`` is None once the contender has finished or died.
    """

    node: Node | None
    sends: int = 0
    reply: Reply | None = None


GONE = Local(None)


class Protection(NamedTuple):
    """A handler that started under ``owner``'s claim: until then no other may start."""

    owner: str
    until_ms: int


class World(NamedTuple):
    """Everything that later steps and checks depend on, and nothing else.

    ``copies`` are requests on the wire that nobody waits for; ``completions`` are the completed
    records in the order in which they were written; ``faults`` is how many may still be injected,
    None for any number.
    """

    now_ms: int
    record: Record | None
    copies: tuple[Request, ...]
    contenders: tuple[Local, ...]
    faults: int | None
    protections: tuple[Protection, ...]
    completions: tuple[Record, ...]


class Contender(NamedTuple):
    """One delivery of the event. ``name`` is a capital letter; its tokens begin with it."""

    name: str
    offset_ms: int = 0
    payload: str = "same"


class Scenario(NamedTuple):
    """What is explored: who contends, under which settings, with how many faults.

    ``faults`` bounds how many faults and deaths one schedule may have, None does not; deaths at a
    deadline are not counted. ``long_faults`` is the same for the long exploration.
    ``returns_old`` says whether the store answers a refusal with the item in the way. ``managed``
    says that the platform lets an invocation run past its deadline; else it is killed there.
    ``deletes`` says that the store deletes expired records by itself, at any time after the expiry.
    """

    name: str
    contenders: tuple[Contender, ...]
    faults: int | None = None
    long_faults: int | None = None
    returns_old: bool = True
    managed: bool = False
    wait: bool = False
    compare_payload: bool = False
    run_without_store: bool = False
    deletes: bool = False
    lease_s: int = 0
    timeout_ms: int = 3_000
    retention_s: int = 3_600

    @property
    def fastest_ms(self) -> int:
        """By how much the clock that is furthest ahead is ahead of the true time."""
        return max(0, *(contender.offset_ms for contender in self.contenders))


def first_world(scenario: Scenario, roots: tuple[Node, ...]) -> World:
    """Nothing is stored and nobody has started."""
    return World(START_MS, None, (), tuple(Local(root) for root in roots), scenario.faults, (), ())


def has_ended(record: Record, local_ms: int) -> bool:
    """Whether the record counts as absent. Written anew from the table in ``protocol``."""
    return local_ms > last_ms(record)


def last_ms(record: Record) -> int:
    """The last local time at which the record stands."""
    expiry_ms = record.expires_at_s * 1000 + 999
    if record.status == COMPLETED:
        return expiry_ms
    return min(expiry_ms, record.in_progress_until_ms)


def may_claim(record: Record | None, request: Request) -> bool:
    """The condition of a claim."""
    return record is None or has_ended(record, request.now_ms)


def may_complete(record: Record | None, request: Request) -> bool:
    """The condition of a completion."""
    return _owns(record, request)


def may_release(record: Record | None, request: Request) -> bool:
    """The condition of a release."""
    return _owns(record, request)


def _owns(record: Record | None, request: Request) -> bool:
    return (
        record is not None and record.owner == request.claim.owner and record.status == IN_PROGRESS
    )


def apply(
    record: Record | None, request: Request, *, returns_old: bool
) -> tuple[Record | None, object]:
    """What the store holds after ``request``, and its answer."""
    if request.operation == READ:
        return record, record
    claim = request.claim
    refused = Refusal(record if returns_old else None)
    if request.operation == CLAIM:
        return (_claimed(claim), None) if may_claim(record, request) else (record, refused)
    if request.operation == RELEASE:
        return (None, None) if may_release(record, request) else (record, refused)
    if not may_complete(record, request):
        return record, refused
    fingerprint = record.fingerprint if record else claim.fingerprint
    expires_at_s = request.expires_at_s
    return (
        Record(claim.id, COMPLETED, claim.owner, 0, expires_at_s, fingerprint, request.result),
        None,
    )


def _claimed(claim: Claim) -> Record:
    return Record(
        claim.id,
        IN_PROGRESS,
        claim.owner,
        claim.lease_until_ms,
        claim.expires_at_s,
        claim.fingerprint,
    )


def add_copy(copies: tuple[Request, ...], request: Request) -> tuple[Request, ...]:
    """``copies`` with one more, in an order that does not tell when each was sent.

    A read that nobody waits for has no effect and is left out.
    """
    if request.operation == READ:
        return copies
    return tuple(sorted((*copies, request), key=lambda copy: (copy.operation, copy.claim.owner)))


def protected_until_ms(contender: Contender, node: Node) -> int:
    """Until when ``contender``'s handler may run: its deadline, or its lease less the margin."""
    assert node.claim is not None
    lease_ms = node.claim.lease_until_ms - CLOCK_MARGIN_MS - contender.offset_ms
    return max(node.deadline_ms, lease_ms)


def instants(scenario: Scenario, world: World) -> Iterator[int]:
    """When something can change for a contender that is still there.

    Who has not started a handler looks at the time: at its deadline, at the end of its sleep, at
    the end of the time in which an answered claim may be used, and at the first moment at which its
    own clock shows that the record has ended. Whoever has started one is ended at the deadline, if
    the platform does so, and may find its record deleted by the store.
    """
    for contender, local in zip(scenario.contenders, world.contenders, strict=True):
        node = local.node
        if node is None:
            continue
        claimer = node.claim is None
        if node.deadline_ms and (claimer or not scenario.managed):
            yield node.deadline_ms
        if claimer:
            yield from _instants_of_claimer(contender, node.pending, world.record)
        if world.record is not None and scenario.deletes:
            yield (world.record.expires_at_s + 1) * 1000 - scenario.fastest_ms


def _instants_of_claimer(
    contender: Contender, pending: Pending, record: Record | None
) -> Iterator[int]:
    if isinstance(pending, Sleeping):
        yield pending.until_ms
    if isinstance(pending, Request):
        yield pending.claim.lease_until_ms - CLOCK_MARGIN_MS - contender.offset_ms
    if record is not None:
        yield last_ms(record) + 1 - contender.offset_ms
